"""A text as places, lines and blocks, and errors that name them.

Each label has a block of lines, with code and comment separated; a cursor reads a line from left to
right.  Every error is a ``TriggeredTextError``, which shows file, line and column, and the line
itself even if the text is not from a file.  Refused: a text without labels, statements before the
first label, and text between ``<`` and ``>`` in a comment, which the public assembler silently
drops.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
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
    """A line of a text."""

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
    """A hint with the closest of some words, if one is close."""
    close = get_close_matches(word.lower(), list(words), n=1)
    return f"did you mean {close[0]!r}?" if close else None


def block_name(number: int, label: str) -> str:
    """The name of a processing element in messages: its number in the text, and its label."""
    return f"PE {number} <{label}>" if label else f"PE {number}"


_LABEL = re.compile(r"([^<>#]*)<([^<>]*)>([^<>]*)")
_STATEMENT = re.compile(r"\s*(when|init)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockLine:
    """A line, or its part beside a label; ``code`` starts at ``place``."""

    code: str
    comment: str | None
    place: TextPlace

    @property
    def blank(self) -> bool:
        return not self.code.strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceBlock:
    """The lines of one processing element."""

    label: str
    place: TextPlace
    lines: tuple[BlockLine, ...]


def source_blocks(text: str, file: str) -> tuple[SourceBlock, ...]:
    """The blocks of a text in their order; raises ``TriggeredTextError``."""
    blocks: list[tuple[str, TextPlace, list[BlockLine]]] = []
    name = ""
    for number, line in enumerate(text.split("\n"), 1):
        start = TextPlace(file=file, line=number, column=1, text=line, block=name)
        before, label, behind = _split(line, start)
        code, hash_sign, comment = before.partition("#")
        if blocks:
            block_comment = comment if hash_sign else None
            blocks[-1][2].append(BlockLine(code=code, comment=block_comment, place=start))
        elif _STATEMENT.match(code):
            raise start.error(
                "an instruction stands before the first label, where all text is ignored",
                expected="a line <NAME> before the instructions of each processing element",
                given=repr(code.strip()),
            )
        if label is not None:
            name = block_name(len(blocks), label)
            after = replace(start, column=len(line) - len(behind) + 1, block=name)
            code, hash_sign, comment = behind.partition("#")
            first = BlockLine(code=code, comment=comment if hash_sign else None, place=after)
            blocks.append((label, replace(start, column=len(before) + 1), [first]))
    if not blocks:
        raise TextPlace(file=file, line=1, column=1, text=text.partition("\n")[0]).error(
            "the text has no label",
            expected="a line <NAME> before the instructions of each processing element",
            given="no label in the text",
            hint="put a line such as <pe_0> before the first instruction",
        )
    return tuple(
        SourceBlock(label=label, place=place, lines=tuple(lines)) for label, place, lines in blocks
    )


def _split(line: str, start: TextPlace) -> tuple[str, str | None, str]:
    """The text before a label, the label, and the text behind it."""
    at = line.find("<")
    if at < 0:
        return line, None, ""
    match = _LABEL.fullmatch(line)
    if match is not None:
        before, label, behind = match.groups()
        return before, label, behind
    in_comment = "#" in line[:at] or _LABEL.match(line) is not None
    column = at + 1 if "#" in line[:at] or not in_comment else _odd_bracket(line)
    raise replace(start, column=column).error(
        "a '<' or '>' is not part of a label"
        + (", and the public assembler would cut the text there" if in_comment else ""),
        expected="one label <NAME> in a line, and no '<' or '>' beside it or in a comment",
        given=repr(line[column - 1 :][:40]),
    )


def _odd_bracket(line: str) -> int:
    """The column of the first stray bracket behind a label."""
    behind = line.index(">") + 1
    return next(at + 1 for at in range(behind, len(line)) if line[at] in "<>")


_BLANKS = re.compile(r"\s*")
_PIECE = re.compile(r"[^\s,;:]+|.", re.DOTALL)
_MOST_DIGITS = 20


class LineCursor:
    """Reads a line from left to right; ``at`` is the current offset."""

    def __init__(self, line: BlockLine) -> None:
        self._line = line
        self._text = line.code
        self.at = 0

    @property
    def place(self) -> TextPlace:
        """The current place."""
        return self.place_of(self.at)

    def place_of(self, at: int) -> TextPlace:
        """The place of an offset."""
        return replace(self._line.place, column=self._line.place.column + at)

    @property
    def rest(self) -> str:
        return self._text[self.at :]

    @property
    def done(self) -> bool:
        """Whether only blanks remain."""
        return not self.rest.strip()

    def blanks(self) -> None:
        """Skip blanks."""
        match = _BLANKS.match(self._text, self.at)
        assert match is not None
        self.at = match.end()

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Consume what a pattern matches here; ``None`` if it does not match."""
        match = pattern.match(self._text, self.at)
        if match is not None:
            self.at = match.end()
        return match

    def expect(self, pattern: re.Pattern[str], message: str, expected: str) -> re.Match[str]:
        """Consume what a pattern matches here; raises ``TriggeredTextError`` if it does not."""
        match = self.take(pattern)
        if match is None:
            raise self.error(message, expected=expected)
        return match

    def error(self, message: str, *, expected: str, hint: str | None = None) -> TriggeredTextError:
        """An error that shows the text at the current place."""
        piece = _PIECE.match(self._text, self.at)
        given = "the end of the line" if self.done else repr(piece.group() if piece else "")
        return self.place.error(message, expected=expected, given=given, hint=hint)


def whole_number(digits: str, base: int = 10) -> int:
    """The value of digits; for absurdly many, some number that is too large everywhere."""
    shown = digits.lstrip("0")
    return int(shown or "0", base) if len(shown) <= _MOST_DIGITS else 1 << 70


def bits_of(pattern: str) -> tuple[int, int]:
    """The one bits and the zero bits of a pattern whose last character is bit 0."""
    letters = list(enumerate(reversed(pattern)))
    ones = sum(1 << bit for bit, letter in letters if letter == "1")
    return ones, sum(1 << bit for bit, letter in letters if letter == "0")
