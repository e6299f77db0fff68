"""Tiles over compressed rows and columns: windows of a sparse operand, without a copy of values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

from t2s import Var, external, sparse
from t2s.errors import UserError
from t2s.sparse import Schedule, Tensor, csr, dense
from tests.capability.functions import described

i, j, k = Var("i"), Var("j"), Var("k")
MOST = 4


def _shared(x: Any) -> Any:
    arrays = x.levels[1]
    make = scipy.sparse.csr_array if x.format.modes == (0, 1) else scipy.sparse.csc_array
    return make((x.values, arrays["crd"], arrays["pos"]), shape=x.shape)


def _spmm(x: Any, y: Any, z: Any) -> None:
    z[...] = _shared(x) @ y


def _function(condition: str, format: str) -> external.ExternalFunction:
    """A product of few rows or columns, which looks whether it gets more."""

    def few(x: Any, y: Any, z: Any) -> None:
        mode = x.format.modes[0]
        assert x.shape[mode] <= MOST
        assert len(x.levels[1]["pos"]) == x.shape[mode] + 1
        assert not x.values.flags.writeable
        _spmm(x, y, z)

    statement = f"z(i,k) = x(i,j) * y(j,k) when {condition}"
    return described("few", statement, few, types="float64", formats={"x": format})


@pytest.mark.parametrize("format", ["ds", "ds:1,0"])
@pytest.mark.parametrize("relation", ["<=", "=="])
@pytest.mark.parametrize("extent", [1, 3, 4, 5, 8, 11])
def test_windows_of_rows_and_columns(format: str, relation: str, extent: int) -> None:
    name = "i" if format == "ds" else "j"
    shape = (extent, 7) if name == "i" else (7, extent)
    assignment = sparse.parse("A(i,k) = B(i,j) * C(j,k)", {"B": format})
    function = _function(f"{name} {relation} {MOST}", format)
    part = sparse.Notation(assignment.value.value, {})  # type: ignore[union-attr]
    plan = sparse.compile(assignment, Schedule().map(part, function))
    generator = np.random.default_rng(extent)
    matrix = generator.integers(-3, 4, shape) * (generator.random(shape) < 0.4) * 1.0
    given = {"B": matrix, "C": generator.integers(-3, 4, (shape[1], 3)) * 1.0}
    found = plan.run(given)
    assert np.array_equal(found.output, given["B"] @ given["C"])
    assert found.steps[0].calls == -(-extent // MOST)


def test_the_other_mode_stays_whole() -> None:
    a, x, B = Tensor("a", dense(1)), Tensor("x", dense(1)), Tensor("B", csr)
    a[i] = B[i, j] * x[j]

    def spmv(x: Any, y: Any, z: Any) -> None:
        z[...] = _shared(x) @ y

    statement = "z(i) = x(i,j) * y(j) when j <= 4"
    function = described("narrow", statement, spmv, types="float64", formats={"x": "ds"})
    given = {"B": np.eye(6), "x": np.arange(6.0)}
    loops = sparse.compile(a, Schedule().map(B[i, j] * x[j], function)).run(given)
    assert np.array_equal(loops.output, given["x"])
    assert loops.steps[0].note == "guard false: computed by loops"
    strict = sparse.compile(a, Schedule().map(B[i, j] * x[j], function, else_=None))
    with pytest.raises(UserError, match="narrow is not for these extents"):
        strict.run(given)


def test_a_sparse_result_is_made_by_one_call() -> None:
    E, F, G = (Tensor(name, csr) for name in "EFG")
    E[i, j] = F[i, j] + G[i, j]

    def spadd(x: Any, y: Any) -> Any:
        return _shared(x) + _shared(y)

    formats = {"x": "ds", "y": "ds", "z": "ds"}
    statement = "z(i,j) = x(i,j) + y(i,j) when i <= 4"
    function = described("sums", statement, spadd, types="float64", formats=formats)
    plan = sparse.compile(E, Schedule().map(F[i, j] + G[i, j], function))
    given = {"F": np.eye(6), "G": np.ones((6, 6))}
    found = plan.run(given)
    assert np.array_equal(found.output, given["F"] + given["G"])
    assert found.steps[0].note == "guard false: computed by loops"
