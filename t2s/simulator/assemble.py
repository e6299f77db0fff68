"""From an engine's counters to a ``SimResult``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np

from t2s.core.ops import Array
from t2s.graph.nodes import Machine
from t2s.simulator.deadlock import explain
from t2s.simulator.memory.report import MemoryReport, UnitRow
from t2s.simulator.program import NodeTiming, SimProgram
from t2s.simulator.result import NodeStatistics, SimResult, TokensLeft
from t2s.simulator.tally import Counts, Ending, Tally, idle_cycles
from t2s.simulator.time_bound import exact_sum


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

    ``kernel`` is what found the times, ``skipped`` the cycles that it did not step through.
    """
    idle = idle_cycles(program, tally)
    starved = _by_channel(program, tally.starved)
    blocked = _by_channel(program, tally.blocked)
    nodes = {
        timing.node.name: _statistics(program, tally, timing, idle, starved, blocked)
        for timing in program.nodes
    }
    return SimResult(
        graph=program.graph.name,
        device=program.device,
        engine=engine,
        kernel=kernel,
        skipped=skipped,
        trace=program.trace,
        outputs=outputs if tally.ending is Ending.FINISHED else {},
        cycles=tally.cycles,
        nodes=nodes,
        ending=tally.ending,
        deadlock=explain(program, tally) if tally.ending is Ending.DEADLOCK else None,
        tokens_left=_tokens_left(program, tally) if tally.ending is Ending.FINISHED else (),
        memory=_memory(program, tally),
        padded=tuple(tensor for tensor in program.graph.tensors if tensor.padded is not None),
        program=replace(program, inputs=None),
    )


def _memory(program: SimProgram, tally: Tally) -> MemoryReport | None:
    """The report of the DRAM, if there is one."""
    if tally.memory is None or program.device.memory is None:
        return None
    waited = tally.memory_starved + tally.memory_blocked
    rows = []
    for timing in program.nodes:
        where = range(timing.first, timing.instances.stop)
        counts = [tally.memory.units[pe] for pe in where if pe in tally.memory.units]
        if counts:
            rows.append(
                UnitRow(
                    node=timing.node.name,
                    pe_count=timing.node.pe_count,
                    reads=sum(count.reads for count in counts),
                    writes=sum(count.writes for count in counts),
                    latency=sum(count.latency for count in counts),
                    waited=int(waited[timing.instances].sum()),
                )
            )
    return MemoryReport(
        dram=program.device.memory,
        seconds=Fraction(tally.cycles, program.device.clock_hz),
        channels=tally.memory.channels,
        units=tuple(rows),
    )


def _by_channel(program: SimProgram, per_element: Counts) -> dict[str, int]:
    return {
        timing.channel.name: exact_sum(per_element[timing.elements]) for timing in program.channels
    }


def _statistics(
    program: SimProgram,
    tally: Tally,
    timing: NodeTiming,
    idle: Counts,
    starved: Mapping[str, int],
    blocked: Mapping[str, int],
) -> NodeStatistics:
    node, where, graph = timing.node, timing.instances, program.graph
    fired = tally.firings[where] > 0
    absent = timing.pe_count - node.pe_count
    return NodeStatistics(
        name=node.name,
        role=node.role,
        location=node.location,
        pe_count=node.pe_count,
        interval=timing.interval,
        firings=int(tally.firings[where].sum()),
        total_firings=int(
            (tally if isinstance(node, Machine) else program.control).firings[where].sum()
        ),
        first_firing=int(tally.first[where][fired].min()) if fired.any() else None,
        last_firing=int(tally.last[where][fired].max()) if fired.any() else None,
        waiting=exact_sum(tally.waiting[where]),
        starved_by={channel.name: starved[channel.name] for channel in graph.inputs_of(node.name)},
        blocked_by={channel.name: blocked[channel.name] for channel in graph.outputs_of(node.name)},
        starved_by_memory=exact_sum(tally.memory_starved[where]),
        blocked_by_memory=exact_sum(tally.memory_blocked[where]),
        idle=exact_sum(idle[where]) - absent * tally.cycles,
    )


def _tokens_left(program: SimProgram, tally: Tally) -> tuple[TokensLeft, ...]:
    firings = {
        timing.node.name: int(tally.firings[timing.instances].sum()) for timing in program.nodes
    }
    left = [
        TokensLeft(
            channel=timing.channel.name,
            location=timing.channel.location,
            tokens=int(tally.left[timing.elements].sum()),
            sent=int(np.sum(program.control.sent[timing.elements])),
            received=int(np.sum(program.control.received[timing.elements])),
            sender=timing.channel.source,
            sender_firings=firings[timing.channel.source],
            receiver=timing.channel.sink,
            receiver_firings=firings[timing.channel.sink],
        )
        for timing in program.channels
        if tally.left[timing.elements].any()
    ]
    return tuple(sorted(left, key=lambda entry: -entry.tokens))
