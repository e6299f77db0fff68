"""One call of a function: the terms of its description interpreted over ctypes, or Python.

The tensors of a call are numpy views that suit what the function asks of steps; extents are those
of the call.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, assert_never

import numpy as np

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
    LabelsOf,
    LayoutOf,
    LeadOf,
    OrderOf,
    ReturnedStatus,
    StepOf,
    StepsOf,
    StructOf,
    ValueIn,
    ValueOfSymbol,
)
from t2s.capability.hardware import Hardware
from t2s.capability.steps_in_memory import is_by_rows
from t2s.core.errors import InternalError, T2SError, UserError
from t2s.core.location import SourceLocation
from t2s.core.types import INT32, Type
from t2s.libraries.call_objects import (
    RowsInMemory,
    copied_rows,
    labels_of,
    steps_of,
    struct_of,
)
from t2s.libraries.child import CAME_BACK
from t2s.libraries.finding import symbol_address
from t2s.sparse_repr.notation.ir import accesses
from t2s.sparse_repr.notation.types import TYPES
from t2s.sparse_repr.semiring import PLUS_TIMES, Semiring
from t2s.sparse_repr.tensors.tensor import SparseTensor

Array = np.ndarray[Any, Any]


class DoesNotFit(UserError):
    """An extent, a step or a position that the integers of an interface do not hold."""


@dataclass
class CallFrame:
    """What the terms of a call are about.

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
    """Call the function; what it returns, where that is its result.

    Raises ``UserError`` with the function and the user's line if it says that it failed.  A copy of
    the process that a function made ends here: it never goes on as the process itself would.
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
    """All calls of a function of a library; those behind it whatever became of it."""
    function = frame.function
    try:
        returned = _checked_calls(frame)
        stored = None if function.stored is None else _stored_result(frame)
    finally:
        for one in function.teardown:
            _call(frame, one)
    return returned if stored is None else stored


def _checked_calls(frame: CallFrame) -> Any:
    """The calls up to the result, as long as they go well; what the function returns."""
    function = frame.function
    status, main = function.status, function.call
    assert main is not None
    found = None
    for one in (*function.setup, main, *function.unpack):
        returned = _call(frame, one)
        if one is main and status is None:
            found = returned
        if status is not None and one.returns is not None and returned not in status.good:
            raise status_failure(function, returned, frame.location)
    return found


def call_hardware(hardware: Hardware, frame: CallFrame) -> tuple[Any, int]:
    """A run of hardware on its operands: the result, and the cycles."""
    capability = frame.function.capability
    names = dict.fromkeys(access.tensor for access in accesses(capability.value))
    return hardware.run({name: frame.tensors[name] for name in names})


def described_note(function: ExternalFunction) -> list[tuple[SourceLocation | None, str]]:
    """Where a function is described, if a user did that."""
    if function.location is not None:
        return [(function.location, f"{function.name} is described here")]
    return [] if function.library is None else [(None, f"a function of {function.library.name}")]


def status_failure(
    function: ExternalFunction, returned: int, location: SourceLocation | None
) -> UserError:
    """The error for a returned number that says that a call failed."""
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
    given = {name: frame.tensors[name] for name in function.parameters}
    try:
        return function.python(**given)
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
    """What a function returned, as real numbers.  Raises ``UserError`` if these are none."""
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


def _call(frame: CallFrame, one: ExternalCall) -> Any:
    library = frame.function.library
    if library is None:
        raise InternalError(f"{frame.function.name} is called and of no library")
    returns = None if one.returns is None else c_type(one.returns)
    prototype = ctypes.CFUNCTYPE(returns)
    symbol = prototype(symbol_address(library, one.symbol))
    return symbol(*(_argument(frame, term) for term in one.arguments))


_INTEGERS = {8: ctypes.c_int8, 16: ctypes.c_int16, 32: ctypes.c_int32, 64: ctypes.c_int64}
_FLOATS = {32: ctypes.c_float, 64: ctypes.c_double}


def c_type(type: Type) -> Any:
    """The type of C for a type of values."""
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
            said = rows if is_by_rows(frame.tensors[name]) else columns
            return ctypes.c_int(said) if isinstance(said, int) else ctypes.c_char(said.encode())
        case ArrayOfLevelOf(tensor=name, level=level, array=array_name, first=first):
            array = _converted(frame, name, level, array_name)
            frame.kept.append(array)
            return _pointer(array[first:])
        case DeclaredObject(name=name, bytes=count):
            return frame.objects.setdefault(name, ctypes.create_string_buffer(count))
        case AddressOf(value=value):
            made = _argument(frame, value)
            frame.kept.append(made)
            return ctypes.byref(made)
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
    """What libraries with structs and handles of their own are given."""
    match term:
        case OrderOf(tensor=name):
            return ctypes.c_int(frame.tensors[name].ndim)
        case ExtentsOf(tensor=name):
            return _integers(frame, frame.tensors[name].shape, f"an extent of {name}")
        case StepsOf(tensor=name):
            return _integers(frame, steps_of(frame.tensors[name]), f"a step of {name}")
        case LabelsOf(tensor=name):
            text = labels_of(frame.function.capability, frame.lists, name)
            made = ctypes.create_string_buffer(text.encode())
            frame.kept.append(made)
            return made
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
            values = [_argument(frame, one) for one in fields]
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
    """The address of integers of the interface."""
    index = frame.function.index or INT32
    made = (c_type(index) * max(1, len(values)))()
    for at, value in enumerate(values):
        made[at] = _integer(frame, value, what).value
    frame.kept.append(made)
    return made


def _type_of_values(frame: CallFrame) -> Type:
    """The type of the values of the tensors in a call."""
    first = next(iter(frame.tensors.values()))
    kind = first.dtype if isinstance(first, np.ndarray) else first.values.dtype
    return next(one for one in TYPES if one.numpy == kind)


def _stored_result(frame: CallFrame) -> SparseTensor:
    """The sparse result that the library has made, in arrays of ours."""
    function, capability = frame.function, frame.function.capability
    stored = function.stored
    assert stored is not None
    rows, columns = (frame.extents[name] for name in capability.result.variables)
    addresses = [_argument(frame, one).value for one in (stored.pos, stored.crd, stored.values)]
    rowwise = RowsInMemory(
        shape=(rows, columns),
        addresses=tuple(one or 0 for one in addresses),
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
    """The number that a term is, of a letter its code; raises ``DoesNotFit`` as a call does."""
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
