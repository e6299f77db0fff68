"""The roofline of a run: entries per cycle over bytes per entry, below its three roofs.

Entries are those of the compressed operands.  The roofs are the DRAM's bandwidth, the banks behind
the network, and the busiest unit of the loops firing in every cycle.
"""

from __future__ import annotations

from dataclasses import dataclass

from t2s.core.svg import PALETTE, LogPlot, Point, SvgPicture, element, hover, picture, powers


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline:
    """What a run achieved, and what bounds it; all rates are entries per cycle.

    Attributes
    ----------
    program: its name.
    bytes_per_entry: bytes of DRAM bursts for an entry.
    achieved: entries per cycle of the run.
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
        """The roofs by name, at this run's number of bytes per entry."""
        rows = {
            "DRAM": self.dram,
            "network and banks": self.network,
            f"datapath: {self.busiest}": self.datapath,
        }
        return {name: rate for name, rate in rows.items() if rate is not None}


def roofline_picture(roofline: Roofline) -> SvgPicture:
    """The picture; equal numbers give the same bytes."""
    low, high = powers((roofline.bytes_per_entry / 10, roofline.bytes_per_entry * 10))
    rates = [roofline.achieved, *roofline.roofs.values()]
    bottom, top = powers((min(rates) / 2, max(rates) * 2))
    plot = LogPlot(x=(low, high), y=(bottom, top))
    point: Point = (roofline.bytes_per_entry, roofline.achieved)
    drawn = []
    for (name, rate), color in zip(roofline.roofs.items(), PALETTE, strict=False):
        title = hover(f"{name}: {rate:.3g} entries per cycle")
        points = (
            _falling(roofline.bytes_per_cycle, plot)
            if name == "DRAM"
            else [(10.0**low, rate), (10.0**high, rate)]
        )
        drawn.append(plot.line(points, color, title))
    x, y = plot.place(point)
    text = (
        f"{roofline.achieved:.3g} entries per cycle, {roofline.bytes_per_entry:.3g} bytes per entry"
    )
    drawn.append(element("circle", hover(text), cx=x, cy=y, r=5, fill="currentColor"))
    beside = plot.right + 20
    legend = [
        part
        for line, ((name, rate), color) in enumerate(
            zip(roofline.roofs.items(), PALETTE, strict=False)
        )
        for part in (
            element("rect", x=beside, y=plot.top + 18 * line, width=12, height=12, fill=color),
            element("text", text=f"{name}, {rate:.3g}", x=beside + 18, y=plot.top + 18 * line + 11),
        )
    ]
    return picture(
        beside + 280,
        plot.bottom + 50,
        element("text", text=f"{roofline.program}: {text}", x=16, y=16),
        *plot.axes("bytes of DRAM bursts per entry", "entries per cycle"),
        *drawn,
        *legend,
        title=f"roofline of {roofline.program}",
        description=f"{text}. Roofs in entries per cycle: "
        + ", ".join(f"{name} {rate:.3g}" for name, rate in roofline.roofs.items())
        + ". Both axes are logarithmic.",
    )


def _falling(bytes_per_cycle: float, plot: LogPlot) -> list[Point]:
    """The DRAM's roof clipped to the axes: entries per cycle fall with bytes per entry."""
    (low, high), (bottom, top) = ((10.0**a, 10.0**b) for a, b in (plot.x, plot.y))
    first = min(max(low, bytes_per_cycle / top), high)
    last = max(min(high, bytes_per_cycle / bottom), low)
    return [(first, bytes_per_cycle / first), (last, bytes_per_cycle / last)]
