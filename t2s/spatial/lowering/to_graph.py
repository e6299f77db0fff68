"""The last step of the front end: kernels become nodes, operands become channels.

The perfect loop nests are kept as they are; what a PE does in only some iterations (start or end of
a reduction, boundary of the array) becomes the condition of a statement.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from t2s.core.errors import UnsupportedError, UserError
from t2s.core.expr import Expr, apply, conjunction, const, index_names, reads, substitute
from t2s.core.isl import LoopDomain
from t2s.core.isl_maps import condition, project
from t2s.core.names import NameSupply
from t2s.core.ops import Op
from t2s.func.ir import Function, InputArray
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
from t2s.spatial.analysis.buffering import check_buffers
from t2s.spatial.analysis.capacity import channel_capacity, meeting_depths
from t2s.spatial.analysis.lanes import check_complete
from t2s.spatial.analysis.padding import Origins, allocated_shape, in_domain, origins_of
from t2s.spatial.analysis.token_order import axes, check_streams, drains, position
from t2s.spatial.ir import SpatialKernel, SpatialProgram
from t2s.spatial.loop_nest import LoopExecution, SpatialLoop
from t2s.spatial.lowering.barrier import add_barriers
from t2s.spatial.lowering.body import build_body
from t2s.spatial.lowering.body_builder import KernelLinks, lanes_of
from t2s.spatial.lowering.body_relay import BufferPlan, plan_buffer
from t2s.spatial.lowering.host_memory import without_host
from t2s.spatial.operands import KernelOperand
from t2s.spatial.systems import stored_members


@dataclass(frozen=True, slots=True, kw_only=True)
class _Link:
    """One operand: the channel to be, and its two ends."""

    channel: str
    producer: SpatialKernel
    consumer: SpatialKernel
    operand: KernelOperand


def lower_to_graph(program: SpatialProgram) -> Graph:
    """Build and verify the graph of a complete spatial program."""
    check_buffers(program)
    check_streams(program)
    for kernel in program.kernels:
        check_complete(kernel)
    program, ordered = without_host(program)
    names = NameSupply()
    links = [
        _Link(
            channel=names.fresh(f"{operand.producer}_to_{kernel.name}"),
            producer=program.sender(operand),
            consumer=kernel,
            operand=operand,
        )
        for kernel in program.kernels
        for operand in kernel.operands
    ]
    plans = {kernel.name: _buffer_plan(program, kernel) for kernel in program.kernels}
    meeting = meeting_depths(program)
    channels = [
        _channel(program, link, plans[link.producer.name], plans[link.consumer.name], meeting)
        for link in links
    ]
    types = {link.channel: _type(link) for link in links}
    nodes: list[PEArray] = []
    origins = origins_of(program)
    for kernel in program.kernels:
        ends = KernelLinks(
            incoming={k.operand.name: k.channel for k in links if k.consumer is kernel},
            outgoing=tuple(k.channel for k in links if k.producer.name == kernel.name),
            results={k.channel: k.operand.source for k in links if k.producer.name == kernel.name},
            types=types,
            parameters=tuple(p.name for p in program.temporal.parameters),
        )
        plan = plans[kernel.name]
        exists, active = presence(kernel)
        built = build_body(kernel, ends, names, origins, plan, active)
        channels += built.channels
        nodes.append(
            PEArray(
                name=kernel.name,
                role=kernel.role,
                space=tuple(_space(loop) for loop in kernel.kind(LoopExecution.UNROLLED)),
                loops=_loops(kernel) if plan is None else (plan.loop,),
                registers=built.registers,
                body=built.statements,
                exists=exists,
                active=_of_the_definition(kernel, active) if plan is None else None,
                region=_region(kernel),
                location=kernel.location,
            )
        )
    graph = Graph(
        name=program.temporal.output,
        nodes=tuple(nodes),
        channels=tuple(channels),
        tensors=(*_tensors(program, origins, {t.array for t in ordered}), *ordered),
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


def presence(kernel: SpatialKernel) -> tuple[Expr | None, Expr | None]:
    """Where there are PEs, and which iterations they skip: conditions over the loops."""
    space = kernel.kind(LoopExecution.UNROLLED)
    names = frozenset(loop.name for loop in space)
    bounds = [b for loop in kernel.loops for b in (loop.minimum, loop.extent)]
    if kernel.active is None and not any(index_names(bound) & names for bound in bounds):
        return None, None
    places = LoopDomain([loop.interval for loop in space])
    present = project(kernel.domain_of_iterations, [loop.name for loop in space])
    exists = condition(places, present)
    if kernel.active is None:
        return exists, None
    nest = replace(kernel, active=exists).domain_of_iterations
    return exists, condition(nest, nest.restricted(kernel.active).points)


def _of_the_definition(kernel: SpatialKernel, active: Expr | None) -> Expr | None:
    """Which iterations the definition has, over the loops: those that are made, unless padded."""
    inside = in_domain(kernel)
    if inside is None:
        return active
    return conjunction(active, kernel.first_lane(kernel.place(inside)))


def _buffer_plan(program: SpatialProgram, kernel: SpatialKernel) -> BufferPlan | None:
    if kernel.buffer is None:
        return None
    return plan_buffer(program.sender(kernel.operands[0]), kernel)


def _loops(kernel: SpatialKernel) -> tuple[GraphLoop, ...]:
    return tuple(
        GraphLoop(name=loop.name, minimum=loop.minimum, extent=_never_negative(kernel, loop))
        for loop in kernel.kind(LoopExecution.SERIAL)
    )


def _never_negative(kernel: SpatialKernel, loop: SpatialLoop) -> Expr:
    """The extent of a loop; padded iterations of the loops around it may have passed its end."""
    if loop.constant is not None:
        return loop.extent
    around = [other.interval for other in kernel.loops[: kernel.loops.index(loop)]]
    domain = LoopDomain(around, [apply(Op.LESS, loop.extent, const(0))])
    return loop.extent if domain.is_empty() else apply(Op.MAXIMUM, loop.extent, const(0))


def _space(loop: SpatialLoop) -> SpaceDimension:
    minimum, extent = _constant(loop)
    return SpaceDimension(name=loop.name, minimum=minimum, extent=extent)


def _constant(loop: SpatialLoop) -> tuple[int, int]:
    if loop.constant is None:
        raise UserError(f"the unrolled loop {loop.name} has no constant bounds")
    return loop.constant


def _type(link: _Link) -> StreamType:
    result = link.producer.result(link.operand.source)
    if result is not None:
        member = link.producer.member(result.member)
        wide = member is not None and member.lanes
        lanes = lanes_of(link.producer) if wide else 1
        return StreamType(element=link.operand.type.with_lanes(lanes))
    if link.operand.is_result:
        return StreamType(element=link.operand.type.with_lanes(lanes_of(link.consumer)))
    loop = link.producer.vector_loop
    scalar = loop is None or (loop.reduction and drains(link.producer))
    lanes = 1 if scalar else lanes_of(link.producer)
    return StreamType(element=link.operand.type.with_lanes(lanes))


def _channel(
    program: SpatialProgram,
    link: _Link,
    sending: BufferPlan | None,
    filling: BufferPlan | None,
    meeting: Mapping[tuple[str, str], int],
) -> Channel:
    """The channel of a link; the plans are those of its ends that have buffers.

    ``meeting`` gives the least depths by consumer and operand, where one is known.
    """
    producer, consumer = link.producer, link.consumer
    dimensions = axes(producer, consumer, link.operand)
    for loop in dimensions if filling is not None else ():
        own = next((o for o in consumer.loops if o.definition == loop.definition), None)
        space = own is not None and own.kind is LoopExecution.UNROLLED
        if consumer.buffer is not None and not space:
            name = loop.name if own is None else own.name
            raise UnsupportedError(
                f"{consumer.buffer.by.text} on {consumer.name}: {producer.name} is unrolled along "
                f"{loop.name} and {consumer.name} is not",
                location=consumer.buffer.by.location,
                expected=f"{consumer.name} unrolled along {name} as well",
                hint=f"write {consumer.name}.unroll({name})",
            )
    own_loops = dict(sending.sending) if sending is not None else {}
    source = tuple(position(producer, loop) for loop in dimensions)
    sink = tuple(position(consumer, loop) for loop in dimensions)
    key = (consumer.name, link.operand.name)
    return Channel(
        name=link.channel,
        stream=_type(link),
        source=producer.name,
        sink=consumer.name,
        shape=tuple(_constant(loop)[1] for loop in dimensions),
        source_index=tuple(substitute(place, own_loops) for place in source),
        sink_index=sink,
        capacity=channel_capacity(
            program, producer, consumer, link.operand, source, sink, meeting.get(key, 1)
        ),
        location=producer.location,
    )


def _region(kernel: SpatialKernel) -> str | None:
    path = [loop.name for loop in kernel.kind(LoopExecution.SERIAL)]
    return "/".join(path) or None


def _regions(program: SpatialProgram) -> tuple[Region, ...]:
    """The tree of serial loop nests: nodes with a common prefix of loops share those levels."""
    regions: dict[str, Region] = {}
    for kernel in program.kernels:
        path = [loop.name for loop in kernel.kind(LoopExecution.SERIAL)]
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


def _tensors(program: SpatialProgram, origins: Origins, ordered: set[str]) -> tuple[Tensor, ...]:
    """The arrays in memory as they are: not what is streamed, or only there in another order."""
    temporal = program.temporal

    def tensor(array: InputArray | Function, role: TensorRole) -> Tensor:
        return Tensor(
            name=array.name,
            type=array.type,
            shape=array.shape,
            role=role,
            padded=allocated_shape(program, array.name, array.shape, origins),
            location=array.location,
        )

    inputs = tuple(tensor(array, TensorRole.INPUT) for array in temporal.inputs)
    kept = {name for system in temporal.systems for name in stored_members(temporal, system)}
    stored = tuple(
        tensor(
            function,
            TensorRole.OUTPUT if function.name in temporal.outputs else TensorRole.INTERMEDIATE,
        )
        for function in temporal.functions
        if (function.updates and temporal.system_of(function.name) is None)
        or function.name in temporal.outputs
        or function.name in kept
    )
    used = {kernel.store.tensor for kernel in program.kernels if kernel.store is not None}
    used |= {read.source for kernel in program.kernels for read in reads(kernel.value)}
    streamed = {t.name for t in stored if t.role is TensorRole.INTERMEDIATE}
    gone = (ordered | streamed) - used
    return tuple(tensor for tensor in inputs + stored if tensor.name not in gone)
