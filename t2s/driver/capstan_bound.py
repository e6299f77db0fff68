"""What holds a run on Capstan up: its cycles taken apart, so that the parts add up to all of them.

A run is timed again with an ideal network between partitions and their memories, and then with
ideal memory, too.  What the first one takes less is the part of the network and the banks, what the
second one takes less than the first one is the DRAM's.  The rest is told apart by when units fire
in the last run:

* *transfers*: cycles in which only units outside of all loops fire, which move whole arrays;
* *datapath*: the firings of the busiest unit of the loops, a cycle each; *scanner*, if that one
  scans bit vectors or builds them;
* *start-up*: the other cycles, in which tokens are on their way through the chain of units.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from t2s.core.notebook import NotebookDisplay
from t2s.core.tables import Table

if TYPE_CHECKING:
    from t2s.simulator.report.node_statistics import NodeStatistics
    from t2s.simulator.report.result import SimResult


class CycleCause(Enum):
    """What cycles are spent on; the value is what users read."""

    DRAM = "DRAM"
    NETWORK = "network and banks"
    TRANSFERS = "whole transfers"
    DATAPATH = "datapath"
    SCANNER = "scanner"
    START_UP = "start-up"


SCANNING = ("scan_", "build_")
"""How the names of units begin that scan bit vectors, or build them."""

_ALWAYS = (CycleCause.DRAM, CycleCause.TRANSFERS, CycleCause.START_UP)
_OF_BUSIEST = (CycleCause.DATAPATH, CycleCause.SCANNER)


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleParts(NotebookDisplay):
    """The cycles of a run by their cause; ``busiest`` names the unit of the loops that fires most.

    One of datapath and scanner is 0.  The *bound* is the cause of most cycles.
    """

    cycles: Mapping[CycleCause, int]
    busiest: str

    @property
    def total(self) -> int:
        """All cycles of the run."""
        return sum(self.cycles.values())

    @property
    def bound(self) -> CycleCause:
        """What most cycles are spent on."""
        return max(CycleCause, key=lambda cause: self.cycles[cause])

    def share(self, cause: CycleCause) -> float:
        """The share of a cause in all cycles, 0 to 1."""
        return self.cycles[cause] / self.total if self.total else 0.0

    @property
    def table(self) -> Table:
        """A row for each cause; none for network, datapath and scanner if they take nothing."""
        rows = tuple(
            (
                cause.value + (f": {self.busiest}" if cause in _OF_BUSIEST else ""),
                f"{self.cycles[cause]:,}",
                f"{self.share(cause):.1%}",
            )
            for cause in CycleCause
            if self.cycles[cause] or cause in _ALWAYS
        )
        title = (
            f"bound by {self.bound.value}: {self.share(self.bound):.0%} of {self.total:,} cycles"
        )
        return Table(title=title, headers=("cycles by cause", "cycles", "share"), rows=rows)

    def __str__(self) -> str:
        return self.table.text()

    def _repr_html_(self) -> str:
        return self.table.html()


def cycle_parts(run: SimResult, unhindered: SimResult, ideal: SimResult) -> CycleParts:
    """The parts of a run, given the same run with an ideal network, and with ideal memory, too."""
    regions = {node.name: node.region for node in run.program.graph.nodes}
    inside = [unit for name, unit in ideal.nodes.items() if regions[name] is not None]
    outside = [unit for name, unit in ideal.nodes.items() if regions[name] is None]
    looped = _covered(_spans(inside), ideal.cycles)
    both = _covered([*_spans(inside), *_spans(_busy(outside))], ideal.cycles)
    busiest = max(inside, key=lambda unit: -(-unit.firings // unit.pe_count), default=None)
    steps = 0 if busiest is None else -(-busiest.firings // busiest.pe_count)
    without_network = min(unhindered.cycles, run.cycles)
    begun = min(ideal.cycles, without_network)
    steps = min(steps, looped, begun)
    scans = busiest is not None and busiest.name.startswith(SCANNING)
    found = {
        CycleCause.DRAM: without_network - begun,
        CycleCause.NETWORK: run.cycles - without_network,
        CycleCause.TRANSFERS: min(both - looped, begun - steps),
        CycleCause.DATAPATH: 0 if scans else steps,
        CycleCause.SCANNER: steps if scans else 0,
    }
    found[CycleCause.START_UP] = run.cycles - sum(found.values())
    return CycleParts(cycles=found, busiest="-" if busiest is None else busiest.name)


def _busy(units: Iterable[NodeStatistics]) -> list[NodeStatistics]:
    """Units that move arrays: they fire more often than a token or two asks for."""
    return [unit for unit in units if unit.firings > 2 * unit.pe_count]


def _spans(units: Iterable[NodeStatistics]) -> list[tuple[int, int]]:
    """From the first to the last firing of each unit that fires."""
    return [
        (unit.first_firing, unit.last_firing)
        for unit in units
        if unit.first_firing is not None and unit.last_firing is not None
    ]


def _covered(spans: Iterable[tuple[int, int]], cycles: int) -> int:
    """How many of the cycles lie in some span."""
    total = end = 0
    for first, last in sorted(spans):
        first = max(first, end + 1)
        if last >= first:
            total += last - first + 1
            end = last
    return min(total, cycles)
