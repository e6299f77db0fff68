"""The native engine for PE arrays: values from machine code, times from a compiled kernel.

Values of graphs with static control do not depend on time, so the two are computed separately
(``values.compute``).  Times come from one of two kernels: the array kernel (``times.array``) or the
table kernel (``times.table_kernel``).  ``native_engine`` is the whole engine; a program with
neither machines nor an address-dependent memory needs only this part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from t2s.core.errors import UserError
from t2s.core.ops import Array
from t2s.simulator.limits import Limits, Observer
from t2s.simulator.program.sim_program import SimProgram
from t2s.simulator.report.assemble import assemble
from t2s.simulator.report.counters import FOREVER, Ending, Tally
from t2s.simulator.report.result import SimResult
from t2s.simulator.times import table_layout as timing
from t2s.simulator.times.array.periods import array_times
from t2s.simulator.times.array.run import ArrayMachine
from t2s.simulator.times.table_times import Memories, TableTimes
from t2s.simulator.values.compute import compute_values

MANY_FIRINGS = 2_000_000
"""With more firings than this the array kernel is worth compiling."""

MANY_PES = 1 << 16
FEW_FIRINGS = 64
"""PEs that fire less often than this, if there are many, are left to the table kernel."""

MOST_LISTED_FIRINGS = 1 << 28
"""Most firings of one PE that the table kernel runs."""

_CHUNK = 4_000_000
"""PE-cycles between two looks at the keyboard and the observer: about a tenth of a second."""

_SHORT_CHUNK = 400_000
"""The same for a run that is abandoned at its cycle limit."""


class TimingKernel(Enum):
    """The kernel that computes the times of a run."""

    ARRAY = "array"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class ArraysEngine:
    """The engine of PE arrays, called ``native``, or by the kernel that finds the times.

    The array kernel is compiled for the design; it is then far faster, and skips repetitions.  The
    table kernel is available at once.  The number of firings decides which one is better.
    """

    name: str = "native"

    def run(
        self, program: SimProgram, limits: Limits, observer: Observer | None = None
    ) -> SimResult:
        """See ``Engine``."""
        return run_arrays(program, limits, observer, self.name)


def run_arrays(
    program: SimProgram,
    limits: Limits,
    observer: Observer | None,
    engine: str,
    memories: Memories | None = None,
) -> SimResult:
    """Values and times of a program without machines, whose timed memories are ``memories``."""
    if memories is not None:
        kernel = TimingKernel.TABLE
    elif engine == "native":
        many = program.total_firings > MANY_FIRINGS and not _is_wide(program)
        kernel = TimingKernel.ARRAY if many else TimingKernel.TABLE
    else:
        kernel = TimingKernel(engine)
    if kernel is TimingKernel.ARRAY:
        times = array_times(program, limits, lambda machine: _report(machine, observer))
        tally, skipped = times.tally, times.skipped
    else:
        tally, skipped = table_times(program, limits, observer, memories), 0
    outputs: Mapping[str, Array] = {}
    if tally.ending is Ending.FINISHED and program.inputs is not None:
        try:
            outputs = compute_values(
                program.graph,
                program.inputs,
                program.parameters,
                on_progress=lambda values: _tell(
                    program, observer, tally.cycles, program.total_firings + values
                ),
            )
        except KeyboardInterrupt:
            tally = replace(tally, ending=Ending.INTERRUPTED)
    return assemble(program, tally, outputs, engine, kernel=kernel.value, skipped=skipped)


def _is_wide(program: SimProgram) -> bool:
    """Whether there are so many PEs with so few firings that preparing them dominates."""
    wide = program.pe_count > MANY_PES
    return wide and program.total_firings < FEW_FIRINGS * program.pe_count


def table_times(
    program: SimProgram,
    limits: Limits,
    observer: Observer | None = None,
    memories: Memories | None = None,
) -> Tally:
    """Run a program for its times with the table kernel."""
    _check_size(program)
    machine = TableTimes(program, memories)
    interrupted = False
    try:
        advance_table(machine, limits, observer)
    except KeyboardInterrupt:
        interrupted = True
    tally = machine.tally(limits, interrupted)
    if limits.give_up and tally.ending is Ending.LIMIT:
        tally = replace(tally, at_least=machine.earliest_end())
    return tally


def _check_size(program: SimProgram) -> None:
    """Check that the table kernel, which needs a few bytes for each firing, fits into memory."""
    for node in program.nodes:
        firings = int(program.control.firings[node.instances].max(initial=0))
        if firings > MOST_LISTED_FIRINGS:
            raise UserError(
                f"{node.node.name!r} has too many firings to list",
                location=node.node.location,
                expected=f"at most {MOST_LISTED_FIRINGS} firings of one PE with this kernel",
                given=f"{firings}",
                hint="simulate a smaller problem, or without a DRAM"
                if program.memory_depends_on_addresses
                else "use engine='native', which skips what repeats, or simulate a smaller problem",
            )


def _report(machine: ArrayMachine, observer: Observer | None) -> None:
    if observer is not None:
        _tell(machine.program, observer, machine.cycle, int(machine.firings().sum()))


def _tell(program: SimProgram, observer: Observer | None, cycle: int, done: int) -> None:
    """Report the progress of times and values to the observer."""
    if observer is not None:
        total = program.total_firings * (1 if program.inputs is None else 2)
        observer.advanced(cycle=cycle, done=done, total=total)


def advance_table(machine: TableTimes, limits: Limits, observer: Observer | None) -> None:
    """Run in chunks to the end of the program or to the cycle limit."""
    program = machine.program
    last = limits.max_cycles if limits.max_cycles is not None else FOREVER - 1
    chunk = max(1, (_SHORT_CHUNK if limits.give_up else _CHUNK) // max(1, program.pe_count))
    more = True
    while more and machine.now <= last:
        more = machine.advance(min(machine.now + chunk - 1, last))
        _tell(program, observer, machine.now - 1, int(machine.clock[timing.FIRED_IN_ALL]))
        stepped = machine.now * program.pe_count
        if limits.give_up and (
            machine.earliest_end() > last or stepped > (limits.most_steps or stepped)
        ):
            return
