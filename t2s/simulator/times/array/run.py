"""A run of the array engine: the arena, the compiled code, and the counters at the end."""

from __future__ import annotations

import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np

from t2s.core.ops import Array
from t2s.llvm.compile import compile_when_new
from t2s.simulator.program.sim_program import SimProgram
from t2s.simulator.report.counters import Counts, Ending, Stuck, Tally, end_of_run
from t2s.simulator.times.array.emit import CLOCK_WORD, COUNTER_WORD, Stop, emit_run, key_of
from t2s.simulator.times.array.plan import (
    NOWHERE,
    POSITION,
    REMAINING,
    REST,
    ROW,
    WALK,
    LanePort,
    NodeMemory,
    NodePlan,
    PortMemory,
    capacities,
    counter_bits,
    layout_of,
    plan_of,
    pool_of,
)
from t2s.simulator.values.layout import aligned_zeros

_LONGEST_CALL = 1 << 30
"""Cycles that one call of the code may take: ticks have 32 bits."""

_SAMPLED = 512
"""Sampled bytes of the state, which distinguish most states."""

_WORD = (1 << 32) - 1


class ArrayMachine:
    """The state of a program; ``advance`` simulates, ``tally`` reports."""

    def __init__(self, program: SimProgram) -> None:
        self.program = program
        self.plan = plan_of(program)
        self.layout = layout_of(self.plan, counter_bits(self.plan))
        self.arena = aligned_zeros(self.layout.bytes)
        latencies = [channel.latency for channel in program.channels]
        intervals = [node.interval for node in self.plan.nodes]
        patience = max(latencies + intervals) + 2
        self._code = compile_when_new(
            key_of(self.plan, self.layout, patience),
            lambda: emit_run(self.plan, self.layout, patience),
            [Path(__file__).parent],
        )
        self.clock = self.layout.clock.view(self.arena)
        self.counters = self.layout.counters.view(self.arena)
        self.records = self.layout.pes.view(self.arena)
        self.last = np.zeros(program.pe_count, np.int64)
        walks = [self.plan.walks[order] for order in program.control.order_of.tolist()]
        starts = np.cumsum([0, *(len(walk.runs) for walk in self.plan.walks)])
        self._runs = np.concatenate([*(walk.runs for walk in self.plan.walks), np.zeros(1, int)])
        self._runs_of = starts[program.control.order_of]
        self.repeat = np.array([walk.repeat for walk in walks], np.int64)
        self.innermost = np.array([len(walk.axes) - 1 for walk in walks], np.int64)
        # by order, axis and step: iterations of the same class as ``step`` later, as (begin, end)
        self.alike: dict[tuple[int, int, int], tuple[int, int]] = {}
        self._collect_state()
        self._fill()

    @property
    def cycle(self) -> int:
        """The last cycle simulated."""
        return int(self.clock[CLOCK_WORD["base"]]) + int(self.counters[COUNTER_WORD["tick"]])

    @property
    def unfinished(self) -> int:
        """PEs with firings left."""
        return int(self.clock[CLOCK_WORD["unfinished"]])

    def advance(self, until: int) -> Stop:
        """Simulate at most to the end of cycle ``until``; return why it stopped.

        A call is bounded to about 10^9 cycles, after which it returns as if ``until`` were reached.
        """
        base = self.cycle
        if until <= base:
            return Stop.UNTIL
        self._rebase(base)
        ticks = min(until - base, _LONGEST_CALL)
        stop = Stop(self._code.run(int(self.arena.ctypes.data), ticks))
        for instances, ticks_of_last in self._last_ticks:
            fired = ticks_of_last > 0
            self.last[instances][fired] = base + ticks_of_last[fired].astype(np.int64)
            ticks_of_last[:] = 0
        self._totals += self._counts
        self._counts[:] = 0
        return stop

    def _rebase(self, base: int) -> None:
        """Restart ticks at 0."""
        tick = int(self.counters[COUNTER_WORD["tick"]])
        self.clock[CLOCK_WORD["base"]] = base
        self.clock[CLOCK_WORD["progress"]] -= tick
        self.counters[COUNTER_WORD["tick"]] = 0

    def _fill(self) -> None:
        """The state before the first cycle."""
        program, layout, arena = self.program, self.layout, self.arena
        pool, starts = pool_of(self.plan)
        layout.pool.view(arena)[:] = pool
        busy = program.control.firings > 0
        self.clock[CLOCK_WORD["unfinished"]] = int(busy.sum())
        self.clock[CLOCK_WORD["event"]] = self.clock[CLOCK_WORD["watched"]] = -1
        self.clock[CLOCK_WORD["deepest"]] = self.clock[CLOCK_WORD["happened"]] = -1
        for number, (node, memory) in enumerate(zip(self.plan.nodes, layout.nodes, strict=True)):
            layout.moved[number].view(arena)[:] = node.moved
            layout.stores[number].view(arena)[:] = node.stores
            for port, section in zip(node.ports, layout.tables[number], strict=True):
                section.view(arena)[:] = port.table
            for port, port_memory in zip(node.ports, memory.ports, strict=True):
                if port.sends:
                    connected = port.positions != NOWHERE
                    count = port_memory.count.view(arena)
                    count[port.positions[connected]] = capacities(self.plan, port)[connected]
            orders = program.control.order_of[node.timing.instances]
            for order in np.unique(orders).tolist():
                lanes = np.flatnonzero(orders == order)
                self._start(number, node, memory, lanes, order, starts[order])

    def _start(
        self, number: int, node: NodePlan, memory: NodeMemory, lanes: Array, order: int, start: int
    ) -> None:
        """Set up the first run of the PEs of a node that fire in one order."""
        control, walk, arena = self.program.control, self.plan.walks[order], self.arena
        pes = node.timing.first + lanes
        first_rows = control.row_start[pes] - node.first_row
        self.records[pes, WALK] = start
        self.records[pes, ROW] = first_rows
        firings = control.firings[pes]
        busy = firings > 0
        if not busy.any():
            return
        lanes, pes, firings, first_rows = (x[busy] for x in (lanes, pes, firings, first_rows))
        passed, into = divmod(walk.order.start, walk.repeat)
        at = np.unravel_index(passed, walk.extents)
        self.records[pes, POSITION : POSITION + len(at)] = at
        run = np.minimum(int(walk.runs[at[-1]]) * walk.repeat - into, firings)
        self.records[pes, REMAINING] = firings - run
        filled = np.minimum(run, self.layout.chunk)
        self.records[pes, REST] = run - filled
        memory.left.view(arena)[lanes] = filled
        rows = (
            first_rows + walk.codes[tuple(axis[x] for axis, x in zip(walk.axes, at, strict=True))]
        )
        self.layout.moving.view(arena)[pes] = node.moved[rows]
        memory.storing.view(arena)[lanes] = np.where(node.stores[rows], -1, 0)
        for port, port_memory in zip(node.ports, memory.ports, strict=True):
            position = port.table[rows]
            port_memory.use.view(arena)[lanes] = np.where(position != NOWHERE, -1, 0)
            if not port.regular:
                port_memory.position.view(arena)[lanes] = np.maximum(position, 0)

    @property
    def event(self) -> int:
        """The level at which the watched PE advanced, after ``Stop.EVENT``."""
        return int(self.clock[CLOCK_WORD["happened"]])

    def firings(self) -> Counts:
        """Firings made so far, per PE."""
        inside, after = self.ahead()
        return np.asarray(self.program.control.firings - inside - after, np.int64)

    def earliest_end(self) -> int:
        """A lower bound on the end of the run, from the firings left."""
        inside, after = self.ahead()
        left, intervals = inside + after, self.program.intervals
        soonest = np.maximum(self.last + intervals, self.cycle + 1)
        return int((soonest + (left - 1) * intervals)[left > 0].max(initial=0))

    def ahead(self) -> tuple[Counts, Counts]:
        """Firings left of every PE, in its current run and after it."""
        inside = self.records[:, REST].copy()
        for instances, left in self._left:
            inside[instances] += left
        return inside, self.records[:, REMAINING].copy()

    def run_lengths(self, position: Array) -> Counts:
        """Firings of the runs that start at the positions, by PE; positions may be past the end."""
        innermost = position[np.arange(len(position)), self.innermost]
        return np.asarray(self._runs[self._runs_of + innermost] * self.repeat, np.int64)

    def set_positions(self, position: Array, inside: Counts, ahead: Counts) -> None:
        """Move every PE to other iterations of the same classes."""
        self.records[:, POSITION:] = position
        self.records[:, REMAINING] = ahead - inside
        filled = np.minimum(inside, self.layout.chunk)
        self.records[:, REST] = inside - filled
        for instances, left in self._left:
            left[:] = filled[instances]

    def state(self) -> bytes:
        """All state that the future depends on, except for PE positions and the time."""
        parts = [
            self.clock[CLOCK_WORD["credit"]].tobytes(),
            self._queue().tobytes(),
            self.arena[self._settled].tobytes(),
        ]
        for moved, slot, row_bytes in self._rolling:
            row = int(slot[0]) // row_bytes
            parts += [moved[row:].tobytes(), moved[:row].tobytes()]
        return b"".join(parts)

    def mark(self) -> int:
        """A hash of the state: of the memory queue and a sample of the rest.

        With shared bandwidth, the queue distinguishes states best.
        """
        checksum = int(self.clock[CLOCK_WORD["credit"]]) & _WORD
        checksum = zlib.crc32(self._queue().tobytes(), checksum)
        return zlib.crc32(self.arena[self._sample].tobytes(), checksum)

    def _queue(self) -> Array:
        """The PEs that wait for memory, in order."""
        head, queued = (int(self.counters[COUNTER_WORD[name]]) for name in ("head", "queued"))
        return np.asarray(self._ring[np.arange(head, head + queued) % len(self._ring)])

    def _collect_state(self) -> None:
        """The arrays of ``state``: those in place, and those that rotate."""
        arena, layout = self.arena, self.layout
        self._ring = layout.ring.view(arena)
        self._totals, self._counts = layout.totals.view(arena), layout.stalls.view(arena)
        nodes = list(zip(self.plan.nodes, layout.nodes, strict=True))
        self._last_ticks = [
            (node.timing.instances, memory.last.view(arena)[: node.lanes]) for node, memory in nodes
        ]
        self._left = [
            (node.timing.instances, memory.left.view(arena)[: node.lanes]) for node, memory in nodes
        ]
        settled = [layout.waiting, layout.granted]
        self._rolling: list[tuple[Array, Array, int]] = []
        for node, memory in zip(self.plan.nodes, layout.nodes, strict=True):
            settled += [memory.started, memory.wait]
            for port, port_memory in zip(node.ports, memory.ports, strict=True):
                settled.append(port_memory.count)
                if port.sends and port_memory.moved.shape[0] > 1:
                    sent = port_memory.moved.view(arena)[:, : port.size]
                    self._rolling.append(
                        (sent, port_memory.slot.view(arena), port_memory.row_bytes)
                    )
                elif port.sends:
                    settled.append(replace(port_memory.moved, shape=(port.size,)))
                else:
                    settled.append(port_memory.moved)
        self._settled = np.concatenate([part.positions for part in settled])
        self._sample = self._settled[:: -(-len(self._settled) // _SAMPLED)]

    def stalls(self) -> Counts:
        """Stalled cycles so far, in the order of the ``stalls`` section."""
        return np.asarray(self._totals, np.int64)

    def add_stalls(self, more: Counts) -> None:
        """Add to the totals."""
        self._totals += more

    def ports(self) -> list[tuple[NodePlan, NodeMemory, LanePort, PortMemory]]:
        """All ports with their nodes, in order."""
        return [
            (node, memory, port, port_memory)
            for node, memory in zip(self.plan.nodes, self.layout.nodes, strict=True)
            for port, port_memory in zip(node.ports, memory.ports, strict=True)
        ]

    def end(self) -> int:
        """The cycle in which the run ends if nothing else happens."""
        last_store = int(self.clock[CLOCK_WORD["last_store"]])
        return end_of_run(self.program, int(self.last.max(initial=0)), last_store)

    def tally(self, ending: Ending, cycles: int, *, find_stuck: bool = True) -> Tally:
        """The counters up to ``cycles``, the last simulated cycle or a later one.

        ``find_stuck`` searches for PEs that wait forever, which is the most expensive part.
        """
        program = self.program
        elements = len(program.channel_of_element)
        firings = self.firings()
        first = self.layout.first.view(self.arena).copy()
        totals = self.stalls()
        starved, blocked = np.zeros(elements, np.int64), np.zeros(elements, np.int64)
        stalled = np.zeros(program.pe_count, np.int64)
        memory = np.zeros(program.pe_count, np.int64)
        for node, node_memory in zip(self.plan.nodes, self.layout.nodes, strict=True):
            lanes = node.timing.instances
            for port, at in zip(node.ports, node_memory.ports, strict=True):
                counts = self._section(totals, at.stall.offset)[: node.lanes]
                stalled[lanes] += counts
                self._attribute(port, counts, blocked if port.sends else starved, node)
            memory[lanes] = self._section(totals, node_memory.memory_stall.offset)[: node.lanes]
        done = firings == program.control.firings
        waiting = np.maximum(firings - 1, 0) * (program.intervals - 1)
        unfinished = ~done & (firings > 0)
        passed = cycles - first + 1 - firings - stalled - memory
        waiting = np.where(unfinished, passed, waiting)
        return Tally(
            ending=ending,
            cycles=cycles,
            firings=firings,
            first=first,
            last=self.last.copy(),
            waiting=waiting,
            starved=starved,
            blocked=blocked,
            memory_starved=np.where(program.loads, memory, 0),
            memory_blocked=np.where(program.loads, 0, memory),
            left=self._tokens_left(),
            stuck=tuple(self._stuck(done)) if find_stuck else (),
        )

    def _section(self, totals: Counts, offset: int) -> Counts:
        """The stall totals of the section at an offset."""
        start = (offset - self.layout.stalls.offset) // self.layout.stalls.dtype.itemsize
        return totals[start:]

    def _attribute(self, port: LanePort, counts: Counts, total: Counts, node: NodePlan) -> None:
        """Stalls of lanes to elements; an irregular port counts for the lane's first element."""
        timing = self.program.channels[port.channel]
        if port.regular:
            connected = port.positions != NOWHERE
            total[timing.elements][connected] += counts[port.positions[connected]]
            return
        control = self.program.control
        for lane in np.flatnonzero(counts):
            pe = node.timing.first + int(lane)
            ends = control.sender if port.sends else control.receiver
            own = np.flatnonzero(ends[timing.elements] == pe)
            total[timing.first + own[0]] += counts[lane]

    def _tokens_left(self) -> Counts:
        """Tokens in every element: what was sent and not received."""
        left = np.zeros(len(self.program.channel_of_element), np.int64)
        for _, _, port, port_memory in self.ports():
            if not port.sends:
                continue
            timing = self.program.channels[port.channel]
            connected = port.positions != NOWHERE
            positions = port.positions[connected]
            free = port_memory.count.view(self.arena)[positions].astype(np.int64)
            left[timing.elements][connected] = capacities(self.plan, port)[connected] - free
        for transfer in self.plan.transfers:
            sink = next(
                port_memory for _, _, port, port_memory in self.ports() if port is transfer.sink
            )
            both = (transfer.source.positions != NOWHERE) & (transfer.sink.positions != NOWHERE)
            taken = sink.moved.view(self.arena)[transfer.sinks].astype(np.int64)
            left[self.program.channels[transfer.channel].elements][both] += taken
        return left

    def _stuck(self, done: Array) -> list[Stuck]:
        """Unfinished PEs that wait for something that no firing so far will provide."""
        sides = {
            (port.channel, port.sends): port_memory for _, _, port, port_memory in self.ports()
        }
        transfers = {transfer.channel: transfer for transfer in self.plan.transfers}
        stuck: dict[int, Stuck] = {}
        for node, _, port, port_memory in self.ports():
            transfer = transfers[port.channel]
            other = sides[port.channel, not port.sends]
            partners = dict(
                zip(transfer.sources.tolist(), transfer.sinks.tolist(), strict=True)
                if port.sends
                else zip(transfer.sinks.tolist(), transfer.sources.tolist(), strict=True)
            )
            count, use = port_memory.count.view(self.arena), port_memory.use.view(self.arena)
            for lane in np.flatnonzero(use[: node.lanes]):
                pe = node.timing.first + int(lane)
                at = int(lane) if port.regular else int(port_memory.position.view(self.arena)[lane])
                if done[pe] or count[at] or pe in stuck:
                    continue
                partner = partners.get(at)
                if partner is not None and self._coming(port, other, partner):
                    continue
                element = int(np.flatnonzero(port.positions == at)[0])
                first = self.program.channels[port.channel].first
                stuck[pe] = Stuck(instance=pe, element=first + element, sending=port.sends)
        return [stuck[pe] for pe in sorted(stuck)]

    def _coming(self, port: LanePort, other: PortMemory, partner: int) -> bool:
        """Whether a token, or space, is on its way from the other side."""
        moved = other.moved.view(self.arena)
        return bool(moved[partner] != 0) if port.sends else bool(moved[:, partner].any())
