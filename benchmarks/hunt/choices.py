"""Decisions that make a case, so that the same case can be made again, and a smaller one tried."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """Numbers drawn at random, or those of a list and then zeros; ``taken`` says which they were.

    Generators put what is simple first, so that smaller numbers mean simpler cases.
    """

    def __init__(self, seed: int | str | None = None, given: Sequence[int] = ()) -> None:
        self._random = Random(seed) if seed is not None else None
        self._given = list(given)
        self.taken: list[int] = []

    def below(self, limit: int) -> int:
        """A number from 0 to ``limit - 1``."""
        if self._random is not None:
            number = self._random.randrange(limit)
        else:
            at = len(self.taken)
            number = min(self._given[at], limit - 1) if at < len(self._given) else 0
        self.taken.append(number)
        return number

    def between(self, first: int, last: int) -> int:
        """A number from ``first`` to ``last``; ``first`` is the simplest."""
        return first + self.below(last - first + 1)

    def one_of(self, items: Sequence[T]) -> T:
        """An item; the first is the simplest."""
        return items[self.below(len(items))]

    def chance(self, one_in: int) -> bool:
        """True once in so many times; false is simpler."""
        return self.below(one_in) == one_in - 1

    def some(self, items: Sequence[T], most: int | None = None) -> list[T]:
        """Some of the items, in their order."""
        count = self.below(min(len(items), len(items) if most is None else most) + 1)
        return self.shuffled(items)[:count]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """All items in some order; the given one is the simplest."""
        left, order = list(items), []
        while left:
            order.append(left.pop(self.below(len(left))))
        return order


def smaller(taken: list[int]) -> Iterator[list[int]]:
    """Lists of decisions that may make a smaller case: without some, or with smaller numbers."""
    width = max(1, len(taken) // 2)
    while width:
        for at in range(0, len(taken), width):
            yield taken[:at] + taken[at + width :]
        width //= 2
    for at, number in enumerate(taken):
        for less in {0, number // 2, number - 1}:
            if 0 <= less < number:
                yield [*taken[:at], less, *taken[at + 1 :]]


def minimized(
    taken: list[int], fails: Callable[[list[int]], list[int] | None], tries: int = 400
) -> list[int]:
    """The smallest list of decisions found that still fails.

    ``fails`` gives the decisions that a case really took if it fails as the first one did.
    """
    best, left = taken, tries
    improved = True
    while improved and left > 0:
        improved = False
        for candidate in smaller(best):
            left -= 1
            if left <= 0:
                break
            found = fails(candidate)
            if found is not None and (len(found), found) < (len(best), best):
                best, improved = found, True
                break
    return best
