"""The stall flame graph: nodes, then the states of their PEs, then the channels they waited for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from t2s.core.names import counted
from t2s.core.svg import element, hover
from t2s.report.page.markup import COLORS, SourceLines, legend, source_lines, sourced, tag
from t2s.simulator.report.result import NodeStatistics, SimResult

WHOLE = "all PEs"


@dataclass(frozen=True, slots=True, kw_only=True)
class FlamePart:
    """A part of the PE-cycles; its own parts, if any, add up to it.

    ``kind`` is one of ``core.display.KINDS``, or empty for a node and for the whole.
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
    children = tuple(parts)
    return FlamePart(
        name=name, cycles=sum(part.cycles for part in children), kind=kind, parts=children
    )


# The stall flame graph: node, what its PEs did, what they waited for; the width is PE-cycles.

_ROW = 26
_THINNEST = 0.0005
"""The share of the whole below which parts of one node or state are drawn together."""


def flame_view(model: FlamePart) -> str:
    """The graph; each part is a button that widens it and shows the user's line."""
    if not model.cycles:
        return tag("p", text="No PE was there for any cycle.")
    parts = list(_parts(model, model.cycles, 0, 0, ()))
    depth = max(level for level, _ in parts)
    drawing = element(
        "svg",
        hover("Where the cycles went"),
        element(
            "desc",
            text="Node, then busy, starved, blocked, waiting or idle, then the channel that was "
            "waited for. Widths are shares of all PE-cycles, which add up to 100 %.",
        ),
        *(text for _, text in parts),
        class_="flame",
        width="100%",
        height=(depth + 1) * _ROW,
        role="group",
        data_cycles=model.cycles,
    )
    status = tag("p", text=_said(model, model, model.cycles), class_="status", aria_live="polite")
    reset = tag("button", text="whole run", type="button", class_="reset", hidden="hidden")
    return tag("div", legend(), drawing, status, tag("p", reset), class_="flame-view")


def _parts(
    part: FlamePart, whole: int, level: int, start: int, path: tuple[str, ...]
) -> Iterator[tuple[int, str]]:
    yield level, _drawn(part, whole, level, start, path)
    at = start
    small: list[FlamePart] = []
    for inner in sorted(part.parts, key=lambda child: -child.cycles) if level else part.parts:
        if inner.cycles < whole * _THINNEST and len(part.parts) > 8:
            small.append(inner)
            continue
        yield from _parts(inner, whole, level + 1, at, (*path, inner.name))
        at += inner.cycles
    if small:
        cycles = sum(child.cycles for child in small)
        others = FlamePart(name=f"{len(small)} others", cycles=cycles, kind=small[0].kind)
        yield level + 1, _drawn(others, whole, level + 1, at, (*path, others.name))


def _drawn(part: FlamePart, whole: int, level: int, start: int, path: tuple[str, ...]) -> str:
    title = " › ".join(path) or part.name
    text = f"{title}: {counted(part.cycles, 'PE-cycle')}, {part.cycles / whole:.2%}"
    if part.source is not None:
        text += f", {part.source.text}"
    return element(
        "svg",
        hover(text),
        element(
            "rect",
            width="100%",
            height=_ROW - 2,
            style=f"fill:{COLORS.get(part.kind, 'var(--node)')}",
        ),
        element("text", text=part.name, x=5, y=16, class_=f"on-{part.kind or 'node'}"),
        x=f"{start / whole * 100:.4f}%",
        y=level * _ROW,
        width=f"{part.cycles / whole * 100:.4f}%",
        height=_ROW - 2,
        role="button",
        tabindex=0,
        aria_label=text,
        class_="part",
        data_start=start,
        data_cycles=part.cycles,
        data_level=level,
        **sourced(part.source),
    )


def _said(part: FlamePart, model: FlamePart, whole: int) -> str:
    cycles = counted(part.cycles, "PE-cycle")
    return f"{part.name}: {cycles}, {part.cycles / whole:.2%} of {model.cycles:,}"
