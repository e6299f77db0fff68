"""How many threads libraries use: one, unless more are asked for, because bits depend on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from t2s.core.interrupts import late_module


@cache
def _controller() -> Any:
    """What tells the libraries of this process; those of scipy and numpy are loaded before."""
    late_module("scipy.linalg.cython_blas")
    return late_module("threadpoolctl").ThreadpoolController()


@contextmanager
def threads_of_libraries(count: int) -> Iterator[None]:
    """Let the BLAS and the OpenMP of this process use so many threads inside of the block."""
    with _controller().limit(limits=count):
        yield
