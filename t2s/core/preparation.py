"""Work that comes once before what is measured: compiling code, loading and probing libraries.

A clock that measures says ``with preparations() as seconds``; whatever is in ``preparation`` until
then puts its seconds there, and the clock takes them off.  Without such a clock nothing is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter

_CLOCK: ContextVar[list[float] | None] = ContextVar("clock", default=None)


@contextmanager
def preparations() -> Iterator[list[float]]:
    """The seconds of each preparation, as they come."""
    seconds: list[float] = []
    before = _CLOCK.set(seconds)
    try:
        yield seconds
    finally:
        _CLOCK.reset(before)


@contextmanager
def preparation() -> Iterator[None]:
    """What is done here is no part of what is measured; a preparation inside of one is its part."""
    clock = _CLOCK.get()
    before = _CLOCK.set(None)
    begun = perf_counter()
    try:
        yield
    finally:
        _CLOCK.reset(before)
        if clock is not None:
            clock.append(perf_counter() - begun)
