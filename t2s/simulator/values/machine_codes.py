"""Facts about a machine: how its rules and the points where it may wait are numbered."""

from __future__ import annotations

import numpy as np

from t2s.graph.machine import Choice, Machine, MemoryAdd, Rule

_BYTE_CODES = 256


def code_type(node: Machine) -> np.dtype[np.generic]:
    """The type of the codes in the traces of a machine."""
    return np.dtype(np.uint8 if len(node.paths()) <= _BYTE_CODES else np.uint16)


def waits(node: Machine) -> tuple[tuple[str, ...], ...]:
    """The heads needed up to each point of the code where a machine may wait, the last one missing.

    The points are numbered in this order.
    """
    found: list[tuple[str, ...]] = []

    def enter(before: tuple[str, ...], needs: tuple[str, ...], choices: tuple[Choice, ...]) -> None:
        found.extend(before + needs[: count + 1] for count in range(len(needs)))
        for choice in choices:
            inner = () if isinstance(choice.inside, Rule) else choice.inside
            enter(before + needs, choice.needs, inner)
            if choice.when is None:
                return

    for mode in node.modes:
        enter((), mode.needs, mode.choices)
    return tuple(found)


def most_adds(node: Machine, memory: str) -> int:
    """The most points that a firing adds to a sorted memory."""
    return max(
        sum(isinstance(s, MemoryAdd) and s.memory == memory for s in path.rule.body)
        for path in node.paths()
    )
