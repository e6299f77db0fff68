"""Which elements a definition reads: ranges of subscripts, proved by isl."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from t2s.core.expr import Expr, Read, Select, apply, conjunction, conjuncts
from t2s.core.isl import LoopDomain, NotAffine, is_affine
from t2s.core.location import SourceLocation
from t2s.core.ops import Op
from t2s.core.printer import show
from t2s.core.walk import children
from t2s.func.ir import Definition


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardedRead:
    """A read and the condition under which it happens (``None``: always)."""

    read: Read
    condition: Expr | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRange:
    """One read: which elements it reaches, and where.

    ``ranges`` has the smallest and largest subscript in each dimension (``None``: not affine).
    """

    source: str
    domain: LoopDomain
    indices: tuple[Expr, ...]
    ranges: tuple[tuple[int, int] | None, ...]
    text: str
    location: SourceLocation | None


def guarded_reads(expr: Expr, condition: Expr | None = None) -> Iterator[GuardedRead]:
    """All reads with their path conditions, in the order they are written."""
    match expr:
        case Read(indices=indices):
            yield GuardedRead(read=expr, condition=condition)
            for index in indices:
                yield from guarded_reads(index, condition)
        case Select(condition=test, if_true=if_true, if_false=if_false):
            yield from guarded_reads(test, condition)
            yield from guarded_reads(if_true, conjunction(condition, test))
            yield from guarded_reads(if_false, conjunction(condition, apply(Op.NOT, test)))
        case _:
            for child in children(expr):
                yield from guarded_reads(cast(Expr, child), condition)


def access_ranges(definition: Definition) -> list[AccessRange]:
    """The ranges of all reads of a definition; reads that never happen are left out."""
    result: list[AccessRange] = []
    intervals = [dimension.interval for dimension in definition.domain]
    for guarded in guarded_reads(definition.value):
        conditions = [part for part in conjuncts(guarded.condition) if is_affine(part)]
        try:
            domain = LoopDomain(intervals, conditions)
        except NotAffine:
            continue
        if domain.is_empty():
            continue
        read = guarded.read
        ranges = tuple(
            domain.range_of(index) if is_affine(index) else None for index in read.indices
        )
        result.append(
            AccessRange(
                source=read.source,
                domain=domain,
                indices=read.indices,
                ranges=ranges,
                text=show(read),
                location=read.location or definition.location,
            )
        )
    return result


def hull(accesses: Sequence[AccessRange], rank: int) -> tuple[tuple[int, int] | None, ...] | None:
    """The smallest box around all ranges; ``None`` where there is no access or one is unknown."""
    if not accesses:
        return None
    box: list[tuple[int, int] | None] = []
    for position in range(rank):
        ranges = [access.ranges[position] for access in accesses]
        known = [found for found in ranges if found is not None]
        if len(known) < len(ranges):
            box.append(None)
        else:
            box.append((min(low for low, _ in known), max(high for _, high in known)))
    return tuple(box)
