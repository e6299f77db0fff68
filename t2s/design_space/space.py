"""The space of designs of a contraction within a budget, with a lower bound for each of them.

A *shape* is the array of PEs, the tile of a PE and the vector length; a *point* is a shape with a
way for each operand and for the results (``point.py``); a *family* is all points that differ in
their tiles only.  They are columns of numbers, so that hundreds of thousands of them are bounded in
a second.

**The space.**  One or two output loops in space, with any number of PEs; along each output loop
every tile that is the smallest one for its number of blocks, so that tiles need not divide; vectors
of a power of two along the innermost reduction, or along adjacent results if nothing is reduced;
each operand loaded by each PE, or forwarded from boundary PEs, or streamed once for each tile and
buffered, from one loader or from one for each feeder; results gathered, or stored by each PE
through a FIFO that takes no RAM block or holds a tile.
Not in it: reductions in space, skewed space-time maps, blocks in another order than the
definition's, buffers for more than one step of the reduction, other depths of FIFOs.

**Bounds.**  Each counts what one unit has to do, so none of them is above the true cycles:

* PEs: a step for each block, each step of the reduction and each result of the tile, and at least
  the latency of the adder for a tile; before the first step the first buffers have to be filled and
  the operands have to reach the last PE; after the last one the term, the sum and the store follow;
* the stream of each buffered operand, and that of gathered results, a token in a cycle;
* all bytes that are loaded and stored, by the bandwidth of the memory, and those of a unit by its
  own; those of the results of a block once more, which leave in the last step of the reduction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, product
from math import ceil, lcm, prod
from typing import Any, overload

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
"""Tiles for one array of PEs; of more, those that pad the least along the loop with the most."""


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

    ``bound`` is a bound for all of them, ``estimate`` what the best of them may take.
    """

    pes: tuple[int, ...]
    lanes: int
    ways: Ways
    bound: int
    estimate: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Families(Sequence[Family]):
    """Families as columns, a row each, those with the least bound first.

    ``way`` is the place of a family among ``ways``.  ``dsp``, ``ram`` and ``bytes`` are the least
    of its designs.
    """

    ways: tuple[Ways, ...]
    way: Columns
    pes: Columns
    lanes: Columns
    bound: Columns
    estimate: np.ndarray[Any, np.dtype[np.float64]]
    dsp: Columns
    ram: Columns
    bytes: Columns

    def __len__(self) -> int:
        return len(self.bound)

    @overload
    def __getitem__(self, at: int) -> Family: ...

    @overload
    def __getitem__(self, at: slice) -> list[Family]: ...

    def __getitem__(self, at: int | slice) -> Family | list[Family]:
        if isinstance(at, slice):
            return [self[row] for row in range(*at.indices(len(self)))]
        return Family(
            pes=tuple(self.pes[at].tolist()),
            lanes=int(self.lanes[at]),
            ways=self.ways[self.way[at]],
            bound=int(self.bound[at]),
            estimate=float(self.estimate[at]),
        )


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Of points, a row each: lower bounds in cycles, blocks, bytes moved, and which are legal.

    ``bytes`` are those of the elements that are loaded and stored, ``traffic`` those of the lines
    of a DRAM that they are in, as far as a point tells.
    """

    bound: Columns
    dsp: Columns
    ram: Columns
    bytes: Columns
    traffic: Columns
    legal: np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, kw_only=True)
class Nest:
    """The loop nests of shapes.

    ``step`` has the cycles of a step of the reduction, ``held`` what a PE holds at once, ``bits``
    those of a result, ``after`` the cycles from the last step to the end.
    """

    pes: Columns
    tiles: Columns
    lanes: Columns
    array: Columns
    blocks: Columns
    results: Columns
    sums: Columns
    step: Columns
    held: Columns
    bits: Columns
    after: Columns
    any_tiles: bool


@dataclass(frozen=True, kw_only=True)
class _Load:
    """What an operand costs.

    Of its ``bytes`` a DRAM moves at least ``least``, and is expected to move ``lines``.
    Before the first step ``first`` bytes are loaded in ``fill`` cycles; the last PE begins ``skew``
    cycles after the first one; ``streamed`` are the cycles from the first load to the last step.
    """

    bytes: Columns
    least: Columns
    lines: Columns
    first: Columns
    fill: Columns
    skew: Columns
    streamed: Columns
    dsp: Columns
    ram: Columns
    legal: np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, kw_only=True)
class _Drain:
    """What results cost.

    The last ones leave ``tail`` cycles after they are computed; those of each block before stall
    the PEs for ``stalls`` cycles; ``streamed`` are the cycles in which they leave one by one.
    """

    bytes: Columns
    lines: Columns
    tail: Columns
    stalls: Columns
    streamed: Columns
    ram: Columns
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

    def families(self) -> Families:
        """All families within the budget, those with the least bound first."""
        ways = tuple(self.ways())
        parts: list[list[Any]] = []
        for lanes in self.dsp:
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
        return Shapes(pes=pes, tiles=-(-self._extents_of(lanes) // pes), lanes=lanes)

    def _pes(self, lanes: int) -> Columns:
        """PEs along each output loop, a row for each array."""
        extents = self._extents(lanes)
        most = prod(extents)
        if self.budget.dsp is not None and self.dsp[lanes].pe:
            most = min(most, int(self.budget.dsp / self.dsp[lanes].pe))
        arrays = [np.ones((min(most, 1), len(extents)), np.int64)]
        for at, extent in enumerate(extents):
            along = np.arange(2, min(extent, most) + 1)
            arrays.append(np.ones((len(along), len(extents)), np.int64))
            arrays[-1][:, at] = along
        for outer, inner in combinations(range(len(extents)), 2):
            along = np.arange(2, min(extents[outer], most) + 1)
            choices = np.maximum(np.minimum(extents[inner], most // along) - 1, 0)
            pes = np.ones((int(choices.sum()), len(extents)), np.int64)
            pes[:, outer] = np.repeat(along, choices)
            pes[:, inner] = np.arange(len(pes)) - np.repeat(choices.cumsum() - choices, choices) + 2
            arrays.append(pes)
        return np.concatenate(arrays)

    def _extents(self, lanes: int) -> list[int]:
        """The extents of the output loops, in vectors along the loop that lanes are taken from."""
        along = self.contraction.vector_loop
        return [
            ceil(loop.extent / lanes) if loop.name == along else loop.extent
            for loop in self.contraction.outputs
        ]

    def shapes(self, family: Family) -> Shapes:
        """The array of a family with every tile."""
        extents = [
            ceil(n / along)
            for n, along in zip(self._extents(family.lanes), family.pes, strict=True)
        ]
        choices = [smallest_tiles(extent) for extent in extents]
        while prod(map(len, choices)) > MOST_TILES:
            at = max(range(len(choices)), key=lambda at: len(choices[at]))
            choices[at].remove(max(choices[at], key=lambda tile: (-extents[at] % tile, tile)))
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
        nest = self.nest(shapes, of_family=of_family)
        feeds = zip(self.contraction.operands, ways.feeds, strict=True)
        loads = [self._load(nest, operand, feed) for operand, feed in feeds]
        loads += [self._initial_load(nest, operand) for operand in self.contraction.initial]
        none = np.zeros_like(nest.results)
        skew = np.maximum.reduce([none, *(load.skew for load in loads)])
        left = self._drain(nest, ways.drain, skew)
        loaded = sum((load.bytes for load in loads), none)
        moved = loaded + left.bytes
        fill = np.maximum.reduce([none, *(load.fill for load in loads)])
        fill = np.maximum(fill, self._moving(sum((load.first for load in loads), none)))
        computed = fill + (nest.blocks * nest.sums - 1) * nest.step + nest.results
        computed = computed + (nest.blocks - 1) * left.stalls
        computed = np.maximum.reduce([computed, *(load.streamed for load in loads)])
        # the first PE sends its last results while those behind it still compute theirs
        computed = np.maximum(computed + np.maximum(skew, left.tail), left.streamed)
        bound = self._latency_of_loads + nest.after + np.maximum(computed, self._moving(loaded))
        bound = np.maximum(bound, self._moving(moved) + self._latency_of_stores)
        if self.device.memory is not None:
            least = sum((load.least for load in loads), left.bytes)
            bound = np.maximum(bound, self._moving_lines(least))
        pe = self._dsp(nest.array, nest.lanes, {n: each.pe for n, each in self.dsp.items()})
        dsp = sum((load.dsp for load in loads), pe)
        ram = sum((load.ram for load in loads), left.ram)
        if self.contraction.reductions:
            ram = ram + nest.array * self._ram(nest.held, nest.bits)
        legal = np.logical_and.reduce([left.legal, *(load.legal for load in loads)])
        if self.budget.dsp is not None:
            legal &= dsp <= self.budget.dsp
        if self.budget.ram is not None:
            legal &= ram <= self.budget.ram
        traffic = sum((load.lines for load in loads), left.lines)
        return Costs(bound=bound, dsp=dsp, ram=ram, bytes=moved, traffic=traffic, legal=legal)

    def costs_of(self, family: Family, shapes: Shapes) -> Costs:
        """The costs of points of a family."""
        costs = self.costs(shapes, family.ways)
        return replace(costs, bound=np.maximum(costs.bound, family.bound))

    def nest(self, shapes: Shapes, *, of_family: bool = False) -> Nest:
        """The loop nests of shapes."""
        lanes = shapes.lanes
        # padding is computed, loaded and stored as all else
        blocks = -(-self._extents_of(lanes) // (shapes.pes * shapes.tiles))
        results = shapes.tiles.prod(axis=1)
        return Nest(
            pes=shapes.pes,
            tiles=shapes.tiles,
            lanes=lanes,
            array=shapes.pes.prod(axis=1),
            blocks=blocks.prod(axis=1),
            results=results,
            sums=self._sums(lanes),
            step=np.maximum(results, max(1, self._latency_of_sums)),
            held=np.ones_like(results) if of_family else results,
            bits=self._bits * self._results_of_vector(lanes),
            after=self._latency_after(lanes),
            any_tiles=of_family,
        )

    def _load(self, nest: Nest, operand: SearchedOperand, feed: Feed) -> _Load:
        """What it costs to bring an operand to the PEs."""
        varies = np.array([loop.name in operand.varies for loop in self.contraction.outputs], bool)
        own = np.where(varies, nest.pes, 1).prod(axis=1)  # PEs with elements of their own
        bits = self._vector(operand, nest.lanes) * operand.type.bits
        busy = self._unit_cycles(bits // 8)
        none = np.zeros_like(own)
        kept = np.where(varies, nest.tiles, 1).prod(axis=1)
        steps = nest.blocks * nest.results * nest.sums
        match feed:
            case Feed.DIRECT:
                units, tokens, legal = nest.array, steps * nest.array, np.ones(len(own), bool)
            case Feed.FORWARDED:
                units, tokens, legal = own, steps * own, own < nest.array
        if feed.buffers:
            units = own if feed is Feed.BUFFERED_APART else np.ones_like(own)
            streams = self._sums_of(operand, nest.lanes)
            tokens = nest.blocks * kept * own * streams
            legal = self._reuses(operand, nest.results, kept) | nest.any_tiles
            legal &= (own > 1) | (feed is Feed.BUFFERED)
            buffered = np.minimum(kept, nest.held)
            # the last buffer is full before the steps that use it
            least_step = np.maximum(nest.held, self._latency_of_sums)
            steps_after = (nest.sums // streams - 1) * least_step + nest.held
        ram = units * self._ram(np.full_like(own, self._burst), bits)
        blocks = {n: each.loader.get(operand.name, Fraction(0)) for n, each in self.dsp.items()}
        owners = nest.array if feed is Feed.DIRECT else own
        run = self._run(nest, varies, operand.adjacent, feed is Feed.BUFFERED)
        return _Load(
            bytes=tokens * bits // 8,
            least=self._least_moved(nest, operand, owners * kept, units),
            lines=self._lines(tokens, bits // 8, run) if operand.stored else tokens * bits // 8,
            first=buffered * own * bits // 8 if feed.buffers else none,
            fill=buffered * own // units if feed.buffers else none,
            skew=none if feed is Feed.DIRECT else np.where(varies, 0, nest.pes - 1).sum(axis=1),
            streamed=tokens // units * busy + (steps_after if feed.buffers else 0),
            dsp=none if operand.stored else self._dsp(units, nest.lanes, blocks),
            ram=ram + own * self._ram(2 * buffered, bits) if feed.buffers else ram,
            legal=legal,
        )

    def _least_moved(
        self, nest: Nest, operand: SearchedOperand, elements: Columns, units: Columns
    ) -> Columns:
        """The least bytes that a DRAM moves for an operand.

        A block has so many ``elements`` for each iteration of the reductions.  A unit does not ask
        again for the line that it has, and where reads join others units share lines.
        """
        memory = self.device.memory
        if memory is None or not operand.distinct or memory.open_bursts:
            return np.zeros_like(elements)
        vector = self._vector(operand, nest.lanes)
        for loop in self.contraction.reductions:
            if loop.name in operand.varies:
                along = loop.name == self.contraction.vector_loop
                elements = elements * -(-loop.extent // (vector if along else 1))
        of_block = elements * vector * operand.type.bits // 8 - units * memory.line_bytes
        moved: Columns = nest.blocks * np.maximum(0, of_block)
        return moved

    def _run(self, nest: Nest, varies: Any, adjacent: frozenset[str], by_one: bool) -> Columns:
        """Tokens of a unit in a row that are adjacent in memory; ``by_one`` unit for all PEs."""
        run, open_ = np.ones_like(nest.array), np.ones(len(nest.array), bool)
        for at in reversed(range(len(self.contraction.outputs))):
            if varies[at]:
                pes = nest.pes[:, at]
                count = nest.tiles[:, at] * (pes if by_one else 1)
                if self.contraction.outputs[at].name in adjacent:
                    run = np.where(open_ & (by_one | (pes == 1)), count, run)
                open_ = open_ & (count == 1)
        innermost = self.contraction.reductions[-1:]
        if any(loop.name in adjacent for loop in innermost):
            run = np.where(open_, self._sums(nest.lanes), run)
        return run

    def _lines(self, tokens: Columns, width: Columns, run: Columns) -> Columns:
        """Bytes of the lines of tokens, of which so many in a ``run`` are adjacent."""
        if self.device.memory is None:
            return tokens * width
        line = self.device.memory.line_bytes
        lines: Columns = tokens * -(-run * width // line) * line // run
        return lines

    def _initial_load(self, nest: Nest, operand: SearchedOperand) -> _Load:
        """What it costs to load what reductions start from: each PE does for each result."""
        bits = self._vector(operand, nest.lanes) * operand.type.bits
        none = np.zeros_like(nest.array)
        moved = nest.blocks * nest.results * nest.array * bits // 8
        return _Load(
            bytes=moved,
            least=none,
            lines=moved,
            first=none,
            fill=none,
            skew=none,
            streamed=none,
            dsp=none,
            ram=nest.array * self._ram(np.full_like(none, self._burst), bits),
            legal=np.ones(len(none), bool),
        )

    def _drain(self, nest: Nest, drain: Drain, skew: Columns) -> _Drain:
        """What it costs to store results."""
        array, held, bits = nest.array, nest.held, nest.bits
        stored = nest.blocks * nest.results * array
        burst = np.full_like(array, self._burst)
        if drain is Drain.GATHERED:
            vector = self._stored_vector(nest.pes)
            # one row of PEs whose results leave as a vector needs no FIFOs for PEs that wait
            waits = (np.sum(nest.pes > 1, axis=1) > 1) | (vector == 1)
            waits &= len(self.contraction.reductions) > 0
            waiting = self._ram(np.where(waits, held + 1, 0), bits)
            return _Drain(
                bytes=stored * bits // 8,
                lines=self._lines(stored // vector, vector * self._bits // 8, np.ones_like(array)),
                tail=np.maximum(0, array * held // vector - held),
                stalls=np.zeros_like(array),
                streamed=stored // vector,
                ram=array * waiting + self._ram(burst, vector * self._bits),
                legal=(array > 1) & (bits == self._bits),
            )
        ram, legal = array * self._ram(burst, bits), np.ones(len(array), bool)
        if drain is Drain.QUEUED:
            ends = 1 + len(self.contraction.initial)  # FIFOs at both ends of a reduction
            ram = ram + ends * array * self._ram(held, bits)
            legal = (nest.results > self._free_words) | nest.any_tiles
        # results of a tile leave in one step, more of them than memory takes
        late = np.maximum(0, held - self._depth(drain, held) - nest.after)
        stalls = self._moving(late * array * bits // 8) - held - 4 * skew
        every = np.ones(len(self.contraction.outputs), bool)
        run = self._run(nest, every, frozenset(filter(None, self.contraction.stored[-1:])), False)
        return _Drain(
            bytes=stored * bits // 8,
            lines=self._lines(stored, bits // 8, run),
            tail=np.maximum(0, self._moving(array * held * bits // 8) - held),
            stalls=np.maximum(0, stalls),
            streamed=np.zeros_like(array),
            ram=ram,
            legal=legal,
        )

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
        names: list[str | None] = [loop.name for loop in self.contraction.outputs]
        last = self.contraction.stored[-1] if self.contraction.stored else None
        if last not in names:
            return np.ones(len(pes), np.int64)
        at = names.index(last)
        others = pes[:, at + 1 :].prod(axis=1)
        return np.where(others == 1, pes[:, at], 1)

    def _unit_cycles(self, width: Columns) -> Columns:
        most = self.device.bytes_per_cycle_per_unit
        return np.ones_like(width) if most is None else -(-width // most)

    def _moving(self, moved: Columns) -> Columns:
        """The least cycles for so many bytes; 0 if the bandwidth is not constant."""
        bandwidth = self.device.memory_bytes_per_cycle
        if bandwidth is None or self.device.memory is not None:
            return np.zeros_like(moved)
        cycles: Columns = -(-moved * bandwidth.denominator // bandwidth.numerator)
        return cycles

    def _moving_lines(self, moved: Columns) -> Columns:
        """The least cycles in which a DRAM moves so many bytes, without writes that it holds."""
        memory = self.device.memory
        if memory is None:
            return np.zeros_like(moved)
        held = memory.write_queue * memory.channels * memory.burst_bytes
        peak = memory.peak_bytes_per_second / self.device.clock_hz
        moved = np.maximum(0, moved - held)
        cycles: Columns = moved * peak.denominator // peak.numerator
        return cycles

    def _depth(self, drain: Drain, results: Columns) -> Columns:
        """The FIFO from a PE to its store unit, in results."""
        if drain is Drain.QUEUED:
            return results
        return np.minimum(results, self._free_words)

    def estimate(self, costs: Costs) -> Any:
        """Cycles to expect: the busier memory is, the more PEs wait for it."""
        moving = self._moving(costs.traffic) + self._moving_lines(costs.traffic)
        busy = moving / np.maximum(1, costs.bound)
        return np.maximum(costs.bound, moving) * (1 + np.minimum(busy, 1) ** 6 / 3)

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
        depth = int(self._depth(ways.drain, shapes.tiles[row].prod()))
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
            f"{MOST_RESULTS:,} results of a PE; where one array of PEs has more than "
            f"{MOST_TILES:,} of them, those that pad the least"
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
