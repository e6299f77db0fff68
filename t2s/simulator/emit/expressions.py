"""Expressions and operators in LLVM: the meaning of ``core.ops`` and ``core.expr.evaluate``.

Both sides of a ``Select`` are computed, which is safe: nothing here traps or touches memory.  No
fast-math flag is ever set, so LLVM neither reorders nor fuses floating-point operations.  A NaN
stays a NaN, but which payload it carries is left to the machine, as it is in numpy.
"""

from __future__ import annotations

from collections.abc import Mapping

from t2s.core.errors import InternalError
from t2s.core.expr import (
    Apply,
    Broadcast,
    Cast,
    Const,
    CountBits,
    Expr,
    Index,
    Insert,
    LaneNumbers,
    Local,
    LowestBits,
    Parameter,
    RankBits,
    ReduceLanes,
    Select,
    SetBits,
)
from t2s.core.ops import C_FUNCTIONS, OPERATORS, Op
from t2s.core.types import Kind, Type
from t2s.simulator.emit.bits import count_bits, lowest_bits, rank_bits, set_bits
from t2s.simulator.emit.builder import Builder
from t2s.simulator.emit.casts import convert, expand, narrow
from t2s.simulator.emit.llvm import (
    DOUBLE,
    I64,
    POINTER,
    Value,
    constant_vector,
    integer,
    undefined,
    vector_type,
)
from t2s.simulator.emit.representation import (
    constant,
    is_narrow,
    pick_lanes,
    register_type,
    require_type,
)

_PREDICATES = {
    Op.EQUAL: "==",
    Op.NOT_EQUAL: "!=",
    Op.LESS: "<",
    Op.LESS_EQUAL: "<=",
    Op.GREATER: ">",
    Op.GREATER_EQUAL: ">=",
}
_INTRINSICS = {
    Op.ABSOLUTE: "fabs",
    Op.SQUARE_ROOT: "sqrt",
    Op.FLOOR: "floor",
    Op.CEILING: "ceil",
    Op.FUSED_MULTIPLY_ADD: "fma",
}
"""Operators on floating-point numbers that LLVM has, and rounds as they say."""


class ExpressionEmitter:
    """Emits expressions at the builder's position.

    ``names`` gives the values of indices, parameters and locals; ``functions`` has the
    addresses of functions of the C library.
    """

    def __init__(
        self, builder: Builder, names: Mapping[str, Value], functions: Mapping[Op, Value]
    ) -> None:
        self._builder = builder
        self._names = names
        self._functions = functions

    def emit(self, expr: Expr) -> Value:
        """The value of an expression without reads."""
        builder = self._builder
        match expr:
            case Const(value=value, type=type):
                return constant(builder, value, type)
            case Index(name=name) | Parameter(name=name) | Local(name=name):
                return self._names[name]
            case Apply(operator=operator, operands=operands):
                values = [self._operand(operand, operands[0].type) for operand in operands]
                return self.apply(operator, operands[0].type, values)
            case Select(condition=condition, if_true=if_true, if_false=if_false, type=type):
                return builder.select(
                    self.emit(condition),
                    self._operand(if_true, type),
                    self._operand(if_false, type),
                )
            case Cast(value=value, type=type):
                return convert(builder, self.emit(value), value.type, type)
            case Broadcast(value=value, type=type):
                return builder.splat(self.emit(value), type.lanes)
            case LaneNumbers(type=type):
                return constant_vector(range(type.lanes), register_type(type.scalar))
            case ReduceLanes(operator=operator, value=value):
                return self._reduce(operator, value.type, self.emit(value))
            case Insert(vector=vector, lane=lane, value=value, type=type):
                return self._insert(self.emit(vector), lane, self._operand(value, type.scalar))
            case CountBits(words=words):
                return count_bits(builder, self.emit(words))
            case LowestBits(words=words, type=type):
                return lowest_bits(builder, self.emit(words), type)
            case RankBits(words=words, bits=bits):
                return rank_bits(builder, self.emit(words), self.emit(bits))
            case SetBits(words=words, bits=bits):
                return set_bits(builder, self.emit(words), self.emit(bits))
        raise InternalError(f"{expr.__class__.__name__} in the body of a PE")

    def wide(self, index: Expr) -> Value:
        """An integer expression as ``i64``, for addresses."""
        return convert(self._builder, self.emit(index), index.type, Type(Kind.INT, 64))

    def _operand(self, operand: Expr, type: Type) -> Value:
        require_type(operand.type, type, "an operand")
        return self.emit(operand)

    def _insert(self, vector: Value, lane: Expr, value: Value) -> Value:
        """By a comparison with every lane's number, so that no lane at all is fine too."""
        builder, lanes = self._builder, vector.type.lanes
        numbers = constant_vector(range(lanes), I64)
        here = builder.icmp_signed("==", builder.splat(self.wide(lane), lanes), numbers)
        return builder.select(here, builder.splat(value, lanes), vector)

    def _reduce(self, operator: Op, type: Type, vector: Value) -> Value:
        """The balanced tree of ``core.expr.reduce_lanes``."""
        lanes = type.lanes
        while lanes > 1:
            even, odd = list(range(0, lanes - lanes % 2, 2)), list(range(1, lanes, 2))
            halves = [pick_lanes(self._builder, vector, picked) for picked in (even, odd)]
            paired = self.apply(operator, type.with_lanes(len(even)), halves)
            if lanes % 2:
                last = pick_lanes(self._builder, vector, [lanes - 1])
                paired = self._append(paired, last, len(even))
            vector, lanes = paired, len(even) + lanes % 2
        return vector

    def _append(self, values: Value, last: Value, count: int) -> Value:
        """A vector of the ``count`` lanes of ``values`` and one more."""
        builder = self._builder
        longer = vector_type(last.type, count + 1)
        if count == 1:
            widened = builder.insert_element(undefined(longer), values, 0)
        else:
            lanes = [min(lane, count - 1) for lane in range(count + 1)]
            widened = builder.shuffle_vector(values, undefined(values.type), lanes)
        return builder.insert_element(widened, last, count)

    def apply(self, operator: Op, type: Type, operands: list[Value]) -> Value:
        """An operator on values of one type."""
        if OPERATORS[operator].comparison:
            return self._compare(operator, type, operands)
        match operator:
            case Op.MINIMUM | Op.MAXIMUM:
                left, right = operands
                order = Op.LESS if operator is Op.MINIMUM else Op.GREATER
                return self._builder.select(self._compare(order, type, [right, left]), right, left)
            case Op.AND:
                return self._builder.and_(*operands)
            case Op.OR:
                return self._builder.or_(*operands)
            case Op.XOR:
                return self._builder.xor(*operands)
            case Op.NOT:
                return self._builder.not_(*operands)
        if not type.is_float:
            return self._integer(operator, type, operands)
        if is_narrow(type) and operator in (Op.NEGATE, Op.ABSOLUTE):
            return self._sign_bit(operator, operands[0])
        if operator is Op.RECIPROCAL_SQUARE_ROOT:
            return self._reciprocal_square_root(type, operands[0])
        if operator in C_FUNCTIONS:
            return self._in_c(operator, type, operands[0])
        wide = [expand(self._builder, operand, type) for operand in operands]
        return narrow(self._builder, self._float(operator, wide), type)

    def _compare(self, operator: Op, type: Type, operands: list[Value]) -> Value:
        predicate = _PREDICATES[operator]
        if type.is_float:
            left, right = (expand(self._builder, operand, type) for operand in operands)
            if operator is Op.NOT_EQUAL:
                return self._builder.fcmp_unordered(predicate, left, right)
            return self._builder.fcmp_ordered(predicate, left, right)
        signed = type.kind is Kind.INT
        compare = self._builder.icmp_signed if signed else self._builder.icmp_unsigned
        return compare(predicate, *operands)

    def _float(self, operator: Op, operands: list[Value]) -> Value:
        builder = self._builder
        match operator:
            case Op.ADD:
                return builder.fadd(*operands)
            case Op.SUBTRACT:
                return builder.fsub(*operands)
            case Op.MULTIPLY:
                return builder.fmul(*operands)
            case Op.DIVIDE:
                return builder.fdiv(*operands)
            case Op.NEGATE:
                return builder.fneg(*operands)
        if operator in _INTRINSICS:
            type = operands[0].type
            return builder.intrinsic(f"llvm.{_INTRINSICS[operator]}.{type.suffix}", type, operands)
        raise InternalError(f"operator {operator.value} on floating-point numbers")

    def _sign_bit(self, operator: Op, value: Value) -> Value:
        """Negation and absolute value of 16-bit floats, on their bit patterns."""
        if operator is Op.NEGATE:
            return self._builder.xor(value, integer(0x8000, value.type))
        return self._builder.and_(value, integer(0x7FFF, value.type))

    def _reciprocal_square_root(self, type: Type, value: Value) -> Value:
        """In float64, rounded once."""
        double = Type(Kind.FLOAT, 64, type.lanes)
        wide = convert(self._builder, value, type, double)
        ones = constant(self._builder, 1.0, double)
        root = self._float(Op.SQUARE_ROOT, [wide])
        return convert(self._builder, self._builder.fdiv(ones, root), double, type)

    def _in_c(self, operator: Op, type: Type, value: Value) -> Value:
        """Through the C library in float64, lane by lane, rounded once."""
        builder = self._builder
        double = Type(Kind.FLOAT, 64, type.lanes)
        wide = convert(builder, value, type, double)
        function = builder.inttoptr(self._functions[operator], POINTER)
        if type.lanes == 1:
            return convert(builder, builder.call_at(function, DOUBLE, [wide]), double, type)
        result = undefined(register_type(double))
        for lane in range(type.lanes):
            one = builder.call_at(function, DOUBLE, [builder.extract_element(wide, lane)])
            result = builder.insert_element(result, one, lane)
        return convert(builder, result, double, type)

    def _integer(self, operator: Op, type: Type, operands: list[Value]) -> Value:
        builder = self._builder
        match operator:
            case Op.ADD:
                return builder.add(operands[0], operands[1])
            case Op.SUBTRACT:
                return builder.sub(operands[0], operands[1])
            case Op.MULTIPLY:
                return builder.mul(operands[0], operands[1])
            case Op.FUSED_MULTIPLY_ADD:
                return builder.add(builder.mul(operands[0], operands[1]), operands[2])
            case Op.NEGATE:
                return builder.neg(*operands)
            case Op.ABSOLUTE:
                negative = builder.icmp_signed("<", operands[0], integer(0, operands[0].type))
                return (
                    builder.select(negative, builder.neg(*operands), *operands)
                    if type.kind is Kind.INT
                    else operands[0]
                )
            case Op.FLOOR_DIVIDE | Op.MODULO:
                left, right = operands
                signed = type.kind is Kind.INT
                divide = self._divide_signed if signed else self._divide_unsigned
                return divide(operator, left, right)
            case Op.SHIFT_LEFT | Op.SHIFT_RIGHT:
                return self._shift(operator, type, *operands)
        raise InternalError(f"operator {operator.value} on integers")

    def _shift(self, operator: Op, type: Type, value: Value, amount: Value) -> Value:
        """By the width or more nothing is left but the sign; LLVM leaves that undefined."""
        builder = self._builder
        last = integer(type.bits - 1, amount.type)
        beyond = builder.icmp_unsigned(">", amount, last)
        amount = builder.select(beyond, last, amount)
        if operator is Op.SHIFT_RIGHT and type.kind is Kind.INT:
            return builder.ashr(value, amount)
        shift = builder.shl if operator is Op.SHIFT_LEFT else builder.lshr
        return builder.select(beyond, integer(0, value.type), shift(value, amount))

    def _divide_unsigned(self, operator: Op, left: Value, right: Value) -> Value:
        builder = self._builder
        nothing, one = integer(0, right.type), integer(1, right.type)
        by_zero = builder.icmp_unsigned("==", right, nothing)
        divisor = builder.select(by_zero, one, right)
        divide = builder.udiv if operator is Op.FLOOR_DIVIDE else builder.urem
        return builder.select(by_zero, nothing, divide(left, divisor))

    def _divide_signed(self, operator: Op, left: Value, right: Value) -> Value:
        """Towards minus infinity; divisors 0 and -1, which could trap, are taken out."""
        builder = self._builder
        nothing, one = integer(0, right.type), integer(1, right.type)
        by_zero = builder.icmp_signed("==", right, nothing)
        by_minus_one = builder.icmp_signed("==", right, integer(-1, right.type))
        divisor = builder.select(builder.or_(by_zero, by_minus_one), one, right)
        remainder = builder.srem(left, divisor)
        opposite = builder.icmp_signed("<", builder.xor(remainder, divisor), nothing)
        inexact = builder.icmp_signed("!=", remainder, nothing)
        correct = builder.and_(inexact, opposite)
        if operator is Op.MODULO:
            return builder.select(correct, builder.add(remainder, divisor), remainder)
        truncated = builder.sdiv(left, divisor)
        quotient = builder.select(correct, builder.sub(truncated, one), truncated)
        negated = builder.select(by_minus_one, builder.neg(left), quotient)
        return builder.select(by_zero, nothing, negated)
