"""A start for the annealer that keeps the shape of an array of cells.

The cells of the netlist have a node and a point.  The start is ``None`` if there is no array with
points, or if the fabric has no regular sites for it.

The largest array becomes blocks on the lattice of its kind of cells: a block has the cells along
which sums travel, as a snake, and the other dimensions of the points are rows and columns of
blocks.  All dimensions and block shapes are tried.  The other parts follow one by one, each on the
free site that lengthens the nets least.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from t2s.backends.cgra_tia.fabric import CgraFabric
from t2s.backends.cgra_tia.netlist import Netlist
from t2s.backends.cgra_tia.place.anneal import Problem, half_perimeters
from t2s.backends.cgra_tia.place.sites import KINDS, Sites

Point = tuple[int, ...]
Position = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class _Lattice:
    """Rows and columns of the grid whose crossings all have a site of the array's kind."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class _Shape:
    """The layout of an array on its lattice.

    ``across`` are the dimensions that are columns of blocks, ``width`` the columns of a block;
    the rest are rows.  A snake starts at the top left and runs along rows, unless it is flipped
    or ``turned``; the whole array is at the top left unless it is ``low`` or ``right``.
    """

    across: tuple[int, ...]
    width: int
    turned: bool = False
    upward: bool = False
    leftward: bool = False
    low: bool = False
    right: bool = False


class _Array:
    """The largest array of a netlist: its cells by point, and the dimensions of its sums."""

    def __init__(self, netlist: Netlist) -> None:
        points = _points_by_node(netlist)
        self.blocks: dict[Point, list[int]] = {}
        self.kind = 0
        if not points:
            return
        main = max(points, key=lambda node: len(points[node]))
        alike = {node for node, cells in points.items() if cells.keys() == points[main].keys()}
        first = next(iter(points[main].values()))
        self.kind = KINDS.index(netlist.cells[first].kind)
        members: dict[int, Point] = {}
        for number, cell in enumerate(netlist.cells):
            origin = cell.origin
            if origin and origin.node in alike and KINDS.index(cell.kind) == self.kind:
                members[number] = origin.point
        along = _dimensions_of_sums(netlist, members)
        self.outer = [d for d in range(len(members[first])) if d not in along]
        for number in sorted(members, key=lambda number: (members[number], number)):
            key = tuple(members[number][d] for d in self.outer)
            self.blocks.setdefault(key, []).append(number)
        self.length = max(map(len, self.blocks.values()))

    def placed(self, shape: _Shape, lattice: _Lattice) -> Mapping[int, Position] | None:
        """Row and column of each cell of the array; ``None`` if the fabric is too small."""
        downs, acrosses = [], []
        for key in self.blocks:
            parts = dict(zip(self.outer, key, strict=True))
            acrosses.append(tuple(parts[d] for d in self.outer if d in shape.across))
            downs.append(tuple(parts[d] for d in self.outer if d not in shape.across))
        down_rank = {key: rank for rank, key in enumerate(sorted(set(downs)))}
        across_rank = {key: rank for rank, key in enumerate(sorted(set(acrosses)))}
        height = -(-self.length // shape.width)
        spare_rows = len(lattice.rows) - height * len(down_rank)
        spare_columns = len(lattice.columns) - shape.width * len(across_rank)
        if spare_rows < 0 or spare_columns < 0:
            return None
        snake = _snake(height, shape)
        top, left = (spare_rows if shape.low else 0), (spare_columns if shape.right else 0)
        positions = {}
        for cells, down, across in zip(self.blocks.values(), downs, acrosses, strict=True):
            row, column = top + down_rank[down] * height, left + across_rank[across] * shape.width
            for cell, (y, x) in zip(cells, snake, strict=False):
                positions[cell] = (lattice.rows[row + y], lattice.columns[column + x])
        return positions


def _points_by_node(netlist: Netlist) -> dict[str, dict[Point, int]]:
    """For each node whose points have one rank, the number of the cell at each point."""
    by_node: dict[str, dict[Point, int]] = {}
    for number, cell in enumerate(netlist.cells):
        if cell.origin is not None and cell.origin.point:
            by_node.setdefault(cell.origin.node, {}).setdefault(cell.origin.point, number)
    return {node: points for node, points in by_node.items() if len({*map(len, points)}) == 1}


def _dimensions_of_sums(netlist: Netlist, members: Mapping[int, Point]) -> set[int]:
    """The dimensions along which nets between the members lead, unless these are all."""
    points = {netlist.cells[number].name: point for number, point in members.items()}
    rank = len(next(iter(points.values())))
    dimensions = set()
    for net in netlist.nets:
        source = points.get(net.source.part)
        for sink in net.sinks:
            end = points.get(sink.end.part)
            if source is not None and end is not None:
                dimensions |= {d for d in range(rank) if source[d] != end[d]}
    if len(dimensions) == rank > 1:
        return {rank - 1} if rank > 2 else set()
    return dimensions


def _snake(height: int, shape: _Shape) -> list[Position]:
    """The positions of a block in the order of the snake."""
    width = shape.width
    ys, xs = range(height), range(width)
    if shape.turned:
        walk = [(y if x % 2 == 0 else height - 1 - y, x) for x, y in product(xs, ys)]
    else:
        walk = [(y, x if y % 2 == 0 else width - 1 - x) for y, x in product(ys, xs)]
    return [
        (height - 1 - y if shape.upward else y, width - 1 - x if shape.leftward else x)
        for y, x in walk
    ]


def _lattice_of(fabric: CgraFabric, kind: int) -> _Lattice:
    """The rows that have cells of a kind, and the columns in which all of these rows have one."""
    columns: dict[int, set[int]] = {}
    for row, column in fabric.cells(KINDS[kind]):
        columns.setdefault(row, set()).add(column)
    shared = set.intersection(*columns.values()) if columns else set()
    return _Lattice(rows=tuple(columns), columns=tuple(sorted(shared)))


def shaped_start(
    netlist: Netlist, fabric: CgraFabric, sites: Sites, problem: Problem
) -> list[int] | None:
    """A start for the annealer; ``None`` where no array fits on a lattice."""
    array = _Array(netlist)
    if not array.blocks:
        return None
    lattice = _lattice_of(fabric, array.kind)
    shape = _best_shape(array, lattice, problem)
    if shape is None:
        strips = (_in_strips(array, lattice, height) for height in range(1, len(lattice.rows)))
        fitting = [strip for strip in strips if strip is not None]
        arrays = [min(fitting, key=lambda strip: _cost_within(strip, problem))] if fitting else []
    else:
        arrays = list(_variants(array, shape, lattice))
    starts = []
    for strip in arrays:
        taken = {cell: row * fabric.columns + column for cell, (row, column) in strip.items()}
        starts.append(_Rest(problem, sites, taken).placed())
    return min(starts, key=lambda start: sum(half_perimeters(problem, start)), default=None)


def _in_strips(array: _Array, lattice: _Lattice, height: int) -> Mapping[int, Position] | None:
    """All cells along one path through the lattice, in strips of some rows, block after block."""
    walk: list[Position] = []
    for top in range(0, len(lattice.rows), height):
        rows = lattice.rows[top : top + height]
        columns = lattice.columns if top // height % 2 == 0 else lattice.columns[::-1]
        for number, column in enumerate(columns):
            walk += [(row, column) for row in (rows if number % 2 == 0 else rows[::-1])]
    cells = [cell for block in array.blocks.values() for cell in block]
    return dict(zip(cells, walk, strict=False)) if len(cells) <= len(walk) else None


def _best_shape(array: _Array, lattice: _Lattice, problem: Problem) -> _Shape | None:
    """The shape with the shortest nets, counting nets within the array only."""
    best: tuple[int, _Shape] | None = None
    for choice in range(1 << len(array.outer)):
        across = tuple(d for bit, d in enumerate(array.outer) if choice >> bit & 1)
        for width in range(1, min(array.length, len(lattice.columns)) + 1):
            shape = _Shape(across=across, width=width)
            positions = array.placed(shape, lattice)
            if positions is not None:
                cost = _cost_within(positions, problem)
                if best is None or cost < best[0]:
                    best = cost, shape
    return None if best is None else best[1]


def _cost_within(positions: Mapping[int, Position], problem: Problem) -> int:
    """The half perimeters of the nets within the array."""
    total = 0
    starts = problem.parts_from
    for net in range(len(starts) - 1):
        places = [
            positions[part]
            for part in problem.parts_of[starts[net] : starts[net + 1]]
            if part in positions
        ]
        if len(places) > 1:
            rows, columns = zip(*places, strict=True)
            total += max(rows) - min(rows) + max(columns) - min(columns)
    return total


def _variants(array: _Array, shape: _Shape, lattice: _Lattice) -> Iterator[Mapping[int, Position]]:
    """The array of this shape in all orientations and corners, each once."""
    seen = set()
    for turned, upward, leftward, low, right in product((False, True), repeat=5):
        variant = _Shape(
            across=shape.across,
            width=shape.width,
            turned=turned,
            upward=upward,
            leftward=leftward,
            low=low,
            right=right,
        )
        positions = array.placed(variant, lattice)
        if positions is not None and (key := tuple(positions.values())) not in seen:
            seen.add(key)
            yield positions


class _Rest:
    """The parts around an array: placed one by one, nearest to the array first."""

    def __init__(self, problem: Problem, sites: Sites, taken: Mapping[int, int]) -> None:
        self._problem = problem
        self._rows, self._columns = np.array(problem.rows), np.array(problem.columns)
        self._sites: dict[int, int] = dict(taken)
        self._free = np.ones(len(problem.rows), dtype=bool)
        self._free[list(taken.values())] = False
        self._shared = sites.shared
        self._of_kind = [np.array(there, dtype=np.int64) for there in sites.of_kind]
        bottom, right = self._rows.max(), self._columns.max()
        self._to_border = np.minimum(
            np.minimum(self._rows, bottom - self._rows),
            np.minimum(self._columns, right - self._columns),
        )

    def placed(self) -> list[int]:
        """A site for each part."""
        for part in self._order():
            choices = self._of_kind[self._problem.kinds[part]]
            choices = choices[self._free[choices]]
            site = int(choices[int(np.argmin(self._lengthening(part, choices)))])
            self._sites[part] = site
            self._free[site] = False
        return [self._sites[part] for part in range(len(self._problem.kinds))]

    def _order(self) -> list[int]:
        """The parts without a site, in breadth-first order from those that have one."""
        order: list[int] = []
        known = set(self._sites)
        front: Sequence[int] = sorted(known)
        while front:
            reached = {other for part in front for net in self._nets(part) for other in net}
            front = sorted(reached - known)
            known.update(front)
            order += front
        order += [part for part in range(len(self._problem.kinds)) if part not in known]
        if self._shared:
            order.sort(key=lambda part: self._problem.kinds[part])
        return order

    def _nets(self, part: int) -> Iterator[Sequence[int]]:
        """The parts of each net of a part."""
        tables = self._problem
        for net in tables.nets_of[tables.nets_from[part] : tables.nets_from[part + 1]]:
            yield tables.parts_of[tables.parts_from[net] : tables.parts_from[net + 1]]

    def _lengthening(self, part: int, choices: np.ndarray) -> np.ndarray:
        """By how much the nets of a part grow if it is placed on each of the sites."""
        rows, columns = self._rows[choices], self._columns[choices]
        cost = np.zeros(len(choices), dtype=np.int64)
        for net in self._nets(part):
            there = [self._sites[other] for other in net if other in self._sites]
            if not there:
                if any(KINDS[self._problem.kinds[other]].value == "io" for other in net):
                    cost += self._to_border[choices]
                continue
            for here, ends in ((rows, self._rows[there]), (columns, self._columns[there])):
                low, high = ends.min(), ends.max()
                cost += np.maximum(low - here, 0) + np.maximum(here - high, 0)
        return cost
