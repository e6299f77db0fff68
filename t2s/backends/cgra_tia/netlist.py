"""A design as cells, stream units and nets: what is placed, routed, written, read and run.

``lower/`` turns a graph into a ``Netlist``, ``place/`` turns that into a ``PlacedDesign``, and
``files/`` writes and reads it.  The text has the programs of the cells and the placement file
everything else, so both together are read back as the same ``PlacedDesign``.  The interpreter
(``machine/``) and the lift (``lift/``) take a ``PlacedDesign`` and nothing else.

Time follows the firing rule of docs/simulation.md.  A cell fires at most one instruction per cycle,
a unit makes at most one step.  Each branch of a net is a channel: a token that is sent in cycle t
can be taken from cycle t + latency on; at most ``capacity`` tokens have been sent and not taken,
and a take makes room for the next cycle.  A net has one source; a firing that writes it needs room
in *all* of its branches and puts one token into each.  A branch over L hops has a latency of at
least 1 + L. A float result (``ON_FMA``) leaves ``fma_latency`` cycles later: latency and capacity
of the branches are greater by that.  To keep the order of tokens, an output that some instructions
write with the FMA and some without has the longer latency for all its tokens.

The run ends when every ``LOAD``, ``SEQUENCE`` and ``STORE`` unit has done its nest and no token is
in flight.  Cycles are counted as in ``t2s.simulate``: the first is 1, and the count is the cycle of
the last firing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from t2s.backends.cgra_tia.fabric import CellKind, CgraFabric
from t2s.backends.cgra_tia.program import CellProgram
from t2s.core.location import SourceLocation
from t2s.graph.graph import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """The origin of a part in the graph, for reports and pictures; it has no other effect."""

    node: str
    point: tuple[int, ...] = ()
    location: SourceLocation | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellTurn:
    """One of several operations that share a cell and fire in turn, in every round.

    ``tags`` are those of its instructions, on the input that all instructions of the cell take
    from.  In round ``r`` it works on the operands number ``r - stage``: they may arrive that much
    later than those of the first turn, whose stage is 0.
    """

    tags: tuple[int, ...]
    stage: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NetCell:
    """A cell that computes: its program, and the kind of site that it needs.

    ``turns`` is empty unless operations share the cell.  They follow from the program and its tags,
    and are for capacities and rates only, without effect on the meaning.
    """

    name: str
    kind: CellKind
    program: CellProgram
    origin: Provenance | None = None
    turns: tuple[CellTurn, ...] = ()


class UnitKind(Enum):
    """What a stream unit does in one step."""

    LOAD = "ld"
    """Step of its nest: reads memory, sends the word from output 0."""
    STORE = "st"
    """Step of its nest: takes a word from input 0, writes memory."""
    SEQUENCE = "seq"
    """Step of its nest: sends a token from output 0; its value is the address, 0 without one."""
    LOAD_AT = "ldx"
    """Takes an address from input 0, sends the word there from output 0, with the address's tag.

    A token with another tag than 0 is no address (the stop of a stream): it is passed on, of value
    0, and nothing is read.
    """
    STORE_AT = "stx"
    """Takes an address from input 0 and a word from input 1, writes memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AffineSum:
    """``constant`` plus the sum of ``coefficients`` times the loops of a nest, outermost first.

    Missing coefficients at the end are zero.
    """

    constant: int = 0
    coefficients: tuple[int, ...] = ()

    def at(self, indices: tuple[int, ...]) -> int:
        """The value at a point of the nest."""
        terms = zip(self.coefficients, indices, strict=False)
        return self.constant + sum(factor * index for factor, index in terms)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamLoop:
    """A loop from 0; its extent may depend on the loops around it, and is empty if below 1."""

    name: str
    extent: AffineSum


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitCondition:
    """Holds where the sum is at least 0, or is 0 (``equal``)."""

    sum: AffineSum
    equal: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TagCase:
    """The tag of the steps at which all conditions hold."""

    when: tuple[UnitCondition, ...]
    tag: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamUnit:
    """A unit at the border of the fabric that runs a loop nest, at most one step per cycle.

    Attributes
    ----------
    loops: the nest, outermost first, at most 8; without loops it is one step.  Empty for
        ``LOAD_AT`` and ``STORE_AT``, which work for as long as addresses arrive.
    tensor, address: the tensor, and the position in its row-major array (``Tensor.allocated``),
        in elements.  ``LOAD_AT`` and ``STORE_AT`` only use the constant, which they add to the
        addresses that arrive.
    tags: the tag that is sent: that of the first case that holds, or 0.
    """

    name: str
    kind: UnitKind
    loops: tuple[StreamLoop, ...] = ()
    tensor: str | None = None
    address: AffineSum | None = None
    tags: tuple[TagCase, ...] = ()
    origin: Provenance | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A port: the name of a cell or of a unit, and the number of its input or output."""

    part: str
    port: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NetSink:
    """An end of a net; ``tokens`` is how many its branch has to hold for the design not to block.

    A virtual buffer or a ring in which ``n`` tokens circulate needs ``n + 1``.
    """

    end: Endpoint
    tokens: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Net:
    """A net from one output to any number of inputs.

    ``group`` is the name of the channel array that it is an element of.  All branches of a group
    get the same latency and capacity, so that a placed array is an array again (unless the design
    is placed with ``balanced=False``).  ``location`` is that of the channel.
    """

    name: str
    group: str
    source: Endpoint
    sinks: tuple[NetSink, ...]
    location: SourceLocation | None = field(default=None, compare=False)


@dataclass(frozen=True, kw_only=True)
class Netlist:
    """A whole design, not yet placed.  Names of parts are unique; so are those of nets."""

    name: str
    cells: tuple[NetCell, ...]
    units: tuple[StreamUnit, ...]
    nets: tuple[Net, ...]
    tensors: tuple[Tensor, ...]
    location: SourceLocation | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A branch of a placed net: its path, and its channel.

    ``path`` has the cells (row, column) from the source to the sink, including both; there is one
    hop fewer.  ``latency`` is at least 1 + hops, and ``capacity`` at least latency + 1; both
    exclude the FMA's pipeline.
    """

    path: tuple[tuple[int, int], ...]
    latency: int
    capacity: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A site of the fabric: a cell, or for a unit the cell of its border position.

    ``slot`` is 0 for a cell.  For a unit it is the number among ``CgraFabric.units``: the border
    position times the units per position, plus the unit's number there.
    """

    row: int
    column: int
    slot: int = 0


@dataclass(frozen=True, kw_only=True)
class PlacedDesign:
    """A netlist with a site for each part and a tree of wires for each net.

    ``sites`` are by name of the part; ``branches`` by name of the net, one for each sink, in order.
    The paths of a net's branches form a tree, and each of its wires uses one track between two
    neighbors in one direction.
    """

    netlist: Netlist
    fabric: CgraFabric
    sites: Mapping[str, Site]
    branches: Mapping[str, tuple[Branch, ...]]
    seed: int = 0
    balanced: bool = True


def unplaced(netlist: Netlist, fabric: CgraFabric, latency: int = 1) -> PlacedDesign:
    """A design without wires in which every branch has the same latency, for tests and studies.

    Capacities are ``max(latency + 1, tokens)``.  It has no sites.
    """
    branches = {
        net.name: tuple(
            Branch(path=(), latency=latency, capacity=max(latency + 1, sink.tokens))
            for sink in net.sinks
        )
        for net in netlist.nets
    }
    return PlacedDesign(netlist=netlist, fabric=fabric, sites={}, branches=branches)
