"""The chip map: nodes in layers with their PEs on grids, and the channels between them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from t2s.core.names import clipped, counted
from t2s.core.svg import element, hover, layers_of
from t2s.report.page.markup import (
    COLORS,
    STATES,
    SourceLines,
    folded,
    rows_view,
    source_lines,
    source_link,
    sourced,
    tag,
)
from t2s.report.page.space_time import Observed
from t2s.report.page.traffic import token_bytes, tokens_of
from t2s.simulator.program.sim_program import ChannelTiming, NodeTiming
from t2s.simulator.report.result import SimResult
from t2s.simulator.timeline import PEState

Integers = NDArray[np.int64]

MOST_SIDE = 20
"""Cells of a grid in each direction; larger arrays have several PEs in a cell."""

_MOST_WIRES = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A square of a grid: the PEs in it, and the shares of their cycles by state."""

    row: int
    column: int
    label: str
    pes: int
    shares: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GridNode:
    """A node: its layer from left to right, its place in it, and its cells."""

    name: str
    role: str
    layer: int
    place: int
    rows: int
    columns: int
    dimensions: tuple[str, ...]
    cells: tuple[Cell, ...]
    source: SourceLines | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GridWire:
    """A FIFO between two cells of one node, and the cycles that PEs waited for it."""

    source: tuple[int, int]
    sink: tuple[int, int]
    stalls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelLine:
    """A channel.

    Attributes
    ----------
    tokens, bytes: through all FIFOs in a complete run.
    stalls: PE-cycles that receivers starved on it and senders were blocked on it.
    share: these stalls in the cycles of the run, for each FIFO.
    depth, room: tokens that a FIFO holds; with the registers of the sender's datapath.
    peak, mean: tokens in a FIFO, sent and not received, at the sampled cycles, of the fullest FIFO
        and over all; ``None`` if the run was not sampled.
    free_depth: the smallest depth that costs no cycles, if requested.
    wires: the FIFOs between PEs of one node, if they are few.
    """

    name: str
    source: str
    sink: str
    fifos: int
    tokens: int
    bytes: float
    stalls: int
    share: float
    depth: int
    room: int
    peak: int | None
    mean: float | None
    free_depth: int | None
    wires: tuple[GridWire, ...]
    lines: SourceLines | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipMapModel:
    """All nodes and channels; occupancy was sampled in ``looked`` of ``cycles`` cycles."""

    nodes: tuple[GridNode, ...]
    channels: tuple[ChannelLine, ...]
    cycles: int
    looked: int
    layers: int


def chip_map_of(
    result: SimResult, observed: Observed | None, free_depths: dict[str, int] | None
) -> ChipMapModel:
    """The map of a run; without an observation all PEs of a node look alike."""
    program = result.program
    graph = program.graph
    arrows = [(channel.source, channel.sink) for channel in graph.channels]
    layers = layers_of([node.name for node in graph.nodes], arrows)
    places: dict[int, int] = {}
    states = observed.whole.cycles.sum(axis=2) if observed is not None else None
    nodes = []
    for timing in program.nodes:
        layer = layers[timing.node.name]
        places[layer] = place = places.get(layer, -1) + 1
        nodes.append(_grid(result, timing, layer, place, states))
    shapes = {timing.node.name: timing for timing in program.nodes}
    channels = [
        _channel(result, number, timing, shapes, observed, free_depths or {})
        for number, timing in enumerate(program.channels)
    ]
    return ChipMapModel(
        nodes=tuple(nodes),
        channels=tuple(channels),
        cycles=result.cycles,
        looked=len(_looked(observed)),
        layers=max(layers.values(), default=-1) + 1,
    )


def _shape(timing: NodeTiming) -> tuple[int, int]:
    """Rows and columns of a node; further dimensions go into the columns."""
    extents = [dimension.extent for dimension in timing.node.space]
    if not extents:
        return 1, 1
    return extents[0], int(np.prod(extents[1:], dtype=np.int64))


def _grid(
    result: SimResult, timing: NodeTiming, layer: int, place: int, states: Integers | None
) -> GridNode:
    rows, columns = _shape(timing)
    down, across = -(-rows // MOST_SIDE), -(-columns // MOST_SIDE)
    cells = []
    numbers = np.arange(rows * columns).reshape(rows, columns)
    present = timing.node.there
    for row in range(0, rows, max(1, down)):
        for column in range(0, columns, max(1, across)):
            inside = numbers[row : row + down, column : column + across].reshape(-1)
            inside = inside[present[inside]]
            if not len(inside):
                continue
            label = result.program.pe_label(timing.first + int(inside[0]))
            if len(inside) > 1:
                label += f" and {len(inside) - 1} more"
            cells.append(
                Cell(
                    row=row // max(1, down),
                    column=column // max(1, across),
                    label=label,
                    pes=len(inside),
                    shares=_shares(result, timing, states, inside),
                )
            )
    return GridNode(
        name=timing.node.name,
        role=timing.node.role.value,
        layer=layer,
        place=place,
        rows=-(-rows // max(1, down)),
        columns=-(-columns // max(1, across)),
        dimensions=tuple(f"{d.name} {d.extent}" for d in timing.node.space),
        cells=tuple(cells),
        source=source_lines(timing.node.location),
    )


def _shares(
    result: SimResult, timing: NodeTiming, states: Integers | None, inside: Integers
) -> tuple[float, ...]:
    """By ``PEState``; without counters of PEs those of the whole node."""
    if states is None:
        row = result.stalls[timing.node.name]
        kinds = ("busy", "waiting", "starved", "blocked", "idle")
        return tuple(row.share(kind) for kind in kinds)
    counts = states[:, timing.first + inside].sum(axis=1)
    total = max(1, int(counts.sum()))
    return tuple(int(counts[state]) / total for state in PEState)


def _looked(observed: Observed | None) -> set[int]:
    """The cycles at whose ends tokens were counted."""
    if observed is None:
        return set()
    lines = [line for _, line in observed.lines]
    return {int(edge) for line in lines for edge in line.edges if edge}


def _channel(
    result: SimResult,
    number: int,
    timing: ChannelTiming,
    nodes: dict[str, NodeTiming],
    observed: Observed | None,
    free_depths: dict[str, int],
) -> ChannelLine:
    channel = timing.channel
    stalls = result.nodes[channel.sink].starved_by[channel.name]
    stalls += result.nodes[channel.source].blocked_by[channel.name]
    peak = mean = None
    if observed is not None:
        lines = [line for _, line in observed.lines]
        peak = max(int(line.fullest[number].max()) for line in lines)
        exact = [
            line for line in lines if line.is_exact and line.last - line.first + 1 == result.cycles
        ]
        held = (exact[0] if exact else observed.whole).held[number, 1:]
        mean = float(held.mean()) / max(1, channel.element_count)
    tokens = tokens_of(result.program, timing)
    fifos = channel.element_count
    return ChannelLine(
        name=channel.name,
        source=channel.source,
        sink=channel.sink,
        fifos=fifos,
        tokens=tokens,
        bytes=tokens * token_bytes(channel),
        stalls=stalls,
        share=stalls / max(1, result.cycles * fifos),
        depth=channel.capacity,
        room=timing.capacity,
        peak=peak,
        mean=mean,
        free_depth=free_depths.get(channel.name),
        wires=_wires(result, timing, nodes[channel.sink], observed),
        lines=source_lines(channel.location),
    )


def _wires(
    result: SimResult, timing: ChannelTiming, node: NodeTiming, observed: Observed | None
) -> tuple[GridWire, ...]:
    rows, columns = _shape(node)
    small = rows <= MOST_SIDE and columns <= MOST_SIDE
    same = timing.channel.source == timing.channel.sink
    if not same or not small or not 1 < timing.channel.element_count <= _MOST_WIRES:
        return ()
    control = result.program.control
    wires = []
    for number in range(timing.elements.start, timing.elements.stop):
        ends = int(control.sender[number]), int(control.receiver[number])
        if min(ends) < 0:
            continue
        source, sink = (divmod(end - node.first, columns) for end in ends)
        line = observed.whole if observed is not None else None
        stalls = 0 if line is None else int(line.starved[number] + line.blocked[number])
        wires.append(GridWire(source=source, sink=sink, stalls=stalls))
    return tuple(wires)


# The drawing: nodes in layers from left to right, PEs on grids, channels between them.

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
        return tag("p", text="No nodes to draw.")
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
    """Place the nodes: a centered column for each layer."""
    layers = [
        [_box(node) for node in model.nodes if node.layer == layer] for layer in range(model.layers)
    ]
    heights = [sum(box.height + 2 * _TOP for box in boxes) for boxes in layers]
    placed: dict[str, _Box] = {}
    x: float = _LEFT
    for boxes, height in zip(layers, heights, strict=True):
        y = _TOP + (max(heights) - height) / 2
        edge = x + max((box.width for box in boxes), default=0.0)
        for box in boxes:
            placed[box.node.name] = replace(box, x=x, y=y, edge=edge)
            y += box.height + 2 * _TOP
        x = edge + _GAP
    return placed


def _box(node: GridNode) -> _Box:
    cell = _LARGE if max(node.rows, node.columns) <= 16 else _SMALL
    name, below = 8.0 * len(clipped(node.name, _LONGEST_NAME)), 5.6 * len(_below(node))
    width = max(node.columns * cell, name, below, 40.0)
    height = _TITLE + node.rows * cell
    return _Box(node=node, x=0.0, y=0.0, cell=cell, width=width, height=height, edge=width)


def _below(node: GridNode) -> str:
    """The text below the name of a node."""
    return f"{node.role} {' × '.join(node.dimensions)}".strip()


def _node(box: _Box, model: ChipMapModel) -> Iterator[str]:
    node = box.node
    name = clipped(node.name, _LONGEST_NAME)
    title = hover(f"{node.name}, {node.role}")
    yield element(
        "text", title, text=name, x=box.x, y=box.y + 12, class_="name", role="button", tabindex=0,
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
    """A square, filled from below by the states of its PEs."""
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
    """The offset of a channel's end from the middle of a node's side, and the pitch of several.

    Channels leave within the height of the node, so that they do not cross the names above it.
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
    left_aligned = frozenset({0, 1, 10})
    table = rows_view(title, headers, rows, left_aligned, elements=frozenset({10}))
    words = (
        "Depth is that of the FIFO alone; room adds the registers of the sender's datapath, and is "
        "what peak and mean are compared with. Free depth is the smallest that costs no cycles: "
        "result.report(path, depths=t2s.fit_depths(design)) shows it."
    )
    return folded(f"all {len(rows):,} channels as a table", len(rows), table) + tag(
        "p", text=words, class_="note"
    )
