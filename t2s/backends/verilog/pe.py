"""The module of one PE: loop counters, predicates of its ports, datapath and register files.

A PE fires in the first cycle in which its interval has passed, all tokens that it takes are valid,
all channels that it sends to have space, and memory, if it has a port there, grants the access.
What it takes and sends, and where, is a function of the counters only.  Values follow in the same
cycle; the pipeline registers of operators are part of the channels behind them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

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
from t2s.backends.verilog.counted_nests import CountedNest
from t2s.backends.verilog.data_types import bits_of, start_of
from t2s.backends.verilog.expressions import ExpressionWriter, flat
from t2s.backends.verilog.interfaces import Interface, ports_of_one
from t2s.core.expr import Expr
from t2s.core.types import Type
from t2s.graph.body import Let, Load, Receive, RegisterRead, RegisterWrite, Send, Store
from t2s.graph.nodes import Loop, PEArray


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

    def build(self) -> ast.HardwareModule:
        """The module."""
        counting = self._counting()
        control = self._control()
        values = self._values()
        hoisted = (*self.control.declarations, *self.coming.declarations)
        return ast.HardwareModule(
            name=self.name,
            about=(f"One PE of {self.node.name}.",),
            ports=ports_of_one(self.interface, self.space.values()),
            items=(*hoisted, *counting, *control, *self._firing(), *values, *self._clocked()),
            shared=True,
        )

    # -------------------------------------------------------------------------------- control

    def _counting(self) -> list[ast.Item]:
        names = self.counters
        items: list[ast.Item] = [ast.Heading(text="loop counters")]
        items += [ast.variable(name, ast.INTEGER) for name in (*names.now, *names.after)]
        items.append(ast.variable(names.finishes))
        exists = self.node.exists
        counters = NestCounters(
            loops=self.node.loops,
            names=names,
            present=self.control,
            coming=self.coming,
            exists=ast.TRUE if exists is None else self.coming.scalar(exists),
            reset=Name(name=port.RESET),
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
        items: list[ast.Item] = [ast.Heading(text="what the present firing needs, and where")]
        body: list[TargetStatement] = []
        moved: list[TargetExpression] = []

        def set_where(
            target: str,
            indices: tuple[Expr, ...],
            shape: tuple[int, ...],
            used: TargetExpression = ast.TRUE,
        ) -> None:
            where = flat(tuple(self.control.index(index) for index in indices), shape)
            body.extend(self.control.take_before())
            if used != ast.TRUE and where != number(0):  # an unused index may be out of range
                where = Ternary(condition=used, if_true=where, if_false=number(0))
            body.append(ast.put(target, where))

        def set_whether(target: str, condition: Expr | None) -> None:
            whether = self._condition(condition)
            body.extend(self.control.take_before())
            body.append(ast.put(target, whether))

        body_of_pe = self.node.body
        received = {s.channel: s.condition for s in body_of_pe if isinstance(s, Receive)}
        sent = {s.channel: s.condition for s in body_of_pe if isinstance(s, Send)}
        for taking in self.interface.taking:
            condition, needed = received[taking.channel.name], self.needs[taking.channel.name]
            used: TargetExpression = ast.TRUE if condition is None else Name(name=needed)
            items.append(ast.variable(needed))
            set_whether(needed, condition)
            set_where(taking.at, taking.channel.sink_index, taking.channel.shape, used)
        for sending in self.interface.sending:
            condition, offered = sent[sending.channel.name], self.offers[sending.channel.name]
            used = ast.TRUE if condition is None else Name(name=offered)
            items.append(ast.variable(offered))
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
            body.append(ast.put(port.MOVED, total))
        return [*items, ast.AlwaysComb(body=tuple(body))] if body else []

    def _firing(self) -> list[ast.Item]:
        conditions: list[TargetExpression] = [
            ast.negation(Name(name=port.FINISHED)),
            Binary(operator="==", left=Name(name=self.cooldown), right=number(0)),
        ]
        for taking in self.interface.taking:
            absent = ast.negation(Name(name=self.needs[taking.channel.name]))
            conditions.append(ast.either(absent, Name(name=taking.valid)))
        for sending in self.interface.sending:
            absent = ast.negation(Name(name=self.offers[sending.channel.name]))
            conditions.append(ast.either(absent, Name(name=sending.space)))
        items: list[ast.Item] = [ast.Heading(text="firing"), ast.variable(self.cooldown, ast.WORD)]
        fires = Name(name=port.FIRES)
        if self.interface.memory:
            items.append(
                ast.ContinuousAssignment(target=Name(name=port.READY), value=ast.both(*conditions))
            )
            allowed = ast.both(Name(name=port.READY), Name(name=port.GRANTED))
            items.append(ast.ContinuousAssignment(target=fires, value=allowed))
        else:
            items.append(ast.ContinuousAssignment(target=fires, value=ast.both(*conditions)))
        for taking in self.interface.taking:
            needs = Name(name=self.needs[taking.channel.name])
            items.append(
                ast.ContinuousAssignment(target=Name(name=taking.pop), value=ast.both(fires, needs))
            )
        for sending in self.interface.sending:
            offers = Name(name=self.offers[sending.channel.name])
            items.append(
                ast.ContinuousAssignment(
                    target=Name(name=sending.push), value=ast.both(fires, offers)
                )
            )
        return items

    # ------------------------------------------------------------------------------- datapath

    def _values(self) -> list[ast.Item]:
        self.datapath.build()
        if not self.datapath.body:
            return []
        block = ast.AlwaysComb(body=tuple(self.datapath.body))
        return [ast.Heading(text="datapath"), *self.datapath.declarations, block]

    def _clocked(self) -> list[ast.Item]:
        names, fires, reset = self.counters, Name(name=port.FIRES), Name(name=port.RESET)
        moves: list[TargetStatement] = [
            ast.put(now, Name(name=after), clocked=True)
            for now, after in zip(names.now, names.after, strict=True)
        ]
        moves.append(ast.put(names.finished, Name(name=names.finishes), clocked=True))
        cooldown = Name(name=self.cooldown)
        one = number(1)
        rest = Binary(operator="-", left=Name(name=port.INTERVAL), right=one)
        less = Binary(operator="-", left=cooldown, right=one)
        waits = If(
            condition=Binary(operator="!=", left=cooldown, right=number(0)),
            then=(ast.put(cooldown, less, clocked=True),),
        )
        cool = If(
            condition=fires, then=(ast.put(cooldown, rest, clocked=True),), otherwise=(waits,)
        )
        body: list[TargetStatement] = [
            If(condition=ast.either(reset, fires), then=tuple(moves)),
            cool,
        ]
        if self.datapath.writes:
            body.append(If(condition=fires, then=self.datapath.updates()))
        start = (ast.put(cooldown, number(0), clocked=True), *self.datapath.resets())
        body.append(If(condition=reset, then=start))
        return [ast.Heading(text="what a firing leaves behind"), ast.AlwaysFF(body=tuple(body))]


def _bytes_if(enable: str, type: Type) -> TargetExpression:
    """The bytes that an access moves, if it happens."""
    return Ternary(condition=Name(name=enable), if_true=number(type.bytes), if_false=number(0))


# The loop counters of a PE: statements that compute the next iteration from the present one.


@dataclass(frozen=True, kw_only=True)
class CounterNames:
    """Identifiers of the counters, and of the variables for computing the next iteration."""

    now: tuple[str, ...]
    after: tuple[str, ...]
    finished: str
    finishes: str
    level: str
    rising: str
    searching: str


@dataclass(frozen=True, kw_only=True)
class NestCounters:
    """Writes the block that computes the next iteration, or in reset the first one.

    ``present`` and ``coming`` write bounds over the counters of the present and of the next
    iteration; ``exists`` says whether there is a PE.
    """

    loops: Sequence[Loop]
    names: CounterNames
    present: ExpressionWriter
    coming: ExpressionWriter
    exists: TargetExpression
    reset: TargetExpression

    def simple(self) -> tuple[TargetStatement, ...]:
        """The innermost loop that is not at its end advances, and those inside of it restart."""
        names = self.names
        start: list[TargetStatement] = [
            ast.put(name, self.coming.index(loop.minimum))
            for loop, name in zip(self.loops, names.after, strict=True)
        ]
        empty = [
            Binary(operator="<=", left=self.coming.index(loop.extent), right=number(0))
            for loop in self.loops
        ]
        start.append(ast.put(names.finishes, ast.either(ast.negation(self.exists), *empty)))
        step: tuple[TargetStatement, ...] = (ast.put(names.finishes, ast.TRUE),)
        for at in range(len(self.loops)):
            moved = _plus(Name(name=names.now[at]), number(1))
            inside = range(at + 1, len(self.loops))
            then: list[TargetStatement] = [ast.put(names.after[at], moved)]
            then += [
                ast.put(names.after[level], self.coming.index(self.loops[level].minimum))
                for level in inside
            ]
            more = Binary(operator="<", left=moved, right=self._limit(at, self.present))
            step = (If(condition=more, then=tuple(then), otherwise=step),)
        return (
            *self._kept(),
            ast.put(names.finishes, Name(name=names.finished)),
            If(condition=self.reset, then=tuple(start), otherwise=step),
        )

    def searching(self, steps: int) -> tuple[TargetStatement, ...]:
        """The same for nests with empty loops: at most ``steps`` steps up and down the nest."""
        names, depth = self.names, len(self.loops)
        level = Name(name=names.level)
        body: tuple[TargetStatement, ...] = ()
        for at in reversed(range(depth)):
            at_level = Binary(operator="==", left=level, right=number(at))
            if at == depth - 1:
                body = self._search_step(at)
            else:
                body = (If(condition=at_level, then=self._search_step(at), otherwise=body),)
        return (
            *self._kept(),
            ast.put(names.rising, ast.negation(self.reset)),
            If(
                condition=self.reset,
                then=(
                    ast.put(names.level, number(0)),
                    ast.put(names.searching, self.exists),
                    ast.put(names.finishes, ast.negation(self.exists)),
                ),
                otherwise=(
                    ast.put(names.level, number(depth - 1)),
                    ast.put(names.searching, ast.TRUE),
                    ast.put(names.finishes, Name(name=names.finished)),
                ),
            ),
            ast.UnrolledFor(
                variable="step",
                count=steps,
                body=(If(condition=Name(name=names.searching), then=body),),
            ),
        )

    def _search_step(self, at: int) -> tuple[TargetStatement, ...]:
        names, innermost = self.names, at == len(self.loops) - 1
        index = names.after[at]
        enter: tuple[TargetStatement, ...]
        if innermost:
            enter = (ast.put(names.searching, ast.FALSE),)
        else:
            enter = (ast.put(names.level, number(at + 1)), ast.put(names.rising, ast.FALSE))
        leave: tuple[TargetStatement, ...]
        if at == 0:
            leave = (ast.put(names.searching, ast.FALSE), ast.put(names.finishes, ast.TRUE))
        else:
            leave = (ast.put(names.level, number(at - 1)), ast.put(names.rising, ast.TRUE))
        more = Binary(operator="<", left=Name(name=index), right=self._limit(at, self.coming))
        return (
            If(
                condition=Name(name=names.rising),
                then=(ast.put(index, _plus(Name(name=index), number(1))),),
                otherwise=(ast.put(index, self.coming.index(self.loops[at].minimum)),),
            ),
            If(condition=more, then=enter, otherwise=leave),
        )

    def _kept(self) -> list[TargetStatement]:
        pairs = zip(self.names.after, self.names.now, strict=True)
        return [ast.put(after, Name(name=now)) for after, now in pairs]

    def _limit(self, at: int, writer: ExpressionWriter) -> TargetExpression:
        loop = self.loops[at]
        if writer.index(loop.minimum) == number(0):
            return writer.index(loop.extent)
        return _plus(writer.index(loop.minimum), writer.index(loop.extent))


def _plus(left: TargetExpression, right: TargetExpression) -> TargetExpression:
    return ast.Resize(bits=32, value=Binary(operator="+", left=left, right=right))


# The datapath of a PE: what a firing computes, and its register files.


@dataclass(frozen=True, slots=True, kw_only=True)
class _Write:
    """A register write of the present firing."""

    register: str
    enable: str
    at: str
    value: str


class Datapath:
    """Writes the block that computes values, from top to bottom of the body.

    ``static`` names space indices, loop indices and parameters; ``needs`` has, for each channel,
    whether the present firing takes a token.
    """

    def __init__(
        self, interface: Interface, node: PEArray, static: dict[str, str], needs: dict[str, str]
    ) -> None:
        self.interface, self.node, self.needs = interface, node, needs
        self.identifiers = interface.identifiers
        self.names = dict(static)
        self.writer = ExpressionWriter(names=self.names, identifiers=self.identifiers)
        self.registers = {register.name: register for register in node.registers}
        self.files = {name: self.identifiers.fresh(name) for name in self.registers}
        self.declarations: list[ast.Declaration] = []
        self.body: list[TargetStatement] = []
        self.writes: list[_Write] = []

    def build(self) -> None:
        """Fill ``declarations`` and ``body``, the combinational block."""
        for register in self.registers.values():
            self._declare(self.files[register.name], bits_of(register.type), prod(register.shape))
        taking = {port.channel.name: port for port in self.interface.taking}
        sending = {port.channel.name: port for port in self.interface.sending}
        loads, stores = iter(self.interface.loads), iter(self.interface.stores)
        for statement in self.node.body:
            match statement:
                case Receive(target=target, channel=channel, type=type):
                    needed = Name(name=self.needs[channel])
                    self._bind(target, type, _or_zero(needed, Name(name=taking[channel].token)))
                case Load(target=target, type=type):
                    load = next(loads)
                    data = _or_zero(Name(name=load.enable), Name(name=load.data))
                    self._bind(target, type, data)
                case Let(target=target, value=value):
                    name = self._named(target, bits_of(value.type))
                    self.body += self.writer.assign(name, value)
                    self.names[target] = name
                case Send(channel=channel, value=value):
                    self.body += self.writer.assign(sending[channel].value, value)
                case Store(value=value):
                    self.body += self.writer.assign(next(stores).data, value)
                case RegisterRead():
                    self._read(statement)
                case RegisterWrite():
                    self._write(statement)
        self.declarations += self.writer.declarations

    def updates(self) -> tuple[TargetStatement, ...]:
        """Register writes at the end of a firing."""
        return tuple(
            If(
                condition=Name(name=write.enable),
                then=(
                    ast.put(
                        ast.element(write.register, Name(name=write.at)),
                        Name(name=write.value),
                        clocked=True,
                    ),
                ),
            )
            for write in self.writes
        )

    def resets(self) -> tuple[TargetStatement, ...]:
        """Statements that set register files to their initial values."""
        return tuple(
            ast.UnrolledFor(
                variable="at",
                count=prod(register.shape),
                body=(
                    ast.put(
                        ast.element(self.files[name], Name(name="at")),
                        start_of(register),
                        clocked=True,
                    ),
                ),
            )
            for name, register in self.registers.items()
        )

    def _declare(self, name: str, type: ast.Bits, count: int | None = None) -> None:
        self.declarations.append(ast.variable(name, type, count))

    def _named(self, stem: str, type: ast.Bits) -> str:
        name = self.identifiers.fresh(stem)
        self._declare(name, type)
        return name

    def _bind(self, target: str, type: Type, value: TargetExpression) -> None:
        name = self._named(target, bits_of(type))
        self.body.append(ast.put(name, value))
        self.names[target] = name

    def _where(self, register: str, indices: tuple[Expr, ...]) -> TargetExpression:
        written = tuple(self.writer.index(index) for index in indices)
        self.body += self.writer.take_before()
        return flat(written, self.registers[register].shape)

    def _read(self, statement: RegisterRead) -> None:
        """The content of a register file, or what this firing has written to the place."""
        file = self.files[statement.register]
        where = self._where(statement.register, statement.indices)
        earlier = [write for write in self.writes if write.register == file]
        if earlier:
            at = self._named(f"{statement.target}_at", ast.WORD)
            self.body.append(ast.put(at, where))
            where = Name(name=at)
        value: TargetExpression = ast.element(file, where)
        for write in earlier:
            same = Binary(operator="==", left=Name(name=write.at), right=where)
            value = Ternary(
                condition=ast.both(Name(name=write.enable), same),
                if_true=Name(name=write.value),
                if_false=value,
            )
        self._bind(statement.target, statement.type, value)

    def _write(self, statement: RegisterWrite) -> None:
        file = self.files[statement.register]
        enable = self._named(f"{file}_write", ast.BIT)
        at = self._named(f"{file}_at", ast.WORD)
        value = self._named(f"{file}_value", bits_of(statement.value.type))
        condition: TargetExpression = ast.TRUE
        if statement.condition is not None:
            condition = self.writer.scalar(statement.condition)
            self.body += self.writer.take_before()
        self.body.append(ast.put(enable, condition))
        self.body.append(ast.put(at, self._where(statement.register, statement.indices)))
        self.body += self.writer.assign(value, statement.value)
        self.writes.append(_Write(register=file, enable=enable, at=at, value=value))


def _or_zero(condition: TargetExpression, value: TargetExpression) -> TargetExpression:
    return Ternary(condition=condition, if_true=value, if_false=ast.ZEROS)
