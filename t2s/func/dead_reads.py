"""Reads that never happen are no part of a design.

``select(s == 1, select(s == 0, x[i], V[s - 1, i]), ...)`` never reads ``x``: its condition
contradicts the one around it.  The selection becomes the branch that is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from t2s.core.expr import Expr, Select, apply, conjuncts, reads
from t2s.core.isl import Interval, LoopDomain, NotAffine, is_affine
from t2s.core.ops import Op
from t2s.core.steps import bottom_up
from t2s.core.walk import Term, rebuild
from t2s.func.bounds import guarded_nodes

MOST_AROUND = 16
"""Of more conditions around a selection the innermost ones are looked at."""


def without_dead_reads(value: Expr, intervals: Sequence[Interval]) -> Expr:
    """The value of a definition over its loops without reads whose conditions contradict."""
    taken: dict[int, set[bool | None]] = {}
    try:
        for node, where in guarded_nodes(value, nested=False):
            if isinstance(node, Select) and is_affine(node.condition):
                taken.setdefault(id(node), set()).add(_branch(node, where, intervals))
    except NotAffine:
        return value
    if not any(found in ({True}, {False}) for found in taken.values()):
        return value
    parts: dict[int, Term] = {}
    for term in bottom_up(value):
        part = rebuild(term, lambda child: parts[id(child)])
        found = taken.get(id(term))
        if isinstance(part, Select) and found in ({True}, {False}):
            part = part.if_true if found == {True} else part.if_false
        parts[id(term)] = part
    return cast(Expr, parts[id(value)])


def _branch(node: Select, where: Expr | None, intervals: Sequence[Interval]) -> bool | None:
    """The branch that is always taken, if the other one reads something; ``None``: either."""
    around = [part for part in conjuncts(where) if is_affine(part)][-MOST_AROUND:]
    test = node.condition
    if reads(node.if_true) and LoopDomain(intervals, [*around, test]).is_empty():
        return False
    other = apply(Op.NOT, test)
    if reads(node.if_false) and LoopDomain(intervals, [*around, other]).is_empty():
        return True
    return None
