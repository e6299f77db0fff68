"""The text of a graph without its names and lines: equal graphs of different tensors have one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from t2s.graph.graph import Graph
from t2s.graph.serialize import FILES

_SAYS_WHERE = frozenset({"location", "region", "ascending", "origin"})


def nameless_text(graph: Graph) -> str:
    """A text that two graphs share if and only if they are equal but for names and lines.

    Nodes, channels and tensors are numbered in the order of the graph.  Graphs whose other names
    differ have different texts.
    """
    named = (*graph.nodes, *graph.channels, *graph.tensors)
    numbers = {item.name: f"#{number}" for number, item in enumerate(named)}
    document = FILES.write(replace(graph, name="", regions=()), "graph")
    return json.dumps(_renamed(document, numbers))


def _renamed(value: object, numbers: Mapping[str, str]) -> object:
    match value:
        case dict():
            return {
                name: _renamed(item, numbers)
                for name, item in value.items()
                if name not in _SAYS_WHERE
            }
        case list():
            return [_renamed(item, numbers) for item in value]
        case str():
            return numbers.get(value, value)
    return value
