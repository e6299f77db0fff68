"""Floating-point operators of chips against numpy, bit for bit."""

from __future__ import annotations

import subprocess
import warnings
from collections.abc import Callable
from dataclasses import replace
from itertools import product as pairs_of
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import t2s
from t2s.backends.base import DeviceTimes
from t2s.backends.verilog import emit
from t2s.backends.verilog.emit import chip_files, files_of
from t2s.backends.verilog.flow.netlist import netlist_model
from t2s.backends.verilog.flow.parts import PARTS
from t2s.backends.verilog.limits import largest
from t2s.backends.verilog.technology import ECP5, GENERIC, Technology
from t2s.backends.verilog.verilator import build_files, verilator_available
from t2s.core.ops import Array, Op
from t2s.core.types import BFloat, Float, Int, Type
from t2s.driver.device_times import device_times
from t2s.driver.synthesize import differences
from t2s.simulator.devices import DEVICES, Device, TypeFamily
from t2s.simulator.program.build import build_program
from tests.backends.verilated import build_around

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
#include "Vmodule.h"
int main() {
  Vmodule core;
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
    runtime: Path,
    *,
    stages: int,
    technology: Technology = GENERIC,
    **parameters: int,
) -> Array:
    """The results of a module for pairs of patterns, one pair in each cycle."""
    np.stack([left, right], axis=1).astype(np.uint32).tofile(folder / "operands.bin")
    result = {"float_add": "sum", "float_multiply": "product"}[module]
    cycles = stages if parameters.get("OUTPUT", 1) else stages - 1
    main = _MAIN.replace("RESULT", result).replace("CYCLES", str(cycles))
    sources = [LIBRARY / name for name in technology.primitives]
    sources += [LIBRARY / technology.library["multiply.sv"], LIBRARY / "float_parts.sv"]
    program = build_around(
        module,
        [*map(str, sources), str(LIBRARY / f"{module}.sv")],
        main,
        folder,
        runtime,
        parameters=[f"-GSTAGES={stages}", *(f"-G{n}={value}" for n, value in parameters.items())],
        optimize=len(left) > 1_000_000,
    )
    subprocess.run([str(program)], cwd=folder, check=True)
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


def check(
    core: str, count: int, stages: int, folder: Path, runtime: Path, technology: Technology
) -> None:
    module, parameters = CORES[core]
    left, right = operands(count, stages, "bfloat16" in core)
    found = run_core(
        module, left, right, folder, runtime, stages=stages, technology=technology, **parameters
    )
    expected = wanted(module, left, right)
    wrong = np.flatnonzero(found != expected)
    shown = [tuple(hex(int(x[n])) for x in (left, right, found, expected)) for n in wrong[:5]]
    assert len(wrong) == 0, (len(wrong), shown)
    assert len(found) == len(left)


@pytest.mark.parametrize("core", CORES)
def test_a_hundred_thousand(core: str, tmp_path: Path, runtime: Path) -> None:
    check(core, 100_000, 6, tmp_path, runtime, ECP5)


@pytest.mark.slow
@pytest.mark.parametrize("core", CORES)
def test_ten_million(core: str, tmp_path: Path, runtime: Path) -> None:
    check(core, 10_000_000, 5, tmp_path, runtime, GENERIC)


@pytest.mark.slow
@pytest.mark.parametrize("technology", [ECP5, GENERIC], ids=lambda t: t.name)
@pytest.mark.parametrize("stages", [2, 3, 4, 5, 6, 7])
@pytest.mark.parametrize("core", CORES)
def test_all_stages(
    core: str, stages: int, technology: Technology, tmp_path: Path, runtime: Path
) -> None:
    if stages <= 6 or core != "add":
        check(core, 20_000, stages, tmp_path, runtime, technology)


@pytest.mark.slow
@pytest.mark.parametrize("core", ["add", "multiply"])
def test_the_last_register_may_be_another_one(core: str, tmp_path: Path, runtime: Path) -> None:
    module, _ = CORES[core]
    left, right = operands(1000, 1, narrow=False)
    found = run_core(module, left, right, tmp_path, runtime, stages=4, OUTPUT=0)
    assert np.array_equal(found, wanted(module, left, right))


# ------------------------------------------------------------------------------------ whole chips

ECP5_85K = DEVICES["ecp5-85k"]


def gemm(element: Type, steps: int = 5, results: int = 1) -> t2s.Func:
    """A product of matrices on 2 x 2 PEs, each of which has some results.

    With one, a sum waits for the one before; with more, other sums are in between.
    """
    A, B = t2s.ImageParam(element, 2, name="A"), t2s.ImageParam(element, 2, name="B")
    i, j, jj, jo = t2s.variables("i j jj jo")
    k, C = t2s.RDom(0, steps, name="k"), t2s.Func("C")
    C[i, j] = t2s.cast(Float(32), 0)
    C[i, j] += t2s.cast(Float(32), A[i, k]) * t2s.cast(Float(32), B[k, j])
    C.bound(i, 0, 2).bound(j, 0, 2 * results)
    A_loader, B_loader, C_unloader = t2s.funcs("A_loader B_loader C_unloader")
    if results == 1:
        C.reorder(j, i, k).unroll(i, j)
        jj = j
    else:
        C.split(j, jo, jj, 2).reorder(jj, i, jo, k).unroll(i, jj)
    C.isolate_producer(A, A_loader).isolate_producer(B, B_loader).isolate_consumer(C_unloader)
    return C.forward(A_loader, jj).forward(B_loader, i)


def polynomial() -> t2s.Func:
    """Two operators between one value of a register and the next, and a difference of vectors."""
    x, y = t2s.ImageParam(Float(32), 1, name="x"), t2s.Func("y")
    k = t2s.RDom(0, 7, name="k")
    y[()] = t2s.cast(Float(32), 1)
    y[()] = y[()] * t2s.cast(Float(32), 0.5) - x[k]
    return y


def vectors() -> t2s.Func:
    """Vectors of four, with orders and signs."""
    x, y = t2s.ImageParam(Float(32), 1, name="x"), t2s.Func("y")
    z, i, ii, iv = t2s.ImageParam(BFloat(), 1, name="z"), *t2s.variables("i ii iv")
    wide = t2s.cast(Float(32), z[i])
    y[i] = t2s.cast(BFloat(), t2s.maximum(-x[i], wide) - t2s.select(x[i] < wide, x[i], wide))
    return y.bound(i, 0, 16).split(i, ii, iv, 4).vload(x, z).vstore(y)


def timed(func: t2s.Func, device: Device = ECP5_85K) -> tuple[Any, DeviceTimes, dict[str, Array]]:
    """The program, its times, and inputs with some numbers that are special."""
    graph, random = t2s.lower(func), np.random.default_rng(5)
    inputs = {}
    for tensor in graph.tensors:
        if tensor.role.value == "input":
            values = random.standard_normal(tensor.shape).astype(np.float32)
            flat = values.reshape(-1)
            flat[:4] = [1e-41, -0.0, 3e38, 1 + 2**-20]
            with np.errstate(all="ignore"):
                inputs[tensor.array] = values.astype(tensor.type.numpy)
    program = build_program(graph, device, inputs, {})
    return program, device_times(program), inputs


DESIGNS: dict[str, Callable[[], t2s.Func]] = {
    "float32": lambda: gemm(Float(32)),
    "bfloat16": lambda: gemm(BFloat()),
    "results in turn": lambda: gemm(Float(32), results=8),
    "three results in turn": lambda: gemm(Float(32), results=3),
    "polynomial": polynomial,
    "vectors": vectors,
}


def check_chip(name: str, folder: Path, *, netlist: bool, seed: int | None = None) -> None:
    func = DESIGNS[name]()
    program, times, inputs = timed(func)
    graph, bounds = program.graph, largest(times)
    if netlist:
        model = netlist_model(graph, times, PARTS["ecp5-85k"], folder, 900)
    else:
        files = files_of(graph, times, bounds, constant=True, technology=ECP5)
        model = build_files(graph, bounds, folder, files, constants=times, technology=ECP5)
    found = model.run(times, program.inputs, {}, stalling=None, time_limit=300)
    simulated = t2s.simulate(func, inputs, device=ECP5_85K)
    assert list(differences(found, simulated)) == []
    assert np.array_equal(simulated.outputs[func.name], t2s.interpret(func, inputs))


def test_a_product_of_matrices(tmp_path: Path) -> None:
    check_chip("float32", tmp_path, netlist=False)
    _, times, _ = timed(gemm(Float(32)))
    assert times.intervals["C"] == ECP5_85K.operator_latency(Op.ADD, Float(32)) == 6
    _, times, _ = timed(gemm(Float(32), results=8))
    assert times.intervals["C"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in DESIGNS if name != "float32"])
def test_designs(name: str, tmp_path: Path) -> None:
    check_chip(name, tmp_path, netlist=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_netlists(name: str, tmp_path: Path) -> None:
    pytest.importorskip("pyosys")
    check_chip(name, tmp_path, netlist=True)


def elementwise(element: Type, of: Callable[[Any, Any], Any]) -> t2s.Func:
    a, b = t2s.ImageParam(element, 1, name="a"), t2s.ImageParam(element, 1, name="b")
    i, y = t2s.Var("i"), t2s.Func("y")
    y[i] = of(a[i], b[i])
    return y.bound(i, 0, 4)


@pytest.mark.parametrize(
    ("element", "of", "why"),
    [
        (Float(32), lambda a, b: a / b, "floating-point division is not available on a chip"),
        (Float(32), lambda a, _: t2s.sqrt(a), "a floating-point square root is not available"),
        (Float(32), lambda a, _: t2s.exp(a), "floating-point exp is not available on a chip"),
        (Float(64), lambda a, b: a + b, "arithmetic of float64 is not available on a chip"),
        (
            Int(32),
            lambda a, _: t2s.cast(Float(32), a),
            "a conversion of int32 to float32 is not available on a chip",
        ),
    ],
)
def test_operators_that_a_chip_does_not_have(
    element: Type, of: Callable[[Any, Any], Any], why: str
) -> None:
    program, times, _ = timed(elementwise(element, of))
    with pytest.raises(t2s.errors.UnsupportedError, match=why):
        chip_files(program.graph, times, ECP5)


def with_latency(cycles: int) -> Device:
    table = {**ECP5_85K.operator_latencies, (Op.ADD, TypeFamily.FLOAT32): cycles}
    return replace(ECP5_85K, operator_latencies=table)


def test_latencies_that_a_sum_cannot_have() -> None:
    for cycles in (1, 7):
        program, times, _ = timed(gemm(Float(32)), with_latency(cycles))
        with pytest.raises(t2s.errors.UnsupportedError) as caught:
            chip_files(program.graph, times, ECP5)
        message = str(caught.value)
        assert "'C' computes '+' of float32 with a latency that ecp5 cannot build" in message
        assert "expected: a latency of 2 to 6 cycles" in message
        assert f"given:    {cycles} cycles of the device" in message
        assert "hint:     set the operator_latencies of the device" in message
    program, times, _ = timed(gemm(Float(32)), with_latency(2))
    assert ".STAGES(2)" in chip_files(program.graph, times, ECP5)["C.sv"]  # the hint


def test_a_sum_that_is_not_there_for_the_next_one() -> None:
    program, times, _ = timed(gemm(Float(32)))
    hurried = replace(times, intervals={**times.intervals, "C": 5})
    with pytest.raises(t2s.errors.UnsupportedError) as caught:
        chip_files(program.graph, hurried, ECP5)
    message = str(caught.value)
    assert "before it is read again" in message
    assert "expected: at most 5 cycles" in message
    assert "given:    6 cycles" in message
    turns, times, _ = timed(gemm(Float(32), results=8))  # the hint
    assert times.intervals["C"] == 1
    assert chip_files(turns.graph, times, ECP5)


def test_integers_have_no_floating_point_modules() -> None:
    program, times, _ = timed(elementwise(Int(32), lambda a, b: a + b))
    assert not any(name.startswith("float") for name in chip_files(program.graph, times, ECP5))


@pytest.mark.slow
def test_orders_signs_and_roundings() -> None:
    """What is logic of the bits, against numpy, on special numbers."""
    both = np.array(list(pairs_of(SPECIAL[::3], SPECIAL[1::2])), np.uint32).view(np.float32)
    left, right = np.ascontiguousarray(both[:, 0]), np.ascontiguousarray(both[:, 1])
    a, b = t2s.ImageParam(Float(32), 1, name="a"), t2s.ImageParam(Float(32), 1, name="b")
    i, y = t2s.Var("i"), t2s.Func("y")
    orders = (a[i] < b[i], a[i] <= b[i], a[i] > b[i], a[i] >= b[i], a[i] == b[i], a[i] != b[i])
    y[i] = sum(
        (t2s.cast(Int(32), order) << n for n, order in enumerate(orders)), t2s.cast(Int(32), 0)
    )
    rounded, least = t2s.funcs("rounded least")
    rounded[i] = t2s.cast(BFloat(), t2s.abs(a[i]))
    least[i] = t2s.minimum(-a[i], b[i])
    inputs = {"a": left, "b": right}
    for func in (y, rounded, least):
        func.bound(i, 0, len(left))
        given = {
            name: value for name, value in inputs.items() if func is not rounded or name == "a"
        }
        found = t2s.verilate(func, given).outputs[func.name]
        with np.errstate(all="ignore"):
            expected = t2s.interpret(func, given)
        same = found.view(f"u{found.itemsize}") == expected.view(f"u{found.itemsize}")
        nans = np.isnan(found.astype(np.float32)) & np.isnan(expected.astype(np.float32))
        assert np.all(same | nans)
