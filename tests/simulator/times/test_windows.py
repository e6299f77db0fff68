"""Times of traces that are not kept: what they say, and what is refused of such a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import t2s
from t2s import sparse
from t2s.core.errors import UserError
from t2s.graph.cache import GraphCache
from t2s.graph.graph import UNBOUNDED, Graph
from t2s.simulator.program.codes import Codes
from t2s.simulator.report.errors import CycleLimitError, DeadlockError, RunInterrupted
from t2s.simulator.report.result import SimResult
from t2s.simulator.run import simulate
from t2s.simulator.times import windows
from t2s.simulator.times.rounds import Rounds, rounds_of, without_rounds
from t2s.simulator.values import machine_traces, machine_values

GCN = """
    T(i,j) = A(i,k) * X(k,j)
    H(i,h) = relu(sum(j, T(i,j) * W(j,h)) + b(h))
    U(i,h) = A(i,k) * H(k,h)
"""


def layers() -> dict[str, Any]:
    """The inputs of two layers on a graph with hubs and isolated nodes."""
    n, f = 300, 60
    rng = np.random.default_rng(2)
    degrees = np.minimum(n, rng.zipf(1.7, n)) - 1
    rows = np.repeat(np.arange(n), degrees)
    A = scipy.sparse.coo_matrix((np.ones(len(rows)), (rows, rng.integers(0, n, len(rows)))), (n, n))
    W = scipy.sparse.random(f, 8, density=0.4, format="csr", random_state=3)
    return {"A": A.tocsr(), "X": rng.random((n, f)), "W": W, "b": rng.random(8)}


def product() -> dict[str, Any]:
    """The inputs of a product."""
    A = scipy.sparse.random(400, 300, density=0.1, format="csr", random_state=5)
    return {"A": A, "X": np.random.default_rng(4).random((300, 70))}


def fused(fusion: str) -> Any:
    return sparse.program(GCN, formats={"A": "ds", "W": "ds"}).fuse(fusion)


def gathered(formats: dict[str, str], schedule: str = "reorder(i,k,j)") -> Any:
    return sparse.compile(sparse.parse("Y(i,j) = A(i,k)*X(k,j)", formats), schedule)


RUNS = {
    "layer": (fused("layer"), layers()),
    "all": (fused("all"), layers()),
    "gather": (gathered({"A": "ds"}), product()),
    "lanes": (gathered({"A": "ds"}, "reorder(i,k,j), parallelize(i,3)"), product()),
    "dense": (gathered({}), product()),
}


def stages(name: str, **options: Any) -> tuple[SimResult, ...]:
    design, inputs = RUNS[name]
    found: tuple[SimResult, ...] = design.simulate(inputs, **options).stages
    return found


def in_rounds(codes: Codes) -> Rounds:
    """Runs by rounds, or without, whether or not another kernel is faster."""
    return rounds_of(codes) or without_rounds(codes)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only traces of some kilobytes are kept."""
    monkeypatch.setattr(windows, "MOST_KEPT", 1 << 17)
    monkeypatch.setattr(windows, "WINDOW", 1 << 15)
    monkeypatch.setattr(windows, "worthwhile_runs", lambda codes: [*map(in_rounds, codes)])
    monkeypatch.setattr(machine_values, "_FIRINGS_PER_CALL", 1 << 14)
    monkeypatch.setattr(machine_values, "_FEW_FIRINGS", 0)
    monkeypatch.setattr(machine_values, "_PREPARED", GraphCache())
    monkeypatch.setattr(machine_traces, "_RUNS", 1 << 8)


@pytest.mark.parametrize(
    ("long", "names"),
    [(0, ("all", "lanes", "dense")), (1 << 62, ("layer", "gather"))],
    ids=["in bursts", "one by one"],
)
def test_a_trace_in_windows_says_what_the_whole_one_says(
    short: None, monkeypatch: pytest.MonkeyPatch, long: int, names: tuple[str, ...]
) -> None:
    monkeypatch.setattr(machine_values, "_LONG", long)
    not_kept = 0
    for name in names:
        found = stages(name)
        with monkeypatch.context() as whole:
            whole.setattr(windows, "MOST_KEPT", 1 << 62)
            expected = stages(name)
        for one, other in zip(found, expected, strict=True):
            assert one.machine_trace is not None
            assert other.machine_trace is not None
            fields = ("cycles", "ending", "nodes", "tokens_left")
            for field in fields:
                assert getattr(one, field) == getattr(other, field), (name, field)
            for tensor, values in other.outputs.items():
                assert one.outputs[tensor].tobytes() == values.tobytes()
            for machine, codes in other.machine_trace.codes.items():
                counts = one.machine_trace.codes[machine].counts
                assert (counts == np.bincount(codes.expanded)).all()
            not_kept += not one.machine_trace.is_kept
            assert other.machine_trace.is_kept
    assert not_kept >= len(names)


@pytest.mark.parametrize("long", [0, 1 << 62], ids=["in bursts", "one by one"])
def test_blocks_of_statements_end_however_often_they_fire(
    short: None, monkeypatch: pytest.MonkeyPatch, long: int
) -> None:
    monkeypatch.setattr(machine_values, "_LONG", long)
    (expected,) = stages("gather")
    for module in machine_traces, machine_values:
        monkeypatch.setattr(module, "MOST_FIRINGS", 1 << 18)
    assert expected.cycles > 1 << 18
    (found,) = stages("gather")
    assert found.cycles == expected.cycles
    for name, values in expected.outputs.items():
        assert found.outputs[name].tobytes() == values.tobytes()
    with pytest.raises(UserError, match="has not ended after 262144 firings") as caught:
        simulate(one_too_few(300_000), {})
    assert "max_cycles" in str(caught.value)
    with pytest.raises(DeadlockError):
        simulate(one_too_few(300_000), {}, max_cycles=1 << 40)


@pytest.mark.parametrize("name", ["dense", "gather"])
@pytest.mark.parametrize("trial", [0, 1 << 62], ids=["in bursts", "one by one"])
def test_blocks_of_statements_end_where_their_trace_is_kept(
    name: str, trial: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (expected,) = stages(name)
    monkeypatch.setattr(machine_values, "_TRIAL", trial)
    monkeypatch.setattr(machine_values, "_PREPARED", GraphCache())
    for module in machine_traces, machine_values:
        monkeypatch.setattr(module, "MOST_FIRINGS", 1 << 12)
    for _ in range(2):
        (found,) = stages(name)
        assert found.machine_trace is not None
        assert found.machine_trace.is_kept
        assert found.cycles == expected.cycles > 1 << 12
        for tensor, values in expected.outputs.items():
            assert found.outputs[tensor].tobytes() == values.tobytes()


def test_the_words_of_a_run_that_is_not_kept_are_counted(short: None) -> None:
    design, inputs = RUNS["gather"]
    result = design.simulate(inputs)
    assert not result.stages[0].machine_trace.is_kept
    assert result.words["Y"].stored == 400 * 70
    assert result.words["A"].loaded >= inputs["A"].nnz


def test_what_needs_every_firing_is_refused(short: None, tmp_path: Path) -> None:
    (run,) = stages("gather")
    for needs in (
        lambda: run.retime({run.program.graph.channels[0].name: 2}),
        lambda: run.timeline((1, 100)),
        lambda: run.trace(tmp_path / "trace", cycles=(1, 100)),
        lambda: run.waves(tmp_path / "waves.vcd", cycles=(1, 100)),
    ):
        with pytest.raises(UserError, match="makes so many firings that their trace is not kept"):
            needs()
    page = run.report(tmp_path / "page.html").read_text()
    assert "What machines did is not kept of a run that is so long." in page


def one_too_few(count: int) -> Graph:
    """A sender of tokens, and a receiver that waits for one more."""
    network = t2s.Network("one_too_few")
    x = network.channel("x", t2s.Int(32), depth=UNBOUNDED)
    out = network.output("out", t2s.Int(32), 1)
    sender, receiver = network.process("sender"), network.process("receiver")
    n, k = sender.register("n", t2s.Int(32)), receiver.register("k", t2s.Int(32))
    go = sender.mode("go")
    go.rule(when=n < count, puts={x: n}, sets={n: n + 1}, next=go)
    go.rule()
    take = receiver.mode("take", waits=[x])
    take.rule(when=k < count, takes=[x], sets={k: k + 1}, next=take)
    take.rule(takes=[x], stores=[(out, 0, x.value)])
    return network.graph()


def test_a_deadlock_is_explained_by_the_whole_trace(
    short: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[int] = []
    take = windows.TimesInWindows.take
    monkeypatch.setattr(
        windows.TimesInWindows, "take", lambda *given: taken.append(take(*given)) or taken[-1]
    )
    with pytest.raises(DeadlockError, match="'receiver'"):
        simulate(one_too_few(300_000), {})
    assert any(taken)


def test_a_limit_of_cycles(short: None) -> None:
    """No more than that is known of a run whose trace is not kept."""
    (whole,) = stages("gather")
    limit = whole.cycles - 1000
    assert limit > windows.MOST_KEPT
    with pytest.raises(
        CycleLimitError, match="a longer run, of which nothing is measured"
    ) as caught:
        stages("gather", max_cycles=limit)
    cut = caught.value.result
    assert (cut.cycles, cut.at_least, cut.outputs) == (limit, limit + 1, {})
    (ended,) = stages("gather", max_cycles=whole.cycles)
    assert (ended.cycles, ended.nodes) == (whole.cycles, whole.nodes)


def test_an_interrupt_leaves_what_is_measured(short: None, monkeypatch: pytest.MonkeyPatch) -> None:
    (whole,) = stages("gather")
    take, times = windows.TimesInWindows.take, iter(range(4))

    def interrupted(self: windows.TimesInWindows, codes: Any) -> bool:
        if next(times) == 3:
            raise KeyboardInterrupt
        return take(self, codes)

    monkeypatch.setattr(windows.TimesInWindows, "take", interrupted)
    with pytest.raises(RunInterrupted) as caught:
        stages("gather")
    assert 0 < caught.value.result.cycles < whole.cycles
