"""Functions on the host at the ends of what they can be: one element, padded, read by others."""

from __future__ import annotations

import numpy as np
import pytest

import t2s
from t2s import Func, ImageParam, Int, Place, RDom, Var
from t2s.backends.opencl_fpga.emulator import emulator_available
from t2s.errors import UnsupportedError
from tests.spatial.agreement import agree
from tests.spatial.programs import random_inputs


def one_element(*, unrolled: bool) -> Func:
    i, A, F = Var("i"), ImageParam(Int(32), 1, name="A"), Func("F")
    F[i] = A[i] * A[1]
    F.bound(i, 0, 4)
    if unrolled:
        F.unroll(i)
    serializer = Func("S", place=Place.HOST)
    F.isolate_producer_chain(A[1], serializer, Func("L"))
    serializer.remove(i)
    return F


@pytest.mark.parametrize("unrolled", [False, True])
def test_an_operand_of_one_element(unrolled: bool) -> None:
    assert t2s.lower(one_element(unrolled=unrolled)).tensor("S").allocated == ()
    agree(one_element(unrolled=unrolled))


@pytest.mark.emulator
@pytest.mark.skipif(not emulator_available(), reason="Intel's FPGA emulator is not installed")
def test_one_element_emulated() -> None:
    data = {"A": np.arange(4, dtype=np.int32) + 1}
    assert t2s.emulate(one_element(unrolled=False), data)["F"].tolist() == [2, 4, 6, 8]


@pytest.mark.emulator
@pytest.mark.skipif(not emulator_available(), reason="Intel's FPGA emulator is not installed")
def test_reversed_operands_emulated() -> None:
    func = reversed_convolution(5, lanes=2)
    inputs = random_inputs(t2s.lower(func), 1)
    np.testing.assert_array_equal(t2s.emulate(func, inputs)["F"], t2s.interpret(func, inputs))


@pytest.mark.parametrize("factor", [5, 7, 43])
def test_a_padded_fused_loop(factor: int) -> None:
    i, j, z, q = t2s.variables("i j z q")
    w, F = ImageParam(Int(32), 1, name="w"), Func("F")
    F[i, j] = w[i]
    F.bound(i, 0, 9).bound(j, 0, 6).fuse(j, i, z).split(z, z, q, factor)
    F.isolate_producer_chain(w, Func("S", place=Place.HOST), Func("L"))
    agree(F)


def reversed_convolution(taps: int, *, lanes: int) -> Func:
    """``F[i] += A[i + taps - 1 - k] * w[taps - 1 - k]``; the host orders both operands."""
    A, w = ImageParam(Int(32), 1, name="A"), ImageParam(Int(32), 1, name="w")
    i, ii, kk, k, F = *t2s.variables("i ii kk"), RDom(0, taps, name="k"), Func("F")
    F[i] = 0
    F[i] += A[i + taps - 1 - k] * w[taps - 1 - k]
    F.bound(i, 0, 7).split(i, i, ii, 4).split(k, k, kk, lanes).unroll(ii)
    for operand in (A, w):
        host = Func(f"{operand.name}_order", place=Place.HOST)
        F.isolate_producer_chain(operand, host, Func(f"{operand.name}_load"))
    return F


def test_reversed_operands_of_padded_loops() -> None:
    """Padded iterations would read in front of the arrays, where there is no padding."""
    for taps, lanes in ((4, 2), (5, 2), (3, 8), (1, 3)):
        agree(reversed_convolution(taps, lanes=lanes))


@pytest.mark.parametrize("both", [False, True])
def test_an_output_that_another_function_reads(both: bool) -> None:
    i, k, B = Var("i"), RDom(0, 2, name="k"), ImageParam(Int(32), 2, name="B")
    G, F = t2s.funcs("G F")
    G[i] = 0
    G[i] += B[i, k]
    F[i] = G[i] + 1
    F.bound(i, 0, 2)
    G.bound(i, 0, 2).isolate_consumer_chain(Func("U"), Func("H", place=Place.HOST))
    with pytest.raises(UnsupportedError, match="G is read by the device, and H is on the host"):
        t2s.lower((F, G) if both else F)


def test_one_result_of_a_schedule_on_the_host() -> None:
    """All subscripts of the user's array are constants: they count for each point of the loops."""
    (i, j), (p, t) = t2s.variables("i j"), t2s.variables("p t")
    w, F = ImageParam(Int(32), 1, name="w"), Func("F")
    F[i, j] = w[i]
    F[i, j] += 2
    F.bound(i, 0, 1).bound(j, i, 1 - i).space_time_transform([j, i], {p: i, t: j + 3 * i})
    F.isolate_consumer_chain(Func("U"), Func("H", place=Place.HOST))
    agree(F)
