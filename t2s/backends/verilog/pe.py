"""The module of one PE: loop counters, predicates of its ports, datapath and register files.

A PE fires in the first cycle in which its interval has passed, all tokens that it takes are valid,
all channels that it sends to have space, and memory, if it has a port there, grants the access.
What it needs and where is control: a function of the counters.  Values follow in the same cycle;
the registers that a chip puts between operators are part of the channels behind them.
"""

from __future__ import annotations

from t2s.backends.text.expressions import (
    Binary,
    If,
    Name,
    TargetExpression,
    TargetStatement,
    Ternary,
    number,
)
from t2s.backends.verilog import interfaces as port
from t2s.backends.verilog.counted_nests import CountedNest
from t2s.backends.verilog.datapath import Datapath
from t2s.backends.verilog.expressions import ExpressionWriter, flat
from t2s.backends.verilog.interfaces import Interface, ports_of_one
from t2s.backends.verilog.loop_counters import CounterNames, NestCounters
from t2s.backends.verilog.verilog_ast import (
    INTEGER,
    TRUE,
    WORD,
    Clocked,
    Combinational,
    ContinuousAssignment,
    HardwareModule,
    Heading,
    Item,
    both,
    either,
    negation,
    put,
    variable,
)
from t2s.core.expr import Expr
from t2s.core.types import Type
from t2s.graph.body import Receive, Send
from t2s.graph.nodes import PEArray


class PEModule:
    """Builds the module."""

    def __init__(self, interface: Interface, node: PEArray, nest: CountedNest, name: str) -> None:
        self.interface, self.node, self.nest, self.name = interface, node, nest, name
        fresh = interface.identifiers.fresh
        self.space = {d.name: fresh(d.name) for d in self.node.space}
        loops = {loop.name: fresh(loop.name) for loop in self.node.loops}
        after = {loop.name: fresh(f"next_{loop.name}") for loop in self.node.loops}
        self.counters = CounterNames(
            now=tuple(loops.values()),
            after=tuple(after.values()),
            finished=port.FINISHED,
            finishes=fresh("finishes"),
            level=fresh("level"),
            rising=fresh("rising"),
            searching=fresh("searching"),
        )
        self.cooldown = fresh("cooldown")
        parameters = {parameter.name: text for parameter, text in interface.parameters}
        static = {**parameters, **self.space}
        self.control = self._writer({**static, **loops})
        self.coming = self._writer({**static, **after})
        self.needs = {t.channel.name: fresh(f"takes_{t.channel.name}") for t in interface.taking}
        self.offers = {s.channel.name: fresh(f"sends_{s.channel.name}") for s in interface.sending}
        self.datapath = Datapath(interface, node, {**static, **loops}, self.needs)

    def _writer(self, names: dict[str, str]) -> ExpressionWriter:
        return ExpressionWriter(names=names, identifiers=self.interface.identifiers)

    def build(self) -> HardwareModule:
        """The module."""
        counting = self._counting()
        control = self._control()
        values = self._values()
        hoisted = (*self.control.declarations, *self.coming.declarations)
        return HardwareModule(
            name=self.name,
            about=(f"One PE of {self.node.name}.",),
            ports=ports_of_one(self.interface, self.space.values()),
            items=(*hoisted, *counting, *control, *self._firing(), *values, *self._clocked()),
            shared=True,
        )

    # -------------------------------------------------------------------------------- control

    def _counting(self) -> list[Item]:
        names = self.counters
        items: list[Item] = [Heading(text="loop counters")]
        items += [variable(name, INTEGER) for name in (*names.now, *names.after)]
        items.append(variable(names.finishes))
        exists = self.node.exists
        counters = NestCounters(
            loops=self.node.loops,
            names=names,
            present=self.control,
            coming=self.coming,
            exists=TRUE if exists is None else self.coming.scalar(exists),
            reset=Name(name=port.RESET),
        )
        if not self.nest.search:
            return [*items, Combinational(body=self._whole(counters.simple()))]
        items += [variable(names.level, INTEGER), variable(names.rising)]
        items.append(variable(names.searching))
        return [*items, Combinational(body=self._whole(counters.searching(self.nest.search)))]

    def _whole(self, body: tuple[TargetStatement, ...]) -> tuple[TargetStatement, ...]:
        """The block with what its expressions need before it."""
        return (*self.control.take_before(), *self.coming.take_before(), *body)

    def _condition(self, condition: Expr | None) -> TargetExpression:
        return TRUE if condition is None else self.control.scalar(condition)

    def _control(self) -> list[Item]:
        items: list[Item] = [Heading(text="what the present firing needs, and where")]
        body: list[TargetStatement] = []
        moved: list[TargetExpression] = []

        def set_where(
            target: str,
            indices: tuple[Expr, ...],
            shape: tuple[int, ...],
            used: TargetExpression = TRUE,
        ) -> None:
            where = flat(tuple(self.control.index(index) for index in indices), shape)
            body.extend(self.control.take_before())
            if used != TRUE and where != number(0):  # what is not used may be outside
                where = Ternary(condition=used, if_true=where, if_false=number(0))
            body.append(put(target, where))

        def set_whether(target: str, condition: Expr | None) -> None:
            whether = self._condition(condition)
            body.extend(self.control.take_before())
            body.append(put(target, whether))

        body_of_pe = self.node.body
        received = {s.channel: s.condition for s in body_of_pe if isinstance(s, Receive)}
        sent = {s.channel: s.condition for s in body_of_pe if isinstance(s, Send)}
        for taking in self.interface.taking:
            condition, needed = received[taking.channel.name], self.needs[taking.channel.name]
            used: TargetExpression = TRUE if condition is None else Name(name=needed)
            items.append(variable(needed))
            set_whether(needed, condition)
            set_where(taking.at, taking.channel.sink_index, taking.channel.shape, used)
        for sending in self.interface.sending:
            condition, offered = sent[sending.channel.name], self.offers[sending.channel.name]
            used = TRUE if condition is None else Name(name=offered)
            items.append(variable(offered))
            set_whether(offered, condition)
            set_where(sending.at, sending.channel.source_index, sending.channel.shape, used)
        for load in self.interface.loads:
            set_whether(load.enable, load.statement.condition)
            set_where(load.address, load.statement.indices, load.tensor.allocated)
            moved.append(_bytes_if(load.enable, load.statement.type))
        for store in self.interface.stores:
            set_whether(store.enable, store.statement.condition)
            set_where(store.address, store.statement.indices, store.tensor.allocated)
            moved.append(_bytes_if(store.enable, store.statement.value.type))
        if moved:
            total = moved[0]
            for more in moved[1:]:
                total = Binary(operator="+", left=total, right=more)
            body.append(put(port.MOVED, total))
        return [*items, Combinational(body=tuple(body))] if body else []

    def _firing(self) -> list[Item]:
        conditions: list[TargetExpression] = [
            negation(Name(name=port.FINISHED)),
            Binary(operator="==", left=Name(name=self.cooldown), right=number(0)),
        ]
        for taking in self.interface.taking:
            absent = negation(Name(name=self.needs[taking.channel.name]))
            conditions.append(either(absent, Name(name=taking.valid)))
        for sending in self.interface.sending:
            absent = negation(Name(name=self.offers[sending.channel.name]))
            conditions.append(either(absent, Name(name=sending.space)))
        items: list[Item] = [Heading(text="firing"), variable(self.cooldown, WORD)]
        fires = Name(name=port.FIRES)
        if self.interface.memory:
            items.append(
                ContinuousAssignment(target=Name(name=port.READY), value=both(*conditions))
            )
            allowed = both(Name(name=port.READY), Name(name=port.GRANTED))
            items.append(ContinuousAssignment(target=fires, value=allowed))
        else:
            items.append(ContinuousAssignment(target=fires, value=both(*conditions)))
        for taking in self.interface.taking:
            needs = Name(name=self.needs[taking.channel.name])
            items.append(
                ContinuousAssignment(target=Name(name=taking.pop), value=both(fires, needs))
            )
        for sending in self.interface.sending:
            offers = Name(name=self.offers[sending.channel.name])
            items.append(
                ContinuousAssignment(target=Name(name=sending.push), value=both(fires, offers))
            )
        return items

    # ------------------------------------------------------------------------------- datapath

    def _values(self) -> list[Item]:
        self.datapath.build()
        if not self.datapath.body:
            return []
        block = Combinational(body=tuple(self.datapath.body))
        return [Heading(text="datapath"), *self.datapath.declarations, block]

    def _clocked(self) -> list[Item]:
        names, fires, reset = self.counters, Name(name=port.FIRES), Name(name=port.RESET)
        moves: list[TargetStatement] = [
            put(now, Name(name=after), clocked=True)
            for now, after in zip(names.now, names.after, strict=True)
        ]
        moves.append(put(names.finished, Name(name=names.finishes), clocked=True))
        cooldown = Name(name=self.cooldown)
        one = number(1)
        rest = Binary(operator="-", left=Name(name=port.INTERVAL), right=one)
        less = Binary(operator="-", left=cooldown, right=one)
        waits = If(
            condition=Binary(operator="!=", left=cooldown, right=number(0)),
            then=(put(cooldown, less, clocked=True),),
        )
        cool = If(condition=fires, then=(put(cooldown, rest, clocked=True),), otherwise=(waits,))
        body: list[TargetStatement] = [
            If(condition=either(reset, fires), then=tuple(moves)),
            cool,
        ]
        if self.datapath.writes:
            body.append(If(condition=fires, then=self.datapath.updates()))
        start = (put(cooldown, number(0), clocked=True), *self.datapath.resets())
        body.append(If(condition=reset, then=start))
        return [Heading(text="what a firing leaves behind"), Clocked(body=tuple(body))]


def _bytes_if(enable: str, type: Type) -> TargetExpression:
    """What an access moves."""
    return Ternary(condition=Name(name=enable), if_true=number(type.bytes), if_false=number(0))
