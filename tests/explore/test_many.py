"""Independent runs: order, errors of single runs, and interrupts."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import t2s
from t2s import Run
from t2s.core.errors import UserError
from t2s.simulator.report.errors import DeadlockError
from tests.simulator.designs import chain, holding_fork_join
from tests.test_driver import gemm, matrices

X4 = {"X": np.arange(4, dtype=np.int32)}


def test_outcomes_come_in_the_order_of_the_runs() -> None:
    runs = [Run(chain(count), name=f"{count}") for count in (3000, 1, 400, 20)]
    outcomes = t2s.simulate_many(runs, workers=3)
    assert [outcome.name for outcome in outcomes] == ["3000", "1", "400", "20"]
    assert [result.cycles for result in outcomes.results] == [3002, 3, 402, 22]
    assert len(outcomes) == 4
    assert outcomes[1].result.cycles == 3


def test_the_results_are_those_of_simulate() -> None:
    C, inputs = gemm(), matrices()
    devices = ("ideal", "arria10", "stratix10")
    results = t2s.simulate_many([Run(C, inputs, device=device) for device in devices]).results
    for device, result in zip(devices, results, strict=True):
        alone = t2s.simulate(C, inputs, device=device)
        assert result.cycles == alone.cycles
        assert result.nodes == alone.nodes
        assert result.warnings == alone.warnings
        np.testing.assert_array_equal(result.outputs["C"], alone.outputs["C"])


def test_a_memory_is_that_of_simulate() -> None:
    """Of designs whose arrays are on the chip as well: with a DRAM they are in it."""
    C, inputs = gemm(), matrices()
    kernel = t2s.sparse.compile(t2s.sparse.parse("y(i) = A(i,j) * x(j)", {"A": "ds"}))
    arrays = {"A": np.eye(5, dtype=np.float32), "x": np.ones(5, np.float32)}
    for design, given in ((C, inputs), (kernel, arrays)):
        alone = t2s.simulate(design, given, memory="ddr4-2133")
        (run,) = t2s.simulate_many([Run(design, given, memory="ddr4-2133")]).results
        assert run.cycles == alone.cycles > t2s.simulate(design, given).cycles
        fit = t2s.fit_depths(design, given, memory="ddr4-2133", progress=False)
        assert fit.cycles <= alone.cycles


def test_warnings_are_those_of_simulate_on_a_device_with_a_dram() -> None:
    """Its arrays are in the DRAM; what is too large is asked of the graph of the design."""
    kernel = t2s.sparse.compile(t2s.sparse.parse("y(i) = A(i,j) * x(j)", {"A": "ds"}))
    arrays = {"A": np.eye(400, dtype=np.float32), "x": np.ones(400, np.float32)}
    options = {"device": "arria10", "memory": "ddr4-2133"}
    alone = t2s.simulate(kernel, arrays, **options)
    (run,) = t2s.simulate_many([Run(kernel, arrays, **options)]).results
    for one, other in zip(run.stages, alone.stages, strict=True):
        assert one.warnings == other.warnings == one.retime().warnings


def test_an_error_ends_its_own_run_only() -> None:
    outcomes = t2s.simulate_many(
        [
            Run(chain(4), X4, name="good"),
            Run(chain(4), {}, name="no input"),
            Run(holding_fork_join(4, short=2), name="stuck"),
            Run(chain(4), X4, name="nowhere", device="moon"),
            Run(chain(4), X4, name="cut", max_cycles=2),
        ]
    )
    good, missing, stuck, nowhere, cut = outcomes
    assert good.error is None
    assert isinstance(missing.error, UserError)
    assert missing.result is None
    assert isinstance(stuck.error, DeadlockError)
    assert stuck.result is not None
    assert "unknown device" in str(nowhere.error)
    assert "test_many.py" in str(nowhere.error)
    assert cut.result.limit_reached
    lines = str(outcomes).splitlines()
    assert lines[0] == "5 runs"
    assert "deadlock after cycle 4" in lines[5]
    assert "cycle limit reached" in lines[7]
    assert "<table>" in outcomes._repr_html_()
    assert outcomes.__rich__() is not None
    with pytest.raises(UserError):
        _ = outcomes.results


def test_every_run_has_its_page(tmp_path: Path) -> None:
    outcomes = t2s.simulate_many(
        [
            Run(chain(4), X4, name="good"),
            Run(chain(4), name="times alone"),
            Run(holding_fork_join(4, short=2), name="stuck"),
            Run(chain(4), X4, name="cut", max_cycles=2),
        ]
    )
    alone = t2s.simulate(chain(4), X4).report(tmp_path / "alone.html").read_bytes()
    good, times, stuck, cut = (
        outcome.result.report(tmp_path / f"{outcome.name}.html").read_bytes()
        for outcome in outcomes
    )
    assert good == times == alone
    assert b"This run ended in a deadlock" in stuck
    assert b"This run was cut short" in cut


def test_no_runs() -> None:
    assert t2s.simulate_many([]).results == ()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
def test_ctrl_c_ends_all_runs() -> None:
    # Each takes a good second, cycle by cycle; the signal arrives in the middle of the first two.
    runs = [Run(chain(20_000_000), name=f"{n}", engine="table") for n in range(4)]
    t2s.simulate_many([Run(chain(4), engine="table")])  # compiles and loads
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.7)
    started = time.monotonic()
    try:
        outcomes = t2s.simulate_many(runs, workers=2)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - started < 100
    assert threading.active_count() < 3
    assert any(outcome.result is None or outcome.result.interrupted for outcome in outcomes)
    with pytest.raises(KeyboardInterrupt):
        _ = outcomes.results
