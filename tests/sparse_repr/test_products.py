"""Products of sparse matrices in space: values as scipy's, both engines alike."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

import t2s
from t2s import Float, Func, ImageParam, Int, RDom, Type, Var
from tests.sparse_repr.chains import arrays, chains

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "spmv"))
import cisr
import row_blocks

from t2s.representation import (
    ASAP,
    Chain,
    Columns,
    Index,
    Length,
    Longest,
    LongestFirst,
    MatrixParam,
    Policy,
    Representation,
    RoundRobin,
    Rows,
    Zero,
    dense_matrix,
    gallery,
    structure,
)
from tests.sampling import sampled

RNG = np.random.default_rng(3)


def product(chain: Chain, type: Type = Float(32), width: int = 0) -> Func:  # noqa: B008
    """y[i] += A.values[p, q] * x[j], or with right-hand sides, without directives."""
    A = MatrixParam(type, 2, chain, name="A")
    x = ImageParam(type, 2 if width else 1, name="x")
    p, q, r, n = Var("p"), RDom(0, A.values.extent(1), name="q"), Var("r"), Var("n")
    i, j = A.inverse_map(p, q)
    y = Func("y")
    if width:
        y[r, n] = 0
        y[i, n] += A.values[p, q] * x[j, n]
        y.bound(n, 0, width)
    else:
        y[r] = 0
        y[i] += A.values[p, q] * x[j]
    return y


def matrix(dtype: object, rows: int = 17, columns: int = 13) -> sparse.csr_array:
    dense = (RNG.random((rows, columns)) < 0.3) * RNG.integers(1, 9, (rows, columns))
    dense[4] = 0
    dense[9:12] = 0
    return sparse.csr_array(dense.astype(dtype))


GALLERY = {
    "csr": gallery.csr(3),
    "csc": gallery.csc(3),
    "cisr": gallery.cisr(3),
    "ell": gallery.ell(2),
    "sliced_ell": gallery.sliced_ell(2),
    "blocked_csr": gallery.blocked_csr(2, 2, 3),
    "blocked_csc": gallery.blocked_csc(2, 3, 2),
    "row_blocks": gallery.row_blocks(3, 2),
    "dcsr": gallery.dcsr(2),
    "coo": gallery.coo(2),
    "dia": gallery.dia(3),
}


@pytest.mark.parametrize("type", [Float(32), Int(32)], ids=str)
@sampled("name", GALLERY, quick=2)
def test_products_of_the_gallery(name: str, type: Type) -> None:
    A = matrix(type.numpy)
    x = RNG.integers(-5, 5, 13).astype(type.numpy)
    y = product(GALLERY[name], type)
    result = y.simulate({"A": A, "x": x}, engine="python")
    np.testing.assert_array_equal(result.outputs["y"], A @ x)  # small integers are exact
    np.testing.assert_array_equal(y.interpret({"A": A, "x": x}), A @ x)


@pytest.mark.parametrize("make", [cisr.spmv, row_blocks.spmv])
def test_published_designs_on_both_engines(make: object) -> None:
    A = matrix(np.float32, 30, 20)
    A.data[:] = RNG.standard_normal(A.nnz)
    x = RNG.standard_normal(20).astype(np.float32)
    plain = t2s.simulate(make(), {"A": A, "x": x}, device="arria10", engine="python")
    native = t2s.simulate(make(), {"A": A, "x": x}, device="arria10")
    assert plain.cycles == native.cycles
    np.testing.assert_array_equal(plain.outputs["y"], native.outputs["y"])
    bound = 20 * np.finfo(np.float32).eps * (abs(A) @ abs(x))
    assert (abs(native.outputs["y"] - A.astype(float) @ x.astype(float)) <= bound).all()


def test_several_right_hand_sides_in_time() -> None:
    A = matrix(np.int32)
    x = RNG.integers(-5, 5, (13, 3)).astype(np.int32)
    y = product(gallery.cisr(2), Int(32), width=3)
    result = y.simulate({"A": A, "x": x}, engine="python")
    np.testing.assert_array_equal(result.outputs["y"], A @ x)
    np.testing.assert_array_equal(y.interpret({"A": A, "x": x}), A @ x)
    assert result.nodes["A_loader"].firings * 3 == result.nodes["y_multiplier"].firings


@pytest.mark.slow
@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    chain=chains(),
    dense=arrays(),
    width=st.sampled_from([0, 0, 2]),
    multipliers=st.sampled_from([1, 1, 2, 4]),
)
def test_every_chain_has_hardware(
    chain: Chain, dense: np.ndarray, width: int, multipliers: int
) -> None:
    """On any number of machines, with empty rows, without entries, without rows or columns."""
    x = np.arange(1, dense.shape[1] + 1, dtype=np.float32)
    if width:
        x = np.stack([x, -x], axis=1)
    y, q, qq = product(chain, width=width), RDom(0, 1, name="q"), Var("qq")
    if multipliers > 1:
        y.tile(q, qq, multipliers).unroll(qq)
    try:
        result = y.simulate({"A": dense, "x": x}, engine="python")
    except t2s.errors.UserError as error:
        if f"a row may end inside of a block of {multipliers} values" not in str(error):
            raise
        result = product(chain, width=width).simulate({"A": dense, "x": x}, engine="python")
    np.testing.assert_array_equal(result.outputs["y"], dense @ x)


def test_padding_of_a_row_on_another_machine() -> None:
    """It does not get in the way of the sum of the machine that has the values."""
    entries = dense_matrix().pack(Columns, Index(Var("c")))
    blocks = entries.block(Columns, 2, Zero, Length(Var("b")))
    chain = blocks.schedule(
        Columns,
        2,
        ASAP,
        Zero,
        Index(Var("job")),
    )
    dense, x = np.array([[31]], np.float32), np.ones(1, np.float32)
    for engine in ("python", "native"):
        result = product(chain, width=0).simulate({"A": dense, "x": x}, engine=engine)
        assert list(result.outputs["y"]) == [31]


def test_nan_and_infinity_pass_and_padding_does_not() -> None:
    """0 times infinity of padding must not get into a sum."""
    A = sparse.csr_array(np.array([[0, 2, 0], [1, 0, 0], [0, 0, 3]], np.float32))
    x = np.array([np.inf, 1, np.nan], np.float32)
    for chain in (
        gallery.cisr(2),
        gallery.row_blocks(2, 2),
        gallery.ell(2),
    ):
        result = product(chain).simulate({"A": A, "x": x}, engine="python")
        np.testing.assert_array_equal(result.outputs["y"], np.array([2, np.inf, np.nan]))


def test_a_step_takes_a_cycle() -> None:
    """Whatever the latency of additions: rows of 1, 7 and 40 values."""
    dense = np.zeros((90, 64), np.float32)
    for row in range(90):
        dense[row, : (1, 7, 40)[row % 3]] = 1
    x = np.ones(64, np.float32)
    result = t2s.simulate(cisr.spmv(), {"A": dense, "x": x}, device="arria10")
    steps = result.nodes["multiplier"].firings // 4
    assert steps >= np.count_nonzero(dense) / 4
    # filling x, the latencies of memory and adders, and draining y come on top, once
    assert result.cycles <= steps + 320
    np.testing.assert_array_equal(result.outputs["y"], dense.sum(axis=1))


def test_the_graph_and_the_structure_are_made_once_for_many_runs() -> None:
    A = matrix(np.int32)
    y = product(gallery.csr(2), Int(32))
    graph, arrays_of_a = t2s.lower(y, {"A": A}), structure(y, {"A": A})
    x = np.ones(13, np.int32)
    for _ in range(2):
        result = t2s.simulate(graph, {**arrays_of_a, "x": x}, engine="python")
        np.testing.assert_array_equal(result.outputs["y"], A @ x)
        x = x + 1


def test_a_graph_is_for_every_matrix_of_its_sizes() -> None:
    """The first one has no row on two machines, the second one has."""
    first = sparse.csr_array(np.diag(np.arange(1, 5, dtype=np.int32)))
    second = sparse.csr_array(np.array([[1, 2, 3, 4], *[[0] * 4] * 3], np.int32))
    x = np.arange(4, dtype=np.int32)
    y = product(gallery.coo(2), Int(32))
    graph = t2s.lower(y, {"A": first})
    result = t2s.simulate(graph, {**structure(y, {"A": second}), "x": x}, engine="python")
    np.testing.assert_array_equal(result.outputs["y"], second @ x)
    y.is_distinct_reduction(Var("p"))
    with pytest.raises(t2s.errors.UserError, match="not true for this matrix"):
        structure(y, {"A": second})


@sampled(
    "policy",
    [ASAP, RoundRobin, LongestFirst],
    quick=2,
    ids=str,
)
@pytest.mark.parametrize("padding", [Zero, Longest], ids=str)
def test_a_chain_as_it_is_written(padding: t2s.Padding, policy: Policy) -> None:
    """Rows cut into blocks, and rows dealt out."""
    row_len, col_idx, b, job = t2s.variables("row_len col_idx b job")
    representation = Representation("representation")
    A = MatrixParam(Int(32), 2, representation, name="A")
    representation.define(
        A.dense()
        .pack(
            Columns,
            Length(row_len),
            Index(col_idx),
        )
        .block(Columns, 3, padding, Length(b))
        .schedule(
            Rows,
            4,
            policy,
            Zero,
            Index(job),
        )
    )
    x = ImageParam(Int(32), 1, name="x")
    ip, jp, r = Var("ip"), RDom(0, A.values.extent(1), name="jp"), Var("r")
    i, j = A.inverse_map(ip, jp)
    y = Func("y")
    y[r] = 0
    y[i] += A.values[ip, jp] * x[j]
    dense, vector = matrix(np.int32), RNG.integers(-5, 5, 13).astype(np.int32)
    storage = A.store(dense)
    assert {"col_idx", "b"} <= set(storage.streams)
    assert storage.values.shape[1] % 3 == 0
    result = y.simulate({"A": dense, "x": vector}, engine="python")
    np.testing.assert_array_equal(result.outputs["y"], dense @ vector)


@pytest.mark.slow
@pytest.mark.parametrize("chain", ["csr", "coo", "cisr", "blocked_csr"])
@pytest.mark.parametrize("kind", ["uint8", "int8", "uint16", "int64", "uint64"])
def test_integers_wrap_around_as_in_numpy(kind: str, chain: str) -> None:
    """Sums and products beyond the type: its type and its values, those of numpy."""
    dtype = np.dtype(kind)
    limits = np.iinfo(dtype)
    type = t2s.UInt(8 * dtype.itemsize) if dtype.kind == "u" else Int(8 * dtype.itemsize)
    dense = RNG.integers(limits.min, limits.max, (9, 8), dtype, endpoint=True)
    dense *= (RNG.random((9, 8)) < 0.5).astype(dtype)
    x = RNG.integers(limits.min, limits.max, 8, dtype, endpoint=True)
    y = product(GALLERY[chain], type)
    inputs = {"A": sparse.csr_array(dense), "x": x}
    results = [t2s.interpret(y, inputs)]
    results += [
        t2s.simulate(y, inputs, engine=engine, progress=False).outputs["y"]
        for engine in ("native", "python")
    ]
    for result in results:
        assert result.dtype == dtype
        assert np.array_equal(result, dense @ x)
