"""Pause the cyclic garbage collector while a design is compiled.

A compiler makes many objects that live until it is done.  Each few thousand of them let Python look
through all objects of the process for cycles, half of the time that compiling takes; what is found
is next to nothing before the end.  So the search waits, and goes on where a run begins.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from threading import Lock
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(slots=True)
class _Waiting:
    """How many blocks hold the search up, in all threads, and whether it was on before."""

    lock: Lock = field(default_factory=Lock)
    blocks: int = 0
    was_on: bool = False


_WAITING = _Waiting()


class gc_paused:
    """Let no search for cycles of garbage begin inside of the block, in any thread.

    For work whose end is in sight, with memory in proportion to its input; a block inside of
    another changes nothing.  A search that the user has switched off stays off.  As a decorator it
    is for all of a function.
    """

    def __enter__(self) -> None:
        with _WAITING.lock:
            if _WAITING.blocks == 0:
                _WAITING.was_on = gc.isenabled()
                gc.disable()
            _WAITING.blocks += 1

    def __exit__(self, *error: object) -> None:
        with _WAITING.lock:
            _WAITING.blocks -= 1
            if _WAITING.blocks == 0 and _WAITING.was_on:
                gc.enable()

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """The function inside of a block; its frame is one of t2s, unlike that of contextlib."""

        @wraps(function)
        def inside(*arguments: P.args, **named: P.kwargs) -> R:
            with self:
                return function(*arguments, **named)

        return inside
