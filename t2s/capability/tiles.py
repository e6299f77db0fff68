"""Tile sizes under which the condition of a call holds, with the fewest calls.

Candidates are ``ceil(n / q)``, since any other size makes as many calls as a smaller one, and the
numbers of the condition with their multiples.  The remainder of a mode is a smaller tile if the
condition allows it, or is padded.  ([Mosaic, sec. 6.3] takes the largest tile, which may need more
calls.)
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import isqrt, prod

from t2s.capability.conditions import (
    Answer,
    compiled,
    holds,
    mode_extent,
    mode_name,
    names_of,
    numbers_of,
)
from t2s.capability.ir import (
    AllOf,
    Calculated,
    Compared,
    Condition,
    Quantity,
    VariableExtent,
    WholeNumber,
)
from t2s.capability.mapping import Mapping as PartMapping
from t2s.core.ops import Op
from t2s.core.walk import Term, walk

MOST_TRIALS = 10_000
"""At most this many combinations of sizes are tried; the best of them is taken."""

MOST_GROWTH = 64
"""Padding may increase the work of a call by this factor; beyond that our loops are faster."""

MOST_SHARED = 200
LARGEST_MULTIPLE = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class TileOf(Term):
    """The size of the tiles of a mode, and whether the last one is padded to it."""

    mode: str
    extent: int
    size: int
    padded: bool = False

    @property
    def count(self) -> int:
        """The number of tiles."""
        return -(-self.extent // self.size)


def tiles_of(
    condition: Condition,
    extents: Mapping[str, int],
    *,
    whole: Sequence[str] = (),
    may_pad: Callable[[str], bool] = lambda mode: True,
) -> tuple[TileOf, ...] | None:
    """The tiles of the modes that the condition is about; ``None`` if none make it hold.

    Modes in ``whole`` are not tiled, those for which ``may_pad`` is false are not padded, and all
    together grow by at most ``MOST_GROWTH``.  The result is empty if the condition holds for the
    whole modes.
    """
    if holds(condition, extents) is Answer.TRUE:
        return ()
    names = names_of(condition)
    if not names or any(extents[name] < 1 for name in names):
        return None
    return _Tiling(condition, names, extents, tuple(whole), may_pad).best()


def condition_holds(mapping: PartMapping, extents: Mapping[str, int]) -> bool:
    """Whether the condition of a mapping holds for the whole modes."""
    return holds(mapping.condition, _modes_of_condition(mapping, extents)) is Answer.TRUE


def tiles_for(
    mapping: PartMapping, extents: Mapping[str, int], *, pad: bool
) -> tuple[TileOf, ...] | None:
    """The tiles under which the condition of a mapping holds; ``None`` if none make it hold."""
    padded = {mode_name(mode) for mode in mapping.exact} if pad else set()
    return tiles_of(
        mapping.condition,
        _modes_of_condition(mapping, extents),
        whole=[mode_name(mode) for mode in mapping.whole],
        may_pad=padded.__contains__,
    )


def _modes_of_condition(mapping: PartMapping, extents: Mapping[str, int]) -> dict[str, int]:
    return {
        name: mode_extent(tuple(name.split("*")), extents) for name in names_of(mapping.condition)
    }


class _Tiling:
    """The search for the fewest calls, the largest tiles first."""

    def __init__(
        self,
        condition: Condition,
        names: tuple[str, ...],
        extents: Mapping[str, int],
        whole: tuple[str, ...],
        may_pad: Callable[[str], bool],
    ) -> None:
        self.names = names
        self.extents = [extents[name] for name in names]
        self.test = compiled(condition, names)
        self.monotone = _is_limit(condition)
        self.may_pad = [name not in whole and may_pad(name) for name in names]
        numbers = [number for number in numbers_of(condition) if number > 0]
        every = sorted({size for extent in self.extents for size in _quotients(extent)})
        mixed = not self.monotone and len(every) <= MOST_SHARED
        if mixed:  # the condition may require extents that are equal, or multiples of each other
            small = [number for number in numbers if number <= LARGEST_MULTIPLE]
            every += [size * number for size in every for number in small]
            every += [size // number for size in every for number in small]
        self.products = _fixed_products(condition, names)
        self.sizes: list[list[int]] = []
        for at, (name, extent) in enumerate(zip(names, self.extents, strict=True)):
            if name in whole:
                self.sizes.append([extent])
                continue
            start = every if mixed else _quotients(extent)
            padded = self.may_pad[len(self.sizes)]
            most = min(
                max([*every, extent, *(2 * number for number in numbers)]), extent * MOST_GROWTH
            )
            if not padded or self.monotone:
                most = extent
            alone = _of_mode(condition, name)
            factors = [
                d for product in self.products if at in product.modes for d in product.divisors
            ]
            sizes = sorted({*_candidates(start, numbers, most), *(d for d in factors if d <= most)})
            sizes.reverse()
            self.sizes.append(sizes if alone is None else [n for n in sizes if alone([n])])
        self.trials = 0
        self.fewest: tuple[int, int] | None = None
        self.found: tuple[TileOf, ...] | None = None

    def best(self) -> tuple[TileOf, ...] | None:
        self._choose([], 1)
        return self.found

    def _choose(self, sizes: list[int], calls: int) -> None:
        if self.trials > MOST_TRIALS or not self._better(calls):
            return
        at = len(sizes)
        if at == len(self.names):
            volume = calls * prod(sizes)  # for equally many calls the least padding
            if self.fewest is not None and (calls, volume) >= self.fewest:
                return
            tiles = self._tiles(sizes) if self.test(sizes) else None
            if tiles is not None:
                self.fewest, self.found = (calls, volume), tiles
            return
        possible, first = self.sizes[at], 0
        if (
            self.monotone
        ):  # it fails with the smallest sizes of the other modes, so larger ones fail too
            later = [1] * (len(self.names) - at - 1)
            first = bisect_left(possible, True, key=lambda size: self.test([*sizes, size, *later]))
        for size in possible[first:]:
            self.trials += 1
            count = -(-self.extents[at] // size)
            if not self._better(calls * count):
                break  # further sizes are smaller, and need more calls
            if all(product.allows([*sizes, size]) for product in self.products):
                self._choose([*sizes, size], calls * count)

    def _better(self, calls: int) -> bool:
        """Whether this many calls are at most as many as the best found so far."""
        if self.fewest is None:
            return True
        return calls < self.fewest[0] or (not self.monotone and calls == self.fewest[0])

    def _tiles(self, sizes: Sequence[int]) -> tuple[TileOf, ...] | None:
        """The tiles of these sizes, if the remainder of each mode can be tiled or padded."""
        rests = [extent % size for extent, size in zip(self.extents, sizes, strict=True)]
        padded = [False] * len(sizes)
        ragged = [number for number, rest in enumerate(rests) if rest]
        for choice in product((False, True), repeat=len(ragged)):
            if any(pad and not self.may_pad[at] for pad, at in zip(choice, ragged, strict=True)):
                continue
            padded = [False] * len(sizes)
            for pad, at in zip(choice, ragged, strict=True):
                padded[at] = pad
            grown = prod(
                -(-extent // size) * size
                for pad, size, extent in zip(padded, sizes, self.extents, strict=True)
                if pad
            )
            before = prod(e for pad, e in zip(padded, self.extents, strict=True) if pad)
            if grown <= MOST_GROWTH * before and self._rests_hold(sizes, rests, padded):
                return tuple(
                    TileOf(mode=name, extent=extent, size=size, padded=pad)
                    for name, extent, size, pad in zip(
                        self.names, self.extents, sizes, padded, strict=True
                    )
                )
        return None

    def _rests_hold(
        self, sizes: Sequence[int], rests: Sequence[int], padded: Sequence[bool]
    ) -> bool:
        options = []
        for size, rest, pad, extent in zip(sizes, rests, padded, self.extents, strict=True):
            smaller = (rest,) if rest and not pad else ()
            options.append(smaller if smaller and extent < size else (size, *smaller))
        return all(self.test(option) for option in product(*options))


@dataclass(frozen=True, slots=True, kw_only=True)
class _FixedProduct:
    """``i*j*k == number``: the sizes of these modes, by index, divide the number."""

    modes: tuple[int, ...]
    number: int

    @property
    def divisors(self) -> list[int]:
        """All numbers that divide it."""
        small = [d for d in range(1, isqrt(self.number) + 1) if self.number % d == 0]
        return [*small, *(self.number // d for d in small)]

    def allows(self, sizes: Sequence[int]) -> bool:
        """Whether sizes of the remaining modes may exist."""
        chosen = prod(sizes[at] for at in self.modes if at < len(sizes))
        return self.number % chosen == 0


def _fixed_products(condition: Condition, names: Sequence[str]) -> list[_FixedProduct]:
    """The parts of a condition that fix a product of several modes."""
    parts = condition.parts if isinstance(condition, AllOf) else (condition,)
    products = []
    for part in parts:
        match part:
            case Compared(operator=Op.EQUAL, left=left, right=WholeNumber(value=number)):
                modes = _factors(left, names)
                if modes is not None and len(modes) > 1 and 0 < number <= MOST_FACTORED:
                    products.append(_FixedProduct(modes=tuple(modes), number=number))
    return products


MOST_FACTORED = 10**12
"""The largest product that is factored."""


def _factors(quantity: Quantity, names: Sequence[str]) -> list[int] | None:
    """The indices of the modes that a quantity is the product of; ``None`` for other quantities."""
    match quantity:
        case VariableExtent(variable=name) if name in names:
            return [names.index(name)]
        case Calculated(operator=Op.MULTIPLY, left=left, right=right):
            one, other = _factors(left, names), _factors(right, names)
            if one is not None and other is not None and not set(one) & set(other):
                return [*one, *other]
    return None


def _is_limit(condition: Condition) -> bool:
    """Whether the condition is monotone: it holds for all smaller extents if it holds for some."""
    match condition:
        case AllOf(parts=parts):
            return all(_is_limit(part) for part in parts)
        case Compared(operator=Op.LESS | Op.LESS_EQUAL, left=left, right=WholeNumber()):
            operators = [term.operator for term in walk(left) if isinstance(term, Calculated)]
            return all(operator in (Op.ADD, Op.MULTIPLY) for operator in operators)
    return False


def _of_mode(condition: Condition, name: str) -> Callable[[Sequence[int]], bool] | None:
    """The parts of a condition that are about one mode only; ``None`` if there are none."""
    parts = condition.parts if isinstance(condition, AllOf) else (condition,)
    mine = tuple(part for part in parts if names_of(part) == (name,))
    return compiled(AllOf(parts=mine), (name,)) if mine else None


def _quotients(extent: int) -> list[int]:
    """All ``ceil(extent / q)``, largest first, at most about two roots of the extent."""
    sizes, size = [], extent
    while size > 1:
        sizes.append(size)
        count = -(-extent // size)
        size = -(-extent // (count + 1)) if -(-extent // (count + 1)) < size else size - 1
    return [*sizes, 1] if extent >= 1 else []


def _candidates(start: Sequence[int], numbers: Sequence[int], most: int) -> list[int]:
    """Sizes up to ``most``, largest first: quotients, numbers, and multiples of numbers."""
    sizes = {size for size in start if size <= most}
    for number in numbers:
        near = {number - 1, number, number + 1}
        if number <= 4096:
            for size in tuple(sizes):
                near |= {size - size % number, size - size % number + number}
        sizes |= near
    return sorted((size for size in sizes if 1 <= size <= most), reverse=True)
