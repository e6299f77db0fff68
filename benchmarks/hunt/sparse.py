"""Sparse expressions x formats x schedules x types.

An expression has up to four operands with up to three variables each, in sums, products,
differences, quotients, minima and maxima with parentheses; any formats and orders of modes; any
order of loops, splits, lanes, vectors, fused loops, skipping, located operands and workspaces.
The oracle is numpy over all variables at once, with the rule of the documentation for sums: each
term that the additions at the top join is summed over its own variables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.hunt.choices import Choices
from benchmarks.hunt.verdict import Kind, Verdict, Wrong, verdict_of
from t2s import UserError, sparse

VARIABLES = "ijkl"
DTYPES = ("float64", "float64", "float32", "int32", "int64", "int16", "uint8", "int8", "bool")


@dataclass(frozen=True, slots=True)
class Term:
    """A formula: an operator with two sides, an operand with its variables, or a number."""

    operator: str
    sides: tuple[Term, ...] = ()
    name: str = ""
    variables: str = ""
    number: int = 0

    def __str__(self) -> str:
        if self.operator == "operand":
            return f"{self.name}({','.join(self.variables)})" if self.variables else self.name
        if self.operator == "number":
            return str(self.number)
        left, right = self.sides
        if self.operator in ("min", "max"):
            return f"{self.operator}({left},{right})"
        return f"({left}{self.operator}{right})"

    def uses(self) -> set[str]:
        """The variables in it."""
        return set(self.variables).union(*(side.uses() for side in self.sides))

    def value(self, arrays: Mapping[str, Any], order: str) -> Any:
        """Over all variables of ``order``, one axis each; what is missing has one element."""
        if self.operator == "number":
            return np.array(self.number).reshape((1,) * len(order))[()]
        if self.operator == "operand":
            array = arrays[self.name]
            axes = sorted(
                range(len(self.variables)), key=lambda at: order.index(self.variables[at])
            )
            shape = [1] * len(order)
            for at, name in enumerate(self.variables):
                shape[order.index(name)] = array.shape[at]
            return np.transpose(array, axes).reshape(shape)
        left, right = (side.value(arrays, order) for side in self.sides)
        match self.operator:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
            case "/":
                return left / right
            case "min":
                return np.minimum(left, right)
        return np.maximum(left, right)


@dataclass(slots=True)
class Case:
    """An assignment, formats, a schedule and inputs."""

    text: str
    formats: dict[str, str]
    schedule: str
    shapes: dict[str, list[int]]
    inputs: dict[str, Any]
    term: Term
    result: str
    extents: dict[str, int]
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        arrays = "\n".join(
            f"{name} = np.array({value.tolist()}, {value.dtype.name!r}).reshape({value.shape})"
            for name, value in self.inputs.items()
        )
        names = ", ".join(f"{name!r}: {name}" for name in self.inputs)
        return (
            f"{arrays}\nkernel = sparse.compile(\n"
            f"    sparse.parse({self.text!r}, {self.formats}, {self.shapes}),\n"
            f"    {self.schedule!r},\n)\n"
            f"sparse.simulate(kernel, {{{names}}}, **{self.options})"
        )

    def expected(self) -> Any:
        """The result, dense."""
        order = "".join(sorted(self.extents))
        total: Any = None
        for sign, term in _terms(self.term):
            axes = tuple(
                at for at, v in enumerate(order) if v in term.uses() and v not in self.result
            )
            value = np.asarray(term.value(self.inputs, order))
            value = value.sum(axis=axes, keepdims=True) if axes else value
            value = -value if sign < 0 else value
            total = value if total is None else total + value
        shape = [self.extents[v] if v in self.result else 1 for v in order]
        total = np.broadcast_to(total, shape)
        kept = [v for v in order if v in self.result]
        total = total.reshape([self.extents[v] for v in kept])
        return np.transpose(total, [kept.index(v) for v in self.result])


def _terms(term: Term) -> list[tuple[int, Term]]:
    """What the additions at the top join, with signs."""
    if term.operator in ("+", "-"):
        left, right = term.sides
        sign = 1 if term.operator == "+" else -1
        return _terms(left) + [(sign * s, t) for s, t in _terms(right)]
    return [(1, term)]


def _format(c: Choices, order: int, letters: str) -> str:
    text = "".join(c.one_of(letters) for _ in range(order))
    if order > 1 and c.chance(4):
        text += ":" + ",".join(map(str, c.shuffled(range(order))))
    return text


def generate(c: Choices) -> Case:
    """Draw a case."""
    names = VARIABLES[: c.one_of([2, 1, 2, 3, 3, 4])]
    extents = {v: (0 if c.chance(25) else c.between(1, 6)) for v in names}
    leaves: list[Term] = []
    dtype = c.one_of(DTYPES)
    inputs: dict[str, Any] = {}
    formats: dict[str, str] = {}
    generator = np.random.default_rng(c.below(1 << 20))
    for name in "ABCD"[: c.between(1, 4)]:
        modes = c.shuffled(names)[: c.one_of([2, 1, 2, 3, 0])]
        leaves.append(Term("operand", name=name, variables="".join(modes)))
        formats[name] = _format(c, len(modes), "dsssdubtl")
        kind = dtype if not c.chance(6) else c.one_of(DTYPES)
        shape = tuple(extents[v] for v in modes)
        full = c.one_of([0.5, 0.3, 1.0, 0.0])
        array = generator.integers(1, 5, shape) * (generator.random(shape) < full)
        if kind.startswith(("float", "int")) and c.chance(4):
            array = array * generator.choice([-1, 1], shape)
        inputs[name] = np.asarray(array).astype(kind)
    term = _draw(c, leaves, c.between(0, 3))
    used = [leaf.name for leaf in leaves if leaf.name in str(term)]
    modes = c.shuffled(names)[: c.one_of([1, 2, 1, 0, 3])]
    formats = {name: formats[name] for name in used if formats[name]}
    left = f"X({','.join(modes)})" if modes else "X"
    if modes:
        formats["X"] = _format(c, len(modes), c.one_of(["d", "s", "ds", "dsub"]))
    options: dict[str, Any] = {}
    if c.chance(4):
        options["capacity"] = c.one_of([64, 16, 2])
    case = Case(
        text=f"{left} = {term}",
        formats=formats,
        schedule=_schedule(c, leaves, names, used),
        shapes={"X": [extents[v] for v in modes]} if modes else {},
        inputs={name: inputs[name] for name in used},
        term=term,
        result="".join(modes),
        extents=extents,
        options=options,
    )
    return case


def _draw(c: Choices, leaves: list[Term], deep: int) -> Term:
    if deep == 0:
        if c.chance(12):
            return Term("number", number=c.between(1, 4))
        return c.one_of(leaves)
    operator = c.one_of(["*", "+", "*", "-", "+", "*", "min", "max", "*", "/"])
    left = _draw(c, leaves, c.between(0, deep - 1))
    return Term(operator, (left, _draw(c, leaves, deep - 1)))


def _schedule(c: Choices, leaves: list[Term], names: str, used: list[str]) -> str:
    said = ["transpose()"]
    loops = list(names)
    if c.chance(5):
        at = c.below(len(loops))
        said.append(f"split({loops[at]},o,n,{c.between(1, 3)})")
        loops[at : at + 1] = ["o", "n"]
    if c.chance(2):
        loops = c.shuffled(loops)
        said.append(f"reorder({','.join(loops)})")
    if c.chance(4):
        leaf = c.one_of(leaves)
        if leaf.variables and leaf.name in used:
            said.append(f"locate({leaf.name},{c.one_of(leaf.variables)})")
    if c.chance(6) and len(loops) > 1:
        at = c.below(len(loops) - 1)
        said.append(f"fuse({loops[at]},{loops[at + 1]},f)")
        loops[at : at + 2] = ["f"]
    if c.chance(4):
        said.append(f"parallelize({c.one_of(loops)},{c.between(2, 4)})")
    if c.chance(6):
        said.append(f"vectorize({c.one_of(loops)},{c.between(2, 3)})")
    if c.chance(8):
        said.append(f"skip({c.one_of(loops)})")
    return ", ".join(said)


def judge(choices: Choices, hardware: bool) -> tuple[str, Verdict]:
    """Draw a case and judge it."""
    case = generate(choices)
    try:
        _judge(case, hardware)
    except Exception as error:  # noqa: BLE001 - every exception is a finding
        return str(case), verdict_of(error)
    return str(case), Verdict(kind=Kind.LEGAL)


def _judge(case: Case, hardware: bool) -> None:
    assignment = sparse.parse(case.text, case.formats, case.shapes)
    try:
        kernel = sparse.compile(assignment, case.schedule)
    except UserError:
        kernel = sparse.compile(assignment, "transpose()")  # a schedule that does not fit
    with np.errstate(all="ignore"):
        expected = case.expected()
        for level in ("notation", "loops", "blocks"):
            _same(level, kernel.interpret(case.inputs, level=level), expected)
    native = kernel.simulate(case.inputs, **case.options)
    python = kernel.simulate(case.inputs, engine="python", **case.options)
    _same("native engine", native.output, expected)
    _same("plain engine", python.output, expected)
    if native.cycles != python.cycles:
        raise Wrong(f"cycles of native: {native.cycles}, plain engine {python.cycles}")
    for one, other in zip(native.stages, python.stages, strict=True):
        if str(one.stalls) != str(other.stalls):
            raise Wrong(f"stalls of native\n{one.stalls}\n{other.stalls}")
    if hardware:
        run = kernel.verilate(case.inputs, **case.options)
        _same("SystemVerilog", run.output, expected)
        if run.cycles != python.cycles:
            raise Wrong(f"cycles of SystemVerilog: {run.cycles}, plain engine {python.cycles}")


def _same(what: str, given: Any, expected: Any) -> None:
    """Equal but for the rounding of quotients; NaN is NaN."""
    given, expected = np.asarray(given), np.asarray(expected)
    if given.shape != expected.shape:
        raise Wrong(f"{what}: shapes differ\n{given.shape} {expected.shape}")
    if not np.allclose(
        given.astype(np.float64), expected.astype(np.float64), rtol=1e-5, equal_nan=True
    ):
        raise Wrong(f"{what}: values differ\n{given}\n{expected}")
