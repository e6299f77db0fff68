"""``t2s.search``: legal designs, exact blocks, bounds that are bounds, and proved winners."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sqlite3
import time
import warnings
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from dataclasses import replace
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import t2s
from benchmarks.search_published import MOST_ABOVE, ROWS
from t2s import Float, Func, ImageParam, Int, Param, RDom
from t2s.command.main import app
from t2s.design_space.branch_and_bound import Cut, Objective, Search, best_first
from t2s.design_space.energy import counts
from t2s.design_space.journal import Journal, Outcome
from t2s.design_space.point import Drain, Feed, Point
from t2s.design_space.space import Space
from t2s.design_space.workers import Ending
from t2s.devices import DEVICES
from t2s.driver.search import Found, _Ranking
from t2s.driver.search_trial import ContractionTrial, random_inputs
from t2s.driver.simulate import times
from t2s.errors import T2SWarning, UserError
from t2s.report.page.traffic import moved_bytes, operations_of, token_bytes, tokens_of
from tests.design_space.contractions import (
    KERNELS,
    UNUSUAL,
    banded_in_blocks,
    capsules,
    convolution,
    folded,
    gemm,
    matrix_vector,
    mttkrp,
    ttm,
    ttmc,
)
from tests.design_space.test_space import ODD, check_random_points, space_of


def check_winner(make: Callable[[], Func], seconds: float) -> None:
    """Nothing is refused; values, cycles and the program of the winner are right."""
    found = t2s.search(make(), dsp=16, seconds=seconds, progress=False)
    assert (found.refused, found.over_budget) == ({}, 0)
    inputs = random_inputs(found.design)
    result = t2s.simulate(found.design, inputs, device="arria10")
    assert result.cycles == found.cycles
    np.testing.assert_array_equal(result.outputs[found.name], t2s.interpret(make(), inputs))
    assert found.program()  # is run and compared


def test_definitions_and_devices_of_all_kinds() -> None:
    for number, make in enumerate([*UNUSUAL.values()][::2]):
        device = ODD if number % 2 else DEVICES["arria10"]
        check_random_points(make(), points=2, seed=number, device=device)
        check_winner(make, seconds=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", UNUSUAL)
def test_many_points_of_all_kinds(kernel: str) -> None:
    for device in (DEVICES["arria10"], ODD, ODD.with_memory("ddr4-2133x2")):
        check_random_points(UNUSUAL[kernel](), points=25, seed=4, device=device)
    check_winner(UNUSUAL[kernel], seconds=3)


def test_a_parameter_that_is_missing_is_told() -> None:
    A, B = ImageParam(Float(32), 2, name="A"), ImageParam(Float(32), 2, name="B")
    flag, i, k, y = Param(Int(32), name="flag"), t2s.Var("i"), RDom(0, 9, name="k"), Func("y")
    y[i] = 0.0
    y[i] += t2s.select(flag > 0, A[i, k], B[i, k])
    with pytest.raises(UserError, match="the parameter flag is missing"):
        t2s.search(y.bound(i, 0, 5), dsp=4, progress=False)


def test_a_search_with_a_dram() -> None:
    """Bounds count what has to move at the peak of the memory."""
    product = matrix_vector(512, 256)
    found = t2s.search(product, memory="ddr4-2133", dsp=64, seconds=5, progress=False)
    assert found.cycles == t2s.cycles(found.design, device="arria10", memory="ddr4-2133")
    peak = t2s.memories.MEMORIES["ddr4-2133"].peak_bytes_per_second / 215e6
    assert found.lower_bound >= 0.98 * 512 * 256 * 4 / peak


@pytest.mark.parametrize("kernel", KERNELS)
def test_values_of_winners(kernel: str) -> None:
    """The search compares the values of every winner itself; here once more."""
    func = KERNELS[kernel]()
    found = t2s.search(func, dsp=32, seconds=0.5, progress=False)
    inputs = random_inputs(found.design)
    result = t2s.simulate(found.design, inputs, device="arria10")
    rounding = 1e-5 if kernel == "exponentials" else 0  # sums of others are exact in any order
    expected = t2s.interpret(func, inputs)
    np.testing.assert_allclose(result.outputs[func.name], expected, rtol=rounding)
    assert result.cycles == found.cycles
    assert not func.plan


@pytest.fixture(scope="module")
def tiny() -> tuple[Space, ContractionTrial, list[Any]]:
    """A space so small that each of its points is run: with the costs and cycles of all."""
    space, trial = space_of(gemm(2, 2, 3), dsp=2, ram=8)
    points = []
    for family in space.families():
        shapes = space.shapes(family)
        costs = space.costs(shapes, family.ways)
        for row in np.flatnonzero(costs.legal).tolist():
            cycles, dsp, ram = trial.timed(space.point(shapes, row, family.ways))
            points.append((cycles, dsp, ram, int(costs.bytes[row])))
    return space, trial, points


def test_the_front_is_that_of_all_points(tiny: Any) -> None:
    _, _, points = tiny
    found = t2s.search(
        gemm(2, 2, 3), objective="front", budget={"dsp": 2, "ram": 8}, progress=False
    )
    assert found.complete
    best = {
        costs
        for costs in points
        if not any(
            other != costs and all(a <= b for a, b in zip(other, costs, strict=True))
            for other in points
        )
    }
    front = [(each.cycles, each.dsp, each.ram, each.bytes) for each in found.front]
    assert set(front) == best
    assert len(front) == len(best) == 6
    assert found.tried < len(points) * 0.8
    assert [cycles for cycles, *_ in front] == sorted(cycles for cycles, *_ in front)
    assert t2s.cycles(found.front[3].design, device="arria10") == found.front[3].cycles
    assert f"proved: the front of the space, {len(best)} designs" in str(found)


PRICES = {"DRAM byte": 20.0, "RAM byte": 1.2, "channel byte": 0.3, "multiply": 3.7, "cycle": 9.0}


def test_energy_counts_are_those_of_runs() -> None:
    for kernel in ("gemm", "mttkrp"):
        space, trial = space_of(KERNELS[kernel](), dsp=64)
        operations = trial.energy(PRICES, space).operations
        generator = random.Random(4)
        families = space.families()
        points = 0
        while points < 4:
            family = generator.choice(families)
            shapes, way = space.shapes(family), family.ways
            row, costs = generator.randrange(len(shapes)), space.costs(shapes, way)
            if not costs.legal[row] or way.feeds[0] is Feed.DIRECT:
                continue
            points += 1
            design = trial.design(space.point(shapes, row, way))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of buffers that fill slowly
                run = times(design, device=trial.device)
            passed = {
                timing.channel: tokens_of(run.program, timing) * token_bytes(timing.channel)
                for timing in run.program.channels
            }
            feeders = [node.name for node in run.nodes.values() if node.name.endswith("_feeder")]
            buffered = [
                size
                for channel, size in passed.items()
                for end in (
                    {channel.source, channel.sink} if channel.source != channel.sink else ()
                )
                if end in feeders
            ]
            counted = {
                kind: int(column[row])
                for kind, column in counts(operations, space, shapes, way, costs.bytes).items()
            }
            assert counted.pop("DRAM byte") == sum(
                moved_bytes(run.program, timing) for timing in run.program.nodes
            )
            assert counted.pop("channel byte") == sum(passed.values())
            assert counted.pop("RAM byte") == sum(buffered)
            assert sum(counted.values()) == sum(
                operations_of(run.program, timing, run.nodes[timing.node.name].total_firings)
                for timing in run.program.nodes
            )


def test_the_least_energy(tiny: Any) -> None:
    """Against all points: energies, which follow from counts, and the exact cycles."""
    space, trial, points = tiny
    energy = trial.energy(PRICES, space)
    exact, at = [], 0
    families = space.families()
    for family, bound in zip(families, energy.of_families(space, families), strict=True):
        shapes = space.shapes(family)
        costs = space.costs(shapes, family.ways)
        dynamic = energy.dynamic(space, shapes, family.ways, costs.bytes)
        for row in np.flatnonzero(costs.legal).tolist():
            exact.append(float(dynamic[row]) + 9.0 * points[at][0])
            assert exact[-1] >= bound
            at += 1
    found = t2s.search(
        gemm(2, 2, 3), dsp=2, ram=8, objective="energy", energy=PRICES, progress=False
    )
    assert found.complete
    assert found.best.energy == found.lower_bound == pytest.approx(min(exact))
    assert found.tried < len(points) / 4
    assert "proved: no design of the space takes less energy" in str(found)
    priced = t2s.search(gemm(2, 2, 3), dsp=2, ram=8, energy=PRICES, progress=False)
    assert priced.cycles == min(points)[0]
    assert priced.best.energy is not None


@pytest.mark.parametrize("objective", Objective)
def test_runs_that_are_cut_short_change_nothing(tiny: Any, objective: Objective) -> None:
    """Neither winners nor fronts, and not what is proved."""
    space, trial, _ = tiny
    energy = trial.energy(PRICES, space) if objective is Objective.ENERGY else None
    cuts: list[Cut] = []
    exact: dict[Point, Outcome] = {}

    def whole(point: Point, cut: Cut) -> Outcome:
        exact[point] = exact.get(point) or trial.outcome(point)
        return exact[point]

    def sharp(point: Point, cut: Cut) -> Outcome:
        outcome = whole(point, cut)
        if outcome.cycles is None or cut.cycles is None or outcome.cycles <= cut.cycles:
            return outcome
        cuts.append(cut)
        return replace(outcome, cycles=None, more_than=cut.cycles)

    def tired(point: Point, cut: Cut) -> Outcome:
        """Every run takes too many steps before others are decided."""
        outcome = whole(point, cut)
        return outcome if cut.steps is None else replace(outcome, cycles=None, more_than=1)

    options: dict[str, Any] = {"seconds": 60, "objective": objective, "energy": energy}
    before, after, late = (
        best_first(space, measure, **options) for measure in (whole, sharp, tired)
    )
    assert before.best is not None
    assert before.complete
    assert cuts
    assert after.cut == len(cuts)
    assert late.tried - late.cut < before.tried + late.cut
    for state in (after, late):
        assert state.complete
        assert state.best is not None
        assert state.rank(state.best) == state.rank(before.best)
        assert state.lower_bound == before.lower_bound
        assert set(state._front) == set(before._front)
    assert after.tried == before.tried


@pytest.mark.parametrize("few", [True, False])
def test_runs_of_many_steps_take_turns_with_others(tiny: Any, few: bool) -> None:
    """A second run follows where most points need one, and waits where the others decide."""
    space, trial, _ = tiny
    firsts: list[Point] = []
    seconds: list[Point] = []

    def measure(point: Point, cut: Cut) -> Outcome:
        outcome: Outcome = trial.outcome(point)
        if point in firsts:
            seconds.append(point)
            return outcome
        firsts.append(point)
        done = few and len(firsts) % 4
        return outcome if done else replace(outcome, cycles=None, more_than=1)

    state = best_first(space, measure, seconds=60)
    assert state.complete
    assert len(set(seconds)) == len(seconds)
    if few:
        assert 0 < len(seconds) <= len(firsts) // 4 + 1
    else:
        assert firsts[: len(seconds)] == seconds  # each of them before the next point


def test_points_of_equal_costs_come_after_others() -> None:
    """Tiles of two loops that all operands treat alike: most likely they take equal cycles."""
    C = KERNELS["ttm"]()
    found = t2s.search(C, dsp=64, seconds=3, progress=False)
    kinds = {str(design.decisions).split(";")[0].split(",")[0] for design in found.designs[:16]}
    assert len(kinds) > 1


def test_a_run_that_is_cut_short_too_soon_is_left(tiny: Any) -> None:
    """After a deadline, and from a journal of a search with a better design."""
    space, trial, _ = tiny
    bounds: list[int] = []

    def measure(point: Point, cut: Cut) -> Outcome:
        outcome = trial.outcome(point)
        if not bounds:
            bounds.append(outcome.cycles or 0)
            return outcome
        return replace(outcome, cycles=None, more_than=bounds[0] - 2)

    known: dict[Point, Outcome] = {}
    state = best_first(space, measure, seconds=0.5, record=known.__setitem__)
    assert not state.complete
    assert state.best is not None
    assert state.best.cycles == bounds[0]
    assert state.lower_bound is not None
    assert state.lower_bound < bounds[0]
    assert state.ending is Ending.DEADLINE
    again = best_first(space, trial.outcome, seconds=60, recall=known.get)
    assert again.complete
    assert again.best is not None
    assert again.best.cycles == again.lower_bound


def test_a_deadline_ends_a_run() -> None:
    """A design that memory holds up, whose run would take minutes."""
    _, trial = space_of(gemm(4096, 4096, 4096), dsp=1280)
    forwarded = Point(
        rows=(("i", 8), ("j", 8)),
        tiles=(4, 4),
        lanes=16,
        feeds=(Feed.FORWARDED, Feed.FORWARDED),
        drain=Drain.STORED,
    )
    begun = time.monotonic()
    outcome = trial.outcome(forwarded, Cut(until=time.time() + 0.5))
    assert time.monotonic() - begun < 8  # lowering it, and the first compilation of a process
    assert (outcome.cycles, outcome.dsp_blocks) == (None, 1024)
    assert outcome.more_than is not None
    slow = trial.outcome(forwarded, Cut(cycles=60_000_000))
    assert slow.more_than is not None
    assert slow.more_than >= 60_000_000
    few = trial.outcome(forwarded, Cut(steps=100_000_000))
    assert few.more_than is not None
    assert few.more_than > 4096**3 // (64 * 16)


@pytest.fixture(scope="module")
def found() -> Found:
    return t2s.search(gemm(12, 10, 8), dsp=16, ram=60, progress=False)


@pytest.mark.slow
def test_the_winner_is_the_best_of_all() -> None:
    """Against all points of a small space, each of them run."""
    space, trial = space_of(gemm(6, 5, 4), dsp=6, ram=40)
    best = best_first(space, trial.outcome, seconds=60)
    assert best.best is not None
    assert best.best.cycles == best.lower_bound
    exact = []
    for family in space.families():
        shapes = space.shapes(family)
        for row in np.flatnonzero(space.costs(shapes, family.ways).legal)[::5]:
            outcome = trial.outcome(space.point(shapes, int(row), family.ways))
            assert outcome.cycles is not None, outcome.refusal
            exact.append(outcome.cycles)
    assert len(exact) > 150
    assert min(exact) >= best.best.cycles


def test_what_a_search_says(found: Found) -> None:
    assert found.complete
    assert found.gap == 0
    assert found.cycles == found.lower_bound == t2s.cycles(found.design, device="arria10")
    blocks = t2s.resources(found.design, device="arria10")
    assert (found.best.dsp, found.best.ram) == (blocks.dsp_blocks, blocks.ram_blocks)
    assert blocks.dsp_blocks <= 16
    assert blocks.ram_blocks <= 60
    assert "proved: no design of the space is faster" in str(found)
    assert found.front[0] is found.best
    assert [d.cycles for d in found.designs] == sorted(d.cycles for d in found.designs)
    assert "<table" in (card := found._repr_html_())
    kinds = [{getattr(each, kind) for each in found.designs} for kind in ("dsp", "ram")]
    assert card.count("<svg") == sum(len(kind) > 1 for kind in kinds) > 0
    assert found.lines == tuple(found.program().splitlines())
    assert found.space.startswith("one or two of i, j as PEs")
    assert "k as PEs, alone or beside one of i, j" in found.space
    assert "Not in it: skewed space-time maps" in found.space


def test_why_others_lost(found: Found, tmp_path: Path) -> None:
    slower = found.runner_up
    assert slower is not None
    assert found.designs[slower - 2].cycles == found.cycles
    text = found.why(slower)
    cycles = found.designs[slower - 1].cycles
    assert text.startswith(f"design {slower} takes {cycles} cycles, the best design {found.cycles}")
    assert "The largest change is " in text
    comparison = t2s.compare(found.best, found.designs[slower - 1])
    assert comparison.change == cycles - found.cycles
    assert sum(cause.change for cause in comparison.causes) == comparison.change
    page = found.report(tmp_path / "page.html").read_text()
    for title in ("The best design of C", "Cycles against blocks", f"Why design {slower} lost"):
        assert title in page
    assert "Where the cycles went" in page
    assert found.designs[1].decisions in page
    with pytest.raises(UserError, match="cost= must be one of the costs that a picture shows"):
        found.picture("cycles")


def test_equal_searches_find_equal_designs(found: Found) -> None:
    again = t2s.search(gemm(12, 10, 8), dsp=16, ram=60, progress=False)
    assert str(again) == str(found)


def _row_sums() -> Func:
    n = Param(Int(32), name="n")
    v, y, i = ImageParam(Float(32), 2, name="v"), Func("y"), t2s.Var("i")
    k = RDom(0, n, name="k")
    y[i] = 0.0
    y[i] += v[i, k]
    return y.bound(i, 0, 24)


def test_why_runs_on_the_device_memory_and_sizes_of_the_search() -> None:
    mine = replace(DEVICES["arria10"], name="mine", load_latency=7)
    for func, options in (
        (gemm(4, 3, 4), {"memory": "ddr4-2133x2"}),
        (gemm(4, 3, 4), {"device": mine}),
        (_row_sums(), {"inputs": {"n": 12}}),
    ):
        found = t2s.search(func, dsp=2, ram=8, seconds=2, progress=False, **options)
        assert len(found.designs) > 1
        device = {name: options[name] for name in ("device", "memory") if name in options}
        counted = t2s.cycles(found.design, options.get("inputs"), **{"device": "arria10", **device})
        assert found.cycles == counted
        second = f"design 2 takes {found.designs[1].cycles:,} cycles, the best design {counted:,}"
        assert second in found.why(2)


def test_names_that_are_taken() -> None:
    """New loops and Funcs avoid the names of the definition."""
    A, it = ImageParam(Float(32), 2, name="A"), t2s.Var("it")
    i, A_loader = t2s.Var("i"), ImageParam(Float(32), 2, name="A_loader")
    k, C = RDom(0, 12, name="k"), Func("C")
    C[i, it] = 0.0
    C[i, it] += A[i, k] * A_loader[it, k]
    C.bound(i, 0, 12).bound(it, 0, 8)
    assert t2s.search(C, dsp=8, seconds=0.5, progress=False).cycles > 0


def test_a_search_that_is_cut_short() -> None:
    found = t2s.search(gemm(64, 48, 96), dsp=64, seconds=1e-6, progress=False)
    assert not found.complete
    assert 0 < found.lower_bound < found.cycles
    assert "is left" in str(found)


def test_the_command_writes_a_program_that_runs_to_the_same_cycles(
    found: Found, tmp_path: Path
) -> None:
    definition, best = tmp_path / "definition.py", tmp_path / "best.py"
    definition.write_text(t2s.program(gemm(12, 10, 8)))
    options = ["--dsp", "16", "--ram", "60", "--out", str(best)]
    searched = CliRunner().invoke(app, ["search", str(definition), *options])
    assert searched.exit_code == 0, searched.output
    assert f"{found.cycles:,} on arria10" in searched.output
    assert best.read_text() == found.program()
    ran = CliRunner().invoke(
        app, ["run", str(best), "--device", "arria10", "--json", "--out", str(tmp_path)]
    )
    assert ran.exit_code == 0, ran.output
    assert f'"cycles": {found.cycles}' in ran.output
    assert found.save(tmp_path / "again.py").read_text() == found.program()
    assert CliRunner().invoke(app, ["search", str(best)]).exit_code == 1


def test_the_record_of_the_command(found: Found, tmp_path: Path) -> None:
    definition, page = tmp_path / "definition.py", tmp_path / "page.html"
    definition.write_text(t2s.program(gemm(12, 10, 8)))
    options = ["--dsp", "16", "--ram", "60", "--executor", "1", "--report", str(page)]
    options += ["--journal", str(tmp_path / "search.db"), "--energy", "multiply=3.7"]
    ran = CliRunner().invoke(app, ["search", str(definition), "--json", *options])
    assert ran.exit_code == 0, ran.output
    record = json.loads(ran.stdout)
    assert record["schema"] == "t2s.search/1"
    assert (record["design"], record["device"], record["memory"]) == ("C", "arria10", None)
    assert (record["objective"], record["ended"]) == ("time", "finished")
    assert (record["cycles"], record["lower_bound"], record["gap"]) == (234, 234, 0)
    assert record["budget"] == {"dsp": 16, "ram": 60}
    assert record["program"] == found.program()
    best = record["designs"][0]
    assert (best["cycles"], best["dsp_blocks"], best["bytes"]) == (234, 16, 8160)
    assert best["energy"] == pytest.approx(12 * 10 * 8 * 3.7)
    assert record["front"][0] == 0
    assert "Where the cycles went" in page.read_text()
    for options, text in (
        (["--energy", "multiply"], "--energy needs a kind of access and a number"),
        (["--objective", "area"], "objective= must be the name of an objective"),
        (["--executor", "threads"], "executor= is nothing that runs a search"),
    ):
        ran = CliRunner().invoke(app, ["search", str(definition), "--json", *options])
        assert (ran.exit_code, ran.stdout) == (1, "")
        assert text in ran.stderr


def test_the_ranking_on_a_terminal(found: Found) -> None:
    """What rich shows above the bar, and in it."""
    space, trial = space_of(gemm(12, 10, 8), dsp=16, ram=60)
    with _Ranking(trial, False) as ranking:
        states: list[Search] = []
        state = best_first(space, trial.outcome, seconds=0.5, report=states.append)
        ranking.update(state)
        table = ranking.table(state)
        assert len(table.rows) <= 5
        assert table.rows[0][1] == f"{state.best.cycles:,}" if state.best else False
        assert re.fullmatch(r"bound [\d,]+, gap \d+\.\d\d%", ranking._left)
        assert ranking._above() is not None


class Mortal(Executor):
    """Runs what it is given at once, and is gone after some batches."""

    _max_workers = 1

    def __init__(self, lives: int) -> None:
        self.lives = lives

    def submit(self, function: Any, /, *arguments: Any, **keywords: Any) -> Future[Any]:
        self.lives -= 1
        if self.lives < 0:
            raise BrokenExecutor("no worker is left")
        future: Future[Any] = Future()
        future.set_result(function(*arguments, **keywords))
        return future


def test_an_executor_that_is_gone(tmp_path: Path) -> None:
    """The best so far with its gap, and a journal with all of it."""
    path, func = tmp_path / "search.db", gemm(64, 48, 96)
    with pytest.warns(T2SWarning, match="the executor of the search is gone") as caught:
        found = t2s.search(func, dsp=64, executor=Mortal(3), journal=path, progress=False)
    assert "given:    no worker is left" in str(caught[0].message)
    assert (found.ending, found.complete) == (Ending.GONE, False)
    assert found.tried >= 3
    assert 0 < found.gap < 0.1
    assert "the executor was gone" in str(found)
    with sqlite3.connect(path) as connection:
        (rows,) = connection.execute("SELECT count(*) FROM outcomes").fetchone()
    connection.close()
    assert rows == found.tried
    again = t2s.search(func, dsp=64, seconds=1e-6, journal=path, progress=False)
    assert (again.cycles, again.ending) == (found.cycles, Ending.DEADLINE)
    assert again.lower_bound <= found.lower_bound
    with pytest.raises(UserError, match="the executor of the search is gone"):
        t2s.search(func, dsp=64, executor=Mortal(0), progress=False)


def test_ctrl_c_ends_a_search_with_the_best_so_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, func = tmp_path / "search.db", gemm(12, 10, 8)
    outcome, calls = ContractionTrial.outcome, count(1)

    def interrupted(trial: ContractionTrial, *arguments: Any) -> Outcome:
        if next(calls) == 3:
            raise KeyboardInterrupt
        return outcome(trial, *arguments)

    monkeypatch.setattr(ContractionTrial, "outcome", interrupted)
    found = t2s.search(func, dsp=16, ram=60, journal=path, progress=False)
    assert (found.ending, found.complete, found.tried) == (Ending.INTERRUPTED, False, 2)
    assert 0 < found.lower_bound <= found.cycles
    assert "Ctrl-C ended the search" in str(found)
    again = t2s.search(func, dsp=16, ram=60, journal=path, progress=False)
    assert again.complete
    assert again.tried == next(calls) - 2  # the two of the first search were in the journal
    monkeypatch.setattr(ContractionTrial, "outcome", interrupted)
    calls = count(3)
    with pytest.raises(KeyboardInterrupt):
        t2s.search(func, dsp=16, ram=60, progress=False)


def test_a_search_that_goes_on(found: Found, tmp_path: Path) -> None:
    """A journal has what was timed, and processes find what this one does."""
    path = tmp_path / "search.db"
    first = t2s.search(gemm(12, 10, 8), dsp=16, ram=60, seconds=1e-6, journal=path, progress=False)
    assert first.tried == 1
    again = t2s.search(gemm(12, 10, 8), dsp=16, ram=60, journal=path, executor=2, progress=False)
    assert (again.cycles, again.complete) == (found.cycles, True)
    with pytest.raises(UserError, match="journal"):
        t2s.search(gemm(12, 10, 9), dsp=16, journal=path, progress=False)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("distributed") is None, reason="needs dask[distributed]")
@pytest.mark.filterwarnings("ignore")  # of Dask, about ports and closed connections
def test_a_cluster_finds_the_same_and_loses_nothing_with_a_worker(
    found: Found, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two workers, one of which is killed; then the cluster ends while it searches."""
    from distributed import Client, LocalCluster

    path, outcomes = tmp_path / "search.db", count(1)
    put = Journal.put

    def stopping(journal: Journal, items: Any) -> int:
        if next(outcomes) == 3:
            stop()
        return put(journal, items)

    monkeypatch.setattr(Journal, "put", stopping)
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster) as client:

        def stop() -> None:
            process = client.run(os.getpid)
            os.kill(next(iter(process.values())), signal.SIGKILL)

        again = t2s.search(
            gemm(12, 10, 8), dsp=16, ram=60, executor=client, journal=path, progress=False
        )
    assert (again.cycles, again.complete, again.refused) == (found.cycles, True, {})
    with sqlite3.connect(path) as connection:
        (rows,) = connection.execute("SELECT count(*) FROM outcomes").fetchone()
    connection.close()
    assert rows == again.tried  # each once
    outcomes = count(1)
    cluster = LocalCluster(**options)
    client = Client(cluster)

    def stop() -> None:
        client.close()
        cluster.close()

    path = tmp_path / "other.db"
    func = gemm(64, 48, 96)
    with pytest.warns(T2SWarning, match="the executor of the search is gone"):
        gone = t2s.search(func, dsp=64, executor=client, journal=path, progress=False)
    assert (gone.ending, gone.complete) == (Ending.GONE, False)
    with sqlite3.connect(path) as connection:
        (rows,) = connection.execute("SELECT count(*) FROM outcomes").fetchone()
    connection.close()
    assert rows == gone.tried >= 3


HAND = {
    "gemm": (lambda: gemm(320, 256, 1024), (1280, 1369, 85_204), 65_848),
    "gemm of 1000": (lambda: gemm(1000, 1000, 1000), (1280, 1369, 1_068_244), 782_000),
    "mttkrp": (lambda: mttkrp(128, 72, (16, 64)), (1224, 179, 9_432), 8_601),
    "ttm": (lambda: ttm((4, 32, 352), 512), (1408, 211, 18_568), 17_405),
    "ttmc": (lambda: ttmc((8, 16, 80), (16, 32)), (1360, 195, 4_802), 4_400),
    "convolution": (lambda: convolution((4, 20, 4, 128), 3, 32), (1280, 193, 10_708), 9_852),
    "capsules": (lambda: capsules(4, 20, 2, (32, 64)), (1280, 193, 10_708), 9_900),
    "gbmv": (lambda: banded_in_blocks(32, 16, 1056), (34, 54, 33_985), 28_632),
    "syrk": (lambda: folded(4, 128, 256), (1152, 528, 42_644), 42_300),
}
"""Definition, blocks and cycles of the design in the examples, and cycles that are to be found."""


@pytest.mark.slow
@pytest.mark.parametrize("kernel", HAND)
def test_hand_designs_are_beaten(kernel: str) -> None:
    """The designs of the examples, at their sizes and with no more blocks than they take."""
    define, (dsp, ram, by_hand), enough = HAND[kernel]
    found = t2s.search(define(), dsp=dsp, ram=ram, seconds=100, progress=False)
    assert found.cycles <= enough < by_hand
    assert found.gap <= (0.03 if kernel == "syrk" else 0.005)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "share"), [("gemm", 1), ("gemm", 0.5), ("ttmc", 0.5), ("mttkrp", 1)]
)
def test_published_sizes(name: str, share: float) -> None:
    """Hardly slower than designs that use all PEs in all but 0.01 % of the cycles, or less RAM."""
    row = ROWS[name]
    dsp, ram = row.blocks
    begun = time.process_time()
    found = t2s.search(row.definition(), dsp=dsp, ram=int(share * ram), seconds=40, progress=False)
    assert found.cycles <= (1 + MOST_ABOVE) * row.cycles
    assert found.gap <= 2 * MOST_ABOVE
    assert found.cycles == t2s.cycles(found.design, device="arria10")
    assert time.process_time() - begun < 60


@pytest.mark.slow
def test_ragged_sizes() -> None:
    found = t2s.search(gemm(250, 130, 77), dsp=1280, ram=1369, seconds=100, progress=False)
    assert found.cycles <= 2_530
    assert found.gap <= 0.03


def test_options_that_are_refused(found: Found) -> None:
    for options, text in (
        ({"device": "ideal"}, "the device ideal has no DSP and RAM blocks that would limit"),
        ({"budget": {"luts": 3}}, "budget= must map kinds of blocks to numbers"),
        ({"budget": {"dsp": 3}, "dsp": 4}, "budget= and dsp= both limit the blocks"),
        ({"objective": "area"}, "objective= must be the name of an objective"),
        ({"objective": "energy"}, 'objective="energy" needs the energy of each kind of access'),
        ({"energy": {"multiplication": 3}}, "energy= must map kinds of access to their energy"),
        ({"energy": {"multiply": -3}}, "energy= must map kinds of access to their energy"),
        ({"dsp": -1}, "dsp= must be a number of blocks"),
        ({"ram": "many"}, "ram= must be a number of blocks"),
        ({"seconds": 0}, "seconds= must be a time in seconds"),
    ):
        with pytest.raises(UserError, match=text):
            t2s.search(gemm(8, 8, 8), **options)  # type: ignore[arg-type]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserError, match="why"):
            found.why(1)
