"""``Comparison``: two results side by side: cycles by cause, a table, a waterfall and a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from math import floor
from pathlib import Path

from t2s.core.display import NotebookCard, NotebookDisplay, Preformatted, Table, engineering
from t2s.core.errors import UnsupportedError
from t2s.core.files import write_file
from t2s.core.names import counted
from t2s.core.svg import PALETTE, SvgPicture, element, hover, picture
from t2s.core.validate import checked_file
from t2s.graph.graph import UNBOUNDED
from t2s.report.page.chip import chip_map_of
from t2s.report.page.markup import COLORS, table_view, tag
from t2s.report.page.render import plain_page
from t2s.report.page.space_time import observe
from t2s.report.resources import ResourceReport, estimate_resources
from t2s.simulator.report.result import NodeStatistics, SimResult


@dataclass(frozen=True, kw_only=True)
class Comparison(NotebookDisplay):
    """The result of ``t2s.compare``.

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
        """Cycles of B minus those of A."""
        return self.after.cycles - self.before.cycles

    @property
    def banners(self) -> tuple[str, ...]:
        """Warnings about runs that did not finish."""
        return tuple(side.banner for side in (self.before, self.after) if side.banner)

    @property
    def sentence(self) -> str:
        """The change in one sentence, with the cause that changed most."""
        a, b = self.before, self.after
        text = f"{b.label} takes {counted(b.cycles, 'cycle')}, {a.label} {a.cycles:,}"
        if a.cycles == b.cycles:
            text += ": as many."
        else:
            text += f": {changed(a.cycles, b.cycles)}."
        most = self.causes[0] if self.causes else None
        if most is not None and most.change:
            cycles = "cycle" if abs(most.change) == 1 else "cycles"
            text += f" The largest change is {most.use.text}, {most.change:+,} {cycles}."
        return text

    @property
    def tables(self) -> tuple[Table, ...]:
        """Headline numbers, cycles by cause, and the nodes and channels that differ, if any."""
        a, b = self.before, self.after
        tables = [side_table(a, b), cause_table(a, b, self.causes)]
        if self.nodes:
            tables.append(node_table(a, b, self.nodes))
        if self.channels:
            tables.append(channel_table(a, b, self.channels))
        return tuple(tables)

    def svg(self) -> SvgPicture:
        """The waterfall of cycles from A to B, the largest change first."""
        return waterfall_picture(self.before, self.after, self.causes)

    def report(self, path: str | Path) -> Path:
        """Write a page for a browser into an existing folder, and return its path.

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
                (f"differ{n}", run.title.split(",")[0].capitalize(), table_view(run))
                for n, run in enumerate(others)
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
        """Warnings, the change, its waterfall, and the tables."""
        lines = (*self.banners, self.sentence)
        texts = (Preformatted(title=text) for text in lines)
        return NotebookCard(title=self._title, parts=(*texts, self.svg(), *self.tables))


def comparison_of(
    before: Sequence[SimResult], after: Sequence[SimResult], labels: tuple[str, str]
) -> Comparison:
    """Compare two designs by the runs of their stages."""
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


# Two designs side by side: cycles by cause, and differences in nodes, channels and resources.

MOST_ROWS = 50
"""The most rows of a table; the comparison's values are not limited."""

_NONE = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleChange:
    """The cycles that one cause takes in A and in B."""

    use: CycleUse
    before: int
    after: int

    @property
    def change(self) -> int:
        """Cycles of B minus those of A."""
        return self.after - self.before


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedChannel:
    """A channel of one side: depth, peak occupancy, and PE-cycles that PEs waited for it.

    ``peak`` is that of the fullest FIFO at the sampled cycles, as on the report page; ``None`` if
    the run cannot be sampled.
    """

    depth: int
    peak: int | None
    stalls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedNode:
    """A node of one side; ``stalled`` are PE-cycles starved, blocked or waiting."""

    pes: int
    interval: int
    firings: int
    stalled: int
    dsp_blocks: int | None
    ram_blocks: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelChange:
    """A channel that differs, or that only one side has (the other is ``None``)."""

    name: str
    before: ComparedChannel | None
    after: ComparedChannel | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChange:
    """A node that differs, or that only one side has."""

    name: str
    before: ComparedNode | None
    after: ComparedNode | None


@dataclass(frozen=True, kw_only=True)
class ComparedSide:
    """One of the two results.

    Attributes
    ----------
    label: its name in the comparison.
    design, device: names.
    cycles, seconds, firings: of all stages.
    utilization: firings / (PEs x cycles) of the main arrays of all stages.
    compute_pes: the most that a stage has.
    dsp_blocks, ram_blocks: the most that a stage uses; ``None`` on a device without such blocks,
        or if there is no estimate.
    ending: why the run ended.
    banner: a warning about a run that did not finish; else empty.
    """

    label: str
    design: str
    device: str
    cycles: int
    seconds: float
    firings: int
    utilization: float
    compute_pes: int
    dsp_blocks: int | None
    ram_blocks: int | None
    ending: str
    banner: str
    channels: Mapping[str, ComparedChannel] = field(repr=False)
    nodes: Mapping[str, ComparedNode] = field(repr=False)


def side_of(label: str, runs: Sequence[SimResult], *, several: bool) -> ComparedSide:
    """One side, from the runs of its stages; ``several`` numbers the stages."""
    channels: dict[str, ComparedChannel] = {}
    nodes: dict[str, ComparedNode] = {}
    blocks: list[ResourceReport | None] = []
    for number, run in enumerate(runs, 1):
        stage = number if several else 0
        channels |= {staged(name, stage): channel for name, channel in _channels(run).items()}
        estimate = _resources(run)
        blocks.append(estimate)
        nodes |= {staged(name, stage): compared for name, compared in _nodes(run, estimate).items()}
    estimates = [block for block in blocks if block is not None]
    known = len(estimates) == len(blocks)
    offered = sum(run.cycles * node.pe_count for run in runs for node in main_nodes(run))
    fired = sum(node.firings for run in runs for node in main_nodes(run))
    cut = [run for run in runs if not run.finished]
    return ComparedSide(
        label=label,
        design=runs[-1].graph,
        device=runs[-1].device.name,
        cycles=sum(run.cycles for run in runs),
        seconds=sum(run.seconds for run in runs),
        firings=sum(run.firings for run in runs),
        utilization=fired / offered if offered else 0.0,
        compute_pes=max(run.compute_pes for run in runs),
        dsp_blocks=max(compared.dsp_blocks for compared in estimates) if known else None,
        ram_blocks=max(compared.ram_blocks for compared in estimates) if known else None,
        ending=(cut or runs)[-1].ending.value,
        banner=_banner(label, cut[-1]) if cut else "",
        channels=channels,
        nodes=nodes,
    )


def _banner(label: str, run: SimResult) -> str:
    return (
        f"{label} did not come to its end ({run.ending.value}): its numbers are of the "
        f"{counted(run.cycles, 'cycle')} until then"
    )


def _resources(run: SimResult) -> ResourceReport | None:
    if run.device.fabric is None:
        return None
    try:
        return estimate_resources(run.program.graph, run.device)
    except UnsupportedError:
        return None


def _channels(run: SimResult) -> dict[str, ComparedChannel]:
    lines = chip_map_of(run, observe(run, ()), None).channels
    return {
        line.name: ComparedChannel(depth=line.depth, peak=line.peak, stalls=line.stalls)
        for line in lines
    }


def _nodes(run: SimResult, estimate: ResourceReport | None) -> dict[str, ComparedNode]:
    blocks = {} if estimate is None else {node.name: node for node in estimate.nodes}
    return {
        name: ComparedNode(
            pes=node.pe_count,
            interval=node.interval.cycles,
            firings=node.firings,
            stalled=node.starved + node.blocked + node.waiting,
            dsp_blocks=blocks[name].dsp_blocks if name in blocks else None,
            ram_blocks=blocks[name].ram_blocks if name in blocks else None,
        )
        for name, node in run.nodes.items()
    }


def cycle_changes(
    before: Sequence[SimResult], after: Sequence[SimResult], *, several: bool
) -> tuple[CycleChange, ...]:
    """The causes of both sides, the largest change first; the changes add up to that of the
    cycles.
    """
    a, b = (cycle_uses(runs, staged=several) for runs in (before, after))
    changes = [
        CycleChange(use=use, before=a.get(use, 0), after=b.get(use, 0)) for use in {**a, **b}
    ]
    return tuple(
        sorted(changes, key=lambda change: (-abs(change.change), -change.before, change.use.text))
    )


def channel_changes(a: ComparedSide, b: ComparedSide) -> tuple[ChannelChange, ...]:
    """The channels that differ, the one with the largest change of stalls first."""

    def stalls(channel: ComparedChannel | None) -> int:
        return 0 if channel is None else channel.stalls

    changes = [
        ChannelChange(name=name, before=a.channels.get(name), after=b.channels.get(name))
        for name in {**a.channels, **b.channels}
        if a.channels.get(name) != b.channels.get(name)
    ]
    return tuple(
        sorted(changes, key=lambda change: -abs(stalls(change.after) - stalls(change.before)))
    )


def node_changes(a: ComparedSide, b: ComparedSide) -> tuple[NodeChange, ...]:
    """The nodes that differ, in the order of the graphs."""
    return tuple(
        NodeChange(name=name, before=a.nodes.get(name), after=b.nodes.get(name))
        for name in {**a.nodes, **b.nodes}
        if a.nodes.get(name) != b.nodes.get(name)
    )


def side_table(a: ComparedSide, b: ComparedSide) -> Table:
    """The headline numbers of both."""
    rows = (
        ("design", a.design, b.design, ""),
        ("device", a.device, b.device, ""),
        ("cycles", f"{a.cycles:,}", f"{b.cycles:,}", changed(a.cycles, b.cycles)),
        ("time", f"{engineering(a.seconds)}s", f"{engineering(b.seconds)}s", ""),
        ("utilization", f"{a.utilization:.1%}", f"{b.utilization:.1%}", ""),
        *(
            (label, number(before), number(after), changed(before, after))
            for label, before, after in (
                ("compute PEs", a.compute_pes, b.compute_pes),
                ("firings", a.firings, b.firings),
                ("DSP blocks", a.dsp_blocks, b.dsp_blocks),
                ("RAM blocks", a.ram_blocks, b.ram_blocks),
            )
        ),
        ("ended", a.ending, b.ending, ""),
    )
    return Table(title="side by side", headers=("", a.label, b.label, "change"), rows=rows)


def cause_table(a: ComparedSide, b: ComparedSide, causes: Sequence[CycleChange]) -> Table:
    """The cycles by cause, and their sums."""
    lines = [(cause.use.text, cause.before, cause.after) for cause in causes[:MOST_ROWS]]
    others = causes[MOST_ROWS:]
    if others:
        sums = sum(change.before for change in others), sum(change.after for change in others)
        lines.append((f"{len(others):,} others", *sums))
    rows = [(name, f"{x:,}", f"{y:,}", changed(x, y)) for name, x, y in lines]
    rows.append(("all", f"{a.cycles:,}", f"{b.cycles:,}", changed(a.cycles, b.cycles)))
    return Table(
        title="cycles by cause (mean of the compute PEs)",
        headers=("cause", a.label, b.label, "change"),
        rows=tuple(rows),
    )


def node_table(a: ComparedSide, b: ComparedSide, nodes: Sequence[NodeChange]) -> Table:
    """The nodes that differ."""

    def cells(node: ComparedNode | None) -> tuple[int | None, ...]:
        if node is None:
            return (None,) * 6
        return (
            node.pes,
            node.interval,
            node.firings,
            node.stalled,
            node.dsp_blocks,
            node.ram_blocks,
        )

    rows = [
        (one.name, *(_pair(x, y) for x, y in zip(cells(one.before), cells(one.after), strict=True)))
        for one in nodes
    ]
    return Table(
        title=f"nodes that differ, {a.label} → {b.label} (stalled: PE-cycles)",
        headers=("node", "PEs", "II", "firings", "stalled", "DSP", "RAM"),
        rows=_shortened(rows),
    )


def channel_table(a: ComparedSide, b: ComparedSide, channels: Sequence[ChannelChange]) -> Table:
    """The channels that differ."""

    def cells(channel: ComparedChannel | None) -> tuple[int | None, ...]:
        return (None,) * 3 if channel is None else (channel.depth, channel.peak, channel.stalls)

    rows = []
    for one in channels:
        pairs = zip(cells(one.before), cells(one.after), strict=True)
        depth, *others = (_pair(before, after) for before, after in pairs)
        rows.append((one.name, depth.replace(number(UNBOUNDED), "unbounded"), *others))
    return Table(
        title=f"channels that differ, {a.label} → {b.label} (depth and peak in tokens of a FIFO, "
        "stalls in PE-cycles)",
        headers=("channel", "depth", "peak", "stalls"),
        rows=_shortened(rows),
    )


def _shortened(rows: Sequence[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """The first rows, and how many are left out."""
    if len(rows) <= MOST_ROWS:
        return tuple(rows)
    more = (f"and {len(rows) - MOST_ROWS:,} more", *("" for _ in rows[0][1:]))
    return (*rows[:MOST_ROWS], more)


def number(value: int | None) -> str:
    """A number, or ``-`` for ``None``."""
    return _NONE if value is None else f"{value:,}"


def changed(before: int | None, after: int | None) -> str:
    """The difference with its sign, and its share; empty for ``None``."""
    if before is None or after is None or before == after:
        return ""
    share = f" ({(after - before) / before:+.1%})" if before else ""
    return f"{after - before:+,}{share}"


def _pair(before: int | None, after: int | None) -> str:
    if before == after:
        return number(before)
    return f"{number(before)} → {number(after)}"


# The cycles of runs by their cause, in whole cycles that add up to those of the runs.
#
# The cycles of each run are attributed by the mean over the PEs of its main array: firing, waiting
# for a token or for space in a channel, for memory, for the initiation interval, for an empty slot
# of a schedule, and idle before the first and after the last firing.  The share of firing is
# therefore the utilization.  Means are fractions; they are rounded by largest remainders to keep
# their sum.


class CauseKind(Enum):
    """A cause of cycles."""

    FIRING = "firing"
    STARVED = "starved by"
    BLOCKED = "blocked by"
    STARVED_BY_MEMORY = "starved by memory"
    BLOCKED_BY_MEMORY = "blocked by memory"
    INTERVAL = "initiation interval"
    EMPTY = "empty slots"
    IDLE = "idle"

    @property
    def state(self) -> str:
        """The state of a PE meanwhile, one of ``core.display.KINDS``."""
        match self:
            case CauseKind.FIRING:
                return "busy"
            case CauseKind.STARVED | CauseKind.STARVED_BY_MEMORY:
                return "starved"
            case CauseKind.BLOCKED | CauseKind.BLOCKED_BY_MEMORY:
                return "blocked"
            case CauseKind.INTERVAL | CauseKind.EMPTY:
                return "waiting"
            case CauseKind.IDLE:
                return "idle"


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleUse:
    """A cause of cycles in a stage; ``channel`` is the one that was waited for.

    ``stage`` is 0 where there is only one.
    """

    kind: CauseKind
    channel: str = ""
    stage: int = 0

    @property
    def text(self) -> str:
        """The text for tables."""
        return staged(f"{self.kind.value} {self.channel}".rstrip(), self.stage)


def staged(name: str, stage: int) -> str:
    """A name, with the number of its stage if there are several."""
    return f"stage {stage}: {name}" if stage else name


def cycle_uses(runs: Sequence[SimResult], *, staged: bool) -> dict[CycleUse, int]:
    """The cycles of consecutive runs by cause; they add up to those of the runs."""
    uses: dict[CycleUse, int] = {}
    for number, run in enumerate(runs, 1):
        uses |= _of_run(run, number if staged else 0)
    return uses


def main_nodes(run: SimResult) -> list[NodeStatistics]:
    """The main array; all nodes if the run has no compute nodes."""
    return list(run.nodes.values()) if run.main_array is None else [run.main_array]


def _of_run(run: SimResult, stage: int) -> dict[CycleUse, int]:
    nodes = main_nodes(run)
    pes = sum(node.pe_count for node in nodes)
    sums: dict[CycleUse, int] = {}
    for node in nodes:
        for use, cycles in _of_node(node, stage).items():
            sums[use] = sums.get(use, 0) + cycles
    means = {use: Fraction(cycles, pes) for use, cycles in sums.items() if cycles}
    # an interrupted run may have counted a cycle more than it had: idle is what is left
    means[CycleUse(kind=CauseKind.IDLE, stage=stage)] = run.cycles - sum(means.values(), Fraction())
    return _rounded(means)


def _of_node(node: NodeStatistics, stage: int) -> dict[CycleUse, int]:
    """The PE-cycles of a node that are not idle."""
    kinds = {
        CauseKind.FIRING: node.busy,
        CauseKind.STARVED_BY_MEMORY: node.starved_by_memory,
        CauseKind.BLOCKED_BY_MEMORY: node.blocked_by_memory,
        CauseKind.INTERVAL: node.waiting - node.empty,
        CauseKind.EMPTY: node.empty,
    }
    uses = {CycleUse(kind=kind, stage=stage): cycles for kind, cycles in kinds.items()}
    for kind, by_channel in (
        (CauseKind.STARVED, node.starved_by),
        (CauseKind.BLOCKED, node.blocked_by),
    ):
        for name, cycles in by_channel.items():
            uses[CycleUse(kind=kind, channel=name, stage=stage)] = cycles
    return uses


def _rounded(means: Mapping[CycleUse, Fraction]) -> dict[CycleUse, int]:
    """Round fractions with an integer sum up or down, so that the sum stays the same."""
    rounded = {use: floor(mean) for use, mean in means.items()}
    missing = int(sum(means.values(), Fraction())) - sum(rounded.values())
    for use in sorted(means, key=lambda use: rounded[use] - means[use])[:missing]:
        rounded[use] += 1
    return {use: cycles for use, cycles in rounded.items() if cycles}


# The waterfall: from the cycles of A to those of B, a bar for each cause.

MOST_STEPS = 14
"""Causes with a bar of their own; the others share one."""

_LEFT, _WIDTH, _RIGHT, _ROW, _TOP = 250, 480, 190, 24, 54
_LONGEST_NAME = 32
_ANCHORED = 0.75
"""The axis begins at 0 unless all bars end above this share of the largest number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaterfallStep:
    """A bar from one number of cycles to another."""

    name: str
    start: int
    end: int
    color: str
    total: bool = False

    @property
    def text(self) -> str:
        """The number beside the bar."""
        return f"{self.end:,}" if self.total else f"{self.end - self.start:+,}"


def steps_of(
    a: ComparedSide, b: ComparedSide, causes: Sequence[CycleChange]
) -> tuple[WaterfallStep, ...]:
    """The bars: A, the causes that changed, the largest change first, and B."""
    changes = [cause for cause in causes if cause.change]
    shown, rest = changes, changes[:0]
    if len(changes) > MOST_STEPS:
        shown, rest = changes[: MOST_STEPS - 1], changes[MOST_STEPS - 1 :]
    steps = [_total(a)]
    at = a.cycles
    for change in shown:
        color = COLORS[change.use.kind.state]
        steps.append(
            WaterfallStep(name=change.use.text, start=at, end=at + change.change, color=color)
        )
        at += change.change
    if rest:
        end = at + sum(change.change for change in rest)
        name = f"{len(rest)} others"
        steps.append(WaterfallStep(name=name, start=at, end=end, color=PALETTE[7]))
    return (*steps, _total(b))


def _total(side: ComparedSide) -> WaterfallStep:
    return WaterfallStep(
        name=f"{side.label}: {side.design}", start=0, end=side.cycles, color=PALETTE[2], total=True
    )


def waterfall_picture(
    a: ComparedSide, b: ComparedSide, causes: Sequence[CycleChange]
) -> SvgPicture:
    """The picture; equal comparisons give the same bytes."""
    steps = steps_of(a, b, causes)
    ends = [cycles for step in steps for cycles in _ends(step)]
    top = max(max(ends), 1)
    base = 0
    if min(ends) >= _ANCHORED * top and min(ends) < top:
        base = max(0, min(ends) + (min(ends) - top) // 4)  # so that the lowest bar has a length
    scale = _WIDTH / max(1, top - base)

    def across(cycles: int) -> float:
        return _LEFT + (max(cycles, base) - base) * scale

    drawn = [_axis(base)]
    drawn += [_bar(step, row, across) for row, step in enumerate(steps)]
    for row, step in enumerate(steps[:-1]):
        x, y = across(step.end), _TOP + row * _ROW + _ROW - 5
        drawn.append(
            element("line", x1=x, x2=x, y1=y, y2=y + 10, stroke="currentColor", stroke_width=0.7)
        )
    summary = f"{counted(a.cycles, 'cycle')} of {a.label} become {b.cycles:,} of {b.label}: "
    summary += ", ".join(f"{step.name} {step.text}" for step in steps[1:-1]) or "no cause differs"
    return picture(
        _LEFT + _WIDTH + _RIGHT,
        _TOP + len(steps) * _ROW + 8,
        *drawn,
        title=f"Cycles from {a.label} to {b.label} by cause",
        description=summary,
    )


def _ends(step: WaterfallStep) -> tuple[int, ...]:
    return (step.end,) if step.total else (step.start, step.end)


def _axis(base: int) -> str:
    text = "cycles; the axis begins at " + (f"{base:,}, not at 0" if base else "0")
    return element("text", text=text, x=_LEFT, y=_TOP - 30, fill_opacity=0.75) + element(
        "line",
        x1=_LEFT,
        x2=_LEFT,
        y1=_TOP - 8,
        y2=_TOP - 2,
        stroke="currentColor",
    )


def _bar(step: WaterfallStep, row: int, across: Callable[[int], float]) -> str:
    y = _TOP + row * _ROW
    left, right = sorted((across(0 if step.total else step.start), across(step.end)))
    name = step.name if len(step.name) <= _LONGEST_NAME else f"{step.name[: _LONGEST_NAME - 1]}…"
    return element(
        "g",
        hover(f"{step.name}: {step.text}"),
        element(
            "text",
            text=name,
            x=_LEFT - 10,
            y=y + 14,
            text_anchor="end",
            font_weight="600" if step.total else "400",
        ),
        element(
            "rect",
            x=left,
            y=y,
            width=max(1.0, right - left),
            height=_ROW - 5,
            fill=PALETTE[7] if step.color.startswith("var") else step.color,
        ),
        element("text", text=step.text, x=right + 6, y=y + 14),
    )
