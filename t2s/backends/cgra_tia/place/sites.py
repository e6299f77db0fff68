"""A netlist and a fabric as a placement problem in numbers: parts, sites, kinds, nets.

Refused are designs that cannot fit, because they have more parts of a kind than there are sites.

Sites are numbered: the cells of the fabric row by row, then the stream units in the order of their
slots.  Parts are the cells and then the units of the netlist, in its order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from t2s.backends.cgra_tia.fabric import FABRICS, CellKind, CgraFabric
from t2s.backends.cgra_tia.netlist import NetCell, Netlist, Site, StreamUnit
from t2s.backends.cgra_tia.place.anneal import Integers, Problem
from t2s.core.errors import UnsupportedError

KINDS = (CellKind.FMA, CellKind.CONTROL, CellKind.UNIT)

_NEAREST = 256
"""Most sites that are listed as the nearest ones."""

_WORDS = {
    CellKind.FMA: "cells with an FMA",
    CellKind.CONTROL: "control cells",
    CellKind.UNIT: "stream units",
}


def kind_of(part: NetCell | StreamUnit) -> CellKind:
    """The kind of site that a part needs."""
    return part.kind if isinstance(part, NetCell) else CellKind.UNIT


def parts_of(netlist: Netlist) -> tuple[NetCell | StreamUnit, ...]:
    """The cells and then the units, as parts are numbered."""
    return (*netlist.cells, *netlist.units)


@dataclass(frozen=True, kw_only=True)
class Sites:
    """All sites of a fabric, by number, and the sites that each kind may use, its own first."""

    places: tuple[Site, ...]
    of_kind: tuple[tuple[int, ...], ...]

    @property
    def shared(self) -> bool:
        """Whether control cells may use sites with an FMA, which are then assigned first."""
        return not set(self.of_kind[0]).isdisjoint(self.of_kind[1])


def sites_of(netlist: Netlist, fabric: CgraFabric) -> Sites:
    """The sites that the parts of a netlist may use.

    Each kind has its own sites; only if there are too few control cells, sites with an FMA, which
    can do the same, serve as well.  Raises ``UnsupportedError`` if there are too many parts.
    """
    rows, columns = fabric.rows, fabric.columns
    cells = [Site(row=row, column=column) for row in range(rows) for column in range(columns)]
    per = fabric.units_per_position
    units = [
        Site(row=row, column=column, slot=position * per + number)
        for position, (row, column) in enumerate(fabric.border)
        for number in range(per)
    ]
    of_kind = {
        kind: [row * columns + column for row, column in fabric.cells(kind)] for kind in KINDS
    }
    of_kind[CellKind.UNIT] = list(range(len(cells), len(cells) + len(units)))
    needed = Counter(kind_of(part) for part in parts_of(netlist))
    controls = of_kind[CellKind.CONTROL]
    if needed[CellKind.CONTROL] > len(controls):
        if needed[CellKind.CONTROL] + needed[CellKind.FMA] > len(cells):
            raise _too_many(netlist, fabric, CellKind.CONTROL, len(cells) - needed[CellKind.FMA])
        of_kind[CellKind.CONTROL] = [*controls, *of_kind[CellKind.FMA]]
    for kind in (CellKind.FMA, CellKind.UNIT):
        if needed[kind] > len(of_kind[kind]):
            raise _too_many(netlist, fabric, kind, len(of_kind[kind]))
    return Sites(places=(*cells, *units), of_kind=tuple(tuple(of_kind[kind]) for kind in KINDS))


def _too_many(netlist: Netlist, fabric: CgraFabric, kind: CellKind, there: int) -> UnsupportedError:
    """The refusal: how many sites each node takes, and a fabric that has enough."""
    nodes = Counter[str]()
    for part in parts_of(netlist):
        if kind_of(part) is kind:
            nodes[part.name if part.origin is None else part.origin.node] += 1
    total = sum(nodes.values())
    largest = sorted(nodes.items(), key=lambda item: (-item[1], item[0]))
    shares = [f"{count} for {node}" for node, count in largest[:8]]
    if len(largest) > 8:
        shares.append(f"{sum(count for _, count in largest[8:])} for {len(largest) - 8} others")
    larger = [other for other in FABRICS.values() if _fits(netlist, other)]
    what = f"the fabric {larger[0].name!r}, or " if larger else ""
    return UnsupportedError(
        f"the design {netlist.name!r} does not fit on the fabric {fabric.name!r}",
        location=netlist.location,
        expected=f"at most {there} {_WORDS[kind]}",
        given=f"{total}: {', '.join(shares)}",
        hint=f"take {what}unroll fewer iterations: the fabric has {there} of the {total} sites",
    )


def _fits(netlist: Netlist, fabric: CgraFabric) -> bool:
    """Whether a fabric has enough sites of all kinds."""
    needed = Counter(kind_of(part) for part in parts_of(netlist))
    cells = fabric.rows * fabric.columns
    return (
        needed[CellKind.FMA] <= len(fabric.cells(CellKind.FMA))
        and needed[CellKind.FMA] + needed[CellKind.CONTROL] <= cells
        and needed[CellKind.UNIT] <= fabric.units
    )


def problem_of(netlist: Netlist, fabric: CgraFabric, sites: Sites) -> Problem:
    """The tables for the annealer."""
    parts = parts_of(netlist)
    numbers = {part.name: number for number, part in enumerate(parts)}
    members = [
        sorted({numbers[net.source.part], *(numbers[sink.end.part] for sink in net.sinks)})
        for net in netlist.nets
    ]
    members = [item for item in members if len(item) > 1]
    nets: list[list[int]] = [[] for _ in parts]
    for net, item in enumerate(members):
        for part in item:
            nets[part].append(net)
    near, nearest, width = _near(fabric, sites)
    allowed = np.zeros((len(KINDS), len(sites.places)), dtype=np.int64)
    for kind, allowed_sites in enumerate(sites.of_kind):
        allowed[kind, list(allowed_sites)] = 1
    return Problem(
        kinds=[KINDS.index(kind_of(part)) for part in parts],
        rows=[site.row for site in sites.places],
        columns=[site.column for site in sites.places],
        cells=[site.row * fabric.columns + site.column for site in sites.places],
        nets_of=_joined(nets),
        nets_from=_starts(nets),
        parts_of=_joined(members),
        parts_from=_starts(members),
        allowed=allowed.ravel().tolist(),
        near=near,
        nearest=nearest,
        grid=fabric.rows * fabric.columns,
        width=width,
    )


def _joined(lists: Sequence[Sequence[int]]) -> list[int]:
    return [item for items in lists for item in items]


def _starts(lists: Sequence[Sequence[int]]) -> list[int]:
    return [0, *accumulate(len(items) for items in lists)]


def _near(fabric: CgraFabric, sites: Sites) -> tuple[Integers, list[int], int]:
    """The nearest sites of each kind for each cell, how many per kind, and the table's width."""
    width = min(_NEAREST, max(map(len, sites.of_kind)))
    grid = fabric.rows * fabric.columns
    table = np.zeros((len(sites.of_kind), grid, width), dtype=np.int64)
    for kind, allowed_sites in enumerate(sites.of_kind):
        count = len(allowed_sites)
        if not count:
            continue
        numbers = np.array(allowed_sites)
        rows = np.array([sites.places[site].row for site in allowed_sites], dtype=np.int32)
        columns = np.array([sites.places[site].column for site in allowed_sites], dtype=np.int32)
        listed = min(width, count)
        across = np.abs(columns - np.arange(fabric.columns, dtype=np.int32)[:, None])
        for row in range(fabric.rows):
            distances = np.abs(rows - row) + across
            # the number of the site breaks ties
            keys = distances * count + np.arange(count, dtype=np.int32)
            nearest = np.sort(np.partition(keys, listed - 1, axis=1)[:, :listed], axis=1)
            first = row * fabric.columns
            table[kind, first : first + fabric.columns, :listed] = numbers[nearest % count]
    listed_of = [min(width, len(allowed_sites)) for allowed_sites in sites.of_kind]
    return table.ravel(), listed_of, width
