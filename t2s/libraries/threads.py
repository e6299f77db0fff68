"""How many threads libraries use: one, unless more are asked for, because bits depend on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from t2s.capability.description import LibraryOf
from t2s.core.interrupts import late_module
from t2s.libraries.finding import loaded_files


@cache
def _controller(files: int) -> Any:
    """What tells the libraries of this process, found anew when there are more ``files``.

    Those of scipy and numpy are loaded before.
    """
    late_module("scipy.linalg.cython_blas")
    return late_module("threadpoolctl").ThreadpoolController()


@contextmanager
def threads_of_libraries(count: int, libraries: Iterable[LibraryOf | None] = ()) -> Iterator[None]:
    """Let the BLAS and the OpenMP of this process use so many threads inside of the block.

    These libraries, which are there, are among them: they are loaded first.
    """
    for one in libraries:
        if one is not None and one.files:
            loaded_files(one)
    with _controller(loaded_files.cache_info().currsize).limit(limits=count):
        yield
