"""The roofline of a run: entries per cycle over bytes per entry, below its three roofs.

Entries are those of the compressed operands.  Roofs are what the DRAM's bandwidth, the banks behind
the network, and the busiest unit of the loops, if it fired in each cycle, would let through.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from t2s.core.svg import PALETTE, SvgPicture, element, hover, picture


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline:
    """What a run achieved, and what bounds it; all rates are entries per cycle.

    Attributes
    ----------
    program: its name.
    bytes_per_entry: bytes of DRAM bursts for an entry.
    achieved: entries by cycles.
    bytes_per_cycle: the DRAM's peak.
    network: entries if all banks served a word in each cycle; ``None`` if nothing is shared.
    datapath: entries if the busiest unit fired in each cycle; ``None`` if no unit of a loop did.
    busiest: that unit.
    """

    program: str
    bytes_per_entry: float
    achieved: float
    bytes_per_cycle: float
    network: float | None
    datapath: float | None
    busiest: str

    @property
    def dram(self) -> float:
        """Entries if the DRAM moved as much as it can."""
        return self.bytes_per_cycle / self.bytes_per_entry

    @property
    def roofs(self) -> dict[str, float]:
        """The roofs that there are, at this number of bytes per entry."""
        rows = {
            "DRAM": self.dram,
            "network and banks": self.network,
            f"datapath: {self.busiest}": self.datapath,
        }
        return {name: rate for name, rate in rows.items() if rate is not None}


def roofline_picture(found: Roofline) -> SvgPicture:
    """The picture; the same bytes for the same numbers."""
    low, high = powers((found.bytes_per_entry / 10, found.bytes_per_entry * 10))
    rates = [found.achieved, *found.roofs.values()]
    bottom, top = powers((min(rates) / 2, max(rates) * 2))
    plot = LogPlot(x=(low, high), y=(bottom, top))
    here: Point = (found.bytes_per_entry, found.achieved)
    drawn = []
    for (name, rate), color in zip(found.roofs.items(), PALETTE, strict=False):
        said = hover(f"{name}: {rate:.3g} entries per cycle")
        points = (
            _falling(found.bytes_per_cycle, plot)
            if name == "DRAM"
            else [(10.0**low, rate), (10.0**high, rate)]
        )
        drawn.append(plot.line(points, color, said))
    x, y = plot.place(here)
    text = f"{found.achieved:.3g} entries per cycle, {found.bytes_per_entry:.3g} bytes per entry"
    drawn.append(element("circle", hover(text), cx=x, cy=y, r=5, fill="currentColor"))
    legend = [
        part
        for line, ((name, rate), color) in enumerate(
            zip(found.roofs.items(), PALETTE, strict=False)
        )
        for part in (
            element("rect", x=RIGHT, y=TOP + 18 * line, width=12, height=12, fill=color),
            element("text", text=f"{name}, {rate:.3g}", x=RIGHT + 18, y=TOP + 18 * line + 11),
        )
    ]
    return picture(
        RIGHT + 280,
        BOTTOM,
        element("text", text=f"{found.program}: {text}", x=16, y=16),
        *plot.axes("bytes of DRAM bursts per entry", "entries per cycle"),
        *drawn,
        *legend,
        title=f"roofline of {found.program}",
        description=f"{text}. Roofs in entries per cycle: "
        + ", ".join(f"{name} {rate:.3g}" for name, rate in found.roofs.items())
        + ". Both axes are logarithmic.",
    )


def _falling(bytes_per_cycle: float, plot: LogPlot) -> list[Point]:
    """The DRAM's roof inside of the axes: fewer entries, the more bytes each takes."""
    (low, high), (bottom, top) = ((10.0**a, 10.0**b) for a, b in (plot.x, plot.y))
    first = min(max(low, bytes_per_cycle / top), high)
    last = max(min(high, bytes_per_cycle / bottom), low)
    return [(first, bytes_per_cycle / first), (last, bytes_per_cycle / last)]


# A plot with logarithmic axes as SVG elements: roofs, lines of kernels, points.

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
