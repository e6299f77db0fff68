"""The last step of the front end: kernels become nodes, operands become channels.

Perfect loop nests stay perfect: what a PE does in only some iterations (start or end of a
reduction, boundary of the array) becomes the condition of a statement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from t2s.core.errors import InternalError, UnsupportedError, UserError
from t2s.core.expr import (
    TRUE,
    Const,
    Expr,
    Index,
    Read,
    apply,
    conjunction,
    const,
    digits,
    equals,
    index_names,
    reads,
    simplify,
    substitute,
)
from t2s.core.isl import Interval, LoopDomain, is_affine
from t2s.core.isl_maps import condition, ends, project
from t2s.core.names import NameSupply
from t2s.core.ops import Op
from t2s.core.types import BOOL
from t2s.func.ir import Function, InputArray
from t2s.graph.body import Load, Receive, Send, Store
from t2s.graph.graph import (
    Channel,
    Graph,
    Layout,
    Region,
    RegionKind,
    ScalarParameter,
    StreamKind,
    StreamType,
    Tensor,
    TensorRole,
)
from t2s.graph.nodes import Loop, PEArray, Role, SpaceDimension
from t2s.graph.nodes import Loop as GraphLoop
from t2s.graph.verify import verify_graph
from t2s.spatial.analysis.capacity import channel_capacity, meeting_depths
from t2s.spatial.analysis.lanes import check_complete
from t2s.spatial.analysis.padding import Origins, allocated_shape, in_domain, origins_of
from t2s.spatial.analysis.token_order import axes, check_buffers, check_streams, drains, position
from t2s.spatial.ir import (
    KernelOperand,
    LoadUnit,
    LoopExecution,
    Relay,
    SpatialKernel,
    SpatialLoop,
    SpatialProgram,
    StoreTarget,
    StoreUnit,
    Work,
)
from t2s.spatial.kernels import stored_members
from t2s.spatial.lowering.body import build_body
from t2s.spatial.lowering.body_builder import KernelLinks, lanes_of
from t2s.spatial.lowering.body_relay import BufferPlan, plan_buffer


@dataclass(frozen=True, slots=True, kw_only=True)
class _Link:
    """An operand with its future channel and that channel's two ends."""

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
        built = build_body(kernel, ends, names, origins, plan, active if plan is None else None)
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
    """Where PEs exist, and which iterations they run: conditions over the loops."""
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
    """The iterations of the definition, over the loops: all but padded ones."""
    inside = in_domain(kernel)
    if inside is None:
        return active
    return conjunction(active, kernel.first_lane(kernel.place(inside)))


def _buffer_plan(program: SpatialProgram, kernel: SpatialKernel) -> BufferPlan | None:
    if kernel.buffer is None:
        return None
    producer = program.sender(kernel.operands[0])
    return plan_buffer(producer, kernel, presence(producer)[1], presence(kernel)[1])


def _loops(kernel: SpatialKernel) -> tuple[GraphLoop, ...]:
    return tuple(
        GraphLoop(name=loop.name, minimum=loop.minimum, extent=_never_negative(kernel, loop))
        for loop in kernel.kind(LoopExecution.SERIAL)
    )


def _never_negative(kernel: SpatialKernel, loop: SpatialLoop) -> Expr:
    """The extent of a loop, clamped at 0 for padded iterations of the enclosing loops."""
    if loop.constant is not None:
        return loop.extent
    around = [other.interval for other in kernel.loops[: kernel.loops.index(loop)]]
    domain = LoopDomain(around, [loop.extent < 0])
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
    """The arrays in memory in their natural order: neither streamed nor ordered by the host."""
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
    members = {name for system in temporal.systems for name in stored_members(temporal, system)}
    stored = tuple(
        tensor(
            function,
            TensorRole.OUTPUT if function.name in temporal.outputs else TensorRole.INTERMEDIATE,
        )
        for function in temporal.functions
        if (function.updates and temporal.system_of(function.name) is None)
        or function.name in temporal.outputs
        or function.name in members
    )
    used = {kernel.store.tensor for kernel in program.kernels if kernel.store is not None}
    used |= {read.source for kernel in program.kernels for read in reads(kernel.value)}
    streamed = {t.name for t in stored if t.role is TensorRole.INTERMEDIATE}
    gone = (ordered | streamed) - used
    return tuple(tensor for tensor in inputs + stored if tensor.name not in gone)


# Barriers: a Func in memory is complete before it is read.
#
# The store units of the Func send a control token in their last iteration, and its load units wait
# for one in their first.  Between them a node of one PE collects a token from every store unit and
# then sends one to every load unit; it skips the places of an array that have no unit.

_CONTROL = StreamType(element=BOOL, kind=StreamKind.CONTROL)


def add_barriers(graph: Graph, channel_names: NameSupply) -> Graph:
    """Put a barrier between the stores of every tensor and each node that loads it."""
    node_names = NameSupply(node.name for node in graph.nodes)
    stored = {t.name for t in graph.tensors if t.role is not TensorRole.INPUT}
    for load in graph.pe_arrays:
        tensor = next((s.tensor for s in load.body if isinstance(s, Load)), None)
        if tensor in stored:
            store = next(n for n in graph.pe_arrays if _stores(n, tensor))
            name = node_names.fresh(f"{tensor}_complete")
            graph = _add_barrier(graph, store, _array(graph, load.name), name, channel_names)
    return graph


def _array(graph: Graph, name: str) -> PEArray:
    return next(node for node in graph.pe_arrays if node.name == name)


def _stores(node: PEArray, tensor: str | None) -> bool:
    return any(isinstance(s, Store) and s.tensor == tensor for s in node.body)


def _add_barrier(
    graph: Graph, store: PEArray, load: PEArray, name: str, channel_names: NameSupply
) -> Graph:
    step = Index(name="step")
    stores, loads = _Units.of(store), _Units.of(load)
    after = simplify(step - store.place_count)
    before = step < store.place_count
    later = step >= store.place_count
    stored = channel_names.fresh(f"{name}_stored")
    released = channel_names.fresh(f"{name}_released")
    count = store.place_count + load.place_count
    barrier = PEArray(
        name=name,
        role=Role.RELAY,
        space=(),
        loops=(Loop(name="step", minimum=const(0), extent=const(count)),),
        body=(
            Receive(
                target="stored",
                channel=stored,
                type=BOOL,
                condition=conjunction(before, stores.present_at(step)),
            ),
            Send(
                channel=released, value=TRUE, condition=conjunction(later, loads.present_at(after))
            ),
        ),
        location=store.location,
    )
    channels = (
        Channel(
            name=stored,
            stream=_CONTROL,
            source=store.name,
            sink=name,
            shape=_shape(store),
            source_index=_own_position(store),
            sink_index=digits(step, _shape(store)),
            location=store.location,
        ),
        Channel(
            name=released,
            stream=_CONTROL,
            source=name,
            sink=load.name,
            shape=_shape(load),
            source_index=digits(after, _shape(load)),
            sink_index=_own_position(load),
            location=load.location,
        ),
    )
    done = Send(channel=stored, value=TRUE, condition=stores.at_end)
    wait = Receive(
        target=NameSupply(_locals(load)).fresh("complete"),
        channel=released,
        type=BOOL,
        condition=loads.at_start,
    )
    changed = {
        store.name: replace(_array(graph, store.name), body=(*store.body, done)),
        load.name: replace(load, body=(wait, *load.body)),
    }
    nodes = [changed.get(node.name, node) for node in graph.nodes]
    nodes.insert([node.name for node in nodes].index(load.name), barrier)
    return replace(graph, nodes=tuple(nodes), channels=(*graph.channels, *channels))


def _locals(node: PEArray) -> list[str]:
    names = [dimension.name for dimension in node.space] + [loop.name for loop in node.loops]
    return names + [s.target for s in node.body if isinstance(s, Load | Receive)]


def _shape(node: PEArray) -> tuple[int, ...]:
    return tuple(dimension.extent for dimension in node.space)


def _own_position(node: PEArray) -> tuple[Expr, ...]:
    return tuple(simplify(Index(name=d.name) - d.minimum) for d in node.space)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Units:
    """The units of a node and the end of each.

    ``present`` is the condition over the space for a unit that iterates at all; ``at_start`` and
    ``at_end`` hold in the first and in the last iteration of a unit.
    """

    node: PEArray
    present: Expr | None
    at_start: Expr | None
    at_end: Expr | None

    @staticmethod
    def of(node: PEArray) -> _Units:
        at_start = conjunction(*(equals(Index(name=x.name), x.minimum) for x in node.loops))
        at_end = conjunction(*(_is_last(loop) for loop in node.loops))
        boxed = all(
            isinstance(x, Const) for loop in node.loops for x in (loop.minimum, loop.extent)
        )
        if node.exists is None and boxed:
            return _Units(node=node, present=None, at_start=at_start, at_end=at_end)
        space, nest = [place.interval for place in node.space], node.iterations()
        reached = project(nest, [place.name for place in space])
        return _Units(
            node=node,
            present=condition(LoopDomain(space), reached),
            at_start=_where(nest, at_start, ends(nest, len(space), first=True)),
            at_end=_where(nest, at_end, ends(nest, len(space), first=False)),
        )

    def present_at(self, number: Expr) -> Expr | None:
        """Whether there is a unit at the place with a number, in row-major order."""
        if self.present is None:
            return None
        space = self.node.space
        places = digits(number, _shape(self.node))
        point: dict[str, Expr] = {
            dimension.name: place + dimension.minimum
            for dimension, place in zip(space, places, strict=True)
        }
        return simplify(substitute(self.present, point))


def _where(nest: LoopDomain, corner: Expr | None, points: Any) -> Expr | None:
    """The condition for points of a nest: that of its corner if it is equivalent."""
    cornered = nest if corner is None else nest.restricted(corner)
    return corner if bool(cornered.points.is_equal(points)) else condition(nest, points)


def _is_last(loop: Loop) -> Expr:
    end = simplify(loop.minimum + loop.extent)
    return equals(Index(name=loop.name) + 1, end)


# Functions on the host become layouts of tensors.


def without_host(program: SpatialProgram) -> tuple[SpatialProgram, tuple[Tensor, ...]]:
    """The kernels of the device, and the tensors that the host orders for them."""
    tensors: list[Tensor] = []
    for kernel in program.kernels:
        if not kernel.on_host:
            continue
        tensors.append(_tensor(program, kernel))
        for unit in program.kernels:
            relay = _unit(unit, kernel)
            if relay is not None:
                program = program.with_kernel(relay)
    device = tuple(k for k in program.kernels if not k.on_host)
    return replace(program, kernels=device), tuple(tensors)


def _unit(kernel: SpatialKernel, host: SpatialKernel) -> SpatialKernel | None:
    """Turn the relay next to a kernel on the host into a unit that loads or stores in its order."""
    work: Work
    match host.work, kernel.work:
        case LoadUnit(value=value), _ if host.name in (o.producer for o in kernel.operands):
            loaded = Read(source=host.name, indices=(), type=value.type)
            work = LoadUnit(value=loaded, address=_address(kernel, host))
            return replace(kernel, operands=(), work=work)
        case StoreUnit(), Relay(value=relayed, stream=None) if (
            kernel.name == host.operands[0].producer
        ):
            target = StoreTarget(tensor=host.name, indices=())
            work = StoreUnit(value=relayed, store=target, address=_address(kernel, host))
            return replace(kernel, work=work)
    return None


def _address(kernel: SpatialKernel, host: SpatialKernel) -> tuple[Expr, ...]:
    return tuple(position(kernel, loop) for loop in layout_loops(host))


def _tensor(program: SpatialProgram, kernel: SpatialKernel) -> Tensor:
    loops = layout_loops(kernel)
    points: dict[str, Expr] = {
        loop.name: simplify(Index(name=loop.name) + loop.minimum) for loop in loops
    }
    match kernel.work:
        case StoreUnit(store=StoreTarget(tensor=name, indices=indices)):
            shape, role = program.temporal.function(name).shape, TensorRole.OUTPUT
        case LoadUnit(value=Read(source=name, indices=indices)):
            shape = next(a.shape for a in program.temporal.inputs if a.name == name)
            role = TensorRole.INPUT
        case _:
            raise InternalError(f"{kernel.name} on the host computes")
    alone = replace(program, kernels=(kernel,))
    padded = allocated_shape(alone, name, shape, origins_of(program))
    subscripts = [substitute(kernel.place(index), points) for index in indices]
    if role is TensorRole.INPUT and kernel.paddings:
        subscripts = _wrapped(subscripts, padded or shape, loops)
    return Tensor(
        name=kernel.name,
        type=kernel.value.type,
        shape=shape,
        role=role,
        padded=padded,
        layout=Layout(
            array=name,
            loops=tuple(loop.name for loop in loops),
            extents=tuple(loop.fixed[1] for loop in loops),
            indices=tuple(subscripts),
        ),
        location=kernel.location,
    )


def _wrapped(
    subscripts: Sequence[Expr], shape: Sequence[int], loops: Sequence[SpatialLoop]
) -> list[Expr]:
    """Subscripts that padded iterations would take out of the array, brought back into it.

    Padding in memory is behind an array, so ``A[5 - i]`` would leave it at the front.  The loaded
    value is unused, but the host has to find an element for it.
    """
    domain = LoopDomain(
        [Interval(name=loop.name, minimum=const(0), extent=const(loop.fixed[1])) for loop in loops]
    )
    ranges = [domain.range_of(index) if is_affine(index) else None for index in subscripts]
    return [
        subscript
        if reached is None or (reached[0] >= 0 and reached[1] < extent)
        else simplify(subscript % extent)
        for subscript, reached, extent in zip(subscripts, ranges, shape, strict=True)
    ]


def layout_loops(kernel: SpatialKernel) -> tuple[SpatialLoop, ...]:
    """The dimensions of the array in memory, outermost first.

    PEs and vector lanes are innermost, so that elements used at the same time are adjacent.
    Raises ``UnsupportedError`` for loops without constant bounds.
    """
    for loop in kernel.loops:
        if loop.constant is None:
            depends = ", ".join(sorted(index_names(loop.minimum) | index_names(loop.extent)))
            raise UnsupportedError(
                f"{kernel.name} runs on the host and its loop {loop.name} has no constant bounds",
                location=kernel.location,
                expected="loops whose minima and extents are numbers",
                given=f"bounds of {loop.name} depend on {depends}",
                hint="let the device load this operand without a function on the host",
            )
    order = (LoopExecution.SERIAL, LoopExecution.UNROLLED, LoopExecution.VECTOR)
    return tuple(loop for kind in order for loop in kernel.kind(kind))
