"""Recognizing the form of an update: ``previous (op) term``."""

from __future__ import annotations

from t2s.core.expr import Apply, Expr, Local, is_associative
from t2s.core.ops import OPERATORS, Op
from t2s.core.walk import Term, rewrite, walk

PREVIOUS = "<previous>"  # not an identifier, so no user name can collide with it


def mentions_previous(expr: Expr) -> bool:
    """Whether the value depends on the previous step of the reduction."""
    return any(isinstance(node, Local) and node.name == PREVIOUS for node in walk(expr))


def readable_update(function: str, value: Expr) -> Expr:
    """The value with the partial result under the name of its function."""

    def rule(node: Term) -> Term | None:
        if isinstance(node, Local) and node.name == PREVIOUS:
            return Local(name=function, type=node.type)
        return None

    return rewrite(value, rule)


def reduction_term(value: Expr) -> tuple[Op, Expr] | None:
    """``(op, term)`` if the value is ``previous op term`` (or ``term op previous``).

    The operator is associative and the term free of ``previous``; ``None`` for any other form.
    """
    match value:
        case Apply(operator=operator, operands=(left, right)) if is_associative(operator):
            if _is_previous(left) and not mentions_previous(right):
                return operator, right
            if (
                OPERATORS[operator].commutative
                and _is_previous(right)
                and not mentions_previous(left)
            ):
                return operator, left
    return None


def reduction_operator(value: Expr) -> Op | None:
    """The associative operator of a reduction, or ``None``."""
    found = reduction_term(value)
    return found[0] if found is not None else None


def _is_previous(expr: Expr) -> bool:
    return isinstance(expr, Local) and expr.name == PREVIOUS
