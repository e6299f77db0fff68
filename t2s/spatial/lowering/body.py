"""The body of one kernel: receive operands, pass them on, compute, carry, send or store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from t2s.core.errors import InternalError
from t2s.core.expr import (
    Expr,
    Index,
    Local,
    Read,
    Select,
    apply,
    conjunction,
)
from t2s.core.names import NameSupply
from t2s.core.ops import Op
from t2s.core.steps import in_steps
from t2s.graph.body import (
    Let,
    Load,
    Receive,
    RegisterWrite,
    Send,
    Statement,
    Store,
)
from t2s.graph.graph import Channel
from t2s.spatial.analysis.capacity import hop_capacity, neighbor_capacity
from t2s.spatial.analysis.conditions import placed_condition
from t2s.spatial.analysis.padding import memory_guard
from t2s.spatial.ir import SpatialKernel
from t2s.spatial.loop_nest import SpatialLoop, shifted
from t2s.spatial.lowering.body_builder import (
    Body,
    BodyBuilder,
    KernelLinks,
    all_first,
    at_first,
    hop_channel,
    lanes_of,
    placed,
    receive_from,
    send,
    stepped_loops,
    with_operands,
)
from t2s.spatial.lowering.body_reduction import reduce_step
from t2s.spatial.lowering.body_relay import BufferPlan, buffered_body, gathered_body, scattered_body
from t2s.spatial.lowering.body_system import SystemBody
from t2s.spatial.operands import KernelOperand
from t2s.spatial.work import (
    Evaluation,
    GatheredStream,
    LoadUnit,
    Recurrences,
    Reduction,
    Relay,
    ScatteredStream,
    StoreUnit,
)


def build_body(
    kernel: SpatialKernel,
    links: KernelLinks,
    names: NameSupply,
    origins: Mapping[str, tuple[int, ...]],
    plan: BufferPlan | None,
    active: Expr | None = None,
) -> Body:
    """The body of a kernel.

    ``origins`` are the minima of the Funcs that are kept in memory; ``plan`` is given for a feeder
    with a buffer, ``active`` is the condition for iterations of its PEs (``None``: all).
    """
    builder = BodyBuilder(kernel, links, names, origins)
    if plan is None and kernel.stream is None:
        for operand in kernel.operands:
            _receive(builder, operand)
    match kernel.work:
        case Relay() if plan is not None:
            buffered_body(builder, plan)
        case Relay(stream=ScatteredStream() as stream):
            scattered_body(builder, stream)
        case Relay(stream=GatheredStream() as stream):
            gathered_body(builder, stream)
        case LoadUnit(value=Read() as read, address=address):
            _load(builder, read, address)
        case StoreUnit() as unit:
            _store(builder, unit)
        case Recurrences() as system:
            SystemBody(builder, system).build()
        case Reduction() as reduction:
            reduce_step(builder, reduction)
        case Relay(value=value) | Evaluation(value=value):
            send(builder, with_operands(builder, value), placed(builder, kernel.condition))
        case LoadUnit():
            raise InternalError(f"{kernel.name} loads no single element")
    return Body(
        statements=tuple(_where_active(active, _in_steps(builder))),
        registers=tuple(builder.registers),
        channels=tuple(builder.channels),
    )


def _receive(builder: BodyBuilder, operand: KernelOperand) -> None:
    """Receive an operand: at the boundary from its producer, elsewhere from the neighbor."""
    kernel = builder.kernel
    channel = builder.links.incoming[operand.name]
    element = builder.links.types[channel].element
    start = all_first(stepped_loops(kernel)) if operand.at_start else None
    hops = [loop for name in operand.forwards if (loop := kernel.loop(name)) is not None]
    absent = [loop.name for loop in kernel.reduction_loops if operand.at_start]
    at_edge = conjunction(start, *(at_first(loop) for loop in hops))
    entry = conjunction(placed(builder, operand.condition), at_edge)
    wanted = f"{operand.name}_entering" if hops or operand.neighbors else operand.name
    value: Expr = receive_from(builder, wanted, channel, element, entry)
    passed: list[tuple[Channel, Expr | None]] = []
    for there in reversed(operand.neighbors):
        reached = conjunction(placed(builder, there.needed), at_edge)
        arrives, leaves = (
            builder.first_lane(placed_condition(kernel, on)) for on in (there.arrives, there.leaves)
        )
        hop, neighbor = _from_neighbor(
            builder,
            operand,
            next(loop for loop in kernel.loops if loop.name == there.loop),
            frozenset([*absent, *operand.forwards]),
            neighbor_capacity(kernel, there),
            conjunction(reached, arrives),
            reverse=there.step < 0,
        )
        value = Select(condition=arrives, if_true=neighbor, if_false=value, type=element)
        passed.append((hop, conjunction(reached, leaves)))
    first = operand.neighbors[0].needed if operand.neighbors else operand.condition
    needed = conjunction(placed(builder, first), start)
    for position in reversed(range(len(hops))):
        loop, outer = hops[position], hops[:position]
        reached = conjunction(needed, *(at_first(other) for other in outer))
        inside = apply(Op.GREATER, Index(name=loop.name), loop.minimum)
        hop, neighbor = _from_neighbor(
            builder,
            operand,
            loop,
            frozenset([*absent, *(other.name for other in outer)]),
            hop_capacity(kernel, operand, position),
            conjunction(reached, inside),
        )
        value = Select(condition=at_first(loop), if_true=value, if_false=neighbor, type=element)
        not_last = apply(Op.LESS, Index(name=loop.name), loop.last)
        passed.append((hop, conjunction(reached, not_last)))
    if passed:
        value = builder.let(operand.name, value)
    for hop, condition in passed:
        builder.statements.append(Send(channel=hop.name, value=value, condition=condition))
    builder.operands[operand.name] = value


def _from_neighbor(
    builder: BodyBuilder,
    operand: KernelOperand,
    loop: SpatialLoop,
    absent: frozenset[str],
    capacity: int,
    arrives: Expr | None,
    *,
    reverse: bool = False,
) -> tuple[Channel, Expr]:
    """The channels between neighbors along a loop, and what comes from there where ``arrives``."""
    element = builder.links.types[builder.links.incoming[operand.name]].element
    name = f"{operand.source}_along_{loop.name}"
    hop = hop_channel(builder, name, element, loop, absent, capacity, reverse=reverse)
    passed = f"{operand.name}_passed"
    return hop, receive_from(builder, passed, hop.name, element, arrives)


def _load(builder: BodyBuilder, read: Read, address: tuple[Expr, ...] | None) -> None:
    kernel = builder.kernel
    type = read.type.with_lanes(lanes_of(kernel))
    condition = placed(builder, kernel.condition)
    guard = placed(builder, memory_guard(kernel, builder.origins))
    origin = builder.origins.get(read.source, (0,) * len(read.indices))
    indices = _addressed(builder, address) or tuple(
        shifted(builder.place(index), -low) for index, low in zip(read.indices, origin, strict=True)
    )
    target = builder.locals.fresh(f"{read.source}_element")
    builder.statements.append(
        Load(target=target, tensor=read.source, indices=indices, type=type, condition=guard)
    )
    send(builder, Local(name=target, type=type), condition)


def _store(builder: BodyBuilder, unit: StoreUnit) -> None:
    builder.statements.append(
        Store(
            tensor=unit.store.tensor,
            indices=_addressed(builder, unit.address)
            or tuple(builder.place(index) for index in unit.store.indices),
            value=with_operands(builder, unit.value),
            condition=placed(builder, memory_guard(builder.kernel, builder.origins)),
        )
    )


def _in_steps(builder: BodyBuilder) -> Iterator[Statement]:
    """The statements, with large values in several steps."""
    for statement in builder.statements:
        match statement:
            case (
                Let(value=value)
                | Send(value=value)
                | Store(value=value)
                | RegisterWrite(value=value)
            ):
                parts, left = in_steps(value, lambda: builder.locals.fresh("part"))
                yield from (Let(target=name, value=part) for name, part in parts)
                yield replace(statement, value=left) if parts else statement
            case _:
                yield statement


def _where_active(active: Expr | None, statements: Iterable[Statement]) -> Iterator[Statement]:
    """Nothing is received, sent, loaded or stored in iterations that there are not."""
    if active is None:
        yield from statements
        return
    for statement in statements:
        match statement:
            case Receive() | Send() | Load() | Store():
                both = conjunction(active, statement.condition)
                yield replace(statement, condition=both)
            case _:
                yield statement


def _addressed(builder: BodyBuilder, address: tuple[Expr, ...] | None) -> tuple[Expr, ...]:
    """The subscripts of a tensor that the host orders; none for any other tensor."""
    return tuple(builder.first_lane(index) for index in address or ())
