"""Scanners, builders of bit vectors and allocators: values, and cycles by hand [Stardust]."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import t2s
from t2s.driver.capstan_result import CapstanResult
from t2s.sparse import CapstanKernel, Schedule, Tensor, compile, csr, scalar
from tests.capstan.test_simulated_kernels import same
from tests.sampling import sampled

i, j = t2s.Var("i"), t2s.Var("j")


def joined(*, union: bool, outer_par: int = 1, inner_par: int = 16) -> CapstanKernel:
    """The sum of two matrices, or their inner product."""
    b, c = Tensor("B", csr), Tensor("C", csr)
    schedule = Schedule().environment(outer_par=outer_par, inner_par=inner_par)
    if union:
        a = Tensor("A", csr)
        a[i, j] = b[i, j] + c[i, j]
        return compile(a, schedule, target="capstan")
    total = Tensor("total", scalar)
    total[...] = b[i, j] * c[i, j]
    return compile(total, schedule, target="capstan")


def run(kernel: CapstanKernel, b: Any, c: Any) -> CapstanResult:
    """A run of the native engine, whose values are those of the patterns."""
    inputs = {"B": b, "C": c}
    result = kernel.simulate(inputs)
    assert same(result.tensor, kernel.run_patterns(inputs))
    return result


def firings(result: CapstanResult, prefix: str) -> list[int]:
    """Firings of the units of a name, without the one that ends each."""
    nodes = [node for name, node in result.run.nodes.items() if name.startswith(prefix)]
    return [node.firings - node.pe_count for node in nodes]


def rows(*coordinates: list[int], columns: int) -> np.ndarray:
    """A matrix with ones at these coordinates."""
    matrix = np.zeros((len(coordinates), columns), np.int32)
    for row, there in zip(matrix, coordinates, strict=True):
        row[there] = 1 + np.arange(len(there))
    return matrix


def test_reference_cases() -> None:
    a, b = [0, 2, 5, 9], [2, 3, 9, 40]
    left, right = rows(a, [], b, columns=600), rows(b, [], [], columns=600)
    both = run(joined(union=True), left, right).tensor
    assert both.levels[1]["crd"].tolist() == [0, 2, 3, 5, 9, 40, 2, 3, 9, 40]
    assert both.levels[1]["pos"].tolist() == [0, 6, 6, 10]
    assert both.values.tolist() == [1, 3, 2, 3, 7, 4, 1, 2, 3, 4]
    inner = run(joined(union=False), left, right)
    assert inner.tensor.values.tolist() == [2 * 1 + 4 * 3]


@pytest.mark.slow
@pytest.mark.parametrize("union", [True, False])
def test_empty_windows_take_a_cycle_each(union: bool) -> None:
    """79 rows of 128 windows: 10,112 firings of each scanner and builder, and as many cycles."""
    nothing = np.zeros((79, 65_536), np.int32)
    result = run(joined(union=union), nothing, nothing)
    assert set(firings(result, "scan_")) == {79 * 128}
    assert set(firings(result, "build_")) == {79 * 128}
    assert 10_112 <= result.cycles <= 10_112 + 600


@sampled("ones", [1, 15, 16, 17, 100, 512], quick=2)
def test_a_window_takes_a_firing_for_each_vector_of_its_bits(ones: int) -> None:
    generator = np.random.default_rng(ones)
    places = [sorted(generator.permutation(512)[:ones].tolist()) for _ in range(20)]
    matrix = rows(*places, columns=512)
    result = run(joined(union=True), matrix, matrix)
    assert set(firings(result, "scan_")) == {20 * -(-ones // 16)}
    assert set(firings(result, "build_")) == {20 * -(-ones // 16)}


def test_vectors_and_windows_that_lie_evenly() -> None:
    """Of eight windows: more vectors than windows, or as many, or fewer."""
    for step, expected in ((1, 256), (8, 32), (32, 8), (128, 8), (600, 8)):
        matrix = rows(list(range(0, 4096, step)), columns=4096)
        result = run(joined(union=False), matrix, np.zeros_like(matrix))
        built = dict(zip(("B", "C"), firings(result, "build_"), strict=True))
        assert built["B"] - expected in (0, 1)
        assert built["C"] == 8


def test_places_follow_the_order_of_rows() -> None:
    """Whatever the partition, and however many rows there are."""
    generator = np.random.default_rng(1)
    for count in (0, 1, 5, 17):
        matrices = [
            (generator.integers(1, 9, (count, 30)) * (generator.random((count, 30)) < 0.3))
            for _ in range(2)
        ]
        for outer_par in (3, 8):
            run(joined(union=True, outer_par=outer_par), *(m.astype(np.int32) for m in matrices))


@sampled(("inner_par", "times"), [(16, 1), (8, 2), (5, 4), (1, 16)], quick=2)
def test_words_are_copied_as_many_at_a_time_as_lanes(inner_par: int, times: int) -> None:
    nothing = np.zeros((20, 5000), np.int32)
    result = run(joined(union=True, inner_par=inner_par), nothing, nothing)
    copies = [node.firings for name, node in result.run.nodes.items() if name.startswith("copy_")]
    assert set(copies) == ({20 * 10 * times} if times > 1 else set())
    assert set(firings(result, "scan_")) == {20 * 10}
