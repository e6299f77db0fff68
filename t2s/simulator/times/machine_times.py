"""Runs of programs with machines: values and the trace first, then the times that follow from it.

If nodes share only channels, times are computed by runs of equal firings (``runs``) if channels are
without bounds and firings repeat; by stepping through the cycles (``stepping``) if cycles are busy,
else by running ahead (``run_ahead``).  If nodes share memory bandwidth, the event-driven kernel
(``table_kernel``) computes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.core.ops import Array
from t2s.simulator.limits import Limits, Observer
from t2s.simulator.memory.machine_accesses import with_addresses
from t2s.simulator.program.sim_program import SimProgram, explicit
from t2s.simulator.program.trace import Trace
from t2s.simulator.report.assemble import assemble
from t2s.simulator.report.counters import FOREVER, Ending, Tally
from t2s.simulator.report.errors import RunInterrupted
from t2s.simulator.report.result import SimResult
from t2s.simulator.times.run_ahead import StreamCode, StreamTimes, stream_code, stream_tally
from t2s.simulator.times.runs import RunTimes, runs_of, worthwhile_runs
from t2s.simulator.times.stepping import StepTimes, steps_of
from t2s.simulator.times.windows import BeyondLimit, TimesInWindows, all_codes, static_codes
from t2s.simulator.values.machine_values import StreamValues, stream_values, trace_of

RUN_AHEAD = "run-ahead"
STEPPED = "stepped"
EVENT_DRIVEN = "event-driven"
BY_RUNS = "runs"

_FIRINGS_PER_CALL = 1 << 22
_CYCLES_PER_CALL = 4_000_000


@dataclass(frozen=True, slots=True)
class _Progress:
    """Reports progress to an observer; the total is unknown before the end."""

    observer: Observer | None

    def tell(self, *, cycle: int, done: int, total: int) -> None:
        if self.observer is not None:
            self.observer.advanced(cycle=cycle, done=done, total=max(done, total))


class EventDriven(Protocol):
    """A run of the event-driven kernel."""

    @property
    def now(self) -> int:
        """The next cycle to simulate."""

    @property
    def fired(self) -> int:
        """Firings made."""

    def advance(self, until: int) -> bool:
        """Simulate to the end of a cycle; return whether anything may happen after it."""

    def tally(self, limits: Limits, interrupted: bool) -> Tally:
        """The counters."""

    def ready(self, element: int) -> int:
        """The cycle in which the next token of a channel element is ready, or ``FOREVER``."""


TableTimes = Callable[[SimProgram], EventDriven]
"""Makes the event-driven kernel for a program."""


def run_streams(
    program: SimProgram,
    limits: Limits,
    observer: Observer | None,
    engine: str,
    table_times: TableTimes,
) -> SimResult:
    """Values and times of a program with machines, or times alone if it has a trace.

    Raises ``ProtocolError`` if a machine cannot take the tokens at its inputs, ``UserError`` if the
    given trace is from a truncated run, and ``RunInterrupted`` if the user interrupts before there
    are any times.
    """
    progress = _Progress(observer)
    trace = program.trace
    outputs: Mapping[str, Array] = {}
    if trace is not None:
        _check_sufficient(program, trace, limits)
    else:
        windows = TimesInWindows(program, limits.max_cycles)
        try:
            trace, outputs = _trace_and_outputs(program, limits, progress, windows)
            if not trace.is_kept:
                applied = program.traced(trace)
                return assemble(applied, windows.tally(), outputs, engine, kernel=BY_RUNS)
        except BeyondLimit as error:
            return _given_up(program, error.limit, engine)
        except KeyboardInterrupt:
            return _interrupted(program, windows, engine)
    times = _times(program, trace, limits, progress, table_times)
    times.check()
    return assemble(times.program, times.tally, outputs, engine, kernel=times.method)


def _trace_and_outputs(
    program: SimProgram, limits: Limits, progress: _Progress, windows: TimesInWindows
) -> tuple[Trace, Mapping[str, Array]]:
    """What machines do, and their values; ``BeyondLimit`` if a limit that gives up cuts it short.

    A long trace is not kept, and its times are in ``windows``; but a run that does not finish needs
    all of it to tell why, and is made again.
    """
    values = _values(program, limits, progress, windows)
    trace = trace_of(program, values, limits.max_cycles)
    if not trace.is_kept and (trace.unfinished or trace.limit is not None):
        values = _values(program, limits, progress)
        trace = trace_of(program, values, limits.max_cycles)
    if limits.give_up and trace.limit is not None:
        raise BeyondLimit(trace.limit)  # a machine makes a firing in a cycle
    return trace, values.outputs or {}


def _given_up(program: SimProgram, limit: int, engine: str) -> SimResult:
    """The result of a run that takes more cycles than the limit, of which no more is known."""
    tally = replace(_nothing(program), ending=Ending.LIMIT, cycles=limit, at_least=limit + 1)
    return assemble(program, tally, {}, engine, kernel=RUN_AHEAD)


def _interrupted(program: SimProgram, windows: TimesInWindows, engine: str) -> SimResult:
    """The result of a run that was interrupted before its trace was known.

    It has the times that are known; raises ``RunInterrupted`` if there are none.
    """
    if windows.began:
        tally = windows.tally(interrupted=True)
        return assemble(program, tally, {}, engine, kernel=BY_RUNS)
    nothing = assemble(program, _nothing(program), {}, engine, kernel=RUN_AHEAD)
    raise RunInterrupted(nothing) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Times:
    """The computed times; ``known`` gives the cycle from which an element has a token."""

    program: SimProgram
    trace: Trace
    tally: Tally
    method: str
    known: Callable[[int], int]

    def check(self) -> None:
        """Raise the error of the first machine that refuses tokens once all have arrived."""
        met: list[tuple[int, int]] = []
        for instance in sorted(self.trace.refusing):
            if self.tally.firings[instance] < len(self.trace.codes[instance]):
                continue
            arrived = [self.known(e) for e in self.trace.unfinished[instance]]
            latest = max([int(self.tally.last[instance]), *arrived])
            if latest < FOREVER:
                met.append((latest, instance))
        if met:
            raise self.trace.refusal(min(met)[1])


def _check_sufficient(program: SimProgram, trace: Trace, limits: Limits) -> None:
    """Raise ``UserError`` if a given trace is not kept, or ends before the run is to."""
    program.check_recorded()
    limit, wanted = trace.limit, limits.max_cycles
    if limit is None or (wanted or limit + 1) <= limit:
        return
    raise UserError(
        f"what the machines do is known up to cycle {limit} only, where the run was cut short",
        location=user_location(),
        expected=f"max_cycles of at most {limit}",
        given="no limit" if wanted is None else f"max_cycles={wanted}",
        hint="simulate the design again, without max_cycles",
    )


def _values(
    program: SimProgram,
    limits: Limits,
    progress: _Progress,
    windows: TimesInWindows | None = None,
) -> StreamValues:
    graph, record = program.graph, tuple[str, ...]()
    if program.timed_places:
        addressed = with_addresses(graph, program.timed_places)
        graph = addressed.graph
        record = tuple(name for names in addressed.channels.values() for name in names)
    return stream_values(
        graph,
        program.inputs or {},
        program.parameters,
        most_firings=None if limits.max_cycles is None else limits.max_cycles + 1,
        on_progress=lambda done: progress.tell(
            cycle=0 if windows is None else windows.latest, done=done, total=2 * done
        ),
        record=record,
        consumer=windows,
        ends=program.context is not None and program.context.ends,
    )


def _times(
    program: SimProgram,
    trace: Trace,
    limits: Limits,
    progress: _Progress,
    table_times: TableTimes,
) -> _Times:
    most = None if limits.give_up else limits.max_cycles
    if not trace.unfinished and trace.limit is None:
        times = _by_runs(program, trace, most, progress)
        if times is None and most is None:
            times = _stepped(program, trace, progress)
        if times is not None:
            return times
    code = stream_code(program, {i: codes.type.itemsize for i, codes in trace.codes.items()})
    if code is None:
        return _event_driven(program, trace, limits, progress, table_times)
    return _run_ahead(program, trace, code, limits, progress)


def _by_runs(
    program: SimProgram, trace: Trace, max_cycles: int | None, progress: _Progress
) -> _Times | None:
    """Times of a complete trace by runs; ``None`` if another kernel is faster, or needed.

    It is needed where the limit of cycles cuts the run short.
    """
    most = FOREVER if max_cycles is None else max_cycles
    applied = program.traced(trace)
    tables = runs_of(applied)
    if tables is None:
        return None
    traces = worthwhile_runs(all_codes(program, trace.codes))
    if traces is None:
        return None
    times = RunTimes(applied, tables)
    times.extend(traces)
    interrupted, total = False, applied.total_firings
    try:
        while times.latest <= most and times.advance():
            progress.tell(cycle=times.latest, done=total + times.fired, total=2 * total)
    except KeyboardInterrupt:
        interrupted = True
    tally = times.tally(interrupted=interrupted)
    if tally.cycles > most or times.latest > most:
        return None
    if not interrupted:
        times.check_finished()
    return _Times(program=applied, trace=trace, tally=tally, method=BY_RUNS, known=_never)


def _stepped(program: SimProgram, trace: Trace, progress: _Progress) -> _Times | None:
    """Times of a complete trace by stepping through the cycles; ``None`` if that does not apply."""
    applied = program.traced(trace)
    tables = steps_of(applied)
    if tables is None:
        return None
    times = StepTimes(applied, tables, _codes(program, trace), trace)
    interrupted, observed = False, progress.observer is not None
    total = applied.total_firings
    try:
        while times.advance():
            if times.is_slow:
                return None
            if observed:
                progress.tell(cycle=times.cycle, done=total + times.fired, total=2 * total)
    except KeyboardInterrupt:
        interrupted = True
    tally = times.tally(interrupted=interrupted)
    if tally is None:
        return None
    return _Times(program=applied, trace=trace, tally=tally, method=STEPPED, known=_never)


def _never(element: int) -> int:
    """For complete runs: all tokens have arrived."""
    return FOREVER


def _codes(program: SimProgram, trace: Trace) -> list[Array]:
    """A code for every firing of every node."""
    return [
        trace.codes[instance].expanded
        if instance in trace.codes
        else static_codes(program, instance)
        for instance in range(program.pe_count)
    ]


def _run_ahead(
    program: SimProgram, trace: Trace, code: StreamCode, limits: Limits, progress: _Progress
) -> _Times:
    applied = program.traced(trace)
    times = StreamTimes(applied, code, _codes(program, trace), trace.sent, limit=limits.max_cycles)
    interrupted = False
    total = applied.total_firings
    try:
        while times.advance(_FIRINGS_PER_CALL):
            progress.tell(cycle=times.latest, done=total + times.fired, total=2 * total)
    except KeyboardInterrupt:
        interrupted = True
    return _Times(
        program=applied,
        trace=trace,
        tally=stream_tally(applied, times, trace, limits, interrupted=interrupted),
        method=RUN_AHEAD,
        known=lambda element: times.allows(element, sending=False),
    )


def _event_driven(
    program: SimProgram,
    trace: Trace,
    limits: Limits,
    progress: _Progress,
    table_times: TableTimes,
) -> _Times:
    times = table_times(explicit(program, trace))
    last = limits.max_cycles if limits.max_cycles is not None else FOREVER - 1
    total = program.traced(trace).total_firings
    interrupted = False
    chunk = max(1, _CYCLES_PER_CALL // max(1, program.pe_count))
    try:
        more = True
        while more and times.now <= last:
            more = times.advance(min(times.now + chunk - 1, last))
            progress.tell(
                cycle=times.now - 1,
                done=total + times.fired,
                total=2 * total,
            )
    except KeyboardInterrupt:
        interrupted = True
    return _Times(
        program=program.traced(trace),
        trace=trace,
        tally=times.tally(limits, interrupted),
        method=EVENT_DRIVEN,
        known=times.ready,
    )


def _nothing(program: SimProgram) -> Tally:
    """All-zero counters, for a run that was interrupted before its first cycle."""
    pes = np.zeros(program.pe_count, np.int64)
    elements = np.zeros(len(program.channel_of_element), np.int64)
    return Tally(
        ending=Ending.INTERRUPTED,
        cycles=0,
        firings=pes,
        first=pes,
        last=pes,
        waiting=pes,
        starved=elements,
        blocked=elements,
        memory_starved=pes,
        memory_blocked=pes,
        left=elements,
        stuck=(),
    )
