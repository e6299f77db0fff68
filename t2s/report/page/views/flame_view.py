"""The stall flame graph: node, what its PEs did, what they waited for; the width is PE-cycles."""

from __future__ import annotations

from collections.abc import Iterator

from t2s.core.names import counted
from t2s.core.svg import element, hover
from t2s.report.page.data.stall_flame import FlamePart
from t2s.report.page.views.markup import COLORS, legend, sourced, tag

_ROW = 26
_THINNEST = 0.0005
"""The share of the whole below which parts of one node or state are drawn together."""


def flame_view(model: FlamePart) -> str:
    """The graph; each part is a button that widens it and shows the user's line."""
    if not model.cycles:
        return tag("p", text="No PE was there for any cycle.")
    parts = list(_parts(model, model.cycles, 0, 0, ()))
    depth = max(level for level, _ in parts)
    drawing = element(
        "svg",
        hover("Where the cycles went"),
        element(
            "desc",
            text="Node, then busy, starved, blocked, waiting or idle, then the channel that was "
            "waited for. Widths are shares of all PE-cycles, which add up to 100 %.",
        ),
        *(text for _, text in parts),
        class_="flame",
        width="100%",
        height=(depth + 1) * _ROW,
        role="group",
        data_cycles=model.cycles,
    )
    status = tag("p", text=_said(model, model, model.cycles), class_="status", aria_live="polite")
    reset = tag("button", text="whole run", type="button", class_="reset", hidden="hidden")
    return tag("div", legend(), drawing, status, tag("p", reset), class_="flame-view")


def _parts(
    part: FlamePart, whole: int, level: int, start: int, path: tuple[str, ...]
) -> Iterator[tuple[int, str]]:
    yield level, _drawn(part, whole, level, start, path)
    at = start
    small: list[FlamePart] = []
    for inner in sorted(part.parts, key=lambda one: -one.cycles) if level else part.parts:
        if inner.cycles < whole * _THINNEST and len(part.parts) > 8:
            small.append(inner)
            continue
        yield from _parts(inner, whole, level + 1, at, (*path, inner.name))
        at += inner.cycles
    if small:
        cycles = sum(one.cycles for one in small)
        others = FlamePart(name=f"{len(small)} others", cycles=cycles, kind=small[0].kind)
        yield level + 1, _drawn(others, whole, level + 1, at, (*path, others.name))


def _drawn(part: FlamePart, whole: int, level: int, start: int, path: tuple[str, ...]) -> str:
    said = " › ".join(path) or part.name
    text = f"{said}: {counted(part.cycles, 'PE-cycle')}, {part.cycles / whole:.2%}"
    if part.source is not None:
        text += f", {part.source.text}"
    return element(
        "svg",
        hover(text),
        element(
            "rect",
            width="100%",
            height=_ROW - 2,
            style=f"fill:{COLORS.get(part.kind, 'var(--node)')}",
        ),
        element("text", text=_short(part), x=5, y=16, class_=f"on-{part.kind or 'node'}"),
        x=f"{start / whole * 100:.4f}%",
        y=level * _ROW,
        width=f"{part.cycles / whole * 100:.4f}%",
        height=_ROW - 2,
        role="button",
        tabindex=0,
        aria_label=text,
        class_="part",
        data_start=start,
        data_cycles=part.cycles,
        data_level=level,
        **sourced(part.source),
    )


def _short(part: FlamePart) -> str:
    return part.name


def _said(part: FlamePart, model: FlamePart, whole: int) -> str:
    cycles = counted(part.cycles, "PE-cycle")
    return f"{part.name}: {cycles}, {part.cycles / whole:.2%} of {model.cycles:,}"
