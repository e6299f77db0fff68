"""RTL kernels for Vitis: their description and script, and a run on memories of cocotb."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import t2s
from t2s.backends.verilog.verilator import verilator_available
from t2s.core.errors import UnsupportedError, UserError
from tests.backends.test_chip_flow import product, random_inputs, vectors
from tests.backends.verilated import passes_cocotb


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return t2s.chips.rtl_kernel(product(), tmp_path_factory.mktemp("kernel"), data_bits=64)


def module_ports(kernel: Any) -> dict[str, int]:
    """The bits of all ports of the module that is the kernel."""
    text = (kernel.directory / "src" / "kernel.sv").read_text()
    (ports,) = re.findall(rf"^module {kernel.name} \((.*?)^\);", text, re.MULTILINE | re.DOTALL)
    found = re.findall(r"(?:in|out)put logic (?:\[(\d+):0\] )?(\w+)", ports)
    return {name: int(high or 0) + 1 for high, name in found}


def test_the_description(kernel: Any) -> None:
    """The ports and the registers of ``kernel.xml`` are those of the module and of the header."""
    (described,) = ElementTree.parse(kernel.directory / "kernel.xml").getroot()
    assert described.get("name") == kernel.name == "C_axi"
    assert described.get("hwControlProtocol") == "ap_ctrl_hs"
    assert described.get("interrupt") == "false"
    wide = module_ports(kernel)
    slave, *masters = described.findall("ports/port")
    assert (slave.get("name"), slave.get("mode")) == ("s_axi_control", "slave")
    assert slave.get("range") == hex(2 ** wide["s_axi_control_awaddr"])
    assert [one.get("mode") for one in masters] == ["master"] * 3
    for one, channels in zip(masters, ("ar r", "ar r", "aw w b"), strict=True):
        has = {name.removeprefix(f"{one.get('name')}_") for name in wide if one.get("name") in name}
        assert {f"{channel}valid" for channel in channels.split()} <= has
        data = wide[f"{one.get('name')}_{'r' if 'r' in channels.split() else 'w'}data"]
        assert one.get("dataWidth") == str(data) == "64"
    arguments = described.findall("args/arg")
    assert [one.get("name") for one in arguments] == ["A", "B", "C"]
    assert [one.get("type") for one in arguments] == ["int8_t*", "int8_t*", "int32_t*"]
    assert [one.get("port") for one in arguments] == [one.get("name") for one in masters]
    for at, one in enumerate(arguments):
        assert one.get("id") == str(at)
        offset = kernel.registers[f"ADDRESS_{one.get('name')}"]
        assert int(one.get("offset"), 16) == offset == 16 + 8 * at
        assert one.get("addressQualifier") == "1"
        assert one.get("size") == one.get("hostSize") == "0x8"


def test_the_header(kernel: Any) -> None:
    text = (kernel.directory / "C.h").read_text()
    macros = dict(re.findall(r"#define C_(\w+) (\w+)", text))
    sizes = {"BYTES_A": 12, "BYTES_B": 12, "BYTES_C": 16}
    assert {name: int(value, 0) for name, value in macros.items()} == {**kernel.registers, **sizes}


def test_the_script(kernel: Any) -> None:
    """It names the module, all buses of ``kernel.xml``, and files that are there."""
    text = (kernel.directory / "package.tcl").read_text()
    buses = re.findall(r"associate_bus_interfaces -busif (\w+) -clock ap_clk", text)
    ports = ElementTree.parse(kernel.directory / "kernel.xml").getroot().findall("*/ports/port")
    assert buses == [one.get("name") for one in ports]
    assert "set_property top C_axi [current_fileset]" in text
    assert "-kernel_name C_axi " in text
    assert "glob $folder/src/*.sv" in text
    sources = sorted(kernel.directory.glob("src/*"))
    assert len(sources) > 10
    assert all(path.suffix == ".sv" for path in sources)
    assert {path.name for path in kernel.files if path.parent == kernel.directory} == {
        "kernel.xml",
        "package.tcl",
        "C.h",
    }


def test_cycles(kernel: Any) -> None:
    assert kernel.cycles == t2s.cycles(product(), device="rtl-kernel")
    assert kernel.data_bits == 64


def test_bandwidth_is_no_limit(tmp_path: Path) -> None:
    """Tensors are in memory of the kernel while the design runs, whatever the device has."""
    inputs = random_inputs(product(pes=4))
    narrow = t2s.devices.find_device("arria10")
    made = t2s.chips.rtl_kernel(product(pes=4), tmp_path, inputs=inputs, device=narrow)
    assert made.cycles <= t2s.cycles(product(pes=4), inputs, device=narrow)


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="data_bits= must be a width of AXI4"):
        t2s.chips.rtl_kernel(product(), tmp_path, data_bits=48)
    with pytest.raises(UnsupportedError, match="a word of 64 bits does not fit in a beat of 32"):
        t2s.chips.rtl_kernel(vectors(), tmp_path, data_bits=32)
    x, y = t2s.ImageParam(t2s.Int(16), 1, name="x"), t2s.Func("y")
    i, k, kv = t2s.Var("i"), t2s.RDom(0, 8, name="k"), t2s.Var("kv")
    y[i] = t2s.cast(t2s.Int(32), 0)
    y[i] += t2s.cast(t2s.Int(32), x[i + k])
    y.bound(i, 0, 3).split(k, k, kv, 4).reorder(kv, k, i).vload(x)
    with pytest.raises(UnsupportedError, match="vectors of 4 that do not lie at multiples"):
        t2s.chips.rtl_kernel(y, tmp_path)
    with pytest.raises(UserError, match="unknown memory 'axi'") as caught:
        t2s.synthesize(product(), "ecp5-25k", memory="axi")
    assert "t2s.chips.rtl_kernel" in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.skipif(find_spec("pyosys") is None, reason="Yosys is not installed")
def test_cells_of_an_fpga_of_amd(kernel: Any, tmp_path: Path) -> None:
    """Yosys reads the sources, and infers a multiplier for each PE."""
    from t2s.backends.verilog.flow.toolchain import run_yosys

    sources = sorted(path.name for path in kernel.directory.glob("src/*.sv"))
    for name in sources:
        (tmp_path / name).write_text((kernel.directory / "src" / name).read_text())
    reading = f"read_slang --top {kernel.name} {' '.join(sources)}"
    passes = [f"synth_xilinx -family xcup -top {kernel.name}", "tee -q -o cells.json stat -json"]
    run_yosys([reading, *passes], tmp_path, 600)
    text = (tmp_path / "cells.json").read_text()
    cells = json.loads(text[text.index("{") :])["design"]["num_cells_by_type"]
    assert cells["DSP48E2"] == 4


@pytest.mark.slow
@pytest.mark.verilator
@pytest.mark.skipif(not verilator_available(), reason="Verilator or a C++ compiler is missing")
def test_memories_of_cocotb(kernel: Any, tmp_path: Path) -> None:
    """Those of cocotbext-axi, whose channels pause at random, for 20 seeds; one never does."""
    pytest.importorskip("cocotbext.axi")
    random = np.random.default_rng(2)
    tensors, runs = {}, []
    for at, name in enumerate("ABC"):
        tensors[name] = {"read": name != "C", "port": f"m_axi_{name}", "address": 4088 + 4096 * at}
    for _ in range(21):
        arrays = {
            name: random.integers(-100, 100, value.shape).astype(value.dtype)
            for name, value in random_inputs(product()).items()
        }
        inputs = {name: list(array.tobytes()) for name, array in arrays.items()}
        result = list(np.asarray(t2s.interpret(product(), arrays)).tobytes())
        # what is behind the result stays
        before, after = [238] * (len(result) + 8), [*result, *[238] * 8]
        runs.append({"before": {**inputs, "C": before}, "after": {**inputs, "C": after}})
    told = {"registers": dict(kernel.registers), "tensors": tensors, "runs": runs}
    (tmp_path / "kernel.json").write_text(json.dumps(told))
    seen = {"KERNEL": str(tmp_path / "kernel.json"), "CYCLES": str(kernel.cycles)}
    sources = sorted(kernel.directory.glob("src/*.sv"))
    assert passes_cocotb(kernel.name, sources, "tests.backends.cocotb_axi", tmp_path, seen)
