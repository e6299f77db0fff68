"""The waterfall: from the cycles of A to those of B, a bar for each cause."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from t2s.core.names import counted
from t2s.core.svg import PALETTE, SvgPicture, element, hover, picture
from t2s.report.page.data.comparison_model import ComparedSide, CycleChange
from t2s.report.page.views.markup import COLORS

MOST_STEPS = 14
"""Causes with a bar of their own; the others share one."""

_LEFT, _WIDTH, _RIGHT, _ROW, _TOP = 250, 480, 190, 24, 54
_LONGEST_NAME = 32
_ANCHORED = 0.75
"""The axis begins at 0 unless all bars end above this share of the largest number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaterfallStep:
    """A bar from one number of cycles to another."""

    name: str
    start: int
    end: int
    color: str
    total: bool = False

    @property
    def text(self) -> str:
        """The number beside the bar."""
        return f"{self.end:,}" if self.total else f"{self.end - self.start:+,}"


def steps_of(
    a: ComparedSide, b: ComparedSide, causes: Sequence[CycleChange]
) -> tuple[WaterfallStep, ...]:
    """The bars: A, the causes that changed, the largest change first, and B."""
    changes = [one for one in causes if one.change]
    shown, rest = changes, changes[:0]
    if len(changes) > MOST_STEPS:
        shown, rest = changes[: MOST_STEPS - 1], changes[MOST_STEPS - 1 :]
    steps = [_total(a)]
    at = a.cycles
    for one in shown:
        color = COLORS[one.use.kind.state]
        steps.append(WaterfallStep(name=one.use.text, start=at, end=at + one.change, color=color))
        at += one.change
    if rest:
        end = at + sum(one.change for one in rest)
        name = f"{len(rest)} others"
        steps.append(WaterfallStep(name=name, start=at, end=end, color=PALETTE[7]))
    return (*steps, _total(b))


def _total(side: ComparedSide) -> WaterfallStep:
    return WaterfallStep(
        name=f"{side.label}: {side.design}", start=0, end=side.cycles, color=PALETTE[2], total=True
    )


def waterfall_picture(
    a: ComparedSide, b: ComparedSide, causes: Sequence[CycleChange]
) -> SvgPicture:
    """The picture; the same bytes for the same comparison."""
    steps = steps_of(a, b, causes)
    ends = [cycles for step in steps for cycles in _ends(step)]
    top = max(max(ends), 1)
    base = 0
    if min(ends) >= _ANCHORED * top and min(ends) < top:
        base = max(0, min(ends) + (min(ends) - top) // 4)  # so that the lowest bar has a length
    scale = _WIDTH / max(1, top - base)

    def across(cycles: int) -> float:
        return _LEFT + (max(cycles, base) - base) * scale

    drawn = [_axis(base)]
    drawn += [_bar(step, row, across) for row, step in enumerate(steps)]
    for row, step in enumerate(steps[:-1]):
        x, y = across(step.end), _TOP + row * _ROW + _ROW - 5
        drawn.append(
            element("line", x1=x, x2=x, y1=y, y2=y + 10, stroke="currentColor", stroke_width=0.7)
        )
    said = f"{counted(a.cycles, 'cycle')} of {a.label} become {b.cycles:,} of {b.label}: "
    said += ", ".join(f"{step.name} {step.text}" for step in steps[1:-1]) or "no cause differs"
    return picture(
        _LEFT + _WIDTH + _RIGHT,
        _TOP + len(steps) * _ROW + 8,
        *drawn,
        title=f"Cycles from {a.label} to {b.label} by cause",
        description=said,
    )


def _ends(step: WaterfallStep) -> tuple[int, ...]:
    return (step.end,) if step.total else (step.start, step.end)


def _axis(base: int) -> str:
    text = "cycles; the axis begins at " + (f"{base:,}, not at 0" if base else "0")
    return element("text", text=text, x=_LEFT, y=_TOP - 30, fill_opacity=0.75) + element(
        "line",
        x1=_LEFT,
        x2=_LEFT,
        y1=_TOP - 8,
        y2=_TOP - 2,
        stroke="currentColor",
    )


def _bar(step: WaterfallStep, row: int, across: Callable[[int], float]) -> str:
    y = _TOP + row * _ROW
    left, right = sorted((across(0 if step.total else step.start), across(step.end)))
    name = step.name if len(step.name) <= _LONGEST_NAME else f"{step.name[: _LONGEST_NAME - 1]}…"
    return element(
        "g",
        hover(f"{step.name}: {step.text}"),
        element(
            "text",
            text=name,
            x=_LEFT - 10,
            y=y + 14,
            text_anchor="end",
            font_weight="600" if step.total else "400",
        ),
        element(
            "rect",
            x=left,
            y=y,
            width=max(1.0, right - left),
            height=_ROW - 5,
            fill=PALETTE[7] if step.color.startswith("var") else step.color,
        ),
        element("text", text=step.text, x=right + 6, y=y + 14),
    )
