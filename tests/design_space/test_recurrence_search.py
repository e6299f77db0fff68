"""Searches of recurrences: against designs by hand, all points, random points, and numpy."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import t2s
from t2s import Float, Func, ImageParam, Int, RDom
from t2s.design_space.columns import Budget
from t2s.design_space.point import Feed
from t2s.design_space.recurrence import recurrence_of
from t2s.design_space.recurrence_space import RecurrenceFamily, RecurrencePoint, RecurrenceSpace
from t2s.devices import DEVICES, Device
from t2s.driver.search_trial import RecurrenceTrial, random_inputs
from t2s.errors import UserError
from t2s.func.freeze import freeze
from tests.design_space.recurrences import (
    WRITTEN,
    Outputs,
    gauss_seidel,
    lu,
    pairhmm,
    prefix_sums,
    qr,
    trsm,
    without_directives,
)
from tests.design_space.test_search import ODD

ARRIA = DEVICES["arria10"]
Table = pairhmm.Sizes


def space_of(
    design: Outputs, *, dsp: int | None = None, device: Device = ARRIA
) -> tuple[RecurrenceSpace, RecurrenceTrial]:
    outputs = design if isinstance(design, tuple) else (design,)
    recurrence = recurrence_of(outputs, freeze(outputs, {}))
    trial = RecurrenceTrial(outputs, recurrence, {}, device)
    space, _ = trial.space(Budget(dsp=dsp, ram=None), None)
    return space, trial


def check_point(
    space: RecurrenceSpace, trial: RecurrenceTrial, family: RecurrenceFamily, point: RecurrencePoint
) -> bool:
    """Check costs and bounds against the lowered design; whether the compiler accepts the point."""
    costs, outcome = space.costs(point), trial.outcome(point)
    assert family.bound <= costs.bound
    if outcome.refusal is not None:
        return False
    assert outcome.cycles is not None
    assert outcome.bytes_moved is not None
    assert costs.bound <= outcome.cycles, point
    assert costs.dsp == outcome.dsp_blocks, point
    assert costs.bytes <= outcome.bytes_moved, point
    return True


def check_random_points(
    design: Outputs, points: int, *, seed: int = 0, device: Device = ARRIA
) -> None:
    """DSP blocks are as predicted, bounds at most the cycles, and families bound their points."""
    space, trial = space_of(design, dsp=1000, device=device)
    generator, families = random.Random(seed), space.families()
    timed = 0
    for _ in range(points):
        family = generator.choice(families)
        timed += check_point(space, trial, family, generator.choice([*space.points(family)]))
    assert timed >= points // 3


def hand_costs(design: Outputs) -> tuple[int, int, int]:
    blocks = t2s.resources(design, device="arria10")
    return t2s.cycles(design, device="arria10"), blocks.dsp_blocks, blocks.ram_blocks


def check_against(design: Outputs, cycles: int, **options: Any) -> t2s.Found:
    """A search with the blocks of a design by hand finds one as fast, whose program runs."""
    hand, dsp, ram = hand_costs(design)
    found = t2s.search(without_directives(design), dsp=dsp, ram=ram, progress=False, **options)
    assert (found.best.dsp <= dsp, found.best.ram <= ram) == (True, True)
    assert found.lower_bound <= found.cycles <= hand
    assert found.cycles <= cycles
    values: dict[str, Any] = {}
    exec(found.program(), values)
    written = [v for v in values.values() if isinstance(v, Func) and v.plan]
    assert written or found.best.decisions.startswith("one PE")
    outputs = values.get("design") or values[found.name]
    assert t2s.cycles(outputs, device="arria10") == found.cycles
    return found


def solved(found: t2s.Found, rows: int, columns: int) -> None:
    inputs = trsm.matrices(rows, columns)
    result = t2s.simulate(found.design, inputs)
    np.testing.assert_allclose(inputs["L"] @ result.outputs["U"], inputs["A"], rtol=1e-4, atol=1e-5)


def factored(found: t2s.Found, *sizes: int) -> None:
    inputs = lu.matrices(*sizes)
    result = t2s.simulate(found.design, inputs)
    np.testing.assert_allclose(lu.product(result.outputs["O"]), inputs["A"], rtol=1e-4, atol=1e-5)


def orthogonal(found: t2s.Found, sizes: Any) -> None:
    a = np.random.default_rng(0).random((sizes.batch, sizes.columns, sizes.rows), np.float32)
    result = t2s.simulate(found.design, {"A": a})
    q, r = result.outputs["Q"].transpose(0, 2, 1), result.outputs["R"]
    np.testing.assert_allclose(q @ r, a.transpose(0, 2, 1), atol=1e-4)


def likely(found: t2s.Found, sizes: Any) -> None:
    inputs = pairhmm.reads(sizes)
    result = t2s.simulate(found.design, inputs)
    np.testing.assert_allclose(result.outputs["out"], pairhmm.expected(inputs), rtol=1e-4)


def test_a_triangle_and_a_nest_with_lanes() -> None:
    """A triangular solve and a QR decomposition, at the blocks of the designs of the examples."""
    found = check_against(trsm.design(4, 16), 217)
    assert found.complete
    solved(found, 4, 16)
    found = check_against(qr.design(), 326)
    assert found.complete
    assert found.name == "Q and R"
    orthogonal(found, qr.TINY)


@pytest.mark.slow
def test_the_designs_of_the_examples() -> None:
    for rows, columns, cycles in ((8, 64, 343), (5, 7, 217)):
        solved(check_against(trsm.design(rows, columns), cycles), rows, columns)
    for sizes, cycles in (((4, 4, 4), 269), ((8, 16, 4), 488)):
        found = check_against(lu.design(*sizes), cycles, seconds=300)
        assert found.complete
        factored(found, *sizes)
    sizes = replace(qr.TINY, rows=16, columns=16, batch=4)
    orthogonal(check_against(qr.design(sizes), 3114), sizes)
    middle = Table(array=(4, 6), tiles=(4, 4), batch=(4, 4), batches=(2, 2))
    for sizes, cycles in ((pairhmm.TINY, 292), (middle, 1255)):
        likely(check_against(pairhmm.design(sizes), cycles, seconds=300), sizes)


@pytest.mark.slow
def test_many_tables_of_a_design_that_is_too_large_to_try_all() -> None:
    """The points that interleave enough tables are tried first."""
    large = Table(array=(8, 24), tiles=(16, 16), batch=(14, 14), batches=(2, 2))
    assert check_against(pairhmm.design(large), 210_000, seconds=60).gap < 0.05


def test_recurrences_that_users_write() -> None:
    for name, case in WRITTEN.items():
        found = t2s.search(case.make(), dsp=8, seconds=1, progress=False)
        inputs = random_inputs(found.design, around=1.0)
        result = t2s.simulate(found.design, inputs, device="arria10")
        assert (name, result.cycles) == (name, found.cycles)
        expected = case.expected(**inputs)
        np.testing.assert_allclose(result.outputs[found.name], expected, rtol=1e-5, err_msg=name)


def test_random_points() -> None:
    check_random_points(without_directives(trsm.design(5, 6)), 3)
    check_random_points(without_directives(pairhmm.design()), 2, seed=1)
    for case in WRITTEN.values():
        check_random_points(case.make(), 6)


def test_buffers_where_the_pes_do_not_divide_the_loop() -> None:
    """Three reads on two PEs, of which one has a single read."""
    sizes = Table(array=(2, 3), tiles=(1, 1), batch=(3, 2))
    space, trial = space_of(without_directives(pairhmm.design(sizes)), dsp=1000)
    family = next(each for each in space.families() if each.rows == (("r", 2),))
    buffered = [x for x in space.points(family) if x.feed is Feed.BUFFERED]
    assert {dict(each.interleaved).get("r", 1) for each in buffered} == {1, 2}
    for point in (buffered[0], buffered[-1]):
        assert check_point(space, trial, family, point), point


@pytest.mark.slow
def test_many_random_points() -> None:
    sizes = Table(array=(3, 5), tiles=(2, 2), batch=(3, 2))
    for device in (ARRIA, ODD, ODD.with_memory("ddr4-2133x2")):
        for case in WRITTEN.values():
            check_random_points(case.make(), 15, seed=2, device=device)
        for design in (
            trsm.design(6, 10),
            lu.design(3, 5, 4),
            qr.design(qr.Sizes(rows=4, columns=5, batch=3)),
            pairhmm.design(sizes),
        ):
            check_random_points(without_directives(design), 6, seed=3, device=device)


def test_the_best_of_all_points(tmp_path: Path) -> None:
    """Of a small space each point is timed; the search proves the same with fewer runs."""
    space, trial = space_of(prefix_sums(4, 5), dsp=4)
    costs = set()
    for family in space.families():
        for point in space.points(family):
            outcome = trial.outcome(point)
            if outcome.refusal is None:
                known = outcome.cycles, outcome.dsp_blocks, outcome.ram_blocks, outcome.bytes_moved
                costs.add(known)
    found = t2s.search(prefix_sums(4, 5), dsp=4, journal=tmp_path / "journal.db", progress=False)
    assert found.complete
    assert found.cycles == found.lower_bound == min(cycles for cycles, *_ in costs)
    assert found.tried < len(costs) // 2
    again = t2s.search(prefix_sums(4, 5), dsp=4, journal=tmp_path / "journal.db", progress=False)
    assert again.program() == found.program()
    front = t2s.search(prefix_sums(4, 5), dsp=4, objective="front", progress=False)
    assert front.complete
    best = {
        one
        for one in costs
        if not any(o != one and all(a <= b for a, b in zip(o, one, strict=True)) for o in costs)
    }
    assert {(each.cycles, each.dsp, each.ram, each.bytes) for each in front.front} == best


def test_budgets_that_nothing_fits() -> None:
    with pytest.raises(UserError, match="no design of s fits the budget") as caught:
        t2s.search(prefix_sums(4, 5), dsp=0, progress=False)
    hint = re.fullmatch(r"the nearest budget .* is dsp=(\d+), ram=(\d+)", str(caught.value.hint))
    assert hint is not None
    dsp, ram = map(int, hint.groups())
    found = t2s.search(prefix_sums(4, 5), dsp=dsp, ram=ram, seconds=1, progress=False)
    assert (found.best.dsp <= dsp, found.best.ram <= ram) == (True, True)


def test_a_nest_that_is_too_large_to_count() -> None:
    """Its bound is that of the steps of a PE."""
    space, _ = space_of(prefix_sums(2, 5_000_000), dsp=4)
    assert not space.recurrence.is_counted
    least = min(space.costs(each).bound for f in space.families() for each in space.points(f))
    assert least == space.families()[0].bound == 2_500_000 + ARRIA.store_latency


def _two_recurrences() -> Func:
    again, s = Func("again", type=Float(32)), prefix_sums(4, 5)
    b, i = t2s.variables("b i")
    again[b, i] = s[b, 4 - i] + t2s.select(i == 0, 0.0, again[b, i - 1])
    return again.bound(b, 0, 4).bound(i, 0, 5)


def _from_memory() -> Func:
    x, at = ImageParam(Float(32), 1, name="x", shape=(9,)), ImageParam(Int(32), 1, name="at")
    s, i = Func("s", type=Float(32)), t2s.Var("i")
    s[i] = t2s.select(i == 0, 0.0, s[i - 1]) + x[t2s.max(t2s.min(at[i], 8), 0)]
    return s.bound(i, 0, 5)


def _of_a_sum() -> Func:
    x, total, s = ImageParam(Float(32), 2, name="x"), Func("total"), Func("s", type=Float(32))
    i, k = t2s.Var("i"), RDom(0, 8, name="k")
    total[i] = 0.0
    total[i] += x[i, k]
    s[i] = t2s.select(i == 0, 0.0, s[i - 1]) + total[i]
    total.bound(i, 0, 5)
    return s.bound(i, 0, 5)


def test_definitions_that_are_refused() -> None:
    for make, text in (
        (_two_recurrences, "again needs 2 recurrences"),
        (_from_memory, "s reads x at places that at has"),
        (_of_a_sum, "s needs other Funcs with hardware of their own"),
        (lambda: (gauss_seidel(2, 4), prefix_sums(4, 5)), "line needs 2 recurrences"),
    ):
        with pytest.raises(UserError, match=text) as caught:
            t2s.search(make(), progress=False)
        assert caught.value.location is not None
    with pytest.raises(UserError, match="the energy of designs of s, a recurrence, is not known"):
        t2s.search(prefix_sums(4, 5), energy={"DRAM byte": 1.0}, progress=False)
