"""Computation: loads of operands, ALUs, reductions, and the droppers after them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from t2s.core.errors import UnsupportedError
from t2s.core.ops import Op
from t2s.sparse_repr.blocks.alu import Compute, EmptyOperand, Fill, LoadValues, Spread, SumLanes
from t2s.sparse_repr.blocks.droppers import CoordinateDropper, ValueDropper, ZeroDropper
from t2s.sparse_repr.blocks.reducers import EmptyFiber, ReduceLists, ReducePoints
from t2s.sparse_repr.functions import Choosing, Operator
from t2s.sparse_repr.lowering.diagram import DiagramWire, TokenKind
from t2s.sparse_repr.lowering.scope import Blocks, LoopLevel, NestScope
from t2s.sparse_repr.notation.ir import (
    Access,
    Choice,
    Combine,
    Expression,
    Negative,
    Number,
    Unary,
    accesses,
    print_expression,
)
from t2s.sparse_repr.notation.support import elsewhere, is_strict, vanishes
from t2s.sparse_repr.notation.types import combined
from t2s.sparse_repr.semiring import Semiring, TypedNumber


def compute(scope: NestScope, value: Expression, result: Access) -> DiagramWire:
    """The values of an expression at the depth of the scope.

    In lanes these are vectors if the result has the variable of the lanes, else sums of vectors.
    """
    computed = _wire(scope, _value(scope, value))
    if scope.width > 1 and computed.lanes == 1:
        output = _new(scope, lanes=scope.width)
        scope.blocks.add(Spread(lanes=scope.width), [computed], [output], scope.region)
        computed = output
    if scope.width > 1 and scope.lane not in result.variables:
        output = _new(scope)
        scope.blocks.add(SumLanes(), [computed], [output], scope.region)
        computed = output
    return computed


def compute_scalar(scope: NestScope, value: Expression) -> tuple[DiagramWire, bool]:
    """The values of a temporary, one for each iteration, and whether they may be N.

    That stands for an element of which no operand is stored.
    """
    computed = _value(scope, value, vanishes(value, scope.semiring))
    return _wire(scope, computed), computed.optional


def compute_everywhere(scope: NestScope, value: Expression) -> DiagramWire:
    """The values of a temporary that has one in each iteration: zero where nothing is stored."""
    computed = _value(scope, value)
    if computed.optional:
        semiring = scope.semiring
        zero = _Value(semiring.zero)
        computed = _alu(scope, semiring.add, (computed, zero), EmptyOperand.ALL, False)
    return _wire(scope, computed)


def _wire(scope: NestScope, value: _Value) -> DiagramWire:
    operand = value.operand
    return operand if isinstance(operand, DiagramWire) else _filled(scope, operand)


def _new(scope: NestScope, about: str = "", lanes: int = 1) -> DiagramWire:
    return scope.blocks.stream(TokenKind.VALUE, scope.depth, about, lanes)


@dataclass(frozen=True, slots=True)
class _Value:
    """The stream of an expression's values, or a constant; ``optional`` if it may contain N.

    N stands for the value of the expression where none of its operands is stored: ``absent``, or
    zero.
    """

    operand: DiagramWire | float | int
    optional: bool = False
    absent: TypedNumber | None = None


def _value(scope: NestScope, value: Expression, marked: bool = False) -> _Value:
    """The values of an expression; ``marked``: with N where none of its operands is stored.

    Factors and dividends need the mark: elements that are not stored are neither multiplied nor
    divided, so the product of N and infinity is N, not NaN.
    """
    semiring = scope.semiring
    match value:
        case Number(value=number):
            return _Value(number)
        case Access():
            return _Value(_load(scope, value), scope.operands[value].missing)
        case Negative(value=inner):
            operand = _value(scope, inner, marked)
            if not isinstance(operand.operand, DiagramWire):
                return _Value(-operand.operand)
            return _alu(
                scope, Op.NEGATE, (operand,), EmptyOperand.ALL, marked, _absent(value, semiring)
            )
        case Unary(function=function, value=inner, stored=stored):
            strict = stored and vanishes(inner, semiring)
            if strict:
                _check_sure(scope, value)
            operand = _value(scope, inner, strict or marked)
            if not isinstance(operand.operand, DiagramWire):
                operand = _Value(_filled(scope, operand.operand))
            lost = EmptyOperand.ANY if strict else EmptyOperand.ALL
            absent = None if strict else _absent(value, semiring)
            return _alu(scope, function, (operand,), lost, marked, absent)
        case Choice():
            return _chosen(scope, value, marked)
        case Combine(operator=Op.MULTIPLY, left=left, right=right) if is_strict(value, semiring):
            both = tuple(
                _value(scope, operand, vanishes(operand, semiring)) for operand in (left, right)
            )
            return _combine(scope, value.operator, both, EmptyOperand.ANY, marked)
        case Combine(operator=Op.DIVIDE, left=left, right=right) if is_strict(value, semiring):
            both = _value(scope, left, True), _value(scope, right)
            return _combine(scope, value.operator, both, EmptyOperand.FIRST, marked)
        case Combine(operator=operator, left=left, right=right):
            both = _value(scope, left, marked), _value(scope, right, marked)
            return _combine(
                scope, operator, both, EmptyOperand.ALL, marked, _absent(value, semiring)
            )
        case _:
            raise ValueError("sums are loops in concrete index notation")


def _chosen(scope: NestScope, choice: Choice, marked: bool) -> _Value:
    """The values of a choice: N where condition or value are not stored, and the other is not."""
    semiring = scope.semiring
    parts = (choice.condition, choice.value, choice.otherwise)
    strict = vanishes(choice.condition, semiring) and vanishes(choice, semiring)
    if not strict:
        values = tuple(_value(scope, part, marked) for part in parts)
        absent = _absent(choice, semiring)
        return _alu(scope, Choosing.WHERE, values, EmptyOperand.ALL, marked, absent)
    values = tuple(_value(scope, part, vanishes(part, semiring)) for part in parts)
    has_other = isinstance(values[2].operand, DiagramWire)
    lost = EmptyOperand.CHOICE if has_other else EmptyOperand.ANY
    return _alu(scope, Choosing.WHERE, values, lost, marked)


def _check_sure(scope: NestScope, value: Unary) -> None:
    """Refuse a function of what is stored where a temporary does not say it."""
    for access in accesses(value.value):
        if access in scope.operands and scope.operands[access].unsure:
            raise UnsupportedError(
                f"{print_expression(value)} depends on where {access.tensor} has terms to sum,"
                " which its stream does not say",
                location=access.location or scope.program.location,
                expected=f"a loop that visits only coordinates at which {access.tensor} has some",
                given=f"{access.tensor} in a sum or maximum with operands that have others",
                hint=f"store {access.tensor}",
            )


def _absent(value: Expression, semiring: Semiring) -> TypedNumber | None:
    """The value of an expression where none of its operands is stored, if that is not zero."""
    known = elsewhere(value, None, semiring)
    return known if isinstance(known, TypedNumber) else None


def _combine(
    scope: NestScope,
    written: Op,
    both: tuple[_Value, ...],
    lost: EmptyOperand,
    marked: bool,
    absent: TypedNumber | None = None,
) -> _Value:
    left, right = (side.operand for side in both)
    operator = scope.semiring.operator(written)
    if isinstance(left, DiagramWire) or isinstance(right, DiagramWire):
        return _alu(scope, operator, both, lost, marked, absent)
    result = combined(operator, left, right)
    if result is not None:
        return _Value(result)
    dividend = _Value(_filled(scope, left))
    return _alu(scope, operator, (dividend, both[1]), lost, False)


def _filled(scope: NestScope, number: float | int) -> DiagramWire:
    """A stream of a number, for every iteration."""
    output = _new(scope)
    scope.blocks.add(Fill(value=number), [scope.driver], [output], scope.region)
    return output


def _load(scope: NestScope, access: Access) -> DiagramWire:
    operand = scope.operands[access]
    stream = operand.stream
    if stream.kind is TokenKind.VALUE:
        return stream
    output = _new(scope, access.tensor, operand.lanes)
    block = LoadValues(tensor=access.tensor, lanes=output.lanes)
    scope.blocks.add(block, [stream], [output], scope.region, access.location)
    return output


def _alu(
    scope: NestScope,
    operator: Operator,
    operands: tuple[_Value, ...],
    lost: EmptyOperand,
    marked: bool,
    absent: TypedNumber | None = None,
) -> _Value:
    """Add an ALU, which treats N as empty only where that matters: in products and dividends."""
    streams = [operand for operand in operands if isinstance(operand.operand, DiagramWire)]
    may_lack = [stream.optional for stream in streams]
    matters = {
        EmptyOperand.ANY: any(may_lack),
        EmptyOperand.FIRST: operands[0].optional,
        EmptyOperand.CHOICE: any(may_lack[:-1]) and may_lack[-1],
        EmptyOperand.ALL: marked and all(may_lack),
        EmptyOperand.NEVER: False,
    }
    if not matters[lost]:
        lost = EmptyOperand.NEVER
    wires = [stream.operand for stream in streams if isinstance(stream.operand, DiagramWire)]
    lanes = max(wire.lanes for wire in wires)
    output = _new(scope, lanes=lanes)
    optional = marked and lost is not EmptyOperand.NEVER
    block = Compute(
        operator=operator,
        constants=tuple(
            None if isinstance(operand.operand, DiagramWire) else operand.operand
            for operand in operands
        ),
        absent=tuple(stream.absent if stream.optional else None for stream in streams),
        lanes=lanes,
        lost=lost,
        optional=optional,
    )
    scope.blocks.add(block, wires, [output], scope.region)
    return _Value(output, optional, absent if optional else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Computed:
    """The result of a nest: its loops, outermost first, and the values.

    ``optional``: empty values are N.  ``without_zeros``: zeros were dropped.
    """

    loops: tuple[LoopLevel, ...]
    value: DiagramWire
    optional: bool = False
    without_zeros: bool = False

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of the loops."""
        return tuple(loop.variable for loop in self.loops)


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """The loops around a nest: the coordinates of the innermost one, and whether all fibers are
    filled.

    ``items``: each of these coordinates needs an item, if only N.
    """

    coordinate: DiagramWire | None
    filled: bool
    items: bool = False


def reduce_loops(
    blocks: Blocks,
    computed: Computed,
    result_loops: frozenset[str],
    around: Around,
    *,
    clean: bool,
    whole: frozenset[str] = frozenset(),
    zeros: bool = True,
) -> Computed:
    """Sum out all loops but those of the result, innermost first.

    With ``clean``, coordinates without values are dropped, if coordinates and values then still
    have the same shape: that is, outside the outermost reducer that keeps coordinates.  Otherwise
    every fiber that a scalar reducer sums gives a value, zero if it is empty.  ``around`` are the
    loops around the nest; variables in ``whole`` keep all coordinates.  Unless ``zeros``, zeros are
    dropped as soon as values are final.
    """
    levels = list(computed.loops)
    value, optional = computed.value, False
    if computed.optional and clean and levels:
        levels[-1], value = _drop_missing(blocks, levels[-1], value)
    inner: list[LoopLevel] = []  # the levels that are kept, outermost first
    below: LoopLevel | None = (
        None  # the level whose fibers belong to the coordinates of the next one
    )
    vectors = outermost_vector(computed.variables, result_loops)
    zeros = zeros or computed.without_zeros
    for at in range(len(levels) - 1, -1, -1):
        level = levels[at]
        cleaning = clean and at < vectors
        drops = cleaning and level.variable not in whole
        if drops and below is not None and not below.filled:
            level, below = _drop(blocks, level, below)
            if inner:
                inner[0] = below
        if level.variable in result_loops:
            inner.insert(0, level)
            below = level
        elif not inner:
            by = None if cleaning or level.filled else _by(levels[:at], around)
            empty = EmptyFiber.DROP if cleaning or level.filled else EmptyFiber.ZERO
            if cleaning and not at and around.items and not level.filled:
                by, empty, optional = _by([], around), EmptyFiber.MISSING, True
            value = _sum(blocks, level, value, empty, by)
            below = level
        else:
            inner, value = _vector(blocks, level, inner, value)
            below = inner[0]
        final = at == vectors or (at < vectors and vectors == len(levels))
        if clean and not zeros and inner and final:
            inner, value = _drop_zeros(blocks, inner, value)
            below, zeros = inner[0], True
    optional = optional or (computed.optional and not levels)
    return Computed(
        loops=tuple(inner), value=value, optional=optional, without_zeros=clean and zeros
    )


def _drop_zeros(
    blocks: Blocks, inner: list[LoopLevel], value: DiagramWire
) -> tuple[list[LoopLevel], DiagramWire]:
    """Drop zeros, and coordinates that have nothing else below them."""
    levels = list(inner)
    coordinate, remaining = blocks.like(levels[-1].coordinate), blocks.like(value)
    inputs = [levels[-1].coordinate, value]
    blocks.add(ZeroDropper(), inputs, [coordinate, remaining], levels[-1].region)
    levels[-1] = replace(levels[-1], coordinate=coordinate, filled=False, covered=False)
    for at in range(len(levels) - 2, -1, -1):
        levels[at], levels[at + 1] = _drop(blocks, levels[at], levels[at + 1])
    return levels, remaining


def _by(outer: list[LoopLevel], around: Around) -> DiagramWire | None:
    """The coordinates of the next outer loop, if its fibers may be empty."""
    if around.filled and all(level.filled for level in outer):
        return None
    return outer[-1].coordinate if outer else around.coordinate


def outermost_vector(variables: Sequence[str], result_loops: frozenset[str]) -> int:
    """The index of the outermost variable that is summed out above a variable of the result."""
    for at, name in enumerate(variables):
        if name not in result_loops and any(other in result_loops for other in variables[at + 1 :]):
            return at
    return len(variables)


def _drop(blocks: Blocks, outer: LoopLevel, inner: LoopLevel) -> tuple[LoopLevel, LoopLevel]:
    """Drop the coordinates of ``outer`` that have an empty fiber."""
    new_outer = blocks.like(outer.coordinate)
    new_inner = blocks.like(inner.coordinate)
    inputs = [outer.coordinate, inner.coordinate]
    blocks.add(CoordinateDropper(), inputs, [new_outer, new_inner], outer.region)
    return (
        replace(outer, coordinate=new_outer, filled=False, covered=False),
        replace(inner, coordinate=new_inner, filled=True),
    )


def _drop_missing(
    blocks: Blocks, level: LoopLevel, value: DiagramWire
) -> tuple[LoopLevel, DiagramWire]:
    """Drop the coordinates of the innermost level whose value is N."""
    coordinate, present = blocks.like(level.coordinate), blocks.like(value)
    block = ValueDropper(missing_only=True)
    blocks.add(block, [level.coordinate, value], [coordinate, present], level.region)
    return replace(level, coordinate=coordinate, filled=False, covered=False), present


def _sum(
    blocks: Blocks, level: LoopLevel, value: DiagramWire, empty: EmptyFiber, by: DiagramWire | None
) -> DiagramWire:
    output = blocks.like(value, value.depth - 1)
    inputs = [value] if by is None else [value, by]
    blocks.add(ReduceLists(empty=empty), inputs, [output], level.region)
    return output


def _vector(
    blocks: Blocks, level: LoopLevel, inner: list[LoopLevel], value: DiagramWire
) -> tuple[list[LoopLevel], DiagramWire]:
    outputs = tuple(
        blocks.like(inner_level.coordinate, inner_level.coordinate.depth - 1)
        for inner_level in inner
    )
    output = blocks.like(value, value.depth - 1)
    inputs = [*(inner_level.coordinate for inner_level in inner), value]
    blocks.add(ReducePoints(keys=len(inner)), inputs, [*outputs, output], level.region)
    levels = [
        replace(inner_level, coordinate=wire, filled=number > 0, covered=False)
        for number, (inner_level, wire) in enumerate(zip(inner, outputs, strict=True))
    ]
    return levels, output
