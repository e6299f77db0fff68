"""The memory of one run: the arena, the rings and the tensors."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from t2s.core.ops import Array
from t2s.graph.graph import Graph, TensorRole
from t2s.graph.inputs import check_graph_inputs
from t2s.graph.layout import pack
from t2s.graph.semantics import space_points
from t2s.simulator.native.layout import FINISHED, Layout, Section, aligned_zeros, first_depth

_GROWTH = 4
_LARGEST_RING = 1 << 30
"""Bytes that the rings of one channel array may grow to."""


class RunState:
    """Everything that one run of a graph reads and writes.

    Attributes
    ----------
    arena: the block that ``layout`` describes; the code takes its address.
    memory: the tensors by name. An input in row-major order
        is the caller's own array.
    """

    def __init__(
        self,
        graph: Graph,
        layout: Layout,
        inputs: Mapping[str, Array],
        parameters: Mapping[str, Array],
    ) -> None:
        arrays, scalars = check_graph_inputs(graph, inputs, parameters)
        self._graph = graph
        self._layout = layout
        self._rings: dict[str, Array] = {}
        self.arena = aligned_zeros(layout.bytes)
        self.memory = _allocate(graph, arrays)
        self.set(layout.exponential, address_of_exp())
        for tensor in graph.tensors:
            self.set(layout.tensor(tensor.name), self.memory[tensor.name].ctypes.data)
        for parameter in graph.parameters:
            value = scalars[parameter.name].tobytes()
            self.set(layout.parameter(parameter.name), np.frombuffer(value, np.uint8))
        for node in graph.pe_arrays:
            self.set(layout.unfinished(node.name), node.pe_count)
            states = self.get(layout.state(node.name))
            for place, point in enumerate(space_points(node)) if node.exists is not None else ():
                if not node.has_pe(point):
                    states[place, 0] = FINISHED
        depth = first_depth(graph)
        for channel in graph.channels:
            row = depth * channel.stream.element.bytes
            rows = channel.element_count
            self._install(channel.name, aligned_zeros(rows * row).reshape(rows, row), depth)

    def get(self, section: Section) -> Array:
        """A section of the arena, as an array that shares its memory."""
        return section.view(self.arena)

    def set(self, section: Section, value: Array) -> None:
        """Overwrite a section of the arena."""
        section.view(self.arena)[...] = value

    @property
    def address(self) -> int:
        """Where the arena is."""
        return int(self.arena.ctypes.data)

    def unfinished(self) -> list[str]:
        """Names of the nodes that have firings left."""
        layout = self._layout
        return [node.name for node in self._graph.nodes if self.get(layout.unfinished(node.name))]

    def grow(self) -> bool:
        """Enlarge the channels that have a full ring; whether there were any.

        A token keeps its number, and its slot is that number modulo the capacity: laying copies of
        the old ring one after the other puts every token where it belongs.
        """
        grown = False
        for channel in self._graph.channels:
            layout = self._layout
            waiting = self.get(layout.tails(channel.name)) - self.get(layout.heads(channel.name))
            capacity = int(self.get(layout.ring(channel.name))[1])
            ring = self._rings[channel.name]
            if (waiting < capacity).all() or ring.nbytes * _GROWTH > _LARGEST_RING:
                continue
            rows, row = ring.shape
            larger = aligned_zeros(ring.nbytes * _GROWTH).reshape(rows, row * _GROWTH)
            larger[:] = np.tile(ring, (1, _GROWTH))
            self._install(channel.name, larger, capacity * _GROWTH)
            grown = True
        return grown

    def _install(self, channel: str, ring: Array, capacity: int) -> None:
        self._rings[channel] = ring
        self.set(self._layout.ring(channel), (ring.ctypes.data, capacity))


def _allocate(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The tensors at the start: the inputs, which no graph stores to, and zeros elsewhere."""
    return {
        tensor.name: pack(tensor, np.asarray(inputs[tensor.array]))
        if tensor.role is TensorRole.INPUT
        else np.zeros(tensor.allocated, tensor.type.numpy)
        for tensor in graph.tensors
    }


@lru_cache(maxsize=1)
def address_of_exp() -> int:
    """The C library's ``exp``, which Python's ``math.exp`` calls too."""
    library = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)
    function = library.exp if hasattr(library, "exp") else ctypes.CDLL("libm.so.6").exp
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)
