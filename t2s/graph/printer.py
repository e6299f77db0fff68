"""Text of graphs: ``print_graph``, ``summarize_graph`` as a table, DOT; closed-form trip counts.

Both are stable: the text depends on the graph alone, in the graph's own order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import Any

from t2s.core.expr import Apply, Const, Expr, Index, simplify
from t2s.core.isl import LoopDomain, NotAffine
from t2s.core.names import dot_text
from t2s.core.ops import Op
from t2s.core.printer import show
from t2s.core.sigint import import_deferring_sigint
from t2s.graph.body import Let, Load, Receive, RegisterRead, RegisterWrite, Send, Statement, Store
from t2s.graph.graph import Channel, Graph, MemorySpace, StreamKind, StreamType, Tensor
from t2s.graph.nodes import (
    Choice,
    Head,
    Loop,
    Machine,
    MemoryAdd,
    MemoryDrop,
    MemoryFirst,
    MemorySize,
    Node,
    PEArray,
    Put,
    Register,
    Role,
    Rule,
    Search,
)
from t2s.graph.verify_machine import accesses_of

_UNKNOWN = "varies"


def print_graph(graph: Graph) -> str:
    """The whole graph as text, one line per thing; source locations are left out."""
    lines = [f"graph {graph.name}"]
    lines += [f"  {_tensor_line(tensor)}" for tensor in graph.tensors]
    lines += [f"  parameter {item.name}: {item.type}" for item in graph.parameters]
    for region in graph.regions:
        inside = "" if region.parent is None else f" in {region.parent}"
        lines.append(f"  region {region.name}: {region.kind.value} {region.index}{inside}")
    for node in graph.nodes:
        lines += ["", *(f"  {line}" for line in _node_lines(node))]
    if graph.channels:
        lines.append("")
    for channel in graph.channels:
        lines += [f"  {line}" for line in _channel_lines(channel)]
    return "\n".join(lines) + "\n"


def show_statement(statement: Statement) -> str:
    """One line for a statement of a body, in Python's syntax."""
    match statement:
        case Receive(target=target, channel=channel, type=type, condition=condition):
            return f"{target}: {type} = receive({channel}){_when(condition)}"
        case Send(channel=channel, value=value, condition=condition):
            return f"send({channel}, {show(value)}){_when(condition)}"
        case Let(target=target, value=value):
            return f"{target}: {value.type} = {show(value)}"
        case Load(target=target, tensor=tensor, indices=indices, type=type, condition=condition):
            return f"{target}: {type} = load({tensor}{_brackets(indices)}){_when(condition)}"
        case Store(tensor=tensor, indices=indices, value=value, condition=condition):
            return f"store({tensor}{_brackets(indices)}, {show(value)}){_when(condition)}"
        case RegisterRead(target=target, register=register, indices=indices, type=type):
            return f"{target}: {type} = {register}{_brackets(indices)}"
        case RegisterWrite(register=register, indices=indices, value=value, condition=condition):
            return f"{register}{_brackets(indices)} = {show(value)}{_when(condition)}"
        case Search(target=target, tensor=tensor, begin=begin, end=end, value=value):
            return f"{target} = search({tensor}[{show(begin)} to {show(end)}], {show(value)})"
        case MemoryAdd(memory=memory, keys=keys, value=value):
            return f"add({memory}{_brackets(keys)}, {show(value)})"
        case MemorySize(target=target, memory=memory):
            return f"{target} = size({memory})"
        case MemoryFirst(targets=targets, value=local, memory=memory):
            return f"{', '.join((*targets, local))} = first({memory})"
        case MemoryDrop(memory=memory):
            return f"drop({memory})"
    raise TypeError(f"cannot print {statement!r}")


def summarize_graph(graph: Graph) -> str:
    """A compact table of the nodes and channels of a design, with totals."""
    nodes = [_node_row(node) for node in graph.nodes]
    channels = [
        (
            channel.name,
            f"{channel.source} -> {channel.sink}",
            str(channel.element_count),
            show_stream(channel.stream),
            str(channel.capacity),
        )
        for channel in graph.channels
    ]
    lines = [f"{graph.name}: {_totals(graph)}"]
    lines += [f"{t.role.value} {t.name}: {t.shape_text}" for t in graph.tensors if t.padded]
    lines.append("")
    lines += _table(("node", "role", "PEs", "loops", "firings per PE"), nodes, right=(2, 4))
    if channels:
        header = ("channel", "from -> to", "elements", "type", "depth")
        lines += ["", *_table(header, channels, right=(2, 4))]
    return "\n".join(lines) + "\n"


def show_stream(stream: StreamType) -> str:
    """The tokens of a channel: the element type, and what differs from a dense stream of values."""
    text = str(stream.element)
    if stream.kind is not StreamKind.VALUE:
        text = f"{stream.kind.value} {text}"
    if stream.nesting:
        text = f"{text} nesting {stream.nesting}"
    return f"{text}, values under all tags" if stream.values_under_tags else text


def show_loops(node: PEArray) -> str:
    """The loop nest of a node on one line, outermost first: ``k: 16, j: i + 1``."""
    return ", ".join(f"{loop.name}: {show(loop.extent)}" for loop in node.loops)


def show_control(node: Node) -> str:
    """What a node iterates over, on one line: its loops, or the modes of a machine."""
    match node:
        case Machine():
            return f"modes {', '.join(mode.name for mode in node.modes)}"
        case _:
            return show_loops(node)


def show_kind(machine: Machine) -> str:
    """``machine``, whether it is endless, and its interval and latency if it has some."""
    kind = "endless machine" if machine.endless else "machine"
    every = f" of interval {machine.interval}" if machine.interval > 1 else ""
    takes = f" of latency {machine.latency}" if machine.latency else ""
    return f"{kind}{every}{' and' if every and takes else ''}{takes}"


def show_space(node: Node) -> str:
    """The space domain of a node: ``[ii: 8, jj: 8]``; a minimum other than 0 is shown as well."""
    dimensions = [
        f"{d.name}: {d.extent}" + (f" from {d.minimum}" if d.minimum else "") for d in node.space
    ]
    return f"[{', '.join(dimensions)}]"


def _tensor_line(tensor: Tensor) -> str:
    if tensor.layout is None:
        order = "" if tensor.ascending is None else f", ascending between {tensor.ascending}"
        return f"{tensor.role.value} {tensor.name}: {tensor.shape_text}{order}"
    shape = f"{list(tensor.allocated)}{tensor.place_text}"
    line = f"{tensor.role.value} {tensor.name}: {tensor.type}{shape}"
    loops = zip(tensor.layout.loops, tensor.layout.extents, strict=True)
    nest = ", ".join(f"{name}: {extent}" for name, extent in loops)
    element = f"{tensor.array}{_brackets(tensor.layout.indices)}"
    return f"{line}, by the host {element} for {nest}, of {tensor.array}{list(tensor.shape)}"


def _node_lines(node: Node) -> Iterator[str]:
    region = "" if node.region is None else f", region {node.region}"
    exists = _when(node.exists) if isinstance(node, PEArray) else ""
    space = f" space {show_space(node)}{exists}" if node.space else ""
    kind = f" {show_kind(node)}" if isinstance(node, Machine) else ""
    yield f"{node.role.value}{kind} {node.name}{space}{region}"
    for register in node.registers:
        yield f"  {_register_line(register)}"
    match node:
        case Machine():
            yield from _machine_lines(node)
        case PEArray():
            yield from _body_lines(node)


def _register_line(register: Register) -> str:
    shape = list(register.shape) if register.shape else ""
    start = "" if repr(register.initial) == "0" else f", starts at {register.initial!r}"
    return f"register {register.name}: {register.type}{shape}, distance {register.distance}{start}"


def _machine_lines(node: Machine) -> Iterator[str]:
    for memory in node.memories:
        keys = ", ".join(map(str, memory.keys))
        yield f"  memory {memory.name}: {memory.type}[{keys}] by {memory.operator.value}"
    heads = {head.channel: head for head in node.heads}
    for mode in node.modes:
        yield f"  mode {mode.name}:{_needs(mode.needs, heads)}"
        yield from _choice_lines(mode.choices, heads, "    ")


def _needs(needs: tuple[str, ...], heads: Mapping[str, Head]) -> str:
    names = (
        f"{heads[name].value}{'' if heads[name].tag is None else f', {heads[name].tag}'} ="
        f" head({name})"
        for name in needs
    )
    return f" {'; '.join(names)}" if needs else ""


def _choice_lines(
    choices: tuple[Choice, ...], heads: Mapping[str, Head], indent: str
) -> Iterator[str]:
    for choice in choices:
        condition = "otherwise" if choice.when is None else f"if {show(choice.when)}"
        yield f"{indent}{condition}:{_needs(choice.needs, heads)}"
        yield from (f"{indent}  {show_statement(statement)}" for statement in choice.body)
        match choice.inside:
            case Rule() as rule:
                yield from (f"{indent}  {line}" for line in _rule_lines(rule))
            case inner:
                yield from _choice_lines(inner, heads, indent + "  ")


def _rule_lines(rule: Rule) -> Iterator[str]:
    after = "end" if rule.next is None else rule.next
    yield f"rule {rule.name}: take {', '.join(rule.takes) or 'nothing'}, then {after}"
    yield from (f"  {show_statement(statement)}" for statement in rule.body)
    yield from (f"  {_put_line(put)}" for put in rule.puts)


def _put_line(put: Put) -> str:
    parts = [put.channel, "0" if put.value is None else show(put.value)]
    parts += [] if put.tag is None else [f"tag {show(put.tag)}"]
    return f"put({', '.join(parts)})"


def _body_lines(node: PEArray) -> Iterator[str]:
    for depth, loop in enumerate(node.loops, start=1):
        yield f"{'  ' * depth}for {loop.name} in {_range(loop)}:"
    indent = "  " * (len(node.loops) + 1)
    yield from (indent + show_statement(statement) for statement in node.body)


def _channel_lines(channel: Channel) -> Iterator[str]:
    shape = list(channel.shape) if channel.shape else ""
    yield f"channel {channel.name}{shape}: {show_stream(channel.stream)}"
    source = f"{channel.source} at {_brackets(channel.source_index)}"
    sink = f"{channel.sink} at {_brackets(channel.sink_index)}"
    yield f"  {source} -> {sink}" if channel.shape else f"  {channel.source} -> {channel.sink}"
    yield f"  capacity {channel.capacity}, latency {channel.latency}"


def _range(loop: Loop) -> str:
    minimum = simplify(loop.minimum)
    if isinstance(minimum, Const) and minimum.value == 0:
        return f"range({show(loop.extent)})"
    return f"range({show(minimum)}, {show(simplify(minimum + loop.extent))})"


def _brackets(indices: tuple[Expr, ...]) -> str:
    return f"[{', '.join(show(index) for index in indices)}]" if indices else ""


def _when(condition: Expr | None) -> str:
    return "" if condition is None else f" if {show(condition)}"


def _node_row(node: Node) -> tuple[str, ...]:
    if isinstance(node, Machine):
        count = str(node.place_count)
        return (node.name, node.role.value, count, show_control(node), _UNKNOWN)
    firings = firings_per_pe(node)
    return (
        node.name,
        node.role.value,
        str(node.pe_count),
        show_loops(node),
        _UNKNOWN if firings is None else f"{firings:,}" if isinstance(firings, int) else firings,
    )


def _totals(graph: Graph) -> str:
    compute = sum(node.pe_count for node in graph.nodes if node.role is Role.COMPUTE)
    channels = sum(channel.element_count for channel in graph.channels)
    storage = sum(
        channel.element_count * channel.capacity * channel.stream.element.bytes
        for channel in graph.channels
    )
    registers = sum(
        node.pe_count * prod(register.shape) * register.type.bytes
        for node in graph.nodes
        for register in node.registers
    )
    return (
        f"{sum(node.pe_count for node in graph.nodes)} PEs ({compute} compute) in"
        f" {len(graph.nodes)} nodes, {channels} FIFOs in {len(graph.channels)} channels,"
        f" {storage:,} bytes of FIFO, {registers:,} bytes of register"
    )


def _table(
    header: tuple[str, ...], rows: Sequence[tuple[str, ...]], right: tuple[int, ...]
) -> Iterator[str]:
    """Columns padded to their widest cell; those in ``right`` are aligned to the right."""
    widths = [max(len(cell) for cell in column) for column in zip(header, *rows, strict=True)]
    for row in (header, *rows):
        cells = (
            cell.rjust(width) if position in right else cell.ljust(width)
            for position, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()


# How often a PE fires, in closed form: nested affine sums, by sympy.
#
# A rectangular nest fires the product of its extents.  Where bounds depend on outer loops or on the
# PE's place in the array, the count is a polynomial in the space indices, for example
# ``(ii + 1)*(ii + 2)/2`` for a triangular nest on a row of PEs.  sympy is imported at first use.


def firings_per_pe(node: PEArray) -> int | str | None:
    """Firings of one PE: a number, or a formula over the node's space indices.

    ``None`` where there is no closed form: bounds with ``//`` or ``%`` or with parameters, and
    nests in which an inner loop may be empty.  Where a schedule has empty slots, PEs may differ,
    and the text says how many firings they make in all.
    """
    if node.active is not None:
        return _among_slots(node)
    count = 1
    for loop in node.loops:
        extent = simplify(loop.extent)
        if not isinstance(extent, Const):
            return _symbolic(node)
        count *= max(0, int(extent.value))
    return count


def _among_slots(node: PEArray) -> str | None:
    try:
        domain = node.iterations()
        slots = domain if node.active is None else domain.restricted(node.active)
        return f"{slots.count():,} in all"
    except NotAffine:
        return None


def _symbolic(node: PEArray) -> int | str | None:
    sympy = import_deferring_sigint("sympy")

    if _may_be_empty(node):
        return None
    total: Any = sympy.Integer(1)
    for loop in reversed(node.loops):
        first, extent = _to_sympy(loop.minimum), _to_sympy(loop.extent)
        if first is None or extent is None:
            return None
        index = sympy.Symbol(loop.name, integer=True)
        total = sympy.summation(total, (index, first, first + extent - 1))
    formula = sympy.factor(sympy.expand(total))
    return int(formula) if formula.is_Integer else str(formula)


def _may_be_empty(node: PEArray) -> bool:
    """Whether an extent is below 1 somewhere, so that the sum over it is not its polynomial."""
    outer = [dimension.interval for dimension in node.space]
    try:
        for loop in node.loops:
            if not LoopDomain(outer, [loop.extent < 1]).is_empty():
                return True
            outer.append(loop.interval)
    except NotAffine:
        return True
    return False


def _to_sympy(expr: Expr) -> Any:
    """An affine expression as a sympy one; ``None`` for anything else."""
    sympy = import_deferring_sigint("sympy")

    match expr:
        case Const(value=value):
            return sympy.Integer(int(value))
        case Index(name=name):
            return sympy.Symbol(name, integer=True)
        case Apply(operator=Op.NEGATE, operands=(operand,)):
            value = _to_sympy(operand)
            return None if value is None else -value
        case Apply(operator=Op.ADD | Op.SUBTRACT | Op.MULTIPLY as operator, operands=operands):
            left, right = (_to_sympy(operand) for operand in operands)
            if left is None or right is None:
                return None
            if operator is Op.MULTIPLY:
                return left * right
            return left + right if operator is Op.ADD else left - right
    return None


# A picture of a graph in the DOT language of Graphviz.

_SHAPES: Mapping[Role, str] = MappingProxyType(
    {Role.COMPUTE: "box", Role.RELAY: "ellipse", Role.LOAD: "invhouse", Role.STORE: "house"}
)


def graph_to_dot(graph: Graph) -> str:
    """One shape per node (by role) and one edge per channel, labeled; render with ``dot -Tsvg``.

    A label shows a node's name, role, space domain and loops, and the tensors in shared banks that
    it uses; and a channel's name, element type, array shape and depth.
    """
    lines = [f"digraph {dot_text(graph.name)} {{", "  rankdir=LR;"]
    lines += [_node_line(graph, node) for node in graph.nodes]
    lines += [_edge_line(channel) for channel in graph.channels]
    return "\n".join([*lines, "}"]) + "\n"


def _node_line(graph: Graph, node: Node) -> str:
    label = [node.name, node.role.value]
    if node.space:
        label.append(f"space {show_space(node)}")
    if isinstance(node, Machine):
        label.append(show_kind(node))
    elif node.loops:
        label.append(f"loops {show_loops(node)}")
    shared = [t for t in sorted(accesses_of(node)) if graph.tensor(t).place is MemorySpace.SHARED]
    if shared:
        label.append(f"shared banks {', '.join(shared)}")
    return f"  {dot_text(node.name)} [shape={_SHAPES[node.role]}, label={dot_text(*label)}];"


def _edge_line(channel: Channel) -> str:
    array = f" {list(channel.shape)}" if channel.shape else ""
    label = dot_text(
        channel.name, f"{show_stream(channel.stream)}{array}", f"depth {channel.capacity}"
    )
    return f"  {dot_text(channel.source)} -> {dot_text(channel.sink)} [label={label}];"
