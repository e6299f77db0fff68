"""What a PE computes, as one graph of operations for all of its firings.

The body of a PE is read once.  Everything static (conditions, choices between values, elements of
channel arrays) becomes a *column*: an expression of the loops whose value is known for each firing.
The rest are operations on tokens, each of which becomes a cell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NoReturn

import numpy as np

from t2s.backends.cgra_tia.lower.not_lowered import refuse
from t2s.core.expr import (
    Apply,
    Cast,
    Const,
    Expr,
    Local,
    Parameter,
    Select,
    evaluate,
    index_names,
    is_static,
    simplify,
)
from t2s.core.location import SourceLocation
from t2s.core.ops import Array, Op, apply_operator, cast_value
from t2s.core.types import INT32, Kind, Type
from t2s.core.walk import walk

WORD = 64
"""Bits of a word."""


class Special(Enum):
    """Operations that are not operators of the graph's expressions."""

    PICK = "select"
    """The second operand where the first one is not zero, else the third."""
    CONVERT = "cast"


@dataclass(frozen=True, slots=True, kw_only=True)
class WordLiteral:
    """A constant, as the bit pattern of a word (integers are sign-extended)."""

    pattern: int
    type: Type


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """The value of a column."""

    column: int
    type: Type


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """What a port takes in a firing; zero if it takes nothing."""

    port: int
    type: Type


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a read of a register file returns in a firing."""

    read: int
    type: Type


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Operation:
    """An operator on values; operations of a PE are numbered."""

    number: int
    operator: Op | Special
    operands: tuple[Value, ...]
    type: Type


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StaticChoice:
    """One of two values, chosen by a column."""

    column: int
    if_true: Value
    if_false: Value
    type: Type


Value = WordLiteral | Decided | Arrival | Kept | Operation | StaticChoice


def pattern_of(number: int | float | bool, type: Type) -> int:
    """A number of a type as the bit pattern of a word."""
    if type.is_float:
        return int(np.float64(number).view(np.uint64))
    return int(number) % (1 << WORD)


class Columns:
    """Static expressions of a PE, each once."""

    def __init__(self) -> None:
        self.exprs: list[Expr] = []
        self._known: dict[Expr, int] = {}

    def of(self, expr: Expr) -> int:
        """The number of the column of an expression."""
        if expr not in self._known:
            self._known[expr] = len(self.exprs)
            self.exprs.append(expr)
        return self._known[expr]


class ValueReader:
    """Reads the expressions of one PE's body at its point in space."""

    def __init__(
        self,
        subject: str,
        location: SourceLocation | None,
        parameter: Callable[[str, Type], Value],
    ) -> None:
        self._parameter = parameter
        self.columns = Columns()
        self.locals: dict[str, Value] = {}
        self._subject = subject
        self._location = location
        self._made: dict[tuple[object, ...], Value] = {}
        self._operations = 0

    def value(self, expr: Expr) -> Value:
        """The value of an expression."""
        self.checked_type(expr.type)
        if is_static(expr) and not isinstance(expr, Select):
            return self._static(expr)
        match expr:
            case Local(name=name):
                return self.locals[name]
            case Parameter(name=name, type=type):
                return self._parameter(name, type)
            case Select(condition=condition, if_true=if_true, if_false=if_false):
                return self._select(condition, if_true, if_false)
            case Cast(value=value, type=type):
                return self._cast(self.value(value), type)
            case Apply(operator=operator, operands=operands, type=type):
                return self._apply(operator, [self.value(operand) for operand in operands], type)
        self._refuse(_LANES)

    def condition(self, expr: Expr | None) -> int | None:
        """The column of a static condition; ``None`` for always."""
        if expr is None:
            return None
        if not is_static(expr):
            names = sorted({t.name for t in walk(expr) if isinstance(t, Parameter)})
            self._refuse(
                f"what it does depends on the parameter {names[0]!r}, and the stream units have "
                "fixed nests: give its value when you lower the design"
            )
        return self.columns.of(expr)

    def checked_type(self, type: Type) -> None:
        """Refuse types that do not fit the words of this machine."""
        if type.lanes > 1:
            self._refuse(_LANES)
        if type.is_bool or type in (INT32, _INT64, Type(Kind.FLOAT, 64)):
            return
        self._refuse(
            f"it computes with {type}; words of this CGRA are float64, and int64 and int32: "
            "declare the inputs with Float(64) or Int(64)"
        )

    def _static(self, expr: Expr) -> Value:
        if not index_names(expr):
            return literal(expr)
        return Decided(column=self.columns.of(expr), type=expr.type)

    def _select(self, condition: Expr, if_true: Expr, if_false: Expr) -> Value:
        sides = self.value(if_true), self.value(if_false)
        if not is_static(condition):
            test = self.value(condition)
            return self.operation(Special.PICK, [test, *sides], sides[0].type)
        key = ("choice", self.columns.of(condition), *map(_key, sides))
        choice = StaticChoice(
            column=self.columns.of(condition),
            if_true=sides[0],
            if_false=sides[1],
            type=sides[0].type,
        )
        return self._made.setdefault(key, choice)

    def _cast(self, value: Value, type: Type) -> Value:
        source = value.type
        if source == type or (source.is_bool and type.is_integer):
            return value
        if source.is_integer and type.is_integer:
            return self._narrow(value) if source.bits < type.bits else value
        if source.is_float and type == INT32:
            return self._saturated(self.operation(Special.CONVERT, [value], _INT64))
        return self.operation(Special.CONVERT, [self._narrow(value)], type)

    def _saturated(self, value: Value) -> Value:
        """An int64, saturated to int32."""
        low, high = (-(1 << 31)) % (1 << WORD), (1 << 31) - 1
        for operator, limit in ((Op.MAXIMUM, low), (Op.MINIMUM, high)):
            bound = WordLiteral(pattern=limit, type=_INT64)
            value = self.operation(operator, [value, bound], _INT64)
        return value

    def _narrow(self, value: Value) -> Value:
        """An int32, sign-extended: sums and products leave the upper half of its word undefined."""
        if value.type != INT32 or isinstance(value, WordLiteral | Decided):
            return value
        if isinstance(value, Operation) and value.operator in _NARROW:
            return value
        half = WordLiteral(pattern=32, type=_INT64)
        raised = self.operation(Op.SHIFT_LEFT, [value, half], _INT64)
        return self.operation(Op.SHIFT_RIGHT, [raised, half], INT32)

    def _apply(self, operator: Op, operands: list[Value], type: Type) -> Value:
        first = operands[0]
        match operator:
            case Op.NEGATE if type.is_integer:
                return self.operation(Op.SUBTRACT, [WordLiteral(pattern=0, type=type), first], type)
            case Op.FLOOR | Op.CEILING if type.is_integer:
                return first
            case Op.ABSOLUTE if type.is_integer:
                negative = self._apply(Op.NEGATE, [first], type)
                return self._apply(Op.MAXIMUM, [first, negative], type)
        if operator in _MISSING:
            self._refuse(
                f"it computes {_MISSING[operator]}, and no cell can: compute that on the host"
            )
        if operator in (Op.FLOOR_DIVIDE, Op.MODULO):
            return self._divided(operator, operands, type)
        if operator in _SENSITIVE:
            operands = [self._narrow(operand) for operand in operands]
        return self.operation(operator, operands, type)

    def _divided(self, operator: Op, operands: list[Value], type: Type) -> Value:
        """Division by a power of two as a shift, and its remainder as a mask."""
        by = operands[1]
        if isinstance(by, WordLiteral) and 0 < by.pattern < 1 << 31:
            number, operands = by.pattern, [self._narrow(operands[0]), by]
            if number & (number - 1) == 0:
                if operator is Op.MODULO:
                    mask = WordLiteral(pattern=number - 1, type=type)
                    return self.operation(Op.AND, [operands[0], mask], type)
                amount = WordLiteral(pattern=number.bit_length() - 1, type=type)
                return self.operation(Op.SHIFT_RIGHT, [operands[0], amount], type)
        self._refuse(
            f"it computes {operator.value} of data, and no cell divides: only powers of two, as "
            "shifts, can be used"
        )

    def operation(self, operator: Op | Special, operands: Sequence[Value], type: Type) -> Value:
        """An operation; equal operands give the same object."""
        key = (operator, type, *map(_key, operands))
        if key not in self._made:
            self._made[key] = Operation(
                number=self._operations, operator=operator, operands=tuple(operands), type=type
            )
            self._operations += 1
        return self._made[key]

    def _refuse(self, why: str) -> NoReturn:
        refuse(self._subject, why, self._location)


def literal(expr: Expr) -> WordLiteral:
    """The constant value of an expression without indices."""
    simple = simplify(expr)
    if isinstance(simple, Const):
        return WordLiteral(pattern=pattern_of(simple.value, expr.type), type=expr.type)
    with np.errstate(all="ignore"):
        number = evaluate(simple, {})
    return WordLiteral(pattern=pattern_of(np.asarray(number).item(), expr.type), type=expr.type)


def number_of(literal: WordLiteral) -> Array:
    """The value of a literal as a numpy scalar of its type."""
    word = np.uint64(literal.pattern)
    if literal.type.is_float:
        return word.view(np.float64)
    return word.view(np.int64).astype(literal.type.numpy)


def computed(operation: Operation, operands: Sequence[WordLiteral]) -> WordLiteral:
    """The result of an operation on literals."""
    type = operation.type
    if operation.operator is Special.PICK:
        return operands[1] if operands[0].pattern else operands[2]
    numbers = [number_of(operand) for operand in operands]
    with np.errstate(all="ignore"):
        if operation.operator is Special.CONVERT:
            result = cast_value(numbers[0], type)
        else:
            assert isinstance(operation.operator, Op)
            common = operands[-1].type.numpy
            result = apply_operator(
                operation.operator, type, tuple(number.astype(common) for number in numbers)
            )
    return WordLiteral(pattern=pattern_of(np.asarray(result).item(), type), type=type)


def _key(value: Value) -> object:
    return id(value) if isinstance(value, Operation | StaticChoice) else value


_INT64 = Type(Kind.INT, 64)

_NARROW = (Op.SHIFT_RIGHT, Op.MINIMUM, Op.MAXIMUM)
"""Operators whose results of type int32 are sign-extended words."""

_SENSITIVE = (
    Op.MINIMUM,
    Op.MAXIMUM,
    Op.EQUAL,
    Op.NOT_EQUAL,
    Op.LESS,
    Op.LESS_EQUAL,
    Op.GREATER,
    Op.GREATER_EQUAL,
    Op.SHIFT_RIGHT,
)
"""Operators for which the upper half of an int32's word matters."""

_LANES = "it computes with vectors, and words of this CGRA are scalars: drop vload, unroll instead"

_MISSING = {
    Op.DIVIDE: "a quotient",
    Op.SQUARE_ROOT: "a square root",
    Op.RECIPROCAL_SQUARE_ROOT: "a reciprocal square root",
    Op.EXPONENTIAL: "exp",
    Op.LOGARITHM: "log",
    Op.HYPERBOLIC_TANGENT: "tanh",
    Op.ERROR_FUNCTION: "erf",
    Op.FLOOR: "floor",
    Op.CEILING: "ceil",
}
