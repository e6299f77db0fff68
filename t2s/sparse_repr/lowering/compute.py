"""Computation: arrays that load the operands, and the ALUs of an expression."""

from __future__ import annotations

from t2s.core.ops import Op
from t2s.sparse_repr.lowering.diagram import (
    Compute,
    Fill,
    Load,
    Spread,
    Stream,
    SumLanes,
    TokenKind,
)
from t2s.sparse_repr.lowering.scope import Scope
from t2s.sparse_repr.notation.ir import Access, Combine, Expression, Negative, Number


def compute(scope: Scope, value: Expression, result: Access) -> Stream:
    """The values of an expression at the depth of the scope, for a result.

    In lanes: vectors, if the result has the variable of the lanes, else the sums of vectors.
    """
    found = _value(scope, value)
    if not isinstance(found, Stream):
        by = scope.coordinates[-1] if scope.coordinates else scope.root()
        output = _new(scope)
        scope.blocks.add(Fill(value=found, by=by, output=output, variable=scope.region))
        found = output
    if scope.width > 1 and found.lanes == 1:
        output = _new(scope, lanes=scope.width)
        scope.blocks.add(Spread(input=found, output=output, variable=scope.region))
        found = output
    if scope.width > 1 and scope.lane not in result.variables:
        output = _new(scope)
        scope.blocks.add(SumLanes(input=found, output=output, variable=scope.region))
        found = output
    return found


def _new(scope: Scope, about: str = "", lanes: int = 1) -> Stream:
    return scope.blocks.stream(TokenKind.VALUE, scope.depth, about, lanes)


def _value(scope: Scope, value: Expression) -> Stream | float | int:
    match value:
        case Number(value=number):
            return number
        case Access():
            return _load(scope, value)
        case Negative(value=inner):
            operand = _value(scope, inner)
            if not isinstance(operand, Stream):
                return -operand
            return _alu(scope, Op.NEGATE, operand, None)
        case Combine(operator=operator, left=left, right=right):
            one, other = _value(scope, left), _value(scope, right)
            operator = scope.program.semiring.operator(operator)
            if isinstance(one, Stream) or isinstance(other, Stream):
                return _alu(scope, operator, one, other)
            return _constant(scope, operator, one, other)
        case _:
            raise ValueError("sums are loops in concrete index notation")


def _load(scope: Scope, access: Access) -> Stream:
    operand = scope.operands[access]
    stream = operand.stream
    if stream.kind is TokenKind.VALUE:
        return stream
    output = _new(scope, access.tensor, operand.lanes)
    scope.blocks.add(
        Load(
            tensor=access.tensor,
            reference=stream,
            output=output,
            variable=scope.region,
            location=access.location,
        )
    )
    return output


def _alu(
    scope: Scope, operator: Op, left: Stream | float | int, right: Stream | float | int | None
) -> Stream:
    lanes = max(one.lanes for one in (left, right) if isinstance(one, Stream))
    output = _new(scope, lanes=lanes)
    scope.blocks.add(
        Compute(operator=operator, left=left, right=right, output=output, variable=scope.region)
    )
    return output


def _constant(
    scope: Scope, operator: Op, left: float | int, right: float | int
) -> Stream | float | int:
    match operator:
        case Op.ADD:
            return left + right
        case Op.SUBTRACT:
            return left - right
        case Op.MULTIPLY:
            return left * right
        case Op.MINIMUM:
            return right if right < left else left
        case Op.MAXIMUM:
            return right if right > left else left
        case _ if right != 0:
            return left / right
        case _:
            by = scope.coordinates[-1] if scope.coordinates else scope.root()
            zero = _new(scope)
            scope.blocks.add(Fill(value=left, by=by, output=zero, variable=scope.region))
            return _alu(scope, operator, zero, right)
