"""Fixed variables of sparse operands: slices where the outer levels are dense are windows."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2s import Var, external, sparse
from t2s.capability.operands import rows_of, slice_of, sliced_format, window_of
from t2s.sparse import Schedule, Tensor, csf, csr, dense
from tests.capability.functions import described
from tests.errors.refusal import refused

i, j, k, m = Var("i"), Var("j"), Var("k"), Var("m")
A, B, C = Tensor("A", dense(2)), Tensor("B", csr), Tensor("C", dense(2))


def _vector_times(x: Any, y: Any, z: Any) -> None:
    """A sparse vector by a matrix, whose rows are read where the vector has something."""
    assert x.format.letters == "s"
    z[...] = x.values @ y[x.levels[0]["crd"]]


vector_times = described(
    "vector_times", "z(k) = x(j) * y(j,k)", _vector_times, types="float64", formats={"x": "s"}
)


def _matrix(*shape: int) -> Any:
    generator = np.random.default_rng(shape)
    return generator.integers(-3, 4, shape) * (generator.random(shape) < 0.4) * 1.0


def test_the_function_is_right() -> None:
    assert str(external.check(vector_times)).endswith("all right")


@pytest.mark.parametrize("rows", [1, 2, 9])
def test_rows_of_a_product(rows: int) -> None:
    A[i, k] = B[i, j] * C[j, k]
    plan = sparse.compile(A, Schedule().fix(i).bind(B[i, j] * C[j, k], vector_times))
    inputs = {"B": _matrix(rows, 5), "C": _matrix(5, 3)}
    found = plan.run(inputs)
    assert np.array_equal(found.output, inputs["B"] @ inputs["C"])
    assert [(step.calls, step.copied) for step in found.steps] == [(rows, 0)]
    assert "x is B(i,j) seen as (j)" in str(plan)


def test_columns_are_stored_first() -> None:
    """And summed up: the columns of B are those of a matrix that is stored by columns."""
    a, b = Tensor("a", dense(1)), Tensor("b", dense(2))
    a[j] = B[i, k] * b[i, j]
    schedule = Schedule().fix(k).map(B[i, k] * b[i, j], vector_times)
    plan = sparse.compile(a, schedule)
    inputs = {"B": _matrix(6, 4), "b": _matrix(6, 3)}
    found = plan.run(inputs)
    assert np.array_equal(found.output, np.einsum("ik,ij->j", inputs["B"], inputs["b"]))
    assert "convert: B_ds is B as ds:1,0" in str(plan)
    assert found.steps[-1].calls == 4
    with refused("""
        vector_times does not take B as it is stored
          --> sparse.compile(a, Schedule().fix(k).bind(B[i, k] * b[i, j], vector_times))
          expected: slices of B that are s:0, for x
          given:    B as ds:0,1 with k fixed, which is not an outer dense level
          hint:     map(...) converts it, which is a step of the plan
    """):
        sparse.compile(a, Schedule().fix(k).bind(B[i, k] * b[i, j], vector_times))


def test_a_sparse_result_is_made_by_one_call() -> None:
    E, F, G = (Tensor(name, csr) for name in "EFG")
    E[i, j] = F[i, j] + G[i, j]
    with refused("""
        F(i,j) + G(i,j) is not what spadd computes
          --> sparse.compile(E, Schedule().fix(i).map(F[i, j] + G[i, j], external.scipy.spadd))
          expected: one call, which makes all of a sparse result (ds:0,1)
          given:    calls for each i
          hint:     without fix, all of it is one call
    """):
        sparse.compile(E, Schedule().fix(i).map(F[i, j] + G[i, j], external.scipy.spadd))


def test_slices_of_a_tensor_are_matrices() -> None:
    T, S = Tensor("T", dense(3)), Tensor("S", sparse.make_format("dds"))
    T[i, j, m] = S[i, j, k] * C[k, m]
    plan = sparse.compile(T, Schedule().fix(i).bind(S[i, j, k] * C[k, m], external.scipy.spmm))
    inputs = {"S": _matrix(4, 3, 5), "C": _matrix(5, 2)}
    assert np.array_equal(plan.run(inputs).output, np.einsum("ijk,kl->ijl", *inputs.values()))


def test_dense_functions_get_slices_of_a_dense_copy() -> None:
    A[i, k] = B[i, j] * C[j, k]
    schedule = Schedule().fix(i, k).map(B[i, j] * C[j, k], external.numpy.dot, densify=True)
    plan = sparse.compile(A, schedule)
    inputs = {"B": _matrix(4, 5), "C": _matrix(5, 3)}
    found = plan.run(inputs)
    assert np.array_equal(found.output, inputs["B"] @ inputs["C"])
    assert (found.steps[0].copied, found.steps[1].calls) == (4 * 5 * 8, 12)


FORMATS = [
    *("ds", "dds", "dss", "ddds", "ds:1,0", "dds:2,0,1", "dss:1,2,0", "duq", "ddsd", "dduq"),
    *("dsq", "ddsq"),
]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(FORMATS), st.lists(st.integers(0, 3), min_size=4, max_size=4), st.data())
def test_parts_are_those_of_numpy(letters: str, extents: list[int], data: Any) -> None:
    format = sparse.make_format(*letters.split(":")) if ":" not in letters else None
    order = len(letters.split(":")[0])
    shape = tuple(extents[:order])
    values = np.random.default_rng(sum(extents)).integers(-1, 2, shape) * 1.0
    if letters.endswith("sq"):  # one value below each coordinate: a level above has it once
        values[(values != 0).cumsum(-1) > 1] = 0
    stored = sparse.tensor(values, letters if format is None else format)
    rows = rows_of(stored.format)
    assert rows == stored.format.modes[0]
    start = data.draw(st.integers(0, shape[rows]))
    end = data.draw(st.integers(start, shape[rows]))
    more = data.draw(st.integers(0, 2))
    window = window_of(stored, rows, (start, end, end - start + more))
    part = values.take(range(start, end), rows)
    wide = [(0, more if mode == rows else 0) for mode in range(order)]
    _same(window, np.pad(part, wide))
    for count in range(1, order):
        fixed = stored.format.modes[:count]
        if sliced_format(stored.format, fixed) is None:
            continue
        for numbers in product(*(range(shape[mode]) for mode in fixed)):
            at: Mapping[int, int] = dict(zip(fixed, numbers, strict=True))
            index = tuple(at.get(mode, slice(None)) for mode in range(order))
            _same(slice_of(stored, at), values[index])


def _same(made: sparse.SparseTensor, values: Any) -> None:
    """A whole tensor of its own: its arrays fit its format."""
    again = sparse.from_levels(made.shape, made.format, made.levels, made.values)
    assert again.shape == values.shape
    assert np.array_equal(again.to_dense(), values)


def test_what_is_no_slice() -> None:
    assert sliced_format(csr, [1]) is None
    assert sliced_format(csr, [0, 1]) is None
    assert sliced_format(csf(2), [0]) is None
    assert sliced_format(sparse.make_format("dds"), [1]) is None
    assert sliced_format(sparse.make_format("dds"), [1, 0]) == sparse.make_format("s")
    assert rows_of(csf(2)) is None
