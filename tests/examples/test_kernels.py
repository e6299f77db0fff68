"""Tensor kernels and layers: numpy = Python engine = native engine, and II 1 in every node."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import t2s
from benchmarks.published import specification_lines
from t2s.graph.nodes import Role
from tests.examples.systolic import Arrays, assert_matches, random_inputs
from tests.sampling import sampled

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """An example: numpy's version, and how many lines its specification may take.

    The numbers of lines are T2S-Tensor's own where they are published.  ``extra`` DSP blocks of
    each PE are not part of its dot product.  ``published`` names the published sizes, with which a
    PE has ``results`` results.
    """

    expected: Callable[[ModuleType, Arrays], np.ndarray[Any, Any]]
    lines: int
    results: int
    published: str = "PUBLISHED"
    extra: int = 0


KERNELS: dict[str, Kernel] = {
    "mttkrp": Kernel(
        expected=lambda module, x: np.einsum("ikl,kj,jl->ij", x["A"], x["B"], x["C"]),
        lines=28,
        results=16 * 16,
        extra=1,
    ),
    "ttm": Kernel(
        expected=lambda module, x: np.einsum("ijl,kl->ijk", x["A"], x["B"]),
        lines=30,
        results=8 * 8 * 16,
    ),
    "ttmc": Kernel(
        expected=lambda module, x: np.einsum("ilm,lj,km->ijk", x["A"], x["B"], x["C"]),
        lines=37,
        results=16 * 4 * 4,
        extra=1,
    ),
    "convolution": Kernel(
        expected=lambda module, x: module.expected(x),
        lines=30,
        results=2 * 32 * 16,
        published="ARRIA10",
    ),
    "capsule": Kernel(
        expected=lambda module, x: module.expected(x, module.TINY.rows * module.TINY.tile[1]),
        lines=37,
        results=4 * 5 * 4 * 16,
        published="ARRIA10",
    ),
}


@cache
def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / name / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def tiny(name: str) -> t2s.Func:
    module = example(name)
    func = module.design(module.TINY)
    assert isinstance(func, t2s.Func)
    return func


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_numpy_and_both_engines(name: str) -> None:
    func = tiny(name)
    graph = func.lower()
    inputs = random_inputs(graph)
    expected = KERNELS[name].expected(example(name), inputs)
    assert_matches(t2s.interpret(func, inputs), expected)
    python = t2s.simulate(graph, inputs, device="arria10", engine="python")
    native = t2s.simulate(graph, inputs, device="arria10")
    assert_matches(python.outputs[func.name], expected)
    np.testing.assert_array_equal(native.outputs[func.name], python.outputs[func.name])
    assert native.cycles == python.cycles


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_the_example_runs_as_it_stands(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """``main`` compares with numpy itself."""
    module = example(name)
    module.main()
    printed = capsys.readouterr().out
    assert "ended        finished\n" in printed
    assert "fits        yes\n" in printed
    assert "initiation interval" in printed


@sampled("name", KERNELS, quick=2)
def test_every_node_fires_every_cycle(name: str) -> None:
    """The small size too keeps the accumulators apart, and the array never waits."""
    module = example(name)
    sizes = module.SMALL
    graph = module.design(sizes).lower()
    inputs = random_inputs(graph)
    result = t2s.simulate(graph, inputs, device="arria10")
    assert {str(node.interval) for node in result.nodes.values()} == {"II 1"}
    compute = next(row for row in result.stalls if row.node == graph.name)
    assert compute.share("busy") > 0.8
    assert (compute.starved, compute.blocked, compute.waiting) == (0, 0, 0)
    steps = compute.busy // compute.pe_count
    assert result.compute_cycles == steps + sizes.rows - 1 + sizes.columns - 1


@sampled("name", KERNELS, quick=2)
def test_one_unit_loads_each_operand_and_one_stores_vectors(name: str) -> None:
    """A vector has one result for each PE of a row of the array; every result is stored once."""
    module = example(name)
    graph = module.design(module.SMALL).lower()
    loads = [node for node in graph.nodes if node.role is Role.LOAD]
    assert [node.pe_count for node in loads] == [1] * len(random_inputs(graph))
    (store,) = (node for node in graph.nodes if node.role is Role.STORE)
    (channel,) = graph.inputs_of(store.name)
    lanes = channel.stream.element.lanes
    assert store.pe_count == 1
    assert lanes == module.SMALL.columns
    result = t2s.simulate(graph, random_inputs(graph))
    assert result.nodes[store.name].firings * lanes == result.outputs[graph.name].size


@sampled("name", KERNELS, quick=2)
def test_one_multiplier_for_each_lane(name: str) -> None:
    """B of MTTKRP and TTMc multiplies the sum over the lanes: one DSP block more in each PE."""
    module = example(name)
    sizes = module.SMALL
    pes = sizes.rows * sizes.columns
    report = t2s.resources(module.design(sizes))
    assert report.dsp_blocks == pes * (sizes.lanes + KERNELS[name].extra)


@pytest.mark.parametrize("name", KERNELS)
def test_the_specification_is_short(name: str) -> None:
    assert 10 < specification_lines(example(name).design) <= KERNELS[name].lines


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_the_published_designs_become_opencl(name: str, tmp_path: Path) -> None:
    """The results of a tile wait between the array and the drainer; nothing else is deep."""
    module, kernel = example(name), KERNELS[name]
    func = module.design(getattr(module, kernel.published))
    path, _ = t2s.emit(func, "opencl_fpga", str(tmp_path))
    depths = re.findall(r"depth\((\d+)\)", path.read_text())
    assert set(depths) == {"2", str(kernel.results + 1)}
    assert depths.count(str(kernel.results + 1)) == 1
    assert t2s.resources(func, device="arria10").fits
