"""Tidying of index arithmetic: sums in which terms cancel become shorter.

``p + (t - p)`` is ``t``.  A sum is rewritten only if that makes it shorter; what is not a sum with
integer factors (a quotient, a remainder, a minimum) is a term like a loop index, tidied inside.
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
        if node.operator not in _SUMS:
            return None
        terms: dict[Expr, int] = {}
        number = _collect(node, 1, terms)
        shorter = simplify(_sum(terms, number, node))
        return shorter if _size(shorter) < _size(node) else None

    return simplify(rewrite(expr, rule))


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
