"""Makes traces from values, and the control of the event-driven kernel from traces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from t2s.core.ops import Array
from t2s.graph.machine import Machine
from t2s.simulator.program.sim_program import SimProgram
from t2s.simulator.program.trace import Trace
from t2s.simulator.program.traces import with_traces
from t2s.simulator.report.tally import Counts
from t2s.simulator.values.machines import StreamValues


def explicit(program: SimProgram, trace: Trace) -> SimProgram:
    """The program with the codes of its machines among those of its control.

    An unfinished machine has one firing more, for which the last token never comes; but one that
    refuses has none.
    """
    control = program.control
    rows, uses, taken = [control.rows], [control.uses], [control.taken]
    row_count, use_count = len(control.rows), len(control.uses)
    codes_of: dict[int, Array] = {}
    for instance, codes in trace.codes.items():
        codes_of[instance] = codes.astype(np.int32)
        needs = trace.unfinished.get(instance)
        if needs and instance not in trace.refusing:
            row = np.zeros((1, control.rows.shape[1]), control.rows.dtype)
            row[0, :3] = use_count, use_count + len(needs), use_count + len(needs)
            rows.append(row)
            uses.append(np.array(needs, control.uses.dtype))
            taken.append(np.zeros(len(needs), np.bool_))
            last = np.int32(row_count - control.row_start[instance])
            codes_of[instance] = np.append(codes_of[instance], last)
            row_count, use_count = row_count + 1, use_count + len(needs)
    extended = replace(
        control,
        rows=np.concatenate(rows),
        uses=np.concatenate(uses),
        taken=np.concatenate(taken),
    )
    return with_traces(replace(program, control=extended), codes_of)


def trace_of(program: SimProgram, values: StreamValues, limit: int | None) -> Trace:
    """The trace of a run of a program's values, which was limited to so many cycles."""
    codes: dict[int, Array] = {}
    unfinished: dict[int, tuple[int, ...]] = {}
    refusing: set[int] = set()
    control, machines = program.control, np.zeros(program.pe_count, np.bool_)
    for timing in program.nodes:
        if not isinstance(timing.node, Machine):
            continue
        machines[timing.instances] = True
        for place in range(timing.pe_count):
            instance = timing.first + place
            found = values.traces[timing.node.name, place]
            codes[instance] = found.codes
            if not found.finished:
                unfinished[instance] = _elements(program, instance, found.needs)
            if found.refuses:
                refusing.add(instance)
    cut = any(not needs for instance, needs in unfinished.items() if instance not in refusing)

    # A trace lives longer than the values and the inputs do, and goes to other processes.
    timed = replace(program, inputs=None)
    refusal = partial(_refusal, values.refusal, timed) if refusing else _nothing_refused
    return Trace(
        codes=codes,
        unfinished=unfinished,
        refusing=frozenset(refusing),
        sent=_counted(values.sent, control.sent, control.sender, machines),
        received=_counted(values.received, control.received, control.receiver, machines),
        refusal=refusal,
        limit=limit if cut else None,
    )


def _refusal(
    refuse: Callable[[str, int], Exception], timed: SimProgram, instance: int
) -> Exception:
    timing = timed.node_of(instance)
    return refuse(timing.node.name, instance - timing.first)


def _nothing_refused(instance: int) -> Exception:
    return AssertionError(f"machine {instance} refuses nothing")


def _elements(program: SimProgram, instance: int, needs: tuple[str, ...]) -> tuple[int, ...]:
    """The element of each channel that ends at an instance."""
    found: list[int] = []
    for name in needs:
        timing = next(timing for timing in program.channels if timing.channel.name == name)
        receivers = program.control.receiver[timing.elements]
        found.append(timing.first + int(np.flatnonzero(receivers == instance)[0]))
    return tuple(found)


def _counted(counted: Counts, static: Counts, ends: Counts, machines: Array) -> Counts:
    """Tokens by element: as counted where a machine is at that end, else those of the control.

    ``machines`` says which instances are machines.
    """
    return np.where((ends >= 0) & machines[ends], counted, static)
