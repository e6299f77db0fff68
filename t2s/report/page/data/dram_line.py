"""What a DRAM did over time: bytes per second and row hits, in the bins of the whole run.

Bytes are those of whole bursts, and beside them those that load and store units use in their
firings, by cycle.  A burst, and the row hits, are in the bin in which the memory's controller has
taken it up, before a unit has its data.  Controllers look ahead; so bytes of bursts are moved to
later bins where there are more than the buses can carry: this is when they pass at the earliest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from t2s.core.tables import Table
from t2s.report.page.data.space_time import Observed
from t2s.simulator.program.flatten import MOVED_BYTES
from t2s.simulator.program.slot_sums import sums_before
from t2s.simulator.report.result import SimResult
from t2s.simulator.report.tally import Counts


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
    """Bytes by bin when none has more than ``peak`` a cycle; what is left is in the last one."""
    found, left = [], 0.0
    for count, length in zip(taken.tolist(), lengths.tolist(), strict=True):
        left += count
        found.append(min(left, peak * length))
        left -= found[-1]
    found[-1] += left
    return found
