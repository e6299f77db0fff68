"""Padded steps of a reduction leave its result alone, bit for bit, for every operator and type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import t2s
from t2s import BFloat, Bool, Float, Func, ImageParam, Int, RDom, Type, UInt
from t2s.core.expr import LaneNumbers
from t2s.core.ops import OPERATORS, accepts, apply_operator, neutral_element
from t2s.core.walk import walk
from t2s.graph.graph import Graph
from tests.sampling import sampled
from tests.spatial.agreement import body, results

i, kk = t2s.variables("i kk")
Step = Callable[[Any, Any], Any]

STEPS: dict[str, Step] = {
    "sum": lambda old, new: old + new,
    "product": lambda old, new: old * new,
    "minimum": t2s.min,
    "maximum": t2s.max,
    "minimum, the other way": lambda old, new: t2s.min(new, old),
    "sum, the other way": lambda old, new: new + old,
}
LOGIC: dict[str, Step] = {
    "and": lambda old, new: old & new,
    "or": lambda old, new: old | new,
    "xor": lambda old, new: old ^ new,
}
NUMBERS = [Int(8), UInt(16), Float(32), BFloat()]


def reduction(type: Type, step: Step, start: Any, *, vector: bool = False) -> Func:
    """``out[i] = step(out[i], A[i, k])`` for 7 values of k, four at a time."""
    A, k, out = ImageParam(type, 2, name="A"), RDom(0, 7, name="k"), Func("out", type)
    out[i] = start
    out[i] = step(out[i], A[i, k])
    out.bound(i, 0, 3).split(k, k, kk, 4)
    return out.vload(A) if vector else out


def check(out: Func, *values: Any, exact: bool = True) -> Graph:
    """The oracle's values on every engine."""
    graph = out.lower()
    assert graph.tensor("A").padded == (3, 8)
    for given in values:
        inputs = {"A": np.asarray(given).astype(graph.tensor("A").type.numpy)}
        expected = t2s.interpret(out, inputs)
        for name, result in results(graph, inputs).items():
            if exact:
                assert result.tobytes() == expected.tobytes(), (name, result, expected)
            else:
                wide = result.astype(np.float64)
                np.testing.assert_allclose(wide, expected.astype(np.float64), 0.05)
    return graph


@pytest.mark.parametrize("vector", [False, True], ids=["scalar", "vector"])
@sampled("type", NUMBERS, quick=2, ids=str)
@pytest.mark.parametrize("step", STEPS)
def test_numbers(step: str, type: Type, vector: bool) -> None:
    """Neither a padding of zeros nor one of ones would leave these sums and products alone."""
    out = reduction(type, STEPS[step], 3, vector=vector)
    values = np.arange(21).reshape(3, 7) % 5 + 2
    rounds = vector and type.is_float and "imum" not in step
    others = -values if type.is_float else 100 + values
    graph = check(out, values, others, exact=not rounds)
    assert any(isinstance(part, LaneNumbers) for part in walk(graph.node("out"))) is vector


@pytest.mark.parametrize("vector", [False, True], ids=["scalar", "vector"])
@pytest.mark.parametrize("type", [Bool(), Int(8), UInt(32)], ids=str)
@sampled("step", LOGIC, quick=2)
def test_logic(step: str, type: Type, vector: bool) -> None:
    out = reduction(type, LOGIC[step], True if type.is_bool else 6, vector=vector)
    check(out, np.arange(21).reshape(3, 7) % 7, np.ones((3, 7)))


@sampled("step", STEPS, quick=2)
def test_special_floats(step: str) -> None:
    """Infinities times padding would be NaN, and adding 0.0 would lose the sign of zero."""
    values = np.full((3, 7), -0.0)
    values[1, 3], values[2, 6] = np.inf, -np.inf
    check(reduction(Float(32), STEPS[step], -0.0), values)
    check(reduction(Float(32), STEPS[step], -0.0, vector=True), values[:, ::-1])
    values[0, 6] = np.nan
    graph = reduction(Float(32), STEPS[step], 1.0).lower()
    inputs = {"A": values.astype(np.float32)}
    expected = t2s.interpret(reduction(Float(32), STEPS[step], 1.0), inputs)
    for result in results(graph, inputs).values():
        np.testing.assert_array_equal(result, expected)


def test_factors_that_are_not_padded_may_be_infinite() -> None:
    """The product of an infinity, which every step reads, and the padding is NaN."""
    A, x = ImageParam(Float(32), 2, name="A"), ImageParam(Float(32), 1, name="x")
    k, out = RDom(0, 7, name="k"), Func("out")
    out[i] = 0.0
    out[i] += A[i, k] * x[i]
    out.bound(i, 0, 3).split(k, k, kk, 4).vload(A)
    graph = out.lower()
    inputs = {"A": np.ones((3, 7), np.float32), "x": np.full(3, np.inf, np.float32)}
    for result in results(graph, inputs).values():
        assert (result == np.inf).all()


@pytest.mark.parametrize("rows", [1, 3], ids=["within a vector", "of whole vectors"])
def test_a_factor_of_a_padded_sum_is_multiplied_once(rows: int) -> None:
    """Neither an infinity nor a zero with a sign is lost, and no lane has a multiplier more."""

    def product(depth: int) -> Func:
        A, B = ImageParam(Float(32), 2, name="A"), ImageParam(Float(32), 2, name="B")
        x, k, kp = ImageParam(Float(32), 1, name="x"), RDom(0, depth, name="k"), t2s.Var("kp")
        out = Func("out")
        out[i] = -0.0
        out[i] += A[i, k] * x[i] * B[i, k]
        out.bound(i, 0, 4).split(k, k, kk, 2)
        if rows > 1:
            out.split(k, k, kp, rows).unroll(kp)
        return out.vload(A, B)

    values = np.ones((4, 7), np.float32)
    values[2], values[3, :6] = -0.0, [1, -1, 2, -2, 0, 0]
    x = np.array([np.inf, -2.0, 5.0, -np.inf], np.float32)
    inputs = {"A": values, "B": np.abs(values), "x": x}
    with np.errstate(invalid="ignore"):
        expected = np.float32([np.inf, -14.0, -0.0, np.nan])
    for result in results(product(7).lower(), inputs).values():
        np.testing.assert_array_equal(result, expected)
        assert np.signbit(result[2])
    padded, whole = (t2s.resources(product(depth), device="arria10") for depth in (7, 12))
    assert padded["out"].dsp_blocks == whole["out"].dsp_blocks == 3 * rows


def test_recurrences() -> None:
    """Horner's rule: no neutral term, so the partial result itself is selected."""
    out = reduction(Int(32), lambda old, new: old * 3 + new, 1)
    graph = check(out, np.arange(21).reshape(3, 7))
    assert body(graph, "out")[3] == (
        "out: int32 = select(k * 4 + kk < 7, previous * 3 + A, previous)"
    )


def test_the_last_step_counts() -> None:
    """An update that overwrites keeps what the last step of the domain wrote."""
    check(reduction(Int(32), lambda old, new: new + 1, 5), np.arange(21).reshape(3, 7))


def test_a_selected_update() -> None:
    out = reduction(Int(32), lambda old, new: t2s.select(new > 2, old + new, old), 0)
    check(out, np.arange(21).reshape(3, 7) % 6)


@pytest.mark.parametrize("type", [*NUMBERS, UInt(8), Bool()], ids=str)
def test_neutral_elements(type: Type) -> None:
    values: list[Any] = [0, 1]
    if type.is_float:
        values += [-0.0, np.inf, -np.inf, np.nan, 3.5]
    samples = np.asarray(values).astype(type.numpy)
    for operator, info in OPERATORS.items():
        if not info.associative or not accepts(operator, type):
            assert info.associative or neutral_element(operator, type) is None
            continue
        neutral = np.asarray(neutral_element(operator, type)).astype(type.numpy)
        with np.errstate(all="ignore"):
            result = apply_operator(operator, type, (samples, np.full_like(samples, neutral)))
        assert result.tobytes() == samples.tobytes(), operator
