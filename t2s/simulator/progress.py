"""A progress bar on the terminal, for runs that take a while."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

_PATIENCE = 1.0
"""Seconds after which a run counts as long."""


class Progress:
    """An observer that shows a bar on standard error; a context manager.

    ``wanted`` is ``True`` for always, ``False`` for never, and ``None`` for runs longer than about
    a second whose standard error is a terminal.
    """

    def __init__(self, wanted: bool | None) -> None:
        self._enabled = wanted if wanted is not None else sys.stderr.isatty()
        self._patience = 0.0 if wanted else _PATIENCE
        self._started = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advanced(self, *, cycle: int, done: int, total: int) -> None:
        """See ``engine.Observer``."""
        if not self._enabled or time.monotonic() - self._started < self._patience:
            return
        if self._bar is None:
            self._open(total)
        self._bar.update(self._task, completed=done, cycle=f"cycle {cycle:,}")

    def _open(self, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        self._bar = Bar(
            TextColumn("simulating"),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[cycle]}"),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task("simulate", total=total, cycle="")
        self._bar.start()
