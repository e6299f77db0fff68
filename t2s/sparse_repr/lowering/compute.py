"""Computation: arrays that load the operands, and the ALUs of an expression."""

from __future__ import annotations

from dataclasses import dataclass

from t2s.core.ops import Op
from t2s.sparse_repr.blocks.alu import Compute, Fill, Lost, Spread, SumLanes
from t2s.sparse_repr.blocks.arrays import LoadValues
from t2s.sparse_repr.lowering.diagram import DiagramWire, TokenKind
from t2s.sparse_repr.lowering.scope import NestScope
from t2s.sparse_repr.notation.ir import Access, Combine, Expression, Negative, Number, is_finite
from t2s.sparse_repr.notation.types import combined


def compute(scope: NestScope, value: Expression, result: Access) -> DiagramWire:
    """The values of an expression at the depth of the scope, for a result.

    In lanes: vectors, if the result has the variable of the lanes, else the sums of vectors.
    """
    found = _value(scope, value).operand
    if not isinstance(found, DiagramWire):
        by = scope.driver
        output = _new(scope)
        scope.blocks.add(Fill(value=found), [by], [output], scope.region)
        found = output
    if scope.width > 1 and found.lanes == 1:
        output = _new(scope, lanes=scope.width)
        scope.blocks.add(Spread(lanes=scope.width), [found], [output], scope.region)
        found = output
    if scope.width > 1 and scope.lane not in result.variables:
        output = _new(scope)
        scope.blocks.add(SumLanes(), [found], [output], scope.region)
        found = output
    return found


def _new(scope: NestScope, about: str = "", lanes: int = 1) -> DiagramWire:
    return scope.blocks.stream(TokenKind.VALUE, scope.depth, about, lanes)


@dataclass(frozen=True, slots=True)
class _Value:
    """The values of an expression, or a constant; ``optional`` if N may be among them."""

    operand: DiagramWire | float | int
    optional: bool = False


def _value(scope: NestScope, value: Expression, factor: bool = False) -> _Value:
    """The values of an expression, of a ``factor`` of a product with N where there is nothing.

    What is not stored is not multiplied: a product of N and infinity is nothing, not NaN.
    """
    match value:
        case Number(value=number):
            return _Value(number)
        case Access():
            return _Value(_load(scope, value), scope.operands[value].missing)
        case Negative(value=inner):
            one = _value(scope, inner, factor)
            if not isinstance(one.operand, DiagramWire):
                return _Value(-one.operand)
            return _alu(scope, Op.NEGATE, (one,), Lost.ALL, factor)
        case Combine(operator=operator, left=left, right=right):
            lost, inside = Lost.NEVER, False
            if operator is Op.MULTIPLY and is_finite(value):
                lost, inside = Lost.ANY, True
            elif is_finite(value) or operator not in (Op.MULTIPLY, Op.DIVIDE):
                lost, inside = Lost.ALL, factor
            both = _value(scope, left, inside), _value(scope, right, inside)
            return _combine(scope, scope.program.semiring.operator(operator), both, lost, factor)
        case _:
            raise ValueError("sums are loops in concrete index notation")


def _combine(
    scope: NestScope, operator: Op, both: tuple[_Value, _Value], lost: Lost, factor: bool
) -> _Value:
    left, right = (one.operand for one in both)
    if isinstance(left, DiagramWire) or isinstance(right, DiagramWire):
        if operator is Op.DIVIDE and not isinstance(right, DiagramWire):
            return _alu(scope, operator, both[:1], Lost.ALL, factor, right)
        return _alu(scope, operator, both, lost, factor)
    found = combined(operator, left, right)
    if found is not None:
        return _Value(found)
    by = scope.driver
    dividend = _new(scope)
    scope.blocks.add(Fill(value=left), [by], [dividend], scope.region)
    return _alu(scope, operator, (_Value(dividend),), Lost.NEVER, factor, right)


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
    operator: Op,
    given: tuple[_Value, ...],
    lost: Lost,
    factor: bool,
    divisor: float | int | None = None,
) -> _Value:
    """An ALU, for which N is nothing only where that matters: in a product."""
    there = [one.optional for one in given]
    matters = any(there) if lost is Lost.ANY else factor and all(there)
    if lost is Lost.NEVER or not matters:
        lost = Lost.NEVER
    operands = [one.operand for one in given] + ([] if divisor is None else [divisor])
    wires = [one for one in operands if isinstance(one, DiagramWire)]
    lanes = max(wire.lanes for wire in wires)
    output = _new(scope, lanes=lanes)
    optional = factor and lost is not Lost.NEVER
    block = Compute(
        operator=operator,
        constants=tuple(None if isinstance(one, DiagramWire) else one for one in operands),
        lanes=lanes,
        lost=lost,
        optional=optional,
    )
    scope.blocks.add(block, wires, [output], scope.region)
    return _Value(output, optional)
