"""Running stages and whole programs as compiled loops: memory, argument tables, results."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np

from t2s.core.errors import InternalError, UserError
from t2s.core.location import SourceLocation
from t2s.core.preparation import preparation
from t2s.core.types import BOOL, INT32, Int, Type
from t2s.loops.ir import LoopArray, LoopFunction
from t2s.loops.lower import LoweredStage, lower_to_loops
from t2s.loops.machine import machine_code
from t2s.loops.tensor_access import (
    ArrayLayout,
    LevelsLayout,
    LoopStage,
    TensorLayout,
    count_of,
    extent_of,
    level_array,
    room_of,
    step_of,
    values_of,
    walkable,
    writable,
)
from t2s.sparse_repr.binding import Binding, add_stage_views, final_result
from t2s.sparse_repr.concrete.blocks import over_grids
from t2s.sparse_repr.concrete.external_loops import order_in_memory, program_in_loops
from t2s.sparse_repr.concrete.ir import ConcreteProgram, Statement, View, reads_of, result_of
from t2s.sparse_repr.concrete.materialize import as_blocks_need_it, read_tensor_view
from t2s.sparse_repr.formats import Format, Part
from t2s.sparse_repr.levels import Compressed
from t2s.sparse_repr.notation.ir import Assignment
from t2s.sparse_repr.semiring import Semiring
from t2s.sparse_repr.tensors.coordinates import check_positions
from t2s.sparse_repr.tensors.tensor import SparseTensor, as_stored, from_columns, from_dense

Array = np.ndarray[Any, Any]
Operand = Array | SparseTensor
"""A dense array in any order of memory, or a stored tensor."""

FIRST_ROOM = 64
"""Entries that a result has room for at least before it grows; then the room doubles."""

LARGEST_WORKSPACE = 1 << 31
"""Places of the largest workspace: a dense array that waits for sums in another order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRun:
    """The inputs of a stage: operands by name, extents of all variables, types."""

    statement: Statement
    operands: Mapping[str, Operand]
    extents: Mapping[str, int]
    writes: Format
    type: Type
    semiring: Semiring
    location: SourceLocation | None = None


def run_stage(run: StageRun) -> SparseTensor:
    """Run a stage; returns the tensor that it writes, in its format.  Operands are only read.

    Raises ``UserError`` for a result or a workspace that is too large for memory.
    """
    read = {name: ready(run.operands[name], run.type) for name in names_read(run.statement)}
    with preparation():
        stage = loop_stage(run, read)
        lowered = lower_to_loops(stage)
        code = machine_code(lowered.function)
    memory = StageMemory(run, stage, lowered, read)
    with np.errstate(all="ignore"):
        memory.call(code.run)
    result = memory.result()
    return result if result.format == run.writes else as_format_of(result, run.writes)


def names_read(statement: Statement) -> tuple[str, ...]:
    """The tensors that a stage reads, each once."""
    return tuple(dict.fromkeys(access.tensor for access in reads_of(statement)))


def as_format_of(tensor: SparseTensor, format: Format) -> SparseTensor:
    """The tensor in another format; explicit zeros are kept."""
    columns, values = tensor.columns()
    return from_columns(columns, values, tensor.shape, format, fill=tensor.fill)


def ready(operand: Operand, type: Type) -> Operand:
    """The operand in a form that loops read: walkable levels, aligned strides, known integers."""
    if isinstance(operand, SparseTensor) and all(part.full for part in operand.format.levels):
        modes = operand.format.modes
        stored = operand.values.reshape([operand.shape[mode] for mode in modes])
        operand = stored.transpose(np.argsort(modes)) if modes else stored.reshape(())
    if isinstance(operand, np.ndarray):
        whole = operand.dtype == type.numpy and operand.flags.aligned
        whole = whole and not any(step % operand.itemsize for step in operand.strides)
        return operand if whole else np.array(operand, type.numpy)
    if not walkable(operand.format):
        levels = tuple(level if level.full else Compressed() for level in operand.format.levels)
        operand = as_format_of(operand, Format(levels=levels, parts=operand.format.parts))
    arrays = [
        {name: _plain(array, _index_type(array)) for name, array in part.items()}
        for part in operand.levels
    ]
    values = _plain(operand.values, type)
    return as_stored(operand.shape, operand.format, arrays, values, fill=operand.fill)


def _index_type(array: Array) -> Type:
    return INT32 if array.dtype == np.int32 else Int(64)


def _plain(array: Array, type: Type) -> Array:
    """The array, contiguous and of this type; itself if it is."""
    return np.require(array, type.numpy, ["C", "A"])


def loop_stage(run: StageRun, read: Mapping[str, Operand]) -> LoopStage:
    """Everything that the code of a stage depends on."""
    layouts = tuple(_layout(name, operand) for name, operand in sorted(read.items()))
    writes = run.writes
    if not writable(writes):
        writes = _appended(writes)
    return LoopStage(
        statement=run.statement,
        reads=layouts,
        writes=writes,
        type=run.type,
        semiring=run.semiring,
    )


def _appended(format: Format) -> Format:
    """A format of the same modes that loops can write: dense levels, then compressed ones."""
    levels, below = [], False
    for level in format.levels:
        below = below or not level.full
        levels.append(Compressed() if below else level)
    return Format(levels=tuple(levels), parts=format.parts)


def _layout(name: str, operand: Operand) -> TensorLayout:
    if isinstance(operand, np.ndarray):
        size = operand.itemsize
        unit = (mode for mode, step in enumerate(operand.strides) if step == size)
        return ArrayLayout(name=name, unit=tuple(unit))
    indices = tuple(
        tuple((array, _index_type(arrays[array])) for array in sorted(arrays))
        for arrays in operand.levels
    )
    return LevelsLayout(name=name, format=operand.format, indices=indices)


class StageMemory:
    """The arrays and the argument table of one run of a stage."""

    def __init__(
        self,
        run: StageRun,
        stage: LoopStage,
        lowered: LoweredStage,
        read: Mapping[str, Operand],
    ) -> None:
        self.run, self.stage, self.lowered, self.read = run, stage, lowered, read
        self.function: LoopFunction = lowered.function
        self.name = result_of(run.statement).tensor
        variables = result_of(run.statement).variables
        self.shape = tuple(run.extents[name] for name in variables)
        self.extents = [self.shape[mode] for mode in stage.writes.modes]
        self.arrays: dict[str, Array] = {}
        self.numbers: dict[str, int] = {}
        self.failure: BaseException | None = None
        for name, operand in read.items():
            self._add_operand(name, operand)
        self._add_result()
        for name, over in lowered.workspaces:
            self._add_workspace(name, over)
        for name, extent in run.extents.items():
            self.numbers[extent_of(name)] = extent
        self.table = self.function.table()

    def _add_operand(self, name: str, operand: Operand) -> None:
        if isinstance(operand, np.ndarray):
            self.arrays[values_of(name)] = operand
            for mode, step in enumerate(operand.strides):
                self.numbers[step_of(name, mode)] = step // operand.itemsize
            return
        self.arrays[values_of(name)] = operand.values
        for level, arrays in enumerate(operand.levels):
            for array, values in arrays.items():
                self.arrays[level_array(name, level, array)] = values

    def _add_result(self) -> None:
        """Allocate a dense result of zeros, or the first room of an appended one."""
        type, zero = self.run.type.numpy, self.run.semiring.zero
        count = 1
        for written_level, extent in zip(self.stage.writes.levels, self.extents, strict=True):
            if not written_level.full:
                break
            count *= extent
            check_positions(count, self.run.writes)
        if all(level.full for level in self.stage.writes.levels):
            self.arrays[values_of(self.name)] = np.full(count, zero, type)
            return
        above, most = count + 1, 1
        for level, (kind, extent) in enumerate(
            zip(self.stage.writes.levels, self.extents, strict=True)
        ):
            most *= extent
            if kind.full:
                continue
            room = self._first_room(most)
            self.arrays[level_array(self.name, level, "pos")] = np.zeros(above, np.int64)
            self.arrays[level_array(self.name, level, "crd")] = np.empty(room, np.int64)
            self.numbers[room_of(self.name, level)] = room
            self.numbers[count_of(self.name, level)] = 0
            above = room
        self.arrays[values_of(self.name)] = np.empty(above, type)

    def _first_room(self, most: int) -> int:
        """As many entries as its sparse operands have together, which is what a sum has.

        The operating system backs memory by pages when it is first touched, so unused room is free.
        """
        counts = (
            len(operand.values)
            for operand in self.read.values()
            if isinstance(operand, SparseTensor)
        )
        # two more, because every append asks for that
        return max(FIRST_ROOM, min(sum(counts), most) + 2)

    def _add_workspace(self, name: str, over: Sequence[str]) -> None:
        count = prod(self.run.extents[variable] for variable in over)
        if count > LARGEST_WORKSPACE:
            size = count * (self.run.type.bytes + 16)
            raise UserError(
                f"the workspace over {', '.join(over)} is too large",
                location=self.run.location,
                expected=f"at most {LARGEST_WORKSPACE} coordinates",
                given=f"{count} coordinates, {size} bytes",
                hint="a format or an order of loops in which sums are the innermost loops "
                "needs no workspace",
            )
        self.arrays[f"{name}_work"] = np.zeros(count, self.run.type.numpy)
        self.arrays[f"{name}_marks"] = np.zeros(count, np.int64)
        self.arrays[f"{name}_list"] = np.zeros(count, np.int64)

    def call(self, code: Any) -> None:
        """Run the loops."""
        for argument in self.function.arguments:
            slot = self.function.slot(argument.name)
            array = isinstance(argument, LoopArray)
            self.table[slot] = (
                self.arrays[argument.name].ctypes.data if array else self.numbers[argument.name]
            )
        grow = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(self._grow)
        self.table[0] = ctypes.cast(grow, ctypes.c_void_p).value or 0
        status = code(self.table.ctypes.data, 0)
        if self.failure is not None:
            raise self.failure
        if status:
            raise InternalError(f"loops ended with {status}")

    def _grow(self, group: int, needed: int) -> int:
        """Double the room of a group, for the callback of ``MakeRoom``.  Returns 1 on failure."""
        try:
            name = self.function.groups[group]
            room = max(2 * self.numbers[name], needed)
            for argument in self.function.arguments:
                if isinstance(argument, LoopArray) and argument.grows == name:
                    before = self.arrays[argument.name]
                    longer = np.zeros(room, before.dtype)  # positions after the end have to be 0
                    longer[: len(before)] = before
                    self.arrays[argument.name] = longer
                    self.table[self.function.slot(argument.name)] = longer.ctypes.data
            self.numbers[name] = room
            self.table[self.function.slot(name)] = room
            return 0
        except (Exception, KeyboardInterrupt) as failure:  # noqa: BLE001 - raised behind the loops
            self.failure = failure
            return 1

    def result(self) -> SparseTensor:
        """The tensor that was written, without the unused room."""
        format, fill = self.stage.writes, self.run.semiring.zero
        values = self.arrays[values_of(self.name)]
        if all(level.full for level in format.levels):
            return as_stored(self.shape, format, ({},) * len(self.extents), values, fill=fill)
        levels: list[dict[str, Array]] = []
        above = 1
        for level, (kind, extent) in enumerate(zip(format.levels, self.extents, strict=True)):
            if kind.full:
                above *= extent
                levels.append({})
                continue
            count = int(self.table[self.function.slot(count_of(self.name, level))])
            pos = self.arrays[level_array(self.name, level, "pos")][: above + 1]
            crd = self.arrays[level_array(self.name, level, "crd")][:count]
            levels.append({"pos": np.maximum.accumulate(pos), "crd": crd})
            above = count
        return as_stored(self.shape, format, levels, values[:above], fill=fill)


# Programs of concrete index notation, stage by stage.

NO_ARRAYS: Mapping[str, Array] = MappingProxyType({})


def run_program(
    assignment: Assignment,
    program: ConcreteProgram,
    binding: Binding,
    arrays: Mapping[str, Array] = NO_ARRAYS,
) -> SparseTensor:
    """Run the loops of a program on bound inputs; returns the result of its assignment.

    ``arrays`` replace tensors of these names.  Sums are added up in the order of the loops.  Raises
    ``UserError`` for a workspace that is too large.
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
    """Run an assignment on values of one type; returns the result in its format.

    Dense arrays are read in place, whatever their strides.  Blocks are computed by element.
    """
    elements = {
        name: value.convert(value.format.grid) if isinstance(value, SparseTensor) else value
        for name, value in values.items()
    }
    by_element = over_grids(assignment)
    bound = bind_values(by_element, elements, extents, type)
    result = run_program(by_element, bound.program, bound.binding, bound.arrays)
    wanted = assignment.tensor(assignment.result.tensor).format
    return result if result.format == wanted else as_format_of(result, wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundAssignment:
    """The program of an assignment, with the tensors and dense arrays that its stages read."""

    program: ConcreteProgram
    binding: Binding
    arrays: Mapping[str, Array]


def bind_values(
    assignment: Assignment,
    values: Mapping[str, Operand],
    extents: Mapping[str, int],
    type: Type,
) -> BoundAssignment:
    """Prepare what the stages of an assignment read, from values of one type by name."""
    names = dict.fromkeys(access.tensor for access in assignment.reads)
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
    """A view of whole modes, in another order or along a diagonal, without a copy."""
    places = [0] * source.ndim
    for mode, parts in enumerate(view.parts):
        for part in parts:
            if part != Part(mode=part.mode):
                raise InternalError(f"{view.name} has parts of modes, and there is no split")
            places[part.mode] = mode
    return np.asarray(np.einsum(source, places, range(len(view.parts))))
