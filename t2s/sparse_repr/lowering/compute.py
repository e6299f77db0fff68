"""Computation: loads of operands, ALUs, reductions, and the droppers after them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from t2s.core.errors import UnsupportedError
from t2s.core.ops import Op
from t2s.core.types import MOST_LANES
from t2s.sparse_repr.blocks.alu import Compute, EmptyOperand, Fill, LoadValues, Spread, SumLanes
from t2s.sparse_repr.blocks.block_values import ArrangeBlock, MatrixProduct, SumBlock
from t2s.sparse_repr.blocks.droppers import CoordinateDropper, ValueDropper, ZeroDropper
from t2s.sparse_repr.blocks.expressions import LaneView
from t2s.sparse_repr.blocks.reducers import EmptyFiber, ReduceLists, ReducePoints
from t2s.sparse_repr.functions import Choosing, Operator
from t2s.sparse_repr.lowering.block_products import ProductStep, SumStep, steps_of_product
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

    In lanes these are vectors if the result has the variable of the lanes, else sums of vectors;
    blocks have the axes of the result.
    """
    computed = _wire(scope, _summed(scope, value, result))
    if scope.program.blocks:
        around = (name for name in scope.around if name in computed.axes)
        own = (name for name in result.variables if name in scope.program.sizes)
        return _arranged(scope, computed, tuple(dict.fromkeys((*around, *own))))
    if scope.width > 1 and computed.lanes == 1:
        output = _new(scope, lanes=scope.width)
        scope.blocks.add(Spread(lanes=scope.width), [computed], [output], scope.region)
        computed = output
    if scope.width > 1 and scope.lane not in result.variables:
        output = _new(scope)
        scope.blocks.add(SumLanes(), [computed], [output], scope.region)
        computed = output
    return computed


def compute_scalar(scope: NestScope, value: Expression, result: Access) -> tuple[DiagramWire, bool]:
    """The values of a temporary, one for each iteration, and whether they may be N.

    That stands for an element of which no operand is stored.
    """
    computed = _summed(scope, value, result, vanishes(value, scope.semiring))
    return _wire(scope, computed), computed.optional


def compute_everywhere(scope: NestScope, value: Expression, result: Access) -> DiagramWire:
    """The values of a temporary that has one in each iteration: zero where nothing is stored."""
    computed = _summed(scope, value, result)
    if computed.optional:
        semiring = scope.semiring
        zero = _Value(semiring.zero)
        computed = _alu(scope, semiring.add, (computed, zero), EmptyOperand.ALL, False)
    return _wire(scope, computed)


# Values that are blocks.  Along the axes of variables that the result does not have they are summed
# here, inside of a block; reducers then add up the blocks.


def _summed(scope: NestScope, value: Expression, result: Access, marked: bool = False) -> _Value:
    """The values of an expression, summed along the axes that the result does not have."""
    sizes = scope.program.sizes
    if not sizes:
        return _value(scope, value, marked)
    kept = (*scope.around, *result.variables)
    axes = _axes_of(scope, value)
    loops = [name for level in scope.loops for name in _variables(scope, level.variable)]
    summed = _summed_product(replace(scope, kept=kept), value, marked)
    extra = tuple(name for name in loops if name in sizes and name not in (*kept, *axes))
    if not extra:
        return summed
    wire = _wire(scope, summed)
    repeated = replace(summed, operand=_arranged(scope, wire, (*wire.axes, *extra)))
    return _sum_along(scope, repeated, extra)


def _variables(scope: NestScope, loop: str) -> tuple[str, ...]:
    """The variables of a loop: two of a fused one."""
    for outer, inner, fused in scope.program.fused:
        if fused == loop:
            return outer, inner
    return (loop,)


def _axes_of(scope: NestScope, value: Expression) -> tuple[str, ...]:
    """The axes of the values of an expression; a temporary has those of its stream."""
    axes: dict[str, None] = {}
    for access in accesses(value):
        stream = scope.operands[access].stream
        names = stream.axes if stream.kind is TokenKind.VALUE else access.variables
        axes |= dict.fromkeys(name for name in names if name in scope.program.sizes)
    return tuple(axes)


def _summed_product(scope: NestScope, value: Expression, marked: bool) -> _Value:
    """The values of an expression, summed along the axes that are not kept."""
    left_over = tuple(name for name in _axes_of(scope, value) if name not in scope.kept)
    if not left_over:
        return _value(scope, value, marked)
    match value:
        case Negative(value=inner):
            operand = _summed_product(scope, inner, marked)
            return _alu(scope, Op.NEGATE, (operand,), EmptyOperand.ALL, marked)
        case Combine(operator=Op.MULTIPLY) if _is_product(scope, value):
            return _product(scope, _factors(scope, value), marked)
    return _sum_along(scope, _value(scope, value, marked), left_over)


def _is_product(scope: NestScope, value: Combine) -> bool:
    """Whether a product is zero where a factor is not stored, or all factors are everywhere."""
    operands = (scope.operands[access] for access in accesses(value))
    return is_strict(value, scope.semiring) or not any(operand.missing for operand in operands)


def _factors(scope: NestScope, value: Expression) -> tuple[Expression, ...]:
    """The factors of a product, and of products in it."""
    match value:
        case Combine(operator=Op.MULTIPLY, left=left, right=right) if _is_product(scope, value):
            return (*_factors(scope, left), *_factors(scope, right))
    return (value,)


def _product(scope: NestScope, factors: Sequence[Expression], marked: bool) -> _Value:
    """The sum of a product over the axes that are not kept, step by step."""
    sizes = scope.program.sizes
    values = [_value(scope, factor, vanishes(factor, scope.semiring)) for factor in factors]
    axes = [_axes_of(scope, factor) for factor in factors]
    steps = steps_of_product(axes, scope.kept, sizes)
    for number, step in enumerate(steps):
        last = marked or number < len(steps) - 1
        match step:
            case SumStep(factor=factor, over=over):
                made = _sum_along(scope, values[factor], over)
            case ProductStep(left=left, right=right, over=()):
                both = values[left], values[right]
                made = _combine(scope, Op.MULTIPLY, both, EmptyOperand.ANY, last)
            case ProductStep(left=left, right=right, over=over):
                made = _matrix_product(scope, values[left], values[right], over, last)
        values.append(made)
    return values[-1]


def _matrix_product(
    scope: NestScope, one: _Value, other: _Value, over: tuple[str, ...], marked: bool
) -> _Value:
    """The product of two blocks as matrices, summed over the axes that both have."""
    sizes = scope.program.sizes
    sides = [(side, _wire(scope, side)) for side in (one, other)]
    sides.sort(key=lambda side: min(map(_place(scope), side[1].axes)))
    (_, left), (_, right) = sides
    rows = tuple(name for name in left.axes if name not in over)
    columns = tuple(name for name in right.axes if name not in over)
    optional = marked and (one.optional or other.optional)
    output = _new(scope, axes=(*rows, *columns))
    block = MatrixProduct(
        left=_view(left.axes, (*rows, *over), sizes),
        right=_view(right.axes, (*over, *columns), sizes),
        rows=prod(sizes[name] for name in rows),
        inner=prod(sizes[name] for name in over),
        columns=prod(sizes[name] for name in columns),
        optional=optional,
    )
    scope.blocks.add(block, [left, right], [output], scope.region)
    return _Value(output, optional)


def _place(scope: NestScope) -> Callable[[str], int]:
    """Where an axis is in the result; behind all others if it is summed."""
    order = {name: number for number, name in enumerate(scope.kept)}
    return lambda name: order.get(name, len(order))


def _view(axes: Sequence[str], wanted: Sequence[str], sizes: Mapping[str, int]) -> LaneView:
    """The lanes of a block with ``axes`` as an array over other axes, along some of which it is
    repeated.
    """
    steps = {name: prod(sizes[other] for other in axes[at + 1 :]) for at, name in enumerate(axes)}
    return LaneView(
        tuple(sizes[name] for name in wanted), tuple(steps.get(name, 0) for name in wanted)
    )


def _arranged(scope: NestScope, wire: DiagramWire, axes: tuple[str, ...]) -> DiagramWire:
    """A stream of blocks with these axes, in this order."""
    if wire.axes == axes:
        return wire
    output = _new(scope, wire.about, axes=axes)
    block = ArrangeBlock(view=_view(wire.axes, axes, scope.program.sizes))
    scope.blocks.add(block, [wire], [output], scope.region)
    return output


def _sum_along(scope: NestScope, value: _Value, over: tuple[str, ...]) -> _Value:
    """The sums of blocks along axes; N stays N."""
    wire, sizes = _wire(scope, value), scope.program.sizes
    rest = tuple(name for name in wire.axes if name not in over)
    rows = prod(sizes[name] for name in rest)
    output = _new(scope, axes=rest)
    view = _view(wire.axes, (*rest, *over), sizes)
    block = SumBlock(view=view, rows=rows, optional=value.optional)
    scope.blocks.add(block, [wire], [output], scope.region)
    return _Value(output, value.optional)


def _wire(scope: NestScope, value: _Value) -> DiagramWire:
    operand = value.operand
    return operand if isinstance(operand, DiagramWire) else _filled(scope, operand)


def _new(
    scope: NestScope, about: str = "", lanes: int = 1, axes: tuple[str, ...] = ()
) -> DiagramWire:
    if axes:
        lanes = _checked_lanes(scope, axes)
    return scope.blocks.stream(TokenKind.VALUE, scope.depth, about, lanes, axes)


def _checked_lanes(scope: NestScope, axes: tuple[str, ...]) -> int:
    """The elements of a block.  Raises ``UserError`` for more than a vector can have."""
    sizes = scope.program.sizes
    lanes = prod(sizes[name] for name in axes)
    if lanes > MOST_LANES:
        raise UnsupportedError(
            f"a value would have a block along {', '.join(axes)}, which is too large",
            location=scope.program.location,
            expected=f"at most {MOST_LANES} elements, or products of tensors that are sums of"
            " matrix products",
            given=" x ".join(str(sizes[name]) for name in axes),
            hint="smaller blocks, or a statement of its own for the product that is summed",
        )
    return lanes


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
    sizes = scope.program.sizes
    axes = tuple(name for name in access.variables if name in sizes)
    output = _new(scope, access.tensor, operand.lanes, axes)
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
    axes: tuple[str, ...] = wires[0].axes
    if len(wires) > 1:
        both = dict.fromkeys(name for wire in wires for name in wire.axes)
        axes = tuple(sorted(both, key=_place(scope)))
    output = _new(scope, lanes=lanes, axes=axes)
    views = [_view(wire.axes, output.axes, scope.program.sizes) for wire in wires]
    optional = marked and lost is not EmptyOperand.NEVER
    block = Compute(
        operator=operator,
        constants=tuple(
            None if isinstance(operand.operand, DiagramWire) else operand.operand
            for operand in operands
        ),
        absent=tuple(stream.absent if stream.optional else None for stream in streams),
        lanes=output.lanes,
        lost=lost,
        optional=optional,
        views=tuple(views) if any(wire.axes != output.axes for wire in wires) else (),
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
