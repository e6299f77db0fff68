"""The numpy interpreter of temporal programs: the oracle for all later stages.

Definitions run in order.  A definition is evaluated for all its pure dimensions at once and for
one reduction point after the other, in lexicographic order, so sums are rounded in the order in
which they are written.  An update that reads other elements of its own function, or writes through
computed subscripts, runs point by point.

A system runs its loops in order, and in each iteration its members in order.  Dimensions along
which no member reads another iteration are evaluated at once.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Self, cast

import numpy as np

from t2s.core.arrays import ArraySpec, check_inputs
from t2s.core.errors import UserError
from t2s.core.expr import (
    Apply,
    Cast,
    Const,
    Expr,
    Index,
    Parameter,
    Read,
    Select,
    const,
    evaluate,
    index_names,
    reads,
)
from t2s.core.identity_cache import IdentityCache
from t2s.core.let_binding import is_repetitive
from t2s.core.ops import Array, apply_operator, cast_value
from t2s.core.printer import show
from t2s.func.ir import Definition, Dimension, Function, System, TemporalProgram

_Steps = Generator[tuple[Expr, Any], Array, Array]


def interpret_program(program: TemporalProgram, inputs: Mapping[str, Any]) -> dict[str, Array]:
    """Compute every function of the program.

    ``inputs`` holds arrays and scalars by name.  Returns the arrays of all functions, outputs
    included, by name; element 0 of an array is the minimum of the function's bounds.
    """
    run = Interpretation.of(program, checked_values(program, inputs))
    run.compute()
    return {function.name: run.arrays[function.name] for function in program.functions}


def checked_values(program: TemporalProgram, inputs: Mapping[str, Any]) -> dict[str, Array]:
    """The inputs and scalars of a program by name; raises ``UserError`` for what does not fit."""
    specs = [
        *(ArraySpec(name=i.name, type=i.type, shape=i.shape, location=i.location)
          for i in program.inputs),
        *(ArraySpec(name=p.name, type=p.type, shape=(), location=p.location)
          for p in program.parameters),
    ]  # fmt: skip
    return check_inputs(specs, inputs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpretation:
    """A run: the arrays of inputs and functions, the scalars, and the minima of bounds."""

    program: TemporalProgram
    arrays: dict[str, Array]
    scalars: dict[str, Array]
    origins: dict[str, tuple[int, ...]]
    repetitive: IdentityCache[Expr, bool] = field(default_factory=IdentityCache)

    @classmethod
    def of(cls, program: TemporalProgram, values: Mapping[str, Array]) -> Self:
        """The program on checked inputs, its functions still zero."""
        run = cls(
            program=program,
            arrays={name: value for name, value in values.items() if np.ndim(value)},
            scalars={name: value for name, value in values.items() if not np.ndim(value)},
            origins={f.name: tuple(low for low, _ in f.bounds) for f in program.functions},
        )
        for function in program.functions:
            run.arrays[function.name] = np.zeros(function.shape, function.type.numpy)
        return run

    def compute(self) -> None:
        """Compute all functions."""
        with np.errstate(all="ignore"):
            for function in self.program.functions:
                system = self.program.system_of(function.name)
                if system is None:
                    for definition in function.definitions:
                        self.define(function, definition)
                elif function.name == system.members[0]:
                    self.iterate(system)

    def define(self, function: Function, definition: Definition) -> None:
        """Execute one definition over its whole domain."""
        pure = [dimension for dimension in definition.domain if not dimension.reduction]
        vectorized = [] if order_matters(definition) else pure
        scalar = [dimension for dimension in definition.domain if dimension not in vectorized]
        base, exists = _grid(vectorized, self.scalars)
        for point, inside in _points(scalar, base):
            self._assign(function, definition, {**base, **point}, np.logical_and(exists, inside))

    def iterate(self, system: System) -> None:
        """Execute the loops of a system; each iteration computes all members in order."""
        members = [self.program.function(name) for name in system.members]
        carried = carried_loops(system, members)
        boxes = dict(zip([d.name for d in system.domain], members[0].bounds, strict=False))
        lanes = [system.lanes] if system.lanes is not None else []
        together = [_box(d.name, *boxes[d.name]) for d in system.domain if d.name not in carried]
        base, _ = _grid([*together, *lanes], self.scalars)
        ragged = [d for d in system.domain if not _is_constant(d)]
        loops = [_box(d.name, *boxes[d.name]) for d in system.domain if d.name in carried]
        for point, _ in _points(loops, base):
            environment = {**base, **point}
            inside: Any = np.True_
            for dimension in ragged:
                inside = np.logical_and(inside, _exists(dimension, environment))
            if not np.any(inside):
                continue
            for function in members:
                for definition in function.definitions:
                    for lane, _ in _points(definition.reductions, base):
                        self._assign(function, definition, {**environment, **lane}, inside)

    def _assign(
        self, function: Function, definition: Definition, environment: dict[str, Array], inside: Any
    ) -> None:
        target = [evaluate_target(part, environment, self) for part in definition.target]
        shape = np.broadcast_shapes(*(np.shape(part) for part in target), np.shape(inside))
        value = np.broadcast_to(self.value(definition.value, environment, inside), shape)
        mask = np.broadcast_to(inside, shape)
        where = self.locate(function.name, definition, target, mask)
        array = self.arrays[function.name]
        array[where] = value if inside is np.True_ else np.where(mask, value, array[where])

    def value(self, expr: Expr, environment: dict[str, Array], inside: Any) -> Array:
        """The value of an expression where ``inside`` holds (anything elsewhere).

        An explicit stack holds the unfinished nodes, because expressions may be deeper than
        Python's recursion limit.  Values of heavily shared nodes are cached.
        """
        keeps = self.repetitive.get(expr, is_repetitive)
        cache: dict[tuple[int, int], tuple[Any, Array]] = {}
        waiting = [(self._steps(expr, environment, inside), expr, inside)]
        result: Any = None
        while waiting:
            steps, whole, where = waiting[-1]
            try:
                part, within = steps.send(result)
            except StopIteration as ended:
                result = ended.value
                if keeps:
                    cache[id(whole), id(where)] = where, ended.value
                waiting.pop()
                continue
            key = id(part), id(within)
            if isinstance(part, Const | Index | Parameter):
                result = evaluate(part, environment)
            elif key in cache:
                result = cache[key][1]
            else:
                waiting.append((self._steps(part, environment, within), part, within))
                result = None
        return cast(Array, result)

    def _steps(self, expr: Expr, environment: dict[str, Array], inside: Any) -> _Steps:
        """Evaluate one node, as a generator that yields its operands and is sent their values."""
        match expr:
            case Read(indices=indices):
                parts: list[Any] = [None] * len(indices)
                for at, index in enumerate(indices):
                    parts[at] = yield index, inside
                return self.arrays[expr.source][self.locate(expr.source, expr, parts, inside)]
            case Apply(operator=operator, operands=operands, type=type):
                values: list[Any] = [None] * len(operands)
                for at, operand in enumerate(operands):
                    values[at] = yield operand, inside
                return apply_operator(operator, type, tuple(values))
            case Select(condition=condition, if_true=if_true, if_false=if_false):
                chosen = yield condition, inside
                if np.ndim(chosen) == 0:
                    return (yield (if_true if chosen else if_false), inside)
                positive = yield if_true, np.logical_and(inside, chosen)
                negative = yield if_false, np.logical_and(inside, ~chosen)
                return np.where(chosen, positive, negative)
            case Cast(value=value, type=type):
                return cast_value((yield value, inside), type)
            case Const() | Index() | Parameter():
                return evaluate(expr, environment)
        raise TypeError(f"{expr.__class__.__name__} does not occur in temporal programs")

    def locate(
        self, source: str, what: Read | Definition, parts: Sequence[Array], inside: Any
    ) -> tuple[Array, ...]:
        """Array positions of subscripts, checked where ``inside`` holds and clipped elsewhere."""
        array = self.arrays[source]
        origin = self.origins.get(source, (0,) * array.ndim)
        where: list[Array] = []
        for axis, part in enumerate(parts):
            position = np.asarray(part, np.int64) - origin[axis]
            if _within(position, array.shape[axis]):
                where.append(position)
                continue
            wrong = np.logical_and(inside, (position < 0) | (position >= array.shape[axis]))
            if np.any(wrong):
                position, _ = np.broadcast_arrays(position, wrong)
                index = int(position[wrong][0]) + origin[axis]
                low = origin[axis]
                text = show(what) if isinstance(what, Read) else f"the left side of {source}"
                raise UserError(
                    f"subscript {axis} of {text} is out of range when the program runs",
                    location=what.location,
                    expected=f"{low} to {low + array.shape[axis] - 1}",
                    given=str(index),
                )
            where.append(np.clip(position, 0, array.shape[axis] - 1))
        return tuple(where)


def _within(positions: Array, extent: int) -> bool:
    """Whether all positions lie on an axis of ``extent`` elements (the usual, fast case)."""
    if positions.ndim == 0:
        return 0 <= int(positions) < extent
    return bool(positions.size) and bool(positions.min() >= 0 and positions.max() < extent)


def evaluate_target(part: Expr, environment: dict[str, Array], run: Interpretation) -> Array:
    """One subscript of a left side."""
    return run.value(part, environment, np.True_)


def order_matters(definition: Definition) -> bool:
    """Whether points of the pure dimensions must be evaluated one by one."""
    if any(not isinstance(part, Index) for part in definition.target):
        return True
    names = {part.name for part in definition.target if isinstance(part, Index)}
    if names & {dimension.name for dimension in definition.reductions}:
        return True
    own = [read for read in reads(definition.value) if read.source == definition.function]
    return any(read.indices != definition.target for read in own)


def carried_loops(system: System, members: Sequence[Function]) -> set[str]:
    """The loops along which some member reads another iteration."""
    carried: set[str] = set()
    for definition in (definition for member in members for definition in member.definitions):
        for read in reads(definition.value):
            if read.source in system.members:
                for dimension, index in zip(system.domain, read.indices, strict=False):
                    if index != Index(name=dimension.name):
                        carried.add(dimension.name)
    return carried


def _box(name: str, minimum: int, extent: int) -> Dimension:
    return Dimension(name=name, minimum=const(minimum), extent=const(extent), reduction=False)


def _is_constant(dimension: Dimension) -> bool:
    return isinstance(dimension.minimum, Const) and isinstance(dimension.extent, Const)


def _exists(dimension: Dimension, environment: dict[str, Array]) -> Array:
    """Where the index of a loop is within its bounds, which may depend on outer loops."""
    value = environment[dimension.name]
    low = evaluate(dimension.minimum, environment)
    return np.logical_and(low <= value, value < low + evaluate(dimension.extent, environment))


def _grid(
    dimensions: Sequence[Dimension], scalars: Mapping[str, Array]
) -> tuple[dict[str, Array], Any]:
    """Arrays of the dimensions' values, one axis for each, and the mask of where they exist.

    Where bounds depend on outer dimensions, these are the values of the hull.
    """
    environment = dict(scalars)
    inside: Any = np.True_
    for axis, dimension in enumerate(dimensions):
        low = np.asarray(evaluate(dimension.minimum, environment))
        high = low + evaluate(dimension.extent, environment)
        shape = [1] * len(dimensions)
        shape[axis] = -1
        values = np.arange(low.min(), high.max(), dtype=np.int32)
        environment[dimension.name] = values.reshape(shape)
        if not _is_constant(dimension):
            inside = np.logical_and(inside, _exists(dimension, environment))
    return environment, inside


def _constant(expr: Expr) -> int:
    if not isinstance(expr, Const):
        raise TypeError("these bounds are constant")
    return int(expr.value)


def _points(
    dimensions: Sequence[Dimension], base: dict[str, Array]
) -> Iterator[tuple[dict[str, Array], Any]]:
    """Points of the scalar dimensions in order, with the mask of where they exist.

    Bounds that depend on vectorized dimensions differ between elements: the dimension then runs
    over the hull of its bounds, and the mask tells which elements take part.
    """
    if not dimensions:
        yield {}, np.True_
        return
    constant = all(
        not index_names(dimension.minimum) and not index_names(dimension.extent)
        for dimension in dimensions
    )
    if constant:
        ranges = [
            range(_constant(d.minimum), _constant(d.minimum) + _constant(d.extent))
            for d in dimensions
        ]
        for point in product(*ranges):
            yield {d.name: np.int32(v) for d, v in zip(dimensions, point, strict=True)}, np.True_
        return
    yield from _ragged_points(list(dimensions), base, {}, np.True_)


def _ragged_points(
    dimensions: list[Dimension], base: dict[str, Array], point: dict[str, Array], inside: Any
) -> Iterator[tuple[dict[str, Array], Any]]:
    if not dimensions:
        yield point, inside
        return
    dimension, *inner = dimensions
    environment = {**base, **point}
    low = np.asarray(evaluate(dimension.minimum, environment))
    high = low + evaluate(dimension.extent, environment)
    for value in range(int(low.min()), int(high.max())):
        exists = np.logical_and(inside, (low <= value) & (value < high))
        if np.any(exists):
            yield from _ragged_points(
                inner, base, {**point, dimension.name: np.int32(value)}, exists
            )
