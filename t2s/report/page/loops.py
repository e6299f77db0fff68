"""The loop table of every node: trip counts, cycles, and the directive behind each loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from t2s.core.expr import Const
from t2s.core.names import counted
from t2s.core.printer import show
from t2s.graph.control.domains import domains
from t2s.graph.nodes import Machine, PEArray
from t2s.report.page.markup import SourceLines, rows_view, source_lines, source_link, tag
from t2s.report.page.traffic import rule_counts
from t2s.report.reasons import AblationStep, LoopReason
from t2s.simulator.program.sim_program import NodeTiming
from t2s.simulator.report.result import NodeStatistics, SimResult


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopRow:
    """A loop, in space or in time; or a rule of a machine.

    ``trips`` is its trip count, a range if it depends on other loops; ``firings`` are those of one
    PE in one execution of the loop, a mean if executions differ; ``cycles`` is the mean time of an
    execution, from the node's first to its last firing divided by their number; ``None`` in space,
    and if nothing fired.
    """

    keyword: str
    name: str
    trips: str
    firings: float | None
    cycles: float | None
    reason: str
    source: SourceLines | None
    depth: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NestModel:
    """The loops of a node, with its interval and its firings."""

    node: str
    role: str
    pes: int
    interval: str
    firings: int
    cycles: int | None
    rows: tuple[LoopRow, ...]
    source: SourceLines | None


Reasons = Mapping[tuple[str, str], LoopReason]


def nests_of(result: SimResult, reasons: Reasons) -> tuple[NestModel, ...]:
    """The loops of all nodes, in graph order."""
    return tuple(_nest(result, timing, reasons) for timing in result.program.nodes)


def _nest(result: SimResult, timing: NodeTiming, reasons: Reasons) -> NestModel:
    node, measured = timing.node, result.nodes[timing.node.name]
    span = _span(measured)
    rows = []
    for depth, dimension in enumerate(node.space):
        reason = reasons.get((node.name, dimension.name))
        rows.append(
            LoopRow(
                keyword="parallel",
                name=dimension.name,
                trips=f"{dimension.extent:,}",
                firings=None,
                cycles=None,
                reason="" if reason is None else reason.text,
                source=None if reason is None else source_lines(reason.location),
                depth=depth,
            )
        )
    rows += _rules(result, timing) if isinstance(node, Machine) else _loops(result, timing, reasons)
    return NestModel(
        node=node.name,
        role=node.role.value,
        pes=measured.pe_count,
        interval=str(measured.interval),
        firings=measured.firings,
        cycles=span,
        rows=tuple(rows),
        source=source_lines(node.location),
    )


def _span(measured: NodeStatistics) -> int | None:
    if measured.first_firing is None or measured.last_firing is None:
        return None
    return measured.last_firing - measured.first_firing + 1


def _rules(result: SimResult, timing: NodeTiming) -> list[LoopRow]:
    node = timing.node
    assert isinstance(node, Machine)
    paths = node.paths()
    counts = np.zeros(len(paths), np.int64)
    for pe in range(timing.first, timing.instances.stop):
        firings_of = rule_counts(result.program, pe)
        counts[: len(firings_of)] += firings_of
    return [
        LoopRow(
            keyword="rule",
            name=path.rule.name,
            trips="",
            firings=int(count),
            cycles=None,
            reason=f"in mode {path.mode.name}",
            source=None,
            depth=len(node.space),
        )
        for path, count in zip(paths, counts, strict=True)
        if count
    ]


def _loops(result: SimResult, timing: NodeTiming, reasons: Reasons) -> list[LoopRow]:
    node, measured = timing.node, result.nodes[timing.node.name]
    assert isinstance(node, PEArray)
    extents = [_extent(result, timing, at) for at in range(len(node.loops))]
    per_pe = measured.slots / measured.pe_count if measured.pe_count else 0
    span, rows, runs = _span(measured), [], 1
    for at, loop in enumerate(node.loops):
        reason = reasons.get((node.name, loop.name))
        inner = [extent for extent in extents[at:] if extent is not None]
        boxed = len(inner) == len(extents) - at
        known = all(extent is not None for extent in extents[:at])
        rows.append(
            LoopRow(
                keyword="for",
                name=loop.name,
                trips=f"{extents[at]:,}" if extents[at] is not None else show(loop.extent),
                firings=prod(inner) if boxed else per_pe / runs if known else None,
                cycles=span / runs if span is not None and known and runs else None,
                reason="" if reason is None else reason.text,
                source=None if reason is None else source_lines(reason.location),
                depth=len(node.space) + at,
            )
        )
        runs *= extents[at] or 1
    return rows


def _extent(result: SimResult, timing: NodeTiming, at: int) -> int | None:
    """The trip count of a loop, if it is constant."""
    node = timing.node
    assert isinstance(node, PEArray)
    extent = node.loops[at].extent
    if isinstance(extent, Const):
        return int(extent.value)
    try:
        parts = domains(node, result.program.parameters, divided=True)
    except KeyError:
        return None
    ranges = {bounds for part in parts if part.firings and (bounds := part.range_of(extent))}
    low, high = {low for low, _ in ranges}, {high for _, high in ranges}
    return min(low) if len(low | high) == 1 else None


# The views: a table of loops for each node, and the ablation of directives.

_MOST_OPEN = 8
"""Nests that are all shown; of more the user opens one."""


def nests_view(nests: Sequence[NestModel]) -> str:
    """The loops of all nodes."""
    words = (
        "Firings are those of one PE in one run through the loop; cycles the mean time that this "
        "took, from the node's first to its last firing by the number of runs."
    )
    if len(nests) <= _MOST_OPEN:
        return tag("p", text=words, class_="note") + "".join(nest_view(nest) for nest in nests)
    folded = (
        tag(
            "details",
            tag("summary", text=f"{nest.node}: {counted(nest.firings, 'firing')}"),
            nest_view(nest),
        )
        for nest in nests
    )
    return tag("p", text=words, class_="note") + "".join(folded)


def nest_view(nest: NestModel) -> str:
    """The loops of one node."""
    rows = [
        [
            f"{'· ' * row.depth}{row.keyword} {row.name}",
            row.trips,
            _mean(row.firings),
            _mean(row.cycles),
            row.reason,
            source_link(row.source),
        ]
        for row in nest.rows
    ]
    pes, firings = counted(nest.pes, "PE"), counted(nest.firings, "firing")
    span = "" if nest.cycles is None else f" in {counted(nest.cycles, 'cycle')}"
    title = f"{nest.node}: {nest.role}, {pes}, {nest.interval}, {firings}{span}"
    headers = ("loop", "trips", "firings", "cycles", "made by", "line")
    inside = rows_view(title, headers, rows, frozenset({0, 4, 5}), elements=frozenset({5}))
    return tag("div", inside, class_="nest") if rows else tag("p", text=title)


def _mean(number: float | None) -> str:
    return "-" if number is None else f"{number:,.1f}".removesuffix(".0")


def ladder_view(rungs: Sequence[AblationStep]) -> str:
    """The cycles that each directive saves."""
    counted = [rung.cycles for rung in rungs if rung.cycles]
    most = max(counted, default=1)
    rows, before = [], None
    for rung in rungs:
        bought = "" if before is None or rung.cycles is None else f"{before / rung.cycles:,.2f} ×"
        before = rung.cycles or before
        share = (rung.cycles or 0) / most * 100
        bar = tag("span", tag("span", class_="bar", style=f"width:{share:.2f}%"), class_="bars")
        rows.append(
            [
                rung.directive,
                rung.problem if rung.cycles is None else f"{rung.cycles:,}",
                bought,
                "-" if rung.pes is None else f"{rung.pes:,}",
                bar,
                source_link(source_lines(rung.location)),
            ]
        )
    headers = ("with", "cycles", "faster", "compute PEs", "", "line")
    title = "the design with its first directives, one more in each row"
    return rows_view(title, headers, rows, frozenset({0, 4, 5}), elements=frozenset({4, 5}))
