"""Times by runs of firings: equal to those of single firings, and to closed forms."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from benchmarks.random_streams import differing, random_runs, run_ahead
from t2s import Var, sparse
from t2s.errors import CycleLimitError
from t2s.simulator.report.assemble import assemble
from t2s.simulator.report.counters import Ending
from t2s.simulator.report.result import SimResult
from t2s.simulator.times.rounds import without_rounds
from t2s.simulator.times.runs import RunTimes, runs_of
from t2s.simulator.times.windows import all_codes
from t2s.sparse import Schedule, Tensor, csr, dense

i, j, k = Var("i"), Var("j"), Var("k")
QUICK, SLOW, DRAWN = 30, 400, 100


def compared(seeds: range, *, drawn: bool = False) -> tuple[dict[int, str], int]:
    """What differs, by seed, and how many runs were compared."""
    found: dict[int, str] = {}
    count = 0
    for seed in seeds:
        for run in random_runs(seed, drawn=drawn):
            difference = differing(run, seed)
            count += difference is not None
            if difference:
                found[seed] = difference
    return found, count


def test_random_streams() -> None:
    found, count = compared(range(QUICK))
    assert found == {}
    assert count > QUICK / 2


@pytest.mark.slow
def test_many_random_streams() -> None:
    assert compared(range(QUICK, QUICK + SLOW))[0] == {}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_random_expressions_and_machines() -> None:
    found, count = compared(range(DRAWN), drawn=True)
    assert found == {}
    assert count > DRAWN / 2


def gathered(f: int, *, capacity: int | None = None, max_cycles: int | None = None) -> SimResult:
    """Rows of a matrix, gathered by another one."""
    A = scipy.sparse.random(90, 90, density=0.05, format="csr", random_state=1)
    X = np.random.default_rng(0).random((90, f))
    At, Xt, Y = Tensor("A", csr), Tensor("X", dense(2)), Tensor("Y", dense(2))
    Y[i, j] = At[i, k] * Xt[k, j]
    kernel = sparse.compile(Y, Schedule().reorder(i, k, j))
    options = {} if capacity is None else {"capacity": capacity}
    result = sparse.simulate(kernel, {"A": A, "X": X}, max_cycles=max_cycles, **options)
    (run,) = result.stages
    return run


def test_the_kernel_of_gathered_rows() -> None:
    run = gathered(900)
    assert run.kernel == "runs"
    known = run_ahead(run.program, run.machine_trace)
    assert (known.cycles, known.nodes) == (run.cycles, run.nodes)
    assert run.ending is Ending.FINISHED
    assert gathered(900, capacity=1000).kernel == "stepped"
    limited = gathered(900, max_cycles=run.cycles)
    assert (limited.kernel, limited.cycles, limited.nodes) == ("runs", run.cycles, run.nodes)
    with pytest.raises(CycleLimitError):
        gathered(900, max_cycles=run.cycles - 1)


def test_a_dense_product() -> None:
    """Row by row, one token in a cycle through the busiest block [closed form of the loops]."""
    n, m, p = 60, 70, 200
    X, W, Y = Tensor("X", dense(2)), Tensor("W", dense(2)), Tensor("Y", dense(2))
    Y[i, j] = X[i, k] * W[k, j]
    kernel = sparse.compile(Y, Schedule().reorder(i, k, j))
    run = sparse.simulate(kernel, {"X": np.ones((n, m)), "W": np.ones((m, p))})
    assert [stage.kernel for stage in run.stages] == ["runs"]
    assert run.cycles == n * m * p + n * m + p + 16


@pytest.mark.slow
def test_channels_without_bounds_hold_more_than_two_to_the_thirty_tokens() -> None:
    n, m, p = 1024, 1024, 1024
    product = sparse.parse("Y(i,j) = X(i,k)*W(k,j)", ["Y:dd", "X:dd", "W:dd"])
    kernel = sparse.compile(product, "reorder(i,k,j)")
    ones = np.ones((n, m), np.float32)
    run = sparse.simulate(kernel, {"X": ones, "W": ones}, max_cycles=1 << 40)
    assert [stage.kernel for stage in run.stages] == ["runs"]
    assert run.cycles == n * m * p + n * m + p + 16


def test_firings_that_do_not_repeat_are_not_turned_into_runs() -> None:
    one, other = (
        scipy.sparse.random(300, 300, density=0.2, format="csr", random_state=seed)
        for seed in (1, 2)
    )
    A, B, Y = Tensor("A", csr), Tensor("B", csr), Tensor("Y", csr)
    Y[i, j] = A[i, j] + B[i, j]
    (run,) = sparse.simulate(sparse.compile(Y), {"A": one, "B": other}).stages
    assert run.firings > 1 << 16
    assert run.kernel == "stepped"


def test_an_interrupted_run() -> None:
    """The counters of a run that goes no further add up, and know what is under way."""
    run = gathered(900)
    assert run.machine_trace is not None
    applied = run.program.traced(run.machine_trace)
    tables = runs_of(applied)
    assert tables is not None
    traces = [without_rounds(codes) for codes in all_codes(applied, run.machine_trace.codes)]
    times = RunTimes(applied, tables, most_runs=4)
    times.extend(traces)
    for _ in range(9):
        assert times.advance()
    tally = times.tally(interrupted=True)
    cut = assemble(applied, tally, {}, "native", kernel="runs")
    assert cut.ending is Ending.INTERRUPTED
    assert 0 < cut.firings == times.fired < run.firings
    assert cut.cycles == times.latest < run.cycles
    assert tally.left.any()
