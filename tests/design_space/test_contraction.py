"""What a search reads off a definition: loops, operands, and reads of one input at two places."""

from __future__ import annotations

import t2s
from t2s import Float, Func, ImageParam, RDom
from t2s.core.ops import Op
from t2s.design_space.contraction import contraction_of, with_single_reads
from tests.design_space.contractions import (
    KERNELS,
    banded,
    blurred,
    computed_operands,
    gemm,
    maxima,
    symmetric,
)


def test_loops_and_operands() -> None:
    contraction = contraction_of(gemm(12, 10, 8, transposed=False), {})
    assert [(loop.name, loop.extent) for loop in contraction.outputs] == [("i", 12), ("j", 10)]
    assert [loop.name for loop in contraction.reductions] == ["k"]
    assert (contraction.operator, contraction.vector_loop) == (Op.ADD, "k")
    A, B = contraction.operands
    assert (A.varies, A.adjacent) == ({"i", "k"}, {"k"})
    assert (B.varies, B.adjacent) == ({"j", "k"}, {"j"})


def test_what_is_adjacent_in_memory() -> None:
    """Elements two apart are not, nor those of a transposed Func along its last subscript."""
    (x,) = contraction_of(maxima(8, 6), {}).operands
    assert x.adjacent == {"c"}
    scaled, transposed = contraction_of(computed_operands(8, 6, 4), {}).operands
    assert (scaled.stored, scaled.adjacent) == (False, {"k"})
    assert transposed.adjacent == {"k"}
    (_, places) = contraction_of(KERNELS["capsules"](), {}).operands
    assert places.adjacent == {"ci"}


def test_what_a_reduction_starts_from() -> None:
    contraction = contraction_of(banded(12, 8), {})
    assert [operand.name for operand in contraction.initial] == ["y_in"]
    assert contraction_of(gemm(4, 4, 4), {}).initial == ()


def test_operators() -> None:
    assert contraction_of(maxima(8, 6), {}).operator is Op.MAXIMUM
    blur = contraction_of(with_single_reads(blurred(8, 6)), {})
    assert (blur.operator, blur.reductions, blur.vector_loop) == (None, (), "j")
    x, y, i, k = ImageParam(Float(32), 2, name="x"), Func("y"), t2s.Var("i"), RDom(0, 9, name="k")
    y[i] = 0.0
    y[i] -= x[i, k]
    difference = contraction_of(y.bound(i, 0, 8), {})
    assert (difference.operator, difference.vector_loop) == (Op.SUBTRACT, None)
    assert t2s.search(y, dsp=4, seconds=0.5, progress=False).cycles > 0


def test_reads_of_one_input_at_two_places() -> None:
    func = symmetric(8, 6)
    single = with_single_reads(func)
    assert [operand.name for operand in contraction_of(single, {}).operands] == ["A", "A_2"]
    assert "A_2[d0, d1] = A[d0, d1]" in t2s.program(single)
    assert func.written[-1].value.symbols.keys() == {"A", "i", "j", "k", "C"}  # as it was
    once = gemm(4, 4, 4)
    assert with_single_reads(once) is once


def test_an_input_of_the_update_and_of_the_initial_value() -> None:
    """And equal reads, which are one."""
    x, y, i, k = ImageParam(Float(32), 1, name="x"), Func("y"), t2s.Var("i"), RDom(0, 5, name="k")
    y[i] = x[i]
    y[i] += x[i + k] * x[i + k]
    single = with_single_reads(y.bound(i, 0, 9))
    contraction = contraction_of(single, {})
    assert [operand.name for operand in contraction.operands] == ["x_2"]
    assert [operand.name for operand in contraction.initial] == ["x"]
    found = t2s.search(y, dsp=4, seconds=0.5, progress=False)
    assert found.cycles == t2s.cycles(found.design, device="arria10")
