"""What a page costs beyond the simulation: time, and memory that does not grow with the run."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import t2s
from benchmarks.published import ROWS, clocked
from t2s.driver.page_writer import write_page
from t2s.simulator.report.result import SimResult
from t2s.simulator.run import simulate_cycles
from tests.report.page.designs import inputs_of, product

pytestmark = pytest.mark.slow


def shortest(action: Callable[[], object]) -> float:
    """CPU seconds of the shortest of three times; the first one loads and compiles."""
    found = []
    for _ in range(3):
        begun = time.process_time()
        action()
        found.append(time.process_time() - begun)
    return min(found)


def published() -> SimResult:
    row = ROWS[0]
    graph = t2s.lower(row.family.build(row.family.sizes(row.sizes)))
    return simulate_cycles(graph, device=clocked(row))


def test_time_beyond_the_simulation(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = t2s.simulate(product(64, 128), inputs_of(64, 128), device="arria10")
    assert shortest(lambda: result.report(page)) <= 1.0
    matrix = (np.random.default_rng(0).random((1000, 1000)) < 0.1) * 1.0
    assignment = t2s.sparse.parse("y(i)=A(i,j)*x(j)", ["A:ds"])
    streams = t2s.simulate(assignment, {"A": matrix, "x": np.ones(1000)})
    assert shortest(lambda: streams.report(page)) <= 1.0


def test_time_of_a_billion_cycles(tmp_path: Path) -> None:
    result = published()
    assert result.cycles > 10**9
    assert shortest(lambda: write_page("gemm", [result], tmp_path / "page.html")) <= 2.0


def peak(action: Callable[[], object]) -> int:
    """The most bytes that are held meanwhile, when everything is loaded."""
    action()
    tracemalloc.start()
    action()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


@pytest.mark.parametrize("power", [12, 16, 20])
def test_memory_beyond_the_simulation(power: int, tmp_path: Path) -> None:
    """The views add some MB to what the run takes itself, however long it is."""
    graph = t2s.lower(product(8, 1 << power))
    result = simulate_cycles(graph, device="arria10")
    simulated = peak(lambda: simulate_cycles(graph, device="arria10"))
    written = peak(lambda: write_page("gemm", [result], tmp_path / "page.html"))
    assert written < simulated + 12_000_000


def test_memory_of_a_billion_cycles(tmp_path: Path) -> None:
    result = published()
    assert peak(lambda: write_page("gemm", [result], tmp_path / "page.html")) < 25_000_000
