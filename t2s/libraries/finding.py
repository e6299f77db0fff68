"""Symbols of libraries: of capsules, of a shared object that is installed, or compiled here.

Nothing searches the file system: a file is a path that somebody gives, one that the list of files
of an installed wheel has, or a name that the loader of the system knows.  Libraries use one thread
unless more are asked for, because bits depend on it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib import metadata
from typing import Any

from t2s.capability.description import CallNumber, LibraryFile, LibraryOf
from t2s.core.errors import UserError
from t2s.core.interrupts import late_module
from t2s.core.preparation import preparation


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedFile:
    """A shared object in this process: where it is, what its names begin with, its version."""

    path: str
    prefix: str
    version: str
    loaded: Any


@cache
@preparation()
def loaded_files(library: LibraryOf) -> tuple[LoadedFile, ...]:
    """The shared object of a library, loaded and started, and the one beside it.

    Raises ``OSError`` that says of each file why it is not there.
    """
    given = (LibraryFile(name=library.path),)  # without any path: what is linked already
    files = given if library.path or not library.files else library.files
    found = [_first_of(files)]
    if library.beside:
        found.append(_first_of(library.beside))
    for call in library.start:
        numbers = [one.value for one in call.arguments if isinstance(one, CallNumber)]
        getattr(found[0].loaded, found[0].prefix + call.symbol)(*numbers)
    return tuple(found)


def _first_of(files: Sequence[LibraryFile]) -> LoadedFile:
    """The first file that can be loaded."""
    reasons = []
    for one in files:
        path, version = _path_in_wheel(one) if one.wheel else (one.name, "")
        if one.wheel and not path:
            reasons.append(f"no package {one.wheel} is installed")
            continue
        try:
            loaded = ctypes.CDLL(path)
        except OSError as error:
            reasons.append(str(error))
            continue
        return LoadedFile(path=path, prefix=one.prefix, version=version, loaded=loaded)
    raise OSError("; ".join(reasons))


def _path_in_wheel(file: LibraryFile) -> tuple[str, str]:
    """The path and the version of a file of an installed wheel, both empty if it is not there."""
    try:
        found = metadata.distribution(file.wheel)
    except metadata.PackageNotFoundError:
        return "", ""
    for one in sorted(found.files or ()):
        if one.name.startswith(file.name):
            return str(found.locate_file(one).resolve()), found.version  # type: ignore[attr-defined]
    return "", ""


def located(library: LibraryOf) -> LibraryOf:
    """The library by the path of its file, if it is one of several that may be installed."""
    return replace(library, path=loaded_files(library)[0].path) if library.files else library


def exported_name(library: LibraryOf, name: str) -> str:
    """The name that a library gives to a function."""
    return loaded_files(library)[0].prefix + name if library.files else name


@cache
@preparation()
def symbol_address(library: LibraryOf, name: str) -> int:
    """The address of a function, or of a variable.

    Raises ``UserError`` if the library has none of that name, and ``OSError`` if it is not there.
    """
    try:
        if library.capsules:
            return _address_in_capsule(late_module(library.capsules).__pyx_capi__[name])
        if library.llvm:
            return int(late_module("t2s.loops.machine").address_in(library.llvm, name))
        files = loaded_files(library)
        there = [one for one in files if hasattr(one.loaded, one.prefix + name)]
        symbol = getattr((*there, files[0])[0].loaded, (*there, files[0])[0].prefix + name)
        return ctypes.cast(symbol, ctypes.c_void_p).value or 0
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
