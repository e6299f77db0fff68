"""A progress bar on the terminal that appears after a delay."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, TypeVar

from t2s.core.validate import checked_kind

_PATIENCE = 1.0
"""Seconds after which something counts as long."""

BarT = TypeVar("BarT", bound="ProgressBar")


class ProgressBar:
    """A bar on standard error; a context manager.

    ``wanted`` is ``True`` for always, ``False`` for never, and ``None`` for what takes longer than
    about a second, if standard error is a terminal.  A subclass says what the bar consists of.
    """

    def __init__(self, enabled: bool | None) -> None:
        if enabled is not None:
            checked_kind("progress", enabled, bool, "True, False, or None for what takes long")
        self._enabled = enabled if enabled is not None else sys.stderr.isatty()
        self._patience = 0.0 if enabled else _PATIENCE
        self._started = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self: BarT) -> BarT:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _columns(self) -> list[Any]:
        """The columns of the bar, of ``rich``; their own fields are those given to ``_show``."""
        raise NotImplementedError

    def _above(self) -> Any:
        """What is shown above the bar, for ``rich``; ``None`` for nothing."""
        return None

    def _show(self, done: int, total: int | None, **fields: str) -> None:
        """Show that so much is done, if it is time to show anything."""
        if not self._enabled or time.monotonic() - self._started < self._patience:
            return
        if self._bar is None:
            self._bar = self._new_bar()
            self._task = self._bar.add_task("", total=total, **fields)
            self._bar.start()
        self._bar.update(self._task, completed=done, total=total, **fields)

    def _new_bar(self) -> Any:
        from rich.console import Console
        from rich.progress import Progress

        above = self._above

        class Bar(Progress):
            def get_renderables(self) -> Any:
                shown = above()
                if shown is not None:
                    yield shown
                yield from super().get_renderables()

        return Bar(*self._columns(), console=Console(stderr=True), transient=True)
