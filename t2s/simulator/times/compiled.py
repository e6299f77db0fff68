"""How numba compiles the table kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from t2s.core.interrupts import late_module

F = TypeVar("F", bound=Callable[..., Any])

# The kernels allocate nothing.  Without the run-time for reference counts (``_nrt``) passing an
# array to an inlined function costs nothing; with it, an atomic addition: a third of a firing.
# What numba makes is kept by ``kernels``, and never by numba: its own cache raises where it
# cannot be written, or is damaged.
_njit = late_module("numba").njit
_OPTIONS = {"nogil": True, "error_model": "numpy", "_nrt": False}
_ALONE = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

compiled: Callable[[F], F] = _njit(**_OPTIONS)
"""A function that tests call, too."""

within: Callable[[F], F] = _njit(**_OPTIONS, **_ALONE)
"""A function that kernels alone may call: there is no way into it from Python, and it takes half as
long to compile."""

inlined: Callable[[F], F] = _njit(**_OPTIONS, **_ALONE, forceinline=True)
"""The same, put where it is called."""
