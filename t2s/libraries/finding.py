"""Symbols of libraries: from capsules of a Python module, or from a shared object by its path.

A library is probed in a child process first, since what is built for another machine may end the
process that loads it.  Nothing searches the file system.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from importlib import import_module, metadata
from typing import Any

from t2s.capability.description import LibraryOf
from t2s.core.errors import UserError
from t2s.core.interrupts import late_module
from t2s.core.location import SourceLocation
from t2s.libraries.child import ChildCrash, in_child


@dataclass(frozen=True, slots=True, kw_only=True)
class Availability:
    """Whether a library is there: its version, where it was found, and why not."""

    name: str
    there: bool
    version: str = ""
    where: str = ""
    why_not: str = ""


@cache
def availability(library: LibraryOf) -> Availability:
    """Whether the library can be loaded; found out in a child process, once."""
    found = in_child(lambda say: _loaded(library))
    if isinstance(found, ChildCrash):
        return Availability(name=library.name, there=False, why_not=f"loading it {found.why}")
    return found if isinstance(found, Availability) else Availability(name="", there=False)


def _loaded(library: LibraryOf) -> Availability:
    try:
        if library.capsules:
            module: Any = import_module(library.capsules)
            package = library.capsules.partition(".")[0]
            count = len(module.__pyx_capi__)
            return Availability(
                name=library.name,
                there=count > 0,
                version=metadata.version(package),
                where=f"{library.capsules}, {count} functions",
            )
        if library.package:
            import_module(library.package)
            version = metadata.version(library.package)
            return Availability(
                name=library.name, there=True, version=version, where=f"package {library.package}"
            )
        ctypes.CDLL(library.path)
    except (ImportError, AttributeError, OSError) as error:
        return Availability(name=library.name, there=False, why_not=str(error))
    return Availability(name=library.name, there=True, where=library.path)


def check_available(library: LibraryOf, what: str, location: SourceLocation | None) -> None:
    """Raise ``UserError`` with how to get a library that is not there."""
    found = availability(library)
    if not found.there:
        raise UserError(
            f"{what} is not available: {library.name} is not there",
            location=location,
            expected=f"{library.name}, found by its path or as a package of Python",
            given=found.why_not,
            hint=library.how_to_get or None,
        )


@cache
def symbol_address(library: LibraryOf, name: str) -> int:
    """The address of a function.  Raises ``UserError`` if the library has no such function."""
    check_available(library, name, None)
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
