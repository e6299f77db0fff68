"""From the state of the run-ahead engine to the counters that every engine gives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from t2s.simulator.engine import Limits
from t2s.simulator.program.flatten import RECEIVES_END, USES_BEGIN, USES_END
from t2s.simulator.program.sim_program import SimProgram
from t2s.simulator.program.trace import Trace
from t2s.simulator.report.tally import (
    Ending,
    Requirement,
    Stuck,
    Tally,
    end_of_run,
    ending_of,
    stuck_at,
    wait_until,
)
from t2s.simulator.times import run_ahead_emit as emit_timing
from t2s.simulator.times.run_ahead import StreamTimes


def stream_tally(
    program: SimProgram, times: StreamTimes, trace: Trace, limits: Limits, *, interrupted: bool
) -> Tally:
    """The counters, with the stalls of unfinished nodes up to the last cycle."""
    firings = times.firings()
    fired = firings > 0
    last = np.where(fired, times.column(emit_timing.NEXT) - program.intervals, 0)
    tails = {
        int(instance): _requirements(program, times, trace, int(instance))
        for instance in np.flatnonzero(firings < program.control.firings)
    }
    stuck = tuple(
        item for instance, found in tails.items() if (item := stuck_at(instance, found)) is not None
    )
    last_store = int(times.column(emit_timing.LAST_STORE).max(initial=0))
    end = end_of_run(program, int(last.max(initial=0)), last_store)
    ending, cycles = _ending(program, end, limits, interrupted, len(tails), stuck)
    waiting = np.maximum(firings - 1, 0) * (program.intervals - 1)
    starved, blocked = times.stalls()
    memory = np.zeros(program.pe_count, np.int64)
    begun = {instance: found for instance, found in tails.items() if fired[instance]}
    wait_until(cycles, program, begun, last, waiting, starved, blocked, memory)
    return Tally(
        ending=ending,
        cycles=cycles,
        firings=firings,
        first=times.column(emit_timing.FIRST).copy(),
        last=last,
        waiting=waiting,
        starved=starved,
        blocked=blocked,
        memory_starved=np.where(program.loads, memory, 0),
        memory_blocked=np.where(program.loads, 0, memory),
        left=times.left(),
        stuck=stuck,
    )


def _ending(
    program: SimProgram,
    end: int,
    limits: Limits,
    interrupted: bool,
    unfinished: int,
    stuck: Sequence[Stuck],
) -> tuple[Ending, int]:
    if interrupted:
        return Ending.INTERRUPTED, end
    if unfinished == len(stuck):
        return ending_of(program, stuck), end
    return Ending.LIMIT, limits.max_cycles or 0


def _requirements(
    program: SimProgram, times: StreamTimes, trace: Trace, instance: int
) -> list[Requirement]:
    """What the next firing of an unfinished node waits for, in order."""
    control = program.control
    if not times.has_code(instance):
        return [
            (element, False, times.allows(element, sending=False))
            for element in trace.unfinished[instance]
        ]
    row = control.rows[control.row_start[instance] + times.next_code(instance)]
    begin, middle, end = (int(row[column]) for column in (USES_BEGIN, RECEIVES_END, USES_END))
    found: list[Requirement] = []
    for use in range(begin, end):
        element, sending = int(control.uses[use]), use >= middle
        found.append((element, sending, times.allows(element, sending=sending)))
    return found
