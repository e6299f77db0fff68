"""The systolic GEMM four times: numpy = Python engine = native engine = Intel's FPGA emulator.

A channel operation of the emulator takes about a millisecond, so everything here is tiny.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import t2s
from t2s import Float, Func, ImageParam, Int, RDom, Type, Var
from t2s.backends.opencl_fpga.emulator import emulator_available
from t2s.command.main import app
from tests.examples.systolic import Sizes, assert_matches, dot_product, gemm, random_inputs

pytestmark = [
    pytest.mark.emulator,
    pytest.mark.skipif(not emulator_available(), reason="Intel's FPGA emulator is not installed"),
]

SQUARE = Sizes(rows=2, columns=2, tile=(2, 2), steps=4)
WIDE = Sizes(rows=2, columns=3, tile=(1, 2), blocks=(2, 1), steps=3)
TALL = Sizes(rows=3, columns=2, tile=(2, 1), blocks=(1, 2), steps=5)
VECTORS = Sizes(rows=2, columns=3, tile=(2, 1), steps=3, lanes=4)


@pytest.mark.slow
@pytest.mark.parametrize("type", [Int(32), Float(32)], ids=str)
@pytest.mark.parametrize(
    ("build", "sizes"),
    [(gemm, SQUARE), (gemm, WIDE), (gemm, TALL), (dot_product, VECTORS)],
    ids=lambda value: value.__name__ if callable(value) else str(value),
)
def test_four_ways_to_one_product(
    build: Callable[[Type, Sizes], Func], sizes: Sizes, type: Type
) -> None:
    func = build(type, sizes)
    inputs = random_inputs(func.lower())
    with np.errstate(over="ignore"):
        expected = inputs["A"] @ (inputs["B"].T if build is dot_product else inputs["B"])
    python = func.simulate(inputs, device="arria10", engine="python")
    native = func.simulate(inputs, device="arria10", engine="native")
    assert_matches(python.outputs["C"], expected)
    np.testing.assert_array_equal(native.outputs["C"], python.outputs["C"])
    assert native.cycles == python.cycles
    emulated = func.emulate(inputs, time_limit=120.0)
    assert emulated.keys() == {"C"}
    assert_matches(emulated["C"], expected)


@pytest.mark.slow
@pytest.mark.parametrize("double", [True, False])
def test_buffered_operands(double: bool) -> None:
    """B is loaded once for 3 rows of a tile, A once for 2 column tiles; no size is a power of 2."""
    A, B = ImageParam(Int(32), 2, name="A"), ImageParam(Int(32), 2, name="B")
    i, j, k = Var("i"), Var("j"), RDom(0, 3, name="k")
    C = Func("C")
    C[i, j] = 0
    C[i, j] += A[i, k] * B[k, j]
    C.bound(i, 0, 6).bound(j, 0, 10)
    ii, it, jt = t2s.variables("ii it jt")
    A_loader, A_feeder, B_loader, B_feeder = t2s.funcs("A_loader A_feeder B_loader B_feeder")
    C.tile(j, i, jt, it, 5, 3).reorder(jt, it, k, j, i).split(i, i, ii, 2).unroll(ii)
    C.isolate_producer_chain(A, A_loader, A_feeder).isolate_producer_chain(B, B_loader, B_feeder)
    C.forward(B_feeder, ii)
    A_loader.remove(jt, j)
    A_feeder.buffer(A_loader, i, double=double)
    B_loader.remove(it)
    B_feeder.buffer(B_loader, k, double=double)
    inputs = random_inputs(C.lower())
    emulated = C.emulate(inputs, time_limit=120.0)
    np.testing.assert_array_equal(emulated["C"], t2s.interpret(C, inputs))


def test_the_command_emulates_too(tmp_path: Path) -> None:
    file = tmp_path / "design.py"
    file.write_text(
        "from t2s import Func, ImageParam, Int, Var\n"
        'A, i, B = ImageParam(Int(32), 1, name="A"), Var("i"), Func("B")\n'
        "B[i] = A[i] * 3\n"
        "B.bound(i, 0, 4)\n",
        encoding="utf-8",
    )
    result = CliRunner().invoke(app, ["run", str(file), "--out", str(tmp_path), "--emulate"])
    assert result.exit_code == 0, result.output
    assert "\nemulator: matches numpy exactly\n" in result.stdout
    assert result.stdout.endswith(f"\npictures of this run: t2s report {file}\n")
