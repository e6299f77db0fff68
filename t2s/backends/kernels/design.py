"""A graph as kernels with every decision made, and what stands in the way of that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from t2s.backends.base import Unsupported
from t2s.backends.kernels.comments import channel_comment
from t2s.backends.kernels.dialect import Dialect
from t2s.backends.kernels.kernel_ast import (
    Capacity,
    ChannelArray,
    KernelDefinition,
    Struct,
    TypedName,
)
from t2s.backends.kernels.kernels import lower_kernel
from t2s.backends.kernels.links import Bundle, ChannelLinks, Separate, plan_links
from t2s.backends.kernels.lockstep import LockstepNode, OutOfStep, lockstep, without_dead_ends
from t2s.backends.kernels.machine_kernels import lower_machine
from t2s.backends.kernels.machine_memory import point_struct
from t2s.backends.kernels.memory_ports import wide_tensors
from t2s.backends.kernels.operators import Helpers
from t2s.backends.kernels.scope import FileScope, KernelDesign, dimensions_of
from t2s.backends.kernels.unfold import Unfolded, settled, unfold
from t2s.core.expr import (
    Apply,
    BitOperator,
    BlockOperator,
    Broadcast,
    Cast,
    Const,
    Expr,
    Index,
    Insert,
    LaneNumbers,
    Local,
    Parameter,
    ReduceLanes,
    Select,
)
from t2s.core.location import SourceLocation
from t2s.core.types import Type
from t2s.core.walk import walk
from t2s.graph.body import Let, Load, Receive, RegisterRead, RegisterWrite, Send, Store, by_lanes
from t2s.graph.graph import Graph, MemorySpace
from t2s.graph.nodes import (
    Machine,
    MemoryAdd,
    MemoryDrop,
    MemoryFirst,
    MemorySize,
    Node,
    PEArray,
    Search,
)

UNLIMITED = 1 << 20
"""A capacity that no hardware has: the design says that the channel never is full."""

DEEPEST = 1024
"""The depth of such a channel."""

MOST_KERNELS = 256
"""Most kernels that PEs which cannot keep step are given, one each."""


def analyze(dialect: Dialect, graph: Graph) -> KernelDesign | list[Unsupported]:
    """Decide how every node and channel is built; or return the problems.

    The PEs of a node are one kernel if they can run in lockstep.  Otherwise, for example if each
    waits for a sum that its neighbor has not finished, every PE becomes a kernel.
    """
    problems = check_vocabulary(dialect, graph)
    if problems:
        return problems
    if graph.machines:
        match unfold(graph, dialect.title):
            case Unfolded(graph=single, nodes=pes, links=channels):
                return KernelDesign(
                    dialect=dialect, graph=single, nodes=pes, links=channels, source=graph
                )
            case refused:
                return refused
    nodes: dict[str, LockstepNode] = {}
    for node in graph.pe_arrays:
        match lockstep(graph, node):
            case LockstepNode() as lockstep_node:
                nodes[node.name] = settled(lockstep_node)
            case Unsupported() as problem:
                problems.append(problem)
    if problems:
        return problems
    nodes = without_dead_ends(graph, nodes)
    links = plan_links(graph, nodes)
    if isinstance(links, ChannelLinks):
        return KernelDesign(dialect=dialect, graph=graph, nodes=nodes, links=links)
    out_of_step = all(isinstance(problem, OutOfStep) for problem in links)
    if not out_of_step or sum(node.pe_count for node in graph.pe_arrays) > MOST_KERNELS:
        return links
    match unfold(graph, dialect.title):
        case Unfolded(graph=single, nodes=pes, links=channels):
            return KernelDesign(
                dialect=dialect, graph=single, nodes=pes, links=channels, source=graph
            )
    return links


def lower_kernels(
    design: KernelDesign, scope: FileScope, helpers: Helpers
) -> tuple[KernelDefinition, ...]:
    """The kernels of all nodes, in the order of the graph."""
    return tuple(
        lower_machine(design, scope, node, helpers)
        if isinstance(node, Machine)
        else lower_kernel(design, scope, design.nodes[node.name], helpers)
        for node in design.graph.nodes
    )


def structs_of(design: KernelDesign, scope: FileScope) -> tuple[Struct, ...]:
    """The types of vectors that the language does not have, and of bundles."""
    dialect = design.dialect
    vectors = {
        dialect.storage_name(type): dialect.struct_of(type)
        for type in types_of(design)
        if dialect.is_struct(type)
    }
    tokens = {
        dialect.token_name(stream.element): dialect.token_of(stream.element)
        for link in design.links.by_channel.values()
        if (stream := link.channel.stream).nesting
    }
    points = [
        point_struct(memory, scope.points[machine.name, memory.name], dialect)
        for machine in design.graph.machines
        for memory in machine.memories
    ]
    return (*vectors.values(), *tokens.values(), *points, *_bundles(design, scope))


def capacities_of(
    design: KernelDesign, scope: FileScope, elements: Mapping[str, int], points: int
) -> tuple[Capacity, ...]:
    """The constants for what machines have on the chip.

    ``elements`` has those of open tensors, ``points`` counts those of each sorted memory.
    """
    sizes: list[Capacity] = []
    for key, name in scope.capacities.items():
        if isinstance(key, str):
            comment = f"elements of {key} on the chip"
            sizes.append(Capacity(name=name, value=max(1, elements[key]), comment=comment))
        else:
            comment = f"points of {key[1]} in {key[0]}, a power of two"
            sizes.append(Capacity(name=name, value=points, comment=comment, points=True))
    return tuple(sizes)


def types_of(design: KernelDesign) -> list[Type]:
    """All types in a design, in order; most of them many times."""
    types = [tensor.type for tensor in design.graph.tensors]
    types += [parameter.type for parameter in design.graph.parameters]
    types += [link.channel.stream.element for link in design.links.by_channel.values()]
    for node in design.nodes.values():
        types += [register.type for register in node.node.registers]
        wide = wide_tensors(design, node)
        types += [design.graph.tensor(t).type.with_lanes(w.lanes) for t, w in wide.items()]
        for statement in node.body:
            types += [term.type for term in walk(statement) if isinstance(term, Expr)]
    for machine in design.graph.machines:
        types += [register.type for register in machine.registers]
        for mode in machine.modes:
            types += [term.type for term in walk(mode) if isinstance(term, Expr)]
    return types


def _bundles(design: KernelDesign, scope: FileScope) -> list[Struct]:
    structs: dict[str, Struct] = {}
    for name, struct in scope.structs.items():
        channel = design.link(name).channel
        if not dimensions_of(channel):
            continue
        field = TypedName(
            type=design.dialect.storage_name(channel.stream.element),
            name="s",
            dimensions=dimensions_of(channel),
        )
        structs[struct] = Struct(name=struct, fields=(field,))
    return list(structs.values())


def channels_of(design: KernelDesign, scope: FileScope) -> tuple[ChannelArray, ...]:
    """The channels between kernels."""
    arrays: list[ChannelArray] = []
    for name, link in design.links.by_channel.items():
        comment = channel_comment(design, name)
        dimensions: tuple[int, ...] = ()
        match link:
            case Bundle(depth=depth):
                type = scope.structs[name]
            case Separate(channel=channel, depth=depth):
                stream, dialect = channel.stream, design.dialect
                named = dialect.token_name if stream.nesting else dialect.storage_name
                type, dimensions = named(stream.element), dimensions_of(channel)
            case _:
                continue
        arrays.append(
            ChannelArray(
                name=scope.channels[name],
                type=type,
                dimensions=dimensions,
                depth=depth if depth < UNLIMITED else DEEPEST,
                comment=comment if depth < UNLIMITED else f"{comment}, of any depth in the design",
            )
        )
    return tuple(arrays)


# The supported node kinds, statements, expressions and types.

_EXPRESSIONS = (
    Apply,
    Broadcast,
    Cast,
    Const,
    Index,
    Insert,
    LaneNumbers,
    Local,
    Parameter,
    ReduceLanes,
    Select,
)
_STATEMENTS = (Let, Load, Receive, RegisterRead, RegisterWrite, Send, Store)


def check_vocabulary(dialect: Dialect, graph: Graph) -> list[Unsupported]:
    """Everything in the graph that is not supported."""
    unsupported = f"not supported in {dialect.title}"
    problems: list[Unsupported] = []
    for tensor in graph.tensors:
        problems += _check_type(dialect, f"tensor {tensor.name!r}", tensor.type, tensor.location)
        if tensor.place is MemorySpace.SHARED:
            why = f"banks that machines share are {unsupported}"
            subject = f"tensor {tensor.name!r}"
            problems.append(Unsupported(subject=subject, why=why, location=tensor.location))
        elif (tensor.open or tensor.place is not MemorySpace.MEMORY) and not dialect.sparse:
            why = f"tensors of unknown length and tensors on the chip are {unsupported}"
            subject = f"tensor {tensor.name!r}"
            problems.append(Unsupported(subject=subject, why=why, location=tensor.location))
    for parameter in graph.parameters:
        problems += _check_type(
            dialect, f"parameter {parameter.name!r}", parameter.type, parameter.location
        )
    for channel in graph.channels:
        subject = f"channel {channel.name!r}"
        problems += _check_type(dialect, subject, channel.stream.element, channel.location)
        if channel.stream.nesting and not dialect.sparse:
            why = f"streams with stop tokens are {unsupported}"
            problems.append(Unsupported(subject=subject, why=why, location=channel.location))
    for node in graph.nodes:
        problems += [
            Unsupported(subject=f"node {node.name!r}", why=why, location=node.location)
            for why in _check_node(dialect, node)
        ]
    return problems


def _check_type(
    dialect: Dialect, subject: str, type: Type, location: SourceLocation | None
) -> Iterator[Unsupported]:
    why = dialect.unsupported_type(type)
    if why is not None:
        yield Unsupported(subject=subject, why=why, location=location)


def _check_node(dialect: Dialect, node: Node) -> list[str]:
    """Why a node cannot become a kernel, each reason once."""
    unsupported = f"not supported in {dialect.title}"
    if isinstance(node, Machine):
        return _check_machine(dialect, node)
    if not isinstance(node, PEArray):
        kind = node.__class__.__name__
        return [f"nodes of kind {kind} are {unsupported}"]
    reasons: dict[str, None] = {}
    types = [register.type for register in node.registers]
    for statement in node.body:
        if not isinstance(statement, _STATEMENTS):
            kind = statement.__class__.__name__
            reasons[f"statements of kind {kind} are {unsupported}"] = None
        for term in walk(statement):
            if isinstance(term, Expr):
                types.append(term.type)
                if not isinstance(term, _EXPRESSIONS):
                    reasons[f"{term.__class__.__name__} has no place in the body of a PE"] = None
    reasons |= {why: None for type in types if (why := dialect.unsupported_type(type)) is not None}
    reasons |= dict.fromkeys(_repeated_ports(node))
    return list(reasons)


def _check_machine(dialect: Dialect, node: Machine) -> list[str]:
    """Why a machine cannot become kernels, each reason once."""
    unsupported = f"not supported in {dialect.title}"
    reasons: dict[str, None] = {}
    types = [register.type for register in node.registers]
    if node.endless:
        # the host waits for every kernel, and an autorun kernel must not access memory
        reasons[f"endless machines are {unsupported}"] = None
    if node.interval > 1 or node.latency:
        reasons[f"machines with an interval or a latency of their own are {unsupported}"] = None
    for memory in () if dialect.sparse else node.memories:
        reasons[f"sorted memories such as {memory.name!r} are {unsupported}"] = None
    for statement in node.statements():
        match statement:
            case MemoryAdd() | MemorySize() | MemoryFirst() | MemoryDrop():
                continue  # of a sorted memory, named above
            case Search() if dialect.sparse:
                continue
            case Load(indices=indices) | Store(indices=indices) if by_lanes(indices):
                reasons[f"machines that gather or scatter are {unsupported}"] = None
            case Load(type=type) | Store(value=Expr(type=type)) if (
                type.lanes > 1 and not dialect.sparse
            ):
                text = f"machines that load or store several lanes at once are {unsupported}"
                reasons[text] = None
        if not isinstance(statement, _STATEMENTS):
            kind = statement.__class__.__name__
            reasons[f"statements of kind {kind} are {unsupported}"] = None
    for mode in node.modes:
        for term in walk(mode):
            if isinstance(term, Expr):
                types.append(term.type)
                if isinstance(term, BlockOperator):
                    reasons[f"operators on blocks are {unsupported}: store no blocks"] = None
                elif isinstance(term, BitOperator):
                    reasons[f"operators on the bits of words are {unsupported}"] = None
                elif not isinstance(term, _EXPRESSIONS):
                    reasons[f"{term.__class__.__name__} has no place in a machine"] = None
    reasons |= {why: None for type in types if (why := dialect.unsupported_type(type)) is not None}
    return list(reasons)


def _repeated_ports(node: PEArray) -> Iterator[str]:
    receives = Counter(s.channel for s in node.body if isinstance(s, Receive))
    sends = Counter(s.channel for s in node.body if isinstance(s, Send))
    for verb, ports in (("receives from", receives), ("sends to", sends)):
        for channel, count in ports.items():
            if count > 1:
                yield f"it {verb} channel {channel!r} in {count} statements; use one, with a select"
