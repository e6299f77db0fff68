"""Expressions as functions give what ``evaluate`` gives, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from t2s.core.expr import Const, Local, Select, apply, const, evaluate
from t2s.core.ops import OPERATORS, Op, accepts
from t2s.core.types import BOOL, INT32, Bool, Float, Int, Type, UInt
from t2s.graph.semantics import Closures, closure

TYPES = (Int(8), Int(32), UInt(8), UInt(64), Float(16), Float(32), Float(64), Bool())


def values_of(type: Type) -> list[float | int | bool]:
    if type.is_bool:
        return [False, True]
    if type.is_float:
        return [0.0, -0.0, 1.5, float("inf"), float("-inf"), float("nan"), 6e4]
    limits = np.iinfo(type.numpy)
    return [0, 1, 3, int(limits.max), int(limits.min)]


@pytest.mark.parametrize("type", TYPES, ids=str)
@pytest.mark.parametrize("operator", [op for op in Op if OPERATORS[op].arity >= 2])
def test_every_operator(operator: Op, type: Type) -> None:
    if not accepts(operator, type):
        assert operator not in (Op.EQUAL, Op.NOT_EQUAL)
        return
    names = ("a", "b", "a")[: OPERATORS[operator].arity]
    expr = apply(operator, *(Local(name=name, type=type) for name in names))
    compiled = closure(expr)
    with np.errstate(all="ignore"):
        for a in values_of(type):
            for b in values_of(type):
                scalars = {"a": type.numpy.type(a), "b": type.numpy.type(b)}
                found, expected = np.asarray(compiled(scalars)), np.asarray(evaluate(expr, scalars))
                assert found.dtype == expected.dtype
                assert found.tobytes() == expected.tobytes()


def test_selections_constants_and_reuse() -> None:
    local = Local(name="a", type=INT32)
    expr = Select(condition=local < 3, if_true=local, if_false=const(7), type=INT32)
    closures = Closures()
    for a, expected in ((2, 2), (5, 7)):
        assert closures.value(expr, {"a": np.int32(a)}) == expected
    assert closures.value(Const(value=True, type=BOOL), {}).dtype == np.bool_
