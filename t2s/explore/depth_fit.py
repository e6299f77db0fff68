"""``DepthFit``: what a search for channel depths found, as text and in a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from t2s.core.charts import Bar, bar_chart
from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.core.notebook import NotebookCard, NotebookDisplay
from t2s.core.svg import PALETTE, SvgPicture
from t2s.core.tables import Table
from t2s.explore.front import scatter
from t2s.graph.depths import with_depths
from t2s.graph.graph import Graph
from t2s.simulator.devices import Device

NO_LIMIT = 1 << 30
"""The depth of channels that never block."""


class Lowerable(Protocol):
    """A function of the user, which lowers to a graph."""

    def lower(self) -> Graph:
        """The graph."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelFit:
    """A channel of a fit.  Depths are in tokens of one FIFO alone, ``bytes`` of all its FIFOs.

    ``before`` is the depth of the design, ``bound`` one at which the sender is never blocked.
    ``ram_blocks`` is ``None`` on a device without RAM blocks.
    """

    name: str
    fifos: int
    before: int
    bound: int
    depth: int
    bytes: int
    ram_blocks: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontPoint:
    """Depths by channel name, what the FIFOs take, in the unit of the front, and the cycles."""

    depths: Mapping[str, int]
    ram: int
    cycles: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthFront(NotebookDisplay):
    """Cycles against RAM: no point that was tried is at least as good as one of these in both.

    Attributes
    ----------
    points: the cheapest first.
    unit: of ``ram``: bytes or RAM blocks, of all FIFOs.
    budget: what was asked for, in the same unit.
    exhaustive: whether all depths up to the fitted ones were tried.
    """

    points: tuple[FrontPoint, ...]
    unit: str
    budget: int
    exhaustive: bool

    @property
    def chosen(self) -> FrontPoint | None:
        """The fastest point within the budget; ``None`` if there is none."""
        fitting = [point for point in self.points if point.ram <= self.budget]
        return min(fitting, key=lambda point: point.cycles) if fitting else None

    @property
    def table(self) -> Table:
        """One row per point."""
        least = min((point.cycles for point in self.points), default=1)
        names = list(self.points[0].depths) if self.points else []
        rows = tuple(
            (
                f"{point.ram:,}",
                f"{point.cycles:,}",
                f"{point.cycles / max(1, least) - 1:+.1%}",
                "<- budget" if point is self.chosen else "",
                *(f"{depth:,}" for depth in point.depths.values()),
            )
            for point in self.points
        )
        tried = "all depths tried" if self.exhaustive else "depths tried step by step"
        return Table(
            title=f"cycles against {self.unit} of FIFOs, budget {self.budget:,} ({tried})",
            headers=(self.unit, "cycles", "slower", "", *names),
            rows=rows,
            left=frozenset({3}),
        )

    def svg(self) -> str:
        """The front as an inline picture."""
        return scatter(
            [(point.ram, point.cycles) for point in self.points],
            across=f"{self.unit} of FIFOs",
            up="cycles",
            limit=self.budget,
        )

    def __str__(self) -> str:
        return self.table.text()

    def __rich__(self) -> Any:
        return self.table.rich()

    def _card(self) -> NotebookCard:
        title = f"cycles against {self.unit} of FIFOs"
        return NotebookCard(title=title, parts=(SvgPicture(self.svg()), self.table))


@dataclass(frozen=True, kw_only=True)
class DepthFit(NotebookDisplay):
    """The smallest channel depths that keep a cycle count.

    Attributes
    ----------
    design, device: what was fitted, for what.
    cycles: the cycles of the design with these depths.
    unbounded_cycles: its cycles with channels that never block.
    before_cycles: its cycles as it was; ``None`` if it did not end.
    channels: one row per channel, in graph order.
    minimal: whether lowering any single depth costs cycles.  Not so after an interrupt, and where a
        budget took the depths below those that cost nothing.
    least: whether moreover no depths that keep the cycles are smaller in any channel.
    interrupted: whether Ctrl-C ended the search; these are the best depths found until then.
    runs: how many times the design was timed.
    front: cycles against RAM, where there was a budget.
    """

    design: str
    device: Device
    cycles: int
    unbounded_cycles: int
    before_cycles: int | None
    channels: tuple[ChannelFit, ...]
    minimal: bool
    least: bool
    interrupted: bool
    runs: int
    front: DepthFront | None = None
    graph: Graph = field(repr=False)

    @property
    def depths(self) -> Mapping[str, int]:
        """The depth of every channel."""
        return {channel.name: channel.depth for channel in self.channels}

    @property
    def bytes(self) -> int:
        """Bytes of all FIFOs."""
        return sum(channel.bytes for channel in self.channels)

    @property
    def ram_blocks(self) -> int | None:
        """RAM blocks of all FIFOs; ``None`` on a device without RAM blocks."""
        blocks = [channel.ram_blocks for channel in self.channels]
        return sum(block or 0 for block in blocks) if None not in blocks else None

    def apply(self, design: Graph | Lowerable | None = None) -> Graph:
        """A graph with these depths: of ``design``, or of the one that was fitted.

        ``design`` is a graph, or a Func, which is lowered; ``UserError`` if its channels are not
        those that were fitted.
        """
        graph = self.graph
        if design is not None:
            graph = design if isinstance(design, Graph) else design.lower()
        there = [channel.name for channel in graph.channels]
        if there != list(self.depths):
            raise UserError(
                f"the depths of {self.design!r} do not apply to {graph.name!r}",
                location=user_location(),
                expected=f"the channels {', '.join(self.depths)}",
                given=", ".join(there) or "no channels",
                hint="fit the depths of this design",
            )
        return with_depths(graph, self.depths)

    @property
    def guarantee(self) -> str:
        """What is certain about the depths, in words."""
        if self.interrupted:
            return "interrupted: the best depths so far, perhaps not minimal"
        if self.least:
            return "the least: no depths that keep the cycles are smaller in any channel"
        if self.minimal:
            return "minimal: lowering any single depth costs cycles"
        return "the fastest found within the budget"

    @property
    def summary(self) -> tuple[tuple[str, str], ...]:
        """The headline numbers as (label, text)."""
        before = "deadlock" if self.before_cycles is None else f"{self.before_cycles:,}"
        lines = [
            ("cycles", f"{self.cycles:,}"),
            ("unbounded", f"{self.unbounded_cycles:,}"),
            ("before", before),
            ("depths", self.guarantee),
            ("FIFOs", f"{self.bytes:,} bytes"),
        ]
        if self.ram_blocks is not None:
            lines.append(("RAM blocks", f"{self.ram_blocks:,} of FIFOs"))
        return (*lines, ("timed", f"{self.runs} times"))

    @property
    def table(self) -> Table:
        """One row per channel."""
        rows = tuple(
            (
                channel.name,
                f"{channel.fifos:,}",
                f"{channel.before:,}",
                f"{channel.bound:,}",
                f"{channel.depth:,}",
                f"{channel.bytes:,}",
                "-" if channel.ram_blocks is None else f"{channel.ram_blocks:,}",
            )
            for channel in self.channels
        )
        headers = ("channel", "FIFOs", "before", "never blocks", "depth", "bytes", "RAM blocks")
        return Table(title="depths in tokens", headers=headers, rows=rows)

    @property
    def _title(self) -> str:
        return f"{self.design} on {self.device.name}: channel depths"

    def __str__(self) -> str:
        width = max(len(label) for label, _ in self.summary)
        head = [f"{label.ljust(width)}  {text}" for label, text in self.summary]
        parts = ["\n".join([self._title, *head]), self.table.text()]
        return "\n\n".join(parts + ([str(self.front)] if self.front is not None else []))

    def __rich__(self) -> Any:
        from rich.console import Group
        from rich.text import Text

        head = "\n".join(f"{label:12} {text}" for label, text in self.summary)
        parts = [Text(f"{self._title}\n{head}"), self.table.rich()]
        return Group(*parts, *([self.front.table.rich()] if self.front is not None else []))

    def picture(self) -> SvgPicture:
        """What the FIFOs of each channel take, and what they took before."""
        bars = []
        for channel in self.channels:
            token = channel.bytes / max(1, channel.depth)
            saved = (channel.before - channel.depth) * token if channel.before < NO_LIMIT else 0
            was = "no limit" if channel.before >= NO_LIMIT else f"{channel.before:,}"
            now = f"{channel.name}: depth {channel.depth:,}, {channel.bytes:,} bytes"
            before = f"{channel.name}: depth {was} before"
            parts = (PALETTE[0], channel.bytes, now), (PALETTE[7], max(0.0, saved), before)
            word = f"{was} → {channel.depth:,}"
            bars.append(Bar(name=channel.name, parts=parts, word=word))
        legend = (("bytes now", PALETTE[0]), ("saved", PALETTE[7]))
        return bar_chart("bytes of the FIFOs of each channel", bars, legend=legend)

    def _card(self) -> NotebookCard:
        front = SvgPicture(self.front.svg()) if self.front is not None else None
        points = self.front.table if self.front is not None else None
        parts = (self.picture(), self.table, front, points)
        return NotebookCard(title=self._title, summary=self.summary, parts=parts)
