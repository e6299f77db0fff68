"""External functions as data: what is computed, how and where; functions that are hardware.

A call is a tuple of frozen terms, which ``libraries/calling.py`` interprets over ctypes; the same
terms can be printed as C.  A function in Python takes numpy views, by the names of its tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from math import isfinite
from typing import Any

from t2s.capability.ir import Capability, print_capability
from t2s.core.errors import UserError
from t2s.core.location import SourceLocation, user_location
from t2s.core.types import INT32, Int, Type
from t2s.core.walk import Term
from t2s.sparse_repr.semiring import Semiring


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
    """The extent of a variable in the call, an integer of the interface or of the ``type``."""

    variable: str
    type: Type | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DataOf(Term):
    """The address of the first value of a tensor."""

    tensor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOf(Term):
    """Elements from one to the next of a tensor along a mode, an integer as ``DimensionOf``."""

    tensor: str
    mode: int
    type: Type | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadOf(Term):
    """The leading dimension of a matrix, an integer as ``DimensionOf``.

    It is the step of the mode whose step is not 1.
    """

    tensor: str
    type: Type | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutOf(Term):
    """One letter, or enumerator, if a matrix is stored by rows, another one if by columns."""

    tensor: str
    rows: str | int
    columns: str | int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayOfLevelOf(Term):
    """The address of an array of a level of a stored tensor: its ``pos`` or its ``crd``.

    Libraries that want the end of each row are given the array from its second element on.
    """

    tensor: str
    level: int
    array: str
    first: int = 0


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
class OrderOf(Term):
    """The number of modes of a tensor in the call, an integer of C."""

    tensor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtentsOf(Term):
    """The address of the extents of all modes of a tensor, in the integers of the interface."""

    tensor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsOf(Term):
    """The address of the steps of all modes of a tensor, in the integers of the interface."""

    tensor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelsOf(Term):
    """The address of a text with a letter for each mode of a tensor: that of its variable."""

    tensor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BytesOf(Term):
    """How many bytes the values of a tensor take, or an array of one of its levels."""

    tensor: str
    level: int = 0
    array: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountOf(Term):
    """How many values a tensor stores, 64 bits."""

    tensor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StructOf(Term):
    """The address of a struct with these fields, each at a place that is aligned for it."""

    fields: tuple[CallTerm, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueIn(Term):
    """What a declared object holds at its beginning: a number, or an address (64 bits)."""

    object: str
    type: Type


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueOfSymbol(Term):
    """The address that a variable of the library holds: an operator or a type of GraphBLAS."""

    symbol: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForType(Term):
    """A term for each type of values; that of the call is taken."""

    terms: tuple[tuple[Type, CallTerm], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForSemiring(Term):
    """A term for each semiring; that of the call is taken."""

    terms: tuple[tuple[Semiring, CallTerm], ...]


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
    | OrderOf
    | ExtentsOf
    | StepsOf
    | LabelsOf
    | BytesOf
    | CountOf
    | StructOf
    | ValueIn
    | ValueOfSymbol
    | ForType
    | ForSemiring
    | ExternalCall
)


NULL = CallNumber(value=0, type=Int(64))
"""No address."""


def enumerator(value: int) -> CallNumber:
    """An enumerator, or another integer of C."""
    return CallNumber(value=value, type=INT32)


def handle(name: str) -> DeclaredObject:
    """The address of an object in which a library puts an address: a handle, or an array."""
    return DeclaredObject(name=name, bytes=8)


def held(name: str) -> ValueIn:
    """The address that such an object holds."""
    return ValueIn(object=name, type=Int(64))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnedStatus(Term):
    """The call returns a number that says how it went; others than ``good`` are errors.

    So do those before it and those that unpack its result, if they return anything.
    """

    good: tuple[int, ...] = (0,)
    meanings: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredResult(Term):
    """Where a result in compressed rows is behind the call: terms that are addresses.

    Its arrays are copied before ``teardown``; ``index`` is the type of positions and coordinates.
    """

    pos: CallTerm
    crd: CallTerm
    values: CallTerm
    index: Type


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryFile(Term):
    """A shared object that may be installed: one that the loader of the system knows by its name.

    Of a ``wheel`` it is the file of that distribution whose name begins so.  The names of all its
    functions have the ``prefix``.
    """

    name: str
    wheel: str = ""
    prefix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryOf(Term):
    """Where symbols come from, and what C code of them needs.

    ``capsules`` is a module of Python that hands out its functions as capsules; ``path`` is that of
    a shared object; the first one of ``files`` that is installed is taken, and of ``beside``, whose
    functions are called too; ``llvm`` is a module of LLVM as text, compiled for this CPU;
    ``package`` is imported by functions in Python.  ``start`` are calls with numbers that come
    once, before all others.  ``probe`` is a call without tensors
    that a child process tries first: it creates a handle, or does nothing; a status of it that is
    not 0 says that nothing can be computed.  A ``fresh`` library is tried in a new process of
    Python, since its driver does not work in a copy of one that has used it.  ``threaded``
    libraries use several threads unless they are told not to.
    """

    name: str
    package: str = ""
    path: str = ""
    files: tuple[LibraryFile, ...] = ()
    beside: tuple[LibraryFile, ...] = ()
    capsules: str = ""
    llvm: str = ""
    includes: tuple[str, ...] = ()
    library_paths: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    start: tuple[ExternalCall, ...] = ()
    probe: ExternalCall | None = None
    probe_fails: str = ""
    how_to_get: str = ""
    fresh: bool = False
    threaded: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class ExternalFunction:
    """A function that somebody else wrote, and what it computes.

    Attributes
    ----------
    name: for plans and errors.
    capability: what it computes, and when.
    call: how it is called; ``setup`` and ``teardown`` come before and behind it, one by one, and
        ``unpack`` right behind it, if it went well.
    python: in place of a call, a function in Python with the tensors of the statement as arguments.
    hardware: in place of a call, a device of the simulator.
    library: where the symbols come from.
    stored: where the result is, if it is sparse.
    status: what the returned number says, if it is none of the result.
    index: the type of extents, steps and positions in the interface; those of a call have to fit.
    checker: a predicate on the mapping, which has the last word.
    trusted: whether its claim is tested elsewhere, so that its first use does not try it.
    """

    name: str
    capability: Capability
    call: ExternalCall | None = None
    setup: tuple[ExternalCall, ...] = ()
    unpack: tuple[ExternalCall, ...] = ()
    teardown: tuple[ExternalCall, ...] = ()
    python: Callable[..., Any] | None = None
    parameters: tuple[str, ...] = ()
    hardware: Hardware | None = None
    library: LibraryOf | None = None
    stored: StoredResult | None = None
    status: ReturnedStatus | None = None
    index: Type | None = None
    checker: Callable[[Any], bool] | None = None
    trusted: bool = False
    location: SourceLocation | None = None

    @property
    def full_name(self) -> str:
        """``sgemm of MKL``: several libraries have functions of one name."""
        return self.name if self.library is None else f"{self.name} of {self.library.name}"

    def __repr__(self) -> str:
        return f"<external function {self.full_name}>"

    def __str__(self) -> str:
        """What it computes, as said or derived: ``sgemm of BLAS: z(i,k) = x(i,j)*y(j,k)``."""
        return f"{self.full_name}: {print_capability(self.capability)}"

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """The function in Python, as it was written."""
        if self.python is None:
            raise TypeError(f"{self.name} is called by plans; it has no function in Python")
        return self.python(*arguments, **named)


# Functions that are hardware of the simulator: where they are, what they take, and the way there.
#
# Everything here is data: the clock is the device's, and a link has a latency and a bandwidth.


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryOf(Term):
    """A memory that tensors of a plan are in: that of the host, or that of a device."""

    name: str


HOST = MemoryOf(name="host")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLink(Term):
    """A way from the memory of the host to that of a device and back.

    A transfer takes ``latency`` seconds, and its bytes at ``bytes_per_second``.  Transfers come one
    after the other.  With ``overlaps`` they are hidden behind what the device computes, as far as
    that takes as long; it is for the user to say so.  Raises ``UserError`` for other numbers.
    """

    name: str = "a link"
    latency: float
    bytes_per_second: float
    overlaps: bool = False

    def __post_init__(self) -> None:
        numbers = (self.latency, self.bytes_per_second)
        known = all(isinstance(number, int | float) and isfinite(number) for number in numbers)
        if not known or self.latency < 0 or self.bytes_per_second <= 0:
            raise UserError(
                "a link has a latency and a bandwidth",
                location=user_location(),
                expected="seconds, 0 or more, and bytes per second, more than 0",
                given=f"latency={self.latency!r}, bytes_per_second={self.bytes_per_second!r}",
            )

    def seconds(self, count: int) -> float:
        """How long a transfer of so many bytes takes."""
        return self.latency + count / self.bytes_per_second


PCIE3_X8 = HostLink(name="PCIe 3.0 x8", latency=10e-6, bytes_per_second=8e9 * 8 * 128 / 130 / 8)
"""Eight lanes of 8 GT/s with 128 bits in 130; the latency, of a driver, is an estimate of ours."""


class HardwareKind(Enum):
    """What a piece of hardware is, for plans and their pictures."""

    ARRAY = "array"
    STREAMS = "streams"
    PATTERNS = "patterns"


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """A function that is run on a device of the simulator, cycle by cycle.

    Attributes
    ----------
    kind: what it is made of.
    device, clock_hz: whose cycles these are, and how many there are in a second.
    run: from tensors by name to the result and the cycles of a call.
    cycles: the cycles of any call, where they do not depend on values; ``None`` where they do.
    link: the way to the device's memory; ``None`` if it shares that of the host.
    """

    kind: HardwareKind
    device: str
    clock_hz: int
    run: Callable[[Mapping[str, Any]], tuple[Any, int]]
    cycles: Callable[[], int] | None = None
    link: HostLink | None = None

    @property
    def memory(self) -> MemoryOf:
        """Where its operands and its result are."""
        return HOST if self.link is None else MemoryOf(name=self.device)
