"""Expressions of blocks with what is known put in, and brought to what cells compute.

Truth values are folded, minimum and maximum become choices, conversions between integers vanish
where a word holds both.  ``split`` takes the first choice over values out of expressions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from t2s.core.expr import Apply, Cast, Const, Expr, Local, Select, apply, const, simplify
from t2s.core.ops import Op
from t2s.core.types import BOOL, INT32, Int, Type
from t2s.core.walk import Term, rewrite, walk

_WORD = Int(64)


def reduced(expr: Expr, known: Mapping[str, Expr]) -> Expr:
    """An expression with the values of locals that are known."""

    def rule(node: Term) -> Term | None:
        return known.get(node.name) if isinstance(node, Local) else None

    before, after = expr, simplify(rewrite(rewrite(expr, rule), _fold))
    while after != before:
        before, after = after, simplify(rewrite(after, _fold))
    return after


def _fold(node: Term) -> Term | None:
    match node:
        case Apply(operator=Op.AND | Op.OR as operator, operands=(left, right), type=type) if (
            type.is_bool
        ):
            for one, other in ((left, right), (right, left)):
                if isinstance(one, Const):
                    return other if bool(one.value) is (operator is Op.AND) else one
        case Apply(operator=Op.NOT, operands=(Const(value=value),), type=type) if type.is_bool:
            return const(not value, BOOL)
        case Apply(operator=Op.NOT, operands=(Apply(operator=Op.NOT, operands=(inner,)),)):
            return inner
        case Apply(operator=Op.MINIMUM | Op.MAXIMUM as operator, operands=(a, b), type=type):
            for one, other in ((a, b), (b, a)):
                if isinstance(one, Const) and type.is_integer and one.value == _end(operator, type):
                    return other
            first = apply(Op.LESS if operator is Op.MINIMUM else Op.GREATER, b, a)
            return Select(condition=first, if_true=b, if_false=a, type=type)
        case Apply(operator=Op.NEGATE, operands=(value,), type=type):
            zero = const(-0.0, type) if type.is_float else const(0, type)
            return apply(Op.SUBTRACT, zero, value)
        case Cast(value=Const(value=value, type=source), type=type) if (
            source.is_integer or source.is_bool
        ) and (type.is_integer or type.is_float):
            return const(float(value) if type.is_float else int(value), type)
        case Cast(value=value, type=type) if value.type.is_float and type == INT32:
            limited: Expr = Cast(value=value, type=_WORD)
            for operator, limit in ((Op.MAXIMUM, -(1 << 31)), (Op.MINIMUM, (1 << 31) - 1)):
                limited = apply(operator, limited, const(limit, _WORD))
            return Cast(value=limited, type=type)
        case Cast(value=value, type=type) if value.type == type:
            return value
        case Cast(value=value, type=type) if type.is_bool and value.type.is_integer:
            return apply(Op.NOT_EQUAL, value, const(0, value.type))
        case Select(if_true=yes, if_false=no) if repr(yes) == repr(no):  # -0.0 is not 0.0
            return yes
        case Select(condition=condition, if_true=Const(value=True), if_false=Const(value=False)):
            return condition
    return None


def _end(operator: Op, type: Type) -> int:
    """The number that a minimum or a maximum with another one never is."""
    largest = (1 << type.bits - 1) - 1
    return largest if operator is Op.MINIMUM else -largest - 1


def split(exprs: Sequence[Expr]) -> Expr | None:
    """A condition over values that one of the expressions chooses by; ``None`` if none does."""
    for expr in exprs:
        for node in walk(expr):
            if isinstance(node, Select) and not any(
                isinstance(part, Select) for part in walk(node.condition)
            ):
                return node.condition
    return None


def given(expr: Expr, condition: Expr, holds: bool) -> Expr:
    """The expression where a condition holds, or does not."""

    def rule(node: Term) -> Term | None:
        if isinstance(node, Select) and node.condition == condition:
            return node.if_true if holds else node.if_false
        return None

    return reduced(rewrite(expr, rule), {})
