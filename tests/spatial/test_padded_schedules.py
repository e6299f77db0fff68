"""Schedules of nests that are padded: what is padded is left out, by every consumer alike."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import t2s
from t2s import Func, ImageParam, Int, RDom, Var
from t2s.backends.opencl_fpga.emulator import emulator_available
from t2s.backends.verilog.verilator import verilator_available
from t2s.errors import UserError
from t2s.func.expressions import Expression
from tests.sampling import sampled
from tests.spatial.agreement import agree
from tests.spatial.programs import random_inputs

PROFILE = settings(
    deadline=None,
    derandomize=True,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
Value = Callable[[ImageParam, Var], Expression]
VALUES: dict[str, Value] = {
    "shifted": lambda x, i: x[i + 1],
    "index": lambda x, i: x[i] * 3 + i,
    "not at 2": lambda x, i: t2s.select(i != 2, x[i + 1], 7),
    "mirrored": lambda x, i: t2s.select(i != 2, x[i + 1], x[9 - i]),
    "before the front": lambda x, i: t2s.select(i > 0, x[i - 1], 0),
    "not at the end": lambda x, i: t2s.select(i < 3, x[i + 1], 0) + x[i],
}
MAPS = {
    "inner": lambda i, q, p, t: {p: q, t: i},
    "outer": lambda i, q, p, t: {p: i, t: q},
    "skewed": lambda i, q, p, t: {p: q, t: i + q},
    "sparse": lambda i, q, p, t: {p: i, t: 2 * q + i},
}


def mapped(value: str, extent: int, factor: int, map: str, *, first: int = 0) -> Func:
    """``F[i]`` in parts of ``factor`` iterations, of which one loop becomes space."""
    i, q, p, t = t2s.variables("i q p t")
    x, F = ImageParam(Int(32), 1, name="x"), Func("F")
    F[i] = VALUES[value](x, i)
    F.bound(i, first, extent).split(i, i, q, factor)
    return F.space_time_transform([i, q], MAPS[map](i, q, p, t))


@pytest.mark.slow
@PROFILE
@given(
    st.sampled_from(sorted(VALUES)),
    st.integers(4, 7),
    st.integers(1, 8),
    st.sampled_from(sorted(MAPS)),
    st.integers(0, 2),
)
def test_values(value: str, extent: int, factor: int, map: str, first: int) -> None:
    func = mapped(value, extent, factor, map, first=first)
    graph = agree(func)
    assert all(tensor.padded is None for tensor in graph.tensors)
    node = t2s.simulate(graph, random_inputs(graph, 1), progress=False).nodes["F"]
    if map != "sparse":  # a schedule with cycles in which nothing happens
        assert node.firings == extent  # no iteration that the definition has not


def test_a_factor_of_millions_is_no_loop_of_millions() -> None:
    """Such a nest used to be emitted as it was, and wrote behind its arrays."""
    agree(mapped("shifted", 4, 3_000_000, "outer"))


@pytest.mark.slow
@PROFILE
@given(st.data())
def test_sums(data: st.DataObject) -> None:
    """Steps of a reduction that are padded hand on the sum."""
    rows, steps, parts = (data.draw(st.integers(1, n)) for n in (4, 6, 4))
    i, ii, kk, p, t = t2s.variables("i ii kk p t")
    k, F = RDom(0, steps, name="k"), Func("F")
    A, x = ImageParam(Int(32), 2, name="A"), ImageParam(Int(32), 1, name="x")
    F[i] = i + 1
    F[i] += A[i, k] * x[k]
    F.bound(i, 0, rows).split(k, k, kk, parts)
    loops = [i, k, kk]
    if data.draw(st.booleans()):
        F.split(i, i, ii, data.draw(st.integers(1, 3)))
        loops.insert(1, ii)
    space = data.draw(st.sampled_from(loops))
    time = [loop for loop in loops if loop is not space][-1]
    step = data.draw(st.integers(0, 2))
    F.space_time_transform([space, time], {p: space, t: time + step * space})
    note(f"{rows} {steps} {parts} {loops} {space} {time} {step}")
    refusal = ""
    try:
        t2s.lower(F)
    except UserError as refused:
        refusal = str(refused)
    if refusal:
        assert "before it is there" in refusal
    else:
        agree(F)


FEW = [
    ("shifted", 4, 3, "inner"),
    ("mirrored", 4, 5, "inner"),
    ("not at the end", 4, 3, "outer"),
    ("index", 5, 2, "skewed"),
]


@pytest.mark.emulator
@pytest.mark.skipif(not emulator_available(), reason="Intel's FPGA emulator is not installed")
@sampled(("value", "extent", "factor", "map"), FEW, quick=2)
def test_emulated(value: str, extent: int, factor: int, map: str) -> None:
    func = mapped(value, extent, factor, map)
    inputs = random_inputs(t2s.lower(func), 1)
    np.testing.assert_array_equal(t2s.emulate(func, inputs)["F"], t2s.interpret(func, inputs))


@pytest.mark.slow
@pytest.mark.verilator
@pytest.mark.skipif(
    not verilator_available(), reason="Verilator or a C++ compiler is not installed"
)
@pytest.mark.parametrize(("value", "extent", "factor", "map"), FEW[:2])
def test_verilated(value: str, extent: int, factor: int, map: str) -> None:
    func = mapped(value, extent, factor, map)
    inputs = random_inputs(t2s.lower(func), 1)
    result = t2s.verilate(func, inputs)
    np.testing.assert_array_equal(result.outputs["F"], t2s.interpret(func, inputs))
    assert result.cycles == t2s.cycles(func)


@pytest.mark.parametrize(
    ("first", "extent"), [(2**31 - 3, 4), (-(2**31), 4), (2**31 - 3, 2**31 - 1)]
)
@pytest.mark.parametrize("unrolled", [False, True])
def test_coordinates_that_no_index_can_count(first: int, extent: int, unrolled: bool) -> None:
    i, F = Var("i"), Func("F")
    F[i] = i + 1
    F.bound(i, first, extent)
    if unrolled:
        F.unroll(i)
    with pytest.raises(UserError, match="goes beyond what an index can count") as refused:
        t2s.lower(F)
    assert refused.value.location is not None


def test_the_last_coordinate_that_an_index_can_count() -> None:
    i, F = Var("i"), Func("F")
    F[i] = i - 1
    F.bound(i, 2**31 - 3, 3)
    for engine in ("python", "native"):
        result = t2s.simulate(F, {}, engine=engine, progress=False).outputs["F"]
        assert result.tolist() == [2**31 - 4, 2**31 - 3, 2**31 - 2]
