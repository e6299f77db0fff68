"""Checking the arrays and scalars that a user passes in, in one place for every consumer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from t2s.core.errors import UserError
from t2s.core.location import SourceLocation, user_location
from t2s.core.types import Kind, Type

Notes = tuple[tuple[SourceLocation | None, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArraySpec:
    """What an input has to be: a row-major array of a shape (``()`` for a scalar) and type."""

    name: str
    type: Type
    shape: tuple[int, ...]
    location: SourceLocation | None


def check_inputs(specs: Iterable[ArraySpec], given: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs as C-contiguous numpy arrays (numpy scalars for scalars), by name.

    Raises ``UserError`` for a missing, an unknown or a wrongly shaped or typed input.  Arrays must
    have exactly the declared dtype; Python numbers are accepted for scalars.
    """
    wanted = {spec.name: spec for spec in specs}
    unknown = [name for name in given if name not in wanted]
    if unknown:
        raise UserError(
            f"the program has no input {unknown[0]}",
            location=user_location(),
            expected=", ".join(wanted) or "no inputs",
            given=", ".join(given),
        )
    result: dict[str, Any] = {}
    for spec in wanted.values():
        if spec.name not in given:
            raise UserError(
                f"the input {spec.name} is missing",
                location=user_location(),
                expected=f"{spec.name}: {describe(spec)}",
                given=", ".join(given) or "no inputs",
                notes=_declared(spec),
                hint=f'pass it by name: {{"{spec.name}": ...}}',
            )
        check = _checked_array if spec.shape else _checked_scalar
        result[spec.name] = check(spec, given[spec.name])
    return result


def describe(spec: ArraySpec) -> str:
    """The expected type and shape in words."""
    article = "an" if str(spec.type).startswith("int") else "a"
    if not spec.shape:
        return f"{article} {spec.type} scalar"
    return f"{article} {spec.type} array of shape {spec.shape}"


def _declared(spec: ArraySpec) -> Notes:
    return ((spec.location, f"{spec.name} is declared here"),)


def _dtype_text(type: Type) -> str:
    if type.is_bool:
        return "np.bool_"
    return f"ml_dtypes.{type.numpy}" if type.kind is Kind.BFLOAT else f"np.{type.numpy}"


def _checked_array(spec: ArraySpec, value: Any) -> Any:
    array = np.asarray(value)
    if array.dtype != spec.type.numpy:
        raise UserError(
            f"the input {spec.name} has the wrong element type",
            location=user_location(),
            notes=_declared(spec),
            expected=describe(spec),
            given=f"{array.dtype} of shape {array.shape}",
            hint=f"convert it: array.astype({_dtype_text(spec.type)})",
        )
    if array.shape != spec.shape:
        raise UserError(
            f"the input {spec.name} has the wrong shape",
            location=user_location(),
            notes=_declared(spec),
            expected=describe(spec),
            given=f"shape {array.shape}",
            hint="arrays are row-major: A[i, k] of the definition is array[i, k]",
        )
    return np.ascontiguousarray(array)


def _checked_scalar(spec: ArraySpec, value: Any) -> Any:
    array = np.asarray(value)
    python_number = isinstance(value, int | float | bool) and not isinstance(value, np.generic)
    fits = array.dtype == spec.type.numpy or (
        python_number and not (spec.type.is_integer and isinstance(value, float))
    )
    if array.shape or not fits:
        raise UserError(
            f"the parameter {spec.name} has the wrong type",
            location=user_location(),
            notes=_declared(spec),
            expected=describe(spec),
            given=f"{value!r} of type {value.__class__.__name__}",
        )
    if spec.type.is_integer:
        limits = np.iinfo(spec.type.numpy)
        if not limits.min <= int(value) <= limits.max:
            raise UserError(
                f"the parameter {spec.name} does not fit into {spec.type}",
                location=user_location(),
                notes=_declared(spec),
                expected=f"{limits.min} to {limits.max}",
                given=str(value),
            )
    return spec.type.numpy.type(value)
