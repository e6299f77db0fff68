"""Every mistake that is caught before cycle 0, with the text of its error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from t2s.core.errors import InternalError, UserError
from t2s.core.expr import Expr, Index, Parameter, equals
from t2s.core.types import INT32, BFloat, Bool, Float
from t2s.graph.arrays import check_graph_inputs
from t2s.graph.body import Send
from t2s.graph.control.domains import MOST_ITERATIONS
from t2s.graph.graph import Graph, ScalarParameter, TensorRole
from t2s.graph.nodes import SpaceDimension
from t2s.simulator.devices import DEVICES, Device, find_device
from t2s.simulator.program.build import build_program
from t2s.simulator.report.counters import Ending, Tally, idle_cycles
from t2s.simulator.run import simulate, simulate_cycles
from tests.simulator.designs import (
    ZERO,
    N,
    chain,
    channel,
    design,
    line,
    load_unit,
    node,
    receive,
    send,
    store_unit,
    tensor,
    x,
    y,
)


def error_of(action: Callable[[], object]) -> UserError:
    with pytest.raises(UserError) as caught:
        action()
    return caught.value


def text_of(action: Callable[[], object]) -> str:
    return str(error_of(action))


def called_here(error: UserError) -> bool:
    """Whether the error points to the call in this file."""
    return error.location is not None and error.location.file == __file__


def with_inputs(**inputs: Any) -> str:
    return text_of(lambda: simulate(chain(4), inputs))


def test_missing_input() -> None:
    error = error_of(lambda: simulate(chain(4), {}))
    assert error.message == "the input X is missing"
    assert called_here(error)
    assert str(error).endswith(
        "  expected: X: an int32 array of shape (4,)\n"
        "  given:    no inputs\n"
        "  note:     X is declared here\n"
        "  --> design.py:1\n"
        '  hint:     pass it by name: {"X": ...}'
    )


def test_unknown_input() -> None:
    text = with_inputs(X=np.zeros(4, np.int32), Z=np.zeros(4, np.int32))
    assert text.startswith("the program has no input Z\n  --> ")
    assert "test_errors.py" in text
    assert text.endswith("expected: X\n  given:    X, Z")


def test_an_output_is_not_an_input() -> None:
    text = with_inputs(X=np.zeros(4, np.int32), Y=np.zeros(4, np.int32))
    assert text.startswith("the program has no input Y\n  --> ")
    assert "given:    X, Y\n  note:     Y is declared here\n  --> design.py:1" in text
    assert "hint:     the program computes Y: leave it out" in text


def test_wrong_dtype() -> None:
    error = error_of(lambda: simulate(chain(4), {"X": np.zeros(4, np.int64)}))
    assert error.message == "the input X has the wrong element type"
    assert called_here(error)
    assert str(error).endswith(
        "  expected: an int32 array of shape (4,)\n"
        "  given:    int64 of shape (4,)\n"
        "  note:     X is declared here\n"
        "  --> design.py:1\n"
        "  hint:     convert it: array.astype(np.int32)"
    )


@pytest.mark.parametrize(
    ("type", "hint"),
    [
        (BFloat(), "array.astype(ml_dtypes.bfloat16)"),
        (Bool(), "array.astype(np.bool_)"),
        (Float(16), "array.astype(np.float16)"),
    ],
)
def test_the_hint_spells_the_dtype(type: Any, hint: str) -> None:
    graph = replace(chain(4), tensors=(tensor("X", TensorRole.INPUT, 4, type=type), y(4)))
    assert hint in text_of(lambda: check_graph_inputs(graph, {"X": np.zeros(4, np.int32)}, {}))


def test_not_an_array() -> None:
    text = with_inputs(X=[1, 2, 3, 4])
    assert "the input X has the wrong element type\n  --> " in text
    assert "expected: an int32 array of shape (4,)\n  given:    list, in numpy int64" in text
    assert "note:     X is declared here\n  --> design.py:1" in text
    assert "hint:     convert it: np.asarray(x, np.int32)" in text


@pytest.mark.parametrize(
    ("declared", "given", "hint"),
    [
        ((2, 3), (3, 2), "arrays are row-major: A[i, k] of the definition is array[i, k]; try"),
        ((2, 3), (6,), "array.reshape(2, 3) has that shape, if the elements are in that order"),
        ((2, 3), (2, 4), "the shape follows from the bounds of the design; pad or cut the array"),
    ],
)
def test_wrong_shape(declared: tuple[int, ...], given: tuple[int, ...], hint: str) -> None:
    graph = replace(chain(4), tensors=(tensor("X", TensorRole.INPUT, *declared), y(4)))
    text = text_of(lambda: check_graph_inputs(graph, {"X": np.zeros(given, np.int32)}, {}))
    assert text.startswith("the input X has the wrong shape\n  --> ")
    assert f"expected: an int32 array of shape {declared}\n  given:    shape {given}\n" in text
    assert f"note:     X is declared here\n  --> design.py:1\n  hint:     {hint}" in text


def test_inputs_may_have_any_memory_layout() -> None:
    backwards = np.arange(4, dtype=np.int32)[::-1]
    result = simulate(chain(4), {"X": backwards})
    assert list(result.outputs["Y"]) == [3, 2, 1, 0]


def parametrized() -> Graph:
    """A chain whose trip count ``count`` and addend ``shift`` are parameters."""
    count = Parameter(name="count", type=INT32)
    graph = chain(4)
    nodes = tuple(
        replace(item, loops=(replace(item.loops[0], extent=count),)) for item in graph.nodes
    )
    load, compute, store = nodes
    shifted = compute.body[1].value + Parameter(name="shift", type=INT32)  # type: ignore[attr-defined]
    compute = replace(compute, body=(compute.body[0], send("B", shifted)))
    parameters = tuple(
        ScalarParameter(name=name, type=INT32, location=line(number))
        for name, number in (("count", 31), ("shift", 32))
    )
    return replace(graph, nodes=(load, compute, store), parameters=parameters)


def test_parameters_drive_loops_and_values() -> None:
    inputs = {"X": np.arange(4, dtype=np.int32)}
    for engine in ("python", "native"):
        result = simulate(
            parametrized(), inputs, parameters={"count": 3, "shift": 5}, engine=engine
        )
        assert result.cycles == 5
        assert list(result.outputs["Y"]) == [5, 6, 7, 0]


def test_cycles_need_only_the_parameters_of_control() -> None:
    assert simulate_cycles(parametrized(), parameters={"count": 4}).cycles == 6


def test_missing_parameter() -> None:
    error = error_of(lambda: simulate_cycles(parametrized(), parameters={"shift": 1}))
    assert error.message == "the parameter count is missing"
    assert called_here(error)
    assert str(error).endswith(
        "  expected: count: an int32 scalar\n"
        "  given:    shift\n"
        "  note:     count is declared here\n"
        "  --> design.py:31\n"
        '  hint:     pass it by name: {"count": ...}'
    )
    inputs = {"X": np.zeros(4, np.int32)}
    text = text_of(lambda: simulate(parametrized(), inputs, parameters={"count": 1}))
    assert text.startswith("the parameter shift is missing\n  --> ")
    assert "given:    X, count\n" in text
    assert "note:     shift is declared here\n  --> design.py:32" in text


def test_unknown_parameter() -> None:
    text = text_of(lambda: simulate_cycles(parametrized(), parameters={"size": 1}))
    assert text.startswith("the program has no input size\n  --> ")
    assert text.endswith("expected: count, shift\n  given:    size")


@pytest.mark.parametrize("value", [2.5, "three", [1, 2], float("nan"), None, np.int64(3)])
def test_unfit_parameter(value: object) -> None:
    text = text_of(lambda: simulate_cycles(parametrized(), parameters={"count": value}))
    assert text.startswith("the parameter count has the wrong type\n  --> ")
    assert f"expected: an int32 scalar\n  given:    {value!r} of type " in text
    assert "note:     count is declared here\n  --> design.py:31" in text
    assert "hint:     convert it: np.int32(...)" in text


def test_an_integer_parameter_may_not_overflow() -> None:
    text = text_of(lambda: simulate_cycles(parametrized(), parameters={"count": 2**40}))
    assert text.startswith("the parameter count does not fit into int32\n  --> ")
    assert f"expected: {-(2**31)} to {2**31 - 1}\n  given:    {2**40}\n" in text
    assert "note:     count is declared here\n  --> design.py:31" in text


def test_a_float_parameter_may_not_overflow() -> None:
    parameter = ScalarParameter(name="scale", type=Float(16), location=line(33))
    graph = replace(chain(4), parameters=(parameter,))
    text = text_of(lambda: simulate_cycles(graph, parameters={"scale": 1e6}))
    assert text.startswith("the parameter scale does not fit into float16\n  --> ")
    assert "expected: -65504.0 to 65504.0\n  given:    1000000.0" in text
    for value in (2.5, 1, np.float16(0.1), float("inf")):
        assert simulate_cycles(graph, parameters={"scale": value}).finished
    text = text_of(lambda: simulate_cycles(graph, parameters={"scale": np.float32(0.1)}))
    assert "of type float32" in text
    assert "hint:     convert it: np.float16(...)" in text


def test_negative_trip_count() -> None:
    text = text_of(lambda: simulate_cycles(parametrized(), parameters={"count": -2}))
    assert text.startswith("loop 'n' of 'load' has a negative trip count")
    assert "expected: an extent of at least 0 in every iteration of the loops around it" in text
    assert "given:    -2, from count" in text
    assert "hint:     check the bounds and the parameters they are computed from" in text


def test_too_many_firings() -> None:
    """A loop whose index is squared in a condition is not known by a few iterations."""
    count = 1 << 30
    load, store = load_unit(count, "A"), store_unit(count, "A")
    n = Index(name="n")
    when = equals(n * n, 4)
    body = tuple(
        replace(part, condition=when) if isinstance(part, Send) else part for part in load.body
    )
    ends = (replace(load, body=body), store)
    graph = design(ends, (channel("A", "load", "store"),), x(count), y(count))
    text = text_of(lambda: simulate_cycles(graph))
    assert "'load' has too many firings to simulate" in text
    assert f"at most {MOST_ITERATIONS} iterations of one loop\n  given:    {count}" in text
    hint = "simulate a smaller problem, split the loop, or spread the loops over more PEs"
    assert f"hint:     {hint}" in text


def test_no_firings_at_all() -> None:
    for engine in ("python", "native"):
        result = simulate_cycles(parametrized(), parameters={"count": 0}, engine=engine)
        assert result.finished
        assert (result.cycles, result.utilization, result.compute_cycles) == (0, 0.0, 0)
        assert "0.0%" in str(result)


def test_load_out_of_range() -> None:
    graph = design(
        (load_unit(5, "A", lanes=2, at=41), store_unit(5, "A", INT32.with_lanes(2))),
        (channel("A", "load", "store", element=INT32.with_lanes(2)),),
        x(9),
        y(10),
    )
    assert text_of(lambda: simulate_cycles(graph)) == (
        "'load' loads outside of 'X'\n"
        "  --> design.py:41\n"
        "  expected: indices 0 to 8 in dimension 0 of (9,)\n"
        "  given:    indices 0 to 9\n"
        "  note:     'X' is declared here\n"
        "  --> design.py:1\n"
        "  hint:     guard the access with a condition, or give the tensor the shape it is used "
        "with"
    )


def test_store_out_of_range() -> None:
    graph = design(
        (node("source", 4, send("B")), store_unit(4, "B")),
        (channel("B", "source", "store"),),
        y(3),
    )
    text = text_of(lambda: simulate_cycles(graph))
    assert "'store' stores outside of 'Y'" in text
    assert "given:    indices 0 to 3" in text


def test_a_guarded_access_may_be_out_of_range_elsewhere() -> None:
    inside = N < 3
    source = node("source", 4, send("B"))
    unit = store_unit(4, "B")
    unit = replace(unit, body=(unit.body[0], replace(unit.body[1], condition=inside)))  # type: ignore[call-arg]
    graph = design((source, unit), (channel("B", "source", "store"),), y(3))
    assert simulate_cycles(graph).cycles == 1 + 4


def arrays(source_index: Expr, sink_index: Expr, pes: int = 3, shape: int = 3) -> Graph:
    """``pes`` sending PEs, ``pes`` storing PEs, one channel array between them."""
    space = (SpaceDimension(name="p", minimum=0, extent=pes),)
    source = node("source", 2, send("B"), space=space, at=51)
    unit = store_unit(2, "B", at=52)
    store = replace(unit, space=space)
    array = replace(
        channel("B", "source", "store", at=53),
        shape=(shape,),
        source_index=(source_index,),
        sink_index=(sink_index,),
    )
    return design((source, store), (array,), y(2))


def space_index() -> Expr:
    return replace(N, name="p")


def test_channel_element_out_of_range() -> None:
    graph = arrays(space_index() + 1, space_index())
    assert text_of(lambda: simulate_cycles(graph)) == (
        "'source' uses elements outside of channel 'B'\n"
        "  --> design.py:53\n"
        "  expected: indices 0 to 2 in dimension 0 of (3,)\n"
        "  given:    indices 1 to 3\n"
        "  hint:     give the channel one element for every pair of PEs that it connects"
    )


@pytest.mark.parametrize(
    ("source", "sink", "what"),
    [
        (ZERO, space_index(), "two PEs send to one element of channel 'B'"),
        (space_index(), ZERO, "two PEs receive from one element of channel 'B'"),
    ],
)
def test_shared_channel_element(source: Expr, sink: Expr, what: str) -> None:
    text = text_of(lambda: simulate_cycles(arrays(source, sink)))
    assert f"{what}\n  --> design.py:53" in text
    assert "expected: one sender and one receiver for every element of a channel array" in text
    assert "[0] and " in text
    assert ", both on B[0]" in text
    assert "hint:     give the channel a dimension for the PEs, and index it" in text


def test_unknown_device() -> None:
    text = text_of(lambda: simulate_cycles(chain(4), device="virtex2"))
    assert text.startswith("unknown device\n  --> ")
    names = "ideal, arria10, stratix10, alveo_u55c, aup_zu3, ecp5-25k, ecp5-45k, ecp5-85k, "
    names += "gw2a-18, ccgm1a1, xc7a35t, xc7a100t, cgra8, cgra16, cgra32, capstan, "
    names += "tiny-tapeout, rtl-kernel"
    assert f"expected: one of {names}, or a Device\n  given:    'virtex2'" in text


def test_unknown_engine() -> None:
    text = text_of(lambda: simulate_cycles(chain(4), engine="fast"))
    assert "unknown engine" in text
    assert "expected: one of native, array, table, python\n  given:    'fast'" in text


def test_a_device_is_checked() -> None:
    text = text_of(lambda: Device(name="mine", description="", clock_hz=0))
    assert "device 'mine': clock_hz is out of range" in text
    assert "expected: an integer of at least 1\n  given:    0" in text
    assert find_device(DEVICES["arria10"]) is DEVICES["arria10"]


def test_broken_graphs_are_refused() -> None:
    broken = replace(chain(4), channels=(replace(chain(4).channels[0], capacity=0),))
    with pytest.raises(UserError):
        simulate_cycles(broken)


def test_counters_that_do_not_add_up_are_an_internal_error() -> None:
    program = build_program(
        design(
            (node("alone", 1, send("B")), node("end", 1, receive("B"))),
            (channel("B", "alone", "end"),),
        ),
        "ideal",
        None,
    )
    none = np.zeros(2, np.int64)
    one = none + 1
    tally = Tally(
        ending=Ending.FINISHED,
        cycles=2,
        firings=one,
        first=one,
        last=one,
        waiting=one,
        starved=none[:1],
        blocked=none[:1],
        memory_starved=none,
        memory_blocked=none,
        left=none[:1],
        stuck=(),
    )
    with pytest.raises(InternalError, match="the cycles of alone add up to 3, not to 2"):
        idle_cycles(program, tally)
