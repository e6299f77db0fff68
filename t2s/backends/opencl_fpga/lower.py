"""A graph as a ``KernelDesign`` with every decision made, and the design as the AST of its file."""

from __future__ import annotations

from t2s.backends.base import Unsupported
from t2s.backends.opencl_fpga.c_types import is_struct, storage_name, struct_of
from t2s.backends.opencl_fpga.comments import channel_comment, file_comment
from t2s.backends.opencl_fpga.kernel_ast import (
    ChannelArray,
    KernelFile,
    Struct,
    TypedName,
)
from t2s.backends.opencl_fpga.kernels import lower_kernel
from t2s.backends.opencl_fpga.links import Bundle, ChannelLinks, Separate, plan_links
from t2s.backends.opencl_fpga.lockstep import LockstepNode, OutOfStep, lockstep
from t2s.backends.opencl_fpga.machine_kernels import lower_machine
from t2s.backends.opencl_fpga.operators import Helpers
from t2s.backends.opencl_fpga.scope import FileScope, KernelDesign, dimensions_of
from t2s.backends.opencl_fpga.selects import settled
from t2s.backends.opencl_fpga.unfold import Unfolded, unfold
from t2s.backends.opencl_fpga.vocabulary import check_vocabulary
from t2s.core.expr import Expr
from t2s.core.types import Kind, Type
from t2s.core.walk import walk
from t2s.graph.graph import Graph
from t2s.graph.nodes import Machine

MOST_KERNELS = 256
"""Most kernels that PEs which cannot keep step are given, one each."""


def analyze(graph: Graph) -> KernelDesign | list[Unsupported]:
    """Decide how every node and channel is built; the problems if there are any.

    The PEs of a node are one kernel where they can keep step.  Where they cannot, as when each
    waits for a sum that its neighbor is not done with, every PE becomes a kernel.
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
            case LockstepNode() as found:
                nodes[node.name] = settled(found)
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
