"""Floating-point operators of chips against numpy, bit for bit."""

from __future__ import annotations

import os
import subprocess
import warnings
from itertools import product as pairs_of
from pathlib import Path

import numpy as np
import pytest

from t2s.backends.verilog import emit
from t2s.backends.verilog.technology import ECP5, GENERIC, Technology
from t2s.backends.verilog.verilator import find_tools, verilator_available
from t2s.core.ops import Array

pytestmark = [
    pytest.mark.verilator,
    pytest.mark.skipif(
        not verilator_available(), reason="Verilator or a C++ compiler is not installed"
    ),
]

LIBRARY = Path(emit.__file__).parent / "library"
NOT_A_NUMBER = np.uint32(0x7FC00000)

# patterns without a sign: zero, ends of the subnormal and of the normal numbers, ties, infinity
_MAGNITUDES = (
    *(0x00000000, 0x00000001, 0x00000002, 0x00000003, 0x003FFFFF, 0x00400000, 0x007FFFFE),
    *(0x007FFFFF, 0x00800000, 0x00800001, 0x00FFFFFF, 0x01000000, 0x0C000000, 0x33800000),
    *(0x33800001, 0x34000000, 0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x3F800002, 0x3FC00000),
    *(0x40000000, 0x4B7FFFFF, 0x4B800000, 0x4B800001, 0x5F800000, 0x7E800000, 0x7F000000),
    *(0x7F7FFFFE, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000, 0x7FFFFFFF),
)
SPECIAL = np.array([m | s for m in _MAGNITUDES for s in (0, 0x80000000)], np.uint32)

_MAIN = """
#include <cstdint>
#include <cstdio>
#include "Vcore.h"
int main() {
  Vcore core;
  FILE *in = std::fopen("operands.bin", "rb"), *out = std::fopen("results.bin", "wb");
  std::uint32_t pair[2];
  auto step = [&] { core.clock = 0; core.eval(); core.clock = 1; core.eval(); };
  long sent = 0;
  for (; std::fread(pair, 4, 2, in) == 2; ++sent) {
    core.left = pair[0];
    core.right = pair[1];
    step();
    if (sent + 1 >= CYCLES) std::fwrite(&core.RESULT, 4, 1, out);
  }
  for (int rest = 1; rest < CYCLES; ++rest) {
    step();
    std::fwrite(&core.RESULT, 4, 1, out);
  }
  std::fclose(out);
}
"""


def run_core(
    module: str,
    left: Array,
    right: Array,
    folder: Path,
    *,
    stages: int,
    technology: Technology = GENERIC,
    **parameters: int,
) -> Array:
    """The results of a module for pairs of patterns, one pair in each cycle."""
    tools = find_tools()
    assert not isinstance(tools, str)
    np.stack([left, right], axis=1).astype(np.uint32).tofile(folder / "operands.bin")
    result = {"float_add": "sum", "float_multiply": "product"}[module]
    cycles = stages if parameters.get("OUTPUT", 1) else stages - 1
    main = _MAIN.replace("RESULT", result).replace("CYCLES", str(cycles))
    (folder / "main.cpp").write_text(main)
    sources = [LIBRARY / name for name in technology.models]
    sources += [LIBRARY / technology.library["multiply.sv"], LIBRARY / "float_parts.sv"]
    command = [str(tools.verilator), "-Wno-fatal", "--cc", "--exe", "--build", "-CFLAGS", "-O2"]
    command += ["--prefix", "Vcore", "--top-module", module, f"-GSTAGES={stages}"]
    command += [f"-G{name}={value}" for name, value in parameters.items()]
    command += [*map(str, sources), str(LIBRARY / f"{module}.sv"), "main.cpp"]
    environment = {**os.environ, "VERILATOR_ROOT": str(tools.root)} if tools.told else None
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    subprocess.run([str(folder / "obj_dir" / "Vcore")], cwd=folder, check=True)
    return np.fromfile(folder / "results.bin", np.uint32)


def wanted(module: str, left: Array, right: Array) -> Array:
    """What numpy computes; all that is not a number is one pattern."""
    a, b = left.view(np.float32), right.view(np.float32)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        value = a + b if module == "float_add" else a * b
    return np.where(np.isnan(value), NOT_A_NUMBER, value.view(np.uint32))


def operands(count: int, seed: int, narrow: bool) -> tuple[Array, Array]:
    """All pairs of special patterns, and random ones of three kinds.

    Any bits; exponents that are close, as those of terms of a sum are; and exponents whose
    products are about the smallest or the largest numbers.
    """
    random = np.random.default_rng(seed)
    special = np.array(list(pairs_of(SPECIAL, SPECIAL)), np.uint32)
    third = -(-count // 3)
    bits = random.integers(0, 1 << 32, (3 * third, 2), dtype=np.uint32)
    exponents = np.empty((2 * third, 2), np.int64)
    exponents[:third, 0] = random.integers(0, 256, third)
    exponents[:third, 1] = exponents[:third, 0] + random.integers(-27, 28, third)
    exponents[third:, 0] = random.integers(0, 256, third)
    end = np.where(random.integers(0, 2, third) == 0, 127, 381)
    exponents[third:, 1] = end - exponents[third:, 0] + random.integers(-26, 4, third)
    field = np.clip(exponents, 0, 255).astype(np.uint32) << np.uint32(23)
    bits[third:] = bits[third:] & np.uint32(0x807FFFFF) | field
    both = np.concatenate([special, bits])
    if narrow:
        both &= np.uint32(0xFFFF0000)
    return np.ascontiguousarray(both[:, 0]), np.ascontiguousarray(both[:, 1])


CORES = {
    "add": ("float_add", {}),
    "multiply": ("float_multiply", {}),
    "multiply bfloat16": ("float_multiply", {"LEFT": 7, "RIGHT": 7}),
}


def check(core: str, count: int, stages: int, folder: Path, technology: Technology) -> None:
    module, parameters = CORES[core]
    left, right = operands(count, stages, "bfloat16" in core)
    found = run_core(
        module, left, right, folder, stages=stages, technology=technology, **parameters
    )
    expected = wanted(module, left, right)
    wrong = np.flatnonzero(found != expected)
    shown = [tuple(hex(int(x[n])) for x in (left, right, found, expected)) for n in wrong[:5]]
    assert len(wrong) == 0, (len(wrong), shown)
    assert len(found) == len(left)


@pytest.mark.parametrize("core", CORES)
def test_a_hundred_thousand(core: str, tmp_path: Path) -> None:
    check(core, 100_000, 6, tmp_path, ECP5)


@pytest.mark.slow
@pytest.mark.parametrize("core", CORES)
def test_ten_million(core: str, tmp_path: Path) -> None:
    check(core, 10_000_000, 5, tmp_path, GENERIC)


@pytest.mark.slow
@pytest.mark.parametrize("technology", [ECP5, GENERIC], ids=lambda t: t.name)
@pytest.mark.parametrize("stages", [2, 3, 4, 5, 6, 7])
@pytest.mark.parametrize("core", CORES)
def test_all_stages(core: str, stages: int, technology: Technology, tmp_path: Path) -> None:
    if stages <= 6 or core != "add":
        check(core, 20_000, stages, tmp_path, technology)


@pytest.mark.slow
@pytest.mark.parametrize("core", ["add", "multiply"])
def test_the_last_register_may_be_another_one(core: str, tmp_path: Path) -> None:
    module, _ = CORES[core]
    left, right = operands(1000, 1, narrow=False)
    found = run_core(module, left, right, tmp_path, stages=4, OUTPUT=0)
    assert np.array_equal(found, wanted(module, left, right))
