"""Formats: the level kinds of a tensor and which mode each level stores.

``csr`` is a dense level of rows over a compressed level of columns.  A level stores a whole mode,
or a part of one: in ``bcsr`` the block coordinates are the modes divided by the block size, the
positions in a block the remainders.  A format of *blocks* has the same arrays as that, but its
levels are those of a grid of blocks, and each of its values is a whole block: ``ds[16,16]``.
"""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from t2s.core.errors import UserError
from t2s.core.location import SourceLocation, user_location
from t2s.core.types import MOST_LANES
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
    the host can access it.  ``block`` has the extent of a block in each mode; then every level
    stores a mode of the grid of blocks.  It is empty where values are scalars.
    """

    levels: tuple[Level, ...]
    parts: tuple[Part, ...]
    place: MemorySpace = MemorySpace.MEMORY
    block: tuple[int, ...] = ()

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
        """Whether every level stores a whole mode, and values are scalars."""
        return not self.block and all(part == Part(mode=part.mode) for part in self.parts)

    @property
    def is_array(self) -> bool:
        """Whether it stores all elements and nothing else, as an array does."""
        return self.plain and all(level.full for level in self.levels)

    @property
    def lanes(self) -> int:
        """Elements of a value: those of a block, or 1."""
        return prod(self.block)

    @property
    def grid(self) -> Format:
        """The format of the grid of blocks, with scalars in their place."""
        return replace(self, block=()) if self.block else self

    @property
    def elements(self) -> Format:
        """The same arrays with a level for each mode inside of blocks, as in ``bcsr``."""
        inner = [mode for mode, size in enumerate(self.block) if size > 1]
        if not inner:
            return self.grid
        divided = (replace(part, divisor=self.block[part.mode]) for part in self.parts)
        within = (Part(mode=mode, modulus=self.block[mode]) for mode in inner)
        levels = (*self.levels, *(Dense() for _ in inner))
        return replace(self, levels=levels, parts=(*divided, *within), block=())

    def in_grid(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The extents of the grid of blocks of a tensor of that shape; the shape without blocks."""
        if not self.block:
            return tuple(shape)
        return tuple(-(-extent // size) for extent, size in zip(shape, self.block, strict=True))

    def in_blocks(self, sizes: Sequence[int]) -> Format:
        """The format of a grid of blocks of these sizes; itself if all are 1."""
        return replace(self, block=tuple(sizes) if prod(sizes) > 1 else ())

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
        if self.block:
            return f"{self.grid._storage}[{','.join(map(str, self.block))}]"
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
    """A format, or the one of a text: ``"ds"`` is CSR, ``"ds:1,0"`` CSC, ``"ds[4,4]"`` blocks."""
    if isinstance(given, Format):
        return given
    if not isinstance(given, str):
        raise UserError(
            f"the format of {what} must be a format or its text",
            location=location or user_location(),
            expected='a format such as csr, or its letters, such as "ds"',
            given=repr(given),
        )
    levels, bracket, sizes = given.removesuffix("]").partition("[")
    letters, _, numbers = levels.partition(":")
    lists = [words.split(",") if words else None for words in (numbers, sizes)]
    good = all(word.isdecimal() and len(word) < 5 for words in lists for word in words or ())
    if not good or bool(bracket) != given.endswith("]") or (bracket and not sizes):
        raise UserError(
            f"{given} does not say a format",
            location=location or user_location(),
            expected="LEVELS or LEVELS:MODES, for example ds or ds:1,0, and behind them the sizes"
            " of blocks, if values are blocks, as in ds[16,16]",
        )
    modes, block = ([int(word) for word in words] if words else None for words in lists)
    format = make_format(letters, modes, location=location)
    return format if block is None else of_blocks(format, block, what=what, location=location)


def of_blocks(
    format: Format,
    block: object,
    *,
    what: str = "the tensor",
    location: SourceLocation | None = None,
) -> Format:
    """The format of a grid of blocks: ``of_blocks(csr, (16, 16))`` is ``"ds[16,16]"``.

    ``block`` has the extent of a block in every mode, 1 for one that is not divided.  Raises
    ``UserError`` for sizes that are not positive integers, one for each mode, for a block of more
    elements than a vector can have, and for a format whose levels store parts of modes, or that has
    blocks already.
    """
    listed = [block] if isinstance(block, int) else _listed(block)
    sizes = [size for size in map(as_int, listed or ()) if size is not None and size > 0]
    if not format.plain:
        raise UserError(
            f"{what} cannot be stored in blocks in the format {format}",
            location=location or user_location(),
            expected="a format whose levels store whole modes, such as ds",
            given=str(format),
        )
    if listed is None or len(sizes) < len(listed) or len(sizes) != format.order:
        raise UserError(
            f"{reprlib.repr(block)} is not the size of a block of {what}",
            location=location or user_location(),
            expected=f"a positive integer for each of {format.order} modes",
            given=reprlib.repr(block),
        )
    if prod(sizes) > MOST_LANES:
        raise UserError(
            f"a block of {what} has too many elements",
            location=location or user_location(),
            expected=f"at most {MOST_LANES} elements",
            given=f"{' x '.join(map(str, sizes))} = {prod(sizes)}",
        )
    if format.coordinate_list and prod(sizes) > 1:
        raise UserError(
            f"{what} is a list of coordinates, which has no blocks",
            location=location or user_location(),
            expected="dense or compressed levels",
            given=str(format),
        )
    return format.in_blocks(sizes)


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
