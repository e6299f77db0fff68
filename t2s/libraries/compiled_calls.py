"""Running mappings as compiled loops around calls by address.

Fixed variables and tiles are loops.  Operands advance by a stride for each fixed variable; all
other arguments are those of the first call.  A mapping whose calls need more than that (copies
other than padding, objects, setup and teardown calls, functions in Python) runs call by call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Any

import numpy as np

from t2s.capability.conditions import Mode, mode_extent, mode_name
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
from t2s.capability.mapping import Mapping as PartMapping
from t2s.capability.mapping import OperandView
from t2s.capability.operands import suited, suits
from t2s.capability.tiles import TileOf
from t2s.core.expr import Const, Expr
from t2s.core.location import SourceLocation
from t2s.core.types import INT32, Int, Type
from t2s.core.walk import walk
from t2s.libraries.calling import CallFrame, argument_value, exported_name, symbol_address
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
    """Arguments of compiled loops around calls; ``copied`` counts bytes as single calls do."""

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
    """An operand under fixed variables: all of it, its view in the first call, and its strides.

    ``moves`` are the bytes by which each loop advances it; ``shape`` is the shape in a call, larger
    than the view if it is padded.
    """

    whole: Array
    seen: Array
    moves: Mapping[str, int]
    shape: tuple[int, ...]

    @property
    def padded(self) -> bool:
        """Whether a call gets a padded copy."""
        return bool(self.shape != self.seen.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedCalls:
    """Calls for all iterations of the loops, in order, with their extents."""

    function: ExternalFunction
    loops: Mapping[str, int]
    operands: Mapping[str, FixedOperand]
    target: FixedOperand
    extents: Mapping[str, int]
    sums: bool
    semiring: Semiring
    location: Any = field(default=None)


def looped_calls(given: FixedCalls) -> LoopedCalls | None:
    """The loops for calls, ready to run; ``None`` if the calls have to be made one by one."""
    function, capability = given.function, given.function.capability
    if not _is_plain(function):
        return None
    if not all(_is_regular(name, operand, function) for name, operand in given.operands.items()):
        return None
    result, target = capability.result.tensor, given.target
    call = function.call
    assert call is not None
    returned = call.returns is not None and function.status is None
    if returned and target.seen.ndim:
        return None  # single calls report what is wrong with the shape
    adds = capability.accumulates
    wanted = capability.needs_of(result).strides
    direct = not target.padded and (adds or not given.sums) and suits(target.seen, wanted)
    if capability.overwritten is not None and not direct:
        return None
    place = target.seen
    if not direct and not returned:
        zeros = np.full(target.shape, given.semiring.zero, target.seen.dtype)
        place = suited(zeros, wanted)
    tensors = {name: _as_called(name, operand, given) for name, operand in given.operands.items()}
    tensors[result] = place
    frame = CallFrame(function, tensors, given.extents, given.location)
    return _Looped(given, frame, direct=direct, returned=returned, place=place).made()


def _as_called(name: str, operand: FixedOperand, calls: FixedCalls) -> Array:
    """An operand in a call: in place, or in a zero-padded buffer."""
    if not operand.padded:
        return operand.seen
    zeros = np.full(operand.shape, calls.semiring.zero, operand.seen.dtype)
    return suited(zeros, calls.function.capability.needs_of(name).strides)


def _is_plain(function: ExternalFunction) -> bool:
    """Whether a call has an address, and arguments that are constant except for its tensors."""
    if function.call is None or function.python is not None:
        return False
    if function.setup or function.unpack or function.teardown or function.library is None:
        return False
    for argument in function.call.arguments:
        match argument:
            case AddressOf(value=value):
                if not isinstance(value, _NumberTerm):
                    return False
            case DataOf():
                pass
            case _:
                if not isinstance(argument, _NumberTerm):
                    return False
    return function.stored is None


def _is_regular(name: str, operand: FixedOperand, function: ExternalFunction) -> bool:
    """Whether all calls see an operand in place, with the same strides."""
    whole = operand.whole
    if not whole.flags.aligned or any(step % whole.itemsize for step in whole.strides):
        return False
    if not np.may_share_memory(operand.seen, whole):
        return False
    return operand.padded or suits(operand.seen, function.capability.needs_of(name).strides)


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
            operand = given.target if name == result else given.operands[name]
            self.arrays[name] = operand.seen
            moves.append((name, tuple(operand.moves)))
            for loop, step in operand.moves.items():
                self.numbers[move_of(name, loop)] = step // operand.seen.itemsize
        for name, extent in given.loops.items():
            self.numbers[loop_extent(name)] = extent
        buffered = None if self.direct or self.returned else self.place.ndim
        if buffered is not None:
            self._add_steps(BUFFER, self.place, self.place.shape)
            self._add_steps(result, given.target.seen, given.target.seen.shape)
            self.arrays[BUFFER] = self.place
        padded = [
            (name, operand) for name, operand in sorted(given.operands.items()) if operand.padded
        ]
        for name, operand in padded:
            among = self.frame.tensors[name]
            self._add_steps(name, operand.seen, operand.seen.shape)
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
            padded=tuple((name, operand.seen.ndim) for name, operand in padded),
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
        """Add the extents and the strides of an array that is copied."""
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
        """The value of a term, and its type in the interface."""
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


# Tiles of one mode are two groups of calls: those of full size, and a smaller or padded last one.
# Each group is a nest of loops.  A mapping whose sums would be added up in another order than by
# single calls runs call by call.

FEWEST_CALLS = 8
"""Fewer calls than this are made one by one: compiling loops would take longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopedMapping:
    """A mapping with dense operands; the fixed variables of the result come first in ``target``."""

    mapping: PartMapping
    operands: Mapping[str, Any]
    extents: Mapping[str, int]
    tiles: tuple[TileOf, ...]
    target: Array
    semiring: Semiring
    location: SourceLocation | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TileGroup:
    """Tiles of a mode: the start of the first one, their number, valid extent, and padded size."""

    mode: Mode
    start: int
    count: int
    real: int
    size: int


def looped_mapping(given: LoopedMapping, fewest: int = FEWEST_CALLS) -> list[LoopedCalls] | None:
    """The nests of loops, in order; ``None`` if the calls have to be made one by one.

    Copies an overwritten operand into the target, and writes nothing else.
    """
    mapping = given.mapping
    if not all(isinstance(operand, np.ndarray) for operand in given.operands.values()):
        return None
    groups = [list(_groups(tile, mode)) for mode, tile in _cut(given)]
    loops = [given.extents[name] for name in mapping.fixed]
    if prod([*loops, *(sum(group.count for group in of_mode) for of_mode in groups)]) < fewest:
        return None
    summed = [of_mode for of_mode in groups if of_mode[0].mode in mapping.summed]
    repeated = [of_mode for of_mode in summed if sum(group.count for group in of_mode) > 1]
    split = any(len(of_mode) > 1 for of_mode in repeated)
    if split and (len(repeated) > 1 or mapping.fixed_sums):
        return None  # the sums would be added up in another order
    sums = bool(mapping.fixed_sums or repeated)
    calls = []
    for chosen in product(*groups):
        looped = looped_calls(
            _fixed_calls(given, {group.mode: group for group in chosen}, sums=sums)
        )
        if looped is None:
            return None
        calls.append(looped)
    overwritten = mapping.function.capability.overwritten
    if overwritten is not None:
        given.target[...] = _placed(given, mapping.operand(overwritten))
    return calls


def _cut(looped: LoopedMapping) -> list[tuple[Mode, TileOf]]:
    """The tiled modes, in the order of their loops."""
    tiles = {tile.mode: tile for tile in looped.tiles}
    modes = dict.fromkeys(mode for operand in looped.mapping.operands for mode in operand.modes)
    return [(mode, tiles[mode_name(mode)]) for mode in modes if mode and mode_name(mode) in tiles]


def _groups(tile: TileOf, mode: Mode) -> Iterator[TileGroup]:
    whole, rest = divmod(tile.extent, tile.size)
    if whole:
        yield TileGroup(mode=mode, start=0, count=whole, real=tile.size, size=tile.size)
    if rest:
        size = tile.size if tile.padded else rest
        yield TileGroup(mode=mode, start=whole * tile.size, count=1, real=rest, size=size)


def view_order(names: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """The axis of each variable; axes of a repeated variable are taken in order."""
    left = list(enumerate(names))
    order = []
    for name in wanted:
        at = next(number for number, (_, candidate) in enumerate(left) if candidate == name)
        order.append(left.pop(at)[0])
    return order


def _fixed_calls(
    looped: LoopedMapping, chosen: Mapping[Mode, TileGroup], *, sums: bool
) -> FixedCalls:
    mapping = looped.mapping
    operands = {operand.name: _operand(looped, operand, chosen) for operand in mapping.operands}
    free = mapping.fixed_free
    moves = dict(zip(free, looped.target.strides, strict=False))
    index: tuple[Any, ...] = (*([0] * len(free)), ...)
    first = looped.target[index]
    loops = {name: looped.extents[name] for name in mapping.fixed}
    loops |= {_tile_loop(mode): group.count for mode, group in chosen.items()}
    extents = {name: mode_extent(mode, looped.extents) for name, mode in mapping.images}
    for name, mode in mapping.images:
        if mode in chosen:
            extents[name] = chosen[mode].size
    return FixedCalls(
        function=mapping.function,
        loops=loops,
        operands=operands,
        target=_tiled(looped.target, first, moves, mapping.result, chosen),
        extents=extents,
        sums=sums,
        semiring=looped.semiring,
        location=looped.location,
    )


def _tile_loop(mode: Mode) -> str:
    return f"tile of {mode_name(mode)}"


def _operand(
    looped: LoopedMapping, operand: OperandView, chosen: Mapping[Mode, TileGroup]
) -> FixedOperand:
    """An operand in the first call of a group, with its strides."""
    whole, names, fixed = (
        looped.operands[operand.name],
        operand.access.variables,
        looped.mapping.fixed,
    )
    moves = {
        name: sum(step for step, own in zip(whole.strides, names, strict=True) if own == name)
        for name in fixed
        if name in names
    }
    index = tuple(0 if name in fixed else slice(None) for name in names)
    left = [name for name in names if name not in fixed]
    order = view_order(left, [name for mode in operand.modes for name in mode])
    shape = [mode_extent(mode, looped.extents) for mode in operand.modes]
    seen = (whole[(*index, ...)] if index else whole).transpose(order).reshape(shape)
    return _tiled(whole, seen, moves, operand.modes, chosen)


def _tiled(
    whole: Array,
    seen: Array,
    moves: Mapping[str, int],
    modes: Sequence[Mode],
    chosen: Mapping[Mode, TileGroup],
) -> FixedOperand:
    """The view of the first tile of a group."""
    slices: list[Any] = []
    shape, moved = list(seen.shape), dict(moves)
    for axis, mode in enumerate(modes):
        group = chosen.get(mode)
        if group is None:
            slices.append(slice(None))
            continue
        slices.append(slice(group.start, group.start + group.real))
        shape[axis] = group.size
        name = _tile_loop(mode)
        moved[name] = moved.get(name, 0) + group.size * seen.strides[axis]
    return FixedOperand(whole=whole, seen=seen[(*slices, ...)], moves=moved, shape=tuple(shape))


def _placed(looped: LoopedMapping, operand: OperandView) -> Array:
    """An operand with the fixed variables of the result first, then the modes of the function."""
    whole, names, fixed = (
        looped.operands[operand.name],
        operand.access.variables,
        looped.mapping.fixed,
    )
    free = looped.mapping.fixed_free
    left = [at for at, name in enumerate(names) if name not in fixed]
    order = view_order(
        [names[at] for at in left], [name for mode in operand.modes for name in mode]
    )
    fixed_axes = [names.index(name) for name in free if name in names]
    view = whole.transpose([*fixed_axes, *(left[at] for at in order)])
    shape = [looped.extents[name] if name in names else 1 for name in free]
    placed = view.reshape([*shape, *(mode_extent(mode, looped.extents) for mode in operand.modes)])
    return np.asarray(placed)
