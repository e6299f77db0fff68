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
    CallLetter,
    CallNumber,
    CallTerm,
    DataOf,
    DimensionOf,
    ExternalFunction,
    LayoutOf,
    LeadOf,
    LibraryOf,
    StepOf,
)
from t2s.capability.steps_in_memory import suited, suits
from t2s.core.expr import Const, Expr
from t2s.core.types import INT32, Int, Type
from t2s.core.walk import walk
from t2s.libraries.calling import CallFrame, argument_value
from t2s.libraries.finding import exported_name, symbol_address
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
    padded_name,
    term_name,
)
from t2s.sparse_repr.notation.types import TYPES
from t2s.sparse_repr.semiring import Semiring

Array = np.ndarray[Any, Any]

LETTER = Int(8)

_NumberTerm = CallNumber | CallLetter | DimensionOf | StepOf | LeadOf | LayoutOf


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopedCalls:
    """What compiled loops around calls are given; ``copied`` are bytes, as call by call."""

    nest: NestedCall
    symbol: str
    library: LibraryOf
    arrays: dict[str, Array]
    numbers: dict[str, int]
    calls: int
    copied: int

    @property
    def address(self) -> int:
        """The address of the function."""
        return symbol_address(self.library, self.symbol)


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedOperand:
    """An operand under fixed variables: whole, as seen in the first call, and what moves it.

    ``moves`` are the bytes by which each loop moves it, ``shape`` the one that a call sees, larger
    than that of the operand where it is padded.
    """

    whole: Array
    seen: Array
    moves: Mapping[str, int]
    shape: tuple[int, ...]

    @property
    def padded(self) -> bool:
        """Whether a call sees more than there is."""
        return bool(self.shape != self.seen.shape)


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
    if not _is_plain(function):
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
    wanted = capability.needs_of(result).strides
    direct = not target.padded and (adds or not given.sums) and suits(target.seen, wanted)
    if capability.overwritten is not None and not direct:
        return None
    place = target.seen
    if not direct and not returned:
        zeros = np.full(target.shape, given.semiring.zero, target.seen.dtype)
        place = suited(zeros, wanted)
    tensors = {name: _as_called(name, one, given) for name, one in given.operands.items()}
    tensors[result] = place
    frame = CallFrame(function, tensors, given.extents, given.location)
    return _Looped(given, frame, direct=direct, returned=returned, place=place).made()


def _as_called(name: str, one: FixedOperand, given: FixedCalls) -> Array:
    """An operand in a call: where it is, or among zeros."""
    if not one.padded:
        return one.seen
    zeros = np.full(one.shape, given.semiring.zero, one.seen.dtype)
    return suited(zeros, given.function.capability.needs_of(name).strides)


def _is_plain(function: ExternalFunction) -> bool:
    """Whether a call is one by address, of terms that stay the same but for its tensors."""
    if function.call is None or function.python is not None:
        return False
    if function.setup or function.unpack or function.teardown or function.library is None:
        return False
    for one in function.call.arguments:
        match one:
            case AddressOf(value=value):
                if not isinstance(value, _NumberTerm):
                    return False
            case DataOf():
                pass
            case _:
                if not isinstance(one, _NumberTerm):
                    return False
    return function.stored is None


def _is_regular(name: str, one: FixedOperand, function: ExternalFunction) -> bool:
    """Whether all calls see an operand alike and where it is."""
    whole = one.whole
    if not whole.flags.aligned or any(step % whole.itemsize for step in whole.strides):
        return False
    if not np.may_share_memory(one.seen, whole):
        return False
    return one.padded or suits(one.seen, function.capability.needs_of(name).strides)


class _Looped:
    def __init__(
        self, given: FixedCalls, frame: CallFrame, *, direct: bool, returned: bool, place: Array
    ) -> None:
        self.given, self.frame = given, frame
        self.direct, self.returned, self.place = direct, returned, place
        self.arrays: dict[str, Array] = {}
        self.numbers: dict[str, int] = {}

    def made(self) -> LoopedCalls:
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
            self._add_steps(BUFFER, self.place, self.place.shape)
            self._add_steps(result, given.target.seen, given.target.seen.shape)
            self.arrays[BUFFER] = self.place
        padded = [(name, one) for name, one in sorted(given.operands.items()) if one.padded]
        for name, one in padded:
            among = self.frame.tensors[name]
            self._add_steps(name, one.seen, one.seen.shape)
            self._add_steps(padded_name(name), among, among.shape)
            self.arrays[padded_name(name)] = among
        adds = capability.accumulates
        assert function.library is not None
        nest = NestedCall(
            symbol=exported_name(function.library, call.symbol),
            arguments=arguments,
            loops=tuple(given.loops),
            moves=tuple(moves),
            result=result,
            returns=call.returns,
            returned=self.returned,
            buffered=buffered,
            padded=tuple((name, one.seen.ndim) for name, one in padded),
            sums=given.sums or (adds and not self.direct),
            good=None if function.status is None else function.status.good,
            type=_type_of(given.target.seen.dtype),
            semiring=given.semiring,
        )
        calls = prod(given.loops.values())
        copied = 0 if self.direct else self.place.nbytes
        copied += sum(self.frame.tensors[name].nbytes for name, _ in padded)
        return LoopedCalls(
            nest=nest,
            symbol=call.symbol,
            library=function.library,
            arrays=self.arrays,
            numbers=self.numbers,
            calls=calls,
            copied=calls * copied,
        )

    def _add_steps(self, name: str, array: Array, shape: tuple[int, ...]) -> None:
        """What copies need: the extents and the steps of an array."""
        for mode, extent in enumerate(shape):
            self.numbers[mode_extent_name(name, mode)] = extent
            self.numbers[mode_step_name(name, mode)] = array.strides[mode] // array.itemsize

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
            case DimensionOf(type=Type() as type) | StepOf(type=Type() as type):
                return value, type
            case LeadOf(type=Type() as type):
                return value, type
            case CallLetter() | LayoutOf(rows=str()):
                return value, LETTER
            case LayoutOf():
                return value, INT32
            case _:
                return value, self.given.function.index or INT32


def _type_of(dtype: np.dtype[Any]) -> Type:
    return next(type for type in TYPES if type.numpy == dtype)
