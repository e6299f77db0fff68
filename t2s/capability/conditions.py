"""Conditions: over the variables of a match, evaluated as far as extents are known.

A *mode* of a function is what it sees as one dimension: the concrete variables that are fused into
it, or none for a promoted mode of extent 1.  Its name is theirs, joined by ``*``.  A condition is
true, false, or open while extents are not known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from math import prod
from typing import Any, assert_never

from t2s.capability.ir import (
    AllOf,
    AnyOf,
    Calculated,
    Compared,
    Condition,
    ListExtent,
    ListOrder,
    ListProduct,
    PositionIn,
    Quantified,
    Quantity,
    VariableExtent,
    WholeNumber,
)
from t2s.core.ops import Op
from t2s.core.walk import walk

Mode = tuple[str, ...]
"""The concrete variables that a function sees as one dimension."""


class Answer(Enum):
    """What is known of a condition."""

    TRUE = "true"
    FALSE = "false"
    OPEN = "open"


def mode_name(mode: Mode) -> str:
    """``i``, ``i*j``; ``1`` for no variable."""
    return "*".join(mode) or "1"


def mode_extent(mode: Mode, extents: Mapping[str, int]) -> int:
    """The extent of a mode."""
    return prod(extents[name] for name in mode)


def instantiated(
    condition: Condition, images: Mapping[str, Mode], lists: Mapping[str, tuple[Mode, ...]]
) -> Condition:
    """The condition over modes of a match, without lists and quantifiers."""
    match condition:
        case Compared(operator=operator, left=left, right=right):
            return Compared(
                operator=operator,
                left=_over_modes(left, images, lists),
                right=_over_modes(right, images, lists),
            )
        case AllOf(parts=parts):
            return AllOf(parts=tuple(instantiated(part, images, lists) for part in parts))
        case AnyOf(parts=parts):
            return AnyOf(parts=tuple(instantiated(part, images, lists) for part in parts))
        case Quantified(every=every, position=position, of=of, condition=inner):
            lists_of_modes = tuple(
                instantiated(_at_position(inner, position, number), images, lists)
                for number in range(len(lists[of]))
            )
            return AllOf(parts=lists_of_modes) if every else AnyOf(parts=lists_of_modes)
        case _:
            assert_never(condition)


def _at_position(condition: Condition, position: str, number: int) -> Condition:
    """The condition for one position of a list."""

    def quantity(value: Quantity) -> Quantity:
        match value:
            case PositionIn(name=name) if name == position:
                return WholeNumber(value=number)
            case ListExtent(of=of, at=PositionIn(name=name)) if name == position:
                return ListExtent(of=of, at=WholeNumber(value=number))
            case Calculated(operator=operator, left=left, right=right):
                return Calculated(operator=operator, left=quantity(left), right=quantity(right))
        return value

    match condition:
        case Compared(operator=operator, left=left, right=right):
            return Compared(operator=operator, left=quantity(left), right=quantity(right))
        case AllOf(parts=parts):
            return AllOf(parts=tuple(_at_position(part, position, number) for part in parts))
        case AnyOf(parts=parts):
            return AnyOf(parts=tuple(_at_position(part, position, number) for part in parts))
        case Quantified(position=other) if other == position:
            return condition
        case Quantified(every=every, position=other, of=of, condition=inner):
            inner = _at_position(inner, position, number)
            return Quantified(every=every, position=other, of=of, condition=inner)
        case _:
            assert_never(condition)


def _over_modes(
    value: Quantity,
    images: Mapping[str, Mode],
    lists: Mapping[str, tuple[Mode, ...]],
) -> Quantity:
    match value:
        case VariableExtent(variable=name):
            return _extent_of(images[name])
        case ListOrder(of=of):
            return WholeNumber(value=len(lists[of]))
        case ListProduct(of=of):
            result: Quantity = WholeNumber(value=1)
            for mode in lists[of]:
                factor = _extent_of(mode)
                first = isinstance(result, WholeNumber) and result.value == 1
                result = (
                    factor if first else Calculated(operator=Op.MULTIPLY, left=result, right=factor)
                )
            return result
        case ListExtent(of=of, at=WholeNumber(value=number)) if number < len(lists[of]):
            return _extent_of(lists[of][number])
        case ListExtent() | PositionIn():
            return _UNKNOWN
        case Calculated(operator=operator, left=left, right=right):
            return Calculated(
                operator=operator,
                left=_over_modes(left, images, lists),
                right=_over_modes(right, images, lists),
            )
        case WholeNumber():
            return value
        case _:
            assert_never(value)


_UNKNOWN = Calculated(operator=Op.MODULO, left=WholeNumber(value=0), right=WholeNumber(value=0))
"""A quantity that does not exist, such as ``I[2]`` of a shorter list; no comparison holds."""


def _extent_of(mode: Mode) -> Quantity:
    return VariableExtent(variable=mode_name(mode)) if mode else WholeNumber(value=1)


def names_of(condition: Condition) -> tuple[str, ...]:
    """The modes whose extents a condition without lists depends on."""
    variables = (term.variable for term in walk(condition) if isinstance(term, VariableExtent))
    return tuple(dict.fromkeys(variables))


def holds(condition: Condition, extents: Mapping[str, int]) -> Answer:
    """Whether a condition without lists holds, as far as the extents of its modes are known."""
    known = _known(condition, extents)
    return Answer.OPEN if known is None else (Answer.TRUE if known else Answer.FALSE)


def _known(condition: Condition, extents: Mapping[str, int]) -> bool | None:
    match condition:
        case Compared(operator=operator, left=left, right=right):
            one, other = _number(left, extents), _number(right, extents)
            if isinstance(one, _Nothing) or isinstance(other, _Nothing):
                return False
            if one is None or other is None:
                return None
            return bool(compared(operator, one, other))
        case AllOf(parts=parts):
            answers = [_known(part, extents) for part in parts]
            return False if False in answers else (None if None in answers else True)
        case AnyOf(parts=parts):
            answers = [_known(part, extents) for part in parts]
            return True if True in answers else (None if None in answers else False)
        case Quantified():
            raise ValueError("a condition is evaluated for the lists of a match")
        case _:
            assert_never(condition)


class _Nothing:
    """The quotient or the remainder of a division by zero or less."""


def _number(value: Quantity, extents: Mapping[str, int]) -> int | _Nothing | None:
    match value:
        case WholeNumber(value=number):
            return number
        case VariableExtent(variable=name):
            return extents.get(name)
        case Calculated(operator=operator, left=left, right=right):
            one, other = _number(left, extents), _number(right, extents)
            if isinstance(one, _Nothing) or isinstance(other, _Nothing):
                return _Nothing()
            if operator in (Op.DIVIDE, Op.MODULO) and other is not None and other <= 0:
                return _Nothing()
            if one is None or other is None:
                return None
            return _calculate(operator, one, other)
    raise ValueError("a condition is evaluated for the lists of a match")


def _calculate(operator: Op, left: int, right: int) -> int:
    match operator:
        case Op.ADD:
            return left + right
        case Op.SUBTRACT:
            return left - right
        case Op.MULTIPLY:
            return left * right
        case Op.DIVIDE:
            return left // right
        case _:
            return left % right


def compared(operator: Op, one: Any, other: Any) -> Any:
    """A comparison of two numbers, or of two terms of a solver."""
    match operator:
        case Op.EQUAL:
            return one == other
        case Op.NOT_EQUAL:
            return one != other
        case Op.LESS:
            return one < other
        case Op.LESS_EQUAL:
            return one <= other
        case Op.GREATER:
            return one > other
        case Op.GREATER_EQUAL:
            return one >= other
        case _:
            raise ValueError(f"{operator.value} compares nothing")


Test = Callable[[Sequence[int]], bool]


def compiled(condition: Condition, names: Sequence[str]) -> Test:
    """The condition as a function of extents; it depends on no other modes than these."""
    places = {name: number for number, name in enumerate(names)}

    def quantity(value: Quantity) -> Callable[[Sequence[int]], int]:
        match value:
            case WholeNumber(value=number):
                return lambda sizes: number
            case VariableExtent(variable=name):
                place = places[name]
                return lambda sizes: sizes[place]
            case Calculated(operator=operator, left=left, right=right):
                one, other = quantity(left), quantity(right)
                if operator is Op.MULTIPLY:
                    return lambda sizes: one(sizes) * other(sizes)
                return lambda sizes: _calculate(operator, one(sizes), other(sizes))
        raise ValueError("a condition is evaluated for the lists of a match")

    def test(value: Condition) -> Test:
        match value:
            case Compared(operator=operator, left=left, right=right):
                one, other = quantity(left), quantity(right)
                return lambda sizes: compared(operator, one(sizes), other(sizes))
            case AllOf(parts=parts):
                tests = [test(part) for part in parts]
                return lambda sizes: all(part(sizes) for part in tests)
            case AnyOf(parts=parts):
                tests = [test(part) for part in parts]
                return lambda sizes: any(part(sizes) for part in tests)
        raise ValueError("a condition is evaluated for the lists of a match")

    if not _divides(condition):
        return test(condition)
    return lambda sizes: holds(condition, dict(zip(names, sizes, strict=True))) is Answer.TRUE


def _divides(condition: Condition) -> bool:
    """Whether a condition may divide by zero."""
    return any(
        isinstance(term, Calculated)
        and term.operator in (Op.DIVIDE, Op.MODULO)
        and not (isinstance(term.right, WholeNumber) and term.right.value > 0)
        for term in walk(condition)
    )


def numbers_of(condition: Condition) -> tuple[int, ...]:
    """The numbers in a condition, in order."""
    numbers = (term.value for term in walk(condition) if isinstance(term, WholeNumber))
    return tuple(sorted(set(numbers)))
