"""Pipelines of two to four Funcs over ragged sizes and mixed types, as users write them.

A stage multiplies by a matrix, adds neighbors, scales and clamps to a narrower type, sums or takes
the largest of each row and puts it beside each element, or transposes; it reads the stage before
it, now and then an earlier one too, and inputs of other types.  Extents are mostly odd, so splits
and vectors rarely divide them.  All numbers are small integers, also as floats, so that numpy
computes each stage to the last bit in whatever order, and every consumer of the graph has to agree.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

import t2s
from benchmarks.hunt.choices import Choices
from benchmarks.hunt.dense import executed, judged
from benchmarks.hunt.directives import schedule
from benchmarks.hunt.formulas import Program
from benchmarks.hunt.judge import graph_agrees, same
from benchmarks.hunt.naive import DTYPES, Loop, Stage
from benchmarks.hunt.verdict import Verdict

EXTENTS = (5, 3, 7, 1, 9, 11, 13, 4, 6, 2)
NARROW = {"Int(8)": (-128, 127), "UInt(8)": (0, 255), "Int(16)": (-32768, 32767)}
INTEGERS = ("Int(32)", "Int(8)", "UInt(8)", "Int(16)", "Int(64)")
FLOATS = ("Float(32)", "Float(64)", "Int(8)", "UInt(8)", "Int(16)")


@dataclass(slots=True)
class Value:
    """A function or an input: how it is read, and its numbers."""

    name: str
    type: str
    array: Any

    def at(self, *indices: str, wide: str) -> str:
        """It at some place, in the wide type."""
        read = f"{self.name}[{', '.join(indices)}]"
        return read if self.type == wide else f"t2s.cast({wide}, {read})"


@dataclass(slots=True)
class Pipeline:
    """A program that grows stage by stage."""

    program: Program
    wide: str
    inputs: dict[str, Any] = field(default_factory=dict)
    values: list[Value] = field(default_factory=list)
    count: int = 0

    @property
    def dtype(self) -> Any:
        return DTYPES[self.wide]

    def input(self, reader: str, *shape: int) -> Value:
        """A new input of any type of the family."""
        c = self.program.choices
        type = c.one_of(FLOATS if "Float" in self.wide else INTEGERS)
        name = self.program.operand(len(shape), type, reader)
        generator = np.random.default_rng(c.below(1 << 16))
        low = 0 if type.startswith("UInt") else -1
        self.inputs[name] = generator.integers(low, 3, shape).astype(DTYPES[type])
        return Value(name, type, self.inputs[name])

    def extent(self) -> int:
        return self.program.choices.one_of(EXTENTS)

    def add(
        self,
        name: str,
        type: str,
        array: Any,
        lines: list[str],
        indices: str = "ij",
        over: dict[str, int] | None = None,
    ) -> Value:
        """A function of these lines, with its loops for directives."""
        self.program.body += [
            *(f"{v} = RDom(0, {n}, name={v!r})" for v, n in (over or {}).items()),
            f"{name} = Func({name!r}, type={type})",
            *lines,
        ]
        loops = tuple(
            Loop(name=v, minimum="0", extent=str(n))
            for v, n in zip(indices, array.shape, strict=True)
        )
        reduction = tuple(Loop(name=v, minimum="0", extent=str(n)) for v, n in (over or {}).items())
        self.program.stages.append(
            Stage(name=name, dtype=type, loops=loops, value="", reduction=reduction)
        )
        value = Value(name, type, array)
        if len(array.shape) == 2:
            self.values.append(value)
        return value

    def fresh(self, last: bool) -> str:
        """The name of the next function; the output is F."""
        self.count += 1
        return "F" if last else f"G{self.count}"

    def reduction(self) -> str:
        return f"k{self.count}"

    def matrix_product(self, before: Value, name: str) -> None:
        """Times a matrix, from the right; the inputs may be transposed."""
        wide, k = self.wide, self.reduction()
        rows, inner = before.array.shape
        columns = self.extent()
        turned = self.program.choices.chance(3)
        weights = self.input(name, *((columns, inner) if turned else (inner, columns)))
        read = weights.at(*(("j", k) if turned else (k, "j")), wide=wide)
        matrix = weights.array.T if turned else weights.array
        array = before.array.astype(self.dtype) @ matrix.astype(self.dtype)
        self.add(
            name,
            wide,
            array.reshape(rows, columns),
            [f"{name}[i, j] = 0", f"{name}[i, j] += {before.at('i', k, wide=wide)} * {read}"],
            over={k: inner},
        )

    def neighbors(self, before: Value, name: str) -> None:
        """The sum of an element and the next ones, of a smaller array."""
        c, wide = self.program.choices, self.wide
        rows, columns = before.array.shape
        down, right = c.below(min(rows, 3)), c.below(min(columns, 3))
        array = before.array.astype(self.dtype)
        total = array[: rows - down, : columns - right] + array[down:, right:]
        here = before.at("i", "j", wide=wide)
        there = before.at(f"i + {down}" if down else "i", f"j + {right}", wide=wide)
        self.add(name, wide, total, [f"{name}[i, j] = {here} + {there}"])

    def requantized(self, before: Value, name: str) -> None:
        """Scaled by the column and clamped to a narrow type."""
        wide = self.wide
        type = self.program.choices.one_of(tuple(NARROW))
        low, high = NARROW[type]
        scale = self.input(name, before.array.shape[1])
        value = f"{before.at('i', 'j', wide=wide)} * {scale.at('j', wide=wide)}"
        array = before.array.astype(self.dtype) * scale.array.astype(self.dtype)
        self.add(
            name,
            type,
            np.clip(array, low, high).astype(DTYPES[type]),
            [f"{name}[i, j] = t2s.cast({type}, t2s.max(t2s.min({value}, {high}), {low}))"],
        )

    def beside_its_row(self, before: Value, name: str) -> None:
        """Each element beside the sum, or the largest, of its row: two functions."""
        wide, k, row = self.wide, self.reduction(), f"R{self.count}"
        array = before.array.astype(self.dtype)
        read = before.at("i", k, wide=wide)
        if self.program.choices.chance(2):
            lines = [f"{row}[i] = -1000", f"{row}[i] = t2s.max({row}[i], {read})"]
            rows = array.max(axis=1)
        else:
            lines = [f"{row}[i] = 0", f"{row}[i] += {read}"]
            rows = array.sum(axis=1, dtype=self.dtype)
        self.add(row, wide, rows, lines, indices="i", over={k: array.shape[1]})
        self.add(
            name,
            wide,
            array - rows[:, None],
            [f"{name}[i, j] = {before.at('i', 'j', wide=wide)} - {row}[i]"],
        )

    def transposed(self, before: Value, name: str) -> None:
        """The other way round, and a bias for each row."""
        wide = self.wide
        bias = self.input(name, before.array.shape[1])
        array = before.array.T.astype(self.dtype) + bias.array.astype(self.dtype)[:, None]
        value = f"{before.at('j', 'i', wide=wide)} + {bias.at('i', wide=wide)}"
        self.add(name, wide, array, [f"{name}[i, j] = {value}"])

    def joined(self, before: Value, name: str) -> None:
        """With an earlier stage, where that is as large, or with another input."""
        wide, shape = self.wide, before.array.shape
        fits = [v for v in self.values if v is not before and v.array.shape == shape]
        other = fits[0] if fits else self.input(name, *shape)
        array = before.array.astype(self.dtype) - other.array.astype(self.dtype)
        value = f"{before.at('i', 'j', wide=wide)} - {other.at('i', 'j', wide=wide)}"
        self.add(name, wide, array, [f"{name}[i, j] = {value}"])


def generate(c: Choices) -> Pipeline:
    """Draw a pipeline with its directives."""
    program = Program(c, "")
    program.header.append("i, j = t2s.variables('i j')")
    pipeline = Pipeline(program, c.one_of(("Int(32)", "Float(32)")))
    count = c.between(2, 4)
    first = pipeline.input("G1", pipeline.extent(), pipeline.extent())
    before = first
    while len(program.stages) < count:
        room = count - len(program.stages)
        kinds = [
            pipeline.matrix_product,
            pipeline.requantized,
            pipeline.neighbors,
            pipeline.joined,
            pipeline.transposed,
            *([pipeline.beside_its_row] if room > 1 else []),
        ]
        kind = c.one_of(kinds)
        takes = 2 if kind == pipeline.beside_its_row else 1
        kind(before, pipeline.fresh(takes == room))
        before = pipeline.values[-1]
    for loop in program.stages[-1].loops:
        program.body.append(f"F.bound({loop.name}, 0, {loop.extent})")
    _directives(pipeline)
    return pipeline


def _directives(pipeline: Pipeline) -> None:
    """Places for functions without a nest of their own, streams between nests, and directives."""
    program = pipeline.program
    c = program.choices
    text = "\n".join(program.body)
    for stage in program.stages[:-1]:
        readers = [
            other.name
            for other in program.stages
            if f"{stage.name}[" in _definition(text, other.name, stage.name)
        ]
        for reader in readers:
            if not stage.reduction:
                program.reads.setdefault(reader, []).append(stage.name)
            elif not c.chance(3):
                program.directives.append(f"{reader}.stream({stage.name})")
    for stage in reversed(program.stages):
        if (stage.reduction or stage.name == "F") and not c.chance(3):
            schedule(program, stage)


def _definition(text: str, reader: str, name: str) -> str:
    """The right sides of what defines a function; nothing for the function itself."""
    if reader == name:
        return ""
    lines = [line for line in text.splitlines() if line.startswith(f"{reader}[")]
    return "\n".join(line.split("= ", 1)[1] for line in lines)


def judge(choices: Choices, hardware: bool) -> tuple[str, Verdict]:
    """Draw a pipeline and judge it."""
    pipeline = generate(choices)
    return judged(pipeline.program, lambda text, graph: _agrees(pipeline, text, graph, hardware))


def _agrees(pipeline: Pipeline, text: str, graph: t2s.Graph, hardware: bool) -> None:
    expected = pipeline.values[-1].array
    same("interpret", t2s.interpret(executed(text), pipeline.inputs), expected)
    graph_agrees(graph, pipeline.inputs, {"F": expected}, hardware=hardware)
