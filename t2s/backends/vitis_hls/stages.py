"""Stages: dataflow regions that run one after the other, where one loads what another one stored.

Nothing orders a store of one function before a load of another one of the same dataflow region: a
token that follows a store may overtake it on its way to memory.  So functions that share a tensor
are in two regions.  The call of a region ends after its last store, and the next one uses the same
pointer, so the compiler keeps their order; tokens that announced what is stored are not needed.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter

from t2s.core.expr import Local
from t2s.core.walk import walk
from t2s.graph.body import Receive, Send
from t2s.graph.graph import Graph
from t2s.graph.nodes import Node, PEArray
from t2s.graph.ports import loading, storing


def shared_tensors(graph: Graph) -> tuple[str, ...]:
    """The tensors that nodes store and load, but for those of one machine with one PE."""
    loaded, stored = loading(graph), storing(graph)
    return tuple(
        tensor
        for tensor, nodes in stored.items()
        if tensor in loaded and not _alone({*nodes, *loaded[tensor]}, graph)
    )


def _alone(nodes: Collection[str], graph: Graph) -> bool:
    machines = {machine.name for machine in graph.machines if machine.pe_count == 1}
    return len(nodes) == 1 and machines.issuperset(nodes)


def in_stages(graph: Graph) -> Graph | None:
    """The graph without the tokens between its stages.

    ``None`` if tensors are shared by nodes that have to run side by side.
    """
    if not shared_tensors(graph):
        return graph
    if graph.machines:  # whose reports one region reads
        return None
    announcing = {
        channel.name
        for channel in graph.channels
        if _is_a_signal(channel.name, graph.node(channel.sink))
    }
    parts = _parts(graph, announcing)
    between = {
        channel.name
        for channel in graph.channels
        if channel.name in announcing and parts[channel.source] != parts[channel.sink]
    }
    if _levels(graph, parts) is None:
        return None
    nodes = tuple(_without(node, between) for node in graph.pe_arrays)
    return replace(
        graph,
        nodes=tuple(node for node in nodes if node.body),
        channels=tuple(channel for channel in graph.channels if channel.name not in between),
    )


def stages_of(graph: Graph) -> dict[str, int]:
    """The number of the stage of each node, from 0, in a graph that ``in_stages`` returned."""
    if not shared_tensors(graph):
        return dict.fromkeys((node.name for node in graph.nodes), 0)
    parts = _parts(graph, ())
    levels = _levels(graph, parts)
    assert levels is not None
    used = sorted(set(levels.values()))
    return {node.name: used.index(levels[parts[node.name]]) for node in graph.nodes}


def _is_a_signal(channel: str, sink: Node) -> bool:
    """Whether the sink waits for tokens whose values it does not use."""
    if not isinstance(sink, PEArray):
        return False
    targets = {s.target for s in sink.body if isinstance(s, Receive) and s.channel == channel}
    used = {term.name for s in sink.body for term in walk(s) if isinstance(term, Local)}
    return not targets & used


def _parts(graph: Graph, ignored: Collection[str]) -> dict[str, str]:
    """For each node, a node that stands for all which channels connect with it."""
    part = {node.name: node.name for node in graph.nodes}

    def root(name: str) -> str:
        while part[name] != name:
            name = part[name]
        return name

    for channel in graph.channels:
        if channel.name not in ignored:
            part[root(channel.sink)] = root(channel.source)
    return {name: root(name) for name in part}


def _levels(graph: Graph, parts: dict[str, str]) -> dict[str, int] | None:
    """For each part how many run before it, in a row; ``None`` if parts wait for each other."""
    before: dict[str, set[str]] = {part: set() for part in parts.values()}
    loaded, stored = loading(graph), storing(graph)
    for tensor in shared_tensors(graph):
        for reader in loaded[tensor]:
            before[parts[reader]] |= {parts[writer] for writer in stored[tensor]}
    for channel in graph.channels:
        if parts[channel.source] != parts[channel.sink]:
            before[parts[channel.sink]].add(parts[channel.source])
    levels: dict[str, int] = {}
    try:
        for part in TopologicalSorter(before).static_order():
            levels[part] = max((levels[other] + 1 for other in before[part]), default=0)
    except CycleError:
        return None
    return levels


def _without(node: PEArray, channels: Collection[str]) -> PEArray:
    body = tuple(
        statement
        for statement in node.body
        if not (isinstance(statement, Receive | Send) and statement.channel in channels)
    )
    return replace(node, body=body)
