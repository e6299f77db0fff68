"""Graphs of machines: the native engine against the plain one, in values, cycles and stalls."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from t2s.core.errors import UserError
from t2s.graph.graph import Graph, TensorRole
from t2s.graph.semantics import ProtocolError
from t2s.simulator.devices import DEVICES, Device
from t2s.simulator.engine_registry import Engine
from t2s.simulator.limits import Limits
from t2s.simulator.native_engine import NativeEngine, retime
from t2s.simulator.program.build import build_program
from t2s.simulator.program.sim_program import SimProgram
from t2s.simulator.program.trace import Trace
from t2s.simulator.reference_engine import PythonEngine
from t2s.simulator.report.errors import DeadlockError
from t2s.simulator.report.result import SimResult
from t2s.simulator.run import simulate
from t2s.simulator.times.run_ahead import StreamTimes, stream_code
from t2s.simulator.values.machine_values import stream_values, trace_of
from tests.graph.machines import copying
from tests.simulator.stream_graphs import sorted_and_not, stream_graphs

IDEAL, ARRIA = DEVICES["ideal"], DEVICES["arria10"]
UNSHARED = replace(ARRIA, memory_bytes_per_second=None)
LONGEST = 4000


def agree(one: SimResult, other: SimResult) -> None:
    """Everything but the engine and the outputs is the same."""
    assert one.ending is other.ending
    assert one.cycles == other.cycles
    assert one.nodes == other.nodes
    assert one.tokens_left == other.tokens_left
    assert one.deadlock == other.deadlock


def program_of(graph: Graph, device: Device, seed: int) -> SimProgram:
    generator = np.random.default_rng(seed)
    inputs = {
        tensor.name: generator.integers(0, 7, 12, np.int32)
        for tensor in graph.tensors
        if tensor.role is TensorRole.INPUT
    }
    return build_program(graph, device, inputs)


def run(engine: Engine, program: SimProgram, limits: Limits) -> SimResult | str:
    """The result, or the error of a machine that refuses its tokens."""
    try:
        return engine.run(program, limits)
    except ProtocolError as error:
        return str(error)


def trace_for(program: SimProgram) -> Trace:
    values = stream_values(program.graph, program.inputs or {}, program.parameters)
    return trace_of(program, values, None)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    graph=stream_graphs(),
    device=st.sampled_from((IDEAL, ARRIA, UNSHARED)),
    runs=st.lists(
        st.tuples(st.integers(0, 3), st.one_of(st.none(), st.integers(1, 60))),
        min_size=1,
        max_size=3,
    ),
)
def test_random_graphs(graph: Graph, device: Device, runs: list[tuple[int, int | None]]) -> None:
    """Runs of one graph, one after another, however each of them ends."""
    for seed, limit in runs:
        program, limits = program_of(graph, device, seed), Limits(max_cycles=limit)
        python, native = run(PythonEngine(), program, limits), run(NativeEngine(), program, limits)
        if isinstance(python, str) or isinstance(native, str):
            event("refused")
            assert native == python
            continue
        event(f"{native.ending.value}, {native.kernel}")
        agree(python, native)
        assert native.outputs.keys() == python.outputs.keys()
        for name, array in python.outputs.items():
            np.testing.assert_array_equal(native.outputs[name], array, strict=True)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(graph=stream_graphs(), device=st.sampled_from((IDEAL, ARRIA)), data=st.data())
def test_times_from_a_trace(graph: Graph, device: Device, data: st.DataObject) -> None:
    """With other capacities, from the trace alone; and in any order of visiting nodes."""
    program = program_of(graph, device, 1)
    trace = trace_for(program)
    capacities = {c.name: data.draw(st.integers(1, 9)) for c in graph.channels}
    changed = replace(program.with_capacities(capacities), inputs=program.inputs)
    limits = Limits(max_cycles=LONGEST)
    expected = run(PythonEngine(), changed, limits)
    try:
        found: SimResult | str = retime(program, trace, capacities)
    except ProtocolError as error:
        found = str(error)
    if isinstance(expected, str) or isinstance(found, str):
        assert found == expected
        return
    agree(expected, found)
    code = stream_code(program, {i: codes.type.itemsize for i, codes in trace.codes.items()})
    if code is None:
        return
    order = data.draw(st.permutations(range(program.pe_count)))
    codes = [trace.codes[instance].expanded for instance in range(program.pe_count)]
    times = StreamTimes(changed.traced(trace), code, codes, trace.sent, order=order)
    while times.advance(7):
        pass
    assert times.firings().tolist() == [
        expected.nodes[timing.node.name].firings for timing in program.nodes
    ]
    starved, blocked = times.stalls()
    assert times.latest >= max(n.last_firing or 0 for n in expected.nodes.values())
    if expected.finished:
        assert sum(starved) == sum(n.starved for n in expected.nodes.values())
        assert sum(blocked) == sum(n.blocked for n in expected.nodes.values())


def test_a_trace_that_was_cut_short() -> None:
    program = build_program(copying(), "ideal", {"x": np.array([1, 2, 3, 4, 5, 0], np.int32)})
    values = stream_values(program.graph, program.inputs or {}, {}, most_firings=4)
    trace = trace_of(program, values, 3)
    assert retime(program, trace, limits=Limits(max_cycles=3)).cycles == 3
    with pytest.raises(UserError, match="known up to cycle 3 only") as error:
        retime(program, trace)
    assert str(error.value).endswith("hint:     simulate the design again, without max_cycles")


def test_a_deadlock_and_what_frees_it() -> None:
    """A machine sorts one of two copies of a stream: the other copy has to wait in its channel."""
    for engine in ("python", "native"):
        with pytest.raises(DeadlockError) as error:
            simulate(sorted_and_not(), {"x0": np.arange(9, 0, -1, np.int32)}, engine=engine)
        report = error.value.result.deadlock
        assert report is not None
        assert report.remedy is not None
        (channel,) = report.remedy.capacities
        before, after = report.remedy.capacities[channel]
        assert before == 2
        fewer = {channel: after - 1}
        program = build_program(sorted_and_not(), "ideal", {"x0": np.arange(9, 0, -1, np.int32)})
        trace = trace_for(program)
        assert retime(program, trace, {channel: after}).finished
        assert not retime(program, trace, fewer).finished
