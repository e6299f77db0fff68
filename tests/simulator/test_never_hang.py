"""Bad input, huge times and strange values: right, or refused at once."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import t2s
from t2s import Float, Func, ImageParam, Int, RDom, Var
from t2s.core.errors import UserError
from t2s.core.types import Float as FloatType
from t2s.simulator.devices import DEVICES, Device
from t2s.simulator.program.flatten import MOST_CYCLES, exact_sum
from t2s.simulator.run import simulate, simulate_cycles
from tests.hand_graphs import systolic_gemm
from tests.simulator.designs import ENGINES, accumulation, chain, fork_join

IDEAL = DEVICES["ideal"]


def slow_memory(latency: int) -> Device:
    return replace(IDEAL, name="slow", load_latency=latency)


def test_a_run_of_more_than_two_to_the_forty_cycles() -> None:
    # load at 1 2 3 4, tokens ready 2**40 + 1 cycles later, store one cycle after that.
    result = simulate(chain(4), {"X": np.arange(4, dtype=np.int32)}, device=slow_memory(1 << 40))
    assert result.cycles == (1 << 40) + 6
    assert result.outputs["Y"].tolist() == [0, 1, 2, 3]
    for row in result.stalls:
        assert row.pe_cycles == result.cycles


def test_an_interval_of_two_to_the_forty_cycles() -> None:
    # float32 additions that depend on each other: 3 of them at distance 2**40.
    table = {**IDEAL.operator_latencies}
    arria = DEVICES["arria10"]
    for key, value in arria.operator_latencies.items():
        table[key] = (1 << 40) if value == 4 else value
    device = replace(IDEAL, name="slow", operator_latencies=table)
    result = simulate_cycles(accumulation(3, FloatType(32)), device=device)
    assert result.nodes["sum"].interval.cycles == 1 << 40
    assert result.nodes["sum"].waiting == 2 * ((1 << 40) - 1)
    assert result.cycles > 3 << 40


@pytest.mark.parametrize("latency", [1 << 61, 1 << 62, 1 << 63, 1 << 80])
def test_times_that_do_not_fit_are_refused(latency: int) -> None:
    with pytest.raises(UserError) as caught:
        simulate_cycles(chain(4), device=slow_memory(latency))
    text = str(caught.value)
    assert text.startswith("'design' could take more cycles than can be counted\n")
    assert f"expected: firings x the longest delay of any of them below {MOST_CYCLES}" in text
    assert f"given:    12 firings and {latency + 1} cycles of the latency of a channel" in text
    assert "hint:     use a smaller problem" in text


def test_a_bandwidth_of_next_to_nothing_is_refused() -> None:
    device = replace(IDEAL, name="starved", memory_bytes_per_second=1, clock_hz=1 << 61)
    assert device.memory_bytes_per_cycle == Fraction(1, 1 << 61)
    with pytest.raises(UserError) as caught:
        simulate_cycles(chain(4), device=device)
    assert "cycles of a memory access on starved" in str(caught.value)


def test_latencies_of_a_re_timing_are_checked_too() -> None:
    result = simulate_cycles(chain(1 << 22))
    with pytest.raises(UserError) as caught:
        result.retime(latencies={"A": 1 << 40})
    assert "could take more cycles than can be counted" in str(caught.value)


def test_sums_beyond_64_bits() -> None:
    values = np.array([1 << 62, 1 << 62, 1 << 62], np.int64)
    assert exact_sum(values) == 3 << 62
    assert exact_sum(np.zeros(0, np.int64)) == 0


@pytest.mark.parametrize("limit", [-1, 0, True, 1.0, "3", float("nan"), float("inf")])
def test_limits_that_are_none(limit: object) -> None:
    with pytest.raises(UserError) as caught:
        simulate_cycles(chain(4), max_cycles=limit)  # type: ignore[arg-type]
    assert str(caught.value).startswith("max_cycles is not a number of cycles\n")


@pytest.mark.parametrize("limit", [1 << 40, 1 << 63, 1 << 100])
def test_limits_beyond_the_end(limit: int) -> None:
    assert simulate_cycles(chain(4), max_cycles=limit).finished


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_that_never_seems_to_end_stops_at_the_limit(engine: str) -> None:
    result = simulate_cycles(fork_join(1 << 20, short=1), engine=engine, max_cycles=200)
    assert result.limit_reached
    assert result.cycles == 200


def test_a_channel_of_depth_0_is_refused() -> None:
    with pytest.raises(UserError) as caught:
        simulate_cycles(chain(4, capacity=0))
    assert "capacity" in str(caught.value)


@pytest.mark.parametrize("trips", [-1, -(1 << 20)])
def test_negative_trip_counts_are_refused(trips: int) -> None:
    A, f = ImageParam(Int(32), 1, name="A"), Func("f")
    i, k, n = Var("i"), RDom(0, 4, name="k"), t2s.Param(Int(32), name="n")
    f[i] = 0
    f[i] += A[k]
    f.bound(i, 0, n)
    with pytest.raises(UserError):
        t2s.simulate(f, {"A": np.zeros(4, np.int32), "n": trips})


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_strange_values_pass_as_in_numpy(engine: str) -> None:
    A, f = ImageParam(Float(32), 1, name="A"), Func("f")
    i = Var("i")
    f[i] = A[i] * 2.0 - A[i]
    f.bound(i, 0, 6)
    a = np.array([np.nan, np.inf, -np.inf, -0.0, 3e38, 1e-45], np.float32)
    with np.errstate(all="ignore"):
        expected = a * np.float32(2) - a
    np.testing.assert_array_equal(t2s.simulate(f, {"A": a}, engine=engine).outputs["f"], expected)


def test_a_dram_lists_every_firing() -> None:
    graph = systolic_gemm(1, 1, 1 << 15, tile_rows=1 << 7, tile_columns=1 << 7)
    with pytest.raises(UserError) as caught:
        t2s.cycles(graph, device="arria10", memory="ddr4-2133")
    text = str(caught.value)
    assert " has too many firings to list\n" in text
    assert text.endswith("hint:     simulate a smaller problem, or without a DRAM")
