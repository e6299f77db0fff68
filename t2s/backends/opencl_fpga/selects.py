"""Selects whose choice is known where they stand lose the side that is never taken.

``q == 0 ? 0 : (q > 0 ? passed : 0)`` for a PE ``q`` of 0 to 4 is ``q == 0 ? 0 : passed``.  Whether
that is so is found by enumeration.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from t2s.backends.opencl_fpga.domains import (
    enumerate_domain,
    is_static,
    loops_used,
    select_loops,
)
from t2s.backends.opencl_fpga.lockstep import LockstepNode
from t2s.core.expr import Expr, Select, apply, conjuncts
from t2s.core.ops import Op
from t2s.core.walk import Term, rebuild
from t2s.graph.body import Statement
from t2s.graph.points import without_unused

Factors = tuple[Expr, ...]


def settled(node: LockstepNode) -> LockstepNode:
    """The node with the selects of its values settled; conditions and indices stay."""
    return replace(node, body=without_unused([_statement(node, s) for s in node.body]))


def _statement(node: LockstepNode, statement: Statement) -> Statement:
    condition = getattr(statement, "condition", None)
    known = tuple(filter(is_static, (*conjuncts(node.guard), *conjuncts(condition))))

    def visit(term: Term) -> Term:
        return term if term is condition else _settle(node, term, known)

    return rebuild(statement, visit)


def _settle(node: LockstepNode, term: Term, known: Factors) -> Term:
    match term:
        case Select(condition=condition, if_true=if_true, if_false=if_false) if (
            condition.type.lanes == 1 and is_static(condition)
        ):
            holds = (*known, *conjuncts(condition))
            fails = (*known, apply(Op.NOT, condition))
            if known and _never(node, fails):
                return _settle(node, if_true, known)
            if known and _never(node, holds):
                return _settle(node, if_false, known)
            chosen = _settle(node, if_true, holds)
            other = _settle(node, if_false, fails)
            return replace(term, if_true=cast(Expr, chosen), if_false=cast(Expr, other))
    return rebuild(term, lambda child: _settle(node, child, known))


def _never(node: LockstepNode, factors: Factors) -> bool:
    """Whether conditions never hold all at once, as far as that can be found out."""
    domain = enumerate_domain(node, select_loops(node, loops_used(node, factors)))
    return domain is not None and not bool(domain.all_of(factors).any())
