"""Operators on the lanes of blocks: against numpy in both engines, text, files and refusals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from t2s.backends.kernels.design import check_vocabulary
from t2s.backends.opencl_fpga.dialect import OPENCL
from t2s.backends.verilog.counted_nests import nests_of
from t2s.core.errors import UserError
from t2s.core.expr import Arrange, Contract, Expr, ReduceRows, apply
from t2s.core.ops import Array, Op
from t2s.core.types import Float, Int, Type, UInt
from t2s.graph.printer import print_graph
from t2s.graph.serialize import graph_from_json, graph_to_json
from t2s.graph.verify import verify_graph
from t2s.simulator.run import simulate
from tests.simulator.test_bits import machine, value

ENGINES = ("python", "native")
TYPES = (Float(64), Float(32), Float(16), Int(32), UInt(8))
SIZES = ((1, 1, 1), (2, 3, 5), (4, 4, 4), (1, 7, 1), (5, 1, 3), (16, 16, 16), (3, 40, 2))


def drawn(type: Type, lanes: int, seed: int) -> Array:
    return np.random.default_rng(seed).integers(0, 9, lanes).astype(type.numpy)


def contract(type: Type, m: int, k: int, n: int, add: Op = Op.ADD, by: Op = Op.MULTIPLY) -> Expr:
    left, right = value("a", type.with_lanes(m * k)), value("b", type.with_lanes(k * n))
    return Contract(
        add=add, multiply=by, left=left, right=right, inner=k, type=type.with_lanes(m * n)
    )


def run(expr: Expr, engine: str, **given: Array) -> Array:
    kinds = {name: expr.type.scalar.with_lanes(len(array)) for name, array in given.items()}
    graph = machine(kinds, {"r": expr})
    return simulate(graph, given, engine=engine).outputs["r"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("type", TYPES, ids=str)
def test_products_of_matrices(type: Type, engine: str) -> None:
    for m, k, n in SIZES:
        a, b = drawn(type, m * k, 1), drawn(type, k * n, 2)
        found = run(contract(type, m, k, n), engine, a=a, b=b)
        np.testing.assert_array_equal(found.reshape(m, n), a.reshape(m, k) @ b.reshape(k, n))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_product_over_another_semiring(engine: str) -> None:
    m, k, n = 3, 4, 2
    a, b = drawn(Float(64), m * k, 3), drawn(Float(64), k * n, 4)
    found = run(contract(Float(64), m, k, n, Op.MINIMUM, Op.ADD), engine, a=a, b=b)
    sums = a.reshape(m, k, 1) + b.reshape(1, k, n)
    np.testing.assert_array_equal(found.reshape(m, n), sums.min(axis=1))


def test_both_engines_round_alike() -> None:
    random = np.random.default_rng(0)
    for type in TYPES[:3]:
        a, b = (random.normal(size=n).astype(type.numpy) for n in (6 * 33, 33 * 4))
        runs = [run(contract(type, 6, 33, 4), engine, a=a, b=b) for engine in ENGINES]
        np.testing.assert_array_equal(*runs)
        row = type.with_lanes(6)
        sums = ReduceRows(operator=Op.ADD, value=value("a", type.with_lanes(6 * 33)), type=row)
        np.testing.assert_array_equal(*[run(sums, engine, a=a) for engine in ENGINES])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("type", TYPES, ids=str)
def test_arranged(type: Type, engine: str) -> None:
    cases: tuple[tuple[tuple[int, ...], tuple[int, ...], Callable[[Array], Array]], ...] = (
        ((4, 3), (1, 4), lambda x: x.reshape(3, 4).T),
        ((3, 4), (4, 1), lambda x: x.reshape(3, 4)),
        ((12, 2), (1, 0), lambda x: np.repeat(x, 2)),
        ((2, 12), (0, 1), lambda x: np.tile(x, 2)),
        ((2, 3, 2), (3, 1, 6), lambda x: x.reshape(2, 2, 3).transpose(1, 2, 0)),
        ((1,), (1,), lambda x: x[:1]),
        ((5, 5), (0, 0), lambda x: np.full(25, x[0])),
    )
    x = drawn(type, 12, 5)
    for shape, strides, expected in cases:
        lanes = type.with_lanes(int(np.prod(shape)))
        expr = Arrange(
            value=value("x", type.with_lanes(12)), shape=shape, strides=strides, type=lanes
        )
        np.testing.assert_array_equal(run(expr, engine, x=x), expected(x).reshape(-1))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("operator", [Op.ADD, Op.MAXIMUM, Op.MINIMUM])
def test_rows_reduced(operator: Op, engine: str) -> None:
    for rows, length in ((1, 2), (4, 4), (3, 7), (16, 16), (7, 2)):
        x = drawn(Float(64), rows * length, rows)
        expr = ReduceRows(
            operator=operator,
            value=value("x", Float(64).with_lanes(len(x))),
            type=Float(64).with_lanes(rows),
        )
        reduce = {Op.ADD: np.sum, Op.MAXIMUM: np.max, Op.MINIMUM: np.min}[operator]
        found = run(expr, engine, x=x)
        np.testing.assert_array_equal(found, reduce(x.reshape(rows, length), axis=1))


@pytest.mark.parametrize("engine", ENGINES)
def test_functions_of_many_lanes(engine: str) -> None:
    """More lanes than are written out one by one."""
    x = np.random.default_rng(1).normal(size=100)
    expr = apply(Op.EXPONENTIAL, value("x", Float(64).with_lanes(100)))
    np.testing.assert_allclose(run(expr, engine, x=x), np.exp(x), rtol=1e-14)


def test_texts_and_files() -> None:
    graph = machine(
        {"a": Float(32).with_lanes(4), "b": Float(32).with_lanes(4)},
        {"r": contract(Float(32), 2, 2, 2)},
    )
    assert graph_from_json(graph_to_json(graph)) == graph
    assert "contract('+', '*', a_, b_, 2)" in print_graph(graph)


def test_backends_say_that_they_have_none() -> None:
    graph = machine(
        {"a": Float(32).with_lanes(4), "b": Float(32).with_lanes(4)},
        {"r": contract(Float(32), 2, 2, 2)},
    )
    why = "operators on blocks are not supported in"
    reasons = nests_of(graph)
    assert isinstance(reasons, list)
    assert any(why in reason.why for reason in reasons)
    assert any(why in reason.why for reason in check_vocabulary(OPENCL, graph))


def wrong() -> dict[str, Expr]:
    four = value("x", Float(32).with_lanes(4))
    two = Float(32).with_lanes(2)
    return {
        "leaves its value": Arrange(
            value=four, shape=(3, 2), strides=(2, 1), type=Float(32).with_lanes(6)
        ),
        "not associative": ReduceRows(operator=Op.SUBTRACT, value=four, type=two),
        "has the wrong type": ReduceRows(operator=Op.ADD, value=four, type=Float(32).with_lanes(3)),
        "not a product of matrices": Contract(
            add=Op.ADD, multiply=Op.MULTIPLY, left=four, right=four, inner=3, type=two
        ),
    }


@pytest.mark.parametrize("text", list(wrong()))
def test_refused(text: str) -> None:
    with pytest.raises(UserError, match=text):
        verify_graph(machine({"x": Float(32).with_lanes(4)}, {"r": wrong()[text]}))
