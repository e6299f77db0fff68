"""The text of expressions; as Python it means what ``evaluate`` computes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2s.core.expr import (
    Broadcast,
    Cast,
    Expr,
    Index,
    Insert,
    LaneNumbers,
    Local,
    Parameter,
    Read,
    ReduceLanes,
    Select,
    apply,
    const,
    evaluate,
)
from t2s.core.ops import OPERATORS, Op
from t2s.core.printer import show
from t2s.core.types import BOOL, INT32, Float, Int

i, j = Index(name="i"), Index(name="j")
P, Q = Local(name="p", type=BOOL), Local(name="q", type=BOOL)
X = Local(name="x", type=Float(32).with_lanes(4))


def op(operator: Op, *operands: Expr) -> Expr:
    return apply(operator, *operands)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (const(True, BOOL), "True"),
        (const(-3), "-3"),
        (const(0.5, Float(32)), "0.5"),
        (Parameter(name="n", type=INT32), "n"),
        (Read(source="A", indices=(i, op(Op.ADD, j, const(1))), type=INT32), "A[i, j + 1]"),
        (op(Op.ADD, op(Op.ADD, i, j), i), "i + j + i"),
        (op(Op.ADD, i, op(Op.ADD, j, i)), "i + (j + i)"),
        (op(Op.SUBTRACT, i, op(Op.SUBTRACT, j, i)), "i - (j - i)"),
        (op(Op.MULTIPLY, op(Op.ADD, i, j), i), "(i + j) * i"),
        (op(Op.MULTIPLY, i, op(Op.FLOOR_DIVIDE, j, i)), "i * (j // i)"),
        (op(Op.NEGATE, op(Op.MULTIPLY, i, j)), "-(i * j)"),
        (op(Op.MULTIPLY, op(Op.NEGATE, i), j), "-i * j"),
        (op(Op.MINIMUM, i, op(Op.ADD, j, i)), "min(i, j + i)"),
        (op(Op.SQUARE_ROOT, const(2.0, Float(32))), "sqrt(2.0)"),
        (op(Op.AND, op(Op.LESS, i, j), op(Op.OR, P, Q)), "i < j and (p or q)"),
        (op(Op.AND, P, op(Op.NOT, Q)), "p and not q"),
        (op(Op.NOT, op(Op.AND, P, Q)), "not (p and q)"),
        (op(Op.EQUAL, op(Op.NOT, P), Q), "(not p) == q"),
        (op(Op.EQUAL, P, op(Op.NOT, Q)), "p == (not q)"),
        (op(Op.EQUAL, op(Op.LESS, i, j), Q), "(i < j) == q"),
        (op(Op.EQUAL, P, op(Op.LESS, i, j)), "p == (i < j)"),
        (Select(condition=P, if_true=i, if_false=j, type=INT32), "select(p, i, j)"),
        (Cast(value=i, type=Float(32)), "float32(i)"),
        (Broadcast(value=i, type=INT32.with_lanes(8)), "broadcast(i, 8)"),
        (LaneNumbers(type=INT32.with_lanes(8)), "lane_numbers(8)"),
        (ReduceLanes(operator=Op.ADD, value=X, type=Float(32)), "reduce_lanes('+', x)"),
        (
            Insert(
                vector=Broadcast(value=i, type=INT32.with_lanes(8)),
                lane=op(Op.ADD, i, j),
                value=j,
                type=INT32.with_lanes(8),
            ),
            "insert(broadcast(i, 8), i + j, j)",
        ),
    ],
)
def test_show(expr: Expr, text: str) -> None:
    assert show(expr) == text


INT64 = Int(64)
NAMES = ("a", "b", "c")
BINARY = (Op.ADD, Op.SUBTRACT, Op.MULTIPLY, Op.MINIMUM, Op.MAXIMUM)
DIVISIONS = (Op.FLOOR_DIVIDE, Op.MODULO)
COMPARISONS = tuple(operator for operator, info in OPERATORS.items() if info.comparison)


@st.composite
def number(draw: st.DrawFn, depth: int) -> Expr:
    """An integer expression of at most 2**depth factors."""
    shape = draw(st.integers(0, 6)) if depth else draw(st.integers(0, 1))
    match shape:
        case 0:
            return const(draw(st.integers(-9, 9)), INT64)
        case 1:
            return Local(name=draw(st.sampled_from(NAMES)), type=INT64)
        case 2:
            divisor = const(draw(st.integers(-5, 5).filter(bool)), INT64)
            return op(draw(st.sampled_from(DIVISIONS)), draw(number(depth - 1)), divisor)
        case 3:
            unary = draw(st.sampled_from((Op.NEGATE, Op.ABSOLUTE)))
            return op(unary, draw(number(depth - 1)))
        case 4:
            condition = draw(truth(depth - 1))
            sides = draw(number(depth - 1)), draw(number(depth - 1))
            return Select(condition=condition, if_true=sides[0], if_false=sides[1], type=INT64)
        case _:
            operator = draw(st.sampled_from(BINARY))
            return op(operator, draw(number(depth - 1)), draw(number(depth - 1)))


@st.composite
def truth(draw: st.DrawFn, depth: int) -> Expr:
    """A boolean expression over comparisons of ``number``."""
    shape = draw(st.integers(0, 3)) if depth else 0
    match shape:
        case 0:
            return draw(st.sampled_from((P, Q, const(True, BOOL))))
        case 1:
            return op(Op.NOT, draw(truth(depth - 1)))
        case 2:
            operator = draw(st.sampled_from((Op.AND, Op.OR, Op.EQUAL, Op.NOT_EQUAL)))
            return op(operator, draw(truth(depth - 1)), draw(truth(depth - 1)))
        case _:
            operator = draw(st.sampled_from(COMPARISONS))
            return op(operator, draw(number(depth - 1)), draw(number(depth - 1)))


@given(
    # at most 16 factors of magnitude 9: every value stays below 9**16 < 2**63
    expr=st.one_of(number(4), truth(4)),
    numbers=st.tuples(*(st.integers(-9, 9) for _ in NAMES)),
    truths=st.tuples(st.booleans(), st.booleans()),
)
def test_the_text_means_what_evaluate_computes(
    expr: Expr, numbers: tuple[int, ...], truths: tuple[bool, bool]
) -> None:
    plain = {**dict(zip(NAMES, numbers, strict=True)), "p": truths[0], "q": truths[1]}
    functions = {"select": lambda condition, if_true, if_false: if_true if condition else if_false}
    typed = {
        name: np.bool_(value) if isinstance(value, bool) else np.int64(value)
        for name, value in plain.items()
    }
    assert eval(show(expr), {**plain, **functions}) == evaluate(expr, typed).item()
