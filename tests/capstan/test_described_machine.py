"""What the chip is described to do with its memories, on sorted coordinates of uniform matrices."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import t2s
from t2s.driver.capstan_result import CapstanResult
from t2s.sparse import CapstanKernel, Schedule, Tensor, compile, csr, dense

i, j = t2s.Var("i"), t2s.Var("j")
BURST = 64


@cache
def spmv() -> CapstanKernel:
    a, x, y = Tensor("A", csr), Tensor("x", dense(1)), Tensor("y", dense(1))
    y[i] = a[i, j] * x[j]
    schedule = Schedule().environment(outer_par=16).parallel(j, "reduction", 16)
    return compile(y, schedule, target="capstan")


@cache
def total(partitions: int) -> CapstanKernel:
    a, b, c = (Tensor(name, csr) for name in "ABC")
    a[i, j] = b[i, j] + c[i, j]
    return compile(a, Schedule().environment(outer_par=partitions), target="capstan")


def matrix(extent: int, density: float) -> Any:
    random = np.random.default_rng(extent)
    return (random.random((extent, extent)) < density).astype(np.int32)


def product(extent: int, density: float) -> CapstanResult:
    return spmv().simulate({"A": matrix(extent, density), "x": np.arange(extent, dtype=np.int32)})


def moved(result: CapstanResult) -> tuple[int, int]:
    """Bursts read and written."""
    memory = result.run.memory
    assert memory is not None
    assert memory.dram.burst_bytes == BURST
    channels = memory.channels
    return sum(one.reads for one in channels), sum(one.writes for one in channels)


def bursts(*words: int) -> int:
    """Bursts of arrays of so many words."""
    return sum(-(-4 * one // BURST) for one in words)


@pytest.mark.parametrize(
    ("extent", "density"),
    [(200, 0.00625), (200, 0.05), pytest.param(500, 0.05, marks=pytest.mark.slow)],
)
def test_bursts_stored_in_part_are_read_first_and_written_once(extent: int, density: float) -> None:
    """Whatever the partitions: each burst of the result moves twice, each one of operands once.

    Start-up is a part of such small runs that more partitions do not make shorter.
    """
    one = matrix(extent, density)
    inputs = {"B": one, "C": np.roll(one, 1, 1)}
    cycles = []
    for partitions in (1, 2, 4, 8):
        result = total(partitions).simulate(inputs)
        cycles.append(result.cycles)
        entries = len(result.tensor.values)
        stored = bursts(extent + 1, entries, entries)
        operands = 2 * bursts(extent + 1, one.sum(), one.sum())
        read, written = moved(result)
        assert stored <= written <= 1.03 * stored
        assert operands + stored <= read <= 1.15 * (operands + stored)
        assert read + written <= 1.10 * (operands + 2 * stored)
    assert all(after <= 1.01 * before for before, after in pairwise(cycles))
    assert cycles[-1] < 0.75 * cycles[0]


@pytest.mark.parametrize("density", [0.05, 0.2, 0.4])
def test_small_runs_wait_for_three_round_trips(density: float) -> None:
    """That of the positions, that of the first segments, and that of the result."""
    result = product(250, density)
    dram = result.run.device.memory
    assert dram is not None
    t = dram.timing
    clocks = t.tRCD + t.CL + dram.burst_clocks
    trip = clocks * result.run.device.clock_hz / float(dram.clock_hz) + result.times.dram_path
    waited = result.retime(network="ideal").cycles - result.retime(memory="ideal").cycles
    assert 3 * trip - 10 < waited < 4 * trip


@pytest.mark.parametrize("density", [0.02, 0.2])
def test_rows_that_share_bursts_move_them_once(density: float) -> None:
    one = matrix(800, density)
    read, _ = moved(product(800, density))
    assert read <= 1.05 * bursts(801, 800, one.sum(), one.sum())


@pytest.mark.slow
@pytest.mark.parametrize("density", [0.05, 0.4])
def test_sorted_coordinates_go_through_the_network_like_random_ones(density: float) -> None:
    """6.0 to 6.5 words per port and cycle for random words; neighbors are in different units."""
    result = product(2000, density)
    assert result.run.shared is not None
    counts = result.run.shared.counts
    assert sum(counts.served) / counts.cycles / 16 > 5.5
