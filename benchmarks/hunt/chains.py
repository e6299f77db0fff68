"""Chains of transformations x matrices x products with them.

A chain is blocks, packings and a schedule, drawn with little care; steps that are refused are left
out.  Its storage has to give the matrix back, and a product with it what scipy gives: by numpy, by
both engines to the same cycle, and by hardware on a share.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

import t2s
from benchmarks.hunt.choices import Choices
from benchmarks.hunt.judge import graph_agrees, same
from benchmarks.hunt.run import guarded
from benchmarks.hunt.verdict import Verdict, Wrong
from t2s import Float, Func, ImageParam, Int, Param, RDom, UInt, Var, representation
from t2s.representation import Chain, MatrixParam

TYPES = (Float(32), Int(32), Float(64), Int(64), Int(16), UInt(8), Float(16))


def _steps(c: Choices) -> list[str]:
    """The steps of a chain in text, those that fit."""
    said = ["dense_matrix()"]
    targets, second, fresh = (
        ["Rows", "Columns"],
        "Columns",
        iter(range(99)),
    )

    def extend(step: str) -> bool:
        try:
            _chain([*said, step])
        except t2s.errors.UserError:
            return False
        said.append(step)
        return True

    if c.chance(5) and extend("skew(Columns)"):
        second = "Diagonals"
        targets[1] = second

    def block(factors: list[str]) -> None:
        padding = c.one_of(["Zero", "Longest"])
        name = f"s{next(fresh)}" if c.chance(3) else None
        length = f", Length(Var({name!r}))" if name else ""
        step = f"block({c.one_of(targets)}, {c.one_of(factors)}, {padding}{length})"
        step = step.replace("Var('s", "V('s")
        if extend(step) and name:
            targets.append(f"V({name!r})")

    numbers = ["1", "2", "3", "4"]
    for _ in range(c.below(3)):
        block([*numbers, "Whole"])
    if not c.chance(6):
        first = c.one_of(["Rows", second])
        structure = f"Index(V('s{next(fresh)}'))"
        if not c.chance(4):
            structure += f", Length(V('s{next(fresh)}'))"
        extend(f"pack({first}, {structure})")
        if c.chance(5):
            other = second if first == "Rows" else "Rows"
            extend(f"pack({other}, Index(V('s{next(fresh)}')))")
        for _ in range(c.below(4)):
            block(numbers)
    machines = c.between(1, 5)
    policy = c.one_of(
        [
            "ASAP",
            "ASAP",
            "RoundRobin",
            "LongestFirst",
        ]
    )
    index = f", Index(V('s{next(fresh)}'))" if c.chance(3) or "Longest" in policy else ""
    for target in c.shuffled(targets):
        if extend(f"schedule({target}, {machines}, {policy}, Zero{index})"):
            return said
    return [
        "dense_matrix()",
        "pack(Columns, Index(V('column')), Length(V('length')))",
        f"schedule(Rows, {machines}, {policy}, Zero, Index(V('job')))",
    ]


def _chain(steps: list[str]) -> Chain:
    variables: dict[str, Var] = {}
    names = {**vars(representation), "V": lambda name: variables.setdefault(name, Var(name))}
    return eval(".".join(steps), names)


def _matrix(c: Choices, type: t2s.Type) -> Any:
    rows, columns = c.between(0, 12), c.between(0, 12)
    generator = np.random.default_rng(c.below(1 << 20))
    kept = generator.random((rows, columns)) < c.one_of([0.3, 0.1, 1.0, 0.0])
    kept[generator.random(rows) < c.one_of([0.0, 0.5])] = False
    values = generator.integers(1, 5, (rows, columns))
    array = np.where(kept, values, 0).astype(type.numpy)
    form = c.one_of(["csr_array", "coo_array", "csc_array", "csr_matrix", "lil_array", "dok_array"])
    if min(rows, columns) == 0 or type.numpy.name == "float16":
        return array, array
    return getattr(sparse, form)(array), array


def judge(choices: Choices, hardware: bool) -> tuple[str, Verdict]:
    """Draw a chain, a matrix and a product, and judge them."""
    c = choices
    type = c.one_of(TYPES)
    steps = _steps(c)
    given, array = _matrix(c, type)
    start = c.one_of(["0", "0", "x0", "7", "alpha * x0"])
    factor = c.one_of(["", "", "alpha * "])
    shown = (
        f"{'.'.join(steps)}\n{type}, {array.tolist()} as {given.__class__.__name__}\n"
        f"y[r] = {start}; y[i] += {factor}A.values[p, q] * x[j]"
    )
    return shown, guarded(lambda: _judge(steps, type, given, array, start, factor, hardware))


def _judge(
    steps: list[str],
    type: t2s.Type,
    given: Any,
    array: Any,
    start: str,
    factor: str,
    hardware: bool,
) -> None:
    parameter = MatrixParam(type, 2, _chain(steps), name="A")
    x, x0 = ImageParam(type, 1, name="x"), ImageParam(type, 1, name="x0")
    alpha = Param(type, name="alpha")
    p, q, r = Var("p"), RDom(0, parameter.values.extent(1), name="q"), Var("r")
    i, j = parameter.inverse_map(p, q)
    y = Func("y", type=type)
    y[r] = {"0": 0, "x0": x0[r], "7": 7, "alpha * x0": alpha * x0[r]}[start]
    term = parameter.values[p, q] * x[j]
    y[i] += alpha * term if factor else term
    rows, columns = array.shape
    vector = (np.arange(columns) % 5).astype(type.numpy)
    others = (np.arange(rows) % 3).astype(type.numpy)
    scale = type.numpy.type(2)
    with np.errstate(all="ignore"):
        wide = np.int64 if type.is_integer else np.float64
        product = (array.astype(wide) @ vector.astype(wide)) * (2 if factor else 1)
        first = {"0": 0, "x0": others, "7": 7, "alpha * x0": 2 * others}[start]
        expected = (product + first).astype(type.numpy)
    inputs: dict[str, Any] = {"A": given, "x": vector}
    if "x0" in start:
        inputs["x0"] = others
    if "alpha" in start or factor:
        inputs["alpha"] = scale
    same("interpret", t2s.interpret(y, inputs), expected)
    graph = t2s.lower(y, {"A": given})
    arrays = {
        **{n: v for n, v in inputs.items() if n != "A"},
        **t2s.representation.structure(y, {"A": given}),
    }
    for name, engine in (("native engine", "native"), ("plain engine", "python")):
        result = t2s.simulate(y, inputs, engine=engine, progress=False)
        same(name, result.outputs["y"], expected)
    if result.cycles != t2s.simulate(graph, arrays, progress=False).cycles:
        raise Wrong("cycles of a graph and of its Func differ")
    graph_agrees(graph, arrays, {"y": expected}, hardware=hardware)
