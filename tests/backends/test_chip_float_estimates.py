"""Estimates of the logic of floating-point designs beside cells counted after synthesis."""

from __future__ import annotations

from statistics import median

import pytest

import t2s
from benchmarks.chip_estimate_designs import FLOATS, FLOATS_CHECKED
from benchmarks.chip_estimates import DEVICE, synthesized
from t2s import Float, Func, ImageParam, Var
from t2s.backends.verilog.float_cells import FLOAT_FUNCTIONS, float_module_cells
from t2s.backends.verilog.float_operators import ADD_REGISTERS, MULTIPLY_REGISTERS
from t2s.backends.verilog.gates import ONE, ZERO, Gates
from tests.backends.estimates import error, estimate

# LUT4, TRELLIS_FF, CCU2C, TRELLIS_DPR16X4, MULT18X18D of `synth_ecp5` of Yosys 0.70, of NAME_chip
MEASURED = {
    "gemm 2x2 bfloat16": (3423, 2657, 464, 16, 4),
    "gemm 2x3 float32": (6796, 4636, 798, 40, 24),
    "axpy float32": (1073, 883, 143, 24, 4),
    "axpy 2 PEs bfloat16": (2033, 1487, 270, 24, 8),
    "matrix-vector 4 PEs float32": (4683, 2911, 537, 72, 16),
    "sums in turn 2 PEs float32": (2638, 1931, 270, 48, 8),
    "sums in turn 3 PEs bfloat16": (3216, 2693, 381, 48, 3),
    "FIR 4 taps float32": (4210, 3263, 577, 96, 16),
    "FIR 5 taps bfloat16": (4064, 3832, 675, 80, 5),
    "differences squared float32": (968, 625, 143, 24, 4),
    "products clamped float32": (1640, 1821, 204, 80, 8),
    "rectifier of 2 PEs float32": (117, 154, 26, 32, 0),
    "mean of three float32": (2111, 1900, 292, 40, 8),
    "polynomial float32": (1873, 1631, 266, 24, 8),
    "leaky rectifier bfloat16": (499, 400, 96, 8, 4),
    "largest of 4 rows float32": (1159, 380, 116, 32, 0),
    "smallest of 3 rows float32": (911, 286, 90, 24, 0),
    # these had no part in the rules
    "gemm 3x3 bfloat16": (7888, 6043, 1069, 24, 9),
    "axpy 3 PEs float32": (3277, 2612, 420, 72, 12),
    "FIR 7 taps bfloat16": (5604, 5470, 939, 112, 7),
    "normalized 2 PEs float32": (2137, 1272, 280, 32, 8),
    "leaky rectifier float32": (539, 540, 80, 16, 4),
    "distances 2 PEs float32": (3368, 2547, 418, 48, 8),
    "absolute differences bfloat16": (475, 340, 79, 16, 0),
    "matrix-vector 2 PEs float32": (2282, 1451, 285, 40, 8),
    "scaled by 0.01, 2 PEs float32": (1113, 620, 120, 32, 8),
    "above a threshold bfloat16": (592, 464, 113, 16, 0),
}


def design(name: str) -> Func:
    return {**FLOATS, **FLOATS_CHECKED}[name]()


def test_estimates_of_floats_beside_synthesis() -> None:
    luts, flip_flops, carries = [], [], []
    for name, (lut, flip_flop, carry, small, multipliers) in MEASURED.items():
        logic = estimate(design(name))
        luts.append(error(logic.luts, lut))
        flip_flops.append(error(logic.flip_flops, flip_flop))
        carries.append(error(logic.carry_cells, carry))
        assert logic.small_rams == small, name
        assert t2s.resources(design(name), device=DEVICE).dsp_blocks == multipliers, name
    assert median(luts) < 0.05
    assert max(luts) < 0.13
    assert median(flip_flops) == 0
    assert max(flip_flops) < 0.05
    assert median(carries) < 0.01
    assert max(carries) < 0.07


@pytest.mark.slow
@pytest.mark.parametrize("name", ["axpy float32", "absolute differences bfloat16"])
def test_estimate_beside_a_synthesis_of_today(name: str) -> None:
    pytest.importorskip("pyosys")
    graph = t2s.lower(design(name))
    logic, (measured, multipliers) = estimate(design(name)), synthesized(graph)
    assert t2s.resources(graph, device=DEVICE).dsp_blocks == multipliers
    assert error(logic.luts, measured.luts) < 0.1
    assert error(logic.flip_flops, measured.flip_flops) < 0.05
    assert error(logic.carry_cells, measured.carry_cells) < 0.05
    assert logic.small_rams == measured.small_rams


def test_resources_of_floats_have_logic() -> None:
    x, y, i = ImageParam(Float(32), 1, name="x"), Func("y"), Var("i")
    y[i] = x[i] + x[i]
    report = t2s.resources(y.bound(i, 0, 8), device="ecp5-85k")
    assert report.logic is not None
    assert report.chip is not None
    assert report.logic.luts > 450
    assert report.chip.clock.about < 135  # that of a sum with six registers
    assert "LUTs" in str(report)


def test_floats_that_are_no_chip_have_no_logic() -> None:
    x, y, i = ImageParam(Float(32), 1, name="x"), Func("y"), Var("i")
    y[i] = x[i] / 3.0
    assert t2s.resources(y.bound(i, 0, 8), device="ecp5-85k").logic is None


def test_a_product_with_a_power_of_two_takes_multipliers_of_a_chip() -> None:
    """The module has multipliers whatever its operands are; other devices add to the exponent."""
    x, y, i = ImageParam(Float(32), 1, name="x"), Func("y"), Var("i")
    y[i] = x[i] * 2.0
    y.bound(i, 0, 8)
    assert t2s.resources(y, device="ecp5-85k").dsp_blocks == 4
    assert t2s.resources(y, device="arria10").dsp_blocks == 0


def test_shifts_of_integers_take_no_multipliers() -> None:
    x, y, i = ImageParam(t2s.Int(16), 1, name="x"), Func("y"), Var("i")
    y[i] = x[i] * 2
    assert t2s.resources(y.bound(i, 0, 8), device="ecp5-85k").dsp_blocks == 0


def test_modules_with_fewer_registers_are_slower_and_have_fewer_flip_flops() -> None:
    gates = Gates(shortest_chain=5)
    a, b = gates.incoming(32), gates.incoming(32)
    for name, (least, most) in (
        ("float_add", ADD_REGISTERS),
        ("float_multiply", MULTIPLY_REGISTERS),
    ):
        forms = [float_module_cells(name, s, True, a, b) for s in range(least, most + 1)]
        flip_flops = [form.logic.flip_flops for form in forms]
        assert flip_flops == sorted(flip_flops)
        assert forms[-1].slowest == min(form.slowest for form in forms)
        inside = float_module_cells(name, most, False, a, b)
        assert forms[-1].logic.flip_flops - inside.logic.flip_flops == 32


def test_operands_of_bfloat16_constants_and_squares_take_less() -> None:
    gates = Gates(shortest_chain=5)
    a, b, half, other = gates.incoming(32), gates.incoming(32), *[gates.incoming(16)] * 2
    narrow, narrow_too = [ZERO] * 16 + half, [ZERO] * 16 + gates.incoming(16)
    assert half == other
    for name, most in (("float_add", 6), ("float_multiply", 7)):

        def luts(left: list[int], right: list[int], name: str = name, most: int = most) -> int:
            return float_module_cells(name, most, True, left, right).logic.luts

        assert luts(a, b) > luts(a, narrow) == luts(narrow, a) > luts(narrow, narrow_too)
        assert luts(a, [ONE] * 32) < luts(a, b)
    square = float_module_cells("float_multiply", 7, True, a, list(a)).logic
    assert square.luts < float_module_cells("float_multiply", 7, True, a, b).logic.luts


# LUT4 and CCU2C of `synth_ecp5` of Yosys 0.70 of a function alone
@pytest.mark.parametrize(
    ("name", "operands", "luts", "carries"),
    [
        ("maximum", "ww", 123, 23),
        ("minimum", "ww", 123, 23),
        ("maximum", "nn", 41, 15),
        ("maximum", "w0", 46, 4),
        ("minimum", "wc", 40, 19),
        ("less", "ww", 54, 23),
        ("less", "nn", 29, 15),
        ("less", "w0", 13, 4),
        ("greater_equal", "w0", 13, 4),
        ("greater", "w0", 9, 19),
        ("less_equal", "ww", 62, 23),
        ("equal", "ww", 52, 4),
        ("not_equal", "nn", 24, 4),
        ("equal", "w0", 10, 0),
        ("equal", "wc", 11, 0),
        ("round", "w", 33, 12),
        ("round", "n", 0, 0),
        ("negate", "w", 0, 0),
        ("absolute", "w", 0, 0),
    ],
)
def test_functions(name: str, operands: str, luts: int, carries: int) -> None:
    gates = Gates(shortest_chain=5)
    word = {
        "w": lambda: gates.incoming(32),
        "n": lambda: [ZERO] * 16 + gates.incoming(16),
        "0": lambda: [ZERO] * 32,
        "c": lambda: [0x3DCCCCCD >> at & 1 for at in range(32)],
    }
    function = FLOAT_FUNCTIONS[name]
    result, measured = function.apply(gates, [word[kind]() for kind in operands])
    assert len(result) == function.bits
    tables, cells = gates.tables(result)
    assert measured + 0.9 * tables == pytest.approx(luts, abs=11)
    assert cells == carries


def test_a_widened_number_keeps_its_zeros() -> None:
    gates = Gates(shortest_chain=5)
    half = gates.incoming(16)
    widened, luts = FLOAT_FUNCTIONS["widen"].apply(gates, [half])
    assert (widened, luts) == ([ZERO] * 16 + half, 0)
    negated, _ = FLOAT_FUNCTIONS["negate"].apply(gates, [widened])
    assert negated == [*widened[:-1], widened[-1] ^ 1]
