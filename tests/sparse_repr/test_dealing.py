"""Decoders that deal rows to all machines: schedules as those of ``store``, a step in a cycle."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import t2s
from t2s.simulator.report.result import SimResult

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "spmv"))
import cisr
import row_blocks


def with_rows(lengths: list[int], columns: int = 12) -> np.ndarray:
    """A matrix whose rows have so many values, small integers."""
    generator = np.random.default_rng(len(lengths))
    dense = np.zeros((len(lengths), columns), np.float32)
    for row, length in enumerate(lengths):
        places = generator.choice(columns, length, replace=False)
        dense[row, places] = generator.integers(1, 9, length)
    return dense


def run(y: t2s.Func, dense: np.ndarray, engine: str = "native") -> SimResult:
    """The result of a run that has given scipy's values."""
    x = np.arange(1, dense.shape[1] + 1, dtype=np.float32)
    result = t2s.simulate(y, {"A": dense, "x": x}, device="arria10", engine=engine)
    np.testing.assert_array_equal(result.outputs["y"], dense @ x)
    return result


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.sampled_from([0, 0, 1, 1, 2, 5, 12]), min_size=1, max_size=24),
    st.sampled_from([1, 2, 3, 5, 8]),
)
def test_rows_of_any_length(lengths: list[int], machines: int) -> None:
    run(cisr.spmv(machines, fused=1), with_rows(lengths), "python")


@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.sampled_from([0, 0, 0, 1, 2, 5, 12]), min_size=1, max_size=24),
    st.sampled_from([4, 8]),
)
def test_blocks_of_rows_of_any_length(lengths: list[int], k: int) -> None:
    run(row_blocks.spmv(k, levels=2), with_rows(lengths), "python")


@pytest.mark.parametrize("machines", [4, 16])
def test_rows_of_one_value_take_a_step_each(machines: int) -> None:
    result = run(cisr.spmv(machines), with_rows([1] * 320))
    steps = 320 // machines
    taker = result.nodes["multiplier"]
    assert taker.firings == 320
    # x reaches the last machine so many cycles later
    assert taker.last_firing - taker.first_firing + 1 <= steps + machines + 8
    # two firings at most bring the first lengths
    assert result.nodes["A_decoder"].firings <= steps + 3


@pytest.mark.slow
def test_both_engines_take_as_many_cycles() -> None:
    dense = with_rows([3, 0, 0, 2, 0, 7] * 4)
    for design in (cisr.spmv(3, fused=1), row_blocks.spmv(4, levels=2)):
        results = [run(design, dense, engine) for engine in ("python", "native")]
        assert results[0].cycles == results[1].cycles


def test_an_empty_row_costs_a_cycle() -> None:
    lengths = [3, 0, 0, 2, 0, 7] * 20
    result = run(cisr.spmv(4), with_rows(lengths))
    steps = result.nodes["multiplier"].firings // 4
    assert result.nodes["A_decoder"].firings <= steps + lengths.count(0) + 3


def test_blocks_of_short_rows_take_a_step_together() -> None:
    result = run(row_blocks.spmv(4, levels=2), with_rows([1] * 200))
    taker = result.nodes["Y"]
    assert taker.last_firing - taker.first_firing + 1 <= 100 + 4


def test_lines_of_the_result_leave_before_the_end() -> None:
    result = run(cisr.spmv(4), with_rows([4] * 1600))
    store = result.nodes["y_unloader_store"]
    assert store.firings == 1600
    last_product = result.nodes["multiplier"].last_firing
    assert store.first_firing < last_product / 2
    assert result.cycles - last_product < 80  # latencies, and the last line


def test_a_long_row_keeps_the_result_back() -> None:
    dense = with_rows([1] * 300, columns=400)
    dense[0] = 1  # on one machine until the end
    result = run(cisr.spmv(4), dense)
    assert result.nodes["y_unloader_store"].first_firing > result.nodes["multiplier"].last_firing
