"""Fast-forward: what is skipped changes no number, in steady runs, nested loops and their ends."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from benchmarks.engine import gemm
from t2s.core.expr import Expr, Index, conjunction, const, equals
from t2s.graph.graph import Graph
from t2s.graph.nodes import Loop
from t2s.simulator.devices import DEVICES, Device
from t2s.simulator.engine_registry import find_engine
from t2s.simulator.limits import Limits
from t2s.simulator.program.build import build_program
from t2s.simulator.program.sim_program import SimProgram
from t2s.simulator.random_stalls import RandomStalls
from t2s.simulator.report.counters import Ending, Tally
from t2s.simulator.report.result import SimResult
from t2s.simulator.times.array import periods
from t2s.simulator.times.array.emit import Stop
from t2s.simulator.times.array.periods import array_times
from t2s.simulator.times.array.run import ArrayMachine
from tests.hand_graphs import systolic_gemm
from tests.simulator.designs import (
    IDEAL,
    channel,
    design,
    load_unit,
    local,
    node,
    receive,
    send,
    store_unit,
    x,
    y,
)

DRAW = st.DataObject


def both(graph: Graph, device: Device, limit: int | None = None) -> tuple[SimResult, SimResult]:
    """The results of the table kernel, which steps, and of the array kernel, which skips."""
    program = build_program(graph, device, None)
    limits = Limits(max_cycles=limit)
    return find_engine("table").run(program, limits), find_engine("array").run(program, limits)


def assert_equal(stepped: SimResult, skipped: SimResult) -> None:
    assert stepped.ending == skipped.ending
    assert stepped.cycles == skipped.cycles
    assert stepped.nodes == skipped.nodes
    assert stepped.deadlock == skipped.deadlock
    assert stepped.tokens_left == skipped.tokens_left


def test_a_long_reduction_is_skipped() -> None:
    stepped, skipped = both(systolic_gemm(3, 4, 5000), IDEAL)
    assert_equal(stepped, skipped)
    assert skipped.skipped > 0.9 * skipped.cycles
    assert stepped.skipped == 0


@pytest.mark.parametrize("limit", [1, 700, 4321, 20_000])
def test_a_limit_in_what_could_be_skipped(limit: int) -> None:
    assert_equal(*both(systolic_gemm(2, 2, 9000), IDEAL, limit))


def test_random_stalls_are_stepped_through() -> None:
    program = build_program(systolic_gemm(2, 2, 3000), "ideal", None, stalls=RandomStalls())
    stepped = find_engine("table").run(program, Limits())
    result = find_engine("array").run(program, Limits())
    assert_equal(stepped, result)
    assert result.skipped == 0


def test_memory_that_is_too_slow_has_a_period_too() -> None:
    rate = 7 * IDEAL.clock_hz // 2
    slow = replace(IDEAL, memory_bytes_per_second=rate)
    stepped, skipped = both(systolic_gemm(2, 3, 20_000), slow)
    assert_equal(stepped, skipped)
    assert sum(node.starved_by_memory for node in skipped.nodes.values()) > 0
    assert skipped.skipped > 0.5 * skipped.cycles


def without_skipping(program: SimProgram) -> Tally:
    """The counters of a run that steps through every cycle with the array kernel."""
    machine = ArrayMachine(program)
    while machine.advance(1 << 40) is Stop.UNTIL:
        pass
    return machine.tally(Ending.FINISHED, machine.end())


def assert_same_counters(skipped: Tally, stepped: Tally) -> None:
    for name, expected in vars(stepped).items():
        given = getattr(skipped, name)
        assert np.array_equal(given, expected), name


@pytest.mark.parametrize(("size", "rate", "clock"), [(8, 6820, 430), (4, 341, 43)])
def test_a_period_of_many_looks_is_found_after_it_has_passed_once(
    size: int, rate: int, clock: int
) -> None:
    """Bandwidth that is not a whole number of tokens: the PEs meet at memory in many orders."""
    device = replace(IDEAL, clock_hz=clock * 1_000_000, memory_bytes_per_second=rate * 1_000_000)
    program = build_program(systolic_gemm(size, size, 1_000_000), device, None)
    times = array_times(program, Limits(), lambda machine: None)
    assert times.skipped > 0.8 * times.tally.cycles
    assert_same_counters(times.tally, without_skipping(program))


def test_a_part_of_a_period_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the last whole period, and in the middle of loops; looks are as many as can be."""
    monkeypatch.setattr(periods, "_LONG", 0)
    monkeypatch.setattr(periods, "_pause", lambda pes: 1)
    parts = []
    go_to = periods._go_to
    monkeypatch.setattr(periods, "_go_to", lambda *given: (parts.append(1), go_to(*given)))
    sizes = ((1, 4, 997, 1, 777), (5, 2, 3000, 2, 1000), (2, 4, 1501, 1, 1000))
    for size, tile, steps, lanes, rate in sizes:
        device = replace(DEVICES["arria10"], memory_bytes_per_second=rate * 3_000_000)
        program = build_program(gemm(size, size + 1, tile, steps, lanes), device, None)
        times = array_times(program, Limits(), lambda machine: None)
        assert_same_counters(times.tally, without_skipping(program))
    assert len(parts) == len(sizes)


@pytest.mark.slow
def test_many_pes_that_memory_limits() -> None:
    """1024 x 1024 x 65,536 on 64 x 64 PEs: 54 million cycles, as long as the memory takes."""
    program = build_program(gemm(64, 64, 16, 65_536, 1), "arria10", None)
    times = array_times(program, Limits(), lambda machine: None)
    rate = program.memory_rate
    assert rate is not None
    least = 65_536 * 16 * 16 * 128 * 4 / rate
    assert least < times.tally.cycles < 1.002 * least
    assert times.skipped > 0.9 * times.tally.cycles


@pytest.mark.slow
def test_the_count_of_a_design_too_long_to_step_through() -> None:
    """One firing per cycle after a start-up that the short run shows."""
    short, long = (
        find_engine("array").run(build_program(systolic_gemm(2, 2, depth), "ideal", None), Limits())
        for depth in (1000, 40_000_000)
    )
    assert long.cycles - short.cycles == 40_000_000 - 1000
    assert long.cycles - long.skipped < 10_000


CHOICES = {
    "any": lambda value, extent: True,
    "first": lambda value, extent: value == 0,
    "last": lambda value, extent: value == extent - 1,
    "even": lambda value, extent: value % 2 == 0,
    "early": lambda value, extent: 2 * value < extent + 1,
}


def condition_of(choice: str, name: str, extent: int) -> Expr | None:
    index = Index(name=name)
    match choice:
        case "first":
            return equals(index, 0)
        case "last":
            return equals(index, extent - 1)
        case "even":
            return equals(index % 2, 0)
        case "early":
            twice = 2 * index
            return twice < const(extent) + const(1)
    return None


def nested(data: DRAW) -> Graph:
    """A producer, a filter over three loops and a consumer, with random extents and conditions."""
    extents = {name: data.draw(st.integers(1, most)) for name, most in SIZES.items()}
    chosen = {name: data.draw(st.sampled_from(sorted(CHOICES))) for name in SIZES}
    when = conjunction(*(condition_of(chosen[n], n, extents[n]) for n in SIZES))
    passed = prod(
        sum(CHOICES[chosen[name]](value, extent) for value in range(extent))
        for name, extent in extents.items()
    )
    loops = tuple(
        Loop(name=name, minimum=const(0), extent=const(extent)) for name, extent in extents.items()
    )
    body = (receive("A"), send("B", local("A") + Index(name="i"), when))
    capacities = [data.draw(st.integers(1, 5)) for _ in range(2)]
    total = prod(extents.values())
    return design(
        (
            load_unit(total, "A"),
            replace(node("filter", 1, *body), loops=loops),
            store_unit(passed, "B"),
        ),
        (
            channel("A", "load", "filter", capacity=capacities[0]),
            channel(
                "B",
                "filter",
                "store",
                capacity=capacities[1],
                latency=data.draw(st.integers(1, 6)),
            ),
        ),
        x(total),
        y(passed),
    )


SIZES = {"o": 30, "m": 24, "i": 60}


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),
)
@given(st.data())
def test_nested_loops_of_random_extents(data: DRAW) -> None:
    """Slow memory, slow nodes and shallow channels: every period ends somewhere."""
    graph = nested(data)
    rate = data.draw(st.sampled_from([None, 3, 8, 11]))
    device = replace(
        IDEAL,
        load_latency=data.draw(st.integers(0, 9)),
        store_latency=data.draw(st.integers(0, 3)),
        memory_bytes_per_second=rate and rate * IDEAL.clock_hz // 2,
    )
    limit = data.draw(st.sampled_from([None, None, None, 2500]))
    assert_equal(*both(graph, device, limit))
