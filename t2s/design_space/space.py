"""The space of designs of a contraction within a budget.

A *shape* is the array of PEs, the tile of a PE and the vector length; a *point* is a shape with a
way for each operand and for the results (``point.py``); a *family* is all points that differ in
their tiles only.  They are columns of numbers, so that hundreds of thousands of them are bounded in
a second (``costs.py``).

One or two output loops are in space, with any number of PEs, or one reduction, alone or beside an
output loop, with the fewest PEs for each number of its steps; along each output loop every tile
that is the smallest one for its number of blocks, so that tiles need not divide; vectors of a power
of two along the innermost reduction, or along adjacent results if nothing is reduced; each operand
loaded by each PE, or forwarded from boundary PEs, or streamed once for each tile and buffered, from
one loader or from one for each feeder; results gathered, or stored by each PE through a FIFO that
takes no RAM block or holds a tile.

Not in it: skewed space-time maps, blocks in another order than the definition's, single buffers,
which take as many RAM blocks as double ones unless tiles are large, buffers for more than one step
of the reduction, other depths of FIFOs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from math import ceil, prod
from typing import Any

import numpy as np

from t2s.design_space.columns import (
    Columns,
    Costs,
    Families,
    Family,
    Shapes,
    Ways,
    smallest_tiles,
)
from t2s.design_space.contraction import Contraction, SearchedOperand
from t2s.design_space.costs import PointCosts
from t2s.design_space.point import Drain, Feed, Point
from t2s.spatial.analysis.capacity import DEFAULT_CAPACITY

LANES = (1, 2, 4, 8, 16)
"""Vector lengths that memory units and vector types of the backends have."""

MOST_RESULTS = 1 << 13
"""The most results of a PE: more take as many RAM blocks as PEs could use better."""

MOST_TILES = 1 << 12
"""Tiles for one array of PEs; of more, those that pad the least along the loop with the most."""


MOST_APART = 3
"""Operands of which each may reach the PEs in a way of its own, wherever it varies."""

MOST_WAYS = 1 << 8
"""Ways for the operands together."""


@dataclass(frozen=True, kw_only=True)
class Space(PointCosts):
    """The designs of a contraction on a device, within a budget."""

    def families(self) -> Families:
        """All families within the budget, those with the least bound first."""
        ways = tuple(self.ways())
        parts: list[list[Any]] = []
        for lanes in self.datapaths:
            pes = self._pes(lanes)
            shapes = self.of_one_block(pes, np.full(len(pes), lanes, np.int64))
            for at, each in enumerate(ways):
                costs = self.costs(shapes, each, of_family=True)
                rows = np.flatnonzero(costs.legal)
                columns = (costs.bound, self.estimate(costs), costs.dsp, costs.ram, costs.bytes)
                way = np.full(len(rows), at, np.int64)
                parts.append([way, pes[rows], shapes.lanes[rows], *(c[rows] for c in columns)])
        way, pes, lengths, bound, estimate, dsp, ram, moved = map(
            np.concatenate, zip(*parts, strict=True)
        )
        order = np.lexsort((estimate, bound))
        return Families(
            ways=ways,
            way=way[order],
            pes=pes[order],
            lanes=lengths[order],
            bound=bound[order],
            estimate=estimate[order],
            dsp=dsp[order],
            ram=ram[order],
            bytes=moved[order],
        )

    def of_one_block(self, pes: Columns, lanes: Columns) -> Shapes:
        """Arrays with tiles so large that there is one block; see ``costs``."""
        tiles = -(-self.extents_of(lanes) // self.of_outputs(pes))
        return Shapes(pes=pes, tiles=tiles, lanes=lanes)

    def _pes(self, lanes: int) -> Columns:
        """PEs along each loop that may be in space, a row for each array."""
        contraction = self.contraction
        outputs, along = len(contraction.outputs), contraction.vector_loop
        numbers = [np.arange(1, extent + 1) for extent in self._extents(lanes)]
        numbers += [
            np.array(smallest_tiles(ceil(loop.extent / (lanes if loop.name == along else 1))))
            for loop in contraction.loops_in_space[outputs:]
        ]
        most = prod(int(of_loop[-1]) for of_loop in numbers)
        if self.budget.dsp is not None and self.datapaths[lanes].pe:
            most = min(most, int(self.budget.dsp / self.datapaths[lanes].pe))
        numbers = [of_loop[(of_loop > 1) & (of_loop <= most)] for of_loop in numbers]
        arrays = [np.ones((min(most, 1), len(numbers)), np.int64)]
        for at, of_loop in enumerate(numbers):
            arrays.append(np.ones((len(of_loop), len(numbers)), np.int64))
            arrays[-1][:, at] = of_loop
        for outer, inner in combinations(range(len(numbers)), 2):
            if outer >= outputs:
                continue  # one reduction in space
            choices = np.searchsorted(numbers[inner], most // numbers[outer], side="right")
            pes = np.ones((int(choices.sum()), len(numbers)), np.int64)
            pes[:, outer] = np.repeat(numbers[outer], choices)
            places = np.arange(len(pes)) - np.repeat(choices.cumsum() - choices, choices)
            pes[:, inner] = numbers[inner][places]
            arrays.append(pes)
        return np.concatenate(arrays)

    def shapes(self, family: Family) -> Shapes:
        """The array of a family with every tile."""
        extents = [
            ceil(n / along)
            for n, along in zip(self._extents(family.lanes), family.pes, strict=False)
        ]
        choices = [smallest_tiles(extent) for extent in extents]
        while prod(map(len, choices)) > MOST_TILES:
            at = max(range(len(choices)), key=lambda at: len(choices[at]))
            choices[at].remove(max(choices[at], key=lambda tile: (-extents[at] % tile, tile)))
        grid = np.meshgrid(*choices, indexing="ij")
        tiles = np.stack([axis.ravel() for axis in grid], axis=1) if grid else np.ones((1, 0), int)
        tiles = tiles[tiles.prod(axis=1) <= MOST_RESULTS]
        pes = np.broadcast_to(np.array(family.pes, np.int64), (len(tiles), len(family.pes)))
        return Shapes(pes=pes, tiles=tiles, lanes=np.full(len(tiles), family.lanes, np.int64))

    def costs_of(self, family: Family, shapes: Shapes) -> Costs:
        """The costs of points of a family."""
        costs = self.costs(shapes, family.ways)
        return replace(costs, bound=np.maximum(costs.bound, family.bound))

    def ways(self) -> Iterator[Ways]:
        """All ways for operands and results.

        Of more than three operands, those that vary along the same loops reach the PEs alike; if
        that leaves too many ways, there are fewer for each.
        """
        operands = self.contraction.operands
        alike = len(operands) > MOST_APART
        groups: dict[object, list[int]] = {}
        for at, operand in enumerate(operands):
            groups.setdefault(operand.varies if alike else at, []).append(at)
        choices = [self._feeds([operands[at] for at in members]) for members in groups.values()]
        while prod(map(len, choices)) > MOST_WAYS:
            most = max(map(len, choices))
            choices = [feeds[: most - 1] for feeds in choices]
        for chosen in product(*choices):
            feeds = {
                at: feed
                for feed, members in zip(chosen, groups.values(), strict=True)
                for at in members
            }
            for drain in Drain:
                yield Ways(feeds=tuple(feeds[at] for at in range(len(operands))), drain=drain)

    def _feeds(self, operands: Sequence[SearchedOperand]) -> list[Feed]:
        """The ways for operands that no shape excludes."""
        outputs = {loop.name for loop in self.contraction.outputs}
        in_space = {loop.name for loop in self.contraction.loops_in_space}
        shared = all(in_space - operand.varies for operand in operands)
        innermost = {loop.name for loop in self.contraction.reductions[-1:]}
        reused = all((outputs | innermost) - operand.varies for operand in operands)
        always = all(operand.condition is None for operand in operands)
        feeds = [Feed.DIRECT]
        feeds += [Feed.FORWARDED] if shared else []
        return feeds + ([Feed.BUFFERED, Feed.BUFFERED_APART] if reused and always else [])

    def point(self, shapes: Shapes, row: int, ways: Ways) -> Point:
        """One row of the shapes as a point."""
        pes = shapes.pes[row].tolist()
        loops = self.contraction.loops_in_space
        depth = int(self._depth(ways.drain, shapes.tiles[row].prod()))
        if ways.drain is Drain.GATHERED and not self.contraction.initial:
            depth = 0
        return Point(
            rows=tuple((o.name, n) for o, n in zip(loops, pes, strict=True) if n > 1),
            tiles=tuple(shapes.tiles[row].tolist()),
            lanes=int(shapes.lanes[row]),
            feeds=ways.feeds,
            drain=ways.drain,
            depth=depth if depth > DEFAULT_CAPACITY else 0,
        )


def in_words(contraction: Contraction) -> str:
    """The space of a contraction: what is in it, and what is left out."""
    outputs = ", ".join(loop.name for loop in contraction.outputs)
    parts, missing = [], ["skewed space-time maps", "blocks in another order"]
    if outputs:
        parts.append(f"one or two of {outputs} as PEs, any number of them")
    reductions = contraction.loops_in_space[len(contraction.outputs) :]
    if reductions:
        names = " or ".join(loop.name for loop in reductions)
        parts.append(
            f"{names} as PEs{', alone or beside one of ' + outputs if outputs else ''}, the fewest "
            "for each number of steps"
        )
    if outputs:
        parts.append(
            f"along each of {outputs} the smallest tile for each number of blocks, up to "
            f"{MOST_RESULTS:,} results of a PE; where one array of PEs has more than "
            f"{MOST_TILES:,} of them, those that pad the least"
        )
    if contraction.vector_loop is not None:
        parts.append(f"vectors of {', '.join(map(str, LANES))} along {contraction.vector_loop}")
    if contraction.operands:
        operands = ", ".join(operand.name for operand in contraction.operands)
        apart = len(contraction.operands) > MOST_APART
        parts.append(
            f"{operands}: each loaded by each PE, forwarded from boundary PEs, or streamed once "
            "for each tile and buffered, from one loader or one for each feeder"
            + (", alike for all that vary along the same loops" if apart else "")
        )
    parts.append(
        "results gathered, or stored by each PE through a FIFO that takes no RAM block or holds a "
        "tile"
    )
    if contraction.operands:
        missing.append("single buffers")
    if contraction.reductions:
        missing.append(f"buffers for more than one step of {contraction.reductions[-1].name}")
    missing.append("other depths of FIFOs")
    return f"{'; '.join(parts)}. Not in it: {', '.join(missing)}."
