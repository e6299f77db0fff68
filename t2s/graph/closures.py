"""Scalar expressions as Python functions: what ``evaluate`` gives, without walking the expression.

Machines evaluate the same few expressions at every token.  The functions work on numpy scalars, so
they wrap around and round as ``evaluate`` does, to which they leave whatever is not common.
Callers hold ``np.errstate(all="ignore")``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from t2s.core.expr import Apply, Const, Expr, Index, Local, Parameter, Select, evaluate
from t2s.core.ops import Array, Op
from t2s.graph.semantics import Environment

Closure = Callable[[Environment], Array]

_BINARY: Mapping[Op, Callable[[Array, Array], Array]] = MappingProxyType(
    {
        Op.ADD: operator.add,
        Op.SUBTRACT: operator.sub,
        Op.MULTIPLY: operator.mul,
        Op.EQUAL: operator.eq,
        Op.NOT_EQUAL: operator.ne,
        Op.LESS: operator.lt,
        Op.LESS_EQUAL: operator.le,
        Op.GREATER: operator.gt,
        Op.GREATER_EQUAL: operator.ge,
        Op.AND: operator.and_,
        Op.OR: operator.or_,
        Op.MINIMUM: lambda left, right: right if right < left else left,
        Op.MAXIMUM: lambda left, right: right if right > left else left,
    }
)


class Closures:
    """The functions of expressions, each made once."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[Expr, Closure]] = {}

    def value(self, expr: Expr, environment: Environment) -> Array:
        """The value of an expression of a graph."""
        made = self._made.get(id(expr))
        if made is None:
            made = self._made[id(expr)] = (expr, closure(expr))
        return made[1](environment)


def closure(expr: Expr) -> Closure:
    """The function of one expression."""
    match expr:
        case Const(value=value, type=type):
            constant = np.asarray(value, type.numpy)[()]
            return lambda environment: constant
        case Index(name=name) | Local(name=name) | Parameter(name=name):
            return lambda environment: environment[name]
        case Apply(operator=found, operands=operands) if _is_common(expr):
            compute = _BINARY[found]
            left, right = (closure(operand) for operand in operands)
            return lambda environment: compute(left(environment), right(environment))
        case Select(condition=condition, if_true=if_true, if_false=if_false) if (
            expr.type.lanes == 1
        ):
            test, yes, no = closure(condition), closure(if_true), closure(if_false)
            return lambda environment: yes(environment) if test(environment) else no(environment)
    return lambda environment: evaluate(expr, environment)


def _is_common(expr: Apply) -> bool:
    """Whether numpy's own operators on scalars do the same as ``apply_operator``."""
    types = {operand.type for operand in expr.operands}
    return expr.operator in _BINARY and all(
        type.lanes == 1 and type.numpy.kind in "biuf" for type in types
    )
