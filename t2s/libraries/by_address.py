"""Which mappings are run by compiled loops around calls by address, and what these loops are given.

Operands move by a step for each fixed variable, so their steps, extents and letters are those of
the first call.  Whatever needs more in a call (copies of operands, tiles, objects, calls before and
behind it, functions in Python) is run call by call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from t2s.capability.description import (
    AddressOf,
    ArrayOfLevelOf,
    CallLetter,
    CallNumber,
    CallTerm,
    DataOf,
    DeclaredObject,
    DimensionOf,
    ExternalCall,
    ExternalFunction,
    LayoutOf,
    LeadOf,
    StepOf,
)
from t2s.core.expr import Const, Expr
from t2s.core.types import INT32, Int, Type
from t2s.core.walk import walk
from t2s.libraries.calling import CallFrame, argument_value, suited, suits
from t2s.libraries.finding import symbol_address
from t2s.loops.call_nest import (
    BUFFER,
    NestedCall,
    TensorAddress,
    TermAddress,
    TermValue,
    loop_extent,
    mode_extent_name,
    mode_step_name,
    move_of,
    term_name,
)
from t2s.sparse_repr.notation.types import TYPES
from t2s.sparse_repr.semiring import Semiring

Array = np.ndarray[Any, Any]

FEWEST_CALLS = 8
"""Fewer calls are made one by one, so that no loops have to be compiled for them."""

LETTER = Int(8)


@dataclass(kw_only=True)
class LoopedCalls:
    """What compiled loops around calls are given; ``copied`` are bytes, as call by call."""

    nest: NestedCall
    address: int
    arrays: dict[str, Array]
    numbers: dict[str, int]
    calls: int
    copied: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedOperand:
    """An operand under fixed variables: whole, as seen in the first call, and what moves it."""

    whole: Array
    seen: Array
    moves: Mapping[str, int]
    """Bytes by which each loop moves it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedCalls:
    """Calls for all numbers of the loops, in order, with their extents."""

    function: ExternalFunction
    loops: Mapping[str, int]
    operands: Mapping[str, FixedOperand]
    target: FixedOperand
    extents: Mapping[str, int]
    sums: bool
    semiring: Semiring
    location: Any = field(default=None)


def looped_calls(given: FixedCalls) -> LoopedCalls | None:
    """The loops for calls, with nothing run yet; ``None`` where they are made one by one."""
    function, capability = given.function, given.function.capability
    calls = prod(given.loops.values())
    if calls < FEWEST_CALLS or not _is_plain(function):
        return None
    if not all(_is_regular(name, one, function) for name, one in given.operands.items()):
        return None
    result, target = capability.result.tensor, given.target
    call = function.call
    assert call is not None
    returned = call.returns is not None and function.status is None
    if returned and target.seen.ndim:
        return None  # the old way says what is wrong with the shape
    adds = capability.accumulates
    direct = (adds or not given.sums) and suits(target.seen, capability.needs_of(result).strides)
    if capability.overwritten is not None and not direct:
        return None
    place = target.seen
    if not direct and not returned:
        zeros = np.full(target.seen.shape, given.semiring.zero, target.seen.dtype)
        place = suited(zeros, capability.needs_of(result).strides)
    tensors: dict[str, Any] = {name: one.seen for name, one in given.operands.items()}
    tensors[result] = place
    frame = CallFrame(function, tensors, given.extents, given.location)
    return _Looped(given, frame, direct=direct, returned=returned, place=place).made(calls)


def _is_plain(function: ExternalFunction) -> bool:
    """Whether a call is one by address, of terms that stay the same but for its tensors."""
    if function.call is None or function.python is not None:
        return False
    if function.setup or function.teardown or function.library is None:
        return False
    for one in function.call.arguments:
        match one:
            case AddressOf(value=value):
                if not isinstance(
                    value, CallNumber | CallLetter | DimensionOf | StepOf | LeadOf | LayoutOf
                ):
                    return False
            case ExternalCall() | DeclaredObject() | ArrayOfLevelOf():
                return False
    return True


def _is_regular(name: str, one: FixedOperand, function: ExternalFunction) -> bool:
    """Whether all calls see an operand alike and where it is."""
    whole = one.whole
    if not whole.flags.aligned or any(step % whole.itemsize for step in whole.strides):
        return False
    inside = np.may_share_memory(one.seen, whole)
    return inside and suits(one.seen, function.capability.needs_of(name).strides)


class _Looped:
    def __init__(
        self, given: FixedCalls, frame: CallFrame, *, direct: bool, returned: bool, place: Array
    ) -> None:
        self.given, self.frame = given, frame
        self.direct, self.returned, self.place = direct, returned, place
        self.arrays: dict[str, Array] = {}
        self.numbers: dict[str, int] = {}

    def made(self, calls: int) -> LoopedCalls:
        given = self.given
        function, capability = given.function, given.function.capability
        call, result = function.call, capability.result.tensor
        assert call is not None
        arguments = tuple(self._argument(at, term) for at, term in enumerate(call.arguments))
        read = {term.tensor for term in walk(call) if isinstance(term, DataOf)} | {result}
        moves = []
        for name in sorted(read):
            one = given.target if name == result else given.operands[name]
            self.arrays[name] = one.seen
            moves.append((name, tuple(one.moves)))
            for loop, step in one.moves.items():
                self.numbers[move_of(name, loop)] = step // one.seen.itemsize
        for name, extent in given.loops.items():
            self.numbers[loop_extent(name)] = extent
        buffered = None if self.direct or self.returned else self.place.ndim
        if buffered is not None:
            self._add_buffer(result)
        adds = capability.accumulates
        nest = NestedCall(
            symbol=call.symbol,
            arguments=arguments,
            loops=tuple(given.loops),
            moves=tuple(moves),
            result=result,
            returns=call.returns,
            returned=self.returned,
            buffered=buffered,
            sums=given.sums or (adds and not self.direct),
            good=None if function.status is None else function.status.good,
            type=_type_of(given.target.seen.dtype),
            semiring=given.semiring,
        )
        assert function.library is not None
        copied = 0 if self.direct else calls * self.place.nbytes
        return LoopedCalls(
            nest=nest,
            address=symbol_address(function.library, call.symbol),
            arrays=self.arrays,
            numbers=self.numbers,
            calls=calls,
            copied=copied,
        )

    def _add_buffer(self, result: str) -> None:
        self.arrays[BUFFER] = self.place
        size = self.place.itemsize
        for mode, extent in enumerate(self.place.shape):
            self.numbers[mode_extent_name(mode)] = extent
            self.numbers[mode_step_name(BUFFER, mode)] = self.place.strides[mode] // size
            outer = self.given.target.seen.strides[mode] // size
            self.numbers[mode_step_name(result, mode)] = outer

    def _argument(self, at: int, term: CallTerm) -> TensorAddress | TermAddress | TermValue | Expr:
        match term:
            case DataOf(tensor=name):
                return TensorAddress(tensor=name)
            case AddressOf(value=inner):
                value, type = self._term(inner)
                self.arrays[term_name(at)] = np.array([value], type.numpy)
                return TermAddress(number=at, type=type)
            case CallNumber(value=value, type=type) if type.is_float:
                return Const(value=value, type=type)
            case _:
                value, type = self._term(term)
                self.numbers[term_name(at)] = int(value)
                return TermValue(number=at, type=type)

    def _term(self, term: CallTerm) -> tuple[float | int, Type]:
        """A number or a letter, and its type in the interface."""
        value = argument_value(self.frame, term)
        match term:
            case CallNumber(type=type):
                return value, type
            case CallLetter() | LayoutOf():
                return value, LETTER
            case _:
                return value, self.given.function.index or INT32


def _type_of(dtype: np.dtype[Any]) -> Type:
    return next(type for type in TYPES if type.numpy == dtype)
