"""llvmlite, which carries no types: the one place where it is imported."""

from __future__ import annotations

from typing import Any

import llvmlite
import llvmlite.binding
import llvmlite.ir

ir: Any = llvmlite.ir
"""Building LLVM code."""

llvmlite_version: str = llvmlite.__version__

binding: Any = llvmlite.binding
"""Compiling it."""

Builder = Any
Block = Any
Function = Any
Value = Any
"""An ``llvmlite.ir`` value; ``Builder``, ``Block`` and ``Function`` likewise."""
