"""The space-time data of pages, read back: equal to the plain engine, firing by firing."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import pytest

from benchmarks.random_graphs import random_device, random_graph
from benchmarks.random_machines import random_machines
from t2s.driver.page_writer import write_page
from t2s.graph.nodes import PEArray
from t2s.graph.semantics import holds, iterations, space_points
from t2s.simulator.engine_registry import find_engine
from t2s.simulator.limits import Limits
from t2s.simulator.program.build import build_program
from t2s.simulator.program.sim_program import SimProgram
from t2s.simulator.reference_engine import MachinePE, _Run
from t2s.simulator.report.errors import DeadlockError
from t2s.simulator.report.result import SimResult
from t2s.simulator.timeline import PEState
from tests.report.page.reading import ReadStrip, strips_of
from tests.simulator.test_timeline import Watched

SEEDS = [pytest.param(n, marks=pytest.mark.slow) if n > 0 else n for n in range(20)]
MOST_CYCLES = 4_000


def _run(program: SimProgram, engine: str) -> SimResult | None:
    try:
        result = find_engine(engine).run(program, Limits(max_cycles=MOST_CYCLES))
    except DeadlockError:
        return None
    ended = result.finished and 0 < result.cycles < MOST_CYCLES
    return result if ended else None


class Expected:
    """What the plain engine does: states and causes by PE and cycle, and firings by PE."""

    def __init__(self, program: SimProgram) -> None:
        watched = Watched(program)
        self.states, self.causes = watched.states, watched.causes
        self.firings: list[list[tuple[int, ...]]] = []
        order = _rules(program)
        for timing in program.nodes:
            for place, point in enumerate(space_points(timing.node)):
                node, pe = timing.node, timing.first + place
                if not isinstance(node, PEArray):
                    self.firings.append([(code,) for code in order[pe]])
                    continue
                environments = list(iterations(node, point, program.parameters))
                active = [holds(node.active, environment) for environment in environments]
                names = [loop.name for loop in node.loops]
                self.firings.append(
                    [
                        tuple(int(environment[name]) for name in names)
                        for environment, fires in zip(environments, active, strict=True)
                        if fires
                    ]
                )


def _rules(program: SimProgram) -> dict[int, list[int]]:
    """The rules that machines take, from the plain engine's own run."""
    run = _Run(program, Limits(), None)
    run.to_the_end(Limits())
    return {n: pe.codes for n, pe in enumerate(run.pes) if isinstance(pe, MachinePE)}


def _agrees(result: SimResult, expected: Expected, page: Path, random: Random) -> None:
    windows = []
    for _ in range(3):
        first = random.randint(1, result.cycles)
        windows.append((first, random.randint(first, min(result.cycles, first + 150))))
    write_page("page", [result], page, windows=windows)
    strips = strips_of(page)
    assert [(strip.first, strip.last) for strip in strips[-3:]] == windows
    assert all(strip.exact for strip in strips[-3:])
    there = np.concatenate([timing.node.there for timing in result.program.nodes])
    for strip in strips:
        assert len(strip.rows) == there.sum()  # each PE has a row, and nothing else has
        _strip_agrees(result, expected, strip, there)


def _strip_agrees(
    result: SimResult, expected: Expected, strip: ReadStrip, there: np.ndarray
) -> None:
    states, causes = expected.states[there], expected.causes[there]
    edges = strip.edges.tolist()
    assert (edges[0] + 1, edges[-1]) == (strip.first, strip.last)
    for bin, (start, end) in enumerate(pairwise(edges)):
        for state in PEState:
            found = (states[:, start:end] == state).sum(axis=1)
            assert np.array_equal(strip.states[state][:, bin], found)
    before = (expected.states[:, : strip.first - 1] == PEState.BUSY).sum(axis=1)
    assert np.array_equal(strip.before, before[there])
    if not strip.exact:
        return
    inside = slice(strip.first - 1, strip.last)
    stalled = np.isin(states[:, inside], [PEState.STARVED, PEState.BLOCKED])
    assert np.array_equal(strip.causes[stalled], causes[:, inside][stalled])
    for number, timing in enumerate(result.program.nodes):
        fired = [
            point
            for pe in range(timing.first, timing.instances.stop)
            for point in _fired(expected, pe, before[pe], inside)
        ]
        if not fired or not fired[0]:
            continue
        assert [tuple(point) for point in strip.points[number].T.tolist()] == fired


def _fired(expected: Expected, pe: int, before: int, inside: slice) -> list[tuple[int, ...]]:
    count = int((expected.states[pe, inside] == PEState.BUSY).sum())
    return expected.firings[pe][int(before) : int(before) + count]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("engine", ["table", pytest.param("array", marks=pytest.mark.slow)])
def test_loop_nests(seed: int, engine: str, tmp_path: Path) -> None:
    graph = random_graph(seed)
    for device in random_device(seed):
        program = build_program(graph, device, None)
        result = _run(program, engine)
        if result is not None:
            _agrees(result, Expected(program), tmp_path / "page.html", Random(seed))


@pytest.mark.parametrize("seed", SEEDS)
def test_machines(seed: int, tmp_path: Path) -> None:
    graph, inputs = random_machines(seed)
    for device in random_device(seed):
        program = build_program(graph, device, inputs)
        result = _run(program, "native")
        if result is not None:
            _agrees(result, Expected(program), tmp_path / "page.html", Random(seed))
