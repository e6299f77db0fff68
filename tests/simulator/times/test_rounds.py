"""Rounds of firings: found in traces, and timed as single firings are, and by closed forms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from benchmarks.random_streams import differing, random_runs, run_ahead, slow_node
from t2s import sparse
from t2s.core.ops import Array
from t2s.simulator.limits import Limits
from t2s.simulator.native_engine import retime
from t2s.simulator.program.codes import Codes, codes_of_parts, repeated
from t2s.simulator.program.rounds import Folded
from t2s.simulator.report.assemble import assemble
from t2s.simulator.report.counters import Ending
from t2s.simulator.report.result import SimResult
from t2s.simulator.times.rounds import Rounds, rounds_of, without_rounds
from t2s.simulator.times.runs import RunTimes, runs_of
from t2s.simulator.times.runs_layout import KNOWN
from t2s.simulator.times.windows import all_codes
from t2s.simulator.values.packing import packed

BYTE = np.dtype(np.uint8)
generator = np.random.default_rng(1)
WALK = generator.integers(0, 3, 700).astype(np.uint8)
"""A walk through a sparse matrix, as the codes of a scanner."""


def in_runs(codes: Array, pieces: int) -> Codes:
    """Codes as parts of runs, which end anywhere."""
    return codes_of_parts(BYTE, [packed(part, 8) for part in np.array_split(codes, pieces)])


def expanded(rounds: Rounds) -> Array:
    """The codes of a trace with rounds, one for each firing."""
    runs = [
        rounds.runs[begin:end]
        for begin, end, times, _ in rounds.stretches.reshape(-1, 4).tolist()
        for _ in range(times)
    ]
    return repeated(np.concatenate(runs), rounds.bits, BYTE)


@pytest.mark.parametrize("pieces", [0, 1, 7])
@pytest.mark.parametrize(
    ("between", "times"),
    [
        ([], 9),  # rounds alone
        ([3], 9),  # the end of a row after each
        ([3, 3, 4], 9),
        (WALK[:300].tolist(), 9),  # a round that is cut short
        ([*WALK[:500].tolist(), 5, *WALK[:300].tolist()], 9),
    ],
)
def test_the_rounds_of_a_trace(between: list[int], times: int, pieces: int) -> None:
    row = np.concatenate([WALK, WALK, WALK, np.array(between, np.uint8)])
    whole = np.concatenate([*(row for _ in range(times)), WALK[:99]])
    codes = in_runs(whole, pieces) if pieces else codes_of_parts(BYTE, [whole])
    found = rounds_of(codes)
    assert found is not None
    np.testing.assert_array_equal(expanded(found), whole)
    if not between:
        assert (found.firings, found.times) == (len(WALK), 3 * times)
        assert len(found.runs) < 2 * len(WALK)
    assert found.times >= 2 * times


@pytest.mark.parametrize("ends", [[], [3], WALK[:300].tolist()])
def test_rounds_in_a_trace_that_grows(ends: list[int]) -> None:
    """Rounds are one array, whatever the pieces in which the trace arrives."""
    whole = np.concatenate([np.tile(WALK, 3), np.array(ends, np.uint8)])
    whole = np.tile(whole, 400)
    folded = Folded(8)
    for part in np.array_split(whole, 77):
        folded.add(packed(part, 8))
    codes = codes_of_parts(BYTE, folded.parts)
    np.testing.assert_array_equal(codes.expanded, whole)
    distinct = {id(part): len(part) for part in codes.parts}
    assert sum(distinct.values()) < sum(map(len, codes.parts)) / (2 if ends else 4)
    found = rounds_of(codes)
    assert found is not None
    np.testing.assert_array_equal(expanded(found), whole)
    if len(ends) < 2:
        assert (found.firings, found.times) == (len(WALK), 1200)


@pytest.mark.parametrize("type", [np.uint8, np.uint16])
@pytest.mark.parametrize("wrong", [None, 0, 150_000, 199_999])
def test_rounds_of_codes_that_are_written_over(wrong: int | None, type: type[Any]) -> None:
    """A trace has memory for a part of its codes: the next part comes where this one was."""
    walk = WALK.astype(type)
    whole = np.tile(walk, 300)[:200_000]
    if wrong is not None:
        whole[wrong] ^= 4
    folded = Folded(8 * whole.itemsize, walk)
    for part in np.array_split(whole, 8):
        memory = part.copy()
        folded.add(memory)
        memory[:] = 7
    parts = folded.parts
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    rounds = sum(part is parts[0] for part in parts) if wrong != 0 else 0
    assert wrong == 0 or rounds >= (285 if wrong is None else 200)
    if wrong is None:
        assert folded.bytes < 10 * 300 + walk.nbytes
    folded.drop()
    assert folded.parts == []


@pytest.mark.parametrize(
    "whole",
    [
        generator.integers(0, 3, 9000),  # no repetition
        np.repeat([0, 1, 2], 3000),  # long runs
        np.tile(WALK[:40], 200),  # short rounds
        np.tile(WALK, 3),  # few rounds
        np.concatenate([WALK[::-1], np.tile(WALK, 9)]),  # they do not begin with the trace
        np.zeros(0),
        np.zeros(1),
    ],
)
def test_traces_without_rounds(whole: Array) -> None:
    whole = whole.astype(np.uint8)
    assert rounds_of(codes_of_parts(BYTE, [whole])) is None
    assert rounds_of(in_runs(whole, 1)) is None
    assert len(whole) == 0 or (expanded(without_rounds(in_runs(whole, 1))) == whole).all()


def test_a_trace_that_repeats_a_few_runs_is_cut_as_often_as_others() -> None:
    """Products of dense rows have runs and stops, and nothing that ends a matrix."""
    few = [1] * 70 + [2]
    whole = np.array(few * 600 + [3], np.uint8)
    for pieces in (1, 4, 7):
        found = rounds_of(in_runs(whole, pieces), known=12)
        assert found is not None
        assert (expanded(found) == whole).all()
        assert (found.times, found.firings) == (12, 71 * 50)
        assert rounds_of(in_runs(whole, pieces), known=601) is None
        for end in (1, 10):  # nothing behind the rounds, and not a whole one
            found = rounds_of(in_runs(whole[:-end], pieces), known=12)
            assert found is not None
            assert (expanded(found) == whole[:-end]).all()
            _, *rows = found.stretches.reshape(-1, 4).tolist()
            assert all(begin < end for begin, end, *_ in rows)
    assert rounds_of(in_runs(np.array(few * 300 + [4] + few * 300, np.uint8), 1), known=12) is None


def test_rows_that_are_alike_make_rounds_of_matrices() -> None:
    """A dense matrix repeats a row, and a walk through it the matrix."""
    row = np.array([0] * 300 + [1], np.uint8)
    matrix = np.concatenate([np.tile(row, 40), [2]]).astype(np.uint8)
    for after, firings, times in (([], len(matrix), 9), (row, len(matrix), 9)):
        whole = np.concatenate([np.tile(matrix, 9), np.array(after, np.uint8)])
        found = rounds_of(in_runs(whole, 3))
        assert found is not None
        np.testing.assert_array_equal(expanded(found), whole)
        assert (found.firings, found.times) == (firings, times)
    assert rounds_of(in_runs(np.tile(row, 40), 3)) is None


def walks(rows: int, *, f: int = 150, h: int = 16, formats: Any = None) -> SimResult:
    """A dense matrix by a sparse one: every row walks through the same one."""
    W = scipy.sparse.random(f, h, density=0.4, format="csr", random_state=1)
    text = sparse.parse("Y(i,j) = X(i,k)*W(k,j)", formats or {"W": "ds"})
    kernel = sparse.compile(text, "reorder(i,k,j)")
    (run,) = kernel.simulate({"X": np.ones((rows, f)), "W": W}).stages
    return run


def timed(run: SimResult, fewest: int = 64, few_pieces: int = 2) -> RunTimes:
    """Times by rounds, not begun."""
    assert run.machine_trace is not None
    applied = run.program.traced(run.machine_trace)
    tables = runs_of(applied)
    assert tables is not None
    traces = [
        rounds_of(codes, fewest) or without_rounds(codes)
        for codes in all_codes(applied, run.machine_trace.codes)
    ]
    times = RunTimes(applied, tables, few_pieces=few_pieces)
    times.extend(traces)
    return times


def test_rows_take_as_long_as_the_matrix_that_they_walk_through() -> None:
    """An element, or the end of a row, in a cycle [closed form of the loops]."""
    few, more = walks(1600), walks(1900)
    entries = round(0.4 * 150 * 16)
    assert {few.kernel, more.kernel} == {"runs"}
    assert more.cycles - few.cycles == 300 * (entries + 150)
    for run in (few, more):
        known = run_ahead(run.program, run.machine_trace)
        assert (known.cycles, known.nodes) == (run.cycles, run.nodes)


@pytest.mark.parametrize("fusion", ["none", "layer", "all"])
def test_rows_that_arrive_late(fusion: str) -> None:
    """Rows of a graph with nodes of many neighbors, and of none, feed a walk."""
    n, f = 60, 90
    rng = np.random.default_rng(3)
    degree = rng.integers(0, 5, n) ** 2
    adjacency = rng.random((n, n)) < degree[:, None] / n
    text = """
        T(i,j) = A(i,k) * X(k,j)
        L(i,h) = T(i,j) * W(j,h)
        H(i,h) = relu(L(i,h))
        U(i,h) = A(i,k) * H(k,h)
    """
    program = sparse.program(text, formats={"A": "ss", "W": "ss"}).fuse(fusion)
    W = np.where(rng.random((f, 16)) < 0.4, 1.0, 0.0)
    result = program.simulate({"A": adjacency * 1.0, "X": rng.random((n, f)), "W": W})
    known = 0
    for run in (stage for one in result.runs for stage in one.result.stages):
        for few_pieces in (0, 16):
            times = timed(run, 64, few_pieces)
            while times.advance():
                pass
            tally, expected = (
                times.tally(interrupted=False),
                run_ahead(run.program, run.machine_trace),
            )
            known += int(times._states[:, KNOWN].clip(0).sum())
            assert tally.cycles == expected.cycles
            assert tally.starved.sum() == sum(node.starved for node in expected.nodes.values())
    assert known


@pytest.mark.parametrize(("f", "h"), [(17, 3), (5, 3), (9, 2)])
def test_a_channel_that_is_several_steps_of_a_node(f: int, h: int) -> None:
    """Sums of rows in two banks, merged by rules that wait for these in different orders.

    The merging nodes starve on each token of a slow bank, within the round of two rows.
    """
    kernel = sparse.compile(sparse.parse("Y(i,j) = X(i,k)*W(k,j)"), "reorder(i,k,j)")
    (run,) = kernel.simulate({"X": np.ones((60, f)), "W": np.ones((f, h))}).stages
    nodes = tuple(
        node if "merge" in node.node.name else slow_node(node) for node in run.program.nodes
    )
    times = timed(replace(run, program=replace(run.program, nodes=nodes)), 4, 0)
    while times.advance():
        pass
    several = [len(set(node.steps)) < len(node.steps) for node in times._tables.nodes]
    assert times._states[several, KNOWN].min() > 0
    tally = times.tally(interrupted=False)
    found = assemble(times._program, tally, {}, "native", kernel="runs")
    expected = run_ahead(replace(run.program, nodes=nodes), run.machine_trace)
    assert (found.cycles, found.nodes) == (expected.cycles, expected.nodes)


def test_random_rounds() -> None:
    """Rows that come again make rounds of every kind of node, with random latencies."""
    known = 0
    for seed in range(40):
        for run in random_runs(seed, repeating=True):
            assert not differing(run, seed), seed
            times = timed(run, 16, 0)
            while times.advance():
                pass
            known += int(times._states[:, KNOWN].clip(0).sum())
    assert known > 100


def test_what_channels_hold_in_an_interrupted_run() -> None:
    """What was sent and not taken, which are runs and rounds of them."""
    run = walks(40)
    assert run.machine_trace is not None
    times, applied = timed(run), run.program.traced(run.machine_trace)
    tables = runs_of(applied)
    assert tables is not None
    codes = [c.expanded for c in all_codes(applied, run.machine_trace.codes)]

    def left_by(firings: Array) -> Array:
        left = np.zeros(len(applied.channel_of_element), np.int64)
        for node, whole, fired in zip(tables.nodes, codes, firings, strict=True):
            moves = ((node.puts, node.sends, 1), (node.takes, node.steps, -1))
            for masks, elements, sign in moves:
                if elements:
                    moved = -masks.reshape(-1, len(elements))[whole[:fired]].sum(axis=0)
                    left[list(elements)] += sign * moved
        return left

    sent = sorted(element for node in tables.nodes for element in node.sends)
    whole = left_by(applied.control.firings)
    paired = [element for element in sent if not whole[element]]  # others are looked at with these
    assert len(paired) > len(sent) // 2
    most = 0
    for visit in times._visits:
        visit()
        tally = times.tally(interrupted=True)
        expected = left_by(tally.firings)
        np.testing.assert_array_equal(tally.left[paired], expected[paired])
        most = max(most, int(expected[paired].max()))
    assert most > 1000


def test_a_limit_of_cycles() -> None:
    run = walks(1600)
    trace = run.machine_trace
    whole = retime(run.program, trace, limits=Limits(max_cycles=run.cycles))
    assert (whole.kernel, whole.cycles, whole.nodes) == ("runs", run.cycles, run.nodes)
    cut = retime(run.program, trace, limits=Limits(max_cycles=run.cycles // 2))
    assert (cut.kernel, cut.ending, cut.cycles) == ("run-ahead", Ending.LIMIT, run.cycles // 2)
