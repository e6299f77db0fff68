"""Streams of padded results into a function that pads alike: a product, its bias and its ReLU."""

from __future__ import annotations

import numpy as np
import pytest

import t2s
from t2s import Func, ImageParam, Int, RDom
from t2s.backends.opencl_fpga.emulator import emulator_available
from t2s.errors import UserError
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


def collected(rows: int, columns: int, tile: int, pes: int, *, vectors: bool) -> Func:
    """``F[i, j] = A[i, j] + 1`` on PEs along j whose results are gathered, ragged or not."""
    A, F = ImageParam(Int(32), 2, name="A"), Func("F")
    i, j, jt, jj = t2s.variables("i j jt jj")
    collector, unloader = t2s.funcs("collector unloader")
    F[i, j] = A[i, j] + 1
    F.bound(i, 0, rows).bound(j, 0, columns)
    F.split(j, j, jt, tile).split(jt, jt, jj, pes).unroll(jj)
    F.isolate_consumer_chain(collector, unloader)
    collector.gather(F, jj)
    if vectors:
        unloader.vstore(F)
    return F


def test_padded_results_are_gathered_into_vectors() -> None:
    """Ragged sizes take the cycles of the next size that divides."""
    for columns, tile, pes in (
        (62, 16, 4),
        (49, 16, 8),
        (50, 4, 4),
        (6, 4, 2),
        (7, 8, 8),
        (1, 2, 2),
    ):
        padded = -(-columns // tile) * tile
        for vectors in (True, False):
            graph = agree(collected(2, columns, tile, pes, vectors=vectors))
            whole = t2s.lower(collected(2, padded, tile, pes, vectors=vectors))
            assert t2s.cycles(graph) == t2s.cycles(whole), (columns, tile, pes, vectors)
    values = np.arange(10, dtype=np.int32).reshape(2, 5)
    design = collected(2, 5, 4, 4, vectors=True)
    np.testing.assert_array_equal(t2s.simulate(design, {"A": values}).outputs["F"], values + 1)


@pytest.mark.emulator
@pytest.mark.skipif(not emulator_available(), reason="Intel's FPGA emulator is not installed")
def test_emulated() -> None:
    func = layer(6, 5, 7)
    inputs = random_inputs(t2s.lower(func), 1)
    np.testing.assert_array_equal(t2s.emulate(func, inputs)["out"], t2s.interpret(func, inputs))
