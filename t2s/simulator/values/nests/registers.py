"""Which firing wrote what a firing reads from a register file.

The writer is the last one, in the order of the firings, among those that wrote the element.
``last_writer`` finds it digit by digit, from the outermost: as long as reader and writer have the
same digits so far, the next digit of the writer is the largest that is not behind the reader's;
once a digit is smaller, the rest may be anything, so it is the largest that wrote the element.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from t2s.core.expr import Expr
from t2s.core.ops import Array
from t2s.simulator.values.nests.digits import (
    DigitFrame,
    Numbers,
    Opaque,
    Product,
    picked,
    positions,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """A digit of the writer: at each value of the reader's ``digit``, its position among those of
    the writing firings; one position for all where ``digit`` is ``None``.
    """

    digit: int | None
    positions: Numbers


@dataclass(frozen=True, slots=True)
class _Element:
    """One index of a register file: a number, or a table over one digit."""

    digit: int | None
    values: Numbers


def last_writer(
    frame: DigitFrame,
    known: Mapping[str, Array],
    written: tuple[Sequence[Expr], Product],
    read: tuple[Sequence[Expr], Product],
    *,
    written_first: bool,
) -> tuple[Origin, ...]:
    """Every digit of the writer, for the firings ``read[1]``.

    ``written`` and ``read`` are indices of the register file and the firings that use them;
    ``written_first``: in one firing the write comes before the read.  Raises ``Opaque`` if some
    firing reads what was never written, or the writer has no such form.
    """
    pairs = [
        (_element(frame, known, w, written[1]), _element(frame, known, r, read[1]))
        for w, r in zip(written[0], read[0], strict=True)
    ]
    origins: list[Origin] = []
    same = True
    for number, values in enumerate(written[1]):
        mine = [pair for pair in pairs if pair[0].digit == number]
        reader = _reader(mine)
        keys, wanted = _keys(mine, len(values))
        if not same:
            limit = np.full(len(wanted), len(values) - 1)
            origins.append(Origin(digit=reader, positions=_last(keys, wanted, limit)))
            continue
        if reader is not None and reader != number:
            raise Opaque
        own = read[1][number]
        limit = np.searchsorted(values, own, side="right") - 1
        position = _last(keys, np.broadcast_to(wanted, own.shape), limit)
        equal = values[position] == own
        same = bool(equal.all())
        if equal.any() and not same:
            raise Opaque
        origins.append(Origin(digit=number, positions=position))
    for write, element in pairs:
        if write.digit is None and not (element.values == write.values).all():
            raise Opaque
    if same and not written_first:
        raise Opaque
    return tuple(origins)


def _element(
    frame: DigitFrame, known: Mapping[str, Array], index: Expr, points: Product
) -> _Element:
    total = frame.sum(index, known)
    if len(total.tables) > 1:
        raise Opaque
    for digit, table in total.tables.items():
        at = positions(frame.all[digit], points[digit])
        return _Element(digit, total.base + picked(table, at))
    return _Element(None, np.array([total.base]))


def _reader(pairs: Sequence[tuple[_Element, _Element]]) -> int | None:
    """The only digit of the reader that decides, if any does."""
    readers = {read.digit for _, read in pairs if read.digit is not None}
    if len(readers) > 1:
        raise Opaque
    return next(iter(readers), None)


def _keys(pairs: Sequence[tuple[_Element, _Element]], count: int) -> tuple[Numbers, Numbers]:
    """A number for each value of the writer's digit, and of the reader's: equal if they meet."""
    keys, wanted, bound = np.zeros(count, np.int64), np.zeros(1, np.int64), 1
    for write, read in pairs:
        low = min(int(write.values.min()), int(read.values.min()))
        span = max(int(write.values.max()), int(read.values.max())) - low + 1
        bound *= span
        keys, wanted = keys * span + (write.values - low), wanted * span + (read.values - low)
    if bound * count >= 1 << 62:
        raise Opaque
    return keys, wanted


def _last(keys: Numbers, wanted: Numbers, limit: Numbers) -> Numbers:
    """The last position up to the limit with the wanted key; ``Opaque`` if one has none."""
    count = len(keys)
    codes = np.sort(keys * count + np.arange(count))
    at = np.searchsorted(codes, wanted * count + limit, side="right") - 1
    if (limit < 0).any() or (at < 0).any() or (codes[at] // count != wanted).any():
        raise Opaque
    return codes[at] % count
