"""Carrying the partial results of a reduction through a loop nest.

Each step of a reduction needs the result of the step before it for the same element.  Which PE
computed that, and how long ago, follows from the nest: if the last reduction loop that advanced is
``d``, all reduction loops inside ``d`` have just gone from their last iteration back to their
first.

* If neither ``d`` nor any of those is unrolled, the previous step ran in the same PE: the partial
  result waits in a register file with one register for each element that the PE works on in between
  (the register file before the outermost such loop, T2S-Tensor §IV.B).  If the trip count of an
  element loop varies, the file has room for its longest run and an element is addressed by its
  distance from the start of the run: loops outside of the file do not advance between two steps of
  an element, so its address stays the same.
* Otherwise it ran in another PE: a *hop* along a channel.  The token waits in the channel until
  its turn, so a hop over a loop in time needs room for all elements in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class CarryLoop:
    """A loop, reduced to what carrying depends on.

    ``extent`` is the largest number of iterations that it ever has, ``least`` the smallest one, or
    ``None`` where iterations of a reduction differ in it.
    """

    name: str
    extent: int
    least: int | None
    reduction: bool
    space: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CarryRegisters:
    """Partial results kept in the PE.

    ``loops`` are the loops that address the file, outermost first, ``distance`` the smallest number
    of firings from writing an element to reading it again.
    """

    loops: tuple[str, ...]
    shape: tuple[int, ...]
    distance: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """Partial results that move to another PE when ``loop`` advances.

    ``inner`` are the reduction loops inside ``loop``: the sender is at their last iteration and the
    receiver at their first.  ``waiting`` is the number of tokens that wait in the channel.
    """

    loop: str
    inner: tuple[str, ...]
    waiting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CarryPlan:
    """How each step of a reduction gets the result of the step before it."""

    registers: CarryRegisters | None
    hops: tuple[Hop, ...]


def plan_carry(loops: Sequence[CarryLoop]) -> CarryPlan:
    """The plan for a nest, outermost loop first (vector loops left out)."""
    reductions = [loop for loop in loops if loop.reduction]
    last_space = max((at for at, loop in enumerate(reductions) if loop.space), default=-1)
    hops = tuple(
        Hop(
            loop=loop.name,
            inner=tuple(inner.name for inner in reductions[at + 1 :]),
            waiting=0 if loop.space else _elements_inside(loops, loop),
        )
        for at, loop in enumerate(reductions[: last_space + 1])
        if loop.extent > 1
    )
    local = reductions[last_space + 1 :]
    if not local:
        return CarryPlan(registers=None, hops=hops)
    addressed = [loop for loop in _inside(loops, local[0]) if not loop.reduction]
    return CarryPlan(
        registers=CarryRegisters(
            loops=tuple(loop.name for loop in addressed),
            shape=tuple(loop.extent for loop in addressed),
            distance=min(_distance(loops, loop) for loop in local),
        ),
        hops=hops,
    )


def _inside(loops: Sequence[CarryLoop], outer: CarryLoop) -> list[CarryLoop]:
    """The time loops inside a loop."""
    return [loop for loop in loops[list(loops).index(outer) + 1 :] if not loop.space]


def _elements_inside(loops: Sequence[CarryLoop], outer: CarryLoop) -> int:
    return prod(loop.extent for loop in _inside(loops, outer) if not loop.reduction)


def _distance(loops: Sequence[CarryLoop], advancing: CarryLoop) -> int:
    """Fewest firings between consecutive steps of one element when ``advancing`` advances.

    Every iteration of a reduction loop visits the same elements, so the elements behind one and
    those before it in the next iteration are together all of them, however many they are.
    """
    inner = _inside(loops, advancing)
    least = [loop.least for loop in inner]
    if None in least:
        return 1
    stride = prod(count for count in least if count is not None)
    back = sum(
        (loop.extent - 1) * prod(deeper.extent for deeper in _inside(loops, loop))
        for loop in inner
        if loop.reduction
    )
    return max(1, stride - back)


Array = np.ndarray[Any, Any]


class Target(Enum):
    """Whether combined reductions go to the same result.

    ``SameTarget``: all do.  ``MaybeDifferentTarget``: neighbors may have different ones.
    """

    SAME = "SameTarget"
    MAYBE_DIFFERENT = "MaybeDifferentTarget"

    def __repr__(self) -> str:
        return self.value


SameTarget, MaybeDifferentTarget = Target.SAME, Target.MAYBE_DIFFERENT


def interrupted_target(targets: Array) -> tuple[int, int] | None:
    """A target that a stream returns to after another one: (stream, target); else ``None``.

    ``targets`` has a row for each stream; negative ones are not targets.
    """
    streams, values = _changes(targets)
    order = np.lexsort((values, streams))
    streams, values = streams[order], values[order]
    again = np.flatnonzero((streams[1:] == streams[:-1]) & (values[1:] == values[:-1]))
    return (int(streams[again[0]]), int(values[again[0]])) if again.size else None


def shared_target(targets: Array) -> tuple[int, int, int] | None:
    """A target of two streams: (stream, other stream, target); ``None`` if there is none."""
    streams, values = _changes(targets)
    order = np.lexsort((streams, values))
    streams, values = streams[order], values[order]
    shared = np.flatnonzero((streams[1:] != streams[:-1]) & (values[1:] == values[:-1]))
    if not shared.size:
        return None
    at = int(shared[0])
    return int(streams[at]), int(streams[at + 1]), int(values[at])


def _changes(targets: Array) -> tuple[Array, Array]:
    """The (stream, target) pairs at which a stream moves on to another target."""
    present = targets.reshape(-1) >= 0
    streams = np.repeat(np.arange(targets.shape[0]), targets.shape[1])[present]
    values = targets.reshape(-1)[present]
    first = np.ones(values.size, bool)
    first[1:] = (values[1:] != values[:-1]) | (streams[1:] != streams[:-1])
    return streams[first], values[first]
