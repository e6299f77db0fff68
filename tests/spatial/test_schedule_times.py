"""Cycles and firings of random schedules: what the schedule says, to the cycle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import t2s
from t2s import Func, ImageParam, Int, RDom, Var
from t2s.graph.printer import summarize_graph
from t2s.graph.serialize import graph_from_json, graph_to_json
from t2s.simulator.devices import DEVICES
from t2s.simulator.memory.spec import MEMORIES
from t2s.spatial.directives import space_time
from tests.sampling import sampled

Point = tuple[int, int, int]
Coefficients = tuple[int, int, int]
p, t = t2s.variables("p t")


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Sums over c and a for each b: extents, and where and when every iteration is."""

    extents: Point
    place: Coefficients
    time: Coefficients
    outside: bool = False

    @property
    def points(self) -> list[Point]:
        rows, outer, inner = self.extents
        return list(product(range(rows), range(outer), range(inner)))

    def func(self) -> Func:
        """The sums with their schedule; ``outside``: the loop over b stays outside of it."""
        rows, outer, inner = self.extents
        x, b, Z = ImageParam(Int(32), 3, name="x"), Var("b"), Func("Z")
        c, a = RDom(0, outer, 0, inner, name="c a")
        Z[b] = 0
        Z[b] += x[b, c, a]
        Z.bound(b, 0, rows)
        names = [c, a] if self.outside else [b, c, a]
        at, when = (
            sum((factor * name for factor, name in zip(factors, (b, c, a), strict=True)), 0 * a)
            for factors in (self.place, self.time)
        )
        return Z.space_time_transform(names, {p: at, t: when})

    def at(self, point: Point) -> tuple[int, int]:
        """The PE and the time of an iteration."""
        spot, time = (
            sum(x * y for x, y in zip(factors, point, strict=True))
            for factors in (self.place, self.time)
        )
        return spot, time

    def before(self, point: Point) -> Point | None:
        """The iteration whose sum an iteration adds to."""
        b, c, a = point
        if a:
            return b, c, a - 1
        return (b, c - 1, self.extents[2] - 1) if c else None

    def cycles(self) -> int:
        """From the first to the last iteration: slots one by one, values as late as links say."""
        slots: dict[int, list[tuple[tuple[int, ...], Point | None]]] = {}
        for point in self.points:
            spot, _ = self.at(point)
            slots.setdefault(spot, [])
        for spot in slots:
            rows: list[int | None] = [*range(self.extents[0])] if self.outside else [None]
            for row in rows:
                here = {
                    self.at(x)[1]: x
                    for x in self.points
                    if self.at(x)[0] == spot and row in (None, x[0])
                }
                for time in range(min(here, default=0), max(here, default=-1) + 1):
                    slots[spot].append(((row or 0, time), here.get(time)))
        return _fastest(slots, self)


def _fastest(
    slots: dict[int, list[tuple[tuple[int, ...], Point | None]]], schedule: Schedule
) -> int:
    events = sorted((key, spot, point) for spot, own in slots.items() for key, point in own if own)
    last: dict[int, int] = {}
    start: dict[Point, int] = {}
    for _, spot, point in events:
        cycle = last.get(spot, 0) + 1
        source = None if point is None else schedule.before(point)
        if point is not None and source is not None:
            other, sent = schedule.at(source)
            wait = schedule.at(point)[1] - sent if other != spot else 1
            cycle = max(cycle, start[source] + wait)
        if point is not None:
            start[point] = cycle
        last[spot] = cycle
    return max(last.values()) - min(start.values()) + 1


def _small(least: int, most: int) -> st.SearchStrategy[Coefficients]:
    one = st.integers(least, most)
    return st.tuples(one, one, one)


@st.composite
def schedules(draw: Callable[[st.SearchStrategy[object]], object]) -> Schedule:
    """Schedules in which no two iterations meet and sums have time; some with a loop outside."""
    drawn = Schedule(
        extents=draw(_small(1, 4)),  # type: ignore[arg-type]
        place=draw(_small(-1, 1)),  # type: ignore[arg-type]
        time=draw(_small(-1, 7)),  # type: ignore[arg-type]
    )
    if draw(st.integers(0, 2)) == 0:
        place, time = (0, *drawn.place[1:]), (0, *drawn.time[1:])
        drawn = replace(drawn, outside=True, place=place, time=time)
    spots = [(x[0] if drawn.outside else 0, *drawn.at(x)) for x in drawn.points]
    assume(len(set(spots)) == len(spots))
    for point in drawn.points:
        source = drawn.before(point)
        if source is not None:
            (here, now), (there, then) = drawn.at(point), drawn.at(source)
            assume(now - then >= max(1, abs(here - there)))
    return drawn


@pytest.mark.slow
@given(schedules())
@settings(max_examples=30, deadline=None)
def test_cycles_and_firings_are_those_of_the_schedule(schedule: Schedule) -> None:
    graph = schedule.func().lower()
    x = np.arange(np.prod(schedule.extents), dtype=np.int32).reshape(schedule.extents)
    found = t2s.simulate(graph, {"x": x})
    node = found.nodes["Z"]
    assert found.outputs["Z"].tolist() == x.sum((1, 2)).tolist()
    assert node.firings == len(schedule.points) == found.nodes["Z_load_x"].firings
    assert found.compute_cycles == schedule.cycles()


GAPS = Schedule(extents=(3, 3, 2), place=(1, 0, 0), time=(0, 3, 1))


def test_time_loops_start_and_end_with_an_iteration() -> None:
    """t = 3 c + a with a < 2, c < 3: times 0 1 . 3 4 . 6 7."""
    assert "for t in 0..7:" in t2s.print_loop_nest(GAPS.func())
    assert GAPS.cycles() == 8


@sampled("engine", ["python", "native", "table", "array"], quick=1)
@pytest.mark.parametrize("device", ["ideal", "arria10", "dram"])
def test_empty_slots_are_no_firings(engine: str, device: str) -> None:
    """18 multiply-adds in 24 slots, in both engines and all kernels."""
    chosen = DEVICES["arria10"] if device != "ideal" else DEVICES["ideal"]
    if device == "dram":
        chosen = replace(chosen, name="near", memory=MEMORIES["ddr4-2133"])
    result = t2s.simulate(
        GAPS.func(), {"x": np.ones((3, 3, 2), np.int32)}, device=chosen, engine=engine
    )
    for name in ("Z", "Z_load_x"):
        node = result.nodes[name]
        assert (node.firings, node.total_firings, node.empty, node.slots) == (18, 18, 6, 24)
        row = result.stalls[name]
        assert row.busy == 18
        assert row.busy + row.starved + row.blocked + row.waiting + row.idle == 3 * result.cycles
    assert result.utilization == 18 / (3 * result.cycles)
    header, *lines = result.node_table.text().splitlines()[1:]
    assert header.split()[3:5] == ["firings", "slots"]
    assert [line.split()[3:5] for line in lines[1:]] == [["18", "24"], ["18", "24"], ["3", "3"]]


@pytest.mark.parametrize("engine", ["python", "table", "array"])
@sampled("limit", range(1, 9), quick=1)
def test_runs_that_are_cut_short_count_the_firings_made(engine: str, limit: int) -> None:
    graph = replace_rows(GAPS).func().lower()
    x = np.ones((1, 3, 2), np.int32)
    node = t2s.simulate(graph, {"x": x}, engine=engine, max_cycles=limit).nodes["Z_load_x"]
    assert node.slots == limit
    assert node.firings == sum(time in (0, 1, 3, 4, 6, 7) for time in range(limit))
    assert node.total_firings == 6


def replace_rows(schedule: Schedule) -> Schedule:
    """The schedule with one row."""
    return replace(schedule, extents=(1, *schedule.extents[1:]))


def test_the_summary_of_a_graph_counts_firings() -> None:
    text = summarize_graph(GAPS.func().lower())
    assert "18 in all" in text


def test_a_stored_graph_keeps_its_empty_slots() -> None:
    graph = GAPS.func().lower()
    again = graph_from_json(graph_to_json(graph))
    assert again == graph
    assert again.node("Z").active is not None


def test_no_schedule_is_tried_where_none_can_help(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum passes along an unrolled loop in no time: other loops cannot give it any."""
    i, p, q, t, A = *t2s.variables("i p q t"), ImageParam(Int(32), 2, name="A")
    F, k = Func("F"), RDom(0, 4, name="k")
    F[i] = 0
    F[i] += A[i, k]
    F.bound(i, 0, 8).split(i, i, q, 4).unroll(k)
    F.space_time_transform([i, q], {p: i, t: i + 3 * q})
    tried: list[object] = []
    monkeypatch.setattr(space_time, "_is_legal", lambda *given: tried.append(given))
    with pytest.raises(t2s.errors.UserError, match="before it is there"):
        F.lower()
    assert not tried
