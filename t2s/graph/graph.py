"""``Graph``: nodes, channels, tensors, parameters and the region tree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from math import prod
from operator import index
from types import MappingProxyType
from typing import SupportsIndex

from t2s.core.display import NotebookCard, NotebookDisplay, Preformatted, Table
from t2s.core.errors import UserError
from t2s.core.expr import Expr
from t2s.core.location import SourceLocation
from t2s.core.svg import PALETTE, ChartArrow, ChartBox, SvgPicture, layered_chart
from t2s.core.types import Type
from t2s.core.walk import Term
from t2s.graph.nodes import Machine, Node, PEArray, Role

_COLORS = MappingProxyType(
    {
        Role.COMPUTE: PALETTE[0],
        Role.RELAY: PALETTE[7],
        Role.LOAD: PALETTE[2],
        Role.STORE: PALETTE[1],
    }
)


class StreamKind(Enum):
    """The meaning of the tokens of a stream."""

    VALUE = "value"
    CONTROL = "control"
    COORDINATE = "coordinate"
    REFERENCE = "reference"
    BITVECTOR = "bitvector"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamType(Term):
    """The tokens of a channel: their element type (lanes included), kind and nesting depth.

    A dense channel has nesting 0: values alone.  On a channel of nesting n >= 1 every token has a
    tag (see ``graph.nodes``), and the stream is a list of lists, n deep: ``stop(0)`` closes an
    innermost list, ``stop(n - 2)`` one of the lists in the outermost, and ``DONE`` the outermost.

    The value of a token with another tag than ``VALUE`` is zero, unless the tag is data beside the
    value (``values_under_tags``): then a token keeps its value whatever its tag is.
    """

    element: Type
    kind: StreamKind = StreamKind.VALUE
    nesting: int = 0
    values_under_tags: bool = False


LARGEST = (1 << 62) - 1
"""The largest capacity and latency of a channel."""

UNBOUNDED = (1 << 32) - 1
"""The capacity of channels that are never full: the most that hardware counts in 32 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel(Term):
    """An array of FIFOs from one node to one node (possibly the same: PE to neighbor PE).

    ``source_index`` gives, for a firing of a source PE, the element it sends to, and
    ``sink_index`` the element a sink PE receives from: the index map.  Both have one expression
    per dimension of ``shape``, over the node's space and loop indices.

    ``latency`` (cycles from send to ready, at least 1) and ``capacity`` (tokens, at least 1) are
    those of the FIFO alone; a device adds the latency of the sender's datapath to both.
    """

    name: str
    stream: StreamType
    source: str
    sink: str
    shape: tuple[int, ...] = ()
    source_index: tuple[Expr, ...] = ()
    sink_index: tuple[Expr, ...] = ()
    capacity: int = 2
    latency: int = 1
    location: SourceLocation | None = None

    @property
    def element_count(self) -> int:
        """Number of FIFOs in the array."""
        return prod(self.shape)


class TensorRole(Enum):
    """Whether the host fills or reads a tensor."""

    INPUT = "input"
    OUTPUT = "output"
    INTERMEDIATE = "intermediate"


class MemorySpace(Enum):
    """Where a tensor is while a design runs.

    Accesses to the device's memory take its latency and share its bandwidth.  An on-chip tensor is
    in a memory of the node that uses it: an access takes no time beyond that of the firing.  A
    shared tensor is in on-chip banks that machines access through a network; on a device without
    banks, its accesses take no time either.
    """

    MEMORY = "memory"
    CHIP = "chip"
    SHARED = "shared"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout(Term):
    """How the host orders an array of the user for the device's memory.

    The tensor in memory has one dimension for each of ``loops``, outermost first, which count from
    0 to their ``extents``.  Its element at a point of the loops is element ``indices`` of the
    user's ``array``.  Elements of an input may occur several times, those of an output occur once.
    """

    array: str
    loops: tuple[str, ...]
    extents: tuple[int, ...]
    indices: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor(Term):
    """A dense row-major array in the device's memory, on the chip, or in shared banks (``place``).

    Of an ``open`` tensor the length is known only when the design runs: its shape is ``(0,)``, it
    is an array of one dimension and of any length as an input, and as an output it is as long as
    what was stored needs.  Elements never stored are zero, also where a machine loads them again.
    Only machines access open tensors, tensors on the chip and shared ones.  A shared tensor is not
    open; a ``swizzled`` one is spread over the units of the banks by a hash of its addresses.

    A ``streamed`` one is in the device's memory, and machines load neighboring parts of it into
    queues (see ``Dram.controllers``).  One that is stored ``in_parts`` is there, too: machines
    store words of it here and there, so that its bursts are read before parts of them are stored.

    ``shape`` is what users give and get.  Where iterations are padded the array in memory is
    larger, of shape ``padded``: its first elements are the user's; the others are zero in an input,
    and dropped from an output.  Of an array that is padded the user's part may be empty.
    ``layout`` says how the host orders the (padded) array, if it is not in memory as it is.

    ``ascending`` names a tensor of positions: between two of them the elements of this one have to
    increase.  Both are inputs; runs check it.

    An on-chip input may be a ``copy_of`` an input in memory: one machine loads the latter, and
    tells others by a token that they may read the copy, which has its elements from the start.

    Each element of a tensor of single assignment (``once``) is stored at most once, by any machine,
    and loaded only after a token that announces it, so values do not depend on timing although
    several machines use the tensor.  It is open; the reference engine checks single assignment.

    ``origin`` names what an input is part of, and the promises about it, if the program is correct
    for such arrays only.
    """

    name: str
    type: Type
    shape: tuple[int, ...]
    role: TensorRole
    padded: tuple[int, ...] | None = None
    layout: Layout | None = None
    open: bool = False
    place: MemorySpace = MemorySpace.MEMORY
    swizzled: bool = False
    streamed: bool = False
    in_parts: bool = False
    ascending: str | None = None
    origin: tuple[str, ...] = ()
    copy_of: str | None = None
    once: bool = False
    location: SourceLocation | None = None

    @property
    def allocated(self) -> tuple[int, ...]:
        """The shape in memory."""
        if self.layout is not None:
            return self.layout.extents
        return self.shape if self.padded is None else self.padded

    @property
    def array(self) -> str:
        """The name of the user's array."""
        if self.layout is not None:
            return self.layout.array
        return self.name if self.copy_of is None else self.copy_of

    @property
    def shape_text(self) -> str:
        """The type and the shape, as ``float32[30, 64] padded to [32, 64]``."""
        padded = "" if self.padded is None else f" padded to {list(self.padded)}"
        shape = "[any]" if self.open else str(list(self.shape))
        copied = "" if self.copy_of is None else f" as {self.copy_of}"
        once = " stored once" if self.once else ""
        return f"{self.type}{shape}{padded}{self.place_text}{copied}{once}"

    @property
    def place_text(self) -> str:
        """Its memory space, unless that is the device's memory; begins with a space."""
        match self.place:
            case MemorySpace.MEMORY:
                return " streamed" * self.streamed + " stored in parts" * self.in_parts
            case MemorySpace.CHIP:
                return " on the chip"
            case MemorySpace.SHARED:
                return " in shared banks" + (", swizzled" if self.swizzled else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarParameter(Term):
    """A scalar given at run time, read by ``Parameter`` expressions."""

    name: str
    type: Type
    location: SourceLocation | None = None


class RegionKind(Enum):
    """How a loop level iterates."""

    RANGE = "range"
    SCAN = "scan"
    INTERSECT = "intersect"
    UNION = "union"


@dataclass(frozen=True, slots=True, kw_only=True)
class Region(Term):
    """A loop level that nodes belong to; ``parent`` is ``None`` for an outermost loop."""

    name: str
    index: str
    kind: RegionKind
    parent: str | None


@dataclass(frozen=True, kw_only=True, repr=False)
class Graph(Term, NotebookDisplay):
    """A whole design.  Immutable; look things up with ``node``, ``channel`` and ``tensor``.

    ``text`` is all of it to read, ``summary`` a line per node and channel, ``to_dot`` a picture for
    Graphviz, and ``to_json`` what ``Graph.from_json`` reads.
    """

    name: str
    nodes: tuple[Node, ...]
    channels: tuple[Channel, ...]
    tensors: tuple[Tensor, ...]
    parameters: tuple[ScalarParameter, ...] = ()
    regions: tuple[Region, ...] = ()
    location: SourceLocation | None = None

    def __repr__(self) -> str:
        return f"<Graph {self.name}: {len(self.nodes)} nodes, {len(self.channels)} channels>"

    @cached_property
    def _nodes(self) -> dict[str, Node]:
        return {node.name: node for node in self.nodes}

    @cached_property
    def _channels(self) -> dict[str, Channel]:
        return {channel.name: channel for channel in self.channels}

    @cached_property
    def _into(self) -> dict[str, tuple[Channel, ...]]:
        return _by_node((channel.sink, channel) for channel in self.channels)

    @cached_property
    def _out_of(self) -> dict[str, tuple[Channel, ...]]:
        return _by_node((channel.source, channel) for channel in self.channels)

    @cached_property
    def _tensors(self) -> dict[str, Tensor]:
        return {tensor.name: tensor for tensor in self.tensors}

    def node(self, name: str) -> Node:
        """The node of that name; ``KeyError`` if there is none."""
        return self._nodes[name]

    def channel(self, name: str) -> Channel:
        """The channel of that name; ``KeyError`` if there is none."""
        return self._channels[name]

    def tensor(self, name: str) -> Tensor:
        """The tensor of that name; ``KeyError`` if there is none."""
        return self._tensors[name]

    def to_json(self) -> str:
        """The graph as JSON; equal graphs give equal text.

        Raises ``UserError`` if the graph holds a value that has no place in one, a numpy scalar.
        """
        from t2s.graph.serialize import graph_to_json

        return graph_to_json(self)

    @staticmethod
    def from_json(text: str) -> Graph:
        """Read a graph that ``to_json`` wrote.  It is not verified: what runs it does that.

        Raises ``UserError`` for text that is not such a graph.
        """
        from t2s.graph.serialize import graph_from_json

        return graph_from_json(text)

    def to_dot(self) -> str:
        """The graph in the DOT language of Graphviz."""
        from t2s.graph.printer import graph_to_dot

        return graph_to_dot(self)

    def text(self) -> str:
        """Nodes with their loops and statements, channels, tensors: the whole graph, to read."""
        from t2s.graph.printer import print_graph

        return print_graph(self)

    def summary(self) -> str:
        """A line per node and per channel, and how many there are of what."""
        from t2s.graph.printer import summarize_graph

        return summarize_graph(self)

    def picture(self) -> SvgPicture | None:
        """Nodes in layers and the channels between them; ``None`` where there are too many."""
        boxes = [_node_box(node) for node in self.nodes]
        arrows = [_channel_arrow(channel) for channel in self.channels]
        return layered_chart(f"the graph {self.name}", boxes, arrows)

    def _card(self) -> NotebookCard:
        pes = sum(node.pe_count for node in self.nodes)
        fifos = sum(channel.element_count for channel in self.channels)
        drawn = self.picture() or Preformatted(title="There are too many nodes to draw, or none.")
        summary = (
            ("nodes", f"{len(self.nodes):,} of {pes:,} PEs"),
            ("channels", f"{len(self.channels):,} of {fifos:,} FIFOs"),
        )
        tensors = tuple((t.name, t.role.value, t.shape_text) for t in self.tensors)
        table = Table(
            title="tensors",
            headers=("name", "role", "what"),
            rows=tensors,
            left=frozenset({0, 1, 2}),
        )
        return NotebookCard(title=f"Graph {self.name}", summary=summary, parts=(drawn, table))

    @cached_property
    def pe_arrays(self) -> tuple[PEArray, ...]:
        """The nodes whose control is static, in graph order."""
        return tuple(node for node in self.nodes if isinstance(node, PEArray))

    @cached_property
    def machines(self) -> tuple[Machine, ...]:
        """The nodes whose control depends on data, in graph order."""
        return tuple(node for node in self.nodes if isinstance(node, Machine))

    def inputs_of(self, node: str) -> tuple[Channel, ...]:
        """Channels that end at a node, in graph order."""
        return self._into.get(node, ())

    def outputs_of(self, node: str) -> tuple[Channel, ...]:
        """Channels that start at a node, in graph order."""
        return self._out_of.get(node, ())


def _node_box(node: Node) -> ChartBox:
    space = " x ".join(str(dimension.extent) for dimension in node.space)
    below = f"{node.role.value} {space}".strip()
    line = "" if node.location is None else f", {node.location.source_line}"
    title = f"{node.name}: {node.role.value}, {node.pe_count:,} PEs{line}"
    color = _COLORS[node.role]
    return ChartBox(name=node.name, title=node.name, below=below, said=title, color=color)


def _channel_arrow(channel: Channel) -> ChartArrow:
    depth = f"depth {channel.capacity:,}"
    title = f"{channel.name}: {channel.element_count:,} FIFOs of {channel.stream.element}, {depth}"
    return ChartArrow(source=channel.source, sink=channel.sink, said=title)


def _by_node(ends: Iterable[tuple[str, Channel]]) -> dict[str, tuple[Channel, ...]]:
    channels_of: dict[str, list[Channel]] = {}
    for node, channel in ends:
        channels_of.setdefault(node, []).append(channel)
    return {node: tuple(channels) for node, channels in channels_of.items()}


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


# The depths of a graph's channels: checking and setting them.

MOST_DEPTH = 1 << 40
"""Largest depth and latency of a channel that may be asked for."""


def with_depths(graph: Graph, depths: Mapping[str, int]) -> Graph:
    """The same graph with other capacities for some channels, already checked."""
    channels = tuple(
        replace(channel, capacity=depths[channel.name]) if channel.name in depths else channel
        for channel in graph.channels
    )
    return replace(graph, channels=channels)


def checked_per_channel(
    graph: Graph, values: Mapping[str, SupportsIndex], what: str, location: SourceLocation
) -> dict[str, int]:
    """Positive integers by channel name, as given by a user.

    ``what`` names them in errors (``"depth"``).  ``UserError`` for an unknown channel and for
    anything but an integer from 1 to ``MOST_DEPTH``.
    """
    names = [channel.name for channel in graph.channels]
    if not isinstance(values, Mapping):
        raise UserError(
            f"every {what} needs the name of its channel",
            location=location,
            expected=f"a dict from names of channels, such as {{{names[0]!r}: 4}}"
            if names
            else "a dict from names of channels",
            given=repr(values),
        )
    for name in values:
        if name not in names:
            raise UserError(
                f"{graph.name!r} has no channel {name!r}",
                location=location,
                expected=f"one of {', '.join(names)}" if names else "a design with channels",
                given=repr(name),
                hint="t2s.lower(design).channels are the channels of a design",
            )
    return {name: _checked(name, value, what, location) for name, value in values.items()}


def _checked(name: str, value: SupportsIndex, what: str, location: SourceLocation) -> int:
    try:
        number = 0 if isinstance(value, bool) else index(value)
    except TypeError:
        number = 0
    if not 1 <= number <= MOST_DEPTH:
        raise UserError(
            f"the {what} of channel {name!r} is out of range",
            location=location,
            expected=f"an integer from 1 to {MOST_DEPTH}",
            given=repr(value),
        )
    return number
