"""Where the locals of a body are used, and under which conditions their values matter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from t2s.backends.opencl_fpga.domains import is_static
from t2s.core.expr import Expr, Local, Select, apply, conjuncts
from t2s.core.ops import Op
from t2s.core.walk import Term, children, walk
from t2s.graph.body import Statement


def is_used(target: str, body: Sequence[Statement]) -> bool:
    """Whether a local is used at all."""
    return next(uses_of(target, body), None) is not None


def only_use(target: str, body: Sequence[Statement]) -> int | None:
    """The place in the body of the statement that uses a local, if it is used just once."""
    places = [
        place
        for place, statement in enumerate(body)
        for term in walk(statement)
        if isinstance(term, Local) and term.name == target
    ]
    return places[0] if len(places) == 1 else None


def uses_of(target: str, body: Sequence[Statement]) -> Iterator[tuple[Expr, ...]]:
    """For every use of a local: static conditions that hold wherever its value matters."""
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
            fails = (apply(Op.NOT, condition),) if static else ()
            yield from _uses_in(target, if_false, factors + fails)
        case _:
            for child in children(term):
                yield from _uses_in(target, child, factors)
