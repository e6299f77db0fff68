"""Programs as text: a statement on a line, comments behind ``#``.

A statement goes on in the next line inside parentheses, and after an operator, ``=`` or a comma.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from t2s.core.location import SourceLocation
from t2s.core.walk import Term, rewrite
from t2s.sparse_repr.notation.ir import Access
from t2s.sparse_repr.notation.parse import parse_statement
from t2s.sparse_repr.notation.program import WrittenStatement


def parse_statements(text: str, location: SourceLocation) -> tuple[WrittenStatement, ...]:
    """The statements of a text, each with the line of the user's file that it is on.

    Raises ``UserError`` with that line, and the column in the statement, for a syntax error.
    """
    written = []
    for block in _blocks(text):
        where = _place(block, location)
        result, value = parse_statement(block.text, location=where)

        def placed(term: Term, where: SourceLocation = where) -> Term | None:
            return replace(term, location=where) if isinstance(term, Access) else None

        written.append(
            WrittenStatement(result=result, value=rewrite(value, placed), location=where)
        )
    return tuple(written)


@dataclass(frozen=True, slots=True)
class _Block:
    """A statement on one line, and its first line as it is in the text, with its number from 0."""

    text: str
    first: str
    number: int


def _blocks(text: str) -> Iterator[_Block]:
    parts: list[str] = []
    first, start = "", 0
    for number, line in enumerate(text.splitlines()):
        code = line.split("#", 1)[0].strip()
        if not code:
            continue
        if not parts:
            first, start = line.strip(), number
        parts.append(code)
        whole = " ".join(parts)
        open_ended = whole.count("(") > whole.count(")") or whole[-1] in "+-*/=,;"
        if not open_ended:
            yield _Block(whole, first, start)
            parts = []
    if parts:
        yield _Block(" ".join(parts), first, start)


def _place(block: _Block, location: SourceLocation) -> SourceLocation:
    """The line of the user's file with a statement, which is below that of the call."""
    lines = location.file_lines
    for number in range(location.line, min(location.line + block.number + 2, len(lines) + 1)):
        if block.first in lines[number - 1]:
            return SourceLocation(location.file, number)
    return location
