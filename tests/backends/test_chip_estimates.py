"""Estimates of the logic of chips beside cells that were counted after synthesis."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import pytest

import t2s
from benchmarks.chip_designs import DESIGNS, gemm
from benchmarks.chip_estimate_designs import CHECKED
from benchmarks.chip_estimates import DEVICE, PART, synthesized
from t2s import Float, Func, ImageParam, Int, Var
from t2s.backends.verilog.fifo_cells import fifo_cells
from t2s.backends.verilog.gates import ONE, ZERO, Gates
from t2s.core.errors import UnsupportedError
from t2s.core.logic import Logic
from t2s.driver import logic as logic_module
from t2s.driver import search_trial
from t2s.driver.chip_run import made_up
from t2s.driver.logic import logic_of
from t2s.driver.page_writer import write_page
from t2s.report.logic import ChipLogic, ClockBand, RoutedChip
from t2s.simulator.program.build import build_program

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
    # these had no part in the rules
    "gemm 6x6 int16": (2003, 5303, 746, 48),
    "gray": (196, 542, 62, 16),
    "above": (399, 438, 130, 40),
    "transpose": (349, 396, 30, 32),
    "sums in turn, 3 PEs": (953, 1139, 84, 36),
    "convolution 3x3, 3 channels": (799, 1006, 201, 84),
}


def estimate(name: str) -> Logic:
    made = {**DESIGNS, **CHECKED}[name]()
    logic = logic_of(build_program(t2s.lower(made), DEVICE, None, {}))
    assert logic is not None
    return logic.total


def error(guess: int, measured: int) -> float:
    return abs(guess - measured) / measured


def test_estimates_beside_synthesis() -> None:
    luts, flip_flops, carries = [], [], []
    for name, (lut, flip_flop, carry, small) in MEASURED.items():
        logic = estimate(name)
        luts.append(error(logic.luts, lut))
        flip_flops.append(error(logic.flip_flops, flip_flop))
        carries.append(error(logic.carry_cells, carry))
        assert logic.small_rams == small, name
    assert median(luts) < 0.06
    assert max(luts) < 0.25
    assert median(flip_flops) == 0
    assert max(flip_flops) < 0.1
    assert median(carries) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gemm 2x2 int8", "complex product"])
def test_estimate_beside_a_synthesis_of_today(name: str) -> None:
    pytest.importorskip("pyosys")
    logic, measured = estimate(name), synthesized(t2s.lower({**DESIGNS, **CHECKED}[name]()))
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


def test_logic_is_not_estimated_of_other_devices_and_of_floats() -> None:
    assert t2s.resources(gemm(2, 2, 6, 8)).logic is None
    x, y, i = ImageParam(Float(32), 1, name="x"), Func("y"), Var("i")
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
