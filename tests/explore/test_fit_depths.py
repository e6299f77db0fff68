"""Fitting channel depths: against all depths there are, and at the edges."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import t2s
from t2s.core.errors import UserError
from t2s.explore.depth_search import Timings
from t2s.explore.depths import fit_depths
from t2s.graph.graph import Graph, with_depths
from t2s.simulator.devices import DEVICES
from t2s.simulator.program.build import build_program
from t2s.simulator.report.errors import DeadlockError, TokensLeftError
from t2s.simulator.run import retime
from tests.hand_graphs import depths_of, systolic_gemm
from tests.simulator.designs import chain, feedback, fork_join, holding_fork_join
from tests.simulator.test_random import device_of, random_graph
from tests.simulator.test_stops import circular_graph, unequal
from tests.test_driver import gemm

DEEP = 1000


def cycles_of(graph: Graph, device: object, depths: dict[str, int]) -> int | None:
    program = build_program(graph, device, None)  # type: ignore[arg-type]
    result = retime(program, depths)
    return result.cycles if result.finished else None


def test_a_chain_needs_two_tokens_everywhere() -> None:
    # A slot is free the cycle after its receive and a token takes a cycle: 2 for one per cycle.
    fit = fit_depths(chain(50, capacity=7))
    assert fit.depths == {"A": 2, "B": 2}
    assert fit.cycles == fit.unbounded_cycles == fit.before_cycles == 52
    assert fit.least
    assert fit.minimal
    assert not fit.interrupted
    assert [channel.bound for channel in fit.channels] == [2, 2]
    assert [channel.bytes for channel in fit.channels] == [8, 8]


def test_a_latency_needs_more() -> None:
    fit = fit_depths(chain(50, latencies=(1, 6)))
    assert fit.depths == {"A": 2, "B": 7}


def test_a_deadlock_at_the_depths_of_the_design() -> None:
    fit = fit_depths(holding_fork_join(40, short=1))
    assert fit.before_cycles is None
    assert fit.depths["short"] == 40
    assert "before     deadlock" in str(fit)


def test_a_cyclic_graph() -> None:
    fit = fit_depths(feedback(10, capacity=5, latency=3))
    graph = fit.apply()
    assert cycles_of(graph, "ideal", {}) == fit.cycles
    for name, depth in fit.depths.items():
        assert depth == 1 or cycles_of(graph, "ideal", {name: depth - 1}) != fit.cycles


def test_the_fitted_graph() -> None:
    graph = fork_join(30, short=1)
    fit = fit_depths(graph)
    fitted = fit.apply(graph)
    assert depths_of(fitted) == fit.depths
    assert t2s.cycles(fitted) == fit.cycles < t2s.cycles(graph)
    assert with_depths(fitted, depths_of(graph)) == graph
    assert fit.apply() == fitted


def test_a_func() -> None:
    C = gemm()
    fit = t2s.fit_depths(C, device="arria10", workers=1)
    assert t2s.cycles(fit.apply(C), device="arria10") == fit.cycles
    assert fit.ram_blocks == 0


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(st.data())
def test_no_smaller_depths_keep_the_cycles(data: st.DataObject) -> None:
    graph, device = random_graph(data), device_of(data)
    deep = {channel.name: DEEP for channel in graph.channels}
    best = cycles_of(graph, device, deep)
    assume(best is not None and not retime(build_program(graph, device, None), deep).tokens_left)
    fit = fit_depths(graph, device=device, workers=2)
    assert fit.unbounded_cycles == best
    assert fit.minimal
    assert cycles_of(graph, device, dict(fit.depths)) == fit.cycles
    for name, depth in fit.depths.items():
        if depth > 1:
            slower = cycles_of(graph, device, {**fit.depths, name: depth - 1})
            assert slower is None or slower > fit.cycles
    box = list(product(*(range(1, depth + 2) for depth in fit.depths.values())))
    if fit.least and len(box) <= 200:
        for point in box:
            depths = dict(zip(fit.depths, point, strict=True))
            kept = cycles_of(graph, device, depths) == fit.cycles
            assert kept == all(depths[name] >= depth for name, depth in fit.depths.items())


def test_the_number_of_threads_changes_nothing() -> None:
    graph = holding_fork_join(40, short=1)
    one, four = (fit_depths(graph, workers=n, budget_bytes=190) for n in (1, 4))
    assert str(one) == str(four)


def test_slack() -> None:
    # Depth 1 costs 50 more cycles of 52.
    assert fit_depths(chain(50), slack=1.0).depths == {"A": 1, "B": 1}
    assert fit_depths(chain(50), slack=0.5).depths == {"A": 2, "B": 2}


def test_a_budget_of_bytes() -> None:
    fit = fit_depths(chain(50), budget_bytes=12)
    assert fit.front is not None
    assert [(point.ram, point.cycles) for point in fit.front.points] == [(8, 101), (16, 52)]
    assert fit.front.exhaustive
    assert fit.depths == {"A": 1, "B": 1}
    assert fit.cycles == 101
    assert not fit.minimal
    assert "<- budget" in str(fit)


def test_a_budget_in_an_integer_of_numpy() -> None:
    fit = fit_depths(chain(50), budget_bytes=np.int64(12))  # type: ignore[arg-type]
    assert fit.front is not None
    assert fit.front.budget == 12


@pytest.mark.slow
def test_a_dram_is_shared() -> None:
    """Accesses delay one another, so that no depths are called the least."""
    graph = systolic_gemm(2, 2, 8)
    fit = t2s.fit_depths(graph, device="arria10", memory="ddr4-2133", progress=False)
    assert fit.minimal
    assert not fit.least
    fitted = fit.apply(graph)
    program = build_program(fitted, DEVICES["arria10"].with_memory("ddr4-2133"), None)
    assert retime(program, {}).cycles == fit.cycles
    for name, depth in fit.depths.items():
        if depth > 1:
            assert retime(program, {name: depth - 1}).cycles > fit.cycles


def test_a_budget_that_costs_nothing() -> None:
    fit = fit_depths(chain(50), budget_bytes=16)
    assert fit.cycles == 52
    assert fit.minimal


def test_a_budget_of_blocks() -> None:
    # 2000 tokens of 32 bits are 4 blocks of 512 x 40, 1536 are 3, and so on.
    fit = fit_depths(holding_fork_join(2000, short=1), device="arria10", budget_blocks=4)
    assert fit.front is not None
    assert fit.front.unit == "RAM blocks"
    assert fit.ram_blocks is not None
    assert fit.ram_blocks <= 4


def test_a_budget_that_cannot_be_met() -> None:
    with pytest.raises(UserError) as caught:
        fit_depths(holding_fork_join(40, short=1), budget_bytes=100)
    text = str(caught.value)
    assert text.startswith("no channel depths keep the FIFOs within 100 bytes\n")
    assert "expected: a budget of at least 176 bytes" in text
    assert "note:     'short': 40" in text


def test_pictures_and_tables() -> None:
    fit = fit_depths(chain(50), budget_bytes=16)
    html = fit._repr_html_()
    assert "<svg" in html
    assert html.count("<circle") == 2
    assert "channel depths" in html
    assert fit.__rich__() is not None
    assert fit.front is not None
    assert fit.front.__rich__() is not None


def test_no_depth_frees_it(tmp_path: Path) -> None:
    with pytest.raises(DeadlockError) as caught:
        fit_depths(circular_graph())
    assert "no capacity frees it" in str(caught.value)
    with pytest.raises(DeadlockError) as caught:
        t2s.fit_depths(circular_graph(), progress=False)
    page = caught.value.result.report(tmp_path / "page.html")
    assert "no capacity frees it" in page.read_text("utf-8")


def test_unequal_ends() -> None:
    with pytest.raises(TokensLeftError):
        fit_depths(unequal(5, 3))
    with pytest.raises(DeadlockError):
        fit_depths(unequal(3, 5))


def test_an_interrupt_keeps_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Timings, "keeps", interrupted)
    graph = fork_join(30, short=1)
    fit = fit_depths(graph)
    assert fit.interrupted
    assert not fit.minimal
    assert t2s.cycles(fit.apply()) == fit.unbounded_cycles < t2s.cycles(graph)
    assert "interrupted: the best depths so far" in str(fit)


def test_depths_of_another_design() -> None:
    with pytest.raises(UserError) as caught:
        fit_depths(chain(4)).apply(fork_join(4, short=1))
    assert "expected: the channels A, B" in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"budget_bytes": -1}, "the budget is not an amount of RAM"),
        ({"budget_bytes": 1.5}, "the budget is not an amount of RAM"),
        ({"budget_bytes": 1, "budget_blocks": 1}, "there are two budgets"),
        ({"budget_blocks": 1}, "the device ideal has no RAM blocks to count"),
        ({"slack": -0.1}, "slack is not a share of the cycles"),
        ({"slack": float("nan")}, "slack is not a share of the cycles"),
        ({"workers": 0}, "workers is not a number of threads"),
    ],
)
def test_refusals(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(UserError) as caught:
        t2s.fit_depths(chain(4), **arguments)  # type: ignore[arg-type]
    assert str(caught.value).startswith(message)
    assert "test_fit_depths.py" in str(caught.value)


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        ({"B": np.ones(8, np.int32)}, "the program has no input B"),
        ({"A": np.ones(8, np.int32), "n": 3}, "the program has no input n"),
        ({"A": np.ones(9, np.int32)}, "the input A has the wrong shape"),
    ],
)
def test_inputs_are_checked_where_no_values_are_needed(inputs: dict[str, Any], text: str) -> None:
    i, A, F = t2s.Var("i"), t2s.ImageParam(t2s.Int(32), 1, name="A"), t2s.Func("F")
    F[i] = A[i] + 1
    F.bound(i, 0, 8)
    with pytest.raises(t2s.errors.UserError, match=text):
        t2s.fit_depths(F, inputs, progress=False)
    assert t2s.fit_depths(F, {}, progress=False).cycles == 10
