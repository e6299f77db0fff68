"""Whether libraries are there: each is loaded, and called once, in a child process first.

What is built for another machine, or finds no device, may end the process that tries.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module, metadata
from typing import Any

from t2s.capability.declare import make_function
from t2s.capability.description import LibraryOf
from t2s.core.errors import UserError
from t2s.core.interrupts import late_module
from t2s.core.location import SourceLocation
from t2s.core.preparation import preparation
from t2s.libraries.calling import CallFrame, call
from t2s.libraries.child import ChildCrash, Say, in_child, in_fresh_process
from t2s.libraries.finding import loaded_files


@dataclass(frozen=True, slots=True, kw_only=True)
class Availability:
    """Whether a library is there: its version, where it was found, and why not."""

    name: str
    there: bool
    version: str = ""
    where: str = ""
    why_not: str = ""


@cache
@preparation()
def availability(library: LibraryOf) -> Availability:
    """Whether the library can be loaded; found out in a child process, once."""
    run = in_fresh_process if library.fresh else in_child
    found = run(partial(_loaded, library))
    if isinstance(found, ChildCrash):
        return Availability(name=library.name, there=False, why_not=f"loading it {found.why}")
    return found if isinstance(found, Availability) else Availability(name="", there=False)


def _loaded(library: LibraryOf, _: Say) -> Availability:
    try:
        if library.capsules:
            module: Any = import_module(library.capsules)
            package = library.capsules.partition(".")[0]
            count = len(module.__pyx_capi__)
            _first_call(library)
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
        if library.llvm:
            late_module("t2s.loops.machine")
            where, version = "compiled for this CPU", metadata.version("llvmlite")
        else:
            found = loaded_files(library)[0]
            where, version = found.path, found.version
        _first_call(library)
    except (ImportError, AttributeError, OSError, UserError) as error:
        why = str(error).splitlines()[0]
        return Availability(name=library.name, there=False, why_not=why)
    return Availability(name=library.name, there=True, version=version, where=where)


def _first_call(library: LibraryOf) -> None:
    """The first call of a library, if it names one that is fit for that."""
    if library.probe is not None:
        probed = make_function(
            library.name, "z = x", call=library.probe, library=library, trusted=True
        )
        status = call(CallFrame(probed, {}, {}))
        if library.probe_fails and status:
            raise UserError(f"{library.probe_fails} (status {status})")


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
