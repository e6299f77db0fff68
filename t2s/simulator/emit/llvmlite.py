"""llvmlite, which carries no types: the one place where it is imported."""

from __future__ import annotations

from typing import Any

from t2s.core.interrupts import late_module

llvmlite_version: str = late_module("llvmlite").__version__

binding: Any = late_module("llvmlite.binding")
"""Compiling LLVM code."""
