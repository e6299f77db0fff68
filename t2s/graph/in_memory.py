"""The graph of a design whose arrays are in the device's memory rather than on the chip."""

from __future__ import annotations

from dataclasses import replace

from t2s.graph.graph import Graph, Place, TensorRole
from t2s.graph.kept import KeptFor

_IN_MEMORY: KeptFor[None, Graph] = KeptFor()


def given_in_memory(graph: Graph) -> Graph:
    """The graph with all its inputs and outputs in the device's memory; the same one each time."""
    return _IN_MEMORY.get(graph, None, lambda: _moved(graph))


def _moved(graph: Graph) -> Graph:
    tensors = tuple(
        tensor if tensor.role is TensorRole.INTERMEDIATE else replace(tensor, place=Place.MEMORY)
        for tensor in graph.tensors
    )
    return replace(graph, tensors=tensors)
