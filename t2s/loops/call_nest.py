"""Loops around calls of a function by its address.

All arguments of a call are known before the loops, except for the addresses of tensors, which
advance by a stride for each loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from t2s.core.expr import Cast, Expr, equals
from t2s.core.types import Type
from t2s.core.walk import Term
from t2s.loops.ir import ElementAddress, LoopFunction, LoopWriter, local, number, plus, times
from t2s.loops.tensor_access import Arithmetic
from t2s.sparse_repr.semiring import Semiring


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorAddress(Term):
    """The address of the first value of an operand or the result in this call."""

    tensor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TermAddress(Term):
    """The address of one or several numbers of a type, the same in all calls."""

    number: int
    type: Type


@dataclass(frozen=True, slots=True, kw_only=True)
class TermValue(Term):
    """An integer of a type, the same in all calls."""

    number: int
    type: Type


@dataclass(frozen=True, slots=True, kw_only=True)
class NestedCall(Term):
    """Calls of a function for all iterations of some loops.

    Attributes
    ----------
    symbol: the function's name in C.
    arguments: tensors, and terms by their number; known values are constants.
    loops: the names of the loops, outermost first; ``moves``: those that advance each tensor.
    result: the tensor that is written; ``returned`` if it is what the call returns.
    buffered: the number of modes of a result that is computed in a buffer, and then added.
    padded: the operands that are copied to a zero-padded buffer, with the number of their modes.
    sums: whether results are added to the target.
    good: the returned numbers that are not errors, if the function returns a status.
    """

    symbol: str
    arguments: tuple[TensorAddress | TermAddress | TermValue | Expr, ...]
    loops: tuple[str, ...]
    moves: tuple[tuple[str, tuple[str, ...]], ...]
    result: str
    returns: Type | None
    returned: bool
    buffered: int | None
    padded: tuple[tuple[str, int], ...]
    sums: bool
    good: tuple[int, ...] | None
    type: Type
    semiring: Semiring


FUNCTION = "called function"
STATUS = "returned status"
BUFFER = "result of a call"


def loop_extent(name: str) -> str:
    """The argument with the extent of a loop."""
    return f"{name} extent"


def move_of(tensor: str, name: str) -> str:
    """The argument with the stride by which a loop advances a tensor, in elements."""
    return f"{tensor} step {name}"


def term_name(number: int) -> str:
    """The argument for a term of the call."""
    return f"term {number}"


def mode_extent_name(tensor: str, mode: int) -> str:
    """The argument with the extent of a mode of a tensor or a buffer that is copied."""
    return f"{tensor} mode {mode} extent"


def padded_name(tensor: str) -> str:
    """The argument with the zero-padded buffer of an operand."""
    return f"{tensor} padded"


def mode_step_name(tensor: str, mode: int) -> str:
    """The argument with the stride of a mode of what is copied."""
    return f"{tensor} mode {mode}"


@lru_cache(maxsize=256)
def nest_of(nest: NestedCall) -> LoopFunction:
    """The loops as statements."""
    writer = LoopWriter()
    writer.number(FUNCTION)
    writer.number(STATUS, returned=True)
    for name, _ in nest.moves:
        writer.array(name, nest.type, written=name == nest.result)
    _loops(writer, nest, list(nest.loops), {})
    return writer.function()


def _loops(
    writer: LoopWriter, nest: NestedCall, loops_left: list[str], at: dict[str, Expr]
) -> None:
    if loops_left:
        name, *others = loops_left
        extent = writer.number(loop_extent(name))
        with writer.counting(name, number(0), extent) as coordinate:
            _loops(writer, nest, others, {**at, name: coordinate})
        return
    places: dict[str, Expr] = {}
    for tensor, loops in nest.moves:
        place: Expr = number(0)
        for name in loops:
            step = writer.number(move_of(tensor, name))
            place = plus(place, times(at[name], step))
        places[tensor] = place
    _one_call(writer, nest, places)


def _one_call(writer: LoopWriter, nest: NestedCall, places: dict[str, Expr]) -> None:
    """A call at these positions of its tensors, with copies before and after it."""
    arithmetic = Arithmetic(type=nest.type, semiring=nest.semiring)
    if nest.buffered is not None:
        writer.array(BUFFER, nest.type, written=True)
        _over_modes(writer, nest, _Copy(BUFFER, BUFFER, nest.buffered), number(0), number(0))
    for tensor, modes in nest.padded:
        among = writer.array(padded_name(tensor), nest.type, written=True)
        copy = _Copy(tensor, tensor, modes, target=among)
        _over_modes(writer, nest, copy, places[tensor], number(0))
    arguments = tuple(_argument(writer, nest, argument, places) for argument in nest.arguments)
    returned = writer.call(FUNCTION, nest.symbol, arguments, nest.returns)
    if nest.good is not None and returned is not None:
        good: Expr | None = None
        for status in nest.good:
            same = equals(Cast(value=returned, type=number(0).type), number(status))
            good = same if good is None else good | same
        assert good is not None
        with writer.where(~good):
            writer.set(local(STATUS), Cast(value=returned, type=number(0).type))
            writer.end_with(number(1))
    if nest.returned and returned is not None:
        value: Expr = (
            returned if returned.type == nest.type else Cast(value=returned, type=nest.type)
        )
        place = places[nest.result]
        if nest.sums:
            before = writer.load("before", nest.result, place, nest.type)
            value = arithmetic.added(before, value)
        writer.store(nest.result, place, value)
    if nest.buffered is not None:
        copy = _Copy(nest.result, BUFFER, nest.buffered, target=nest.result, sums=nest.sums)
        _over_modes(writer, nest, copy, number(0), places[nest.result])


@dataclass(frozen=True, slots=True)
class _Copy:
    """A copy of as many elements as ``extents`` has along its modes; zeros if it has no target."""

    extents: str
    source: str
    modes: int
    target: str = ""
    sums: bool = False


def _over_modes(
    writer: LoopWriter, nest: NestedCall, copy: _Copy, source: Expr, target: Expr, mode: int = 0
) -> None:
    """Copy from a position of the source to one of the target, or fill the source with zeros."""
    if mode < copy.modes:
        extent = writer.number(mode_extent_name(copy.extents, mode))
        with writer.counting("mode", number(0), extent) as coordinate:
            step = writer.number(mode_step_name(copy.source, mode))
            after = plus(source, times(coordinate, step))
            behind = target
            if copy.target:
                step = writer.number(mode_step_name(copy.target, mode))
                behind = plus(target, times(coordinate, step))
            _over_modes(writer, nest, copy, after, behind, mode + 1)
        return
    arithmetic = Arithmetic(type=nest.type, semiring=nest.semiring)
    if not copy.target:
        writer.store(copy.source, source, arithmetic.zero)
        return
    value: Expr = writer.load("value", copy.source, source, nest.type)
    if copy.sums:
        value = arithmetic.added(writer.load("before", copy.target, target, nest.type), value)
    writer.store(copy.target, target, value)


def _argument(
    writer: LoopWriter,
    nest: NestedCall,
    argument: TensorAddress | TermAddress | TermValue | Expr,
    places: dict[str, Expr],
) -> ElementAddress | Expr:
    match argument:
        case TensorAddress(tensor=tensor) if tensor == nest.result and nest.buffered is not None:
            return ElementAddress(array=BUFFER, index=number(0))
        case TensorAddress(tensor=tensor) if tensor in dict(nest.padded):
            return ElementAddress(array=padded_name(tensor), index=number(0))
        case TensorAddress(tensor=tensor):
            return ElementAddress(array=tensor, index=places[tensor])
        case TermAddress(number=at, type=type):
            return ElementAddress(array=writer.array(term_name(at), type), index=number(0))
        case TermValue(number=at, type=type):
            value = writer.number(term_name(at))
            return value if type == value.type else Cast(value=value, type=type)
        case _:
            return argument
