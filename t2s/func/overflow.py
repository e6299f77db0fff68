"""Integer sums that overflow their type: how large they get, and which type holds them.

Integer arithmetic wraps around.  For unsigned types C and numpy define that, and hashes rely on it,
so only signed sums are checked: definitions that add to the previous value of an element, or to
another element of their own Func.  A sum that overflows and wraps back is right, so only elements
that are read or returned count.

The ranges of the inputs tell which sums may overflow at all; for most programs there are none.
Otherwise the program runs again with a wide companion of each suspect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from math import prod
from typing import Any

import numpy as np

from t2s.core.errors import warn
from t2s.core.expr import (
    Apply,
    Cast,
    Const,
    Expr,
    Index,
    Parameter,
    Read,
    Select,
    index_names,
    reads,
)
from t2s.core.intervals import Interval, applied
from t2s.core.let_binding import bottom_up
from t2s.core.location import SourceLocation
from t2s.core.ops import Array, Op
from t2s.core.types import Float, Int, Kind, Type, integer_range
from t2s.core.walk import Term, children, rewrite
from t2s.func.interpret import (
    Interpretation,
    carried_loops,
    checked_values,
    order_matters,
)
from t2s.func.ir import Definition, Dimension, Function, System, TemporalProgram

RING = (Op.ADD, Op.SUBTRACT, Op.MULTIPLY, Op.NEGATE)
"""Integer operators that commute with widening, up to wrap-around."""

MOST_WORK, STEP = 1 << 30, 1 << 13
"""The most elements to compute again, some seconds of work; an interpreter step counts as ``STEP``
elements.  Larger recurrences are not checked."""

MOST_IN_FLOATS = 1 << 53
"""Integers below are exact in float64, in which numpy multiplies matrices quickly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NarrowSum:
    """A sum whose values, from ``least`` to ``most``, do not all fit its type.

    ``declared``: the type was declared with the sum rather than where a statement is run.
    """

    name: str
    type: Type
    least: int
    most: int
    location: SourceLocation
    declared: bool = True

    def warn(self) -> None:
        """Warn at the line of the sum."""
        low, high = integer_range(self.type)
        largest = self.most + self.least >= 0
        needed = wide_enough(self.least, self.most)
        hint = f"simulate and interpret compute in another type: type=t2s.{needed}"
        if self.declared:
            hint = (
                f"declare {self.name} with type=t2s.{needed}, and cast what is summed up before it "
                f"is multiplied: t2s.cast(t2s.{needed}, ...)"
            )
        warn(
            f"the sum {self.name} needs {needed}: its {'largest' if largest else 'smallest'} value "
            f"is {self.most if largest else self.least}",
            location=self.location,
            expected=f"values from {low} to {high}, which {spelled(self.type)} holds",
            given=f"values from {self.least} to {self.most}, which wrap around",
            hint=hint,
        )


def spelled(type: Type) -> str:
    """A type in the user's spelling: ``Int(8)``."""
    return f"{type.kind.value.capitalize()}({type.bits})"


def wide_enough(least: int, most: int) -> str:
    """The narrowest signed type that holds both; float64 if no integer type does."""
    for bits in (8, 16, 32, 64):
        low, high = integer_range(Int(bits))
        if low <= least and most <= high:
            return spelled(Int(bits))
    return spelled(Float(64))


def narrow_sums(program: TemporalProgram, inputs: Mapping[str, Any]) -> tuple[NarrowSum, ...]:
    """The sums that overflow their types for these inputs, in program order.

    Only integer sums; see above which elements count.
    """
    if not any(f.type.kind is Kind.INT and sums_of(f) for f in program.functions):
        return ()
    values = checked_values(program, inputs)
    ranges = _Ranges(program, values)
    suspects = ranges.sums
    if not suspects:
        return ()
    wide = {name: f"{name}'" for name in suspects}
    run = _Watching.of(_with_companions(program, suspects, wide), values)
    run.exact.update(wide[name] for name, most in suspects.items() if most < MOST_IN_FLOATS)
    for name in suspects:
        shape = program.function(name).shape
        run.seen[name] = np.full(shape, name in program.outputs, np.bool_)
    if _work(run, ranges) > MOST_WORK:
        return ()
    run.compute()
    sums = []
    for name, most in suspects.items():
        function = program.function(name)
        values = run.arrays[wide[name]][run.seen[name]]
        low, high = integer_range(function.type)
        # sums beyond 64 bits are computed in floats, whose last bits are rounded
        slack = 0 if values.dtype.kind == "i" else most >> 50
        if values.size and (values.min() < low - slack or values.max() > high + slack):
            sums.append(
                NarrowSum(
                    name=name,
                    type=function.type,
                    least=int(values.min()),
                    most=int(values.max()),
                    location=sums_of(function)[0].location,
                )
            )
    return tuple(sums)


def sums_of(function: Function) -> tuple[Definition, ...]:
    """The leading definitions that add to elements of a function."""
    sums: list[Definition] = []
    for number, definition in enumerate(function.definitions):
        manner = _manner(definition)
        if manner is _Own.ADDED:
            sums.append(definition)
        elif number or manner is not _Own.ABSENT:
            break
    return tuple(sums)


class _Own(Enum):
    """Stands for the function itself in the range of its definition's value."""

    ABSENT = "absent"
    COPIED = "copied"
    ADDED = "added"
    OTHER = "other"


def _manner(definition: Definition) -> _Own:
    name, uses = definition.function, dict[int, _Own]()
    for node in bottom_up(definition.value):
        inside = [uses[id(child)] for child in children(node)]
        own = [manner for manner in inside if manner is not _Own.ABSENT]
        use = _Own.OTHER
        match node:
            case Read(source=source) if source == name and not own:
                use = _Own.COPIED
            case _ if not own:
                use = _Own.ABSENT
            case Apply(operator=Op.ADD | Op.SUBTRACT as operator) if len(own) == 1:
                if _Own.OTHER not in own and (operator is Op.ADD or inside[0] in own):
                    use = _Own.ADDED
            case Select() if inside[0] is _Own.ABSENT and _Own.OTHER not in own:
                use = _Own.ADDED if _Own.ADDED in own else _Own.COPIED
        uses[id(node)] = use
    if any(read.source == name for part in definition.target for read in reads(part)):
        return _Own.OTHER
    return uses[id(definition.value)]


def range_of(values: Array) -> Interval:
    """The interval of the integers, extended to contain zero."""
    return (min(0, int(values.min())), max(0, int(values.max()))) if values.size else (0, 0)


class _Ranges:
    """The ranges of functions, and the ``sums`` that may overflow their types.

    ``sums`` maps each of these to the largest magnitude of its partial sums.
    """

    def __init__(self, program: TemporalProgram, values: Mapping[str, Array]) -> None:
        self.found: dict[str, Interval] = {}
        self.sums: dict[str, int] = {}
        self.indices: dict[str, Interval] = {}
        types = {source.name: source.type for source in program.inputs}
        types |= {parameter.name: parameter.type for parameter in program.parameters}
        for name, type in types.items():
            if type.is_integer:
                self.found[name] = range_of(values[name])
        for function in program.functions:
            if function.type.is_integer:
                self.found[function.name] = self._function(
                    function, program.system_of(function.name)
                )

    def _function(self, function: Function, system: System | None) -> Interval:
        limits, name, summing = _limits(function.type), function.name, sums_of(function)
        if function.type.kind is not Kind.INT:
            return limits
        step, others = (0, 0), (0, 0)
        for definition in function.definitions:
            extents = self.extents(definition.domain)
            if definition in summing:
                more = self.of(definition.value, name, wide=True)
                reductions = zip(definition.domain, extents, strict=True)
                count = prod(extent for d, extent in reductions if d.reduction)
                step = step[0] + min(0, more[0]) * count, step[1] + max(0, more[1]) * count
            elif _manner(definition) in (_Own.ABSENT, _Own.COPIED):
                others = _hull(others, self.of(definition.value, name))
            else:
                others = limits
        recurs = system is not None and function.initial in summing
        rounds = self._rounds(function) if recurs else 1
        total = others[0] + step[0] * rounds, others[1] + step[1] * rounds
        if limits[0] <= total[0] and total[1] <= limits[1]:
            return total
        if summing:
            self.sums[name] = max(-total[0], total[1])
        return limits

    def _rounds(self, function: Function) -> int:
        """The length of the longest chain of elements in which each adds to the one before."""
        most = 1
        for read in reads(function.initial.value):
            if read.source == function.name:
                steps = [
                    extent
                    for (_, extent), name, index in zip(
                        function.bounds, function.arguments, read.indices, strict=True
                    )
                    if index != Index(name=name)
                ]
                most = max(most, min(steps, default=1))
        return most

    def extents(self, domain: Sequence[Dimension]) -> list[int]:
        """Bind the indices of the dimensions to their ranges, and return the largest extents."""
        extents_ = []
        for dimension in domain:
            low, high = self.of(dimension.minimum)
            extents_.append(max(0, self.of(dimension.extent)[1]))
            self.indices[dimension.name] = low, max(low, high + extents_[-1] - 1)
        return extents_

    def of(self, expr: Expr, own: str = "", *, wide: bool = False) -> Interval:
        """The range of an integer expression; the whole range of its type if it may wrap around.

        A copy of ``own`` adds nothing to the range.  ``wide``: the range of the added terms, in a
        type that holds them.
        """
        narrow: dict[int, Interval] = {}
        unbound: dict[int, Interval] = {}
        for node in bottom_up(expr):
            if not isinstance(node, Expr):
                continue
            limits = _limits(node.type)
            range_ = self._of(node, narrow, own, limits)
            fits = limits[0] <= range_[0] and range_[1] <= limits[1]
            narrow[id(node)] = range_ if fits else limits
            if _in_ring(node):
                range_ = self._of(node, unbound, own, limits)
            unbound[id(node)] = range_ if _in_ring(node) else narrow[id(node)]
        return (unbound if wide else narrow)[id(expr)]

    def _of(
        self, expr: Expr, inside: Mapping[int, Interval], own: str, limits: Interval
    ) -> Interval:
        match expr:
            case Const(value=value) if not expr.type.is_float:
                return int(value), int(value)
            case Index(name=name):
                return self.indices.get(name, limits)
            case Parameter(name=name):
                return self.found.get(name, limits)
            case Read(source=source):
                return (0, 0) if source == own else self.found.get(source, limits)
            case Cast(value=value) if not value.type.is_float:
                return inside[id(value)]
            case Select(if_true=if_true, if_false=if_false):
                return _hull(inside[id(if_true)], inside[id(if_false)])
            case Apply(operator=operator, operands=operands) if not expr.type.is_float:
                parts = [inside[id(operand)] for operand in operands]
                return applied(operator, parts) or limits
        return limits


def _in_ring(node: object) -> bool:
    """Whether a value uses only operators that commute with widening (those of a ring)."""
    return isinstance(node, Select) or (isinstance(node, Apply) and node.operator in RING)


def _limits(type: Type) -> Interval:
    return (0, 0) if type.is_float else integer_range(type)


def _hull(*intervals: Interval) -> Interval:
    return min(low for low, _ in intervals), max(high for _, high in intervals)


def _with_companions(
    program: TemporalProgram, suspects: Mapping[str, int], wide: Mapping[str, str]
) -> TemporalProgram:
    """A program in which each suspect is summed in a wide type and then wrapped to its own.

    It contains what the suspects need, and the readers of those that are not outputs.
    """
    functions: dict[str, tuple[Function, ...]] = {}
    for function in program.functions:
        name = function.name
        if name in suspects:
            type = Int(64) if suspects[name] < 1 << 63 else Float(64)
            functions[name] = _split(function, wide[name], type)
        else:
            functions[name] = (_without_propagation(function, program),)
    needed = _needed(program, suspects)
    systems = tuple(
        replace(s, members=tuple(f.name for m in s.members for f in functions[m]))
        for s in program.systems
        if set(s.members) <= needed
    )
    functions_ = tuple(f for g in program.functions if g.name in needed for f in functions[g.name])
    return replace(program, functions=functions_, systems=systems)


def _needed(program: TemporalProgram, suspects: Mapping[str, int]) -> set[str]:
    """The suspects, the readers of those that are not outputs, and everything that these need."""
    sources = {
        f.name: {r.source for d in f.definitions for e in (*d.target, d.value) for r in reads(e)}
        for f in program.functions
    }
    inner = suspects.keys() - set(program.outputs)
    needed = suspects.keys() | {name for name, read in sources.items() if read & inner}
    while True:
        more = {source for name in needed for source in sources[name] if source in sources}
        for system in program.systems:
            if needed & set(system.members):
                more |= set(system.members)
        if more <= needed:
            return needed
        needed |= more


def _split(function: Function, name: str, wide: Type) -> tuple[Function, Function]:
    """The wide sum of a function, and the function with its remaining definitions."""
    summing = sums_of(function)
    first = [function.initial, *(d for d in function.updates if d in summing)]
    widened = [
        replace(
            definition,
            function=name,
            value=_widened(definition.value, function.name, name, wide),
        )
        for definition in first
    ]
    total = replace(function, name=name, type=wide, initial=widened[0], updates=tuple(widened[1:]))
    if wide.is_float:  # float64 needs no cast that wraps around
        return total, function
    read = Read(source=name, indices=function.initial.target, type=wide)
    narrow = replace(function.initial, value=Cast(value=read, type=function.type))
    return total, replace(
        function, initial=narrow, updates=tuple(d for d in function.updates if d not in summing)
    )


def _widened(expr: Expr, own: str, name: str, wide: Type) -> Expr:
    """The added term, in a wide type as far as ring operators go."""
    narrow = expr.type

    def leaf(node: Expr) -> Expr:
        if isinstance(node, Read) and node.source == own:
            return replace(node, source=name, type=wide)
        return node if node.type == wide else Cast(value=node, type=wide)

    def into(node: Term) -> bool:
        return _in_ring(node) and isinstance(node, Expr) and node.type == narrow

    def rule(node: Term) -> Expr | None:
        match node:
            case Select(if_true=if_true, if_false=if_false):
                sides = leaf(if_true), leaf(if_false)
                return replace(node, if_true=sides[0], if_false=sides[1], type=wide)
            case Apply(operands=operands):
                return replace(node, operands=tuple(map(leaf, operands)), type=wide)
        return None

    return rewrite(expr, rule, into) if into(expr) else leaf(expr)


def _without_propagation(function: Function, program: TemporalProgram) -> Function:
    """Replace a member that only forwards a value along one loop by the value that enters.

    ``X[i, j] = select(j == 0, A[i], X[i, j - 1])`` becomes ``A[i]``.
    """
    system = program.system_of(function.name)
    value = function.initial.value
    if system is None or function.updates or not isinstance(value, Select):
        return function
    for dimension in function.initial.domain:
        start = Apply(
            operator=Op.EQUAL,
            operands=(Index(name=dimension.name), dimension.minimum),
            type=value.condition.type,
        )
        enters, handed = value.if_true, value.if_false
        if value.condition != start or not isinstance(handed, Read):
            continue
        others = [
            index
            for name, index in zip(function.arguments, handed.indices, strict=True)
            if index != Index(name=name)
        ]
        copies = handed.source == function.name and len(others) == 1
        inner = {read.source for read in reads(enters)}
        if (
            copies
            and index_names(others[0]) == {dimension.name}
            and isinstance(dimension.minimum, Const)
            and dimension.name not in index_names(enters)
            and not inner & set(system.members)
        ):
            return replace(function, initial=replace(function.initial, value=enters))
    return function


@dataclass(frozen=True, slots=True, kw_only=True)
class _Watching(Interpretation):
    """Records which elements of suspects are read (``seen``), and multiplies matrices with numpy.

    ``exact`` are the sums that float64 holds exactly, in any order of addition.
    """

    seen: dict[str, Array] = field(default_factory=dict)
    exact: set[str] = field(default_factory=set)

    def define(self, function: Function, definition: Definition) -> None:
        factors = self.contracted(function, definition)
        if factors is None:
            Interpretation.define(self, function, definition)
            return
        names = [dimension.name for dimension in definition.domain]
        operands: list[Any] = []
        for read in factors:
            array = self.arrays[read.source].astype(np.float64)
            operands += [array, [names.index(name) for name in _plain(read.indices)]]
        axes = [names.index(name) for name in _plain(definition.target)]
        product = np.einsum(*operands, axes, optimize=True)
        self.arrays[function.name] += product.astype(function.type.numpy)

    def contracted(self, function: Function, definition: Definition) -> list[Read] | None:
        """The factors of a definition that adds a product of whole arrays, else ``None``."""
        match definition.value:
            case Apply(operator=Op.ADD, operands=(Read(source=source) as own, term)):
                factors = _factors(term)
            case _:
                return None
        if function.name not in self.exact or source != function.name or factors is None:
            return None
        inside = {name for read in factors for name in _plain(read.indices)}
        if own.indices != definition.target or not inside >= set(_plain(own.indices)):
            return None
        boxes = {
            d.name: (int(d.minimum.value), int(d.extent.value))
            for d in definition.domain
            if isinstance(d.minimum, Const) and isinstance(d.extent, Const)
        }
        for read in (own, *factors):
            shape = self.arrays[read.source].shape
            minima = self.origins.get(read.source, (0,) * len(shape))
            names = _plain(read.indices)
            if len(names) < len(shape) or any(
                boxes.get(name) != (low, extent)
                for name, low, extent in zip(names, minima, shape, strict=True)
            ):
                return None
        return factors

    def locate(
        self, source: str, what: Read | Definition, parts: Sequence[Array], inside: Any
    ) -> tuple[Array, ...]:
        where = Interpretation.locate(self, source, what, parts, inside)
        if source in self.seen and isinstance(what, Read):
            places = np.broadcast_arrays(*where, inside)
            self.seen[source][tuple(place[places[-1]] for place in places[:-1])] = True
        return where


def _plain(indices: Sequence[Expr]) -> tuple[str, ...]:
    """The names of the subscripts that are plain variables."""
    return tuple(index.name for index in indices if isinstance(index, Index))


def _factors(term: Expr) -> list[Read] | None:
    """The element reads that a product multiplies; ``None`` for any other term."""
    match term:
        case Apply(operator=Op.MULTIPLY, operands=(left, right)):
            sides = _factors(left), _factors(right)
            return None if sides[0] is None or sides[1] is None else sides[0] + sides[1]
        case Cast(value=value) if term.type.kind is value.type.kind is Kind.INT:
            return _factors(value) if term.type.bits >= value.type.bits else None
        case Read():
            return [term]
    return None


def _work(run: _Watching, ranges: _Ranges) -> int:
    """The work of the interpreter, in elements."""
    work = 0
    for function in run.program.functions:
        system = run.program.system_of(function.name)
        for definition in function.definitions:
            extents = ranges.extents(definition.domain)
            every = prod(extents)
            reductions = zip(definition.domain, extents, strict=True)
            steps = prod(extent for d, extent in reductions if d.reduction)
            if system is not None:
                members = [run.program.function(name) for name in system.members]
                loops = carried_loops(system, members)
                boxes = zip(system.domain, members[0].bounds, strict=False)
                steps *= prod(extent for d, (_, extent) in boxes if d.name in loops)
            elif run.contracted(function, definition) is not None:
                steps, every = 1, every >> 6  # matmul uses threads and vector units
            elif order_matters(definition):
                steps = every
            work += steps * STEP + every
    return work


def warn_of_narrow_sums(program: TemporalProgram, inputs: Mapping[str, Any]) -> None:
    """Warn of each sum that overflows its type, at its line."""
    for narrow in narrow_sums(program, inputs):
        narrow.warn()
