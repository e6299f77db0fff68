"""Traces: what the machines of a program do, apart from when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from t2s.core.ops import Array
from t2s.graph.machine import Machine
from t2s.simulator.native.stream_values import StreamValues
from t2s.simulator.program import SimProgram
from t2s.simulator.tally import Counts
from t2s.simulator.traces import with_traces


@dataclass(frozen=True, kw_only=True)
class Trace:
    """The firings of all machines of a program, in channels without bounds.

    Times, with whatever capacities, follow from it: ``stream_engine.retime``.

    Attributes
    ----------
    codes: of every machine, by instance: the positions of its rules, a byte each (two bytes if the
        machine has more than 256 rules).
    unfinished: machines that have not ended, by instance: the channel elements that the next firing
        needs a token in, in the order in which it waits, as far as that is known.
    refusing: those of them that meet tokens that they cannot take, once all these have come.
    sent, received: tokens through every channel element, by its two ends.
    """

    codes: Mapping[int, Array]
    unfinished: Mapping[int, tuple[int, ...]]
    refusing: frozenset[int]
    sent: Counts
    received: Counts

    def applied(self, program: SimProgram) -> SimProgram:
        """The program with the number of firings of its machines; the codes stay here."""
        firings = program.control.firings.copy()
        for instance, codes in self.codes.items():
            firings[instance] = len(codes) + (instance in self.unfinished)
        control = replace(program.control, firings=firings, sent=self.sent, received=self.received)
        return replace(program, control=control)

    def explicit(self, program: SimProgram) -> SimProgram:
        """The program with the codes of its machines as well.

        An unfinished machine has one firing more, for which the last token never comes; but one that
        refuses has none.
        """
        control = program.control
        rows, uses, taken = [control.rows], [control.uses], [control.taken]
        row_count, use_count = len(control.rows), len(control.uses)
        explicit: dict[int, Array] = {}
        for instance, codes in self.codes.items():
            explicit[instance] = codes.astype(np.int32)
            needs = self.unfinished.get(instance)
            if needs and instance not in self.refusing:
                row = np.zeros((1, control.rows.shape[1]), control.rows.dtype)
                row[0, :3] = use_count, use_count + len(needs), use_count + len(needs)
                rows.append(row)
                uses.append(np.array(needs, control.uses.dtype))
                taken.append(np.zeros(len(needs), np.bool_))
                last = np.int32(row_count - control.row_start[instance])
                explicit[instance] = np.append(explicit[instance], last)
                row_count, use_count = row_count + 1, use_count + len(needs)
        extended = replace(
            control,
            rows=np.concatenate(rows),
            uses=np.concatenate(uses),
            taken=np.concatenate(taken),
        )
        return with_traces(replace(program, control=extended), explicit)


def trace_of(program: SimProgram, values: StreamValues) -> Trace:
    """The trace of a run of a program's values."""
    codes: dict[int, Array] = {}
    unfinished: dict[int, tuple[int, ...]] = {}
    refusing: set[int] = set()
    for timing in program.nodes:
        if not isinstance(timing.node, Machine):
            continue
        for place in range(timing.pe_count):
            instance = timing.first + place
            found = values.traces[timing.node.name, place]
            codes[instance] = found.codes
            if not found.finished:
                unfinished[instance] = _elements(program, instance, found.needs)
            if found.refuses:
                refusing.add(instance)
    return Trace(
        codes=codes,
        unfinished=unfinished,
        refusing=frozenset(refusing),
        sent=_by_element(program, values.sent, program.control.sent, program.control.sender),
        received=_by_element(
            program, values.received, program.control.received, program.control.receiver
        ),
    )


def _elements(program: SimProgram, instance: int, needs: tuple[str, ...]) -> tuple[int, ...]:
    """The element of each channel that ends at an instance."""
    found: list[int] = []
    for name in needs:
        timing = next(timing for timing in program.channels if timing.channel.name == name)
        receivers = program.control.receiver[timing.elements]
        found.append(timing.first + int(np.flatnonzero(receivers == instance)[0]))
    return tuple(found)


def _by_element(
    program: SimProgram, values: Mapping[str, Array], static: Counts, ends: NDArray[np.int64]
) -> Counts:
    """Tokens by element: as counted where a machine is at that end, else those of the control."""
    counted = static.copy()
    machines = np.zeros(program.pe_count, np.bool_)
    for timing in program.nodes:
        machines[timing.instances] = isinstance(timing.node, Machine)
    for timing in program.channels:
        counted[timing.elements] = values[timing.channel.name]
    return np.where((ends >= 0) & machines[ends], counted, static)
