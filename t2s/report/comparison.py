"""``Comparison``: two results side by side, as a table, as a picture and as a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from t2s.core.checks import checked_file
from t2s.core.files import write_file
from t2s.core.names import counted
from t2s.core.notebook import NotebookCard, NotebookDisplay, Preformatted
from t2s.core.svg import SvgPicture
from t2s.core.tables import Table
from t2s.report.page.data.comparison_model import (
    ChannelChange,
    ComparedSide,
    CycleChange,
    NodeChange,
    cause_table,
    changed,
    channel_changes,
    channel_table,
    cycle_changes,
    node_changes,
    node_table,
    side_of,
    side_table,
)
from t2s.report.page.render import plain_page
from t2s.report.page.views.markup import table_view, tag
from t2s.report.page.views.waterfall_view import waterfall_picture
from t2s.simulator.report.result import SimResult


@dataclass(frozen=True, kw_only=True)
class Comparison(NotebookDisplay):
    """What ``t2s.compare`` found.

    Attributes
    ----------
    before, after: the two sides, A and B.
    causes: the cycles by cause, the largest change first; their changes add up to ``change``.
    nodes, channels: those that differ, or that only one side has.
    """

    before: ComparedSide
    after: ComparedSide
    causes: tuple[CycleChange, ...]
    nodes: tuple[NodeChange, ...]
    channels: tuple[ChannelChange, ...]

    @property
    def change(self) -> int:
        """Cycles that B takes more than A; negative where it takes less."""
        return self.after.cycles - self.before.cycles

    @property
    def banners(self) -> tuple[str, ...]:
        """What has to be said first, of runs that did not come to their end."""
        return tuple(side.banner for side in (self.before, self.after) if side.banner)

    @property
    def sentence(self) -> str:
        """The change in one sentence, with the cause that changed most."""
        a, b = self.before, self.after
        said = f"{b.label} takes {counted(b.cycles, 'cycle')}, {a.label} {a.cycles:,}"
        if a.cycles == b.cycles:
            said += ": as many."
        else:
            said += f": {changed(a.cycles, b.cycles)}."
        most = self.causes[0] if self.causes else None
        if most is not None and most.change:
            cycles = "cycle" if abs(most.change) == 1 else "cycles"
            said += f" The largest change is {most.use.text}, {most.change:+,} {cycles}."
        return said

    @property
    def tables(self) -> tuple[Table, ...]:
        """Headlines, cycles by cause, and the nodes and channels that differ, where some do."""
        a, b = self.before, self.after
        found = [side_table(a, b), cause_table(a, b, self.causes)]
        if self.nodes:
            found.append(node_table(a, b, self.nodes))
        if self.channels:
            found.append(channel_table(a, b, self.channels))
        return tuple(found)

    def svg(self) -> SvgPicture:
        """The waterfall of cycles from A to B, the largest change first."""
        return waterfall_picture(self.before, self.after, self.causes)

    def report(self, path: str | Path) -> Path:
        """Write a page for a browser into a folder that is there, and return its path.

        Raises ``UserError`` for a file that cannot be written.
        """
        file = checked_file("the file of the comparison", path)
        write_file(file, self._page().encode())
        return file

    def _page(self) -> str:
        heads, causes, *others = self.tables
        waterfall = tag(
            "div",
            str(self.svg()),
            class_="scroll waterfall",
            tabindex=0,
            role="region",
            aria_label="waterfall",
        )
        table = tag("details", tag("summary", text="as a table"), table_view(causes))
        note = tag(
            "p",
            text="Each run is taken apart as the mean of its compute PEs, rounded so that the "
            "causes add up to its cycles.",
            class_="note",
        )
        sections = [
            ("side", "Side by side", table_view(heads)),
            ("waterfall", "Cycles by cause", waterfall + note + table),
            *(
                (f"differ{n}", one.title.split(",")[0].capitalize(), table_view(one))
                for n, one in enumerate(others)
            ),
        ]
        return plain_page(self._title, self.sentence, self.banners, sections)

    @property
    def _title(self) -> str:
        a, b = self.before, self.after
        return f"{a.label}: {a.design} → {b.label}: {b.design}"

    def __str__(self) -> str:
        head = "\n".join([*self.banners, self._title, self.sentence])
        return "\n\n".join([head, *(table.text() for table in self.tables)])

    def __repr__(self) -> str:
        a, b = self.before, self.after
        return f"<Comparison of {a.design} and {b.design}: {a.cycles:,} -> {b.cycles:,} cycles>"

    def _card(self) -> NotebookCard:
        """What has to be said first, the change, its waterfall, and the tables."""
        said = (*self.banners, self.sentence)
        texts = (Preformatted(title=text) for text in said)
        return NotebookCard(title=self._title, parts=(*texts, self.svg(), *self.tables))


def comparison_of(
    before: Sequence[SimResult], after: Sequence[SimResult], labels: tuple[str, str]
) -> Comparison:
    """The comparison of two designs by their runs, which came one after the other."""
    several = max(len(before), len(after)) > 1
    a = side_of(labels[0], before, several=several)
    b = side_of(labels[1], after, several=several)
    return Comparison(
        before=a,
        after=b,
        causes=cycle_changes(before, after, several=several),
        nodes=node_changes(a, b),
        channels=channel_changes(a, b),
    )
