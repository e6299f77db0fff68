"""Conditions that several statements of a kernel share get a name, and are worked out once.

``bool arrives = step < 512 && (step & 3) >= 3;`` serves the receive from a channel and the write
into the buffer that keeps what has been received.
"""

from __future__ import annotations

from collections.abc import Iterator

from t2s.backends.opencl_fpga.domains import is_static
from t2s.backends.opencl_fpga.lockstep import LockstepNode
from t2s.core.expr import Expr, conjuncts, index_names

Factors = tuple[Expr, ...]


def shared_conditions(node: LockstepNode) -> dict[Factors, str]:
    """Conditions over time of more than one factor that are needed more than once, with names."""
    places = [frozenset(factors) for factors in _conditions(node)]
    names: dict[Factors, str] = {}
    for ports, name in ((node.receives, "arrives"), (node.sends, "leaves")):
        for port in ports.values():
            factors = port.time_factors
            uses = sum(frozenset(factors) <= place for place in places)
            if len(factors) > 1 and uses > 1 and all(map(is_static, factors)):
                names.setdefault(factors, name)
    return names


def without(factors: Factors, known: Factors) -> Factors | None:
    """The factors besides the known ones; ``None`` if not all of those are among them."""
    if not set(known) <= set(factors):
        return None
    return tuple(factor for factor in factors if factor not in known)


def _conditions(node: LockstepNode) -> Iterator[Factors]:
    """The factors of every statement's condition."""
    for statement in node.body:
        condition = getattr(statement, "condition", None)
        if condition is not None and index_names(condition):
            yield conjuncts(condition)
