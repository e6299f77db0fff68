"""Sums in space whose PEs also keep sums in time: PEs that cannot keep step are kernels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import t2s
from t2s import Func, ImageParam, Int, RDom
from t2s.backends.kernels.design import analyze
from t2s.backends.kernels.scope import KernelDesign
from t2s.backends.opencl_fpga import emulator_available
from t2s.backends.opencl_fpga.dialect import OPENCL
from tests.spatial.programs import random_inputs

i, j, y, x, ii, kk = t2s.variables("i j y x ii kk")


def outer_part() -> Func:
    """The outer part of k in space, its inner part in time: each PE sums 3 terms by itself."""
    A, B = ImageParam(Int(32), 2, name="A"), ImageParam(Int(32), 2, name="B")
    k, C = RDom(0, 6, name="k"), Func("C")
    C[i, j] = 0
    C[i, j] += A[i, k] * B[k, j]
    return C.bound(i, 0, 2).bound(j, 0, 3).split(k, k, kk, 3).unroll(k)


def partial_results_in_registers() -> Func:
    """A PE keeps the sums of a row of results, then hands all of them to the next PE."""
    A, B = ImageParam(Int(32), 2, name="A"), ImageParam(Int(32), 2, name="B")
    k, C = RDom(0, 5, name="k"), Func("C")
    C[i, j] = i
    C[i, j] += A[i, k] * B[k, j]
    C.bound(i, 0, 2).bound(j, 0, 3).split(k, k, kk, 2).reorder(j, k, kk, i).unroll(kk)
    loader = Func("loader")
    return C.isolate_producer(A, loader)


def row_stationary() -> Func:
    """A convolution: a row of weights stays in each PE, which sums along it; PEs sum over rows."""
    image, weights = ImageParam(Int(32), 2, name="I"), ImageParam(Int(32), 2, name="W")
    ky, kx = RDom(0, 3, 0, 3, name="ky kx")
    out = Func("O")
    out[y, x] = 0
    out[y, x] += image[y + ky, x + kx] * weights[ky, kx]
    return out.bound(y, 0, 3).bound(x, 0, 4).reorder(kx, x, ky, y).unroll(ky, y)


def forwarded() -> Func:
    """One operand goes from PE to PE along the sum, one serial loader serves all PEs in turn."""
    A, D = ImageParam(Int(32), 3, name="A"), ImageParam(Int(32), 1, name="D")
    k, l = RDom(0, 3, 0, 2, name="k l")  # noqa: E741
    C, A_loader, A_feeder, D_loader = t2s.funcs("C A_loader A_feeder D_loader")
    C[i] = 0
    C[i] += A[i, k, l] * D[l]
    C.bound(i, 0, 4).unroll(k).isolate_producer_chain(A, A_loader, A_feeder)
    A_feeder.scatter(A_loader, k)
    return C.isolate_producer(D, D_loader).forward(D_loader, k)


DESIGNS: dict[str, Callable[[], Func]] = {
    design.__name__: design
    for design in (outer_part, partial_results_in_registers, row_stationary, forwarded)
}


@pytest.mark.parametrize("name", DESIGNS)
def test_they_are_kernels_of_their_own(name: str) -> None:
    design = analyze(OPENCL, t2s.lower(DESIGNS[name]()))
    assert isinstance(design, KernelDesign)
    assert design.source is not None
    assert len(design.graph.nodes) > len(design.source.nodes)


@pytest.mark.slow
@pytest.mark.emulator
@pytest.mark.skipif(not emulator_available(), reason="Intel's FPGA emulator is not installed")
@pytest.mark.parametrize("name", DESIGNS)
def test_emulated(name: str) -> None:
    func = DESIGNS[name]()
    inputs = random_inputs(t2s.lower(func), 1)
    expected = t2s.interpret(func, inputs)
    np.testing.assert_array_equal(t2s.emulate(func, inputs)[func.name], expected)
    np.testing.assert_array_equal(t2s.simulate(func, inputs).outputs[func.name], expected)
