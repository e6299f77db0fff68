"""Places in a text of triggered instructions, and errors that name them.

Goes in: the file, the line, the column, and the processing element that a line belongs to.  Comes
out: a ``TriggeredTextError``, which shows the line even where the text came from no file.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from t2s.backends.cgra_tia.program import TextPosition
from t2s.core.errors import UserError
from t2s.core.location import SourceLocation


class TriggeredTextError(UserError):
    """A mistake in a text of triggered instructions; ``line`` and ``column`` count from 1."""

    line: int = 0
    column: int = 0


@dataclass(frozen=True, slots=True)
class TextLine(SourceLocation):
    """A line of a text, with what stands there."""

    text: str = ""

    @property
    def source_line(self) -> str:
        """The line itself, stripped."""
        return self.text.strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPlace:
    """A column of a line, in a block of a text; ``block`` is for messages and may be empty."""

    file: str
    line: int
    column: int
    text: str
    block: str = ""

    @property
    def position(self) -> TextPosition:
        return TextPosition(line=self.line, column=self.column)

    @property
    def location(self) -> TextLine:
        return TextLine(self.file, self.line, self.text)

    def error(
        self, message: str, *, expected: str, given: str, hint: str | None = None
    ) -> TriggeredTextError:
        """An error at this place."""
        where = f"in {self.block}, " if self.block else ""
        error = TriggeredTextError(
            f"{where}line {self.line}, column {self.column}: {message}",
            location=self.location,
            expected=expected,
            given=given,
            hint=hint,
        )
        error.line, error.column = self.line, self.column
        return error


def nearest(word: str, words: Iterable[str]) -> str | None:
    """A hint that names the word which is most like another one, if any is."""
    found = get_close_matches(word.lower(), list(words), n=1)
    return f"did you mean {found[0]!r}?" if found else None


def block_name(number: int, label: str) -> str:
    """How messages name a processing element: by its number in the text and by its label."""
    return f"PE {number} <{label}>" if label else f"PE {number}"
