"""The builder of kernel bodies: locals, operands, receives, sends and hops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from t2s.core.expr import (
    Apply,
    Broadcast,
    Cast,
    Expr,
    Index,
    LaneNumbers,
    Local,
    ReduceLanes,
    Select,
    conjunction,
    equals,
    simplify,
)
from t2s.core.names import NameSupply
from t2s.core.types import INT32, Type
from t2s.core.walk import Term, rewrite
from t2s.graph.body import (
    Let,
    Receive,
    Send,
    Statement,
)
from t2s.graph.graph import Channel, StreamType
from t2s.graph.nodes import Register
from t2s.reduction.carry import Hop
from t2s.spatial.analysis.lookup import placed_condition
from t2s.spatial.ir import LoopExecution, SpatialKernel, SpatialLoop, shifted


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelLinks:
    """Channels of a kernel: incoming by operand name, outgoing, and their stream types.

    ``results`` maps an outgoing channel to the Func whose elements it carries; ``parameters`` are
    the names of the design's scalars, which locals must not take.
    """

    incoming: Mapping[str, str]
    outgoing: tuple[str, ...]
    results: Mapping[str, str]
    types: Mapping[str, StreamType]
    parameters: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """The lowered kernel: statements, registers, and channels between its own PEs."""

    statements: tuple[Statement, ...]
    registers: tuple[Register, ...]
    channels: tuple[Channel, ...]


@dataclass(slots=True)
class BodyBuilder:
    """A body under construction.

    ``operands`` maps the locals of the kernel's value to values of the body, ``carried`` lists the
    hops of a reduction with their channels, ``origins`` the minima of stored Funcs.
    """

    kernel: SpatialKernel
    links: KernelLinks
    channel_names: NameSupply
    origins: Mapping[str, tuple[int, ...]]
    locals: NameSupply = field(init=False)
    statements: list[Statement] = field(default_factory=list)
    registers: list[Register] = field(default_factory=list)
    channels: list[Channel] = field(default_factory=list)
    operands: dict[str, Expr] = field(default_factory=dict)
    carried: list[tuple[Hop, Channel]] = field(default_factory=list)

    def __post_init__(self) -> None:
        loops = (loop.name for loop in self.kernel.loops)
        self.locals = NameSupply([*loops, *self.links.parameters])

    def place(self, expr: Expr) -> Expr:
        """The expression over the loops, at the first lane."""
        return self.first_lane(self.kernel.place(expr))

    def first_lane(self, expr: Expr) -> Expr:
        """With the vector loop, if there is one, at its first iteration."""
        return self.kernel.first_lane(expr)

    def let(self, wanted: str, value: Expr) -> Local:
        """Bind a value to a local, with this name if it is free."""
        name = self.locals.fresh(wanted)
        self.statements.append(Let(target=name, value=value))
        return Local(name=name, type=value.type)


def lanes_of(kernel: SpatialKernel) -> int:
    """Lanes of the kernel's vectors; 1 without a vector loop."""
    vector = kernel.vector_loop
    return vector.constant[1] if vector is not None and vector.constant is not None else 1


def at_first(loop: SpatialLoop) -> Expr:
    """The condition that a loop is at its first iteration."""
    return equals(Index(name=loop.name), loop.minimum)


def at_last(loop: SpatialLoop) -> Expr:
    """The condition that a loop is at its last iteration."""
    return equals(Index(name=loop.name), loop.last)


def placed(builder: BodyBuilder, condition: Expr | None) -> Expr | None:
    """A condition over the domain as one over the loops (``None``: always)."""
    return (
        None
        if condition is None
        else builder.first_lane(placed_condition(builder.kernel, condition))
    )


def stepped_loops(kernel: SpatialKernel) -> list[SpatialLoop]:
    """The reduction loops that advance in time or space (lanes are combined in one firing)."""
    return [loop for loop in kernel.reduction_loops if loop.kind is not LoopExecution.VECTOR]


def all_first(loops: list[SpatialLoop]) -> Expr | None:
    """The condition that all loops are at their first iteration (``None`` without loops)."""
    return conjunction(*(at_first(loop) for loop in loops))


def receive_from(
    builder: BodyBuilder, wanted: str, channel: str, element: Type, condition: Expr | None
) -> Local:
    """Append a receive and return its local."""
    target = builder.locals.fresh(wanted)
    builder.statements.append(
        Receive(target=target, channel=channel, type=element, condition=condition)
    )
    return Local(name=target, type=element)


def hop_channel(
    builder: BodyBuilder,
    wanted: str,
    element: Type,
    loop: SpatialLoop,
    fixed: frozenset[str],
    capacity: int,
    *,
    reverse: bool = False,
) -> Channel:
    """A channel from each PE to the next one along ``loop`` (if it is unrolled).

    With ``reverse`` it leads to the previous one.  ``fixed`` names unrolled loops along which only
    one PE takes part.
    """
    space = [
        other for other in builder.kernel.kind(LoopExecution.UNROLLED) if other.name not in fixed
    ]
    sender = tuple(simplify(Index(name=other.name) - other.minimum) for other in space)
    receiver = tuple(
        shifted(position, -1 if reverse else 1) if other.name == loop.name else position
        for other, position in zip(space, sender, strict=True)
    )
    channel = Channel(
        name=builder.channel_names.fresh(wanted),
        stream=StreamType(element=element),
        source=builder.kernel.name,
        sink=builder.kernel.name,
        shape=tuple(other.constant[1] for other in space if other.constant is not None),
        source_index=receiver,
        sink_index=sender,
        capacity=capacity,
        location=builder.kernel.location,
    )
    builder.channels.append(channel)
    return channel


def send(builder: BodyBuilder, value: Expr, condition: Expr | None) -> None:
    """Send a value to every consumer of the kernel, widened to the lanes of the channel."""
    for channel in builder.links.outgoing:
        lanes = builder.links.types[channel].element.lanes
        widened = value if value.type.lanes == lanes else broadcast(value, lanes)
        builder.statements.append(Send(channel=channel, value=widened, condition=condition))


def in_all_lanes(builder: BodyBuilder, condition: Expr) -> Expr:
    """A condition over the domain as a vector over the lanes, or a scalar if it does not vary."""
    vector, lanes = builder.kernel.vector_loop, lanes_of(builder.kernel)
    if vector is None or lanes == 1:
        return builder.place(condition)
    numbers = LaneNumbers(type=INT32.with_lanes(lanes))
    number = widen(simplify(numbers + vector.minimum))

    def rule(node: Term) -> Term | None:
        return number if isinstance(node, Index) and node.name == vector.name else None

    return widen(rewrite(builder.kernel.place(condition), rule))


def with_operands(builder: BodyBuilder, expr: Expr) -> Expr:
    """The value over loops, with the received operands, widened where they are vectors."""

    def rule(node: Term) -> Term | None:
        if isinstance(node, Local) and node.name in builder.operands:
            return builder.operands[node.name]
        return None

    placed = builder.place(expr)
    return widen(rewrite(placed, rule))


def widen(expr: Expr) -> Expr:
    """Broadcast scalar operands of vector operators."""

    def rule(node: Term) -> Term | None:
        match node:
            case Apply(operands=operands):
                lanes = max(operand.type.lanes for operand in operands)
                wide = tuple(broadcast(operand, lanes) for operand in operands)
                return replace(node, operands=wide, type=node.type.with_lanes(lanes))
            case Select(condition=condition, if_true=if_true, if_false=if_false):
                lanes = max(part.type.lanes for part in (condition, if_true, if_false))
                return replace(
                    node,
                    if_true=broadcast(if_true, lanes),
                    if_false=broadcast(if_false, lanes),
                    type=node.type.with_lanes(lanes),
                )
            case Cast(value=value, type=type):
                return replace(node, type=type.with_lanes(value.type.lanes))
        return None

    return rewrite(expr, rule, into=lambda term: not isinstance(term, Broadcast | ReduceLanes))


def broadcast(expr: Expr, lanes: int) -> Expr:
    """Broadcast the value to all lanes, unless it is a vector already."""
    if expr.type.lanes == lanes:
        return expr
    return Broadcast(value=expr, type=expr.type.with_lanes(lanes))
