"""Where the state of a running graph lives: one arena with fixed offsets, and a ring per channel.

The offsets depend on the graph alone and are compiled into the code.  The rings hang off a table
in the arena, so they may grow while the graph runs without compiling anything again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from types import MappingProxyType

import numpy as np

from t2s.core.ops import Array
from t2s.graph.graph import Graph

ALIGNMENT = 64
"""The arena and every ring start on a cache line."""

NOT_STARTED, RUNNING, FINISHED = 0, 1, 2
"""The first word of the state of a PE; its loop indices follow."""

_RINGS_BYTES = 2 << 20
_DEPTHS = (16, 32, 64, 128, 256)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A typed array inside the arena."""

    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]

    @property
    def bytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize

    def view(self, arena: Array) -> Array:
        """This section of an arena (an array of bytes), as an array that shares its memory."""
        return arena[self.offset : self.offset + self.bytes].view(self.dtype).reshape(self.shape)


Key = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The sections of the arena of one graph.

    ``fault`` holds the number of the fault that stopped the run (0: none) and ``exponential`` the
    address of the C library's ``exp``.
    """

    sections: Mapping[Key, Section]
    bytes: int

    @property
    def fault(self) -> Section:
        return self.sections[("fault",)]

    @property
    def exponential(self) -> Section:
        return self.sections[("exponential",)]

    def parameter(self, name: str) -> Section:
        """The value of a scalar parameter."""
        return self.sections[("parameter", name)]

    def tensor(self, name: str) -> Section:
        """The address of a tensor's memory."""
        return self.sections[("tensor", name)]

    def unfinished(self, node: str) -> Section:
        """How many PEs of a node have not finished."""
        return self.sections[("unfinished", node)]

    def state(self, node: str) -> Section:
        """Per PE of a node: its status, then the loop indices of its next firing."""
        return self.sections[("state", node)]

    def register(self, node: str, register: str) -> Section:
        """The bytes of a register file, one row per PE."""
        return self.sections[("register", node, register)]

    def heads(self, channel: str) -> Section:
        """Tokens received so far, per element of a channel array."""
        return self.sections[("heads", channel)]

    def tails(self, channel: str) -> Section:
        """Tokens sent so far, per element of a channel array."""
        return self.sections[("tails", channel)]

    def ring(self, channel: str) -> Section:
        """The address of a channel's ring buffers and the capacity of each, a power of two."""
        return self.sections[("ring", channel)]


def layout_of(graph: Graph) -> Layout:
    """Place the state of a graph."""
    sections: dict[Key, Section] = {}
    end = 0
    for key, shape, dtype in _requests(graph):
        start = -(-end // ALIGNMENT) * ALIGNMENT if key[0] in ("state", "register") else end
        section = Section(offset=start, shape=shape, dtype=np.dtype(dtype))
        sections[key] = section
        end = -(-(start + section.bytes) // 8) * 8
    return Layout(sections=MappingProxyType(sections), bytes=end)


def _requests(graph: Graph) -> Iterable[tuple[Key, tuple[int, ...], str]]:
    yield ("fault",), (), "int64"
    yield ("exponential",), (), "uint64"
    for parameter in graph.parameters:
        yield ("parameter", parameter.name), (parameter.type.bytes,), "uint8"
    for tensor in graph.tensors:
        yield ("tensor", tensor.name), (), "uint64"
    for channel in graph.channels:
        yield ("ring", channel.name), (2,), "uint64"
        yield ("heads", channel.name), (channel.element_count,), "int64"
        yield ("tails", channel.name), (channel.element_count,), "int64"
    for node in graph.pe_arrays:
        yield ("unfinished", node.name), (), "int64"
        yield ("state", node.name), (node.place_count, 1 + len(node.loops)), "int32"
        for register in node.registers:
            row = prod(register.shape) * register.type.bytes
            yield ("register", node.name, register.name), (node.place_count, row), "uint8"


def aligned_zeros(size: int) -> Array:
    """``size`` zero bytes that start on a cache line."""
    block = np.zeros(size + ALIGNMENT, np.uint8)
    start = -block.ctypes.data % ALIGNMENT
    return block[start : start + size]


def first_depth(graph: Graph) -> int:
    """The capacity every ring starts with.

    Values do not depend on capacities.  Deep rings spread the cost of switching from PE to PE
    over many firings, shallow ones stay in the cache.
    """
    per_token = sum(
        channel.element_count * channel.stream.element.bytes for channel in graph.channels
    )
    fitting = [depth for depth in _DEPTHS if depth * per_token <= _RINGS_BYTES]
    return fitting[-1] if fitting else _DEPTHS[0]
