"""Recurrences through channels: PEs that wait for their own tokens.

A firing is atomic, so if the token of firing ``n`` is received in firing ``n + distance`` of the
same PE, then ``t(n + distance) >= t(n) + latency``: the PE makes at most ``distance`` firings in
``latency`` cycles.  The channel with the largest ratio determines the interval; a cycle through
several channels cannot be slower than the slowest of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from t2s.core.location import SourceLocation
from t2s.core.ops import Array
from t2s.graph.nodes import Machine
from t2s.simulator.program.flatten import RECEIVES_END, USES_BEGIN, USES_END
from t2s.simulator.program.sim_program import ChannelTiming, SimProgram

MOST_LISTED_FIRINGS = 1 << 22
"""PEs with more firings are skipped, because firings are listed one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelRecurrence:
    """A channel from a PE to itself.

    Attributes
    ----------
    channel: its name.
    latency: cycles from the sending firing until the token is ready, datapath included.
    least, most: the smallest and the largest number of firings from the one that sends a token to
        the one that receives it; usually equal.
    location: the user's line that made the channel.
    """

    channel: str
    latency: int
    least: int
    most: int
    location: SourceLocation | None

    @property
    def interval(self) -> Fraction:
        """The minimum cycles per firing, for the smallest distance."""
        return Fraction(self.latency, self.least)

    def __str__(self) -> str:
        rate = f"{float(self.interval):.3g} cycles per firing"
        if self.least == self.most:
            return f"recurrence of latency {self.latency} at distance {self.least}, {rate}"
        return (
            f"recurrence of latency {self.latency} at distances {self.least} to {self.most}, "
            f"up to {rate}"
        )


def channel_recurrences(program: SimProgram) -> dict[str, ChannelRecurrence]:
    """The channels from PEs to themselves, by name.

    Machines, whose distances depend on data, and PEs with more than ``MOST_LISTED_FIRINGS`` firings
    are left out.
    """
    recurrences: dict[str, ChannelRecurrence] = {}
    for timing in program.channels:
        channel = timing.channel
        if channel.source != channel.sink or isinstance(
            program.graph.node(channel.source), Machine
        ):
            continue
        distances = _distances(program, timing)
        if distances is not None:
            recurrences[channel.name] = ChannelRecurrence(
                channel=channel.name,
                latency=timing.latency,
                least=distances[0],
                most=distances[1],
                location=channel.location,
            )
    return recurrences


def _distances(program: SimProgram, timing: ChannelTiming) -> tuple[int, int] | None:
    """The smallest and largest distance over all PEs that send to themselves, or ``None``."""
    control = program.control
    seen: set[tuple[int, bytes]] = set()
    ends: list[int] = []
    for element in range(timing.elements.start, timing.elements.stop):
        pe = int(control.sender[element])
        if pe < 0 or pe != control.receiver[element]:
            continue
        order = control.orders[int(control.order_of[pe])]
        if order.firings > MOST_LISTED_FIRINGS:
            return None
        uses = _uses(program, pe, element)
        key = (int(control.order_of[pe]), uses.tobytes())
        if key in seen:
            continue
        seen.add(key)
        codes = order.expanded()
        firings = np.arange(len(codes))
        received, sent = (np.repeat(firings, side[codes]) for side in uses)
        pairs = min(len(received), len(sent))
        if pairs:
            between = received[:pairs] - sent[:pairs]
            ends += [int(between.min()), int(between.max())]
    return (min(ends), max(ends)) if ends and min(ends) > 0 else None


def _uses(program: SimProgram, pe: int, element: int) -> NDArray[np.int64]:
    """How often each firing code of a PE receives from an element, and sends to it: two rows."""
    control = program.control
    order = control.orders[int(control.order_of[pe])]
    first = int(control.row_start[pe])
    rows: Array = control.rows[first : first + int(order.codes.max(initial=0)) + 1]
    sides = ((USES_BEGIN, RECEIVES_END), (RECEIVES_END, USES_END))
    counts = [
        [int(np.count_nonzero(control.uses[row[a] : row[b]] == element)) for row in rows]
        for a, b in sides
    ]
    return np.array(counts, np.int64)
