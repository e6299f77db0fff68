"""The addresses of functions of the C library, which generated code takes from a table."""

from __future__ import annotations

import ctypes
import sys
from functools import lru_cache

from t2s.core.ops import C_FUNCTIONS


@lru_cache(maxsize=1)
def addresses_of_c_functions() -> tuple[int, ...]:
    """The C library's ``exp`` and so on, which Python's ``math.exp`` also calls."""
    library = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)
    if not hasattr(library, "exp"):
        library = ctypes.CDLL("libm.so.6")
    functions = (getattr(library, name) for name in C_FUNCTIONS.values())
    return tuple(int(ctypes.cast(f, ctypes.c_void_p).value or 0) for f in functions)
