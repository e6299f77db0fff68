"""Chips of Cologne Chip: pins, what is built of logic, and the netlist beside the simulator."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import t2s
from benchmarks.chip_designs import fir, polynomial
from t2s.backends.verilog.flow import flow, toolchain
from t2s.backends.verilog.flow.board_top import pins_of
from t2s.backends.verilog.flow.families import GATEMATE
from t2s.backends.verilog.flow.parts import BOARDS
from t2s.backends.verilog.flow.routing import Routed
from t2s.backends.verilog.technology import find_technology
from t2s.backends.verilog.top import top_of
from t2s.core.errors import UserError
from t2s.driver.chip_run import made_up
from tests.backends.test_chip_flow import netlist_of_products, product

DEVICE, BOARD = "ccgm1a1", "gatemate-evb"
needs_placer = pytest.mark.skipif(
    find_spec("yowasp_nextpnr_himbaechel_gatemate") is None,
    reason="the extra chips-gatemate is not installed",
)


def test_pins() -> None:
    assert GATEMATE.tools is not None
    name, written = GATEMATE.tools.constraints
    assert name == "board.ccf"
    assert written(pins_of(BOARDS[BOARD]), 10) == (
        'Pin_in "clock" Loc = "IO_SB_A8" | SCHMITT_TRIGGER=true;\n'
        'Pin_out "led_passed" Loc = "IO_EB_B1";\n'
        'Pin_out "led_failed" Loc = "IO_EB_B2";\n'
        'Pin_out "transmit" Loc = "IO_NB_A1";\n'
    )


def test_a_part_without_a_board() -> None:
    with pytest.raises(UserError) as caught:
        t2s.synthesize(product(), DEVICE)
    text = str(caught.value)
    assert "ccgm1a1 takes pins for all ports, and a design alone has none" in text
    assert f"expected: board= one of {BOARD}, with memory='bram'" in text


def test_wheels_that_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "find_spec", lambda name: name == "pyosys" or None)
    monkeypatch.setattr(toolchain.shutil, "which", lambda name: None)
    with pytest.raises(UserError) as caught:
        t2s.synthesize(product(), board=BOARD)
    text = str(caught.value)
    assert "nextpnr-himbaechel-gatemate is not installed" in text
    assert "hint:     pip install 't2s-spatial[chips-gatemate]'" in text


def test_products_are_made_of_logic(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The FPGA has no multipliers, so the text has no line for them."""

    def build(job: flow.ChipJob, folder: Path, begin: Any) -> flow.Built:
        return flow.Built(
            names=top_of(job.graph, job.times, find_technology("gatemate")),
            cells={},
            routed=Routed(
                fmax_mhz=48.0, used={"CPE_LT": 3000, "CPE_FF": 900, "RAM_HALF": 4}, slowest=()
            ),
            bitstream=None,
            seconds={},
        )

    monkeypatch.setattr(flow, "build", build)
    chip = t2s.synthesize(product(), board=BOARD, directory=tmp_path / "chip", clock_mhz=40)
    assert (chip.luts, chip.flip_flops, chip.dsps, chip.rams) == (3000, 900, 0, 4)
    assert str(chip).splitlines()[:5] == [
        "C on GateMate evaluation board with a CCGM1A1",
        "  LUTs           3,000 of 40,960",
        "  flip-flops       900 of 40,960",
        "  block RAMs         4 of 64",
        "  clock           48.0 MHz",
    ]
    report = t2s.resources(product(), device=DEVICE)
    assert (report.dsp_blocks, report.fits) == (0, True)


@pytest.mark.slow
@pytest.mark.parametrize("bits", [8, 16, 32])
def test_the_netlist_of_products(bits: int, tmp_path: Path) -> None:
    assert "CC_MULT" in netlist_of_products(bits, DEVICE, tmp_path)


@pytest.mark.slow
@needs_placer
@pytest.mark.parametrize("name", ["polynomial", "product", "FIR"])
def test_bitstream_and_netlist(name: str, tmp_path: Path) -> None:
    func = {
        "polynomial": lambda: polynomial(24),
        "product": lambda: product(steps=4),
        "FIR": lambda: fir(3, 8, 8),
    }[name]()
    inputs = made_up(t2s.lower(func))
    chip = t2s.synthesize(func, inputs=inputs, board=BOARD, directory=tmp_path / "chip")
    assert chip.bitstream is not None
    assert chip.bitstream.stat().st_size > 50_000
    assert chip.dsps == 0
    assert chip.rams > 0
    assert chip.cycles == t2s.cycles(func, device=DEVICE)
    assert chip.fmax_mhz > 20
    for stalls in (None, t2s.RandomStalls(seed=5, one_in=3)):
        assert chip.verify(inputs, stalls=stalls).differences == ()
