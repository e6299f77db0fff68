"""A progress bar on the terminal, for runs that take a while."""

from __future__ import annotations

from typing import Any

from t2s.core.late_bar import LateBar


class Progress(LateBar):
    """An observer that shows a bar; see ``LateBar``."""

    def advanced(self, *, cycle: int, done: int, total: int) -> None:
        """See ``engine.Observer``."""
        self._show(done, total, cycle=f"cycle {cycle:,}")

    def _columns(self) -> list[Any]:
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn

        return [
            TextColumn("simulating"),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[cycle]}"),
        ]
