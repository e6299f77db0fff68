"""Inputs of a plan: checked, of one type, dense arrays where they are and others as declared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from t2s.core.arrays import named_inputs
from t2s.core.errors import UnsupportedError
from t2s.core.location import user_location
from t2s.core.ops import Op
from t2s.core.types import BOOL, Type
from t2s.sparse_repr.binding import check_names
from t2s.sparse_repr.formats import Format
from t2s.sparse_repr.notation.ir import Assignment, accesses
from t2s.sparse_repr.notation.legality import extents_of
from t2s.sparse_repr.notation.types import check_type, typed_values, value_type
from t2s.sparse_repr.semiring import check_members
from t2s.sparse_repr.tensors.interchange import filled_tensor, tensor
from t2s.sparse_repr.tensors.tensor import SparseTensor, as_stored, check_tensor, from_dense

Array = np.ndarray[Any, Any]
Value = Array | SparseTensor


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanBinding:
    """What a plan runs on: arrays, or stored tensors, of one type; extents of all variables."""

    values: dict[str, Value]
    extents: dict[str, int]
    type: Type

    @property
    def kind(self) -> np.dtype[Any]:
        """The type of values in numpy."""
        return self.type.numpy


def is_dense(format: Format) -> bool:
    """Whether a format has whole dense levels only."""
    return format.plain and all(level.full for level in format.levels)


def bind_plan(
    assignment: Assignment, inputs: Mapping[str, Any], type: Type | None = None
) -> PlanBinding:
    """Check the inputs; raises ``UserError`` for one that is missing, unread, or does not fit."""
    inputs = named_inputs(inputs)
    read = tuple(dict.fromkeys(access.tensor for access in accesses(assignment.value)))
    check_names(assignment, read, inputs)
    made = {name: _given(inputs[name], assignment.tensor(name).format) for name in read}
    extents = extents_of(assignment, {name: one.shape for name, one in made.items()})
    if type is None:
        type = value_type(assignment, [one.dtype for one in made.values()])
    if type == BOOL:
        raise UnsupportedError(
            "plans do not compute bools",
            location=user_location(),
            expected="numbers, such as uint8",
            hint="plan.run(inputs, type=t2s.UInt(8)) computes with 0 and 1",
        )
    check_type(assignment, type)
    values: dict[str, Value] = {}
    for name, one in made.items():
        value = _stored(one, inputs[name], assignment, name)
        values[name] = _typed(value, type, name)
        if assignment.semiring.add is not Op.ADD:
            check_members(assignment.semiring, _values(values[name]), name)
    return PlanBinding(values=values, extents=extents, type=type)


def _given(value: Any, format: Format) -> Value:
    """An array that is declared dense is read where it is; anything else is a stored tensor."""
    plain = isinstance(value, np.ndarray) and not isinstance(value, np.ma.MaskedArray)
    if plain and is_dense(format) and value.dtype.kind in "iufb" and value.dtype.isnative:
        return np.asarray(value)
    if isinstance(value, SparseTensor):
        check_tensor(value, increasing=not value.format.coordinate_list)
    return tensor(value)


def _stored(one: Value, given: Any, assignment: Assignment, name: str) -> Value:
    if isinstance(one, np.ndarray):
        return one
    as_array = not isinstance(given, SparseTensor)
    filled = filled_tensor(one, assignment.semiring.zero, as_array=as_array)
    made = filled.convert(assignment.tensor(name).format)
    return dense_view(made) if is_dense(made.format) else made


def _typed(value: Value, type: Type, name: str) -> Value:
    if isinstance(value, np.ndarray):
        return typed_values(value, type, name)
    values = typed_values(value.values, type, name)
    return as_stored(value.shape, value.format, value.levels, values, fill=value.fill)


def _values(value: Value) -> Array:
    return value if isinstance(value, np.ndarray) else value.values


def dense_view(value: Value) -> Array:
    """The values with an axis for each mode; of dense levels without a copy."""
    if isinstance(value, np.ndarray):
        return value
    if not is_dense(value.format):
        return value.to_dense()
    modes = value.format.modes
    stored = value.values.reshape([value.shape[mode] for mode in modes])
    return stored.transpose(np.argsort(modes)) if modes else stored.reshape(())


def places_of(values: Mapping[str, Value]) -> dict[str, Array]:
    """Where tensors store something; those of dense levels alone store everything."""
    found = {}
    for name, one in values.items():
        if isinstance(one, SparseTensor) and not all(level.full for level in one.format.levels):
            found[name] = np.zeros(one.shape, np.bool_)
            found[name][tuple(one.coordinates()[0].T)] = True
    return found


def stored_as(value: Value, format: Format, zero: float | int) -> SparseTensor:
    """The value in a format."""
    if isinstance(value, SparseTensor):
        return value.convert(format)
    if is_dense(format):
        values = np.ascontiguousarray(value.transpose(format.modes)).reshape(-1)
        return as_stored(value.shape, format, ({},) * value.ndim, values)
    return from_dense(value, format, fill=zero)
