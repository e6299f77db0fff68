"""The examples of ``examples/gemm`` give the product, in every type, on every device."""

from __future__ import annotations

import importlib.util
import re
import runpy
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import t2s
from t2s import Float, Func, Graph, Int, Type
from t2s.graph.printer import print_graph
from tests.examples.systolic import Sizes, assert_matches, dot_product, gemm, random_inputs
from tests.sampling import sampled

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "gemm"

DESIGNS: dict[str, tuple[Callable[[Type, Sizes], Func], Sizes]] = {
    "gemm": (gemm, Sizes(rows=8, columns=8, tile=(4, 4), blocks=(2, 2), steps=128)),
    "dot_product": (dot_product, Sizes(rows=10, columns=8, tile=(8, 8), steps=16, lanes=16)),
}


@cache
def lowered(name: str, type: Type) -> Graph:
    build, sizes = DESIGNS[name]
    return build(type, sizes).lower()


@pytest.mark.parametrize("name", DESIGNS)
def test_the_designs_tested_here_are_those_of_the_examples(name: str) -> None:
    example = runpy.run_path(str(EXAMPLES / f"{name}.py"))["C"]
    assert print_graph(t2s.lower(example)) == print_graph(lowered(name, Float(32)))


@pytest.mark.parametrize("device", ["ideal", "arria10"])
@pytest.mark.parametrize("type", [Float(32), Int(32)], ids=str)
@sampled("name", DESIGNS, quick=2)
def test_simulated_product(name: str, type: Type, device: str) -> None:
    graph = lowered(name, type)
    inputs = random_inputs(graph)
    result = t2s.simulate(graph, inputs, device=device)
    with np.errstate(over="ignore"):
        expected = inputs["A"] @ (inputs["B"].T if name == "dot_product" else inputs["B"])
    assert_matches(result.outputs["C"], expected)
    assert result.finished
    assert t2s.cycles(graph, device=device) == result.cycles


def test_sums_are_added_in_the_order_of_the_definition() -> None:
    graph = lowered("gemm", Float(32))
    inputs = random_inputs(graph)
    build, sizes = DESIGNS["gemm"]
    expected = t2s.interpret(build(Float(32), sizes), inputs)
    np.testing.assert_array_equal(t2s.simulate(graph, inputs).outputs["C"], expected)


def test_on_the_ideal_device_the_array_only_waits_to_fill_and_drain() -> None:
    """8192 firings of each PE; the last PE starts 7 + 7 cycles after the first one."""
    result = t2s.simulate(lowered("gemm", Float(32)), random_inputs(lowered("gemm", Float(32))))
    assert result.compute_cycles == 8192 + 7 + 7


@pytest.fixture(scope="module")
def ladder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("ladder", EXAMPLES / "ladder.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_every_step_of_the_ladder_pays_or_costs_nothing(
    ladder: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    """``main`` compares every step with numpy itself."""
    ladder.main()
    title, _, header, *rows, _, definition = capsys.readouterr().out.splitlines()
    assert title == "C = A B, 64 x 64 x 64, float32, arria10"
    assert header.split() == ["step", "PEs", "cycles", "faster", "utilization"]
    assert definition == "utilization = firings / (PEs x cycles) of the multiplying PEs"

    shape = re.compile(r"(\d) (.+?) +(\d+) +([\d,]+) +(?:([\d.]+)x)? +([\d.]+)%")
    found = [match for row in rows if (match := shape.fullmatch(row))]
    assert len(found) == len(rows) == len(ladder.STEPS)
    assert len({len(row) for row in (header, *rows)}) == 1, "the columns are aligned"
    assert [match[1] for match in found] == [str(step) for step in range(len(rows))]
    assert [match[2] for match in found] == list(ladder.STEPS)
    assert [int(match[3]) for match in found] == [1, 1, *[64] * 7]

    cycles = [int(match[4].replace(",", "")) for match in found]
    assert all(after <= 1.005 * before for before, after in pairwise(cycles))
    assert [match[5] for match in found] == [
        None,
        *(f"{before / after:.2f}" for before, after in pairwise(cycles)),
    ]
    assert all(0 < float(match[6]) <= 100 for match in found)


def test_steps_of_the_ladder_change_only_what_they_name(ladder: ModuleType) -> None:
    nodes = [
        {node.name for node in ladder.design(step).lower().nodes}
        for step in range(len(ladder.STEPS))
    ]
    unit = {"C", "C_load_A", "C_load_B", "C_store"}
    fed = {"A_loader", "A_feeder", "B_loader", "B_feeder", "C"}
    assert nodes[:3] == [unit] * 3
    assert nodes[3:6] == [fed | {"C_store"}] * 3
    assert nodes[6:] == [fed | {"C_drainer", "C_unloader"}] * 3


def test_the_opencl_of_the_ladder_is_not_much_longer_than_by_hand(
    ladder: ModuleType, tmp_path: Path
) -> None:
    """By hand: 10 lines of types and channels, then the seven kernels in their order."""
    by_hand = 10 + 13 + 6 + 12 + 20 + 28 + 6 + 14
    kernels, _ = t2s.emit(ladder.design(8), "opencl_fpga", tmp_path)
    text = kernels.read_text()
    lines = (line.strip() for line in text.splitlines())
    code = [line for line in lines if line and not line.startswith("//")]
    assert len(code) <= 1.2 * by_hand
