"""What a value is, if it is not computed: an element of memory, as a function of the iteration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

import numpy as np

from t2s.simulator.values.nests.digits import LONGEST_TABLE, Numbers, Opaque, Product


def regroup(
    lengths: Sequence[int], tables: Sequence[Numbers], wanted: Sequence[int]
) -> tuple[int, tuple[Numbers, ...]]:
    """A sum over one mixed radix as the same numbers over another one: a number, and tables.

    Entry ``n`` in row-major order stays entry ``n``.  Raises ``Opaque`` if the numbers are not a
    sum of tables over the wanted digits, or if there are more or fewer of them, or none.
    """
    if prod(lengths) != prod(wanted) or not prod(lengths):
        raise Opaque
    base = sum(int(table[0]) for table in tables)
    tables = [table - table[0] for table in tables]
    result = [np.zeros(length, np.int64) for length in wanted]
    cuts = sorted(set(_cuts(lengths)) & set(_cuts(wanted)))
    for first, last in pairwise(cuts):
        source = [at for at, cut in enumerate(_starts(lengths)) if first <= cut < last]
        target = [at for at, cut in enumerate(_starts(wanted)) if first <= cut < last]
        source = [at for at in source if lengths[at] > 1]
        target = [at for at in target if wanted[at] > 1]
        if not any(tables[at].any() for at in source):
            continue
        if last // first > LONGEST_TABLE:
            raise Opaque
        flat = np.zeros(1, np.int64)
        for at in source:
            flat = np.add.outer(flat, tables[at]).reshape(-1)
        for at, table in zip(target, separated(flat, [wanted[at] for at in target]), strict=True):
            result[at] = table
    return base, tuple(result)


def separated(flat: Numbers, lengths: Sequence[int]) -> list[Numbers]:
    """Numbers over a mixed radix as a sum of tables that start with the first number, 0 after."""
    box = flat.reshape(tuple(lengths))
    rank = len(lengths)
    tables, total = [], np.zeros((1,) * rank, np.int64)
    for axis in range(rank):
        at = tuple(slice(None) if axis == other else 0 for other in range(rank))
        table = box[at] - (box.flat[0] if axis else 0)
        tables.append(table)
        total = total + table.reshape(tuple(-1 if axis == other else 1 for other in range(rank)))
    if not np.array_equal(np.broadcast_to(total, box.shape), box):
        raise Opaque
    return tables


def _cuts(lengths: Sequence[int]) -> list[int]:
    """How many entries the digits from each position on count, and 1 at the end."""
    return [prod(lengths[at:]) for at in range(len(lengths) + 1)]


def _starts(lengths: Sequence[int]) -> list[int]:
    """Of each digit, how far apart its successive values are."""
    return [prod(lengths[at + 1 :]) for at in range(len(lengths))]


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
