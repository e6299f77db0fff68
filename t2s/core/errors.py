"""The error hierarchy: ``T2SError`` > ``UserError`` (a mistake in the input) and ``InternalError``.

A ``UserError`` is part of the product.  It names what was wrong, shows the user's own line, says
what was expected and what was given, and suggests what to try.  When two lines are in conflict,
both are shown (``notes``).
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from types import TracebackType

from t2s.core.location import SourceLocation


class T2SError(Exception):
    """Base class of everything t2s raises on purpose."""


class UserError(T2SError):
    """The program or its input is wrong; the message says where, and how to fix it.

    Parameters
    ----------
    message: one sentence: what is wrong with what, by the user's names.
    location: the user's line that has to change.
    expected, given: what is valid there, and what was found instead.
    hint: what to try.
    notes: further (location, text) pairs, for the other parties of a conflict.
    """

    def __init__(
        self,
        message: str,
        *,
        location: SourceLocation | None = None,
        expected: str | None = None,
        given: str | None = None,
        hint: str | None = None,
        notes: Sequence[tuple[SourceLocation | None, str]] = (),
    ) -> None:
        self.message = message
        self.location = location
        self.expected = expected
        self.given = given
        self.hint = hint
        self.notes = tuple(notes)
        super().__init__(self._render())

    def _render_traceback_(self) -> list[str]:
        """The text that IPython and notebooks show in place of a traceback."""
        return message_of(self).splitlines()

    def _render(self) -> str:
        lines = [self.message]
        lines += _snippet(self.location)
        if self.expected is not None:
            lines.append(f"  expected: {self.expected}")
        if self.given is not None:
            lines.append(f"  given:    {self.given}")
        for location, text in self.notes:
            lines.append(f"  note:     {text}")
            lines += _snippet(location)
        if self.hint is not None:
            lines.append(f"  hint:     {self.hint}")
        return "\n".join(lines)


class UnsupportedError(UserError):
    """A legal program that this version of t2s, or the chosen backend, does not handle yet."""


class T2SWarning(UserWarning):
    """A legal program that does less than it seems to; shown by Python's ``warnings``."""


def warn(message: str, *, location: SourceLocation, expected: str, given: str, hint: str) -> None:
    """Warn the user about a line of their program, on every occurrence."""
    text = str(UserError(message, expected=expected, given=given, hint=hint))
    warnings.warn_explicit(text, T2SWarning, location.file, location.line)


def message_of(error: BaseException) -> str:
    """The text of an error for users: it names their line, and shows no frames of t2s."""
    return f"error: {error}"


def show_errors_without_frames() -> None:
    """Make Python print an uncaught ``UserError`` without frames, as ``t2s run`` does.

    A ``UserError`` already names the user's line, and all further frames are those of t2s.  Other
    errors, including bugs of t2s, keep their tracebacks, and so do programs that set
    ``sys.excepthook`` before they import t2s.
    """
    if sys.excepthook is not sys.__excepthook__:
        return

    def show(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None, /
    ) -> None:
        if isinstance(error, UserError):
            sys.stderr.write(f"{message_of(error)}\n")
        else:
            sys.__excepthook__(kind, error, trace)

    sys.excepthook = show


class InternalError(T2SError):
    """A broken promise inside t2s: a bug.  The message asks for a report."""

    def __init__(self, message: str) -> None:
        super().__init__(f"internal error in t2s: {message} (please report this)")


def _snippet(location: SourceLocation | None) -> list[str]:
    if location is None or location.is_terminal:
        return []
    lines = [f"  --> {location.file}:{location.line}"]
    if location.source_line:
        lines.append(f"   {location.line} | {location.source_line}")
    return lines
