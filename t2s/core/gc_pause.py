"""Pause the cyclic garbage collector while a design is compiled.

A compiler makes many objects that live until it is done.  Every few thousand of them trigger a
search through all objects of the process for garbage cycles, which takes half of the compile time
and finds almost nothing.  So collection is paused while compiling, and resumes when a run begins.
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
    """The number of active pauses in all threads, and whether collection was enabled before."""

    lock: Lock = field(default_factory=Lock)
    blocks: int = 0
    was_on: bool = False


_WAITING = _Waiting()


class gc_paused:
    """Pause the cyclic collector inside the block, in all threads.

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
