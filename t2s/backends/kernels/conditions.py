"""Conditions that several statements of a kernel share: they get a name, and are evaluated once.

``bool arrives = step < 512 && (step & 3) >= 3;`` serves the receive from a channel and the write
of the received value into a buffer.  This file also finds where the locals of a body are used, and
under which conditions their values matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from t2s.backends.kernels.lockstep import LockstepNode
from t2s.core.expr import Expr, Local, Select, conjuncts, index_names, is_static
from t2s.core.walk import Term, children, walk
from t2s.graph.body import Statement

Factors = tuple[Expr, ...]


def shared_conditions(node: LockstepNode) -> dict[Factors, str]:
    """Names for conditions over time with several factors that are used more than once."""
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
    """The factors apart from the known ones; ``None`` if a known one is missing."""
    if not set(known) <= set(factors):
        return None
    return tuple(factor for factor in factors if factor not in known)


def _conditions(node: LockstepNode) -> Iterator[Factors]:
    """The factors of every statement's condition."""
    for statement in node.body:
        condition = getattr(statement, "condition", None)
        if condition is not None and index_names(condition):
            yield conjuncts(condition)


def is_used(target: str, body: Sequence[Statement]) -> bool:
    """Whether a local is used at all."""
    return next(uses_of(target, body), None) is not None


def only_use(target: str, body: Sequence[Statement]) -> int | None:
    """The index of the statement that uses a local, if it is used just once."""
    places = [
        place
        for place, statement in enumerate(body)
        for term in walk(statement)
        if isinstance(term, Local) and term.name == target
    ]
    return places[0] if len(places) == 1 else None


def uses_of(target: str, body: Sequence[Statement]) -> Iterator[tuple[Expr, ...]]:
    """For each use of a local, static conditions that hold wherever its value matters."""
    for statement in body:
        condition = getattr(statement, "condition", None)
        if condition is not None:
            yield from _uses_in(target, condition, ())
        factors = tuple(factor for factor in conjuncts(condition) if is_static(factor))
        for child in children(statement):
            if child is not condition:
                yield from _uses_in(target, child, factors)


def _uses_in(target: str, term: Term, factors: tuple[Expr, ...]) -> Iterator[tuple[Expr, ...]]:
    match term:
        case Local(name=name):
            if name == target:
                yield factors
        case Select(condition=condition, if_true=if_true, if_false=if_false):
            yield from _uses_in(target, condition, factors)
            static = is_static(condition) and condition.type.lanes == 1
            holds = conjuncts(condition) if static else ()
            yield from _uses_in(target, if_true, factors + holds)
            fails = (~condition,) if static else ()
            yield from _uses_in(target, if_false, factors + fails)
        case _:
            for child in children(term):
                yield from _uses_in(target, child, factors)
