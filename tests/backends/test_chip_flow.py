"""Chips of integer designs: the flow, its reports, and the netlist beside the simulator."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import t2s
from t2s.backends.verilog.emit import chip_files
from t2s.backends.verilog.flow import netlist, toolchain
from t2s.backends.verilog.flow.critical import critical_path
from t2s.backends.verilog.flow.flow import ChipJob, Memory, Sources, sources_of
from t2s.backends.verilog.flow.parts import PARTS
from t2s.backends.verilog.flow.routing import Hop, read_report
from t2s.backends.verilog.flow.toolchain import ChipError
from t2s.backends.verilog.technology import find_technology
from t2s.backends.verilog.top import top_of
from t2s.backends.verilog.verilator import HardwareModel, find_tools
from t2s.core.child import Ended
from t2s.core.errors import UserError
from t2s.core.ops import Op
from t2s.driver.chip_run import made_up
from t2s.driver.device_times import device_times
from t2s.driver.synthesize import differences
from t2s.graph.graph import Graph
from t2s.simulator.devices import DEVICES, Device, TypeFamily
from t2s.simulator.program.build import build_program
from tests.backends import designs

PART = PARTS["ecp5-85k"]


def product(pes: int = 2, steps: int = 6, bits: int = 8) -> t2s.Func:
    """C = A B on a square array of PEs."""
    A = t2s.ImageParam(t2s.Int(bits), 2, name="A")
    B = t2s.ImageParam(t2s.Int(bits), 2, name="B")
    i, j = t2s.variables("i j")
    k, C = t2s.RDom(0, steps, name="k"), t2s.Func("C")
    C[i, j] = t2s.cast(t2s.Int(32), 0)
    C[i, j] += t2s.cast(t2s.Int(32), A[i, k]) * t2s.cast(t2s.Int(32), B[k, j])
    C.bound(i, 0, pes).bound(j, 0, pes).reorder(j, i, k).unroll(i, j)
    A_loader, B_loader, C_unloader = t2s.funcs("A_loader B_loader C_unloader")
    C.isolate_producer(A, A_loader).isolate_producer(B, B_loader).isolate_consumer(C_unloader)
    C.forward(A_loader, j).forward(B_loader, i)
    return C


def netlist_of_products(bits: int, part: str, folder: Path) -> str:
    """The netlist of ``product``, which does with numbers of all bits what the simulator says."""
    func = product(steps=5, bits=bits)
    random, graph = np.random.default_rng(2), t2s.lower(func)
    limit = 1 << (bits - 1)
    inputs = {
        name: random.integers(-limit, limit, shape).astype(f"int{bits}")
        for name, shape in (("A", (2, 5)), ("B", (5, 2)))
    }
    simulated = t2s.simulate(func, inputs, device=part)
    times = device_times(simulated.program)
    model = netlist.netlist_model(graph, times, PARTS[part], folder, 600)
    found = model.run(times, inputs, {}, stalling=None, time_limit=300)
    assert list(differences(found, simulated)) == []
    return (folder / "netlist.v").read_text()


def vectors() -> t2s.Func:
    """Sums of vectors of four elements, which are words of memory."""
    A, C = t2s.ImageParam(t2s.Int(16), 2, name="A"), t2s.Func("C")
    i, k, kv = t2s.Var("i"), t2s.RDom(0, 16, name="k"), t2s.Var("kv")
    C[i] = t2s.cast(t2s.Int(32), 0)
    C[i] += t2s.cast(t2s.Int(32), A[i, k])
    return C.bound(i, 0, 3).split(k, k, kv, 4).reorder(kv, k, i).vload(A)


def stencil() -> t2s.Func:
    """A filter of three taps, one result in a cycle."""
    x, y = t2s.ImageParam(t2s.Int(16), 1, name="x"), t2s.Func("y")
    i = t2s.Var("i")
    y[i] = x[i] * 3 - x[i + 1] * 5 + x[i + 2]
    return y.bound(i, 0, 20)


def blurred() -> t2s.Func:
    """Three rows of an image, ten columns wide, with one weight."""
    x, y = t2s.ImageParam(t2s.Int(16), 2, name="x"), t2s.Func("y")
    i, j = t2s.variables("i j")
    y[i, j] = x[i, j] + x[i + 1, j] * 3 + x[i + 2, j]
    return y.bound(i, 0, 3).bound(j, 0, 10)


def random_inputs(func: t2s.Func) -> dict[str, Any]:
    random = np.random.default_rng(3)
    graph = t2s.lower(func)
    return {
        tensor.array: random.integers(-100, 100, tensor.shape).astype(tensor.type.numpy)
        for tensor in graph.tensors
        if tensor.role.value == "input"
    }


def job(
    func: t2s.Func, device: Device = DEVICES[PART.name], memory: Memory = Memory.BRAM
) -> tuple[ChipJob, int]:
    """The job of a chip, and its cycles in the simulator."""
    graph, inputs = t2s.lower(func), random_inputs(func)
    simulated = t2s.simulate(func, inputs, device=device)
    program = build_program(graph, device, inputs, {})
    chosen = ChipJob(
        graph=graph,
        times=device_times(program),
        arrays={**inputs, **simulated.outputs},
        parameters={},
        memory=memory,
        part=PART,
        board=None,
        clock_mhz=150,
        seed=1,
        time_limit=600,
    )
    return chosen, simulated.cycles


# ------------------------------------------------------------------------------- the self test

_BENCH = """
module bench(input logic clock);
  logic reset = 1;
  int ran = 0;
  logic done, passed;
  logic [31:0] cycles;
  {top} test(.clock, .reset, .done, .passed, .cycles);
  always_ff @(posedge clock) begin
    ran <= ran + 1;
    if (ran == 4) reset <= 0;
    if (done) $display("passed %0d, %0d cycles", passed, cycles);
    if (done || ran > 5000) $finish;
  end
endmodule
"""
_MAIN = """
#include "Vbench.h"
int main() {
    Vbench bench;
    for (int i = 0; !Verilated::gotFinish(); ++i) { bench.clock = i & 1; bench.eval(); }
}
"""


def run_bench(files: dict[str, str], read: list[str], folder: Path) -> str:
    """What a module ``bench`` prints in Verilator, which reads some of the files."""
    found = find_tools()
    if isinstance(found, str):
        pytest.skip(f"{found} is not installed")
    for name, text in {**files, "bench.cpp": _MAIN}.items():
        (folder / name).write_text(text)
    command = [str(found.verilator), "-Wno-fatal", "--cc", "--exe", "--build"]
    command += ["--output-split", "0", "--top-module"]
    command += ["bench", *read, "bench.cpp"]
    environment = {**os.environ, "VERILATOR_ROOT": str(found.root)}
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    ran = subprocess.run(["obj_dir/Vbench"], cwd=folder, check=True, capture_output=True, text=True)
    return ran.stdout


def run_self_test(sources: Sources, folder: Path, **changed: str) -> str:
    """What the self test says in Verilator."""
    files = {**sources.files, **changed, "bench.sv": _BENCH.format(top=sources.top)}
    return run_bench(files, [*sources.read, "bench.sv"], folder).splitlines()[0]


@pytest.mark.slow
@pytest.mark.parametrize("define", [product, vectors, stencil])
def test_self_test(define: Any, tmp_path: Path) -> None:
    """It passes in the simulator's cycles, and fails with one bit of one input flipped."""
    chosen, cycles = job(define())
    sources = sources_of(chosen)
    (tmp_path / "right").mkdir()
    (tmp_path / "wrong").mkdir()
    assert run_self_test(sources, tmp_path / "right") == f"passed 1, {cycles} cycles"
    image = next(name for name in sources.files if re.match(r"[Ax].*\.hex", name))
    words = sources.files[image].splitlines()
    words[1] = f"{int(words[1], 16) ^ 1:x}"
    said = run_self_test(sources, tmp_path / "wrong", **{image: "\n".join((*words, ""))})
    assert said == f"passed 0, {cycles} cycles"


@pytest.mark.slow
def test_names_of_the_library(tmp_path: Path) -> None:
    """A user's Funcs may be called like modules and files of a chip."""
    x, image = t2s.ImageParam(t2s.Int(16), 1, name="netlist"), t2s.Func("image")
    i = t2s.Var("i")
    image[i] = x[i] + 1
    judge, fifo = t2s.funcs("judge fifo")
    image.bound(i, 0, 4).isolate_producer(x, judge).isolate_consumer(fifo)
    chosen, cycles = job(image)
    assert run_self_test(sources_of(chosen), tmp_path) == f"passed 1, {cycles} cycles"


@pytest.mark.slow
def test_other_latencies(tmp_path: Path) -> None:
    """A device with four cycles for a product, and a load that takes three."""
    table = dict(DEVICES[PART.name].operator_latencies)
    table[Op.MULTIPLY, TypeFamily.INTEGER] = 4
    device = replace(DEVICES[PART.name], operator_latencies=table, load_latency=3)
    chosen, cycles = job(product(), device=device)
    assert cycles == job(product())[1] + 2
    assert run_self_test(sources_of(chosen), tmp_path) == f"passed 1, {cycles} cycles"


def block_ram() -> str:
    """A model of DP16KD whose contents are constant, as in the images of a self test.

    A row of ``INITVAL_n`` has 16 words of 18 bits, each in 20.  An address counts single bits, of
    which a byte has 8, and 9 where words are so wide [Lattice TN-02204].
    """
    rows = [f"INITVAL_{row:02X}" for row in range(64)]
    parameters = [f"parameter logic [319:0] {name} = 0" for name in rows]
    parameters += [
        f'parameter {name} = "{value}"'
        for name, value in (
            *(("REGMODE_A", "NOREG"), ("REGMODE_B", "NOREG"), ("RESETMODE", "SYNC")),
            *(("ASYNC_RESET_RELEASE", "SYNC"), ("CSDECODE_A", "0b000"), ("CSDECODE_B", "0b000")),
            *(("CLKAMUX", "CLKA"), ("CLKBMUX", "CLKB"), ("GSR", "AUTO"), ("INITVAL", "")),
            *(("WRITEMODE_A", "NORMAL"), ("WRITEMODE_B", "NORMAL")),
        )
    ]
    parameters += [f"parameter DATA_WIDTH_{side} = 18" for side in "AB"]
    ports, body = [], []
    for side in "AB":
        ports += [f"input {name}{side}" for name in ("CLK", "WE", "CE", "OCE", "RST")]
        ports += [f"input CS{side}{at}" for at in range(3)]
        ports += [f"input AD{side}{at}" for at in range(14)]
        ports += [f"input DI{side}{at}" for at in range(18)]
        ports += [f"output DO{side}{at}" for at in range(18)]
        address = ", ".join(f"AD{side}{at}" for at in reversed(range(14)))
        outputs = ", ".join(f"DO{side}{at}" for at in reversed(range(18)))
        body += [
            f"wire [13:0] at{side} = {{{address}}}; logic [17:0] read{side}, out{side};",
            f"assign {{{outputs}}} = out{side};",
            f"localparam int W{side} = DATA_WIDTH_{side};",
            f"wire [31:0] word{side} = W{side} == 18 ? 18 * at{side}[13:4]",
            f"  : 9 * at{side}[13:3] + (W{side} == 9 ? 0 : 32'(at{side}[2:0]) & ~(W{side} - 1));",
            f"always_ff @(posedge CLK{side}) if (CE{side}) begin",
            f"  for (int b = 0; b < 18; b++) read{side}[b] <= b < W{side} && bits[word{side} + b];",
            f'end if (REGMODE_{side} == "OUTREG") begin : registered{side}',
            f"  always_ff @(posedge CLK{side}) if (OCE{side}) out{side} <= read{side};",
            f"end else begin : plain{side} assign out{side} = read{side}; end",
        ]
    contents = ", ".join(reversed(rows))
    return "\n".join(
        (
            f"module DP16KD #({', '.join(parameters)}) ({', '.join(ports)});",
            f"wire [20479:0] rows = {{{contents}}}; logic [18431:0] bits;",
            "always_comb for (int w = 0; w < 1024; w++) bits[18*w +: 18] = rows[20*w +: 18];",
            *body,
            "endmodule",
        )
    )


def with_flipped_bit(sources: Sources, image: str, word: int, bit: int) -> Sources:
    """The sources with another lowest bit in a word of an image, if ``bit`` is 1."""
    words = sources.files[image].splitlines()
    words[word] = f"{int(words[word], 16) ^ bit:0{len(words[word])}x}"
    return replace(sources, files={**sources.files, image: "\n".join((*words, ""))})


def run_netlist(sources: Sources, folder: Path, bench: str) -> str:
    """What a module ``bench`` around the cells after synthesis prints in Verilator."""
    from t2s.backends.verilog.flow.flow import synthesis_commands
    from t2s.backends.verilog.flow.netlist import _cells

    for name, text in sources.files.items():
        (folder / name).write_text(text)
    commands = [*synthesis_commands(PART, sources), "write_verilog -noattr netlist.v"]
    toolchain.run_yosys(commands, folder, 600)
    primitives = sources.files["ecp5_primitives.sv"] + block_ram()
    files = {
        "primitives.sv": primitives,
        "cells.v": _cells(PART, primitives),
        "netlist.v": (folder / "netlist.v").read_text(),
        "bench.sv": bench,
    }
    return run_bench(files, list(files), folder)


@pytest.mark.slow
def test_the_netlist_of_a_self_test(tmp_path: Path) -> None:
    """The cells after synthesis, block RAMs included, pass in the simulator's cycles or fail."""
    chosen, cycles = job(product())
    for flipped in (0, 1):
        folder = tmp_path / str(flipped)
        folder.mkdir()
        sources = with_flipped_bit(sources_of(chosen), "A.hex", 1, flipped)
        said = run_netlist(sources, folder, _BENCH.format(top=sources.top))
        assert "DP16KD" in (folder / "netlist.v").read_text()
        assert said.splitlines()[0] == f"passed {1 - flipped}, {cycles} cycles"


def test_what_has_no_self_test() -> None:
    A = t2s.ImageParam(t2s.Int(32), 2, name="A")
    i, k = t2s.Var("i"), t2s.RDom(0, 4, name="k")
    total, scaled = t2s.funcs("total scaled")
    total[i] = 0
    total[i] += A[i, k]
    scaled[i] = total[i] * 2
    with pytest.raises(UserError, match="tensors that are stored and loaded again have no memory"):
        t2s.synthesize(scaled.bound(i, 0, 8), "ecp5-85k")


# ------------------------------------------------------------------------------------ the flow


@pytest.mark.parametrize(
    ("define", "loaders"), [(lambda: product(steps=5), 4), (blurred, 3)], ids=["product", "blurred"]
)
def test_cells(define: Any, loaders: int, tmp_path: Path) -> None:
    """Synthesis alone: as many multipliers as t2s counts, none of them for addresses."""
    chosen, _ = job(define())
    sources = sources_of(chosen)
    for name, text in sources.files.items():
        (tmp_path / name).write_text(text)
    from t2s.backends.verilog.flow.flow import synthesis_commands

    toolchain.run_yosys(synthesis_commands(PART, sources), tmp_path, 600)
    netlist = (tmp_path / "netlist.json").read_text()
    cells = [cell["type"] for cell in json.loads(netlist)["modules"][sources.top]["cells"].values()]
    assert cells.count("MULT18X18D") == t2s.resources(chosen.graph, device=PART.name).dsp_blocks > 0
    assert len(re.findall(r'"REGMODE_B": "OUTREG"', netlist)) == loaders
    assert not (tmp_path / "log.txt").exists()


@pytest.mark.slow
def test_bitstream_and_netlist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    func = product(steps=4)
    inputs = random_inputs(func)
    chip = t2s.synthesize(func, inputs=inputs, board="ulx3s", directory=tmp_path / "chip")
    assert chip.bitstream == tmp_path / "chip" / "C.bit"
    assert chip.bitstream.stat().st_size > 100_000
    assert (chip.dsps, chip.rams) == (4, 4)
    assert chip.cycles == t2s.cycles(func, device="ecp5-85k")
    assert chip.fmax_mhz > 100
    assert str(chip).splitlines()[0] == "C on Radiona ULX3S with an LFE5U-85F"
    assert list(chip.seconds) == ["synthesis", "place and route", "bitstream"]
    built: list[HardwareModel] = []
    build_files = netlist.build_files

    def counted(*arguments: Any, **options: Any) -> HardwareModel:
        built.append(build_files(*arguments, **options))
        return built[-1]

    monkeypatch.setattr(netlist, "build_files", counted)
    for stalls in (None, t2s.RandomStalls(seed=5, one_in=3)):
        found = chip.verify(inputs, stalls=stalls)
        assert found.equal, str(found)
    assert len(built) == 1


@pytest.mark.slow
@pytest.mark.parametrize("define", [vectors, stencil])
def test_netlists(define: Any, tmp_path: Path) -> None:
    func = define()
    inputs = random_inputs(func)
    chip = t2s.synthesize(func, "ecp5-25k", inputs, directory=tmp_path)
    for stalls in (None, t2s.RandomStalls(seed=5, one_in=3), t2s.RandomStalls(seed=8, one_in=2)):
        found = chip.verify(inputs, stalls=stalls)
        assert found.equal, str(found)


# ---------------------------------------------------------------------------------- the reports

REPORT = {
    "fmax": {"$glbnet$clock$TRELLIS_IO_IN": {"achieved": 120.5, "constraint": 150.0}},
    "utilization": {"TRELLIS_COMB": {"used": 7, "available": 9}},
    "critical_paths": [
        {"from": "<async>", "to": "posedge clock", "path": []},
        {
            "from": "posedge $glbnet$clock$TRELLIS_IO_IN",
            "to": "posedge $glbnet$clock$TRELLIS_IO_IN",
            "path": [
                {"type": "clk-to-q", "delay": 0.5, "to": {"cell": "a_TRELLIS_FF_Q"}},
                {"type": "routing", "delay": 1.5, "to": {"cell": "b_LUT4_Z"}},
            ],
        },
    ],
}


def test_report() -> None:
    routed = read_report(REPORT)
    assert (routed.fmax_mhz, routed.used) == (120.5, {"TRELLIS_COMB": 7})
    assert [(hop.cell, hop.wire) for hop in routed.slowest] == [
        ("a_TRELLIS_FF_Q", False),
        ("b_LUT4_Z", True),
    ]


def instances(files: Mapping[str, str], node: str) -> list[str]:
    """The names of the PEs in the text of a node."""
    return re.findall(rf"{node}_pe\w* (?:#\(.*?\) )?(pe\w*) \(", files[f"{node}.sv"], re.DOTALL)


def shifted_row(minimum: int) -> Graph:
    """Three PEs that begin at a number, each of which stores a constant."""
    x = t2s.ImageParam(t2s.Int(16), 1, name="x")
    y, i = t2s.Func("y"), t2s.Var("i")
    y[i] = x[i + 2] + 1
    return t2s.lower(y.bound(i, minimum, 3).unroll(i))


@pytest.mark.parametrize(
    ("graph", "node", "wanted"),
    [
        (t2s.lower(product()), "C", ["C[0, 0]", "C[0, 1]", "C[1, 0]", "C[1, 1]"]),
        (shifted_row(-1), "y", ["y[-1]", "y[0]", "y[1]"]),
        (shifted_row(1), "y", ["y[1]", "y[2]", "y[3]"]),
    ],
    ids=["two dimensions", "from -1", "from 1"],
)
def test_names_of_pes(graph: Graph, node: str, wanted: list[str]) -> None:
    """Those in the emitted text are read as the places of the user."""
    times = device_times(build_program(graph, DEVICES[PART.name], made_up(graph), {}))
    technology = find_technology(PART.technology)
    names = instances(chip_files(graph, times, technology), node)
    top = top_of(graph, times, technology)
    hops = [
        Hop(cell=f"test.chip.design.{node}_node.{name}.fires_LUT4_Z", wire=False, nanoseconds=1.0)
        for name in names
    ]
    assert [step.where for step in critical_path(top, hops).steps] == wanted


def test_the_critical_path_in_words_of_the_user() -> None:
    chosen, _ = job(product())
    top = top_of(chosen.graph, chosen.times, find_technology(PART.technology))
    hops = [
        Hop(
            cell="test.design.A_along_j_fifos[1].one.valid_TRELLIS_FF_Q",
            wire=False,
            nanoseconds=0.5,
        ),
        Hop(cell="test.design.C_node.pe_1_0.fires_LUT4_Z_A", wire=True, nanoseconds=1.0),
        Hop(cell="test.design.C_node.pe_1_0.fires_LUT4_Z_A", wire=False, nanoseconds=0.25),
        Hop(cell="$nextpnr_CCU2C_21$CCU2_COMB0", wire=False, nanoseconds=0.25),
        Hop(cell="test.quiet_TRELLIS_FF_Q", wire=True, nanoseconds=2.0),
    ]
    path = critical_path(top, hops)
    assert [step.where for step in path.steps][1:] == ["C[1, 0]", "the memory around the design"]
    assert path.steps[0].where.startswith("channel A_along_j[")
    assert (path.steps[1].logic, path.steps[1].wires, path.steps[1].signal) == (0.5, 1.0, "fires")
    assert path.location is not None
    assert str(path).endswith("(4.00 ns, 75% of them wires)")
    assert str(critical_path(top, [])) == "no path from register to register"
    assert path.advice.startswith("most of the path is wires: another seed= places it differently")
    short = critical_path(top, [replace(hop, wire=False) for hop in hops[:4]])
    assert short.advice.startswith("most of the path is logic of C[1, 0]: a device= with more")


# ------------------------------------------------------------------------------------ bad input


def refused(design: Any = None, **options: Any) -> str:
    with pytest.raises(UserError) as caught:
        t2s.synthesize(product() if design is None else design, **options)
    return str(caught.value)


def test_names() -> None:
    assert "unknown part 'ecp6'" in refused(part="ecp6")
    assert "expected: ecp5-25k, ecp5-45k, ecp5-85k" in refused(part="ecp6")
    assert "unknown board 'tang'" in refused(board="tang")
    assert "expected: ulx3s, colorlight-i5" in refused(board="tang")
    assert "synthesize needs an FPGA" in refused()
    text = refused(part="ecp5-25k", board="ulx3s")
    assert "board 'ulx3s' has another FPGA than 'ecp5-25k'" in text
    assert "unknown memory 'sdram'" in refused(part="ecp5-25k", memory="sdram")
    assert "clock_mhz must be a frequency in MHz" in refused(part="ecp5-25k", clock_mhz=-3)
    assert "seed must be an integer of at least 0" in refused(part="ecp5-25k", seed=-1)


def test_a_design_that_does_not_fit() -> None:
    """It is refused before synthesis."""
    text = refused(product(pes=6), part="ecp5-25k")
    assert "C needs 36 multipliers, and ecp5-25k has 28" in text
    assert "hint:     ecp5-45k has enough" in text
    assert "unroll fewer loops" in refused(product(pes=13), part="ecp5-85k")
    text = refused(product(pes=2, steps=20_000), part="ecp5-25k")
    assert "C needs 80 block RAMs, and ecp5-25k has 56" in text


def test_a_tool_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "find_spec", lambda name: None)
    monkeypatch.setattr(toolchain.shutil, "which", lambda name: None)
    text = refused(part="ecp5-25k")
    assert "yosys is not installed" in text
    assert "hint:     pip install 't2s-spatial[chips]'" in text


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        (Ended(code=None, output=""), "yosys was not done after 1800 s"),
        (Ended(code=-9, output=""), "yosys was killed by signal 9"),
        (Ended(code=1, output="ERROR: no"), "yosys failed with exit code 1; it said:\nERROR: no"),
    ],
    ids=["late", "killed", "failed"],
)
def test_a_tool_that_fails(
    ended: Ended, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nothing is left in the user's folder."""

    def run(command: Any, folder: Path, time_limit: float) -> Ended:
        (folder / "log.txt").write_text("")
        return ended

    monkeypatch.setattr(toolchain, "run_child", run)
    with pytest.raises(ChipError) as caught:
        t2s.synthesize(product(), "ecp5-25k", directory=tmp_path / "chip")
    assert said in str(caught.value)
    assert not (tmp_path / "chip").exists()


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from t2s.backends.verilog.flow import flow
    from t2s.backends.verilog.flow.routing import Routed

    chosen, _ = job(product())
    cells = dict.fromkeys(("TRELLIS_COMB", "TRELLIS_FF", "MULT18X18D", "DP16KD"), 0)
    routed = Routed(fmax_mhz=100.0, used=cells, slowest=())
    built = flow.Built(
        names=top_of(chosen.graph, chosen.times, find_technology(PART.technology)),
        cells={},
        routed=routed,
        bitstream=None,
        seconds={},
    )
    monkeypatch.setattr(flow, "build", lambda job, folder, begin: built)
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        t2s.synthesize(product(), "ecp5-25k", directory=tmp_path / "file")
    chip = t2s.synthesize(product(), "ecp5-25k", directory=tmp_path / "chip")
    assert not chip.meets_clock
    assert "which misses 150 MHz" in str(chip)


def test_made_up_inputs() -> None:
    """Integers of all types, and truth values: always the same ones."""
    graph = designs.scaled(t2s.Int(16))
    first, second = made_up(graph), made_up(replace(graph, name="other"))
    assert first.keys() == second.keys()
    assert all(np.array_equal(first[name], second[name]) for name in first)


_LINE = """
module bench(input logic clock);
  logic reset = 1;
  logic [15:0] ran = 0;
  logic transmit;
  serial #(.CLOCKS(4)) line(
    .clock, .reset, .done(ran > 20), .passed(1'b0), .cycles(32'h0123_89ef), .transmit
  );
  always_ff @(posedge clock) begin
    ran <= ran + 1;
    reset <= ran < 4;
    $write("%0d", transmit);
    if (ran > 2200) $finish;
  end
endmodule
"""


@pytest.mark.slow
def test_the_line_of_the_serial_port(tmp_path: Path) -> None:
    """Eight data bits behind a start bit, as a receiver takes them in the middle of each."""
    library = Path(toolchain.__file__).parent / "library"
    text = (library / "serial.sv").read_text()
    levels = run_bench({"serial.sv": text, "bench.sv": _LINE}, ["serial.sv", "bench.sv"], tmp_path)
    levels, said, at = levels.split("-")[0].strip(), "", 12  # not before the reset
    while (at := levels.find("0", at)) >= 0 and at + 40 <= len(levels):
        bits = [levels[at + 2 + 4 * bit] for bit in range(10)]
        assert (bits[0], bits[9]) == ("0", "1")
        said += chr(sum(int(bit) << place for place, bit in enumerate(bits[1:9])))
        at += 38
    assert said.startswith("t2s fail 012389ef\r\nt2s fail 012389ef\r\n")
