"""The space of designs of a contraction within a budget, with a lower bound for each of them.

A *shape* is the array of PEs, the tile of a PE and the vector length; a *point* is a shape with a
way for each operand and for the results (``point.py``); a *family* is all points that differ in
their tiles only.  They are columns of numbers, so that hundreds of thousands of them are bounded in
a second.

**The space.**  One or two output loops in space, with any number of PEs, or one reduction, alone or
beside an output loop, with the fewest PEs for each number of its steps; along each output loop
every tile that is the smallest one for its number of blocks, so that tiles need not divide; vectors
of a power of two along the innermost reduction, or along adjacent results if nothing is reduced;
each operand loaded by each PE, or forwarded from boundary PEs, or streamed once for each tile and
buffered, from one loader or from one for each feeder; results gathered, or stored by each PE
through a FIFO that takes no RAM block or holds a tile.  ``in_words`` has what is not in it.

**Bounds.**  Each counts what one unit has to do, so none of them is above the true cycles:

* PEs: a step for each block, each step of the reduction and each result of the tile, and at least
  the latency of the adder for a tile; before the first step the first buffers have to be filled and
  the operands have to reach the last PE; after the last one the term, the sum and the store follow;
  along a reduction in space a sum passes all PEs, one addition after the other;
* the stream of each buffered operand, and that of gathered results, a token in a cycle;
* all bytes that are loaded and stored, by the bandwidth of the memory, and those of a unit by its
  own; those of the results of a block once more, which leave in the last step of the reduction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
from math import ceil, lcm, prod
from typing import Any

import numpy as np

from t2s.core.expr import Expr, conjunction, index_names
from t2s.design_space.columns import (
    Budget,
    Columns,
    Costs,
    Datapath,
    DrainCosts,
    Families,
    Family,
    LoadCosts,
    Nest,
    Shapes,
    Ways,
    counts_of,
    smallest_tiles,
    step_of,
)
from t2s.design_space.contraction import Contraction, SearchedLoop, SearchedOperand
from t2s.design_space.point import Drain, Feed, Point
from t2s.simulator.devices import Device, Fabric
from t2s.spatial.analysis.capacity import DEFAULT_CAPACITY

LANES = (1, 2, 4, 8, 16)
"""Vector lengths that memory units and vector types of the backends have."""

MOST_RESULTS = 1 << 13
"""The most results of a PE: more take as many RAM blocks as PEs could use better."""

MOST_TILES = 1 << 12
"""Tiles for one array of PEs; of more, those that pad the least along the loop with the most."""


_ROOM_OF_GATHERED = 8
"""Results of the PE beside the unloader that channels hold, beyond those in its datapath."""

MOST_APART = 3
"""Operands of which each may reach the PEs in a way of its own, wherever it varies."""

MOST_WAYS = 1 << 8
"""Ways for the operands together."""


@dataclass(frozen=True, kw_only=True)
class Space:
    """The designs of a contraction on a device; ``datapaths`` by vector length."""

    contraction: Contraction
    device: Device
    budget: Budget
    datapaths: Mapping[int, Datapath]

    # arrays and shapes

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

    def of_outputs(self, columns: Columns) -> Columns:
        """Of columns for loops in space those of output loops."""
        return columns[:, : len(self.contraction.outputs)]

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

    # bounds

    def extents_of(self, lanes: Columns) -> Columns:
        """The extents of the output loops, a column each, as ``_extents``."""
        along = self.contraction.vector_loop
        columns = [
            -(-loop.extent // lanes) if loop.name == along else np.full_like(lanes, loop.extent)
            for loop in self.contraction.outputs
        ]
        return np.stack(columns, axis=1) if columns else np.ones((len(lanes), 0), np.int64)

    def steps_of(self, lanes: Columns, pes: Columns) -> Columns:
        """The steps of each reduction in time, a column each."""
        along = self.contraction.vector_loop
        vectors = [
            -(-loop.extent // lanes) if loop.name == along else np.full_like(lanes, loop.extent)
            for loop in self.contraction.reductions
        ]
        if not vectors:
            return np.ones((len(lanes), 0), np.int64)
        steps: Columns = -(-np.stack(vectors, axis=1) // self._of_reductions(pes))
        return steps

    def _of_reductions(self, pes: Columns) -> Columns:
        """PEs along each reduction, a column each."""
        columns = {loop.name: at for at, loop in enumerate(self.contraction.loops_in_space)}
        found = np.ones((len(pes), len(self.contraction.reductions)), np.int64)
        for at, loop in enumerate(self.contraction.reductions):
            if loop.name in columns:
                found[:, at] = pes[:, columns[loop.name]]
        return found

    @property
    def _latency_of_loads(self) -> int:
        """The least one; a DRAM may have the row open, and its latency is not a constant."""
        return self.device.load_latency if self.device.memory is None else 0

    @cached_property
    def _latency_before_steps(self) -> tuple[int, int]:
        """How long all PEs, and the one that computes the first results, wait for loads at least.

        Nothing is loaded for constants, and for the first step perhaps nothing where all that it
        reads is read under conditions.
        """
        latency = self._latency_of_loads
        operands = (*self.contraction.operands, *self.contraction.initial)
        conditions = [conjunction(operand.condition, operand.loaded) for operand in operands]
        if None in conditions:
            return latency, latency
        first = [(loop, 1) for loop in (*self.contraction.outputs, *self.contraction.reductions)]
        tables = [self._counts(each, first) for each in conditions if each is not None]
        needed = any(table is not None and int(table.flat[-1]) for table in tables)
        return 0, latency if needed else 0

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
        widest = np.maximum.reduce([none, *(load.widest for load in loads)])
        stalls = np.maximum.reduce([none, *(load.stalls for load in loads)])
        steps = nest.blocks * (nest.sums - 1) * nest.step + stalls
        steps = steps + (nest.blocks - 1) * (nest.next_block + left.stalls) + nest.results

        def filled(cycles: list[Columns], moved: Columns) -> Any:
            return np.maximum.reduce([nest.through, *cycles, self._moving(moved, widest)])

        fill = filled([load.fill for load in loads], sum((load.first for load in loads), none))
        begun = filled([load.begun for load in loads], sum((load.alone for load in loads), none))
        buffers = [feed.buffers for feed in ways.feeds] + [False] * len(self.contraction.initial)
        of_buffers = [load for load, full in zip(loads, buffers, strict=True) if full]
        others = [load.streamed for load, full in zip(loads, buffers, strict=True) if not full]
        latency, of_first = self._latency_before_steps
        # the first PE begins and ends before those behind it
        behind = [load.streamed - load.fill + load.begun for load in of_buffers]
        first = np.maximum.reduce([begun + steps, *behind])
        last = np.maximum.reduce([fill + steps, *(load.streamed for load in of_buffers)])
        last = np.maximum.reduce([last, *(each + skew for each in (first, *others))])
        computed = np.maximum.reduce([first + left.tail, last + left.hops, left.streamed])
        of_first = of_first + np.maximum.reduce([last - skew, first, *others])
        bound = nest.after + np.maximum(latency + computed, of_first)
        loading = self._latency_of_loads + self._moving(loaded, widest)
        bound = np.maximum(bound, np.where(loaded > 0, nest.after + loading, 0))
        moving = self._moving(moved, np.maximum(widest, left.widest))
        bound = np.maximum(bound, moving + self._latency_of_stores)
        if self.device.memory is not None:
            least = sum((load.least for load in loads), left.bytes)
            bound = np.maximum(bound, self._moving_lines(least))
        exact = self._dsp(
            nest.array, nest.lanes, {n: each.pe for n, each in self.datapaths.items()}
        )
        masked = {n: each.padded for n, each in self.datapaths.items()}
        pe = np.where(nest.masks, self._dsp(nest.array, nest.lanes, masked), exact)
        dsp = sum((load.dsp for load in loads), pe)
        ram = sum((load.ram for load in loads), left.ram)
        if self.contraction.reductions:
            ram = ram + self._ram_of_sums(nest)
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
        of_outputs = self.of_outputs(shapes.pes)
        blocks = -(-self.extents_of(lanes) // (of_outputs * shapes.tiles))
        results = shapes.tiles.prod(axis=1)
        array, ends = shapes.pes.prod(axis=1), of_outputs.prod(axis=1)
        steps = self.steps_of(lanes, shapes.pes)
        chain = array // ends
        # a PE of a chain sends a sum when its own term is in it, and a channel takes a cycle
        latency = self._of_datapath(lanes, lambda each: each.latency)
        carried = self._of_datapath(lanes, lambda each: each.carried)
        carried = np.where(chain > 1, chain * (latency + 1), carried)
        step = step_of(results, carried, chain)
        return Nest(
            pes=shapes.pes,
            tiles=shapes.tiles,
            lanes=lanes,
            padded=np.concatenate(
                [blocks * of_outputs * shapes.tiles, steps * self._of_reductions(shapes.pes)],
                axis=1,
            ),
            array=array,
            ends=ends,
            chain=chain,
            blocks=blocks.prod(axis=1),
            results=results,
            steps=steps,
            sums=steps.prod(axis=1),
            step=step,
            carried=carried,
            next_block=np.where(chain > 1, results, step),
            through=(chain - 1) * (latency + 1),
            held=np.ones_like(results) if of_family else results,
            bits=self._bits * self._results_of_vector(lanes),
            bytes=self.contraction.type.bytes * self._results_of_vector(lanes),
            after=latency + self._latency_of_stores,
            masks=self.steps_of(lanes, np.ones_like(shapes.pes)).prod(axis=1)
            < (steps * self._of_reductions(shapes.pes)).prod(axis=1),
            any_tiles=of_family,
        )

    def _load(self, nest: Nest, operand: SearchedOperand, feed: Feed) -> LoadCosts:
        """What it costs to bring an operand to the PEs."""
        loops = self.contraction.loops_in_space
        varies = np.array([loop.name in operand.varies for loop in loops], bool)
        outputs = varies[: len(self.contraction.outputs)]
        own = np.where(varies, nest.pes, 1).prod(axis=1)  # PEs with elements of their own
        bits = self._of_loads(nest, operand, "bits")
        width = self._of_loads(nest, operand, "bytes")
        widest = self._of_loads(nest, operand, "widest")
        none = np.zeros_like(own)
        kept = np.where(outputs, nest.tiles, 1).prod(axis=1)
        steps = nest.blocks * nest.results * nest.sums
        match feed:
            case Feed.DIRECT:
                units, tokens, legal = nest.array, steps * nest.array, np.ones(len(own), bool)
            case Feed.FORWARDED:
                units, tokens, legal = own, steps * own, own < nest.array
                legal &= ~self._differs(nest, operand)
        fill = begun = first = alone = after = none
        if feed.buffers:
            # from one loader, or from one for each PE along a reduction
            apart = np.where(varies, nest.pes, 1)[:, len(outputs) :].prod(axis=1)
            units = own if feed is Feed.BUFFERED_APART else apart
            streams = self.sums_of(operand, nest)
            tokens = nest.blocks * kept * own * streams
            legal = self._reuses(operand, nest.results, kept) | nest.any_tiles
            legal &= (own > apart) | (feed is Feed.BUFFERED)
            legal &= operand.condition is None
            buffered = np.minimum(kept, nest.held)
            chain = self._hops(nest, ~outputs) if feed is Feed.BUFFERED else none
            fill, begun = buffered * own // units + chain, (buffered - 1) * own // units + 1
            if operand.loaded is None:
                first, alone = buffered * own * width, ((buffered - 1) * own + 1) * width
            # the last buffer is full before the steps that use it
            least_step = step_of(nest.held, nest.carried, nest.chain)
            after = chain + (nest.sums // streams - 1) * least_step + nest.held - 1
        tokens = self._needed(nest, operand.condition, tokens)
        loaded = self._needed(nest, operand.loaded, tokens)
        moved = loaded * width
        ram = units * self._of_loads(nest, operand, "ram")
        blocks = {n: each.loads[operand.name].dsp for n, each in self.datapaths.items()}
        owners = nest.array if feed is Feed.DIRECT else own
        run = self._run(nest, outputs, operand.adjacent, feed is Feed.BUFFERED)
        busy = np.maximum(0, -(-tokens // units) - 1) * self._unit_cycles(widest)
        skewed = feed is not Feed.DIRECT and operand.condition is None
        return LoadCosts(
            bytes=moved,
            widest=widest,
            least=self._least_moved(nest, operand, owners * kept, units),
            lines=self._lines(tokens, width, run) if operand.stored else moved,
            first=first,
            fill=fill,
            alone=alone,
            begun=begun,
            skew=self._hops(nest, outputs) if skewed else none,
            streamed=busy + 1 + after,
            stalls=self._stalls(nest, operand, outputs, kept) if feed is Feed.BUFFERED else none,
            dsp=none if operand.stored else self._dsp(units, nest.lanes, blocks),
            ram=ram + own * self._ram(2 * buffered, bits) if feed.buffers else ram,
            legal=legal,
        )

    def _of_loads(self, nest: Nest, operand: SearchedOperand, what: str) -> Columns:
        """A number of what loads an operand, by vector length."""
        return self._of_datapath(nest.lanes, lambda each: getattr(each.loads[operand.name], what))

    def _of_datapath(self, lanes: Columns, number: Callable[[Datapath], int]) -> Columns:
        """A number of the datapath, by vector length."""
        of_lanes = np.zeros(max(self.datapaths) + 1, np.int64)
        of_lanes[list(self.datapaths)] = [number(each) for each in self.datapaths.values()]
        found: Columns = of_lanes[lanes]
        return found

    def _differs(self, nest: Nest, operand: SearchedOperand) -> Any:
        """Whether PEs that an operand is passed along need it in different iterations."""
        if operand.condition is None:
            return np.zeros(len(nest.lanes), bool)
        names = index_names(operand.condition) - operand.varies
        along = [loop.name in names for loop in self.contraction.loops_in_space]
        return (nest.pes[:, along] > 1).any(axis=1)

    def _needed(self, nest: Nest, condition: Expr | None, tokens: Columns) -> Columns:
        """Those of the tokens of all iterations for which a condition holds.

        None where that is not known: it depends on parameters, or on too many iterations.
        """
        if condition is None:
            return tokens
        loops = (*self.contraction.outputs, *self.contraction.reductions)
        # a block of PEs with their tiles has less than twice the iterations
        counts = self._counts(condition, [(loop, 2 * loop.extent) for loop in loops])
        if counts is None:
            return np.zeros_like(tokens)
        names = index_names(condition)
        places = tuple(nest.padded[:, at] for at, loop in enumerate(loops) if loop.name in names)
        found: Columns = tokens * counts[places] // np.prod(places, axis=0, dtype=np.int64)
        return found

    def _counts(self, condition: Expr, loops: Sequence[tuple[SearchedLoop, int]]) -> Columns | None:
        names = index_names(condition)
        ranges = [(loop.name, loop.minimum, most) for loop, most in loops if loop.name in names]
        return counts_of(condition, tuple(ranges))

    def _stalls(self, nest: Nest, operand: SearchedOperand, varies: Any, kept: Columns) -> Columns:
        """Cycles that feeders wait for tokens, where one stream is scattered along two loops.

        A feeder takes a token in each of the first firings of a step, and a chain of feeders gets
        one for each of the PEs that the distributor serves; what FIFOs hold is there before.
        """
        along = np.where(varies, self.of_outputs(nest.pes), 1)
        chains = np.where(along > 1, along, 0)
        last = chains.shape[1] - 1 - np.argmax(chains[:, ::-1] > 0, axis=1) if chains.size else 0
        served = along[np.arange(len(along)), last] if chains.size else np.ones_like(kept)
        tokens = kept * along.prod(axis=1) // served
        waited = np.maximum(0, tokens - 3) * (served - 1)
        slack = nest.step - nest.results
        stalls: Columns = np.where(
            (chains > 0).sum(axis=1) > 1,
            (nest.blocks * self.sums_of(operand, nest) - 1) * np.maximum(0, waited - slack),
            0,
        )
        return np.zeros_like(stalls) if nest.any_tiles else stalls

    def _hops(self, nest: Nest, varies: Any) -> Columns:
        """From the first to the last PE that share an element; ``chain`` has those of sums."""
        hops: Columns = np.where(varies, 0, self.of_outputs(nest.pes) - 1).sum(axis=1)
        return hops

    def _least_moved(
        self, nest: Nest, operand: SearchedOperand, elements: Columns, units: Columns
    ) -> Columns:
        """The least bytes that a DRAM moves for an operand.

        A block has so many ``elements`` for each iteration of the reductions.  A unit does not ask
        again for the line that it has, and where reads join others units share lines.
        """
        memory = self.device.memory
        known = operand.distinct and operand.loaded is None
        if memory is None or not known or memory.open_bursts:
            return np.zeros_like(elements)
        vector = self.vector_of(operand, nest.lanes)
        in_space = self._of_reductions(nest.pes)
        for at, loop in enumerate(self.contraction.reductions):
            if loop.name in operand.varies:  # PEs of a chain share its iterations
                along = loop.name == self.contraction.vector_loop
                elements = elements * -(-loop.extent // (vector if along else 1)) // in_space[:, at]
        of_block = elements * self._of_loads(nest, operand, "bytes") - units * memory.line_bytes
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
            run = np.where(open_, nest.sums, run)
        return run

    def _lines(self, tokens: Columns, width: Columns, run: Columns) -> Columns:
        """Bytes of the lines of tokens, of which so many in a ``run`` are adjacent."""
        if self.device.memory is None:
            return tokens * width
        line = self.device.memory.line_bytes
        lines: Columns = tokens * -(-run * width // line) * line // run
        return lines

    def _initial_load(self, nest: Nest, operand: SearchedOperand) -> LoadCosts:
        """What it costs to load what reductions start from: each PE does for each result."""
        none = np.zeros_like(nest.array)
        loaded = self._needed(nest, operand.loaded, nest.blocks * nest.results * nest.ends)
        moved = loaded * self._of_loads(nest, operand, "bytes")
        free = ("least", "first", "fill", "alone", "begun", "skew", "streamed", "stalls", "dsp")
        return LoadCosts(
            bytes=moved,
            widest=self._of_loads(nest, operand, "widest"),
            lines=moved,
            ram=nest.ends * self._of_loads(nest, operand, "ram"),
            legal=np.ones(len(none), bool),
            **dict.fromkeys(free, none),
        )

    def _drain(self, nest: Nest, drain: Drain, skew: Columns) -> DrainCosts:
        """What it costs to store results."""
        array, held, bits = nest.ends, nest.held, nest.bits
        pes = self.of_outputs(nest.pes)
        stored = nest.blocks * nest.results * array
        burst = np.full_like(array, self._burst)
        if drain is Drain.GATHERED:
            vector = self.stored_vector(nest.pes)
            # one row of PEs whose results leave as a vector needs no FIFOs for PEs that wait
            waits = (np.sum(pes > 1, axis=1) > 1) | (vector == 1)
            waits &= len(self.contraction.reductions) > 0
            waiting = self._ram(np.where(waits, held + 1, 0), bits)
            width = vector * self.contraction.type.bytes
            # without those FIFOs the PE beside the unloader waits: for memory, and for the first
            # result of the last PE, which starts later and whose results have to come back
            hops = np.where(pes > 1, pes - 1, 0).sum(axis=1)
            latency = self._of_datapath(nest.lanes, lambda each: each.latency)
            late = np.maximum(0, held - latency - _ROOM_OF_GATHERED)
            stalls = np.maximum(self._moving(late * width, width), late * self._unit_cycles(width))
            back = np.where(skew > 0, skew + hops + held - latency - _ROOM_OF_GATHERED, 0)
            stalls = np.where(waits | (late == 0), 0, np.maximum(stalls, back) - held)
            return DrainCosts(
                bytes=stored * nest.bytes,
                widest=width,
                lines=self._lines(stored // vector, width, np.ones_like(array)),
                tail=np.maximum(0, array * held // vector * self._unit_cycles(width) - held),
                stalls=np.maximum(0, stalls),
                streamed=stored // vector * self._unit_cycles(width),
                hops=np.where(pes > 1, pes, 0).sum(axis=1),
                ram=array * waiting + self._ram(burst, vector * self._bits),
                legal=(array > 1) & (bits == self._bits),
            )
        ram, legal = array * self._ram(burst, bits), np.ones(len(array), bool)
        if drain is Drain.QUEUED:
            # FIFOs at both ends of a reduction
            ends = 1 + sum(operand.stored for operand in self.contraction.initial)
            ram = ram + ends * array * self._ram(held, bits)
            legal = (nest.results > self._free_words) | nest.any_tiles
        # results of a tile leave in one step, more of them than memory takes
        late = np.maximum(0, held - self._depth(drain, held) - nest.after)
        width = nest.bytes
        stalls = self._moving(late * array * width, width) - held - 4 * skew
        every = np.ones(len(self.contraction.outputs), bool)
        run = self._run(nest, every, frozenset(filter(None, self.contraction.stored[-1:])), False)
        return DrainCosts(
            bytes=stored * width,
            widest=width,
            lines=self._lines(stored, width, run),
            tail=np.maximum(0, self._moving(array * held * width, width) - held),
            stalls=np.maximum(0, stalls),
            streamed=np.zeros_like(array),
            hops=np.zeros_like(array),
            ram=ram,
            legal=legal,
        )

    def _reuses(self, operand: SearchedOperand, results: Columns, kept: Columns) -> Any:
        """Whether a buffer sends what it has taken more than once."""
        innermost = self.contraction.reductions[-1:]
        if any(loop.name not in operand.varies for loop in innermost):
            return np.ones(len(kept), bool)
        return results > kept

    def sums_of(self, operand: SearchedOperand, nest: Nest) -> Columns:
        """Steps of the reductions for which a buffered operand is streamed."""
        loops = self.contraction.reductions
        outer = len(loops)
        while outer and loops[outer - 1].name not in operand.varies:
            outer -= 1
        steps: Columns = nest.steps[:, :outer].prod(axis=1)
        return steps

    def vector_of(self, operand: SearchedOperand, lanes: Columns) -> Columns:
        return lanes if self.contraction.vector_loop in operand.varies else np.ones_like(lanes)

    def _results_of_vector(self, lanes: Columns) -> Columns:
        """Results that a PE computes at once."""
        return np.ones_like(lanes) if self.contraction.reductions else lanes

    def stored_vector(self, pes: Columns) -> Columns:
        """Results in a word of the unloader: those along the last loop in space, if adjacent."""
        names: list[str | None] = [loop.name for loop in self.contraction.outputs]
        last = self.contraction.stored[-1] if self.contraction.stored else None
        if last not in names:
            return np.ones(len(pes), np.int64)
        at = names.index(last)
        others = self.of_outputs(pes)[:, at + 1 :].prod(axis=1)
        return np.where(others == 1, pes[:, at], 1)

    def _unit_cycles(self, width: Columns) -> Columns:
        most = self.device.bytes_per_cycle_per_unit
        return np.ones_like(width) if most is None else -(-width // most)

    def _moving(self, moved: Columns, last: Columns | int = 0) -> Columns:
        """The cycle in which so many bytes have moved; 0 if the bandwidth is not constant.

        Memory serves the ``last`` access as long as what is before it leaves any bandwidth.
        """
        bandwidth = self.device.memory_bytes_per_cycle
        if bandwidth is None or self.device.memory is not None:
            return np.zeros_like(moved)
        before = moved - last
        cycles = before * bandwidth.denominator // bandwidth.numerator + 1
        return np.where(before < 0, 0, cycles)

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
        return 1 if self.contraction.type.is_bool else self.contraction.type.bits

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

    def _ram_of_sums(self, nest: Nest) -> Columns:
        """RAM blocks of partial sums: those that each PE keeps, or that chains of PEs hand back."""
        kept = nest.array * self._ram(nest.held, nest.bits)
        handed_back = nest.ends * self._ram(nest.held + DEFAULT_CAPACITY, nest.bits)
        loops = (nest.steps > 1).sum(axis=1)
        return np.where(nest.chain > 1, loops * handed_back, kept)

    # points

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
