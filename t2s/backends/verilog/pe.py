"""The module of one PE: loop counters, predicates of its ports, datapath and register files.

A PE fires in the first cycle in which its interval has passed, all tokens that it takes are valid,
all channels that it sends to have space, and memory, if it has a port there, grants the access.
What it takes and sends, and where, is a function of the counters only.  Values follow in the same
cycle; the pipeline registers of operators are part of the channels behind them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

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
from t2s.backends.verilog import verilog_ast as ast
from t2s.backends.verilog.cooldown import Cooldown
from t2s.backends.verilog.counted_nests import CountedNest
from t2s.backends.verilog.datapath import Datapath
from t2s.backends.verilog.expressions import ExpressionWriter, flat, product, times
from t2s.backends.verilog.interfaces import Interface, parameters_of_space, ports_of_one
from t2s.backends.verilog.loop_counters import CounterNames, NestCounters, counters_of
from t2s.backends.verilog.staged_values import Names
from t2s.core.expr import Const, Expr, Index, index_names, simplify
from t2s.core.walk import Term, rewrite
from t2s.graph.body import Load, Receive, Send
from t2s.graph.nodes import PEArray


@dataclass(frozen=True, slots=True, kw_only=True)
class _StoreRequest:
    """A store of the present firing, on a chip: whether, where, and whether the PE fires, too."""

    enable: str
    address: str
    strobe: str


class PEModule:
    """Builds the module.

    Channels that are ``never_full`` make no firing wait.  With ``ends_with_tokens`` there is none
    behind the last one, since each takes a token.
    """

    def __init__(
        self,
        interface: Interface,
        node: PEArray,
        space: Mapping[str, str],
        nest: CountedNest,
        name: str,
        *,
        never_full: Collection[str] = (),
        ends_with_tokens: bool = False,
    ) -> None:
        self.interface, self.node, self.nest, self.name = interface, node, nest, name
        self.never_full, self.ends_with_tokens = never_full, ends_with_tokens
        fresh = interface.identifiers.fresh
        self.space = space
        self.registers = counters_of(node, nest.search > 0)
        self.loops = {loop.name for loop in node.loops}
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
        self.cooldown = Cooldown(name=fresh("cooldown"), interval=interface.interval)
        parameters = {parameter.name: text for parameter, text in interface.parameters}
        static = {**parameters, **self.space}
        present: Names = {**static, **self._indices(loops)}
        self.control = self._writer(present)
        coming: Names = {**static, **self._indices(after)}
        self.coming = self._writer(coming)
        self.requests = {
            store.enable: _StoreRequest(
                enable=fresh(f"{store.enable}_wanted"),
                address=fresh(f"{store.address}_wanted"),
                strobe=fresh(f"{store.enable}_fires"),
            )
            for store in interface.stores
            if interface.plan.chip
        }
        self.needs = {t.channel.name: fresh(f"takes_{t.channel.name}") for t in interface.taking}
        self.offers = {s.channel.name: fresh(f"sends_{s.channel.name}") for s in interface.sending}
        counters = {
            loop.name: (loops[loop.name], register)
            for loop, register in zip(node.loops, self.registers, strict=True)
        }
        self.datapath = Datapath(interface, node, present, counters, self.needs)
        self.ahead: list[tuple[str, str, TargetExpression]] = []
        self.first = _first_iteration(node)

    def _indices(self, names: Mapping[str, str]) -> dict[str, TargetExpression]:
        """The values of loop indices, in registers of these names."""
        pairs = zip(names.items(), self.registers, strict=True)
        return {index: register.value(name) for (index, name), register in pairs}

    def _writer(self, names: Names) -> ExpressionWriter:
        chip = self.interface.plan.chip
        return ExpressionWriter(names=names, identifiers=self.interface.identifiers, shifts=chip)

    def build(self) -> ast.HardwareModule:
        """The module."""
        counting = self._counting()
        control = self._control()
        firing = (*self._firing(), *self._stores())
        values = self._values()
        clocked = self._clocked()
        waiting = self.datapath.pipeline.declarations
        hoisted = (*self.control.declarations, *self.coming.declarations, *waiting)
        return ast.HardwareModule(
            name=self.name,
            about=(f"One PE of {self.node.name}.",),
            ports=ports_of_one(self.interface),
            items=(*hoisted, *counting, *control, *firing, *values, *clocked),
            parameters=parameters_of_space(self.node, self.space),
            shared=True,
        )

    # -------------------------------------------------------------------------------- control

    def _counting(self) -> list[ast.Item]:
        names = self.counters
        items: list[ast.Item] = [ast.Heading(text="loop counters")]
        for some in (names.now, names.after):
            items += [
                ast.variable(name, register.type)
                for name, register in zip(some, self.registers, strict=True)
            ]
        items.append(ast.variable(names.finishes))
        counters = NestCounters(
            loops=self.node.loops,
            counters=self.registers,
            names=names,
            present=self.control,
            coming=self.coming,
            reset=Name(name=port.RESET) if self.first is None else None,
        )
        if not self.nest.search:
            return [*items, ast.AlwaysComb(body=self._whole(counters.simple()))]
        items += [ast.variable(names.level, ast.INTEGER), ast.variable(names.rising)]
        items.append(ast.variable(names.searching))
        return [*items, ast.AlwaysComb(body=self._whole(counters.searching(self.nest.search)))]

    def _whole(self, body: tuple[TargetStatement, ...]) -> tuple[TargetStatement, ...]:
        """A block, preceded by the statements that its expressions need."""
        return (*self.control.take_before(), *self.coming.take_before(), *body)

    def _condition(self, condition: Expr | None) -> TargetExpression:
        return ast.TRUE if condition is None else self.control.scalar(condition)

    def _control(self) -> list[ast.Item]:
        """What the present firing needs, as wires; what every firing needs has none."""
        items: list[ast.Item] = []
        body: list[TargetStatement] = []

        def set_where(end: port.TakingPort | port.SendingPort, whether: str | None) -> None:
            if end.at is None:
                return
            channel = end.channel
            taken = isinstance(end, port.TakingPort)
            index = channel.sink_index if taken else channel.source_index
            where = flat(tuple(self.control.index(i) for i in index), channel.shape)
            body.extend(self.control.take_before())
            if whether is not None and where != number(0):  # an unused index may be out of range
                used = Name(name=whether)
                where = Ternary(condition=used, if_true=where, if_false=number(0))
            bits = port.element_type(channel).width
            body.append(ast.put(end.at, ast.Resize(bits=bits, value=where)))

        ahead: list[ast.Item] = []

        def set_ahead(target: str, condition: Expr) -> None:
            """A register, set with the counters: firing does not have to wait for a comparison."""
            coming = self.interface.identifiers.fresh(f"coming_{target}")
            whether = self.coming.scalar(condition)
            block = (*self.coming.take_before(), ast.put(coming, whether))
            ahead.extend((ast.variable(coming), ast.AlwaysComb(body=block)))
            self.ahead.append((target, coming, self._at_first(condition, target, ahead)))

        def set_whether(target: str, condition: Expr | None) -> None:
            whether = self._condition(condition)
            body.extend(self.control.take_before())
            body.append(ast.put(target, whether))

        body_of_pe = self.node.body
        received = {s.channel: s.condition for s in body_of_pe if isinstance(s, Receive)}
        sent = {s.channel: s.condition for s in body_of_pe if isinstance(s, Send)}
        ends: tuple[port.TakingPort | port.SendingPort, ...]
        ends = (*self.interface.taking, *self.interface.sending)
        for end in ends:
            channel = end.channel.name
            taken = isinstance(end, port.TakingPort)
            names, conditions = (self.needs, received) if taken else (self.offers, sent)
            condition = conditions[channel]
            if condition is None:
                del names[channel]
            else:
                items.append(ast.variable(names[channel]))
                if self.interface.plan.chip and index_names(condition) & self.loops:
                    set_ahead(names[channel], condition)
                else:
                    set_whether(names[channel], condition)
            set_where(end, names.get(channel))
        moved: list[TargetExpression] = []
        accesses: tuple[port.LoadPort | port.StorePort, ...]
        accesses = (*self.interface.loads, *self.interface.stores)
        for access in accesses:
            statement = access.statement
            request = self.requests.get(access.enable)
            if request is not None:
                items.append(ast.variable(request.enable))
                items.append(ast.variable(request.address, access.address_type))
            enable = access.enable if request is None else request.enable
            address = access.address if request is None else request.address
            set_whether(enable, statement.condition)
            where = flat(
                tuple(self.control.index(i) for i in statement.indices),
                access.tensor.allocated,
                times if self.interface.plan.chip else product,
            )
            body.extend(self.control.take_before())
            bits = access.address_type.width
            body.append(ast.put(address, ast.Resize(bits=bits, value=where)))
            moved.append(_bytes_if(access, enable))
        if self.interface.memory:
            body.append(ast.put(port.MOVED, _sum(moved)))
        if not body and not ahead:
            return []
        heading = ast.Heading(text="what the present firing needs, and where")
        now = [ast.AlwaysComb(body=tuple(body))] if body else []
        return [heading, *items, *ahead, *now]

    def _at_first(self, condition: Expr, target: str, items: list[ast.Item]) -> TargetExpression:
        """What a condition is in the first iteration; ``items`` get what that needs."""
        if self.first is None:
            return ast.FALSE
        first = self.first

        def rule(term: Term) -> Term | None:
            return first.get(term.name) if isinstance(term, Index) else None

        begun = self.control.scalar(simplify(rewrite(condition, rule)))
        before = self.control.take_before()
        if not before:
            return begun
        at_first = self.interface.identifiers.fresh(f"first_{target}")
        items += [
            ast.variable(at_first),
            ast.AlwaysComb(body=(*before, ast.put(at_first, begun))),
        ]
        return Name(name=at_first)

    def _firing(self) -> list[ast.Item]:
        conditions: list[TargetExpression] = []
        if not self.ends_with_tokens:
            conditions.append(ast.negation(Name(name=port.FINISHED)))
        conditions += self.cooldown.conditions()
        for taking in self.interface.taking:
            conditions.append(_unless(self.needs.get(taking.channel.name), taking.valid))
        for sending in self.interface.sending:
            if sending.channel.name not in self.never_full:
                conditions.append(_unless(self.offers.get(sending.channel.name), sending.space))
        items: list[ast.Item] = [ast.Heading(text="firing"), *self.cooldown.declarations()]
        fires = Name(name=port.FIRES)
        if self.interface.memory:
            items.append(
                ast.ContinuousAssignment(target=Name(name=port.READY), value=ast.both(*conditions))
            )
            allowed = ast.both(Name(name=port.READY), Name(name=port.GRANTED))
            items.append(ast.ContinuousAssignment(target=fires, value=allowed))
        else:
            items.append(ast.ContinuousAssignment(target=fires, value=ast.both(*conditions)))
        moves = [(t.pop, self.needs.get(t.channel.name)) for t in self.interface.taking]
        moves += [(s.push, self.offers.get(s.channel.name)) for s in self.interface.sending]
        for target, whether in moves:
            value = fires if whether is None else ast.both(fires, Name(name=whether))
            items.append(ast.ContinuousAssignment(target=Name(name=target), value=value))
        return items

    def _stores(self) -> list[ast.Item]:
        """The ports of stores, which happen when the value is there."""
        items: list[ast.Item] = []
        after = self.datapath.pipeline.after
        for store in self.interface.stores:
            request = self.requests.get(store.enable)
            if request is None:
                continue
            strobe = ast.both(Name(name=port.FIRES), Name(name=request.enable))
            items += [
                ast.variable(request.strobe),
                ast.ContinuousAssignment(target=Name(name=request.strobe), value=strobe),
            ]
            enable = after(request.strobe, ast.BIT, store.stage, reset=True)
            address = after(request.address, store.address_type, store.stage)
            items += [
                ast.ContinuousAssignment(target=Name(name=store.enable), value=Name(name=enable)),
                ast.ContinuousAssignment(target=Name(name=store.address), value=Name(name=address)),
            ]
        return items

    # ------------------------------------------------------------------------------- datapath

    def _values(self) -> list[ast.Item]:
        self.datapath.build()
        if not self.datapath.body:
            return []
        block = ast.AlwaysComb(body=tuple(self.datapath.body))
        items = (*self.datapath.declarations, *self.datapath.instances, block)
        return [ast.Heading(text="datapath"), *items]

    def _clocked(self) -> list[ast.Item]:
        names, fires, reset = self.counters, Name(name=port.FIRES), Name(name=port.RESET)
        moves: list[TargetStatement] = [
            ast.put(now, Name(name=after), clocked=True)
            for now, after in zip(names.now, names.after, strict=True)
        ]
        moves.append(ast.put(names.finished, Name(name=names.finishes), clocked=True))
        moves += [ast.put(now, Name(name=after), clocked=True) for now, after, _ in self.ahead]
        if self.first is None:
            advance = If(condition=ast.either(reset, fires), then=tuple(moves))
        else:
            begins = zip(names.now, self.first.values(), strict=True)
            start = [ast.put(now, self.control.index(low), clocked=True) for now, low in begins]
            start.append(ast.put(names.finished, ast.FALSE, clocked=True))
            start += [ast.put(now, first, clocked=True) for now, _, first in self.ahead]
            then = (If(condition=fires, then=tuple(moves)),)
            advance = If(condition=reset, then=tuple(start), otherwise=then)
        body: list[TargetStatement] = [advance, *self.cooldown.updates(fires)]
        body += self.datapath.updates()
        pipeline = self.datapath.pipeline
        body += pipeline.moves
        resets = (*self.cooldown.resets(), *self.datapath.resets(), *pipeline.resets)
        if resets:
            body.append(If(condition=reset, then=resets))
        return [ast.Heading(text="what a firing leaves behind"), ast.AlwaysFF(body=tuple(body))]


def _first_iteration(node: PEArray) -> dict[str, Expr] | None:
    """The indices of the first iteration, where they are the same whatever comes.

    Registers that begin with constants take no logic for their reset.
    """
    first: dict[str, Expr] = {}
    for loop in node.loops:
        match loop.minimum, loop.extent:
            case Const() as low, Const(value=count) if count > 0:
                first[loop.name] = low
            case _:
                return None
    return first


def _unless(condition: str | None, signal: str) -> TargetExpression:
    """``signal``, where it matters."""
    if condition is None:
        return Name(name=signal)
    return ast.either(ast.negation(Name(name=condition)), Name(name=signal))


def _bytes_if(access: port.LoadPort | port.StorePort, enable: str) -> TargetExpression:
    """The bytes that an access moves, if it happens."""
    statement = access.statement
    type = statement.type if isinstance(statement, Load) else statement.value.type
    moved = number(type.bytes)
    if statement.condition is None:
        return moved
    return Ternary(condition=Name(name=enable), if_true=moved, if_false=number(0))


def _sum(terms: Sequence[TargetExpression]) -> TargetExpression:
    total = terms[0] if terms else number(0)
    for more in terms[1:]:
        total = Binary(operator="+", left=total, right=more)
    return total
