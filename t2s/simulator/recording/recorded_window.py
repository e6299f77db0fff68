"""The window of a recording: checked, and cut into timelines of single cycles.

What is recorded is computed again for its window, and nothing is kept of the rest of the run.  A
recording is for looking at, so its size is limited: a narrower window shows more.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from t2s.core.errors import UserError
from t2s.core.interrupts import late_module
from t2s.core.location import user_location
from t2s.simulator.program.sim_program import ChannelTiming, SimProgram
from t2s.simulator.report.tally import Counts
from t2s.simulator.timeline import MOST_BINS, Window, checked_window

MOST_CELLS = 1 << 22
"""Cycles of a recording times its PEs and FIFOs."""


def recorded_window(cycles: Window | None, of_run: int, program: SimProgram) -> Window:
    """The first and the last cycle of a recording; a first cycle of 0 means the start of the run.

    Raises ``UserError`` for a window that is not in the run or that is too large, and for a run
    whose machines did nobody knows what.
    """
    if program.graph.machines and program.trace is None:
        raise UserError(
            f"nobody knows what the machines of {program.graph.name!r} did in each cycle",
            location=user_location(),
            expected="a run that tells",
            given="one by the plain engine",
            hint="simulate with engine='native'",
        )
    if isinstance(cycles, Sequence) and len(cycles) == 2 and cycles[0] == 0:
        cycles = (1, cycles[1])
    edges = checked_window(cycles, of_run, bins=1, pe_count=program.pe_count)
    first, last = int(edges[0]) + 1, int(edges[-1])
    most = max(1, MOST_CELLS // max(1, program.pe_count + len(program.channel_of_element)))
    if last - first + 1 > most:
        raise UserError(
            "the window is too large to be recorded",
            location=user_location(),
            expected=f"at most {most:,} cycles, for {program.pe_count:,} PEs and "
            f"{len(program.channel_of_element):,} FIFOs",
            given=f"cycles {first:,} to {last:,}, {last - first + 1:,}",
            hint=f"cycles=({first}, {first + most - 1})",
        )
    return first, last


def recorded_nodes(nodes: Sequence[str] | None, program: SimProgram) -> frozenset[str]:
    """The nodes that are recorded, all of them if none is named; ``UserError`` for unknown ones."""
    names = [timing.node.name for timing in program.nodes]
    if nodes is None:
        return frozenset(names)
    given = [nodes] if isinstance(nodes, str) else nodes
    unknown = nodes
    if isinstance(given, Sequence) and given:
        missing = [name for name in given if name not in names]
        if not missing:
            return frozenset(given)
        unknown = missing[0]
    raise UserError(
        f"{program.graph.name!r} has no node {unknown!r} to record",
        location=user_location(),
        expected=f"some of {', '.join(names)}",
        given=repr(nodes)[:200],
    )


def touches(timing: ChannelTiming, nodes: frozenset[str]) -> bool:
    """Whether a channel begins or ends at one of the nodes."""
    return timing.channel.source in nodes or timing.channel.sink in nodes


def edges_of(first: int, last: int) -> list[Counts]:
    """The edges of timelines of single cycles, one after the other, for a window."""
    starts = range(first - 1, last, MOST_BINS)
    return [np.arange(at, min(at + MOST_BINS, last) + 1, dtype=np.int64) for at in starts]


def needed_library(name: str, what: str) -> object:
    """A module of an optional library; ``UserError`` with what to install if it is not there."""
    try:
        return late_module(name)
    except ImportError:
        library = {"vcd": "pyvcd"}.get(name.partition(".")[0], name.partition(".")[0])
        raise UserError(
            f"{library} is not installed, which writes {what}",
            location=user_location(),
            expected="the extra 'trace' of t2s",
            hint="pip install 't2s[trace]'",
        ) from None
