"""What a value is, if it is not computed: an element of memory, as a function of the iteration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from t2s.simulator.values.nests.digits import Numbers, Opaque, Product


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSource:
    """The memory of an input tensor."""

    tensor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSource:
    """All tokens of a channel, kept in memory: a row for every element of the channel array."""

    channel: str


Source = TensorSource | StreamSource | None
"""``None``: nothing but zeros."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A value that lies in memory, for a product of iterations.

    In the iteration at these positions of the product, lane ``l`` is the scalar of ``source`` with
    the number ``base + tables[0][position 0] + ... + lanes[l]``, or zero where that is ``None``.
    """

    source: Source
    base: int
    tables: tuple[Numbers, ...]
    lanes: tuple[int | None, ...]


def zeros(lanes: int, points: Product) -> Reference:
    """The value zero."""
    tables = tuple(np.zeros(len(values), np.int64) for values in points)
    return Reference(source=None, base=0, tables=tables, lanes=(None,) * lanes)


def merged(pieces: Sequence[tuple[Numbers, Reference]], axis: int, points: Product) -> Reference:
    """One reference from several, each for some values of one digit.

    Raises ``Opaque`` if they differ in more than the table of that digit.
    """
    first = pieces[0][1]
    table = np.zeros(len(points[axis]), np.int64)
    for values, piece in pieces:
        if piece.source != first.source or piece.lanes != first.lanes:
            raise Opaque
        for at, (left, right) in enumerate(zip(piece.tables, first.tables, strict=True)):
            if at != axis and not np.array_equal(left, right):
                raise Opaque
        table[np.searchsorted(points[axis], values)] = piece.base + piece.tables[axis]
    tables = (*first.tables[:axis], table, *first.tables[axis + 1 :])
    return Reference(source=first.source, base=0, tables=tables, lanes=first.lanes)


def inserted(vector: Reference, lane: int, value: Reference) -> Reference:
    """The vector with a scalar in one lane; ``Opaque`` if they move through memory apart."""
    if not 0 <= lane < len(vector.lanes):
        return vector
    shift = _distance(vector, value)
    offset = None if value.lanes[0] is None else shift + value.lanes[0]
    base = vector if vector.source is not None else value
    lanes = (*vector.lanes[:lane], offset, *vector.lanes[lane + 1 :])
    return Reference(source=base.source, base=vector.base, tables=base.tables, lanes=lanes)


def _distance(vector: Reference, value: Reference) -> int:
    """How far the origin of ``value`` is behind that of ``vector``, in every iteration."""
    shift = value.base - vector.base
    if vector.source is None or value.source is None:
        return shift
    if vector.source != value.source:
        raise Opaque
    for left, right in zip(vector.tables, value.tables, strict=True):
        differences = right - left
        if not (differences == differences[0]).all():
            raise Opaque
        shift += int(differences[0])
    return shift
