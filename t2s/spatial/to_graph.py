"""The last step of the front end: kernels become nodes, operands become channels.

The perfect loop nests are kept as they are; what a PE does in only some iterations (start or end of
a reduction, boundary of the array) becomes the condition of a statement.
"""

from __future__ import annotations

from dataclasses import dataclass

from t2s.core.errors import UnsupportedError, UserError
from t2s.core.expr import Expr, Index, apply, simplify, substitute
from t2s.core.names import NameSupply
from t2s.core.ops import Op
from t2s.func.ir import TemporalProgram
from t2s.graph.graph import (
    Channel,
    Graph,
    Region,
    RegionKind,
    ScalarParameter,
    StreamType,
    Tensor,
    TensorRole,
)
from t2s.graph.nodes import Loop as GraphLoop
from t2s.graph.nodes import PEArray, SpaceDimension
from t2s.graph.verify import verify_graph
from t2s.spatial.barrier import add_barriers
from t2s.spatial.body import build_body
from t2s.spatial.body_buffer import BufferPlan, plan_buffer
from t2s.spatial.body_builder import Links, lanes_of
from t2s.spatial.capacity import channel_capacity
from t2s.spatial.ir import Kernel, Loop, LoopKind, Operand, SpatialProgram
from t2s.spatial.passes.buffer import check_buffers
from t2s.spatial.passes.streams import axes, check_streams
from t2s.spatial.passes.vectorize import check_complete


@dataclass(frozen=True, slots=True, kw_only=True)
class _Link:
    """One operand: the channel to be, and its two ends."""

    channel: str
    producer: Kernel
    consumer: Kernel
    operand: Operand


def lower_to_graph(program: SpatialProgram) -> Graph:
    """Build and verify the graph of a complete spatial program."""
    check_buffers(program)
    check_streams(program)
    for kernel in program.kernels:
        check_complete(kernel)
    names = NameSupply()
    links = [
        _Link(
            channel=names.fresh(f"{operand.producer}_to_{kernel.name}"),
            producer=program.kernel(operand.producer),
            consumer=kernel,
            operand=operand,
        )
        for kernel in program.kernels
        for operand in kernel.operands
    ]
    plans = {kernel.name: _buffer_plan(program, kernel) for kernel in program.kernels}
    channels = [
        _channel(program, link, plans[link.producer.name], plans[link.consumer.name])
        for link in links
    ]
    nodes: list[PEArray] = []
    origins = {f.name: tuple(low for low, _ in f.bounds) for f in program.temporal.functions}
    for kernel in program.kernels:
        ends = Links(
            incoming={k.operand.name: k.channel for k in links if k.consumer is kernel},
            outgoing=tuple(k.channel for k in links if k.producer is kernel),
            types={k.channel: _type(k) for k in links},
            parameters=tuple(p.name for p in program.temporal.parameters),
        )
        plan = plans[kernel.name]
        built = build_body(kernel, ends, names, origins, plan)
        channels += built.channels
        nodes.append(
            PEArray(
                name=kernel.name,
                role=kernel.role,
                space=tuple(_space(loop) for loop in kernel.kind(LoopKind.UNROLLED)),
                loops=_loops(kernel) if plan is None else (plan.loop,),
                registers=built.registers,
                body=built.statements,
                region=_region(kernel),
                location=kernel.location,
            )
        )
    graph = Graph(
        name=program.temporal.output,
        nodes=tuple(nodes),
        channels=tuple(channels),
        tensors=_tensors(program.temporal),
        parameters=tuple(
            ScalarParameter(name=p.name, type=p.type, location=p.location)
            for p in program.temporal.parameters
        ),
        regions=_regions(program),
        location=program.temporal.function(program.temporal.output).location,
    )
    graph = add_barriers(graph, names)
    verify_graph(graph)
    return graph


def _buffer_plan(program: SpatialProgram, kernel: Kernel) -> BufferPlan | None:
    buffered = next((o for o in kernel.operands if o.buffer is not None), None)
    return None if buffered is None else plan_buffer(program.kernel(buffered.producer), kernel)


def _loops(kernel: Kernel) -> tuple[GraphLoop, ...]:
    return tuple(
        GraphLoop(name=loop.name, minimum=loop.minimum, extent=loop.extent)
        for loop in kernel.kind(LoopKind.SERIAL)
    )


def _space(loop: Loop) -> SpaceDimension:
    minimum, extent = _constant(loop)
    return SpaceDimension(name=loop.name, minimum=minimum, extent=extent)


def _constant(loop: Loop) -> tuple[int, int]:
    if loop.constant is None:
        raise UserError(f"the unrolled loop {loop.name} has no constant bounds")
    return loop.constant


def _type(link: _Link) -> StreamType:
    """Vectors if the consumer takes vectors, and the producer of an operand sends them."""
    single = link.operand.access is not None and link.producer.vector_loop is None
    lanes = 1 if single else lanes_of(link.consumer)
    return StreamType(element=link.operand.type.with_lanes(lanes))


def _channel(
    program: SpatialProgram,
    link: _Link,
    sending: BufferPlan | None,
    filling: BufferPlan | None,
) -> Channel:
    """The channel of a link; the plans are those of its ends that have buffers."""
    producer, consumer = link.producer, link.consumer
    dimensions = axes(producer, consumer, link.operand)
    for loop in dimensions if filling is not None else ():
        own = consumer.loop(loop.name)
        if own is not None and own.kind is LoopKind.SERIAL and link.operand.buffer is not None:
            raise UnsupportedError(
                f"{link.operand.buffer.text} on {consumer.name}: {producer.name} is unrolled along "
                f"{loop.name} and {consumer.name} is not",
                location=link.operand.buffer.location,
                expected=f"{consumer.name} unrolled along {loop.name} as well",
                hint=f"write {consumer.name}.unroll({loop.name})",
            )
    own_loops = dict(sending.sending) if sending is not None else {}
    positions = tuple(
        tuple(_position(kernel, loop) for loop in dimensions) for kernel in (producer, consumer)
    )
    return Channel(
        name=link.channel,
        stream=_type(link),
        source=producer.name,
        sink=consumer.name,
        shape=tuple(_constant(loop)[1] for loop in dimensions),
        source_index=tuple(substitute(position, own_loops) for position in positions[0]),
        sink_index=positions[1],
        capacity=channel_capacity(program, producer, consumer, link.operand, *positions),
        location=producer.location,
    )


def _position(kernel: Kernel, axis: Loop) -> Expr:
    """The element along one axis of a channel array, over the loops of one of its ends."""
    own = kernel.loop(axis.name)
    same = own is not None and own.definition == axis.definition
    value = Index(name=axis.name) if same else kernel.place(axis.definition)
    return simplify(apply(Op.SUBTRACT, value, axis.minimum))


def _region(kernel: Kernel) -> str | None:
    path = [loop.name for loop in kernel.kind(LoopKind.SERIAL)]
    return "/".join(path) or None


def _regions(program: SpatialProgram) -> tuple[Region, ...]:
    """The tree of serial loop nests: nodes with a common prefix of loops share those levels."""
    regions: dict[str, Region] = {}
    for kernel in program.kernels:
        path = [loop.name for loop in kernel.kind(LoopKind.SERIAL)]
        for depth in range(1, len(path) + 1):
            name = "/".join(path[:depth])
            regions.setdefault(
                name,
                Region(
                    name=name,
                    index=path[depth - 1],
                    kind=RegionKind.RANGE,
                    parent="/".join(path[: depth - 1]) or None,
                ),
            )
    return tuple(regions.values())


def _tensors(program: TemporalProgram) -> tuple[Tensor, ...]:
    inputs = tuple(
        Tensor(name=i.name, type=i.type, shape=i.shape, role=TensorRole.INPUT, location=i.location)
        for i in program.inputs
    )
    stored = tuple(
        Tensor(
            name=function.name,
            type=function.type,
            shape=function.shape,
            role=TensorRole.OUTPUT if function.name in program.outputs else TensorRole.INTERMEDIATE,
            location=function.location,
        )
        for function in program.functions
        if function.updates or function.name in program.outputs
    )
    return inputs + stored
