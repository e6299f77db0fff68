"""Formats: the level kinds of a tensor and which mode each level stores.

``csr`` is a dense level of rows over a compressed level of columns.  A level stores a whole mode,
or a part of one: in ``bcsr`` the block coordinates are the modes divided by the block size, the
positions in a block the remainders.
"""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from t2s.core.errors import UserError
from t2s.core.location import SourceLocation, user_location
from t2s.core.validate import as_int
from t2s.core.walk import Term
from t2s.graph.graph import MemorySpace
from t2s.sparse_repr.levels import (
    KINDS,
    Compressed,
    CompressedNonUnique,
    Dense,
    Level,
    Singleton,
    SingletonNonUnique,
)

MOST_MODES = 32
LARGEST_EXTENT = (1 << 63) - 1


def checked_order(order: Any, least: int, location: SourceLocation | None = None) -> int:
    """A number of modes.  Raises ``UserError`` unless it is an integer from ``least`` to 32."""
    number = as_int(order)
    if number is None or not least <= number <= MOST_MODES:
        raise UserError(
            "this is not a number of modes",
            location=location or user_location(),
            expected=f"an integer from {least} to {MOST_MODES}",
            given=repr(order),
        )
    return number


def checked_shape(
    shape: Any, what: str = "the tensor", location: SourceLocation | None = None
) -> tuple[int, ...]:
    """The extents of a shape.  Raises ``UserError`` unless they are integers from 0 on."""
    listed = _listed(shape)
    numbers = [as_int(extent) for extent in listed or ()]
    extents = tuple(number for number in numbers if number is not None)
    inside = all(0 <= number <= LARGEST_EXTENT for number in extents)
    if listed is None or len(extents) < len(numbers) or not inside:
        raise UserError(
            f"this is not a shape of {what}",
            location=location or user_location(),
            expected=f"a tuple of at most {MOST_MODES} extents, integers from 0 to 2^63 - 1",
            given=reprlib.repr(shape),
        )
    return extents


def _listed(shape: Any) -> list[Any] | None:
    """The elements of a list, a tuple or a vector of at most 32; nothing else is iterated."""
    match shape:
        case str() | bytes() | bytearray() | memoryview():
            return None
        case np.ndarray() if shape.ndim != 1:
            return None
        case Sequence() | np.ndarray():
            return list(shape) if len(shape) <= MOST_MODES else None
    return None


_LETTERS = {kind.letter: kind for kind in KINDS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Part(Term):
    """The part of a mode that a level stores: ``coordinate // divisor % modulus``.

    Without ``modulus`` no remainder is taken, so ``Part(mode=0)`` is the whole mode 0.
    """

    mode: int
    divisor: int = 1
    modulus: int | None = None

    def extent(self, size: int) -> int:
        """The extent of the level for a mode of that size."""
        return -(-size // self.divisor) if self.modulus is None else self.modulus


@dataclass(frozen=True, slots=True, kw_only=True)
class Format(Term):
    """Level kinds, outermost first, and the part of a mode that each of them stores.

    ``place`` is the side of an accelerator's memory interface that holds the tensor; off the chip
    the host can access it.
    """

    levels: tuple[Level, ...]
    parts: tuple[Part, ...]
    place: MemorySpace = MemorySpace.MEMORY

    @property
    def on_chip(self) -> Format:
        """The same levels in memories of the accelerator [Stardust, sec. 5.1]."""
        return replace(self, place=MemorySpace.CHIP)

    @property
    def off_chip(self) -> Format:
        """The same levels in the memory of the host, the default."""
        return replace(self, place=MemorySpace.MEMORY)

    @property
    def order(self) -> int:
        """Number of modes of a tensor in this format."""
        return len({part.mode for part in self.parts})

    @property
    def modes(self) -> tuple[int, ...]:
        """The mode of each level."""
        return tuple(part.mode for part in self.parts)

    @property
    def plain(self) -> bool:
        """Whether every level stores a whole mode."""
        return all(part == Part(mode=part.mode) for part in self.parts)

    @property
    def letters(self) -> str:
        """TACO's letters of the levels."""
        return "".join(level.letter for level in self.levels)

    @property
    def coordinate_list(self) -> bool:
        """Whether this is COO: a level that repeats coordinates, and singletons below it only."""
        first, *rest = self.levels or (None,)
        return isinstance(first, CompressedNonUnique) and all(level.branchless for level in rest)

    def __str__(self) -> str:
        return self._storage + (" on chip" if self.place is MemorySpace.CHIP else "")

    @property
    def _storage(self) -> str:
        if self.plain:
            return f"{self.letters}:{','.join(map(str, self.modes))}" if self.levels else "scalar"
        parts = []
        for part in self.parts:
            text = str(part.mode)
            text += f"/{part.divisor}" if part.divisor > 1 else ""
            text += f"%{part.modulus}" if part.modulus is not None else ""
            parts.append(text)
        return f"{self.letters}:{','.join(parts)}"


def make_format(
    letters: str, modes: Sequence[int] | None = None, *, location: SourceLocation | None = None
) -> Format:
    """A format from TACO's letters, and the mode of each level (by default in order).

    ``make_format("ds")`` is CSR and ``make_format("ds", (1, 0))`` is CSC.
    """
    if not isinstance(letters, str):
        raise UserError(
            "the letters of a format are a text",
            location=location or user_location(),
            expected='such as "ds"',
            given=repr(letters),
        )
    checked_order(len(letters), 0, location)
    unknown = sorted({letter for letter in letters if letter not in _LETTERS})
    if unknown:
        known = ", ".join(f"{kind.letter} {kind.title}" for kind in KINDS)
        raise UserError(
            f"unknown level kind {', '.join(unknown)}",
            location=location or user_location(),
            expected=f"one letter for each level, of {known}",
            given=letters,
        )
    if modes is not None and not (
        isinstance(modes, Sequence) or (isinstance(modes, np.ndarray) and modes.ndim == 1)
    ):
        raise UserError(
            "the modes of a format are a list",
            location=location or user_location(),
            expected="one mode for each level, such as (1, 0)",
            given=repr(modes),
        )
    listed = range(len(letters)) if modes is None else tuple(modes)
    order = tuple(number for number in map(as_int, listed) if number is not None)
    if len(order) < len(listed) or sorted(order) != list(range(len(letters))):
        raise UserError(
            f"the format {letters} cannot store its modes in the order {list(listed)}",
            location=location or user_location(),
            expected=f"each of 0 to {len(letters) - 1} once" if letters else "no modes",
            given=",".join(map(str, listed)),
        )
    levels = tuple(_LETTERS[letter] for letter in letters)
    return Format(levels=levels, parts=tuple(Part(mode=mode) for mode in order))


def as_format(
    given: object, *, what: str = "the tensor", location: SourceLocation | None = None
) -> Format:
    """A format, or the one of a text: ``"ds"`` is CSR and ``"ds:1,0"`` is CSC."""
    if isinstance(given, Format):
        return given
    if not isinstance(given, str):
        raise UserError(
            f"the format of {what} must be a format or its text",
            location=location or user_location(),
            expected='a format such as csr, or its letters, such as "ds"',
            given=repr(given),
        )
    letters, _, numbers = given.partition(":")
    words = numbers.split(",") if numbers else None
    if words is not None and not all(word.isdecimal() and len(word) < 4 for word in words):
        raise UserError(
            f"{given} does not say a format",
            location=location or user_location(),
            expected="LEVELS or LEVELS:MODES, for example ds or ds:1,0",
        )
    modes = None if words is None else [int(word) for word in words]
    return make_format(letters, modes, location=location)


def dense(order: int, modes: Sequence[int] | None = None) -> Format:
    """All levels dense."""
    return make_format("d" * checked_order(order, 0), modes)


def csf(order: int, modes: Sequence[int] | None = None) -> Format:
    """All levels compressed: compressed sparse fibers; DCSR for a matrix."""
    return make_format("s" * checked_order(order, 0), modes)


def coo(order: int, modes: Sequence[int] | None = None) -> Format:
    """A list of coordinates: compressed non-unique, then singletons."""
    order = checked_order(order, 1)
    if order == 1:
        return make_format("s", modes)
    middle = (SingletonNonUnique(),) * (order - 2)
    levels = (CompressedNonUnique(), *middle, Singleton())
    return make_format("".join(level.letter for level in levels), modes)


def bcsr(rows: int, columns: int) -> Format:
    """Compressed sparse rows of dense blocks of ``rows`` x ``columns``."""
    height, width = (as_int(size) or 0 for size in (rows, columns))
    if not all(0 < size <= LARGEST_EXTENT for size in (height, width)):
        raise UserError(
            "a block has at least one row and one column",
            location=user_location(),
            expected="integers, 1 or more",
            given=f"{rows} x {columns}",
        )
    return Format(
        levels=(Dense(), Compressed(), Dense(), Dense()),
        parts=(
            Part(mode=0, divisor=height),
            Part(mode=1, divisor=width),
            Part(mode=0, modulus=height),
            Part(mode=1, modulus=width),
        ),
    )


csr = make_format("ds")
csc = make_format("ds", (1, 0))
dcsr = make_format("ss")
dcsc = make_format("ss", (1, 0))
scalar = make_format("")
