"""Ranges of integer expressions hold every value that the expressions have."""

from __future__ import annotations

import numpy as np

from t2s.core.expr import Apply, Expr, Index, Parameter, apply, const, evaluate
from t2s.core.intervals import interval
from t2s.core.ops import OPERATORS, Op
from t2s.core.types import INT32, UInt

RANGES = {"i": (-5, 7), "j": (1, 6), "k": (9, 12), "n": (3, 3)}
i, j, k = (Index(name=name) for name in "ijk")
n = Parameter(name="n", type=INT32)


def _values(expr: Expr) -> np.ndarray:
    axes = np.ix_(*(np.arange(low, high + 1, dtype=np.int32) for low, high in RANGES.values()))
    with np.errstate(all="ignore"):
        return np.asarray(evaluate(expr, dict(zip(RANGES, axes, strict=True))))


def test_ranges_of_operators_hold_all_values() -> None:
    unknown = []
    for operator, rule in OPERATORS.items():
        for operands in ((i, j, k), (j, i, n), (k, const(8), i), (k, n, j)):
            kind = INT32
            if rule.comparison:
                kind = apply(operator, i, j).type
            expr = Apply(operator=operator, operands=operands[: rule.arity], type=kind)
            try:
                values = _values(expr)
            except (TypeError, ValueError):
                continue  # an operator of bools or of floats
            found = interval(expr, RANGES)
            if found is None:
                unknown.append(operator)
                continue
            low, high = int(values.min()), int(values.max())
            assert found[0] <= low <= high <= found[1], (operator, operands)
    exact = {Op.ADD, Op.SUBTRACT, Op.MULTIPLY, Op.MINIMUM, Op.MAXIMUM, Op.NEGATE, Op.LESS}
    assert not exact & set(unknown)
    assert Op.FUSED_MULTIPLY_ADD in unknown


def test_a_remainder_within_one_quotient_is_exact() -> None:
    assert interval(k % 8, RANGES) == (1, 4)
    assert interval(k % 5, RANGES) == (0, 4)


def test_what_leaves_its_type_is_unknown() -> None:
    assert interval(k * (1 << 30), RANGES) is None
    below = const(0, UInt(8)) - const(1, UInt(8))
    assert interval(below, RANGES) == (0, 255)


def test_names_without_a_range_are_unknown() -> None:
    assert interval(i + Index(name="x"), RANGES) is None
    assert interval(i + n, RANGES) == (-2, 10)
