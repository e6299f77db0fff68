"""Inputs of a plan: checked, of one type, dense or as declared; and the loops that run on them.

Predictions use facts about inputs, or about shapes and densities alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from t2s.capability.operands import reordered
from t2s.core.arrays import named_inputs
from t2s.core.errors import UnsupportedError, UserError
from t2s.core.location import SourceLocation, user_location
from t2s.core.ops import Op
from t2s.core.preparation import preparation
from t2s.core.types import BOOL, Float, Type
from t2s.core.validate import as_int
from t2s.plan.cost import PlanFacts, TensorFacts, facts_of
from t2s.sparse_repr.binding import check_names
from t2s.sparse_repr.concrete.external_loops import order_in_memory
from t2s.sparse_repr.formats import Format
from t2s.sparse_repr.notation.ir import Assignment, accesses
from t2s.sparse_repr.notation.legality import extents_of
from t2s.sparse_repr.notation.types import check_type, typed_values, value_type
from t2s.sparse_repr.semiring import check_members
from t2s.sparse_repr.tensors.interchange import filled_tensor, tensor
from t2s.sparse_repr.tensors.tensor import SparseTensor, as_stored, check_tensor, from_dense

if TYPE_CHECKING:
    from t2s.libraries.compiled_calls import LoopedCalls


Array = np.ndarray[Any, Any]
Value = Array | SparseTensor


MOST_ELEMENTS = 2**62
"""Elements of a tensor in a search, which are counted in int64."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanBinding:
    """Checked inputs of a plan: arrays or sparse tensors of one type, and all extents."""

    values: dict[str, Value]
    extents: dict[str, int]
    type: Type

    @property
    def kind(self) -> np.dtype[Any]:
        """The type of values in numpy."""
        return self.type.numpy


def is_dense(format: Format) -> bool:
    """Whether a format has only dense levels of whole modes."""
    return format.plain and all(level.full for level in format.levels)


def bind_plan(
    assignment: Assignment, inputs: Mapping[str, Any], type: Type | None = None
) -> PlanBinding:
    """Check the inputs; raises ``UserError`` for one that is missing, unread, or does not fit."""
    inputs = named_inputs(inputs)
    read = tuple(dict.fromkeys(access.tensor for access in accesses(assignment.value)))
    check_names(read, inputs)
    read_values = {name: _given(inputs[name], assignment.tensor(name).format) for name in read}
    extents = extents_of(assignment, {name: operand.shape for name, operand in read_values.items()})
    if type is None:
        type = value_type(assignment, [operand.dtype for operand in read_values.values()])
    if type == BOOL:
        raise UnsupportedError(
            "plans do not compute bools",
            location=user_location(),
            expected="numbers, such as uint8",
            hint="plan.run(inputs, type=t2s.UInt(8)) computes with 0 and 1",
        )
    check_type(assignment, type)
    values: dict[str, Value] = {}
    for name, operand in read_values.items():
        value = _stored(operand, inputs[name], assignment, name)
        values[name] = _typed(value, type, name)
        if assignment.semiring.add is not Op.ADD:
            check_members(assignment.semiring, _values(values[name]), name)
    return PlanBinding(values=values, extents=extents, type=type)


def _given(value: Any, format: Format) -> Value:
    """An input that is declared dense as an array, in place; any other as a sparse tensor."""
    plain = isinstance(value, np.ndarray) and not isinstance(value, np.ma.MaskedArray)
    if plain and is_dense(format) and value.dtype.kind in "iufb" and value.dtype.isnative:
        return np.asarray(value)
    if isinstance(value, SparseTensor):
        check_tensor(value, increasing=not value.format.coordinate_list)
    return tensor(value)


def _stored(value: Value, source: Any, assignment: Assignment, name: str) -> Value:
    if isinstance(value, np.ndarray):
        return value
    as_array = not isinstance(source, SparseTensor)
    filled = filled_tensor(value, assignment.semiring.zero, as_array=as_array)
    converted = filled.convert(assignment.tensor(name).format)
    return dense_view(converted) if is_dense(converted.format) else converted


def _typed(value: Value, type: Type, name: str) -> Value:
    if isinstance(value, np.ndarray):
        return typed_values(value, type, name)
    values = typed_values(value.values, type, name)
    return as_stored(value.shape, value.format, value.levels, values, fill=value.fill)


def _values(value: Value) -> Array:
    return value if isinstance(value, np.ndarray) else value.values


def dense_view(value: Value) -> Array:
    """The values as an array with an axis for each mode; dense levels are not copied."""
    if isinstance(value, np.ndarray):
        return value
    if not is_dense(value.format):
        return value.to_dense()
    modes = value.format.modes
    stored = value.values.reshape([value.shape[mode] for mode in modes])
    return stored.transpose(np.argsort(modes)) if modes else stored.reshape(())


def in_order(value: Value, modes: Sequence[int]) -> Value:
    """The value with its modes in another order, without a copy."""
    if isinstance(value, np.ndarray):
        return value.transpose(modes)
    return reordered(value, modes)


def places_of(values: Mapping[str, Value]) -> dict[str, Array]:
    """Masks of where sparse tensors store values; dense ones store everything."""
    places = {}
    for name, value in values.items():
        if isinstance(value, SparseTensor) and not all(level.full for level in value.format.levels):
            places[name] = np.zeros(value.shape, np.bool_)
            places[name][value.columns()[0]] = True
    return places


def stored_as(value: Value, format: Format, zero: float | int) -> SparseTensor:
    """The value in a format."""
    if isinstance(value, SparseTensor):
        return value.convert(format)
    if is_dense(format):
        values = np.ascontiguousarray(value.transpose(format.modes)).reshape(-1)
        return as_stored(value.shape, format, ({},) * value.ndim, values)
    return from_dense(value, format, fill=zero)


def facts_for(
    assignment: Assignment,
    inputs: Mapping[str, Any] | None,
    shapes: Mapping[str, Sequence[int]] | None,
    densities: Mapping[str, float] | None,
    type: Type | None,
    where: SourceLocation,
) -> PlanFacts:
    """Facts for a search, from inputs, or from shapes and densities.  Raises ``UserError``."""
    if inputs is not None and shapes is None and densities is None:
        return facts_of_binding(bind_plan(assignment, inputs, type), assignment)
    if inputs is not None or (shapes is None and any(t.shape is None for t in assignment.tensors)):
        raise UserError(
            "a search is for inputs, or for shapes",
            location=where,
            expected="inputs=..., or shapes=... with densities=... of sparse tensors",
            given="both" if inputs is not None else "none of them",
        )
    read = tuple(dict.fromkeys(access.tensor for access in accesses(assignment.value)))
    facts: dict[str, TensorFacts] = {}
    for name in read:
        declared = assignment.tensor(name)
        shape = tuple((shapes or {}).get(name, declared.shape or ()))
        sizes = [as_int(extent) for extent in shape]
        order = declared.format.order
        share = (densities or {}).get(name, 1.0)
        good = isinstance(share, int | float) and 0 <= share <= 1
        if len(sizes) != order or any(size is None or size < 0 for size in sizes) or not good:
            raise UserError(
                f"the shape of {name} is unknown, or its density is invalid",
                location=where,
                expected=f"{order} extents, and a density from 0 to 1",
                given=f"shape {shape!r}, density {share!r}",
            )
        full = tuple(size for size in sizes if size is not None)
        if prod(full) > MOST_ELEMENTS:
            raise UserError(
                f"{name} would have more elements than an index can count",
                location=where,
                expected=f"at most {MOST_ELEMENTS:,} elements",
                given=f"shape {' x '.join(map(str, full))}",
            )
        count = float(np.prod(full, dtype=float)) * share
        facts[name] = facts_of(full, declared.format, count)
    extents = extents_of(assignment, {name: known.shape for name, known in facts.items()})
    kind = Float(32) if type is None else type
    return PlanFacts(extents=extents, tensors=facts, itemsize=kind.bits // 8, type=type)


def facts_of_binding(binding: PlanBinding, assignment: Assignment) -> PlanFacts:
    """Facts about the inputs of a plan; stored values are counted."""
    facts = {}
    for name, value in binding.values.items():
        if isinstance(value, SparseTensor):
            format = assignment.tensor(name).format
            facts[name] = facts_of(value.shape, format, float(len(value.values)))
        else:
            order = order_in_memory(value)
            facts[name] = TensorFacts(shape=value.shape, stored=value.size, order=order)
    return PlanFacts(
        extents=binding.extents,
        tensors=facts,
        itemsize=binding.kind.itemsize,
        type=binding.type,
    )


# What compiled loops run, imported when it is first needed: LLVM takes a while to load.


def run_loops(
    assignment: Assignment, values: Mapping[str, Value], extents: Mapping[str, int], type: Type
) -> Value:
    """The result of a statement: an array if its format is dense, else a stored tensor."""
    with preparation():
        from t2s.loops.running import run_assignment
    result = run_assignment(assignment, values, extents, type)
    return dense_view(result) if is_dense(result.format) else result


def run_looped_calls(calls: LoopedCalls) -> int | None:
    """Make many calls of a function by its address; the status of one that failed, if one did."""
    with preparation():
        from t2s.loops.machine import run_nest
    return run_nest(calls.nest, calls.address, calls.arrays, calls.numbers)
