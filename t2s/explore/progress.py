"""A line on the terminal for searches and series of runs that take a while."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

_PATIENCE = 1.0
"""Seconds after which a series of runs counts as long."""


class Steps:
    """Shows how many runs are done, on standard error; a context manager.

    ``wanted`` is ``True`` for always, ``False`` for never, and ``None`` for series longer than
    about a second whose standard error is a terminal.
    """

    def __init__(self, what: str, wanted: bool | None) -> None:
        self._what = what
        self._enabled = wanted if wanted is not None else sys.stderr.isatty()
        self._patience = 0.0 if wanted else _PATIENCE
        self._started = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Steps:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def told(self, done: int, total: int | None, text: str) -> None:
        """``done`` runs are made, of ``total`` where that is known; ``text`` says of what."""
        if not self._enabled or time.monotonic() - self._started < self._patience:
            return
        if self._bar is None:
            self._open()
        self._bar.update(self._task, completed=done, total=total, runs=f"{done:,} runs", text=text)

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        self._bar = Bar(
            TextColumn(self._what),
            BarColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[runs]}"),
            TextColumn("{task.fields[text]}"),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(self._what, total=None, runs="", text="")
        self._bar.start()
