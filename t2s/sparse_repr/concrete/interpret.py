"""The interpreter of concrete index notation: its loops, one by one, on dense numpy arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, assert_never

import numpy as np

from t2s.core.ops import Op
from t2s.sparse_repr.concrete.ir import (
    Assign,
    ConcreteProgram,
    Forall,
    StageWorkspace,
    Statement,
    View,
    Where,
    result_of,
    semiring_of,
)
from t2s.sparse_repr.functions import Operator, evaluate
from t2s.sparse_repr.notation.ir import Access, Choice, Combine, Unary
from t2s.sparse_repr.notation.support import StoredValue, StoredValues
from t2s.sparse_repr.semiring import Semiring

Array = np.ndarray[Any, Any]
Memory = dict[str, Array]


def interpret_program(
    program: ConcreteProgram,
    inputs: Mapping[str, Any],
    extents: Mapping[str, int],
    kind: np.dtype[Any],
    stored: Mapping[str, Array] | None = None,
    places: Callable[[StageWorkspace, Array, Array], Mapping[str, Array]] | None = None,
) -> Array:
    """The result, as a dense array, for dense inputs; ``extents`` of all variables by name.

    Values are computed in the type ``kind``.  ``stored`` has masks of stored elements of inputs,
    ``places`` computes those of workspaces from their values and presence; others store everything.

    The time is proportional to the iterations of the loops, so use small inputs.
    """
    memory: Memory = {name: np.asarray(value, kind) for name, value in inputs.items()}
    _add_views(program, memory, tuple(memory))
    semiring = program.semiring
    loops = _Loops(memory, dict(stored or {}), extents, semiring, kind)
    for stage in program.stages:
        target = result_of(stage)
        name = target.tensor
        memory[name] = _zeros(target, extents, kind, semiring)
        loops.there[name] = np.zeros(memory[name].shape, np.bool_)
        with np.errstate(all="ignore"):
            loops.run(stage, {})
        written_workspace = program.workspace_of(name)
        if written_workspace is not None:
            view, workspace = written_workspace
            array, presence = memory[name], loops.there[name]
            name = workspace.result.tensor
            if view is not None:
                shape = tuple(extents[variable] for variable in workspace.result.variables)
                array, presence = (
                    write_view(view, dense_array, shape) for dense_array in (array, presence)
                )
            memory[name] = array
            if places is not None:
                loops.stored.update(places(workspace, array, presence))
        _add_views(program, memory, (name,))
    written = memory[program.written]
    for view in program.views:
        if view.name == program.written and view.source == program.result:
            shape = _result_shape(program, view, extents)
            return write_view(view, written, shape)
    return written


def _add_views(program: ConcreteProgram, memory: Memory, sources: Sequence[str]) -> None:
    """Add the views of these tensors that stages read."""
    stored = {result_of(stage).tensor for stage in program.stages}
    for view in program.views:
        if view.source in sources and view.name not in stored:
            memory[view.name] = read_view(view, memory[view.source], program.semiring.zero)


def _zeros(access: Access, extents: Mapping[str, int], kind: Any, semiring: Semiring) -> Array:
    shape = tuple(extents[name] for name in access.variables)
    return np.full(shape, semiring.zero, kind)


@dataclass(frozen=True, slots=True)
class _Loops:
    """The state of the interpreted loops."""

    memory: Memory
    stored: dict[str, Array]
    extents: Mapping[str, int]
    semiring: Semiring
    kind: np.dtype[Any]
    there: dict[str, Array] = field(default_factory=dict)
    vanishing: dict[tuple[Combine | Unary | Choice, Semiring], bool] = field(default_factory=dict)

    def run(self, statement: Statement, at: dict[str, int]) -> None:
        """Run a statement at coordinates of the loops around it."""
        match statement:
            case Forall(variable=variable, body=body):
                for coordinate in range(self.extents[variable]):
                    self.run(body, {**at, variable: coordinate})
            case Where(consumer=consumer, producer=producer):
                target = result_of(producer)
                semiring = semiring_of(producer, self.semiring)
                zeros = _zeros(target, self.extents, self.kind, semiring)
                self.memory[target.tensor] = zeros
                places = np.zeros(zeros.shape, np.bool_)
                self.there[target.tensor] = self.stored[target.tensor] = places
                self.run(producer, at)
                self.run(consumer, at)
            case Assign(result=result, value=value, accumulate=accumulate):
                array = self.memory[result.tensor]
                where = tuple(at[name] for name in result.variables)
                semiring = statement.semiring or self.semiring
                computed = _PointValues(self, at, semiring).value(value)
                new = computed.value
                if result.tensor in self.there:
                    there = statement.everywhere or computed.there is not False
                    self.there[result.tensor][where] |= there
                array[where] = _apply(semiring.add, array[where], new) if accumulate else new
            case _:
                assert_never(statement)


class _PointValues(StoredValues[Any, bool]):
    """Values at one point of the loops."""

    never = False

    def __init__(self, loops: _Loops, at: Mapping[str, int], semiring: Semiring) -> None:
        self.loops, self.at, self.semiring = loops, at, semiring

    def number(self, number: float | int) -> Any:
        return np.asarray(number).astype(self.loops.kind)[()]

    def read(self, access: Access) -> StoredValue[Any, bool]:
        loops, name = self.loops, access.tensor
        where = tuple([self.at[variable] for variable in access.variables])
        stored = bool(loops.stored[name][where]) if name in loops.stored else None
        value = loops.memory[name][where]
        if stored is False:  # it may have been computed over another semiring
            value = self.number(self.semiring.zero)
        return StoredValue(value, stored)

    def apply(self, operator: Operator, *operands: Any) -> Any:
        return _apply(operator, *operands)

    def zero_unless(self, where: bool, value: Any) -> Any:
        return value if where else self.number(self.semiring.zero)

    def both(self, one: bool, other: bool) -> bool:
        return one and other

    def either(self, one: bool, other: bool) -> bool:
        return one or other

    def vanishes(self, term: Combine | Unary | Choice) -> bool:
        known, key = self.loops.vanishing, (term, self.semiring)
        if key not in known:
            known[key] = super().vanishes(term)
        return known[key]


def _apply(operator: Operator, left: Any, *more: Any) -> Any:
    # Python's operators on scalars of numpy take a tenth of the time of numpy's functions
    match operator:
        case Op.NEGATE:
            return -left
        case Op.ADD:
            return left + more[0]
        case Op.SUBTRACT:
            return left - more[0]
        case Op.MULTIPLY:
            return left * more[0]
        case Op.DIVIDE:
            return left / more[0]
    return evaluate(operator, left, *more)[()]


def read_view(view: View, source: Array, zero: float = 0) -> Array:
    """The view of a dense array; elements beyond the source are ``zero``."""
    shape = tuple(min(p.extent(source.shape[p.mode]) for p in parts) for parts in view.parts)
    result = np.full(shape, zero, source.dtype)
    for point in product(*map(range, shape)):
        where = _source_point(view, point, source.ndim)
        if where is not None and all(a < b for a, b in zip(where, source.shape, strict=True)):
            result[point] = source[where]
    return result


def write_view(view: View, written: Array, shape: tuple[int, ...]) -> Array:
    """The array of a shape from a written view."""
    result = np.zeros(shape, written.dtype)
    for point in product(*map(range, written.shape)):
        where = _source_point(view, point, len(shape))
        if where is not None and all(a < b for a, b in zip(where, shape, strict=True)):
            result[where] = written[point]
    return result


def _source_point(view: View, point: tuple[int, ...], order: int) -> tuple[int, ...] | None:
    where = [0] * order
    seen: set[tuple[int, int, int | None]] = set()
    for parts, coordinate in zip(view.parts, point, strict=True):
        for part in parts:
            key = (part.mode, part.divisor, part.modulus)
            if key not in seen:
                seen.add(key)
                where[part.mode] += coordinate * part.divisor
    return tuple(where)


def _result_shape(
    program: ConcreteProgram, view: View, extents: Mapping[str, int]
) -> tuple[int, ...]:
    target = result_of(program.stages[-1])
    whole = {split.outer: split.variable for split in program.splits}
    shape: dict[int, int] = {}
    for parts, name in zip(view.parts, target.variables, strict=True):
        for part in parts:
            if part.modulus is None:
                while name in whole:
                    name = whole[name]
                shape[part.mode] = extents[name]
    return tuple(shape[mode] for mode in range(len(shape)))
