"""A summary of a placed design: ``PlacementFigures``, a ``Table`` of them, and a map of letters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from string import ascii_letters

from t2s.backends.cgra_tia.fabric import CellKind
from t2s.backends.cgra_tia.netlist import NetCell, PlacedDesign, StreamUnit
from t2s.backends.cgra_tia.place.buffer_sizing import RateLimit, rate_limit
from t2s.backends.cgra_tia.place.sites import parts_of
from t2s.core.display import Table
from t2s.core.names import one_line

LARGEST_MAP = 16
"""The most rows and columns of a fabric that is printed as a map."""

Cell = tuple[int, int]
Wire = tuple[Cell, Cell]

_WORDS = {
    CellKind.FMA: "cells with an FMA",
    CellKind.CONTROL: "control cells",
    CellKind.UNIT: "stream units",
}


@dataclass(frozen=True, kw_only=True)
class PlacementFigures:
    """A placement in numbers.

    Attributes
    ----------
    used, available: parts of the design and sites of the fabric, by kind.
    fma_usage: the fraction of the fabric's FMAs that the design uses.
    half_perimeter: the sum over the nets of the height and the width of their boxes.
    wires: tracks in use, in total.
    most_tracks: the most nets between two neighbors, in one direction.
    mean_hops, most_hops: of the branches.
    stages: the least and the greatest latency of each group of nets, in cycles.
    instructions: the mean and the largest number of instructions of a cell.
    limit: what keeps the design from firing in every cycle.
    """

    used: Mapping[CellKind, int]
    available: Mapping[CellKind, int]
    fma_usage: Fraction
    half_perimeter: int
    wires: int
    most_tracks: int
    mean_hops: Fraction
    most_hops: int
    stages: Mapping[str, tuple[int, int]]
    instructions: tuple[Fraction, int]
    limit: RateLimit | None


def wires_of(design: PlacedDesign, net: str) -> list[Wire]:
    """The wires of a net, each once, in the order of its branches."""
    steps = (step for branch in design.branches[net] for step in pairwise(branch.path))
    return list(dict.fromkeys(steps))


def tracks_of(design: PlacedDesign) -> dict[Wire, list[str]]:
    """For each wire in use the names of its nets, one for each track."""
    names: dict[Wire, list[str]] = {}
    for net in design.netlist.nets:
        for wire in wires_of(design, net.name):
            names.setdefault(wire, []).append(net.name)
    return names


def figures_of(design: PlacedDesign) -> PlacementFigures:
    """The numbers of a placed design."""
    netlist, fabric = design.netlist, design.fabric
    used = Counter(cell.kind for cell in netlist.cells)
    used[CellKind.UNIT] = len(netlist.units)
    available = {kind: len(fabric.cells(kind)) for kind in CellKind}
    available[CellKind.UNIT] = fabric.units
    perimeter, stages = 0, dict[str, tuple[int, int]]()
    for net in netlist.nets:
        ends = [design.sites[part] for part in (net.source.part, *(s.end.part for s in net.sinks))]
        for line in ([end.row for end in ends], [end.column for end in ends]):
            perimeter += max(line) - min(line)
        latencies = [branch.latency for branch in design.branches[net.name]]
        least, most = stages.get(net.group, (latencies[0], latencies[0]))
        stages[net.group] = (min(least, *latencies), max(most, *latencies))
    hops = [len(branch.path) - 1 for branches in design.branches.values() for branch in branches]
    lengths = [len(cell.program.instructions) for cell in netlist.cells]
    tracks = tracks_of(design)
    fmas = available[CellKind.FMA]
    return PlacementFigures(
        used={kind: used[kind] for kind in CellKind},
        available=available,
        fma_usage=Fraction(used[CellKind.FMA], fmas) if fmas else Fraction(0),
        half_perimeter=perimeter,
        wires=sum(map(len, tracks.values())),
        most_tracks=max(map(len, tracks.values()), default=0),
        mean_hops=Fraction(sum(hops), len(hops)) if hops else Fraction(0),
        most_hops=max(hops, default=0),
        stages=stages,
        instructions=(
            Fraction(sum(lengths), len(lengths)) if lengths else Fraction(0),
            max(lengths, default=0),
        ),
        limit=rate_limit(design),
    )


def placement_table(design: PlacedDesign) -> Table:
    """The numbers of a placed design as a table of two columns."""
    figures, fabric = figures_of(design), design.fabric
    rows = [
        (_WORDS[kind], f"{figures.used[kind]} of {figures.available[kind]}") for kind in CellKind
    ]
    mean, most = figures.instructions
    rows += [
        ("FMA usage", f"{float(figures.fma_usage):.1%}"),
        ("half perimeters of nets", f"{figures.half_perimeter:,}"),
        ("wires", f"{figures.wires:,}"),
        ("most tracks between neighbors", f"{figures.most_tracks} of {fabric.tracks}"),
        ("hops, mean and most", f"{float(figures.mean_hops):.2f}, {figures.most_hops}"),
        ("instructions of a cell, mean and most", f"{float(mean):.2f}, {most}"),
        ("seed", str(design.seed)),
        ("rate", _rate_text(figures.limit)),
    ]
    for group, (least, greatest) in sorted(figures.stages.items()):
        cycles = str(least) if least == greatest else f"{least} to {greatest}"
        rows.append((f"stages of {one_line(group)}", cycles))
    return Table(
        title=f"{one_line(design.netlist.name)} on {one_line(fabric.name)}",
        headers=("", "placed"),
        rows=tuple(rows),
    )


def _rate_text(limit: RateLimit | None) -> str:
    if limit is None:
        return "a firing in every cycle"
    return limit.text


def node_of(part: NetCell | StreamUnit) -> str:
    """The node from which a part was lowered; its own name if that is unknown."""
    return part.name if part.origin is None else part.origin.node


def nodes_of(design: PlacedDesign) -> dict[str, int]:
    """The nodes of the parts, in their order, with numbers from 0."""
    names = (node_of(part) for part in parts_of(design.netlist))
    return {name: number for number, name in enumerate(dict.fromkeys(names))}


def placement_map(design: PlacedDesign) -> str:
    """A letter for each cell that is used, by its node, and what the letters mean.

    Unused cells are a dot, or a comma if they have an FMA.  If the fabric is too large for a map,
    one line says so.
    """
    fabric = design.fabric
    if max(fabric.rows, fabric.columns) > LARGEST_MAP:
        return f"{fabric.rows} x {fabric.columns} cells are too many for a map of letters"
    nodes = nodes_of(design)
    letters: dict[Cell, str] = {}
    meaning: dict[str, str] = {}
    for cell in design.netlist.cells:
        node = node_of(cell)
        letter = ascii_letters[nodes[node] % len(ascii_letters)]
        site = design.sites[cell.name]
        letters[site.row, site.column] = letter
        meaning.setdefault(letter, one_line(node))
    lines = []
    for row in range(fabric.rows):
        kinds = (fabric.kind_at(row, column) for column in range(fabric.columns))
        idle = ("," if kind is CellKind.FMA else "." for kind in kinds)
        shown = (letters.get((row, column), mark) for column, mark in enumerate(idle))
        lines.append(" ".join(shown))
    return "\n".join([*lines, *(f"{letter}: {node}" for letter, node in meaning.items())])
