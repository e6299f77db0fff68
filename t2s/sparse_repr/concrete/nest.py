"""Loop nests of an assignment for a given order of its loops.

A sum that is one of several terms gets a temporary.  Where its reduction loops follow all loops
that it shares with the result, the temporary is a scalar inside these loops; where one variable of
the result is left inside of the reduction, it is a fiber; anything else is a stage of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from t2s.core.walk import rewrite
from t2s.sparse_repr.concrete.ir import Assign, Forall, Statement, Where
from t2s.sparse_repr.notation.ir import (
    ADDITIVE,
    Access,
    Combine,
    Expression,
    Negative,
    Sum,
    variables_of,
)

NewName = Callable[[str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Nests:
    """The nest of an assignment, and before it the nests of the temporaries stored in between."""

    stages: tuple[Statement, ...]
    stored: tuple[Access, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Inside:
    """A producer and the number of consumer loops around it."""

    depth: int
    statement: Statement


def build_nests(
    result: Access, value: Expression, order: Sequence[str], new_name: NewName
) -> Nests:
    """Concrete index notation of ``result = value`` with loops in this order."""
    value = _inner_signs(value)
    if isinstance(value, Sum):
        assign = Assign(result=result, value=value.value, accumulate=True)
        return Nests(stages=(_nest(order, assign),), stored=())
    consumer = tuple(name for name in order if name in result.variables)
    inside: list[_Inside] = []
    stages: list[Statement] = []
    stored: list[Access] = []

    def place(term: Sum) -> Access:
        free = tuple(name for name in order if name in result.variables)
        loops = tuple(name for name in order if name in variables_of(term))
        first = next(n for n, name in enumerate(loops) if name in term.variables)
        context, rest = loops[:first], tuple(n for n in loops[first:] if n in free)
        depth = max((consumer.index(name) + 1 for name in context), default=0)
        name = new_name("t")
        if rest and rest != consumer[depth : depth + 1]:
            access = Access(tensor=name, variables=(*context, *rest))
            nest = _nest(loops, Assign(result=access, value=term.value, accumulate=True))
            stages.append(nest)
            stored.append(access)
            return access
        access = Access(tensor=name, variables=rest)
        assign = Assign(result=access, value=term.value, accumulate=True)
        inner = _nest(tuple(n for n in loops if n not in context), assign)
        inside.append(_Inside(depth=depth, statement=inner))
        return access

    flat = _replace_sums(value, place)
    statement: Statement = Assign(result=result, value=flat)
    for depth in range(len(consumer), -1, -1):
        for producer in inside:
            if producer.depth == depth:
                statement = Where(consumer=statement, producer=producer.statement)
        if depth:
            statement = Forall(variable=consumer[depth - 1], body=statement)
    return Nests(stages=(*stages, statement), stored=tuple(stored))


def _nest(order: Sequence[str], body: Statement) -> Statement:
    for name in reversed(order):
        body = Forall(variable=name, body=body)
    return body


def _inner_signs(value: Expression) -> Expression:
    """``-sum(x)`` as ``sum(-x)``, everywhere."""

    def move(term: object) -> Expression | None:
        match term:
            case Negative(value=Sum(variables=variables, value=inner)):
                return Sum(variables=variables, value=Negative(value=inner))
            case _:
                return None

    return rewrite(value, move)


def _replace_sums(value: Expression, place: Callable[[Sum], Access]) -> Expression:
    match value:
        case Sum():
            return place(value)
        case Combine(operator=operator) if operator in ADDITIVE:
            left = _replace_sums(value.left, place)
            return replace(value, left=left, right=_replace_sums(value.right, place))
        case Negative():
            return Negative(value=_replace_sums(value.value, place))
        case _:
            return value
