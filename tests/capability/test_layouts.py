"""A function gets operands with the steps that it asks for, whatever it makes of them."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

from t2s import external, sparse
from t2s.capability.ir import Strides
from t2s.capability.operands import suits
from t2s.sparse import Schedule
from tests.capability.functions import described
from tests.sampling import sampled

ASKED: tuple[Literal["any", "steps", "one is 1", "rows", "columns", "dense"], ...] = (
    *("any", "steps", "one is 1"),
    *("rows", "columns", "dense"),
)


def _layouts(values: Any) -> dict[str, Any]:
    """One matrix in memory by rows, by columns, as a window, backwards, and of other bytes."""
    rows, columns = values.shape
    window = np.zeros((2 * rows, columns + 3), values.dtype)[::2, 1:-2]
    window[...] = values
    return {
        "rows": values,
        "columns": np.asfortranarray(values),
        "window": window,
        "window by columns": np.asfortranarray(np.pad(values, 1))[1:-1, 1:-1],
        "backwards": np.ascontiguousarray(values[::-1, ::-1])[::-1, ::-1],
        "other bytes": values.astype(values.dtype.newbyteorder()),
    }


def _product(said: Any, *, sparse_result: bool) -> external.ExternalFunction:
    """A sampled product that looks at the steps of what it is given, and that nobody writes it."""

    def sampled(m: Any, x: Any, y: Any) -> Any:
        for one in (x, y):
            assert suits(one, Strides(said)), (one.strides, one.shape)
            assert not one.flags.writeable
        found = m.to_dense() * (x @ y.T)
        return sparse.tensor(found, "ds") if sparse_result else found

    formats = {"m": "ds", "z": "ds"} if sparse_result else {"m": "ds"}
    statement = "z(i,k) = m(i,k) * x(i,j) * y(k,j)"
    return described(
        *("sampled", statement, sampled), types="float64", formats=formats, strides=said
    )


@pytest.mark.parametrize("sparse_result", [False, True])
@sampled("said", ASKED, quick=2)
@pytest.mark.parametrize("letters", ["(j,k)", "(k,j)"])
def test_operands_have_the_steps_of_a_claim(letters: str, said: str, sparse_result: bool) -> None:
    """Dense ones beside sparse ones and sparse results, transposed or not; nothing is square."""
    text = f"A(i,k) = B(i,k) * C(i,j) * D{letters}"
    assignment = sparse.parse(text, {"B": "ds"})
    part = sparse.Notation(assignment.value.value, {})  # type: ignore[union-attr]
    function = _product(said, sparse_result=sparse_result)
    plan = sparse.compile(assignment, Schedule().map(part, function))
    generator = np.random.default_rng(3)
    mask, left, right = (
        generator.integers(-4, 5, shape) * 1.0 for shape in ((4, 3), (4, 5), (5, 3))
    )
    expected = mask * (left @ right)
    given_right = right if letters == "(j,k)" else right.T.copy()
    for name, one in _layouts(left).items():
        for other in _layouts(given_right).values():
            found = plan.run({"B": mask, "C": one, "D": other})
            assert np.array_equal(found.output, expected), name
            needed = sum(
                seen.nbytes
                for seen in (one, other.T if letters == "(j,k)" else other)
                if seen.dtype.isnative and not suits(seen, Strides(said))
            )
            called = next(step for step in found.steps if step.calls)
            assert called.copied >= needed


@pytest.mark.parametrize("name", ["mxm_masked_dense", "mxm_masked_rows", "mxm_dense"])
def test_graphblas_reads_dense_matrices_of_any_steps(name: str) -> None:
    function = getattr(external.graphblas, name)
    available = next(one for one in external.available() if one.name == "GraphBLAS")
    if not available.there:
        pytest.skip("GraphBLAS is not there")
    product = "C(i,j) * D(j,k)"
    text, formats = f"A(i,k) = B(i,k) * {product}", {"B": "ds"}
    if name == "mxm_dense":
        text, formats = f"A(i,k) = {product}", {"C": "ds"}
    assignment = sparse.parse(text, formats)
    part = sparse.Notation(assignment.value.value, {})  # type: ignore[union-attr]
    plan = sparse.compile(assignment, Schedule().map(part, function))
    generator = np.random.default_rng(4)
    mask, left, right = (
        generator.integers(-4, 5, shape) * 1.0 for shape in ((4, 3), (4, 5), (5, 3))
    )
    expected = left @ right if name == "mxm_dense" else mask * (left @ right)
    for one in _layouts(left).values():
        for other in _layouts(right).values():
            given = {"C": one, "D": other} | ({} if name == "mxm_dense" else {"B": mask})
            assert np.array_equal(plan.run(given).output, expected)


def _of_any_order(x: Any, y: Any, z: Any) -> None:
    for one in (x, y, z):
        assert isinstance(one, np.ndarray), type(one)
    assert not x.flags.writeable
    z[...] = np.multiply(x, y).sum()


@pytest.mark.parametrize("extent", [1, 3, 20])
@pytest.mark.parametrize("text", ["A(i) = B(i,i)*C(i)", "A(i) = C(i)*C(i)", "A(i,j) = B(i,j)*D(i)"])
def test_operands_of_one_element(text: str, extent: int) -> None:
    """All variables are fixed: an operand is an array of order 0, or of one element."""
    assignment = sparse.parse(text)
    part = sparse.Notation(assignment.value, {})
    generator = np.random.default_rng(extent)
    values = generator.integers(-4, 5, (extent, extent)) * 1.0
    given = {name: values if name == "B" else values[0] + 1 for name in "BCD" if name in text}
    expected = sparse.interpret(assignment, given)
    listed = described("listed", "z = x(I) * y(I)", _of_any_order, types="float64")
    functions = [listed, external.blas.ddot, external.numpy.contract]
    if next(one for one in external.available() if one.name == "TBLIS").there:
        functions += [external.tblis.ddot, external.tblis.dmult]
    for function in functions:
        plan = sparse.compile(
            assignment, Schedule().fix(*assignment.result.variables).map(part, function)
        )
        assert np.array_equal(plan.run(given).output, expected), function.name
