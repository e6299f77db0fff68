"""Source locations in the user's program.

Every object a user creates and every directive a user writes records the first stack frame that
lies outside the ``t2s`` package.  The location is taken when the call is made and travels with the
object; it is never reconstructed later.
"""

from __future__ import annotations

import dataclasses
import linecache
import os
import sys
from dataclasses import dataclass
from pathlib import Path, PurePath
from types import FrameType

_COMMAND_LIBRARIES = ("typer", "click")
"""Libraries that call the commands of t2s; users cannot change their lines."""

_PACKAGE_ROOT = str(Path(__file__).parent.parent) + os.sep


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """A line of the user's source: ``file`` as Python knows it, ``line`` counted from 1."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def is_terminal(self) -> bool:
        """Whether a command was called from a terminal: the line belongs to the command-line
        library.
        """
        return PurePath(self.file).parent.name in _COMMAND_LIBRARIES

    @property
    def source_line(self) -> str:
        """The text of the line, stripped; empty if the source is not available."""
        lines = self.file_lines
        return lines[self.line - 1].strip() if 0 < self.line <= len(lines) else ""

    @property
    def file_lines(self) -> list[str]:
        """The lines of the file; none if the source is not available."""
        try:
            return linecache.getlines(self.file)
        except ValueError:  # no file can have this name; graphs in JSON may bring one
            return []


def user_location() -> SourceLocation:
    """The innermost call site outside the ``t2s`` package and outside generated dataclass methods.

    Falls back to the outermost frame if the whole stack lies inside the package (``t2s run``
    executes the user's file, so this happens only in the package's own start-up code).
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and _inside(frame):
        frame = frame.f_back
    return SourceLocation(frame.f_code.co_filename, frame.f_lineno)


def user_depth() -> int:
    """The number of frames between the caller and the user: the ``stacklevel`` of a warning."""
    frame, depth = sys._getframe(1), 1
    while frame.f_back is not None and _inside(frame):
        frame, depth = frame.f_back, depth + 1
    return depth


def _inside(frame: FrameType) -> bool:
    """Whether a frame is in t2s, or in ``replace`` or a generated method of a dataclass."""
    file = frame.f_code.co_filename
    if file == "<string>":
        file = str(frame.f_globals.get("__file__", file))
        return file.startswith(_PACKAGE_ROOT) or frame.f_code.co_name == "__init__"
    return file.startswith(_PACKAGE_ROOT) or file == dataclasses.__file__
