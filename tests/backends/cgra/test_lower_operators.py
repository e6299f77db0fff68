"""Single operations, scalars of the user and choices by data: values, and the cells they take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import t2s
from t2s import Float, Func, ImageParam, Int, Param, Var
from t2s.backends.base import RunOptions
from t2s.backends.cgra_tia.backend import BACKEND
from t2s.backends.cgra_tia.lower import lower_to_netlist
from t2s.core.types import Type
from tests.backends.cgra.designs import DOUBLE
from tests.backends.cgra.lowering import cells_of, most_instructions, ran
from tests.sampling import sampled

LONG = Int(64)
EXTREMES = {
    Float(64): [0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan, 1e300],
    Int(64): [0, 1, -1, 7, -8, 2**62, -(2**63), 2**63 - 1],
    Int(32): [0, 1, -1, 7, -8, 2**30, -(2**31), 2**31 - 1],
}

FORMULAS: dict[str, tuple[Callable[[Any, Any], Any], tuple[Type, ...]]] = {
    "sum": (lambda a, b: a + b, tuple(EXTREMES)),
    "difference": (lambda a, b: a - b, tuple(EXTREMES)),
    "product": (lambda a, b: a * b, tuple(EXTREMES)),
    "negation": (lambda a, b: -a, tuple(EXTREMES)),
    "absolute value": (lambda a, b: t2s.abs(a), tuple(EXTREMES)),
    "minimum": (lambda a, b: t2s.min(a, b), tuple(EXTREMES)),
    "maximum": (lambda a, b: t2s.max(a, b), tuple(EXTREMES)),
    "choice": (lambda a, b: t2s.select(a < b, a, b + a), tuple(EXTREMES)),
    "two tests": (lambda a, b: t2s.select((a >= b) & ~(a == b), a, b), tuple(EXTREMES)),
    "wrapped sum compared": (lambda a, b: t2s.select(a + b > a, a, b), tuple(EXTREMES)),
    "quarter": (lambda a, b: a // 4 + b % 8, (Int(64), Int(32))),
    "shifts": (lambda a, b: (a << 3) ^ (b >> 2), (Int(64), Int(32))),
    "shifts by data": (lambda a, b: (a << b) | (a >> b), (Int(64), Int(32))),
    "bits": (lambda a, b: (a & b) | ~a, (Int(64), Int(32))),
    "a large constant": (lambda a, b: a * 1_000_003 + (b & 65_535), (Int(64), Int(32))),
    "fused": (lambda a, b: t2s.fma(a, b, a + 0.5), (Float(64),)),
    "floor of whole numbers": (lambda a, b: t2s.floor(a) + t2s.ceil(b), (Int(64), Int(32))),
    "to float": (lambda a, b: t2s.cast(DOUBLE, a + b) * 0.5, (Int(64), Int(32))),
    "to int64": (lambda a, b: t2s.cast(LONG, a), (Float(64), Int(32))),
    "to int32": (lambda a, b: t2s.cast(Int(32), a), (Float(64), Int(64))),
}

CASES = [
    pytest.param(make, type, id=f"{name}, {type}")
    for name, (make, types) in FORMULAS.items()
    for type in types
]


@sampled(("make", "type"), CASES, quick=25)
def test_an_operation_has_the_values_of_numpy(make: Callable[[Any, Any], Any], type: Type) -> None:
    a, b, i, y = ImageParam(type, 1, name="a"), ImageParam(type, 1, name="b"), Var("i"), Func("y")
    y[i] = make(a[i], b[i])
    values = np.array(EXTREMES[type], type.numpy)
    first, second = (grid.ravel() for grid in np.meshgrid(values, values))
    graph = y.bound(i, 0, first.size).lower()
    inputs = {"a": first, "b": second}
    used = {name: inputs[name] for name in inputs if any(t.name == name for t in graph.tensors)}
    run = ran(lower_to_netlist(graph, contract=False), used)
    expected = t2s.interpret(y, used)
    np.testing.assert_array_equal(run.outputs["y"], expected)
    if expected.dtype.kind == "f":
        there = ~np.isnan(expected)
        np.testing.assert_array_equal(
            np.signbit(run.outputs["y"])[there], np.signbit(expected)[there]
        )


def test_data_that_choose_take_two_cycles_each() -> None:
    a, i, y = ImageParam(DOUBLE, 1, name="a"), Var("i"), Func("y")
    y[i] = t2s.max(a[i], 0.0)
    graph = y.bound(i, 0, 50).lower()
    inputs = {"a": np.arange(-25.0, 25.0)}
    run = ran(lower_to_netlist(graph), inputs)
    np.testing.assert_array_equal(run.outputs["y"], np.maximum(inputs["a"], 0.0))
    assert run.cycles == 2 * 50 + 2


def scaled() -> Func:
    alpha, beta = Param(DOUBLE, name="alpha"), Param(DOUBLE, name="beta")
    x, i, y = ImageParam(DOUBLE, 1, name="x"), Var("i"), Func("y")
    y[i] = beta + alpha * x[i]
    return y.bound(i, 0, 20)


def test_scalars_stay_in_registers() -> None:
    netlist = lower_to_netlist(scaled().lower())
    assert cells_of(netlist) == {"fma": 1, "ld": 3, "st": 1}
    assert most_instructions(netlist) == 3
    x = np.arange(20.0)
    run = ran(netlist, {"x": x, "alpha": np.float64(3.0), "beta": np.float64(1.0)})
    np.testing.assert_array_equal(run.outputs["y"], 1.0 + 3.0 * x)


def test_the_backend_hands_scalars_over() -> None:
    x, scalars = np.arange(20.0), {"alpha": np.float64(2.0), "beta": np.float64(-1.0)}
    run = BACKEND.run(scaled().lower(), {"x": x}, scalars, RunOptions())
    np.testing.assert_array_equal(run.outputs["y"], 2.0 * x - 1.0)


def test_a_scalar_that_some_firings_use_goes_round() -> None:
    alpha, x, i, y = (
        Param(DOUBLE, name="alpha"),
        ImageParam(DOUBLE, 1, name="x"),
        Var("i"),
        Func("y"),
    )
    y[i] = t2s.select(i < 5, x[i] * 2.0, x[i] * alpha)
    graph = y.bound(i, 0, 9).lower()
    values = np.arange(9.0)
    run = ran(lower_to_netlist(graph), {"x": values, "alpha": np.float64(7.0)})
    np.testing.assert_array_equal(run.outputs["y"], np.where(values < 5, 2 * values, 7 * values))
