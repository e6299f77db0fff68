"""Designs behind AXI4-Streams: a host in Verilator sends words and takes results, with pauses."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import t2s
from t2s.backends.verilog.flow import flow
from t2s.backends.verilog.flow.flow import Memory, Sources, sources_of
from t2s.backends.verilog.flow.streams import MOST_WORDS, not_streamed
from t2s.backends.verilog.verilator import verilator_available
from t2s.core.errors import UserError
from t2s.core.ops import Array
from tests.backends.test_chip_flow import blurred, job, product, stencil, vectors
from tests.backends.verilated import build_around, passes_cocotb

needs_verilator = pytest.mark.skipif(
    not verilator_available(), reason="Verilator or a C++ compiler is not installed"
)
pytestmark = pytest.mark.verilator

# Input: for each stream to the design its words, then for each one from it how many to take.  A
# word waits, and a result is not taken, in one of so many cycles; never with 0.  Output: what came
# from each stream, with a star where it is the last of a run, and the cycles of the runs.
_HOST = """
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <vector>
#include "Vmodule.h"
static unsigned state;
static bool waits(unsigned one_in) {
  state = state * 1664525u + 1013904223u;
  return one_in && (state >> 16) % one_in == 0;
}
struct Source { std::deque<uint64_t> words; bool offered = false; };
struct Sink {
  unsigned wanted;
  std::vector<uint64_t> words;
  std::vector<bool> last;
  bool ready = false;
};
static Source read_words() {
  Source source;
  unsigned count = 0;
  if (std::scanf("%u", &count) != 1) std::exit(1);
  for (unsigned at = 0; at < count; ++at) {
    unsigned long long word = 0;
    if (std::scanf("%llu", &word) != 1) std::exit(1);
    source.words.push_back(word);
  }
  return source;
}
static Sink read_count() {
  Sink sink;
  if (std::scanf("%u", &sink.wanted) != 1) std::exit(1);
  return sink;
}
int main(int, char **arguments) {
  Vmodule design;
  const unsigned one_in = std::atoi(arguments[2]);
  state = std::atoi(arguments[1]) * 2654435761u + 1;
  @READ@
  auto step = [&] { design.clock = 0; design.eval(); design.clock = 1; design.eval(); };
  design.reset = 1;
  for (int at = 0; at < 4; ++at) step();
  design.reset = 0;
  std::vector<unsigned> cycles;
  unsigned known = 0;
  for (int at = 0; at < 100000; ++at) {
    @DRIVE@
    design.clock = 0; design.eval();
    @TAKE@
    design.clock = 1; design.eval();
    if (design.cycles != known) cycles.push_back(known = design.cycles);
  }
  @PRINT@
  for (unsigned count : cycles) std::printf("%u ", count);
  std::printf("\\n");
}
"""


def host_of(streams: dict[str, Any]) -> str:
    """The host of a design with these streams."""
    parts: dict[str, list[str]] = {"READ": [], "DRIVE": [], "TAKE": [], "PRINT": []}
    for name, stream in streams.items():
        if stream["direction"] == "to the design":
            parts["READ"].append(f"Source {name} = read_words();")
            parts["DRIVE"].append(
                f"{name}.offered |= !{name}.words.empty() && !waits(one_in);"
                f"design.{name}_tvalid = {name}.offered;"
                f"if ({name}.offered) design.{name}_tdata = {name}.words.front();"
            )
            parts["TAKE"].append(
                f"if ({name}.offered && design.{name}_tready) {{"
                f" {name}.words.pop_front(); {name}.offered = false; }}"
            )
        else:
            parts["READ"].append(f"Sink {name} = read_count();")
            parts["DRIVE"].append(f"design.{name}_tready = {name}.ready = !waits(one_in);")
            parts["TAKE"].append(
                f"if ({name}.ready && design.{name}_tvalid) {{"
                f" {name}.words.push_back(design.{name}_tdata);"
                f" {name}.last.push_back(design.{name}_tlast); }}"
            )
            parts["PRINT"].append(
                f"for (size_t at = 0; at < {name}.words.size(); ++at) std::printf("
                f'"%llu%s ", (unsigned long long){name}.words[at], {name}.last[at] ? "*" : "");'
                'std::printf("\\n");'
            )
    text = _HOST
    for name, lines in parts.items():
        text = text.replace(f"@{name}@", "\n  ".join(lines))
    return text


def words_of(stream: dict[str, Any], values: Array) -> Iterator[int]:
    """The words of a run of a stream, of what its tensor holds."""
    flat = np.ascontiguousarray(values).reshape(-1)
    patterns = flat.view(f"u{flat.itemsize}")
    width = 8 * -(-stream["bits"] // 8)
    for first in stream["elements"]:
        lanes = patterns[first : first + stream["lanes"]]
        yield sum(int(value) << (width * lane) for lane, value in enumerate(lanes))


def built(func: t2s.Func, folder: Path, runtime: Path) -> tuple[Path, dict[str, Any], int, Sources]:
    """The program of a host and a design, its streams, and its cycles in the simulator."""
    chosen, cycles = job(func, memory=Memory.AXI_STREAM)
    sources = sources_of(chosen)
    for name, text in sources.files.items():
        (folder / name).write_text(text)
    (described,) = (text for name, text in sources.files.items() if name.endswith(".json"))
    streams = json.loads(described)
    host = build_around(sources.top, list(sources.read), host_of(streams), folder, runtime)
    return host, streams, cycles, sources


def talk(host: Path, lines: list[str], seed: int, one_in: int) -> list[str]:
    command = [str(host), str(seed), str(one_in)]
    text = "\n".join(lines)
    ran = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    return [line.strip() for line in ran.stdout.splitlines()]


@needs_verilator
@pytest.mark.parametrize(
    "define",
    [
        product,
        pytest.param(vectors, marks=pytest.mark.slow),
        pytest.param(stencil, marks=pytest.mark.slow),
        pytest.param(blurred, marks=pytest.mark.slow),
    ],
)
def test_values_and_cycles(define: Any, tmp_path: Path, runtime: Path) -> None:
    """Three runs one after the other: without pauses in the simulator's cycles, then with many."""
    func = define()
    host, streams, cycles, _ = built(func, tmp_path, runtime)
    random = np.random.default_rng(1)
    for seed in range(20):
        lines: dict[str, list[int]] = {name: [] for name in streams}
        expected: dict[str, list[str]] = {name: [] for name in streams}
        for _ in range(3):
            arrays = inputs_of(func, random)
            arrays["out"] = t2s.interpret(func, arrays)
            for name, stream in streams.items():
                to_design = stream["direction"] == "to the design"
                values = arrays[stream["tensor"] if to_design else "out"]
                words = list(words_of(stream, values))
                lines[name] += words
                expected[name] += [*map(str, words[:-1]), f"{words[-1]}*"]
        one_in = (0, 2, 3, 10)[seed % 4]
        said = talk(host, [text_of(streams[n], words) for n, words in lines.items()], seed, one_in)
        results = [n for n in streams if streams[n]["direction"] == "from the design"]
        assert [line.split() for line in said[:-1]] == [expected[name] for name in results]
        if not one_in:
            # the register is read when it changes: three equal runs are one change
            assert said[-1].split() == [str(cycles)]


def text_of(stream: dict[str, Any], words: list[int]) -> str:
    sends = stream["direction"] == "to the design"
    return " ".join(map(str, [len(words), *words] if sends else [len(words)]))


def inputs_of(func: t2s.Func, random: np.random.Generator) -> dict[str, Any]:
    graph = t2s.lower(func)
    return {
        tensor.name: random.integers(-100, 100, tensor.shape).astype(tensor.type.numpy)
        for tensor in graph.tensors
        if tensor.role.value == "input"
    }


@pytest.mark.slow
@needs_verilator
def test_sources_and_sinks_of_cocotb(tmp_path: Path) -> None:
    """Those of cocotbext-axi, which pause at random, for 20 seeds; the first one never does."""
    pytest.importorskip("cocotbext.axi")
    func = product()
    chosen, cycles = job(func, memory=Memory.AXI_STREAM)
    sources = sources_of(chosen)
    for name, text in sources.files.items():
        (tmp_path / name).write_text(text)
    streams = json.loads(sources.files["C.json"])
    random = np.random.default_rng(2)
    seeds = []
    for _ in range(21):
        arrays = inputs_of(func, random)
        arrays["C"] = t2s.interpret(func, arrays)
        seeds.append({name: packet_of(one, arrays[one["tensor"]]) for name, one in streams.items()})
    (tmp_path / "words.json").write_text(json.dumps(seeds))
    seen = {
        "STREAMS": str(tmp_path / "C.json"),
        "WORDS": str(tmp_path / "words.json"),
        "CYCLES": str(cycles),
    }
    read = [tmp_path / name for name in sources.read]
    assert passes_cocotb(sources.top, read, "tests.backends.cocotb_streams", tmp_path, seen)


def packet_of(stream: dict[str, Any], values: Array) -> list[int]:
    """The bytes of a run of a stream."""
    width = stream["lanes"] * -(-stream["bits"] // 8)
    return [b for word in words_of(stream, values) for b in word.to_bytes(width, "little")]


def test_streams_take_no_block_ram(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensors that are too large for the block RAM of an FPGA go through it."""

    class Reached(Exception):
        pass

    def build(*given: Any) -> None:
        raise Reached

    monkeypatch.setattr(flow, "build", build)
    large = product(pes=2, steps=20_000)
    with pytest.raises(UserError, match="needs 80 block RAMs"):
        t2s.synthesize(large, "ecp5-25k")
    with pytest.raises(Reached):
        t2s.synthesize(large, "ecp5-25k", memory="axi-stream")


def test_too_many_words() -> None:
    """Refused before anything is built."""
    x, y, i = t2s.ImageParam(t2s.Int(8), 1, name="x"), t2s.Func("y"), t2s.Var("i")
    y[i] = x[i] + t2s.cast(t2s.Int(8), 1)
    graph = t2s.lower(y.bound(i, 0, MOST_WORDS + 1))
    problem, *_ = not_streamed(graph, {})
    assert "too often for the order of the words of a stream" in problem.why


def test_streams_are_not_a_board() -> None:
    with pytest.raises(UserError, match="streams have no pins of a board"):
        t2s.synthesize(product(), board="ulx3s", memory="axi-stream")
