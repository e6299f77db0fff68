"""Designs as text: the text makes an equal design, and prints as itself."""

from __future__ import annotations

import dataclasses
import json
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import t2s
from benchmarks.hunt import dense
from benchmarks.hunt.choices import Choices
from t2s import BFloat, Bool, Float, Func, ImageParam, Int, Param, Place, RDom, UInt, Var
from t2s.command.design import find_design
from t2s.errors import UnsupportedError
from t2s.func.expressions import Expression
from tests.sources import ROOT
from tests.test_verbs import product

NO_DENSE_DESIGN = (
    "external",
    "graphs",
    "models",
    "processes",
    "sam",
    "spmv",
    "stardust",
    "notebooks",
)
SPARSE_CGRA = ("spmv", "public_gemm")
EXAMPLES = [
    path
    for path in sorted((ROOT / "examples").glob("*/*.py"))
    if path.parent.name not in NO_DENSE_DESIGN and path.stem not in SPARSE_CGRA
]


def again(text: str, folder: Path) -> Any:
    """The design that a text makes, as the command finds it."""
    file = folder / "made.py"
    file.write_text(text, encoding="utf-8")
    found = find_design(file, None).design
    assert isinstance(found, tuple)
    return found if len(found) > 1 else found[0]


def without_lines(value: Any) -> Any:
    match value:
        case dict():
            return {k: without_lines(v) for k, v in value.items() if k != "location"}
        case list():
            return [without_lines(item) for item in value]
    return value


def assert_same(design: Any, folder: Path, constants: dict[str, int] | None = None) -> str:
    """Print a design, make it of its text, and compare; returns the text."""
    text = t2s.program(design)
    made = again(text, folder)
    assert t2s.program(made) == text
    assert all(len(line) <= 100 for line in text.splitlines())
    graphs = [t2s.lower(each, constants or {}) for each in (design, made)]
    first, second = (without_lines(json.loads(graph.to_json())) for graph in graphs)
    assert first == second
    return text


def of_value(value: Callable[[dict[str, Any]], Any], type: t2s.Type | None = None) -> Func:
    """A Func with a value of the inputs of all types at ``i``."""
    i = Var("i")
    types = {
        "a": Int(8),
        "b": Int(32),
        "c": Int(64),
        "u": UInt(8),
        "x": Float(32),
        "y": Float(64),
        "h": BFloat(),
        "p": Bool(),
    }
    elements = {name: ImageParam(t, 1, name=name)[i] for name, t in types.items()}
    f = Func("f", type=type)
    f[i] = value({**elements, "i": i})
    return f.bound(i, 0, 4)


VALUES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a[i] + b[i]": lambda e: e["a"] + e["b"],
    "a[i] - (a[i] - 1)": lambda e: e["a"] - (e["a"] - 1),
    "(a[i] + 1) * -3": lambda e: (e["a"] + 1) * -3,
    "-a[i] // 2 % 3": lambda e: -e["a"] // 2 % 3,
    "-(a[i] + 1)": lambda e: -(e["a"] + 1),
    "a[i] << 1 & 3 | b[i] ^ 5": lambda e: e["a"] << 1 & 3 | e["b"] ^ 5,
    "~((a[i] > 0) & ~p[i] | (b[i] == 1))": lambda e: ~((e["a"] > 0) & ~e["p"] | (e["b"] == 1)),
    "(a[i] < 0) == p[i]": lambda e: (e["a"] < 0) == e["p"],
    'x[i] * 2.0 + float("inf")': lambda e: e["x"] * 2 + math.inf,
    't2s.max(x[i], -float("inf"))': lambda e: t2s.max(e["x"], -math.inf),
    't2s.select(i > 2, x[i], float("nan"))': lambda e: t2s.select(e["i"] > 2, e["x"], math.nan),
    "h[i] * 0.5 - 0.0": lambda e: e["h"] * 0.5 - 0.0,
    "y[i] * t2s.cast(Float(64), t2s.cast(Float(32), 0.5))": lambda e: e["y"] * np.float32(0.5),
    "c[i] + t2s.cast(Int(64), x[i])": lambda e: e["c"] + t2s.cast(Int(64), e["x"]),
    "t2s.cast(Int(8), 3)": lambda e: t2s.cast(Int(8), 3),
    "-t2s.cast(Int(8), 3)": lambda e: -t2s.cast(Int(8), 3),
    "t2s.cast(Int(8), 3) < a[i]": lambda e: t2s.cast(Int(8), 3) < e["a"],
    "t2s.select(p[i], 1, 2) + a[i]": lambda e: t2s.select(e["p"], 1, 2) + e["a"],
    "t2s.select(p[i], 1, 2)": lambda e: t2s.select(e["p"], 1, 2),
    "u[i] + 200 >> 1": lambda e: e["u"] + 200 >> 1,
    "t2s.fma(x[i], x[i], 1.0) / t2s.sqrt(x[i])": lambda e: (
        t2s.fma(e["x"], e["x"], 1.0) / t2s.sqrt(e["x"])
    ),
    "t2s.tanh(t2s.exp(x[i]) - t2s.log(x[i])) * t2s.rsqrt(x[i])": lambda e: (
        t2s.tanh(t2s.exp(e["x"]) - t2s.log(e["x"])) * t2s.rsqrt(e["x"])
    ),
    "t2s.floor(x[i]) + t2s.ceil(x[i]) + t2s.abs(t2s.min(x[i], 1.0))": lambda e: (
        t2s.floor(e["x"]) + t2s.ceil(e["x"]) + abs(t2s.min(e["x"], 1.0))
    ),
}


@pytest.mark.parametrize("part", range(2))
def test_expressions(part: int, tmp_path: Path) -> None:
    """With the text that a person would write; inf is -inf by a sign, which is one constant."""
    for expected, value in list(VALUES.items())[part::2]:
        text = assert_same(of_value(value), tmp_path)
        spelled = expected.replace('-float("inf")', 'float("-inf")')
        line = next(line for line in text.splitlines() if line.startswith("f[i] = "))
        assert line == f"f[i] = {spelled}"


def test_a_shared_value_gets_a_name(tmp_path: Path) -> None:
    def doubled(e: dict[str, Any]) -> Expression:
        value: Expression = e["x"]
        for _ in range(60):
            value = value * value + 1.0
        return value

    assert len(t2s.program(of_value(doubled))) < 5_000
    assert_same(of_value(lambda e: sum((e["x"] * n for n in range(90)), e["x"])), tmp_path)


def test_names(tmp_path: Path) -> None:
    """Objects keep their names, whatever Python calls them."""
    index, k = Var("lambda"), RDom(0, 4, name="t2s")
    A, B = ImageParam(Float(32), 1, name="Func"), ImageParam(Float(32), 1, name="design")
    G, H = Func("float"), Func("__name__")
    G[index] = 0.0
    G[index] += A[index + k] * math.inf
    k2 = RDom(0, 3, name="t2s")
    H[index] = 0.0
    H[index] += G[index + k2] + B[k2]
    H.bound(index, 0, 2).isolate_producer(B, Func("lambda_2")).unroll(index)
    text = assert_same(H, tmp_path)
    assert 'lambda_2 = Var("lambda")' in text
    assert 't2s_3 = RDom(0, 3, name="t2s")' in text


def matrices(type: t2s.Type, n: int = 8) -> tuple[Func, Any, Any, Any, Any, Any]:
    A, B = ImageParam(type, 2, name="A", shape=(n, n)), ImageParam(type, 2, name="B")
    i, j, k = Var("i"), Var("j"), RDom(0, n, name="k")
    C = Func("C")
    C[i, j] = 0
    C[i, j] += A[i, k] * B[k, j]
    return C.bound(i, 0, n).bound(j, 0, n), A, B, i, j, k


def test_directives(tmp_path: Path) -> None:
    C, A, B, i, j, k = matrices(Float(32))
    ii, jj, it, jt, jo = t2s.variables("ii jj it jt jo")
    loader, feeder, unloader = t2s.funcs("A_loader A_feeder C_unloader")
    host = Func("A_host", place=Place.HOST)
    C.tile(j, i, jt, it, 2, 2).reorder([jt, it, k], j, i).split(i, i, ii, 2).split(j, jo, jj, 2)
    C.reassociate().unroll(ii, jj)
    C.isolate_producer_chain(A, host, loader, feeder).forward(feeder, jj, depth=7)
    loader.remove(jt).depth(5)
    feeder.buffer(loader, k, double=False).scatter(loader, ii, reverse=True)
    C.isolate_consumer(unloader)
    text = t2s.program(C)
    assert "C.forward(A_feeder, jj, depth=7)" in text
    assert "A_feeder.buffer(A_loader, k, double=False)" in text
    assert 'A_host = Func("A_host", place=t2s.Place.HOST)' in text
    assert t2s.program(again(text, tmp_path)) == text
    C, _, _, i, j, _ = matrices(Int(32), 4)
    p, t = t2s.variables("p t")
    C.space_time_transform([i, j], {p: i, t: i + 2 * j})
    assert "C.space_time_transform([i, j], {p: i, t: i + 2 * j})" in assert_same(C, tmp_path)
    C, A, B, i, j, k = matrices(Int(32), 4)
    C.fuse(j, i, p).isolate_producer(A[i, k] * B[k, j], Func("loader"))
    assert_same(C, tmp_path)


def test_chains(tmp_path: Path) -> None:
    C, A, B, i, j, k = matrices(Int(32))
    ii, jj = t2s.variables("ii jj")
    C.tile(j, i, jj, ii, 4, 4).unroll(ii)
    A >> t2s.host("A_s") >> t2s.dram("A_l") >> t2s.sram("A_f", scope=k, depth=9) >> C
    B >> t2s.dram("B_l", depth=3) >> t2s.registers("B_f") >> C
    C >> t2s.registers("C_d", gather=ii) >> t2s.dram("C_u", lanes=None) >> t2s.host("C_s")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", t2s.errors.T2SWarning)  # a small buffer
        text = assert_same(C, tmp_path)
    assert (
        'A >> t2s.host("A_s") >> t2s.dram("A_l") >> t2s.sram("A_f", scope=k, depth=9) >> C' in text
    )


def test_several_outputs_parameters_and_systems(tmp_path: Path) -> None:
    """Outputs keep their order; a cycle of Funcs names its output."""
    n, i, r = Param(Int(32), name="n"), Var("i"), RDom(0, 3, name="r")
    v = ImageParam(Float(32), 1, name="v")
    low, high = t2s.funcs("low high")
    low[i], high[i] = v[i], v[i]
    low[i] = t2s.min(low[i], v[i + r])
    high[i] = t2s.max(high[i], v[i + r])
    low.bound(i, 0, n)
    high.bound(i, 0, n)
    assert "design = (low, high)" in assert_same((low, high), tmp_path, {"n": 4})
    M, D = Func("M", type=Int(32)), Func("D", type=Int(32))
    j = Var("j")
    D[i, j] = t2s.select((i == 0) | (j == 0), 0, M[i - 1, j - 1]) + 1
    M[i, j] = t2s.max(D[i, j], t2s.select(i == 0, 0, M[i - 1, j]))
    M.bound(i, 0, 6).bound(j, 0, 5)
    assert "design = M" in assert_same(M, tmp_path)
    triangle, below = Func("triangle"), RDom(0, i + 1, name="below")
    y, x = RDom(0, 3, 0, 2, name="y x")
    triangle[i] = 0.0
    triangle[i] += v[below] * v[y + x]
    assert 'y, x = RDom(0, 3, 0, 2, name="y x")' in assert_same(triangle.bound(i, 0, 4), tmp_path)


def test_what_no_text_makes_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="cannot be written as a program"):
        t2s.program(product().design)
    C, A, *_ = matrices(Int(32))
    A >> t2s.dram("A_loader") >> t2s.registers("A_feeder") >> C
    C.isolated[0].depth(3)
    C.isolated[0].depth(4)
    with pytest.raises(UnsupportedError, match="A_loader was made by a chain"):
        t2s.program(C)
    name, directive = C.journal[0]
    C.journal[:] = [(name, dataclasses.replace(directive, operand="nowhere"))]
    with pytest.raises(UnsupportedError, match="nowhere, which a directive of C names"):
        t2s.program(C)


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples(path: Path, tmp_path: Path) -> None:
    found = find_design(path, None).design
    assert isinstance(found, tuple)
    assert_same(found if len(found) > 1 else found[0], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_random_designs(part: int, tmp_path: Path) -> None:
    legal = 0
    for number in range(part, 120, 4):
        program = dense.generate(Choices(f"program:{number}"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            text, _, _ = dense.legal_beginning(program)
            design = dense.executed(text)
            try:
                t2s.lower(design, program.given)
            except t2s.errors.UserError:
                continue  # its shapes would have to be declared
            assert_same(design, tmp_path, program.given)
        legal += 1
    assert legal > 20
