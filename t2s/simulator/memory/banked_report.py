"""What came of shared banks in a run: words through the network, conflicts, use of the banks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from t2s.core.notebook import NotebookDisplay
from t2s.core.tables import Table
from t2s.simulator.memory.banked import Banked, BankedCounts
from t2s.simulator.memory.banked_port import BankedPortCounts


@dataclass(frozen=True, kw_only=True)
class SharedCounts:
    """What an engine measures: of the banks, and by instance of the machines that use them."""

    banks: BankedCounts
    machines: Mapping[int, BankedPortCounts]


@dataclass(frozen=True, slots=True, kw_only=True)
class SharerRow:
    """The machines of one node: vectors that they asked with, and what these took.

    ``words`` are those of all vectors; ``latency`` is the sum over all loads of the cycles from
    the firing to the answer; ``waited`` counts machine-cycles in which nothing but memory kept a
    machine from firing.
    """

    node: str
    machines: int
    loads: int
    stores: int
    words: int
    latency: int
    waited: int

    @property
    def mean_latency(self) -> float:
        """Cycles per load; 0 if there was none."""
        return self.latency / self.loads if self.loads else 0.0


@dataclass(frozen=True, kw_only=True)
class BankedReport(NotebookDisplay):
    """The shared banks of a run.

    Attributes
    ----------
    banked: the banks and their network.
    cycles: of the run.
    counts: what the banks have done.
    sharers: one row per node whose machines use them.
    """

    banked: Banked
    cycles: int
    counts: BankedCounts
    sharers: tuple[SharerRow, ...]

    @property
    def words(self) -> int:
        """Words that were served."""
        return sum(self.counts.served)

    @property
    def words_per_cycle(self) -> float:
        """Words per cycle in which there were any to serve."""
        return self.words / self.counts.cycles if self.counts.cycles else 0.0

    @property
    def bank_utilization(self) -> float:
        """Words per bank and cycle of the run."""
        offered = self.cycles * self.banked.ports * self.banked.banks
        return self.words / offered if offered else 0.0

    @property
    def mean_wait(self) -> float:
        """Cycles that a word lost by conflicts in the network and in its unit."""
        return self.counts.waited / self.words if self.words else 0.0

    @property
    def table(self) -> Table:
        """Words, conflicts and use of the banks."""
        counts, banked = self.counts, self.banked
        vectors = sum(counts.vectors)
        busiest = max(counts.served, default=0)
        per_unit = self.cycles * banked.banks
        row = (
            f"{vectors:,}",
            f"{self.words:,}",
            f"{self.words_per_cycle:.2f}",
            f"{self.words_per_cycle / banked.ports:.2f}",
            f"{counts.held:,}",
            f"{counts.waited:,} ({self.mean_wait:.1f})",
            f"{self.bank_utilization:.1%}",
            f"{busiest / per_unit if per_unit else 0.0:.1%}",
        )
        return Table(
            title=f"shared banks: {banked.ports} ports and units of {banked.banks} banks, busy in "
            f"{counts.cycles:,} of {self.cycles:,} cycles",
            headers=(
                "vectors", "words", "words per cycle", "and port", "held at ports",
                "words waited", "banks used", "busiest unit",
            ),
            rows=(row,),
            left=frozenset(),
        )  # fmt: skip

    @property
    def sharer_table(self) -> Table:
        """Vectors and waits, by node."""
        rows = tuple(
            (
                row.node,
                f"{row.machines:,}",
                f"{row.loads:,}",
                f"{row.stores:,}",
                f"{row.words:,}",
                f"{row.mean_latency:,.1f}",
                f"{row.waited:,}",
            )
            for row in self.sharers
        )
        return Table(
            title=f"machines that use them, vectors of {self.banked.lanes} words",
            headers=(
                "node", "PEs", "vectors loaded", "stored", "words", "mean latency", "waited",
            ),
            rows=rows,
        )  # fmt: skip

    def __str__(self) -> str:
        return f"{self.table.text()}\n\n{self.sharer_table.text()}"

    def __rich__(self) -> Any:
        from rich.console import Group

        return Group(self.table.rich(), self.sharer_table.rich())

    def _repr_html_(self) -> str:
        return f"<div>{self.table.html()}{self.sharer_table.html()}</div>"
