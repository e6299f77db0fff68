"""What a DRAM did over time: bytes per second and row hits, in the bins of the whole run.

Bytes are those that load and store units use in their firings, by cycle.  Row hits are those of
the bursts that the memory's controller has taken up in the bin, before a unit has its data.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from t2s.core.tables import Table
from t2s.report.page.data.space_time import Observed
from t2s.simulator.program.flatten import MOVED_BYTES
from t2s.simulator.program.slot_sums import sums_before
from t2s.simulator.report.result import SimResult


@dataclass(frozen=True, slots=True, kw_only=True)
class DramBin:
    """Cycles ``first`` to ``last``: bytes per second that units use; the share of row hits.

    ``hits`` is ``None`` where there was no burst.
    """

    first: int
    last: int
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
        steps = np.diff(line.bursts, axis=1)
        weights = line.program.control.rows[:, MOVED_BYTES].astype(np.int64)
        moved = np.diff(sums_before(line.program, weights, line.slots).sum(axis=0))
        for at in range(line.bins):
            reads, writes, hits = (int(n) for n in steps[:, at])
            first, last = int(line.edges[at]) + 1, int(line.edges[at + 1])
            bins.append(
                DramBin(
                    first=first,
                    last=last,
                    rate=int(moved[at]) * hertz / (last - first + 1),
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
