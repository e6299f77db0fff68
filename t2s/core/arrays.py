"""Checking the arrays and scalars that a user passes in, in one place for every consumer."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from t2s.core.errors import UserError
from t2s.core.location import SourceLocation, user_location
from t2s.core.names import did_you_mean
from t2s.core.types import Kind, Type, value_range

Notes = tuple[tuple[SourceLocation | None, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArraySpec:
    """The specification of an input: a row-major array of a shape (``()`` for a scalar) and type.

    An extent of ``None`` may be any number.  ``origin`` is the required origin of an array that
    knows its origin: see ``MadeArray``.
    """

    name: str
    type: Type
    shape: tuple[int | None, ...]
    location: SourceLocation | None
    origin: tuple[str, ...] = ()


class MadeArray(np.ndarray[Any, Any]):
    """An array that knows its ``origin``: how it was made, and what was promised about it.

    Arrays computed from it, or read back from a file, have no origin.
    """

    origin: tuple[str, ...]

    def __array_finalize__(self, parent: Any) -> None:
        self.origin = ()


def made_array(array: Any, origin: tuple[str, ...]) -> MadeArray:
    """A view of an array that knows its origin."""
    made = np.asarray(array).view(MadeArray)
    made.origin = origin
    return made


def check_inputs(
    specs: Iterable[ArraySpec],
    given: Mapping[str, Any],
    *,
    required: Collection[str] | None = None,
    computed: Iterable[ArraySpec] = (),
) -> dict[str, Any]:
    """The inputs as C-contiguous numpy arrays (numpy scalars for scalars), by name.

    Only the names in ``required`` are mandatory, or all if it is ``None``.  ``computed`` are names
    that the program computes itself, for a hint to leave them out.

    Raises ``UserError`` for a missing, an unknown or a wrongly shaped or typed input.  Arrays must
    have exactly the declared dtype; so must numpy scalars, but Python numbers only have to fit.
    """
    given = named_inputs(given)
    expected = {spec.name: spec for spec in specs}
    unknown = [name for name in given if name not in expected]
    if unknown:
        raise _unknown(unknown[0], expected, given, computed)
    result: dict[str, Any] = {}
    for spec in expected.values():
        if spec.name in given:
            check = _checked_array if spec.shape else _checked_scalar
            result[spec.name] = check(spec, given[spec.name])
        elif required is None or spec.name in required:
            raise UserError(
                f"the {_kind(spec)} {spec.name} is missing",
                location=user_location(),
                expected=f"{spec.name}: {describe(spec)}",
                given=", ".join(given) or "no inputs",
                notes=_declared(spec),
                hint=f'pass it by name: {{"{spec.name}": ...}}',
            )
    return result


def named_inputs(given: object) -> Mapping[str, Any]:
    """The inputs of a call; ``UserError`` unless they are a dictionary of names."""
    names = list(given) if isinstance(given, Mapping) else [None]
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in names):
        raise UserError(
            "the inputs are not a dictionary of names",
            location=user_location(),
            expected='for example {"A": a, "x": x}; {} for none',
            given=_class(given)
            if not isinstance(given, Mapping)
            else f"the key {next(name for name in names if not isinstance(name, str))!r}",
        )
    return given


def _unknown(
    name: str,
    expected: Iterable[str],
    given: Iterable[str],
    computed: Iterable[ArraySpec],
) -> UserError:
    own = next((spec for spec in computed if spec.name == name), None)
    expected, given = list(expected), list(given)
    return UserError(
        f"the program has no input {name}",
        location=user_location(),
        expected=", ".join(expected) or "no inputs",
        given=", ".join(given),
        notes=_declared(own) if own is not None else (),
        hint=f"the program computes {name}: leave it out"
        if own is not None
        else did_you_mean(name, set(expected) - set(given)),
    )


def describe(spec: ArraySpec) -> str:
    """The expected type and shape in words."""
    article = "an" if str(spec.type).startswith("int") else "a"
    if not spec.shape:
        return f"{article} {spec.type} scalar"
    if None in spec.shape:
        return f"{article} {spec.type} array of any length"
    return f"{article} {spec.type} array of shape {spec.shape}"


def _kind(spec: ArraySpec) -> str:
    return "input" if spec.shape else "parameter"


def _declared(spec: ArraySpec) -> Notes:
    if spec.location is None:
        return ()
    return ((spec.location, f"{spec.name} is declared here"),)


def _dtype_text(type: Type) -> str:
    if type.is_bool:
        return "np.bool_"
    return f"ml_dtypes.{type.numpy}" if type.kind is Kind.BFLOAT else f"np.{type.numpy}"


def _checked_array(spec: ArraySpec, value: Any) -> Any:
    array = _as_array(spec, value)
    if array.dtype != spec.type.numpy:
        dtype = _dtype_text(spec.type)
        given, hint = f"{array.dtype} of shape {array.shape}", f"array.astype({dtype})"
        if not isinstance(value, np.ndarray):
            given, hint = f"{_class(value)}, in numpy {given}", f"np.asarray(x, {dtype})"
        raise UserError(
            f"the input {spec.name} has the wrong element type",
            location=user_location(),
            notes=_declared(spec),
            expected=describe(spec),
            given=given,
            hint=f"convert it: {hint}",
        )
    if not _fits(spec.shape, array.shape):
        raise UserError(
            f"the input {spec.name} has the wrong shape",
            location=user_location(),
            notes=_declared(spec),
            expected=describe(spec),
            given=f"shape {array.shape}",
            hint=_shape_hint(spec.shape, array.shape),
        )
    _check_origin(spec, getattr(value, "origin", ()))
    return np.ascontiguousarray(array)


def _check_origin(spec: ArraySpec, given: tuple[str, ...]) -> None:
    """Refuse an array of another origin, or without the promises that the program relies on."""
    if not spec.origin or not given:
        return
    missing = [promise for promise in spec.origin[1:] if promise not in given[1:]]
    if spec.origin[0] != given[0] or missing:
        raise UserError(
            f"the input {spec.name} was made for another design",
            location=user_location(),
            notes=_declared(spec),
            expected=", with ".join(spec.origin),
            given=", with ".join(given),
            hint="take the graph and its arrays of one Func: t2s.lower(y, ...), "
            "t2s.representation.structure(y, ...)",
        )


def _as_array(spec: ArraySpec, value: Any) -> Any:
    if isinstance(value, np.ma.MaskedArray):
        raise UserError(
            f"the {_kind(spec)} {spec.name} has masked elements",
            location=user_location(),
            notes=_declared(spec),
            expected=describe(spec),
            given="a masked array",
            hint="array.filled(0), for instance, says what they are",
        )
    try:
        if is_array_like(value):
            return np.asarray(value)
        reason = "which has no array protocol"
    except Exception as error:  # noqa: BLE001 - whatever an object's own conversion raises
        reason = f"which numpy refuses: {error}"
    raise UserError(
        f"the {_kind(spec)} {spec.name} cannot be converted to an array",
        location=user_location(),
        notes=_declared(spec),
        expected=describe(spec),
        given=f"{_class(value)}, {reason}",
    )


def is_array_like(value: object) -> bool:
    """Whether a value can be an array: a number, a list, or an object with an array protocol.

    numpy would convert any other object with a length to a list of its keys; those are refused.  An
    object without a length is a single element.
    """
    if isinstance(value, list | tuple | range | str | bytes) or not hasattr(value, "__len__"):
        return True
    if any(hasattr(value, name) for name in _ARRAY_PROTOCOLS):
        return True
    try:
        memoryview(value)  # type: ignore[arg-type]
    except TypeError:
        return False
    return True


_ARRAY_PROTOCOLS = ("__array__", "__array_interface__", "__array_struct__")


def _class(value: Any) -> str:
    return str(value.__class__.__name__)


def _fits(expected: tuple[int | None, ...], given: tuple[int, ...]) -> bool:
    return len(expected) == len(given) and all(
        size in (None, extent) for size, extent in zip(expected, given, strict=True)
    )


def _shape_hint(expected: tuple[int | None, ...], given: tuple[int, ...]) -> str:
    if None in expected:
        return "array.reshape(-1) is flat"
    if given == expected[::-1]:
        return "arrays are row-major: A[i, k] of the definition is array[i, k]; try array.T"
    if math.prod(given) == math.prod(extent or 0 for extent in expected):
        return f"array.reshape{expected} has that shape, if the elements are in that order"
    return "the shape follows from the bounds of the design; pad or cut the array to it"


def _checked_scalar(spec: ArraySpec, value: Any) -> Any:
    array, dtype = _as_array(spec, value), spec.type.numpy
    if array.shape == () and array.dtype == dtype and isinstance(value, np.generic | np.ndarray):
        return array[()]
    number = isinstance(value, int | float) and not isinstance(value, np.generic)
    if not number or (isinstance(value, float) and not spec.type.is_float):
        raise UserError(
            f"the parameter {spec.name} has the wrong type",
            location=user_location(),
            notes=_declared(spec),
            expected=describe(spec),
            given=f"{array.dtype} of shape {array.shape}"
            if isinstance(value, np.ndarray)
            else f"{value!r} of type {_class(value)}",
            hint=f"convert it: {_dtype_text(spec.type)}(...)",
        )
    low, high = value_range(spec.type)
    if abs(value) != math.inf and (value < low or value > high):
        raise UserError(
            f"the parameter {spec.name} does not fit into {spec.type}",
            location=user_location(),
            notes=_declared(spec),
            expected=f"{low} to {high}",
            given=str(value),
        )
    return np.asarray(float(value) if spec.type.is_float else value, dtype)[()]
