"""A deadlock: the cycle of waiting PEs as a picture, and the capacities that resolve it."""

from __future__ import annotations

import math

from t2s.core.svg import element, hover
from t2s.report.page.markup import source_lines, source_link, sourced, tag
from t2s.simulator.report.deadlock import DeadlockReport, Wait

_MOST_DRAWN = 12
_RADIUS = 170


def deadlock_view(report: DeadlockReport) -> str:
    """The cycle, or the chain, of waits, and the remedy."""
    shown = report.waits[:_MOST_DRAWN]
    items = [
        tag("li", tag("span", text=f"{wait} "), source_link(source_lines(wait.channel_location)))
        for wait in report.waits[: 4 * _MOST_DRAWN]
    ]
    more = len(report.waits) - len(items)
    more_items = [tag("li", text=f"and {more:,} more")] if more > 0 else []
    return tag(
        "div",
        tag("p", text=f"{report.message[:1].upper()}{report.message[1:]}."),
        tag("p", tag("strong", text="Remedy: "), tag("span", text=report.hint), class_="remedy"),
        tag("div", _cycle_of_waits(report, shown), class_="scroll") if shown else "",
        tag("ol", *items, *more_items),
        class_="deadlock",
    )


def _cycle_of_waits(report: DeadlockReport, waits: tuple[Wait, ...]) -> str:
    places = [
        (
            _RADIUS * math.sin(2 * math.pi * n / max(1, len(waits))),
            -_RADIUS * math.cos(2 * math.pi * n / max(1, len(waits))),
        )
        for n in range(len(waits))
    ]
    left, right = min(x for x, _ in places) - 110, max(x for x, _ in places) + 110
    top, bottom = min(y for _, y in places) - 30, max(y for _, y in places) + 30
    closed = report.closed and len(waits) == len(report.waits)
    drawn = []
    for n, wait in enumerate(waits):
        x, y = places[n]
        if n + 1 < len(waits) or (closed and len(waits) > 1):
            a, b = places[(n + 1) % len(waits)]
            drawn.append(_arrow(wait, (x, y), (a, b)))
        drawn.append(
            element(
                "g",
                hover(str(wait)),
                element("rect", x=x - 58, y=y - 16, width=116, height=32, rx=6, class_="waiting"),
                element("text", text=_cut(wait.pe), x=x, y=y + 4, text_anchor="middle"),
                role="button",
                tabindex=0,
                aria_label=str(wait),
                **sourced(source_lines(wait.location)),
            )
        )
    title = "the cycle of waiting PEs" if closed else "PEs that wait for one another"
    return element(
        "svg",
        hover(title),
        element("desc", text="; ".join(str(wait) for wait in waits)),
        element(
            "defs",
            element(
                "marker",
                element("path", d="M0 0L8 4L0 8z", class_="head"),
                id="arrow-head",
                viewBox="0 0 8 8",
                refX=7,
                refY=4,
                markerWidth=8,
                markerHeight=8,
                orient="auto",
            ),
        ),
        *drawn,
        viewBox=f"{left:.0f} {top:.0f} {right - left:.0f} {bottom - top:.0f}",
        width=f"{right - left:.0f}",
        height=f"{bottom - top:.0f}",
        role="group",
        class_="waits",
        font_size=12,
    )


def _arrow(wait: Wait, start: tuple[float, float], end: tuple[float, float]) -> str:
    (x, y), (a, b) = start, end
    length = math.hypot(a - x, b - y) or 1.0
    dx, dy = (a - x) / length, (b - y) / length
    # as far as the box reaches in this direction
    cut = min(62 / abs(dx) if abs(dx) > 1e-6 else 1e9, 20 / abs(dy) if abs(dy) > 1e-6 else 1e9)
    cut = min(cut, length * 0.4)
    path = f"M{x + dx * cut:.1f} {y + dy * cut:.1f}L{a - dx * cut:.1f} {b - dy * cut:.1f}"
    what = "space in" if wait.sending else "a token in"
    return element(
        "g",
        hover(str(wait)),
        element("path", d=path, class_="wait", marker_end="url(#arrow-head)"),
        element(
            "text",
            text=f"{what} {_cut(wait.channel, 22)}",
            x=(x + a) / 2,
            y=(y + b) / 2 - 5,
            text_anchor="middle",
            font_size=11,
            class_="faint",
        ),
    )


def _cut(text: str, most: int = 17) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
