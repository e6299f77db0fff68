"""Projects of Tiny Tapeout: their files, and their own test in Verilator."""

from __future__ import annotations

import json
import re
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import t2s
from t2s.backends.verilog.verilator import verilator_available
from t2s.core.errors import UnsupportedError, UserError
from tests.backends.test_chip_flow import blurred, product
from tests.backends.verilated import passes_cocotb

# Yosys is not imported here: its library has threads of its own, which other tests count
pytestmark = pytest.mark.skipif(find_spec("pyosys") is None, reason="Yosys is not installed")
yaml = pytest.importorskip("yaml")

# An inverter, a buffer, NAND, NOR and a flip-flop, with areas of 1, 2 and 4.
CELLS = """
library(few) {
  cell(INV) { area : 1; pin(A) { direction : input; }
    pin(Y) { direction : output; function : "!A"; } }
  cell(BUF) { area : 1; pin(A) { direction : input; }
    pin(Y) { direction : output; function : "A"; } }
  cell(NOR) { area : 2; pin(A) { direction : input; } pin(B) { direction : input; }
    pin(Y) { direction : output; function : "!(A + B)"; } }
  cell(NAND) { area : 2; pin(A) { direction : input; } pin(B) { direction : input; }
    pin(Y) { direction : output; function : "!(A * B)"; } }
  cell(DFF) { area : 4; ff(IQ, IQN) { clocked_on : "C"; next_state : "D"; }
    pin(C) { direction : input; clock : true; } pin(D) { direction : input; }
    pin(Q) { direction : output; function : "IQ"; } }
}
"""


@pytest.fixture(scope="module")
def inputs() -> dict[str, Any]:
    random = np.random.default_rng(5)
    return {
        name: random.integers(-128, 128, shape).astype(np.int8)
        for name, shape in (("A", (2, 6)), ("B", (6, 2)))
    }


@pytest.fixture(scope="module")
def project(inputs: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("project")
    (folder / "few.lib").write_text(CELLS)
    title = 'A "product": of\nmatrices'
    return t2s.chips.tiny_tapeout(
        product(),
        folder / "made",
        inputs=inputs,
        title=title,
        author="A, B & C",
        tiles="2x2",
        clock_mhz=12.5,
        liberty=folder / "few.lib",
    )


def test_what_the_shuttle_reads(project: Any) -> None:
    """The keys that Tiny Tapeout asks for; texts of a user stay what they are."""
    told = yaml.safe_load((project.directory / "info.yaml").read_text())
    assert told["yaml_version"] == 6
    assert told["project"] == {
        "title": 'A "product": of\nmatrices',
        "author": "A, B & C",
        "description": "",
        "language": "SystemVerilog",
        "clock_hz": 12_500_000,
        "tiles": "2x2",
        "top_module": "tt_um_C",
        "source_files": ["tt_um_C.v"],
    }
    pins = [f"{group}[{bit}]" for group in ("ui", "uo", "uio") for bit in range(8)]
    assert list(told["pinout"]) == pins
    assert project.name == "tt_um_C"


def test_plain_verilog(project: Any) -> None:
    text = (project.directory / "src" / "tt_um_C.v").read_text()
    ports = "clk, ui_in, uo_out, uio_in, uio_out, uio_oe, ena, rst_n"
    (found,) = re.findall(r"module tt_um_C\((.*?)\);", text)
    assert sorted(found.split(", ")) == sorted(ports.split(", "))
    assert not re.search(r"\b(logic|always_ff|always_comb|package|import)\b", text)


def test_the_bytes_of_a_run(project: Any, inputs: dict[str, Any]) -> None:
    """Rows of A and columns of B go in, elements of C come out, the lowest byte first."""
    run = json.loads((project.directory / "test" / "run.json").read_text())["streams"]
    A, B = inputs["A"], inputs["B"]
    results = (A.astype(np.int32) @ B.astype(np.int32)).reshape(-1)
    expected = [*A, *B.T, *(results[at : at + 1] for at in range(4))]
    assert [stream["bytes"] for stream in run] == [list(array.tobytes()) for array in expected]
    assert [stream["to_design"] for stream in run] == [True] * 4 + [False] * 4
    assert project.cycles == t2s.cycles(product(), device="tiny-tapeout")
    page = (project.directory / "docs" / "info.md").read_text()
    assert "| 4 | C_unloader_C_write_0 | read | C | 4 | 1 |" in page


def test_cells_of_a_library(project: Any) -> None:
    """Of cells with areas of 1, 2 and 4 there are some of each kind."""
    assert project.cells < project.area < 4 * project.cells
    assert project.cells > 2000


@pytest.mark.slow
@pytest.mark.verilator
@pytest.mark.skipif(not verilator_available(), reason="Verilator or a C++ compiler is missing")
@pytest.mark.parametrize("spoiled", [False, True])
def test_the_test_of_a_project(project: Any, tmp_path: Path, spoiled: bool) -> None:
    """It passes, and fails if another byte is expected."""
    pytest.importorskip("cocotb")
    shutil.copytree(project.directory, tmp_path / "project")
    tests = tmp_path / "project" / "test"
    if spoiled:
        run = json.loads((tests / "run.json").read_text())
        run["streams"][-1]["bytes"][0] ^= 1
        (tests / "run.json").write_text(json.dumps(run))
    source = tmp_path / "project" / "src" / "tt_um_C.v"
    seen = {"PYTHONPATH": str(tests)}
    assert passes_cocotb("tt_um_C", [source], "test", tmp_path, seen, within=tests) != spoiled


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="tiles= must be the size of a project"):
        t2s.chips.tiny_tapeout(product(), tmp_path, tiles="5x5")
    with pytest.raises(UserError, match="clock_mhz must be a frequency"):
        t2s.chips.tiny_tapeout(product(), tmp_path, clock_mhz=0)
    with pytest.raises(UserError, match="liberty= must name a library of cells"):
        t2s.chips.tiny_tapeout(product(), tmp_path, liberty=tmp_path / "nothing.lib")
    with pytest.raises(UnsupportedError, match="it has 24 PEs that load or store, and four pins"):
        t2s.chips.tiny_tapeout(product(pes=4), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_design_of_one_pe(tmp_path: Path) -> None:
    """Loads of a design without loaders are streams, too."""
    made = t2s.chips.tiny_tapeout(blurred(), tmp_path)
    assert {stream.tensor for stream in made.streams} == {"x", "y"}
    assert made.cells is None
