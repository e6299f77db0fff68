"""Independent functions and runs on all cores, in threads, with a progress line.

Engines release the GIL while they run, so threads are enough.  Results are in the order of the
functions.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from threading import Event
from types import TracebackType
from typing import Any, TypeVar

from t2s.core.display import NotebookCard, NotebookDisplay, Table
from t2s.core.errors import T2SError, UserError
from t2s.core.location import user_location
from t2s.core.progress import ProgressBar
from t2s.core.svg import PALETTE, Bar, ChartPoint, SvgPicture, bar_chart, point_chart
from t2s.core.validate import as_int
from t2s.graph.graph import Graph
from t2s.simulator.devices import Device
from t2s.simulator.limits import checked_limits
from t2s.simulator.program.build import build_program
from t2s.simulator.program.sim_program import RunContext
from t2s.simulator.report.errors import CycleLimitError, DeadlockError, RunInterrupted
from t2s.simulator.report.result import SimResult
from t2s.simulator.run import run_to_the_end

Value = TypeVar("Value")

_PATIENCE = 0.2
"""Seconds between two looks at the keyboard."""


class StopWatch:
    """An observer that interrupts runs on request."""

    def __init__(self) -> None:
        self._stopped = Event()

    @property
    def stopped(self) -> bool:
        """Whether runs should stop."""
        return self._stopped.is_set()

    def stop(self) -> None:
        """Stop every run as if the user had pressed Ctrl-C."""
        self._stopped.set()

    def advanced(self, *, cycle: int, done: int, total: int) -> None:
        """See ``simulator.engine.Observer``."""
        if self.stopped:
            raise KeyboardInterrupt


class Workers:
    """Threads that run functions; a context manager.

    At Ctrl-C the runs that observe ``watch`` stop, pending ones are dropped, and
    ``KeyboardInterrupt`` is raised.
    """

    def __init__(self, count: int | None) -> None:
        self.count = checked_workers(count)
        self.watch = StopWatch()
        self._pool = ThreadPoolExecutor(self.count)

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self.watch.stop()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def start(self, function: Callable[[], Value]) -> Future[Value]:
        """Schedule a function on the next free thread."""
        return self._pool.submit(function)

    def all(self, functions: Sequence[Callable[[], Value]]) -> list[Value]:
        """Run functions and return their values in order; the first error is raised."""
        futures = [self.start(function) for function in functions]
        self.finish(futures)
        return [future.result() for future in futures]

    def finish(
        self, futures: Sequence[Future[Value]], told: Callable[[int], None] | None = None
    ) -> None:
        """Wait for all of them; ``told`` is called with the number of finished ones."""
        waiting = set(futures)
        while waiting:
            done, waiting = wait(waiting, timeout=_PATIENCE)
            if told is not None and done:
                told(len(futures) - len(waiting))


def checked_workers(count: int | None) -> int:
    """The number of threads: all cores this process may use if ``count`` is ``None``."""
    if count is None:
        usable = getattr(os, "sched_getaffinity", None)
        return len(usable(0)) if usable is not None else os.cpu_count() or 1
    number = as_int(count)
    if number is None or number < 1:
        raise UserError(
            "workers is not a number of threads",
            location=user_location(),
            expected="an integer of at least 1, or None for one thread per core",
            given=repr(count),
        )
    return number


class Steps(ProgressBar):
    """Shows the progress of a search or series named ``what``; see ``ProgressBar``."""

    def __init__(self, what: str, wanted: bool | None) -> None:
        super().__init__(wanted)
        self._what = what

    def told(self, done: int, total: int | None, text: str) -> None:
        """Report ``done`` runs of ``total``, if known; ``text`` describes the current one."""
        self._show(done, total, runs=f"{done:,} runs", text=text)

    def _columns(self) -> list[Any]:
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

        return [
            TextColumn(self._what),
            BarColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[runs]}"),
            TextColumn("{task.fields[text]}"),
        ]


# Independent runs on all cores: ``DesignRun`` describes a run, ``Outcomes`` has the results.

RunGraph = Callable[[Graph, Mapping[str, Any] | None, Mapping[str, Any], RunContext], SimResult]
"""Runs a graph on its arrays, ``None`` for times alone, and scalars, for a design."""


@dataclass(frozen=True, kw_only=True)
class DesignRun:
    """A design ready to run, its device, and the name of the run in tables.

    ``run`` takes the function that runs a graph, and returns the result of the design.
    """

    name: str
    run: Callable[[RunGraph], Any]
    device: str | Device
    engine: str = "native"
    max_cycles: int | None = None


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A run's result, or the error that it ended with.

    A run that stopped early has both: the error of a deadlock has a partial result.  A run that
    never began because of an interrupt has neither.
    """

    name: str
    result: Any = None
    error: T2SError | None = None

    @property
    def cells(self) -> tuple[str, ...]:
        """The run's row of the table."""
        if self.result is None:
            return (self.name, "-", "-", _first_line(self.error) if self.error else "not run")
        busy, ended = "-", "finished"
        if isinstance(self.result, SimResult):  # several stages have no utilization of their own
            busy, ended = f"{self.result.utilization:.1%}", self.result.ending.value
        ended = _first_line(self.error) if self.error else ended
        return (self.name, f"{self.result.cycles:,}", busy, ended)


@dataclass(frozen=True, kw_only=True)
class Outcomes(Sequence[Outcome], NotebookDisplay):
    """The outcomes of several runs, in the order of the runs."""

    outcomes: tuple[Outcome, ...]

    def __getitem__(self, position: Any) -> Any:
        return self.outcomes[position]

    def __len__(self) -> int:
        return len(self.outcomes)

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self.outcomes)

    @property
    def results(self) -> tuple[Any, ...]:
        """All results; raises the first error, and ``KeyboardInterrupt`` if a run is missing."""
        for outcome in self.outcomes:
            if outcome.error is not None:
                raise outcome.error
            if outcome.result is None or getattr(outcome.result, "interrupted", False):
                raise KeyboardInterrupt
        return tuple(outcome.result for outcome in self.outcomes)

    @property
    def table(self) -> Table:
        """One row per run."""
        return Table(
            title=f"{len(self)} runs",
            headers=("run", "cycles", "utilization", "ended"),
            rows=tuple(outcome.cells for outcome in self.outcomes),
            left=frozenset({0, 3}),
        )

    def __str__(self) -> str:
        return self.table.text()

    def __rich__(self) -> Any:
        return self.table.rich()

    def picture(self) -> SvgPicture:
        """The cycles of each run; those of incomplete runs in gray."""
        bars = []
        for outcome in self.outcomes:
            cycles = 0 if outcome.result is None else int(outcome.result.cycles)
            ended = outcome.result is not None and outcome.error is None
            word = f"{cycles:,}" if outcome.result is not None else "-"
            part = (PALETTE[0 if ended else 7], float(cycles), f"{outcome.name}: {word} cycles")
            bars.append(Bar(name=outcome.name, parts=(part,), word=word))
        return bar_chart("cycles of each run", bars)

    @property
    def _trade(self) -> SvgPicture | None:
        """Cycles against compute PEs of the finished runs; ``None`` if all PE counts are equal."""
        sizes = [
            (outcome.name, outcome.result.compute_pes, outcome.result.cycles)
            for outcome in self.outcomes
            if isinstance(outcome.result, SimResult) and outcome.result.finished
        ]
        if len({pes for _, pes, _ in sizes}) < 2:
            return None
        points, least, best = [], None, set[tuple[int, int]]()
        for _, pes, cycles in sorted(sizes, key=lambda run: run[1:]):
            if least is None or cycles < least:
                least = cycles
                best.add((pes, cycles))
        for name, pes, cycles in sizes:
            points.append(ChartPoint(x=pes, y=cycles, name=name, best=(pes, cycles) in best))
        return point_chart("cycles against PEs", points, across="compute PEs", up="cycles")

    def _card(self) -> NotebookCard:
        return NotebookCard(title="Runs", parts=(self.picture(), self._trade, self.table))


def run_many(
    runs: Sequence[Callable[[], DesignRun]],
    names: Sequence[str],
    *,
    workers: int | None = None,
    progress: bool | None = None,
) -> Outcomes:
    """Run everything on a thread pool; an error only ends its own run.

    ``runs`` prepare the runs one after the other in this thread, while earlier ones execute.
    Ctrl-C stops running ones with partial results, and starts no further ones.
    """
    futures: list[Future[Outcome]] = []
    finished: dict[int, Outcome] = {}
    with Workers(workers) as crew, Steps("simulating", progress) as steps:
        try:
            for position, make in enumerate(runs):
                try:
                    run = make()
                except T2SError as error:
                    finished[position] = Outcome(name=names[position], error=error)
                    continue
                futures.append(crew.start(partial(_outcome, run, crew)))
            crew.finish(futures, lambda done: steps.told(done, len(futures), ""))
        except KeyboardInterrupt:
            crew.watch.stop()
    began = iter(futures)
    outcomes: list[Outcome] = []
    for position, name in enumerate(names):
        if position in finished:
            outcomes.append(finished[position])
            continue
        future = next(began, None)
        missing = future is None or not future.done() or future.cancelled()
        outcomes.append(Outcome(name=name) if missing or future is None else future.result())
    return Outcomes(outcomes=tuple(outcomes))


def _outcome(run: DesignRun, crew: Workers) -> Outcome:
    if crew.watch.stopped:
        return Outcome(name=run.name)

    def simulate(
        graph: Graph,
        inputs: Mapping[str, Any] | None,
        parameters: Mapping[str, Any],
        context: RunContext,
    ) -> SimResult:
        program = build_program(graph, run.device, inputs, parameters, context=context)
        limits = checked_limits(run.max_cycles)
        return run_to_the_end(program, run.engine, limits, crew.watch)

    try:
        return Outcome(name=run.name, result=run.run(simulate))
    except (DeadlockError, CycleLimitError) as error:
        return Outcome(name=run.name, result=error.result, error=error)
    except RunInterrupted as interrupt:
        measured = interrupt.result if interrupt.result.cycles else None
        return Outcome(name=run.name, result=measured)
    except T2SError as error:
        return Outcome(name=run.name, error=error)


def _first_line(error: T2SError | None) -> str:
    return str(error).splitlines()[0] if error is not None else ""
