"""Cycle counts and stall counters that a reader can recompute, in both engines.

The rule: firing n of a PE happens at t(n) = max(t(n-1) + II, ready of its receives, space of its
sends); a token sent at w is ready at w + latency, send m has space from r(m - capacity) + 1.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from t2s.core.ops import Op
from t2s.core.types import INT32, Float
from t2s.graph.interpret import interpret_graph
from t2s.simulator.devices import TypeFamily
from t2s.simulator.report.result import SimResult
from tests.hand_graphs import systolic_gemm
from tests.sampling import sampled
from tests.simulator.designs import (
    ENGINES,
    IDEAL,
    accumulation,
    chain,
    feedback,
    fork_join,
    run,
    two_loaders,
    wide_load,
)

FLOAT32 = Float(32)


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def assert_sums(result: SimResult) -> None:
    for row in result.stalls:
        parts = row.busy + row.starved + row.blocked + row.waiting + row.idle
        assert parts == row.pe_count * result.cycles, row


def numbers(count: int) -> dict[str, np.ndarray]:
    return {"X": np.arange(1, count + 1, dtype=np.int32)}


def test_chain(engine: str) -> None:
    # load 1 2 3 4, compute one later 2 3 4 5, store one later 3 4 5 6.
    result = run(chain(4), engine, inputs=numbers(4))
    assert result.cycles == 6
    assert list(result.outputs["Y"]) == [1, 2, 3, 4]
    first_and_last = [(n.first_firing, n.last_firing) for n in result.nodes.values()]
    assert first_and_last == [(1, 4), (2, 5), (3, 6)]
    assert result.compute_cycles == 4
    assert result.utilization == 4 / 6
    assert_sums(result)


def test_latencies_add_up_along_a_chain(engine: str) -> None:
    # First store at 1 + 3 + 5 = 9, then one per cycle, for capacity >= latency + 1: 9 10 11 12.
    assert run(chain(4, capacity=6, latencies=(3, 5)), engine).cycles == 12


def test_capacity_one_moves_a_token_every_second_cycle(engine: str) -> None:
    # load at 1; token 0 is received at 2, so its slot is free from 3: load 1 3 5 7.
    # compute 2 4 6 8, store 3 5 7 9.  Three gaps of one cycle: load is blocked, the others starve.
    result = run(chain(4, capacity=1), engine)
    assert result.cycles == 9
    load, compute, store = result.stalls
    assert (load.blocked, load.starved) == (3, 0)
    assert (compute.blocked, compute.starved) == (0, 3)
    assert (store.blocked, store.starved) == (0, 3)
    assert load.main_cause == "blocked by A"
    assert compute.main_cause == "starved by A"
    assert_sums(result)


@pytest.mark.parametrize(
    ("short", "cycles", "blocked"),
    [
        # load 1, fork 2, delay 3, join 4 (needs short sent at 2 and late sent at 3), store 5.
        # Capacity 1: fork again when short is free: join at 4, so 5; then 8, 11.
        # join 4 7 10 13, store 5 8 11 14.  Fork is blocked 2 cycles three times.
        (1, 14, 6),
        # Capacity 2: fork 2 3, then 4 + 1 = 5, 5 + 1 = 6.  join 4 5 7 8, store 5 6 8 9.
        (2, 9, 1),
        # Capacity 3: fork 2 3 4, then 4 + 1 = 5.  join 4 5 6 7, store 5 6 7 8.
        (3, 8, 0),
    ],
)
def test_fork_join(engine: str, short: int, cycles: int, blocked: int) -> None:
    result = run(fork_join(4, short=short), engine, inputs=numbers(4))
    assert result.cycles == cycles
    assert result.nodes["fork"].blocked_by == {"short": blocked, "long": 0}
    assert list(result.outputs["Y"]) == [2, 4, 6, 8]
    assert_sums(result)


def test_slow_consumer_holds_its_producer_back(engine: str) -> None:
    # An fp32 addition of latency 3 at distance 1: II 3.  sum 2 5 8 11 14.
    # load 1 2, then capacity 2: 2 + 1 = 3, 5 + 1 = 6, 8 + 1 = 9; blocked at 4 5 and at 7 8.
    # The last sum leaves the adder 3 later and takes the channel's 1: store at 14 + 4 = 18.
    device = replace(IDEAL, operator_latencies={(Op.ADD, TypeFamily.FLOAT32): 3})
    inputs = {"X": np.arange(5, dtype=np.float32)}
    result = run(accumulation(5, FLOAT32), engine, device=device, inputs=inputs)
    assert result.cycles == 18
    assert result.outputs["Y"][0] == 10
    load, total, _ = result.stalls
    assert (load.busy, load.blocked, load.idle) == (5, 4, 18 - 9)
    assert (total.busy, total.waiting, total.idle) == (5, 8, 1 + 4)
    assert total.main_cause == "II 3: recurrence through 'total', latency 3 at distance 1"
    assert result.nodes["sum"].interval.location is not None
    assert_sums(result)


def test_feedback_loop(engine: str) -> None:
    # The state is ready 3 cycles after it is sent, so scan fires at 2 5 8 11 (first receive: none);
    # the last result is stored at 12.  Two of every three cycles are starved by the state.
    result = run(feedback(4, capacity=2, latency=3), engine, inputs=numbers(4))
    assert result.cycles == 12
    assert list(result.outputs["Y"]) == [1, 3, 6, 10]
    assert result.nodes["scan"].starved_by == {"A": 0, "state": 6}
    assert_sums(result)


def test_float_accumulation_on_arria10(engine: str) -> None:
    # One PE, 4 steps, distance 1.  Loads at 1 2 3 4 take 120, their channel 1: first MAC at 122.
    # II 4 (adder): 122 126 130 134.  The last value passes multiplier 4 and adder 4, channel 1:
    # store at 143, complete 40 later.
    result = run(systolic_gemm(1, 1, 4, element=FLOAT32), engine, device="arria10")
    assert result.cycles == 183
    assert result.nodes["C"].interval.cycles == 4
    assert result.nodes["C"].waiting == 9
    assert result.nodes["C"].first_firing == 122
    assert result.nodes["C_store"].first_firing == 143
    assert_sums(result)


@pytest.mark.parametrize("device", ["ideal", "arria10", "stratix10"])
def test_integer_accumulation_reaches_ii_1(device: str) -> None:
    result = run(systolic_gemm(1, 1, 4, element=INT32), "native", device=device)
    assert result.nodes["C"].interval.cycles == 1


def test_bandwidth_bound_load(engine: str) -> None:
    # 4 bytes per cycle; a load moves 16.  Credit is at most 4, and 4 - 16 = -12 after a load;
    # it is positive again 4 cycles later: load at 1 5 9 13.  drop 2 6 10 14.
    # The store at 15 finds credit -4, at 16 credit 0, and is served at 17.
    device = replace(IDEAL, memory_bytes_per_second=4 * IDEAL.clock_hz)
    result = run(wide_load(4, 4), engine, device=device, inputs={"X": np.zeros(16, np.int32)})
    assert result.cycles == 17
    assert result.outputs["Y"][0] == 7
    assert result.nodes["load"].starved_by_memory == 9
    assert result.stalls["load"].main_cause == "starved by memory"
    assert result.nodes["drop"].last_firing == 14
    assert_sums(result)


def test_fractional_bandwidth_is_exact(engine: str) -> None:
    # 1.5 bytes per cycle, 4 bytes per load.  Credit before each cycle's request:
    # 1: 1.5 load, 2: -1, 3: 0.5 load, 4: -2, 5: -0.5, 6: 1 load, 7: -1.5, 8: 0 no, 9: 1.5 load.
    device = replace(IDEAL, memory_bytes_per_second=IDEAL.clock_hz * 3 // 2)
    result = run(wide_load(4, 1), engine, device=device)
    assert result.nodes["load"].last_firing == 9
    assert result.nodes["load"].starved_by_memory == 9 - 4
    assert_sums(result)


def test_memory_port_sets_the_interval(engine: str) -> None:
    # A unit that moves 8 bytes per cycle takes 2 cycles for 16: load 1 3 5 7.
    device = replace(IDEAL, bytes_per_cycle_per_unit=8)
    result = run(wide_load(4, 4), engine, device=device)
    assert result.nodes["load"].last_firing == 7
    interval = str(result.nodes["load"].interval)
    assert interval == "II 2: memory port, 16 bytes per firing at 8 bytes per cycle"
    assert_sums(result)


def test_store_is_blocked_by_memory(engine: str) -> None:
    # One byte per cycle, 4 per access: memory serves at 1 5 9 13 17 21, in the order of a queue.
    # Load 1; the second joins at 2, the first store at 3: load 5, store 9.  The third load joins
    # at 6, the second store at 10: load 13, store 17.  The third store joins at 18: 21.
    device = replace(IDEAL, memory_bytes_per_second=IDEAL.clock_hz)
    result = run(chain(3, capacity=8), engine, device=device)
    load, store = result.nodes["load"], result.nodes["store"]
    assert (load.first_firing, load.last_firing) == (1, 13)
    assert load.starved_by_memory == 3 + 7
    assert (store.first_firing, store.last_firing) == (9, 21)
    assert store.blocked_by_memory == (17 - 10) + (21 - 18)
    assert result.stalls["store"].main_cause == "blocked by memory"
    assert_sums(result)


@pytest.mark.parametrize("swapped", [False, True])
def test_loaders_share_the_bandwidth_equally(engine: str, swapped: bool) -> None:
    # Two units of 4 bytes per cycle each, 4 bytes per cycle in all: they take turns, so the one
    # that is first in a cycle fires at 1 3 5 ... 19 and the other at 2 4 6 ... 20.
    device = replace(IDEAL, memory_bytes_per_second=4 * IDEAL.clock_hz)
    graph = two_loaders(10)
    if swapped:
        graph = replace(graph, nodes=tuple(reversed(graph.nodes)))
    result = run(graph, engine, device=device)
    first, second = ("left", "right") if not swapped else ("right", "left")
    spans = [(result.nodes[n].first_firing, result.nodes[n].last_firing) for n in (first, second)]
    assert spans == [(1, 19), (2, 20)]
    assert [result.nodes[n].starved_by_memory for n in (first, second)] == [9, 9]
    assert_sums(result)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_systolic_gemm_takes_3n_minus_2_cycles(engine: str, size: int) -> None:
    # PE (i, j) starts i + j cycles after PE (0, 0) and works n cycles: (n-1) + (n-1) + n.
    assert run(systolic_gemm(size, size, size), engine).compute_cycles == 3 * size - 2


@sampled(("rows", "columns", "depth"), [(1, 4, 6), (3, 2, 7), (4, 5, 1)], quick=5)
def test_systolic_gemm_closed_form(engine: str, rows: int, columns: int, depth: int) -> None:
    graph = systolic_gemm(rows, columns, depth)
    generator = np.random.default_rng(1)
    a = generator.integers(-9, 9, (rows, depth), dtype=np.int32)
    b = generator.integers(-9, 9, (columns, depth), dtype=np.int32)
    result = run(graph, engine, inputs={"A": a, "B": b})
    assert result.compute_cycles == rows + columns + depth - 2
    np.testing.assert_array_equal(result.outputs["C"], a @ b.T)
    assert_sums(result)


def test_large_closed_form() -> None:
    # 10 x 8 PEs, 16 x 32 x 32 steps each: 17 cycles of skew, no stall.
    graph = systolic_gemm(10, 8, 16, tile_rows=32, tile_columns=32, lanes=16, element=FLOAT32)
    result = run(graph, "native")
    assert result.compute_cycles == 16 * 32 * 32 + 10 + 8 - 2
    assert result.nodes["C"].starved == result.nodes["C"].blocked == 0


@sampled("device", ["ideal", "arria10", "stratix10"], quick=1)
@pytest.mark.parametrize("capacity", [1, 2, 3])
def test_engines_agree_on_tiled_gemm(device: str, capacity: int) -> None:
    graph = systolic_gemm(
        2, 3, 3, tile_rows=2, tile_columns=2, lanes=4, element=FLOAT32, capacity=capacity
    )
    generator = np.random.default_rng(2)
    a = generator.standard_normal((4, 12), dtype=np.float32)
    b = generator.standard_normal((6, 12), dtype=np.float32)
    plain, *others = (run(graph, e, device=device, inputs={"A": a, "B": b}) for e in ENGINES)
    expected = interpret_graph(graph, {"A": a, "B": b})["C"]
    for result in (plain, *others):
        assert plain.nodes == result.nodes
        assert plain.cycles == result.cycles
        np.testing.assert_array_equal(result.outputs["C"], expected)
        assert_sums(result)


def test_cycles_do_not_depend_on_having_inputs(engine: str) -> None:
    graph = fork_join(5, short=1)
    with_values, without = run(graph, engine, inputs=numbers(5)), run(graph, engine)
    assert with_values.nodes == without.nodes
    assert without.outputs == {}
