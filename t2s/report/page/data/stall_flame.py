"""Where the cycles went: node, then what its PEs did, then what they waited for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from t2s.report.page.data.source_lines import SourceLines, source_lines
from t2s.simulator.report.node_statistics import NodeStatistics
from t2s.simulator.report.result import SimResult

WHOLE = "all PEs"


@dataclass(frozen=True, slots=True, kw_only=True)
class FlamePart:
    """A part of the cycles, in PE-cycles; its own parts add up to it, or there are none.

    ``kind`` is one of ``core.tables.KINDS``, or empty for a node and for the whole.
    """

    name: str
    cycles: int
    kind: str
    parts: tuple[FlamePart, ...] = ()
    source: SourceLines | None = None


def flame_of(result: SimResult) -> FlamePart:
    """The PE-cycles of a run; the parts of the whole are the nodes."""
    nodes = [_node(result, node) for node in result.nodes.values()]
    return _sum(WHOLE, "", [node for node in nodes if node.cycles])


def _node(result: SimResult, node: NodeStatistics) -> FlamePart:
    lines = {
        timing.channel.name: source_lines(timing.channel.location)
        for timing in result.program.channels
        if timing.channel.name in node.starved_by or timing.channel.name in node.blocked_by
    }
    starved, blocked = (
        [
            *(
                FlamePart(name=name, cycles=cycles, kind=kind, source=lines.get(name))
                for name, cycles in by_channel.items()
                if cycles
            ),
            *([FlamePart(name="memory", cycles=memory, kind=kind)] if memory else []),
        ]
        for kind, by_channel, memory in (
            ("starved", node.starved_by, node.starved_by_memory),
            ("blocked", node.blocked_by, node.blocked_by_memory),
        )
    )
    waiting = [
        FlamePart(name=name, cycles=cycles, kind="waiting", source=source)
        for name, cycles, source in (
            ("empty slots: gaps or padding", node.empty, None),
            (str(node.interval), node.waiting - node.empty, source_lines(node.interval.location)),
        )
        if cycles
    ]
    states = [
        FlamePart(name="busy", cycles=node.busy, kind="busy"),
        _sum("starved", "starved", starved),
        _sum("blocked", "blocked", blocked),
        _sum("waiting", "waiting", waiting),
        FlamePart(name="idle", cycles=node.idle, kind="idle"),
    ]
    whole = _sum(node.name, "", [state for state in states if state.cycles])
    return FlamePart(
        name=whole.name,
        cycles=whole.cycles,
        kind="",
        parts=whole.parts,
        source=source_lines(node.location),
    )


def _sum(name: str, kind: str, parts: Iterable[FlamePart]) -> FlamePart:
    found = tuple(parts)
    return FlamePart(name=name, cycles=sum(part.cycles for part in found), kind=kind, parts=found)
