"""A plot with logarithmic axes as SVG elements: roofs, lines of kernels, points."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from t2s.core.svg import element

Point = tuple[float, float]

_LEFT, _TOP, _WIDTH, _HEIGHT = 70, 40, 480, 320
RIGHT = _LEFT + _WIDTH + 20
"""Where there is room for a legend."""
TOP = _TOP
BOTTOM = _TOP + _HEIGHT + 50


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPlot:
    """Two axes from a power of ten to another; ``x`` and ``y`` are these powers."""

    x: tuple[int, int]
    y: tuple[int, int]

    def place(self, point: Point) -> Point:
        """Where a point with positive coordinates is in the picture."""
        across, up = (
            (math.log10(value) - least) / (most - least)
            for value, (least, most) in zip(point, (self.x, self.y), strict=True)
        )
        return _LEFT + across * _WIDTH, _TOP + (1 - up) * _HEIGHT

    def axes(self, x: str, y: str) -> Iterator[str]:
        """The frame, a line and a number for each power of ten, and what the axes are."""
        frame: dict[str, Any] = {"fill": "none", "stroke": "currentColor", "stroke_opacity": 0.5}
        yield element("rect", x=_LEFT, y=_TOP, width=_WIDTH, height=_HEIGHT, **frame)
        thin: dict[str, Any] = {"fill": "none", "stroke": "currentColor", "stroke_opacity": 0.15}
        for power in range(self.x[0], self.x[1] + 1):
            at, _ = self.place((10.0**power, 10.0 ** self.y[0]))
            yield element("path", d=f"M{at:.1f} {_TOP}v{_HEIGHT}", **thin)
            text = f"{10.0**power:g}"
            yield element("text", text=text, x=at, y=_TOP + _HEIGHT + 16, text_anchor="middle")
        for power in range(self.y[0], self.y[1] + 1):
            _, at = self.place((10.0 ** self.x[0], 10.0**power))
            yield element("path", d=f"M{_LEFT} {at:.1f}h{_WIDTH}", **thin)
            text = f"{10.0**power:g}"
            yield element("text", text=text, x=_LEFT - 6, y=at + 4, text_anchor="end")
        yield element(
            "text", text=x, x=_LEFT + _WIDTH / 2, y=_TOP + _HEIGHT + 36, text_anchor="middle"
        )
        yield element("text", text=y, x=_LEFT - 40, y=_TOP - 12)

    def line(
        self, points: Sequence[Point], color: str, *children: str, dashed: bool = False
    ) -> str:
        """A line through points, which are inside of the axes."""
        places = (self.place(point) for point in points)
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        return _stroke(path, color, dashed, *children)


def legend_line(x: float, y: float, color: str, *, dashed: bool = False) -> str:
    """A piece of a line for a legend, 24 wide, that begins at a place of the picture."""
    return _stroke(f"M{x:g} {y:g}h24", color, dashed)


def _stroke(path: str, color: str, dashed: bool, *children: str) -> str:
    more = {"stroke_dasharray": "6 4"} if dashed else {}
    return element("path", *children, d=path, fill="none", stroke=color, stroke_width=2, **more)


def powers(values: Iterable[float]) -> tuple[int, int]:
    """The powers of ten around positive values, two different ones."""
    found = list(values)
    least, most = math.floor(math.log10(min(found))), math.ceil(math.log10(max(found)))
    return least, max(most, least + 1)
