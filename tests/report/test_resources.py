"""Estimates of DSP and RAM blocks against closed forms and published counts."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import t2s
from t2s import BFloat, Float, Func, ImageParam, Int, RDom, Type, Var
from t2s.report.resources import ResourceReport
from t2s.simulator.devices import DEVICES
from tests.backends.designs import operators, running_total, scaled
from tests.examples.systolic import Sizes, dot_product, gemm
from tests.sampling import sampled

i, j = Var("i"), Var("j")


FLOAT32 = Float(32)


def dsps(formula: Any, type: Type = FLOAT32, inputs: str = "x y z w") -> int:
    """DSP blocks of one element of a formula over scalars of arrays."""
    arrays = [ImageParam(type, 1, name=name) for name in inputs.split()]
    f = Func("f")
    f[i] = formula(*(array[i] for array in arrays))
    f.bound(i, 0, 4)
    return t2s.resources(f)["f"].dsp_blocks


@pytest.mark.parametrize(
    ("formula", "blocks"),
    [
        (lambda x, y, z, w: x * y, 1),
        (lambda x, y, z, w: x + y, 1),
        (lambda x, y, z, w: x * y + z, 1),
        (lambda x, y, z, w: z - x * y, 1),
        (lambda x, y, z, w: x * y + z * w, 2),
        (lambda x, y, z, w: x * y + z * w + x, 2),
        (lambda x, y, z, w: x + y + z + w, 3),
        (lambda x, y, z, w: x * y + z + w, 2),
        (lambda x, y, z, w: (x + y) * (z + w), 3),
        (lambda x, y, z, w: (x * y + z) * w, 2),
        (lambda x, y, z, w: x * 4.0, 0),
        (lambda x, y, z, w: x * 0.25 + y, 1),
        (lambda x, y, z, w: x * 3.0, 1),
        (lambda x, y, z, w: -x, 0),
        (lambda x, y, z, w: t2s.max(x, y), 0),
        (lambda x, y, z, w: t2s.select(x < y, x * y, z), 1),
        (lambda x, y, z, w: x / y, 4),
        (lambda x, y, z, w: t2s.sqrt(x) + t2s.exp(y), 3 + 6 + 1),
        (lambda x, y, z, w: t2s.cast(Float(32), i) * x, 1),
    ],
)
def test_float32_operators(formula: Any, blocks: int) -> None:
    assert dsps(formula) == blocks


@pytest.mark.parametrize(
    ("type", "multiply", "add"),
    [
        (Int(8), 1, 0),
        (Int(16), 1, 0),
        (Int(32), 2, 0),
        (Int(64), 6, 0),
        (Float(16), 1, 0),
        (BFloat(), 1, 0),
        (Float(64), 4, 0),
    ],
    ids=str,
)
def test_other_types(type: Type, multiply: int, add: int) -> None:
    assert dsps(lambda x, y: x * y, type, "x y") == multiply
    assert dsps(lambda x, y: x + y, type, "x y") == add
    assert dsps(lambda x, y: x * y + x, type, "x y") == multiply + add


def test_two_small_products_share_a_block() -> None:
    assert dsps(lambda x, y, z: x * y + y * z, Int(16), "x y z") == 1
    assert dsps(lambda x, y, z: x * y * z + y, Int(8), "x y z") == 1


def test_widened_operands_take_a_multiplier_of_their_own_width() -> None:
    """Casts, selections with constants and broadcasts before a product are wires and logic."""

    def wide(bits: int) -> Any:
        return lambda *arrays: t2s.cast(Int(bits), arrays[0]) * t2s.cast(Int(bits), arrays[1])

    for narrow, widened, blocks in ((8, 32, 1), (8, 16, 1), (16, 64, 1), (32, 64, 2)):
        assert dsps(wide(widened), Int(narrow), "x y") == blocks, (narrow, widened)
    assert dsps(lambda x: t2s.cast(Int(32), x) * 100, Int(8), "x") == 1
    assert dsps(lambda x: t2s.cast(Int(32), x) * 100_000, Int(8), "x") == 2
    accumulated = Func("accumulated")
    x, w, k = ImageParam(Int(8), 2, name="x"), ImageParam(Int(8), 1, name="w"), RDom(0, 8, name="k")
    accumulated[i] = t2s.cast(Int(32), 0)
    accumulated[i] += t2s.cast(Int(32), x[i, k]) * t2s.cast(Int(32), w[k])
    accumulated.bound(i, 0, 16).unroll(i)
    assert t2s.resources(accumulated).dsp_blocks == 16 // 2  # a block has two 18 x 19 multipliers


@pytest.mark.parametrize("type", [Float(32), Int(32)], ids=str)
def test_a_padded_dot_product_takes_the_blocks_of_one_that_divides(type: Type) -> None:
    """The selection of padded lanes stands before the multiplier, which still feeds its adder."""

    def product(steps: int) -> Func:
        a, b = ImageParam(type, 2, name="a"), ImageParam(type, 2, name="b")
        k, kk, c = RDom(0, steps, name="k"), Var("kk"), Func("c")
        c[i, j] = t2s.cast(type, 0)
        c[i, j] += a[i, k] * b[j, k]
        c.bound(i, 0, 2).bound(j, 0, 2).split(k, k, kk, 8)
        return c.unroll(i, j).vload(a, b)

    assert t2s.resources(product(60)).dsp_blocks == t2s.resources(product(64)).dsp_blocks


def test_integer_constants_and_indices_are_logic() -> None:
    assert dsps(lambda x: x * 8 + 3, Int(32), "x") == 0
    assert dsps(lambda x: x * 7, Int(32), "x") == 2
    x, f = ImageParam(Int(32), 1, name="x"), Func("f")
    f[i, j] = x[7 * i + j] + 7 * i * j
    f.bound(i, 0, 3).bound(j, 0, 3)
    assert t2s.resources(f).dsp_blocks == 0


@sampled("lanes", [1, 2, 5, 16], quick=2)
@pytest.mark.parametrize("rows", [1, 3])
def test_a_dot_product_with_its_accumulator(rows: int, lanes: int) -> None:
    sizes = Sizes(rows=rows, columns=2, tile=(2, 2), steps=3, lanes=lanes)
    assert t2s.resources(dot_product(Float(32), sizes)).dsp_blocks == rows * 2 * lanes


def test_gemm_of_the_paper() -> None:
    """1,282 DSP blocks are published for T2S-Tensor, 1,305 for the later release."""
    sizes = Sizes(rows=10, columns=8, tile=(8, 8), steps=16, lanes=16)
    report = t2s.resources(dot_product(Float(32), sizes))
    assert report.dsp_blocks == report["C"].dsp_blocks == 10 * 8 * 16
    assert abs(report.dsp_blocks / 1305 - 1) < 0.03
    assert report.dsp_fraction == 1280 / 1518
    assert report.fits
    assert report.overruns == ()


def test_register_files_buffers_and_units() -> None:
    """Sums: 32 x 64 words of 32 bits in each PE.  Buffer: 2 x 64 vectors of 128 bits."""
    sizes = Sizes(rows=2, columns=1, tile=(32, 64), steps=2, lanes=4)
    A, B = ImageParam(Float(32), 2, name="A"), ImageParam(Float(32), 2, name="B")
    k = RDom(0, 8, name="k")
    C = Func("C")
    C[i, j] = 0.0
    C[i, j] += A[i, k] * B[j, k]
    C.bound(i, 0, 64).bound(j, 0, 64)
    ii, kk = t2s.variables("ii kk")
    B_loader, B_feeder, C_unloader = t2s.funcs("B_loader B_feeder C_unloader")
    C.split(i, i, ii, sizes.rows).split(k, k, kk, sizes.lanes).reorder(kk, j, i, k)
    C.unroll(ii).vload(A, B).isolate_producer_chain(B, B_loader, B_feeder).forward(B_feeder, ii)
    C.isolate_consumer(C_unloader)
    B_loader.remove(i)
    B_feeder.buffer(B_loader, k)
    report = t2s.resources(C)
    assert report["C"].memory_blocks == 2 * 4  # four of 2048 x 10
    assert report["B_feeder"].memory_blocks == 4  # 128 words of 128 bits: 4 of 512 x 40
    assert report["B_loader"].unit_blocks == 4  # 512 words of 128 bits
    assert report["C_unloader"].unit_blocks == 2  # one of 512 x 32 bits each
    assert report["B_loader"].ram_blocks == 4


def test_deep_channels_take_ram_and_shallow_ones_do_not() -> None:
    def copied(depth: int) -> ResourceReport:
        x, f, loader = ImageParam(Float(32), 1, name="x"), Func("f"), Func("loader")
        f[i] = x[i]
        f.bound(i, 0, 8).isolate_producer(x, loader)
        loader.depth(depth)
        return t2s.resources(f)

    assert copied(32)["f"].fifo_blocks == 0
    assert copied(33)["f"].fifo_blocks == copied(512)["f"].fifo_blocks == 1  # 512 x 40
    assert copied(513)["f"].fifo_blocks == copied(1024)["f"].fifo_blocks == 2  # 1024 x 20
    assert copied(1025)["f"].fifo_blocks == 3  # three of 512 x 40


def large() -> Func:
    return dot_product(Float(32), Sizes(rows=16, columns=14, tile=(2, 2), steps=2, lanes=8))


def test_over_budget() -> None:
    report = t2s.resources(large())
    assert not report.fits
    (overrun,) = report.overruns
    assert (overrun.needed, overrun.available, overrun.excess) == (1792, 1518, 274)
    assert overrun.largest.name == "C"
    assert "fits         no\n" in str(report)
    assert str(report).splitlines()[4] == (
        "over budget  1,792 DSP blocks are needed and 1,518 are there, 274 too few; C takes 1,792: "
        "unroll fewer PEs, use fewer lanes or a narrower type"
    )
    assert t2s.resources(large(), device="stratix10").fits


def test_a_run_on_a_device_that_is_too_small_says_so() -> None:
    func = large()
    inputs = {
        tensor.name: np.ones(tensor.shape, np.float32)
        for tensor in func.lower().tensors
        if tensor.name in "AB"
    }
    result = func.simulate(inputs, device="arria10")
    assert "warning      does not fit on arria10: 1,792 DSP blocks are needed" in str(result)
    assert "does not fit" in result._repr_html_()
    assert func.simulate(inputs, device="stratix10").warnings == ()
    assert func.simulate(inputs).warnings == ()


def test_ram_over_budget_names_the_part_that_is_too_large() -> None:
    small = replace(DEVICES["arria10"], name="small", ram_blocks=3)
    report = t2s.resources(
        gemm(Float(32), Sizes(rows=2, columns=2, tile=(2, 2), steps=2)), device=small
    )
    (overrun,) = report.overruns
    assert overrun.blocks == "RAM"
    assert overrun.hint == "load and store in fewer PEs"


def test_shown_in_terminal_and_notebook() -> None:
    report = t2s.resources(gemm(Float(32), Sizes(rows=2, columns=2, tile=(2, 2), steps=2)))
    stream = io.StringIO()
    Console(file=stream, width=160).print(report)
    for text in (stream.getvalue(), report._repr_html_(), str(report)):
        assert "4 of 1,518 (0.3%)" in text
        assert "C_unloader" in text
    assert "<script" not in report._repr_html_()
    with pytest.raises(KeyError):
        report["nobody"]


def test_totals_are_sums_of_nodes() -> None:
    report = t2s.resources(gemm(Float(32), Sizes(rows=3, columns=2, tile=(2, 2), steps=2)))
    assert report.dsp_blocks == sum(node.dsp_blocks for node in report.nodes) == 6
    assert report.ram_blocks == sum(node.ram_blocks for node in report.nodes)
    assert report.ram_fraction == report.ram_blocks / 2713
    assert [node.name for node in report.nodes] == [
        n.name
        for n in gemm(Float(32), Sizes(rows=3, columns=2, tile=(2, 2), steps=2)).lower().nodes
    ]


def test_every_operator_on_four_lanes() -> None:
    """+ - * fma take 4, / 16, sqrt rsqrt 12, exp log tanh erf 24, a sum 3, a dot product 4."""
    single = 4 * 4 + 16 + 2 * 12 + 4 * 24 + 3 + 4
    assert t2s.resources(operators(FLOAT32, 4, 3)).dsp_blocks == single
    assert t2s.resources(operators(Int(32), 4, 3)).dsp_blocks == 8 + 8 + 8  # products alone


def test_a_product_with_a_scalar_parameter() -> None:
    assert t2s.resources(scaled(Float(32)))["scale"].dsp_blocks == 1
    assert t2s.resources(scaled())["scale"].dsp_blocks == 2
    assert t2s.resources(running_total()).dsp_blocks == 0
