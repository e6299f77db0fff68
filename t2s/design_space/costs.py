"""What points cost: their blocks, exactly, and a lower bound on their cycles.

Each bound counts what one unit has to do, so none of them is above the true cycles:

* PEs: a step for each block, each step of the reduction and each result of the tile, and at least
  the latency of the adder for a tile; before the first step the first buffers have to be filled and
  the operands have to reach the last PE; after the last one the term, the sum and the store follow;
  along a reduction in space a sum passes all PEs, one addition after the other;
* the stream of each buffered operand, and that of gathered results, a token in a cycle;
* all bytes that are loaded and stored, by the bandwidth of the memory, and those of a unit by its
  own; those of the results of a block once more, which leave in the last step of the reduction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, lcm
from typing import Any

import numpy as np

from t2s.core.expr import Expr, conjunction, index_names
from t2s.core.intervals import linear_form
from t2s.design_space.columns import (
    Budget,
    Columns,
    Costs,
    Datapath,
    DrainCosts,
    LoadCosts,
    Nest,
    Shapes,
    Ways,
    counts_of,
    step_of,
)
from t2s.design_space.contraction import Contraction, SearchedLoop, SearchedOperand
from t2s.design_space.point import Drain, Feed, passed_along
from t2s.graph.ports import LARGEST_WORD
from t2s.simulator.devices import Device, Fabric
from t2s.spatial.analysis.capacity import DEFAULT_CAPACITY

_ROOM_OF_GATHERED = 8
"""Results of the PE beside the unloader that channels hold, beyond those in its datapath."""


@dataclass(frozen=True, kw_only=True)
class PointCosts:
    """The costs of designs of a contraction on a device; ``datapaths`` by vector length."""

    contraction: Contraction
    device: Device
    budget: Budget
    datapaths: Mapping[int, Datapath]

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
        left = self._drain(nest, ways, skew)
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
        full = np.maximum.reduce([fill + steps, *(load.streamed for load in of_buffers)])
        last = np.maximum.reduce([full, *(each + skew for each in (first, *others))])
        computed = np.maximum.reduce([first + left.tail, last + left.hops, left.streamed])
        with_first = of_first + np.maximum.reduce([full, first, *others])
        bound = nest.after + np.maximum(latency + computed, with_first)
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

    def steps_of_block(self, shapes: Shapes) -> Columns:
        """The cycles that all PEs together take for a block of results."""
        nest = self.nest(shapes)
        cycles: Columns = nest.array * nest.sums * nest.step
        return cycles

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
        port = self._port(nest, operand, none + 1 if feed is Feed.BUFFERED else own)
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
            fill = np.maximum(fill, (buffered - 1) * port + 1)
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
        busy = np.maximum(0, -(-tokens // units) - 1)
        busy = busy * np.maximum(port, self._unit_cycles(widest))
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

    def _port(self, nest: Nest, operand: SearchedOperand, own: Columns) -> Columns:
        """The least interval of what loads an operand, if a tensor has one port for all PEs.

        PEs that load the same element share the access, and so may those along the last loop in
        space if their elements follow on one another.
        """
        linear = all(linear_form(index) is not None for index in operand.indices)
        if (
            not self.device.port_per_tensor
            or not (operand.stored and linear)
            or operand.condition is not None
        ):
            return np.ones_like(own)
        along = self.contraction.vector_loop
        moved = along in operand.varies and along not in operand.adjacent  # by the host, if vectors
        loops = self.contraction.loops_in_space
        adjacent = np.array([loop.name in operand.adjacent for loop in loops], bool)
        pes = np.where([loop.name in operand.varies for loop in loops], nest.pes, 1)
        if not operand.distinct:  # as of a filter: those along one loop are
            own = np.minimum(own, pes.max(axis=1, initial=1))
        width = self._of_loads(nest, operand, "widest")
        adjacent = adjacent | (moved & (nest.lanes > 1))[:, np.newaxis]
        return self._accesses(own, pes, adjacent, width)

    def _accesses(self, units: Columns, pes: Columns, adjacent: Any, width: Columns) -> Columns:
        """The accesses of so many PEs, of which some along one loop in space share a word."""
        shared = np.where(adjacent, pes & -pes, 1).max(axis=1, initial=1)
        shared = np.maximum(1, np.minimum(shared, LARGEST_WORD // width))
        found: Columns = -(-units // shared)
        return found

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

    def _drain(self, nest: Nest, ways: Ways, skew: Columns) -> DrainCosts:
        """What it costs to store results."""
        drain = ways.drain
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
            interval = self._unit_cycles(width)
            # without those FIFOs PEs wait for memory
            hops = np.where(pes > 1, pes, 0)
            # words that start where operands do leave at the last PE as its result is ready
            names = [loop.name for loop in self.contraction.outputs]
            passed = [passed_along(name, self.contraction, ways.feeds) for name in names]
            last = np.array([name in self.contraction.stored[-1:] for name in names], bool)
            hops = np.where((vector > 1)[:, np.newaxis] & last & passed & (pes > 1), 1, hops)
            latency = self._of_datapath(nest.lanes, lambda each: each.latency)
            late = np.maximum(0, held - latency - _ROOM_OF_GATHERED)
            stalls = np.maximum(self._moving(late * width, width), (late - 1) * interval)
            stalls = np.where(waits | (late == 0), 0, stalls - held)
            return DrainCosts(
                bytes=stored * nest.bytes,
                widest=width,
                lines=self._lines(stored // vector, width, np.ones_like(array)),
                tail=np.maximum(0, (array * held // vector - 1) * interval + 1 - held),
                stalls=np.maximum(0, stalls),
                streamed=(stored // vector - 1) * interval + 1,
                hops=hops.sum(axis=1),
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
        port = self._stores(nest, array)
        leaving = np.maximum(self._moving(array * held * width, width), (held - 1) * port + 1)
        stalls = np.maximum(self._moving(late * array * width, width), (late - 1) * port)
        stalls = stalls - held - 4 * skew
        every = np.ones(len(self.contraction.outputs), bool)
        run = self._run(nest, every, frozenset(filter(None, self.contraction.stored[-1:])), False)
        return DrainCosts(
            bytes=stored * width,
            widest=width,
            lines=self._lines(stored, width, run),
            tail=np.maximum(0, leaving - held),
            stalls=np.maximum(0, stalls),
            streamed=(stored // array - 1) * port,
            hops=np.zeros_like(array),
            ram=ram,
            legal=legal,
        )

    def _stores(self, nest: Nest, array: Columns) -> Columns:
        """The least interval of PEs that store results, if a tensor has one port for all PEs."""
        if not self.device.port_per_tensor:
            return np.zeros_like(array)
        pes = self.of_outputs(nest.pes)
        last = self.contraction.stored[-1:]
        adjacent = np.array([loop.name in last for loop in self.contraction.outputs], bool)
        return self._accesses(array, pes, np.broadcast_to(adjacent, pes.shape), nest.bytes)

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
