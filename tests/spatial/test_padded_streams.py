"""Streams of padded results into a function that pads alike: a product, its bias and its ReLU."""

from __future__ import annotations

import numpy as np
import pytest

import t2s
from t2s import Func, ImageParam, Int, RDom, UserError
from t2s.backends.opencl_fpga.emulator import emulator_available
from tests.sampling import sampled
from tests.spatial.agreement import agree
from tests.spatial.programs import random_inputs


def layer(rows: int, depth: int, columns: int, *, lanes: int = 1, tile: int = 4) -> Func:
    """``max(A B + bias, 0)`` on 4 x 4 PEs; the epilogue takes the sums in tiles of its own."""
    A, B = ImageParam(Int(32), 2, name="A"), ImageParam(Int(32), 2, name="B")
    bias, k = ImageParam(Int(32), 1, name="bias"), RDom(0, depth, name="k")
    i, j, x, y, ii, jj, kk, xx, yy = t2s.variables("i j x y ii jj kk xx yy")
    C, out, A_loader, B_loader, unloader = t2s.funcs("C out A_loader B_loader unloader")
    C[i, j] = 0
    C[i, j] += A[i, k] * B[j, k]
    out[x, y] = t2s.max(C[x, y] + bias[y] - 90, 0)
    out.bound(x, 0, rows).bound(y, 0, columns)
    C.tile(j, i, jj, ii, 4, 4)
    if lanes > 1:
        C.split(k, k, kk, lanes)
    C.unroll(ii, jj)
    if lanes > 1:
        C.vload(A, B)
    C.isolate_producer(A, A_loader).isolate_producer(B, B_loader)
    C.forward(A_loader, jj).forward(B_loader, ii)
    out.tile(y, x, yy, xx, tile, tile).unroll(xx, yy).stream(C)
    return out.isolate_consumer(unloader)


@sampled(
    ("rows", "depth", "columns", "lanes"),
    [(6, 10, 7, 1), (6, 10, 7, 4), (4, 3, 5, 1), (9, 4, 4, 2), (1, 2, 1, 1), (8, 4, 8, 1)],
    quick=2,
)
def test_values_and_cycles(rows: int, depth: int, columns: int, lanes: int) -> None:
    func = layer(rows, depth, columns, lanes=lanes)
    graph = agree(func)
    node = t2s.simulate(graph, random_inputs(graph, 1), progress=False).nodes["C"]
    assert node.first_firing is not None
    assert node.last_firing is not None
    tiles = -(-rows // 4) * -(-columns // 4) * -(-depth // lanes)
    assert node.last_firing - node.first_firing + 1 == tiles + 6


def test_another_padding_is_refused() -> None:
    with pytest.raises(UserError, match="are not padded in the same way"):
        t2s.lower(layer(6, 10, 7, tile=3))


@pytest.mark.emulator
@pytest.mark.skipif(not emulator_available(), reason="Intel's FPGA emulator is not installed")
def test_emulated() -> None:
    func = layer(6, 5, 7)
    inputs = random_inputs(t2s.lower(func), 1)
    np.testing.assert_array_equal(t2s.emulate(func, inputs)["out"], t2s.interpret(func, inputs))
