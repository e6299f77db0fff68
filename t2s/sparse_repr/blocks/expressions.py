"""Short names for the expressions that blocks are made of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from t2s.core.expr import Apply, Broadcast, Cast, Const, Expr, Select, apply, const
from t2s.core.ops import Op
from t2s.core.types import INT32, Type, integer_range
from t2s.core.walk import Term
from t2s.graph.nodes import DONE, EMPTY, VALUE, stop


class Formula(Term):
    """A function of expressions that is made of values, so that two of them can be equal."""

    __slots__ = ()

    def __call__(self, *operands: Expr) -> Expr:
        """The expression for these operands."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Operator(Formula):
    """An operator on any number of operands, from the first to the last."""

    operator: Op

    def __call__(self, *operands: Expr) -> Expr:
        if len(operands) < 2:
            return apply(self.operator, *operands)
        return reduce(lambda left, right: apply(self.operator, left, right), operands)


NO_TOKEN = -3
"""The tag of no token at all, for registers that may hold one."""


def tag(value: int) -> Const:
    """A tag as an expression."""
    return const(value, INT32)


VALUE_TAG, EMPTY_TAG, DONE_TAG, NO_TAG = (tag(t) for t in (VALUE, EMPTY, DONE, NO_TOKEN))
FIRST_STOP = tag(stop(0))


def unequal(left: Expr, right: Expr) -> Apply:
    return apply(Op.NOT_EQUAL, left, right)


def both(*conditions: Expr) -> Expr:
    """The logical and of one condition or more."""
    return reduce(lambda left, right: apply(Op.AND, left, right), conditions)


def either(*conditions: Expr) -> Expr:
    """The logical or of one condition or more."""
    return reduce(lambda left, right: apply(Op.OR, left, right), conditions)


def maximum(*values: Expr) -> Expr:
    return reduce(lambda left, right: apply(Op.MAXIMUM, left, right), values)


def minimum(*values: Expr) -> Expr:
    return reduce(lambda left, right: apply(Op.MINIMUM, left, right), values)


def select(condition: Expr, if_true: Expr, if_false: Expr) -> Select:
    return Select(condition=condition, if_true=if_true, if_false=if_false, type=if_true.type)


def cast(value: Expr, type: Type) -> Expr:
    """``value`` as ``type``; itself where it is of that type."""
    return value if value.type == type else Cast(value=value, type=type)


def zero(type: Type) -> Expr:
    """The zero of a type, in all of its lanes."""
    scalar = const(False if type.is_bool else 0.0 if type.is_float else 0, type.scalar)
    return spread(scalar, type.lanes)


def spread(value: Expr, lanes: int) -> Expr:
    """A scalar in so many lanes; a vector of so many lanes as it is."""
    if value.type.lanes == lanes:
        return value
    return Broadcast(value=value, type=value.type.with_lanes(lanes))


def one(type: Type) -> Const:
    """The one of a type of numbers."""
    return const(1.0 if type.is_float else 1, type)


def largest(type: Type) -> Const:
    """The largest value of an integer type."""
    return const(integer_range(type)[1], type)


def increased(level_tag: Expr) -> Expr:
    """The tag of the stop one level further out."""
    return level_tag + 1


def decreased(level_tag: Expr) -> Expr:
    """The tag of the stop one level further in."""
    return level_tag - 1


def count_ones(word: Expr) -> Expr:
    """The number of bits of an unsigned word that are set, of the word's type."""
    type = word.type
    bits = type.bits

    def mask(width: int) -> Const:
        pattern = sum(((1 << width) - 1) << at for at in range(0, bits, 2 * width))
        return const(pattern, type)

    def halves(value: Expr, width: int) -> Expr:
        shifted = value // const(1 << width, type)
        return (value & mask(width)) + (shifted & mask(width))

    width = 1
    while width < bits:
        word = halves(word, width)
        width *= 2
    return word


def lowest_one(word: Expr) -> Expr:
    """The word with its lowest set bit alone."""
    return word & (0 - word)


def below(bit: Expr) -> Expr:
    """All bits below a word of one bit."""
    return bit - 1


def power_of_two(exponent: Expr, type: Type) -> Expr:
    """A word with one bit set: the one whose number is ``exponent`` (an integer)."""
    factors: list[Expr] = []
    step = 1
    while step < type.bits:
        bit = exponent & step
        taken = unequal(bit, zero(exponent.type))
        factors.append(select(taken, const(1 << step, type), one(type)))
        step *= 2
    return reduce(lambda left, right: left * right, factors)
