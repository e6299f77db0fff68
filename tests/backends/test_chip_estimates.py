"""Estimates of the logic of chips beside cells that were counted after synthesis."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import pytest

import t2s
from benchmarks.chip_designs import DESIGNS, gemm
from benchmarks.chip_estimate_designs import CHECKED, DRAWN
from benchmarks.chip_estimates import DEVICE, PART, synthesized
from t2s import Float, Func, ImageParam, Int, Var
from t2s.backends.verilog.estimate import DesignLogic, clock_band
from t2s.backends.verilog.fifo_cells import fifo_cells
from t2s.backends.verilog.gates import ONE, ZERO, Gates, Literals, needed_bits
from t2s.core.errors import UnsupportedError
from t2s.core.logic import Logic
from t2s.driver import logic as logic_module
from t2s.driver import search_trial
from t2s.driver.chip_run import made_up
from t2s.driver.logic import logic_of
from t2s.driver.page_writer import write_page
from t2s.report.logic import ChipLogic, ClockBand, RoutedChip
from t2s.simulator.program.build import build_program
from tests.backends.estimates import error, estimate

# LUT4, TRELLIS_FF, CCU2C, TRELLIS_DPR16X4 of `synth_ecp5` of Yosys 0.70, of NAME_chip alone
MEASURED = {
    "gemm 4x4 int16": (845, 2295, 256, 32),
    "gemm 3x5 int8": (651, 1863, 362, 16),
    "matrix-vector 8 PEs": (471, 783, 179, 82),
    "FIR 16 taps": (1074, 3033, 390, 192),
    "convolution 5x5": (1274, 1711, 297, 144),
    "stencil of 5 points": (252, 403, 63, 24),
    "reduction tree of 8 lanes": (214, 591, 62, 40),
    "largest of rows": (425, 252, 58, 16),
    "tiled gemm 2x2 int8": (272, 405, 70, 40),
    "gemm 6x6 int16": (2003, 5303, 746, 48),
    "gray": (196, 542, 62, 16),
    "above": (399, 438, 130, 40),
    "transpose": (349, 396, 30, 32),
    "sums in turn, 3 PEs": (953, 1139, 84, 36),
    "convolution 3x3, 3 channels": (799, 1006, 201, 84),
}
# where the structure matters most: sums of many terms, addresses, comparisons
MEASURED_HARD = {
    "sums of rows, 8 lanes int8": (245, 122, 26, 24),
    "lower triangle": (140, 122, 36, 16),
    "median of three": (165, 196, 39, 16),
    "tiled gemm 3x3 int16": (719, 1096, 171, 96),
    "clamped": (52, 72, 18, 4),
    # these had no part in the rules
    "sums of rows, 4 lanes int16": (131, 122, 29, 24),
    "sums of rows, 8 lanes int16": (344, 148, 26, 40),
    "sums of rows, 16 lanes int8": (425, 133, 26, 40),
    "sums of rows, 16 lanes int32": (1237, 215, 32, 136),
    "transpose of 10x9": (413, 500, 37, 40),
    "differences of 20 columns": (358, 425, 138, 32),
    "matrix-vector 7 PEs": (541, 708, 172, 72),
    "triangle of 20": (154, 129, 31, 16),
    "reduction tree of 8 lanes int16": (535, 974, 40, 72),
}


def design(name: str) -> Func:
    return {**DESIGNS, **DRAWN, **CHECKED}[name]()


def test_estimates_beside_synthesis() -> None:
    luts, flip_flops, carries = [], [], []
    for name, (lut, flip_flop, carry, small) in (*MEASURED.items(), *MEASURED_HARD.items()):
        logic = estimate(design(name))
        luts.append(error(logic.luts, lut))
        flip_flops.append(error(logic.flip_flops, flip_flop))
        carries.append(error(logic.carry_cells, carry))
        assert logic.small_rams == small, name
    assert median(luts[: len(MEASURED)]) < 0.06
    assert max(luts) <= 0.25
    assert median(flip_flops) == 0
    assert max(flip_flops) < 0.1
    assert median(carries) < 0.02
    assert max(carries) < 0.25


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gemm 2x2 int8", "complex product"])
def test_estimate_beside_a_synthesis_of_today(name: str) -> None:
    pytest.importorskip("pyosys")
    graph = t2s.lower(design(name))
    logic, (measured, multipliers) = estimate(design(name)), synthesized(graph)
    assert t2s.resources(graph, device=DEVICE).dsp_blocks == multipliers
    assert error(logic.luts, measured.luts) < 0.1
    assert logic.flip_flops == measured.flip_flops
    assert logic.carry_cells == measured.carry_cells
    assert logic.small_rams == measured.small_rams


def test_resources_have_logic_by_node() -> None:
    report = t2s.resources(gemm(2, 2, 6, 8), device="ecp5-85k")
    assert report.logic is not None
    assert report.chip is not None
    assert report.fits
    assert report.dsp_blocks == 4
    compute = report["C"].logic
    assert compute is not None
    assert compute.carry_cells == 64  # an adder of 32 bits in each of four PEs
    assert report.logic.flip_flops == sum(node.logic.flip_flops for node in report if node.logic)
    text = str(report)
    assert "of 83,640" in text
    assert "small RAM" in text
    assert str(report.chip.clock) in text


def test_logic_is_not_estimated_of_other_devices_and_of_float64() -> None:
    assert t2s.resources(gemm(2, 2, 6, 8)).logic is None
    x, y, i = ImageParam(Float(64), 1, name="x"), Func("y"), Var("i")
    y[i] = x[i] + x[i]
    report = t2s.resources(y.bound(i, 0, 8), device="ecp5-85k")
    assert report.logic is None
    assert "LUT" not in str(report)


def huge(program: object, part_name: str | None = None) -> ChipLogic:
    """Logic that no FPGA has."""
    return ChipLogic(
        nodes={"C": Logic(luts=200_000, flip_flops=10)},
        clock=ClockBand(about=100, least=80, most=120),
        luts=PART.luts,
        flip_flops=PART.flip_flops,
    )


def test_what_has_too_many_luts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logic_module, "logic_of", huge)
    report = t2s.resources(gemm(2, 2, 6, 8), device="ecp5-85k")
    (overrun,) = report.overruns
    assert not report.fits
    assert str(overrun) == (
        "200,000 LUTs are needed and 83,640 are there, 116,360 too few; C takes 200,000: unroll "
        "fewer PEs, or use narrower types and channels that are less deep"
    )
    with pytest.raises(UnsupportedError, match="needs 150,000 LUTs, and ecp5-85k has 83,640"):
        t2s.synthesize(gemm(2, 2, 6, 8), "ecp5-85k")


def search_input() -> Func:
    A, B = ImageParam(Int(8), 2, name="A"), ImageParam(Int(8), 2, name="B")
    C, (i, j) = Func("C"), t2s.variables("i j")
    k = t2s.RDom(0, 4, name="k")
    C[i, j] = t2s.cast(Int(32), 0)
    C[i, j] += t2s.cast(Int(32), A[i, k]) * t2s.cast(Int(32), B[k, j])
    return C.bound(i, 0, 2).bound(j, 0, 2)


def test_a_search_stays_within_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    found = t2s.search(search_input(), device="ecp5-25k", progress=False)
    assert found.best.dsp <= 28
    monkeypatch.setattr(search_trial, "logic_of", huge)
    with pytest.raises(t2s.errors.UserError) as raised:
        t2s.search(search_input(), device="ecp5-25k", progress=False)
    assert "takes more LUTs than ecp5-25k has" in str(raised.value)


@pytest.mark.parametrize(
    ("width", "capacity", "latency", "fills", "cells"),
    [
        (8, 1, 5, True, Logic(luts=3, flip_flops=14)),
        (32, 2, 1, True, Logic(luts=36, flip_flops=66)),
        (8, 2, 2, True, Logic(luts=18, flip_flops=25)),
        (8, 4, 3, True, Logic(luts=16, flip_flops=14, small_rams=2)),
        (32, 6, 5, True, Logic(luts=18, flip_flops=18, small_rams=8)),
        (8, 32, 1, True, Logic(luts=36, flip_flops=24, carry_cells=18, small_rams=4)),
        (8, 1, 5, False, Logic(luts=1, flip_flops=13)),
        (8, 2, 1, False, Logic(luts=11, flip_flops=18)),
        (8, 2, 2, False, Logic(luts=15, flip_flops=22)),
        (32, 6, 5, False, Logic(luts=12, flip_flops=14, small_rams=8)),
        (16, 12, 3, False, Logic(luts=22, flip_flops=15, small_rams=4)),
        (16, 16, 1, False, Logic(luts=23, flip_flops=14, carry_cells=6, small_rams=4)),
        (8, 32, 1, False, Logic(luts=23, flip_flops=17, carry_cells=12, small_rams=4)),
    ],
)
def test_fifos(width: int, capacity: int, latency: int, fills: bool, cells: Logic) -> None:
    """Cells of ``fifo.sv`` alone after ``synth_ecp5``; its values come when the sender has them."""
    assert fifo_cells(width, capacity, latency, latency - 1, fills) == cells


def test_gates_fold_constants_and_are_equal_once() -> None:
    gates = Gates(shortest_chain=5)
    a, b, c, d, e = gates.incoming(5)
    assert gates.both(a, ZERO) == ZERO
    assert gates.either(a, a ^ 1) == ONE
    assert gates.differs(a, b ^ 1) == gates.differs(b, a) ^ 1
    assert gates.choose(a, b, b) == b
    assert gates.tables([gates.all_of([a, b, c, d])]) == (1, 0)
    assert gates.tables([gates.all_of([a, b, c, d, e])]) == (2, 0)


def test_sums_take_carry_cells_from_some_length_on() -> None:
    for bits, wanted in ((4, 0), (5, 3), (8, 4), (32, 16)):
        gates = Gates(shortest_chain=5)
        total = gates.add(gates.incoming(bits), gates.incoming(bits))
        tables, cells = gates.tables(total)
        assert cells == wanted
        assert (tables > 0) == (wanted == 0)


def value_of(word: Literals, bits: int) -> int:
    """A word as a number with a sign, where node ``n`` is bit ``n - 1`` of ``bits``."""
    found = [
        literal if literal < 2 else bits >> (literal // 2 - 1) & 1 ^ literal & 1 for literal in word
    ]
    return sum(bit << at for at, bit in enumerate(found)) - (found[-1] << len(word))


def test_a_sum_has_the_bits_of_its_smallest_and_its_largest_value() -> None:
    gates = Gates(shortest_chain=5)
    a, b, c = gates.incoming(3)
    number = [a, b, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO]
    four_times = [ZERO, ZERO, a, b, ZERO, ZERO, ZERO, ZERO]
    signed = [c, b, a, a, a, a, a, a]
    inverted = [bit ^ 1 for bit in signed]
    five = [ONE, ZERO, ONE, ZERO, ZERO, ZERO, ZERO, ZERO]
    for terms, wanted in (
        ([(four_times, False), (number, True)], (4, False)),  # 0 to 9
        ([(four_times, False), (number, False)], (4, False)),  # 0 to 15
        ([(number, False), (number, True)], (0, False)),
        ([(number, False), (five, True)], (4, True)),  # -5 to -2
        ([(signed, False), (five, False)], (4, False)),  # 1 to 8
        ([(signed, False), (number, False)], (4, True)),
        ([(inverted, False), (signed, False)], (1, True)),  # -1
    ):
        found = [
            sum(-value_of(word, bits) if minus else value_of(word, bits) for word, minus in terms)
            for bits in range(8)
        ]
        used, sign = needed_bits(terms)
        assert (used, sign) == wanted
        least, most = (-1 << used - 1, 1 << used - 1) if sign else (0, 1 << used)
        assert all(least <= total < most for total in found)


def test_a_chain_is_as_long_as_to_the_last_bit_that_is_needed() -> None:
    gates = Gates(shortest_chain=5)
    total = gates.add(gates.incoming(32), gates.incoming(32))
    assert gates.tables(total[:9]) == (0, 5)
    assert gates.tables(total) == (0, 16)


def test_the_band_of_the_clock() -> None:
    """The slowest PE limits a small design, the wires between PEs one of many LUTs."""
    for luts, slowest, period in (
        (1_000, 8.0, 9.4),  # and 1.4 ns of registers
        (1_000, 1.0, 5.2 + 0.2),
        (20_000, 1.0, 5.2 + 4.0),
    ):
        nodes = {"a": Logic(luts=luts - 200), "b": Logic(carry_cells=70, small_rams=10)}
        about, least, most = clock_band(DesignLogic(nodes=nodes, slowest=slowest))
        assert about == pytest.approx(1000 / period)
        assert (least, most) == pytest.approx((0.8 * about, 1.2 * about))


def test_slow_sums_take_more_tables() -> None:
    tables = []
    for words in (3, 8):
        gates = Gates(shortest_chain=5)
        terms = [(gates.incoming(8) + [ZERO] * 8, False) for _ in range(words)]
        found, cells = gates.tables(gates.sum_of(terms))
        assert cells <= 6
        tables.append(found / (words - 2))
    assert tables[0] == 2 * 8
    assert tables[1] > 1.4 * tables[0]


def test_what_came_first_is_the_smaller_one_for_less() -> None:
    def counts(operator: str) -> Logic:
        x, limit, y = ImageParam(Int(16), 1, name="x"), ImageParam(Int(16), 1, name="l"), Func("y")
        i = Var("i")
        smaller = x[i] < limit[i] if operator == "<" else x[i] > limit[i]
        y[i] = t2s.select(smaller, t2s.cast(Int(16), 1), t2s.cast(Int(16), 0))
        found = logic_of(build_program(t2s.lower(y.bound(i, 0, 40)), DEVICE, None, {}))
        assert found is not None
        return found.total

    less, more = counts("<"), counts(">")
    assert 8 <= more.luts - less.luts <= 14  # whether 16 bits are equal
    assert more.carry_cells == less.carry_cells


def test_what_a_condition_sets_to_a_constant_is_a_reset() -> None:
    """Flip-flops have one; no table chooses between a value and a constant."""

    def luts(least: int | None) -> int:
        x, y, i = ImageParam(Int(16), 1, name="x"), Func("y"), Var("i")
        y[i] = x[i] if least is None else t2s.maximum(x[i], t2s.cast(Int(16), least))
        logic = t2s.resources(y.bound(i, 0, 40), device=DEVICE)["y"].logic
        assert logic is not None
        return logic.luts

    for least in (0, 100):
        assert luts(least) - luts(None) <= 6


def test_a_page_has_the_logic_of_nodes_beside_what_was_routed(tmp_path: Path) -> None:
    design = gemm(2, 2, 6, 8)
    result = t2s.simulate(design, made_up(t2s.lower(design)), device="ecp5-85k")
    page = result.report(tmp_path / "run.html").read_text(encoding="utf-8")
    estimate = logic_of(result.program)
    assert estimate is not None
    for text in (">LUTs</th>", ">flip-flops</th>", str(estimate.clock)):
        assert text in page
    assert "routed" not in page
    routed = RoutedChip(
        estimate=estimate,
        luts=1_234,
        flip_flops=2_345,
        dsp_blocks=4,
        ram_blocks=4,
        clock_mhz=151.5,
    )
    beside = write_page("C", (result,), tmp_path / "chip.html", routed=routed)
    page = beside.read_text(encoding="utf-8")
    row = page[page.index("routed, with what is around it") :]
    row = row[: row.index("</tr>")]
    assert all(text in row for text in ("1,234", "2,345", f"{4 / 156:.1%}"))
    assert f"{estimate.total.lut_places:,}" in page
    assert "151.5 MHz" in page


def test_a_page_of_another_device_has_blocks_alone(tmp_path: Path) -> None:
    design = gemm(2, 2, 6, 8)
    result = t2s.simulate(design, made_up(t2s.lower(design)), device="arria10")
    page = result.report(tmp_path / "run.html").read_text(encoding="utf-8")
    assert ">DSP</th>" in page
    assert ">LUTs</th>" not in page
