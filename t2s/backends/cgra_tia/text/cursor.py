"""A position in a line that moves on over what is expected there.

Goes in: a line of a block.  Comes out: what patterns match at the position, or an error that says
what should have been there and what is.
"""

from __future__ import annotations

import re
from dataclasses import replace

from t2s.backends.cgra_tia.text.places import TextPlace, TriggeredTextError
from t2s.backends.cgra_tia.text.source_blocks import BlockLine

_BLANKS = re.compile(r"\s*")
_PIECE = re.compile(r"[^\s,;:]+|.", re.DOTALL)
_MOST_DIGITS = 20


class LineCursor:
    """Reads a line from left to right; ``at`` is the offset of what comes next."""

    def __init__(self, line: BlockLine) -> None:
        self._line = line
        self._text = line.code
        self.at = 0

    @property
    def place(self) -> TextPlace:
        """Where it stands."""
        return self.place_of(self.at)

    def place_of(self, at: int) -> TextPlace:
        """The place of an offset."""
        return replace(self._line.place, column=self._line.place.column + at)

    @property
    def rest(self) -> str:
        return self._text[self.at :]

    @property
    def done(self) -> bool:
        """Whether nothing but blanks is left."""
        return not self.rest.strip()

    def blanks(self) -> None:
        """Go on to what is no blank."""
        match = _BLANKS.match(self._text, self.at)
        assert match is not None
        self.at = match.end()

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """What the pattern matches here, and go on behind it; or ``None``, and stay."""
        match = pattern.match(self._text, self.at)
        if match is not None:
            self.at = match.end()
        return match

    def expect(self, pattern: re.Pattern[str], message: str, expected: str) -> re.Match[str]:
        """What the pattern matches here; raises ``TriggeredTextError`` if it does not."""
        match = self.take(pattern)
        if match is None:
            raise self.error(message, expected=expected)
        return match

    def error(self, message: str, *, expected: str, hint: str | None = None) -> TriggeredTextError:
        """An error that shows what stands here."""
        piece = _PIECE.match(self._text, self.at)
        given = "the end of the line" if self.done else repr(piece.group() if piece else "")
        return self.place.error(message, expected=expected, given=given, hint=hint)


def whole_number(digits: str, base: int = 10) -> int:
    """The value of digits; of absurdly many just some number that nothing has room for."""
    shown = digits.lstrip("0")
    return int(shown or "0", base) if len(shown) <= _MOST_DIGITS else 1 << 70


def bits_of(pattern: str) -> tuple[int, int]:
    """The bits that are 1, and those that are 0, of a pattern whose last character is bit 0."""
    letters = list(enumerate(reversed(pattern)))
    ones = sum(1 << bit for bit, letter in letters if letter == "1")
    return ones, sum(1 << bit for bit, letter in letters if letter == "0")
