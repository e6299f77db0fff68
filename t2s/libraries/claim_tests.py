"""Testing claims: functions run on random shapes and values, compared with the oracle.

Shapes, lengths of lists, layouts in memory, types and formats are drawn from all that a capability
allows.  Values are small integers, so float sums are exact.  Guard zones around all arrays detect
writes outside of the result.  Tests run in a child process, as a function may crash.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from math import prod
from random import Random
from typing import Any

import numpy as np

from t2s.capability.conditions import Answer, holds, instantiated, names_of, numbers_of
from t2s.capability.description import ExternalFunction
from t2s.capability.ir import (
    Condition,
    ListExtent,
    ListOrder,
    OperandNeeds,
    Strides,
    print_capability,
)
from t2s.capability.operands import is_dense, suits
from t2s.capability.tiles import tiles_of
from t2s.capability.verify import types_over
from t2s.core.errors import T2SError, UserError
from t2s.core.location import SourceLocation, user_location
from t2s.core.ops import OPERATORS, Op
from t2s.core.types import INT32, Type
from t2s.core.validate import as_int, checked_kind
from t2s.core.walk import Term, rebuild, walk
from t2s.libraries.calling import CallFrame, call, check_available, returned_numbers, symbol_address
from t2s.libraries.child import SECONDS, ChildCrash, Say, copy_came_back, in_child, in_fresh_process
from t2s.sparse_repr.formats import dense
from t2s.sparse_repr.notation.evaluate import evaluate
from t2s.sparse_repr.notation.ir import (
    Access,
    Assignment,
    Combine,
    Sum,
    TensorDeclaration,
    accesses,
)
from t2s.sparse_repr.notation.symbols import SYMMETRIC
from t2s.sparse_repr.semiring import PLUS_TIMES, Semiring
from t2s.sparse_repr.tensors.interchange import tensor
from t2s.sparse_repr.tensors.tensor import SparseTensor, from_dense

Array = np.ndarray[Any, Any]

FIRST_TRIALS = 10
FIRST_SECONDS = 60.0
"""The time limit of the first use of a function, in seconds, including compilation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """The number of trials, and how many patterns of lists they covered."""

    function: ExternalFunction
    trials: int
    patterns: int

    def __str__(self) -> str:
        claim = print_capability(self.function.capability)
        shapes = f"{self.patterns} pattern{'s' if self.patterns != 1 else ''}"
        return f"{self.function.name}: {claim}: {self.trials} trials of {shapes}, all right"


def check(
    function: ExternalFunction, trials: int = 200, *, seed: int = 0, seconds: float = SECONDS
) -> CheckReport:
    """Test a function on random cases that its capability allows, against the oracle.

    Raises ``UserError`` with the smallest wrong case, or the one in which the function crashed or
    exceeded the time limit.
    """
    checked_kind("what is checked", function, ExternalFunction, "an external function")
    count = as_int(trials)
    if count is None or count < 1:
        raise UserError(
            "a claim is tried a number of times",
            location=user_location(),
            expected="trials, 1 or more",
            given=repr(trials),
        )
    location = function.location or user_location()
    if function.library is not None and function.call is not None:
        check_available(function.library, function.name, location)

    work = partial(_checked, function, location, trials, seed)
    fresh = function.library is not None and function.library.fresh
    outcome = (in_fresh_process if fresh else in_child)(work, seconds=seconds)
    claim = print_capability(function.capability)
    if isinstance(outcome, ChildCrash):
        raise UserError(
            f"{function.name} {outcome.why}",
            location=location,
            expected=f"a call that computes {claim}",
            given=outcome.last or "its first call",
            hint=f"it ran in a child process; its arguments{_width(function)}, and the handlers of "
            "its library, are what to look at",
        )
    wrong, patterns = outcome
    if wrong:
        first = min(wrong, key=lambda one: one.size)
        raise UserError(
            f"{function.name} does not compute {claim}",
            location=location,
            expected=first.expected,
            given=first.given,
            notes=[(None, f"for {first.case}"), (None, f"{len(wrong)} of {trials} trials differ")],
        )
    return CheckReport(function=function, trials=trials, patterns=patterns)


def _width(function: ExternalFunction) -> str:
    """A note on the integer width of a call, which only a C prototype would check."""
    if function.call is None:
        return ""
    return (
        f" (extents and steps of {(function.index or INT32).bits} bits: index= says another width)"
    )


@lru_cache(maxsize=256)
def check_first_use(function: ExternalFunction) -> None:
    """Test an untested claim once.  Raises ``UserError`` if it is refuted."""
    check(function, FIRST_TRIALS, seconds=FIRST_SECONDS)


def _check_symbols(function: ExternalFunction, location: SourceLocation | None) -> None:
    """Raise ``UserError`` for a symbol that is missing in the library."""
    library = function.library
    if library is None or function.call is None:
        return
    for called in (*function.setup, function.call, *function.unpack, *function.teardown):
        try:
            symbol_address(library, called.symbol)
        except UserError as error:
            raise UserError(
                f"{function.name} is not available: {error.message}",
                location=location,
                expected=error.expected,
                given=error.given,
            ) from None


def _checked(
    function: ExternalFunction, location: SourceLocation, trials: int, seed: int, say: Say
) -> tuple[list[Counterexample], int]:
    _check_symbols(function, location)
    return _trials(function, trials, seed, say)


def _trials(
    function: ExternalFunction, trials: int, seed: int, say: Say
) -> tuple[list[Counterexample], int]:
    wrong: list[Counterexample] = []
    patterns: set[tuple[object, ...]] = set()
    for number in range(trials):
        random = Random(f"{seed}:{number}")
        claim_case = ClaimCase(function, random, 1 + LARGEST_EXTENT * (number + 1) // trials)
        patterns.add(claim_case.pattern)
        say(claim_case.case)
        counterexample = claim_case.wrong()
        if counterexample is not None:
            wrong.append(counterexample)
    return wrong, len(patterns)


# A trial: a random shape, tensors in memory, a call, and the comparison with the oracle.

LONGEST_LIST = 3
LONGEST_ASKED_FOR = 8
"""The longest list, without and with a condition on its order or on a position."""

LARGEST_EXTENT = 9
MOST_ELEMENTS = 20_000
GUARD_BYTES = 1 << 12
"""Bytes before and after each array, which detect writes outside of it."""

TRIES_FOR_A_SHAPE = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterexample:
    """A failed trial: the case, the actual and the expected result."""

    size: int
    case: str
    expected: str
    given: str


class ClaimCase:
    """A trial: extents, tensors in memory, the call, and the comparison."""

    def __init__(self, function: ExternalFunction, random: Random, largest: int) -> None:
        self.function = function
        self.capability = function.capability
        self.random = random
        rings = {ring: types_over(self.capability, ring) for ring in self.capability.semirings}
        types = dict.fromkeys(type for some in rings.values() for type in some)
        self.type: Type = random.choice(tuple(types))
        self.kind = self.type.numpy
        self.ring: Semiring = random.choice(
            [ring for ring, some in rings.items() if self.type in some]
        )
        self.lists, self.extents = self._shape(largest)
        self.bases: list[Array] = []
        self.guarded: dict[int, _Guarded] = {}
        self.tensors = self._tensors()
        lengths = tuple(len(self.lists[name]) for name in self.capability.lists)
        shared = len({id(operand) for operand in self.tensors.values()})
        self.pattern = (*lengths, shared, str(self.type))
        self.case = self._shown()

    def _shape(self, largest: int) -> tuple[dict[str, tuple[str, ...]], dict[str, int]]:
        """Draw lengths of lists and extents that satisfy the condition."""
        capability = self.capability
        used = (capability.result, *accesses(capability.value))
        names = dict.fromkeys(name for access in used for name in access.variables)
        singles = [name for name in names if name not in capability.lists]
        longest = _longest_list(capability.condition)
        for attempt in range(TRIES_FOR_A_SHAPE):
            lists = {
                name: tuple(f"{name}{at}" for at in range(self.random.randint(0, longest)))
                for name in capability.lists
            }
            images = {name: (name,) for name in singles}
            modes = {
                name: tuple((variable,) for variable in members) for name, members in lists.items()
            }
            condition = instantiated(capability.condition, images, modes)
            variables = [
                *singles,
                *(variable for members in lists.values() for variable in members),
            ]
            most = largest if attempt < TRIES_FOR_A_SHAPE // 2 else LARGEST_EXTENT
            pool = [*range(1, most + 1)]
            if attempt % 2:
                near = (n + d for n in numbers_of(condition) for d in (-1, 0, 1))
                pool += [number for number in near if 1 <= number <= MOST_ELEMENTS]
            extents = {name: self.random.choice(pool) for name in variables}
            if attempt % 3 == 2:
                tiles = tiles_of(condition, {name: extents[name] for name in names_of(condition)})
                extents |= {tile.mode: tile.size for tile in tiles or ()}
            extents = self._square(extents, lists)
            small = all(
                prod(extents[variable] for variable in _expanded(access, lists)) <= MOST_ELEMENTS
                for access in used
            )
            if small and holds(condition, extents) is Answer.TRUE:
                return lists, extents
        raise UserError(
            f"no shape was found that {self.function.name} is for",
            location=self.function.location,
            expected="a condition that small extents satisfy",
            given=print_capability(capability),
        )

    def _square(
        self, extents: dict[str, int], lists: Mapping[str, tuple[str, ...]]
    ) -> dict[str, int]:
        """Equate extents where one tensor has two accesses, or is symmetric."""
        seen: dict[str, tuple[str, ...]] = {}
        same = []
        for access in (self.capability.result, *accesses(self.capability.value)):
            names = _expanded(access, lists)
            first = seen.setdefault(access.tensor, names)
            same += list(zip(first, names, strict=False))
            if SYMMETRIC in self.capability.needs_of(access.tensor).properties:
                same.append((names[0], names[1]))
        for _ in same:
            for one, other in same:
                extents[other] = extents[one]
        return extents

    def _tensors(self) -> dict[str, Any]:
        """Draw the operands; sometimes two of them are the same tensor."""
        tensors: dict[str, Any] = {}
        for access in accesses(self.capability.value):
            if access.tensor in tensors:
                continue
            shape = tuple(self.extents[name] for name in _expanded(access, self.lists))
            needs = self.capability.needs_of(access.tensor)
            alike = [
                name
                for name, operand in tensors.items()
                if operand.shape == shape
                and self.capability.overwritten not in (name, access.tensor)
                and _like(self.capability.needs_of(name), needs)
            ]
            if alike and self.random.random() < 0.2:
                tensors[access.tensor] = tensors[self.random.choice(alike)]
                continue
            tensors[access.tensor] = self._tensor(access.tensor, shape, needs)
        return tensors

    def _tensor(self, name: str, shape: tuple[int, ...], needs: OperandNeeds) -> Any:
        values = self._values(shape)
        if SYMMETRIC in needs.properties:
            values = np.where(np.tri(shape[0], dtype=bool), values, values.T)
        if needs.formats:
            chosen = self.random.choice(needs.formats)
            if is_dense(chosen):
                return self._placed(name, values, needs.strides)
            part = self._random_array(shape) < self.random.choice((0.0, 0.3, 0.7, 1.0))
            zero = np.asarray(self.ring.zero, self.kind)
            operand = from_dense(np.where(part, values, zero), chosen, fill=self.ring.zero)
            self.bases += [
                operand.values,
                *(array for level in operand.levels for array in level.values()),
            ]
            return operand
        return self._placed(name, values, needs.strides)

    def _random_array(self, shape: tuple[int, ...]) -> Array:
        return np.random.default_rng(self.random.randrange(1 << 30)).random(shape)

    def _values(self, shape: tuple[int, ...]) -> Array:
        low = 1 if self.kind.kind in "ub" or self.ring != PLUS_TIMES else -4
        generator = np.random.default_rng(self.random.randrange(1 << 30))
        values = generator.integers(low, 5, shape)
        if any(
            isinstance(t, Combine) and t.operator is Op.DIVIDE for t in walk(self.capability.value)
        ):
            values = np.where(values == 0, 1, values)
        return np.asarray(values, self.kind)

    def _placed(self, name: str, values: Array, strides: Strides) -> Array:
        """Place the values in a larger array, with random strides that the function takes."""
        for _ in range(4):
            view = self._view(values.shape)
            if suits(view, strides):
                break
        else:
            columns = strides is Strides.COLUMNS
            view = self._allocated(values.shape[::-1] if columns else values.shape)
            view = view.T if columns else view
        view[...] = values
        base = view
        while isinstance(base.base, np.ndarray):
            base = base.base
        self.bases.append(base)
        self.guarded[id(base)].name = name
        return view

    def _allocated(self, shape: Sequence[int]) -> Array:
        """An array of threes between two guard zones; its base is all of the bytes."""
        size = prod(shape) * self.kind.itemsize
        memory = np.full(2 * GUARD_BYTES + size + _LINE, 0xA5, np.uint8)
        start = GUARD_BYTES - memory.__array_interface__["data"][0] % _LINE
        self.guarded[id(memory)] = _Guarded(first=start, last=start + size)
        array = np.ndarray(tuple(shape), self.kind, memory, start)
        array[...] = 3
        return array

    def _view(self, shape: tuple[int, ...]) -> Array:
        """A window of a larger array, possibly with its modes permuted."""
        order = list(range(len(shape)))
        if self.random.random() < 0.5:
            self.random.shuffle(order)
        margins = [self.random.choice((0, 0, 1, 3)) for _ in shape]
        steps = [self.random.choice((1, 1, 1, 2)) for _ in shape]
        larger = [
            (extent - 1) * step + 1 + margin
            for extent, step, margin in zip(shape, steps, margins, strict=True)
        ]
        base = self._allocated([larger[at] for at in order])
        view = base.transpose(np.argsort(order)) if order else base
        cut = tuple(
            slice(0, (extent - 1) * step + 1, step)
            for extent, step in zip(shape, steps, strict=True)
        )
        index: Any = (*cut, ...)
        return np.asarray(view[index])

    def wrong(self) -> Counterexample | None:
        """Run the trial; returns the counterexample, if it fails."""
        capability = self.capability
        name = capability.result.tensor
        shape = tuple(
            self.extents[variable] for variable in _expanded(capability.result, self.lists)
        )
        expected = self._expected(shape)
        handed = dict(self.tensors)
        stored = capability.needs_of(name).formats
        place: Array | None = None
        if not stored:
            place = (
                self.tensors[name]
                if capability.overwritten
                else self._placed(name, self._values(shape), capability.needs_of(name).strides)
            )
            if capability.accumulates:
                add = self.ring.operator(Op.ADD)
                expected = OPERATORS[add].evaluate(np.array(place), expected)
            handed[name] = place
        before = [base.copy() for base in self.bases]
        try:
            lists = {name: len(variables) for name, variables in self.lists.items()}
            frame = CallFrame(self.function, handed, self.extents, None, self.ring, lists)
            returned = call(frame)
            if copy_came_back():
                return self._finding("one process", "a copy of the process, as fork makes one")
            result = self._result(returned, place)
        except T2SError as error:
            return self._finding(_short(expected), _said(error))
        if result.shape != expected.shape or not self._equal(result, expected):
            return self._finding(_short(expected), _short(result))
        return self._written(place, before)

    def _result(self, returned: Any, place: Array | None) -> Array:
        """The result: returned, written, or in the function's memory."""
        if place is None:
            return tensor(returned).to_dense()
        if self._returns():
            value = returned_numbers(self.function, returned, None)
            if value.shape != place.shape:
                shape = " x ".join(map(str, value.shape))
                raise UserError(f"a result of shape {shape or 'of a scalar'}")
            place[...] = value
        return np.array(place)

    def _written(self, place: Array | None, before: list[Array]) -> Counterexample | None:
        """Check that only the result was written."""
        for base, copy in zip(self.bases, before, strict=True):
            changed = base != copy
            guarded = self.guarded.get(id(base))
            where = None if guarded is None else guarded.written_outside(changed)
            if where is not None:
                return self._finding("what is around an array as it was", where)
            if place is not None and np.may_share_memory(base, place):
                changed &= ~_window(base, place)
            if changed.any():
                return self._finding("operands as they were", "an array that was written")
        return None

    def _returns(self) -> bool:
        function = self.function
        if function.call is not None:
            return function.call.returns is not None and function.status is None
        return self.capability.result.tensor not in function.parameters

    def _equal(self, one: Array, other: Array) -> bool:
        divides = any(
            isinstance(term, Combine) and term.operator is Op.DIVIDE
            for term in walk(self.capability.value)
        )
        if divides and self.type.is_float:
            return bool(np.allclose(one, other, rtol=1e-4, atol=1e-5, equal_nan=True))
        return bool(np.array_equal(one, other, equal_nan=self.type.is_float))

    def _expected(self, shape: tuple[int, ...]) -> Array:
        """The result of the concrete statement by the oracle."""
        capability = self.capability
        target = _expanded(capability.result, self.lists)

        def visit(term: Term) -> Term:
            match term:
                case Access():
                    return Access(tensor=term.tensor, variables=_expanded(term, self.lists))
                case Sum(variables=variables, value=value):
                    names = _names(variables, self.lists)
                    inner = visit(value)
                    if not names:
                        return inner
                    return Sum(variables=names, value=inner)  # type: ignore[arg-type]
            return rebuild(term, visit)

        value: Any = visit(capability.value)
        declared = [TensorDeclaration(name="the result", format=dense(len(shape)), shape=shape)]
        inputs = {}
        places = {}
        for name, operand in self.tensors.items():
            declared.append(TensorDeclaration(name=name, format=dense(len(operand.shape))))
            inputs[name] = (
                operand.to_dense() if isinstance(operand, SparseTensor) else np.array(operand)
            )
            if isinstance(operand, SparseTensor):
                stored = np.zeros(operand.shape, np.bool_)
                stored[operand.columns()[0]] = True
                places[name] = stored
        assignment = Assignment(
            result=Access(tensor="the result", variables=target),
            value=value,
            tensors=tuple(declared),
            semiring=self.ring,
        )
        return evaluate(assignment, inputs, self.kind, places)

    def _finding(self, expected: str, returned: str) -> Counterexample:
        size = sum(prod(operand.shape) for operand in self.tensors.values())
        return Counterexample(size=size, case=self.case, expected=expected, given=returned)

    def _shown(self) -> str:
        parts = []
        for name, operand in self.tensors.items():
            if isinstance(operand, SparseTensor):
                parts.append(f"{name} {operand.format} {_short(operand.to_dense())}")
            else:
                steps = ",".join(str(step // operand.itemsize) for step in operand.strides)
                shown = f"{name} {_short(operand)}"
                parts.append(f"{shown} at steps {steps}" if steps else shown)
        return f"{', '.join(parts)} of {self.type}"


_LINE = 64
"""The alignment of arrays, in bytes."""


@dataclass(slots=True, kw_only=True)
class _Guarded:
    """Memory with an array at bytes ``first`` to ``last``; the rest are its guard zones."""

    first: int
    last: int
    name: str = ""

    def written_outside(self, changed: Array) -> str | None:
        """The changed byte of a guard zone that is nearest to the array, or ``None``."""
        behind = np.flatnonzero(changed[self.last :])
        if behind.size:
            return f"{self.name} written {int(behind[0])} bytes behind its end"
        before = np.flatnonzero(changed[: self.first])
        if before.size:
            return f"{self.name} written {self.first - int(before[-1])} bytes before its start"
        return None


def _longest_list(condition: Condition) -> int:
    """The longest list in trials."""
    if not any(isinstance(term, ListOrder | ListExtent) for term in walk(condition)):
        return LONGEST_LIST
    small = [number + 1 for number in numbers_of(condition) if number < LONGEST_ASKED_FOR]
    return max([LONGEST_LIST, *small])


def _like(one: OperandNeeds, other: OperandNeeds) -> bool:
    return (one.formats, one.strides, one.properties) == (
        other.formats,
        other.strides,
        other.properties,
    )


def _window(base: Array, place: Array) -> Array:
    """The range of bytes that an array occupies in its memory."""
    marked = np.zeros_like(base)
    offset = place.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    shape, strides = (*place.shape, place.itemsize), (*place.strides, 1)
    view = np.ndarray(shape, np.uint8, marked, offset, strides)
    view[...] = 1
    return np.asarray(marked != 0)


def _said(error: T2SError) -> str:
    """An error on one line: its message, and what was given."""
    message = str(error).splitlines()[0]
    given = error.given if isinstance(error, UserError) else None
    return message if given is None or given in message else f"{message}: {given}"


def _names(variables: tuple[str, ...], lists: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(variable for name in variables for variable in lists.get(name, (name,)))


def _expanded(access: Access, lists: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    return _names(access.variables, lists)


def _short(values: Array) -> str:
    text = " ".join(str(values.tolist()).split())
    if len(text) <= 120:
        return text
    shape = " x ".join(map(str, values.shape))
    return f"{text[:100]}... of shape {shape}"
