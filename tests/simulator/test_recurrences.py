"""Recurrences through channels from a PE to itself: how fast they let it be, and what is said."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import t2s
from t2s import Float, Func, ImageParam
from t2s.simulator.program import recurrences
from t2s.simulator.report.result import SimResult
from tests.simulator.designs import feedback


@pytest.mark.parametrize("engine", ["python", "native"])
@pytest.mark.parametrize(("latency", "distance"), [(3, 1), (7, 3), (21, 8), (5, 2)])
def test_rate_is_what_the_recurrence_allows(engine: str, latency: int, distance: int) -> None:
    """In ``latency`` cycles there are ``distance`` firings, however long it runs."""
    counts = (20 * distance, 40 * distance)
    first, second = (_run(n, latency, distance, engine) for n in counts)
    assert second.cycles - first.cycles == 20 * latency
    found = second.recurrences["state"]
    assert (found.latency, found.least, found.most) == (latency, distance, distance)
    assert found.interval == Fraction(latency, distance)
    (channel,) = (c for c in second.program.graph.channels if c.name == "state")
    assert found.location == channel.location
    assert found.location is not None


def _run(count: int, latency: int, distance: int, engine: str) -> SimResult:
    graph = feedback(count, capacity=2 * distance + latency, latency=latency, distance=distance)
    result: SimResult = t2s.simulate(graph, {"X": np.arange(count, dtype=np.int32)}, engine=engine)
    return result


def test_stall_table_says_the_rate() -> None:
    result = _run(80, 21, 8, "native")
    cause = "starved by state: recurrence of latency 21 at distance 8, 2.62 cycles per firing"
    assert result.stalls["scan"].main_cause == cause
    assert cause in str(result)


def test_a_recurrence_that_is_fast_enough_is_not_blamed() -> None:
    result = _run(80, 8, 8, "native")
    assert result.recurrences["state"].interval == 1
    assert "recurrence" not in str(result.stalls)


def test_distances_that_differ() -> None:
    """Row i of a triangle has i elements less, so the row before is so much nearer."""
    i, j = t2s.variables("i j")
    A, M, diagonal = ImageParam(Float(32), 2, name="A"), Func("M", type=Float(32)), Func("diagonal")
    M[i, j] = t2s.select(i == 0, A[i, j], M[i - 1, j] * A[i, j] + 1.0)
    diagonal[j] = M[j, j]
    M.bound(i, 0, 6).bound(j, i, 6 - i)
    diagonal.bound(j, 0, 6)
    result = t2s.simulate(diagonal, {"A": np.ones((6, 6), np.float32)}, device="arria10")
    (back,) = result.recurrences.values()
    assert (back.least, back.most) == (1, 5)
    # Firing (i, j) waits for (i - 1, j): the last element is the end of a chain of 6.
    node = result.nodes["M"]
    assert node.first_firing is not None
    assert node.last_firing is not None
    assert node.last_firing - node.first_firing >= 5 * back.latency
    assert result.stalls["M"].main_cause == f"starved by {back.channel}: {back}"
    assert f"at distances 1 to 5, up to {back.latency} cycles per firing" in str(back)


def test_long_runs_are_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recurrences, "MOST_LISTED_FIRINGS", 79)
    result = _run(80, 21, 8, "native")
    assert not result.recurrences
    assert result.stalls["scan"].main_cause == "starved by state"
