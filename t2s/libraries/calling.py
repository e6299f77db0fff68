"""Calling described functions over ctypes: loading libraries, symbols, arguments, results.

Descriptions are interpreted term by term.  The tensors of a call are numpy views whose strides the
function takes; extents are those of the call.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial
from importlib import import_module, metadata
from typing import Any, assert_never

import numpy as np

from t2s.capability.declare import make_function
from t2s.capability.description import (
    AddressOf,
    ArrayOfLevelOf,
    BytesOf,
    CallLetter,
    CallNumber,
    CallTerm,
    CountOf,
    DataOf,
    DeclaredObject,
    DimensionOf,
    ExtentsOf,
    ExternalCall,
    ExternalFunction,
    ForSemiring,
    ForType,
    Hardware,
    LabelsOf,
    LayoutOf,
    LeadOf,
    LibraryFile,
    LibraryOf,
    OrderOf,
    ReturnedStatus,
    StepOf,
    StepsOf,
    StructOf,
    ValueIn,
    ValueOfSymbol,
)
from t2s.capability.ir import Capability
from t2s.capability.operands import is_by_rows
from t2s.core.errors import InternalError, T2SError, UserError
from t2s.core.location import SourceLocation
from t2s.core.preparation import preparation
from t2s.core.sigint import import_deferring_sigint
from t2s.core.types import INT32, Type
from t2s.libraries.child import CAME_BACK, ChildCrash, Say, in_child, in_fresh_process
from t2s.sparse_repr.formats import Format
from t2s.sparse_repr.notation.ir import accesses
from t2s.sparse_repr.notation.types import TYPES
from t2s.sparse_repr.semiring import PLUS_TIMES, Semiring
from t2s.sparse_repr.tensors.tensor import SparseTensor, as_stored, check_tensor

Array = np.ndarray[Any, Any]


class DoesNotFit(UserError):
    """An extent, a stride or a position that the integers of an interface cannot hold."""


@dataclass
class CallFrame:
    """The values that the terms of a call refer to.

    ``tensors`` are arrays, or stored tensors with ``levels`` and ``values``; ``extents`` those of
    the variables of the capability in this call; ``lists`` the lengths of its lists.
    """

    function: ExternalFunction
    tensors: Mapping[str, Any]
    extents: Mapping[str, int]
    location: SourceLocation | None = None
    semiring: Semiring = PLUS_TIMES
    lists: Mapping[str, int] = field(default_factory=dict)
    objects: dict[str, Any] = field(default_factory=dict)
    kept: list[Any] = field(default_factory=list)


def call(frame: CallFrame) -> Any:
    """Call the function; returns its result if the function returns it.

    Raises ``UserError`` with the function and the user's line for a status that is an error.  If
    the function forked, the child process exits here, so that it does not run on as a parent.
    """
    function = frame.function
    if function.hardware is not None:
        return call_hardware(function.hardware, frame)[0]
    process = os.getpid()
    try:
        return _call_python(frame) if function.python is not None else _call_library(frame)
    finally:
        if os.getpid() != process:
            os._exit(CAME_BACK)


def _call_library(frame: CallFrame) -> Any:
    """All calls of a library function; teardown calls are made even if it failed."""
    function = frame.function
    try:
        returned = _checked_calls(frame)
        stored = None if function.stored is None else _stored_result(frame)
    finally:
        for teardown in function.teardown:
            _call(frame, teardown)
    return returned if stored is None else stored


def _checked_calls(frame: CallFrame) -> Any:
    """The calls up to the result, until one fails; returns what the function returns."""
    function = frame.function
    status, main = function.status, function.call
    assert main is not None
    value = None
    for step in (*function.setup, main, *function.unpack):
        returned = _call(frame, step)
        if step is main and status is None:
            value = returned
        if status is not None and step.returns is not None and returned not in status.good:
            raise status_failure(function, returned, frame.location)
    return value


def call_hardware(hardware: Hardware, frame: CallFrame) -> tuple[Any, int]:
    """Run hardware on its operands; returns the result and the cycles."""
    capability = frame.function.capability
    names = dict.fromkeys(access.tensor for access in accesses(capability.value))
    return hardware.run({name: frame.tensors[name] for name in names})


def described_note(function: ExternalFunction) -> list[tuple[SourceLocation | None, str]]:
    """The line where a function is described, if it is the user's."""
    if function.location is not None:
        return [(function.location, f"{function.name} is described here")]
    return [] if function.library is None else [(None, f"a function of {function.library.name}")]


def status_failure(
    function: ExternalFunction, returned: int, location: SourceLocation | None
) -> UserError:
    """The error for a status that means failure."""
    status = function.status or ReturnedStatus()
    meaning = dict(status.meanings).get(returned, "")
    return UserError(
        f"{function.name} failed",
        location=location,
        expected=f"status {' or '.join(map(str, status.good))}",
        given=f"status {returned}{f', {meaning}' if meaning else ''}",
        notes=described_note(function),
    )


def _call_python(frame: CallFrame) -> Any:
    function = frame.function
    assert function.python is not None
    arguments = {name: frame.tensors[name] for name in function.parameters}
    try:
        return function.python(**arguments)
    except T2SError:
        raise
    except (Exception, SystemExit) as error:
        raise UserError(
            f"{function.name} failed: {type(error).__name__}: {error}",
            location=frame.location,
            notes=described_note(function),
        ) from error


def returned_numbers(
    function: ExternalFunction, returned: Any, location: SourceLocation | None
) -> Array:
    """What a function returned, as real numbers.  Raises ``UserError`` for anything else."""
    value = np.asarray(returned)
    if value.dtype.kind in "biuf":
        return value
    raise UserError(
        f"{function.name} returned no real numbers",
        location=location,
        expected="an array, or a number",
        given=f"{type(returned).__name__} of {value.dtype}"
        if isinstance(returned, np.ndarray)
        else repr(returned)[:80],
        notes=described_note(function),
    )


def _call(frame: CallFrame, described: ExternalCall) -> Any:
    library = frame.function.library
    if library is None:
        raise InternalError(f"{frame.function.name} is called and of no library")
    returns = None if described.returns is None else c_type(described.returns)
    prototype = ctypes.CFUNCTYPE(returns)
    symbol = prototype(symbol_address(library, described.symbol))
    return symbol(*(_argument(frame, term) for term in described.arguments))


_INTEGERS = {8: ctypes.c_int8, 16: ctypes.c_int16, 32: ctypes.c_int32, 64: ctypes.c_int64}
_FLOATS = {32: ctypes.c_float, 64: ctypes.c_double}


def c_type(type: Type) -> Any:
    """The ctypes type for a type of values."""
    if type.is_float:
        return _FLOATS[type.bits]
    return _INTEGERS[type.bits]


def _argument(frame: CallFrame, term: CallTerm) -> Any:
    match term:
        case CallNumber(value=value, type=type):
            return c_type(type)(value)
        case CallLetter(letter=letter):
            return ctypes.c_char(letter.encode())
        case DimensionOf(variable=name, type=type):
            return _integer(frame, frame.extents[name], f"the extent of {name}", type)
        case DataOf(tensor=name):
            tensor = frame.tensors[name]
            return _pointer(tensor if isinstance(tensor, np.ndarray) else tensor.values)
        case StepOf(tensor=name, mode=mode, type=type):
            array = frame.tensors[name]
            step = array.strides[mode] // array.itemsize if array.shape[mode] > 1 else 1
            return _integer(frame, step, f"the step of {name}", type)
        case LeadOf(tensor=name, type=type):
            leading = lead(frame.tensors[name])
            return _integer(frame, leading, f"the leading dimension of {name}", type)
        case LayoutOf(tensor=name, rows=rows, columns=columns):
            by_layout = rows if is_by_rows(frame.tensors[name]) else columns
            return (
                ctypes.c_int(by_layout)
                if isinstance(by_layout, int)
                else ctypes.c_char(by_layout.encode())
            )
        case ArrayOfLevelOf(tensor=name, level=level, array=array_name, first=first):
            array = _converted(frame, name, level, array_name)
            frame.kept.append(array)
            return _pointer(array[first:])
        case DeclaredObject(name=name, bytes=count):
            return frame.objects.setdefault(name, ctypes.create_string_buffer(count))
        case AddressOf(value=value):
            argument = _argument(frame, value)
            frame.kept.append(argument)
            return ctypes.byref(argument)
        case ExternalCall():
            return _call(frame, term)
        case ForType(terms=terms):
            return _argument(frame, dict(terms)[_type_of_values(frame)])
        case ForSemiring(terms=terms):
            return _argument(frame, dict(terms)[frame.semiring])
        case _:
            return _object(frame, term)


def _object(
    frame: CallFrame,
    term: OrderOf
    | ExtentsOf
    | StepsOf
    | LabelsOf
    | BytesOf
    | CountOf
    | StructOf
    | ValueIn
    | ValueOfSymbol,
) -> Any:
    """Arguments for libraries with structs and handles: objects, labels, structs."""
    match term:
        case OrderOf(tensor=name):
            return ctypes.c_int(frame.tensors[name].ndim)
        case ExtentsOf(tensor=name):
            return _integers(frame, frame.tensors[name].shape, f"an extent of {name}")
        case StepsOf(tensor=name):
            return _integers(frame, steps_of(frame.tensors[name]), f"a step of {name}")
        case LabelsOf(tensor=name):
            text = labels_of(frame.function.capability, frame.lists, name)
            buffer = ctypes.create_string_buffer(text.encode())
            frame.kept.append(buffer)
            return buffer
        case BytesOf(tensor=name, level=level, array=array_name):
            array = frame.tensors[name]
            if array_name:
                array = _converted(frame, name, level, array_name)
            elif not isinstance(array, np.ndarray):
                array = array.values
            return ctypes.c_int64(array.nbytes)
        case CountOf(tensor=name):
            stored = frame.tensors[name]
            return ctypes.c_int64(
                (stored if isinstance(stored, np.ndarray) else stored.values).size
            )
        case StructOf(fields=fields):
            values = [_argument(frame, field) for field in fields]
            built = struct_of(values)
            frame.kept += [*values, built]
            return ctypes.byref(built)
        case ValueIn(object=name, type=type):
            held = frame.objects.setdefault(name, ctypes.create_string_buffer(8))
            return c_type(type).from_buffer_copy(held)
        case ValueOfSymbol(symbol=name):
            assert frame.function.library is not None
            return ctypes.c_void_p.from_address(symbol_address(frame.function.library, name))
        case _:
            assert_never(term)


def _integers(frame: CallFrame, values: Sequence[int], what: str) -> Any:
    """An array of integers of the interface."""
    index = frame.function.index or INT32
    array = (c_type(index) * max(1, len(values)))()
    for at, value in enumerate(values):
        array[at] = _integer(frame, value, what).value
    frame.kept.append(array)
    return array


def _type_of_values(frame: CallFrame) -> Type:
    """The type of the values of the tensors in a call."""
    first = next(iter(frame.tensors.values()))
    kind = first.dtype if isinstance(first, np.ndarray) else first.values.dtype
    return next(type for type in TYPES if type.numpy == kind)


def _stored_result(frame: CallFrame) -> SparseTensor:
    """The sparse result that the library produced, copied into arrays of numpy."""
    function, capability = frame.function, frame.function.capability
    stored = function.stored
    assert stored is not None
    rows, columns = (frame.extents[name] for name in capability.result.variables)
    addresses = [_argument(frame, term).value for term in (stored.pos, stored.crd, stored.values)]
    rowwise = RowsInMemory(
        shape=(rows, columns),
        addresses=tuple(address or 0 for address in addresses),
        index=stored.index,
        type=_type_of_values(frame),
    )
    try:
        format = capability.needs_of(capability.result.tensor).formats[0]
        return copied_rows(rowwise, format, frame.semiring.zero)
    except UserError as error:
        raise UserError(
            f"{function.name} gave no tensor in compressed rows",
            location=frame.location,
            expected="positions, coordinates that increase in each row, and values",
            given=str(error).splitlines()[0],
            notes=described_note(function),
        ) from error


def argument_value(frame: CallFrame, term: CallTerm) -> float | int:
    """The value of a term, of a letter its code; raises ``DoesNotFit`` as a call does."""
    value = _argument(frame, term).value
    return value[0] if isinstance(value, bytes) else value


def _pointer(array: Array) -> Any:
    return ctypes.c_void_p(array.ctypes.data)


def _converted(frame: CallFrame, name: str, level: int, array_name: str) -> Array:
    """The array of a level, in the integers of the interface."""
    array = np.asarray(frame.tensors[name].levels[level][array_name])
    index = frame.function.index or INT32
    if array.dtype != index.numpy:
        if len(array) and int(array.max()) > np.iinfo(index.numpy).max:
            raise _unfit(frame, f"a position of {name}", int(array.max()), index)
        array = np.ascontiguousarray(array, index.numpy)
    return array


def _integer(frame: CallFrame, value: int, what: str, type: Type | None = None) -> Any:
    index = type or frame.function.index or INT32
    if not 0 <= value <= np.iinfo(index.numpy).max:
        raise _unfit(frame, what, value, index)
    return c_type(index)(value)


def _unfit(frame: CallFrame, what: str, value: int, index: Type) -> DoesNotFit:
    return DoesNotFit(
        f"{what} does not fit the interface of {frame.function.name}",
        location=frame.location,
        expected=f"at most {np.iinfo(index.numpy).max}: its integers have {index.bits} bits",
        given=str(value),
    )


def lead(array: Array) -> int:
    """The leading dimension of a matrix by rows or by columns."""
    if not is_by_rows(array):
        array = array.T
    rows, columns = array.shape
    step = array.strides[0] // array.itemsize if rows > 1 else columns
    return int(max(1, step, columns))


# Structs, labels, and results in compressed rows, which are copied from the library's memory after
# a check.


def steps_of(array: Array) -> list[int]:
    """The strides of an array in elements; 1 for modes of extent 1."""
    steps = zip(array.strides, array.shape, strict=True)
    return [step // array.itemsize if extent > 1 else 1 for step, extent in steps]


def labels_of(capability: Capability, lists: Mapping[str, int], tensor: str) -> str:
    """A letter for each variable of a tensor; a list gets as many as its length."""
    letters: dict[tuple[str, int], str] = {}
    labels = {}
    for access in (capability.result, *accesses(capability.value)):
        own = [(name, at) for name in access.variables for at in range(lists.get(name, 1))]
        for key in own:
            letters.setdefault(key, chr(ord("a") + len(letters)))
        labels[access.tensor] = "".join(letters[key] for key in own)
    return labels[tensor]


def struct_of(values: Sequence[Any]) -> ctypes.Structure:
    """A C struct with these fields; arrays and objects are passed by address."""
    members = [
        value
        if isinstance(value, ctypes._SimpleCData)
        else ctypes.c_void_p(ctypes.addressof(value))
        for value in values
    ]
    fields = [(f"field{at}", type(member)) for at, member in enumerate(members)]
    kind: Any = type("StructOfCall", (ctypes.Structure,), {"_fields_": fields})
    built: ctypes.Structure = kind(*(member.value for member in members))
    return built


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsInMemory:
    """Compressed rows in foreign memory: the addresses of positions, coordinates and values."""

    shape: tuple[int, int]
    addresses: tuple[int, ...]
    index: Type
    type: Type


def copied_rows(memory: RowsInMemory, format: Format, zero: float | int) -> SparseTensor:
    """Copy the tensor into arrays of numpy.  Raises ``UserError`` if it is not well-formed."""
    rows, columns = memory.shape
    index = memory.index.numpy
    pos, crd, values = memory.addresses
    positions = _copied(pos, index, rows + 1)
    count = int(positions[-1])
    if not 0 <= count <= rows * columns:
        raise UserError(f"{count} values in {rows} rows of {columns} columns")
    coordinates = _copied(crd, index, count)
    arrays = {"pos": positions.astype(np.int64), "crd": coordinates.astype(np.int64)}
    copied = _copied(values, memory.type.numpy, count)
    result = as_stored(memory.shape, format, ({}, arrays), copied, fill=zero)
    check_tensor(result)
    return result


def _copied(address: int, kind: np.dtype[Any], count: int) -> Array:
    if not count:
        return np.zeros(0, kind)
    if not address:
        raise UserError(f"no address of {count} values")
    data = ctypes.string_at(address, np.dtype(kind).itemsize * count)
    return np.frombuffer(data, kind).copy()


# Symbols of libraries: from capsules, from a shared object, or compiled from LLVM text.
#
# The file system is not searched: a file is a path given by the user, one in the file list of an
# installed wheel, or a name that the system's loader knows.  Libraries use one thread unless more
# are requested, because the bits of float sums depend on it.


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedFile:
    """A loaded shared object: its path, the prefix of its names, its version."""

    path: str
    prefix: str
    version: str
    loaded: Any


@cache
@preparation()
def loaded_files(library: LibraryOf) -> tuple[LoadedFile, ...]:
    """Load the shared object of a library and its companion, and make the start calls.

    Raises ``OSError`` with the reason for each file that cannot be loaded.
    """
    candidates = (
        LibraryFile(name=library.path),
    )  # without a path: symbols that are already linked
    files = candidates if library.path or not library.files else library.files
    loaded = [_first_of(files)]
    if library.beside:
        loaded.append(_first_of(library.beside))
    for call in library.start:
        numbers = [
            argument.value for argument in call.arguments if isinstance(argument, CallNumber)
        ]
        getattr(loaded[0].loaded, loaded[0].prefix + call.symbol)(*numbers)
    return tuple(loaded)


def _first_of(files: Sequence[LibraryFile]) -> LoadedFile:
    """The first file that can be loaded."""
    reasons = []
    for file in files:
        path, version = _path_in_wheel(file) if file.wheel else (file.name, "")
        if file.wheel and not path:
            reasons.append(f"no package {file.wheel} is installed")
            continue
        try:
            loaded = ctypes.CDLL(path)
        except OSError as error:
            reasons.append(str(error))
            continue
        return LoadedFile(path=path, prefix=file.prefix, version=version, loaded=loaded)
    raise OSError("; ".join(reasons))


def _path_in_wheel(file: LibraryFile) -> tuple[str, str]:
    """The path and the version of a file of an installed wheel, both empty if it is missing."""
    try:
        distribution = metadata.distribution(file.wheel)
    except metadata.PackageNotFoundError:
        return "", ""
    for path in sorted(distribution.files or ()):
        if path.name.startswith(file.name):
            return str(distribution.locate_file(path).resolve()), distribution.version  # type: ignore[attr-defined]
    return "", ""


def located(library: LibraryOf) -> LibraryOf:
    """The library with the path of the file that is installed, if it may be one of several."""
    return replace(library, path=loaded_files(library)[0].path) if library.files else library


def exported_name(library: LibraryOf, name: str) -> str:
    """The exported name of a function, with the library's prefix."""
    return loaded_files(library)[0].prefix + name if library.files else name


@cache
@preparation()
def symbol_address(library: LibraryOf, name: str) -> int:
    """The address of a function, or of a variable.

    Raises ``UserError`` for an unknown name, and ``OSError`` if the library is not installed.
    """
    try:
        if library.capsules:
            return _address_in_capsule(import_deferring_sigint(library.capsules).__pyx_capi__[name])
        if library.llvm:
            return int(import_deferring_sigint("t2s.loops.machine").address_in(library.llvm, name))
        files = loaded_files(library)
        defining = [file for file in files if hasattr(file.loaded, file.prefix + name)]
        symbol = getattr((*defining, files[0])[0].loaded, (*defining, files[0])[0].prefix + name)
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


@lru_cache(maxsize=1)
def _controller(files: int, modules: int) -> Any:
    """The controller of threads; the arguments make a new one when more libraries may be loaded.

    scipy's BLAS is loaded first, so that the controller knows it.
    """
    import_deferring_sigint("scipy.linalg.cython_blas")
    return import_deferring_sigint("threadpoolctl").ThreadpoolController()


@contextmanager
def threads_of_libraries(count: int, libraries: Iterable[LibraryOf | None] = ()) -> Iterator[None]:
    """Set the number of threads of all BLAS and OpenMP libraries within the block.

    ``libraries`` are loaded before, so that the limit covers them.
    """
    for library in libraries:
        if library is not None and library.files:
            loaded_files(library)
    with _controller(loaded_files.cache_info().currsize, len(sys.modules)).limit(limits=count):
        yield


# Availability: each library is loaded, and called once, in a child process first, because one that
# is built for another machine, or finds no device, may kill the process.


@dataclass(frozen=True, slots=True, kw_only=True)
class Availability:
    """Whether a library is available: its version and location, or the reason why not."""

    name: str
    there: bool
    version: str = ""
    where: str = ""
    why_not: str = ""


@cache
@preparation()
def availability(library: LibraryOf) -> Availability:
    """Whether a library can be loaded, tried once in a child process."""
    run = in_fresh_process if library.fresh else in_child
    answer = run(partial(_loaded, library))
    if isinstance(answer, ChildCrash):
        return Availability(name=library.name, there=False, why_not=f"loading it {answer.why}")
    return answer if isinstance(answer, Availability) else Availability(name="", there=False)


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
            import_deferring_sigint("t2s.loops.machine")
            where, version = "compiled for this CPU", metadata.version("llvmlite")
        else:
            file = loaded_files(library)[0]
            where, version = file.path, file.version
        _first_call(library)
    except (ImportError, AttributeError, OSError, UserError) as error:
        why = str(error).splitlines()[0]
        return Availability(name=library.name, there=False, why_not=why)
    return Availability(name=library.name, there=True, version=version, where=where)


def _first_call(library: LibraryOf) -> None:
    """Make the probe call of a library, if it has one."""
    if library.probe is not None:
        probed = make_function(
            library.name, "z = x", call=library.probe, library=library, trusted=True
        )
        status = call(CallFrame(probed, {}, {}))
        if library.probe_fails and status:
            raise UserError(f"{library.probe_fails} (status {status})")


def check_available(library: LibraryOf, what: str, location: SourceLocation | None) -> None:
    """Raise ``UserError`` for a library that is not available, with how to get it."""
    state = availability(library)
    if not state.there:
        raise UserError(
            f"{what} is not available: {library.name} is not there",
            location=location,
            expected=f"{library.name}, found by its path or as a package of Python",
            given=state.why_not,
            hint=library.how_to_get or None,
        )
