"""A DRAM over time: bandwidth and row hits in bins of the whole run, with tables.

Bytes are counted in whole bursts, and separately as used by firings of load and store units.  A
burst and its row hits are in the bin in which the memory controller accepts it, before a unit has
its data.  Because controllers look ahead, a bin may have more bytes than the buses can carry; the
excess is moved to later bins, the earliest time at which it can pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from t2s.core.display import Table
from t2s.core.svg import PALETTE, element, hover
from t2s.report.page.markup import folded, si, table_view, tag
from t2s.report.page.space_time import Observed
from t2s.simulator.program.flatten import MOVED_BYTES
from t2s.simulator.program.sim_program import sums_before
from t2s.simulator.report.counters import Counts
from t2s.simulator.report.result import SimResult


@dataclass(frozen=True, slots=True, kw_only=True)
class DramBin:
    """Cycles ``first`` to ``last``: bytes per second of bursts, and those that units use.

    ``hits`` is the share of row hits, ``None`` where there was no burst.
    """

    first: int
    last: int
    moved: float
    rate: float
    hits: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DramOverTime:
    """The memory of a run: its peak in bytes per second, bins over time, and its tables."""

    name: str
    peak: float
    mean: float
    hits: float
    bins: tuple[DramBin, ...]
    tables: tuple[Table, ...]


def dram_of(result: SimResult, observed: Observed | None) -> DramOverTime | None:
    """The memory of a run, if it has a DRAM."""
    memory = result.memory
    if memory is None:
        return None
    bins: list[DramBin] = []
    if observed is not None:
        line, hertz = observed.whole, result.device.clock_hz
        peak = float(memory.dram.peak_bytes_per_second) / hertz
        steps = np.diff(line.bursts, axis=1)
        weights = line.program.control.rows[:, MOVED_BYTES].astype(np.int64)
        used = np.diff(sums_before(line.program, weights, line.slots).sum(axis=0))
        passed = _passed(steps[:2].sum(axis=0) * memory.dram.burst_bytes, np.diff(line.edges), peak)
        for at in range(line.bins):
            reads, writes, hits = (int(n) for n in steps[:, at])
            first, last = int(line.edges[at]) + 1, int(line.edges[at + 1])
            per_cycle = hertz / (last - first + 1)
            bins.append(
                DramBin(
                    first=first,
                    last=last,
                    moved=passed[at] * per_cycle,
                    rate=int(used[at]) * per_cycle,
                    hits=hits / (reads + writes) if reads + writes else None,
                )
            )
    return DramOverTime(
        name=memory.dram.name,
        peak=float(memory.dram.peak_bytes_per_second),
        mean=memory.bandwidth,
        hits=memory.row_hits,
        bins=tuple(bins),
        tables=(memory.channel_table, memory.unit_table),
    )


def _passed(taken: Counts, lengths: Counts, peak: float) -> list[float]:
    """Bytes by bin, limited to ``peak`` per cycle; the rest is in the last bin."""
    ends, remaining = [], 0.0
    for count, length in zip(taken.tolist(), lengths.tolist(), strict=True):
        remaining += count
        ends.append(min(remaining, peak * length))
        remaining -= ends[-1]
    ends[-1] += remaining
    return ends


# A DRAM over time: bandwidth and row hits, and its tables.

MOVED, USED = PALETTE[4], PALETTE[0]
_LEFT, _TOP, _WIDTH, _HEIGHT = 70, 16, 620, 110


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bars:
    """The bars of a color: the share of the height in each bin, and its title."""

    color: str
    shares: tuple[tuple[DramBin, float, str], ...]


def dram_view(model: DramOverTime) -> str:
    """The pictures, if the run was sampled over time, and the tables."""
    head = tag(
        "p",
        text=f"{model.name}: {si(model.mean)}B/s of {si(model.peak)}B/s; "
        f"{model.hits:.1%} row hits.",
    )
    tables = "".join(map(_folded, model.tables))
    if not model.bins:
        return head + tables
    drawn = tag(
        "div",
        _rates(model),
        _hits(model),
        class_="scroll",
        tabindex=0,
        role="region",
        aria_label="DRAM",
    )
    return head + _keys() + drawn + tables


def _keys() -> str:
    """The legend."""
    items = ((MOVED, "in whole bursts, at the earliest"), (USED, "used by load and store units"))
    return tag(
        "ul",
        *(
            tag(
                "li",
                tag("span", class_="swatch", style=f"background:{color}"),
                tag("span", text=text),
            )
            for color, text in items
        ),
        class_="legend",
    )


def _folded(table: Table) -> str:
    """A table; one of many channels is opened by a click."""
    title = f"{table.title}: {len(table.rows):,} rows"
    return folded(title, len(table.rows), table_view(table))


def _rates(model: DramOverTime) -> str:
    most = max(model.peak, *(max(slice_.rate, slice_.moved) for slice_ in model.bins))

    def bars(color: str, rates: Sequence[float]) -> _Bars:
        return _Bars(
            color=color,
            shares=tuple(
                (bin, rate / most, f"{si(bin.moved)}B/s moved, {si(bin.rate)}B/s used")
                for bin, rate in zip(model.bins, rates, strict=True)
            ),
        )

    moved = bars(MOVED, [slice_.moved for slice_ in model.bins])
    used = bars(USED, [slice_.rate for slice_ in model.bins])
    top = _TOP + _HEIGHT - model.peak / most * _HEIGHT
    peak = element(
        "path",
        hover(f"peak {si(model.peak)}B/s"),
        d=f"M{_LEFT} {top:.1f}h{_WIDTH}",
        class_="roof",
    )
    return _chart(model, "bandwidth, bytes per second", (moved, used), f"{si(most)}B/s", peak)


def _hits(model: DramOverTime) -> str:
    shares = tuple((bin, bin.hits, f"{bin.hits:.1%}") for bin in model.bins if bin.hits is not None)
    bars = _Bars(color=PALETTE[2], shares=shares)
    return _chart(model, "row hits among the bursts taken up", (bars,), "100 %", "")


def _chart(model: DramOverTime, title: str, series: Sequence[_Bars], top: str, line: str) -> str:
    """Bars over the cycles of the run; ``top`` labels the full height."""
    first, last = model.bins[0].first, model.bins[-1].last
    length = last - first + 1
    bars = []
    for color, bin, share, text in (
        (bars.color, *entry) for bars in series for entry in bars.shares
    ):
        bars.append(
            element(
                "rect",
                hover(f"cycles {bin.first:,} to {bin.last:,}: {text}"),
                x=_LEFT + (bin.first - first) / length * _WIDTH,
                y=_TOP + _HEIGHT - share * _HEIGHT,
                width=max((bin.last - bin.first + 1) / length * _WIDTH, 0.5),
                height=share * _HEIGHT,
                style=f"fill:{color}",
            )
        )
    below = _TOP + _HEIGHT + 15
    width, height = _LEFT + _WIDTH + 16, _TOP + _HEIGHT + 22
    return element(
        "svg",
        hover(title),
        element("desc", text=f"{title}, cycles {first:,} to {last:,}, in {len(model.bins)} bins"),
        element("text", text=title, x=_LEFT, y=_TOP - 4),
        *bars,
        element("path", d=f"M{_LEFT} {_TOP + _HEIGHT}h{_WIDTH}", class_="grid"),
        element("text", text=top, x=_LEFT - 6, y=_TOP + 8, text_anchor="end"),
        line,
        element("text", text=f"cycle {first:,}", x=_LEFT, y=below),
        element("text", text=f"{last:,}", x=_LEFT + _WIDTH, y=below, text_anchor="end"),
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        role="img",
        class_="dram",
        font_size=12,
    )
