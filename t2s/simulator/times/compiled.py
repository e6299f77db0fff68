"""Marks of functions that become machine code as parts of the table kernel: see ``translate``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from t2s.simulator.emit.translate import inlined as inlined

F = TypeVar("F", bound=Callable[..., Any])


def within(function: F) -> F:
    """A function of its own, which LLVM may put where it is called."""
    return function


compiled = within
"""The same; a kernel begins with such a function."""
