"""A DRAM over time: bandwidth and row hits, and its tables."""

from __future__ import annotations

from t2s.core.svg import PALETTE, element, hover
from t2s.core.tables import Table
from t2s.report.page.data.dram_line import DramOverTime
from t2s.report.page.views.markup import si, table_view, tag

MOST_SHOWN = 16
"""Rows of a table that are on the page at once; longer ones are folded."""

_LEFT, _TOP, _WIDTH, _HEIGHT = 70, 16, 620, 110


def dram_view(model: DramOverTime) -> str:
    """The pictures, if somebody looked over time, and the tables."""
    head = tag(
        "p",
        text=f"{model.name}: {si(model.mean)}B/s of {si(model.peak)}B/s; {model.hits:.1%} hits.",
    )
    tables = "".join(map(_folded, model.tables))
    if not model.bins:
        return head + tables
    most = max(model.peak, *(one.rate for one in model.bins))
    rates = _chart(model, "used by load and store units, bytes per second", most, model.peak)
    hits = _chart(model, "row hits among the bursts taken up", 1.0, None)
    drawn = tag("div", rates, hits, class_="scroll", tabindex=0, role="region", aria_label="DRAM")
    return head + drawn + tables


def _folded(table: Table) -> str:
    """A table; one of many channels is opened by a click."""
    shown = table_view(table)
    if len(table.rows) <= MOST_SHOWN:
        return shown
    return tag("details", tag("summary", text=f"{table.title}: {len(table.rows):,} rows"), shown)


def _chart(model: DramOverTime, title: str, most: float, peak: float | None) -> str:
    first, last = model.bins[0].first, model.bins[-1].last
    length = last - first + 1
    color = PALETTE[0] if peak is not None else PALETTE[2]
    bars = []
    for one in model.bins:
        value = one.rate if peak is not None else one.hits
        if value is None:
            continue
        x = _LEFT + (one.first - first) / length * _WIDTH
        width = (one.last - one.first + 1) / length * _WIDTH
        height = value / most * _HEIGHT
        shown = f"{si(value)}B/s" if peak is not None else f"{value:.1%}"
        said = hover(f"cycles {one.first:,} to {one.last:,}: {shown}")
        bars.append(
            element(
                "rect",
                said,
                x=x,
                y=_TOP + _HEIGHT - height,
                width=max(width, 0.5),
                height=height,
                style=f"fill:{color}",
            )
        )
    lines = [element("path", d=f"M{_LEFT} {_TOP + _HEIGHT}h{_WIDTH}", class_="grid")]
    top = f"{si(most)}B/s" if peak is not None else "100 %"
    lines.append(element("text", text=top, x=_LEFT - 6, y=_TOP + 8, text_anchor="end"))
    if peak is not None:
        y = _TOP + _HEIGHT - peak / most * _HEIGHT
        lines.append(
            element(
                "path", hover(f"peak {si(peak)}B/s"), d=f"M{_LEFT} {y:.1f}h{_WIDTH}", class_="roof"
            )
        )
    below = _TOP + _HEIGHT + 15
    lines.append(element("text", text=f"cycle {first:,}", x=_LEFT, y=below))
    lines.append(element("text", text=f"{last:,}", x=_LEFT + _WIDTH, y=below, text_anchor="end"))
    width, height = _LEFT + _WIDTH + 16, _TOP + _HEIGHT + 22
    return element(
        "svg",
        hover(title),
        element("desc", text=f"{title}, cycles {first:,} to {last:,}, in {len(model.bins)} bins"),
        element("text", text=title, x=_LEFT, y=_TOP - 4),
        *bars,
        *lines,
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        role="img",
        class_="dram",
        font_size=12,
    )
