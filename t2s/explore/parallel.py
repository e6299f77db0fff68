"""Independent functions on the cores of this machine, in threads, and a line that shows progress.

Engines release the interpreter's lock while they run, so threads are enough.  Results come back in
the order of the functions, whatever finishes first.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Event
from types import TracebackType
from typing import Any, TypeVar

from t2s.core.checks import whole
from t2s.core.errors import UserError
from t2s.core.late_bar import LateBar
from t2s.core.location import user_location

Value = TypeVar("Value")

_PATIENCE = 0.2
"""Seconds between two looks at the keyboard."""


class StopWatch:
    """An observer of runs that interrupts them once they are not wanted any more."""

    def __init__(self) -> None:
        self._stopped = Event()

    @property
    def stopped(self) -> bool:
        """Whether the runs are to end."""
        return self._stopped.is_set()

    def stop(self) -> None:
        """Let every run end as if the user had pressed Ctrl-C in it."""
        self._stopped.set()

    def advanced(self, *, cycle: int, done: int, total: int) -> None:
        """See ``simulator.engine.Observer``."""
        if self.stopped:
            raise KeyboardInterrupt


class Workers:
    """Threads that run functions; a context manager.

    At Ctrl-C the runs that observe ``watch`` end, those that have not begun are dropped, and
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
        """Run a function as soon as a thread is free."""
        return self._pool.submit(function)

    def all(self, functions: Sequence[Callable[[], Value]]) -> list[Value]:
        """Run functions and return their values in order; the first error is raised."""
        futures = [self.start(function) for function in functions]
        self.finish(futures)
        return [future.result() for future in futures]

    def finish(
        self, futures: Sequence[Future[Value]], told: Callable[[int], None] | None = None
    ) -> None:
        """Wait for all of them; ``told`` is called with the number of those that are done."""
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
    number = whole(count)
    if number is None or number < 1:
        raise UserError(
            "workers is not a number of threads",
            location=user_location(),
            expected="an integer of at least 1, or None for one thread per core",
            given=repr(count),
        )
    return number


class Steps(LateBar):
    """Shows how many runs are done of a search or a series, named ``what``; see ``LateBar``."""

    def __init__(self, what: str, wanted: bool | None) -> None:
        super().__init__(wanted)
        self._what = what

    def told(self, done: int, total: int | None, text: str) -> None:
        """``done`` runs are made, of ``total`` where that is known; ``text`` says of what."""
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
