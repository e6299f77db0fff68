"""The user's line of a graph that was made from one: every part of it carries that line."""

from __future__ import annotations

from dataclasses import replace

from t2s.core.location import SourceLocation
from t2s.graph.graph import Graph


def located(graph: Graph, location: SourceLocation | None) -> Graph:
    """The graph with this location everywhere; unchanged without one."""
    if location is None:
        return graph

    return replace(
        graph,
        nodes=tuple(replace(part, location=location) for part in graph.nodes),
        channels=tuple(replace(part, location=location) for part in graph.channels),
        tensors=tuple(replace(part, location=location) for part in graph.tensors),
        parameters=tuple(replace(part, location=location) for part in graph.parameters),
        location=location,
    )
