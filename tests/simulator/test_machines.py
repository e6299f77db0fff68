"""Machines in the simulator: rows and traces, arrays of machines, stalls that add up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.random_graphs import random_device
from benchmarks.random_machines import random_machines
from t2s.core.errors import UserError
from t2s.core.expr import Index, const, equals
from t2s.core.types import INT32
from t2s.graph.body import Load, Receive, RegisterWrite, Store
from t2s.graph.graph import Channel, Graph, StreamType, Tensor, TensorRole
from t2s.graph.interpret import interpret_graph
from t2s.graph.nodes import (
    Choice,
    Loop,
    Machine,
    Mode,
    PEArray,
    Put,
    Register,
    Role,
    Rule,
    SpaceDimension,
)
from t2s.simulator.engine_registry import find_engine
from t2s.simulator.limits import Limits
from t2s.simulator.program.build import build_program
from t2s.simulator.program.flatten import RECEIVES_END, USES_BEGIN, USES_END
from t2s.simulator.program.sim_program import with_traces
from t2s.simulator.report.result import SimResult
from t2s.simulator.run import simulate
from tests.graph.machines import copying, local

X = np.array([5, -3, 7, 0, 9], np.int32)


def test_a_row_for_each_rule() -> None:
    """The source has rules next, stop and done; the sink store, skip and end."""
    program = build_program(copying(), "ideal", {"x": X})
    control = program.control
    assert control.row_start.tolist() == [0, 3]
    assert control.firings.tolist() == [0, 0]
    rows = control.rows
    # Every firing of the first mode loads four bytes, also the one that finds the end.
    assert rows[:, 3].tolist() == [4, 4, 0, 4, 0, 0]
    assert (rows[:3, RECEIVES_END] == rows[:3, USES_BEGIN]).all()
    assert (rows[3:, RECEIVES_END] == rows[3:, USES_END]).all()
    assert control.taken.all()


def test_traces_make_a_program_like_any_other() -> None:
    program = build_program(copying(), "ideal", {"x": X})
    traced = with_traces(program, {0: [0, 0, 0, 1, 2], 1: [0, 0, 0, 1, 2]}).control
    assert traced.firings.tolist() == [5, 5]
    assert traced.sent.tolist() == traced.received.tolist() == [5]
    start = int(traced.code_start[1])
    assert traced.codes[start : start + 5].tolist() == [0, 0, 0, 1, 2]
    unfinished = with_traces(program, {0: [0], 1: []}, {1: True}).control
    assert unfinished.firings.tolist() == [1, 1]
    assert unfinished.sent.tolist() == [1]


def array_of_machines(*, shared: bool = False, wrong: bool = False) -> Graph:
    """Two machines put four elements of ``x`` each; two PEs store them as rows of ``y``."""
    place, at, loaded = Index(name="p"), local("at"), local("loaded")
    position = at + place * 4
    step = RegisterWrite(register="at", indices=(), value=at + 1)
    sent = (Put(channel="xs", value=loaded),)
    last = Choice(when=equals(at, 3), inside=Rule(name="last", puts=sent))
    more = Choice(inside=Rule(name="next", body=(step,), puts=sent, next="run"))
    load = Load(target="loaded", tensor="x", indices=(position,), type=INT32)
    space = (SpaceDimension(name="p", minimum=0, extent=2),)
    source = Machine(
        name="source",
        role=Role.LOAD,
        space=space,
        heads=(),
        registers=(Register(name="at", type=INT32, shape=(), distance=1),),
        modes=(Mode(name="run", needs=(), choices=(Choice(body=(load,), inside=(last, more)),)),),
    )
    store = PEArray(
        name="store",
        role=Role.STORE,
        space=space,
        loops=(Loop(name="t", minimum=const(0), extent=const(4)),),
        body=(
            Receive(target="value", channel="xs", type=INT32),
            Store(tensor="y", indices=(place, Index(name="t")), value=local("value")),
        ),
    )
    element = const(0) if shared else place + 1 if wrong else place
    channel = Channel(
        name="xs",
        stream=StreamType(element=INT32),
        source="source",
        sink="store",
        shape=(2,),
        source_index=(element,),
        sink_index=(place,),
    )
    return Graph(
        name="array",
        nodes=(source, store),
        channels=(channel,),
        tensors=(
            Tensor(name="x", type=INT32, shape=(8,), role=TensorRole.INPUT),
            Tensor(name="y", type=INT32, shape=(2, 4), role=TensorRole.OUTPUT),
        ),
    )


def test_an_array_of_machines_feeds_an_array_of_pes() -> None:
    x = np.arange(8, dtype=np.int32)
    graph = array_of_machines()
    assert interpret_graph(graph, {"x": x})["y"].tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    result = simulate(graph, {"x": x}, engine="python")
    assert result.outputs["y"].tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert result.nodes["source"].pe_count == 2
    assert result.nodes["source"].firings == 8
    assert result.cycles == 5


def test_two_machines_at_one_element() -> None:
    with pytest.raises(UserError, match="two PEs send to one element of channel 'xs'"):
        build_program(array_of_machines(shared=True), "ideal", {"x": np.arange(8, dtype=np.int32)})


def test_an_element_that_is_not_there() -> None:
    with pytest.raises(UserError, match="'source' uses elements outside of channel 'xs'"):
        build_program(array_of_machines(wrong=True), "ideal", {"x": np.arange(8, dtype=np.int32)})


@pytest.mark.parametrize("capacity", [1, 2, 7])
def test_stalls_add_up(capacity: int) -> None:
    """The engine raises an internal error where the cycles of a node do not add up."""
    graph = copying()
    channel = replace(graph.channels[0], capacity=capacity, latency=3)
    result = simulate(replace(graph, channels=(channel,)), {"x": X}, engine="python")
    sink = result.nodes["sink"]
    assert sink.busy + sink.starved + sink.idle == result.cycles
    assert result.nodes["source"].blocked == (0 if capacity > 3 else result.cycles - 8)


def test_a_cycle_limit_cuts_a_run_short() -> None:
    result = simulate(copying(), {"x": X}, engine="python", max_cycles=3)
    assert result.limit_reached
    assert result.nodes["source"].firings == 3
    assert result.outputs == {}


@pytest.mark.parametrize("seed", [1, 4, 54])  # 4: register files of vectors, and a deadlock
def test_random_machines(seed: int) -> None:
    graph, inputs = random_machines(seed)
    plain, native = (simulate_raw(graph, inputs, engine, seed) for engine in ("python", "native"))
    assert native.cycles == plain.cycles
    assert (native.deadlock is None) == (plain.deadlock is None) == (seed != 4)
    expected = interpret_graph(graph, inputs) if plain.deadlock is None else {}
    assert plain.outputs.keys() == native.outputs.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(plain.outputs[name], array)
        np.testing.assert_array_equal(native.outputs[name], array)


def simulate_raw(graph: Graph, inputs: dict[str, Any], engine: str, seed: int) -> SimResult:
    """A run on a random device; a deadlock is a result."""
    program = build_program(graph, random_device(seed)[0], inputs)
    return find_engine(engine).run(program, Limits())
