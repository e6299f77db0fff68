"""Dense programs x directives x shapes x types.

A program has one to three dimensions (boxes, triangles, bands, parallelograms, negative minima),
reads arrays at affine and other places, sums or takes the largest along zero to two reduction
loops, follows a recurrence, or has a function between its input and its output.  Directives are
drawn one after the other with little care: where they are refused, the longest legal beginning is
judged.  The oracle is ``naive``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import t2s
from benchmarks.hunt import naive
from benchmarks.hunt.choices import Choices
from benchmarks.hunt.judge import graph_agrees
from benchmarks.hunt.naive import DTYPES, Loop, Stage
from benchmarks.hunt.verdict import Kind, Verdict, Wrong, verdict_of

TYPES = tuple(DTYPES)


@dataclass(slots=True)
class Program:
    """A program as lines of text, and what its stages mean."""

    choices: Choices
    type: str
    header: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    directives: list[str] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)
    operands: list[str] = field(default_factory=list)
    params: int = 0

    @property
    def floating(self) -> bool:
        return "Float" in self.type

    def text(self, directives: int | None = None) -> str:
        chosen = self.directives[:directives]
        return "\n".join([*self.header, *self.body, *chosen])

    def operand(self, rank: int) -> str:
        name = f"A{len(self.operands)}"
        self.operands.append(name)
        self.header.append(f"{name} = ImageParam({self.type}, {rank}, name={name!r})")
        return name


Pair = tuple[str, str]
"""A value in the language and in Python."""


@dataclass(slots=True)
class Formulas:
    """Draws values over the points of a nest."""

    program: Program
    points: list[dict[str, int]]
    variables: list[str]

    def constant(self) -> Pair:
        c = self.program.choices
        number: float = c.between(0, 5)
        if self.program.floating and c.chance(3):
            number += 0.5
        text = f"{float(number)}" if self.program.floating else f"{int(number)}"
        return text, f"T[{self.program.type!r}]({text})"

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
        plain = not c.chance(3) and len(self.variables) >= rank
        indices = c.shuffled(self.variables)[:rank] if plain else []
        if plain:
            lows = [min(point[v] for point in self.points) for v in indices]
            indices = [
                f"{v} + {-low}" if low < 0 else v for v, low in zip(indices, lows, strict=True)
            ]
        else:
            indices = [self.subscript() for _ in range(rank)]
        text = f"{self.program.operand(len(indices))}[{', '.join(indices)}]"
        if c.chance(6):
            return self.guarded(text)
        return text, text

    def guarded(self, text: str) -> Pair:
        """A read that looks behind the edge of its array, where it is not looked at."""
        c = self.program.choices
        if not self.variables:
            return text, text
        v = c.one_of(self.variables)
        least = min(point[v] for point in self.points)
        name = self.program.operand(1)
        other, python = self.constant()
        read = f"{name}[{v} - {least} - 1]" if least >= 0 else f"{name}[{v} + {-least - 1}]"
        condition = f"{v} > {least}"
        return (
            f"t2s.select({condition}, {read}, {other})",
            f"({read} if {condition} else {python})",
        )

    def condition(self, deep: int) -> Pair:
        c = self.program.choices
        kind = c.below(3)
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
        if deep <= 0:
            return self.constant() if c.chance(6) else self.read()
        kind = c.below(10)
        if kind < 6:
            signs = ["*", "+", "*", "-"]
            sign = c.one_of(signs)
            left, right = self.value(deep - 1), self.value(deep - 1)
            return f"({left[0]} {sign} {right[0]})", f"({left[1]} {sign} {right[1]})"
        if kind == 6:
            name = c.one_of(["max", "min"])
            left, right = self.value(deep - 1), self.value(deep - 1)
            numpy_name = {"max": "np.maximum", "min": "np.minimum"}[name]
            return f"t2s.{name}({left[0]}, {right[0]})", f"{numpy_name}({left[1]}, {right[1]})"
        if kind == 7:
            test, yes, no = self.condition(deep - 1), self.value(deep - 1), self.value(deep - 1)
            return (
                f"t2s.select({test[0]}, {yes[0]}, {no[0]})",
                f"({yes[1]} if {test[1]} else {no[1]})",
            )
        if kind == 8 and self.variables:
            v = c.one_of(self.variables)
            return (
                f"t2s.cast({self.program.type}, {v})",
                f"cast(T[{self.program.type!r}], np.int32({v}))",
            )
        left = self.value(deep - 1)
        if self.program.floating:
            return f"({left[0]} / 2.0)", f"({left[1]} / T[{self.program.type!r}](2.0))"
        sign, number = c.one_of(["//", "%"]), c.between(2, 3)
        return (
            f"({left[0]} {sign} {number})",
            f"({left[1]} {sign} T[{self.program.type!r}]({number}))",
        )


def loops_of(c: Choices, names: str) -> list[Loop]:
    """A box, or dimensions that depend on the ones outside of them."""
    loops: list[Loop] = []
    for name in names:
        extent = c.between(1, 5)
        minimum = c.one_of(["0", "0", "0", "0", "1", "-2"])
        if loops and c.chance(3):
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


def generate(c: Choices) -> Program:
    """Draw a program."""
    program = Program(c, c.one_of(("Int(32)", "Float(32)", *TYPES)))
    rank = c.one_of([2, 1, 2, 3])
    loops = loops_of(c, "ijl"[:rank])
    program.header.append(
        ", ".join(loop.name for loop in loops)
        + ", = "
        + ", ".join(f"Var({loop.name!r})" for loop in loops)
        + ","
    )
    kind = c.below(8)
    if kind < 4:
        _reduction(program, loops)
    elif kind < 6:
        _elementwise(program, loops)
    elif kind == 6:
        _recurrence(program, loops)
    else:
        _two(program, loops)
    for loop in loops:
        program.body.append(f"F.bound({loop.name}, {loop.minimum}, {loop.extent})")
    _schedule(program, loops)
    return program


def _elementwise(program: Program, loops: list[Loop]) -> None:
    names = [loop.name for loop in loops]
    value = Formulas(program, naive.points(tuple(loops)), names).value(2)
    program.body.append(f"F = Func('F', type={program.type})")
    program.body.append(f"F[{', '.join(names)}] = {value[0]}")
    program.stages.append(Stage(name="F", dtype=program.type, loops=tuple(loops), value=value[1]))


def _reduction(program: Program, loops: list[Loop]) -> None:
    c = program.choices
    names = [loop.name for loop in loops]
    points = naive.points(tuple(loops))
    reduction: list[Loop] = []
    for name in "kr"[: c.one_of([1, 1, 2])]:
        extent, minimum = str(c.between(1, 5)), c.one_of(["0", "0", "0", "1"])
        if c.chance(4):
            v = c.one_of(names)
            low, high = min(p[v] for p in points), max(p[v] for p in points)
            extent = c.one_of([f"{v} + {1 - low}", f"{high + 1} - {v}"])
        reduction.append(Loop(name=name, minimum=minimum, extent=extent))
    inside = naive.points((*loops, *reduction))
    first = Formulas(program, points, names)
    start = first.constant() if not c.chance(4) else first.read()
    term = Formulas(program, inside, [*names, *(loop.name for loop in reduction)]).value(
        c.one_of([1, 1, 2])
    )
    # an RDom that the update does not mention is no loop of it
    reduction = [loop for loop in reduction if re.search(rf"\b{loop.name}\b", term[0])]
    for loop in reduction:
        program.body.append(
            f"{loop.name} = RDom({loop.minimum}, {loop.extent}, name={loop.name!r})"
        )
    program.body.append(f"F = Func('F', type={program.type})")
    target = f"F[{', '.join(names)}]"
    program.body.append(f"{target} = {start[0]}")
    form = c.below(8)
    if form < 6:
        program.body.append(f"{target} += {term[0]}")
        combine = "was + new"
    else:
        name = ["max", "min"][form - 6]
        program.body.append(f"{target} = t2s.{name}({target}, {term[0]})")
        combine = f"np.{name}imum(was, new)"
    program.stages.append(
        Stage(
            name="F",
            dtype=program.type,
            loops=tuple(loops),
            value=start[1],
            reduction=tuple(reduction),
            term=term[1],
            combine=combine,
        )
    )


def _recurrence(program: Program, loops: list[Loop]) -> None:
    """F at a point from F at one before it along one dimension."""
    c = program.choices
    names = [loop.name for loop in loops]
    points = naive.points(tuple(loops))
    there = {tuple(p[n] for n in names) for p in points}
    v = c.one_of(names)
    least = min(p[v] for p in points)
    before = [f"{n} - 1" if n == v else n for n in names]
    if any(p[v] > least and tuple(p[n] - (n == v) for n in names) not in there for p in points):
        _elementwise(program, loops)
        return
    start, more = Formulas(program, points, names).read(), Formulas(program, points, names).value(1)
    sign = c.one_of(["+", "-"])
    previous = f"F[{', '.join(before)}]"
    program.body.append(f"F = Func('F', type={program.type})")
    first = f"{v} == {least}"
    program.body.append(
        f"F[{', '.join(names)}] = t2s.select({first}, {start[0]}, {previous} {sign} {more[0]})"
    )
    value = f"({start[1]} if {v} == {least} else {previous} {sign} {more[1]})"
    program.stages.append(Stage(name="F", dtype=program.type, loops=tuple(loops), value=value))


def _two(program: Program, loops: list[Loop]) -> None:
    """A function that the output reads at one or two places."""
    c = program.choices
    names = [loop.name for loop in loops]
    points = naive.points(tuple(loops))
    inner = Formulas(program, points, names).value(1)
    program.body.append(f"G = Func('G', type={program.type})")
    program.body.append(f"G[{', '.join(names)}] = {inner[0]}")
    program.body.append(f"F = Func('F', type={program.type})")
    here = f"G[{', '.join(names)}]"
    value = Formulas(program, points, names).value(1)
    sign = c.one_of(["+", "*"])
    twice = c.chance(2)
    text = f"{here} {sign} {value[0]}" + (f" - {here}" if twice else "")
    python = f"{here} {sign} {value[1]}" + (f" - {here}" if twice else "")
    program.body.append(f"F[{', '.join(names)}] = {text}")
    program.stages += [
        Stage(name="G", dtype=program.type, loops=tuple(loops), value=inner[1]),
        Stage(name="F", dtype=program.type, loops=tuple(loops), value=python),
    ]


def _schedule(program: Program, loops: list[Loop]) -> None:
    """Directives, drawn one after the other."""
    c = program.choices
    main = program.stages[-1]
    order = [loop.name for loop in (*main.loops, *main.reduction)][::-1]
    say = program.directives.append
    unrolled: list[str] = []
    fresh = 0
    for _ in range(c.below(4)):
        kind = c.below(3)
        if kind == 0:
            v, factor = c.one_of(order), c.between(1, 4)
            inner = f"{v}{fresh}"
            fresh += 1
            program.header.append(f"{inner} = Var({inner!r})")
            say(f"F.split({v}, {v}, {inner}, {factor})")
            order.insert(order.index(v), inner)
        elif kind == 1:
            order = c.shuffled(order)
            say(f"F.reorder({', '.join(order)})")
        elif not unrolled:
            unrolled = c.some(order, 2)
            if unrolled and c.chance(5):
                say(f"F.space_time_transform({', '.join(unrolled)})")
            elif unrolled:
                say(f"F.unroll({', '.join(unrolled)})")
    if c.chance(6) and len(order) >= 2:
        _transform(program, order)
    loaders: list[tuple[str, str]] = []
    for name in program.operands:
        if c.chance(2):
            chain = [f"{name}_{at}" for at in range(c.between(1, 2))]
            for function in chain:
                program.header.append(f"{function} = Func({function!r})")
            say(f"F.isolate_producer_chain({name}, {', '.join(chain)})")
            loaders.append((chain[0], chain[-1]))
    if c.chance(2):
        count = c.between(1, 2)
        for at in range(count):
            program.header.append(f"D{at} = Func('D{at}')")
        say(f"F.isolate_consumer_chain({', '.join(f'D{at}' for at in range(count))})")
        if unrolled and count == 2 and c.chance(3):
            say(f"D0.gather(F, {c.one_of(unrolled)})")
    for first, last in loaders:
        kind = c.below(7)
        if kind in (1, 2) and unrolled:
            say(f"F.forward({last}, {c.one_of(unrolled)})")
        elif kind == 3 and unrolled and first != last:
            say(f"{last}.scatter({first}, {c.one_of(unrolled)})")
        elif kind == 4 and first != last:
            loop = c.one_of(order)
            say(f"{first}.remove({loop})")
            say(f"{last}.buffer({first}, {c.one_of(order)})")
        elif kind == 5:
            say(f"F.buffer({last}, {c.one_of(order)})")
    if c.chance(6) and program.operands:
        say(f"F.vload({', '.join(c.some(program.operands) or program.operands[:1])})")
        if c.chance(2):
            say("F.vstore(F)")


def _transform(program: Program, order: list[str]) -> None:
    """A schedule: one or two loops become a place and a time."""
    c = program.choices
    u, v = c.shuffled(order)[:2]
    program.header.append("p, t = Var('p'), Var('t')")
    place = c.one_of([u, v])
    time = c.one_of([f"{u} + {v}", f"2 * {u} + {v}", f"{u} + 3 * {v}", u, v])
    program.directives.append(f"F.space_time_transform([{u}, {v}], {{p: {place}, t: {time}}})")


def executed(text: str) -> Any:
    """Run a program's text as a user's file; its output."""
    names: dict[str, Any] = {"t2s": t2s}
    exec("from t2s import BFloat, Float, Func, ImageParam, Int, RDom, UInt, Var", names)
    exec(compile(text, "<program>", "exec"), names)
    return names["F"]


def _legal_beginning(program: Program) -> tuple[str, Any, Verdict | None]:
    """The longest beginning that is legal: its text, its graph, and why the whole is not."""
    refusal: Verdict | None = None
    for count in range(len(program.directives), -1, -1):
        text = program.text(count)
        try:
            graph = t2s.lower(executed(text))
        except t2s.T2SError as error:
            verdict = verdict_of(error)
            if verdict.kind.bad:
                return text, None, verdict
            refusal = refusal or verdict
            continue
        return text, graph, refusal
    return program.text(0), None, refusal


def judge(choices: Choices, hardware: bool) -> tuple[str, Verdict]:
    """Draw a program and judge it."""
    program = generate(choices)
    try:
        text, graph, verdict = _legal_beginning(program)
        if graph is None:
            return text, verdict or Verdict(kind=Kind.LEGAL)
    except Exception as error:  # noqa: BLE001 - every exception is a finding
        return program.text(), verdict_of(error)
    try:
        inputs = _inputs(graph, choices)
        expected, _ = naive.computed(tuple(program.stages), inputs, "F")
        oracle = t2s.interpret(executed(text), inputs)
        _same("interpret and plain loops", oracle, expected)
        graph_agrees(graph, inputs, {"F": expected}, hardware=hardware)
    except Exception as error:  # noqa: BLE001 - every exception is a finding
        found = verdict_of(error)
        if found.kind is Kind.REFUSED:
            found = Verdict(kind=Kind.WRONG, detail=f"late: {found.detail}", text=found.text)
        return text, found
    return program.text(), verdict or Verdict(kind=Kind.LEGAL)


def _same(what: str, given: Any, expected: Any) -> None:
    if given.shape != expected.shape or given.dtype != expected.dtype:
        raise Wrong(
            f"{what} differ in shape or type: {given.shape} {given.dtype}, {expected.shape}"
        )
    if not np.array_equal(given, expected, equal_nan=given.dtype.kind not in "iub"):
        raise Wrong(f"{what} differ\n{given}\n{expected}")


def _inputs(graph: t2s.Graph, choices: Choices) -> dict[str, Any]:
    generator = np.random.default_rng(len(choices.taken))
    found: dict[str, Any] = {}
    for tensor in graph.tensors:
        if tensor.role.value == "input":
            low = 0 if tensor.type.numpy.kind == "u" else -4
            numbers = generator.integers(low, 9, tensor.shape)
            found[tensor.array] = numbers.astype(tensor.type.numpy)
    return found


Judged = Callable[[Choices, bool], tuple[str, Verdict]]
