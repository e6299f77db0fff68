"""Tables as plain text, for a terminal (rich) and for a notebook (HTML)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
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
        """A ``<table>`` with everything escaped and nothing loaded from elsewhere."""

        def cells(tag: str, line: Sequence[str]) -> str:
            styled = (
                f'<{tag} style="text-align:{"left" if column in self.left else "right"}">'
                f"{escape(cell)}</{tag}>"
                for column, cell in enumerate(line)
            )
            return f"<tr>{''.join(styled)}</tr>"

        body = "".join(cells("td", row) for row in self.rows)
        return (
            f"<table><caption>{escape(self.title)}</caption>"
            f"<thead>{cells('th', self.headers)}</thead><tbody>{body}</tbody></table>"
        )

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
