"""Two designs side by side: cycles by cause, and what differs in nodes, channels and resources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from t2s.core.errors import UnsupportedError
from t2s.core.names import counted
from t2s.core.tables import Table, engineering
from t2s.report.page.data.chip_map import chip_map_of
from t2s.report.page.data.cycle_causes import CycleUse, cycle_uses, main_nodes, staged
from t2s.report.page.data.space_time import observe
from t2s.report.resources import ResourceReport, estimate_resources
from t2s.simulator.report.result import SimResult

MOST_ROWS = 50
"""Rows of a table; a comparison has all of them as values."""

_NONE = "-"
_UNBOUNDED = 1 << 30
"""The depth of channels that never block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleChange:
    """The cycles that one cause takes in A and in B."""

    use: CycleUse
    before: int
    after: int

    @property
    def change(self) -> int:
        """Cycles that B has more; negative where it has less."""
        return self.after - self.before


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedChannel:
    """A channel of one side: depth, and peak occupancy and PE-cycles that somebody waited for it.

    ``peak`` is the fullest FIFO at the cycles that were looked at, as on the report page; ``None``
    where nobody can look.
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
    label: how the comparison calls it.
    design, device: names.
    cycles, seconds, firings: of all stages.
    utilization: firings / (PEs x cycles) of the main arrays of all stages.
    compute_pes: the most that a stage has.
    dsp_blocks, ram_blocks: the most that a stage takes; ``None`` on a device without such blocks,
        and where there is no estimate.
    ending: why the run ended.
    banner: what has to be said of a run that did not come to its end; empty for one that did.
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
    """One side, of runs that came one after the other; ``several`` gives stages their numbers."""
    channels: dict[str, ComparedChannel] = {}
    nodes: dict[str, ComparedNode] = {}
    blocks: list[ResourceReport | None] = []
    for number, run in enumerate(runs, 1):
        stage = number if several else 0
        channels |= {staged(name, stage): one for name, one in _channels(run).items()}
        estimate = _resources(run)
        blocks.append(estimate)
        nodes |= {staged(name, stage): one for name, one in _nodes(run, estimate).items()}
    estimates = [one for one in blocks if one is not None]
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
        dsp_blocks=max(one.dsp_blocks for one in estimates) if known else None,
        ram_blocks=max(one.ram_blocks for one in estimates) if known else None,
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
    """All causes of both, the largest change first; the changes add up to that of the cycles."""
    a, b = (cycle_uses(runs, staged=several) for runs in (before, after))
    changes = [
        CycleChange(use=use, before=a.get(use, 0), after=b.get(use, 0)) for use in {**a, **b}
    ]
    return tuple(sorted(changes, key=lambda one: (-abs(one.change), -one.before, one.use.text)))


def channel_changes(a: ComparedSide, b: ComparedSide) -> tuple[ChannelChange, ...]:
    """The channels that differ, that with the largest change of stalls first."""

    def stalls(one: ComparedChannel | None) -> int:
        return 0 if one is None else one.stalls

    found = [
        ChannelChange(name=name, before=a.channels.get(name), after=b.channels.get(name))
        for name in {**a.channels, **b.channels}
        if a.channels.get(name) != b.channels.get(name)
    ]
    return tuple(sorted(found, key=lambda one: -abs(stalls(one.after) - stalls(one.before))))


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
    lines = [(one.use.text, one.before, one.after) for one in causes[:MOST_ROWS]]
    others = causes[MOST_ROWS:]
    if others:
        sums = sum(one.before for one in others), sum(one.after for one in others)
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

    def cells(one: ComparedNode | None) -> tuple[int | None, ...]:
        if one is None:
            return (None,) * 6
        return (one.pes, one.interval, one.firings, one.stalled, one.dsp_blocks, one.ram_blocks)

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

    def cells(one: ComparedChannel | None) -> tuple[int | None, ...]:
        return (None,) * 3 if one is None else (one.depth, one.peak, one.stalls)

    rows = []
    for one in channels:
        pairs = zip(cells(one.before), cells(one.after), strict=True)
        depth, *others = (_pair(before, after) for before, after in pairs)
        rows.append((one.name, depth.replace(number(_UNBOUNDED), "unbounded"), *others))
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
    """A number, or ``-`` for none."""
    return _NONE if value is None else f"{value:,}"


def changed(before: int | None, after: int | None) -> str:
    """The difference with its sign, and its share; empty for none."""
    if before is None or after is None or before == after:
        return ""
    share = f" ({(after - before) / before:+.1%})" if before else ""
    return f"{after - before:+,}{share}"


def _pair(before: int | None, after: int | None) -> str:
    if before == after:
        return number(before)
    return f"{number(before)} → {number(after)}"
