"""Times by the array engine: a whole run, from the first cycle to its ending."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from t2s.simulator.limits import Limits
from t2s.simulator.program.sim_program import SimProgram
from t2s.simulator.report.tally import Ending, Tally
from t2s.simulator.times.array.emit import Stop
from t2s.simulator.times.array.emit_node import COUNTER_WORD
from t2s.simulator.times.array.emit_walk import CLOCK_WORD
from t2s.simulator.times.array.periods import FastForward
from t2s.simulator.times.array.run import ArrayMachine

_CALL = 10_000_000
"""PE-cycles between two looks at the keyboard and the observer."""

_FOREVER = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """The counters of a run, and how many cycles were skipped because they repeat."""

    tally: Tally
    skipped: int


def array_times(
    program: SimProgram, limits: Limits, on_progress: Callable[[ArrayMachine], None]
) -> Times:
    """Run a program for its times.  ``on_progress`` is called a few times per second.

    An interrupt from the keyboard ends the run; it is in the tally.
    """
    machine = ArrayMachine(program)
    forward = FastForward(machine)
    last = limits.max_cycles if limits.max_cycles is not None else _FOREVER
    stride = max(1000, _CALL // max(1, program.pe_count))
    stop = Stop.FINISHED if machine.unfinished == 0 else Stop.UNTIL
    try:
        while stop is Stop.UNTIL and machine.cycle < last:
            stop = forward.advance(last, calls_of=stride, on_call=on_progress)
    except KeyboardInterrupt:
        cycles = max(machine.cycle, machine.end())
        return Times(tally=machine.tally(Ending.INTERRUPTED, cycles), skipped=forward.skipped)
    if stop is Stop.FINISHED:
        tally = machine.tally(Ending.FINISHED, machine.end())
    elif stop is Stop.STUCK:
        tally = _deadlock(machine, forward)
    else:
        tally = machine.tally(Ending.LIMIT, last)
        if len(tally.stuck) == machine.unfinished:
            tally = _deadlock(machine, forward)
    return Times(tally=tally, skipped=forward.skipped)


def _deadlock(machine: ArrayMachine, forward: FastForward) -> Tally:
    """Go back and stop in the cycle in which the last thing happened: nothing stalls after it."""
    end = machine.end()
    forward.back_to(end)
    while machine.cycle < end:
        machine.advance(end)
        machine.clock[CLOCK_WORD["progress"]] = machine.counters[COUNTER_WORD["tick"]]
    return machine.tally(Ending.DEADLOCK, end)
