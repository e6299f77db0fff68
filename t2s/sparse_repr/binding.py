"""Bind the inputs of an assignment: check them, and convert their types and formats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile
from math import prod
from typing import Any

import numpy as np

from t2s.core.arrays import named_inputs
from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.core.ops import Op
from t2s.core.types import INT32, Int, Type
from t2s.sparse_repr.concrete.ir import (
    BlockedVariable,
    ConcreteProgram,
    SplitLoop,
    StageWorkspace,
    reads_of,
    result_of,
)
from t2s.sparse_repr.concrete.materialize import (
    as_blocks_need_it,
    read_tensor_view,
    source_columns,
    written_tensor,
)
from t2s.sparse_repr.formats import Format
from t2s.sparse_repr.notation.ir import Assignment
from t2s.sparse_repr.notation.legality import extents_of
from t2s.sparse_repr.notation.types import check_type, typed_values, value_type
from t2s.sparse_repr.semiring import check_members
from t2s.sparse_repr.tensors.coordinates import inside
from t2s.sparse_repr.tensors.interchange import filled_tensor, tensor
from t2s.sparse_repr.tensors.tensor import SparseTensor, as_stored, check_tensor, from_coordinates

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """What a program runs on.

    ``given`` are the inputs in the user's formats, ``tensors`` those that the stages read, and
    ``extents`` those of all variables and of the parts of split ones.  Values are computed in
    ``type``; coordinates and references are of the type ``index``.
    """

    given: dict[str, SparseTensor]
    tensors: dict[str, SparseTensor]
    extents: dict[str, int]
    type: Type
    index: Type


def bind(
    assignment: Assignment,
    program: ConcreteProgram,
    inputs: Mapping[str, Any],
    type: Type | None = None,
    fitting: set[Type] | None = None,
) -> Binding:
    """Check the inputs and store them as the stages read them.

    ``fitting`` are types for which the assignment was checked; the type of the binding is added.

    Raises ``UserError`` for an input that is missing, unused, or does not fit.
    """
    inputs = named_inputs(inputs)
    read = tuple(dict.fromkeys(access.tensor for access in assignment.reads))
    check_names(read, inputs)
    zero = assignment.semiring.zero
    for name in read:
        if isinstance(inputs[name], SparseTensor):
            stored = inputs[name].format
            check_tensor(inputs[name], increasing=not stored.coordinate_list)
    unfilled = {name: tensor(inputs[name]) for name in read}
    given = {
        name: filled_tensor(operand, zero, as_array=not isinstance(inputs[name], SparseTensor))
        for name, operand in unfilled.items()
    }
    shapes = {name: operand.shape for name, operand in given.items()}
    extents = extents_of(assignment, shapes)
    for split in program.splits:
        _check_split(split, extents[split.variable])
        extents[split.outer] = -(-extents[split.variable] // split.factor)
        extents[split.inner] = split.factor
    for blocked in program.blocks:
        _check_blocks(blocked, extents[blocked.variable], program)
    for loop in program.fused:
        _check_fused(loop, program, extents)
    given = {
        name: operand.convert(assignment.tensor(name).format) for name, operand in given.items()
    }
    if type is None:
        type = value_type(assignment, [operand.dtype for operand in unfilled.values()])
    fitting = set() if fitting is None else fitting
    if type not in fitting:
        check_type(assignment, type)
        fitting.add(type)
    given = {name: typed(operand, type, name) for name, operand in given.items()}
    if assignment.semiring.add is not Op.ADD:
        for name, operand in given.items():
            check_members(assignment.semiring, operand.values, name)
    given = {name: operand.with_padding() for name, operand in given.items()}
    tensors = {name: as_blocks_need_it(operand) for name, operand in given.items()}
    for view in program.views:
        if view.name != program.written and view.source in tensors:
            tensors[view.name] = read_tensor_view(view, tensors[view.source])
    return Binding(
        given=given,
        tensors=tensors,
        extents=extents,
        type=type,
        index=_index_type(program, tensors, extents),
    )


def typed(tensor: SparseTensor, type: Type, name: str) -> SparseTensor:
    """The tensor with values of a type.  Raises ``UserError`` for one that does not fit."""
    values = typed_values(tensor.values, type, name)
    if values is tensor.values:
        return tensor
    return as_stored(tensor.shape, tensor.format, tensor.levels, values, fill=tensor.fill)


def _check_split(split: SplitLoop, extent: int) -> None:
    if split.exact and extent % split.factor:
        raise UserError(
            f"the split of {split.variable} goes beyond its end",
            location=split.location,
            expected=f"a factor that divides the extent {extent}, since the expression is not zero "
            "where nothing is stored",
            given=f"factor {split.factor}",
        )


def _check_blocks(blocked: BlockedVariable, extent: int, program: ConcreteProgram) -> None:
    name, size = blocked.variable, blocked.size
    if blocked.exact and extent % size:
        raise UserError(
            f"the last block along {name} goes beyond its end, and what is computed there counts",
            location=program.location,
            expected=f"an extent of {name} that is a multiple of {size}",
            given=f"{extent}",
            hint=f"blocks along {name} of a size that divides {extent}, or statements that are"
            " stored one by one",
        )


def _check_fused(
    loop: tuple[str, str, str], program: ConcreteProgram, extents: Mapping[str, int]
) -> None:
    outer, inner, fused = loop
    count, most = extents[outer] * extents[inner], 1 << 63
    if count > most:
        raise UserError(
            f"the coordinates of {fused} do not fit into 64 bits",
            location=program.location,
            expected=f"at most {most} coordinates of {outer} and {inner}",
            given=f"{extents[outer]} x {extents[inner]}",
        )


def _index_type(
    program: ConcreteProgram, tensors: Mapping[str, SparseTensor], extents: Mapping[str, int]
) -> Type:
    """The type of coordinates and references: 32 bits if all of them, and their ends, fit."""
    counts = [*extents.values(), *(len(tensor.values) for tensor in tensors.values())]
    counts += [extents[outer] * extents[inner] for outer, inner, _ in program.fused]
    for stage in program.stages:
        result = result_of(stage)
        counts.append(_dense_size(program.format_of(result.tensor), result.variables, extents))
    return INT32 if max(counts, default=0) < 1 << 31 else Int(64)


def _dense_size(format: Format, variables: tuple[str, ...], extents: Mapping[str, int]) -> int:
    """The largest number of positions of a result due to dense levels."""
    outer = takewhile(lambda pair: pair[0].full, zip(format.levels, format.modes, strict=True))
    return prod(extents[variables[mode]] for _, mode in outer)


def stage_shape(program: ConcreteProgram, binding: Binding, stage: int) -> tuple[int, ...]:
    """The shape of the tensor that a stage writes."""
    result = result_of(program.stages[stage])
    return tuple(binding.extents[name] for name in result.variables)


def add_stage_views(
    program: ConcreteProgram, binding: Binding, written: SparseTensor, name: str
) -> None:
    """Store the tensor that a stage wrote, and the views of it that later stages read."""
    result = name
    binding.tensors[name] = written
    written_workspace = program.workspace_of(name)
    if written_workspace is not None:
        view, workspace = written_workspace
        name = workspace.result.tensor
        shape = tuple(binding.extents[variable] for variable in workspace.result.variables)
        if view is not None:
            written = written_tensor(view, written, shape, workspace.format)
        binding.tensors[name] = written
    for view in program.views:
        if view.source == name and view.name not in (program.written, result):
            binding.tensors[view.name] = read_tensor_view(view, written)


def stored_places(program: ConcreteProgram, binding: Binding) -> dict[str, Array]:
    """Where the inputs store something, as the stages read them."""
    return _of_sources(program, read_places(program, binding), binding.given)


def _of_sources(
    program: ConcreteProgram, places: Mapping[str, Array], sources: Mapping[str, SparseTensor]
) -> dict[str, Array]:
    """The places of tensors, of those of tensors and of views of them."""
    source_places: dict[str, Array] = {}
    for name, mask in places.items():
        view = next((view for view in program.views if view.name == name), None)
        if view is None:
            source_places[name] = source_places.get(name, False) | mask
            continue
        shape = sources[view.source].shape
        columns = source_columns(view, np.nonzero(mask))
        shown = source_places.setdefault(view.source, np.zeros(shape, np.bool_))
        shown[tuple(column[inside(columns, shape)] for column in columns)] = True
    return source_places


def read_places(program: ConcreteProgram, binding: Binding) -> dict[str, Array]:
    """Where the inputs and the views of them that the stages read store something.

    Tensors with only dense levels, which store everything, are left out.
    """
    sources = {view.name: view.source for view in program.views}
    tensors = {
        name: tensor
        for name, tensor in binding.tensors.items()
        if sources.get(name, name) in binding.given
    }
    return _read_places(program, tensors)


def _read_places(program: ConcreteProgram, tensors: Mapping[str, SparseTensor]) -> dict[str, Array]:
    places: dict[str, Array] = {}
    read = {access.tensor for stage in program.stages for access in reads_of(stage)}
    for name in sorted(read):
        tensor = tensors.get(name)
        if tensor is not None and not all(level.full for level in tensor.format.levels):
            places[name] = np.zeros(tensor.shape, np.bool_)
            places[name][tensor.columns()[0]] = True
    return places


def workspace_places(
    program: ConcreteProgram, workspace: StageWorkspace, values: Array, there: Array
) -> dict[str, Array]:
    """Where a workspace with ``values`` at the places ``there`` stores something that is read.

    By the names of the workspace and its views; those that store everything are left out.
    """
    zero = np.asarray(program.semiring.zero).astype(values.dtype)
    names = program.workspace_names(workspace)
    if names & set(program.without_zeros):
        there = there & (values != zero)
    tensor = from_coordinates(
        np.argwhere(there), values[there], there.shape, workspace.format, fill=program.semiring.zero
    )
    tensors = {workspace.result.tensor: tensor}
    for view in program.views:
        if view.source == workspace.result.tensor:
            tensors[view.name] = read_tensor_view(view, tensor)
    places = _read_places(program, tensors)
    return places | _of_sources(program, places, {workspace.result.tensor: tensor})


def as_bools(tensor: SparseTensor) -> SparseTensor:
    """A tensor of zeros and ones as bools."""
    values = tensor.values.astype(np.bool_)
    return as_stored(tensor.shape, tensor.format, tensor.levels, values)


def final_result(
    assignment: Assignment, program: ConcreteProgram, binding: Binding, written: SparseTensor
) -> SparseTensor:
    """The user's result, from the tensor that the last stage wrote."""
    format = assignment.tensor(assignment.result.tensor).format
    shape = tuple(binding.extents[name] for name in assignment.result.variables)
    for view in program.views:
        if view.name == program.written and view.source == program.result:
            return written_tensor(view, written, shape, format)
    return written


def check_names(read: tuple[str, ...], inputs: Mapping[str, Any]) -> None:
    """Raise ``UserError`` for missing or unused inputs."""
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
