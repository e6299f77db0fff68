"""The capacities that free a deadlock: they do, and none of them can be smaller."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from t2s.core.expr import const
from t2s.graph.graph import Graph
from t2s.graph.nodes import PEArray
from t2s.simulator import run as search
from t2s.simulator.engine_registry import find_engine
from t2s.simulator.limits import Limits
from t2s.simulator.program.build import build_program
from t2s.simulator.program.sim_program import SimProgram
from t2s.simulator.report.deadlock import Remedy
from t2s.simulator.report.errors import DeadlockError
from t2s.simulator.run import run_to_the_end
from tests.simulator.designs import (
    N,
    channel,
    design,
    load_unit,
    local,
    node,
    receive,
    run,
    send,
    store_unit,
    x,
    y,
)


def holder(name: str, count: int, held: int, source: str, sink: str) -> PEArray:
    """Passes tokens on, the first one once it has taken ``held`` of them."""
    taking = N < count
    passing = N >= held
    return node(name, count + held, receive(source, taking), send(sink, const(1), passing))


def ways(count: int, held: list[list[int]], capacity: int = 2) -> Graph:
    """A fork and a join with several ways between them, each of so many holders."""
    nodes, channels = [load_unit(count, "A")], [channel("A", "load", "fork")]
    begins, ends = [], []
    for way, holders in enumerate(held):
        at = "fork"
        for hop, amount in enumerate(holders):
            name = f"hold{way}_{hop}"
            channels.append(channel(f"c{way}_{hop}", at, name, capacity=capacity))
            nodes.append(holder(name, count, amount, f"c{way}_{hop}", f"c{way}_{hop + 1}"))
            at = name
        channels.append(channel(f"c{way}_{len(holders)}", at, "join", capacity=capacity))
        begins.append(f"c{way}_0")
        ends.append(f"c{way}_{len(holders)}")
    nodes.append(node("fork", count, receive("A"), *(send(c, local("A")) for c in begins)))
    nodes.append(node("join", count, *(receive(c) for c in ends), send("B", local(ends[0]))))
    channels.append(channel("B", "join", "store"))
    return design((*nodes, store_unit(count, "B")), tuple(channels), x(count), y(count))


def remedy_of(program: SimProgram, engine: str = "native") -> Remedy | None:
    """What a run's deadlock says; ``None`` if the run ends."""
    report = None
    try:
        run_to_the_end(program, engine, Limits(), None)
    except DeadlockError as error:
        report = error.result.deadlock
    if report is None:
        return None
    assert report.searched
    assert report.remedy is not None
    return report.remedy


def ends(program: SimProgram, capacities: dict[str, int]) -> bool:
    result = find_engine("native").run(program.with_capacities(capacities), Limits())
    return result.deadlock is None


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(
    count=st.integers(3, 20),
    held=st.lists(st.lists(st.integers(0, 20), max_size=2), min_size=2, max_size=5),
    capacity=st.integers(1, 3),
    engine=st.sampled_from(["native", "python"]),
)
def test_it_frees_the_run_and_is_minimal(
    count: int, held: list[list[int]], capacity: int, engine: str
) -> None:
    clipped = [[min(amount, count) for amount in way] for way in held]
    program = build_program(ways(count, clipped, capacity), "ideal", None)
    remedy = remedy_of(program, engine)
    if remedy is None:
        return
    assert remedy.minimal
    capacities = {name: after for name, (_, after) in remedy.capacities.items()}
    assert ends(program, capacities)
    for name, after in capacities.items():
        assert after > capacity
        assert not ends(program, {**capacities, name: after - 1})


@pytest.mark.parametrize("count", [7, 40])
def test_many_channels(count: int) -> None:
    # Every direct way has to hold the token for which the first way waits, and those before it.
    graph = ways(500, [[100], *([[]] * count)])
    remedy = remedy_of(build_program(graph, "ideal", None))
    expected = {f"c{way}_0": (2, 101) for way in range(1, count + 1)}
    assert remedy == Remedy(capacities=expected, minimal=True)


def test_a_search_that_takes_too_long_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MOST_RUNS", 2)
    graph = ways(500, [[100], []])
    remedy = remedy_of(build_program(graph, "ideal", None))
    assert remedy is not None
    assert not remedy.minimal
    assert str(remedy) == "a capacity that frees it: 'c1_0' 2 -> 250 (less may do as well)"
    monkeypatch.setattr(search, "MOST_RUNS", 0)
    result = run(graph, "native")
    assert result.deadlock is not None
    found: Any = search.with_remedy(result.program, result.deadlock, lambda program: result)
    assert found.hint == "larger capacities may free it"
