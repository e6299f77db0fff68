"""Dense programs x directives x shapes x types.

A program has zero to three dimensions (boxes, triangles, bands, parallelograms, negative minima),
reads arrays at affine and other places, sums or takes the largest along zero to two reduction
loops, follows a recurrence, or has a function between its input and its output, which may be an
output too.  Directives are drawn one after the other with little care: where they are refused, the
longest legal beginning is judged.  The oracle is ``naive``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import t2s
from benchmarks.hunt import naive
from benchmarks.hunt.choices import Choices
from benchmarks.hunt.directives import schedule
from benchmarks.hunt.formulas import TYPES, Formulas, Program, loops_of
from benchmarks.hunt.judge import graph_agrees
from benchmarks.hunt.naive import Loop, Stage
from benchmarks.hunt.run import guarded
from benchmarks.hunt.verdict import Kind, Verdict, Wrong, verdict_of


def generate(c: Choices) -> Program:
    """Draw a program."""
    program = Program(c, c.one_of(("Int(32)", "Float(32)", *TYPES)))
    rank = 0 if c.chance(16) else c.one_of([2, 1, 2, 3])
    loops = loops_of(c, "ijl"[:rank])
    if loops:
        names = [loop.name for loop in loops]
        program.header.append(f"{', '.join(names)}, = t2s.variables({' '.join(names)!r})")
    kind = c.below(8)
    if kind < 4:
        _reduction(program, "F", loops, "kr")
    elif kind == 4:
        _elementwise(program, loops)
    elif kind == 5 and loops:
        _recurrence(program, loops)
    else:
        _two(program, loops)
    for stage in program.stages if len(program.outputs) > 1 else program.stages[-1:]:
        for loop in stage.loops:
            extent = program.extent(loop.extent)
            program.body.append(f"{stage.name}.bound({loop.name}, {loop.minimum}, {extent})")
    for stage in reversed(program.stages):
        if stage.name == "F" or stage.reduction:
            schedule(program, stage)
    return program


def _index(names: list[str]) -> str:
    return ", ".join(names) or "()"


def _elementwise(program: Program, loops: list[Loop]) -> None:
    c = program.choices
    type = "Bool()" if c.chance(8) else program.type
    names = [loop.name for loop in loops]
    value = Formulas(program, naive.points(tuple(loops)), names, type).value(2)
    program.body.append(f"F = Func('F', type={type})")
    program.body.append(f"F[{_index(names)}] = {value[0]}")
    program.stages.append(Stage(name="F", dtype=type, loops=tuple(loops), value=value[1]))


def _reduction(program: Program, name: str, loops: list[Loop], over: str) -> None:
    """The function ``name``, which sums, or takes the largest, along loops of these names."""
    c = program.choices
    names = [loop.name for loop in loops]
    points = naive.points(tuple(loops))
    reduction: list[Loop] = []
    for inner in over[: c.one_of([1, 1, 2])]:
        extent, minimum = str(c.between(1, 5)), c.one_of(["0", "0", "0", "1"])
        if c.chance(5) and names:
            v = c.one_of(names)
            low, high = min(p[v] for p in points), max(p[v] for p in points)
            extent = c.one_of([f"{v} + {1 - low}", f"{high + 1} - {v}"])
        reduction.append(Loop(name=inner, minimum=minimum, extent=extent))
    inside = naive.points((*loops, *reduction))
    first = Formulas(program, points, names, program.type, name)
    start = first.constant() if not c.chance(4) else first.read()
    variables = [*names, *(loop.name for loop in reduction)]
    terms = Formulas(program, inside, variables, program.type, name)
    term = terms.value(c.one_of([1, 1, 2]))
    # an RDom that the update does not mention is not a loop of it
    reduction = [loop for loop in reduction if re.search(rf"\b{loop.name}\b", term[0])]
    for loop in reduction:
        extent = program.extent(loop.extent)
        program.body.append(f"{loop.name} = RDom({loop.minimum}, {extent}, name={loop.name!r})")
    program.body.append(f"{name} = Func({name!r}, type={program.type})")
    target = f"{name}[{_index(names)}]"
    program.body.append(f"{target} = {start[0]}")
    form = c.below(8)
    if form < 6:
        program.body.append(f"{target} += {term[0]}")
        combine = "was + new"
    else:
        way = ["max", "min"][form - 6]
        program.body.append(f"{target} = t2s.{way}({target}, {term[0]})")
        combine = f"{way}imum(was, new)"
    program.stages.append(
        Stage(
            name=name,
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
    formulas = Formulas(program, points, names, program.type)
    start, more = formulas.read(), formulas.value(1)
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
    """A function that the output reads at one or two places; both may be outputs."""
    c = program.choices
    names = [loop.name for loop in loops]
    points = naive.points(tuple(loops))
    formulas = Formulas(program, points, names, program.type, "G")
    if summed := c.chance(2):
        _reduction(program, "G", loops, "mo")
    else:
        inner = formulas.value(1)
        program.body.append(f"G = Func('G', type={program.type})")
        program.body.append(f"G[{_index(names)}] = {inner[0]}")
        program.stages.append(
            Stage(name="G", dtype=program.type, loops=tuple(loops), value=inner[1])
        )
    program.body.append(f"F = Func('F', type={program.type})")
    here = f"G[{_index(names)}]"
    formulas.reader = "F"
    value = formulas.value(1)
    sign = c.one_of(["+", "*"])
    more = f" - {here}" if c.chance(2) else ""
    program.body.append(f"F[{_index(names)}] = {here} {sign} {value[0]}{more}")
    program.stages.append(
        Stage(
            name="F",
            dtype=program.type,
            loops=tuple(loops),
            value=f"{here} {sign} {value[1]}{more}",
        )
    )
    if c.chance(3):
        program.outputs = ("F", "G")
    if summed and c.chance(2):
        program.directives.append("F.stream(G)")


def executed(text: str) -> Any:
    """Run a program's text as a user's file; its output, or outputs."""
    names: dict[str, Any] = {"t2s": t2s}
    exec(
        "from t2s import BFloat, Bool, Float, Func, ImageParam, Int, Param, RDom, UInt, Var", names
    )
    exec(compile(text, "<program>", "exec"), names)
    return names["F"]


def legal_beginning(program: Program) -> tuple[str, Any, Verdict | None]:
    """The longest beginning that is legal: its text, its graph, and why the whole is not."""
    refusal: Verdict | None = None
    for count in range(len(program.directives), -1, -1):
        text = program.text(count)
        try:
            graph = t2s.lower(executed(text), program.given)
        except t2s.errors.T2SError as error:
            if program.declared(str(error)):
                return legal_beginning(program)
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
    return judged(program, lambda text, graph: _agrees(program, text, graph, hardware))


def judged(program: Program, agrees: Callable[[str, t2s.Graph], None]) -> tuple[str, Verdict]:
    """Judge a program by what its text and its graph compute."""
    try:
        text, graph, verdict = legal_beginning(program)
        if graph is None:
            return text, verdict or Verdict(kind=Kind.LEGAL)
    except Exception as error:  # noqa: BLE001 - every exception is a finding
        return program.text(), verdict_of(error)
    found = guarded(lambda: agrees(text, graph))
    if found.kind is Kind.REFUSED:
        found = replace(found, kind=Kind.WRONG, detail=f"late: {found.detail}")
    if found.kind is not Kind.LEGAL:
        return text, found
    return program.text(), verdict or found


def _agrees(program: Program, text: str, graph: t2s.Graph, hardware: bool) -> None:
    """Plain loops, numpy and the graph; what may round is compared with a tolerance."""
    inputs = _inputs(graph, program.choices)
    known = {**_needed(program, inputs), **program.given}
    design = executed(text)
    oracle = t2s.interpret(design, {**inputs, **program.given, **program.unread})
    arrays = oracle if isinstance(oracle, dict) else {"F": oracle}
    expected = {
        name: naive.computed(tuple(program.stages), known, name)[0] for name in program.outputs
    }
    for name, array in expected.items():
        _same(f"interpret and plain loops, {name}", arrays[name], array, program.rough)
    rounds = "reassociate" in text or "vload" in text
    if not (program.rough and rounds):
        graph_agrees(graph, inputs, arrays, hardware=hardware, close=program.rough)
        return
    values = t2s.simulate(graph, inputs, progress=False).outputs
    for name, array in expected.items():
        _same(f"simulate and plain loops, {name}", values[name], array, True)
    graph_agrees(graph, inputs, None, hardware=hardware, close=True)


def _needed(program: Program, inputs: dict[str, Any]) -> dict[str, Any]:
    """The inputs, and anything for Params that the design does not need."""
    return {**dict.fromkeys(program.scalars, np.int8(0)), **inputs}


def _same(what: str, given: Any, expected: Any, close: bool) -> None:
    if given.shape != expected.shape or given.dtype != expected.dtype:
        raise Wrong(
            f"{what} differ in shape or type: {given.shape} {given.dtype}, {expected.shape}"
        )
    floats = given.dtype.kind not in "iub"
    if close and floats:
        epsilon = 0.1 if given.dtype.itemsize == 2 else 1e-4
        wide, other = given.astype(np.float64), expected.astype(np.float64)
        if np.allclose(wide, other, rtol=epsilon, atol=epsilon, equal_nan=True):
            return
    if close and not floats:
        return  # a rounded number may become another integer, or meet another condition
    if not np.array_equal(given, expected, equal_nan=floats):
        raise Wrong(f"{what} differ\n{given}\n{expected}")


def _inputs(graph: t2s.Graph, choices: Choices) -> dict[str, Any]:
    generator = np.random.default_rng(len(choices.taken))
    found: dict[str, Any] = {}
    for tensor in graph.tensors:
        if tensor.role.value == "input":
            numpy = tensor.type.numpy
            low, high = (0, 9) if numpy.kind == "u" else (-4, 9)
            if numpy.kind == "b":
                low, high = 0, 2
            found[tensor.array] = generator.integers(low, high, tensor.shape).astype(numpy)
    for parameter in graph.parameters:
        found[parameter.name] = parameter.type.numpy.type(generator.integers(0, 5))
    return found
