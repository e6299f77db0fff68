"""The backend object: ``supports`` and ``emit``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from t2s.backends.base import RunOptions, Unsupported, refusal
from t2s.backends.opencl_fpga.c_types import is_struct, storage_name, struct_of, unsupported_type
from t2s.backends.opencl_fpga.comments import channel_comment, file_comment
from t2s.backends.opencl_fpga.emit import emit_host, emit_kernels
from t2s.backends.opencl_fpga.emulator import run_files
from t2s.backends.opencl_fpga.host import host_program
from t2s.backends.opencl_fpga.kernel_ast import ChannelArray, KernelFile, Struct, TypedName
from t2s.backends.opencl_fpga.kernels import lower_kernel
from t2s.backends.opencl_fpga.links import Bundle, ChannelLinks, Separate, plan_links
from t2s.backends.opencl_fpga.lockstep import LockstepNode, OutOfStep, lockstep
from t2s.backends.opencl_fpga.machine_kernels import lower_machine
from t2s.backends.opencl_fpga.operators import Helpers
from t2s.backends.opencl_fpga.scope import (
    FileScope,
    KernelDesign,
    dimensions_of,
    file_scope,
    file_stem,
)
from t2s.backends.opencl_fpga.unfold import Unfolded, settled, unfold
from t2s.core.expr import (
    Apply,
    BitOperator,
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
from t2s.core.gc_pause import gc_paused
from t2s.core.location import SourceLocation
from t2s.core.ops import Array
from t2s.core.types import Kind, Type
from t2s.core.walk import walk
from t2s.graph.arrays import check_graph_inputs
from t2s.graph.body import Let, Load, Receive, RegisterRead, RegisterWrite, Send, Store, by_lanes
from t2s.graph.graph import Graph, MemorySpace
from t2s.graph.nodes import Machine, MemoryAdd, MemoryDrop, MemoryFirst, MemorySize, Node, PEArray


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCLBackend:
    """OpenCL for Intel FPGAs: one file of kernels and a host program in Python."""

    name: str = "opencl_fpga"
    timed: bool = False

    @gc_paused()
    def supports(self, graph: Graph) -> list[Unsupported]:
        """Every reason why ``emit`` refuses a graph; empty if it does not."""
        result = analyze(graph)
        return result if isinstance(result, list) else []

    @gc_paused()
    def emit(self, graph: Graph) -> Mapping[str, str]:
        """``<name>.cl`` and ``<name>_host.py``.

        Raises ``UnsupportedError`` if ``supports`` is not empty.
        """
        design = analyze(graph)
        if isinstance(design, list):
            raise refusal(self.name, graph, design)
        scope, stem = file_scope(design), file_stem(graph)
        return {
            f"{stem}.cl": emit_kernels(lower_design(design, scope)),
            f"{stem}_host.py": emit_host(host_program(design, scope)),
        }

    def run(
        self,
        graph: Graph,
        inputs: Mapping[str, Array] | None,
        parameters: Mapping[str, Array],
        options: RunOptions,
    ) -> Emulated:
        """Run a graph on Intel's FPGA emulator, for its values; there are no cycles."""
        limit = options.time_limit
        return Emulated(emulate(graph, inputs or {}, parameters, time_limit=limit))


BACKEND = OpenCLBackend()


@dataclass(frozen=True)
class Emulated:
    """The result of an emulator: values, but no cycles."""

    outputs: dict[str, Array]


def emulate(
    graph: Graph,
    inputs: Mapping[str, Array],
    parameters: Mapping[str, Array] | None = None,
    *,
    time_limit: float = 60.0,
    exact_depths: bool = False,
) -> dict[str, Array]:
    """Build and run a design on Intel's FPGA emulator, and return its output tensors by name.

    ``inputs`` and ``parameters`` have every input tensor and scalar by name.  Channels are deeper
    than on hardware, which is much faster, unless ``exact_depths`` requests the emitted depths: a
    design that then deadlocks is stopped at the time limit.

    Raises ``UserError`` if the inputs do not fit, ``UnsupportedError`` if the backend cannot emit
    the graph, and ``EmulationError`` if the emulator is not installed, refuses the files, or is
    not done after ``time_limit`` seconds.
    """
    files = BACKEND.emit(graph)
    arrays, scalars = check_graph_inputs(graph, inputs, parameters or {})
    return run_files(
        graph, files, {**arrays, **scalars}, time_limit=time_limit, exact_depths=exact_depths
    )


# A graph as a ``KernelDesign`` with every decision made, and the design as the AST of its file.

MOST_KERNELS = 256
"""Most kernels that PEs which cannot keep step are given, one each."""


def analyze(graph: Graph) -> KernelDesign | list[Unsupported]:
    """Decide how every node and channel is built; or return the problems.

    The PEs of a node are one kernel if they can run in lockstep.  Otherwise, for example if each
    waits for a sum that its neighbor has not finished, every PE becomes a kernel.
    """
    problems = check_vocabulary(graph)
    if problems:
        return problems
    if graph.machines:
        match unfold(graph):
            case Unfolded(graph=single, nodes=pes, links=channels):
                return KernelDesign(graph=single, nodes=pes, links=channels, source=graph)
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
    links = plan_links(graph, nodes)
    if isinstance(links, ChannelLinks):
        return KernelDesign(graph=graph, nodes=nodes, links=links)
    out_of_step = all(isinstance(problem, OutOfStep) for problem in links)
    if not out_of_step or sum(node.pe_count for node in graph.pe_arrays) > MOST_KERNELS:
        return links
    match unfold(graph):
        case Unfolded(graph=single, nodes=pes, links=channels):
            return KernelDesign(graph=single, nodes=pes, links=channels, source=graph)
    return links


def lower_design(design: KernelDesign, scope: FileScope) -> KernelFile:
    """The OpenCL file of a design."""
    helpers = Helpers()
    kernels = tuple(
        lower_machine(design, scope, node, helpers)
        if isinstance(node, Machine)
        else lower_kernel(design, scope, design.nodes[node.name], helpers)
        for node in design.graph.nodes
    )
    types = _types(design)
    vectors = {storage_name(type): struct_of(type) for type in types if is_struct(type)}
    return KernelFile(
        comment=file_comment(design, scope),
        uses_double=any(type.kind is Kind.FLOAT and type.bits == 64 for type in types),
        structs=(*vectors.values(), *_bundles(design, scope)),
        channels=_channels(design, scope),
        functions=helpers.functions,
        kernels=kernels,
    )


def _types(design: KernelDesign) -> list[Type]:
    types = [tensor.type for tensor in design.graph.tensors]
    types += [parameter.type for parameter in design.graph.parameters]
    types += [link.channel.stream.element for link in design.links.by_channel.values()]
    for node in design.nodes.values():
        types += [register.type for register in node.node.registers]
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
            type=storage_name(channel.stream.element), name="s", dimensions=dimensions_of(channel)
        )
        structs[struct] = Struct(name=struct, fields=(field,))
    return list(structs.values())


def _channels(design: KernelDesign, scope: FileScope) -> tuple[ChannelArray, ...]:
    arrays: list[ChannelArray] = []
    for name, link in design.links.by_channel.items():
        comment = channel_comment(design, name)
        dimensions: tuple[int, ...] = ()
        match link:
            case Bundle(depth=depth):
                type = scope.structs[name]
            case Separate(channel=channel, depth=depth):
                type = storage_name(channel.stream.element)
                dimensions = dimensions_of(channel)
            case _:
                continue
        arrays.append(
            ChannelArray(
                name=scope.channels[name],
                type=type,
                dimensions=dimensions,
                depth=depth,
                comment=comment,
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


def check_vocabulary(graph: Graph) -> list[Unsupported]:
    """Everything in the graph that is not supported."""
    problems: list[Unsupported] = []
    for tensor in graph.tensors:
        problems += _check_type(f"tensor {tensor.name!r}", tensor.type, tensor.location)
        if tensor.place is MemorySpace.SHARED:
            why = "banks that machines share are not supported in OpenCL"
            subject = f"tensor {tensor.name!r}"
            problems.append(Unsupported(subject=subject, why=why, location=tensor.location))
        elif tensor.open or tensor.place is not MemorySpace.MEMORY:
            why = "tensors of unknown length and tensors on the chip are not supported in OpenCL"
            subject = f"tensor {tensor.name!r}"
            problems.append(Unsupported(subject=subject, why=why, location=tensor.location))
    for parameter in graph.parameters:
        problems += _check_type(f"parameter {parameter.name!r}", parameter.type, parameter.location)
    for channel in graph.channels:
        subject = f"channel {channel.name!r}"
        problems += _check_type(subject, channel.stream.element, channel.location)
        if channel.stream.nesting:
            why = "streams with stop tokens are not supported in OpenCL"
            problems.append(Unsupported(subject=subject, why=why, location=channel.location))
    for node in graph.nodes:
        problems += [
            Unsupported(subject=f"node {node.name!r}", why=why, location=node.location)
            for why in _check_node(node)
        ]
    return problems


def _check_type(subject: str, type: Type, location: SourceLocation | None) -> Iterator[Unsupported]:
    why = unsupported_type(type)
    if why is not None:
        yield Unsupported(subject=subject, why=why, location=location)


def _check_node(node: Node) -> list[str]:
    """Why a node cannot become a kernel, each reason once."""
    if isinstance(node, Machine):
        return _check_machine(node)
    if not isinstance(node, PEArray):
        kind = node.__class__.__name__
        return [f"nodes of kind {kind} are not supported in OpenCL"]
    reasons: dict[str, None] = {}
    types = [register.type for register in node.registers]
    for statement in node.body:
        if not isinstance(statement, _STATEMENTS):
            kind = statement.__class__.__name__
            reasons[f"statements of kind {kind} are not supported in OpenCL"] = None
        for term in walk(statement):
            if isinstance(term, Expr):
                types.append(term.type)
                if not isinstance(term, _EXPRESSIONS):
                    reasons[f"{term.__class__.__name__} has no place in the body of a PE"] = None
    reasons |= {why: None for type in types if (why := unsupported_type(type)) is not None}
    reasons |= dict.fromkeys(_repeated_ports(node))
    return list(reasons)


def _check_machine(node: Machine) -> list[str]:
    """Why a machine cannot become kernels, each reason once."""
    reasons: dict[str, None] = {}
    types = [register.type for register in node.registers]
    if node.endless:
        # the host waits for every kernel, and an autorun kernel must not access memory
        reasons["endless machines are not supported in OpenCL"] = None
    for memory in node.memories:
        reasons[f"sorted memories such as {memory.name!r} are not supported in OpenCL"] = None
    for statement in node.statements():
        match statement:
            case MemoryAdd() | MemorySize() | MemoryFirst() | MemoryDrop():
                continue  # of a sorted memory, named above
            case Load(indices=indices) | Store(indices=indices) if by_lanes(indices):
                reasons["machines that gather or scatter are not supported in OpenCL"] = None
            case Load(type=type) | Store(value=Expr(type=type)) if type.lanes > 1:
                text = (
                    "machines that load or store several lanes at once are not supported in OpenCL"
                )
                reasons[text] = None
        if not isinstance(statement, _STATEMENTS):
            kind = statement.__class__.__name__
            reasons[f"statements of kind {kind} are not supported in OpenCL"] = None
    for mode in node.modes:
        for term in walk(mode):
            if isinstance(term, Expr):
                types.append(term.type)
                if isinstance(term, BitOperator):
                    reasons["operators on the bits of words are not supported in OpenCL"] = None
                elif not isinstance(term, _EXPRESSIONS):
                    reasons[f"{term.__class__.__name__} has no place in a machine"] = None
    reasons |= {why: None for type in types if (why := unsupported_type(type)) is not None}
    return list(reasons)


def _repeated_ports(node: PEArray) -> Iterator[str]:
    receives = Counter(s.channel for s in node.body if isinstance(s, Receive))
    sends = Counter(s.channel for s in node.body if isinstance(s, Send))
    for verb, ports in (("receives from", receives), ("sends to", sends)):
        for channel, count in ports.items():
            if count > 1:
                yield f"it {verb} channel {channel!r} in {count} statements; use one, with a select"
