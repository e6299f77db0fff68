"""A window of a run as waveforms, in VCD: the signals of every FIFO.

A scope for each channel, or for each FIFO of a channel that is an array, has the wires ``valid``
(the receiver sees a token), ``push`` (a firing sends), ``pop`` (a firing takes) and the vector
``occupancy`` (tokens in the FIFO, those on their way included).  Cycle ``c`` begins at ``c`` times
``CYCLE_TIME``, as in the waveforms of ``t2s.verilate``.  ``valid`` is ``x`` where only the memory
knows when a token is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from typing import Any
from urllib.parse import quote

import numpy as np

from t2s.simulator.program.sim_program import SimProgram
from t2s.simulator.recording.channel_signals import ChannelSignals, channel_signals
from t2s.simulator.recording.recorded_window import needed_library, touches
from t2s.simulator.timeline import Timeline

CYCLE_TIME = 10
"""Nanoseconds of the file for a cycle: a round number, so that a time says which cycle it is in."""

_PLAIN = "!#&'()*+,-/:;<=>?@[]^_{|}~."


def vcd_name(name: str) -> str:
    """A name without spaces and control characters, another one for each name."""
    return quote(name, safe=_PLAIN)


def vcd_of(
    program: SimProgram, timelines: Sequence[Timeline], first: int, nodes: frozenset[str]
) -> bytes:
    """The channels of some nodes from cycle ``first`` on; see ``channel_signals``."""
    library: Any = needed_library("vcd.writer", "VCD files")
    signals = channel_signals(program, timelines, first)
    text = StringIO()
    writer = library.VCDWriter(
        text,
        timescale="1 ns",
        date="",
        version="t2s",
        comment=f"cycle c begins at {CYCLE_TIME} c ns",
        init_timestamp=CYCLE_TIME * first,
    )
    changes: list[tuple[int, int, Any, Any]] = []
    for number, channel in enumerate(program.channel_of_element.tolist()):
        if not touches(program.channels[channel], nodes):
            continue
        for order, (name, values) in enumerate(_values(signals, number)):
            changes += _changes(writer, signals, number, 4 * number + order, name, values)
    changes.sort(key=lambda change: change[:2])
    for cycle, _, variable, value in changes:
        writer.change(variable, CYCLE_TIME * cycle, value)
    writer.close(CYCLE_TIME * (first + signals.push.shape[1]))
    return text.getvalue().encode()


def element_scope(program: SimProgram, number: int) -> str:
    """The scope of a channel element: its channel, with its index if there are several."""
    timing = program.channels[int(program.channel_of_element[number])]
    name = vcd_name(timing.channel.name)
    if not timing.channel.shape:
        return name
    index = np.unravel_index(number - timing.first, timing.channel.shape)
    return f"{name}[{','.join(str(int(at)) for at in index)}]"


def _values(signals: ChannelSignals, number: int) -> list[tuple[str, np.ndarray]]:
    return [
        ("valid", signals.valid[number]),
        ("push", signals.push[number]),
        ("pop", signals.pop[number]),
        ("occupancy", signals.held[number]),
    ]


def _changes(
    writer: Any,
    signals: ChannelSignals,
    number: int,
    order: int,
    name: str,
    values: np.ndarray,
) -> list[tuple[int, int, Any, Any]]:
    """Registers a signal of an element; cycle, order, variable and value of its changes."""
    program = signals.program
    scope = (vcd_name(program.graph.name), element_scope(program, number))
    wide = name == "occupancy"
    unknown = name == "valid" and not signals.known[number]
    size = max(1, int(values.max(initial=0)).bit_length()) if wide else 1
    start = "x" if unknown else int(values[0])
    variable = writer.register_var(scope, name, "wire", size=size, init=start)
    if unknown:
        return []
    at = np.flatnonzero(np.diff(values.astype(np.int64))) + 1
    return [(signals.first + n, order, variable, int(values[n])) for n in at.tolist()]
