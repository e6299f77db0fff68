"""Entry points of the simulator: ``simulate``, ``simulate_cycles``, reruns, deadlock remedies.

>>> result = simulate(graph, {"A": a, "B": b}, device="arria10")   # doctest: +SKIP
>>> result.outputs["C"], result.cycles, result.utilization         # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from t2s.core.errors import InternalError, UserError
from t2s.core.location import user_location
from t2s.core.ops import Array
from t2s.graph.graph import Graph
from t2s.simulator.devices import Device
from t2s.simulator.engine_registry import find_engine
from t2s.simulator.limits import Limits, Observer, Progress, checked_limits
from t2s.simulator.program.build import build_program, with_device
from t2s.simulator.program.sim_program import RunContext, SimProgram
from t2s.simulator.program.trace import Trace
from t2s.simulator.random_stalls import RandomStalls, check_stalls
from t2s.simulator.report.deadlock import DeadlockReport, Remedy
from t2s.simulator.report.errors import DeadlockError, TokensLeftError
from t2s.simulator.report.result import SimResult


@dataclass(frozen=True, slots=True)
class GraphContext:
    """The ``RunContext`` of a bare graph, which can only run again."""

    ends: bool = False

    def rerun(
        self, program: SimProgram, engine: str, limits: Limits, observer: Observer | None
    ) -> SimResult:
        return run_to_the_end(program, engine, limits, observer)

    def warnings(self, result: SimResult) -> tuple[str, ...]:
        return ()

    def lines(self, result: SimResult) -> tuple[tuple[str, str], ...]:
        return ()

    def write_page(self, result: SimResult, path: str | Path, options: Mapping[str, Any]) -> Path:
        raise InternalError("a result of the simulator alone has no page")


_GRAPH = GraphContext()


def simulate(
    graph: Graph,
    inputs: Mapping[str, Array],
    *,
    parameters: Mapping[str, object] | None = None,
    device: str | Device = "ideal",
    engine: str = "native",
    max_cycles: int | None = None,
    progress: bool | None = None,
    stalls: RandomStalls | None = None,
    context: RunContext = _GRAPH,
) -> SimResult:
    """Run a graph on its inputs and return outputs, exact cycles and stalls.

    Parameters
    ----------
    graph: the design.
    inputs: one array per input tensor, of exactly its shape and dtype.
    parameters: the scalars that the design takes at run time.
    device: a name from ``DEVICES``, or a ``Device``.
    engine: ``"native"``, or ``"python"`` for the slow oracle.
    max_cycles: cycle limit; the result of a truncated run says so and has no outputs.
    progress: show a bar: ``True`` always, ``False`` never, ``None`` for long runs in a terminal.
    stalls: random stalls of load and store units, as real memory causes them.
    context: what the design adds to the result.

    Raises
    ------
    UserError: the graph or the inputs are invalid; raised before the first cycle.
    DeadlockError: nothing can fire, but PEs are unfinished; has the partial ``result``.
    TokensLeftError: the run ended, but tokens are left in channels; has the ``result``.
    """
    program = build_program(
        graph, device, inputs, parameters, check_stalls(stalls), context or GraphContext()
    )
    limits = checked_limits(max_cycles)
    with Progress(progress) as observer:
        return run_to_the_end(program, engine, limits, observer)


def simulate_cycles(
    graph: Graph,
    *,
    parameters: Mapping[str, object] | None = None,
    device: str | Device = "ideal",
    engine: str = "native",
    max_cycles: int | None = None,
    progress: bool | None = None,
    stalls: RandomStalls | None = None,
    context: RunContext = _GRAPH,
) -> SimResult:
    """The exact times of ``simulate``, without inputs and outputs.

    Only the parameters that loop bounds, conditions and indices depend on have to be given.
    """
    program = build_program(
        graph, device, None, parameters, check_stalls(stalls), context or GraphContext()
    )
    limits = checked_limits(max_cycles)
    with Progress(progress) as observer:
        return run_to_the_end(program, engine, limits, observer)


# Running a program to its end, and running it again with other channels.
#
# The values of a graph of blocking nodes do not depend on time, so a run with other capacities or
# latencies of channels needs only the times: ``retime`` computes them again.


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

    Both are those of the FIFO alone, and at least 1.  The result has no outputs; it reports
    deadlocks, limits and interrupts, which are not raised.
    """
    changed = program.with_capacities(capacities)
    if latencies:
        changed = changed.with_latencies(latencies)
    return find_engine(engine).run(changed, limits or Limits(), observer)


def retime_on(
    run: SimResult,
    device: Device,
    *,
    capacities: Mapping[str, int] | None = None,
    latencies: Mapping[str, int] | None = None,
    limits: Limits | None = None,
    observer: Observer | None = None,
) -> SimResult:
    """Repeat a run on another device, such as one with another memory, without values.

    ``capacities`` and ``latencies`` are those of ``retime``.  Raises ``UserError`` if the run has
    no trace of its machines, or of their accesses to a memory of the device.
    """
    program = with_device(run.program, device)
    trace = program.trace
    if program.graph.machines and trace is None:
        raise _unknown(run, "its machines have no trace", "engine='native'")
    if program.memory_depends_on_addresses and trace is not None and not trace.addresses:
        raise _unknown(
            run, "its machines have no recorded memory accesses", "a DRAM, and then with the others"
        )
    program = program.with_capacities(capacities or {}).with_latencies(latencies or {})
    return run_to_the_end(program, run.engine, limits or Limits(), observer)


def _unknown(run: SimResult, what: str, hint: str) -> UserError:
    return UserError(
        f"{run.graph!r} cannot be timed again: {what}",
        location=user_location(),
        expected="a run by the native engine",
        given=f"one by the engine {run.engine!r} on {run.device.name}",
        hint=f"simulate it first with {hint}",
    )


def run_to_the_end(
    program: SimProgram, engine: str, limits: Limits, observer: Observer | None
) -> SimResult:
    """Run a program; raises ``DeadlockError`` and ``TokensLeftError`` like ``simulate``."""
    result = find_engine(engine).run(program, limits, observer)
    if result.deadlock is not None:
        report = _with_remedy(program, result.deadlock, result.machine_trace)
        raise DeadlockError(replace(result, deadlock=report), report)
    if result.tokens_left:
        raise TokensLeftError(result)
    return result


def _with_remedy(
    program: SimProgram, report: DeadlockReport, trace: Trace | None
) -> DeadlockReport:
    """The report with sufficient capacities; unchanged if the user interrupts the search.

    All engines agree on deadlocks, so the fast one searches.  It traces machines once; if they stop
    by themselves there is nothing to search for.
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


# The search for capacities that resolve a deadlock.
#
# Termination is monotonic in the capacities: more space never prevents a firing.  So the search
# finds capacities of which none can be lowered alone from above, one by one or many at a time, and
# a capacity that could not be lowered once cannot be lowered later.

MOST_RUNS = 400
MOST_FIRINGS = 400_000_000
"""The budget of the search: runs, and firings in them."""

_SINGLY = 8
"""Runs after which all channels get space, not only those known to block."""

Retime = Callable[[SimProgram], "SimResult"]
"""Runs a program for its times."""

Capacities = dict[str, int]


class _Enough(Exception):
    """The search has used up its budget."""


def with_remedy(program: SimProgram, report: DeadlockReport, retime: Retime) -> DeadlockReport:
    """The report with sufficient capacities, each as small as possible given the others.

    1. Channels that block on the cycle of waits get all the space they could use, then those that
       block on the next cycle, until the run ends.
    2. As many of them as possible get their old capacity back, in groups, so that few change.
    3. The smallest depth that suffices for all of the rest is found, and then one for each.

    When the search has used up its budget of runs it returns the best so far, not ``minimal`` then.
    """
    search = _Search(program, retime)
    try:
        beyond = search.give_space(report)
    except _Enough:
        return report
    if beyond is not None:
        return replace(report, searched=True, beyond=None if beyond is report else beyond)
    minimal = True
    try:
        search.take_back(list(search.found))
        search.level()
        search.lower()
    except _Enough:
        minimal = False
    raised = {
        name: (search.before[name], capacity)
        for name, capacity in search.found.items()
        if capacity > search.before[name]
    }
    return replace(report, remedy=Remedy(capacities=raised, minimal=minimal), searched=True)


@dataclass(slots=True)
class _Search:
    """``found`` has the best sufficient capacities so far; other channels keep theirs."""

    program: SimProgram
    retime: Retime
    found: Capacities = field(default_factory=dict)
    before: Capacities = field(init=False)
    runs: int = 0
    firings: int = 0

    def __post_init__(self) -> None:
        self.before = {
            timing.channel.name: timing.channel.capacity for timing in self.program.channels
        }

    def give_space(self, report: DeadlockReport) -> DeadlockReport | None:
        """Add space until the run ends; return the deadlock that no space resolves, if any."""
        everything = {name: self._all_tokens(name) for name in self.before}
        current: DeadlockReport | None = report
        while current is not None:
            fresh = [name for name in _blocking(current) if name not in self.found]
            if not current.closed or not fresh:
                return current
            more = fresh if self.runs < _SINGLY else list(everything)
            self.found |= {name: everything[name] for name in more}
            current = self._run(self.found).deadlock
        return None

    def level(self) -> None:
        """Lower all capacities to the smallest common one that suffices."""

        def cut(depth: int) -> Capacities:
            return {name: max(self.before[name], min(depth, most)) for name, most in tops.items()}

        tops = dict(self.found)
        low, high = 1, max(tops.values())
        while low < high:
            middle = (low + high) // 2
            if self._suffice(cut(middle)):
                high = middle
            else:
                low = middle + 1

    def take_back(self, names: Sequence[str]) -> None:
        """Restore the old capacity of as many of these channels as possible, but not all."""
        if len(names) < 2:
            return
        middle = len(names) // 2
        for part in (names[:middle], names[middle:]):
            if not self._suffice({**self.found, **{name: self.before[name] for name in part}}):
                self.take_back(part)

    def lower(self) -> None:
        """Lower every capacity as far as possible, the others fixed."""
        for name, high in self.found.items():
            # most are minimal already, because level() lowered them
            lowest = self.before[name] + 1
            if high > lowest and self._suffice({**self.found, name: high - 1}):
                self._bisect(name, lowest)

    def _bisect(self, name: str, low: int) -> None:
        while low < (high := self.found[name]):
            middle = (low + high) // 2
            if not self._suffice({**self.found, name: middle}):
                low = middle + 1

    def _suffice(self, capacities: Capacities) -> bool:
        """Whether a run with these capacities ends; if so, record them as the best so far."""
        ends = self._run(capacities).deadlock is None
        if ends:
            self.found = capacities
        return ends

    def _run(self, capacities: Mapping[str, int]) -> SimResult:
        if self.runs >= MOST_RUNS or (self.runs and self.firings >= MOST_FIRINGS):
            raise _Enough
        result = self.retime(self.program.with_capacities(capacities))
        self.runs += 1
        self.firings += result.firings
        return result

    def _all_tokens(self, name: str) -> int:
        """A capacity that never blocks: the number of all tokens of an element."""
        timing = next(timing for timing in self.program.channels if timing.channel.name == name)
        most = int(self.program.control.sent[timing.elements].max(initial=1))
        return max(most, timing.channel.capacity)


def _blocking(report: DeadlockReport) -> list[str]:
    """The channels that PEs on the cycle wait for space in."""
    return list(dict.fromkeys(wait.channel for wait in report.waits if wait.sending))
