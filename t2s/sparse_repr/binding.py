"""Inputs of an assignment: checked, stored in the formats that the stages read, of one type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from t2s.core.arrays import named_inputs
from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.core.ops import Op
from t2s.core.types import Float, Int, Type
from t2s.core.walk import walk
from t2s.sparse_repr.concrete.ir import ConcreteProgram, Split, result_of
from t2s.sparse_repr.concrete.materialise import (
    as_blocks_need_it,
    read_tensor_view,
    written_tensor,
)
from t2s.sparse_repr.formats import csf
from t2s.sparse_repr.notation.check import extents_of
from t2s.sparse_repr.notation.ir import Assignment, Combine, Number, accesses
from t2s.sparse_repr.tensors.interchange import filled_tensor
from t2s.sparse_repr.tensors.tensor import SparseTensor

TYPES = (Float(32), Float(64), Int(32), Int(64))
"""Types in which values may be computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """What a program runs on.

    ``given`` are the inputs as the user declares them, ``tensors`` what the stages read, and
    ``extents`` those of all variables and of the parts of split ones.
    """

    given: dict[str, SparseTensor]
    tensors: dict[str, SparseTensor]
    extents: dict[str, int]
    type: Type


def bind(
    assignment: Assignment,
    program: ConcreteProgram,
    inputs: Mapping[str, Any],
    type: Type | None = None,
) -> Binding:
    """Check the inputs and store them as the stages read them.

    Raises ``UserError`` for an input that is missing, that nobody reads, or that does not fit.
    """
    inputs = named_inputs(inputs)
    read = tuple(dict.fromkeys(access.tensor for access in accesses(assignment.value)))
    _check_names(assignment, read, inputs)
    zero = assignment.semiring.zero
    given = {name: filled_tensor(inputs[name], zero) for name in read}
    shapes = {name: tensor.shape for name, tensor in given.items()}
    extents = extents_of(assignment, shapes)
    for split in program.splits:
        _check_split(split, extents[split.variable])
        extents[split.outer] = -(-extents[split.variable] // split.factor)
        extents[split.inner] = split.factor
    for loop in program.fused:
        _check_fused(loop, program, extents)
    given = {name: tensor.convert(assignment.tensor(name).format) for name, tensor in given.items()}
    value_type = _value_type(assignment, given) if type is None else type
    _check_type(value_type)
    tensors = {name: as_blocks_need_it(tensor) for name, tensor in given.items()}
    for view in program.views:
        if view.name != program.written and view.source in tensors:
            tensors[view.name] = read_tensor_view(view, tensors[view.source])
    return Binding(given=given, tensors=tensors, extents=extents, type=value_type)


def _check_split(split: Split, extent: int) -> None:
    if split.exact and extent % split.factor:
        raise UserError(
            f"the split of {split.variable} goes beyond its end",
            location=split.location,
            expected=f"a factor that divides the extent {extent}, since the expression is not zero "
            "where nothing is stored",
            given=f"factor {split.factor}",
        )


def _check_fused(
    loop: tuple[str, str, str], program: ConcreteProgram, extents: Mapping[str, int]
) -> None:
    outer, inner, fused = loop
    count, most = extents[outer] * extents[inner], 1 << 31
    if count > most:
        raise UserError(
            f"the coordinates of {fused} do not fit into 32 bits",
            location=program.location,
            expected=f"at most {most} coordinates of {outer} and {inner}",
            given=f"{extents[outer]} x {extents[inner]}",
        )


def stage_shape(program: ConcreteProgram, binding: Binding, stage: int) -> tuple[int, ...]:
    """The shape of the tensor that a stage writes."""
    result = result_of(program.stages[stage])
    return tuple(binding.extents[name] for name in result.variables)


def add_stage_views(
    program: ConcreteProgram, binding: Binding, written: SparseTensor, name: str
) -> None:
    """Store what a stage wrote, and the views that later stages read of it."""
    result = name
    binding.tensors[name] = written
    found = program.workspace_of(name)
    if found is not None:
        stored, workspace = found
        name = workspace.tensor
        shape = tuple(binding.extents[variable] for variable in workspace.variables)
        written = written_tensor(stored, written, shape, csf(len(shape)))
        binding.tensors[name] = written
    for view in program.views:
        if view.source == name and view.name not in (program.written, result):
            binding.tensors[view.name] = read_tensor_view(view, written)


def final_result(
    assignment: Assignment, program: ConcreteProgram, binding: Binding, written: SparseTensor
) -> SparseTensor:
    """The user's result of what the last stage wrote."""
    format = assignment.tensor(assignment.result.tensor).format
    shape = tuple(binding.extents[name] for name in assignment.result.variables)
    for view in program.views:
        if view.name == program.written and view.source == program.result:
            return written_tensor(view, written, shape, format)
    return written


def _check_names(assignment: Assignment, read: tuple[str, ...], inputs: Mapping[str, Any]) -> None:
    for name in inputs:
        if name not in read:
            raise UserError(
                f"there is no input {name}",
                location=user_location(),
                expected=f"one of {', '.join(read)}" if read else "no inputs",
                given=name,
            )
    missing = [name for name in read if name not in inputs]
    if missing:
        raise UserError(
            f"the input {missing[0]} is missing",
            location=user_location(),
            expected=f"values for {', '.join(read)}",
            given=", ".join(inputs) or "nothing",
        )


def _value_type(assignment: Assignment, given: Mapping[str, SparseTensor]) -> Type:
    """The type that numpy gives the expression, of those that can be computed."""
    kinds = [tensor.dtype for tensor in given.values()] or [np.dtype(np.float64)]
    common = np.result_type(*kinds)
    numbers = [term.value for term in walk(assignment.value) if isinstance(term, Number)]
    divides = any(
        isinstance(term, Combine) and term.operator is Op.DIVIDE for term in walk(assignment.value)
    )
    fraction = not float(assignment.semiring.zero).is_integer()
    divides = divides or fraction  # an infinite zero is no integer
    if common.kind in "iub" and (divides or any(isinstance(n, float) for n in numbers)):
        return Float(64)
    if common.kind in "iub":
        return Int(32) if common.itemsize <= 4 and common.kind != "u" else Int(64)
    return Float(32) if common.itemsize <= 4 else Float(64)


def _check_type(type: Type) -> None:
    if type not in TYPES:
        raise UserError(
            f"values of type {type} cannot be computed on streams",
            location=user_location(),
            expected=f"one of {', '.join(map(str, TYPES))}",
        )
