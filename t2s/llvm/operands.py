"""What the functions of kernels compute with: 64-bit integers, booleans, flat arrays, records.

An operand is known by its type and by the LLVM values that it is; a Python ``int`` is a literal,
which takes the type of the other operand.  Signed and unsigned integers do not mix.  Division and
remainder round down, and everything wraps around.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import reduce
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from t2s.llvm.ir import I1, I32, I64, POINTER, Builder, LLVMType, Value, integer

_WORD = 8
"""Bytes of a word."""

Signed = NDArray[np.int64]
Unsigned = NDArray[np.uint64]
Word = Any  # a 64-bit integer inside compiled code, signed for times, unsigned for positions

F = TypeVar("F", bound=Callable[..., Any])


def inlined(function: F) -> F:
    """Mark a function that is put where it is called."""
    vars(function)[inlined.__name__] = True
    return function


def within(function: F) -> F:
    """Mark a function of its own in machine code, which LLVM may put where it is called."""
    return function


class Untranslatable(Exception):
    """Why kernels cannot say something; whoever knows the line adds it."""


# -- types ----------------------------------------------------------------------------------------


class Argument(Enum):
    """The type of an argument: one-dimensional arrays by their items, or a number.

    ``WORDS`` is an array of ``int64``, the only argument of a kernel that other machine code calls.
    """

    INT32_ARRAY = auto()
    INT64_ARRAY = auto()
    UINT64_ARRAY = auto()
    WORDS = auto()
    INT64 = auto()
    UINT64 = auto()
    BOOLEAN = auto()

    @property
    def is_array(self) -> bool:
        return self in _ITEMS

    @property
    def item(self) -> str:
        """Of an array the type of an element, as numpy calls it."""
        return _ITEMS[self]

    @property
    def words(self) -> int:
        """The 64-bit words in which it is passed: an array as its address and its length."""
        return 2 if self.is_array else 1

    @property
    def llvm(self) -> LLVMType:
        """The type of a number."""
        return I1 if self is Argument.BOOLEAN else I64


_ITEMS = {
    Argument.INT32_ARRAY: "int32",
    Argument.INT64_ARRAY: "int64",
    Argument.UINT64_ARRAY: "uint64",
    Argument.WORDS: "int64",
}


@dataclass(frozen=True, slots=True)
class Record:
    """An argument that is a ``NamedTuple``, by the types of its fields.

    No two arrays of it overlap.
    """

    type: type
    fields: tuple[Argument, ...]

    @property
    def words(self) -> int:
        """The 64-bit words in which it is passed."""
        return sum(item.words for item in self.fields)


ArgumentType = Argument | Record


# -- operands -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KernelNumber:
    """An integer or a boolean, by its ``kind``."""

    value: Value
    kind: Argument


@dataclass(frozen=True, slots=True)
class FlatArray:
    """An array; one with a name overlaps no array with another name."""

    address: Value
    length: Value
    kind: Argument
    name: str = ""

    def _place(self, builder: Builder, index: Scalar) -> Value:
        item = I32 if self.kind is Argument.INT32_ARRAY else I64
        at = integer(index) if isinstance(index, int) else index.value
        return builder.element(self.address, item, at)

    @property
    def _item(self) -> Argument:
        return Argument.UINT64 if self.kind is Argument.UINT64_ARRAY else Argument.INT64

    def load(self, builder: Builder, index: Scalar) -> KernelNumber:
        """An element."""
        place = self._place(builder, index)
        if self.kind is Argument.INT32_ARRAY:
            word = builder.load(place, I32, region=self.name)
            return KernelNumber(builder.sext(word, I64), Argument.INT64)
        return KernelNumber(builder.load(place, I64, region=self.name), self._item)

    def store(self, builder: Builder, index: Scalar, operand: Operand) -> None:
        """Overwrite an element."""
        value = as_kind(builder, operand, self._item)
        if self.kind is Argument.INT32_ARRAY:
            value = builder.trunc(value, I32)
        builder.store(value, self._place(builder, index), region=self.name)


@dataclass(frozen=True, slots=True)
class Fields:
    """A record, whose fields are read where they are used: they are words that do not change."""

    address: Value
    record: Record

    def field(self, builder: Builder, name: str) -> Operand:
        """A field."""
        number = self.record.type._fields.index(name)  # type: ignore[attr-defined]
        at = sum(item.words for item in self.record.fields[:number])
        return passed(builder, self.address, at, self.record.fields[number], name)


Scalar = KernelNumber | int
Operand = Any
"""A ``Scalar``, a ``FlatArray``, ``Fields``, a tuple of operands; ``None`` is the result of a
function that returns nothing; anything else only exists in the translator, such as functions."""


def passed(
    builder: Builder, words: Value, at: int, kind: ArgumentType, name: str = ""
) -> FlatArray | Fields | KernelNumber:
    """The argument of a type that begins at a word."""

    def word(number: int, type: LLVMType) -> Value:
        place = builder.offset(words, integer(_WORD * (at + number)))
        return builder.load(place, type, invariant=True)

    if isinstance(kind, Record):
        return Fields(builder.offset(words, integer(_WORD * at)), kind)
    if kind.is_array:
        return FlatArray(word(0, POINTER), word(1, I64), kind, name)
    value = word(0, I64)
    return KernelNumber(builder.trunc(value, I1) if kind is Argument.BOOLEAN else value, kind)


def type_of(operand: Operand) -> tuple[ArgumentType, str]:
    """What a function is translated for: a type, and the name of an array."""
    match operand:
        case KernelNumber(kind=kind):
            return kind, ""
        case FlatArray(kind=kind, name=name):
            return kind, name
        case Fields(record=record):
            return record, ""
    raise Untranslatable("functions take numbers, arrays and records")


def values_of(operand: Operand) -> list[Value]:
    """What is passed to a function."""
    match operand:
        case KernelNumber(value):
            return [value]
        case FlatArray(address, length):
            return [address, length]
        case Fields(address):
            return [address]
    raise Untranslatable("functions take numbers, arrays and records")


def received(operand: Operand, values: Iterator[Value]) -> Operand:
    """The same operand inside of a function, with its own values."""
    match operand:
        case KernelNumber(kind=kind):
            return KernelNumber(next(values), kind)
        case FlatArray(kind=kind, name=name):
            return FlatArray(next(values), next(values), kind, name)
        case _:
            return Fields(next(values), operand.record)


def constant(value: Any) -> Operand:
    """What Python knows by a name: integers of numpy have a type."""
    if isinstance(value, np.int64 | np.uint64):
        kind = Argument.INT64 if isinstance(value, np.int64) else Argument.UINT64
        return KernelNumber(integer(int(value)), kind)
    return value


def scalar(operand: Operand) -> Scalar:
    """An operand that has to be a number."""
    if not isinstance(operand, KernelNumber | int):
        raise Untranslatable(f"{operand!r} is not a number")
    return operand


def number(operand: Operand) -> Operand:
    """The same, of which a literal has a type."""
    match operand:
        case bool():
            return KernelNumber(integer(int(operand), I1), Argument.BOOLEAN)
        case int():
            return KernelNumber(integer(operand), Argument.INT64)
    return operand


# -- operators ------------------------------------------------------------------------------------

_OPERATORS: dict[type[ast.operator], tuple[Callable[..., int], Callable[..., Value]]] = {
    ast.Add: (operator.add, Builder.add),
    ast.Sub: (operator.sub, Builder.sub),
    ast.Mult: (operator.mul, Builder.mul),
    ast.BitAnd: (operator.and_, Builder.and_),
    ast.BitOr: (operator.or_, Builder.or_),
    ast.BitXor: (operator.xor, Builder.xor),
    ast.LShift: (operator.lshift, Builder.shl),
}
_SIGNS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}


def common_kind(operands: Sequence[Operand]) -> Argument:
    """The type that numbers have in common: literals and booleans become integers."""
    if all(isinstance(operand, bool) or _is_boolean(operand) for operand in operands):
        return Argument.BOOLEAN
    kinds = {number.kind for number in map(scalar, operands) if isinstance(number, KernelNumber)}
    if kinds >= {Argument.INT64, Argument.UINT64}:
        raise Untranslatable("signed and unsigned integers are mixed")
    return Argument.UINT64 if Argument.UINT64 in kinds else Argument.INT64


def _is_boolean(operand: Operand) -> bool:
    return isinstance(operand, KernelNumber) and operand.kind is Argument.BOOLEAN


def as_kind(builder: Builder, operand: Operand, kind: Argument) -> Value:
    """A number as a type that has room for it."""
    match number(operand), operand:
        case KernelNumber(value, own), _ if own is kind:
            return value
        case KernelNumber(value, Argument.BOOLEAN), _:
            return builder.zext(value, I64)
        case KernelNumber(value), int() if kind is not Argument.BOOLEAN:
            return value
    raise Untranslatable(f"this does not become {kind.name}")


def _both(builder: Builder, left: Scalar, right: Scalar) -> tuple[Value, Value, Argument]:
    kind = common_kind([left, right])
    return as_kind(builder, left, kind), as_kind(builder, right, kind), kind


def unary(builder: Builder, sign: ast.unaryop, operand: Scalar) -> Scalar:
    """``-`` and ``~``."""
    if isinstance(operand, int):
        return -operand if isinstance(sign, ast.USub) else ~operand
    if isinstance(sign, ast.UAdd) or _is_boolean(operand):
        raise Untranslatable("kernels have no such operator")
    compute = builder.neg if isinstance(sign, ast.USub) else builder.not_
    return KernelNumber(compute(operand.value), operand.kind)


def binary(builder: Builder, sign: ast.operator, left: Scalar, right: Scalar) -> Scalar:
    """An operator of integers."""
    plain, emit = _OPERATORS.get(type(sign), (None, None))
    if isinstance(left, int) and isinstance(right, int) and plain is not None:
        return plain(left, right)
    first, second, kind = _both(builder, left, right)
    signed = kind is Argument.INT64
    if kind is Argument.BOOLEAN:
        raise Untranslatable("booleans are not computed with")
    if emit is not None:
        return KernelNumber(emit(builder, first, second), kind)
    match sign:
        case ast.RShift():
            return KernelNumber((builder.ashr if signed else builder.lshr)(first, second), kind)
        case ast.FloorDiv() | ast.Mod() if signed:
            return KernelNumber(_divided(builder, isinstance(sign, ast.Mod), first, second), kind)
        case ast.FloorDiv():
            return KernelNumber(builder.udiv(first, second), kind)
        case ast.Mod():
            return KernelNumber(builder.urem(first, second), kind)
    raise Untranslatable("kernels have no such operator")


def _divided(builder: Builder, remainder: bool, left: Value, right: Value) -> Value:
    """Signed division down, where the processor divides towards zero."""
    rest = builder.srem(left, right)
    wrong = builder.and_(
        builder.icmp_signed("!=", rest, integer(0)),
        builder.icmp_signed("<", builder.xor(rest, right), integer(0)),
    )
    if remainder:
        return builder.add(rest, builder.select(wrong, right, integer(0)))
    return builder.sub(builder.sdiv(left, right), builder.zext(wrong, I64))


def compared(
    builder: Builder, signs: Sequence[ast.cmpop], operands: Sequence[Scalar]
) -> KernelNumber:
    """One or several comparisons; operands have no effects, so all are computed."""
    results = []
    for sign, left, right in zip(signs, operands, operands[1:], strict=False):
        if type(sign) not in _SIGNS:
            raise Untranslatable("kernels have no such comparison")
        first, second, kind = _both(builder, left, right)
        signed = kind is Argument.INT64
        compare = builder.icmp_signed if signed else builder.icmp_unsigned
        results.append(compare(_SIGNS[type(sign)], first, second))
    return KernelNumber(reduce(builder.and_, results), Argument.BOOLEAN)


def truth(builder: Builder, operand: Scalar) -> Value:
    """Whether a number is not zero."""
    if isinstance(operand, int):
        return integer(int(bool(operand)), I1)
    if _is_boolean(operand):
        return operand.value
    return builder.icmp_unsigned("!=", operand.value, integer(0))


def converted(builder: Builder, operand: Scalar, kind: Argument) -> KernelNumber:
    """The same bits as another type of integers."""
    value = integer(operand) if isinstance(operand, int) else operand.value
    return KernelNumber(builder.zext(value, I64) if _is_boolean(operand) else value, kind)


def extreme(builder: Builder, name: str, operands: Sequence[Scalar]) -> KernelNumber:
    """``min`` or ``max``."""

    def between(left: Scalar, right: Scalar) -> KernelNumber:
        first, second, kind = _both(builder, left, right)
        sign = "s" if kind is Argument.INT64 else "u"
        return KernelNumber(builder.intrinsic(f"llvm.{sign}{name}.i64", I64, [first, second]), kind)

    result = reduce(between, operands)
    assert isinstance(result, KernelNumber)
    return result
