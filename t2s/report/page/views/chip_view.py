"""The array as it lies: nodes in layers from left to right, PEs on grids, channels between them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from t2s.core.names import clipped, counted
from t2s.core.svg import element, hover
from t2s.report.page.data.chip_map import Cell, ChannelLine, ChipMapModel, GridNode
from t2s.report.page.views.markup import (
    COLORS,
    STATES,
    folded,
    rows_view,
    source_link,
    sourced,
    tag,
)

_GAP, _TITLE, _LEFT, _TOP = 90, 34, 16, 16
_LARGE, _SMALL = 22, 7
_APART = 9.0
_LONGEST_NAME = 20
_SMALLEST = 0.7
"""How far a wide map shrinks before it scrolls."""

_MOST_NODES = 400
_NO_LIMIT = 1 << 30
"""Tokens of a channel that never blocks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Box:
    node: GridNode
    x: float
    y: float
    cell: int
    width: float
    height: float
    edge: float
    """Where the widest node of the layer ends: lines run straight until there."""

    def center(self, place: tuple[int, int]) -> tuple[float, float]:
        row, column = place
        return (
            self.x + (column + 0.5) * self.cell,
            self.y + _TITLE + (row + 0.5) * self.cell,
        )

    def side(self, right: int, beyond: int) -> tuple[float, float]:
        """The middle of the left or the right side of the cells, and some pixels beyond."""
        across = self.node.columns * self.cell * right
        return self.x + across + beyond, self.y + _TITLE + self.node.rows * self.cell / 2


def chip_map_view(model: ChipMapModel) -> str:
    """The map and the table of channels."""
    table = _table(model)
    if not model.nodes:
        return tag("p", text="There are no nodes to draw.")
    if len(model.nodes) > _MOST_NODES:
        return tag("p", text=f"{len(model.nodes):,} nodes are too many to draw.") + table
    boxes = _boxes(model)
    width = max(box.edge for box in boxes.values()) + _LEFT
    height = max(box.y + box.height for box in boxes.values()) + 3 * _TOP
    most = max((line.tokens for line in model.channels), default=1)
    between = (line for line in model.channels if line.source != line.sink)
    drawing = element(
        "svg",
        hover("The array as it lies"),
        element(
            "desc",
            text=f"{counted(len(model.nodes), 'node')} in {counted(model.layers, 'layer')}. "
            "Squares are PEs in the color of what they did most, filled as far as they did it; "
            "lines are channels, thick where many tokens pass, orange where PEs wait for them.",
        ),
        *(_line(model, line, boxes, most) for line in between),
        *(text for box in boxes.values() for text in _node(box, model)),
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        width=f"{width:.0f}",
        height=f"{height:.0f}",
        role="group",
        class_="chip",
        style=f"max-width:{width:.0f}px;min-width:{_SMALLEST * width:.0f}px",
        font_size=12,
    )
    scroll = tag("div", drawing, class_="scroll", tabindex=0, role="region", aria_label="map")
    note = tag(
        "p", text="Point at a PE or a channel; click for the line that made it.", class_="status"
    )
    return tag("div", scroll, note, table, class_="chip-view")


def _boxes(model: ChipMapModel) -> dict[str, _Box]:
    """Where the nodes are: a column for each layer, and the columns centered."""
    layers = [
        [_box(node) for node in model.nodes if node.layer == layer] for layer in range(model.layers)
    ]
    heights = [sum(box.height + 2 * _TOP for box in boxes) for boxes in layers]
    found: dict[str, _Box] = {}
    x: float = _LEFT
    for boxes, height in zip(layers, heights, strict=True):
        y = _TOP + (max(heights) - height) / 2
        edge = x + max((box.width for box in boxes), default=0.0)
        for box in boxes:
            found[box.node.name] = replace(box, x=x, y=y, edge=edge)
            y += box.height + 2 * _TOP
        x = edge + _GAP
    return found


def _box(node: GridNode) -> _Box:
    cell = _LARGE if max(node.rows, node.columns) <= 16 else _SMALL
    name, below = 8.0 * len(clipped(node.name, _LONGEST_NAME)), 5.6 * len(_below(node))
    width = max(node.columns * cell, name, below, 40.0)
    height = _TITLE + node.rows * cell
    return _Box(node=node, x=0.0, y=0.0, cell=cell, width=width, height=height, edge=width)


def _below(node: GridNode) -> str:
    """What is written below the name of a node."""
    return f"{node.role} {' × '.join(node.dimensions)}".strip()


def _node(box: _Box, model: ChipMapModel) -> Iterator[str]:
    node = box.node
    name = clipped(node.name, _LONGEST_NAME)
    said = hover(f"{node.name}, {node.role}")
    yield element(
        "text", said, text=name, x=box.x, y=box.y + 12, class_="name", role="button", tabindex=0,
        **sourced(node.source),
    )  # fmt: skip
    yield element("text", text=_below(node), x=box.x, y=box.y + 26, class_="faint", font_size=10)
    for cell in node.cells:
        yield _cell(box, cell, node)
    own = [line for line in model.channels if line.source == line.sink == node.name]
    for line in own:
        most = max([wire.stalls for wire in line.wires], default=0)
        for wire in line.wires:
            (a, b), (c, d) = box.center(wire.source), box.center(wire.sink)
            share = wire.stalls / max(1, model.cycles)
            text = f"{line.name}: {counted(wire.stalls, 'cycle')} of stalls of {most:,} at most"
            yield element(
                "path",
                hover(text),
                d=f"M{a:.1f} {b:.1f}L{c:.1f} {d:.1f}",
                class_="wire",
                style=f"stroke:{_stall_color(share)};stroke-width:{_width(line, own):.1f}",
            )


def _cell(box: _Box, cell: Cell, node: GridNode) -> str:
    """A square, filled from below by what the PEs did."""
    size = box.cell - (2 if box.cell == _LARGE else 1)
    x, y = box.x + cell.column * box.cell, box.y + _TITLE + cell.row * box.cell
    shares = ", ".join(
        f"{name} {share:.1%}" for name, share in zip(STATES, cell.shares, strict=True) if share
    )
    bars, bottom = [], y + size
    for name, share in zip(STATES, cell.shares, strict=True):
        if share * size >= 0.05:
            bottom -= share * size
            bars.append(
                element(
                    "rect",
                    x=x,
                    y=bottom,
                    width=size,
                    height=share * size,
                    style=f"fill:{COLORS[name]}",
                )
            )
    frame = element("rect", x=x, y=y, width=size, height=size, class_="cell")
    return element("g", hover(f"{cell.label}: {shares}"), *bars, frame, **sourced(node.source))


def _spread(model: ChipMapModel, line: ChannelLine, box: _Box) -> tuple[float, float]:
    """How far from the middle of a node's side a channel ends, and how far several are apart.

    They leave the node on its own height, so that the names above it stay free.
    """
    node = box.node.name
    sends = line.source == node
    beside = [
        other.name
        for other in model.channels
        if other.source != other.sink and node == (other.source if sends else other.sink)
    ]
    apart = min(_APART, (box.height - _TITLE + _TOP) / max(1, len(beside) - 1))
    return apart * (beside.index(line.name) - (len(beside) - 1) / 2), apart


def _line(model: ChipMapModel, line: ChannelLine, boxes: Mapping[str, _Box], most: int) -> str:
    """A channel between two nodes."""
    source, sink = boxes[line.source], boxes[line.sink]
    (x1, y1), (x2, y2) = source.side(1, 4), sink.side(0, -4)
    (up, apart), (down, beside) = (_spread(model, line, box) for box in (source, sink))
    y1, y2 = y1 + up, y2 + down
    if x2 > x1:
        edge = max(x1, source.edge)
        bend = max(30.0, (x2 - edge) / 2)
        path = (
            f"M{x1:.1f} {y1:.1f}H{edge:.1f}C{edge + bend:.1f} {y1:.1f} "
            f"{x2 - bend:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"
        )
    else:  # back to an earlier layer: around below
        low = max(source.y + source.height, sink.y + sink.height) + 14
        path = (
            f"M{x1:.1f} {y1:.1f}C{x1 + 40:.1f} {low:.1f} {x2 - 40:.1f} {low:.1f} {x2:.1f} {y2:.1f}"
        )
    width = 1 + 5 * math.log1p(line.tokens) / math.log1p(max(1, most))
    width = min(width, max(1.0, 0.7 * min(apart, beside)))
    return element(
        "path",
        hover(_said(line)),
        d=path,
        class_="channel",
        role="button",
        tabindex=0,
        aria_label=_said(line),
        style=f"stroke:{_stall_color(line.share)};stroke-width:{width:.1f}",
        **sourced(line.lines),
    )


def _width(line: ChannelLine, lines: list[ChannelLine]) -> float:
    most = max(other.tokens for other in lines)
    return 1 + 1.5 * math.log1p(line.tokens) / math.log1p(max(1, most))


def _stall_color(share: float) -> str:
    """From the page's gray to vermilion, by the share of the cycles that PEs wait."""
    part = min(100.0, max(0.0, share) * 100)
    return f"color-mix(in srgb, var(--stall) {part:.0f}%, var(--wire))"


def _said(line: ChannelLine) -> str:
    text = (
        f"{line.name} from {line.source} to {line.sink}: {counted(line.tokens, 'token')}, "
        f"{counted(line.stalls, 'PE-cycle')} of stalls, depth {_tokens(line.depth)}"
    )
    if line.peak is not None and line.mean is not None:
        text += f", at most {line.peak:,} and on average {line.mean:.2f} tokens in a FIFO"
    return text


def _tokens(number: int) -> str:
    return f"{number:,}" if number < _NO_LIMIT else "no limit"


def _table(model: ChipMapModel) -> str:
    rows = [
        [
            line.name,
            f"{line.source} → {line.sink}",
            f"{line.fifos:,}",
            f"{line.tokens:,}",
            f"{line.stalls:,}",
            "-" if line.peak is None else f"{line.peak:,}",
            "-" if line.mean is None else f"{line.mean:.2f}",
            _tokens(line.depth),
            _tokens(line.room),
            "-" if line.free_depth is None else f"{line.free_depth:,}",
            source_link(line.lines),
        ]
        for line in model.channels
    ]
    looked = f"looked at in {model.looked:,} of {counted(model.cycles, 'cycle')}"
    title = (
        f"channels (peak and mean: tokens sent and not yet received, {looked}, in the fullest FIFO "
        "and in all)"
    )
    headers = (
        "channel", "from → to", "FIFOs", "tokens", "stalls", "peak", "mean", "depth", "room",
        "free depth", "line",
    )  # fmt: skip
    left = frozenset({0, 1, 10})
    table = rows_view(title, headers, rows, left, elements=frozenset({10}))
    words = (
        "Depth is that of the FIFO alone; room adds the registers of the sender's datapath, and is "
        "what peak and mean are compared with. Free depth is the smallest that costs no cycles: "
        "result.report(path, depths=t2s.fit_depths(design)) shows it."
    )
    return folded(f"all {len(rows):,} channels as a table", len(rows), table) + tag(
        "p", text=words, class_="note"
    )
