"""A time line of partitions: what the units of each pattern did, partition by partition.

A row is a pattern in a partition, and shows the unit of it that fires most.  Neighboring bins in
the same state are one rectangle.  Long runs have wide bins, large programs fewer of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from t2s.core.svg import PALETTE, SvgPicture, element, hover, picture
from t2s.simulator.timeline import PEState, Timeline

MOST_BINS = 240
MOST_CHARACTERS = 280_000

COLORS = {
    PEState.BUSY: PALETTE[0],
    PEState.WAITING: PALETTE[4],
    PEState.STARVED: PALETTE[1],
    PEState.BLOCKED: PALETTE[5],
}
"""Idle bins are not drawn."""

_LEFT, _TOP, _ROW, _WIDTH = 180, 56, 11, 720


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRow:
    """A row: the pattern, the partition, and the PE of the unit that fires most in it."""

    pattern: str
    partition: int
    unit: str
    pe: int


def rows_of(line: Timeline) -> list[PartitionRow]:
    """A row for each pattern and partition, the partitions of a pattern together."""
    fired = line.cycles[PEState.BUSY].sum(axis=1)
    best: dict[tuple[str, int], PartitionRow] = {}
    for pe, (timing, place) in enumerate(line.rows()):
        pattern = timing.node.region or "outside of loops"
        one = PartitionRow(pattern=pattern, partition=place, unit=timing.node.name, pe=pe)
        other = best.get((pattern, place))
        if other is None or fired[pe] > fired[other.pe]:
            best[pattern, place] = one
    order = {pattern: n for n, (pattern, _) in enumerate(best)}
    return sorted(best.values(), key=lambda row: (order[row.pattern], row.partition))


def run_picture(program: str, line: Timeline) -> SvgPicture:
    """The picture of a time line; the same bytes for the same run."""
    rows = rows_of(line)
    states = line.main_states()
    drawn = []
    for number, row in enumerate(rows):
        y = _TOP + number * _ROW
        if row.partition == 0:
            drawn.append(element("text", text=row.pattern, x=16, y=y + 9, font_size=10))
        text = f"{row.partition}"
        said = hover(f"{row.unit}, partition {row.partition} of {row.pattern}")
        drawn.append(
            element("text", said, text=text, x=_LEFT - 6, y=y + 9, text_anchor="end", font_size=9)
        )
        drawn.extend(_bars(line, row, states[row.pe], y))
    cycles = f"cycles {line.first:,} to {line.last:,}"
    return picture(
        _LEFT + _WIDTH + 20,
        _TOP + len(rows) * _ROW + 30,
        element("text", text=f"{program}: {cycles}, {line.bins} bins", x=16, y=16),
        *_legend(),
        *drawn,
        title=f"time line of {program}",
        description=f"{cycles}. A row for each pattern and partition shows the unit of it that "
        "fires most: busy, waiting, starved, blocked, or idle where nothing is drawn.",
    )


def _bars(line: Timeline, row: PartitionRow, states: np.ndarray, y: int) -> Iterator[str]:
    """The rectangles of a row, one for neighboring bins in the same state."""
    length = int(line.edges[-1] - line.edges[0])
    for state, group in groupby(range(line.bins), key=lambda number: int(states[number])):
        bins = list(group)
        if state == PEState.IDLE:
            continue
        first, last = int(line.edges[bins[0]]), int(line.edges[bins[-1] + 1])
        x = round(_LEFT + (first - int(line.edges[0])) / length * _WIDTH, 1)
        width = round((last - first) / length * _WIDTH, 1)
        share = line.cycles[state, row.pe, bins].sum() / (last - first)
        cause = line.cause(row.pe, bins[0]) if state in (PEState.STARVED, PEState.BLOCKED) else None
        by = f" by {cause}" if cause else ""
        name = PEState(state).name.lower()
        said = hover(f"{row.unit} {row.partition}: {name}{by} {share:.0%}, {first + 1}-{last}")
        yield element(
            "rect", said, x=x, y=y, width=width, height=_ROW - 2, fill=COLORS[PEState(state)]
        )


def _legend() -> Iterator[str]:
    """What the colors are."""
    for number, (state, color) in enumerate(COLORS.items()):
        x = _LEFT + 90 * number
        yield element("rect", x=x, y=28, width=12, height=12, fill=color)
        yield element("text", text=state.name.lower(), x=x + 18, y=39)
