"""Values, casts and operators in LLVM: the meaning of ``core.ops`` and ``core.expr.evaluate``.

Both sides of a ``Select`` are computed, which is safe: nothing here traps or touches memory.  No
fast-math flags are set, so LLVM neither reorders nor fuses floating-point operations.  NaN payloads
are unspecified, as in numpy.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import gcd, prod

import numpy as np

from t2s.core.errors import InternalError
from t2s.core.expr import (
    Apply,
    Arrange,
    Broadcast,
    Cast,
    Const,
    Contract,
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
    ReduceRows,
    Select,
    SetBits,
)
from t2s.core.ops import C_FUNCTIONS, OPERATORS, Op
from t2s.core.types import Kind, Type
from t2s.llvm.ir import (
    DOUBLE,
    FLOAT,
    HALF,
    I1,
    I8,
    I16,
    I32,
    I64,
    POINTER,
    Builder,
    LLVMType,
    Slot,
    Value,
    constant_vector,
    integer,
    integer_type,
    null,
    undefined,
    vector_type,
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
"""Floating-point operators with an LLVM intrinsic of the same rounding."""

_UNROLLED = 16
"""Most lanes for which calls of the C library are written out."""


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
            case Arrange(value=value, shape=shape, strides=strides):
                return arranged(builder, self.emit(value), value.type, shape, strides)
            case ReduceRows(operator=operator, value=value, type=type):
                row = type.with_lanes(value.type.lanes // type.lanes)
                reduce = partial(self._reduce, operator, row)
                return rows_reduced(builder, reduce, self.emit(value), value.type, type.lanes)
            case Contract(left=left, right=right):
                return contracted(self, builder, expr, self.emit(left), self.emit(right))
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
        """Insert by comparing with every lane number, so that an index out of range is harmless."""
        builder, lanes = self._builder, vector.type.lanes
        numbers = constant_vector(range(lanes), I64)
        is_lane = builder.icmp_signed("==", builder.splat(self.wide(lane), lanes), numbers)
        return builder.select(is_lane, builder.splat(value, lanes), vector)

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
        """Negation and absolute value of 16-bit floats, on bit patterns."""
        if operator is Op.NEGATE:
            return self._builder.xor(value, integer(0x8000, value.type))
        return self._builder.and_(value, integer(0x7FFF, value.type))

    def _reciprocal_square_root(self, type: Type, value: Value) -> Value:
        """The reciprocal square root in float64, rounded once."""
        double = Type(Kind.FLOAT, 64, type.lanes)
        wide = convert(self._builder, value, type, double)
        ones = constant(self._builder, 1.0, double)
        root = self._float(Op.SQUARE_ROOT, [wide])
        return convert(self._builder, self._builder.fdiv(ones, root), double, type)

    def _in_c(self, operator: Op, type: Type, value: Value) -> Value:
        """A function of the C library in float64, lane by lane, rounded once."""
        builder = self._builder
        double = Type(Kind.FLOAT, 64, type.lanes)
        wide = convert(builder, value, type, double)
        function = builder.inttoptr(self._functions[operator], POINTER)
        if type.lanes == 1:
            return convert(builder, builder.call_at(function, DOUBLE, [wide]), double, type)
        if type.lanes > _UNROLLED:
            called = _by_lane(
                builder, lambda lane: builder.call_at(function, DOUBLE, [lane]), wide, double
            )
            return convert(builder, called, double, type)
        result = undefined(register_type(double))
        for lane in range(type.lanes):
            lane_result = builder.call_at(function, DOUBLE, [builder.extract_element(wide, lane)])
            result = builder.insert_element(result, lane_result, lane)
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
        """A shift; by the width or more only the sign is left, which LLVM leaves undefined."""
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
        """Division towards minus infinity; 0 and -1, which could trap, are special cases."""
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


# The representation of t2s types in LLVM registers and in memory.
#
# ================  =========================  ======================
# type              register                   memory (one lane)
# ================  =========================  ======================
# bool              ``i1``                     a byte, 0 or 1
# integers          ``i8`` to ``i64``          the same
# float32, float64  ``float``, ``double``      the same
# 16-bit floats     ``i16``, the bit pattern   the same
# ================  =========================  ======================
#
# A value with lanes is an LLVM vector of these.  16-bit floats are computed in float32 and rounded
# to nearest even after every operator, as numpy and ``ml_dtypes`` do.

ALIGNMENT = 64
"""The alignment of memory for values: a cache line."""


def require_type(type: Type, expected: Type, what: str) -> None:
    """Raise ``InternalError`` unless the types agree, which earlier checks guarantee."""
    if (type.kind, type.bits, type.lanes) != (expected.kind, expected.bits, expected.lanes):
        raise InternalError(f"{what} has type {type} instead of {expected}")


def is_narrow(type: Type) -> bool:
    """Whether this is a 16-bit float, which is held as a bit pattern."""
    return type.is_float and type.bits == 16


def vector_of(scalar: LLVMType, lanes: int) -> LLVMType:
    """The LLVM type of ``lanes`` scalars (the scalar itself for one lane)."""
    return scalar if lanes == 1 else vector_type(scalar, lanes)


def register_type(type: Type) -> LLVMType:
    """The LLVM type of a value in a register."""
    match type:
        case Type(kind=Kind.BOOL):
            scalar = I1
        case Type(kind=Kind.FLOAT, bits=32):
            scalar = FLOAT
        case Type(kind=Kind.FLOAT, bits=64):
            scalar = DOUBLE
        case _:
            scalar = integer_type(type.bits)
    return vector_of(scalar, type.lanes)


def zero(type: Type) -> Value:
    """The zero of a type, all lanes."""
    return null(register_type(type))


def constant(builder: Builder, value: int | float | bool, type: Type) -> Value:
    """A literal, rounded as numpy rounds it, in all lanes."""
    with np.errstate(all="ignore"):
        bits = np.asarray(value, type.numpy).tobytes()
    pattern = int.from_bytes(bits, sys.byteorder)
    if type.is_bool:
        return integer(int(pattern != 0), register_type(type))
    bit_type = vector_of(integer_type(type.bits), type.lanes)
    return builder.bitcast(integer(pattern, bit_type), register_type(type))


def pick_lanes(builder: Builder, vector: Value, lanes: list[int]) -> Value:
    """The given lanes of a vector; a single lane becomes a scalar."""
    if len(lanes) == 1:
        return builder.extract_element(vector, lanes[0])
    return builder.shuffle_vector(vector, undefined(vector.type), lanes)


def offset_by(builder: Builder, pointer: Value, offset: Value | int) -> Value:
    """The pointer ``offset`` bytes further on."""
    return builder.offset(pointer, integer(offset) if isinstance(offset, int) else offset)


def token_alignment(type: Type) -> int:
    """The alignment of the elements of a packed array that starts on a cache line."""
    return gcd(type.bytes, ALIGNMENT)


def load_value(builder: Builder, pointer: Value, type: Type, align: int) -> Value:
    """Load a value of a t2s type."""
    if type.is_bool:
        stored = builder.load(pointer, vector_of(I8, type.lanes), align)
        return builder.icmp_unsigned("!=", stored, null(stored.type))
    return builder.load(pointer, register_type(type), align)


def store_value(builder: Builder, value: Value, pointer: Value, type: Type, align: int) -> None:
    """Store a value of a t2s type."""
    stored = builder.zext(value, vector_of(I8, type.lanes)) if type.is_bool else value
    builder.store(stored, pointer, align)


# Conversions between t2s types in LLVM, with the rounding and saturation of ``cast_value``.


def convert(builder: Builder, value: Value, source: Type, target: Type) -> Value:
    """``value`` of type ``source`` as ``target``; both have the same number of lanes."""
    if (source.kind, source.bits) == (target.kind, target.bits):
        return value
    if source.is_float:
        return _from_float(builder, value, source, target)
    if target.is_bool:
        return builder.icmp_unsigned("!=", value, null(value.type))
    if target.is_float:
        return _integer_to_float(builder, value, source, target)
    return _resize(builder, value, source, target)


def expand(builder: Builder, value: Value, type: Type) -> Value:
    """A float in a type with arithmetic: 16-bit floats become float32."""
    if not is_narrow(type):
        return value
    wide = vector_of(FLOAT, type.lanes)
    if type.kind is Kind.FLOAT:
        half = builder.bitcast(value, vector_of(HALF, type.lanes))
        return builder.fpext(half, wide)
    bits = builder.zext(value, vector_of(I32, type.lanes))
    return builder.bitcast(builder.shl(bits, integer(16, bits.type)), wide)


def narrow(builder: Builder, value: Value, type: Type) -> Value:
    """The inverse of ``expand``: round a float32 to nearest even in ``type``."""
    if not is_narrow(type):
        return value
    if type.kind is Kind.FLOAT:
        half = builder.fptrunc(value, vector_of(HALF, type.lanes))
        return builder.bitcast(half, vector_of(I16, type.lanes))
    bits = builder.bitcast(value, vector_of(I32, type.lanes))

    def number(pattern: int) -> Value:
        return integer(pattern, bits.type)

    top = builder.lshr(bits, number(16))
    odd = builder.and_(top, number(1))
    rounded = builder.lshr(builder.add(builder.add(bits, number(0x7FFF)), odd), number(16))
    quiet = builder.or_(builder.and_(top, number(0x8000)), number(0x7FC0))
    unordered = builder.is_nan(value)
    return builder.trunc(builder.select(unordered, quiet, rounded), vector_of(I16, type.lanes))


def _resize(builder: Builder, value: Value, source: Type, target: Type) -> Value:
    """Convert between integers (or from a bool): wrap around, or extend by the source's sign."""
    result = register_type(target)
    if source.is_bool or (target.bits > source.bits and source.kind is Kind.UINT):
        return builder.zext(value, result)
    if target.bits > source.bits:
        return builder.sext(value, result)
    return builder.trunc(value, result) if target.bits < source.bits else value


def _integer_to_float(builder: Builder, value: Value, source: Type, target: Type) -> Value:
    """Round to nearest even; to a 16-bit float via float32, as numpy does."""
    wide = vector_of(FLOAT, target.lanes) if is_narrow(target) else register_type(target)
    to_float = builder.sitofp if source.kind is Kind.INT else builder.uitofp
    return narrow(builder, to_float(value, wide), target)


def _from_float(builder: Builder, value: Value, source: Type, target: Type) -> Value:
    wide = expand(builder, value, source)
    if target.is_bool:
        return builder.fcmp_unordered("!=", wide, null(wide.type))
    if target.is_integer:
        return _saturate(builder, wide, target)
    if is_narrow(target):
        if source.bits == 64:
            wide = _to_single(builder, wide, target)
        return narrow(builder, wide, target)
    if target.bits == 64:
        return builder.fpext(wide, register_type(target))
    return builder.fptrunc(wide, register_type(target)) if source.bits == 64 else wide


def _saturate(builder: Builder, value: Value, target: Type) -> Value:
    """Truncate towards zero and saturate; NaN becomes 0."""
    result = register_type(target)
    operation = "fptosi" if target.kind is Kind.INT else "fptoui"
    name = f"llvm.{operation}.sat.{result.suffix}.{value.type.suffix}"
    return builder.intrinsic(name, result, [value])


def _to_single(builder: Builder, value: Value, target: Type) -> Value:
    """Convert float64 to float32, on the way to a 16-bit float.

    numpy rounds float64 to float16 once: bits beyond float32 are kept as a sticky last bit (round
    to odd), which makes the second rounding correct.  ``ml_dtypes`` rounds twice.
    """
    single = vector_of(FLOAT, target.lanes)
    if target.kind is Kind.BFLOAT:
        return builder.fptrunc(value, single)
    bits = builder.bitcast(value, vector_of(I64, target.lanes))
    lost = builder.and_(bits, integer((1 << 29) - 1, bits.type))
    inexact = builder.icmp_unsigned("!=", lost, integer(0, bits.type))
    sticky = builder.shl(builder.zext(inexact, bits.type), integer(29, bits.type))
    odd = builder.or_(builder.xor(bits, lost), sticky)
    return builder.fptrunc(builder.bitcast(odd, vector_of(DOUBLE, target.lanes)), single)


# Operators on the bits of words, in LLVM: the meaning of ``core.expr.BitOperator``.
#
# Words are ``i32``, or a vector of them.  Loops work on copies on the stack.


def count_bits(builder: Builder, words: Value) -> Value:
    """The number of bits that are set."""
    ones = _ones(builder, words)
    if not words.type.lanes:
        return ones
    return builder.intrinsic(f"llvm.vector.reduce.add.{words.type.suffix}", I32, [ones])


def lowest_bits(builder: Builder, words: Value, type: Type) -> Value:
    """The numbers of the lowest set bits, in order, as many as there are lanes."""
    count, numbers = words.type.lanes or 1, _slot(builder, type.lanes)
    stored, state = _slot(builder, count), _slot(builder, 2)
    builder.store(words, stored, ALIGNMENT)
    builder.store(integer(-1, register_type(type)), numbers, ALIGNMENT)
    builder.store(integer(0), state)
    with builder.counting(integer(0), integer(count)) as number:
        first = builder.shl(builder.trunc(number, I32), integer(5, I32))
        word = builder.load(_word(builder, stored, number), I32)
        taken, before = builder.load(state, I64), builder.block
        test, take, over = (builder.function.block(name) for name in ("bits", "bit", "over"))
        builder.branch(test)
        builder.position_at_end(test)
        rest, lane = builder.phi(I32), builder.phi(I64)
        some = builder.icmp_signed("!=", rest, integer(0, I32))
        room = builder.icmp_signed("<", lane, integer(type.lanes))
        builder.cbranch(builder.and_(some, room), take, over)
        builder.position_at_end(take)
        at = builder.intrinsic("llvm.cttz.i32", I32, [rest, integer(1, I1)])
        builder.store(builder.add(first, at), _word(builder, numbers, lane))
        fewer = builder.and_(rest, builder.sub(rest, integer(1, I32)))
        rest.add_incoming(word, before)
        rest.add_incoming(fewer, take)
        lane.add_incoming(taken, before)
        lane.add_incoming(builder.add(lane, integer(1)), take)
        builder.branch(test)
        builder.position_at_end(over)
        builder.store(lane, state)
    return builder.load(numbers, register_type(type), ALIGNMENT)


def rank_bits(builder: Builder, words: Value, bits: Value) -> Value:
    """The rank of each bit: the ones in lower words, and below it in its own word."""
    count, lanes, nothing = words.type.lanes or 1, bits.type.lanes or 1, integer(0, I32)
    stored, below, total = (_slot(builder, size) for size in (count + 1, count + 1, 1))
    wanted, ranks = _slot(builder, lanes), _slot(builder, lanes)
    builder.store(words, stored, ALIGNMENT)
    builder.store(nothing, _word(builder, stored, integer(count)))
    builder.store(bits, wanted, ALIGNMENT)
    builder.store(nothing, total)
    with builder.counting(integer(0), integer(count + 1)) as number:
        before = builder.load(total, I32)
        builder.store(before, _word(builder, below, number))
        word = builder.load(_word(builder, stored, number), I32)
        builder.store(builder.add(before, _ones(builder, word)), total)
    with builder.counting(integer(0), integer(lanes)) as lane:
        bit = builder.load(_word(builder, wanted, lane), I32)
        end = integer(32 * count, I32)
        within = builder.select(builder.icmp_unsigned("<", bit, end), bit, end)
        number = builder.zext(builder.lshr(within, integer(5, I32)), I64)
        one = builder.shl(integer(1, I32), builder.and_(within, integer(31, I32)))
        mask = builder.sub(one, integer(1, I32))
        word = builder.load(_word(builder, stored, number), I32)
        smaller = builder.load(_word(builder, below, number), I32)
        rank = builder.add(smaller, _ones(builder, builder.and_(word, mask)))
        negative = builder.icmp_signed("<", bit, nothing)
        rank = builder.select(negative, integer(-1, I32), rank)
        builder.store(rank, _word(builder, ranks, lane))
    return builder.load(ranks, bits.type, ALIGNMENT)


def set_bits(builder: Builder, words: Value, bits: Value) -> Value:
    """Set the bit of each number in its word, ignoring numbers out of range."""
    count, lanes = words.type.lanes or 1, bits.type.lanes or 1
    stored, wanted = _slot(builder, count + 1), _slot(builder, lanes)
    builder.store(words, stored, ALIGNMENT)
    builder.store(bits, wanted, ALIGNMENT)
    with builder.counting(integer(0), integer(lanes)) as lane:
        bit = builder.load(_word(builder, wanted, lane), I32)
        end = integer(32 * count, I32)
        # an extra word behind the last one absorbs numbers out of range
        within = builder.select(builder.icmp_unsigned("<", bit, end), bit, end)
        word = _word(builder, stored, builder.zext(builder.lshr(within, integer(5, I32)), I64))
        one = builder.shl(integer(1, I32), builder.and_(within, integer(31, I32)))
        builder.store(builder.or_(builder.load(word, I32), one), word)
    return builder.load(stored, words.type, ALIGNMENT)


def _ones(builder: Builder, words: Value) -> Value:
    """The number of bits of each word."""
    return builder.intrinsic(f"llvm.ctpop.{words.type.suffix}", words.type, [words])


def _slot(builder: Builder, words: int) -> Slot:
    """Allocate words on the stack."""
    with builder.goto_entry_block():
        return builder.alloca(I32, words, ALIGNMENT)


def _word(builder: Builder, slot: Value, number: Value) -> Value:
    """The address of a word in a slot."""
    return builder.offset(slot, builder.mul(number, integer(4), "nsw"))


# Operators on blocks, in LLVM: the meaning of ``core.expr.BlockOperator``.
#
# Blocks are copied to the stack, and loops go over their lanes.


def arranged(
    builder: Builder, value: Value, source: Type, shape: Sequence[int], strides: Sequence[int]
) -> Value:
    """The lanes of a block in another order, or repeated."""
    if not any(strides) or prod(shape) == 1:
        first = value if source.lanes == 1 else builder.extract_element(value, 0)
        return builder.splat(first, prod(shape))
    given = _stored(builder, value, source)
    type, scalar = source.with_lanes(prod(shape)), source.scalar
    result = _room(builder, type)

    def loops(number: int, at: Value, to: Value) -> None:
        if number == len(shape):
            lane = load_value(builder, _lane(builder, given, at, scalar), scalar, scalar.bytes)
            store_value(builder, lane, _lane(builder, result, to, scalar), scalar, scalar.bytes)
            return
        with builder.counting(integer(0), integer(shape[number])) as index:
            stepped = builder.mul(index, integer(strides[number]), "nsw")
            behind = builder.add(builder.mul(to, integer(shape[number]), "nsw"), index)
            loops(number + 1, builder.add(at, stepped), behind)

    loops(0, integer(0), integer(0))
    return load_value(builder, result, type, ALIGNMENT)


def contracted(
    emitter: ExpressionEmitter, builder: Builder, term: Contract, left: Value, right: Value
) -> Value:
    """The product of two matrices, row by row: each is a vector to which products are added."""
    type, inner = term.type, term.inner
    scalar = type.scalar
    rows, columns = (side.type.lanes // inner for side in (term.left, term.right))
    row = scalar.with_lanes(columns)
    factors = _stored(builder, left, term.left.type)
    others = _stored(builder, right, term.right.type)
    result = _room(builder, type)
    with builder.goto_entry_block():
        total = builder.alloca(register_type(row))

    def products(first: Value, at: Value) -> Value:
        factor = load_value(
            builder, _lane(builder, factors, builder.add(first, at), scalar), scalar, scalar.bytes
        )
        start = _lane(builder, others, builder.mul(at, integer(columns), "nsw"), scalar)
        operands = [builder.splat(factor, columns), load_value(builder, start, row, scalar.bytes)]
        return emitter.apply(term.multiply, row, operands)

    with builder.counting(integer(0), integer(rows)) as number:
        first = builder.mul(number, integer(inner), "nsw")
        builder.store(products(first, integer(0)), total)
        with builder.counting(integer(1), integer(inner)) as at:
            before = builder.load(total, total.kept)
            builder.store(emitter.apply(term.add, row, [before, products(first, at)]), total)
        where = _lane(builder, result, builder.mul(number, integer(columns), "nsw"), scalar)
        store_value(builder, builder.load(total, total.kept), where, row, scalar.bytes)
    return load_value(builder, result, type, ALIGNMENT)


def rows_reduced(
    builder: Builder, reduce: Callable[[Value], Value], value: Value, source: Type, rows: int
) -> Value:
    """The results of ``reduce`` for all rows of a block."""
    return _by_lane(builder, reduce, value, source, source.lanes // rows)


def _by_lane(
    builder: Builder, function: Callable[[Value], Value], value: Value, source: Type, width: int = 1
) -> Value:
    """The results of a function for all lanes, or for all groups of ``width`` lanes."""
    scalar, group = source.scalar, source.with_lanes(width)
    type = source.with_lanes(source.lanes // width)
    given, result = _stored(builder, value, source), _room(builder, type)
    with builder.counting(integer(0), integer(type.lanes)) as number:
        first = _lane(builder, given, builder.mul(number, integer(width), "nsw"), scalar)
        found = function(load_value(builder, first, group, scalar.bytes))
        store_value(builder, found, _lane(builder, result, number, scalar), scalar, scalar.bytes)
    return load_value(builder, result, type, ALIGNMENT)


def _room(builder: Builder, type: Type) -> Slot:
    """Allocate a value on the stack."""
    with builder.goto_entry_block():
        return builder.alloca(I8, type.bytes, ALIGNMENT)


def _stored(builder: Builder, value: Value, type: Type) -> Slot:
    """A value on the stack."""
    slot = _room(builder, type)
    store_value(builder, value, slot, type, ALIGNMENT)
    return slot


def _lane(builder: Builder, start: Value, number: Value, scalar: Type) -> Value:
    """The address of a lane."""
    return builder.offset(start, builder.mul(number, integer(scalar.bytes), "nsw"))
