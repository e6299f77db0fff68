"""Cycle counts as formulas: equal to exact runs in their range, and refused outside of it."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest
import sympy

import t2s
from t2s import Float, Func, ImageParam, Int, Param, RDom, Var
from t2s.devices import DEVICES
from t2s.errors import UserError

n, m, K = (Param(Int(32), name=name) for name in ("n", "m", "K"))
N, M, SIZE_K = (sympy.Symbol(name, integer=True, positive=True) for name in ("n", "m", "K"))


def tiled_copy() -> Func:
    """A pipeline over tiles of 8 elements."""
    x, i, ii, y = ImageParam(Int(32), 1, name="x"), Var("i"), Var("ii"), Func("y")
    y[i] = x[i] + 1
    return y.bound(i, 0, n).split(i, i, ii, 8).unroll(ii)


def row_sums() -> Func:
    """Row i of a triangle has i + 1 elements."""
    x, i, s = ImageParam(Float(32), 1, name="x"), Var("i"), Func("s")
    k = RDom(0, i + 1, name="k")
    s[i] = 0.0
    s[i] += x[k]
    return s.bound(i, 0, n)


def matmul(side: int = 4) -> Func:
    """4 x 4 PEs, whose sums wait for the adder's latency on a real device."""
    A, B = ImageParam(Float(32), 2, name="A"), ImageParam(Float(32), 2, name="B")
    i, j, k, C = Var("i"), Var("j"), RDom(0, K, name="k"), Func("C")
    C[i, j] = 0.0
    C[i, j] += A[i, k] * B[k, j]
    ii, jj = t2s.variables("ii jj")
    A_loader, B_loader = t2s.funcs("A_loader B_loader")
    C.bound(i, 0, n).bound(j, 0, m).split(i, i, ii, side).split(j, j, jj, side)
    C.unroll(ii, jj).isolate_producer(A, A_loader).isolate_producer(B, B_loader)
    return C.forward(A_loader, jj).forward(B_loader, ii)


def test_tiles_that_need_not_be_full() -> None:
    y = tiled_copy()
    formula = t2s.cycles_formula(y, [n])
    assert formula.expression == sympy.ceiling(N / 8) + formula(n=1) - 1
    assert formula.least == {"n": 1}
    for size in (1, 7, 8, 9, 63, 1000):
        assert formula(n=size) == t2s.cycles(y, {"n": size})


def test_a_triangle_is_quadratic() -> None:
    formula = t2s.cycles_formula(row_sums(), [n])
    assert formula.expression == N**2 / 2 + N / 2 + 2
    assert str(formula).startswith("cycles of s on ideal = n**2/2 + n/2 + 2\nfor n >= 1; fitted to")
    assert "n**2/2" in formula._repr_html_()


def test_sums_that_wait_for_an_adder_repeat_after_some_steps() -> None:
    design = matmul()
    formula = t2s.cycles_formula(design, [n, K], {"m": 8}, device="arria10", checks=4)
    assert formula.expression.coeff(SIZE_K) == 8 * sympy.ceiling(N / 4)
    assert formula.least["n"] == 1
    assert formula.least["K"] <= 12
    for size in (5, 130):
        values = {"n": size, "K": formula.least["K"] + 1}
        assert formula(**values) == t2s.cycles(design, {**values, "m": 8}, device="arria10")


@pytest.mark.slow
def test_a_part_that_takes_longest_only_from_a_size_on() -> None:
    """Results of 8 x 8 PEs leave one at a time: sums over 64 and more hide that."""
    C, j, i = matmul(8), Var("jj"), Var("ii")
    collector, unloader = t2s.funcs("collector unloader")
    C.isolate_consumer_chain(collector, unloader)
    collector.gather(C, j)
    collector.gather(C, i)
    formula = t2s.cycles_formula(C, [n, K], {"m": 16}, checks=4)
    assert formula.least == {"n": 1, "K": 64}
    for values in ({"n": 16, "K": 64}, {"n": 30, "K": 500}, {"n": 200, "K": 65}):
        assert formula(**values) == t2s.cycles(C, {**values, "m": 16})


def test_one_size_with_two_tiles_holds_for_their_common_multiples() -> None:
    A, k = ImageParam(Float(32), 2, name="A"), RDom(0, 4, name="k")
    p, q, pp, qq, S = Var("p"), Var("q"), Var("pp"), Var("qq"), Func("S")
    S[p, q] = 0.0
    S[p, q] += A[p, k] * A[q, k]
    S.bound(p, 0, n).bound(q, 0, n).split(p, p, pp, 4).split(q, q, qq, 6).unroll(pp, qq)
    formula = t2s.cycles_formula(S, [n], checks=4)
    assert formula.steps == {"n": 12}
    assert formula(n=36) == t2s.cycles(S, {"n": 36})
    with pytest.raises(UserError, match="n is out of range for the cycles formula of S") as caught:
        formula(n=40)
    assert "expected: a multiple of 12" in str(caught.value)


@pytest.mark.parametrize(
    ("sizes", "problem"),
    [
        ({}, "wrong sizes"),
        ({"n": 8, "m": 8}, "wrong sizes"),
        ({"n": 0}, "n is out of range"),
        ({"n": 2.5}, "n is out of range"),
    ],
)
def test_sizes_outside_of_the_range(sizes: dict[str, Any], problem: str) -> None:
    formula = t2s.cycles_formula(row_sums(), [n])
    with pytest.raises(UserError, match=problem):
        formula(**sizes)


def test_shared_memory_has_no_formula() -> None:
    """64 store units share a bandwidth of 158.6 bytes a cycle, which no tile repeats."""
    x, i, j, ii, y = ImageParam(Int(32), 2, name="x"), Var("i"), Var("j"), Var("ii"), Func("y")
    y[i, j] = x[i, j] + 1
    y.bound(i, 0, n).bound(j, 0, m).split(i, i, ii, 64).unroll(ii)
    refusal = "the cycles of y on arria10 have no formula: memory is shared"
    with pytest.raises(UserError, match=refusal) as caught:
        t2s.cycles_formula(y, [n, m], device="arria10")
    assert "units compete for memory" in str(caught.value)
    unlimited = replace(DEVICES["arria10"], memory_bytes_per_second=None)
    assert t2s.cycles_formula(y, [n, m], device=unlimited)(n=640, m=9) < t2s.cycles(
        y, {"n": 640, "m": 9}, device="arria10"
    )


@pytest.mark.parametrize(
    ("sizes", "options", "problem"),
    [
        ([], {}, "sizes= must name different Params of the design's bounds"),
        ([n, n], {}, "sizes= must name different Params of the design's bounds"),
        ([m], {}, "sizes= must name different Params of the design's bounds"),
        (["n"], {}, "item 0 of sizes has the wrong type"),
        ([n], {"checks": 0}, "checks= must be a positive integer"),
        ([n], {"steps": {"m": 4}}, "steps= must map names of sizes to positive integers"),
        ([n], {"steps": {"n": 0}}, "steps= must map names of sizes to positive integers"),
    ],
)
def test_refused_arguments(sizes: Any, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(UserError) as caught:
        t2s.cycles_formula(row_sums(), sizes, **options)
    assert str(caught.value).splitlines()[0] == problem


def example(path: str) -> ModuleType:
    file = Path(__file__).parents[2] / "examples" / path
    spec = importlib.util.spec_from_file_location(f"formula_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _gemm() -> tuple[Func, list[Param]]:
    module = example("gemm/systolic.py")
    sizes = [Param(Int(32), name=name) for name in ("I", "J", "K")]
    return module.gemm(module.TINY._replace(I=sizes[0], J=sizes[1], K=sizes[2])), sizes


def _mttkrp() -> tuple[Func, list[Param]]:
    module = example("mttkrp/mttkrp.py")
    sizes = [Param(Int(32), name=name) for name in ("BI", "BJ", "K", "L")]
    blocks = tuple(sizes[:2])
    return module.design(replace(module.TINY, blocks=blocks, k=sizes[2], l=sizes[3])), sizes


def _ttm() -> tuple[Func, list[Param]]:
    module = example("ttm/ttm.py")
    sizes = [Param(Int(32), name=name) for name in ("BI", "BJ", "BK", "L")]
    return module.design(replace(module.TINY, blocks=tuple(sizes[:3]), l=sizes[3])), sizes


def _convolution() -> tuple[Func, list[Param]]:
    module = example("convolution/convolution.py")
    sizes = [Param(Int(32), name=name) for name in ("BY", "BC", "images", "channels")]
    blocks = (sizes[0], 1, sizes[1])
    return (
        module.design(replace(module.TINY, blocks=blocks, images=sizes[2], channels=sizes[3])),
        sizes,
    )


def _gbmv() -> tuple[Func, list[Param]]:
    module = example("gbmv/gbmv.py")
    sizes = [Param(Int(32), name=name) for name in ("blocks", "steps")]
    return module.design(replace(module.TINY, blocks=sizes[0], steps=sizes[1])), sizes


def _capsule() -> tuple[Func, list[Param]]:
    module = example("capsule/capsule.py")
    sizes = [Param(Int(32), name="channels")]
    return module.design(replace(module.TINY, channels=sizes[0])), sizes


PUBLISHED = {
    "gemm": (_gemm, 64, {"ideal": 126, "arria10": 302}),
    "mttkrp": (_mttkrp, 6, {"ideal": 22, "arria10": 202}),
    "ttm": (_ttm, 8, {"ideal": 26, "arria10": 202}),
    "convolution": (_convolution, 24, {"ideal": 20, "arria10": 192}),
    "gbmv": (_gbmv, 4, {"ideal": 5, "arria10": 185}),
    "capsule": (_capsule, 128, {"ideal": 24, "arria10": 200}),
}


@pytest.mark.slow
@pytest.mark.parametrize("device", ["ideal", "arria10"])
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_designs_are_a_constant_and_an_interval_for_each_tile(
    name: str, device: str
) -> None:
    design_of, interval, constants = PUBLISHED[name]
    design, sizes = design_of()
    formula = t2s.cycles_formula(design, sizes, device=device)
    tiles = sympy.Mul(*(sympy.Symbol(s.name, integer=True, positive=True) for s in sizes))
    assert formula.expression == interval * tiles + constants[device]
    farthest = {1: 400, 2: 40, 3: 12, 4: 7}[len(sizes)]
    draw = Random(5)
    for _ in range(20):
        values = {size.name: draw.randint(3, farthest) for size in sizes}
        assert formula(**values) == t2s.cycles(design, values, device=device)


@pytest.mark.slow
def test_operands_that_all_pes_fetch_have_no_formula() -> None:
    """8 x 8 PEs want 512 bytes in a cycle, of 158.6: increments have no period."""
    A, B = ImageParam(Float(32), 2, name="A"), ImageParam(Float(32), 2, name="B")
    i, j, k, C = Var("i"), Var("j"), RDom(0, K, name="k"), Func("C")
    C[i, j] = 0.0
    C[i, j] += A[i, k] * B[k, j]
    ii, jj = t2s.variables("ii jj")
    C.bound(i, 0, n).bound(j, 0, m).split(i, i, ii, 8).split(j, j, jj, 8).unroll(ii, jj)
    with pytest.raises(UserError, match="have no formula: memory is shared"):
        t2s.cycles_formula(C, [n, m, K], device="arria10")


@pytest.mark.slow
def test_the_range_of_a_formula_has_no_holes() -> None:
    design, sizes = _mttkrp()
    formula = t2s.cycles_formula(design, sizes)
    for values in product((1, 2, 3), repeat=4):
        named = dict(zip((size.name for size in sizes), values, strict=True))
        if all(value >= formula.least[name] for name, value in named.items()):
            assert formula(**named) == t2s.cycles(design, named)
