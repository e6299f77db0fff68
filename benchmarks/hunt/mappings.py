"""Statements x parts x external functions x reshapings: what is accepted has to be right.

A function is one of a pool, or made of the part itself: its variables and tensors are renamed, and
then perhaps one thing is changed, so that it is nearly what the part computes.  Such a function is
run by its own statement, in numpy.  Whatever the matcher accepts is run and compared with numpy,
over all variables at once (``notation``); what it refuses counts as refused.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from benchmarks.hunt import notation
from benchmarks.hunt.choices import Choices
from benchmarks.hunt.notation import PLUS_TIMES, RINGS, Ring, Term
from benchmarks.hunt.run import guarded
from benchmarks.hunt.verdict import Verdict, Wrong
from t2s import UserError, external, sparse
from t2s.capability.printer import print_capability
from t2s.core.ops import OPERATORS
from t2s.core.walk import rewrite
from t2s.libraries.calling import suits
from t2s.plan.candidates import parts_of
from t2s.sparse_repr.formats import dense
from t2s.sparse_repr.notation.evaluate import evaluate
from t2s.sparse_repr.notation.ir import (
    Access,
    Assignment,
    Expression,
    Sum,
    TensorDeclaration,
    accesses,
    free_variables,
    print_expression,
    variables_of,
)
from t2s.sparse_repr.notation.parse import parse_expression

VARIABLES = "ijkl"
KINDS = ("float64", "float32", "int64", "float64", "int8", "uint16", "int32", "uint64")


@dataclass(slots=True)
class Case:
    """A statement, its inputs, a part, and the function that is to compute it."""

    text: str
    formats: dict[str, str]
    extents: dict[str, int]
    shape: list[int]
    inputs: dict[str, Any]
    term: Term
    result: str
    ring: Ring
    part: str
    function: external.ExternalFunction
    maps: bool
    densify: bool
    pad: bool

    def __str__(self) -> str:
        arrays = "\n".join(
            f"{name} = np.array({value.tolist()}, {value.dtype.name!r}).reshape({value.shape})"
            for name, value in self.inputs.items()
        )
        how = f"map(..., pad={self.pad}, densify={self.densify})" if self.maps else "bind(...)"
        return (
            f"{arrays}\nparse({self.text!r}, {self.formats}), {self.ring.name}, {self.extents}\n"
            f"{how} of {self.part} by {self.function.name}: "
            f"{print_capability(self.function.capability)}"
        )


def generate(c: Choices) -> Case:
    """Draw a case."""
    names = VARIABLES[: c.one_of([2, 1, 2, 3, 3, 4])]
    extents = {name: 0 if c.chance(30) else c.between(1, 4) for name in names}
    if c.chance(3):
        extents = dict.fromkeys(names, c.between(1, 4))
    ring = c.one_of(RINGS) if c.chance(8) else PLUS_TIMES
    kind = c.one_of(KINDS) if ring == PLUS_TIMES else "float64"
    result = "".join(c.shuffled(names)[: c.one_of([1, 2, 1, 0, 3])])
    generator = np.random.default_rng(c.below(1 << 20))
    leaves: list[Term] = []
    inputs: dict[str, Any] = {}
    formats: dict[str, str] = {}
    for name in "ABCD"[: c.between(1, 4)]:
        modes = c.shuffled(names)[: c.one_of([2, 1, 2, 3, 0])]
        if len(modes) > 1 and c.chance(12):
            modes[-1] = modes[0]
        leaves.append(Term("operand", name=name, variables="".join(modes)))
        formats[name] = _format(c, len(modes))
        inputs[name] = _values(c, generator, tuple(extents[v] for v in modes), kind, ring)
    if c.chance(6) and len(leaves) > 1:  # one tensor at other variables
        first = leaves[0]
        again = "".join(c.shuffled(first.variables))
        if [extents[v] for v in again] == [extents[v] for v in first.variables]:
            leaves.append(replace(first, variables=again))
    term = notation.drawn(c, leaves, result, ring, c.one_of([1, 2, 1, 2, 3, 0]))
    used = {part.name for part in term.parts()}
    text = f"{Term('operand', name='X', variables=result)} = {term}"
    formats["X"] = _format(c, len(result))
    formats = {name: one for name, one in formats.items() if one and name in {*used, "X"}}
    shape = [extents[v] for v in result]
    assignment = sparse.parse(text, formats, {"X": shape} if result else {})
    parts = parts_of(assignment)
    part = c.one_of(parts)
    function = _function(c, part, formats, ring)
    return Case(
        text=text,
        formats=formats,
        extents=extents,
        shape=shape,
        inputs={name: inputs[name] for name in inputs if name in used},
        term=term,
        result=result,
        ring=ring,
        part=print_expression(part),
        function=function,
        maps=not c.chance(3),
        densify=c.chance(2),
        pad=not c.chance(4),
    )


def _format(c: Choices, order: int) -> str:
    letters = "dss" if c.chance(3) else "d"
    text = "".join(c.one_of(letters) for _ in range(order))
    if order > 1 and c.chance(6):
        text = "ds" + "s" * (order - 2)
    if order > 1 and c.chance(5):
        text += ":" + ",".join(map(str, c.shuffled(range(order))))
    return text


def _values(c: Choices, generator: Any, shape: tuple[int, ...], kind: str, ring: Ring) -> Any:
    there = generator.random(shape) < c.one_of([0.7, 1.0, 0.3])
    array = generator.integers(1, 5, shape)
    if ring == PLUS_TIMES and not kind.startswith("u") and c.chance(2):
        array = array * generator.choice([-1, 1], shape)
    type = np.dtype(kind)
    values = np.where(there, array.astype(type), type.type(ring.zero))
    if len(shape) == 2 and c.chance(3):  # a window, by columns
        larger = np.full((shape[1] + 1, shape[0] + 2), 3, type).T
        larger[1:-1, : shape[1]] = values
        return larger[1:-1, : shape[1]]
    return values


def _function(
    c: Choices, part: Expression, formats: dict[str, str], ring: Ring
) -> external.ExternalFunction:
    if c.chance(3):
        pool = [one for one in _pool() if ring == PLUS_TIMES]
        if pool:
            return c.one_of(pool)
    return _of_part(c, part, formats, ring)


@cache
def _pool() -> tuple[external.ExternalFunction, ...]:
    libraries = (external.numpy, external.scipy, external.blas)
    shelves = tuple(one for library in libraries for one in library.functions.values())
    return (*shelves, *(_evaluated(text, PLUS_TIMES) for text in STATEMENTS))


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
)


def _of_part(
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
    return _evaluated(f"{text}{print_expression(value)}{condition}", ring, taken, steps)


def _evaluated(
    text: str, ring: Ring, formats: Mapping[str, str] | None = None, steps: str = "any"
) -> external.ExternalFunction:
    """A function that is run by its own statement, for arrays of any order."""
    semiring = getattr(sparse, ring.name)
    made = external.make_capability(
        text, strides=steps, semirings=(semiring,), formats=dict(formats or {})
    )
    tensors = tuple(dict.fromkeys(access.tensor for access in accesses(made.value)))
    result = made.result.tensor

    def run(**given: Any) -> None:
        place = given[result]
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
            declared.append(TensorDeclaration(name=result, format=dense(place.ndim)))
        statement = Assignment(
            result=Access(tensor=result, variables=target),
            value=value,
            tensors=tuple(declared),
            semiring=semiring,
        )
        values = {name: given[name] for name in tensors}
        found = evaluate(statement, values, place.dtype, places)
        assert found.shape == place.shape, (found.shape, place.shape)
        add = OPERATORS[semiring.add].evaluate
        place[...] = add(place, found) if made.accumulates else found

    function = external.make_function(
        "evaluated", made, python=_with_parameters(run, (*tensors, result)), trusted=True
    )
    return replace(function, capability=made)


def _lengths(made: Any, given: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """How long each list is: an assignment of lengths that all orders allow."""
    used = (made.result, *accesses(made.value))
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


def _with_parameters(run: Callable[..., None], names: tuple[str, ...]) -> Callable[..., None]:
    """The function with these parameters, by name."""
    names = tuple(dict.fromkeys(names))

    def call(**given: Any) -> None:
        run(**given)

    call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in names]
    )
    return call


def judge(choices: Choices, hardware: bool) -> tuple[str, Verdict]:
    """Draw a case and judge it."""
    made: list[Case] = []
    verdict = guarded(lambda: made.append(generate(choices)))
    if not made:
        return "a function that cannot be made", verdict
    case = made[0]
    verdict = guarded(lambda: _judge(case))
    return str(case), verdict


def _judge(case: Case) -> None:
    semiring = getattr(sparse, case.ring.name)
    assignment = sparse.parse(case.text, case.formats, {"X": case.shape} if case.shape else {})
    part = sparse.Notation(parse_expression(case.part), {})
    schedule = sparse.Schedule()
    if case.maps:
        schedule = schedule.map(part, case.function, pad=case.pad, densify=case.densify)
    else:
        schedule = schedule.bind(part, case.function)
    try:
        plan = sparse.compile(assignment, schedule, semiring=semiring)
    except UserError as error:
        if " is not what " in error.message:  # one reason, whatever the part and the function
            raise UserError("a part is not what a function computes") from error
        raise
    before = {name: value.copy() for name, value in case.inputs.items()}
    with np.errstate(all="ignore"):
        expected = notation.computed(case.term, case.inputs, case.extents, case.result, case.ring)
        result = plan.run(case.inputs)
        own = plan.interpret(case.inputs)
    divides = any(part.operator == "/" for part in case.term.parts())
    _same("the plan", result.output, expected, divides=divides)
    _same("the plan's own meaning", own, expected, divides=divides)
    for name, value in case.inputs.items():
        if not np.array_equal(before[name], value):
            raise Wrong(f"the input {name} was written")


def _same(what: str, given: Any, expected: Any, *, divides: bool) -> None:
    if given.shape != expected.shape:
        raise Wrong(f"{what} has shape {given.shape}, numpy {expected.shape}")
    if divides:
        finite = np.isfinite(given) & np.isfinite(expected)
        good = np.allclose(given[finite], expected[finite], rtol=1e-4, atol=1e-4)
    else:
        good = np.array_equal(given, expected, equal_nan=given.dtype.kind == "f")
    if not good:
        raise Wrong(f"{what} differs from numpy:\n{given.tolist()}\n{expected.tolist()}")
