"""Expressions of a PE's body as C expressions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from t2s.backends.kernels.dialect import literal
from t2s.backends.kernels.digit_counters import (
    DigitCounters,
    LoopDigit,
    digit_of,
    is_power_of_two,
)
from t2s.backends.kernels.kernel_ast import CastTo
from t2s.backends.kernels.operators import Helpers
from t2s.backends.text.expressions import (
    Name,
    TargetExpression,
    Ternary,
    binary,
    number,
)
from t2s.core.expr import (
    Apply,
    Broadcast,
    Cast,
    Const,
    Expr,
    Index,
    Insert,
    LaneNumbers,
    Local,
    Parameter,
    ReduceLanes,
    Select,
    const,
    simplify,
)
from t2s.core.intervals import Interval, interval, non_negative
from t2s.core.ops import Op
from t2s.core.types import INT32, Kind, Type
from t2s.core.walk import walk

_LONGEST_INT = 2**31


class Expressions:
    """Lowers the expressions of one kernel.

    ``names`` maps indices and parameters to variables; ``locals`` maps the locals bound so far to a
    variable, or to an expression to use in place of one.  ``counters`` collects the digits of loops
    that become variables.
    """

    def __init__(
        self,
        helpers: Helpers,
        ranges: Mapping[str, Interval],
        names: Mapping[str, str],
        counters: DigitCounters,
    ) -> None:
        self._helpers = helpers
        self.counters = counters
        self._ranges = ranges
        self._names = names
        self.locals: dict[str, TargetExpression] = {}

    def variable(self, name: str) -> str:
        """The variable of an index or parameter."""
        return self._names[name]

    def lower(self, expr: Expr) -> TargetExpression:
        """The C expression of the same value."""
        match expr:
            case Const(value=value, type=type) if type.lanes == 1:
                return literal(value, type)
            case Const(value=value, type=type):
                if not value and not self._helpers.dialect.is_struct(type):
                    return self._helpers.dialect.zero(type)
                return self._helpers.splat(type, literal(value, type.scalar))
            case Index(name=name) | Parameter(name=name):
                return Name(name=self._names[name])
            case Local(name=name):
                return self.locals[name]
            case Apply():
                return self._apply(expr)
            case Select(condition=condition, if_true=if_true, if_false=if_false, type=type):
                test, sides = self.lower(condition), (self.lower(if_true), self.lower(if_false))
                if condition.type.lanes > 1:
                    return self._helpers.choose(type, test, sides)
                return Ternary(condition=test, if_true=sides[0], if_false=sides[1])
            case Cast(value=value, type=type):
                return self._helpers.converted(self.lower(value), value.type, type)
            case Broadcast(value=value, type=type):
                return self._helpers.splat(type, self.lower(value))
            case LaneNumbers(type=type):
                return self._helpers.lane_numbers(type)
            case ReduceLanes(operator=operator, value=value):
                return self._reduce(operator, value)
            case Insert(vector=vector, lane=lane, value=value, type=type):
                operands = (self.lower(vector), self.lower(lane), self.lower(value))
                return self._helpers.inserted(type, operands)
        raise TypeError(f"{expr.__class__.__name__} has no place in the body of a PE")

    def _apply(self, expr: Apply) -> TargetExpression:
        match expr:
            case Apply(operator=Op.ADD, operands=(left, Const(value=value, type=type))) if (
                type.is_integer and type.lanes == 1 and value < 0
            ):
                positive = Const(value=-value, type=type)
                return self._apply(left - positive)
            case Apply(operator=Op.FLOOR_DIVIDE | Op.MODULO, operands=(left, right)):
                return self._division(expr, left, right)
        return self._operation(expr)

    def _operation(self, expr: Apply) -> TargetExpression:
        operand_type = expr.operands[0].type
        operands = tuple(self.lower(operand) for operand in expr.operands)
        return self._helpers.operation(expr.operator, operand_type, operands)

    # ---------------------------------------------------------------------------- division

    def _division(self, expr: Apply, left: Expr, right: Expr) -> TargetExpression:
        """A digit of a loop as a counter, powers of two by bits, and the rest by division.

        The loops over PEs are unrolled, so expressions of these only are constants.
        """
        digit_form = digit_of(expr, self._ranges)
        if digit_form is not None and self._moves(digit_form[0].base):
            digit, offset = digit_form
            if digit.is_bits:
                return _plus_constant(self._bits(digit), offset)
            if isinstance(digit.base, Index):
                return _plus_constant(self._counter(digit), offset)
        match right:
            case Const(value=int() as by, type=type) if (
                self._moves(left) and type.lanes == 1 and by > 0 and is_power_of_two(by)
            ):
                value = self.lower(left)
                if expr.operator is Op.FLOOR_DIVIDE:
                    return _shifted(value, by)
                return binary("&", value, literal(by - 1, type))
        if self._plain(left, right):
            sign = "/" if expr.operator is Op.FLOOR_DIVIDE else "%"
            return binary(sign, self.lower(left), self.lower(right))
        return self._operation(expr)

    def _moves(self, expr: Expr) -> bool:
        """Whether the value depends on more than the PE's position."""
        return any(
            not isinstance(term, Index) or term.name in self.counters.loops
            for term in walk(expr)
            if isinstance(term, Index | Parameter | Local)
        )

    def _bits(self, digit: LoopDigit) -> TargetExpression:
        ahead, shift = divmod(digit.shift, digit.scale)
        if digit.of is None:
            value = self.lower(simplify(_plus(digit.base, const(shift))))
        else:
            whole = self._bits(digit.of) if digit.of.is_bits else self._counter(digit.of)
            value = _plus_constant(whole, shift)
        ahead = ahead if digit.count is None else ahead % digit.count
        value = _plus_constant(_shifted(value, digit.scale), ahead)
        return value if digit.count is None else binary("&", value, number(digit.count - 1))

    def _counter(self, digit: LoopDigit) -> TargetExpression:
        """The counter of a digit; neighboring values modulo a power of two share one."""
        count = digit.count
        if count is None or is_power_of_two(count):
            ahead, shift = divmod(digit.shift, digit.scale)
            counter = Name(name=self.counters.variable(replace(digit, shift=shift)))
            if count is None:
                return _plus_constant(counter, ahead)
            ahead %= count
            if ahead and count == 2:
                return binary("-", number(1), counter)
            moved = _plus_constant(counter, ahead)
            return binary("&", moved, number(count - 1)) if ahead else counter
        shift = digit.shift % (digit.scale * count)
        return Name(name=self.counters.variable(replace(digit, shift=shift)))

    def _plain(self, left: Expr, right: Expr) -> bool:
        """Whether C's own division is right: no negative operand, and no zero divisor."""
        divisor = interval(right, self._ranges)
        return non_negative(left, self._ranges) and divisor is not None and divisor[0] > 0

    def _reduce(self, operator: Op, value: Expr) -> TargetExpression:
        match value:
            case Apply(operator=Op.MULTIPLY, operands=(left, right)) if operator is Op.ADD:
                return self._helpers.dot(value.type, self.lower(left), self.lower(right))
        if value.type.lanes == 1:
            return self.lower(value)
        return self._helpers.reduce(operator, value.type, self.lower(value))

    def address(self, indices: tuple[Expr, ...], shape: tuple[int, ...]) -> TargetExpression:
        """The row-major position of an element: ``(8 * i + ii) * 64 + k``."""
        if prod(shape) > _LONGEST_INT:
            return self._long_address(indices, shape)
        position: Expr = const(0)
        for index, size in zip(indices, shape, strict=True):
            scaled = position * size
            position = _plus(scaled, _as_int(index))
        return self.lower(simplify(position))

    def _long_address(self, indices: tuple[Expr, ...], shape: tuple[int, ...]) -> TargetExpression:
        """The same for a tensor of more than 2^31 elements, in 64 bits throughout."""
        position: TargetExpression | None = None
        for index, size in zip(indices, shape, strict=True):
            term = self.lower(index)
            if position is None:
                position = CastTo(
                    type=self._helpers.dialect.scalar_name(Type(Kind.INT, 64)), values=(term,)
                )
            else:
                position = binary("+", binary("*", position, literal(size, INT32)), term)
        return position or literal(0, INT32)


def _shifted(value: TargetExpression, divisor: int) -> TargetExpression:
    """Floored division by a power of two."""
    return value if divisor == 1 else binary(">>", value, number(divisor.bit_length() - 1))


def _plus_constant(value: TargetExpression, constant: int) -> TargetExpression:
    if not constant:
        return value
    return binary("+" if constant > 0 else "-", value, number(abs(constant)))


def _plus(left: Expr, right: Expr) -> Expr:
    """``left + right`` without the parentheses of ``left + (a + b)``."""
    match right:
        case Apply(operator=Op.ADD, operands=(first, second)):
            return _plus(left, first) + second
    return left + right


def _as_int(index: Expr) -> Expr:
    return index if index.type == INT32 else Cast(value=index, type=INT32)
