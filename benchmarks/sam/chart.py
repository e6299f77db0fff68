"""Charts as SVG in an HTML file, with nothing loaded from elsewhere, and bars for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import log10
from pathlib import Path

WIDTH, HEIGHT, LEFT, BOTTOM, EDGE = 640, 320, 70, 60, 16
COLORS = ("#2f6fb0", "#d1792b", "#4d9a57", "#b0413e", "#7d5ba6", "#8a6d3b", "#555555", "#d08fb5")

Series = Mapping[str, Mapping[str, float]]
"""Of each series, values by the name of their place; a series may lack some."""


class Scale:
    """Logarithmic heights of values."""

    def __init__(self, series: Series) -> None:
        values = [value for points in series.values() for value in points.values() if value > 0]
        self.low = 10 ** int(log10(min(values)))
        self.high = max(values) * 1.1

    def height(self, value: float) -> float:
        """In pixels from the top."""
        share = log10(max(value, self.low) / self.low) / log10(self.high / self.low)
        return EDGE + (HEIGHT - BOTTOM - EDGE) * (1 - share)

    def ticks(self) -> list[int]:
        """Powers of ten."""
        found = [self.low]
        while found[-1] * 10 <= self.high:
            found.append(found[-1] * 10)
        return found


def bars(title: str, series: Series, up: str = "cycles") -> str:
    """Groups of bars, a group for each place; the values are written above the bars."""
    scale, places = Scale(series), _places(series)
    group = (WIDTH - LEFT - EDGE) / len(places)
    width = group * 0.8 / len(series)
    drawn = []
    for number, (name, points) in enumerate(series.items()):
        for place, value in points.items():
            x = LEFT + group * (places.index(place) + 0.1) + width * number
            y = scale.height(value)
            drawn.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
                f'height="{HEIGHT - BOTTOM - y:.1f}" fill="{COLORS[number]}">'
                f"<title>{escape(name)}, {escape(place)}: {value:,.0f}</title></rect>"
            )
    return _figure(title, series, scale, places, up, drawn)


def lines(title: str, series: Series, up: str = "cycles") -> str:
    """A line for each series over the places."""
    scale, places = Scale(series), _places(series)
    group = (WIDTH - LEFT - EDGE) / len(places)
    drawn = []
    for number, (name, points) in enumerate(series.items()):
        at = [
            (LEFT + group * (places.index(place) + 0.5), scale.height(value), place, value)
            for place, value in points.items()
        ]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _, _ in at)
        color = COLORS[number]
        drawn.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        drawn += [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}">'
            f"<title>{escape(name)}, {escape(place)}: {value:,.0f}</title></circle>"
            for x, y, place, value in at
        ]
    return _figure(title, series, scale, places, up, drawn)


def page(title: str, figures: Sequence[str], path: Path) -> None:
    """Write the figures as one HTML file."""
    body = "\n".join(figures)
    path.write_text(
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<body style="font-family:sans-serif"><h1>{escape(title)}</h1>\n{body}\n</body></html>\n',
        encoding="utf-8",
    )


def _places(series: Series) -> list[str]:
    return list(dict.fromkeys(place for points in series.values() for place in points))


def _figure(
    title: str, series: Series, scale: Scale, places: list[str], up: str, drawn: list[str]
) -> str:
    floor = HEIGHT - BOTTOM
    group = (WIDTH - LEFT - EDGE) / len(places)
    parts = [
        f"<h2>{escape(title)}</h2>",
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" font-size="11">',
        _text(4, EDGE - 4, "start", up),
    ]
    for tick in scale.ticks():
        y = scale.height(tick)
        parts.append(f'<path d="M {LEFT} {y:.1f} H {WIDTH - EDGE}" stroke="#ccc"/>')
        parts.append(_text(LEFT - 6, y + 4, "end", f"{tick:,}"))
    parts += drawn
    for number, place in enumerate(places):
        parts.append(_text(LEFT + group * (number + 0.5), floor + 16, "middle", place))
    step = (WIDTH - LEFT) / len(series)
    for number, name in enumerate(series):
        x = LEFT + step * number
        parts.append(
            f'<rect x="{x:.1f}" y="{floor + 34}" width="10" height="10" fill="{COLORS[number]}"/>'
        )
        parts.append(_text(x + 14, floor + 43, "start", name))
    return "\n".join([*parts, "</svg>"])


def _text(x: float, y: float, anchor: str, label: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(label)}</text>'
