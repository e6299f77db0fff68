"""Places as formulas: maps between sets of points, and conditions for being in a set.

Everything is found by trying and then checked for every point, so that what is returned is right
for all of them; ``None`` says that nothing of the form was found.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from t2s.core.expr import TRUE, Expr, Index, apply, conjunction, const, equals
from t2s.core.ops import Array, Op

Point = tuple[int, ...]

_MOST_SINGLE, _MOST_BOXES = 16, 12
"""Points that a condition lists one by one, and boxes."""


def affine(terms: Mapping[str, int], constant: int) -> Expr:
    """A sum of indices with factors."""
    total: Expr | None = None
    for name, factor in terms.items():
        if factor == 0:
            continue
        index: Expr = Index(name=name)
        size = index if abs(factor) == 1 else apply(Op.MULTIPLY, index, const(abs(factor)))
        if total is None:
            total = size if factor > 0 else apply(Op.NEGATE, size)
        else:
            total = apply(Op.ADD if factor > 0 else Op.SUBTRACT, total, size)
    if total is None:
        return const(constant)
    if constant == 0:
        return total
    operator = Op.ADD if constant > 0 else Op.SUBTRACT
    return apply(operator, total, const(abs(constant)))


def affine_form(points: Sequence[Point], values: Sequence[int]) -> tuple[Point, int] | None:
    """Factors and a constant that give these values at these points."""
    if len(set(values)) == 1:
        return (0,) * len(points[0]), values[0]
    matrix, wanted = np.array(points, np.int64), np.array(values, np.int64)
    for axis in range(matrix.shape[1]):
        rest = wanted - matrix[:, axis]
        if (rest == rest[0]).all():
            return tuple(int(n == axis) for n in range(matrix.shape[1])), int(rest[0])
    columns = np.column_stack([matrix, np.ones(len(points), np.int64)]).astype(np.float64)
    solution = np.rint(np.linalg.lstsq(columns, wanted.astype(np.float64), rcond=None)[0])
    factors = solution[:-1].astype(np.int64)
    if not (matrix @ factors + int(solution[-1]) == wanted).all():
        return None
    return tuple(map(int, factors)), int(solution[-1])


def mapped(
    names: Sequence[str], points: Sequence[Point], images: Sequence[Point]
) -> tuple[Expr, ...] | None:
    """Expressions over the names that give the image of each point."""
    found: list[Expr] = []
    for axis in range(len(images[0])):
        form = affine_form(points, [image[axis] for image in images])
        if form is None:
            return None
        found.append(affine(dict(zip(names, form[0], strict=True)), form[1]))
    return tuple(found)


def inside(names: Sequence[str], part: Collection[Point], whole: Collection[Point]) -> Expr | None:
    """The condition of being in a part of a set of points: ``TRUE`` where it is all of them."""
    part, whole = set(part), set(whole)
    rest = whole - part
    if not rest:
        return TRUE
    for tried in (_in_box, _listed, _in_boxes):
        found = tried(names, part, whole)
        if found is not None:
            return found
        outside = tried(names, rest, whole)
        if outside is not None:
            return apply(Op.NOT, outside)
    return None


def boxes_of(part: Collection[Point], whole: Collection[Point]) -> list[set[Point]]:
    """The part as few sets, each of which is all points of the whole in some box."""
    rank = len(next(iter(part)))
    if rank == 0:
        return [set(part)]
    ways = (_greedy_boxes(part, whole, axes) for axes in (range(rank), range(rank - 1, -1, -1)))
    return min(ways, key=len)


def _greedy_boxes(
    part: Collection[Point], whole: Collection[Point], axes: Sequence[int]
) -> list[set[Point]]:
    """Each box starts at the first point that is left, and grows along one axis after another."""
    left = np.array(sorted(part), np.int64)
    avoided = np.array(sorted(set(whole) - set(part)), np.int64).reshape(-1, left.shape[1])
    inner = left
    found: list[set[Point]] = []
    while len(left):
        low, high = left[0].copy(), left[0].copy()
        for axis in axes:
            for values, step in ((high, 1), (low, -1)):
                for value in np.unique(inner[:, axis])[::step]:
                    if (value - values[axis]) * step <= 0:
                        continue
                    before, values[axis] = values[axis], value
                    if _those_within(avoided, low, high).any():
                        values[axis] = before
                        break
        mine = _those_within(left, low, high)
        found.append({tuple(map(int, point)) for point in left[mine]})
        left = left[~mine]
    return found


def _those_within(points: Array, low: Array, high: Array) -> Array:
    flags: Array = ((points >= low) & (points <= high)).all(axis=1)
    return flags


def _in_box(names: Sequence[str], part: set[Point], whole: set[Point]) -> Expr | None:
    """By a range for each coordinate."""
    low, high = _box(part)
    if {point for point in whole if _within(point, low, high)} != part:
        return None
    first, last = _box(whole)
    return conjunction(
        *(
            _between(name, low[axis], high[axis], first[axis], last[axis])
            for axis, name in enumerate(names)
        )
    )


def _in_boxes(names: Sequence[str], part: set[Point], whole: set[Point]) -> Expr | None:
    """By several boxes, one after the other: points that an earlier one has do not matter."""
    boxes = boxes_of(part, whole)
    if len(boxes) > _MOST_BOXES:
        return None
    result: Expr | None = None
    for box in boxes:
        low, high = _box(box)
        rest = {point for point in whole if _within(point, low, high)}
        one = _in_box(names, rest, whole)
        result = one if result is None or one is None else apply(Op.OR, result, one)
    return result


def _listed(names: Sequence[str], part: set[Point], whole: set[Point]) -> Expr | None:
    """Point by point, if they are few."""
    if len(part) > _MOST_SINGLE:
        return None
    result: Expr | None = None
    for point in sorted(part):
        one = conjunction(
            *(equals(Index(name=name), const(at)) for name, at in zip(names, point, strict=True))
        )
        result = one if result is None or one is None else apply(Op.OR, result, one)
    return result


def _box(points: Collection[Point]) -> tuple[Point, Point]:
    columns = list(zip(*points, strict=True))
    return tuple(map(min, columns)), tuple(map(max, columns))


def _within(point: Point, low: Point, high: Point) -> bool:
    return all(a <= x <= b for a, x, b in zip(low, point, high, strict=True))


def _between(name: str, low: int, high: int, first: int, last: int) -> Expr | None:
    index = Index(name=name)
    if (low, high) == (first, last):
        return None
    if low == high:
        return equals(index, const(low))
    above = apply(Op.GREATER_EQUAL, index, const(low)) if low > first else None
    below = apply(Op.LESS_EQUAL, index, const(high)) if high < last else None
    return conjunction(above, below)
