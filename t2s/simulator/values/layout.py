"""The layout of the state of a running graph: one arena with fixed offsets, and rings of channels.

The offsets depend only on the graph and are compiled into the code.  The arena has a table of
rings, which may therefore grow during a run without recompilation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from types import MappingProxyType

import numpy as np

from t2s.core.ops import C_FUNCTIONS, Array
from t2s.graph.graph import Channel, Graph
from t2s.graph.nodes import Choice, Machine, MemoryAdd, Rule
from t2s.llvm.expressions import ALIGNMENT as ALIGNMENT
from t2s.simulator.values.spans import NO_SPANS, Carried, Spans

NOT_STARTED, RUNNING, FINISHED, FAILED = 0, 1, 2, 3
"""The first word of the state of a PE; its loop indices follow, or what a machine does next."""

STATUS, MODE, WAIT = range(3)
"""The words of the state of a machine; ``WAIT`` is the number of the head that it waits for."""

MACHINE_WORDS = 3

NOT_WAITING = -1

TRACE_ADDRESS, TRACE_LENGTH, TRACE_LIMIT, TRACE_LEFT = range(4)
"""The words of the trace of a machine: where it is, its entries, the most of them, and, for a trace
of runs, the firings that are left (see ``machine_traces``)."""

TRACE_WORDS = 4

TAG, COUNT, FIRST, STEP = 0, 4, 8, 12
"""Where a span of a linear channel has its tag, the number of its tokens, the first value and the
distance between values, each of 32 bits."""

WHERE, STRIDE, ABSOLUTE = 8, 16, 20
"""Where a span of an array channel has, after tag and number, the place of its values (64 bits),
their distance in bytes, and whether the place is an address; else it is one in the data ring."""

_VALUES_PER_SPAN = 16
"""The size of a data ring, for each span in the ring."""

_MEMORY_FUNCTIONS = 4
_TAG_BYTES = 4
_RINGS_BYTES = 8 << 20
_DEPTHS = (16, 32, 64, 128, 256, 512, 1024, 2048)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A typed array inside the arena; ``key`` is its name in the layout."""

    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    key: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize

    @property
    def word(self) -> int:
        """The position of its first word in the arena, if it consists of words of 64 bits."""
        return self.offset // 8

    def view(self, arena: Array) -> Array:
        """A view of this section of an arena (an array of bytes)."""
        return arena[self.offset : self.offset + self.bytes].view(self.dtype).reshape(self.shape)


@dataclass(frozen=True, slots=True)
class TokenLayout:
    """The layout of tokens in a ring: ``stride`` bytes apart, the value at offset ``value``.

    The tag of a token of a nested stream is 32 bits at the front.
    """

    stride: int
    value: int


Key = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueLayout:
    """The sections of the arena of one graph.

    ``fault`` holds the number of the fault that stopped the run (0: none), ``place`` the number of
    its PE, and ``c_functions`` the addresses of the C library's functions.  ``depth`` is the
    initial capacity of every ring, and ``tokens`` the layout of tokens in it; ``codes`` and
    ``waits`` are those of the machines (see ``code_type`` and ``waits``).  ``spans`` says which
    channels have rings of spans.
    """

    sections: Mapping[Key, Section]
    bytes: int
    depth: int
    tokens: Mapping[str, TokenLayout]
    codes: Mapping[str, np.dtype[np.generic]]
    waits: Mapping[str, tuple[tuple[str, ...], ...]]
    spans: Spans

    @property
    def fault(self) -> Section:
        return self.sections[("fault",)]

    @property
    def place(self) -> Section:
        return self.sections[("place",)]

    @property
    def c_functions(self) -> Section:
        return self.sections[("functions of C",)]

    @property
    def memory_functions(self) -> Section:
        """The addresses of ``sorted_memory``'s functions, for graphs with sorted memories."""
        return self.sections[("memory functions",)]

    def parameter(self, name: str) -> Section:
        """The value of a scalar parameter."""
        return self.sections[("parameter", name)]

    def tensor(self, name: str) -> Section:
        """The address of a tensor's memory."""
        return self.sections[("tensor", name)]

    def extent(self, name: str) -> Section:
        """The length and the allocated elements of an open tensor."""
        return self.sections[("extent", name)]

    @property
    def grow(self) -> Section:
        """The address of the function that enlarges an open tensor."""
        return self.sections[("grow",)]

    def unfinished(self, node: str) -> Section:
        """The number of unfinished PEs of a node."""
        return self.sections[("unfinished", node)]

    def state(self, node: str) -> Section:
        """For each PE of a node: its status, then the loop indices of its next firing or mode."""
        return self.sections[("state", node)]

    def in_bursts(self, node: str) -> bool:
        """Whether a machine may fire in bursts; then its traces are of runs."""
        return node in self.spans.bursts

    def trace(self, node: str) -> Section:
        """For each place of a machine: its trace."""
        return self.sections[("trace", node)]

    def memory(self, node: str, memory: str) -> Section:
        """For each place of a machine: the address of a sorted memory."""
        return self.sections[("memory", node, memory)]

    def register(self, node: str, register: str) -> Section:
        """The bytes of a register file, one row per PE."""
        return self.sections[("register", node, register)]

    def heads(self, channel: str) -> Section:
        """Tokens received so far, for each element of a channel array."""
        return self.sections[("heads", channel)]

    def tails(self, channel: str) -> Section:
        """Tokens sent so far, for each element of a channel array."""
        return self.sections[("tails", channel)]

    def ring(self, channel: str) -> Section:
        """The address of a channel's ring buffers and the capacity of each, a power of two."""
        return self.sections[("ring", channel)]

    def ring_heads(self, channel: str) -> Section:
        """Entries of the ring that were taken as a whole: tokens, or spans."""
        carries = channel in self.spans.carried
        return self.sections[("span heads" if carries else "heads", channel)]

    def ring_tails(self, channel: str) -> Section:
        """Entries that were put into the ring: tokens, or spans."""
        carries = channel in self.spans.carried
        return self.sections[("span tails" if carries else "tails", channel)]

    def data(self, channel: str) -> Section:
        """For an array channel: the address of the data rings, and the bytes of each."""
        return self.sections[("data", channel)]

    def data_heads(self, channel: str) -> Section:
        """Bytes of values in the data ring that are taken."""
        return self.sections[("data heads", channel)]

    def data_tails(self, channel: str) -> Section:
        """Bytes of values that were put into the data ring."""
        return self.sections[("data tails", channel)]

    def has_data(self, channel: str) -> bool:
        """Whether it is an array channel."""
        return self.spans.carried.get(channel) is Carried.ARRAY


def layout_of(graph: Graph, spans: Spans = NO_SPANS) -> ValueLayout:
    """Lay out the state of a graph, in which some channels may carry spans."""
    return placed(graph, _requests(graph, spans), spans)


def placed(
    graph: Graph,
    requests: Iterable[tuple[Key, tuple[int, ...], str]],
    spans: Spans = NO_SPANS,
) -> ValueLayout:
    """Lay out sections one after the other, given their keys, shapes and types."""
    sections: dict[Key, Section] = {}
    end = 0
    for key, shape, dtype in requests:
        start = -(-end // ALIGNMENT) * ALIGNMENT if key[0] in ("state", "register") else end
        section = Section(offset=start, shape=shape, dtype=np.dtype(dtype), key=key)
        sections[key] = section
        end = -(-(start + section.bytes) // 8) * 8
    return ValueLayout(
        sections=MappingProxyType(sections),
        bytes=end,
        depth=first_depth(graph, spans),
        tokens=MappingProxyType({c.name: token_layout(c) for c in graph.channels}),
        codes=MappingProxyType({m.name: code_type(m) for m in graph.machines}),
        waits=MappingProxyType({m.name: waits(m) for m in graph.machines}),
        spans=spans,
    )


def _requests(graph: Graph, spans: Spans) -> Iterable[tuple[Key, tuple[int, ...], str]]:
    yield ("fault",), (), "int64"
    yield ("place",), (), "int64"
    yield ("functions of C",), (len(C_FUNCTIONS),), "uint64"
    yield ("memory functions",), (_MEMORY_FUNCTIONS,), "uint64"
    yield ("grow",), (), "uint64"
    for parameter in graph.parameters:
        yield ("parameter", parameter.name), (parameter.type.bytes,), "uint8"
    for tensor in graph.tensors:
        yield ("tensor", tensor.name), (), "uint64"
        if tensor.open:
            yield ("extent", tensor.name), (2,), "int64"
    for channel in graph.channels:
        yield ("ring", channel.name), (2,), "uint64"
        yield ("heads", channel.name), (channel.element_count,), "int64"
        yield ("tails", channel.name), (channel.element_count,), "int64"
        form = spans.carried.get(channel.name)
        if form is not None:
            yield ("span heads", channel.name), (channel.element_count,), "int64"
            yield ("span tails", channel.name), (channel.element_count,), "int64"
        if form is Carried.ARRAY:
            yield ("data", channel.name), (2,), "uint64"
            yield ("data heads", channel.name), (channel.element_count,), "int64"
            yield ("data tails", channel.name), (channel.element_count,), "int64"
    for node in graph.nodes:
        yield ("unfinished", node.name), (), "int64"
        match node:
            case Machine(memories=memories):
                yield ("state", node.name), (node.place_count, MACHINE_WORDS), "int32"
                yield ("trace", node.name), (node.place_count, TRACE_WORDS), "int64"
                for memory in memories:
                    yield ("memory", node.name, memory.name), (node.place_count,), "uint64"
            case _:
                yield ("state", node.name), (node.place_count, 1 + len(node.loops)), "int32"
        for register in node.registers:
            row = prod(register.shape) * register.type.bytes
            yield ("register", node.name, register.name), (node.place_count, row), "uint8"


def token_layout(channel: Channel) -> TokenLayout:
    """The memory layout of a channel's tokens."""
    element = channel.stream.element
    if channel.stream.nesting == 0:
        return TokenLayout(element.bytes, 0)
    value = max(_TAG_BYTES, element.scalar.bytes)
    return TokenLayout(-(-(value + element.bytes) // value) * value, value)


def address_of(array: Array) -> int:
    """The address of an array's elements."""
    return int(array.__array_interface__["data"][0])


def aligned_zeros(size: int) -> Array:
    """``size`` zero bytes that start on a cache line."""
    block = np.zeros(size + ALIGNMENT, np.uint8)
    start = -address_of(block) % ALIGNMENT
    return block[start : start + size]


def span_bytes(form: Carried) -> int:
    """The bytes of an entry in a ring of spans."""
    return STEP + 4 if form is Carried.LINEAR else ABSOLUTE + 4


def entry_bytes(channel: Channel, spans: Spans) -> int:
    """The bytes of an entry in the ring of a channel."""
    form = spans.carried.get(channel.name)
    return token_layout(channel).stride if form is None else span_bytes(form)


def data_bytes(channel: Channel) -> int:
    """The bytes in the data ring of an array channel for each span in its ring."""
    return _VALUES_PER_SPAN * channel.stream.element.bytes


def first_depth(graph: Graph, spans: Spans) -> int:
    """The initial capacity of every ring.

    Values do not depend on capacities.  Deep rings amortize switching between PEs over many
    firings, shallow ones stay in the cache.
    """
    per_entry = sum(
        channel.element_count
        * (
            entry_bytes(channel, spans)
            + (data_bytes(channel) if spans.carried.get(channel.name) is Carried.ARRAY else 0)
        )
        for channel in graph.channels
    )
    fitting = [depth for depth in _DEPTHS if depth * per_entry <= _RINGS_BYTES]
    return fitting[-1] if fitting else _DEPTHS[0]


_BYTE_CODES = 256


def code_type(node: Machine) -> np.dtype[np.generic]:
    """The type of the codes in the traces of a machine."""
    return np.dtype(np.uint8 if len(node.paths()) <= _BYTE_CODES else np.uint16)


def waits(node: Machine) -> tuple[tuple[str, ...], ...]:
    """The heads needed at each point of the code where a machine may wait, the missing one last.

    The points are numbered in this order.
    """
    points: list[tuple[str, ...]] = []

    def enter(before: tuple[str, ...], needs: tuple[str, ...], choices: tuple[Choice, ...]) -> None:
        points.extend(before + needs[: count + 1] for count in range(len(needs)))
        for choice in choices:
            inner = () if isinstance(choice.inside, Rule) else choice.inside
            enter(before + needs, choice.needs, inner)
            if choice.when is None:
                return

    for mode in node.modes:
        enter((), mode.needs, mode.choices)
    return tuple(points)


def most_adds(node: Machine, memory: str) -> int:
    """The largest number of points that a firing adds to a sorted memory."""
    return max(
        sum(isinstance(s, MemoryAdd) and s.memory == memory for s in path.rule.body)
        for path in node.paths()
    )
