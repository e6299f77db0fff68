"""Traces: what the machines of a program do, apart from when."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from t2s.core.ops import Array

if TYPE_CHECKING:
    from t2s.simulator.program.sim_program import SimProgram

Counts = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Trace:
    """The firings of all machines of a program, in channels without bounds.

    Times, with whatever capacities and latencies of channels, follow from it: an engine that is
    given a program with its trace (``SimProgram.trace``) computes no values.

    Attributes
    ----------
    codes: of every machine, by instance: the positions of its rules, a byte each (two bytes if the
        machine has more than 256 rules).
    unfinished: machines that have not ended, by instance: the channel elements that the next firing
        needs a token in, in the order in which it waits, as far as that is known.
    refusing: those of them that meet tokens that they cannot take, once all these have come.
    sent, received: tokens through every channel element, by its two ends.
    refusal: the error of one of the refusing machines.
    limit: the cycle up to which the trace suffices; ``None`` if it is complete.
    """

    codes: Mapping[int, Array]
    unfinished: Mapping[int, tuple[int, ...]]
    refusing: frozenset[int]
    sent: Counts
    received: Counts
    refusal: Callable[[int], Exception]
    limit: int | None = None

    def applied(self, program: SimProgram) -> SimProgram:
        """The program with this trace and the numbers of firings, but not with the codes."""
        firings = program.control.firings.copy()
        for instance, codes in self.codes.items():
            firings[instance] = len(codes) + (instance in self.unfinished)
        control = replace(program.control, firings=firings, sent=self.sent, received=self.received)
        return program.traced(self, control)
