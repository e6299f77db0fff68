"""Display in notebooks and terminals: cards with numbers and pictures, tables, and stall tables.

A class that derives from ``NotebookDisplay`` defines its card.  A card is a fragment of HTML
without scripts that loads nothing; parts that would make it large are left out, with a note.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Protocol

from t2s.core.names import clipped, printable

# Cards use the page's own colors, so that they are readable on light and dark pages.

MOST_BYTES = 250_000
"""The most bytes of a card, without the note that something was left out."""

MOST_LINES = 400
MOST_LETTERS = 400
"""Letters of a line, or of a number of the summary."""

_LEFT_OUT = "<p>This part is too large for a notebook: print it.</p>"


class CardPart(Protocol):
    """A part of a card: a picture, a table, a text, another card."""

    def html(self) -> str:
        """A well-formed element, with everything escaped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preformatted:
    """Preformatted text under a title; or the title alone."""

    title: str
    text: str = ""

    def html(self) -> str:
        """The first lines, and the number of the others."""
        lines = self.text.splitlines()
        shown = [clipped(line, MOST_LETTERS) for line in lines[:MOST_LINES]]
        if len(lines) > len(shown):
            shown.append(f"… and {len(lines) - len(shown):,} more lines")
        text = escape("\n".join(shown), quote=False)
        title = f"<p>{_shown(self.title)}</p>" if self.title else ""
        body = f'<pre style="overflow-x:auto;line-height:1.3">{text}</pre>' if text else ""
        return f"<div>{title}{body}</div>"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotebookCard:
    """A title, numbers as (label, text), parts below them, and further cards."""

    title: str
    summary: tuple[tuple[str, str], ...] = ()
    parts: tuple[CardPart | None, ...] = ()

    def html(self) -> str:
        """The card as a ``<div>``; parts that are ``None`` are skipped."""
        parts, room = [], MOST_BYTES
        for piece in map(printable, self._pieces()):
            size = len(piece.encode())
            if size > room:
                parts.append(_LEFT_OUT)
            else:
                parts.append(piece)
                room -= size
        return f"<div>{''.join(parts)}</div>"

    def _pieces(self) -> Iterator[str]:
        yield f"<h4>{_shown(self.title)}</h4>"
        if self.summary:
            rows = (
                f'<tr><th style="text-align:left">{_shown(label)}</th>'
                f'<td style="text-align:left">{_shown(text)}</td></tr>'
                for label, text in self.summary[:MOST_LINES]
            )
            yield f"<table>{''.join(rows)}</table>"
        yield from (part.html() for part in self.parts if part is not None)


def _shown(text: str) -> str:
    return escape(clipped(text, MOST_LETTERS), quote=False)


class NotebookDisplay:
    """Shows an object in notebooks as a card, and as ``str(object)`` without HTML.

    Subclasses define ``_card`` or ``_repr_html_``.
    """

    __slots__ = ()

    def _card(self) -> NotebookCard:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return self._card().html()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """The object as ``text/html`` and as ``text/plain``; notebooks choose among them."""
        return {"text/plain": str(self), "text/html": self._repr_html_()}


MOST_ROWS = 100
"""Rows of a table in a notebook."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(NotebookDisplay):
    """Rows of text under headers; the columns in ``left`` are left-aligned, others right."""

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: frozenset[int] = frozenset({0})

    def text(self) -> str:
        """Aligned columns, the headers underlined."""
        lines = [self.headers, *self.rows]
        widths = [max(len(line[column]) for line in lines) for column in range(len(self.headers))]

        def aligned(line: Sequence[str]) -> str:
            cells = (
                cell.ljust(width) if column in self.left else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(line, widths, strict=True))
            )
            return "  ".join(cells).rstrip()

        rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
        return "\n".join([self.title, aligned(self.headers), rule, *map(aligned, self.rows)])

    def html(self) -> str:
        """A ``<table>`` with everything escaped and nothing loaded from elsewhere.

        Only the first ``MOST_ROWS`` rows are shown, with the number of the others.
        """

        def cells(tag: str, line: Sequence[str]) -> str:
            styled = (
                f'<{tag} style="text-align:{"left" if column in self.left else "right"}">'
                f"{escape(clipped(cell, MOST_LETTERS))}</{tag}>"
                for column, cell in enumerate(line)
            )
            return f"<tr>{''.join(styled)}</tr>"

        body = "".join(cells("td", row) for row in self.rows[:MOST_ROWS])
        if len(self.rows) > MOST_ROWS:
            more = f"and {len(self.rows) - MOST_ROWS:,} more rows"
            body += f'<tr><td colspan="{len(self.headers)}">{more}</td></tr>'
        return (
            f"<table><caption>{escape(self.title)}</caption>"
            f"<thead>{cells('th', self.headers)}</thead><tbody>{body}</tbody></table>"
        )

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return self.html()

    def rich(self) -> Any:
        """A ``rich.table.Table``."""
        from rich.table import Table as RichTable
        from rich.text import Text

        table = RichTable(title=Text(self.title), title_justify="left")
        for column, header in enumerate(self.headers):
            table.add_column(Text(header), justify="left" if column in self.left else "right")
        for row in self.rows:
            table.add_row(*(Text(cell) for cell in row))
        return table


KINDS = ("busy", "starved", "blocked", "waiting", "idle")


@dataclass(frozen=True, slots=True, kw_only=True)
class StallRow:
    """The cycles of one node by what its PEs did, summed over its PEs.

    busy: a firing.  starved: no token, or no memory bandwidth to load.  blocked: no space, or no
    memory bandwidth to store.  waiting: the node's own initiation interval, or an empty slot of
    its schedule.  idle: before the
    first firing or after the last.  ``main_cause`` names what cost most of the stalled cycles.
    """

    node: str
    pe_count: int
    busy: int
    starved: int
    blocked: int
    waiting: int
    idle: int
    main_cause: str | None

    @property
    def pe_cycles(self) -> int:
        """The number of PEs times the cycles of the run."""
        return self.busy + self.starved + self.blocked + self.waiting + self.idle

    def share(self, kind: str) -> float:
        """The share, 0 to 1, of a kind of cycles (one of ``KINDS``) in all of the node's."""
        return int(getattr(self, kind)) / self.pe_cycles if self.pe_cycles else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StallTable(NotebookDisplay):
    """One row per node; iterates over the rows, and is indexed by node name."""

    cycles: int
    rows: tuple[StallRow, ...]

    def __iter__(self) -> Iterator[StallRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, node: str) -> StallRow:
        for row in self.rows:
            if row.node == node:
                return row
        raise KeyError(node)

    @property
    def table(self) -> Table:
        """The table as text cells: PE-cycles and their share, by kind."""
        rows = tuple(
            (
                row.node,
                *(f"{getattr(row, kind):,} ({row.share(kind):.1%})" for kind in KINDS),
                row.main_cause or "-",
            )
            for row in self.rows
        )
        return Table(
            title=f"PE-cycles by node (PEs x {self.cycles:,} cycles = 100 %)",
            headers=("node", *KINDS, "main cause of stalls"),
            rows=rows,
            left=frozenset({0, len(KINDS) + 1}),
        )

    def __str__(self) -> str:
        return self.table.text()

    def __rich__(self) -> Any:
        return self.table.rich()

    def _repr_html_(self) -> str:
        return self.table.html()


def engineering(seconds: float) -> str:
    """The number with a prefix of the unit: ``1.5 m`` for 0.0015."""
    for factor, prefix in ((1.0, ""), (1e-3, "m"), (1e-6, "µ")):
        if seconds >= factor:
            return f"{seconds / factor:.4g} {prefix}"
    return f"{seconds / 1e-9:.4g} n"


def cycle_text(cycle: int | None) -> str:
    """The number of a cycle, ``-`` for none."""
    return "-" if cycle is None else f"{cycle:,}"
