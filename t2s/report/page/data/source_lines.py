"""The user's lines on a page: the name of the file without its folders, and the lines around."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath

from t2s.core.location import SourceLocation

_AROUND = 3
LONGEST_LINE = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLines:
    """A line of the user's, with some lines before and after it; ``lines`` may be empty."""

    file: str
    line: int
    first: int
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """The place as ``gemm.py:12``."""
        return f"{self.file}:{self.line}"


def source_lines(location: SourceLocation | None) -> SourceLines | None:
    """The lines at a place; pages have no folders of the machine that they were made on.

    ``None`` for lines of installed packages: a command for a terminal was called from there.
    """
    if location is None or "site-packages" in PurePath(location.file).parts:
        return None
    everything = location.file_lines
    first = max(1, location.line - _AROUND)
    found = everything[first - 1 : location.line + _AROUND]
    return SourceLines(
        file=PurePath(location.file).name,
        line=location.line,
        first=first,
        lines=tuple(line.rstrip("\n")[:LONGEST_LINE] for line in found),
    )
