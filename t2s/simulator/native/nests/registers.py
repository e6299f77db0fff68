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
from t2s.simulator.native.nests.digits import Frame, Numbers, Opaque, Product


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
    frame: Frame,
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
        reader, candidates = _candidates(number, values, pairs, read[1])
        if same and (reader == number or reader is None):
            position, same = _not_behind(values, candidates, read[1][number], reader is None)
            origins.append(Origin(digit=number, positions=position))
        elif same:
            raise Opaque
        else:
            if not candidates.any(axis=1).all():
                raise Opaque
            last = len(values) - 1 - np.argmax(candidates[:, ::-1], axis=1)
            origins.append(Origin(digit=reader, positions=last))
    for write, element in pairs:
        if write.digit is None and not (element.values == write.values).all():
            raise Opaque
    if same and not written_first:
        raise Opaque
    return tuple(origins)


def _element(
    frame: Frame, known: Mapping[str, Array], index: Expr, points: Product
) -> _Element:
    total = frame.sum(index, known)
    if len(total.tables) > 1:
        raise Opaque
    for digit, table in total.tables.items():
        at = np.searchsorted(frame.all[digit], points[digit])
        return _Element(digit, total.base + table[at])
    return _Element(None, np.array([total.base]))


def _candidates(
    number: int, values: Numbers, pairs: Sequence[tuple[_Element, _Element]], points: Product
) -> tuple[int | None, Array]:
    """The reader's digit that decides about a digit of the writer, and what it admits.

    A row for every value of the reader's digit, a column for every value of the writer's.
    """
    mine = [(write, read) for write, read in pairs if write.digit == number]
    readers = {read.digit for _, read in mine if read.digit is not None}
    if len(readers) > 1:
        raise Opaque
    reader = next(iter(readers), None)
    rows = 1 if reader is None else len(points[reader])
    admitted = np.ones((rows, len(values)), np.bool_)
    for write, read in mine:
        admitted &= read.values[:, None] == write.values[None, :]
    return reader, admitted


def _not_behind(
    values: Numbers, candidates: Array, reading: Numbers, fixed: bool
) -> tuple[Numbers, bool]:
    """The largest admitted values up to the reader's own; whether they all are the reader's own."""
    allowed = (np.broadcast_to(candidates, (len(reading), len(values))) if fixed else candidates) & (
        values[None, :] <= reading[:, None]
    )
    if not allowed.any(axis=1).all():
        raise Opaque
    position = len(values) - 1 - np.argmax(allowed[:, ::-1], axis=1)
    equal = values[position] == reading
    if equal.all():
        return position, True
    if equal.any():
        raise Opaque
    return position, False
