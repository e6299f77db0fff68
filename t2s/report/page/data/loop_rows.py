"""The loops of every node: how often they run, how long they take, and who asked for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from t2s.core.expr import Const
from t2s.core.printer import show
from t2s.graph.nodes import Machine, PEArray
from t2s.report.page.data.source_lines import SourceLines, source_lines
from t2s.report.page.data.traffic import rule_counts
from t2s.report.reasons import LoopReason
from t2s.simulator.program.firing_domain import domains
from t2s.simulator.program.sim_program import NodeTiming
from t2s.simulator.report.node_statistics import NodeStatistics
from t2s.simulator.report.result import SimResult


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopRow:
    """A loop, in space or in time; or a rule of a machine.

    ``trips`` are its iterations, a range where they depend on other loops; ``firings`` those of one
    PE in one run through it, a mean where runs differ; ``cycles`` the mean time of that, from the
    node's first to its last firing by the number of runs; ``None`` in space and where nothing
    fired.
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
        found = rule_counts(result.program, pe)
        counts[: len(found)] += found
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
    """The trip count of a loop, if it is the same everywhere."""
    node = timing.node
    assert isinstance(node, PEArray)
    extent = node.loops[at].extent
    if isinstance(extent, Const):
        return int(extent.value)
    try:
        found = domains(node, result.program.parameters, divided=True)
    except KeyError:
        return None
    ranges = {bounds for one in found if one.firings and (bounds := one.range_of(extent))}
    low, high = {low for low, _ in ranges}, {high for _, high in ranges}
    return min(low) if len(low | high) == 1 else None
