"""What concrete index notation computes: its loops, run one by one on dense numpy arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, assert_never

import numpy as np

from t2s.core.ops import OPERATORS, Op
from t2s.sparse_repr.concrete.ir import (
    Assign,
    ConcreteProgram,
    Forall,
    StageWorkspace,
    Statement,
    View,
    Where,
    result_of,
)
from t2s.sparse_repr.notation.ir import (
    Access,
    Combine,
    Expression,
    Negative,
)
from t2s.sparse_repr.notation.support import vanishes
from t2s.sparse_repr.notation.types import constant
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

    Values are computed in the type ``kind``.  ``stored`` says of tensors that are read where they
    store something, ``places`` where workspaces do, by their values and where these are; others
    store everything.

    Takes time in proportion to the iterations of the loops: for small inputs.
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
        found = program.workspace_of(name)
        if found is not None:
            view, workspace = found
            array, there = memory[name], loops.there[name]
            name = workspace.result.tensor
            if view is not None:
                shape = tuple(extents[variable] for variable in workspace.result.variables)
                array, there = (write_view(view, one, shape) for one in (array, there))
            memory[name] = array
            if places is not None:
                loops.stored.update(places(workspace, array, there))
        _add_views(program, memory, (name,))
    written = memory[program.written]
    for view in program.views:
        if view.name == program.written and view.source == program.result:
            shape = _result_shape(program, view, extents)
            return write_view(view, written, shape)
    return written


def _add_views(program: ConcreteProgram, memory: Memory, sources: Sequence[str]) -> None:
    """The views of these tensors that stages read."""
    stored = {result_of(stage).tensor for stage in program.stages}
    for view in program.views:
        if view.source in sources and view.name not in stored:
            memory[view.name] = read_view(view, memory[view.source], program.semiring.zero)


def _zeros(access: Access, extents: Mapping[str, int], kind: Any, semiring: Semiring) -> Array:
    shape = tuple(extents[name] for name in access.variables)
    return np.full(shape, semiring.zero, kind)


@dataclass(frozen=True, slots=True)
class _Loops:
    """What loops run on."""

    memory: Memory
    stored: dict[str, Array]
    extents: Mapping[str, int]
    semiring: Semiring
    kind: np.dtype[Any]
    there: dict[str, Array] = field(default_factory=dict)
    zeros: dict[Expression, bool] = field(default_factory=dict)

    def run(self, statement: Statement, at: dict[str, int]) -> None:
        """Run a statement at coordinates of the loops around it."""
        match statement:
            case Forall(variable=variable, body=body):
                for coordinate in range(self.extents[variable]):
                    self.run(body, {**at, variable: coordinate})
            case Where(consumer=consumer, producer=producer):
                target = result_of(producer)
                zeros = _zeros(target, self.extents, self.kind, self.semiring)
                self.memory[target.tensor] = zeros
                self.run(producer, at)
                self.run(consumer, at)
            case Assign(result=result, value=value, accumulate=accumulate):
                array = self.memory[result.tensor]
                where = tuple(at[name] for name in result.variables)
                found = self.value(value, at)
                new = found.number
                if result.tensor in self.there:
                    self.there[result.tensor][where] |= found.there
                array[where] = _apply(self.semiring.add, array[where], new) if accumulate else new
            case _:
                assert_never(statement)

    def value(self, value: Expression, at: Mapping[str, int]) -> _Number:
        """The value of an expression, and whether there is one; see ``notation/evaluate.py``."""
        number = constant(value, self.semiring)
        if number is not None:
            return _Number(np.asarray(number, self.kind)[()], stored=False, vanishes=False)
        match value:
            case Access(tensor=tensor, variables=variables):
                where = tuple(at[name] for name in variables)
                stored = tensor not in self.stored or bool(self.stored[tensor][where])
                return _Number(self.memory[tensor][where], stored=stored)
            case Negative(value=inner):
                found = self.value(inner, at)
                return replace(found, number=-found.number)
            case Combine(operator=operator, left=left, right=right):
                one, other = self.value(left, at), self.value(right, at)
                strict = {Op.MULTIPLY: (one, other), Op.DIVIDE: (one,)}.get(operator, ())
                if any(side.vanishes for side in strict) and not all(s.there for s in strict):
                    return _Number(np.asarray(self.semiring.zero, self.kind)[()], stored=False)
                result = _apply(self.semiring.operator(operator), one.number, other.number)
                if any(side.vanishes for side in strict):
                    return _Number(result, stored=True)
                stored = one.stored or other.stored
                return _Number(result, stored=stored, vanishes=self._vanishes(value))
            case _:
                raise ValueError("sums are loops in concrete index notation")

    def _vanishes(self, value: Combine) -> bool:
        if value not in self.zeros:
            self.zeros[value] = vanishes(value, self.semiring)
        return self.zeros[value]


@dataclass(frozen=True, slots=True)
class _Number:
    """A value where the loops are, and whether something of it is stored there.

    It is there where that is so, and anyway unless it ``vanishes`` elsewhere.
    """

    number: Any
    stored: bool
    vanishes: bool = True

    @property
    def there(self) -> bool:
        return self.stored or not self.vanishes


def _apply(operator: Op, one: Any, other: Any) -> Any:
    match operator:
        case Op.ADD:
            return one + other
        case Op.SUBTRACT:
            return one - other
        case Op.MULTIPLY:
            return one * other
        case Op.DIVIDE:
            return one / other
    return OPERATORS[operator].evaluate(one, other)[()]


def read_view(view: View, source: Array, zero: float = 0) -> Array:
    """The view of a dense array; what lies beyond the source is ``zero``."""
    shape = tuple(min(p.extent(source.shape[p.mode]) for p in parts) for parts in view.parts)
    result = np.full(shape, zero, source.dtype)
    for point in product(*map(range, shape)):
        where = _source_point(view, point, source.ndim)
        if where is not None and all(a < b for a, b in zip(where, source.shape, strict=True)):
            result[point] = source[where]
    return result


def write_view(view: View, written: Array, shape: tuple[int, ...]) -> Array:
    """The array of that shape that a written view means."""
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
