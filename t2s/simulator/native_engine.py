"""The native engine: PE arrays, machines, and memories of every kind.

``native_arrays`` computes values and times of PE arrays, ``times.machine_times`` those of machines;
``times.table_memories`` has the memories.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from t2s.core.errors import InternalError
from t2s.simulator.limits import Limits, Observer
from t2s.simulator.native_arrays import TimingKernel, advance_table, run_arrays
from t2s.simulator.program.sim_program import SimProgram, explicit
from t2s.simulator.program.trace import Trace
from t2s.simulator.report.assemble import assemble
from t2s.simulator.report.counters import Counts
from t2s.simulator.report.result import SimResult
from t2s.simulator.times import table_layout as timing
from t2s.simulator.times.machine_times import run_streams
from t2s.simulator.times.table_memories import table_times_of, timed_memories
from t2s.simulator.times.table_times import TableTimes


@dataclass(frozen=True, slots=True)
class NativeEngine:
    """The default engine; ``kernel`` may fix the kernel for the times of PE arrays."""

    name: str = "native"

    def run(
        self, program: SimProgram, limits: Limits, observer: Observer | None = None
    ) -> SimResult:
        """See ``Engine``."""
        if program.graph.machines:
            return run_streams(program, limits, observer, self.name, table_times_of)
        memories = timed_memories(program)
        return run_arrays(program, limits, observer, self.name, memories)


def run_measured(
    program: SimProgram, limits: Limits, observer: Observer | None = None
) -> tuple[SimResult, Counts]:
    """The times of a program, and the peak number of slots in use for every channel element.

    Capacities of that many slots (datapath included) leave every firing at its cycle.  The kernel
    of programs with a DRAM does not count slots.
    """
    if program.timed_places:
        raise InternalError("slots in use are not counted with a DRAM or shared banks")
    traced = program if program.trace is None else explicit(program, program.trace)
    machine = TableTimes(traced, measured=True)
    interrupted = False
    try:
        advance_table(machine, limits, observer)
    except KeyboardInterrupt:
        interrupted = True
    tally = machine.tally(limits, interrupted)
    result = assemble(program, tally, {}, NativeEngine().name, kernel=TimingKernel.TABLE.value)
    return result, machine.stalls[:, int(timing.PEAK)].copy()


def retime(
    program: SimProgram,
    trace: Trace,
    capacities: Mapping[str, int] | None = None,
    limits: Limits | None = None,
) -> SimResult:
    """The times of a traced program with other capacities (in tokens)."""
    changed = replace(program.with_capacities(capacities or {}), trace=trace)
    return NativeEngine().run(changed, limits or Limits())
