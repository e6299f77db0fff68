"""Axes of a model's arrays, as products of index variables.

Models reshape: the 768 columns of a product become 12 heads of 64 columns.  Index notation has no
quotients of coordinates, so such an axis gets two variables from the start, and so does every axis
that shares its coordinates, back to the inputs; a reshape only groups them in another way then.
An axis of extent 1 has no variable.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod


class NotAligned(Exception):
    """Two axes, or two shapes, that no factors make the same."""


@dataclass(eq=False, slots=True)
class Factors:
    """The factors that have the same variables wherever they meet in a statement."""

    members: list[Factor] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Factor:
    """A part of an axis of one array; ``parts``, the outer one first, once it had to be split."""

    extent: int
    alike: Factors = field(default_factory=Factors)
    parts: tuple[Factor, Factor] | None = None

    def leaves(self) -> Iterator[Factor]:
        """What it consists of, outermost first."""
        if self.parts is None:
            yield self
        else:
            for part in self.parts:
                yield from part.leaves()


Axis = tuple[Factor, ...]
"""The factors of an axis, outermost first."""


def new_axis(extent: int) -> Axis:
    """The axis of an array, which nothing has split yet."""
    if extent == 1:
        return ()
    factor = Factor(extent)
    factor.alike.members.append(factor)
    return (factor,)


def leaves(axis: Axis) -> tuple[Factor, ...]:
    """The factors that have variables."""
    return tuple(leaf for factor in axis for leaf in factor.leaves())


def extent_of(axis: Axis) -> int:
    """The number of coordinates of an axis."""
    return prod(factor.extent for factor in axis)


def unite(left: Axis, right: Axis) -> None:
    """Give two axes the same variables.  Raises ``NotAligned`` if they are split differently."""
    lefts, rights = deque(leaves(left)), deque(leaves(right))
    while lefts and rights:
        one, other = _next(lefts), _next(rights)
        if one.extent == other.extent:
            _merge(one, other)
        elif one.extent % other.extent == 0:
            lefts.appendleft(_split(one, other.extent))
            _merge(one.parts[0], other)  # type: ignore[index]  # it was split
        elif other.extent % one.extent == 0:
            rights.appendleft(_split(other, one.extent))
            _merge(one, other.parts[0])  # type: ignore[index]
        else:
            raise NotAligned(f"{one.extent} and {other.extent}")
    if lefts or rights:
        raise NotAligned(f"{extent_of(left)} and {extent_of(right)}")


def regrouped(axes: Sequence[Axis], extents: Sequence[int]) -> tuple[Axis, ...]:
    """The axes of an array that is reshaped.  Raises ``NotAligned`` if no factors do that."""
    left = deque(leaf for axis in axes for leaf in leaves(axis))
    result: list[Axis] = []
    for extent in extents:
        needed, taken = extent, []
        while needed > 1:
            if not left:
                raise NotAligned(f"{extent}")
            factor = _next(left)
            if factor.extent > needed and factor.extent % needed == 0:
                left.appendleft(_split(factor, needed))
                factor = factor.parts[0]  # type: ignore[index]
            elif needed % factor.extent:
                raise NotAligned(f"{needed} and {factor.extent}")
            taken.append(factor)
            needed //= factor.extent
        result.append(tuple(taken))
    return tuple(result)


def _next(queue: deque[Factor]) -> Factor:
    """Take the first factor out; one that another was split with is replaced by its parts."""
    first, *others = queue.popleft().leaves()
    queue.extendleft(reversed(others))
    return first


def _split(factor: Factor, outer: int) -> Factor:
    """Split a factor and all that are like it; the inner part of this one."""
    inner = factor.extent // outer
    outers, inners = Factors(), Factors()
    for member in factor.alike.members:
        member.parts = Factor(outer, outers), Factor(inner, inners)
        outers.members.append(member.parts[0])
        inners.members.append(member.parts[1])
    assert factor.parts is not None
    return factor.parts[1]


def _merge(one: Factor, other: Factor) -> None:
    if one.alike is not other.alike:
        absorbed = other.alike.members
        for member in absorbed:
            member.alike = one.alike
        one.alike.members += absorbed
