"""Capabilities, conditions and quantities as text, in the form that ``parse`` reads."""

from __future__ import annotations

from typing import assert_never

from t2s.capability.ir import (
    ALWAYS,
    AllOf,
    AnyOf,
    Calculated,
    Capability,
    Compared,
    Condition,
    ListExtent,
    ListOrder,
    ListProduct,
    PositionIn,
    Quantified,
    Quantity,
    VariableExtent,
    WholeNumber,
)
from t2s.core.ops import Op
from t2s.core.walk import rewrite
from t2s.sparse_repr.notation.ir import Sum, print_expression, with_sums

_RANK = {Op.ADD: 1, Op.SUBTRACT: 1, Op.MULTIPLY: 2, Op.DIVIDE: 2, Op.MODULO: 2}


def print_capability(capability: Capability) -> str:
    """``z(i) = x(i) + y(i) when i == 8``."""
    sign = "+=" if capability.accumulates else "="
    value = rewrite(capability.value, lambda term: term.value if isinstance(term, Sum) else None)
    if with_sums(value, capability.result.variables) != capability.value:
        value = capability.value
    text = f"{print_expression(capability.result)} {sign} {print_expression(value)}"
    if capability.condition == ALWAYS:
        return text
    return f"{text} when {print_condition(capability.condition)}"


def print_condition(condition: Condition) -> str:
    """A condition, with the parentheses that it needs."""
    match condition:
        case Compared(operator=operator, left=left, right=right):
            return f"{print_quantity(left)} {operator.value} {print_quantity(right)}"
        case AllOf(parts=()):
            return "0 == 0"
        case AllOf(parts=parts):
            return " and ".join(_part(part, AnyOf, part is parts[-1]) for part in parts)
        case AnyOf(parts=parts):
            return " or ".join(_part(part, AllOf, part is parts[-1]) for part in parts)
        case Quantified(every=every, position=position, of=of, condition=inner):
            word = "forall" if every else "exists"
            return f"{word} {position} in {of}: {print_condition(inner)}"
        case _:
            assert_never(condition)


def _part(part: Condition, other: type[AllOf | AnyOf], last: bool) -> str:
    """What follows a quantifier belongs to it, so one that is not last stands in parentheses."""
    text = print_condition(part)
    closed = isinstance(part, other) or (isinstance(part, Quantified) and not last)
    return f"({text})" if closed else text


def print_quantity(quantity: Quantity) -> str:
    """A quantity of a condition."""
    return _quantity(quantity, 0)


def _quantity(quantity: Quantity, level: int) -> str:
    match quantity:
        case WholeNumber(value=value):
            return str(value)
        case VariableExtent(variable=name) | PositionIn(name=name):
            return name
        case ListExtent(of=of, at=at):
            return f"{of}[{print_quantity(at)}]"
        case ListOrder(of=of):
            return f"order({of})"
        case ListProduct(of=of):
            return f"product({of})"
        case Calculated(operator=operator, left=left, right=right):
            rank = _RANK[operator]
            text = f"{_quantity(left, rank)} {operator.value} {_quantity(right, rank + 1)}"
            return f"({text})" if level > rank else text
        case _:
            assert_never(quantity)
