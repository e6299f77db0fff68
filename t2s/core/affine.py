"""Tidying of index arithmetic: sums in which terms cancel become shorter.

``p + (t - p)`` is ``t``, and ``(8 * b + r) // 8`` is ``b + r // 8``.  A sum is rewritten only if
that makes it shorter; what is not a sum with integer factors (a quotient, a remainder, a minimum)
is a term like a loop index, tidied inside.
"""

from __future__ import annotations

from t2s.core.expr import Apply, Const, Expr, apply, const, simplify
from t2s.core.ops import Op
from t2s.core.walk import Term, rewrite, walk

_SUMS = (Op.ADD, Op.SUBTRACT, Op.MULTIPLY, Op.NEGATE)


def tidy(expr: Expr) -> Expr:
    """The expression with shorter sums; equal in value for every value of the indices."""

    def rule(node: Term) -> Term | None:
        if not isinstance(node, Apply) or not node.type.is_integer or node.type.lanes > 1:
            return None
        match node:
            case Apply(
                operator=Op.FLOOR_DIVIDE | Op.MODULO, operands=(whole, Const(value=int() as by))
            ) if by > 0:
                shorter = _divided(node, whole, by)
            case Apply(operator=operator) if operator in _SUMS:
                terms: dict[Expr, int] = {}
                number = _collect(node, 1, terms)
                shorter = _sum(terms, number, node)
            case _:
                return None
        shorter = simplify(shorter)
        return shorter if _size(shorter) < _size(node) else None

    return simplify(rewrite(expr, rule))


def _divided(node: Apply, whole: Expr, by: int) -> Expr:
    """A quotient or remainder with the multiples of the divisor taken out of what is divided."""
    terms: dict[Expr, int] = {}
    number = _collect(whole, 1, terms)
    rest = {term: factor for term, factor in terms.items() if factor % by}
    left = apply(node.operator, _sum(rest, number % by, whole), const(by, node.type))
    if node.operator is Op.MODULO:
        return left
    multiples = {term: factor // by for term, factor in terms.items() if factor % by == 0}
    return apply(Op.ADD, _sum(multiples, number // by, whole), left)


def _size(expr: Term) -> int:
    return sum(1 for _ in walk(expr))


def _collect(expr: Expr, factor: int, terms: dict[Expr, int]) -> int:
    """Add ``factor * expr`` to the terms; returns its constant part."""
    match expr:
        case Const(value=int() as value):
            return factor * value
        case Apply(operator=Op.ADD, operands=(left, right)):
            return _collect(left, factor, terms) + _collect(right, factor, terms)
        case Apply(operator=Op.SUBTRACT, operands=(left, right)):
            return _collect(left, factor, terms) + _collect(right, -factor, terms)
        case Apply(operator=Op.NEGATE, operands=(operand,)):
            return _collect(operand, -factor, terms)
        case Apply(operator=Op.MULTIPLY, operands=(Const(value=int() as by), operand)):
            return _collect(operand, factor * by, terms)
        case Apply(operator=Op.MULTIPLY, operands=(operand, Const(value=int() as by))):
            return _collect(operand, factor * by, terms)
    terms[expr] = terms.get(expr, 0) + factor
    return 0


def _sum(terms: dict[Expr, int], number: int, like: Expr) -> Expr:
    """The sum of terms, positive ones first, in the order in which they were met."""
    type = like.type
    ordered = sorted(((t, f) for t, f in terms.items() if f), key=lambda item: item[1] < 0)
    total: Expr | None = None
    for term, factor in ordered:
        if total is None and factor < 0:
            total, number = const(number, type), 0
        scaled = simplify(apply(Op.MULTIPLY, term, const(abs(factor), type)))
        if total is None:
            total = scaled
        else:
            total = apply(Op.ADD if factor > 0 else Op.SUBTRACT, total, scaled)
    if total is None:
        return const(number, type)
    if not number:
        return total
    return apply(Op.SUBTRACT if number < 0 else Op.ADD, total, const(abs(number), type))
