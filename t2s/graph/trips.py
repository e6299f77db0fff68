"""How often a PE fires, in closed form: nested affine sums, by sympy.

A rectangular nest fires the product of its extents.  Where bounds depend on outer loops or on the
PE's place in the array, the count is a polynomial in the space indices, for example
``(ii + 1)*(ii + 2)/2`` for a triangular nest on a row of PEs.  sympy is imported at first use.
"""

from __future__ import annotations

from typing import Any

from t2s.core.expr import Apply, Const, Expr, Index, apply, const, simplify
from t2s.core.interrupts import late_module
from t2s.core.isl import Interval, LoopDomain, NotAffine
from t2s.core.ops import Op
from t2s.graph.nodes import PEArray


def firings_per_pe(node: PEArray) -> int | str | None:
    """Firings of one PE: a number, or a formula over the node's space indices.

    ``None`` where there is no closed form: bounds with ``//`` or ``%`` or with parameters, and
    nests in which an inner loop may be empty.  Where a schedule has empty slots, PEs may differ,
    and the text says how many firings they make in all.
    """
    if node.active is not None:
        return _among_slots(node)
    count = 1
    for loop in node.loops:
        extent = simplify(loop.extent)
        if not isinstance(extent, Const):
            return _symbolic(node)
        count *= max(0, int(extent.value))
    return count


def _among_slots(node: PEArray) -> str | None:
    intervals = [
        Interval(name=d.name, minimum=const(d.minimum), extent=const(d.extent)) for d in node.space
    ]
    intervals += [Interval(name=x.name, minimum=x.minimum, extent=x.extent) for x in node.loops]
    conditions = [part for part in (node.exists, node.active) if part is not None]
    try:
        return f"{LoopDomain(intervals, conditions).count():,} in all"
    except NotAffine:
        return None


def _symbolic(node: PEArray) -> int | str | None:
    sympy = late_module("sympy")

    if _may_be_empty(node):
        return None
    total: Any = sympy.Integer(1)
    for loop in reversed(node.loops):
        first, extent = _to_sympy(loop.minimum), _to_sympy(loop.extent)
        if first is None or extent is None:
            return None
        index = sympy.Symbol(loop.name, integer=True)
        total = sympy.summation(total, (index, first, first + extent - 1))
    formula = sympy.factor(sympy.expand(total))
    return int(formula) if formula.is_Integer else str(formula)


def _may_be_empty(node: PEArray) -> bool:
    """Whether an extent is below 1 somewhere, so that the sum over it is not its polynomial."""
    outer = [
        Interval(name=d.name, minimum=const(d.minimum), extent=const(d.extent)) for d in node.space
    ]
    try:
        for loop in node.loops:
            if not LoopDomain(outer, [apply(Op.LESS, loop.extent, const(1))]).is_empty():
                return True
            outer.append(Interval(name=loop.name, minimum=loop.minimum, extent=loop.extent))
    except NotAffine:
        return True
    return False


def _to_sympy(expr: Expr) -> Any:
    """An affine expression as a sympy one; ``None`` for anything else."""
    sympy = late_module("sympy")

    match expr:
        case Const(value=value):
            return sympy.Integer(int(value))
        case Index(name=name):
            return sympy.Symbol(name, integer=True)
        case Apply(operator=Op.NEGATE, operands=(operand,)):
            value = _to_sympy(operand)
            return None if value is None else -value
        case Apply(operator=Op.ADD | Op.SUBTRACT | Op.MULTIPLY as operator, operands=operands):
            left, right = (_to_sympy(operand) for operand in operands)
            if left is None or right is None:
                return None
            if operator is Op.MULTIPLY:
                return left * right
            return left + right if operator is Op.ADD else left - right
    return None
