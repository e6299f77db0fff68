"""SVG: elements with escaped attributes and texts, pictures for notebooks, and small charts.

Pictures have no scripts and load nothing, so that they open anywhere, print, and can be put into a
page.  Every picture has a title and a description for readers who do not see it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from t2s.core.display import KINDS, StallTable
from t2s.core.files import write_file
from t2s.core.names import clipped, printable
from t2s.core.validate import checked_file

PALETTE = (
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#d55e00",
    "#b6a800",
    "#7a7a7a",
)
"""Colors that stay apart for color-blind readers, after Okabe and Ito, on light and dark pages."""

_NAMESPACE = ' xmlns="http://www.w3.org/2000/svg"'
"""What a file needs, and a picture inside of a page does not."""


@dataclass(frozen=True, repr=False, slots=True)
class SvgPicture:
    """SVG text that notebooks show; ``write`` puts it into a file for a browser."""

    svg: str

    def write(self, path: str | Path) -> Path:
        """Write the picture into a file, in a folder that is there, and return its path."""
        file = checked_file("the file of the picture", path)
        write_file(file, self.svg.encode())
        return file

    def html(self) -> str:
        """The picture inside of a page, which scrolls where it is too wide."""
        inside = self.svg.replace(_NAMESPACE, "", 1)
        return f'<div style="overflow-x:auto">{inside}</div>'

    def __str__(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<SvgPicture of {len(self.svg):,} characters>"

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:  # inside of a page it has the colors of the page
        return self.html()


def element(name: str, *children: str, text: str = "", **attributes: object) -> str:
    """One element.  Attributes are escaped, ``_`` stands for ``-``; ``text`` is escaped as well.

    ``children`` are elements already.  Numbers have at most two digits behind the point.
    """
    words = "".join(
        f' {key.strip("_").replace("_", "-")}="{escape(_word(value))}"'
        for key, value in attributes.items()
    )
    inside = escape(text, quote=False) + "".join(children)
    return f"<{name}{words}>{inside}</{name}>" if inside else f"<{name}{words}/>"


def _word(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return str(value)


def hover(text: str) -> str:
    """The title of an element, which a browser shows under the pointer."""
    return element("title", text=text)


def picture(
    width: float, height: float, *children: str, title: str, description: str
) -> SvgPicture:
    """A picture of so many pixels that scales with the page; its lines have the page's color."""
    body = element(
        "svg",
        hover(title),
        element("desc", text=description),
        *children,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {_word(float(width))} {_word(float(height))}",
        width=float(width),
        role="img",
        font_family="sans-serif",
        font_size=12,
        fill="currentColor",
    )
    return SvgPicture(printable(body))


# Small charts as inline SVG: bars, points, boxes in layers, and cells of a raster.
#
# They take the color of the page's text for lines and words, so that they are read on light and on
# dark pages.  What is too much to draw is left out, and said.

Mask = np.ndarray[Any, Any]

STATE_COLORS: Mapping[str, str] = MappingProxyType(
    {
        "busy": PALETTE[0],
        "waiting": PALETTE[4],
        "starved": PALETTE[1],
        "blocked": PALETTE[5],
        "idle": PALETTE[7],
    }
)
"""The colors of what PEs do."""

MOST_BARS = 48
MOST_BOXES = 160
MOST_POINTS = 300
"""Points that say their numbers; ten times as many are drawn."""

MOST_ARROWS = 600

_LINE, _SIZE, _WIDE, _NAMES = 20, 11, 420.0, 26
_LETTER = 6.6
"""The width of a letter of text of ``_SIZE`` pixels, about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A line of a bar chart: its parts as (color, length, what is said of it), and a word behind.

    Lengths are in the unit of the chart and not negative.
    """

    name: str
    parts: tuple[tuple[str, float, str], ...]
    word: str = ""


def bar_chart(
    title: str, bars: Sequence[Bar], *, legend: Sequence[tuple[str, str]] = ()
) -> SvgPicture:
    """Lying bars below one another, as long as their parts together.

    ``legend`` has the names and the colors of parts.
    """
    shown = bars[:MOST_BARS]
    most = max((sum(length for _, length, _ in bar.parts) for bar in bars), default=0.0) or 1.0
    left = 14 + _LETTER * max((min(_NAMES, len(bar.name)) for bar in shown), default=0)
    right = 8 + _LETTER * max((len(bar.word) for bar in shown), default=0)
    top = 4.0 + (_LINE if legend else 0)
    drawn = [*_legend(legend)]
    for number, bar in enumerate(shown):
        drawn += _bar(bar, left, top + number * _LINE, _WIDE / most)
    height = top + len(shown) * _LINE + 4
    if len(bars) > len(shown):
        drawn.append(_text(left, height + 10, f"and {len(bars) - len(shown):,} more"))
        height += _LINE
    summary = "; ".join(f"{bar.name} {bar.word}".strip() for bar in shown)
    return _titled(
        max(left + _WIDE + right, 90.0 * len(legend)),
        height,
        *drawn,
        title=title,
        description=summary,
    )


def stall_chart(stalls: StallTable) -> SvgPicture:
    """Of every node what its PEs did, as shares of their cycles."""
    bars = [
        Bar(
            name=row.node,
            parts=tuple(
                (
                    STATE_COLORS[kind],
                    row.share(kind),
                    f"{row.node}: {kind} {getattr(row, kind):,} PE-cycles ({row.share(kind):.1%})",
                )
                for kind in KINDS
            ),
            word=f"busy {row.share('busy'):.1%}",
        )
        for row in stalls
    ]
    legend = [(kind, STATE_COLORS[kind]) for kind in KINDS]
    return bar_chart("what the PEs of every node did", bars, legend=legend)


def _bar(bar: Bar, left: float, top: float, scale: float) -> Iterator[str]:
    middle = top + _LINE / 2 + 4
    yield _text(left - 6, middle, clipped(bar.name, _NAMES), anchor="end", title=bar.name)
    x = left
    for color, length, title in bar.parts:
        wide = length * scale
        if wide >= 0.01:
            yield element(
                "rect", hover(title), x=x, y=top + 2, width=wide, height=_LINE - 4.0, fill=color
            )
        x += wide
    if bar.word:
        yield _text(x + 6, middle, bar.word)


def _legend(legend: Sequence[tuple[str, str]]) -> Iterator[str]:
    for number, (name, color) in enumerate(legend):
        yield element("rect", x=90.0 * number, y=4, width=10, height=10, fill=color)
        yield _text(90.0 * number + 15, 13, clipped(name, 11))


def _titled(width: float, height: float, *drawn: str, title: str, description: str) -> SvgPicture:
    """A picture below its title."""
    below = element("g", *drawn, transform=f"translate(0 {_LINE})")
    wide = max(width, _LETTER * len(title) + 4)
    return picture(
        wide, height + _LINE, _text(0, 13, title), below, title=title, description=description
    )


def _text(x: float, y: float, text: str, *, anchor: str = "start", title: str = "") -> str:
    inside = (hover(title),) if title and title != text else ()
    return element(
        "text", *inside, text=text, x=float(x), y=float(y), text_anchor=anchor, font_size=_SIZE
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartPoint:
    """A point of two costs, its name, and whether no other point is better in both."""

    x: float
    y: float
    name: str
    best: bool


def point_chart(title: str, points: Sequence[ChartPoint], *, across: str, up: str) -> SvgPicture:
    """Points of two costs; those than which none is better in both are joined by steps."""
    left, edge, high = 96.0, 14.0, 220.0
    x_of = _axis([point.x for point in points], left, left + _WIDE)
    y_of = _axis([point.y for point in points], edge + high, edge)
    floor, right = edge + high + 8, left + _WIDE
    drawn = [
        element(
            "path", d=f"M{left - 8:.0f} {edge:.0f}V{floor:.0f}H{right:.0f}", fill="none",
            stroke="currentColor", stroke_opacity=0.5,
        ),
        *_ends(points, left, right, edge, floor),
        _text((left + right) / 2, floor + 30, across, anchor="middle"),
        _text(left - 12, (edge + floor) / 2, up, anchor="end"),
    ]  # fmt: skip
    best = sorted((point for point in points if point.best), key=lambda point: (point.x, -point.y))
    if best:
        path = f"M{x_of(best[0].x):.1f} {y_of(best[0].y):.1f}"
        path += "".join(f"H{x_of(point.x):.1f}V{y_of(point.y):.1f}" for point in best[1:])
        drawn.append(element("path", d=path, fill="none", stroke=PALETTE[0]))
    named = sorted(points, key=lambda point: not point.best)[:MOST_POINTS]
    path = "".join(
        f"M{x_of(point.x):.0f} {y_of(point.y):.0f}h0"
        for point in points[: 10 * MOST_POINTS]
        if len(points) > MOST_POINTS
    )
    if path:
        drawn.append(
            element("path", d=path, stroke=PALETTE[7], stroke_width=6, stroke_linecap="round")
        )
    for point in reversed(named):
        text = f"{point.name}: {point.x:,g} {across}, {point.y:,g} {up}"
        color = PALETTE[0] if point.best else PALETTE[7]
        x, y = x_of(point.x), y_of(point.y)
        drawn.append(element("circle", hover(text), cx=x, cy=y, r=4, fill=color))
        if point.best and len(best) <= 12:
            drawn.append(_text(x + 6, y - 5, clipped(point.name, _NAMES), title=point.name))
    words = f"{len(points)} points, of which {len(best)} are as good as it gets: "
    words += "; ".join(f"{point.name} {point.x:,g}, {point.y:,g}" for point in best[:20])
    return _titled(right + 150, floor + 38, *drawn, title=title, description=words)


def _axis(values: Sequence[float], start: float, end: float) -> Any:
    low, high = min(values, default=0.0), max(values, default=1.0)
    span = (high - low) or 1.0
    return lambda value: start + (end - start) * (value - low) / span


def _ends(
    points: Sequence[ChartPoint], left: float, right: float, edge: float, floor: float
) -> Iterator[str]:
    """The smallest and the largest number of both axes."""
    if points:
        xs, ys = [point.x for point in points], [point.y for point in points]
        yield _text(left, floor + 15, f"{min(xs):,g}")
        yield _text(right, floor + 15, f"{max(xs):,g}", anchor="end")
        yield _text(left - 12, edge + 8, f"{max(ys):,g}", anchor="end")
        yield _text(left - 12, floor, f"{min(ys):,g}", anchor="end")


@dataclass(frozen=True, slots=True, kw_only=True)
class CellLayer:
    """Cells of one color: where they are, how opaque (0 to 1), and what is said of them."""

    cells: Mask
    color: str
    opacity: float
    said: str


def raster_chart(
    title: str,
    shape: tuple[int, int],
    layers: Sequence[CellLayer],
    *,
    description: str,
    wide: float = 360,
) -> SvgPicture:
    """Cells in rows and columns, each layer of them one path, so that large rasters are small."""
    rows, columns = shape
    size = max(2.0, min(18.0, wide / max(1, columns), 1.5 * wide / max(1, rows)))
    width, height = max(1.0, columns * size), max(1.0, rows * size)
    frame = element(
        "rect", x=0.5, y=0.5, width=width, height=height, fill="none", stroke="currentColor",
        stroke_opacity=0.35,
    )  # fmt: skip
    drawn = [
        element(
            "path", hover(layer.said), d=_runs(layer.cells), fill=layer.color,
            fill_opacity=layer.opacity, transform=f"translate(0.5 0.5) scale({size:.4g})",
        )
        for layer in layers
        if layer.cells.any()
    ]  # fmt: skip
    return _titled(width + 1, height + 1, frame, *drawn, title=title, description=description)


def _runs(cells: Mask) -> str:
    """The outline of cells, one rectangle for each run in a row, in units of cells."""
    inside = np.zeros((cells.shape[0], cells.shape[1] + 2), np.int8)
    inside[:, 1:-1] = cells
    steps = np.diff(inside, axis=1)
    starts, ends = np.argwhere(steps == 1), np.argwhere(steps == -1)
    return "".join(
        f"M{first} {row}h{last - first}v1h{first - last}z"
        for (row, first), (_, last) in zip(starts.tolist(), ends.tolist(), strict=True)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartBox:
    """A box with two lines of text, and what is said when it is pointed at."""

    name: str
    title: str
    below: str
    said: str
    color: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartArrow:
    """An arrow from box to box, by their names, and what is said of it."""

    source: str
    sink: str
    said: str


def layered_chart(
    title: str, boxes: Sequence[ChartBox], arrows: Sequence[ChartArrow]
) -> SvgPicture | None:
    """Boxes in layers from left to right, with arrows; ``None`` where they are too many."""
    if not boxes or len(boxes) > MOST_BOXES or len(arrows) > MOST_ARROWS:
        return None
    pairs = [(arrow.source, arrow.sink) for arrow in arrows]
    layers = layers_of([box.name for box in boxes], pairs)
    places: dict[str, tuple[float, float, float]] = {}  # left, middle, width
    x, height = 4.0, 0.0
    for layer in range(max(layers.values()) + 1):
        column = [box for box in boxes if layers[box.name] == layer]
        heights = {box.name: _height(box.name, pairs, places) for box in column}
        column.sort(key=lambda box: heights[box.name])
        width = max(_width(box) for box in column)
        for number, box in enumerate(column):
            places[box.name] = (x, 22.0 + 52 * number, width)
        height = max(height, 52.0 * len(column))
        x += width + 56
    drawn = [_arrow(arrow, places, height) for arrow in arrows]
    for box in boxes:
        drawn += _box(box, *places[box.name])
    summary = f"{len(boxes)} boxes in {max(layers.values()) + 1} layers, {len(arrows)} arrows"
    return _titled(x - 50, height + 26, *drawn, title=title, description=summary)


def _height(
    name: str, pairs: Sequence[tuple[str, str]], places: Mapping[str, tuple[float, float, float]]
) -> float:
    """The mean height of what sends to a box."""
    heights = [places[source][1] for source, sink in pairs if sink == name and source in places]
    return sum(heights) / len(heights) if heights else 0.0


def _width(box: ChartBox) -> float:
    letters = max(min(_NAMES, len(box.title)), min(_NAMES, len(box.below)))
    return 14 + _LETTER * letters


def _box(box: ChartBox, x: float, y: float, width: float) -> Iterator[str]:
    yield element(
        "rect", hover(box.said), x=x, y=y - 18, width=width, height=38, rx=4, fill=box.color,
        fill_opacity=0.18, stroke=box.color,
    )  # fmt: skip
    yield _text(x + 7, y - 3, clipped(box.title, _NAMES), title=box.said)
    yield _text(x + 7, y + 13, clipped(box.below, _NAMES), title=box.said)


def _arrow(
    arrow: ChartArrow, places: Mapping[str, tuple[float, float, float]], height: float
) -> str:
    (left, y1, width), (x2, y2, _) = places[arrow.source], places[arrow.sink]
    x1 = left + width
    if arrow.source == arrow.sink:
        path = f"M{x1 - 16:.1f} {y1 + 20:.1f}C{x1:.1f} {y1 + 36:.1f} "
        path += f"{x1 - 40:.1f} {y1 + 36:.1f} {x1 - 26:.1f} {y1 + 20:.1f}"
    elif x2 > x1:
        bend = max(24.0, (x2 - x1) / 2)
        path = f"M{x1:.1f} {y1:.1f}C{x1 + bend:.1f} {y1:.1f} {x2 - bend:.1f} {y2:.1f} "
        path += f"{x2:.1f} {y2:.1f}"
    else:  # back to an earlier layer: around below
        path = f"M{x1:.1f} {y1:.1f}C{x1 + 40:.1f} {height + 24:.1f} "
        path += f"{x2 - 40:.1f} {height + 24:.1f} {x2:.1f} {y2:.1f}"
    line = element(
        "path", hover(arrow.said), d=path, fill="none", stroke="currentColor", stroke_opacity=0.55
    )
    end = element("circle", cx=x2, cy=y2, r=2.5) if x2 > x1 else ""
    return line + end


def layers_of(names: Sequence[str], arrows: Sequence[tuple[str, str]]) -> dict[str, int]:
    """The layer of each box: behind all that have an arrow to it, cycles aside."""
    sinks: dict[str, list[tuple[int, str]]] = {name: [] for name in names}
    senders: dict[str, list[tuple[int, str]]] = {name: [] for name in names}
    for number, (source, sink) in enumerate(arrows):
        sinks[source].append((number, sink))
        senders[sink].append((number, source))
    back, order = _depth_first(names, sinks, senders)
    layers: dict[str, int] = {}
    for name in reversed(order):
        before = [layers[source] for number, source in senders[name] if number not in back]
        layers[name] = 1 + max(before, default=-1)
    return layers


def _depth_first(
    names: Sequence[str],
    sinks: Mapping[str, Sequence[tuple[int, str]]],
    senders: Mapping[str, Sequence[tuple[int, str]]],
) -> tuple[set[int], list[str]]:
    """The arrows that close a cycle, and all boxes, each behind those that it leads to."""
    back, order, open_boxes, seen = set[int](), list[str](), set[str](), set[str]()
    roots = [name for name in names if all(source == name for _, source in senders[name])]
    for root in [*roots, *names]:
        if root in seen:
            continue
        seen.add(root)
        open_boxes.add(root)
        stack = [(root, iter(sinks[root]))]
        while stack:
            name, following = stack[-1]
            number, sink = next(following, (-1, ""))
            if number < 0:
                open_boxes.discard(name)
                order.append(name)
                stack.pop()
            elif sink not in seen:
                seen.add(sink)
                open_boxes.add(sink)
                stack.append((sink, iter(sinks[sink])))
            elif sink in open_boxes:
                back.add(number)
    return back, order


# Plots with logarithmic axes: roofs, lines, points.

Point = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPlot:
    """Two axes from a power of ten to another; ``x`` and ``y`` are these powers.

    ``left``, ``top``, ``width`` and ``height`` are the frame in the picture, in pixels.
    """

    x: tuple[int, int]
    y: tuple[int, int]
    left: int = 70
    top: int = 40
    width: int = 480
    height: int = 320

    @property
    def bottom(self) -> int:
        return self.top + self.height

    @property
    def right(self) -> int:
        return self.left + self.width

    def place(self, point: Point) -> Point:
        """Where a point with positive coordinates is in the picture."""
        across, up = (
            (math.log10(value) - least) / (most - least)
            for value, (least, most) in zip(point, (self.x, self.y), strict=True)
        )
        return self.left + across * self.width, self.top + (1 - up) * self.height

    def grid(self, name_of: Callable[[float], str] = "{:g}".format, **look: Any) -> Iterator[str]:
        """A line and a number for each power of ten; ``name_of`` writes those of the y-axis."""
        for power in range(self.x[0], self.x[1] + 1):
            at, _ = self.place((10.0**power, 10.0 ** self.y[0]))
            yield element("path", d=f"M{at:.1f} {self.top}v{self.height}", **look)
            text = f"{10.0**power:g}"
            yield element("text", text=text, x=at, y=self.bottom + 16, text_anchor="middle")
        for power in range(self.y[0], self.y[1] + 1):
            _, at = self.place((10.0 ** self.x[0], 10.0**power))
            yield element("path", d=f"M{self.left} {at:.1f}h{self.width}", **look)
            text = name_of(10.0**power)
            yield element("text", text=text, x=self.left - 6, y=at + 4, text_anchor="end")

    def axes(self, x: str, y: str) -> Iterator[str]:
        """The frame, the grid, and what the axes are."""
        look: dict[str, Any] = {"fill": "none", "stroke": "currentColor"}
        yield element(
            "rect", x=self.left, y=self.top, width=self.width, height=self.height, **look,
            stroke_opacity=0.5,
        )  # fmt: skip
        yield from self.grid(**look, stroke_opacity=0.15)
        middle = self.left + self.width / 2
        yield element("text", text=x, x=middle, y=self.bottom + 36, text_anchor="middle")
        yield element("text", text=y, x=self.left - 40, y=self.top - 12)

    def line(
        self, points: Sequence[Point], color: str, *children: str, dashed: bool = False
    ) -> str:
        """A line through points, which are inside of the axes."""
        places = (self.place(point) for point in points)
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        return stroke(path, color, *children, dashed=dashed)


def stroke(path: str, color: str, *children: str, dashed: bool = False) -> str:
    """A line two pixels wide."""
    more = {"stroke_dasharray": "6 4"} if dashed else {}
    return element("path", *children, d=path, fill="none", stroke=color, stroke_width=2, **more)


def powers(values: Iterable[float]) -> tuple[int, int]:
    """The powers of ten around positive values, two different ones."""
    numbers = list(values)
    least, most = math.floor(math.log10(min(numbers))), math.ceil(math.log10(max(numbers)))
    return least, max(most, least + 1)
