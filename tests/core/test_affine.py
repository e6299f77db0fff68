"""Tidying of index arithmetic: shorter, and equal for every value of the indices."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from t2s.core.affine import tidy
from t2s.core.expr import Expr, Index, apply, const, evaluate
from t2s.core.ops import Op
from t2s.core.printer import show

i, j = Index(name="i"), Index(name="j")


def total(*parts: Expr) -> Expr:
    result = parts[0]
    for part in parts[1:]:
        result = result + part
    return result


@pytest.mark.parametrize(
    ("operator", "whole", "by", "text"),
    [
        (Op.FLOOR_DIVIDE, i * 8, 8, "i"),
        (Op.FLOOR_DIVIDE, total(i * 8, j), 8, "i + j // 8"),
        (Op.FLOOR_DIVIDE, total(i * -8, j, j * 2), 4, "(j * 3 - i * 8) // 4"),
        (Op.FLOOR_DIVIDE, total(i * 8, const(9)), 8, "i + 1"),
        (Op.FLOOR_DIVIDE, total(i, const(-3)), 8, "(i - 3) // 8"),
        (Op.MODULO, i * 8, 8, "0"),
        (Op.MODULO, total(i * 16, j), 8, "j % 8"),
        (Op.MODULO, total(i * 16, j * 3, const(-8)), 8, "j * 3 % 8"),
        (Op.MODULO, total(i, j), 8, "(i + j) % 8"),
    ],
)
def test_multiples_leave_quotients_and_remainders(
    operator: Op, whole: Expr, by: int, text: str
) -> None:
    before = apply(operator, whole, const(by))
    after = tidy(before)
    assert show(after) == text
    for values in product(range(-20, 20), repeat=2):
        environment = dict(zip("ij", map(np.int32, values), strict=True))
        assert evaluate(after, environment) == evaluate(before, environment)
