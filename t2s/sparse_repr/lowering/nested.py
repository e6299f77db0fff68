"""Streams as nested lists: a stream of depth d is a list of lists, d deep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from t2s.core.errors import InternalError

Nested = Any


def each(function: Callable[..., Nested], depth: int, *streams: Nested) -> Nested:
    """A function of the parts at a depth."""
    if depth == 0:
        return function(*streams)
    if len({len(stream) for stream in streams}) != 1:
        raise InternalError("the streams of a block have different shapes")
    return [each(function, depth - 1, *parts) for parts in zip(*streams, strict=True)]


def tree(total: dict[tuple[int, ...], Any], number: int, keys: int, point: Any = ()) -> Nested:
    """Level ``number`` of the points as nested lists; the values are level ``keys``."""
    level = len(point)
    if level == keys:
        return total[point]
    here = sorted({p[level] for p in total if p[:level] == point})
    if number == level:
        return here
    return [tree(total, number, keys, (*point, at)) for at in here]


def flatten(nested: Nested) -> list[Any]:
    """All tokens, in order."""
    if not isinstance(nested, list):
        return [nested]
    return [token for part in nested for token in flatten(part)]


def counted(nested: Nested, depth: int) -> Nested:
    """The numbers of the parts at a depth, as a stream of that depth plus one."""
    if depth == 0:
        return list(range(len(nested)))
    return [counted(part, depth - 1) for part in nested]


def pruned(nested: Nested, keep: int) -> Nested:
    """Without the empty lists inside, but for those at the outermost ``keep`` levels."""
    if not isinstance(nested, list):
        return nested
    parts = [pruned(part, keep - 1) for part in nested]
    return parts if keep > 0 else [part for part in parts if part != []]


def points_of(levels: list[Nested], point: tuple[int, ...]) -> list[tuple[int, ...]]:
    if not levels:
        return [point]
    found = []
    for number, coordinate in enumerate(levels[0]):
        if len(levels) > 1 and len(levels[1]) != len(levels[0]):
            raise InternalError("a coordinate that is written has no fiber")
        inner = [level[number] for level in levels[1:]]
        found += points_of(inner, (*point, coordinate))
    return found
