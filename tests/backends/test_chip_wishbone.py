"""Designs behind a Wishbone bus: a host in Verilator fills memories, starts, waits and reads."""

from __future__ import annotations

import re
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import t2s
from t2s.backends.verilog.flow.flow import Memory, Sources, sources_of
from t2s.backends.verilog.flow.toolchain import run_yosys
from t2s.backends.verilog.verilator import verilator_available
from t2s.core.errors import UserError
from t2s.core.ops import Array
from tests.backends.test_chip_flow import job, product, stencil, vectors
from tests.backends.verilated import build_around

pytestmark = pytest.mark.verilator
needs_verilator = pytest.mark.skipif(
    not verilator_available(), reason="Verilator or a C++ compiler is not installed"
)

# Lines of commands: "w WORD VALUE" writes, "r WORD" reads, "u WORD MASK VALUE" reads until those
# bits have that value.  Between two of them the host pauses for up to three cycles.
_HOST = """
#include <cstdio>
#include <cstdlib>
#include "Vmodule.h"
int main(int count, char **arguments) {
  Vmodule slave;
  unsigned state = std::atoi(arguments[1]) * 2654435761u + 1;
  auto step = [&] { slave.clock = 0; slave.eval(); slave.clock = 1; slave.eval(); };
  auto pause = [&] {
    state = state * 1664525u + 1013904223u;
    for (unsigned rest = (state >> 20) % 4; rest; --rest) step();
  };
  bool failed = false;
  auto access = [&](unsigned word, bool writes, unsigned value) {
    slave.wb_cyc = slave.wb_stb = 1;
    slave.wb_we = writes;
    slave.wb_adr = word;
    slave.wb_dat_w = value;
    slave.wb_sel = 15;
    int waited = 0;
    do step(); while (!slave.wb_ack && !slave.wb_err && ++waited < 100);
    failed = !slave.wb_ack;
    const unsigned read = slave.wb_dat_r;
    slave.wb_cyc = slave.wb_stb = 0;
    step();
    pause();
    return read;
  };
  slave.reset = 1;
  for (int at = 0; at < 4; ++at) step();
  slave.reset = 0;
  char kind;
  unsigned word, mask, value;
  while (std::scanf(" %c %u", &kind, &word) == 2) {
    if (kind == 'w') {
      if (std::scanf("%u", &value) != 1) return 1;
      access(word, true, value);
      if (failed) std::printf("error\\n");
    } else if (kind == 'r') {
      const unsigned read = access(word, false, 0);
      if (failed) std::printf("error\\n"); else std::printf("%u\\n", read);
    } else {
      if (std::scanf("%u %u", &mask, &value) != 2) return 1;
      int tries = 0;
      while ((access(word, false, 0) & mask) != value && ++tries < 10000) {}
      if (tries == 10000) std::printf("late\\n");
    }
  }
}
"""


def build_host(sources: Sources, folder: Path, runtime: Path) -> Path:
    """The program of the host and the slave."""
    for name, text in sources.files.items():
        (folder / name).write_text(text)
    return build_around(sources.top, list(sources.read), _HOST, folder, runtime)


def first_words(sources: Sources) -> dict[str, int]:
    """The words of the header."""
    (text,) = (text for name, text in sources.files.items() if name.endswith(".h"))
    return {name: int(at) for name, at in re.findall(r"#define [A-Z]+?_(\w+) (\d+)", text)}


def talk(host: Path, commands: list[str], seed: int) -> list[str]:
    ran = subprocess.run(
        [str(host), str(seed)],
        input="\n".join(commands),
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout.split()


def patterns(values: Array) -> list[int]:
    flat = np.ascontiguousarray(values).reshape(-1)
    return [int(value) for value in flat.view(f"u{flat.itemsize}")]


@needs_verilator
@pytest.mark.parametrize(
    "define",
    [
        product,
        pytest.param(vectors, marks=pytest.mark.slow),
        pytest.param(stencil, marks=pytest.mark.slow),
    ],
)
def test_values_and_cycles(define: Any, tmp_path: Path, runtime: Path) -> None:
    """Two runs with other inputs in between, for 20 seeds of pauses of the host."""
    func = define()
    chosen, cycles = job(func, memory=Memory.WISHBONE)
    sources = sources_of(chosen)
    host, words = build_host(sources, tmp_path, runtime), first_words(sources)
    inputs = [tensor for tensor in chosen.graph.tensors if tensor.role.value == "input"]
    (output,) = (tensor for tensor in chosen.graph.tensors if tensor.role.value == "output")
    random = np.random.default_rng(1)
    for seed in range(20):
        commands, expected = [], []
        for _ in range(2):
            given = {
                t.array: random.integers(-100, 100, t.shape).astype(t.type.numpy) for t in inputs
            }
            for tensor in inputs:
                first = words[f"TENSOR_{tensor.name}"]
                values = enumerate(patterns(given[tensor.array]))
                commands += [f"w {first + at} {value}" for at, value in values]
            commands += ["w 0 1", "u 0 3 2", "r 1"]
            first = words[f"TENSOR_{output.name}"]
            results = patterns(t2s.interpret(func, given))
            commands += [f"r {first + at}" for at in range(len(results))]
            expected += [str(cycles), *map(str, results)]
        assert talk(host, commands, seed) == expected


@needs_verilator
def test_errors_on_the_bus(tmp_path: Path, runtime: Path) -> None:
    sources = sources_of(job(product(), memory=Memory.WISHBONE)[0])
    host, words = build_host(sources, tmp_path, runtime), first_words(sources)
    A, C = words["TENSOR_A"], words["TENSOR_C"]
    assert talk(host, ["r 0", "r 1", f"r {C}"], 0) == ["0", "0", "0"]  # nothing has run
    assert talk(host, [f"r {A}"], 0) == ["error"]  # inputs are only written
    assert talk(host, [f"w {C} 1"], 0) == ["error"]  # results are only read
    assert talk(host, [f"r {C + 4}", "w 1 1", "r 2"], 0) == ["error"] * 3  # there is nothing
    assert talk(host, ["w 0 0", "r 0"], 0) == ["0"]  # only a 1 starts
    assert talk(host, ["w 0 1", f"w {A} 1", "u 0 3 2"], 0) == ["error"]  # it runs
    assert talk(host, ["w 0 1", "w 0 1", "u 0 3 2"], 0) == ["error"]


@pytest.mark.skipif(find_spec("pyosys") is None, reason="Yosys is not installed")
def test_yosys_reads_a_slave(tmp_path: Path) -> None:
    """It is stricter than Verilator about names that are used before they are declared."""
    sources = sources_of(job(product(), memory=Memory.WISHBONE)[0])
    for name, text in sources.files.items():
        (tmp_path / name).write_text(text)
    run_yosys([f"read_slang --top {sources.top} {' '.join(sources.read)}"], tmp_path, 60)


def test_tensors_that_are_not_on_a_bus() -> None:
    x, y = t2s.ImageParam(t2s.Int(64), 1, name="x"), t2s.Func("y")
    i = t2s.Var("i")
    y[i] = x[i] + 1
    with pytest.raises(UserError, match="elements of int64 are wider than a word of the bus"):
        t2s.synthesize(y.bound(i, 0, 8), "ecp5-85k", memory="wishbone")


def test_a_slave_is_not_a_board() -> None:
    with pytest.raises(UserError, match="a slave of a bus has no pins of a board"):
        t2s.synthesize(product(), board="ulx3s", memory="wishbone")
