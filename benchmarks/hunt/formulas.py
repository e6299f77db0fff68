"""Random values over the points of a nest, in the language and in Python."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.hunt import naive
from benchmarks.hunt.choices import Choices
from benchmarks.hunt.naive import DTYPES, Loop, Stage

TYPES = tuple(name for name in DTYPES if name != "Bool()")


@dataclass(slots=True)
class Program:
    """A program as lines of text, and what its stages mean.

    ``reads`` says which operands a function reads, ``order`` the loops of each function, outermost
    first, with what a loop's bounds depend on in ``depends``.  ``given`` are the values of the
    Params that stand in bounds, ``scalars`` the names of the others.  ``rough`` is set where some
    operator is not computed to the last bit by definition, ``reassociated`` where sums may be
    computed in another order.
    """

    choices: Choices
    type: str
    header: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    directives: list[str] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)
    operands: list[str] = field(default_factory=list)
    reads: dict[str, list[str]] = field(default_factory=dict)
    depends: dict[str, frozenset[str]] = field(default_factory=dict)
    outputs: tuple[str, ...] = ("F",)
    given: dict[str, int] = field(default_factory=dict)
    scalars: list[str] = field(default_factory=list)
    reduction_loops: frozenset[str] = frozenset()
    rough: bool = False
    unread: dict[str, Any] = field(default_factory=dict)

    def text(self, directives: int | None = None) -> str:
        chosen = self.directives[:directives]
        lines = [*self.header, *self.body, *chosen]
        if len(self.outputs) > 1:
            lines.append(f"F = {', '.join(self.outputs)}")
        return "\n".join(lines)

    def operand(self, rank: int, type: str, reader: str) -> str:
        name = f"A{len(self.operands)}"
        self.operands.append(name)
        self.reads.setdefault(reader, []).append(name)
        self.header.append(f"{name} = ImageParam({type}, {rank}, name={name!r})")
        return name

    def declared(self, refusal: str) -> bool:
        """Give an input that no iteration reads a shape, if that is why the program is refused."""
        found = re.match(r"ImageParam (\w+) is never read", refusal)
        if found is None:
            return False
        name = found[1]
        for at, line in enumerate(self.header):
            if line.startswith(f"{name} = "):
                rank = int(line.split(", ")[1])
                shape = (30,) * rank
                self.header[at] = line.replace(", name=", f", shape={shape}, name=")
                dtype = DTYPES[line.split("(", 1)[1].rsplit(f", {rank},", 1)[0]]
                self.unread[name] = np.zeros(shape, dtype)
        return True

    def extent(self, number: str) -> str:
        """The text of a constant extent, which a Param may stand for."""
        c = self.choices
        if not number.isdigit() or not c.chance(8):
            return number
        name = f"n{len(self.given)}"
        self.given[name] = int(number)
        self.header.append(f"{name} = Param(Int(32), name={name!r})")
        return name


Pair = tuple[str, str]
"""A value in the language and in Python."""


@dataclass(slots=True)
class Formulas:
    """Draws values of ``type`` over the points of a nest, for the function ``reader``."""

    program: Program
    points: list[dict[str, int]]
    variables: list[str]
    type: str
    reader: str = "F"

    @property
    def floating(self) -> bool:
        return "Float" in self.type

    def constant(self) -> Pair:
        c = self.program.choices
        if c.chance(8):
            return self.scalar()
        number: float = c.between(0, 5)
        if self.floating and c.chance(3):
            number += 0.5
        text = f"{float(number)}" if self.floating else f"{int(number)}"
        return text, f"T[{self.type!r}]({text})"

    def scalar(self) -> Pair:
        """A Param that is an input."""
        program = self.program
        name = f"s{len(program.scalars)}"
        program.scalars.append(name)
        program.header.append(f"{name} = Param({self.type}, name={name!r})")
        return name, name

    def subscript(self) -> str:
        """An index, at least 0 everywhere."""
        c = self.program.choices
        if not self.variables:
            return str(c.below(3))
        u, v = c.one_of(self.variables), c.one_of(self.variables)
        form = c.one_of(
            [u, u, u, f"{u} + {v}", f"{u} - {v}", f"2 * {u}", f"{u} // 2", f"{u} % 3", "0"]
        )
        least = min(eval(form, {}, point) for point in self.points)
        offset = max(0, -least) + (c.below(2) if c.chance(3) else 0)
        return f"{form} + {offset}" if offset else form

    def read(self) -> Pair:
        c = self.program.choices
        rank = c.one_of([2, 1, 2, 3] if len(self.variables) > 1 else [1, 1, 2])
        if c.chance(20):
            rank = 0
        plain = not c.chance(3) and len(self.variables) >= rank
        indices = c.shuffled(self.variables)[:rank] if plain else []
        if plain:
            lows = [min(point[v] for point in self.points) for v in indices]
            indices = [
                f"{v} + {-low}" if low < 0 else v for v, low in zip(indices, lows, strict=True)
            ]
        else:
            indices = [self.subscript() for _ in range(rank)]
        return self.element(", ".join(indices), len(indices))

    def element(self, subscripts: str, rank: int) -> Pair:
        """An element of a new input, which may be of another type, or behind a condition."""
        c = self.program.choices
        if rank == 0:
            return self.scalar()
        if c.chance(10):
            other = c.one_of((*TYPES, "Bool()"))
            text = f"{self.program.operand(rank, other, self.reader)}[{subscripts}]"
            if other != self.type:
                return f"t2s.cast({self.type}, {text})", f"cast(T[{self.type!r}], {text})"
            return text, text
        found = self.guarded() if c.chance(8) else None
        if found is not None:
            return found
        text = f"{self.program.operand(rank, self.type, self.reader)}[{subscripts}]"
        return text, text

    def guarded(self) -> Pair | None:
        """A read that looks behind the edge of its array, where it is not looked at."""
        c = self.program.choices
        if not self.variables:
            return None
        v = c.one_of(self.variables)
        least = min(point[v] for point in self.points)
        if least == max(point[v] for point in self.points):
            return None
        name = self.program.operand(1, self.type, self.reader)
        other, python = self.constant()
        read = f"{name}[{v} - {least} - 1]" if least >= 0 else f"{name}[{v} + {-least - 1}]"
        condition = f"{v} > {least}"
        return (
            f"t2s.select({condition}, {read}, {other})",
            f"({read} if {condition} else {python})",
        )

    def condition(self, deep: int) -> Pair:
        c = self.program.choices
        kind = c.below(4)
        if kind == 3 and self.variables:
            rank = 1
            lows = {v: min(point[v] for point in self.points) for v in self.variables}
            indices = [f"{v} + {-lows[v]}" if lows[v] else v for v in self.variables[:rank]]
            name = self.program.operand(rank, "Bool()", self.reader)
            text = f"{name}[{', '.join(indices)}]"
            return (f"~{text}", f"(not {text})") if c.chance(3) else (text, text)
        if kind == 2 or not self.variables:
            left, right = self.value(deep), self.constant()
            sign = c.one_of(["<", ">=", "==", "!="])
            return f"({left[0]}) {sign} {right[0]}", f"({left[1]}) {sign} {right[1]}"
        u, v = c.one_of(self.variables), c.one_of(self.variables)
        text = c.one_of([f"{u} <= {v}", f"{u} > 1", f"({u} + {v}) % 2 == 0", f"{u} != {v} + 1"])
        if kind == 1:
            other = c.one_of([f"{u} < 3", f"{v} >= 0"])
            sign, word = c.one_of([("&", "and"), ("|", "or")])
            return f"({text}) {sign} ({other})", f"({text}) {word} ({other})"
        return text, text

    def value(self, deep: int) -> Pair:
        c = self.program.choices
        if self.type == "Bool()":
            return self.truth(deep)
        if deep <= 0:
            return self.constant() if c.chance(6) else self.read()
        kind = c.below(12)
        if kind < 6:
            sign = c.one_of(["*", "+", "*", "-"])
            left, right = self.value(deep - 1), self.value(deep - 1)
            return f"({left[0]} {sign} {right[0]})", f"({left[1]} {sign} {right[1]})"
        if kind == 6:
            name = c.one_of(["max", "min"])
            left, right = self.value(deep - 1), self.value(deep - 1)
            return f"t2s.{name}({left[0]}, {right[0]})", f"{name}imum({left[1]}, {right[1]})"
        if kind == 7:
            test, yes, no = self.condition(deep - 1), self.value(deep - 1), self.value(deep - 1)
            return (
                f"t2s.select({test[0]}, {yes[0]}, {no[0]})",
                f"({yes[1]} if {test[1]} else {no[1]})",
            )
        if kind == 8 and self.variables:
            v = c.one_of(self.variables)
            return f"t2s.cast({self.type}, {v})", f"cast(T[{self.type!r}], np.int32({v}))"
        if kind == 9:
            return self.converted(deep - 1)
        return self.unary(deep - 1)

    def truth(self, deep: int) -> Pair:
        """A condition as a value."""
        test = self.condition(max(0, deep - 1)) if self.variables or deep else ("", "")
        numbers = Formulas(self.program, self.points, self.variables, "Int(32)", self.reader)
        left, right = numbers.value(max(0, deep - 1)), numbers.value(0)
        text = f"({left[0]}) < ({right[0]})", f"({left[1]}) < ({right[1]})"
        if not test[0] or "T['Bool()']" in test[1]:
            return text
        return f"({test[0]}) & ({text[0]})", f"np.bool_(({test[1]}) and ({text[1]}))"

    def converted(self, deep: int) -> Pair:
        """A value of another type, converted."""
        other = self.program.choices.one_of(TYPES)
        inner = Formulas(self.program, self.points, self.variables, other, self.reader).value(deep)
        return (
            f"t2s.cast({self.type}, {inner[0]})",
            f"cast(T[{self.type!r}], {inner[1]})",
        )

    def unary(self, deep: int) -> Pair:
        c = self.program.choices
        left = self.value(deep)
        if c.chance(4):
            return f"t2s.abs({left[0]})", f"absolute({left[1]})"
        if self.floating:
            name = c.one_of(["half", "half", "sqrt", "exp"])
            if name == "half":
                return f"({left[0]} / 2.0)", f"({left[1]} / T[{self.type!r}](2.0))"
            self.program.rough = True
            inner = (
                f"t2s.{name}({left[0]})" if name == "sqrt" else f"t2s.exp(t2s.min({left[0]}, 2.0))"
            )
            python = (
                f"np.sqrt({left[1]})"
                if name == "sqrt"
                else f"np.exp(np.minimum({left[1]}, T[{self.type!r}](2.0)))"
            )
            return inner, python
        sign, number = c.one_of(["//", "%"]), c.between(2, 3)
        return (
            f"({left[0]} {sign} {number})",
            f"({left[1]} {sign} T[{self.type!r}]({number}))",
        )


def loops_of(c: Choices, names: str) -> list[Loop]:
    """A box, or dimensions that depend on the ones outside of them."""
    loops: list[Loop] = []
    for name in names:
        extent = c.between(1, 5)
        minimum = c.one_of(["0", "0", "0", "0", "1", "-2"])
        if loops and c.chance(4):
            outer = c.one_of([loop.name for loop in loops])
            points = naive.points(tuple(loops))
            high, low = max(p[outer] for p in points), min(p[outer] for p in points)
            minimum, size = c.one_of(
                [
                    (outer, f"{high + 1} - {outer}"),
                    ("0", f"{outer} + {1 - low}"),
                    (outer, str(extent)),
                    (f"{outer} - 1", "3"),
                    ("0", f"{high + 1} - {outer}"),
                    (f"-{outer}", f"{outer} + {1 - low}"),
                ]
            )
            loops.append(Loop(name=name, minimum=minimum, extent=size))
            continue
        loops.append(Loop(name=name, minimum=minimum, extent=str(extent)))
    return loops
