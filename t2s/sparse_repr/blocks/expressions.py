"""Expressions that blocks are made of: operators as values, tags, and bit manipulation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import Any

import numpy as np

from t2s.core.expr import Arrange, Cast, Const, Expr, apply, const, select, unequal, zero
from t2s.core.ops import Op
from t2s.core.types import Type, integer_range
from t2s.core.walk import Term
from t2s.graph.nodes import stop


class Formula(Term):
    """A function of expressions that compares by value."""

    __slots__ = ()

    def __call__(self, *operands: Expr) -> Expr:
        """The expression for these operands."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Operator(Formula):
    """An operator on any number of operands, associated to the left."""

    operator: Op

    def __call__(self, *operands: Expr) -> Expr:
        if len(operands) < 2:
            return apply(self.operator, *operands)
        return reduce(lambda left, right: apply(self.operator, left, right), operands)


@dataclass(frozen=True, slots=True)
class LaneView:
    """The lanes of a value as an array of a shape: how far the lanes of neighbors are apart."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def lanes(self) -> int:
        """The elements of the array."""
        return prod(self.shape)

    @property
    def is_plain(self) -> bool:
        """Whether the lanes are in that order already."""
        steps = (prod(self.shape[at + 1 :]) for at in range(len(self.shape)))
        return tuple(steps) == self.strides

    def of(self, value: Expr) -> Expr:
        """The array of an expression."""
        if self.is_plain and self.lanes == value.type.lanes:
            return value
        type = value.type.with_lanes(self.lanes)
        return Arrange(value=value, shape=self.shape, strides=self.strides, type=type)

    def array(self, value: Any) -> Any:
        """The array of a value."""
        lanes = np.atleast_1d(value)
        steps = tuple(stride * lanes.itemsize for stride in self.strides)
        return np.lib.stride_tricks.as_strided(lanes, self.shape, steps)


def flat(array: Any) -> Any:
    """The lanes of an array, or its only element."""
    lanes = np.ascontiguousarray(array).reshape(-1)
    return lanes if lanes.size > 1 else lanes[0]


FIRST_STOP = stop(0)
"""The tag of the stop of an innermost list."""


def maximum(*values: Expr) -> Expr:
    return reduce(lambda left, right: apply(Op.MAXIMUM, left, right), values)


def minimum(*values: Expr) -> Expr:
    return reduce(lambda left, right: apply(Op.MINIMUM, left, right), values)


def cast(value: Expr, type: Type) -> Expr:
    """``value`` converted to ``type``; unchanged if it has that type."""
    return value if value.type == type else Cast(value=value, type=type)


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
    """A word with the single bit number ``exponent`` (an integer) set."""
    factors: list[Expr] = []
    step = 1
    while step < type.bits:
        bit = exponent & step
        taken = unequal(bit, zero(exponent.type))
        factors.append(select(taken, const(1 << step, type), one(type)))
        step *= 2
    return reduce(lambda left, right: left * right, factors)
