"""A design as cells, stream units and nets: what is placed, routed, written, read and run.

``lower/`` makes a ``Netlist`` of a graph, ``place/`` a ``PlacedDesign`` of that, ``files/`` writes
and reads it.  The text holds the programs of the cells; everything else stands in the placement
file, so that a design is read back from both to the same ``PlacedDesign``.  The interpreter
(``machine/``) and the lift (``lift/``) take a ``PlacedDesign`` and nothing else.

Time.  All of it is the firing rule of docs/simulation.md.  A cell fires at most one instruction
per cycle, a unit makes at most one step.  Each branch of a net is a channel: a token that is sent
in cycle t can be taken from cycle t + latency on; at most ``capacity`` tokens are sent and not
taken, and room that a take makes is there in the next cycle.  A net has one source; a firing that
writes it needs room in *all* of its branches and puts one token into each.  A branch over L hops
has latency 1 + L at least.  An arithmetic result on floats (``ON_FMA``) leaves ``fma_latency``
cycles later: for such firings latency and capacity of the branches are greater by that, and order
is kept: a source port whose instructions are partly such and partly not has the longer latency
for all its tokens.

The run ends when every ``LOAD``, ``SEQUENCE`` and ``STORE`` unit has done its nest and no token is
left on the way.  Cycles are counted as in ``t2s.simulate``: the first is 1, the count is the
cycle of the last firing.
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
    """What a part was in the graph, for reports and pictures; never for meaning."""

    node: str
    point: tuple[int, ...] = ()
    location: SourceLocation | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellTurn:
    """One of several operations that share a cell and fire in turn, round after round.

    ``tags`` are those of its instructions, on the input that all instructions of the cell take
    from.  In round ``r`` it works on the operands number ``r - stage``: its operands may come that
    much later than those of the first turn, whose stage is 0.
    """

    tags: tuple[int, ...]
    stage: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NetCell:
    """A cell that computes: its program, and the kind of place that it needs.

    ``turns`` are empty unless operations share the cell.  They follow from the program and its
    tags, and are for depths and rates only, never for meaning.
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
        """Its value at a point of the nest."""
        terms = zip(self.coefficients, indices, strict=False)
        return self.constant + sum(factor * index for factor, index in terms)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamLoop:
    """A loop from 0; its extent may depend on the loops around it.  No steps if it is below 1."""

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
    """A unit at the border of the fabric, which runs a loop nest: one step per cycle at most.

    Attributes
    ----------
    loops: the nest, outermost first, at most 8; none is one step.  Empty for ``LOAD_AT`` and
        ``STORE_AT``, which work for as long as addresses come.
    tensor, address: what is read or written, and where: the position in the row-major array
        (``Tensor.allocated``), in elements.  Of ``LOAD_AT`` and ``STORE_AT`` the constant alone
        counts, which is added to the addresses that come.
    tags: the tag of what is sent: that of the first case that holds, 0 if none does.
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
    """Where a net goes.  ``tokens`` is how many it has to hold for the design not to block.

    A virtual buffer or a ring in which ``n`` tokens circulate needs ``n + 1``.
    """

    end: Endpoint
    tokens: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Net:
    """From one output to any number of inputs.

    ``group`` names the channel array that it is an element of.  All branches of one group get the
    same latency and hold as many tokens, so that a placed array is an array again (unless the
    design is placed with ``balanced=False``).  ``origin`` is of the channel.
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
    """A branch of a net as it is placed: its way, and the channel that it is.

    ``path`` has the cells (row, column) from the source's to the sink's, both included; its hops
    are one fewer.  ``latency`` is at least 1 + hops, and ``capacity`` at least latency + 1; both
    are without the FMA's pipeline.
    """

    path: tuple[tuple[int, int], ...]
    latency: int
    capacity: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A place of the fabric: a cell, or for a unit the border position's cell.

    ``slot`` is 0 for a cell; for a unit its number among ``CgraFabric.units``: the border position
    times the units at a position, plus the unit's number there.
    """

    row: int
    column: int
    slot: int = 0


@dataclass(frozen=True, kw_only=True)
class PlacedDesign:
    """A netlist with a site for each part and a tree of wires for each net.

    ``sites`` are by name of the part; ``branches`` by name of the net, one for each of its sinks,
    in their order.  The paths of a net's branches make a tree, and each wire of it uses one track
    between two neighbors in one direction.
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
