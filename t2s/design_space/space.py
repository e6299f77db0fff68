"""The space of designs of a contraction within a budget, with a lower bound for each of them.

A *shape* is the array of PEs, the tile of a PE and the vector length; a *point* is a shape with a
way for each operand and for the results (``point.py``).  Shapes and points are columns of numbers,
so that millions of them are bounded in a second.

**The space.**  One or two output loops in space, with any number of PEs; along each output loop
every tile that is the smallest one for its number of blocks, so that tiles need not divide; vectors
of a power of two along the innermost reduction; each operand loaded by each PE, or forwarded from
boundary PEs, or streamed once for each tile and buffered; results gathered, or stored by each PE
through a FIFO that takes no RAM block.
Not in it: reductions in space, skewed space-time maps, blocks in another order than the
definition's, buffers for more than one step of the reduction, other depths of FIFOs.

**Bounds.**  Each counts what one unit has to do, so none of them is above the true cycles:

* PEs: a step for each block, each step of the reduction and each result of the tile, and at least
  the latency of the adder for a tile; before the first step the first buffer has to be filled and
  the operand has to reach the last PE; after the last one the term, the sum and the store follow;
* the stream of each buffered operand, and that of gathered results, a token in a cycle;
* all bytes that are loaded and stored, by the bandwidth of the memory, and those of a unit by its
  own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, product
from math import ceil, lcm, prod
from typing import Any

import numpy as np

from t2s.core.expr import Expr, Read
from t2s.core.walk import children
from t2s.design_space.contraction import Contraction, SearchedOperand
from t2s.design_space.point import Drain, Feed, Point
from t2s.simulator.devices import Device, Fabric
from t2s.spatial.analysis.capacity import DEFAULT_CAPACITY

Columns = np.ndarray[Any, np.dtype[np.int64]]

LANES = (1, 2, 4, 8, 16)
"""Vector lengths that memory units and vector types of the backends have."""

MOST_RESULTS = 1 << 13
"""The most results of a PE: more take as many RAM blocks as PEs could use better."""

MOST_TILES = 1 << 12
"""Tiles for one array of PEs; of more, every second candidate along the loop with the most."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The most DSP and RAM blocks; ``None`` is no limit."""

    dsp: int | None
    ram: int | None

    def allows(self, dsp: int, ram: int) -> bool:
        """Whether a design with so many blocks fits."""
        fits = self.dsp is None or dsp <= self.dsp
        return fits and (self.ram is None or ram <= self.ram)


@dataclass(frozen=True, kw_only=True)
class Shapes:
    """Arrays of PEs with tiles and vectors, a row each.

    ``pes`` and ``tiles`` have a column for each output loop, ``pes`` 1 for those in time.
    """

    pes: Columns
    tiles: Columns
    lanes: Columns

    def __len__(self) -> int:
        return len(self.lanes)


@dataclass(frozen=True, kw_only=True)
class Ways:
    """How the operands of a contraction reach the PEs, and how its results leave."""

    feeds: tuple[Feed, ...]
    drain: Drain


@dataclass(frozen=True, kw_only=True)
class Family:
    """PEs along each output loop, the vector length and the ways: designs with any tiles.

    ``bound`` is a bound for all of them.
    """

    pes: tuple[int, ...]
    lanes: int
    ways: Ways
    bound: int


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Of points, a row each: lower bounds in cycles, blocks, bytes moved, and which are legal."""

    bound: Columns
    dsp: Columns
    ram: Columns
    bytes: Columns
    legal: np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, kw_only=True)
class DspBlocks:
    """DSP blocks of one PE, and of one load unit of each operand that is computed.

    Halves are blocks that two multipliers share.
    """

    pe: Fraction
    loader: Mapping[str, Fraction]


@dataclass(frozen=True, kw_only=True)
class Space:
    """The designs of a contraction on a device; ``dsp`` by vector length."""

    contraction: Contraction
    device: Device
    budget: Budget
    dsp: Mapping[int, DspBlocks]

    # arrays and shapes

    def families(self) -> list[Family]:
        """All families within the budget, those with the least bound first."""
        families: list[Family] = []
        for lanes in self.dsp:
            arrays = list(self._pes(lanes))
            pes = np.array(arrays, np.int64).reshape(len(arrays), len(self.contraction.outputs))
            whole = -(-np.array(self._extents(lanes), np.int64) // np.maximum(pes, 1))
            shapes = Shapes(pes=pes, tiles=whole, lanes=np.full(len(pes), lanes, np.int64))
            for ways in self.ways():
                costs = self.costs(shapes, ways, of_family=True)
                rows = np.flatnonzero(costs.legal)
                families += [
                    Family(pes=tuple(along), lanes=lanes, ways=ways, bound=bound)
                    for along, bound in zip(
                        pes[rows].tolist(), costs.bound[rows].tolist(), strict=True
                    )
                ]
        return sorted(families, key=lambda family: family.bound)

    def _pes(self, lanes: int) -> Iterator[tuple[int, ...]]:
        """PEs along each output loop."""
        extents = self._extents(lanes)
        most = prod(extents)
        if self.budget.dsp is not None and self.dsp[lanes].pe:
            most = min(most, int(self.budget.dsp / self.dsp[lanes].pe))
        if most < 1:
            return
        yield (1,) * len(extents)
        for chosen in (c for r in (1, 2) for c in combinations(range(len(extents)), r)):
            ranges = [range(2, min(extents[at], most) + 1) for at in chosen]
            for pes in product(*ranges):
                if prod(pes) <= most:
                    along = dict(zip(chosen, pes, strict=True))
                    yield tuple(along.get(at, 1) for at in range(len(extents)))

    def _extents(self, lanes: int) -> list[int]:
        """The extents of the output loops, in vectors along the loop that lanes are taken from."""
        along = self.contraction.vector_loop
        return [
            ceil(loop.extent / lanes) if loop.name == along else loop.extent
            for loop in self.contraction.outputs
        ]

    def shapes(self, family: Family) -> Shapes:
        """The array of a family with every tile."""
        choices = [
            smallest_tiles(ceil(n / along))
            for n, along in zip(self._extents(family.lanes), family.pes, strict=True)
        ]
        while prod(map(len, choices)) > MOST_TILES:
            longest = max(range(len(choices)), key=lambda at: len(choices[at]))
            choices[longest] = sorted({*choices[longest][::2], choices[longest][-1]})
        grid = np.meshgrid(*choices, indexing="ij")
        tiles = np.stack([axis.ravel() for axis in grid], axis=1) if grid else np.ones((1, 0), int)
        tiles = tiles[tiles.prod(axis=1) <= MOST_RESULTS]
        pes = np.broadcast_to(np.array(family.pes, np.int64), tiles.shape)
        return Shapes(pes=pes, tiles=tiles, lanes=np.full(len(tiles), family.lanes, np.int64))

    # bounds

    def _extents_of(self, lanes: Columns) -> Columns:
        """The extents of the output loops, a column each, as ``_extents``."""
        along = self.contraction.vector_loop
        columns = [
            -(-loop.extent // lanes) if loop.name == along else np.full_like(lanes, loop.extent)
            for loop in self.contraction.outputs
        ]
        return np.stack(columns, axis=1) if columns else np.ones((len(lanes), 0), np.int64)

    def _sums(self, lanes: Columns) -> Columns:
        """The steps of the reduction."""
        reductions = [loop.extent for loop in self.contraction.reductions]
        if not reductions:
            return np.ones_like(lanes)
        steps: Columns = -(-reductions[-1] // lanes) * prod(reductions[:-1])
        return steps

    def _latency_after(self, lanes: Columns) -> Columns:
        """From the last step: the term, its sum over the lanes, the addition, the store."""
        add = self._latency_of_sums
        levels: Columns = np.ceil(np.log2(lanes)).astype(np.int64)
        term = depth(self.contraction.term, self.device)
        return levels * add + (term + add + self._latency_of_stores)

    @property
    def _latency_of_sums(self) -> int:
        """Of what reduces terms; 0 if nothing is reduced."""
        operator = self.contraction.operator
        if operator is None:
            return 0
        return self.device.operator_latency(operator, self.contraction.type)

    @property
    def _latency_of_loads(self) -> int:
        """The least one; a DRAM may have the row open, and its latency is not a constant."""
        return self.device.load_latency if self.device.memory is None else 0

    @property
    def _latency_of_stores(self) -> int:
        return self.device.store_latency if self.device.memory is None else 0

    def costs(self, shapes: Shapes, ways: Ways, *, of_family: bool = False) -> Costs:
        """The costs of all shapes with one way for operands and results.

        With tiles so large that there is one block, ``of_family`` has the least that any tiles
        cost: nothing is loaded twice, and what a PE or a buffer holds is as little as possible.
        """
        outputs = self.contraction.outputs
        pes, tiles, lanes = shapes.pes, shapes.tiles, shapes.lanes
        extents, sums = self._extents_of(lanes), self._sums(lanes)
        # padding is computed, loaded and stored as all else
        blocks = (-(-extents // (pes * tiles))).prod(axis=1)
        results, array = tiles.prod(axis=1), pes.prod(axis=1)
        held = np.ones_like(results) if of_family else results  # at once, by a PE
        adder = max(1, self._latency_of_sums)
        step = np.maximum(results, adder)
        after = self._latency_after(lanes)
        legal = np.ones(len(shapes), bool)
        burst, bits = np.full(len(shapes), self._burst), self._bits * self._results_of_vector(lanes)
        loaded = np.zeros(len(shapes), np.int64)
        filled, skew, streamed = loaded.copy(), loaded.copy(), loaded.copy()
        dsp, first = loaded.copy(), loaded.copy()
        ram = array * self._ram(held if self.contraction.reductions else loaded, bits)
        for operand in self.contraction.initial:
            width = self._vector(operand, lanes) * operand.type.bits
            loaded = loaded + blocks * results * array * width // 8
            ram = ram + array * self._ram(burst, width)
        for operand, feed in zip(self.contraction.operands, ways.feeds, strict=True):
            varies = np.array([loop.name in operand.varies for loop in outputs], bool)
            own = np.where(varies, pes, 1).prod(axis=1)  # PEs with elements of their own
            shared = np.where(varies, 1, pes).prod(axis=1)  # PEs that use the same element
            kept = np.where(varies, tiles, 1).prod(axis=1)
            vector = self._vector(operand, lanes)
            width = vector * operand.type.bits // 8
            busy = self._unit_cycles(width)
            match feed:
                case Feed.BUFFERED | Feed.BUFFERED_APART:
                    loaders = own if feed is Feed.BUFFERED_APART else 1
                    legal &= self._reuses(operand, results, kept) | of_family
                    legal &= (own > 1) | (feed is Feed.BUFFERED)
                    streams = self._sums_of(operand, lanes)
                    tokens = blocks * kept * own * streams
                    buffered = np.minimum(kept, held)
                    first = first + buffered * own * width
                    units, filled = loaders, np.maximum(filled, buffered * own // loaders)
                    # the last buffer is full before the steps that use it
                    steps_after = (sums // streams - 1) * np.maximum(held, adder) + held
                    streamed = np.maximum(streamed, tokens // loaders * busy + steps_after)
                    ram = ram + own * self._ram(2 * buffered, vector * operand.type.bits)
                case Feed.FORWARDED:
                    legal &= shared > 1
                    tokens = blocks * results * sums * own
                    units = own
                    streamed = np.maximum(streamed, blocks * results * sums * busy)
                case Feed.DIRECT:
                    tokens = blocks * results * sums * array
                    units = array
                    streamed = np.maximum(streamed, blocks * results * sums * busy)
            if feed is not Feed.DIRECT:
                skew = np.maximum(skew, np.where(varies, 0, pes - 1).sum(axis=1))
            loaded = loaded + tokens * width
            ram = ram + units * self._ram(burst, vector * operand.type.bits)
            if not operand.stored:
                blocks_of = {
                    n: b.loader.get(operand.name, Fraction(0)) for n, b in self.dsp.items()
                }
                dsp = dsp + self._dsp(units, lanes, blocks_of)
        stored, tail = blocks * results * array, np.zeros(len(shapes), np.int64)
        unloaded, stalls = tail, tail
        if ways.drain is Drain.GATHERED:
            legal &= (array > 1) & (bits == self._bits)
            vector = self._stored_vector(pes)
            unloaded = stored // vector
            tail = np.maximum(0, array * held // vector - held)
            # one row of PEs whose results leave as a vector needs no FIFOs for PEs that wait
            waits = (np.sum(pes > 1, axis=1) > 1) | (vector == 1)
            waits &= len(self.contraction.reductions) > 0
            waiting = np.where(waits, held + 1, 0)
            ram = ram + array * self._ram(waiting, bits)
            ram = ram + self._ram(burst, vector * self._bits)
        else:
            ram = ram + array * self._ram(burst, bits)
            # results of a tile leave in one step, more of them than memory takes
            tail = np.maximum(0, self._moving(array * held * bits // 8) - held)
            late = np.maximum(0, held - self._depth(ways, held) - after) * array * bits // 8
            stalls = np.maximum(0, self._moving(late) - held - 4 * skew)
        if ways.drain is Drain.QUEUED:
            legal &= (results > self._free_words) | of_family
            ends = 1 + len(self.contraction.initial)  # FIFOs at both ends of a reduction
            ram = ram + ends * array * self._ram(held, bits)
        # the first PE sends its last results while those behind it still compute theirs
        computed = np.maximum(filled, self._moving(first)) + (blocks * sums - 1) * step + results
        computed = np.maximum(computed + (blocks - 1) * stalls, streamed)
        computed = np.maximum(computed + np.maximum(skew, tail), unloaded)
        bound = self._latency_of_loads + computed + after
        total = loaded + stored * bits // 8
        bound = np.maximum(bound, self._moving(loaded) + self._latency_of_loads + after)
        bound = np.maximum(bound, self._moving(total) + self._latency_of_stores)
        dsp = dsp + self._dsp(array, lanes, {n: blocks.pe for n, blocks in self.dsp.items()})
        if self.budget.dsp is not None:
            legal &= dsp <= self.budget.dsp
        if self.budget.ram is not None:
            legal &= ram <= self.budget.ram
        return Costs(bound=bound, dsp=dsp, ram=ram, bytes=total, legal=legal)

    def _reuses(self, operand: SearchedOperand, results: Columns, kept: Columns) -> Any:
        """Whether a buffer sends what it has taken more than once."""
        innermost = self.contraction.reductions[-1:]
        if any(loop.name not in operand.varies for loop in innermost):
            return np.ones(len(kept), bool)
        return results > kept

    def _sums_of(self, operand: SearchedOperand, lanes: Columns) -> Columns:
        """Iterations of the reduction loops for which a buffered operand is streamed."""
        loops = list(self.contraction.reductions)
        while loops and loops[-1].name not in operand.varies:
            loops.pop()
        if len(loops) == len(self.contraction.reductions):
            return self._sums(lanes)
        return np.full(len(lanes), prod(loop.extent for loop in loops))

    def _vector(self, operand: SearchedOperand, lanes: Columns) -> Columns:
        return lanes if self.contraction.vector_loop in operand.varies else np.ones_like(lanes)

    def _results_of_vector(self, lanes: Columns) -> Columns:
        """Results that a PE computes at once."""
        return np.ones_like(lanes) if self.contraction.reductions else lanes

    def _stored_vector(self, pes: Columns) -> Columns:
        """Results in a word of the unloader: those along the last loop in space, if adjacent."""
        names = [loop.name for loop in self.contraction.outputs]
        last = self.contraction.stored[-1:]
        if not set(last) & set(names):
            return np.ones(len(pes), np.int64)
        at = names.index(*last)
        others = pes[:, at + 1 :].prod(axis=1)
        return np.where(others == 1, pes[:, at], 1)

    def _unit_cycles(self, width: Columns) -> Columns:
        most = self.device.bytes_per_cycle_per_unit
        return np.ones_like(width) if most is None else -(-width // most)

    def _moving(self, moved: Columns) -> Columns:
        """The least cycles for so many bytes; 0 where a memory has no bandwidth that is constant."""
        bandwidth = self.device.memory_bytes_per_cycle
        if bandwidth is None or self.device.memory is not None:
            return np.zeros_like(moved)
        cycles: Columns = -(-moved * bandwidth.denominator // bandwidth.numerator)
        return cycles

    def _depth(self, ways: Ways, results: Columns) -> Columns:
        """The FIFO from a PE to its store unit, in results."""
        if ways.drain is Drain.QUEUED:
            return results
        return np.minimum(results, self._free_words)

    # blocks

    def _dsp(self, units: Columns | int, lanes: Columns, blocks: Mapping[int, Fraction]) -> Columns:
        """DSP blocks of so many units, of which one takes ``blocks`` by vector length."""
        parts = lcm(*(of_unit.denominator for of_unit in blocks.values()))
        of_unit = np.zeros(max(blocks) + 1, np.int64)
        of_unit[list(blocks)] = [int(parts * fraction) for fraction in blocks.values()]
        whole: Columns = -(-units * of_unit[lanes] // parts)
        return whole

    @property
    def _bits(self) -> int:
        return self.contraction.type.bits

    @property
    def _fabric(self) -> Fabric | None:
        return self.device.fabric

    @property
    def _free_words(self) -> int:
        """The depth of a FIFO up to which it takes no RAM block."""
        return self._fabric.logic_words if self._fabric else 0

    @property
    def _burst(self) -> int:
        return self._fabric.burst_words if self._fabric else 0

    def _ram(self, words: Columns, bits: Columns) -> Columns:
        """RAM blocks of memories with so many words; see ``Fabric.ram_cost``."""
        if self._fabric is None:
            return np.zeros_like(words)
        shapes = self._fabric.ram_shapes
        costs = [-(-words // deep) * -(-bits // wide) for deep, wide in shapes]
        return np.where(words <= self._fabric.logic_words, 0, np.minimum.reduce(costs))

    def least_blocks(self) -> Budget:
        """The fewest DSP blocks, and the fewest RAM blocks, of any design of a single PE."""
        ones = np.ones((len(self.dsp), len(self.contraction.outputs)), np.int64)
        shapes = Shapes(pes=ones, tiles=ones, lanes=np.array(list(self.dsp)))
        direct = single_pe(self.contraction, 1)
        free = replace(self, budget=Budget(dsp=None, ram=None))
        costs = free.costs(shapes, Ways(feeds=direct.feeds, drain=direct.drain))
        return Budget(dsp=int(costs.dsp.min()), ram=int(costs.ram.min()))

    # points

    def ways(self) -> Iterator[Ways]:
        """All ways for operands and results."""
        for feeds in product(Feed, repeat=len(self.contraction.operands)):
            for drain in Drain:
                yield Ways(feeds=feeds, drain=drain)

    def point(self, shapes: Shapes, row: int, ways: Ways) -> Point:
        """One row of the shapes as a point."""
        pes = shapes.pes[row].tolist()
        outputs = self.contraction.outputs
        depth = int(self._depth(ways, shapes.tiles[row].prod()))
        if ways.drain is Drain.GATHERED and not self.contraction.initial:
            depth = 0
        return Point(
            rows=tuple((o.name, n) for o, n in zip(outputs, pes, strict=True) if n > 1),
            tiles=tuple(shapes.tiles[row].tolist()),
            lanes=int(shapes.lanes[row]),
            feeds=ways.feeds,
            drain=ways.drain,
            depth=depth if depth > DEFAULT_CAPACITY else 0,
        )


def single_pe(contraction: Contraction, lanes: int) -> Point:
    """The design without an array of PEs."""
    return Point(
        rows=(),
        tiles=(1,) * len(contraction.outputs),
        lanes=lanes,
        feeds=(Feed.DIRECT,) * len(contraction.operands),
        drain=Drain.STORED,
    )


def smallest_tiles(extent: int) -> list[int]:
    """For each number of blocks the smallest tile that covers the extent, in rising order."""
    return sorted({ceil(extent / blocks) for blocks in range(1, extent + 1)})


def depth(expr: Expr, device: Device) -> int:
    """Cycles from the operands of an expression to its value."""
    latency = device.latency_of
    if isinstance(expr, Read):
        return 0
    below = [depth(child, device) for child in children(expr) if isinstance(child, Expr)]
    return latency(expr) + max(below, default=0)


def in_words(contraction: Contraction) -> str:
    """The space of a contraction: what is in it, and what is left out."""
    outputs = ", ".join(loop.name for loop in contraction.outputs)
    parts, missing = [], ["skewed space-time maps", "blocks in another order"]
    if outputs:
        parts.append(f"one or two of {outputs} as PEs, any number of them")
        parts.append(
            f"along each of {outputs} the smallest tile for each number of blocks, up to "
            f"{MOST_RESULTS:,} results of a PE, every second one where one array of PEs has more "
            f"than {MOST_TILES:,} of them"
        )
    if contraction.vector_loop is not None:
        parts.append(f"vectors of {', '.join(map(str, LANES))} along {contraction.vector_loop}")
    if contraction.operands:
        operands = ", ".join(operand.name for operand in contraction.operands)
        parts.append(
            f"{operands}: each loaded by each PE, forwarded from boundary PEs, or streamed once "
            "for each tile and buffered, from one loader or one for each feeder"
        )
    parts.append(
        "results gathered, or stored by each PE through a FIFO that takes no RAM block or holds a "
        "tile"
    )
    if contraction.reductions:
        missing.insert(0, "reductions in space")
        missing.append(f"buffers for more than one step of {contraction.reductions[-1].name}")
    missing.append("other depths of FIFOs")
    return f"{'; '.join(parts)}. Not in it: {', '.join(missing)}."
