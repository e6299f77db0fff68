"""Running a program for its end, and running it again with other channels.

The values of a graph of blocking nodes do not depend on time, so a run with other capacities or
latencies of channels needs no values: ``retime`` runs the times of a program again.  It is the one
place where that is done; what engine does it, and how, is the engine's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from t2s.core.errors import UserError
from t2s.core.interrupts import late_module
from t2s.core.location import user_location
from t2s.simulator.devices import Device
from t2s.simulator.engine_registry import find_engine
from t2s.simulator.limits import Limits, Observer
from t2s.simulator.program.build import with_device
from t2s.simulator.program.sim_program import SimProgram
from t2s.simulator.program.trace import Trace
from t2s.simulator.report.deadlock import DeadlockReport
from t2s.simulator.report.remedy import with_remedy
from t2s.simulator.report.stuck import DeadlockError, TokensLeftError

if TYPE_CHECKING:
    from t2s.simulator.report.result import SimResult
    from t2s.simulator.report.tally import Counts
    from t2s.simulator.timeline import Timeline


def retime(
    program: SimProgram,
    capacities: Mapping[str, int],
    *,
    latencies: Mapping[str, int] | None = None,
    engine: str = "native",
    limits: Limits | None = None,
    observer: Observer | None = None,
) -> SimResult:
    """The times of a program with other capacities (and latencies) of some channels, by name.

    Both are those of the FIFO alone, and at least 1.  The result has no outputs; a deadlock, a
    limit and an interrupt are in the result, nothing is raised for them.
    """
    changed = program.with_capacities(capacities)
    if latencies:
        changed = changed.with_latencies(latencies)
    result = find_engine(engine).run(changed, limits or Limits(), observer)
    return replace(result, rerun=run_to_the_end, sample=timelines_of)


def retime_on(
    run: SimResult,
    device: Device,
    *,
    capacities: Mapping[str, int] | None = None,
    latencies: Mapping[str, int] | None = None,
    limits: Limits | None = None,
    observer: Observer | None = None,
) -> SimResult:
    """A run again on another device, such as one with another memory, without its values.

    ``capacities`` and ``latencies`` are those of ``retime``.  Raises ``UserError`` if nobody knows
    what the machines of the run did, or where they access a memory that the device has.
    """
    program = with_device(run.program, device)
    trace = program.trace
    if program.graph.machines and trace is None:
        raise _unknown(run, "what its machines do", "engine='native'")
    if program.memory_depends_on_addresses and trace is not None and not trace.addresses:
        raise _unknown(run, "where its machines access memory", "a DRAM, and then with the others")
    program = program.with_capacities(capacities or {}).with_latencies(latencies or {})
    return run_to_the_end(program, run.engine, limits or Limits(), observer)


def _unknown(run: SimResult, what: str, hint: str) -> UserError:
    return UserError(
        f"{run.graph!r} cannot be timed again: nobody knows {what}",
        location=user_location(),
        expected="a run that tells",
        given=f"one by the engine {run.engine!r} on {run.device.name}",
        hint=f"simulate it first with {hint}",
    )


def timelines_of(
    program: SimProgram, wanted: Sequence[Counts], kernel: str
) -> tuple[Timeline, ...]:
    """What the PEs of a program did in windows, by ``times.sampled``, which needs a compiler."""
    sampled = late_module("t2s.simulator.times.sampled")
    found: tuple[Timeline, ...] = sampled.timelines_of(program, wanted, kernel)
    return found


def run_to_the_end(
    program: SimProgram, engine: str, limits: Limits, observer: Observer | None
) -> SimResult:
    """Run a program; raises what ``simulate`` raises for a deadlock and for tokens left."""
    result = replace(
        find_engine(engine).run(program, limits, observer),
        rerun=run_to_the_end,
        sample=timelines_of,
    )
    if result.deadlock is not None:
        report = _with_remedy(program, result.deadlock, result.machine_trace)
        raise DeadlockError(replace(result, deadlock=report), report)
    if result.tokens_left:
        raise TokensLeftError(result)
    return result


def _with_remedy(
    program: SimProgram, report: DeadlockReport, trace: Trace | None
) -> DeadlockReport:
    """The report with sufficient capacities; as it is if the user interrupts the search.

    Whether a run ends in a deadlock is the same in every engine, so the fast one searches.  What
    machines do it finds out once; where they stop by themselves there is nothing to search for.
    """
    if program.graph.machines:
        try:
            if trace is None or trace.limit is not None:
                trace = find_engine("native").run(program, Limits()).machine_trace
        except KeyboardInterrupt:
            return report
        if trace is None or trace.refusing:
            return report
        program = program.traced(trace)

    def uninterrupted(changed: SimProgram) -> SimResult:
        result = retime(changed, {})
        if result.interrupted:
            raise KeyboardInterrupt
        return result

    try:
        return with_remedy(program, report, uninterrupted)
    except KeyboardInterrupt:
        return report
