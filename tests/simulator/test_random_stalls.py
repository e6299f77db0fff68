"""Pseudo-random stalls of load and store units: cycles change, values and other counters do not."""

from __future__ import annotations

import numpy as np
import pytest

import t2s
from t2s.simulator.run import simulate, simulate_cycles
from tests.hand_graphs import systolic_gemm
from tests.simulator.designs import ENGINES, chain

LOAD, COMPUTE, STORE = range(3)  # the PEs of a chain


def test_the_hash_is_the_documented_one() -> None:
    word = 2**32
    for seed, instance, cycle in ((1, 0, 1), (7, 3, 12345), (word - 1, 1000, 2**40 + 5)):
        x = (seed * 0x9E3779B9 + instance * 0x85EBCA6B + cycle * 0xC2B2AE35) % word
        x ^= x >> 16
        x = x * 0x7FEB352D % word
        x ^= x >> 15
        x = x * 0x846CA68B % word
        x ^= x >> 16
        for one_in in (2, 3, 8, 1000):
            stalls = t2s.RandomStalls(seed=seed, one_in=one_in)
            assert stalls.holds(instance, cycle) == (x % one_in == 0)


def test_about_one_in_so_many_cycles_is_stalled() -> None:
    for one_in in (2, 8):
        stalls = t2s.RandomStalls(seed=3, one_in=one_in)
        held = sum(stalls.holds(instance, t) for instance in range(10) for t in range(1, 1001))
        assert abs(held * one_in / 10_000 - 1) < 0.1


@pytest.mark.parametrize("engine", ENGINES)
def test_a_chain_by_hand(engine: str) -> None:
    """Deep channels, so each unit fires in the first free cycle after its token is there."""
    count, stalls = 12, t2s.RandomStalls(seed=5, one_in=3)
    result = simulate_cycles(chain(count, capacity=count), engine=engine, stalls=stalls)

    def first_free(instance: int, cycle: int) -> int:
        while stalls.holds(instance, cycle):
            cycle += 1
        return cycle

    loaded = computed = stored = 0
    started = None
    load_stalls = store_stalls = 0
    sends: list[int] = []
    takes: list[int] = []
    for n in range(count):
        before = loaded
        loaded = first_free(LOAD, loaded + 1)
        load_stalls += loaded - before - 1 if n else 0
        space = takes[n - 2] + 1 if n >= 2 else 1  # the channel to the store unit holds 2
        computed = max(loaded + 1, computed + 1, space)
        sends.append(computed)
        ready = max(sends[n] + 1, stored + 1)
        stored = first_free(STORE, ready)
        store_stalls += stored - ready if started else 0
        started = started or stored
        takes.append(stored)
    assert result.cycles == stored
    assert stored > count + 2
    nodes = list(result.nodes.values())
    assert nodes[LOAD].starved_by_memory == load_stalls > 0
    assert nodes[STORE].blocked_by_memory == store_stalls > 0
    assert nodes[COMPUTE].starved_by_memory == nodes[COMPUTE].blocked_by_memory == 0


@pytest.mark.parametrize("device", ["ideal", "arria10"])
def test_values_stay_and_engines_agree(device: str) -> None:
    graph = systolic_gemm(2, 3, 5, tile_rows=2)
    generator = np.random.default_rng(0)
    shapes = {"A": (4, 5), "B": (3, 5)}
    inputs = {n: generator.integers(-9, 9, s).astype(np.int32) for n, s in shapes.items()}
    expected = inputs["A"] @ inputs["B"].T
    unstalled = simulate(graph, inputs, device=device)
    seen = set()
    for seed in range(4):
        stalls = t2s.RandomStalls(seed=seed, one_in=2 + seed)
        python, *others = (
            simulate(graph, inputs, device=device, engine=engine, stalls=stalls)
            for engine in ENGINES
        )
        for result in (python, *others):
            assert python.cycles == result.cycles > unstalled.cycles
            assert python.nodes == result.nodes
            np.testing.assert_array_equal(result.outputs["C"], expected)
        seen.add(python.cycles)
        assert t2s.cycles(graph, device=device, stalls=stalls) == python.cycles
    assert len(seen) > 1
