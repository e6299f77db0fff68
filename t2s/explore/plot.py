"""A small scatter plot as inline SVG, with nothing loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _EDGE = 480, 240, 90, 40, 12
_LINE = "currentColor"


def scatter(points: Sequence[tuple[int, int]], *, across: str, up: str, limit: int) -> str:
    """Points joined by steps; ``limit`` is a dashed line across the first coordinate."""
    if not points:
        return ""
    x_low, x_high = _range([x for x, _ in points])
    y_low, y_high = _range([y for _, y in points])

    def x_of(value: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _EDGE) * (value - x_low) / (x_high - x_low)

    def y_of(value: float) -> float:
        return _EDGE + (_HEIGHT - _BOTTOM - _EDGE) * (y_high - value) / (y_high - y_low)

    drawn = [(x_of(x), y_of(y)) for x, y in points]
    path = f"M {drawn[0][0]:.1f} {drawn[0][1]:.1f}"
    path += "".join(f" H {x:.1f} V {y:.1f}" for x, y in drawn[1:])
    marks = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{_LINE}">'
        f"<title>{a:,} {escape(across)}, {b:,} {escape(up)}</title></circle>"
        for (x, y), (a, b) in zip(drawn, points, strict=True)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" font-family="sans-serif" font-size="11">'
        f"{_axes(across, up, points)}"
        f'<path d="{path}" fill="none" stroke="{_LINE}"/>{marks}'
        f"{_limit(x_of(limit)) if x_low <= limit <= x_high else ''}</svg>"
    )


def _range(values: Sequence[int]) -> tuple[float, float]:
    """A little more than from the smallest to the largest."""
    low, high = min(values), max(values)
    margin = (high - low) * 0.05 or 1.0
    return low - margin, high + margin


def _axes(across: str, up: str, points: Sequence[tuple[int, int]]) -> str:
    right, floor = _WIDTH - _EDGE, _HEIGHT - _BOTTOM
    xs, ys = [x for x, _ in points], [y for _, y in points]

    def text(x: float, y: float, anchor: str, label: str) -> str:
        return (
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{_LINE}">'
            f"{escape(label)}</text>"
        )

    return (
        f'<path d="M {_LEFT} {_EDGE} V {floor} H {right}" fill="none" stroke="{_LINE}"/>'
        + text(_LEFT, floor + 16, "start", f"{min(xs):,}")
        + text(right, floor + 16, "end", f"{max(xs):,}")
        + text((_LEFT + right) / 2, floor + 32, "middle", across)
        + text(_LEFT - 6, _EDGE + 8, "end", f"{max(ys):,}")
        + text(_LEFT - 6, floor, "end", f"{min(ys):,}")
        + text(_LEFT - 6, (_EDGE + floor) / 2, "end", up)
    )


def _limit(x: float) -> str:
    return (
        f'<path d="M {x:.1f} {_EDGE} V {_HEIGHT - _BOTTOM}" stroke="{_LINE}" '
        'stroke-dasharray="4 4" opacity="0.6"/>'
    )
