"""The BLAS examples: right values in both engines, and as close to their bounds as they claim."""

from __future__ import annotations

import dataclasses
import runpy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import t2s
from t2s import Graph
from t2s.graph.body import Load
from tests.examples.systolic import assert_matches
from tests.sampling import sampled

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
ALL = [
    ("gbmv", "TINY"),
    ("gbmv", "TINY_BANKS"),
    ("ger", "TINY"),
    ("syrk", "TINY"),
]


@cache
def example(name: str) -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / name / f"{name}.py"))


def folded(name: str, sizes: Any, output: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The output as the problem's expected result is given."""
    return example(name)["unfold"](sizes, output) if name == "syrk" else output


@sampled(("name", "sizes"), ALL, quick=2)
def test_three_ways_to_one_result(name: str, sizes: str) -> None:
    module = example(name)
    func = module["design"](module[sizes])
    inputs, expected = module["problem"](module[sizes])
    python = t2s.simulate(func, inputs, device="arria10", engine="python")
    native = t2s.simulate(func, inputs, device="arria10", engine="native")
    np.testing.assert_array_equal(native.outputs[func.name], python.outputs[func.name])
    assert native.cycles == python.cycles
    assert_matches(folded(name, module[sizes], native.outputs[func.name]), expected)
    oracle = t2s.interpret(func, inputs)
    assert isinstance(oracle, np.ndarray)
    assert_matches(folded(name, module[sizes], oracle), expected)


@sampled(
    ("name", "sizes", "fraction"),
    [
        ("gbmv", "SMALL", 0.99),
        ("gbmv", "SMALL_BANKS", 0.93),
        ("ger", "SMALL", 0.96),
        ("syrk", "SMALL", 0.94),
    ],
    quick=2,
)
def test_cycles_are_close_to_the_bound(name: str, sizes: str, fraction: float) -> None:
    module = example(name)
    cycles = t2s.cycles(module["design"](module[sizes]), device="arria10")
    assert fraction <= module[sizes].bound / cycles <= 1


@sampled("name", ["gbmv", "ger", "syrk"], quick=2)
def test_main_compares_with_numpy(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    example(name)["main"]()
    assert "%" in capsys.readouterr().out


def loads_of(graph: Graph, node: str) -> set[str]:
    return {s.tensor for s in graph.node(node).body if isinstance(s, Load)}


def test_both_memory_banks_are_read() -> None:
    module = example("gbmv")
    s = module["TINY_BANKS"]
    graph = module["design"](s).lower()
    assert loads_of(graph, "A0_loader") == {"A0"}
    assert loads_of(graph, "A1_loader") == {"A1"}
    inputs, expected = module["problem"](s)
    result = t2s.simulate(graph, inputs, device="arria10")
    vectors = s.block * s.blocks * s.steps
    assert result.nodes["A0_loader"].firings == result.nodes["A1_loader"].firings == vectors
    assert_matches(result.outputs["y"], expected)

    for bank in ("A0", "A1"):
        doubled = t2s.simulate(graph, inputs | {bank: 2 * inputs[bank]}).outputs["y"]
        nothing = t2s.simulate(graph, inputs | {bank: 0 * inputs[bank]}).outputs["y"]
        assert np.all(doubled > expected)
        np.testing.assert_allclose(doubled + nothing, 2 * expected, rtol=1e-5)


def test_two_banks_take_little_more_than_half_of_the_time_of_one() -> None:
    module = example("gbmv")
    one, two = (
        t2s.cycles(module["design"](module[sizes]), device="arria10")
        for sizes in ("SMALL", "SMALL_BANKS")
    )
    assert 1.87 < one / two <= 2


def test_x_is_loaded_once_for_a_block_of_rows() -> None:
    module = example("gbmv")
    s = module["SMALL"]
    result = t2s.simulate(module["design"](s), module["problem"](s)[0])
    assert result.nodes["x0_loader"].firings * s.rows == result.nodes["A0_loader"].firings


def test_a_band_that_is_not_symmetric() -> None:
    """More diagonals on one side, and rows longer than the matrix: zeros fill them."""
    module = example("gbmv")
    s = module["TINY"]
    generator, size, lower = np.random.default_rng(1), s.block * s.blocks, 2
    i, j = np.ogrid[:size, :size]
    dense = generator.random((size, size), np.float32) * (i - j <= lower) * (j - i <= 5)
    x = generator.random(size, np.float32)
    inputs = module["band"](s, dense, lower) | {
        "x": np.pad(x, (lower, s.width - s.block - lower)),
        "y_in": np.zeros(size, np.float32),
        "alpha": 1.0,
        "beta": 1.0,
    }
    assert_matches(t2s.simulate(module["design"](s), inputs).outputs["y"], dense @ x)


def test_syrk_computes_every_block_of_the_triangle_once() -> None:
    module = example("syrk")
    s = dataclasses.replace(module["TINY"], blocks=6)
    ones = np.ones((s.blocks // 2, s.blocks + 1, s.block, s.block))
    np.testing.assert_array_equal(module["unfold"](s, ones), np.triu(np.ones((s.size, s.size))))
    inputs, expected = module["problem"](s)
    result = t2s.simulate(module["design"](s), inputs)
    assert_matches(module["unfold"](s, result.outputs["C"]), expected)
    assert result.nodes["C"].firings == s.bound * s.pes**2
    assert result.nodes["row_loader"].firings == s.bound * s.pes // s.tile


def test_the_upper_triangle_does_not_depend_on_what_is_below_the_diagonal() -> None:
    module = example("syrk")
    s = module["TINY"]
    inputs, expected = module["problem"](s)
    below = np.tri(s.size, k=-1, dtype=bool)
    inputs["C_in"][below] = np.nan
    result = t2s.simulate(module["design"](s), inputs)
    assert_matches(module["unfold"](s, result.outputs["C"]), expected)
