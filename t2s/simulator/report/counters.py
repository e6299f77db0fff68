"""The counters of an engine, per PE and per channel, before they become a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from t2s.core.errors import InternalError
from t2s.graph.nodes import Machine
from t2s.simulator.memory.report import MemoryCounts, SharedCounts
from t2s.simulator.program.sim_program import SimProgram

Counts = NDArray[np.int64]

Requirement = tuple[int, bool, int]
"""A channel element, whether a firing sends to it, and the cycle from which that is possible."""

FOREVER = int(np.iinfo(np.int64).max)
"""The cycle of an event that will never happen."""


class Ending(Enum):
    """Why a run ended."""

    FINISHED = "finished"
    DEADLOCK = "deadlock"
    LIMIT = "cycle limit reached"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stuck:
    """An unfinished PE, and the channel element it waits for at the end of the run.

    ``sending`` says that it waits for space to send, else it waits for a token to receive.
    """

    instance: int
    element: int
    sending: bool


@dataclass(frozen=True, kw_only=True)
class Tally:
    """Counters of a run, all in cycles or numbers of firings or tokens.

    ``firings``, ``first`` and ``last`` (cycles of the first and last firing, 0 if there was none),
    ``waiting``, ``memory_starved`` and ``memory_blocked`` are per PE.  ``starved`` and ``blocked``
    are per channel element: cycles that its receiver starved on it and its sender was blocked on
    it.  ``left`` is the number of tokens in every element at the end.  ``stuck`` lists unfinished
    PEs that wait for something that nothing will provide; in a deadlock, all unfinished PEs.
    ``memory`` is set if the program has a DRAM, ``shared`` if it has tensors in shared banks.
    ``at_least`` is what a run takes that was given up.
    """

    ending: Ending
    cycles: int
    firings: Counts
    first: Counts
    last: Counts
    waiting: Counts
    starved: Counts
    blocked: Counts
    memory_starved: Counts
    memory_blocked: Counts
    left: Counts
    stuck: tuple[Stuck, ...]
    memory: MemoryCounts | None = None
    shared: SharedCounts | None = None
    at_least: int | None = None


def stuck_at(instance: int, requirements: Sequence[Requirement]) -> Stuck | None:
    """The first port at which a PE waits for something that nothing will provide."""
    for element, sending, time in requirements:
        if time == FOREVER:
            return Stuck(instance=instance, element=element, sending=sending)
    return None


def is_harmless(program: SimProgram, item: Stuck) -> bool:
    """Whether a PE may wait like this forever: an endless machine that waits for a token."""
    node = program.node_of(item.instance).node
    return not item.sending and isinstance(node, Machine) and node.endless


def ending_of(program: SimProgram, stuck: Sequence[Stuck]) -> Ending:
    """The ending of a run in which nothing can fire any more and these PEs are unfinished."""
    harmless = all(is_harmless(program, item) for item in stuck)
    return Ending.FINISHED if harmless else Ending.DEADLOCK


def end_of_run(program: SimProgram, last_firing: int, last_store: int, in_banks: int = 0) -> int:
    """The last cycle of a complete run: its last firing or store completion.

    ``last_store`` is the cycle of the last store's firing, with a DRAM that of its completion;
    ``in_banks`` is that of the completion of the last store to shared banks.
    """
    if program.memory_depends_on_addresses:
        return max(last_firing, last_store, in_banks)
    stored = last_store + program.device.store_latency if last_store else 0
    return max(last_firing, stored, in_banks)


def wait_until(
    cycles: int,
    program: SimProgram,
    tails: Mapping[int, Sequence[Requirement]],
    last: Counts,
    waiting: Counts,
    starved: Counts,
    blocked: Counts,
    memory: Counts,
) -> None:
    """Attribute the cycles from the last firing of PEs to the end of a run.

    ``tails`` has, for PEs with firings made and left, the requirements of the next firing in the
    order in which they wait; unexplained cycles are attributed to memory.
    """
    for pe, requirements in tails.items():
        seen = min(int(last[pe] + program.intervals[pe]), cycles + 1)
        waiting[pe] += seen - int(last[pe]) - 1
        for element, sending, time in requirements:
            passed = max(0, min(time, cycles + 1) - seen)
            (blocked if sending else starved)[element] += passed
            seen += passed
        memory[pe] += cycles + 1 - seen


def idle_cycles(program: SimProgram, tally: Tally) -> Counts:
    """Cycles before the first and after the last firing, per PE.

    Together with busy, waiting, starved and blocked they are all cycles; ``InternalError`` if the
    counters of a PE do not add up.
    """
    per_pe = tally.firings + tally.waiting + tally.memory_starved + tally.memory_blocked
    for stalls, ends in (
        (tally.starved, program.control.receiver),
        (tally.blocked, program.control.sender),
    ):
        np.add.at(per_pe, ends[ends >= 0], stalls[ends >= 0])
    if tally.ending is Ending.INTERRUPTED:
        return np.asarray(np.maximum(tally.cycles - per_pe, 0), np.int64)
    done = tally.firings == program.control.firings
    idle = np.where(done, tally.cycles - tally.last, 0) + tally.first - 1
    idle = np.where(tally.firings == 0, tally.cycles, idle)
    wrong = np.flatnonzero(per_pe + idle != tally.cycles)
    if wrong.size:
        at = int(wrong[0])
        raise InternalError(
            f"the cycles of {program.pe_label(at)} add up to {per_pe[at] + idle[at]}, "
            f"not to {tally.cycles}"
        )
    return idle
