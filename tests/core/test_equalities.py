"""Shorter sums, and linear equations of a domain."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2s.core.affine import tidy
from t2s.core.expr import Expr, Index, Local, apply, const, evaluate
from t2s.core.isl import Interval, LoopDomain
from t2s.core.isl_maps import Equality, equalities
from t2s.core.ops import Op
from t2s.core.printer import show
from t2s.core.types import INT32
from t2s.core.walk import walk

i, j, k = Index(name="i"), Index(name="j"), Index(name="k")


def plus(left: Expr, right: Expr) -> Expr:
    return apply(Op.ADD, left, right)


def minus(left: Expr, right: Expr) -> Expr:
    return apply(Op.SUBTRACT, left, right)


def times(left: Expr, right: int) -> Expr:
    return apply(Op.MULTIPLY, left, const(right))


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (plus(i, minus(j, i)), "j"),
        (minus(i, i), "0"),
        (plus(plus(i, const(3)), const(-3)), "i"),
        (plus(i, i), "i + i"),
        (plus(plus(i, i), i), "i * 3"),
        (minus(times(plus(i, j), 2), times(j, 2)), "i * 2"),
        (minus(minus(const(0), i), minus(j, i)), "0 - j"),
        (apply(Op.FLOOR_DIVIDE, plus(i, minus(j, i)), const(2)), "j // 2"),
        (apply(Op.LESS, minus(plus(i, j), i), k), "j < k"),
        (apply(Op.LESS, plus(i, j), plus(j, const(2))), "i < 2"),
        (apply(Op.GREATER_EQUAL, plus(plus(i, j), const(1)), j), "i >= -1"),
        (apply(Op.EQUAL, minus(i, k), plus(minus(j, k), const(1))), "i == j + 1"),
        (plus(i, const(-1)), "i - 1"),
        (minus(i, const(-1)), "i + 1"),
    ],
)
def test_terms_that_cancel(expr: Expr, text: str) -> None:
    assert show(tidy(expr)) == text


def test_data_may_wrap_around() -> None:
    """x + y < y is not x < 0 for numbers of 32 bits."""
    x, y = Local(name="x", type=INT32), Local(name="y", type=INT32)
    comparison = apply(Op.LESS, plus(x, y), y)
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
    found = equalities(domain(apply(Op.EQUAL, i, plus(j, const(2)))))
    assert len(found) == 1
    assert show(found[0].solved_for("i")) == "j + 2"
    assert show(found[0].solved_for("j")) == "i - 2"
    assert found[0].factor("k") == 0


def test_equations_that_follow_from_inequalities() -> None:
    """i + j <= 0 leaves one point of i and j."""
    found = equalities(domain(apply(Op.LESS_EQUAL, plus(i, j), const(0))))
    solved = {name: row.solved_for(name) for row in found for name in row.factors}
    assert {name: show(expr) for name, expr in solved.items()} == {"i": "0", "j": "0"}


def test_elimination() -> None:
    first = Equality(number=-1, factors={"i": 1, "j": -2})  # i = 2 j + 1
    second = Equality(number=3, factors={"i": 4, "k": 1})
    left = second.without("i", first)
    assert left.factors == {"j": 8, "k": 1}
    assert left.number == 7
