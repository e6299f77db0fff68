"""The body of one kernel: receive operands, pass them on, compute, carry, send or store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import cast

from t2s.core.errors import InternalError
from t2s.core.expr import (
    Apply,
    Broadcast,
    Cast,
    Expr,
    Index,
    Local,
    Read,
    ReduceLanes,
    Select,
    apply,
    conjunction,
    const,
    equals,
    simplify,
    substitute,
)
from t2s.core.names import NameSupply
from t2s.core.ops import Op
from t2s.core.types import Type
from t2s.core.walk import Term, rebuild, rewrite
from t2s.graph.body import (
    Let,
    Load,
    Receive,
    RegisterRead,
    RegisterWrite,
    Send,
    Statement,
    Store,
)
from t2s.graph.graph import Channel, StreamType
from t2s.graph.nodes import Register, Role
from t2s.reduction.carry import CarryLoop, CarryPlan, Hop, plan_carry
from t2s.spatial.ir import Kernel, Loop, LoopKind, Operand
from t2s.spatial.reduction_form import PREVIOUS, mentions_previous, reduction_term


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Channels of a kernel: incoming by operand name, outgoing, and their stream types."""

    incoming: Mapping[str, str]
    outgoing: tuple[str, ...]
    types: Mapping[str, StreamType]


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """What a kernel becomes: statements, registers, and channels between its own PEs."""

    statements: tuple[Statement, ...]
    registers: tuple[Register, ...]
    channels: tuple[Channel, ...]


@dataclass(slots=True)
class _Builder:
    kernel: Kernel
    links: Links
    channel_names: NameSupply
    origins: Mapping[str, tuple[int, ...]]
    locals: NameSupply = field(init=False)
    statements: list[Statement] = field(default_factory=list)
    registers: list[Register] = field(default_factory=list)
    channels: list[Channel] = field(default_factory=list)
    operands: dict[str, Expr] = field(default_factory=dict)
    carried: list[tuple[Hop, Channel]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.locals = NameSupply(loop.name for loop in self.kernel.loops)

    def place(self, expr: Expr) -> Expr:
        """Over the loops, at the first lane."""
        return self.first_lane(self.kernel.place(expr))

    def first_lane(self, expr: Expr) -> Expr:
        vector = self.kernel.vector_loop
        return expr if vector is None else substitute(expr, {vector.name: vector.minimum})

    def let(self, wanted: str, value: Expr) -> Local:
        name = self.locals.fresh(wanted)
        self.statements.append(Let(target=name, value=value))
        return Local(name=name, type=value.type)


def build_body(
    kernel: Kernel, links: Links, names: NameSupply, origins: Mapping[str, tuple[int, ...]]
) -> Body:
    """The body of a kernel; ``origins`` are the minima of the Funcs that are kept in memory."""
    builder = _Builder(kernel, links, names, origins)
    for operand in kernel.operands:
        _receive(builder, operand)
    if kernel.role is Role.LOAD:
        _load(builder)
    elif kernel.role is Role.STORE:
        _store(builder)
    elif kernel.initial is not None:
        _reduce(builder)
    else:
        value = _with_operands(builder, kernel.value)
        _send(builder, value, _placed(builder, kernel.condition))
    return Body(
        statements=tuple(builder.statements),
        registers=tuple(builder.registers),
        channels=tuple(builder.channels),
    )


def lanes_of(kernel: Kernel) -> int:
    """Lanes of the kernel's vectors; 1 without a vector loop."""
    vector = kernel.vector_loop
    return vector.constant[1] if vector is not None and vector.constant is not None else 1


def at_first(loop: Loop) -> Expr:
    """The condition that a loop is at its first iteration."""
    return equals(Index(name=loop.name), loop.minimum)


def at_last(loop: Loop) -> Expr:
    """The condition that a loop is at its last iteration."""
    return equals(Index(name=loop.name), loop.last)


def _placed(builder: _Builder, condition: Expr | None) -> Expr | None:
    return None if condition is None else builder.place(condition)


def _stepped(kernel: Kernel) -> list[Loop]:
    """The reduction loops that advance in time or space (lanes are combined in one firing)."""
    return [loop for loop in kernel.reduction_loops if loop.kind is not LoopKind.VECTOR]


def _all_first(loops: list[Loop]) -> Expr | None:
    return conjunction(*(at_first(loop) for loop in loops))


def _receive(builder: _Builder, operand: Operand) -> None:
    """Receive an operand: at the boundary from its producer, elsewhere from the neighbour."""
    kernel = builder.kernel
    channel = builder.links.incoming[operand.name]
    element = builder.links.types[channel].element
    needed = _placed(builder, operand.condition)
    if operand.at_start:
        needed = conjunction(needed, _all_first(_stepped(kernel)))
    hops = [loop for name in operand.forwards if (loop := kernel.loop(name)) is not None]
    absent = [loop.name for loop in kernel.reduction_loops if operand.at_start]
    entry = conjunction(needed, *(at_first(loop) for loop in hops))
    wanted = f"{operand.name}_entering" if hops else operand.name
    value: Expr = _receive_from(builder, wanted, channel, element, entry)
    passed: list[tuple[Channel, Expr | None]] = []
    for position in reversed(range(len(hops))):
        loop, outer = hops[position], hops[:position]
        reached = conjunction(needed, *(at_first(other) for other in outer))
        inside = apply(Op.GREATER, Index(name=loop.name), loop.minimum)
        hop = _hop_channel(
            builder,
            f"{operand.source}_along_{loop.name}",
            element,
            loop,
            frozenset([*absent, *(other.name for other in outer)]),
        )
        neighbour = _receive_from(
            builder, f"{operand.name}_passed", hop.name, element, conjunction(reached, inside)
        )
        value = Select(condition=at_first(loop), if_true=value, if_false=neighbour, type=element)
        not_last = apply(Op.LESS, Index(name=loop.name), loop.last)
        passed.append((hop, conjunction(reached, not_last)))
    if hops:
        value = builder.let(operand.name, value)
    for hop, condition in passed:
        builder.statements.append(Send(channel=hop.name, value=value, condition=condition))
    builder.operands[operand.name] = value


def _receive_from(
    builder: _Builder, wanted: str, channel: str, element: Type, condition: Expr | None
) -> Local:
    target = builder.locals.fresh(wanted)
    builder.statements.append(
        Receive(target=target, channel=channel, type=element, condition=condition)
    )
    return Local(name=target, type=element)


def _hop_channel(
    builder: _Builder,
    wanted: str,
    element: Type,
    loop: Loop,
    fixed: frozenset[str],
    capacity: int = 2,
) -> Channel:
    """A channel from each PE to its neighbour along ``loop`` (if it is unrolled).

    ``fixed`` names unrolled loops along which only one PE takes part.
    """
    space = [other for other in builder.kernel.kind(LoopKind.UNROLLED) if other.name not in fixed]
    here = tuple(
        simplify(apply(Op.SUBTRACT, Index(name=other.name), other.minimum)) for other in space
    )
    there = tuple(
        simplify(apply(Op.ADD, position, const(1))) if other.name == loop.name else position
        for other, position in zip(space, here, strict=True)
    )
    channel = Channel(
        name=builder.channel_names.fresh(wanted),
        stream=StreamType(element=element),
        source=builder.kernel.name,
        sink=builder.kernel.name,
        shape=tuple(other.constant[1] for other in space if other.constant is not None),
        source_index=there,
        sink_index=here,
        capacity=capacity,
        location=builder.kernel.location,
    )
    builder.channels.append(channel)
    return channel


def _load(builder: _Builder) -> None:
    kernel = builder.kernel
    read = kernel.value
    if not isinstance(read, Read):
        raise InternalError(f"{kernel.name} loads no single element")
    type = read.type.with_lanes(lanes_of(kernel))
    condition = _placed(builder, kernel.condition)
    origin = builder.origins.get(read.source, (0,) * len(read.indices))
    indices = tuple(
        simplify(apply(Op.SUBTRACT, builder.place(index), const(low)))
        for index, low in zip(read.indices, origin, strict=True)
    )
    target = builder.locals.fresh(f"{read.source}_element")
    builder.statements.append(
        Load(target=target, tensor=read.source, indices=indices, type=type, condition=condition)
    )
    _send(builder, Local(name=target, type=type), condition)


def _store(builder: _Builder) -> None:
    kernel = builder.kernel
    if kernel.store is None:
        raise InternalError(f"{kernel.name} stores nothing")
    builder.statements.append(
        Store(
            tensor=kernel.store.tensor,
            indices=tuple(builder.place(index) for index in kernel.store.indices),
            value=_with_operands(builder, kernel.value),
        )
    )


def _send(builder: _Builder, value: Expr, condition: Expr | None) -> None:
    for channel in builder.links.outgoing:
        lanes = builder.links.types[channel].element.lanes
        widened = value if value.type.lanes == lanes else _broadcast(value, lanes)
        builder.statements.append(Send(channel=channel, value=widened, condition=condition))


def _with_operands(builder: _Builder, expr: Expr) -> Expr:
    """The value over loops, with the received operands, widened to lanes where they are vectors."""

    def rule(node: Term) -> Term | None:
        if isinstance(node, Local) and node.name in builder.operands:
            return builder.operands[node.name]
        return None

    placed = builder.place(expr)
    return widen(rewrite(placed, rule))


def widen(expr: Expr) -> Expr:
    """Make operators on vectors take vectors: scalars beside them are broadcast."""

    def visit(node: Term) -> Term:
        if isinstance(node, Broadcast | ReduceLanes):
            return node
        rebuilt = cast(Expr, rebuild(node, visit))
        match rebuilt:
            case Apply(operands=operands):
                lanes = max(operand.type.lanes for operand in operands)
                wide = tuple(_broadcast(operand, lanes) for operand in operands)
                return replace(rebuilt, operands=wide, type=rebuilt.type.with_lanes(lanes))
            case Select(condition=condition, if_true=if_true, if_false=if_false):
                lanes = max(part.type.lanes for part in (condition, if_true, if_false))
                return replace(
                    rebuilt,
                    if_true=_broadcast(if_true, lanes),
                    if_false=_broadcast(if_false, lanes),
                    type=rebuilt.type.with_lanes(lanes),
                )
            case Cast(value=value, type=type):
                return replace(rebuilt, type=type.with_lanes(value.type.lanes))
        return rebuilt

    return cast(Expr, visit(expr))


def _broadcast(expr: Expr, lanes: int) -> Expr:
    if expr.type.lanes == lanes:
        return expr
    return Broadcast(value=expr, type=expr.type.with_lanes(lanes))


def _reduce(builder: _Builder) -> None:
    """One step of a reduction: previous partial result, new one, and where it goes."""
    kernel = builder.kernel
    stepped = _stepped(kernel)
    plan = plan_carry(_carry_loops(kernel))
    lanes = lanes_of(kernel)
    vector = kernel.vector_loop
    result_lanes = lanes if vector is not None and not vector.reduction else 1
    type = kernel.value.type.with_lanes(result_lanes)
    previous = _previous(builder, plan, stepped, type)
    result = builder.let(kernel.function, _step(builder, previous, lanes, result_lanes))
    _carry_on(builder, plan, result)
    final = conjunction(*(at_last(loop) for loop in stepped))
    _send(builder, result, conjunction(_placed(builder, kernel.condition), final))


def _carry_loops(kernel: Kernel) -> list[CarryLoop]:
    return [
        CarryLoop(
            name=loop.name,
            extent=loop.constant[1] if loop.constant is not None else None,
            reduction=loop.reduction,
            space=loop.kind is LoopKind.UNROLLED,
        )
        for loop in kernel.loops
        if loop.kind is not LoopKind.VECTOR
    ]


def _step(builder: _Builder, previous: Expr, lanes: int, result_lanes: int) -> Expr:
    """The new partial result; lanes that are reduced become a balanced tree."""
    value = builder.kernel.value
    builder.operands[PREVIOUS] = previous
    if lanes == result_lanes:
        return _broadcast(_with_operands(builder, value), result_lanes)
    form = reduction_term(value)
    if form is None:
        raise InternalError(f"{builder.kernel.name} cannot reduce its lanes")
    operator, term = form
    wide = _broadcast(_with_operands(builder, term), lanes)
    reduced = ReduceLanes(operator=operator, value=wide, type=wide.type.scalar)
    return apply(operator, previous, reduced)


def _previous(builder: _Builder, plan: CarryPlan, stepped: list[Loop], type: Type) -> Expr:
    """The partial result of the step before, or the initial value at the first step."""
    kernel = builder.kernel
    if kernel.initial is None:
        raise InternalError(f"{kernel.name} does not reduce")
    start = _broadcast(_with_operands(builder, kernel.initial), type.lanes)
    if not mentions_previous(kernel.value):
        return start
    value: Expr = start
    if plan.registers is not None:
        register = builder.locals.fresh(f"{kernel.function}_partial")
        builder.registers.append(
            Register(
                name=register,
                type=type,
                shape=plan.registers.shape,
                distance=plan.registers.distance,
                location=kernel.location,
            )
        )
        target = builder.locals.fresh("carried")
        builder.statements.append(
            RegisterRead(
                target=target,
                register=register,
                indices=_addresses(builder, plan.registers.loops),
                type=type,
            )
        )
        value = Local(name=target, type=type)
    for hop in plan.hops:
        value = _arriving(builder, hop, value, type)
    first = _all_first(stepped)
    if first is None:
        return start
    return builder.let(
        "previous", Select(condition=first, if_true=start, if_false=value, type=type)
    )


def _addresses(builder: _Builder, loops: tuple[str, ...]) -> tuple[Expr, ...]:
    return tuple(
        simplify(apply(Op.SUBTRACT, Index(name=loop.name), loop.minimum))
        for loop in builder.kernel.loops
        if loop.name in loops
    )


def _hop_loops(builder: _Builder, hop: Hop) -> tuple[Loop, list[Loop]]:
    loops = {loop.name: loop for loop in builder.kernel.loops}
    return loops[hop.loop], [loops[name] for name in hop.inner]


def _arriving(builder: _Builder, hop: Hop, otherwise: Expr, type: Type) -> Expr:
    """The partial result that arrives from another PE when the hop's loop has advanced."""
    loop, inner = _hop_loops(builder, hop)
    moved = conjunction(
        *(at_first(other) for other in inner),
        apply(Op.GREATER, Index(name=loop.name), loop.minimum),
    )
    channel = _hop_channel(
        builder,
        f"{builder.kernel.function}_partial_along_{loop.name}",
        type,
        loop,
        frozenset(other.name for other in inner),
        capacity=hop.waiting + 2,
    )
    builder.carried.append((hop, channel))
    arrived = _receive_from(builder, "arrived", channel.name, type, moved)
    if moved is None:
        return arrived
    return Select(condition=moved, if_true=arrived, if_false=otherwise, type=type)


def _carry_on(builder: _Builder, plan: CarryPlan, result: Expr) -> None:
    """Keep the new partial result for the next step, here or in another PE."""
    if not mentions_previous(builder.kernel.value):
        return
    for register in builder.registers:
        loops = plan.registers.loops if plan.registers is not None else ()
        builder.statements.append(
            RegisterWrite(register=register.name, indices=_addresses(builder, loops), value=result)
        )
    for hop, channel in builder.carried:
        loop, inner = _hop_loops(builder, hop)
        leaving = conjunction(
            *(at_last(other) for other in inner),
            apply(Op.LESS, Index(name=loop.name), loop.last),
        )
        builder.statements.append(Send(channel=channel.name, value=result, condition=leaving))
