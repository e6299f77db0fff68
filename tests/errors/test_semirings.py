"""Semirings that are none, and notation that applies to columns only over them."""

from __future__ import annotations

import numpy as np
import pytest

from t2s import sparse
from t2s.errors import UserError
from t2s.sparse import MIN_PLUS, Kernel, make_semiring, parse
from t2s.sparse_repr import semiring
from tests.errors.refusal import refused


def test_what_is_no_semiring() -> None:
    with refused("""
        this is not a semiring: - depends on the order of what is added
          --> make_semiring("-", "*", 0)
          expected: a sum in any order, and a zero that it leaves out and a product keeps
          given:    -, * and zero 0
    """):
        make_semiring("-", "*", 0)
    with refused("""
        this is not a semiring: 0 min 0.5 is not 0.5
          --> make_semiring("min", "+", 0)
          expected: a sum in any order, and a zero that it leaves out and a product keeps
          given:    min, + and zero 0
    """):
        make_semiring("min", "+", 0)
    with refused("""
        this is not a semiring: 0 + 0.5 is 0.5, not 0
          --> make_semiring("max", "+", 0)
          expected: a sum in any order, and a zero that it leaves out and a product keeps
          given:    max, + and zero 0
    """):
        make_semiring("max", "+", 0)
    with refused("""
        this is not a semiring: < is not an operator from two numbers to one
          --> make_semiring("min", "<", 0)
          expected: a sum in any order, and a zero that it leaves out and a product keeps
          given:    min, < and zero 0
    """):
        make_semiring("min", "<", 0)


def test_operators_that_are_not_there() -> None:
    with refused("""
        a semiring is made of operators of two numbers
          --> make_semiring("plus", "*", 0)
          expected: such as '+', '*', 'min' or 'max'
          given:    plus and *
    """):
        make_semiring("plus", "*", 0)


def test_differences_over_a_semiring() -> None:
    with refused("""
        a semiring has no differences and no quotients
          --> difference = parse("y(i) = b(i) - c(i)")
          expected: sums and products, min and max
          given:    b(i) - c(i)
    """):
        difference = parse("y(i) = b(i) - c(i)")
        Kernel(difference, semiring=MIN_PLUS)


def test_values_that_the_zero_does_not_leave_alone() -> None:
    kernel = sparse.compile(sparse.parse("y(i) = A(i,j)", {"A": "ds"}), semiring=sparse.MAX_TIMES)
    matrix = np.array([[0.0, -3.0], [1.0, np.nan]])
    with refused("""
        A has a value outside of the semiring
          --> kernel.simulate({"A": matrix})
          expected: values v for which 0 max v is v
          given:    -3.0: 0 max -3.0 is 0
    """):
        kernel.simulate({"A": matrix})
    assert kernel.simulate({"A": np.abs(matrix[:1])}).output.tolist() == [3.0]


def test_a_value_behind_many_that_the_zero_leaves_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(semiring, "_CHECKED_AT_ONCE", 4)
    kernel = sparse.compile(sparse.parse("y(i) = A(i,j)", {"A": "ds"}), semiring=sparse.MAX_TIMES)
    matrix = np.ones((3, 5))
    assert kernel.simulate({"A": matrix}).output.tolist() == [1.0, 1.0, 1.0]
    matrix[2, 3] = -3.0
    with pytest.raises(UserError, match=r"-3\.0: 0 max -3\.0 is 0"):
        kernel.simulate({"A": matrix})
