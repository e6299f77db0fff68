"""Sums of tables over the digits of one mixed radix, as sums over those of another one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod

import numpy as np

from t2s.simulator.values.nests.digits import LONGEST_TABLE, Numbers, Opaque


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
