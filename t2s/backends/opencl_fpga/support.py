"""The supported node kinds, statements, expressions and types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from t2s.backends.base import Unsupported
from t2s.backends.opencl_fpga.c_types import unsupported_type
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
from t2s.core.location import SourceLocation
from t2s.core.types import Type
from t2s.core.walk import walk
from t2s.graph.body import (
    Let,
    Load,
    Receive,
    RegisterRead,
    RegisterWrite,
    Send,
    Store,
    by_lanes,
)
from t2s.graph.graph import Graph, MemorySpace
from t2s.graph.nodes import Machine, MemoryAdd, MemoryDrop, MemoryFirst, MemorySize, Node, PEArray

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
