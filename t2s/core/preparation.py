"""Work that comes once before what is measured: compiling code, loading and probing libraries.

``timed`` runs something and gives its seconds without those that passed in ``preparation``.
Outside of ``timed``, ``preparation`` changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter
from typing import TypeVar

T = TypeVar("T")

_CLOCK: ContextVar[list[float] | None] = ContextVar("clock", default=None)
"""The seconds of the preparations so far; ``None`` where nobody measures."""


def timed(run: Callable[[], T]) -> tuple[T, float]:
    """The result of ``run`` and the seconds that it took, without those of preparations."""
    prepared: list[float] = []
    before = _CLOCK.set(prepared)
    try:
        begun = perf_counter()
        result = run()
        return result, perf_counter() - begun - sum(prepared)
    finally:
        _CLOCK.reset(before)


@contextmanager
def preparation() -> Iterator[None]:
    """Take the time of what is done here off the time of ``timed``, nested preparations once."""
    clock = _CLOCK.get()
    before = _CLOCK.set(None)
    begun = perf_counter()
    try:
        yield
    finally:
        _CLOCK.reset(before)
        if clock is not None:
            clock.append(perf_counter() - begun)
