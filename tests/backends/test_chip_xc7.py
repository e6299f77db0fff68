"""Chips of AMD's series 7: synthesized, and the netlist beside the simulator; not placed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import t2s
from benchmarks.chip_designs import fir, matrix_vector
from t2s.backends.verilog.flow import flow, toolchain
from t2s.backends.verilog.technology import find_technology
from t2s.backends.verilog.top import top_of
from t2s.core.errors import UnsupportedError, UserError
from t2s.driver.chip_run import made_up
from tests.backends.test_chip_flow import product

PART = "xc7a35t"


def built(job: flow.ChipJob, folder: Path, begin: Any) -> flow.Built:
    cells = {"LUT2": 20, "LUT6": 300, "RAM32M": 2, "FDRE": 500, "FDSE": 5, "DSP48E1": 4}
    return flow.Built(
        names=top_of(job.graph, job.times, find_technology("xc7")),
        cells={**cells, "RAMB18E1": 5, "CARRY4": 40, "INV": 7},
        routed=None,
        bitstream=None,
        seconds={},
    )


def test_what_is_known_without_a_placer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(flow, "build", built)
    chip = t2s.synthesize(product(), PART, directory=tmp_path / "chip")
    assert (chip.luts, chip.flip_flops, chip.dsps, chip.rams) == (328, 505, 4, 3)
    assert (chip.fmax_mhz, chip.critical, chip.bitstream) == (None, None, None)
    assert not chip.meets_clock
    assert repr(chip) == "<Chip C on xc7a35t: not routed>"
    assert str(chip) == (
        "C on xc7a35t\n"
        "  LUTs             328 of 20,800\n"
        "  flip-flops       505 of 41,600\n"
        "  multipliers        4 of 90\n"
        "  block RAMs         3 of 50\n"
        "  clock        unknown: no tool of the flow places it; Vivado takes the SystemVerilog in "
        "the folder, and t2s.chips.rtl_kernel makes a kernel\n"
        f"  cycles      {t2s.cycles(product(), device=PART):>8}"
    )
    page = chip.report(tmp_path / "chip.html").read_text(encoding="utf-8")
    assert "after routing" not in page


def test_only_yosys_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "find_spec", lambda name: None)
    monkeypatch.setattr(toolchain.shutil, "which", lambda name: None)
    with pytest.raises(UserError, match="yosys is not installed"):
        t2s.synthesize(product(), PART)


def test_what_is_too_large() -> None:
    with pytest.raises(UnsupportedError) as caught:
        t2s.synthesize(product(pes=10), PART)
    text = str(caught.value)
    assert "C needs 100 multipliers, and xc7a35t has 90" in text
    assert "hint:     xc7a100t has enough" in text


def test_logic_is_not_estimated() -> None:
    report = t2s.resources(product(), device=PART)
    assert (report.dsp_blocks, report.logic) == (4, None)


def random(graph: Any, bits: int) -> dict[str, np.ndarray]:
    found = made_up(graph)
    numbers, limit = np.random.default_rng(3), 1 << (bits - 1)
    return {
        name: numbers.integers(-limit, limit, value.shape).astype(value.dtype)
        for name, value in found.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "bits", "multipliers"),
    [
        (lambda: product(steps=4), 8, 4),
        (lambda: product(steps=5, bits=16), 16, 4),
        (lambda: product(steps=3, bits=32), 32, 12),
        (lambda: fir(5, 16, 16), 16, 5),
        (lambda: matrix_vector(4, 64, 4, 16), 16, 4),
    ],
    ids=["int8", "int16", "int32", "FIR", "matrix-vector"],
)
def test_synthesis_and_netlist(
    make: Callable[[], t2s.Func], bits: int, multipliers: int, tmp_path: Path
) -> None:
    func = make()
    graph = t2s.lower(func)
    inputs = random(graph, bits)
    chip = t2s.synthesize(func, PART, inputs=inputs, directory=tmp_path / "chip", progress=False)
    assert chip.dsps == multipliers == t2s.resources(func, device=PART).dsp_blocks
    assert chip.rams > 0
    assert (chip.directory / "self_test.sv").is_file()
    for stalls in (None, t2s.RandomStalls(seed=5, one_in=3)):
        assert chip.verify(inputs, stalls=stalls).differences == ()
