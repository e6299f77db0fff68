"""Random expressions of the language against the same expressions computed by numpy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import t2s
from t2s import Float, Func, ImageParam, Int, Type, UInt, Var
from t2s.func.expressions import Expression

i, j = Var("i"), Var("j")
SHAPE = (3, 4)


@dataclass(frozen=True, slots=True)
class Both:
    """An expression of the language, and the same value by numpy over the whole box."""

    expression: Expression
    value: Any


def binary(operator: Callable[[Any, Any], Any]) -> Callable[[Both, Both], Both]:
    def apply(left: Both, right: Both) -> Both:
        value = operator(left.value, right.value)
        return Both(operator(left.expression, right.expression), value)

    return apply


def least(left: Both, right: Both) -> Both:
    smaller = np.where(right.value < left.value, right.value, left.value)
    return Both(t2s.min(left.expression, right.expression), smaller)


def greatest(left: Both, right: Both) -> Both:
    larger = np.where(right.value > left.value, right.value, left.value)
    return Both(t2s.max(left.expression, right.expression), larger)


def chosen(left: Both, right: Both) -> Both:
    condition = left.expression < right.expression
    value = np.where(left.value < right.value, left.value, right.value - left.value)
    return Both(t2s.select(condition, left.expression, right.expression - left.expression), value)


def negated(operand: Both) -> Both:
    return Both(-operand.expression, -operand.value)


def leaves(type: Type) -> st.SearchStrategy[Both]:
    A, B = ImageParam(type, 2, name="A"), ImageParam(type, 2, name="B")
    a, b = inputs(type)
    row = np.arange(SHAPE[0], dtype=np.int32)[:, None] + np.zeros(SHAPE, np.int32)

    def literal(number: int) -> Both:
        strong = type.numpy.type(number)
        return Both(t2s.cast(type, number), np.broadcast_to(strong, SHAPE))

    return st.one_of(
        st.just(Both(A[i, j], a)),
        st.just(Both(B[i, 3 - j], b[:, ::-1])),
        st.just(Both(t2s.cast(type, i), row.astype(type.numpy))),
        st.integers(0, 9).map(literal),
    )


def inputs(type: Type) -> tuple[Any, Any]:
    generator = np.random.default_rng(7)
    low = 0 if type == UInt(8) else -9
    drawn = [generator.integers(low, 99, SHAPE).astype(type.numpy) for _ in range(2)]
    if type.is_float:
        drawn = [array / type.numpy.type(8) for array in drawn]
    return drawn[0], drawn[1]


def expressions(type: Type) -> st.SearchStrategy[Both]:
    operators = [
        binary(lambda x, y: x + y),
        binary(lambda x, y: x - y),
        binary(lambda x, y: x * y),
        least,
        greatest,
        chosen,
    ]
    if type.is_integer:
        operators += [binary(lambda x, y: x & y), binary(lambda x, y: x | y)]
        operators += [binary(lambda x, y: x ^ y)]

    def grow(smaller: st.SearchStrategy[Both]) -> st.SearchStrategy[Both]:
        pairs = st.tuples(st.sampled_from(operators), smaller, smaller)
        return pairs.map(lambda t: t[0](t[1], t[2])) | smaller.map(negated)

    return st.recursive(leaves(type), grow, max_leaves=8)


@pytest.mark.slow
@settings(deadline=None, derandomize=True, max_examples=60)
@given(data=st.data(), type=st.sampled_from([Int(32), UInt(8), Float(32), Float(64)]))
def test_random_expressions(data: st.DataObject, type: Type) -> None:
    with np.errstate(all="ignore"):
        both = data.draw(expressions(type))
        f = Func("f", type)
        f[i, j] = both.expression
        f.bound(i, 0, SHAPE[0]).bound(j, 0, SHAPE[1])
        wanted = {"A", "B"} & set(both.expression.symbols)
        given = {name: a for name, a in zip("AB", inputs(type), strict=True) if name in wanted}
        result = t2s.interpret(f, given)
        assert result.dtype == type.numpy
        np.testing.assert_array_equal(result, np.asarray(both.value).astype(type.numpy))
