"""Sparse statements with functions, quotients and several stages, and what they cost.

A statement is a matrix or a vector computed in up to four steps: products, masks, scalings,
quotients, functions that map zero to zero, and sums of two.  Its values are compared with numpy,
step by step, and its cycles with those of the same steps as kernels of their own, where each
temporary is dense, or has compressed rows, whichever is better.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.hunt.choices import Choices
from benchmarks.hunt.run import guarded
from benchmarks.hunt.verdict import Verdict, Wrong
from t2s import sparse

ALLOWED = 1.25
"""The formats of the kernels know how full each temporary is, and the compiler's do not: 3 of 550
cases are above 1.05."""

START = 12
"""Cycles that each stage may start later: what a few more channels on the way take."""


@dataclass(slots=True)
class Step:
    """A temporary: its name, its variables, the expression, and the steps that it reads.

    ``text`` has the steps in it as ``{0}``, ``{1}``: a kernel of its own reads their results there,
    the statement as a whole has their expressions.  ``value`` computes it of all arrays.
    """

    name: str
    variables: str
    text: str
    reads: tuple[Step, ...]
    value: Any
    numeric: Any = None

    def access(self) -> str:
        return f"{self.name}({','.join(self.variables)})"

    def inlined(self) -> str:
        """The whole expression."""
        return self.text.format(*(f"({one.inlined()})" for one in self.reads))

    def kernel(self) -> str:
        """The expression of a kernel that reads what those before it have made."""
        return self.text.format(*(one.access() for one in self.reads))


@dataclass(slots=True)
class Case:
    """A statement, its steps in order, and its inputs."""

    steps: list[Step] = field(default_factory=list)
    inputs: dict[str, Any] = field(default_factory=dict)
    formats: dict[str, str] = field(default_factory=dict)
    result: str = ""

    @property
    def text(self) -> str:
        last = self.steps[-1]
        return f"Y({','.join(last.variables)}) = {last.inlined()}"

    def __str__(self) -> str:
        arrays = "\n".join(f"{n} = np.array({v.tolist()})" for n, v in self.inputs.items())
        names = ", ".join(f"{name!r}: {name}" for name in self.inputs)
        kernels = "\n".join(f"# {step.access()} = {step.kernel()}" for step in self.steps)
        return (
            f"{arrays}\n{kernels}\n"
            f"kernel = sparse.compile(sparse.parse({self.text!r}, {self.used(self.text)}))\n"
            f"sparse.simulate(kernel, {{{names}}})"
        )

    def used(self, text: str, more: dict[str, str] | None = None) -> dict[str, str]:
        """The formats of the tensors that a text has."""
        known = {**self.formats, "Y": self.result, **(more or {})}
        return {name: made for name, made in known.items() if made and f"{name}(" in text}


class _Drawing:
    def __init__(self, c: Choices) -> None:
        self.c, self.case, self.count = c, Case(), 0
        self.extents = {v: c.one_of([5, 9, 13, 1, 17, 24]) for v in "ijkl"}
        self.generator = np.random.default_rng(c.below(1 << 20))
        self.summed = list("mnopqrs")
        self.extents |= {v: c.one_of([6, 11, 3, 16]) for v in self.summed}

    def leaf(self, variables: str, *, sparse_only: bool = False, nonzero: bool = False) -> str:
        """A new operand."""
        c, name = self.c, "ABCDEFGHKLMNOPQRSTUVWXZ"[len(self.case.inputs)]
        shape = tuple(self.extents[v] for v in variables)
        letters = c.one_of(["ds", "ss", "dd"] if len(variables) == 2 else ["d", "s"])
        if sparse_only:
            letters = "ds" if len(variables) == 2 else "s"
        if nonzero:
            letters = "d" * len(variables)
        dense = all(letter == "d" for letter in letters)
        share = 1.0 if dense else c.one_of([0.3, 0.1, 0.6])
        values = self.generator.integers(1, 9, shape) * self.generator.choice([-1.0, 1.0], shape)
        values = np.where(self.generator.random(shape) < share, values, 0.0)
        if not dense and len(shape) == 2 and c.chance(2):
            values[self.generator.random(shape[0]) < 0.3] = 0  # empty rows
        if nonzero and c.chance(4):
            values[self.generator.random(shape) < 0.1] = 0
        self.case.inputs[name], self.case.formats[name] = values, letters
        return name

    def operand(self, variables: str, deep: int) -> tuple[str, tuple[Step, ...], Any]:
        """A new operand or a step: how it is read, the steps, and its value."""
        if deep <= 0 or len(self.case.steps) > 3 or self.c.chance(3):
            name = self.leaf(variables)
            return f"{name}({','.join(variables)})", (), self.case.inputs[name]
        step = self.step(variables, deep - 1)
        return "{0}", (step,), step.value

    def step(self, variables: str, deep: int) -> Step:
        c = self.c
        kinds = ["product", "product", "function", "scaled", "quotient", "masked", "sum"]
        text, reads, value = getattr(self, f"_{c.one_of(kinds)}")(variables, deep)
        self.count += 1
        made = Step(f"T{self.count}", variables, text, reads, value)
        self.case.steps.append(made)
        return made

    def _product(self, variables: str, deep: int) -> Any:
        over = self.summed.pop()
        left, right = variables[:1], variables[1:]
        name = self.leaf(left + over)
        text, reads, value = self.operand(over + right, deep)
        with np.errstate(all="ignore"):
            product = self.case.inputs[name] @ value
        return f"sum({over}, {name}({left},{over})*{text})", reads, product

    def _function(self, variables: str, deep: int) -> Any:
        text, reads, value = self.operand(variables, deep)
        form, function = self.c.one_of(
            [
                ("max({},0)", lambda v: np.where(v < 0, 0, v)),
                ("min({},0)", lambda v: np.where(v > 0, 0, v)),
                ("max({}-1.5,0)", lambda v: np.where(v - 1.5 < 0, 0, v - 1.5)),
                ("max(min({},6),0)", lambda v: np.clip(v, 0, 6)),
                ("max({0},1)", lambda v: np.where(v < 1, 1, v)),
            ]
        )
        with np.errstate(all="ignore"):
            return form.replace("{0}", "{}").replace("{}", text), reads, function(value)

    def _scaled(self, variables: str, deep: int) -> Any:
        text, reads, value = self.operand(variables, deep)
        at = self.c.below(len(variables))
        name = self.leaf(variables[at])
        shape = [-1 if n == at else 1 for n in range(len(variables))]
        with np.errstate(all="ignore"):
            scaled = value * self.case.inputs[name].reshape(shape)
        return f"{text}*{name}({variables[at]})", reads, scaled

    def _quotient(self, variables: str, deep: int) -> Any:
        text, reads, value = self.operand(variables, deep)
        at = self.c.below(len(variables))
        name = self.leaf(variables[at], nonzero=True)
        shape = [-1 if n == at else 1 for n in range(len(variables))]
        with np.errstate(all="ignore"):
            divided = value / self.case.inputs[name].reshape(shape)
        return f"{text}/{name}({variables[at]})", reads, divided

    def _masked(self, variables: str, deep: int) -> Any:
        text, reads, value = self.operand(variables, deep)
        name = self.leaf(variables, sparse_only=True)
        with np.errstate(all="ignore"):
            masked = self.case.inputs[name] * value
        return f"{name}({','.join(variables)})*{text}", reads, masked

    def _sum(self, variables: str, deep: int) -> Any:
        text, reads, value = self.operand(variables, deep)
        name = self.leaf(variables)
        with np.errstate(all="ignore"):
            total = value + self.case.inputs[name]
        return f"({text}+{name}({','.join(variables)}))", reads, total


def generate(c: Choices) -> Case:
    """Draw a case."""
    drawing = _Drawing(c)
    variables = c.one_of(["ij", "ij", "i"])
    drawing.step(variables, c.between(1, 3))
    case = drawing.case
    case.result = c.one_of(["", "ds"]) if variables == "ij" else c.one_of(["", "s"])
    return case


def judge(choices: Choices, hardware: bool) -> tuple[str, Verdict]:
    """Draw a case and judge it."""
    case = generate(choices)
    return str(case), guarded(lambda: _judge(case))


def _judge(case: Case) -> None:
    kernel = sparse.compile(sparse.parse(case.text, case.used(case.text)), "transpose()")
    expected = case.steps[-1].value
    certain = np.isfinite(expected)
    for step in case.steps:  # what is not stored is not divided: 0/0 is 0 there
        if not np.isfinite(step.value).all():
            certain = np.zeros_like(certain)
    result = kernel.simulate(case.inputs, engine="python")
    found = {level: kernel.interpret(case.inputs, level=level) for level in ("notation", "blocks")}
    found["engine"] = result.output
    for what, value in found.items():
        _same(what, value[certain], expected[certain])
        _same(what, value, found["notation"])
    best = min(_sequence(case, dense=share) for share in (0.5, 2))
    allowed = ALLOWED * best + START * len(result.stages)
    if result.cycles > allowed:
        stages = ", ".join(f"{stage.graph} {stage.cycles}" for stage in result.stages)
        raise Wrong(
            f"more cycles than as kernels\n{result.cycles} ({stages}), and {best} as kernels\n"
            f"{kernel}"
        )


def _sequence(case: Case, dense: float) -> int:
    """The cycles of all steps, one kernel after the other.

    A temporary with that share of values is dense; of others the rows are.
    """
    cycles, made, stored = 0, dict(case.inputs), dict[str, str]()
    for step in case.steps:
        text = f"{step.access()} = {step.kernel()}"
        full = np.count_nonzero(step.value) >= dense * step.value.size
        stored[step.name] = "d" * (len(step.variables) - 1) + ("d" if full else "s")
        kernel = sparse.compile(sparse.parse(text, case.used(text, stored)), "transpose()")
        read = {tensor.name for tensor in kernel.assignment.tensors} - {step.name}
        result = kernel.simulate({name: made[name] for name in read}, engine="python")
        made[step.name] = result.tensor
        cycles += result.cycles
    return cycles


def _same(what: str, given: Any, expected: Any) -> None:
    with np.errstate(all="ignore"):
        equal = given.shape == expected.shape and np.allclose(given, expected, equal_nan=True)
    if not equal:
        raise Wrong(f"{what}: values differ\n{given}\n{expected}")
