"""HTML: elements with escaped attributes and texts, tables, and links to the user's lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import PurePath
from typing import Any

from t2s.core.display import Table
from t2s.core.location import SourceLocation
from t2s.core.svg import STATE_COLORS
from t2s.simulator.timeline import PEState

COLORS = {**STATE_COLORS, "idle": "var(--idle)"}
"""The colors of what PEs do, on every view."""

STATES = tuple(state.name.lower() for state in PEState)


def tag(name: str, *children: str, text: str = "", **attributes: object) -> str:
    """An HTML element with an end tag.  Attributes and ``text`` are escaped; ``_`` means ``-``."""
    words = "".join(
        f' {key.strip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{words}>{escape(text, quote=False)}{''.join(children)}</{name}>"


def script_data(identity: str, value: object) -> str:
    """Data for the page's script; nothing in it can end the element."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    text = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return f'<script type="application/json" id="{escape(identity)}">{text}</script>'


def table_view(table: Table) -> str:
    """A table that scrolls where it is too wide."""
    return rows_view(table.title, table.headers, [[*row] for row in table.rows], table.left)


def rows_view(
    title: str,
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    left: frozenset[int] = frozenset({0}),
    *,
    elements: frozenset[int] = frozenset(),
) -> str:
    """A table of texts; the cells of the columns in ``elements`` are HTML already."""

    def cell(name: str, column: int, value: str, scope: str | None = None) -> str:
        align = "left" if column in left else "right"
        if name == "td" and column in elements:
            return tag(name, value, class_=align)
        return tag(name, text=value, class_=align, scope=scope)

    head = "".join(cell("th", at, value, "col") for at, value in enumerate(headers))
    body = "".join(
        tag("tr", *(cell("td", at, value) for at, value in enumerate(row))) for row in rows
    )
    inside = tag(
        "table",
        tag("caption", tag("span", text=title)),
        tag("thead", tag("tr", head)),
        tag("tbody", body),
    )
    return tag("div", inside, class_="scroll", tabindex=0, role="region", aria_label=title)


MOST_SHOWN = 16
"""The most rows of a table that is shown at once; longer tables are folded."""


def folded(title: str, rows: int, shown: str) -> str:
    """A table of so many rows; a long one is collapsed."""
    if rows <= MOST_SHOWN:
        return shown
    return tag("details", tag("summary", text=title), shown)


def source_key(lines: SourceLines) -> str:
    """The key by which the script shows a line."""
    value = {"place": lines.text, "line": lines.line, "first": lines.first, "lines": lines.lines}
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))


def sourced(lines: SourceLines | None) -> dict[str, Any]:
    """The attribute of an element that shows a line; none without a line."""
    return {} if lines is None else {"data_source": source_key(lines)}


def source_link(lines: SourceLines | None) -> str:
    """A button that shows a line of the user's program; empty without a line."""
    if lines is None:
        return ""
    return tag(
        "button", text=lines.text, type="button", class_="place", data_source=source_key(lines)
    )


def legend() -> str:
    """The legend."""
    items = (
        tag("li", tag("span", class_=f"swatch {name}"), tag("span", text=name))
        for name, color in COLORS.items()
    )
    return tag("ul", *items, class_="legend")


def si(number: float) -> str:
    """A number with a prefix: ``27.5 G``."""
    for size, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= size:
            return f"{number / size:.3g} {prefix}"
    return f"{number:.3g} "


# The user's lines on a page: the base name of the file, with the surrounding lines.

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
    """The lines around a location; pages reveal no folders of the machine they are made on.

    ``None`` for lines of installed packages, from which a terminal command was called.
    """
    if location is None or "site-packages" in PurePath(location.file).parts:
        return None
    everything = location.file_lines
    first = max(1, location.line - _AROUND)
    shown = everything[first - 1 : location.line + _AROUND]
    return SourceLines(
        file=PurePath(location.file).name,
        line=location.line,
        first=first,
        lines=tuple(line.rstrip("\n")[:LONGEST_LINE] for line in shown),
    )
