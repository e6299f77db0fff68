"""Stepping through the cycles of machines against the plain engine."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st

from t2s.graph.graph import Graph
from t2s.simulator.devices import Device
from t2s.simulator.limits import Limits
from t2s.simulator.native_engine import NativeEngine, retime
from t2s.simulator.program.build import build_program
from t2s.simulator.program.sim_program import SimProgram
from t2s.simulator.reference_engine import PythonEngine
from t2s.simulator.report.assemble import assemble
from t2s.simulator.times.run_ahead import shares_channels_alone, twin_elements
from t2s.simulator.times.run_ahead_emit import Rows
from t2s.simulator.times.stepping import StepTables, StepTimes, step_tables, steps_of
from tests.graph.machines import copying
from tests.simulator.stream_graphs import sorted_and_not, stream_graphs
from tests.simulator.test_streams import IDEAL, UNSHARED, agree, program_of, trace_for

LONGEST = 4000
SLOW = replace(IDEAL, name="slow", bytes_per_cycle_per_unit=1)
"""Loads and stores take several cycles each."""


def tables_of(program: SimProgram) -> StepTables | None:
    assert shares_channels_alone(program)
    slow = tuple(np.flatnonzero(program.intervals > 1).tolist())
    return step_tables(Rows(program.control), twin_elements(program), slow)


@settings(max_examples=10, deadline=None)
@given(
    graph=stream_graphs(),
    device=st.sampled_from((IDEAL, UNSHARED, SLOW)),
    data=st.data(),
    cycles=st.integers(1, 300),
)
def test_random_graphs(graph: Graph, device: Device, data: st.DataObject, cycles: int) -> None:
    """Whatever the capacities, and however many cycles at a time."""
    capacities = {c.name: data.draw(st.sampled_from((1, 2, 3, 7, 300))) for c in graph.channels}
    program = program_of(graph, device, 1).with_capacities(capacities)
    trace = trace_for(program_of(graph, device, 1))
    tables = tables_of(program)
    if trace.unfinished or tables is None or (tables.mixed and device.store_latency):
        event("not for steps")
        return
    applied = program.traced(trace)
    codes = [trace.codes[instance].expanded for instance in range(program.pe_count)]
    times = StepTimes(applied, tables, codes, trace)
    while times.advance(cycles):
        pass
    expected = retime(program, trace, limits=Limits(max_cycles=LONGEST))
    assert expected.kernel == "run-ahead"
    tally = times.tally(interrupted=False)
    event(f"{expected.ending.value}, {tables.lanes} lanes, slow: {len(tables.slow)}")
    if tally is None:
        assert not expected.finished
        return
    agree(expected, assemble(applied, tally, {}, "native", kernel="stepped"))


def test_both_ways_agree_with_the_plain_engine() -> None:
    program = build_program(copying(), "ideal", {"x": np.arange(40, -1, -1, dtype=np.int32)})
    native = NativeEngine().run(program, Limits())
    limited = NativeEngine().run(program, Limits(max_cycles=LONGEST))
    assert (native.kernel, limited.kernel) == ("stepped", "run-ahead")
    plain = PythonEngine().run(program, Limits())
    agree(plain, native)
    agree(plain, limited)


def test_a_run_that_deadlocks_is_run_ahead() -> None:
    program = build_program(sorted_and_not(), "ideal", {"x0": np.arange(9, 0, -1, np.int32)})
    trace = trace_for(program)
    assert steps_of(program.traced(trace)) is not None
    found = retime(program, trace)
    assert found.kernel == "run-ahead"
    assert found.deadlock is not None


def test_long_wires_are_not_stepped_through() -> None:
    program = build_program(copying(), "ideal", {"x": np.array([1, 2, 3, 0], np.int32)})
    trace = trace_for(program)
    near, far = (program.with_latencies({"xs": latency}) for latency in (9, 1 << 40))
    assert retime(near, trace).kernel == "stepped"
    found = retime(far, trace)
    assert found.kernel == "run-ahead"
    assert found.cycles > 1 << 40
