"""Sparse expressions x formats x schedules x types.

An expression has up to four operands with up to three variables each, diagonals and the old values
of the result among them, in sums, products, differences, quotients, minima, maxima and sums within,
over any semiring; any formats and orders of modes; and every directive of the language.  The oracle
is numpy over all variables at once (``notation``).  Every third case compiles for the native engine
too, which takes longer than all the rest of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.hunt import notation
from benchmarks.hunt.choices import Choices
from benchmarks.hunt.notation import PLUS_TIMES, RINGS, Ring, Term
from benchmarks.hunt.run import guarded
from benchmarks.hunt.verdict import Verdict, Wrong
from t2s import sparse
from t2s.errors import UserError
from tests.simulator.memory.plain_memories import independent_memories

VARIABLES = "ijkl"
DTYPES = (
    *("float64", "float64", "float32", "int32", "int64", "int16", "uint8", "int8", "bool"),
    *("uint16", "uint32", "uint64", "float16"),
)


@dataclass(slots=True)
class Case:
    """An assignment, formats, directives and inputs."""

    text: str
    formats: dict[str, str]
    directives: list[str]
    shapes: dict[str, list[int]]
    inputs: dict[str, Any]
    term: Term
    result: str
    extents: dict[str, int]
    ring: Ring
    native: bool
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        arrays = "\n".join(
            f"{name} = np.array({value.tolist()}, {value.dtype.name!r}).reshape({value.shape})"
            for name, value in self.inputs.items()
        )
        names = ", ".join(f"{name!r}: {name}" for name in self.inputs)
        formats = ", ".join(
            f"{name!r}: {f'sparse.{text}' if '(' in text else repr(text)}"
            for name, text in self.formats.items()
        )
        return (
            f"from numpy import inf, nan\n{arrays}\nkernel = sparse.compile(\n"
            f"    sparse.parse({self.text!r}, {{{formats}}}, {self.shapes}),\n"
            f"    {', '.join(self.directives)!r}, semiring=sparse.{self.ring.name},\n)\n"
            f"sparse.simulate(kernel, {{{names}}}, **{self.options})"
        )

    def expected(self) -> Any:
        """The result, dense."""
        return notation.computed(self.term, self.inputs, self.extents, self.result, self.ring)

    def compiled(self) -> sparse.Kernel:
        """The kernel; directives that do not fit the ones before them are left out."""
        formats = {
            name: eval(text, {"bcsr": sparse.bcsr}) if "(" in text else text
            for name, text in self.formats.items()
        }
        assignment = sparse.parse(self.text, formats, self.shapes)
        semiring = getattr(sparse, self.ring.name)
        drawn, self.directives = self.directives, ["transpose()"]
        kernel = sparse.compile(assignment, "transpose()", semiring=semiring)
        for directive in drawn:
            if directive.startswith("transpose"):  # all others are tried with it as well
                kept = [directive, *self.directives[1:]]
            else:
                kept = [*self.directives, directive]
            try:
                kernel = sparse.compile(assignment, ", ".join(kept), semiring=semiring)
            except UserError:
                continue
            self.directives = kept
        return kernel


def generate(c: Choices) -> Case:
    """Draw a case."""
    names = VARIABLES[: c.one_of([2, 1, 2, 3, 3, 4])]
    extents = {v: (0 if c.chance(25) else c.between(1, 6)) for v in names}
    ring = c.one_of(RINGS) if c.chance(8) else PLUS_TIMES
    dtype = c.one_of(DTYPES)
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
        formats[name] = _format(c, len(modes), "dsssdubtl")
        kind = dtype if not c.chance(6) else c.one_of(DTYPES)
        inputs[name] = _values(c, generator, tuple(extents[v] for v in modes), kind, ring)
    if result:
        formats["X"] = _format(c, len(result), c.one_of(["d", "s", "ds", "dsub", "dsubtl"]))
    if c.chance(15):
        leaves.append(Term("operand", name="X", variables=result))
        inputs["X"] = _values(c, generator, tuple(extents[v] for v in result), dtype, ring)
    term = notation.drawn(c, leaves, result, ring, c.between(0, 3))
    used = {part.name for part in term.parts()}
    return Case(
        text=f"{Term('operand', name='X', variables=result)} = {term}",
        formats={n: text for n, text in formats.items() if text and n in {*used, "X"}},
        directives=_directives(c, [leaf for leaf in leaves if leaf.name in used], names, term),
        shapes={"X": [extents[v] for v in result]} if result else {},
        inputs={name: inputs[name] for name in inputs if name in used},
        term=term,
        result=result,
        extents=extents,
        ring=ring,
        native=c.chance(3),
        options=_options(c),
    )


def _options(c: Choices) -> dict[str, Any]:
    """Now and then small channels, or a DRAM."""
    options: dict[str, Any] = {"capacity": c.one_of([64, 16, 2])} if c.chance(4) else {}
    return options | ({"memory": c.one_of(["ddr4-2133", "hbm2e"])} if c.chance(4) else {})


def _format(c: Choices, order: int, letters: str) -> str:
    if order == 2 and c.chance(10):
        return f"bcsr({c.between(1, 3)}, {c.between(1, 3)})"
    text = "".join(c.one_of(letters) for _ in range(order))
    if order > 1 and c.chance(8):
        text = "u" + "c" * (order - 2) + "q"  # COO
    if order > 1 and c.chance(4):
        text += ":" + ",".join(map(str, c.shuffled(range(order))))
    return text


def _values(c: Choices, generator: Any, shape: tuple[int, ...], kind: str, ring: Ring) -> Any:
    """Values of a type, some of them not stored; now and then any number of an integer type."""
    type = np.dtype(kind)
    high = 2 if kind in ("float16", "bool") else 5
    there = generator.random(shape) < c.one_of([0.5, 0.3, 1.0, 0.0])
    array = generator.integers(1, high, shape)
    if type.kind in "iu" and c.chance(8):
        limits = np.iinfo(type)
        array = generator.integers(limits.min, limits.max, shape, dtype=type, endpoint=True)
    elif type.kind in "fi" and ring == PLUS_TIMES and c.chance(4):
        array = array * generator.choice([-1, 1], shape)
    zero = ring.zero if type.kind == "f" else 0
    return np.where(there, np.asarray(array).astype(type), type.type(zero))


def _directives(c: Choices, leaves: Sequence[Term], names: str, term: Term) -> list[str]:
    """Directives of every kind; those that do not fit are left out when the case is compiled."""
    said, loops = [], list(names)
    leaves = [leaf for leaf in leaves if leaf.variables]
    parts = [part for part in term.parts() if part.sides]
    quotient = any(part.operator == "/" for part in parts)
    if parts and not quotient and c.chance(6):  # not stored times infinite is 0 in a workspace
        said.append(f"precompute({c.one_of(parts)},T)")
    if c.chance(5):
        at = c.below(len(loops))
        said.append(f"split({loops[at]},o,n,{c.between(1, 3)})")
        loops[at : at + 1] = ["o", "n"]
    if c.chance(2):
        loops = c.shuffled(loops)
        said.append(f"reorder({','.join(loops)})")
    if leaves and c.chance(4):
        leaf = c.one_of(leaves)
        said.append(f"locate({leaf.name},{c.one_of(leaf.variables)})")
    if c.chance(5):
        leaf = c.one_of(leaves) if leaves and c.chance(2) else None
        about = "" if leaf is None else leaf.name
        if leaf is not None and c.chance(2):
            about += f",{c.one_of(leaf.variables)}"
        said.append(f"scan({about})")
    if c.chance(6) and len(loops) > 1:
        at = c.below(len(loops) - 1)
        said.append(f"fuse({loops[at]},{loops[at + 1]},f)")
        loops[at : at + 2] = ["f"]
        if c.chance(3):
            said[-1] += f", split(f,f0,f1,{c.between(1, 3)}), parallelize(f0,{c.between(2, 3)})"
    if c.chance(4):
        said.append(f"parallelize({c.one_of(loops)},{c.between(2, 4)})")
    if c.chance(6):
        said.append(f"vectorize({c.one_of(loops)},{c.between(2, 3)})")
    if c.chance(8):
        said.append(f"skip({c.one_of(loops)})")
    if leaves and c.chance(8):
        said.append(f"transpose({','.join(dict.fromkeys(leaf.name for leaf in leaves))})")
    return said


def judge(choices: Choices, hardware: bool) -> tuple[str, Verdict]:
    """Draw a case and judge it."""
    case = generate(choices)
    verdict = guarded(lambda: _judge(case, hardware))
    return str(case), verdict


def _judge(case: Case, hardware: bool) -> None:
    kernel = case.compiled()
    given = [
        kernel.interpret(case.inputs, level=level) for level in ("notation", "loops", "blocks")
    ]
    own = given[0]
    with np.errstate(all="ignore"):
        expected = case.expected()
        if any(part.operator == "/" for part in case.term.parts()):
            doubt = notation.doubtful(case.term, case.inputs, case.extents, case.result, case.ring)
            given = [np.where(doubt, expected, value) for value in given]
            if divides_by_products(case.term):  # and a product that is zero has no sign
                given = [_not_finite_alike(value, expected) for value in given]
    for level, value in zip(("notation", "loops", "blocks"), given, strict=True):
        _same(level, value, expected)
    for level in ("loops", "blocks"):
        _same(level, kernel.interpret(case.inputs, level=level), own)
    expected = own
    with independent_memories():
        python = kernel.simulate(case.inputs, engine="python", **case.options)
    _same("plain engine", python.output, expected)
    if case.native:
        native = kernel.simulate(case.inputs, **case.options)
        _same("native engine", native.output, expected)
        if native.cycles != python.cycles:
            raise Wrong(f"cycles of native: {native.cycles}, plain engine {python.cycles}")
        for one, other in zip(native.stages, python.stages, strict=True):
            if str(one.stalls) != str(other.stalls):
                raise Wrong(f"stalls of native\n{one.stalls}\n{other.stalls}")
    if hardware and "memory" not in case.options:  # the testbench has no DRAM
        run = kernel.verilate(case.inputs, **case.options)
        _same("SystemVerilog", run.output, expected)
        if run.cycles != python.cycles:
            raise Wrong(f"cycles of SystemVerilog: {run.cycles}, plain engine {python.cycles}")


def divides_by_products(term: Term) -> bool:
    """Whether a product is part of a divisor."""
    return any(
        part.operator == "/" and any(inner.operator == "*" for inner in part.sides[1].parts())
        for part in term.parts()
    )


def _not_finite_alike(given: Any, expected: Any) -> Any:
    """The array, with what is expected where neither is finite.

    Infinities of either sign are then equal, and equal to NaN, the sum of two that differ.
    """
    neither = (
        ~(np.isfinite(given) | np.isfinite(expected)) if given.shape == expected.shape else False
    )
    return np.where(neither, expected, given)


def _same(what: str, given: Any, expected: Any) -> None:
    """Equal, floats but for the order in which they are rounded; NaN is NaN."""
    given = np.asarray(given)
    if (given.shape, given.dtype) != (expected.shape, expected.dtype):
        raise Wrong(
            f"{what}: shapes or types differ\n{given.shape} {given.dtype}\n"
            f"{expected.shape} {expected.dtype}"
        )
    if given.dtype.kind in "iub":
        equal = np.array_equal(given, expected)
    else:
        loose = 2e-2 if given.dtype == np.float16 else 1e-5
        wide = given.astype(np.float64), expected.astype(np.float64)
        equal = np.allclose(*wide, rtol=loose, atol=loose / 1000, equal_nan=True)
    if not equal:
        raise Wrong(f"{what}: values differ\n{given}\n{expected}")
