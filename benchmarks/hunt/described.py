"""External functions that are run by their own statements: of a pool, or made of a part.

Functions of a part compute it under other names, or nearly so: one thing may have been changed.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from benchmarks.hunt.choices import Choices
from benchmarks.hunt.notation import PLUS_TIMES, Ring
from benchmarks.hunt.verdict import Wrong
from t2s import external, sparse
from t2s.capability.operands import suits
from t2s.core.ops import OPERATORS, Op
from t2s.core.walk import rewrite
from t2s.libraries.calling import availability
from t2s.libraries.registry import LIBRARIES
from t2s.sparse_repr.formats import dense
from t2s.sparse_repr.notation.evaluate import evaluate
from t2s.sparse_repr.notation.ir import (
    Access,
    Assignment,
    Combine,
    Expression,
    Number,
    Sum,
    TensorDeclaration,
    accesses,
    free_variables,
    print_expression,
    variables_of,
)
from t2s.sparse_repr.tensors.tensor import from_dense


def drawn_function(
    c: Choices, part: Expression, formats: dict[str, str], ring: Ring
) -> external.ExternalFunction:
    if c.chance(3):
        pool = [one for one in _pool() if ring == PLUS_TIMES]
        if pool:
            return c.one_of(pool)
    return function_of_part(c, part, formats, ring)


@cache
def _pool() -> tuple[external.ExternalFunction, ...]:
    """Functions of all libraries that are there, and some that are run by their statements."""
    there = (one for one in LIBRARIES.values() if availability(one.description).there)
    shelves = tuple(one for library in there for one in library.functions.values())
    return (*shelves, *(evaluated(text, PLUS_TIMES) for text in STATEMENTS))


STATEMENTS = (
    "z(i,k) = x(i,j) * y(j,k) when i == 2 and j == 2 and k == 2",
    "z(i,k) = x(i,j) * y(j,k) when i * j < 7",
    "z(i) = x(i) + y(i) when i == 3",
    "z(i) = x(i) * y(i) when i % 2 == 0",
    "s = x(i) * y(i) when i <= 2",
    "z(I) = x(I) * y(I) when forall d in I: I[d] == I[0]",
    "z(I,J) = x(I,K) * y(K,J) when product(I) < 5 and order(K) >= 1",
    "z(I) = x(I,J) * y(J)",
    "z(i,I) = x(I,i) * a",
    "z(i,j) = x(j,i)",
    "z(i) = x(i,i)",
    "z(i) = w(i) + x(i,j) * y(j)",
    "x(i,j) = x(i,j) + y(i) * w(j)",
    "z(i,k) += x(i,j) * y(k,j)",
    "z(I) = x(I) - y(I)",
    "z(i) = x(i) * y(i) * w(i)",
    "z(i,j) = x(i) + y(j)",
    "z(I) = max(x(I), y(I))",
    "z(i) = max(sum(j, x(i,j)), y(i))",
    "z = x(i,j) * x(i,j)",
    "z(i) = x(i) * x(i)",
    "z(i) = 2 * x(i)",
    "z(I) = a * x(I) + y(I)",
    "y(i) = y(i) + a * x(i)",
    "z(i) = a * x(i) + b * y(i)",
    "z(i) = a * x(i,j) * y(j) - y(j)",
)


def function_of_part(
    c: Choices, part: Expression, formats: dict[str, str], ring: Ring
) -> external.ExternalFunction:
    """A function that computes the part, or nearly so."""
    names = variables_of(part)
    new = dict(zip(names, c.shuffled("pqrstu")[: len(names)], strict=True))
    tensors = list(dict.fromkeys(access.tensor for access in accesses(part)))
    letters = dict(zip(tensors, c.shuffled("abcdef")[: len(tensors)], strict=True))

    def rename(term: Any) -> Any:
        match term:
            case Access():
                variables = tuple(new[name] for name in term.variables)
                return Access(tensor=letters[term.tensor], variables=variables)
            case Sum(variables=variables):
                return replace(term, variables=tuple(new[name] for name in variables))
        return None

    value: Expression = rewrite(part, rename)
    change = c.below(6)
    used = [access for access in accesses(value) if access.variables]
    if change == 1 and used:  # its variables in another order
        chosen = c.one_of(used)
        other = replace(chosen, variables=tuple(c.shuffled(chosen.variables)))
        value = rewrite(value, lambda term: other if term == chosen else None)
    elif change == 2 and used:  # one variable for another
        chosen = c.one_of(used)
        at, name = c.below(len(chosen.variables)), c.one_of(list(new.values()))
        variables = (*chosen.variables[:at], name, *chosen.variables[at + 1 :])
        other = replace(chosen, variables=variables)
        value = rewrite(value, lambda term: other if term == chosen else None)
    elif change == 3 and len(letters) > 1:  # one tensor for another
        one, two = c.shuffled(list(letters.values()))[:2]
        value = rewrite(
            value,
            lambda term: (
                replace(term, tensor=two)
                if isinstance(term, Access) and term.tensor == one
                else None
            ),
        )
    elif change == 4:  # its numbers, and what is subtracted, with a scalar
        value = _with_scalar(value)
    free = [name for name in new.values() if name in free_variables(value)]
    kept = [name for name in c.shuffled(free) if not c.chance(3)]
    result, sign = "z", "+=" if c.chance(6) else "="
    alike = [one.tensor for one in accesses(value) if set(one.variables) == set(kept)]
    if alike and c.chance(4):  # the result comes in the place of an operand
        result, sign = c.one_of(alike), "="
        kept = list(next(one for one in accesses(value) if one.tensor == result).variables)
    text = f"{result}({','.join(kept)}) {sign} " if kept else f"{result} {sign} "
    stored = {letters[name]: formats[name] for name in tensors if "s" in formats.get(name, "")}
    named = {access.tensor for access in accesses(value)}
    taken = {name: one for name, one in stored.items() if name in named and c.chance(2)}
    condition = f" when {c.one_of(kept)} {c.one_of(['==', '<=', '%'])}" if kept else ""
    if condition and c.chance(4):
        size = c.between(1, 3)
        condition += f" {size} == 0" if condition.endswith("%") else f" {size}"
    else:
        condition = ""
    steps = c.one_of(["any", "dense", "steps", "rows"])
    taken.pop(result, None)
    if result == "z" and kept and c.chance(4):  # one call makes a sparse result
        taken["z"] = "d" * c.below(len(kept)) + "s"
        taken["z"] = taken["z"].ljust(len(kept), "s")
    return evaluated(f"{text}{print_expression(value)}{condition}", ring, taken, steps)


def _with_scalar(value: Expression) -> Expression:
    """Numbers become a scalar operand, and so does the -1 of a difference."""

    def visit(term: Any) -> Any:
        match term:
            case Number():
                return Access(tensor="n")
            case Combine(operator=Op.SUBTRACT, left=left, right=right):
                scaled = Combine(operator=Op.MULTIPLY, left=Access(tensor="n"), right=right)
                return Combine(operator=Op.ADD, left=left, right=scaled)
        return None

    return rewrite(value, visit)


def evaluated(
    text: str, ring: Ring, formats: Mapping[str, str] | None = None, steps: str = "any"
) -> external.ExternalFunction:
    """A function that is run by its own statement, for arrays of any order."""
    semiring = getattr(sparse, ring.name)
    made = external.make_capability(
        text, strides=steps, semirings=(semiring,), formats=dict(formats or {})
    )
    tensors = tuple(dict.fromkeys(access.tensor for access in accesses(made.value)))
    result = made.result.tensor
    stored = made.needs_of(result).formats

    def run(**given: Any) -> Any:
        places = {}
        for name, one in given.items():
            if isinstance(one, sparse.SparseTensor):
                assert str(one.format) == str(made.needs_of(name).formats[0])
                places[name] = np.zeros(one.shape, bool)
                places[name][tuple(one.coordinates()[0].T)] = True
                given[name] = one.to_dense()
            else:
                assert suits(one, made.needs_of(name).strides)
        lists = _lengths(made, given)

        def expand(names: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(one for name in names for one in lists.get(name, (name,)))

        def visit(term: Any) -> Any:
            match term:
                case Access():
                    return replace(term, variables=expand(term.variables))
                case Sum():
                    names = expand(term.variables)
                    return replace(term, variables=names) if names else term.value
            return None

        value = rewrite(made.value, visit)
        target = expand(made.result.variables)
        declared = [
            TensorDeclaration(name=name, format=dense(np.ndim(given[name]))) for name in tensors
        ]
        if result not in tensors:
            declared.append(TensorDeclaration(name=result, format=dense(len(target))))
        statement = Assignment(
            result=Access(tensor=result, variables=target),
            value=value,
            tensors=tuple(declared),
            semiring=semiring,
        )
        values = {name: given[name] for name in tensors}
        kind = next(one.dtype for one in given.values())
        found = evaluate(statement, values, kind, places)
        if stored:
            return from_dense(found, stored[0], fill=semiring.zero)
        place = given[result]
        assert found.shape == place.shape, (found.shape, place.shape)
        add = OPERATORS[semiring.add].evaluate
        place[...] = add(place, found) if made.accumulates else found
        return None

    names = tensors if stored else (*tensors, result)
    python = _with_parameters(run, names)
    return external.make_function("evaluated", made, python=python, trusted=True)


def _lengths(made: Any, given: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """How long each list is: an assignment of lengths that all orders allow."""
    used = [one for one in (made.result, *accesses(made.value)) if one.tensor in given]
    for lengths in itertools.product(range(5), repeat=len(made.lists)):
        lists = {
            name: tuple(f"{name}{at}" for at in range(length))
            for name, length in zip(made.lists, lengths, strict=True)
        }
        if all(
            sum(len(lists.get(name, (name,))) for name in access.variables)
            == np.ndim(given[access.tensor])
            for access in used
        ):
            sizes: dict[str, int] = {}
            agrees = all(
                sizes.setdefault(one, extent) == extent
                for access in used
                for one, extent in zip(
                    (x for name in access.variables for x in lists.get(name, (name,))),
                    np.shape(given[access.tensor]),
                    strict=True,
                )
            )
            if agrees:
                return lists
    raise Wrong(f"no lists fit {made.value}")


def _with_parameters(run: Callable[..., Any], names: tuple[str, ...]) -> Callable[..., Any]:
    """The function with these parameters, by name."""
    names = tuple(dict.fromkeys(names))

    def call(**given: Any) -> Any:
        return run(**given)

    call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in names]
    )
    return call
