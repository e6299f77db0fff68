"""Programs of concrete index notation, stage after stage, by compiled loops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from t2s.core.errors import InternalError
from t2s.core.preparation import preparation
from t2s.core.types import BOOL, Int, Type
from t2s.loops.stage_memory import Operand, StageRun, run_stage
from t2s.sparse_repr.binding import Binding, add_stage_views, final_result
from t2s.sparse_repr.concrete.external_loops import order_in_memory, program_in_loops
from t2s.sparse_repr.concrete.ir import ConcreteProgram, View, result_of
from t2s.sparse_repr.concrete.materialize import as_blocks_need_it, read_tensor_view
from t2s.sparse_repr.formats import Format, Part
from t2s.sparse_repr.notation.ir import Assignment, accesses
from t2s.sparse_repr.tensors.tensor import SparseTensor, from_dense

Array = np.ndarray[Any, Any]
NO_ARRAYS: Mapping[str, Array] = MappingProxyType({})


def run_program(
    assignment: Assignment,
    program: ConcreteProgram,
    binding: Binding,
    arrays: Mapping[str, Array] = NO_ARRAYS,
) -> SparseTensor:
    """The result of an assignment by the loops of its program, for what was bound to it.

    ``arrays`` are read in place of tensors of these names.  Sums are computed in the order of the
    loops, each into what was there before.  Raises ``UserError`` for a workspace that is too large.
    """
    if binding.type == BOOL:
        raise InternalError("bools are computed as bytes, over another semiring")
    written: SparseTensor | None = None
    for stage in program.stages:
        name = result_of(stage).tensor
        operands: dict[str, Operand] = {**binding.tensors, **arrays}
        written = run_stage(
            StageRun(
                statement=stage,
                operands=operands,
                extents=binding.extents,
                writes=program.format_of(name),
                type=binding.type,
                semiring=program.semiring,
                location=program.location,
            )
        )
        add_stage_views(program, binding, written, name)
    if written is None:
        raise InternalError("a program has no stage")
    return final_result(assignment, program, binding, written)


def run_assignment(
    assignment: Assignment,
    values: Mapping[str, Operand],
    extents: Mapping[str, int],
    type: Type,
) -> SparseTensor:
    """The result of an assignment, for values of one type by name, in the result's format.

    Dense arrays are read where they are, whatever their steps.
    """
    bound = bind_values(assignment, values, extents, type)
    return run_program(assignment, bound.program, bound.binding, bound.arrays)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundAssignment:
    """The program of an assignment, and what its stages read: tensors, and dense arrays."""

    program: ConcreteProgram
    binding: Binding
    arrays: Mapping[str, Array]


def bind_values(
    assignment: Assignment,
    values: Mapping[str, Operand],
    extents: Mapping[str, int],
    type: Type,
) -> BoundAssignment:
    """What the stages of an assignment read, for values of one type by name."""
    names = dict.fromkeys(access.tensor for access in accesses(assignment.value))
    arrays: dict[str, Array] = {}
    for name in names:
        value = values[name]
        if isinstance(value, np.ndarray) and _is_dense(assignment.tensor(name).format):
            arrays[name] = value
    memory = tuple((name, order_in_memory(array)) for name, array in arrays.items())
    with preparation():
        program = program_in_loops(assignment, memory)
    tensors: dict[str, SparseTensor] = {}
    for name in names:
        format, value = assignment.tensor(name).format, values[name]
        if name in arrays:
            continue
        if isinstance(value, np.ndarray):
            value = from_dense(value, format, fill=program.semiring.zero)
        tensors[name] = as_blocks_need_it(value.convert(format))
    for view in program.views:
        if view.name == program.written or view.source not in values:
            continue
        if view.source in tensors:
            tensors[view.name] = read_tensor_view(view, tensors[view.source])
        elif view.source in arrays:
            arrays[view.name] = _array_view(view, arrays[view.source])
    binding = Binding(
        given=dict(tensors), tensors=tensors, extents=dict(extents), type=type, index=Int(64)
    )
    return BoundAssignment(program=program, binding=binding, arrays=arrays)


def _is_dense(format: Format) -> bool:
    return format.plain and all(level.full for level in format.levels)


def _array_view(view: View, source: Array) -> Array:
    """A view of whole modes, in another order or along a diagonal: no copy."""
    places = [0] * source.ndim
    for mode, parts in enumerate(view.parts):
        for part in parts:
            if part != Part(mode=part.mode):
                raise InternalError(f"{view.name} has parts of modes, and there is no split")
            places[part.mode] = mode
    return np.asarray(np.einsum(source, places, range(len(view.parts))))
