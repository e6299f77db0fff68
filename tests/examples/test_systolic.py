"""``examples/gemm/systolic.py``: the complete GEMM of the T2S-Tensor paper."""

from __future__ import annotations

import inspect
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import t2s
from t2s import Graph
from t2s.backends.opencl_fpga.emulator import emulator_available
from t2s.graph.printer import print_graph
from tests.conftest import Golden
from tests.examples.systolic import assert_matches, random_inputs

EXAMPLE = runpy.run_path(
    str(Path(__file__).parent.parent.parent / "examples" / "gemm" / "systolic.py")
)
GEMM, TINY, ARRIA10 = EXAMPLE["gemm"], EXAMPLE["TINY"], EXAMPLE["ARRIA10"]
SMALLEST = TINY._replace(**dict.fromkeys(TINY._fields, 2))


def test_the_specification_has_twenty_lines() -> None:
    lines = inspect.getsource(GEMM).splitlines()
    body = [line for line in lines if line.startswith("    ") and '"""' not in line]
    assert len([line for line in body if line.strip() != "return C"]) == 20


@pytest.mark.slow
@pytest.mark.parametrize("device", ["ideal", "arria10"])
@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"K": 1},  # one step of the outer reduction: every tile ends in the first one
        {"I": 1, "J": 1, "K": 1},
        {"KK": 1, "K": 3},
        {"III": 3, "JJJ": 5, "KKK": 1},
        {"II": 1, "JJ": 3, "KK": 8},
        {"III": 1, "JJJ": 1},
        {"II": 3, "III": 2, "I": 1, "KKK": 3},
    ],
    ids=str,
)
@pytest.mark.filterwarnings(
    "ignore::t2s.errors.T2SWarning"
)  # some of these tiles are reused too little
def test_products_and_tokens(changed: dict[str, int], device: str) -> None:
    n = SMALLEST._replace(**changed)
    func = GEMM(n)
    graph = func.lower()
    inputs = random_inputs(graph)
    result = t2s.simulate(graph, inputs, device=device)
    python = t2s.simulate(graph, inputs, device=device, engine="python")
    assert_matches(result.outputs["C"], inputs["A"] @ inputs["B"].T)
    np.testing.assert_array_equal(python.outputs["C"], result.outputs["C"])
    assert python.cycles == result.cycles
    periods, tiles = n.I * n.J * n.K, n.I * n.J
    nodes = ("A_loader", "B_loader", "C", "C_drainer", "C_collector", "C_unloader")
    assert [result.nodes[name].firings for name in nodes] == [
        periods * n.KK * n.II * n.III,
        periods * n.KK * n.JJ * n.JJJ,
        periods * n.KK * n.II * n.JJ * n.III * n.JJJ,
        tiles * n.II * n.JJ * n.JJJ * n.III * (n.III + 1) // 2,
        tiles * n.II * n.JJ * n.JJJ * n.III,
        tiles * n.II * n.JJ * n.III,
    ]


def test_the_default_sizes() -> None:
    graph = EXAMPLE["C"].lower()
    inputs = random_inputs(graph)
    result = t2s.simulate(graph, inputs)
    assert_matches(result.outputs["C"], inputs["A"] @ inputs["B"].T)


def array_cycles(n: Any) -> int:
    """One step per cycle in each PE; the last PE starts some cycles after the first one."""
    return int(n.I * n.J * n.K * n.KK * n.II * n.JJ + n.III - 1 + n.JJJ - 1)


@pytest.mark.slow
def test_the_published_array_never_waits() -> None:
    """On the model of the Arria 10 board, with fewer tiles; operands and results are floats.

    The first buffers of A fill up, then the first PE works without a pause.  Its last results, one
    in each of its last II * JJ firings, leave with those of the III - 1 PEs behind it.
    """
    n = ARRIA10._replace(I=1, J=2, K=2)
    graph = GEMM(n).lower()
    start = n.KK * n.II * n.III + 3  # behind a loader and a feeder
    last_results = start + (n.I * n.J * n.K * n.KK - 1) * n.II * n.JJ
    late_rows, late_columns = n.III - 1, 2 * (n.JJJ - 1)  # PEs start late, and tokens hop
    leaving = n.II * n.JJ * n.III - 1 + late_rows + late_columns
    assert t2s.cycles(graph) == last_results + leaving + 3  # drainer, collector, unloader
    inputs = random_inputs(graph)
    result = t2s.simulate(graph, inputs, device="arria10")
    array = result.nodes["C"]
    assert result.compute_cycles == array_cycles(n) == 131_088
    assert array.interval.cycles == 1
    assert (array.starved, array.blocked, array.waiting) == (0, 0, 0)
    assert_matches(result.outputs["C"], inputs["A"] @ inputs["B"].T)


@pytest.mark.slow
def test_the_published_designs_become_opencl(tmp_path: Path) -> None:
    """Buffers, streams and depths of the full size, without playing a thousand million steps."""
    for name in ("ARRIA10", "STRATIX10"):
        paths = t2s.emit(GEMM(EXAMPLE[name]), "opencl_fpga", str(tmp_path / name))
        text = paths[0].read_text()
        assert "float16 A_buffer[2][32][32][16];" in text  # a bank for each PE, 16 at least
        assert "depth(1025)" in text


def tiny() -> Graph:
    return t2s.lower(GEMM(SMALLEST))


def test_golden_graph(golden: Golden) -> None:
    golden("systolic_gemm.txt", print_graph(tiny()))


def test_golden_opencl(golden: Golden, tmp_path: Path) -> None:
    path, _ = t2s.emit(tiny(), "opencl_fpga", str(tmp_path))
    golden("opencl_fpga/systolic_gemm.cl", path.read_text())


@pytest.mark.slow
@pytest.mark.emulator
@pytest.mark.skipif(not emulator_available(), reason="Intel's FPGA emulator is not installed")
@pytest.mark.parametrize("changed", [{}, {"K": 1, "III": 3, "JJJ": 3, "I": 1}], ids=str)
@pytest.mark.filterwarnings("ignore::t2s.errors.T2SWarning")
def test_emulated(changed: dict[str, int]) -> None:
    func = GEMM(SMALLEST._replace(**changed))
    inputs = random_inputs(func.lower())
    emulated = func.emulate(inputs, time_limit=120.0)["C"]
    np.testing.assert_array_equal(emulated, func.simulate(inputs).outputs["C"])
