"""From an engine's counters to a ``SimResult``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TypeVar

import numpy as np

from t2s.core.ops import Array
from t2s.graph.nodes import Machine
from t2s.simulator.memory.report import BankedReport, MemoryReport, SharerRow, UnitRow
from t2s.simulator.program.flatten import MOST_CYCLES, exact_sum
from t2s.simulator.program.sim_program import NodeTiming, SimProgram
from t2s.simulator.report.counters import Counts, Ending, Tally, idle_cycles
from t2s.simulator.report.deadlock import explain
from t2s.simulator.report.result import NodeStatistics, SimResult, TokensLeft

_Counted = TypeVar("_Counted")


def assemble(
    program: SimProgram,
    tally: Tally,
    outputs: Mapping[str, Array],
    engine: str,
    *,
    kernel: str,
    skipped: int = 0,
) -> SimResult:
    """The result of a run; ``InternalError`` if the counters do not add up to the cycles.

    ``kernel`` is the kernel that computed the times, ``skipped`` the cycles that it skipped.
    """
    nodes = _statistics(program, tally)
    return SimResult(
        graph=program.graph.name,
        device=program.device,
        engine=engine,
        kernel=kernel,
        skipped=skipped,
        machine_trace=program.trace,
        outputs=outputs if tally.ending is Ending.FINISHED else {},
        cycles=tally.cycles,
        at_least=tally.at_least,
        nodes=nodes,
        ending=tally.ending,
        deadlock=explain(program, tally) if tally.ending is Ending.DEADLOCK else None,
        tokens_left=_tokens_left(program, tally, nodes) if tally.ending is Ending.FINISHED else (),
        memory=_memory(program, tally),
        shared=_shared(program, tally),
        padded=tuple(tensor for tensor in program.graph.tensors if tensor.padded is not None),
        program=replace(program, inputs=None),
    )


def _by_node(
    program: SimProgram, tally: Tally, counted: Mapping[int, _Counted]
) -> Iterator[tuple[NodeTiming, list[_Counted], int]]:
    """Nodes with PEs that use a memory: their counters, and the cycles they waited."""
    waited = tally.memory_starved + tally.memory_blocked
    for timing in program.nodes:
        where = range(timing.first, timing.instances.stop)
        counts = [counted[pe] for pe in where if pe in counted]
        if counts:
            yield timing, counts, int(waited[timing.instances].sum())


def _memory(program: SimProgram, tally: Tally) -> MemoryReport | None:
    """The report of the DRAM, if there is one."""
    if tally.memory is None or program.device.memory is None:
        return None
    rows = [
        UnitRow(
            node=timing.node.name,
            pe_count=timing.pe_count - timing.holes,
            reads=sum(count.reads for count in counts),
            writes=sum(count.writes for count in counts),
            latency=sum(count.latency for count in counts),
            waited=waited,
        )
        for timing, counts, waited in _by_node(program, tally, tally.memory.units)
    ]
    return MemoryReport(
        dram=program.device.memory,
        seconds=Fraction(tally.cycles, program.device.clock_hz),
        channels=tally.memory.channels,
        units=tuple(rows),
    )


def _shared(program: SimProgram, tally: Tally) -> BankedReport | None:
    """The report of the shared banks, if there are any."""
    if tally.shared is None or program.banked is None:
        return None
    rows = [
        SharerRow(
            node=timing.node.name,
            machines=timing.pe_count - timing.holes,
            loads=sum(count.loads for count in counts),
            stores=sum(count.stores for count in counts),
            words=sum(count.words for count in counts),
            latency=sum(count.latency for count in counts),
            waited=waited,
        )
        for timing, counts, waited in _by_node(program, tally, tally.shared.machines)
    ]
    return BankedReport(
        banked=program.banked,
        cycles=tally.cycles,
        counts=tally.shared.banks,
        sharers=tuple(rows),
    )


def _sums(values: Sequence[Counts], starts: Sequence[int]) -> list[list[int]]:
    """For each of several arrays: the sums of the slices that begin at ``starts``."""
    if not starts:
        return [[] for _ in values]
    rows = np.stack(values)
    if rows.shape[1] * int(np.abs(rows).max(initial=0)) >= MOST_CYCLES:
        ends = [*starts[1:], rows.shape[1]]
        return [[exact_sum(row[a:b]) for a, b in zip(starts, ends, strict=True)] for row in rows]
    sums = np.zeros((len(rows), rows.shape[1] + 1), np.int64)
    np.cumsum(rows, axis=1, out=sums[:, 1:])
    differences: list[list[int]] = np.diff(sums[:, [*starts, rows.shape[1]]], axis=1).tolist()
    return differences


def _statistics(program: SimProgram, tally: Tally) -> dict[str, NodeStatistics]:
    """The statistics of every node, from the counters of its PEs and channels."""
    starts = [timing.first for timing in program.nodes]
    slots, empty, planned, spare, waiting, memory_starved, memory_blocked, idle = _sums(
        (
            tally.firings,
            program.control.empty_until(tally.firings),
            program.control.firings,
            program.control.empty,
            tally.waiting,
            tally.memory_starved,
            tally.memory_blocked,
            idle_cycles(program, tally),
        ),
        starts,
    )
    first, last = _ends(tally, starts)
    starved_by: dict[str, dict[str, int]] = {timing.node.name: {} for timing in program.nodes}
    blocked_by: dict[str, dict[str, int]] = {timing.node.name: {} for timing in program.nodes}
    elements = [timing.first for timing in program.channels]
    starved, blocked = _sums((tally.starved, tally.blocked), elements)
    for number, channel in enumerate(program.graph.channels):
        starved_by[channel.sink][channel.name] = starved[number]
        blocked_by[channel.source][channel.name] = blocked[number]
    statistics: dict[str, NodeStatistics] = {}
    for n, timing in enumerate(program.nodes):
        node = timing.node
        statistics[node.name] = NodeStatistics(
            name=node.name,
            role=node.role,
            location=node.location,
            pe_count=timing.pe_count - timing.holes,
            interval=timing.interval,
            firings=slots[n] - empty[n],
            total_firings=slots[n] if isinstance(node, Machine) else planned[n] - spare[n],
            empty=empty[n],
            first_firing=first[n] if slots[n] else None,
            last_firing=last[n] if slots[n] else None,
            waiting=waiting[n] + empty[n],
            starved_by=starved_by[node.name],
            blocked_by=blocked_by[node.name],
            starved_by_memory=memory_starved[n],
            blocked_by_memory=memory_blocked[n],
            idle=idle[n] - timing.holes * tally.cycles,
        )
    return statistics


def _ends(tally: Tally, starts: Sequence[int]) -> tuple[list[int], list[int]]:
    """The first and the last firing of each node."""
    if not starts:
        return [], []
    fired = tally.firings > 0
    first = np.minimum.reduceat(np.where(fired, tally.first, MOST_CYCLES), starts)
    last = np.maximum.reduceat(np.where(fired, tally.last, 0), starts)
    return [int(cycle) for cycle in first], [int(cycle) for cycle in last]


def _tokens_left(
    program: SimProgram, tally: Tally, nodes: Mapping[str, NodeStatistics]
) -> tuple[TokensLeft, ...]:
    """Channels with tokens that nothing will take.

    An endless machine may still wait for a token of another channel, so tokens in front of it are
    not an error.
    """
    if not tally.left.any():
        return ()
    waiting = {machine.name for machine in program.graph.machines if machine.endless}
    left = [
        TokensLeft(
            channel=timing.channel.name,
            location=timing.channel.location,
            tokens=int(tally.left[timing.elements].sum()),
            sent=int(np.sum(program.control.sent[timing.elements])),
            received=int(np.sum(program.control.received[timing.elements])),
            sender=timing.channel.source,
            sender_firings=nodes[timing.channel.source].firings,
            receiver=timing.channel.sink,
            receiver_firings=nodes[timing.channel.sink].firings,
        )
        for timing in program.channels
        if tally.left[timing.elements].any() and timing.channel.sink not in waiting
    ]
    return tuple(sorted(left, key=lambda entry: -entry.tokens))
