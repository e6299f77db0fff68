"""llvmlite, which carries no types: the one place where it is imported."""

from __future__ import annotations

from typing import Any

from t2s.core.interrupts import late_module

ir: Any = late_module("llvmlite.ir")
"""Building LLVM code."""

llvmlite_version: str = late_module("llvmlite").__version__

binding: Any = late_module("llvmlite.binding")
"""Compiling it."""

Builder = Any
Block = Any
Function = Any
Value = Any
"""An ``llvmlite.ir`` value; ``Builder``, ``Block`` and ``Function`` likewise."""
