"""The signals of every FIFO in every cycle of a window: valid, push, pop and occupancy.

They follow from the firings: the control says of each firing into which FIFOs it sends and from
which it takes.  A token is valid as many cycles after its firing as its channel's latency says, so
the window is looked at from so many cycles before it on.  What has to be in a FIFO at its start is
counted by the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from t2s.core.walk import walk
from t2s.graph.body import Load, Store
from t2s.graph.machine import Search
from t2s.simulator.program.control import FiringOrder
from t2s.simulator.program.flatten import RECEIVES_END, USES_BEGIN, USES_END
from t2s.simulator.program.sim_program import SimProgram
from t2s.simulator.report.tally import Counts
from t2s.simulator.timeline import Timeline

Bits = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class ChannelSignals:
    """Signals by channel element and cycle, from the first one of a window to its last one.

    ``push`` and ``pop`` are firings that send into a FIFO and take from it, ``valid`` is whether
    its receiver sees a token, and ``held`` the number of tokens in it, those on their way included,
    before what the cycle does; all of shape (elements, cycles).  ``known`` says of each element
    whether ``valid`` means something: when a token of a sender that uses a DRAM or
    shared banks is there is the memory's business.
    """

    program: SimProgram
    first: int
    push: Bits
    pop: Bits
    valid: Bits
    held: Counts
    known: Bits


def lead_in(program: SimProgram) -> int:
    """The cycles before a window that its signals depend on."""
    return max((timing.latency for timing in program.channels), default=0)


def channel_signals(
    program: SimProgram, timelines: Sequence[Timeline], first: int
) -> ChannelSignals:
    """The signals from cycle ``first`` on.

    The timelines are of single cycles, one after the other, and begin ``lead_in`` cycles earlier,
    or with the run.
    """
    begin = timelines[0].first
    slots = np.concatenate([line.slots[:, :-1] for line in timelines], axis=1)
    steps = np.concatenate([np.diff(line.slots, axis=1) for line in timelines], axis=1)
    elements, cycles = len(program.channel_of_element), slots.shape[1]
    push, pop = np.zeros((2, elements, cycles), np.bool_)
    for pe in range(program.pe_count):
        at = np.flatnonzero(steps[pe])
        if at.size:
            _note(program, pe, at, slots[pe, at], push, pop)
    left = timelines[0].left.astype(np.int64)
    sent: Counts = np.cumsum(push, axis=1, dtype=np.int64)
    taken: Counts = np.cumsum(pop, axis=1, dtype=np.int64)
    held = left[:, None] + _shifted(sent, 1) - _shifted(taken, 1)
    latencies = program.per_element([timing.latency for timing in program.channels])
    arrived = np.zeros_like(sent)
    for latency in np.unique(latencies).tolist():
        mine = latencies == latency
        arrived[mine] = _shifted(sent[mine], latency)
    visible = left[:, None] + arrived - _shifted(taken, 1)
    window = slice(first - begin, None)
    return ChannelSignals(
        program=program,
        first=first,
        push=push[:, window],
        pop=pop[:, window],
        valid=visible[:, window] > 0,
        held=held[:, window],
        known=_known(program),
    )


def _shifted(counts: Counts, cycles: int) -> Counts:
    """Counts as they were so many cycles ago; 0 before the first one."""
    found = np.zeros_like(counts)
    if cycles < counts.shape[1]:
        found[:, cycles:] = counts[:, : counts.shape[1] - cycles]
    return found


def _note(program: SimProgram, pe: int, at: Counts, slots: Counts, push: Bits, pop: Bits) -> None:
    """Note the tokens of the slots of a PE, which it steps through at some of the cycles."""
    control = program.control
    codes = _codes(program, pe, slots)
    for code in np.unique(codes).tolist():
        row = control.rows[int(control.row_start[pe]) + code]
        begin, middle, end = (int(row[column]) for column in (USES_BEGIN, RECEIVES_END, USES_END))
        cycles = at[codes == code]
        received, sent = control.uses[begin:middle], control.uses[middle:end]
        pop[np.ix_(received[control.taken[begin:middle]], cycles)] = True
        push[np.ix_(sent, cycles)] = True


def _codes(program: SimProgram, pe: int, slots: Counts) -> Counts:
    """The codes of some slots of a PE, by their numbers."""
    if program.trace is not None and pe in program.trace.codes:
        return np.asarray(program.trace.codes[pe], np.int64)[slots]
    return codes_at(program.control.orders[int(program.control.order_of[pe])], slots)


def codes_at(order: FiringOrder, slots: Counts) -> Counts:
    """The codes of firings at some positions of an order, without listing the others."""
    if order.is_list:
        return np.asarray(order.codes[slots + order.start], np.int64)
    extents = tuple(len(axis) for axis in order.axes)
    if not extents:
        return np.full(slots.shape, int(order.codes.reshape(-1)[0]), np.int64)
    where = np.unravel_index(slots + order.start, extents)
    classes = tuple(axis[at] for axis, at in zip(order.axes, where, strict=True))
    return np.asarray(order.codes[classes], np.int64)


def _known(program: SimProgram) -> Bits:
    """Whether a channel's tokens take as long as its latency says."""
    timed = program.timed_places
    places = {tensor.name: tensor.place for tensor in program.graph.tensors}
    waits: dict[str, bool] = {}
    for node in program.graph.nodes:
        used = {term.tensor for term in walk(node) if isinstance(term, Load | Store | Search)}
        waits[node.name] = any(places[tensor] in timed for tensor in used)
    known = [not waits[timing.channel.source] for timing in program.channels]
    return np.array(known, np.bool_)[program.channel_of_element]
