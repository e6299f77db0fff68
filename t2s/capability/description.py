"""External functions as data: what they compute, and how a CPU or a simulated device runs them.

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
    """A constant argument."""

    value: float | int
    type: Type


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLetter(Term):
    """A constant character, as the BLAS takes them."""

    letter: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DimensionOf(Term):
    """The extent of a variable in this call; an integer of ``type``, or else of the interface."""

    variable: str
    type: Type | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DataOf(Term):
    """The address of the first value of a tensor."""

    tensor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOf(Term):
    """The stride of a tensor along a mode, in elements; an integer as for ``DimensionOf``."""

    tensor: str
    mode: int
    type: Type | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadOf(Term):
    """The leading dimension of a matrix: the stride of the mode whose stride is not 1."""

    tensor: str
    type: Type | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutOf(Term):
    """One letter or enumerator if a matrix is stored by rows, and another one if by columns."""

    tensor: str
    rows: str | int
    columns: str | int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayOfLevelOf(Term):
    """The address of an array of a level of a sparse tensor: its ``pos`` or its ``crd``.

    Libraries that take the ends of rows get the array from its second element on.
    """

    tensor: str
    level: int
    array: str
    first: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredObject(Term):
    """An object that lives as long as the call, by name; it is passed by address."""

    name: str
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressOf(Term):
    """The address of a number or a letter, as Fortran passes arguments."""

    value: CallTerm


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderOf(Term):
    """The number of modes of a tensor in the call, a C ``int``."""

    tensor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtentsOf(Term):
    """The address of the extents of all modes of a tensor, in the integers of the interface."""

    tensor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsOf(Term):
    """The address of the strides of all modes of a tensor, in the integers of the interface."""

    tensor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelsOf(Term):
    """The address of a string with a letter for each mode of a tensor: that of its variable."""

    tensor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BytesOf(Term):
    """The size in bytes of the values of a tensor, or of an array of one of its levels."""

    tensor: str
    level: int = 0
    array: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountOf(Term):
    """The number of values that a tensor stores, in 64 bits."""

    tensor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StructOf(Term):
    """The address of a struct with these fields, each aligned as in C."""

    fields: tuple[CallTerm, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueIn(Term):
    """The first 64 bits of a declared object: a number or an address."""

    object: str
    type: Type


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueOfSymbol(Term):
    """The address in a variable of the library, such as an operator or a type of GraphBLAS."""

    symbol: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForType(Term):
    """A choice of terms by the type of values."""

    terms: tuple[tuple[Type, CallTerm], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForSemiring(Term):
    """A choice of terms by the semiring."""

    terms: tuple[tuple[Semiring, CallTerm], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalCall(Term):
    """A call of a symbol of the library; ``returns`` is the type of its value, if any."""

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
    """An enumerator, or another ``int`` of C."""
    return CallNumber(value=value, type=INT32)


def handle(name: str) -> DeclaredObject:
    """The address of an object that the library fills with an address: a handle, or an array."""
    return DeclaredObject(name=name, bytes=8)


def held(name: str) -> ValueIn:
    """The address in an object that ``handle`` was passed for."""
    return ValueIn(object=name, type=Int(64))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnedStatus(Term):
    """The call returns a status; values other than ``good`` are errors.

    The same holds for setup and unpacking calls that return anything.
    """

    good: tuple[int, ...] = (0,)
    meanings: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredResult(Term):
    """Where a call leaves a result in compressed rows: terms that are addresses.

    Its arrays are copied before ``teardown``; ``index`` is the type of positions and coordinates.
    """

    pos: CallTerm
    crd: CallTerm
    values: CallTerm
    index: Type


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryFile(Term):
    """A shared object that may be installed, by the name that the system's loader knows.

    With a ``wheel`` it is the file of that distribution whose name begins with ``name``.  The
    symbols of all its functions begin with ``prefix``.
    """

    name: str
    wheel: str = ""
    prefix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryOf(Term):
    """Where symbols come from, and what C code that calls them needs.

    A library is found in one of five ways: ``capsules`` is a module of Python that exports its
    functions as capsules; ``path`` is that of a shared object; of ``files`` (and of ``beside``,
    whose functions are called too) the first one that is installed is loaded; ``llvm`` is a module
    in LLVM's text form, compiled for this CPU; ``package`` is imported by functions in Python.

    ``start`` are calls that are made once, before all others.  ``probe`` is a call without tensors
    that a child process tries first, such as creating a handle; if its status is not 0, the library
    is not available.  A ``fresh`` library is tried in a new process of Python, because its driver
    does not work after a fork.  ``threaded`` libraries use several threads unless told otherwise.
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
    """A function outside of t2s, and what it computes.

    Attributes
    ----------
    name: for plans and errors.
    capability: what it computes, and when.
    call: how it is called; ``setup`` calls come before it, ``teardown`` calls after it, and
        ``unpack`` calls right after it if it succeeded.
    python: instead of a call, a function in Python with the tensors of the statement as arguments.
    hardware: instead of a call, a device of the simulator.
    library: where the symbols come from.
    stored: where the result is, if it is sparse.
    status: what the returned number means, if it is not the result.
    index: the type of extents, strides and positions in the interface; those of a call must fit.
    checker: a predicate that may reject a mapping, called last.
    trusted: its claim is tested elsewhere, so that its first use does not test it.
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
        """``sgemm of MKL``: several libraries may have functions of the same name."""
        return self.name if self.library is None else f"{self.name} of {self.library.name}"

    def __repr__(self) -> str:
        return f"<external function {self.full_name}>"

    def __str__(self) -> str:
        """What it computes, as declared or derived: ``sgemm of BLAS: z(i,k) = x(i,j)*y(j,k)``."""
        return f"{self.full_name}: {print_capability(self.capability)}"

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """The function in Python, as it was written."""
        if self.python is None:
            raise TypeError(f"{self.name} is called by plans; it has no function in Python")
        return self.python(*arguments, **named)


# Functions that are simulated hardware: their memory, their clock, and the link to the host.
#
# Everything here is data: the clock is the device's, and a link has a latency and a bandwidth.


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryOf(Term):
    """A memory that holds tensors of a plan: the host's, or a device's."""

    name: str


HOST = MemoryOf(name="host")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLink(Term):
    """A link between the memory of the host and that of a device.

    A transfer takes ``latency`` seconds, plus its bytes at ``bytes_per_second``; transfers are
    serialized.  With ``overlaps``, which is the user's claim, they are hidden behind computation
    as far as that takes as long.  Raises ``UserError`` for numbers out of range.
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
                "the latency or the bandwidth of a link is out of range",
                location=user_location(),
                expected="seconds, 0 or more, and bytes per second, more than 0",
                given=f"latency={self.latency!r}, bytes_per_second={self.bytes_per_second!r}",
            )

    def seconds(self, count: int) -> float:
        """The seconds that a transfer of this many bytes takes."""
        return self.latency + count / self.bytes_per_second


PCIE3_X8 = HostLink(name="PCIe 3.0 x8", latency=10e-6, bytes_per_second=8e9 * 8 * 128 / 130 / 8)
"""Eight lanes of 8 GT/s, 128b/130b coded; the latency, a driver's, is an estimate."""


class HardwareKind(Enum):
    """The kind of a piece of hardware, for plans and their pictures."""

    ARRAY = "array"
    STREAMS = "streams"
    PATTERNS = "patterns"


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """A function that is run on a device of the simulator, cycle by cycle.

    Attributes
    ----------
    kind: what it is compiled from.
    device, clock_hz: the device, and its cycles per second.
    run: maps tensors by name to the result and the cycles of a call.
    cycles: the cycles of a call, if they do not depend on values; else ``None``.
    link: the link to the device's memory; ``None`` if it shares the host's.
    """

    kind: HardwareKind
    device: str
    clock_hz: int
    run: Callable[[Mapping[str, Any]], tuple[Any, int]]
    cycles: Callable[[], int] | None = None
    link: HostLink | None = None

    @property
    def memory(self) -> MemoryOf:
        """The memory of its operands and its result."""
        return HOST if self.link is None else MemoryOf(name=self.device)
