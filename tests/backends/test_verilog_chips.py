"""Designs as chips: constants, stages and primitives, against the simulator and by their text."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import t2s
from benchmarks.random_machines import random_machines
from benchmarks.referee import chip_referee
from t2s.backends.base import DeviceTimes
from t2s.backends.verilog import emit
from t2s.backends.verilog.emit import chip_files, files_of
from t2s.backends.verilog.limits import largest, timing_of
from t2s.backends.verilog.loop_counters import counters_of
from t2s.backends.verilog.pe_classes import classes_of
from t2s.backends.verilog.stages import FileStages, multiplier_operands, plan_of
from t2s.backends.verilog.storage import most_tokens, tokens_sent
from t2s.backends.verilog.technology import ECP5, GENERIC, Technology, find_technology
from t2s.backends.verilog.verilator import (
    compile_hardware,
    find_tools,
    run_program,
    verilator_available,
)
from t2s.core.expr import Cast, Expr, const
from t2s.core.ops import Op
from t2s.core.types import INT32, Float, Int, Type, UInt
from t2s.core.walk import walk
from t2s.driver.device_times import device_times
from t2s.graph.body import Load, RegisterRead, RegisterWrite, Send
from t2s.graph.graph import Graph
from t2s.graph.nodes import PEArray, Register, Role, Search
from t2s.simulator.devices import DEVICES, Device, TypeFamily
from t2s.simulator.program.build import build_program
from tests.backends import designs
from tests.backends.builders import channel, local, node, store, tensor
from tests.backends.builders import graph as graph_of
from tests.backends.test_verilog_referee import side_by_side
from tests.backends.triangles import triangular_array
from tests.conftest import Golden
from tests.hand_graphs import index, loop, systolic_gemm
from tests.simulator.designs import chain, feedback, fork_join

needs_verilator = pytest.mark.skipif(
    not verilator_available(), reason="Verilator or a C++ compiler is not installed"
)
pytestmark = pytest.mark.verilator

CHIP = Device(
    name="chip",
    description="multipliers of three registers",
    clock_hz=150_000_000,
    operator_latencies={
        (Op.MULTIPLY, TypeFamily.INTEGER): 3,
        (Op.ADD, TypeFamily.INTEGER): 1,
    },
    load_latency=2,
    store_latency=1,
)


def gemm(size: int = 2, depth: int = 5) -> Graph:
    """A product of matrices of int16, with sums of int32."""
    A, B = t2s.ImageParam(t2s.Int(16), 2, name="A"), t2s.ImageParam(t2s.Int(16), 2, name="B")
    i, j, k = t2s.Var("i"), t2s.Var("j"), t2s.RDom(0, depth, name="k")
    C = t2s.Func("C")
    C[i, j] = 0
    C[i, j] += t2s.cast(t2s.Int(32), A[i, k]) * t2s.cast(t2s.Int(32), B[k, j])
    C.bound(i, 0, size).bound(j, 0, size)
    al, bl, cu = t2s.funcs("A_load B_load C_store")
    C.reorder(j, i, k).unroll(i, j)
    C.isolate_producer(A, al).isolate_producer(B, bl).isolate_consumer(cu)
    C.forward(al, j).forward(bl, i)
    return t2s.lower(C)


def times_of(graph: Graph, device: Device = CHIP) -> DeviceTimes:
    inputs = {
        tensor.array: np.zeros(tensor.shape, tensor.type.numpy)
        for tensor in graph.tensors
        if tensor.role.value == "input"
    }
    return device_times(build_program(graph, device, inputs, {}))


def files(technology: Technology = ECP5) -> dict[str, str]:
    graph = gemm()
    return dict(chip_files(graph, times_of(graph), technology))


# ------------------------------------------------------------------------------------- the text


def test_an_array_on_a_chip(golden: Golden) -> None:
    text = files()
    golden("verilog/chip.sv", "\n".join(text[name] for name in ("C.sv", "top.sv", "chip.sv")))


def test_files_of_a_chip() -> None:
    library = ["fifo.sv", "delay.sv", "reduction.sv", "multiply.sv", "accumulate.sv"]
    nodes = ["A_load.sv", "B_load.sv", "C.sv", "C_store.sv", "top.sv", "chip.sv"]
    assert list(files(GENERIC)) == ["operators.sv", *library, *nodes]
    assert list(files()) == ["operators.sv", "ecp5_primitives.sv", *library, *nodes]
    assert "MULT18X18D" in files()["multiply.sv"]
    assert "MULT18X18D" not in files(GENERIC)["multiply.sv"]


def test_the_simulation_has_the_text_of_the_chip() -> None:
    graph = gemm()
    times = times_of(graph)
    chip = chip_files(graph, times, ECP5)
    simulated = files_of(graph, times, largest(times), constant=True, technology=ECP5)
    assert {name: simulated[name] for name in chip} == dict(chip)


def test_nothing_is_wider_than_it_has_to_be() -> None:
    text = files()
    for name in ("fifo.sv", "A_load.sv", "C.sv", "C_store.sv"):
        words = re.findall(r"logic (?:signed )?\[31:0\] (\w+)", text[name])
        data = r"C|C_partial(_value)?|C_result|carried|previous|sum|product|part(_2)?"
        of_ports = r"\w*_(value|token|data)"
        assert [w for w in words if not re.fullmatch(f"{data}|{of_ports}", w)] == [], name
        assert "cooldown" not in text[name]
        assert "for (int pe" not in text[name]


def test_what_does_not_move_is_wired() -> None:
    text = files()["C.sv"]
    assert ".A_along_j_valid(A_along_j_valid[1])" in text
    assert "assign A_along_j_push[0] = 1'b0;" in text
    feeder = designs.serial_feeder()
    moving = files_of(feeder, timing_of(feeder), largest(timing_of(feeder)))
    assert "feed_push[pe_feed_to[pe]] = 1'b1;" in moving["feeder.sv"]


# -------------------------------------------------------------------------------------- classes


def test_classes_of_pes() -> None:
    array = gemm(3).node("C")
    found = {c.places: [type(s).__name__ for s in _body(c.node)] for c in classes_of(array)}
    assert sorted(found) == [(0,), (1,), (2,), (3,), (4,), (5,), (6,), (7,), (8,)]
    assert [c.places for c in classes_of(gemm(4).node("C"))][1] == (1, 2)
    assert found[0,].count("Receive") == found[8,].count("Receive") == 2
    assert found[0,].count("Send") - 2 == found[8,].count("Send")


def _body(node: object) -> tuple[object, ...]:
    assert isinstance(node, PEArray)
    return node.body


def test_places_without_a_pe_have_no_class() -> None:
    array = next(
        n for n in triangular_array().nodes if isinstance(n, PEArray) and n.exists is not None
    )
    there = {place for c in classes_of(array) for place in c.places}
    assert there == {int(place) for place in np.flatnonzero(array.there)}
    assert len(there) < array.place_count


@pytest.mark.parametrize(
    ("minimum", "extent", "searched", "width", "signed"),
    [
        (0, 1, False, 1, False),
        (0, 16, False, 4, False),
        (0, 17, False, 5, False),
        (0, 16, True, 5, False),
        (3, 5, False, 3, False),
        (-1, 2, False, 2, True),
        (-8, 8, False, 4, True),
        (-9, 9, False, 5, True),
    ],
)
def test_widths_of_counters(
    minimum: int, extent: int, searched: bool, width: int, signed: bool
) -> None:
    nest = node("n", Role.RELAY, (replace(loop("a", extent), minimum=const(minimum)),), ())
    (counter,) = counters_of(nest, searched)
    assert (counter.type.width, counter.type.signed) == (width, signed)


# -------------------------------------------------------------------------------------- storage


def test_how_many_tokens_are_ever_sent() -> None:
    graph = gemm(2, 5)

    def sent_by(graph: Graph) -> dict[str, list[int] | None]:
        counts = {channel.name: tokens_sent(graph, channel) for channel in graph.channels}
        return {name: None if sent is None else sent.tolist() for name, sent in counts.items()}

    sent = {name: max(counts or [0]) for name, counts in sent_by(graph).items()}
    assert sent["C_to_C_store"] == 1
    assert sent["A_along_j"] == sent["A_load_to_C"] == 5
    feeder = designs.serial_feeder(pes=4, block=3, rounds=2)
    assert sent_by(feeder) == {"feed": [6] * 4, "out": [6] * 4}
    assert sent_by(designs.triangular(4)) == {"x_in": [10], "out": [4]}
    assert most_tokens(None) is None
    top = files()["top.sv"]
    assert "fifo #(.WIDTH(32), .LATENCY(5), .CAPACITY(1), .LATE(4), .FILLS(0)) one" in top


def test_tokens_of_elements_that_several_pes_send_to() -> None:
    graph = designs.serial_feeder(pes=4, block=3, rounds=2)
    shared = replace(graph.channel("out"), source_index=(const(0),), shape=(1,))
    sent = tokens_sent(graph, shared)
    assert sent is not None
    assert sent.tolist() == [4 * 3 * 2]


def test_firings_wait_for_nothing_that_never_comes() -> None:
    text = files()

    def waits_for(name: str) -> str:
        start = text[name].index("  // firing")
        return text[name][start : text[name].index(";", start)]

    # a token is taken in each firing, and the only one that is sent has room
    assert "finished" not in waits_for("C.sv")
    assert "C_to_C_store_space" not in waits_for("C.sv")
    assert "A_along_j_space" in waits_for("C.sv")
    assert "!finished" in waits_for("A_load.sv")
    assert "finished" not in waits_for("C_store.sv")


def test_a_sender_of_more_than_is_taken_does_not_end_its_receiver() -> None:
    graph = designs.serial_feeder(pes=2, block=3, rounds=2)
    feeder = graph.node("feeder")
    assert isinstance(feeder, PEArray)
    longer = (replace(feeder.loops[0], extent=const(3)), *feeder.loops[1:])
    nodes = tuple(replace(n, loops=longer) if n is feeder else n for n in graph.nodes)
    x, y = graph.tensors
    more = replace(graph, nodes=nodes, tensors=(replace(x, shape=(3, *x.shape[1:])), y))
    for each, waits in ((graph, False), (more, True)):
        text = chip_files(each, times_of(each), GENERIC)["array.sv"]
        assert ("!finished" in text) == waits


# --------------------------------------------------------------------------------------- stages


def test_stages_of_a_sum() -> None:
    graph = gemm()
    array, times = graph.node("C"), times_of(graph)
    assert isinstance(array, PEArray)
    plan = plan_of(graph, array, times, ECP5)
    assert plan.files == {"C_partial": FileStages(read=3, written=3)}
    assert plan.late == {"C_to_C_store": 4, "A_along_j": 0, "B_along_i": 0}


def as_int32(type: Type) -> Expr:
    return Cast(value=local("x", type), type=INT32)


@pytest.mark.parametrize(
    ("left", "right", "bits"),
    [
        (as_int32(Int(16)), as_int32(Int(8)), (16, 8)),
        (as_int32(UInt(16)), as_int32(Int(16)), (17, 16)),
        (local("x", Int(16)), local("y", Int(16)), (16, 16)),
        (local("x"), local("y"), None),
        (as_int32(Int(16)), const(3), None),
        (as_int32(Float(32)), as_int32(Int(16)), None),
    ],
)
def test_products_of_one_multiplier(left: Expr, right: Expr, bits: tuple[int, int] | None) -> None:
    factors = multiplier_operands(left * right, ECP5)
    assert (factors and tuple(factor.bits for factor in factors)) == bits


def test_a_latency_that_the_multipliers_do_not_have() -> None:
    graph = gemm()
    latencies = {**CHIP.operator_latencies, (Op.MULTIPLY, TypeFamily.INTEGER): 5}
    slow = replace(CHIP, operator_latencies=latencies)
    with pytest.raises(t2s.errors.UnsupportedError) as caught:
        chip_files(graph, times_of(graph, slow), ECP5)
    text = str(caught.value)
    assert text.startswith("'C' computes '*' of int32 with a latency that ecp5 cannot build")
    assert (
        "  expected: a latency of 1 to 4 cycles: so many registers it can have\n"
        "  given:    5 cycles of the device\n"
        "  hint:     set the operator_latencies of the device"
    ) in text
    assert chip_files(graph, times_of(graph, slow), GENERIC)
    assert chip_files(graph, times_of(graph), ECP5)  # the hint


def kept(latency: int = 1) -> Graph:
    """A node that loads into a register and sends what it held before."""
    i = index("i")
    body = (
        RegisterRead(target="before", register="kept", indices=(), type=INT32),
        Load(target="now", tensor="x", indices=(i,), type=INT32),
        RegisterWrite(register="kept", indices=(), value=local("now")),
        Send(channel="out", value=local("before")),
    )
    loops = (loop("i", 4),)
    keeping = node(
        "keeping",
        Role.LOAD,
        loops,
        body,
        registers=(Register(name="kept", type=INT32, shape=(), initial=0, distance=1),),
    )
    out = replace(channel("out", "keeping", "y_store", capacity=3), latency=latency)
    return graph_of(
        "kept",
        (keeping, store("y_store", "y", "out", loops, (i,))),
        (out,),
        (tensor("x", 4), tensor("y", 4, role="output")),
    )


def test_data_that_come_too_late_for_a_register() -> None:
    with pytest.raises(t2s.errors.UnsupportedError) as caught:
        chip_files(kept(), times_of(kept()), GENERIC)
    assert str(caught.value) == (
        "'keeping' cannot have the value for 'out' in time\n"
        "  expected: the value 0 cycles after the firing, as the device says\n"
        "  given:    2 cycles: it has been in a register file, which is written so late\n"
        "  hint:     a device with a lower load latency, or load and use the data in nodes of "
        "their own"
    )
    at_once = replace(CHIP, load_latency=0)
    assert chip_files(kept(), times_of(kept(), at_once), GENERIC)  # the hint
    assert chip_files(kept(latency=3), times_of(kept(latency=3)), GENERIC)


def test_what_a_chip_does_not_have() -> None:
    def refused(graph: Graph, times: DeviceTimes) -> str:
        with pytest.raises(t2s.errors.UnsupportedError) as caught:
            chip_files(graph, times, GENERIC)
        return str(caught.value).splitlines()[0]

    floats = systolic_gemm(1, 1, 2, element=Float(64))
    assert refused(floats, timing_of(floats)) == (
        "the verilog backend cannot emit 'gemm': node 'C': arithmetic of float64 is not available "
        "on a chip: it computes with float32, to which bfloat16 can be converted"
    )
    endless = chain(3)
    times = timing_of(endless)
    wide = {n: replace(c, capacity=1 << 40) for n, c in times.channels.items()}
    assert refused(endless, replace(times, channels=wide)) == (
        "the verilog backend cannot emit 'design': channel 'A': it holds more tokens than a "
        "FIFO of a chip, which has room for 65,536; 2 of 2 channels do"
    )


def test_machines_that_a_chip_does_not_have() -> None:
    streams = t2s.sparse.Streams("lookup")
    _, row = streams.scan_dense(streams.root(), 3)
    found = streams.load(row, streams.tensor("A", t2s.Int(32)))
    streams.write_values(found, streams.output("x", t2s.Int(32)))
    graph = streams.graph()
    graph = replace(graph, channels=tuple(replace(c, capacity=2) for c in graph.channels))
    times = timing_of(graph)
    assert "chip.sv" in chip_files(graph, times, GENERIC)
    nodes = tuple(replace(n, endless=True) if n.name == "load" else n for n in graph.nodes)
    with pytest.raises(t2s.errors.UnsupportedError) as caught:
        chip_files(replace(graph, nodes=nodes), times, GENERIC)
    assert (
        str(caught.value)
        .splitlines()[0]
        .endswith("node 'load': it never ends, so that the chip would not know when it is done")
    )
    searching = next(
        graph
        for graph, _ in map(random_machines, range(60))
        if any(isinstance(term, Search) for node in graph.nodes for term in walk(node))
    )
    with pytest.raises(t2s.errors.UnsupportedError) as caught:
        chip_files(searching, timing_of(searching), GENERIC)
    assert "it searches in a tensor, for which a memory would be addressed by its content" in str(
        caught.value
    )


def test_an_unknown_technology() -> None:
    assert find_technology("ecp5") is ECP5
    with pytest.raises(t2s.errors.UserError) as caught:
        find_technology("ecp6")
    assert str(caught.value) == (
        "unknown technology 'ecp6'\n"
        "  expected: ecp5, gowin, gatemate, xc7, generic\n"
        "  given:    'ecp6'"
    )


# ---------------------------------------------------------------------------------- the referee


@pytest.mark.slow
@needs_verilator
@pytest.mark.parametrize("technology", [GENERIC, ECP5])
def test_products_of_matrices_on_chips(technology: Technology, runtime: Path) -> None:
    rng = np.random.default_rng(1)
    limits = (-(2**15), 2**15)
    inputs = {"A": rng.integers(*limits, (2, 5)), "B": rng.integers(*limits, (5, 2))}
    typed = {name: array.astype(np.int16) for name, array in inputs.items()}
    row = chip_referee("gemm", gemm(), [CHIP], (None, 2), runtime, typed, technology)
    assert row.differences == row.refused == []
    assert row.runs == 2 * 4
    assert row.values > 0


@pytest.mark.slow
@needs_verilator
def test_what_is_easy_to_get_wrong_on_chips(runtime: Path) -> None:
    graph = side_by_side(
        chain=chain(7),
        fork=fork_join(5, short=1),
        feedback=feedback(4, capacity=2, latency=2),
        scatter=designs.scatter_gather(),
        feeder=designs.serial_feeder(extra=1),
        rows=designs.triangular(4),
        pes=designs.triangular(4, per_pe=True),
        total=designs.running_total(),
        left=designs.leftwards(),
        triangle=triangular_array(),
        kept=kept(latency=8),
    )
    narrow = replace(DEVICES["arria10"], memory_bytes_per_second=430_000_000, load_latency=7)
    row = chip_referee("parts", graph, [CHIP, narrow], (None, 2), runtime)
    assert row.differences == row.refused == []
    assert row.runs == 2 * 2 * 4
    assert row.values > 0


PLANTED = {
    "the flag of the second token is a cycle late": {
        "more <= 1'b0": "late <= 1'b0",
        "more <= more ?": "late <= more ?",
        "logic more;": "logic more, late;\n    always_ff @(posedge clock) more <= late;",
    },
    "one slot too few": {
        "room <= next_held != COUNT'(CAPACITY)": "room <= next_held < COUNT'(CAPACITY - 1)"
    },
    "the pipeline is one cycle too long": {"LATENCY - 1 - LATE;": "LATENCY - LATE;"},
}


@pytest.mark.slow
@needs_verilator
@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug: str, monkeypatch: pytest.MonkeyPatch, runtime: Path) -> None:
    plain = emit.library_text

    def text(name: str) -> str:
        found = plain(name)
        for right, wrong in PLANTED[bug].items() if name == "fifo.sv" else ():
            assert right in found
            found = found.replace(right, wrong)
        return found

    monkeypatch.setattr(emit, "library_text", text)
    try:
        row = chip_referee("gemm", gemm(2, 24), [CHIP], (None, 1), runtime)
    except t2s.errors.UserError as error:
        text_of = str(error)
    else:
        text_of = "\n".join(row.differences)
    assert re.search("has no room|has no token|cycles, not|other values", text_of)


MULTIPLIERS = """
module testbench (input logic clock);
  logic signed [16:0] x = 1;
  logic signed [15:0] y = 1;
  int count = 0;
  int wrong = 0;
  logic signed [32:0] p [1:4], q [1:4];
  logic signed [31:0] left = 0;
  logic signed [31:0] right = 0;
  logic signed [31:0] wide [1:6];
  logic signed [63:0] whole [1:6];
  for (genvar n = 1; n <= 4; n++) begin : each
    multiply #(.LEFT(17), .RIGHT(16), .STAGES(n)) mine (
      .clock, .left(x), .right(y), .product(p[n]));
    plain_multiply #(.LEFT(17), .RIGHT(16), .STAGES(n)) plain (
      .clock, .left(x), .right(y), .product(q[n]));
  end
  for (genvar n = 1; n <= 6; n++) begin : each_wide
    multiply_wide #(.WIDTH(32), .STAGES(n)) mine (
      .clock, .left(left), .right(right), .product(wide[n]));
    plain_multiply #(.LEFT(32), .RIGHT(32), .STAGES(n)) plain (
      .clock, .left(left), .right(right), .product(whole[n]));
  end
  // all bits at random, or only the highest or the lowest ones
  function automatic logic [31:0] operand();
    int shift = $random & 31;
    case ($random & 3)
      0: return $random << shift;
      1: return $random >>> shift;
      2: return ~32'd0 << shift;
      default: return $random;
    endcase
  endfunction
  always_ff @(posedge clock) begin
    x <= 17'($random);
    y <= 16'($random);
    left <= operand();
    right <= operand();
    for (int n = 1; n <= 6; n++) if (count > 8 && wide[n] != whole[n][31:0]) wrong <= wrong + 1;
    count <= count + 1;
    for (int n = 1; n <= 4; n++) if (count > 8 && p[n] != q[n]) wrong <= wrong + 1;
    if (count == 100000) begin
      $display("wrong: %0d, last %0d", wrong, q[3] != 0 && whole[3] != 0);
      $finish;
    end
  end
endmodule
"""


@pytest.mark.slow
@needs_verilator
def test_multipliers_of_ecp5(tmp_path: Path) -> None:
    library = Path(emit.__file__).parent / "library"
    for name in ("multiply_ecp5.sv", "multiply_wide.sv", "ecp5_primitives.sv"):
        (tmp_path / name).write_text((library / name).read_text())
    plain = (
        (library / "multiply.sv").read_text().replace("module multiply", "module plain_multiply")
    )
    (tmp_path / "plain.sv").write_text(plain)
    (tmp_path / "testbench.sv").write_text(MULTIPLIERS)
    (tmp_path / "main.cpp").write_text((library / "main.cpp").read_text())
    (tmp_path / "floats.cpp").write_text("")
    tools = find_tools()
    assert not isinstance(tools, str)
    sources = [f"{name}.sv" for name in ("ecp5_primitives", "multiply_ecp5", "multiply_wide")]
    sources += ["plain.sv", "testbench.sv"]
    graph = chain(1)
    compile_hardware(graph, tools, tmp_path, tmp_path, sources)
    shown = run_program(graph, [str(tmp_path / "simulation")], tmp_path, 60)
    assert shown.splitlines()[0] == "wrong: 0, last 1"
