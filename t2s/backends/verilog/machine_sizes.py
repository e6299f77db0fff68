"""Sizes of the tensors of a chip with machines: those that it is built for, and what fits them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import numpy as np

from t2s.backends.verilog.machine_ranges import Sizes
from t2s.backends.verilog.value_ranges import Range
from t2s.core.expr import Local
from t2s.core.ops import Array
from t2s.core.types import Kind
from t2s.core.walk import walk
from t2s.graph.body import Load
from t2s.graph.deciding import deciding_arrays
from t2s.graph.graph import Graph, StreamKind, TensorRole
from t2s.graph.nodes import Machine, Put


def sizes_of(
    graph: Graph, arrays: Mapping[str, Array], extents: Mapping[str, int] = MappingProxyType({})
) -> Sizes:
    """The sizes for which a chip is built.

    ``arrays`` are inputs and results, by the names of a user's arrays.  Tensors whose length is
    known only when a design runs are as long as those.  Coordinates are less than their extents, as
    far as these are known; other ones, and positions, have as many bits as those.  Values may be
    any of their type.
    """
    lengths = {t.name: len(arrays[t.array]) for t in graph.tensors if t.open and t.array in arrays}
    elements = {
        name: Range(0, max(1, extents[name]) - 1)
        if name in extents
        else _range_of(np.asarray(arrays[name]))
        for name in structure_of(graph)
    }
    return Sizes(lengths=lengths, elements=elements)


def structure_of(graph: Graph) -> tuple[str, ...]:
    """The arrays with positions and coordinates: those that decide, or address, and no values.

    An array that is loaded into a stream of values has values, also where a zero among them decides
    something.
    """
    if len(graph.machines) != len(graph.nodes):
        return ()
    deciding = deciding_arrays(graph, addresses=True)
    valued = {name for machine in graph.machines for name in _valued(graph, machine)}
    return tuple(
        dict.fromkeys(
            tensor.array
            for tensor in graph.tensors
            if tensor.role is TensorRole.INPUT
            and tensor.name in deciding - valued
            and tensor.type.kind in (Kind.INT, Kind.UINT)
        )
    )


def _valued(graph: Graph, machine: Machine) -> Iterator[str]:
    """The tensors whose elements a machine puts into streams of values, as they are."""
    loaded = {s.target: s.tensor for s in machine.statements() if isinstance(s, Load)}
    for term in walk(machine):
        match term:
            case Put(channel=channel, value=Local(name=name)) if name in loaded:
                if graph.channel(channel).stream.kind is StreamKind.VALUE:
                    yield loaded[name]


def _range_of(array: Array) -> Range:
    """All integers of as many bits as the elements of an array have."""
    if not array.size:
        return Range(0, 0)
    return Range(int(array.min()), int(array.max())).join(Range(0, 0)).in_bits()


def not_within(graph: Graph, sizes: Sizes, arrays: Mapping[str, Array]) -> Iterator[str]:
    """Why arrays do not fit into a chip of these sizes, in words; nothing if they do."""
    for tensor in graph.tensors:
        if tensor.array not in arrays:
            continue
        array = np.asarray(arrays[tensor.array])
        if tensor.open and len(array) > sizes.lengths.get(tensor.name, len(array)):
            yield (
                f"{tensor.name} has {len(array):,} elements, and the chip has room for"
                f" {sizes.lengths[tensor.name]:,}"
            )
        known = sizes.elements.get(tensor.array)
        if known is None or tensor.role is not TensorRole.INPUT or not array.size:
            continue
        if not Range(int(array.min()), int(array.max())) <= known:
            yield (
                f"{tensor.name} has elements from {int(array.min()):,} to {int(array.max()):,}, and"
                f" the chip has room for {known.low:,} to {known.high:,}"
            )
