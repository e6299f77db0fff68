"""Shorter sums, and linear equations of a domain."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2s.core.affine import tidy
from t2s.core.expr import Expr, Index, Local, apply, const, equals, evaluate
from t2s.core.isl import Interval, LoopDomain
from t2s.core.isl_maps import Equality, equalities
from t2s.core.ops import Op
from t2s.core.printer import show
from t2s.core.types import INT32
from t2s.core.walk import walk

i, j, k = Index(name="i"), Index(name="j"), Index(name="k")


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (i + (j - i), "j"),
        (i - i, "0"),
        (i + 3 + -3, "i"),
        (i + i, "i + i"),
        (i + i + i, "i * 3"),
        ((i + j) * 2 - j * 2, "i * 2"),
        (0 - i - (j - i), "0 - j"),
        ((i + (j - i)) // 2, "j // 2"),
        (i + j - i < k, "j < k"),
        (i + j < j + 2, "i < 2"),
        (i + j + 1 >= j, "i >= -1"),
        (equals(i - k, j - k + 1), "i == j + 1"),
        (i + -1, "i - 1"),
        (i - -1, "i + 1"),
    ],
)
def test_terms_that_cancel(expr: Expr, text: str) -> None:
    assert show(tidy(expr)) == text


def test_data_may_wrap_around() -> None:
    """x + y < y is not x < 0 for numbers of 32 bits."""
    x, y = Local(name="x", type=INT32), Local(name="y", type=INT32)
    comparison = x + y < y
    assert tidy(comparison) == comparison


@st.composite
def sums(draw: st.DrawFn, depth: int = 3) -> Expr:
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from([i, j, k, const(draw(st.integers(-4, 4)))]))
    left, right = draw(sums(depth - 1)), draw(sums(depth - 1))
    operator = draw(st.sampled_from([Op.ADD, Op.SUBTRACT, Op.MULTIPLY, Op.MAXIMUM, Op.MODULO]))
    return apply(operator, left, right)


@settings(deadline=None, derandomize=True, max_examples=100)
@given(
    st.sampled_from([Op.LESS, Op.LESS_EQUAL, Op.EQUAL, Op.NOT_EQUAL, Op.GREATER_EQUAL]),
    sums(),
    sums(),
    st.tuples(*[st.integers(-9, 9)] * 3),
)
def test_comparisons_stay_true(operator: Op, left: Expr, right: Expr, at: tuple[int, ...]) -> None:
    environment = {name: np.int32(x) for name, x in zip("ijk", at, strict=True)}
    comparison = apply(operator, left, right)
    with np.errstate(all="ignore"):
        assert evaluate(tidy(comparison), environment) == evaluate(comparison, environment)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(sums(), st.tuples(*[st.integers(-9, 9)] * 3))
def test_the_value_stays_and_no_sum_grows(expr: Expr, at: tuple[int, ...]) -> None:
    environment = {name: np.int32(x) for name, x in zip("ijk", at, strict=True)}
    after = tidy(expr)
    with np.errstate(all="ignore"):
        assert evaluate(after, environment) == evaluate(expr, environment)
    assert len(list(walk(after))) <= len(list(walk(expr)))


def domain(*conditions: Expr) -> LoopDomain:
    intervals = [Interval(name=name, minimum=const(0), extent=const(6)) for name in "ijk"]
    return LoopDomain(intervals, conditions)


def test_equations_that_hold_everywhere() -> None:
    assert equalities(domain()) == []
    found = equalities(domain(equals(i, j + 2)))
    assert len(found) == 1
    assert show(found[0].solved_for("i")) == "j + 2"
    assert show(found[0].solved_for("j")) == "i - 2"
    assert found[0].factor("k") == 0


def test_equations_that_follow_from_inequalities() -> None:
    """i + j <= 0 leaves one point of i and j."""
    found = equalities(domain(i + j <= 0))
    solved = {name: row.solved_for(name) for row in found for name in row.factors}
    assert {name: show(expr) for name, expr in solved.items()} == {"i": "0", "j": "0"}


def test_elimination() -> None:
    first = Equality(number=-1, factors={"i": 1, "j": -2})  # i = 2 j + 1
    second = Equality(number=3, factors={"i": 4, "k": 1})
    left = second.without("i", first)
    assert left.factors == {"j": 8, "k": 1}
    assert left.number == 7
