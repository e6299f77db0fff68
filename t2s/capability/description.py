"""External functions as data: what is computed, how it is called, where it comes from.

A call is a tuple of frozen terms, which ``libraries/calling.py`` interprets over ctypes; the same
terms can be printed as C.  A function in Python takes numpy views, by the names of its tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from t2s.capability.hardware import Hardware
from t2s.capability.ir import Capability
from t2s.core.location import SourceLocation
from t2s.core.types import Type
from t2s.core.walk import Term


@dataclass(frozen=True, slots=True, kw_only=True)
class CallNumber(Term):
    """A number of the interface."""

    value: float | int
    type: Type


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLetter(Term):
    """A character, as those of the BLAS."""

    letter: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DimensionOf(Term):
    """The extent of a variable in the call, an integer of the interface."""

    variable: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DataOf(Term):
    """The address of the first value of a tensor."""

    tensor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOf(Term):
    """Elements from one to the next of a tensor along a mode, an integer of the interface."""

    tensor: str
    mode: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadOf(Term):
    """The leading dimension of a matrix: the step of the mode whose step is not 1."""

    tensor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutOf(Term):
    """One letter if a matrix is stored by rows, another one if by columns."""

    tensor: str
    rows: str
    columns: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayOfLevelOf(Term):
    """The address of an array of a level of a stored tensor: its ``pos`` or its ``crd``."""

    tensor: str
    level: int
    array: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredObject(Term):
    """An object of so many bytes that lives as long as the call, by its name; given by address."""

    name: str
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressOf(Term):
    """The address of a number or a letter: the interface of Fortran."""

    value: CallTerm


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalCall(Term):
    """A call of a symbol of the library; ``returns`` is the type of its value, if it has one."""

    symbol: str
    arguments: tuple[CallTerm, ...]
    returns: Type | None = None


CallTerm = (
    CallNumber
    | CallLetter
    | DimensionOf
    | DataOf
    | StepOf
    | LeadOf
    | LayoutOf
    | ArrayOfLevelOf
    | DeclaredObject
    | AddressOf
    | ExternalCall
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnedStatus(Term):
    """The call returns a number that says how it went; others than ``good`` are errors."""

    good: tuple[int, ...] = (0,)
    meanings: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryOf(Term):
    """Where symbols come from, and what C code of them needs.

    ``capsules`` is a module of Python that hands out its functions as capsules; ``path`` is that of
    a shared object; ``package`` is imported by functions in Python.  ``probe`` is a call without
    tensors that a child process tries first: it creates a handle, or does nothing.  ``threaded``
    libraries use several threads unless they are told not to.
    """

    name: str
    package: str = ""
    path: str = ""
    capsules: str = ""
    includes: tuple[str, ...] = ()
    library_paths: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    probe: ExternalCall | None = None
    how_to_get: str = ""
    threaded: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class ExternalFunction:
    """A function that somebody else wrote, and what it computes.

    Attributes
    ----------
    name: for plans and errors.
    capability: what it computes, and when.
    call: how it is called; ``setup`` and ``teardown`` come before and behind it, one by one.
    python: in place of a call, a function in Python with the tensors of the statement as arguments.
    hardware: in place of a call, a device of the simulator.
    library: where the symbols come from.
    status: what the returned number says, if it is none of the result.
    index: the type of extents, steps and positions in the interface; those of a call have to fit.
    checker: a predicate on the mapping, which has the last word.
    trusted: whether its claim is tested elsewhere, so that its first use does not try it.
    """

    name: str
    capability: Capability
    call: ExternalCall | None = None
    setup: tuple[ExternalCall, ...] = ()
    teardown: tuple[ExternalCall, ...] = ()
    python: Callable[..., Any] | None = None
    parameters: tuple[str, ...] = ()
    hardware: Hardware | None = None
    library: LibraryOf | None = None
    status: ReturnedStatus | None = None
    index: Type | None = None
    checker: Callable[[Any], bool] | None = None
    trusted: bool = False
    cost: Mapping[str, str] = field(default_factory=dict)
    location: SourceLocation | None = None

    def __repr__(self) -> str:
        from_library = f" of {self.library.name}" if self.library is not None else ""
        return f"<external function {self.name}{from_library}>"

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """The function in Python, as it was written."""
        if self.python is None:
            raise TypeError(f"{self.name} is called by plans; it has no function in Python")
        return self.python(*arguments, **named)
