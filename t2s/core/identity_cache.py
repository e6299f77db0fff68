"""Results by the identity of what they are of: to compare two large terms takes longer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


class IdentityCache(Generic[ItemT, ResultT]):
    """Results by object; each object is kept, so that no other one gets its number."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[int, tuple[ItemT, ResultT]] = {}

    def get(self, item: ItemT, make: Callable[[ItemT], ResultT]) -> ResultT:
        """The result for an object, computed by ``make`` of it the first time."""
        kept = self._kept.get(id(item))
        if kept is None:
            kept = self._kept[id(item)] = item, make(item)
        return kept[1]
