"""Unique names within one compilation."""

from __future__ import annotations

from collections.abc import Iterable


class NameSupply:
    """Hands out names that are not taken yet; one object per compilation, no global counter."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)

    def fresh(self, wanted: str) -> str:
        """``wanted`` if it is free, else ``wanted_2``, ``wanted_3`` and so on."""
        name, count = wanted, 1
        while name in self._taken:
            count += 1
            name = f"{wanted}_{count}"
        self._taken.add(name)
        return name
