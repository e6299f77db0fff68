"""Which elements a definition reads, and from which lines: ranges of subscripts, proved by isl.

Reads that never happen are removed: ``select(s == 1, select(s == 0, x[i], y[i]), 0)`` never reads
``x``, because its condition contradicts the enclosing one.  The selection becomes the branch that
is taken (``without_dead_reads``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from t2s.core.expr import Expr, Read, Select, conjunction, conjuncts, reads
from t2s.core.isl import Interval, LoopDomain, NotAffine, is_affine
from t2s.core.let_binding import bottom_up, is_repetitive
from t2s.core.location import SourceLocation
from t2s.core.printer import show
from t2s.core.walk import Term, children, rebuild
from t2s.func.ir import Definition

MOST_CONDITIONS = 8
"""Most path conditions of one shared expression that are kept apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardedRead:
    """A read and its path condition (``None``: unconditional)."""

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


def guarded_reads(
    expr: Expr, condition: Expr | None = None, *, nested: bool = True
) -> Iterator[GuardedRead]:
    """All reads with their path conditions, in the order they are written.

    Those in subscripts of others are left out unless they are ``nested``.
    """
    for node, where in guarded_nodes(expr, condition, nested=nested):
        if isinstance(node, Read):
            yield GuardedRead(read=node, condition=where)


def guarded_nodes(
    expr: Expr, condition: Expr | None = None, *, nested: bool = True
) -> Iterator[tuple[Expr, Expr | None]]:
    """All sub-expressions with their path conditions, in the order they are written.

    Subscripts of reads are left out unless they are ``nested``.

    In an expression that is much larger written out than its objects are, each object comes once
    for each of its conditions; where these are many, once with a condition that they all imply.
    """
    if is_repetitive(expr):
        yield from _guarded_objects(expr, condition, nested)
        return
    waiting: list[tuple[Expr, Expr | None]] = [(expr, condition)]
    while waiting:
        node, where = waiting.pop()
        yield node, where
        if nested or not isinstance(node, Read):
            waiting.extend(reversed(_guarded_children(node, where)))


def _guarded_children(node: Expr, where: Expr | None) -> list[tuple[Expr, Expr | None]]:
    match node:
        case Select(condition=test, if_true=if_true, if_false=if_false):
            return [
                (test, where),
                (if_true, conjunction(where, test)),
                (if_false, conjunction(where, ~test)),
            ]
    return [(cast(Expr, child), where) for child in children(node)]


def _guarded_objects(
    expr: Expr, condition: Expr | None, nested: bool
) -> Iterator[tuple[Expr, Expr | None]]:
    conditions: dict[int, list[Expr | None]] = {id(expr): [condition]}
    for term in reversed(list(bottom_up(expr))):
        node = cast(Expr, term)
        met = conditions.get(id(node), [])
        if len(met) > MOST_CONDITIONS:
            met = [_weaker(met)]
        for where in met:
            yield node, where
            if isinstance(node, Read) and not nested:
                continue
            for child, inner in _guarded_children(node, where):
                known = conditions.setdefault(id(child), [])
                if inner not in known:
                    known.append(inner)


def _weaker(conditions: Sequence[Expr | None]) -> Expr | None:
    """A condition that all of the given ones imply."""
    first, *others = (conjuncts(condition) for condition in conditions)
    return conjunction(*(part for part in first if all(part in other for other in others)))


def access_ranges(definition: Definition) -> list[AccessRange]:
    """The ranges of all reads of a definition; reads that never happen are left out."""
    result: list[AccessRange] = []
    intervals = [dimension.interval for dimension in definition.domain]
    known: set[tuple[str, tuple[Expr, ...], tuple[Expr, ...]]] = set()
    for guarded in guarded_reads(definition.value):
        key = (guarded.read.source, guarded.read.indices, conjuncts(guarded.condition))
        if key in known:
            continue
        known.add(key)
        conditions = [part for part in conjuncts(guarded.condition) if is_affine(part)]
        try:
            domain = LoopDomain(intervals, conditions)
        except NotAffine:
            continue
        if not domain.is_empty():
            result.append(_range_over(domain, guarded.read, definition.location))
    return result


def unconditional_ranges(
    value: Expr, intervals: Sequence[Interval], location: SourceLocation | None
) -> list[AccessRange]:
    """The ranges of all reads of a value as if all of its branches were taken."""
    try:
        domain = LoopDomain(intervals)
    except NotAffine:
        return []
    return [_range_over(domain, read, location) for read in dict.fromkeys(reads(value))]


def _range_over(domain: LoopDomain, read: Read, location: SourceLocation | None) -> AccessRange:
    return AccessRange(
        source=read.source,
        domain=domain,
        indices=read.indices,
        ranges=tuple(
            domain.range_of(index) if is_affine(index) else None for index in read.indices
        ),
        text=show(read),
        location=read.location or location,
    )


def hull(accesses: Sequence[AccessRange], rank: int) -> tuple[tuple[int, int] | None, ...] | None:
    """The smallest box around all ranges; ``None`` where there is no access or one is unknown."""
    if not accesses:
        return None
    box: list[tuple[int, int] | None] = []
    for position in range(rank):
        ranges = [access.ranges[position] for access in accesses]
        known = [range_ for range_ in ranges if range_ is not None]
        if len(known) < len(ranges):
            box.append(None)
        else:
            box.append((min(low for low, _ in known), max(high for _, high in known)))
    return tuple(box)


MOST_AROUND = 16
"""The number of innermost conditions around a selection that are analyzed."""


def without_dead_reads(value: Expr, intervals: Sequence[Interval]) -> Expr:
    """The value of a definition over its loops without reads whose conditions contradict."""
    taken: dict[int, set[bool | None]] = {}
    try:
        for node, where in guarded_nodes(value, nested=False):
            if isinstance(node, Select) and is_affine(node.condition):
                taken.setdefault(id(node), set()).add(_branch(node, where, intervals))
    except NotAffine:
        return value
    if not any(outcomes in ({True}, {False}) for outcomes in taken.values()):
        return value
    parts: dict[int, Term] = {}
    for term in bottom_up(value):
        part = rebuild(term, lambda child: parts[id(child)])
        outcomes = taken.get(id(term))
        if isinstance(part, Select) and outcomes in ({True}, {False}):
            part = part.if_true if outcomes == {True} else part.if_false
        parts[id(term)] = part
    return cast(Expr, parts[id(value)])


def _branch(node: Select, where: Expr | None, intervals: Sequence[Interval]) -> bool | None:
    """The branch that is always taken, if the other one reads something, else ``None``."""
    around = [part for part in conjuncts(where) if is_affine(part)][-MOST_AROUND:]
    test = node.condition
    if reads(node.if_true) and LoopDomain(intervals, [*around, test]).is_empty():
        return False
    other = ~test
    if reads(node.if_false) and LoopDomain(intervals, [*around, other]).is_empty():
        return True
    return None
