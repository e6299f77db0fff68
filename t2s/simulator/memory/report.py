"""Measurements of memories: bandwidth, row hits and refreshes of a DRAM; bank conflicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from t2s.core.display import NotebookDisplay, Table
from t2s.simulator.memory.spec import Banked, Dram


@dataclass(slots=True)
class ChannelCounts:
    """Counters of a channel: bursts read and written, row hits and misses, refreshes.

    ``forwarded`` counts reads served by the write queue, and ``joined`` requests served by the
    burst cache; neither reached a bank.
    """

    reads: int = 0
    writes: int = 0
    hits: int = 0
    misses: int = 0
    conflicts: int = 0
    refreshes: int = 0
    forwarded: int = 0
    joined: int = 0


@dataclass(slots=True)
class UnitCounts:
    """Lines that a unit read and wrote, and the sum of their latencies in cycles."""

    reads: int = 0
    writes: int = 0
    latency: int = 0


@dataclass(frozen=True, kw_only=True)
class MemoryCounts:
    """The counters of an engine: by channel, and by unit (a PE instance)."""

    channels: tuple[ChannelCounts, ...]
    units: Mapping[int, UnitCounts]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitRow:
    """The units of one node: lines read and written, latencies and waits.

    ``latency`` is the sum over all lines of the cycles from the request to its completion;
    ``waited`` counts PE-cycles in which only the bound on outstanding requests kept a unit from
    firing.
    """

    node: str
    pe_count: int
    reads: int
    writes: int
    latency: int
    waited: int

    @property
    def mean_latency(self) -> float:
        """Cycles per line; 0 if there was none."""
        lines = self.reads + self.writes
        return self.latency / lines if lines else 0.0


@dataclass(frozen=True, kw_only=True)
class MemoryReport(NotebookDisplay):
    """The memory of a run.

    Attributes
    ----------
    dram: the memory.
    seconds: the duration of the run.
    channels: counters of every channel.
    units: one row per node that loads or stores.
    """

    dram: Dram
    seconds: Fraction
    channels: tuple[ChannelCounts, ...]
    units: tuple[UnitRow, ...]

    @property
    def bytes_moved(self) -> int:
        """Bytes of all bursts, including bytes that no unit used."""
        return sum(c.reads + c.writes for c in self.channels) * self.dram.burst_bytes

    @property
    def bandwidth(self) -> float:
        """Bytes moved per second of the run."""
        return float(self.bytes_moved / self.seconds) if self.seconds else 0.0

    @property
    def share_of_peak(self) -> float:
        """The bandwidth as a share of that of the data buses."""
        return self.bandwidth / float(self.dram.peak_bytes_per_second)

    @property
    def _offered(self) -> Fraction:
        """Bursts that the bus of a channel could move during the run."""
        return self.seconds * self.dram.clock_hz / self.dram.burst_clocks

    @property
    def busiest_share(self) -> float:
        """The share of the run in which the data bus of the busiest channel moved data."""
        bursts = max((c.reads + c.writes for c in self.channels), default=0)
        return float(bursts / self._offered) if self._offered else 0.0

    @property
    def row_hits(self) -> float:
        """The share of bursts whose row was open; 0 without bursts."""
        bursts = sum(c.reads + c.writes for c in self.channels)
        return sum(c.hits for c in self.channels) / bursts if bursts else 0.0

    @property
    def channel_table(self) -> Table:
        """A table of bursts and row hits by channel."""
        peak = float(self.dram.peak_bytes_per_second) / 1e9
        offered = self._offered
        rows = tuple(
            (
                str(number),
                f"{c.reads:,}",
                f"{c.writes:,}",
                *(_share(value, c.reads + c.writes) for value in (c.hits, c.misses, c.conflicts)),
                f"{c.refreshes:,}",
                f"{float((c.reads + c.writes) / offered) if offered else 0.0:.1%}",
            )
            for number, c in enumerate(self.channels)
        )
        return Table(
            title=f"{self.dram.name}: {self.bandwidth / 1e9:.2f} of {peak:.2f} GB/s "
            f"({self.share_of_peak:.1%})",
            headers=(
                "channel", "reads", "writes", "row hits", "row misses", "row conflicts",
                "refreshes", "bus busy",
            ),
            rows=rows,
        )  # fmt: skip

    @property
    def unit_table(self) -> Table:
        """A table of lines and waits by node."""
        rows = tuple(
            (
                row.node,
                f"{row.pe_count:,}",
                f"{row.reads:,}",
                f"{row.writes:,}",
                f"{row.mean_latency:,.1f}",
                f"{row.waited:,}",
            )
            for row in self.units
        )
        return Table(
            title=f"load and store units, lines of {self.dram.line_bytes} bytes",
            headers=("node", "PEs", "lines read", "lines written", "mean latency", "waited"),
            rows=rows,
        )

    def __str__(self) -> str:
        return f"{self.channel_table.text()}\n\n{self.unit_table.text()}"

    def __rich__(self) -> Any:
        from rich.console import Group

        return Group(self.channel_table.rich(), self.unit_table.rich())

    def _repr_html_(self) -> str:
        return f"<div>{self.channel_table.html()}{self.unit_table.html()}</div>"


def _share(part: int, whole: int) -> str:
    return f"{part:,} ({part / whole:.1%})" if whole else "0"


# Measurements of shared banks: words through the network, conflicts, utilization of the banks.


@dataclass(slots=True)
class BankedCounts:
    """Counters of a banked memory.

    Attributes
    ----------
    cycles: cycles in which it had words to serve.
    vectors: vectors that entered the network, by port.
    served: words served, by unit.
    held: cycles that vectors waited in front of their port, summed over vectors.
    waited: cycles that words lost by conflicts in the network and in the queue of the unit, summed
        over words.
    """

    cycles: int = 0
    vectors: list[int] = field(default_factory=list)
    served: list[int] = field(default_factory=list)
    held: int = 0
    waited: int = 0


@dataclass(slots=True)
class BankedPortCounts:
    """Vectors that a machine loaded and stored with, their words, and their total latency."""

    loads: int = 0
    stores: int = 0
    words: int = 0
    latency: int = 0


@dataclass(frozen=True, kw_only=True)
class SharedCounts:
    """The counters of an engine: of the banks, and by machine instance."""

    banks: BankedCounts
    machines: Mapping[int, BankedPortCounts]


@dataclass(frozen=True, slots=True, kw_only=True)
class SharerRow:
    """The machines of one node: their vectors, latencies and waits.

    ``words`` are those of all vectors; ``latency`` is the sum over all loads of the cycles from the
    firing to the answer; ``waited`` counts machine-cycles in which only memory kept a machine from
    firing.
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
    counts: counters of the banks.
    sharers: one row per node whose machines use them.
    """

    banked: Banked
    cycles: int
    counts: BankedCounts
    sharers: tuple[SharerRow, ...]

    @property
    def words(self) -> int:
        """Words served."""
        return sum(self.counts.served)

    @property
    def words_per_cycle(self) -> float:
        """Words per cycle, over the cycles with words to serve."""
        return self.words / self.counts.cycles if self.counts.cycles else 0.0

    @property
    def bank_utilization(self) -> float:
        """Words per bank and cycle, over the whole run."""
        offered = self.cycles * self.banked.ports * self.banked.banks
        return self.words / offered if offered else 0.0

    @property
    def mean_wait(self) -> float:
        """Mean cycles that a word lost by conflicts in the network and in its unit."""
        return self.counts.waited / self.words if self.words else 0.0

    @property
    def table(self) -> Table:
        """A table of words, conflicts and utilization of the banks."""
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
        """A table of vectors and waits by node."""
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
