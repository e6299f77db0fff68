"""Sums over the first slots of PEs: empty ones, bytes, whatever the rows of their control weigh.

A slot is a step of the loops in time: a firing, or an empty slot of a schedule.  Nothing is listed
of PEs with many slots, so a sum costs no more in the middle of a run of 10^9 cycles.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from t2s.simulator.program.control import firings_per_code
from t2s.simulator.program.sim_program import SimProgram

Integers = NDArray[np.int64]

_MOST_LISTED = 1 << 20
"""Slots of a PE of which every one is looked at."""


def empty_before(program: SimProgram, slots: Integers) -> Integers:
    """Empty slots of a schedule among the first slots of each PE; shape (PEs, edges)."""
    if not program.control.empty.any():
        return np.zeros_like(slots)
    return sums_before(program, (~program.control.fires).astype(np.int64), slots)


def sums_before(program: SimProgram, weights: Integers, slots: Integers) -> Integers:
    """The sum over the first slots of each PE of what their rows weigh; shape (PEs, edges).

    ``weights`` has a number for each of ``Control.rows``.
    """
    control = program.control
    found = np.zeros_like(slots)
    known: dict[tuple[int, int], Integers] = {}
    traces = {} if program.trace is None else program.trace.codes
    for pe in np.flatnonzero(control.firings).tolist():
        if pe in traces:
            rules = weights[int(control.row_start[pe]) + traces[pe].astype(np.int64)]
            found[pe] = np.concatenate([[0], np.cumsum(rules)])[slots[pe]]
            continue
        order, start = control.orders[int(control.order_of[pe])], int(control.row_start[pe])
        own = weights[start : start + int(order.codes.max(initial=0)) + 1]
        if (own == own[0]).all():
            found[pe] = own[0] * slots[pe]
        elif order.firings <= _MOST_LISTED:
            key = (int(control.order_of[pe]), start)
            if key not in known:
                codes = own[order.expanded()[: order.firings]]
                known[key] = np.concatenate([[0], np.cumsum(codes)])
            found[pe] = known[key][np.minimum(slots[pe], order.firings)]
        else:
            for edge, count in enumerate(slots[pe].tolist()):
                counts = firings_per_code(replace(order, firings=count), len(own))
                found[pe, edge] = int((counts * own).sum())
    return found
