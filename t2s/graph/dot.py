"""A picture of a graph in the DOT language of Graphviz."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from t2s.core.names import dot_text
from t2s.graph.graph import Channel, Graph, Place
from t2s.graph.nodes import Machine, Node, Role
from t2s.graph.printer import show_kind, show_loops, show_space, show_stream
from t2s.graph.verify_machine import accesses_of

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
    shared = [t for t in sorted(accesses_of(node)) if graph.tensor(t).place is Place.SHARED]
    if shared:
        label.append(f"shared banks {', '.join(shared)}")
    return f"  {dot_text(node.name)} [shape={_SHAPES[node.role]}, label={dot_text(*label)}];"


def _edge_line(channel: Channel) -> str:
    array = f" {list(channel.shape)}" if channel.shape else ""
    label = dot_text(
        channel.name, f"{show_stream(channel.stream)}{array}", f"depth {channel.capacity}"
    )
    return f"  {dot_text(channel.source)} -> {dot_text(channel.sink)} [label={label}];"
