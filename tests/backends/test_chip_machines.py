"""Sparse streams as chips: widths, memories, self tests, and netlists beside the simulator."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import t2s
from t2s.backends.base import DeviceTimes, Stalling
from t2s.backends.verilog.emit import chip_files, files_of
from t2s.backends.verilog.flow.flow import ChipJob, Memory, sources_of
from t2s.backends.verilog.flow.machine_memories import sharing
from t2s.backends.verilog.flow.netlist import netlist_model
from t2s.backends.verilog.flow.parts import BOARDS, PARTS
from t2s.backends.verilog.flow.toolchain import run_yosys
from t2s.backends.verilog.limits import largest
from t2s.backends.verilog.machine_ranges import Ranges, Sizes, Value, ranges_of
from t2s.backends.verilog.machine_sizes import sizes_of
from t2s.backends.verilog.machine_stages import machine_plan
from t2s.backends.verilog.technology import ECP5, GENERIC, Technology
from t2s.backends.verilog.top import top_of
from t2s.backends.verilog.value_ranges import Range
from t2s.backends.verilog.verilator import build_hardware
from t2s.core.errors import UnsupportedError, UserError
from t2s.core.expr import Expr, equals
from t2s.core.ops import Op
from t2s.driver.assignment_design import AssignmentDesign, given_in_memory
from t2s.driver.built_for import placed
from t2s.driver.design import Stage
from t2s.driver.device_times import device_times
from t2s.driver.synthesize import differences
from t2s.graph.body import Let, Load, Store
from t2s.graph.graph import Graph, MemorySpace
from t2s.graph.nodes import Choice, Machine, Put, Rule
from t2s.simulator.devices import DEVICES, TypeFamily
from t2s.simulator.program.build import build_program
from t2s.simulator.report.result import SimResult
from tests.backends.builders import local
from tests.backends.test_chip_flow import run_netlist, run_self_test, with_flipped_bit
from tests.backends.test_opencl_machines import INPUTS, merging

PART = PARTS["ecp5-85k"]
STALLS = (None, *(t2s.RandomStalls(seed=n, one_in=d) for n, d in enumerate((8, 2, 4, 3, 2), 1)))


def sparse(rows: int, columns: int, share: float, seed: int) -> np.ndarray[Any, Any]:
    """A matrix of numbers of all sizes, some of whose rows are empty."""
    random = np.random.default_rng(seed)
    values = random.integers(-(2**31), 2**31, (rows, columns), dtype=np.int32)
    there = random.random((rows, columns)) < share
    there[1::3] = False
    return np.where(there, values, np.int32(0))


STATEMENTS: dict[str, tuple[str, dict[str, str], dict[str, Any]]] = {
    "matrix and vector": (
        "y(i) = A(i,j)*x(j)",
        {"A": "ds"},
        {"A": sparse(7, 8, 0.5, 0), "x": sparse(1, 8, 1.0, 1)[0]},
    ),
    "matrices": (
        "C(i,j) = A(i,k)*B(k,j)",
        {"A": "ds", "B": "ds:1,0", "C": "dd"},
        {"A": sparse(5, 8, 0.5, 0), "B": sparse(4, 8, 0.6, 1).T},
    ),
    "sum": (
        "X(i,j) = B(i,j)+C(i,j)",
        {"B": "ds", "C": "ds", "X": "ds"},
        {"B": sparse(4, 9, 0.5, 2), "C": sparse(4, 9, 0.4, 3)},
    ),
}


def design(name: str = "matrix and vector", capacity: int = 2) -> AssignmentDesign:
    statement, formats, _ = STATEMENTS[name]
    compiled = t2s.sparse.compile(t2s.sparse.parse(statement, formats))
    return compiled.design(capacity=capacity)


def staged(name: str = "matrix and vector", *, in_memory: bool = False) -> Stage:
    """The graph and its arrays; ``in_memory`` all of these are in memory, which may stall."""
    stage = design(name).only_stage(STATEMENTS[name][2], "test")
    return replace(stage, graph=given_in_memory(stage.graph)) if in_memory else stage


def simulated(stage: Stage, stalls: t2s.RandomStalls | None = None) -> SimResult:
    result = t2s.simulate(stage.graph, dict(stage.arrays), device=PART.name, stalls=stalls)
    assert isinstance(result, SimResult)
    return result


def chip_of(stage: Stage) -> tuple[DeviceTimes, Ranges, SimResult]:
    result = simulated(stage)
    sizes = sizes_of(stage.graph, {**stage.arrays, **result.outputs}, stage.extents)
    return device_times(result.program), ranges_of(stage.graph, sizes), result


# -------------------------------------------------------------------------------------- the text


def test_tokens_have_the_bits_that_they_need() -> None:
    stage = staged()
    times, ranges, _ = chip_of(stage)
    text = chip_files(stage.graph, times, ECP5, ranges)
    # eight columns and two levels of stops
    assert "output logic [5:0] scan_A_j_crd_to_locate_root_j_crd_value," in text["scan_A_j.sv"]
    assert "output logic [2:0] A_pos1_read_address," in text["scan_A_j.sv"]
    assert ".WIDTH(6)" in text["top.sv"]
    wide = re.findall(r"(?:input|output) logic (?:signed )?\[(\d+):0\] (\w+)", text["scan_A_j.sv"])
    # words of memory are as they are outside
    assert {name for bits, name in wide if int(bits) > 7} == {
        name for _, name in wide if "read_data" in name
    }
    simulation = files_of(
        stage.graph, times, largest(times), constant=True, technology=ECP5, ranges=ranges
    )
    assert {name: simulation[name] for name in text} == dict(text)


def test_without_sizes_tokens_are_as_in_a_simulation() -> None:
    stage = staged()
    times, _, _ = chip_of(stage)
    text = chip_files(stage.graph, times, ECP5)
    assert "[39:0] scan_A_j_crd_to_locate_root_j_crd_value" in text["scan_A_j.sv"]


def test_coordinates_are_as_wide_as_their_extent() -> None:
    """Not as those of the inputs at hand."""
    y = design()
    inputs = {"A": np.eye(3, 300, dtype=np.int32), "x": np.ones(300, np.int32)}
    stage = y.only_stage(inputs, "test")
    assert stage.extents == {"A_crd1": 300}
    assert sizes_of(stage.graph, stage.arrays, stage.extents).elements == {
        "A_pos1": Range(0, 3),
        "A_crd1": Range(0, 299),
    }


def cells_of(graph: Graph, times: DeviceTimes, ranges: Ranges, folder: Path) -> dict[str, int]:
    """The cells of a design after synthesis, without its memories."""
    files = chip_files(graph, times, ECP5, ranges)
    for name, text in files.items():
        (folder / name).write_text(text)
    top = top_of(graph, times, ECP5, ranges).chip
    commands = [
        f"read_slang --top {top} {' '.join(files)}",
        f"synth_ecp5 -top {top}",
        "tee -q -o cells.json stat -json",
    ]
    run_yosys(commands, folder, 600)
    said = (folder / "cells.json").read_text()
    found: dict[str, int] = json.loads(said[said.index("{") :])["design"]["num_cells_by_type"]
    return found


@pytest.mark.slow
def test_area(tmp_path: Path) -> None:
    """A product with a vector, of up to 1,024 rows, columns and entries."""
    stage = staged()
    program = build_program(stage.graph, "ideal", stage.arrays, {})
    lengths = {"A_pos1": 1025, "A_crd1": 1024, "A_vals": 1024, "x_vals": 1024, "y_vals": 1024}
    elements = {"A_pos1": Range(0, 1024), "A_crd1": Range(0, 1023)}
    ranges = ranges_of(stage.graph, Sizes(lengths=lengths, elements=elements))
    cells = cells_of(stage.graph, device_times(program), ranges, tmp_path)
    assert cells["LUT4"] <= 1000
    assert cells["CCU2C"] <= 100
    assert cells["TRELLIS_FF"] <= 500
    whole = cells_of(stage.graph, device_times(program), {}, tmp_path)
    assert whole["LUT4"] <= 1700
    assert whole["CCU2C"] <= 350
    assert whole["TRELLIS_FF"] <= 1000


# ------------------------------------------------------------------------------------- products


def of_type(type: Any, name: str = "matrix and vector", **latencies: int) -> Mapping[str, str]:
    """The files with values of a type, on an ECP5 whose products have other latencies."""
    compiled = t2s.sparse.compile(t2s.sparse.parse(*STATEMENTS[name][:2]))
    inputs = {key: array.astype(type) for key, array in STATEMENTS[name][2].items()}
    stage = compiled.design(capacity=2).only_stage(inputs, "test")
    device = DEVICES[PART.name]
    if latencies:
        own = {(Op.MULTIPLY, TypeFamily.INTEGER): latencies["multiply"]}
        device = replace(device, operator_latencies={**device.operator_latencies, **own})
    program = build_program(stage.graph, device, stage.arrays, {})
    return chip_files(stage.graph, device_times(program), ECP5)


def test_a_product_has_the_registers_of_multipliers() -> None:
    text = of_type(np.int32)
    assert "multiply_wide #(.WIDTH(32), .STAGES(3)) multiplier" in text["multiply_2.sv"]
    assert " * " not in text["multiply_2.sv"]
    # the stops wait for the values, and the FIFO for neither
    fifo = re.search(r"fifo #\(([^;]*)\) one \([^;]*multiply_val_to_reduce_j_val", text["top.sv"])
    assert fifo is not None
    assert ".LATENCY(4), .CAPACITY(5), .LATE(3)" in fifo[1]
    assert "multiply #(.LEFT(16), .RIGHT(16), .STAGES(3))" in of_type(np.int16)["multiply_2.sv"]
    # so many multipliers have no common width: synthesis splits the product
    assert "multiply_wide" not in of_type(np.int64)["multiply_2.sv"]


@pytest.mark.parametrize("cycles", [0, 5])
def test_registers_that_a_multiplier_does_not_have(cycles: int) -> None:
    with pytest.raises(UnsupportedError) as caught:
        of_type(np.int16, multiply=cycles)
    assert caught.value.message == (
        "'multiply' computes '*' of int16 with a latency that ecp5 cannot build"
    )
    assert caught.value.expected == "a latency of 1 to 4 cycles: so many registers it can have"
    assert caught.value.given == f"{cycles} cycles of the device"
    assert "STAGES(4)" in of_type(np.int16, multiply=4)["multiply_2.sv"]


@pytest.mark.parametrize(("cycles", "stages"), [(0, None), (1, 1), (7, 7)])
def test_a_wide_product_has_any_number_of_registers(cycles: int, stages: int | None) -> None:
    text = of_type(np.int32, multiply=cycles)["multiply_2.sv"]
    found = re.search(r"multiply_wide #\(\.WIDTH\(32\), \.STAGES\((\d+)\)\)", text)
    assert (None if found is None else int(found[1])) == stages


def scaling() -> Graph:
    """``merging`` that sends numbers, products, and products of sums: values of three stages."""
    graph = merging()
    machine = graph.node("merge")
    assert isinstance(machine, Machine)
    left, right, count = local("left"), local("right"), local("count")

    def sending(choice: Choice, name: str, value: Expr, *before: Let) -> Choice:
        rule = choice.inside
        assert isinstance(rule, Rule)
        puts = (Put(channel="merged", value=value),)
        return replace(
            choice, inside=replace(rule, name=name, body=(*before, *rule.body), puts=puts)
        )

    end, take_left, take_right = machine.modes[0].choices
    plain = replace(sending(take_left, "count", count), when=equals(count, 1))
    twice = Let(target="twice", value=left * right)
    product = replace(sending(take_left, "product", local("twice") - count, twice), when=None)
    of_sum = sending(take_right, "of sum", (right + count) * (left - 4))
    choices = (end, replace(take_left, inside=(plain, product)), of_sum)
    changed = replace(machine, modes=(replace(machine.modes[0], choices=choices),))
    return replace(graph, nodes=tuple(changed if n is machine else n for n in graph.nodes))


@pytest.mark.slow
@pytest.mark.parametrize("technology", [ECP5, GENERIC], ids=lambda technology: technology.name)
def test_values_of_different_stages(technology: Technology, tmp_path: Path) -> None:
    graph = scaling()
    for depth in (1, 6):
        channels = tuple(replace(channel, capacity=depth) for channel in graph.channels)
        other = replace(graph, channels=channels)
        stage = Stage(graph=other, arrays=INPUTS, scalars={})
        times = device_times(simulated(stage).program)
        bounds = largest(times, graph=other, inputs=INPUTS)
        folder = tmp_path / str(depth)
        model = build_hardware(other, times, bounds, folder, constant=True, technology=technology)
        for stalls in STALLS:
            expected = simulated(stage, stalls)
            stalling = None if stalls is None else Stalling(seed=stalls.seed, one_in=stalls.one_in)
            found = model.run(times, INPUTS, {}, stalling=stalling)
            assert list(differences(found, expected)) == []


# ---------------------------------------------------------------------------------- the self test


def test_accesses_that_exclude_each_other_share_a_memory() -> None:
    graph = staged().graph
    # two positions are loaded at once, in either of two modes, and one coordinate in either
    assert sharing(graph.node("scan_A_j"), Load, 6) == [(0, 4), (1, 5), (2, 3)]
    assert sharing(graph.node("write_y"), Store, 2) == [(0, 1)]
    assert sharing(merging().node("left_load"), Load, 1) == [(0,)]


def job_of(stage: Stage) -> tuple[ChipJob, int]:
    times, ranges, result = chip_of(stage)
    chosen = ChipJob(
        graph=stage.graph,
        times=times,
        arrays={**stage.arrays, **result.outputs},
        parameters={},
        ranges=ranges,
        memory=Memory.BRAM,
        part=PART,
        board=None,
        clock_mhz=50,
        seed=1,
        time_limit=600,
    )
    return chosen, result.cycles


@pytest.mark.slow
@pytest.mark.parametrize("name", STATEMENTS)
@pytest.mark.parametrize("in_memory", [False, True])
def test_self_test(name: str, in_memory: bool, tmp_path: Path) -> None:
    """It passes in the simulator's cycles, and fails with one bit of one value flipped."""
    chosen, cycles = job_of(staged(name, in_memory=in_memory))
    sources = sources_of(chosen)
    (tmp_path / "right").mkdir()
    (tmp_path / "wrong").mkdir()
    assert run_self_test(sources, tmp_path / "right") == f"passed 1, {cycles} cycles"
    image = "A_vals.hex" if "A_vals.hex" in sources.files else "B_vals.hex"
    words = sources.files[image].splitlines()
    words[0] = f"{int(words[0], 16) ^ 1:x}"
    said = run_self_test(sources, tmp_path / "wrong", **{image: "\n".join((*words, ""))})
    assert said == f"passed 0, {cycles} cycles"


_BOARD = """
module bench(input logic clock);
  localparam int CLOCKS = 217;  // of a bit: 25 MHz and 115,200 baud
  logic led_passed, led_failed, transmit, receiving = 0;
  logic [7:0] character = 0;
  int left = 0, bits = 0, lines = 0, ran = 0;
  board top(.clock, .led_passed, .led_failed, .transmit);
  always_ff @(posedge clock) begin
    ran <= ran + 1;
    left <= left - 1;
    if (!receiving && !transmit && ran > 100) begin
      receiving <= 1;
      bits <= 0;
      left <= CLOCKS + CLOCKS / 2;
    end else if (receiving && left == 0) begin
      bits <= bits + 1;
      left <= CLOCKS;
      if (bits < 8) character <= {transmit, character[7:1]};
      else begin
        receiving <= 0;
        $write("%c", character);
        if (character == 10) lines <= lines + 1;
      end
    end
    if (lines == 1 || ran > 200000) begin
      $display("lights %0d %0d", led_passed, led_failed);
      $finish;
    end
  end
endmodule
"""


@pytest.mark.slow
@pytest.mark.parametrize("large", [False, True])
def test_the_netlist_of_a_board(large: bool, tmp_path: Path) -> None:
    """The cells of all that is in the bitstream: lights, and the line at the serial port."""
    chosen, cycles = job_of(in_blocks() if large else staged())
    board = replace(chosen, board=BOARDS["ulx3s"])
    for flipped in (0, 1):
        folder = tmp_path / str(flipped)
        folder.mkdir()
        sources = with_flipped_bit(sources_of(board), "A_vals.hex", 0, flipped)
        line, lights, *_ = run_netlist(sources, folder, _BOARD).splitlines()
        assert ("DP16KD" in (folder / "netlist.v").read_text()) == large
        verdict = "fail" if flipped else "pass"
        assert line == f"t2s {verdict} {cycles:08x}"
        assert lights == f"lights {1 - flipped} {flipped}"


@pytest.mark.slow
def test_a_bitstream(tmp_path: Path) -> None:
    inputs = STATEMENTS["matrix and vector"][2]
    chip = t2s.synthesize(design(), inputs=inputs, board="ulx3s", directory=tmp_path / "chip")
    assert chip.bitstream == tmp_path / "chip" / "y.bit"
    assert chip.bitstream.stat().st_size > 100_000
    assert chip.cycles == t2s.cycles(design(), inputs, device=PART.name)


@pytest.mark.slow
def test_a_fault_is_not_passed(tmp_path: Path) -> None:
    """A machine that meets tokens it cannot take."""
    chosen, cycles = job_of(Stage(graph=merging(), arrays=INPUTS, scalars={}))
    sources = sources_of(chosen)
    (tmp_path / "right").mkdir()
    (tmp_path / "wrong").mkdir()
    assert run_self_test(sources, tmp_path / "right") == f"passed 1, {cycles} cycles"
    words = sources.files["b.hex"].splitlines()
    words[-1] = "80"  # more than the last one, which no rule of the machine takes
    said = run_self_test(sources, tmp_path / "wrong", **{"b.hex": "\n".join((*words, ""))})
    assert not said.startswith("passed 1")


# ------------------------------------------------------------------------------------ block RAM


LARGE = {"A": sparse(40, 700, 0.04, 4), "x": sparse(1, 700, 1.0, 5)[0]}


def in_blocks() -> Stage:
    """A product with more entries and columns than look-up tables have room for."""
    return placed(design().only_stage(LARGE, "test"))[0]


def test_large_tensors_that_are_only_sent_are_in_block_ram() -> None:
    before = design().only_stage(LARGE, "test")
    stage, names = placed(before)
    # what a scan decides on has to be there in the cycle of the address
    assert names == {"A_crd1", "A_vals", "x_vals"}
    moved = {t.name for t in stage.graph.tensors if t.place is MemorySpace.MEMORY}
    assert moved == names
    small = staged()
    assert placed(small) == (small, frozenset())
    # one of more rows than entries has its positions there, too, which are decided on
    tall = {"A": np.eye(600, 3, dtype=np.int32), "x": np.ones(3, np.int32)}
    assert placed(design().only_stage(tall, "test"))[1] == frozenset()


def test_loads_that_come_later() -> None:
    times, _, _ = chip_of(in_blocks())
    loads = {
        name: machine_plan(machine, times, ECP5).loads
        for name in ("scan_A_j", "load_A", "load_x")
        if isinstance(machine := in_blocks().graph.node(name), Machine)
    }
    assert loads == {"scan_A_j": (0, 0, 2, 2, 0, 0), "load_A": (2,), "load_x": (2,)}
    # in tables a load has no latency but that of the tags beside it, which are added to
    times, _, _ = chip_of(staged())
    scan = staged().graph.node("scan_A_j")
    assert isinstance(scan, Machine)
    assert machine_plan(scan, times, ECP5).loads == (0, 0, 1, 1, 0, 0)
    immediate = replace(times, load_latency=0)
    assert machine_plan(scan, immediate, ECP5).loads == (0,) * 6


def test_block_rams_that_an_fpga_does_not_have() -> None:
    inputs = {"A": np.ones((2, 60_000), np.int32), "x": np.ones(60_000, np.int32)}
    with pytest.raises(UnsupportedError) as caught:
        t2s.synthesize(design(), "ecp5-25k", inputs)
    assert re.match(r"y needs \d+ block RAMs, and ecp5-25k has 56", caught.value.message)


@pytest.mark.slow
def test_a_chip_with_block_ram(tmp_path: Path) -> None:
    chip = t2s.synthesize(design(), PART.name, LARGE, clock_mhz=50, directory=tmp_path / "chip")
    assert chip.rams >= 3
    assert chip.cycles > t2s.cycles(design(), LARGE, device=PART.name)
    for stalls in (None, t2s.RandomStalls(seed=5, one_in=3)):
        found = chip.verify(LARGE, stalls=stalls)
        assert found.equal, str(found)
    others = {"A": np.roll(LARGE["A"], 1, axis=0), "x": LARGE["x"] + 1}
    assert chip.verify(others).equal


@pytest.mark.slow
def test_no_entries(tmp_path: Path) -> None:
    inputs = {"A": np.zeros((3, 4), np.int32), "x": np.ones(4, np.int32)}
    chosen, cycles = job_of(design().only_stage(inputs, "test"))
    assert run_self_test(sources_of(chosen), tmp_path) == f"passed 1, {cycles} cycles"


# ------------------------------------------------------------------------------------ the netlist


@pytest.mark.slow
@pytest.mark.parametrize("name", STATEMENTS)
def test_netlists(name: str, tmp_path: Path) -> None:
    """The cells after synthesis, with all tensors in memory, which stalls."""
    stage = staged(name, in_memory=True)
    times, ranges, _ = chip_of(stage)
    model = netlist_model(stage.graph, times, PART, tmp_path, 900, ranges)
    counts = set()
    for stalls in STALLS:
        expected = simulated(stage, stalls)
        stalling = None if stalls is None else Stalling(seed=stalls.seed, one_in=stalls.one_in)
        found = model.run(times, stage.arrays, {}, stalling=stalling)
        assert list(differences(found, expected)) == []
        counts.add(found.cycles)
    assert len(counts) > 3  # stalls do something


@pytest.mark.slow
def test_a_range_that_is_too_narrow_is_found(tmp_path: Path) -> None:
    """References to entries with one bit, of which there are more: other values are loaded."""
    stage = staged()
    times, ranges, expected = chip_of(stage)
    place = Value("scan_A_j_out_ref_to_load_A_ref")
    found = {}
    for name, used in (("right", ranges), ("narrow", {**ranges, place: Range(0, 1)})):
        folder = tmp_path / name
        model = build_hardware(
            stage.graph,
            times,
            largest(times, graph=stage.graph, inputs=stage.arrays),
            folder,
            constant=True,
            technology=ECP5,
            ranges=used,
        )
        found[name] = list(differences(model.run(times, stage.arrays, {}), expected))
    assert found == {"right": [], "narrow": ["other values in y_vals"]}


@pytest.mark.slow
def test_synthesize(tmp_path: Path) -> None:
    inputs = STATEMENTS["matrix and vector"][2]
    chip = t2s.synthesize(design(), PART.name, inputs, clock_mhz=50, directory=tmp_path / "chip")
    assert chip.cycles == t2s.cycles(design(), inputs, device=PART.name)
    assert (chip.rams, chip.fmax_mhz > 50) == (0, True)
    assert chip.verify(inputs).equal
    others = {"A": np.zeros((7, 8), np.int32), "x": inputs["x"] + 1}
    others["A"][6, 7] = -(2**31)
    assert chip.verify(others).equal
    with pytest.raises(UserError) as caught:
        chip.verify({"A": np.ones((7, 8), np.int32), "x": inputs["x"]})
    assert caught.value.message == (
        "the inputs do not fit the chip: A_pos1 has elements from 0 to 56, and the chip has room"
        " for 0 to 31"
    )
    with pytest.raises(UserError, match="the inputs have other extents than the chip"):
        chip.verify({"A": np.ones((7, 9), np.int32), "x": np.ones(9, np.int32)})


# ------------------------------------------------------------------------------------- refusals


def refusal_of(value: object, inputs: dict[str, Any] | None, **options: Any) -> str:
    with pytest.raises(UserError) as caught:
        t2s.synthesize(value, PART.name, inputs, **options)
    return caught.value.message


def test_channels_without_a_limit() -> None:
    inputs = STATEMENTS["matrix and vector"][2]
    y = t2s.sparse.parse("y(i) = A(i,j)*x(j)", {"A": "ds"})
    with pytest.raises(UnsupportedError) as caught:
        t2s.synthesize(y, PART.name, inputs)
    assert caught.value.location is not None
    assert caught.value.message == (
        "the verilog backend cannot emit 'y': channel 'root_ref_to_scan_A_i_ref': it holds more "
        "tokens than a FIFO of a chip, which has room for 65,536; 14 of 14 channels do.  "
        "t2s.sparse.compile(...).design(capacity=2) is the design with channels that hold two, and "
        "as many more as longer ways beside them take"
    )


def test_large_tensors() -> None:
    tables = (
        "such a tensor is in look-up tables, with room for 512; block RAM answers a cycle later."
        "  Tiles, each a run of its own, are smaller"
    )
    inputs = {"A": np.eye(512, 3, dtype=np.int32), "x": np.ones(3, np.int32)}
    assert refusal_of(design(), inputs) == (
        "the verilog backend cannot emit 'y': tensor 'A_pos1': it has 513 elements, and 'scan_A_j'"
        f" decides on what it loads in the cycle of the load: {tables}"
    )
    inputs = {"A": np.eye(3, 513, dtype=np.int32), "x": np.ones(513, np.int32)}
    at_once = replace(DEVICES[PART.name], load_latency=0)
    assert refusal_of(design(), inputs, device=at_once) == (
        "the verilog backend cannot emit 'y': tensor 'x_vals': it has 513 elements, and 'load_x'"
        f" has to send what it loads in the cycle of the load: {tables}"
    )


@pytest.mark.parametrize("memory", ["wishbone", "axi-stream"])
def test_borders_without_machines(memory: str) -> None:
    inputs = STATEMENTS["matrix and vector"][2]
    assert refusal_of(design(), inputs, memory=memory).endswith(
        "node 'root': machines have a self test only, memory='bram': they decide on data in the"
        " cycle of their address"
    )


def test_sorted_memories() -> None:
    statement = t2s.sparse.parse("C(i,j) = A(i,k)*B(k,j)", {"A": "ds", "B": "ds", "C": "ds"})
    inputs = {"A": np.eye(3, dtype=np.int32), "B": np.eye(3, dtype=np.int32)}
    value = t2s.sparse.compile(statement).design(capacity=2)
    assert refusal_of(value, inputs) == (
        "the verilog backend cannot emit 'C': node 'reduce_k': its sorted memory compares 1,024"
        " points at once, more than an FPGA has logic for"
    )


def test_vectors() -> None:
    statement = t2s.sparse.parse("y(i) = A(i,j)*x(j)", {"A": "ds[2,2]", "x": "d[2]", "y": "d[2]"})
    inputs = {"A": np.eye(4, dtype=np.int32), "x": np.ones(4, np.int32)}
    value = t2s.sparse.compile(statement).design(capacity=2)
    assert "vectors of" in refusal_of(value, inputs)


def test_machines_need_inputs() -> None:
    assert refusal_of(merging(), None) == "what merging does in a cycle depends on its inputs"
