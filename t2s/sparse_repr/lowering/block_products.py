"""Products of blocks: in which order factors are multiplied, and which axes each step sums over.

An axis is the part of a variable inside of its blocks.  The sum of a product over axes that only
some factors have is that of these factors alone, times the others.  So factors that share what is
summed are contracted first, as matrices, and no step has axes that the result does not need.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

Axes = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SumStep:
    """The sum of a factor over axes; the result is a new factor, numbered behind all others."""

    factor: int
    over: Axes


@dataclass(frozen=True, slots=True)
class ProductStep:
    """The product of two factors, summed over axes that both have; a new factor.

    Without axes to sum over it is element by element.
    """

    left: int
    right: int
    over: Axes = ()


Step = SumStep | ProductStep


def steps_of_product(
    factors: Sequence[Axes], kept: Collection[str], sizes: Mapping[str, int]
) -> tuple[Step, ...]:
    """The steps from the factors of a product to its sum over all axes that are not kept."""
    live: dict[int, Axes] = dict(enumerate(factors))
    steps: list[Step] = []

    def needed_without(*numbers: int) -> set[str]:
        others = (axes for number, axes in live.items() if number not in numbers)
        return {*kept, *(name for axes in others for name in axes)}

    def made(step: Step, axes: Axes, *used: int) -> None:
        for number in used:
            del live[number]
        steps.append(step)
        live[len(factors) + len(steps) - 1] = axes

    while True:
        for number, axes in list(live.items()):
            needed = needed_without(number)
            own = tuple(name for name in axes if name not in needed)
            if own:
                rest = tuple(name for name in axes if name in needed)
                made(SumStep(number, own), rest, number)
        if len(live) == 1:
            return tuple(steps)
        pairs = [
            _pair(live, left, right, needed_without(left, right), sizes)
            for left, right in combinations(live, 2)
        ]
        _, step, axes = min(pairs, key=lambda pair: pair[0])
        made(step, axes, step.left, step.right)


def _pair(
    live: Mapping[int, Axes], left: int, right: int, needed: set[str], sizes: Mapping[str, int]
) -> tuple[tuple[bool, int], ProductStep, Axes]:
    """The product of two factors, with its rank: matrices first, then the smallest results."""
    one, other = live[left], live[right]
    shared = tuple(name for name in one if name in other)
    over = tuple(name for name in shared if name not in needed)
    if over and over == shared:
        axes = tuple(name for name in dict.fromkeys((*one, *other)) if name not in over)
        step = ProductStep(left, right, over)
    else:
        axes, step = tuple(dict.fromkeys((*one, *other))), ProductStep(left, right)
    return (not step.over, prod(sizes[name] for name in axes)), step, axes
