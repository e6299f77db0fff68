"""Statements x parts x external functions x reshapings: what is accepted has to be right.

A function is one of a pool, or made of the part itself: its variables and tensors are renamed, and
then perhaps one thing is changed, so that it is nearly what the part computes.  Such a function is
run by its own statement, in numpy.  Whatever the matcher accepts is run and compared with numpy,
over all variables at once (``notation``); what it refuses counts as refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.hunt import notation
from benchmarks.hunt.choices import Choices
from benchmarks.hunt.described import drawn_function, function_of_part
from benchmarks.hunt.notation import PLUS_TIMES, RINGS, Ring, Term
from benchmarks.hunt.run import guarded
from benchmarks.hunt.verdict import Verdict, Wrong
from t2s import external, sparse
from t2s.capability.ir import print_capability
from t2s.errors import UserError
from t2s.plan.ir import LoopsStep
from t2s.plan.search import parts_of
from t2s.sparse_repr.notation.ir import (
    print_expression,
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
    second: int

    def __str__(self) -> str:
        arrays = "\n".join(
            f"{name} = np.array({value.tolist()}, {value.dtype.name!r}).reshape({value.shape})"
            for name, value in self.inputs.items()
        )
        how = f"map(..., pad={self.pad}, densify={self.densify})" if self.maps else "bind(...)"
        how += f", and another one ({self.second})" if self.second else ""
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
    function = drawn_function(c, part, formats, ring)
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
        second=c.below(1 << 20) if c.chance(4) else 0,
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
    if case.second:
        plan = _with_another(case, assignment, schedule, plan)
    before = {name: value.copy() for name, value in case.inputs.items()}
    with np.errstate(all="ignore"):
        expected = notation.computed(case.term, case.inputs, case.extents, case.result, case.ring)
        result = _run(plan, case.inputs)
        own = plan.interpret(case.inputs)
    divides = any(part.operator == "/" for part in case.term.parts())
    _same("the plan", result.output, expected, divides=divides)
    _same("the plan's own meaning", own, expected, divides=divides)
    for name, value in case.inputs.items():
        if not np.array_equal(before[name], value):
            raise Wrong(f"the input {name} was written")


def _run(plan: Any, inputs: dict[str, Any]) -> Any:
    """The run of a plan; a function that was given what it does not take is not a refusal."""
    try:
        return plan.run(inputs)
    except UserError as error:
        if error.__cause__ is not None:
            raise Wrong(f"{error.message}\n{plan}") from error
        raise


def _with_another(case: Case, assignment: Any, schedule: Any, plan: Any) -> Any:
    """The plan with another part of what is left computed by a function, or first, if that goes."""
    last = plan.program.steps[-1]
    if not isinstance(last, LoopsStep):
        return plan
    c = Choices(case.second)
    part = c.one_of(parts_of(last.assignment))
    notation_of = sparse.Notation(part, {})
    if c.chance(3):
        longer = schedule.precompute(notation_of, "W")
    else:
        function = function_of_part(c, part, case.formats, case.ring)
        longer = schedule.map(notation_of, function, densify=True)
    try:
        return sparse.compile(assignment, longer, semiring=getattr(sparse, case.ring.name))
    except UserError:
        return plan


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
