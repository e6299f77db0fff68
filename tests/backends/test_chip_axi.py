"""Designs with masters of AXI4: a host in Verilator with memory behind them, and with pauses."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import t2s
from t2s.backends.verilog.flow.axi import AxiDesign
from t2s.backends.verilog.flow.flow import with_masters
from t2s.backends.verilog.reductions import levels_of
from t2s.backends.verilog.verilator import verilator_available
from t2s.core.errors import UnsupportedError
from t2s.core.ops import Array
from t2s.graph.arrays import pack
from tests.backends.test_chip_flow import blurred, job, product, stencil, vectors
from tests.backends.verilated import build_around

pytestmark = pytest.mark.verilator
needs_verilator = pytest.mark.skipif(
    not verilator_available(), reason="Verilator or a C++ compiler is not installed"
)

# Arguments: a seed, pauses in one of so many cycles on all channels (never with 0), the latency of
# the memory, and its manner: 0 is always ready, 1 once something is offered, 2 for addresses of
# writes once there are data, 3 for data once there are addresses; all but 0 give the last beats of
# bursts late.  Commands: "w OFFSET VALUE" writes a register, "r OFFSET" reads one, "u OFFSET MASK
# VALUE" reads one until those bits have that value; "m ADDRESS COUNT BYTE..." writes memory, "d
# ADDRESS COUNT" prints it; "q 0" is an error if the bus has more to do, and after "e N" it answers
# reads with the response N % 4 and writes with N / 4.  What the protocol forbids ends the program.
_HOST = """
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <vector>
#include "Vmodule.h"
static const uint64_t BASE = 0x123400000000ull;
static const unsigned BYTES = @BYTES@;
// memories and registers begin with anything
static const bool random_start = (Verilated::randReset(2), Verilated::randSeed(17), true);
static Vmodule design;
static std::vector<uint8_t> memory(1 << 16);
static uint64_t now = 0;
static unsigned state, one_in, latency, manner, answer = 0;
static bool waits() {
  state = state * 1664525u + 1013904223u;
  return one_in && (state >> 16) % one_in == 0;
}
static void must(bool holds, const char *what) {
  if (holds) return;
  std::printf("%s\\n", what);
  std::exit(1);
}
template <class T> static void put(T &to, const uint8_t *from) {
  to = 0;
  std::memcpy(&to, from, BYTES);
}
template <size_t N> static void put(VlWide<N> &to, const uint8_t *from) {
  std::memcpy(to.data(), from, BYTES);
}
template <class T> static std::vector<uint8_t> bytes_of(const T &from) {
  std::vector<uint8_t> bytes(BYTES);
  std::memcpy(bytes.data(), &from, BYTES);
  return bytes;
}
static uint8_t *at(uint64_t address) {
  must(address >= BASE && address + BYTES <= BASE + memory.size(), "outside of the memory");
  return &memory[address - BASE];
}
// What is offered stays until it is taken.
struct Held {
  bool waiting = false;
  bool ready() const { return (manner != 1 || waiting) && !waits(); }
  std::vector<uint64_t> offered;
  void seen(bool valid, bool ready, std::vector<uint64_t> what) {
    must(!waiting || (valid && what == offered), "an offer is withdrawn");
    waiting = valid && !ready;
    offered = what;
  }
};
struct Burst { uint64_t address; unsigned beats; };
static Burst burst(uint64_t address, unsigned length, unsigned size, unsigned kind) {
  const uint64_t bytes = (length + 1ull) * BYTES;
  must(kind == 1 && (1u << size) == BYTES && address % BYTES == 0, "another kind of burst");
  must(address / 4096 == (address + bytes - 1) / 4096, "a burst crosses 4 KiB");
  at(address + bytes - BYTES);
  return Burst{address, length + 1};
}
struct Beat { uint64_t address, when; bool last; };
struct Reader { std::deque<Beat> beats; bool offered = false; Held addresses; };
struct Writer {
  std::deque<Burst> bursts;
  std::deque<uint64_t> answers;  // when each of them comes
  struct Data { std::vector<uint8_t> bytes; uint64_t strobes; bool last; };
  std::deque<Data> data;
  unsigned beat = 0;
  bool offered = false;
  Held addresses, held;
  void apply() {
    while (!bursts.empty() && !data.empty()) {
      Burst &to = bursts.front();
      Data &from = data.front();
      uint8_t *place = at(to.address + beat * BYTES);
      for (unsigned byte = 0; byte < BYTES; ++byte)
        if (from.strobes >> byte & 1) place[byte] = from.bytes[byte];
      must(from.last == (beat + 1 == to.beats), "the last beat is another one");
      data.pop_front();
      if (++beat == to.beats) {
        beat = 0;
        bursts.pop_front();
        answers.push_back(now + latency);
      }
    }
  }
};
@MASTERS@
static void cycle() {
  @DRIVE@
  design.ap_clk = 0; design.eval();
  @TAKE@
  design.ap_clk = 1; design.eval();
  ++now;
}
static unsigned access(bool writes, unsigned offset, unsigned value) {
  bool address = false, data = !writes;
  unsigned read = 0, tries = 0;
  for (;;) {
    must(++tries < 1000, "no answer");
    // addresses and data come in any order, and an offer stays
    if (writes) {
      design.s_axi_control_awaddr = offset;
      design.s_axi_control_wdata = value;
      design.s_axi_control_wstrb = 15;
      design.s_axi_control_awvalid |= !address && !waits();
      design.s_axi_control_wvalid |= !data && !waits();
      design.s_axi_control_bready = !waits();
    } else {
      design.s_axi_control_araddr = offset;
      design.s_axi_control_arvalid |= !address && !waits();
      design.s_axi_control_rready = !waits();
    }
    design.ap_clk = 0; design.eval();
    const bool taken = writes ? design.s_axi_control_awready && design.s_axi_control_awvalid
                              : design.s_axi_control_arready && design.s_axi_control_arvalid;
    const bool with_data = design.s_axi_control_wready && design.s_axi_control_wvalid;
    const bool over = writes ? design.s_axi_control_bvalid && design.s_axi_control_bready
                             : design.s_axi_control_rvalid && design.s_axi_control_rready;
    read = design.s_axi_control_rdata;
    cycle();
    if (taken) { address = true; design.s_axi_control_awvalid = design.s_axi_control_arvalid = 0; }
    if (with_data) { data = true; design.s_axi_control_wvalid = 0; }
    if (over) break;
  }
  must(address && data, "an answer to nothing");
  design.s_axi_control_bready = design.s_axi_control_rready = 0;
  while (waits()) cycle();
  return read;
}
int main(int, char **arguments) {
  state = std::atoi(arguments[1]) * 2654435761u + 1;
  one_in = std::atoi(arguments[2]);
  latency = std::atoi(arguments[3]);
  manner = std::atoi(arguments[4]);
  design.ap_rst_n = 0;
  design.s_axi_control_awvalid = design.s_axi_control_wvalid = design.s_axi_control_bready = 0;
  design.s_axi_control_arvalid = design.s_axi_control_rready = 0;
  for (int count = 0; count < 4; ++count) {
    design.ap_clk = 0; design.eval();
    design.ap_clk = 1; design.eval();
  }
  design.ap_rst_n = 1;
  char kind;
  unsigned offset, value, mask;
  while (std::scanf(" %c %u", &kind, &offset) == 2) {
    if (kind == 'w') {
      must(std::scanf("%u", &value) == 1, "no value");
      access(true, offset, value);
    } else if (kind == 'r') {
      std::printf("%u\\n", access(false, offset, 0));
    } else if (kind == 'u') {
      must(std::scanf("%u %u", &mask, &value) == 2, "no value");
      for (int tries = 0; (access(false, offset, 0) & mask) != value; ++tries)
        must(tries < 100000, "late");
    } else if (kind == 'q') {
      @QUIET@
    } else if (kind == 'e') {
      answer = offset;
    } else {
      must(std::scanf("%u", &mask) == 1, "no count");
      for (unsigned byte = 0; byte < mask; ++byte) {
        if (kind == 'm') {
          must(std::scanf("%u", &value) == 1, "no byte");
          memory[offset + byte] = value;
        } else {
          std::printf("%u ", memory[offset + byte]);
        }
      }
      if (kind == 'd') std::printf("\\n");
    }
  }
}
"""
_DRIVE_READER = """
  design.@_arready = @.addresses.ready();
  if (!@.offered && !@.beats.empty() && @.beats.front().when <= now) @.offered = !waits();
  design.@_rvalid = @.offered;
  if (@.offered) {
    put(design.@_rdata, at(@.beats.front().address));
    design.@_rlast = @.beats.front().last;
    design.@_rresp = answer % 4;
  }
"""
_TAKE_READER = """
  @.addresses.seen(design.@_arvalid, design.@_arready, {design.@_araddr, design.@_arlen});
  if (design.@_arvalid && design.@_arready) {
    const Burst asked = burst(design.@_araddr, design.@_arlen, design.@_arsize, design.@_arburst);
    for (unsigned beat = 0; beat < asked.beats; ++beat) {
      const bool last = beat + 1 == asked.beats;
      const uint64_t when = now + latency + (last && manner ? 60 : 0);
      @.beats.push_back({asked.address + beat * BYTES, when, last});
    }
  }
  if (@.offered && design.@_rready) { @.beats.pop_front(); @.offered = false; }
"""
_DRIVE_WRITER = """
  design.@_awready = @.addresses.ready() && (manner != 2 || @.held.waiting || !@.data.empty());
  design.@_wready = @.held.ready() && (manner != 3 || !@.bursts.empty());
  if (!@.offered && !@.answers.empty() && @.answers.front() <= now) @.offered = !waits();
  design.@_bvalid = @.offered;
  design.@_bresp = answer / 4;
"""
_TAKE_WRITER = """
  @.addresses.seen(design.@_awvalid, design.@_awready, {design.@_awaddr, design.@_awlen});
  {
    const std::vector<uint8_t> bytes = bytes_of(design.@_wdata);
    std::vector<uint64_t> offered(bytes.begin(), bytes.end());
    offered.push_back(design.@_wstrb);
    offered.push_back(design.@_wlast);
    @.held.seen(design.@_wvalid, design.@_wready, offered);
    if (design.@_wvalid && design.@_wready)
      @.data.push_back({bytes, design.@_wstrb, design.@_wlast != 0});
  }
  if (design.@_awvalid && design.@_awready) @.bursts.push_back(
    burst(design.@_awaddr, design.@_awlen, design.@_awsize, design.@_awburst));
  if (@.offered && design.@_bready) { @.answers.pop_front(); @.offered = false; }
  @.apply();
"""
BASE = 0x1234_0000_0000
FIRST = 4096 - 64
"""Where the first tensor is in memory: just before a boundary of bursts."""


def host_of(made: AxiDesign) -> str:
    """The host of a design with these masters."""
    parts: dict[str, list[str]] = {"MASTERS": [], "DRIVE": [], "TAKE": [], "QUIET": []}
    for one in made.arguments:
        parts["MASTERS"].append(f"static {'Reader' if one.read else 'Writer'} {one.prefix};")
        drive, take = (_DRIVE_READER, _TAKE_READER) if one.read else (_DRIVE_WRITER, _TAKE_WRITER)
        parts["DRIVE"].append(drive.replace("@", one.prefix))
        parts["TAKE"].append(take.replace("@", one.prefix))
        left = ("beats",) if one.read else ("bursts", "data", "answers")
        parts["QUIET"] += [f'must({one.prefix}.{what}.empty(), "not over");' for what in left]
    text = _HOST.replace("@BYTES@", str(made.bus_bits // 8))
    for name, lines in parts.items():
        text = text.replace(f"@{name}@", "\n".join(lines))
    return text


def built(
    func: t2s.Func, bits: int | None, folder: Path, runtime: Path
) -> tuple[Path, AxiDesign, int]:
    """The program of a host and a design, the design, and its cycles in the simulator."""
    chosen, cycles = job(func)
    made = with_masters(chosen.graph, chosen.times, {}, "generic", bits)
    for name, text in made.files.items():
        (folder / name).write_text(text)
    host = build_around(made.module, list(made.files), host_of(made), folder, runtime)
    return host, made, cycles


def talk(
    host: Path,
    commands: list[str],
    seed: int = 0,
    one_in: int = 0,
    latency: int = 1,
    manner: int = 0,
) -> str:
    command = [str(host), *map(str, (seed, one_in, latency, manner))]
    ran = subprocess.run(command, input="\n".join(commands), capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout
    return ran.stdout


def places(made: AxiDesign) -> dict[str, int]:
    """Where each tensor is in memory, just before boundaries of 4 KiB."""
    return {one.tensor.name: FIRST + 8192 * at for at, one in enumerate(made.arguments)}


def addressing(made: AxiDesign) -> list[str]:
    """The commands that tell a design where its tensors are."""
    commands = []
    for one in made.arguments:
        address = BASE + places(made)[one.tensor.name]
        commands.append(f"w {one.offset} {address & 0xFFFF_FFFF}")
        commands.append(f"w {one.offset + 4} {address >> 32}")
    return commands


def bytes_of(values: Array) -> list[int]:
    return list(np.ascontiguousarray(values).tobytes())


def put(address: int, values: list[int]) -> str:
    return f"m {address} {len(values)} {' '.join(map(str, values))}"


def one_run(func: t2s.Func, made: AxiDesign, random: Any) -> tuple[list[str], list[list[int]]]:
    """The commands of a run on random inputs, and the bytes of its results."""
    arrays = {
        one.tensor.array: random.integers(-100, 100, one.tensor.shape).astype(one.tensor.type.numpy)
        for one in made.arguments
        if one.read
    }
    expected = t2s.interpret(func, arrays)
    at, commands, results = places(made), [], []
    for one in made.arguments:
        value = arrays[one.tensor.array] if one.read else expected
        value = pack(one.tensor, np.asarray(value))
        if one.read:
            commands.append(put(at[one.tensor.name], bytes_of(value)))
        else:
            # what is behind the tensor stays
            commands.append(put(at[one.tensor.name], [238] * (one.size + 64)))
            results.append([*bytes_of(value), *[238] * 64])
    commands += ["w 0 1", "u 0 2 2", "q 0", f"r {made.cycles}", f"r {made.wrong}"]
    for one in made.arguments:
        if not one.read:
            commands.append(f"d {at[one.tensor.name]} {one.size + 64}")
    return commands, results


def outer() -> t2s.Func:
    """More rows of the result than of what is read."""
    x, y = t2s.ImageParam(t2s.Int(16), 1, name="x"), t2s.Func("y")
    i, j = t2s.variables("i j")
    y[i, j] = x[i] * x[j]
    return y.bound(i, 0, 12).bound(j, 0, 12)


def short_product() -> t2s.Func:
    """More rows of the result, by nine units, than of what is read."""
    return product(pes=3, steps=1)


def long_copy() -> t2s.Func:
    """A tensor of more than one page, each element of it with 1 added."""
    x, y, i = t2s.ImageParam(t2s.Int(16), 1, name="x"), t2s.Func("y"), t2s.Var("i")
    y[i] = x[i] + t2s.cast(t2s.Int(16), 1)
    return y.bound(i, 0, 3001)


def mixed() -> t2s.Func:
    """Truth values, a byte each in memory, choose among elements of 64 bits."""
    a, b = t2s.ImageParam(t2s.Int(64), 1, name="a"), t2s.ImageParam(t2s.Bool(), 1, name="b")
    y, i = t2s.Func("y"), t2s.Var("i")
    y[i] = t2s.select(b[i], a[i], a[i] - t2s.cast(t2s.Int(64), 1))
    return y.bound(i, 0, 21)


def rounded() -> t2s.Func:
    """Products of numbers of 16 and of 32 bits."""
    a, b = t2s.ImageParam(t2s.BFloat(), 1, name="a"), t2s.ImageParam(t2s.Float(32), 1, name="b")
    y, i = t2s.Func("y"), t2s.Var("i")
    y[i] = t2s.cast(t2s.Float(32), a[i]) * b[i]
    return y.bound(i, 0, 21)


@needs_verilator
@pytest.mark.parametrize(
    ("define", "bits"),
    [
        (product, None),
        pytest.param(mixed, 64, marks=pytest.mark.slow),
        pytest.param(rounded, 128, marks=pytest.mark.slow),
        (short_product, None),
        (long_copy, 512),
        pytest.param(vectors, 64, marks=pytest.mark.slow),
        pytest.param(stencil, 128, marks=pytest.mark.slow),
        pytest.param(blurred, 256, marks=pytest.mark.slow),
        pytest.param(long_copy, 32, marks=pytest.mark.slow),
    ],
)
def test_values_and_cycles(define: Any, bits: int | None, tmp_path: Path, runtime: Path) -> None:
    """Two runs for 20 seeds of pauses on all channels, one of them in four without any."""
    func = define()
    host, made, cycles = built(func, bits, tmp_path, runtime)
    assert made.bus_bits == (bits or 32)
    random = np.random.default_rng(1)
    for seed in range(20):
        commands, expected = addressing(made), ""
        for _ in range(2):
            more, results = one_run(func, made, random)
            commands += more
            expected += f"{cycles}\n0\n"
            expected += "".join(" ".join(map(str, one)) + " \n" for one in results)
        one_in, latency, manner = (0, 2, 3, 10)[seed % 4], (1, 7, 40)[seed % 3], seed // 4 % 4
        assert talk(host, commands, seed, one_in, latency, manner) == expected


@needs_verilator
@pytest.mark.parametrize(
    ("define", "bits"),
    [
        (outer, None),
        pytest.param(long_copy, 512, marks=pytest.mark.slow),
        pytest.param(blurred, 64, marks=pytest.mark.slow),
    ],
)
def test_the_time_of_copies(define: Any, bits: int | None, tmp_path: Path, runtime: Path) -> None:
    """Of a memory that takes an address and gives a beat in each cycle, after its latency.

    A run takes a cycle for each beat of the longest tensor in, or for each row that is cleared, and
    one for each beat out, besides the latencies and the registers on the way.
    """
    func = define()
    host, made, cycles = built(func, bits, tmp_path, runtime)
    beats = {one.prefix: -(-one.size // (made.bus_bits // 8)) for one in made.arguments}
    into = max(beats[one.prefix] for one in made.arguments if one.read)
    out = max(beats[one.prefix] for one in made.arguments if not one.read)
    done = max(len(levels_of(node.place_count)) for node in t2s.lower(func).nodes)
    commands, _ = one_run(func, made, np.random.default_rng(0))
    commands = [*addressing(made), *commands, f"r {made.elapsed}"]
    for latency in (1, 7, 40):
        elapsed = int(talk(host, commands, latency=latency).split()[-1])
        assert elapsed == max(into + latency + 2, out) + cycles + done + out + latency + 19


@needs_verilator
def test_registers(tmp_path: Path, runtime: Path) -> None:
    """What a host reads before, in and after a run, and after one that the bus has failed."""
    func = product()
    host, made, cycles = built(func, None, tmp_path, runtime)
    first, *_ = made.arguments
    commands, _ = one_run(func, made, np.random.default_rng(0))
    start = commands.index("w 0 1")

    def said(*asked: str) -> list[str]:
        return talk(host, list(asked)).split()

    assert said("r 0", "r 4", "r 8", "r 12") == ["4", "0", "0", "0"]  # idle; no interrupts
    low, high = f"r {first.offset}", f"r {first.offset + 4}"
    written = said(f"w {first.offset} 4294967295", f"w {first.offset + 4} 77", low, high)
    assert written == [str(2**32 - 4), "77"]  # a multiple of the bytes of a beat
    assert said("w 0 2", "w 4 1", "r 0") == ["4"]  # only a 1 in the first bit starts
    ran = [*addressing(made), *commands[:start], "w 0 1"]
    kept = [f"w {first.offset} 0", "r 0", "w 0 1", "u 0 14 14", "r 0", low]
    # while it runs it is not idle, and addresses stay; that it has ended is said once
    address = (BASE + places(made)[first.tensor.name]) & 0xFFFF_FFFF
    assert said(*ran, *kept) == ["1", "4", str(address)]
    asked = ["u 0 2 2", f"r {made.cycles}", f"r {made.wrong}"]
    for answer in ("e 2", "e 8"):  # of reads, of writes
        failed = [*ran[:-1], answer, "w 0 1", *asked, "e 0", "w 0 1", *asked]
        assert said(*failed) == [str(cycles), "1", str(cycles), "0"]


_UNITED = """
#include <cstdio>
#include "Vmodule.h"
int main() {
  Vmodule rows;
  unsigned stored[2];
  while (std::scanf("%u %u", &stored[0], &stored[1]) == 2) {
    for (int unit = 0; unit < 2; ++unit) {
      rows.stored[unit] = stored[unit];
      rows.words[unit] = 0;
      for (int at = 0; at < 4; ++at)
        if (stored[unit] >> at & 1) rows.words[unit] |= (16u * unit + at + 1) << 8 * at;
    }
    rows.eval();
    std::printf("%u %x %d\\n", rows.once, rows.word, rows.conflict);
  }
}
"""


@needs_verilator
def test_an_element_of_two_units(tmp_path: Path, runtime: Path) -> None:
    """It is none of them that is written, and the register says so."""
    made = with_masters(job(product())[0].graph, job(product())[0].times, {}, "generic")
    (tmp_path / "rows.sv").write_text(made.files["rows.sv"])
    (tmp_path / "delay.sv").write_text(made.files["delay.sv"])
    sizes = ["-GUNITS=2", "-GDATA=32", "-GPER=4"]
    sources = ["rows.sv", "delay.sv"]
    program = build_around("united_rows", sources, _UNITED, tmp_path, runtime, parameters=sizes)
    ran = subprocess.run([program], input="5 10\n1 3", capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == ["15 14031201 0", "2 1211 1"]


def test_what_has_no_master() -> None:
    chosen, _ = job(vectors())
    with pytest.raises(UnsupportedError, match="a word of 64 bits does not fit in a beat of 32"):
        with_masters(chosen.graph, chosen.times, {}, "generic", 32)
    assert with_masters(chosen.graph, chosen.times, {}, "generic").bus_bits == 64
