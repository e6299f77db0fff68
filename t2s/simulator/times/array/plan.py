"""What the array engine makes of a program: lanes, ports, transfers and the control of each PE.

Every PE of a node is a *lane*.  A channel is two arrays of counters: tokens that its receiver may
take and places that its sender may fill.  Where each PE uses one element of the channel array from
a side, the counters of that side are kept in the order of the lanes, so that a cycle of all PEs is
a handful of vector operations; such a port is *regular*.  The counters of an irregular port are in
the order of the channel's elements, and its PEs are looked at one by one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from t2s.core.ops import Array
from t2s.graph.body import Receive, Send
from t2s.graph.nodes import PEArray
from t2s.simulator.program.control import FiringOrder
from t2s.simulator.program.flatten import ACCESS, MOVED_BYTES, RECEIVES_END, USES_BEGIN, USES_END
from t2s.simulator.program.sim_program import NodeTiming, SimProgram
from t2s.simulator.program.trace import STORES

NOWHERE = -1
"""The position of an element that nobody uses, and of a port in a firing without it."""


@dataclass(frozen=True, kw_only=True)
class LanePort:
    """One side of a channel, at one node.

    Attributes
    ----------
    channel: position of the channel in the program.
    sends: whether it is the sender's side.
    regular: whether counters are in the order of lanes; else in that of the channel's elements.
    size: number of counters.
    positions: per element of the channel, the position of its counter.
    table: per row of the node, the position that a firing with that row uses.
    """

    channel: int
    sends: bool
    regular: bool
    size: int
    positions: NDArray[np.int64]
    table: NDArray[np.int32]


@dataclass(frozen=True, kw_only=True)
class NodePlan:
    """A node: its lanes are the program's instances from ``timing.first`` on.

    ``first_row`` is the first of the program's rows that are this node's; ``moved`` (bytes) and
    ``stores`` are per row.  ``ports`` are receives, then sends, in body order.
    """

    timing: NodeTiming
    ports: tuple[LanePort, ...]
    first_row: int
    moved: NDArray[np.int32]
    stores: NDArray[np.bool_]

    @property
    def lanes(self) -> int:
        """Number of PEs."""
        return self.timing.pe_count

    @property
    def interval(self) -> int:
        """The initiation interval."""
        return self.timing.interval.cycles


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """How tokens get from the sender's side of a channel to the receiver's, and space back.

    ``sources`` and ``sinks`` are the positions of the elements that have both ends.  Where both
    ports are regular and every sink is ``shift`` positions after its source, vectors are moved.
    """

    channel: int
    latency: int
    source: LanePort
    sink: LanePort
    sources: NDArray[np.int64]
    sinks: NDArray[np.int64]
    shift: int | None


@dataclass(frozen=True, kw_only=True)
class Walk:
    """The order of a PE's firings, for walking through it run by run.

    A run is a number of firings with one code, one after the other.  The innermost axis counts
    iterations of ``repeat`` firings each; ``runs[x]`` of them, from iteration ``x`` on, are alike.
    """

    order: FiringOrder
    axes: tuple[NDArray[np.int32], ...]
    codes: NDArray[np.int32]
    repeat: int
    runs: NDArray[np.int64]

    @property
    def extents(self) -> tuple[int, ...]:
        """Iterations of each axis."""
        return tuple(len(axis) for axis in self.axes)


@dataclass(frozen=True, kw_only=True)
class ArrayPlan:
    """The plan of a program; ``walks`` belong to the program's firing orders."""

    program: SimProgram
    nodes: tuple[NodePlan, ...]
    transfers: tuple[Transfer, ...]
    walks: tuple[Walk, ...]

    @property
    def deepest(self) -> int:
        """The largest number of axes of a walk."""
        return max((len(walk.axes) for walk in self.walks), default=1)


def plan_of(program: SimProgram) -> ArrayPlan:
    """Plan a program."""
    nodes = tuple(_node(program, timing) for timing in program.nodes)
    ends = {(port.channel, port.sends): port for node in nodes for port in node.ports}
    transfers = tuple(
        _transfer(at, timing.latency, ends[at, True], ends[at, False])
        for at, timing in enumerate(program.channels)
    )
    return ArrayPlan(
        program=program,
        nodes=nodes,
        transfers=transfers,
        walks=tuple(walk_of(order) for order in program.control.orders),
    )


def _node(program: SimProgram, timing: NodeTiming) -> NodePlan:
    control = program.control
    first = int(control.row_start[timing.first])
    stop = timing.instances.stop
    end = int(control.row_start[stop]) if stop < program.pe_count else len(control.rows)
    rows = control.rows[first:end].astype(np.int64)
    lane_of_row = (
        np.searchsorted(control.row_start[timing.instances], np.arange(first, end), "right") - 1
    )
    begins = int(rows[0, USES_BEGIN]) if len(rows) else 0
    row_of_use = np.repeat(np.arange(len(rows)), rows[:, USES_END] - rows[:, USES_BEGIN])
    elements = control.uses[begins : begins + len(row_of_use)].astype(np.int64)
    sending = begins + np.arange(len(row_of_use)) >= rows[row_of_use, RECEIVES_END]
    numbers = {channel.channel.name: at for at, channel in enumerate(program.channels)}
    channel_of_use = program.channel_of_element[elements]
    ports = []
    for kind in (Receive, Send):
        body = timing.node.body if isinstance(timing.node, PEArray) else ()
        for statement in body:
            if isinstance(statement, kind):
                at, sends = numbers[statement.channel], kind is Send
                chosen = (channel_of_use == at) & (sending == sends)
                used = np.full(len(rows), NOWHERE, np.int64)
                used[row_of_use[chosen]] = elements[chosen] - program.channels[at].first
                ports.append(_port(program, at, sends, used, lane_of_row, timing.pe_count))
    return NodePlan(
        timing=timing,
        ports=tuple(ports),
        first_row=first,
        moved=rows[:, MOVED_BYTES].astype(np.int32),
        stores=(rows[:, ACCESS] & STORES) > 0,
    )


def _port(
    program: SimProgram, channel: int, sends: bool, used: Array, lane_of_row: Array, lanes: int
) -> LanePort:
    """A port whose firings use elements ``used``, by row of the node."""
    count = program.channels[channel].channel.element_count
    there = used != NOWHERE
    lowest, highest = np.full(lanes, count), np.full(lanes, NOWHERE)
    np.minimum.at(lowest, lane_of_row[there], used[there])
    np.maximum.at(highest, lane_of_row[there], used[there])
    regular = bool((lowest == highest)[highest != NOWHERE].all())
    positions = np.full(count, NOWHERE, np.int64)
    if regular:
        using = np.flatnonzero(highest != NOWHERE)
        positions[highest[using]] = using
        table = np.where(there, lane_of_row, NOWHERE)
    else:
        positions[used[there]] = used[there]
        table = used
    return LanePort(
        channel=channel,
        sends=sends,
        regular=regular,
        size=lanes if regular else count,
        positions=positions,
        table=table.astype(np.int32),
    )


def _transfer(channel: int, latency: int, source: LanePort, sink: LanePort) -> Transfer:
    both = (source.positions != NOWHERE) & (sink.positions != NOWHERE)
    sources, sinks = source.positions[both], sink.positions[both]
    shifts = np.unique(sinks - sources)
    shifted = source.regular and sink.regular and len(shifts) <= 1
    return Transfer(
        channel=channel,
        latency=latency,
        source=source,
        sink=sink,
        sources=sources,
        sinks=sinks,
        shift=int(shifts.sum()) if shifted else None,
    )


def walk_of(order: FiringOrder) -> Walk:
    """The walk of an order; axes that nothing depends on are left out or merged into ``repeat``."""
    axes, codes = list(order.axes), order.codes
    if order.is_list:
        axes = [np.arange(len(codes), dtype=np.int32)]
        codes = codes.astype(np.int32) if len(codes) else np.zeros(1, np.int32)
    repeat = 1
    while axes and codes.shape[-1] == 1:
        repeat *= len(axes.pop())
        codes = codes[..., 0]
    kept = [at for at, axis in enumerate(axes) if len(axis) > 1]
    codes = codes.reshape([codes.shape[at] for at in kept])
    axes = [axes[at] for at in kept] or [np.zeros(1, np.int32)]
    if codes.ndim == 0:
        codes = codes.reshape(1)
    innermost = axes[-1]
    ends = np.flatnonzero(np.diff(innermost)) + 1
    next_change = np.append(ends, len(innermost))
    at = np.arange(len(innermost))
    runs = next_change[np.searchsorted(ends, at, "right")] - at
    return Walk(
        order=order,
        axes=tuple(axes),
        codes=np.ascontiguousarray(codes),
        repeat=repeat,
        runs=runs.astype(np.int64),
    )
