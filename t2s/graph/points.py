"""A node at one point of its space: what depends on the point is decided.

``fold`` puts known indices into an expression and decides conditions whose truth follows from the
ranges of the others; ``fold_statement`` does so for a statement of a body, of which nothing is left
where its condition never holds; ``without_unused`` then drops values that nothing uses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from t2s.core.expr import Apply, Const, Expr, Index, Local, apply, const, simplify
from t2s.core.ops import Op
from t2s.core.types import BOOL, INT32
from t2s.core.walk import Term, rebuild, rewrite, walk
from t2s.graph.body import Let, Load, Receive, RegisterRead, RegisterWrite, Send, Statement, Store
from t2s.graph.intervals import Interval, from_linear_form, interval, linear_form


def fold(expr: Expr, ranges: dict[str, Interval], fixed: dict[str, int]) -> Expr:
    """``expr`` with fixed indices replaced and conditions of known truth folded."""

    def rule(term: Term) -> Term | None:
        match term:
            case Index(name=name) if name in fixed:
                return const(fixed[name])
            case Apply(type=type) if type == BOOL and interval(term, ranges) in ((0, 0), (1, 1)):
                return const(interval(term, ranges) == (1, 1), BOOL)
            case Apply(operator=operator, operands=(left, Const(value=int() as number))) if (
                operator in (Op.FLOOR_DIVIDE, Op.MODULO) and number > 0
            ):
                return _known_digit(operator, left, number, ranges)
            case Apply(
                operator=operator,
                operands=(
                    Apply(operator=Op.FLOOR_DIVIDE, operands=(left, Const(value=int() as by))),
                    Const(value=int() as number),
                ),
            ) if operator in _BEYOND and by > 0 and left.type == INT32:
                limit = (number + _BEYOND[operator]) * by
                return _undivided(operator, left, limit)
        return None

    return simplify(rewrite(expr, rule))


_BEYOND = {Op.LESS: 0, Op.GREATER_EQUAL: 0, Op.LESS_EQUAL: 1, Op.GREATER: 1}
"""Comparisons, and what to add to their right side to make them ``<`` or ``>=``."""


def _undivided(operator: Op, left: Expr, limit: int) -> Expr | None:
    """``x // by < n`` as ``x < n * by``, where that is no larger than an ``int``."""
    if not -(2**31) <= limit < 2**31:
        return None
    below = operator in (Op.LESS, Op.LESS_EQUAL)
    return apply(Op.LESS if below else Op.GREATER_EQUAL, left, const(limit))


def _known_digit(operator: Op, left: Expr, by: int, ranges: dict[str, Interval]) -> Expr | None:
    """A quotient or rest by a constant, where the range of the operand or its form gives it."""
    found = interval(left, ranges)
    if found is None or left.type != INT32:
        return None
    low, high = found
    if low // by == high // by:
        quotient = const(low // by)
        rest = simplify(apply(Op.SUBTRACT, left, const(low // by * by)))
        return quotient if operator is Op.FLOOR_DIVIDE else rest
    form = linear_form(left)
    if form is None:
        return None
    coefficients, constant = form
    whole = {name: value // by for name, value in coefficients.items() if value % by == 0}
    if not whole:
        return None
    broken = {name: value for name, value in coefficients.items() if value % by}
    rest = apply(operator, from_linear_form((broken, constant)), const(by))
    if operator is Op.FLOOR_DIVIDE:
        rest = apply(Op.ADD, from_linear_form((whole, 0)), rest)
    return simplify(rest)


def fold_statement(statement: Statement, folded: Callable[[Expr], Expr]) -> Statement | None:
    """The statement with folded expressions; what never happens is dropped or bound to zero."""

    result = rebuild(statement, lambda term: folded(term) if isinstance(term, Expr) else term)
    match result:
        case (
            Receive(condition=Const(value=True))
            | Send(condition=Const(value=True))
            | Load(condition=Const(value=True))
            | Store(condition=Const(value=True))
            | RegisterWrite(condition=Const(value=True))
        ):
            return replace(result, condition=None)
        case (
            Receive(target=target, type=type, condition=Const(value=False))
            | Load(target=target, type=type, condition=Const(value=False))
        ):
            return Let(target=target, value=Const(value=0, type=type))
        case (
            Send(condition=Const(value=False))
            | Store(condition=Const(value=False))
            | RegisterWrite(condition=Const(value=False))
        ):
            return None
    return result


def without_unused(body: Sequence[Statement]) -> tuple[Statement, ...]:
    """The body without values that nothing uses; tokens are received all the same."""
    kept: list[Statement] = []
    used: set[str] = set()
    for statement in reversed(body):
        match statement:
            case Let(target=t) | Load(target=t) | RegisterRead(target=t) if t not in used:
                continue
        kept.append(statement)
        used |= {term.name for term in walk(statement) if isinstance(term, Local)}
    return tuple(reversed(kept))
