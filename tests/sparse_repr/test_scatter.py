"""Products whose rows come in no order: a memory of sums for each machine."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import t2s
from t2s import Float, Func, ImageParam, Int, RDom, Type, Var
from t2s.backends.opencl_fpga import emulator_available
from t2s.graph.nodes import Machine
from t2s.representation import (
    ASAP,
    Chain,
    Columns,
    Index,
    Length,
    MatrixParam,
    Representation,
    RoundRobin,
    Rows,
    Tree,
    Zero,
    dense_matrix,
    gallery,
)
from tests.sampling import sampled
from tests.sparse_repr.test_products import matrix, product

RNG = np.random.default_rng(11)


def tiled(chain: Chain, elements: int) -> Func:
    """A product with several multipliers for each machine."""
    A = MatrixParam(Float(32), 2, chain, name="A")
    x = ImageParam(Float(32), 1, name="x")
    p, q, r, qq = Var("p"), RDom(0, A.values.extent(1), name="q"), Var("r"), Var("qq")
    i, j = A.inverse_map(p, q)
    y = Func("y")
    y[r] = 0
    y[i] += A.values[p, q] * x[j]
    y.tile(q, qq, elements).unroll(qq)
    return y


@pytest.mark.parametrize(
    "y",
    [
        product(gallery.csc(3)),
        tiled(gallery.blocked_csr(2, 2, 2), 4),
    ],
    ids=["columns", "blocks"],
)
def test_both_engines_agree(y: Func) -> None:
    A = matrix(np.float32, 30, 20)
    A.data[:] = RNG.standard_normal(A.nnz)
    x = RNG.standard_normal(20).astype(np.float32)
    inputs = {"A": A, "x": x}
    plain = t2s.simulate(y, inputs, device="arria10", engine="python")
    native = t2s.simulate(y, inputs, device="arria10", engine="native")
    assert plain.cycles == native.cycles
    np.testing.assert_array_equal(plain.outputs["y"], native.outputs["y"])
    bound = 20 * np.finfo(np.float32).eps * (abs(A) @ abs(x))
    assert (abs(native.outputs["y"] - A.astype(float) @ x.astype(float)) <= bound).all()


def test_no_step_waits_for_the_sum_before() -> None:
    """Every value is of the same row, and an addition takes four cycles."""
    A, x = np.ones((1, 300), np.float32), np.ones(300, np.float32)
    result = t2s.simulate(
        product(gallery.csc(1)),
        {"A": A, "x": x},
        device="arria10",
        engine="python",
    )
    assert list(result.outputs["y"]) == [300]
    sums = result.nodes["y"]
    # all values, then three steps until the last sum is there, then a line of the result
    assert sums.firings == 300 + 3 + 1
    assert sums.last_firing - sums.first_firing + 1 == sums.firings


@pytest.mark.parametrize(("type", "levels", "expected"), [(Float(32), 1, 2), (Int(32), 0, 1)])
def test_fewer_partial_sums_make_steps_wait(type: Type, levels: int, expected: int) -> None:
    """With two partial sums of a row and four cycles for a sum, two cycles for each step."""
    y = product(gallery.csc(1), type)
    if levels:
        y.reduction_circuit(Tree, levels)
    A, x = np.ones((3, 50), type.numpy), np.ones(50, type.numpy)
    result = t2s.simulate(y, {"A": A, "x": x}, device="arria10", engine="python")
    np.testing.assert_array_equal(result.outputs["y"], [50, 50, 50])
    sums = result.nodes["y"]
    assert sums.last_firing - sums.first_firing >= expected * 149
    assert sums.last_firing - sums.first_firing <= expected * 155


def test_right_hand_sides_keep_sums_apart() -> None:
    """Four of them take turns, so one partial sum of each is enough."""
    A = matrix(np.float32)
    x = RNG.integers(-5, 5, (13, 4)).astype(np.float32)
    y = product(gallery.csc(2), width=4)
    result = y.simulate({"A": A, "x": x}, engine="python")
    np.testing.assert_array_equal(result.outputs["y"], A @ x)
    graph = t2s.lower(y, {"A": A})
    (sums,) = (r for r in graph.node("y").registers if r.name == "sums_0")
    assert sums.distance == 4
    assert sums.shape[0] < 2 * 17 * 4


def test_a_promise_makes_a_circuit() -> None:
    """Columns of one value each, of rows that differ: every row is continuous."""
    A = sparse.csr_array(np.eye(9, dtype=np.float32)[::-1].copy())
    x = np.arange(9, dtype=np.float32)
    y = product(gallery.csc(2))
    assert isinstance(t2s.lower(y, {"A": A}).node("y"), Machine)
    y.is_continuous_reduction(Var("p"))
    graph = t2s.lower(y, {"A": A})
    assert not isinstance(graph.node("y"), Machine)
    assert "y_level_1" in {node.name for node in graph.nodes}
    result = y.simulate({"A": A, "x": x}, engine="python")
    np.testing.assert_array_equal(result.outputs["y"], x[::-1])


BLOCKS_OF_COLUMNS = (
    dense_matrix()
    .block(Rows, 2, Zero)
    .block(Columns, 4, Zero)
    .pack(Rows, Length(Var("length")), Index(Var("row")))
    .schedule(Columns, 3, ASAP, Zero)
)


@sampled(
    ("chain", "elements"),
    [
        (gallery.blocked_csr(2, 2, 4), 4),
        (gallery.blocked_csr(2, 4, 2), 4),  # two rows in a step
        (gallery.blocked_csc(3, 3, 1), 3),  # three rows of one value each
        (BLOCKS_OF_COLUMNS, 2),
        (
            dense_matrix().block(Columns, 4, Zero).schedule(Rows, 3, ASAP, Zero),
            4,
        ),
    ],
    quick=2,
)
def test_several_multipliers_for_a_block(chain: Chain, elements: int) -> None:
    A, x = matrix(np.float32), RNG.integers(-5, 5, 13).astype(np.float32)
    y = tiled(chain, elements)
    result = y.simulate({"A": A, "x": x}, engine="python")
    np.testing.assert_array_equal(result.outputs["y"], A @ x)
    values = MatrixParam(Float(32), 2, chain, name="A").store(A).values.size
    assert result.nodes["y_multiplier"].firings == values
    assert result.nodes["y"].firings < values  # a step has several values


def test_zeros_of_blocks_are_values_and_padding_is_not() -> None:
    """A block of 2 x 2 has a zero beside the infinity, and ends behind the edge of the matrix."""
    A = np.array([[1, 0, 0], [0, 2, 0], [0, 0, 3]], np.float32)
    x = np.array([1, 2, np.inf], np.float32)
    y = product(gallery.blocked_csr(2))
    result = y.simulate({"A": A, "x": x}, engine="python")
    np.testing.assert_array_equal(result.outputs["y"], [1, 4, np.inf])
    np.testing.assert_array_equal(y.interpret({"A": A, "x": x}), [1, 4, np.inf])
    A[0, 2] = 5  # keeps the block with its zero in row 1
    result = y.simulate({"A": A, "x": x}, engine="python")
    np.testing.assert_array_equal(result.outputs["y"], [np.inf, np.nan, np.inf])
    np.testing.assert_array_equal(y.interpret({"A": A, "x": x}), [np.inf, np.nan, np.inf])
    csc = product(gallery.csc(2)).simulate({"A": A, "x": x}, engine="python")
    np.testing.assert_array_equal(csc.outputs["y"], [np.inf, 4, np.inf])


def test_names_mean_nothing() -> None:
    """Structure named as what the design makes itself, and a part named as another one would be."""
    A, x = matrix(np.float32), RNG.integers(-5, 5, 13).astype(np.float32)
    values, x_var = t2s.variables("values x")
    chain = dense_matrix().pack(Rows, Length(values), Index(x_var)).schedule(Columns, 2, ASAP, Zero)
    y = product(chain)
    y.isolate_consumer(Func("A_decoder"))
    result = y.simulate({"A": A, "x": x}, engine="python")
    np.testing.assert_array_equal(result.outputs["y"], A @ x)


def test_all_parts_with_names() -> None:
    """Columns on three machines, with every directive that such a design takes."""
    col_len, row_idx = t2s.variables("col_len row_idx")
    CSC = Representation("CSC")
    A = MatrixParam(Int(32), 2, CSC, name="A")
    CSC.define(
        A.dense().pack(Rows, Length(col_len), Index(row_idx)).schedule(Columns, 3, RoundRobin, Zero)
    )
    x = ImageParam(Int(32), 1, name="x")
    ip, jp, r = Var("ip"), RDom(0, A.values.extent(1), name="jp"), Var("r")
    i, j = A.inverse_map(ip, jp)
    y = Func("y")
    y[r] = 0
    y[i] += A.values[ip, jp] * x[j]
    names = "multiplier unloader A_loader lengths x_loader x_feeder"
    multiplier, unloader, A_loader, lengths, x_loader, x_feeder = t2s.funcs(names)
    y.isolate_producer(A.values[ip, jp] * x[j], multiplier).isolate_consumer(unloader)
    multiplier.isolate_producer(A.values, A_loader)
    multiplier.isolate_producer_chain(x, x_loader, x_feeder)
    A_loader.load_structure(row_idx).unroll(ip)
    lengths.load_structure(col_len, design=y)
    x_feeder.buffer(x)
    multiplier.unroll(ip)
    unloader.buffer(y)
    dense, vector = matrix(np.int32), RNG.integers(-5, 5, 13).astype(np.int32)
    result = y.simulate({"A": dense, "x": vector}, engine="python")
    np.testing.assert_array_equal(result.outputs["y"], dense @ vector)
    assert {"multiplier", "unloader", "A_loader", "lengths", "x_loader"} <= set(result.nodes)


@pytest.mark.slow
@pytest.mark.emulator
@pytest.mark.skipif(not emulator_available(), reason="the emulator is not installed")
def test_blocks_on_the_emulator() -> None:
    """A decoder, coordinates, two rows in a step, and the memories of their sums."""
    A, x = np.array([[1, 0, 2], [0, 3, 0], [4, 0, 5]], np.float32), np.arange(3, dtype=np.float32)
    y = tiled(gallery.blocked_csr(1, 2, 1), 2)
    np.testing.assert_array_equal(t2s.emulate(y, {"A": A, "x": x}, time_limit=200)["y"], A @ x)
