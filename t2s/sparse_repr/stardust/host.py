"""The host's side of a program of patterns: arguments and arrays of inputs, tensors of results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from t2s.core.errors import UserError
from t2s.core.expr import Expr, Local, evaluate
from t2s.core.walk import walk
from t2s.patterns.interpret import PatternOutcome
from t2s.patterns.ir import (
    SCAN_BITS,
    WINDOW_BITS,
    ComputedLevel,
    FullLevel,
    MemoryKind,
    PatternProgram,
    SharedLevel,
)
from t2s.sparse_repr.binding import Binding
from t2s.sparse_repr.levels import Arrays
from t2s.sparse_repr.notation.ir import Assignment
from t2s.sparse_repr.stardust.emitter import CAPACITY, BitsOf, EntriesOf, ExtentOf, ScalarOf
from t2s.sparse_repr.stardust.lower import LoweredPatterns
from t2s.sparse_repr.tensors.tensor import SparseTensor, as_stored

Array = np.ndarray[Any, Any]


def host_arguments(lowered: LoweredPatterns, binding: Binding) -> dict[str, Any]:
    """The scalars of a program for these inputs.

    Raises ``UserError`` for a coordinate that a scan does not reach.
    """
    arguments: dict[str, Any] = {}
    for name, meaning in lowered.meanings.items():
        match meaning:
            case ExtentOf(variable=variable):
                arguments[name] = binding.extents[variable]
            case BitsOf(variable=variable):
                extent = binding.extents[variable]
                if extent > SCAN_BITS:
                    raise UserError(
                        f"the coordinates of {variable} are too large for a scan",
                        location=lowered.program.location,
                        expected=f"an extent of at most {SCAN_BITS}",
                        given=f"{extent}",
                        hint="dense operands need no scan; joined compressed levels do",
                    )
                arguments[name] = -(-extent // WINDOW_BITS) * WINDOW_BITS
            case EntriesOf(tensor=tensor, level=level):
                arguments[name] = len(binding.given[tensor].levels[level]["crd"])
            case ScalarOf(tensor=tensor):
                arguments[name] = binding.given[tensor].values.reshape(())
    return arguments


def host_arrays(program: PatternProgram, binding: Binding) -> dict[str, Array]:
    """The arrays of the operands, by the names of the memories that they fill."""
    arrays: dict[str, Array] = {}
    for memory in program.memories:
        held = memory.holds
        if memory.alias is not None or held is None or held.tensor not in binding.given:
            continue
        tensor = binding.given[held.tensor]
        values = tensor.values if held.level is None else tensor.levels[held.level][held.array]
        arrays[memory.name] = np.asarray(values)
    return arrays


def check_capacity(program: PatternProgram, arguments: Mapping[str, Any]) -> None:
    """Raise ``UserError`` for a memory on chip that is larger than its units."""
    values = {name: np.asarray(value) for name, value in arguments.items()}
    values |= {name: np.asarray(value) for name, value in program.environment}
    for memory in program.declared():
        if memory.kind.off_chip or memory.kind.queue or _in_loops(memory.size):
            continue
        words, most = int(evaluate(memory.size, values)), memory.partitions * CAPACITY
        if words > most:
            what = str(memory.holds) if memory.holds is not None else memory.name
            many = memory.kind is MemoryKind.PARTITIONED_SRAM
            raise UserError(
                f"{what} does not fit into a {memory.kind.value}",
                location=memory.location,
                expected=f"at most {most} words"
                + (f", in {memory.partitions} partitions" if many else ""),
                given=f"{words} words",
                hint="environment(outer_par=...) adds partitions"
                if memory.kind.sparse
                else "precompute() brings a part of it on chip inside of a loop",
            )


def check_segments(program: PatternProgram, binding: Binding) -> None:
    """Raise ``UserError`` for a fiber with more segments than a memory on chip takes."""
    for memory in program.declared():
        held = memory.holds
        if held is None or held.level is None or held.tensor not in binding.given:
            continue
        if held.array != "pos" or memory.kind is not MemoryKind.SRAM:
            continue
        words = _most_segments(binding.given[held.tensor], held.level) + 1
        if words > CAPACITY:
            raise UserError(
                f"{held} does not fit into a {memory.kind.value}",
                location=memory.location,
                expected=f"at most {CAPACITY} words for a fiber of the level above",
                given=f"{words} words",
                hint=f"compute with {held.tensor} in pieces, along the level above",
            )


def _most_segments(tensor: SparseTensor, level: int) -> int:
    """The most parents of a level below one fiber of a compressed level, or in total."""
    dense = 1
    for above in range(level - 1, -1, -1):
        if not tensor.format.levels[above].full:
            entries = np.diff(tensor.levels[above]["pos"])
            return dense * int(entries.max(initial=0))
        dense *= tensor.extents[above]
    return dense


def _in_loops(size: Expr) -> bool:
    return any(isinstance(term, Local) for term in walk(size))


def made_tensor(
    lowered: LoweredPatterns,
    assignment: Assignment,
    binding: Binding,
    outcome: PatternOutcome,
    arguments: Mapping[str, Any],
) -> SparseTensor:
    """The result of a run, with the arrays of all levels."""
    (result,) = lowered.program.results
    target = assignment.result
    format = assignment.tensor(target.tensor).format
    shape = tuple(binding.extents[name] for name in target.variables)
    if not result.levels:
        value = np.asarray(outcome.scalars[result.values], binding.type.numpy)
        return as_stored(shape, format, (), value.reshape(1))
    scalars = {name: np.asarray(value) for name, value in arguments.items()}
    levels: list[Arrays] = []
    count = 1
    for level, mode in zip(result.levels, format.modes, strict=True):
        match level:
            case None:
                levels.append({})
                count *= shape[mode]
            case SharedLevel(tensor=tensor, level=number):
                shared = binding.given[tensor].levels[number]
                levels.append(shared)
                count = len(shared["crd"])
            case FullLevel(extent=size):
                extent = int(evaluate(size, scalars))
                starts = np.arange(count + 1, dtype=np.int32) * extent
                numbers = np.tile(np.arange(extent, dtype=np.int32), count)
                levels.append({"pos": starts, "crd": numbers})
                count *= extent
            case ComputedLevel(positions=positions, coordinates=coordinates):
                starts = outcome.memories[positions][: count + 1]
                count = int(starts[-1])
                levels.append({"pos": starts, "crd": outcome.memories[coordinates][:count]})
    values = outcome.memories[result.values][:count]
    return as_stored(shape, format, tuple(levels), values)
