"""Element types: integers, unsigned integers, floats, bfloat16 and bool, with vector lanes.

A *weak* type is the type of a bare Python number: it adopts the type of whatever it meets
(``A[i] * 2`` keeps the type of ``A``), and becomes ``int32`` or ``float32`` if it meets nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.core.sigint import import_deferring_sigint
from t2s.core.validate import as_int


class Kind(Enum):
    """The family of a scalar type."""

    BOOL = "bool"
    UINT = "uint"
    INT = "int"
    BFLOAT = "bfloat"
    FLOAT = "float"


MOST_LANES = 1 << 12
"""Most lanes of a vector: compilers of hardware and of machine code break down with far more."""


WIDTHS: Mapping[Kind, tuple[int, ...]] = MappingProxyType(
    {
        Kind.FLOAT: (16, 32, 64),
        Kind.BFLOAT: (16,),
        Kind.INT: (8, 16, 32, 64),
        Kind.UINT: (8, 16, 32, 64),
        Kind.BOOL: (8,),
    }
)
"""Bits of the types that there are; a bool takes a byte."""


@dataclass(frozen=True, slots=True)
class Type:
    """A scalar type (``lanes == 1``) or a vector of ``lanes`` equal scalars."""

    kind: Kind
    bits: int
    lanes: int = 1
    weak: bool = False

    def __str__(self) -> str:
        name = "bool" if self.kind is Kind.BOOL else f"{self.kind.value}{self.bits}"
        return f"{name}x{self.lanes}" if self.lanes > 1 else name

    @property
    def exists(self) -> bool:
        """Whether there is such a type: ``Float``, ``Int`` and the like make no other ones."""
        return self.bits in WIDTHS[self.kind] and 1 <= self.lanes <= MOST_LANES

    @property
    def scalar(self) -> Type:
        """The type of one lane."""
        return self if self.lanes == 1 else replace(self, lanes=1)

    @property
    def bytes(self) -> int:
        """Storage of one value of this type, all lanes, in bytes (a bool takes one byte)."""
        return max(1, self.bits // 8) * self.lanes

    @property
    def is_float(self) -> bool:
        return self.kind in (Kind.FLOAT, Kind.BFLOAT)

    @property
    def is_integer(self) -> bool:
        return self.kind in (Kind.INT, Kind.UINT)

    @property
    def is_bool(self) -> bool:
        return self.kind is Kind.BOOL

    @property
    def numpy(self) -> np.dtype[Any]:
        """The numpy dtype of one lane (bfloat16 comes from ``ml_dtypes``)."""
        return _numpy_type(self.kind, self.bits)

    def with_lanes(self, lanes: int) -> Type:
        """The same scalar type with another number of lanes."""
        return replace(self, lanes=lanes)

    def strengthened(self) -> Type:
        """This type, or the default (``int32``, ``float32``) if it is weak."""
        return replace(self, weak=False)


@cache
def _numpy_type(kind: Kind, bits: int) -> np.dtype[Any]:
    if kind is Kind.BFLOAT:
        bfloat16: np.dtype[Any] = np.dtype(import_deferring_sigint("ml_dtypes").bfloat16)
        return bfloat16
    return np.dtype(str(Type(kind, bits)))


def Float(bits: int) -> Type:
    """IEEE 754 binary floating point of 16, 32 or 64 bits."""
    return _checked(Kind.FLOAT, bits)


def BFloat(bits: int = 16) -> Type:
    """The brain floating-point format: 8 exponent bits, 7 mantissa bits."""
    return _checked(Kind.BFLOAT, bits)


def Int(bits: int) -> Type:
    """Two's complement integer of 8, 16, 32 or 64 bits; arithmetic wraps around."""
    return _checked(Kind.INT, bits)


def UInt(bits: int) -> Type:
    """Unsigned integer of 8, 16, 32 or 64 bits; arithmetic wraps around."""
    return _checked(Kind.UINT, bits)


def Bool() -> Type:
    """A truth value."""
    return Type(Kind.BOOL, 8)


INT32 = Type(Kind.INT, 32)
BOOL = Type(Kind.BOOL, 8)
WEAK_INT = Type(Kind.INT, 32, weak=True)
WEAK_FLOAT = Type(Kind.FLOAT, 32, weak=True)

_LARGEST_BFLOAT16 = (2.0 - 2.0**-7) * 2.0**127


def _checked(kind: Kind, bits: object) -> Type:
    number, allowed = as_int(bits), WIDTHS[kind]
    if number is None or number not in allowed:
        article = "an" if kind is Kind.INT else "a"
        raise UserError(
            f"{kind.value} types cannot have this width",
            location=user_location(),
            expected=f"{article} {kind.value} type of {' or '.join(map(str, allowed))} bits",
            given=repr(bits),
        )
    return Type(kind, number)


def integer_range(type: Type) -> tuple[int, int]:
    """The smallest and the largest value of an integer type, or of a bool."""
    if type.is_bool:
        return 0, 1
    if type.kind is Kind.UINT:
        return 0, 2**type.bits - 1
    return -(2 ** (type.bits - 1)), 2 ** (type.bits - 1) - 1


def value_range(type: Type) -> tuple[float, float]:
    """The smallest and the largest finite value (exact integers for integer types)."""
    if not type.is_float:
        return integer_range(type)
    largest = _LARGEST_BFLOAT16 if type.kind is Kind.BFLOAT else float(np.finfo(type.numpy).max)
    return -largest, largest


def unify(left: Type, right: Type) -> Type | None:
    """The common type of two operands, or ``None`` where the user has to cast.

    Weak types adopt the other operand's type (a weak float never becomes an integer).  Two
    integers of one signedness widen, two IEEE floats widen, an integer joins a float as that
    float.  Signed with unsigned, bool with number, and bfloat16 with float16 are not mixed
    silently; nor are vectors of different lanes (a scalar is broadcast first, unless it is weak).
    """
    if left == right:
        return left
    if left.weak and not right.weak:
        return right if _adopts(left, right) else None
    if right.weak and not left.weak:
        return left if _adopts(right, left) else None
    if left.lanes != right.lanes:
        return None
    if left.is_bool or right.is_bool:
        return None
    if left.is_float and right.is_float:
        if Kind.BFLOAT in (left.kind, right.kind) and left.bits == right.bits:
            return None
        return left if left.bits > right.bits else right
    if left.is_float or right.is_float:
        return left if left.is_float else right
    if left.kind is not right.kind:
        return None
    return left if left.bits > right.bits else right


def _adopts(weak: Type, strong: Type) -> bool:
    if weak.is_float:
        return strong.is_float
    return not strong.is_bool
