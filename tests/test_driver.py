"""The public road: what a user writes, and the names a user finds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import t2s
from t2s import Float, Func, ImageParam, Int, Param, RDom, Var
from t2s.driver import func_design
from tests.sampling import sampled


def gemm() -> Func:
    """A matrix product of tiles of 2 x 2, with a sum over 4."""
    A, B = ImageParam(Float(32), 2, name="A"), ImageParam(Float(32), 2, name="B")
    i, j, k = Var("i"), Var("j"), RDom(0, 4, name="k")
    C = Func("C")
    C[i, j] = 0.0
    C[i, j] += A[i, k] * B[k, j]
    C.bound(i, 0, 4).bound(j, 0, 6)

    ii, jj = Var("ii"), Var("jj")
    A_loader, A_feeder, B_loader, B_feeder, C_unloader = t2s.funcs(
        "A_loader A_feeder B_loader B_feeder C_unloader"
    )
    (
        C.update()
        .tile(j, i, jj, ii, 2, 2)
        .unroll(ii, jj)
        .isolate_producer_chain(A, A_loader, A_feeder)
        .isolate_producer_chain(B, B_loader, B_feeder)
        .forward(A_feeder, jj)
        .forward(B_feeder, ii)
        .isolate_consumer(C_unloader)
    )
    return C


def matrices() -> dict[str, Any]:
    generator = np.random.default_rng(3)
    return {
        "A": generator.normal(size=(4, 4)).astype(np.float32),
        "B": generator.normal(size=(4, 6)).astype(np.float32),
    }


def test_the_program_of_the_design_document(tmp_path: Path) -> None:
    C, inputs = gemm(), matrices()
    expected = t2s.interpret(C, inputs)
    np.testing.assert_allclose(expected, inputs["A"] @ inputs["B"], rtol=1e-5, atol=1e-6)

    design = t2s.lower(C)
    assert design.name == "C"
    assert design.node("C").pe_count == 4

    result = t2s.simulate(design, inputs, device="arria10")
    assert np.array_equal(result.outputs["C"], expected)
    assert result.cycles == t2s.cycles(design, device="arria10")
    assert 0 < result.utilization <= 1
    assert result.stalls

    paths = t2s.emit(design, "opencl_fpga", tmp_path / "gemm")
    assert (tmp_path / "gemm" / "C.cl") in paths
    assert all(path.read_text(encoding="utf-8") for path in paths)


def test_the_loop_nest_that_is_printed() -> None:
    assert (
        gemm().print_loop_nest()
        == """\
A_loader: load, 2 PEs
  parallel ii in 0..1:                        # as in C: one PE each by unroll(ii, jj)
    for i in 0..1:                            # as in C: outer part of i by tile(j, i, jj, ii, 2, 2)
      for j in 0..2:                          # as in C: outer part of j by tile(j, i, jj, ii, 2, 2)
        for k in 0..3:                        # as in C: reduction of the definition
          send A[i * 2 + ii, k] to A_feeder

A_feeder: relay, 2 PEs
  parallel ii in 0..1:                        # as in C: one PE each by unroll(ii, jj)
    for i in 0..1:                            # as in C: outer part of i by tile(j, i, jj, ii, 2, 2)
      for j in 0..2:                          # as in C: outer part of j by tile(j, i, jj, ii, 2, 2)
        for k in 0..3:                        # as in C: reduction of the definition
          A = receive from A_loader
          send A to C

B_loader: load, 2 PEs
  parallel jj in 0..1:                        # as in C: one PE each by unroll(ii, jj)
    for i in 0..1:                            # as in C: outer part of i by tile(j, i, jj, ii, 2, 2)
      for j in 0..2:                          # as in C: outer part of j by tile(j, i, jj, ii, 2, 2)
        for k in 0..3:                        # as in C: reduction of the definition
          send B[k, j * 2 + jj] to B_feeder

B_feeder: relay, 2 PEs
  parallel jj in 0..1:                        # as in C: one PE each by unroll(ii, jj)
    for i in 0..1:                            # as in C: outer part of i by tile(j, i, jj, ii, 2, 2)
      for j in 0..2:                          # as in C: outer part of j by tile(j, i, jj, ii, 2, 2)
        for k in 0..3:                        # as in C: reduction of the definition
          B = receive from B_loader
          send B to C

C: compute, 4 PEs
  parallel ii in 0..1:                        # one PE each by unroll(ii, jj)
    parallel jj in 0..1:                      # one PE each by unroll(ii, jj)
      for i in 0..1:                          # outer part of i by tile(j, i, jj, ii, 2, 2)
        for j in 0..2:                        # outer part of j by tile(j, i, jj, ii, 2, 2)
          for k in 0..3:                      # reduction of the definition
            A = receive from A_feeder, passed on along jj
            B = receive from B_feeder, passed on along ii
            C = C + A * B, starting from 0.0
            send C when final to C_unloader

C_unloader: store, 4 PEs
  parallel ii in 0..1:                        # as in C: one PE each by unroll(ii, jj)
    parallel jj in 0..1:                      # as in C: one PE each by unroll(ii, jj)
      for i in 0..1:                          # as in C: outer part of i by tile(j, i, jj, ii, 2, 2)
        for j in 0..2:                        # as in C: outer part of j by tile(j, i, jj, ii, 2, 2)
          C_result = receive from C
          C[i * 2 + ii, j * 2 + jj] = C_result
"""
    )


def test_methods_equal_functions() -> None:
    C, inputs = gemm(), matrices()
    assert C.lower() == t2s.lower(C)
    assert C.print_loop_nest() == t2s.print_loop_nest(C)
    assert np.array_equal(C.interpret(inputs), t2s.interpret(C, inputs))
    ours, theirs = C.simulate(inputs), t2s.simulate(C, inputs)
    assert ours.cycles == theirs.cycles
    assert np.array_equal(ours.outputs["C"], theirs.outputs["C"])


def test_a_func_and_its_graph_simulate_alike() -> None:
    C, inputs = gemm(), matrices()
    func, graph = t2s.simulate(C, inputs), t2s.simulate(t2s.lower(C), inputs)
    assert func.cycles == graph.cycles == t2s.cycles(C)
    assert np.array_equal(func.outputs["C"], graph.outputs["C"])


def test_both_engines_and_both_kinds_of_scalars() -> None:
    A, f = ImageParam(Int(32), 2, name="A"), Func("f")
    size, scale = Param(Int(32), name="N"), Param(Int(32), name="scale")
    i, k = Var("i"), RDom(0, size, name="k")
    f[i] = scale
    f[i] += A[i, k] * scale
    f.bound(i, 0, 3)
    a = np.arange(12, dtype=np.int32).reshape(3, 4)
    inputs = {"A": a, "N": 4, "scale": 5}
    expected = 5 + a.sum(1) * 5
    assert np.array_equal(t2s.interpret(f, inputs), expected)
    for engine in ("native", "python"):
        assert np.array_equal(f.simulate(inputs, engine=engine).outputs["f"], expected)
    graph = f.lower({"N": 4})
    result = t2s.simulate(graph, {"A": a, "scale": 5})
    assert np.array_equal(result.outputs["f"], expected)


def test_directives_do_not_change_the_oracle() -> None:
    C, inputs = gemm(), matrices()
    plain = gemm()
    plain.plan.clear()
    assert np.array_equal(t2s.interpret(C, inputs), t2s.interpret(plain, inputs))


def test_a_design_can_be_lowered_again() -> None:
    C = gemm()
    assert t2s.lower(C) == t2s.lower(C)


def test_several_funcs_and_vars_at_once() -> None:
    assert [func.name for func in t2s.funcs("a b  c")] == ["a", "b", "c"]
    assert [variable.name for variable in t2s.variables("i j")] == ["i", "j"]
    assert all(isinstance(func, Func) for func in t2s.funcs("a b"))


def test_public_names() -> None:
    assert t2s.__all__ == sorted(t2s.__all__)
    for name in t2s.__all__:
        assert getattr(t2s, name) is not None
    wanted = {"lower", "simulate", "cycles", "emit", "emulate", "interpret", "print_loop_nest"}
    assert wanted | {"Func", "Var", "RDom", "ImageParam", "Param"} <= set(t2s.__all__)


@sampled("name", ["islpy", "llvmlite", "ml_dtypes", "jinja2", "rich"], quick=2)
def test_importing_the_package_leaves_heavy_libraries_out(name: str) -> None:
    code = f"import sys, t2s; sys.exit({name!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_star_import_takes_over_nothing_of_python() -> None:
    names: dict[str, object] = {}
    exec("from t2s import *", names)
    assert not {"abs", "max", "min", "sparse"} & set(names)
    assert all(hasattr(t2s, name) for name in ("abs", "max", "min", "sparse"))


def test_verbs_lower_a_design_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The graph of a Func is the same object until a directive is added, or another size asked."""
    w, i, ii, size = ImageParam(Int(32), 1, name="w"), Var("i"), Var("ii"), Param(Int(32), name="N")
    f = Func("f")
    f[i] = w[i] + 1
    f.bound(i, 0, size)
    graph = t2s.lower(f, {"N": 8})
    assert t2s.lower(f, {"N": 8}) is graph
    assert t2s.lower(f, {"N": 4}) != graph
    f.split(i, i, ii, 4).unroll(ii)
    changed = t2s.lower(f, {"N": 8})
    assert changed.node("f").pe_count == 4
    assert t2s.cycles(f, {"N": 8}) < t2s.cycles(graph)
    # nor is it frozen again, with the proofs about its domains that take most of a small run
    with monkeypatch.context() as patch:
        patch.setattr(func_design, "freeze", None)
        assert t2s.lower(f, {"N": 8}) is changed
    f[i] = w[i] + 2
    assert t2s.lower(f, {"N": 8}) != changed


def test_outputs_of_a_design_are_part_of_what_is_lowered() -> None:
    w, i, f, g = ImageParam(Int(32), 1, name="w"), Var("i"), Func("f"), Func("g")
    f[i] = w[i] + 1
    g[i] = 2 * f[i]
    for func in (f, g):
        func.bound(i, 0, 4)
    assert set(t2s.interpret(t2s.lower(g), {"w": np.arange(4, dtype=np.int32)})) == {"g"}
    both = t2s.lower((g, f))
    assert set(t2s.interpret(both, {"w": np.arange(4, dtype=np.int32)})) == {"f", "g"}
    assert t2s.lower((g, f)) is both
