"""The array as it lies: nodes in layers, their PEs on grids, and the channels between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from t2s.core.charts import layers_of
from t2s.report.page.data.source_lines import SourceLines, source_lines
from t2s.report.page.data.space_time import Observed
from t2s.report.page.data.traffic import token_bytes, tokens_of
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
    """A FIFO between two cells of one node, and the cycles that somebody waited for it."""

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
    peak, mean: tokens in a FIFO, sent and not received, at the cycles that were looked at, of the
        fullest one and of all; ``None`` where nobody looked.
    free_depth: the smallest depth that costs nothing, if it was asked for.
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
    """All nodes and channels; occupancy was looked at in ``looked`` of ``cycles`` cycles."""

    nodes: tuple[GridNode, ...]
    channels: tuple[ChannelLine, ...]
    cycles: int
    looked: int
    layers: int


def chip_map_of(
    result: SimResult, observed: Observed | None, free_depths: dict[str, int] | None
) -> ChipMapModel:
    """The map of a run; without an observation the PEs of a node are all alike."""
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
    there = timing.node.there
    for row in range(0, rows, max(1, down)):
        for column in range(0, columns, max(1, across)):
            inside = numbers[row : row + down, column : column + across].reshape(-1)
            inside = inside[there[inside]]
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
    found = states[:, timing.first + inside].sum(axis=1)
    total = max(1, int(found.sum()))
    return tuple(int(found[state]) / total for state in PEState)


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
    found = []
    for element in range(timing.elements.start, timing.elements.stop):
        ends = int(control.sender[element]), int(control.receiver[element])
        if min(ends) < 0:
            continue
        source, sink = (divmod(end - node.first, columns) for end in ends)
        line = observed.whole if observed is not None else None
        stalls = 0 if line is None else int(line.starved[element] + line.blocked[element])
        found.append(GridWire(source=source, sink=sink, stalls=stalls))
    return tuple(found)
