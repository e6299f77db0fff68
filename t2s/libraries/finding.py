"""Symbols of libraries: from capsules of a Python module, or from a shared object by its path.

Nothing searches the file system.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from t2s.capability.description import LibraryOf
from t2s.core.errors import UserError
from t2s.core.interrupts import late_module


@cache
def symbol_address(library: LibraryOf, name: str) -> int:
    """The address of a function.  Raises ``UserError`` if the library has no such function."""
    try:
        if library.capsules:
            return _address_in_capsule(late_module(library.capsules).__pyx_capi__[name])
        loaded = ctypes.CDLL(library.path)
        return ctypes.cast(getattr(loaded, name), ctypes.c_void_p).value or 0
    except (KeyError, AttributeError):
        raise UserError(
            f"{library.name} has no function {name}",
            expected="the name of one of its functions",
            given=name,
        ) from None


def _address_in_capsule(capsule: Any) -> int:
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(pointer(capsule, name(capsule)))
