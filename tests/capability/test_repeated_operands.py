"""Operands that a function reads at several places: one array, of one shape, and of one tile."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from t2s import sparse
from t2s.capability.parts import part_form
from t2s.capability.reshape import EVERYTHING, mappings
from t2s.sparse import Schedule
from t2s.sparse_repr.formats import dense
from t2s.sparse_repr.notation.ir import accesses
from t2s.sparse_repr.notation.parse import parse_expression
from tests.capability.functions import described


def _run(statement: str, function: Any, given: dict[str, Any]) -> Any:
    """The run of a statement by a function, beside the oracle."""
    assignment = sparse.parse(statement)
    part = sparse.Notation(parse_expression(statement.partition("=")[2]), {})
    found = sparse.compile(assignment, Schedule().map(part, function)).run(given)
    assert np.array_equal(found.output, sparse.interpret(assignment, given))
    return found


def _squared(x: Any, z: Any) -> None:
    assert x.shape == z.shape
    z[...] = x @ x


SQUARED = [
    *(("i <= 2", 0), ("j <= 3", 0), ("i == 2 and j == 2 and k == 2", 0), ("i*j < 10", 0)),
    *(("i == 8 and j == 8 and k == 8", 0), ("i == 5", 1), ("i*j*k < 126", 1)),
]


@pytest.mark.parametrize(("condition", "calls"), SQUARED)
def test_a_square_is_not_tiled(condition: str, calls: int) -> None:
    """The tile of its first factor is another one than that of the second."""
    square = described("square", f"z(i,k) = x(i,j) * x(j,k) when {condition}", _squared)
    given = {"B": np.arange(25.0).reshape(5, 5) % 7 - 3}
    assert _run("A(i,k) = B(i,j) * B(j,k)", square, given).steps[0].calls == calls


def test_an_outer_product_with_itself_is_not_tiled() -> None:
    def outer(x: Any, z: Any) -> None:
        assert z.shape == (len(x), len(x))
        z[...] = np.multiply.outer(x, x)

    made = described("outer", "z(i,j) = x(i) * x(j) when i <= 2", outer)
    found = _run("A(i,j) = b(i) * b(j)", made, {"b": np.arange(5.0)})
    assert found.steps[0].note == "guard false: computed by loops"


def test_what_stands_at_one_place_everywhere_is_tiled() -> None:
    """Rows of a matrix by itself: ``i`` is the first mode in both accesses."""

    def rows(x: Any, z: Any) -> None:
        assert len(x) <= 2
        z[...] = x.T @ x

    made = described("rows", "z(j,k) = x(i,j) * x(i,k) when i <= 2", rows)
    given = {"B": np.arange(15.0).reshape(5, 3) % 7 - 3}
    found = _run("A(j,k) = B(i,j) * B(i,k)", made, given)
    assert found.steps[0].calls == 3

    def diagonal(x: Any, z: Any) -> None:
        assert x.shape in ((2, 2), (1, 1))
        z[...] = np.diag(x)

    made = described("diagonal", "z(i) = x(i,i) when i <= 2", diagonal)
    assert _run("a(i) = B(i,i)", made, {"B": np.arange(25.0).reshape(5, 5)}).steps[0].calls == 3


def _mapped(text: str, statement: str) -> list[str]:
    value = parse_expression(text)
    formats = {one.tensor: dense(len(one.variables)) for one in accesses(value)}
    function = described("made", statement, lambda x, z: None)
    return [str(one) for one in mappings(part_form(value, formats), function, EVERYTHING)]


def test_modes_of_extent_1_are_at_one_place() -> None:
    """``x(q,p)`` with a row and ``x(r,q)`` with a column would be two shapes."""
    assert _mapped("b(i)*b(j)", "z(p,r) = x(q,p) * x(r,q)") == []
    found = _mapped("b(i)*b(j)", "z(p,r) = x(q,p) * x(q,r)")
    assert "x is b(i) seen as (1,i)" in found[0]
    assert all("seen as (1," in one for one in found)


def test_modes_are_fused_alike() -> None:
    found = _mapped("B(a,b,c)*B(d,e,f)", "z(i,j,k,l) = x(i,j) * x(k,l)")
    assert found
    for one in found:
        fused = ("a*b" in one) == ("d*e" in one) and ("b*c" in one) == ("e*f" in one)
        assert fused, one
