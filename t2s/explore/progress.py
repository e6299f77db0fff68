"""A line on the terminal for searches and series of runs that take a while."""

from __future__ import annotations

from typing import Any

from t2s.core.late_bar import LateBar


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
