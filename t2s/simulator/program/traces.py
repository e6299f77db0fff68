"""Firing codes of machines, supplied once they are known.

The control of PE arrays is static and there before the run.  Which rules a machine fires follows
from the values, so whoever computes them (an engine, or a pass over values before the times)
hands the codes over here, and from then on a program with machines is like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from t2s.simulator.program.control import listed
from t2s.simulator.program.flatten import RECEIVES_END, USES_BEGIN, USES_END, Control
from t2s.simulator.program.sim_program import SimProgram

Codes = Sequence[int] | NDArray[np.integer]


def with_traces(
    program: SimProgram, traces: Mapping[int, Codes], unfinished: Mapping[int, bool] | None = None
) -> SimProgram:
    """The program with the firing codes of its machines, by instance.

    A machine in ``unfinished`` has firings left that nobody knows: it counts one more.
    """
    return replace(program, control=_control(program.control, traces, unfinished or {}))


def _control(
    control: Control, traces: Mapping[int, Codes], unfinished: Mapping[int, bool]
) -> Control:
    firings, order_of = control.firings.copy(), control.order_of.copy()
    sent, received = control.sent.copy(), control.received.copy()
    orders = list(control.orders)
    for instance, found in traces.items():
        codes = np.asarray(found, np.int32)
        firings[instance] = len(codes) + bool(unfinished.get(instance))
        order_of[instance] = len(orders)
        orders.append(listed(codes))
        counts = np.bincount(codes)
        for code in np.flatnonzero(counts):
            row = control.rows[control.row_start[instance] + code]
            begin, middle, end = (int(row[c]) for c in (USES_BEGIN, RECEIVES_END, USES_END))
            needed, taken = control.uses[begin:middle], control.taken[begin:middle]
            received[needed[taken]] += counts[code]
            sent[control.uses[middle:end]] += counts[code]
    return replace(
        control,
        firings=firings,
        order_of=order_of,
        orders=tuple(orders),
        sent=sent,
        received=received,
    )
