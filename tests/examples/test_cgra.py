"""The examples on a CGRA: sizes, use of FMAs, values, and that each directive buys something."""

from __future__ import annotations

import runpy
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from time import process_time

import numpy as np
import pytest

import t2s
from t2s.backends.cgra_tia.fabric import CellKind
from t2s.backends.cgra_tia.files.summary import figures_of
from tests.backends.cgra.designs import gemm

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "cgra"

# the result; lines of the paper [T2S-Tensor, Table V]; FMA cells of a fabric of 256
KERNELS = {
    "gemm": ("C", 40, 256),
    "mttkrp": ("D", 32, 256),
    "ttm": ("C", 47, 256),
    "ttmc": ("D", 38, 256),
}


@pytest.mark.parametrize("name", KERNELS)
def test_they_are_no_longer_than_those_of_the_paper(name: str) -> None:
    lines = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= KERNELS[name][1]


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_they_use_all_fmas_and_give_the_values(name: str) -> None:
    result, _, fmas = KERNELS[name]
    design = runpy.run_path(str(EXAMPLES / f"{name}.py"))[result]
    started = process_time()
    placed = t2s.cgra.place(design)
    assert process_time() - started < 100
    assert placed.placed.fabric.name == "cgra32"
    figures = figures_of(placed.placed)
    assert figures.fma_usage == fmas / 256
    assert figures.limit is None  # a firing in every cycle
    generator = np.random.default_rng(5)
    inputs = {
        tensor.name: generator.integers(-8, 9, tensor.shape).astype(float)
        for tensor in t2s.lower(design).tensors
        if tensor.role.value == "input"
    }
    found = t2s.simulate(placed, inputs)
    np.testing.assert_array_equal(found.outputs[result], t2s.interpret(design, inputs))
    run = placed.run(inputs)
    assert run.cycles == found.cycles
    cells = [run.cells[c.name] for c in placed.placed.netlist.cells if c.kind is CellKind.FMA]
    rates = [cell.busy / (cell.last - cell.first + 1) for cell in cells]
    assert len(rates) == fmas
    assert np.mean(rates) >= 0.98
    assert min(rates) >= 0.92  # those that began before the first sums came to them


@pytest.mark.slow
def test_ten_thousand_cycles_of_a_full_fabric_take_seconds() -> None:
    """256 FMAs, some 10,000 cycles: 5 s of a quiet machine, compilation included."""
    design = gemm(8, 8, 4, 10, 10, 100, buffered=True)
    placed = t2s.cgra.place(design)
    generator = np.random.default_rng(5)
    A, B = (generator.integers(-8, 9, shape).astype(float) for shape in ((80, 400), (400, 80)))
    started = process_time()
    found = t2s.simulate(placed, {"A": A, "B": B}, progress=False)
    assert process_time() - started < 100
    assert 10_000 < found.cycles < 10_000 / 0.98
    np.testing.assert_array_equal(found.outputs["C"], A @ B)


@pytest.mark.slow
def test_a_convolution_keeps_its_weights_in_registers(recwarn: pytest.WarningsRecorder) -> None:
    design = runpy.run_path(str(EXAMPLES / "conv.py"))["O"]
    placed = t2s.cgra.place(design)
    figures = figures_of(placed.placed)
    assert placed.placed.fabric.name == "cgra32"
    assert figures.fma_usage == Fraction(252, 256)
    assert figures.limit is None
    assert not [item for item in recwarn if "of its rate" in str(item.message)]
    generator = np.random.default_rng(5)
    inputs = {
        "I": generator.integers(-8, 9, (30, 34, 4)).astype(float),
        "W": generator.integers(-8, 9, (7, 3, 3, 4)).astype(float),
    }
    run = placed.run(inputs)
    windows = np.lib.stride_tricks.sliding_window_view(inputs["I"], (3, 3), (0, 1))
    wanted = np.einsum("yxckl,oklc->yxo", windows, inputs["W"])
    np.testing.assert_array_equal(run.outputs["O"], wanted)
    found = t2s.simulate(placed, inputs)
    np.testing.assert_array_equal(found.outputs["O"], wanted)
    assert found.cycles == run.cycles
    stores = [tally for name, tally in run.units.items() if name.startswith("O_store")]
    assert len(stores) == 7
    for tally in stores:  # steady: from the first result to the last
        assert tally.busy >= 0.95 * (tally.last - tally.first + 1)
    cells = [cell for name, cell in run.cells.items() if name.startswith("O[")]
    for cell in cells:  # the weight, then a pixel in every cycle
        assert cell.busy == 28 * 32 + 1


@pytest.mark.slow
def test_every_step_of_the_ladder_is_faster(capsys: pytest.CaptureFixture[str]) -> None:
    cycles = runpy.run_path(str(EXAMPLES / "ladder.py"))["main"]()
    assert all(before > after for before, after in pairwise(cycles))
    assert cycles[0] > 40 * cycles[-1]
    assert "virtual buffers" in capsys.readouterr().out


@pytest.mark.slow
def test_a_sparse_product_takes_the_cycles_of_its_instructions(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A sum for each entry in 5 cycles, or three instructions of the scanner; and rows."""
    graph, slow, middle, fast = runpy.run_path(str(EXAMPLES / "spmv.py"))["main"]()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "308 entries in 48 rows"
    assert graph < 1.3 * 308
    assert 5 * 308 <= slow <= 5 * 308 + 3 * 48
    assert 3 * 308 <= fast <= middle <= 3 * 308 + 5 * 48


def test_a_product_on_a_row_of_the_public_tools(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "public_matvec.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "\n87 cycles\n" in printed
    assert printed.endswith("equal to numpy: True\n")
    t2s.triggered.assemble(printed[: printed.index("87 cycles")], strict=True)


@pytest.mark.parametrize(("rows", "cycles"), [(0, 37), (1, 57), (2, 67), (8, 139), (24, 331)])
def test_a_product_on_all_pes_of_the_public_block(rows: int, cycles: int) -> None:
    """Every PE multiplies once for a row of A; a row takes 12 cycles."""
    example = runpy.run_path(str(EXAMPLES / "public_gemm.py"))
    generator = np.random.default_rng(rows)
    a, b = (generator.integers(-(2**31), 2**31, (n, 4)).astype(np.int32) for n in (rows, 4))
    text = example["program"](rows)
    run = t2s.triggered.run(text, example["memory"](a, b), rows=4, columns=4, trace=True)
    found = np.asarray(run.memory)[16 + 4 * rows : 16 + 8 * rows].astype(np.uint32).view(np.int32)
    np.testing.assert_array_equal(found.reshape(rows, 4), a @ b)
    programs = t2s.triggered.assemble(text, strict=True).programs
    for number, program in enumerate(programs):
        assert len(program.instructions) <= 16
        products = [
            at
            for at, instruction in enumerate(program.instructions)
            if instruction.opcode.name in ("MAC", "LMUL")
        ]
        assert sum(fired[number] in products for fired in run.trace) == rows
    assert run.cycles == cycles
