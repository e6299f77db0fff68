"""Two results side by side: sums are exact, and what cannot be compared is refused."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, cast

import numpy as np
import pytest

import t2s
from benchmarks.random_graphs import random_device, random_graph
from benchmarks.random_machines import random_machines
from t2s.graph.nodes import Role
from t2s.report.comparison import (
    MOST_ROWS,
    MOST_STEPS,
    CauseKind,
    Comparison,
    CycleUse,
    comparison_of,
    cycle_uses,
    steps_of,
)
from t2s.representation import MatrixParam, gallery
from t2s.simulator.engine_registry import find_engine
from t2s.simulator.limits import Limits
from t2s.simulator.program.build import build_program
from t2s.simulator.report.counters import Ending
from t2s.simulator.report.result import SimResult
from t2s.sparse_repr.blocks.connections import UNBOUNDED
from tests.errors.refusal import refused
from tests.report.page.designs import inputs_of, product
from tests.report.page.reading import shown

SEEDS = [pytest.param(n, marks=pytest.mark.slow) if n > 0 else n for n in range(16)]


@cache
def run(size: int = 8, **options: Any) -> SimResult:
    result: SimResult = t2s.simulate(product(size), inputs_of(size), **options)
    return result


def adds_up(found: Comparison) -> None:
    a, b = found.before, found.after
    assert sum(one.before for one in found.causes) == a.cycles
    assert sum(one.after for one in found.causes) == b.cycles
    assert sum(one.change for one in found.causes) == found.change == b.cycles - a.cycles
    steps = steps_of(a, b, found.causes)
    assert (steps[0].end, steps[-1].end) == (a.cycles, b.cycles)
    assert steps[-2].end == b.cycles
    for one, following in pairwise(steps[:-1]):
        assert following.start == one.end
    assert len(steps) <= MOST_STEPS + 2


def test_two_devices() -> None:
    found = t2s.compare(run(device="arria10"), run(16))
    adds_up(found)
    assert (found.before.cycles, found.after.cycles) == (429, 264)
    # the share of firing is the utilization
    firing = next(one for one in found.causes if one.use.kind is CauseKind.FIRING)
    assert firing.after / found.after.cycles == run(16).utilization
    nodes = {one.name: one for one in found.nodes}
    assert nodes["C"].before is not None
    assert nodes["C"].after is not None
    assert (nodes["C"].before.interval, nodes["C"].after.interval) == (4, 1)
    report = t2s.resources(product())
    assert (found.before.dsp_blocks, found.before.ram_blocks) == (
        report.dsp_blocks,
        report.ram_blocks,
    )
    assert (found.after.dsp_blocks, found.after.ram_blocks) == (None, None)
    text = str(found)
    assert "B takes 264 cycles, A 429: -165 (-38.5%). The largest change is firing, +192" in text
    assert re.search(r"^initiation interval +189 +0 +-189 \(-100\.0%\)$", text, re.MULTILINE)


def test_other_depths() -> None:
    before = run()
    after = before.retime({"A_loader_to_C": 1, "A_along_jj": 1})
    found = t2s.compare(before, after, names=("deep", "shallow"))
    adds_up(found)
    channels = {one.name: one for one in found.channels}
    for name in ("A_loader_to_C", "A_along_jj"):
        one = channels[name]
        assert one.before is not None
        assert one.after is not None
        assert (one.before.depth, one.after.depth) == (2, 1)
        stalls = after.nodes["C"].starved_by[name]
        stalls += after.nodes["A_loader" if name[-1] == "C" else "C"].blocked_by[name]
        assert one.after.stalls == stalls
        assert one.after.peak == 1
    assert [one.name for one in found.nodes] == ["A_loader", "B_loader", "C", "C_unloader"]
    assert str(found).startswith("deep: C → shallow: C\nshallow takes ")


def test_a_result_with_itself() -> None:
    found = t2s.compare(run(), run())
    adds_up(found)
    assert (found.change, found.nodes, found.channels) == (0, (), ())
    assert "as many." in found.sentence
    assert "the axis begins at 0" in str(found.svg())
    assert len(found.tables) == 2


@cache
def sparse(levels: str, capacity: int) -> Any:
    a = np.arange(80.0).reshape(8, 10) % 3
    kernel = t2s.sparse.compile(t2s.sparse.parse("y(i)=A(i,j)*x(j)", [f"A:{levels}"]))
    return kernel.simulate({"A": a, "x": np.ones(10)}, capacity=capacity)


def test_sparse_kernels() -> None:
    first, second = sparse("ds", UNBOUNDED), sparse("ss", 2)
    found = t2s.compare(first, second)
    adds_up(found)
    assert re.search(r"^scan_A_i_crd_to_\w+ +unbounded → 2 ", str(found), re.MULTILINE)
    assert {one.name for one in found.nodes if one.before is None or one.after is None}
    adds_up(t2s.compare(first, run()))


@pytest.mark.slow
def test_the_axis_says_where_it_begins() -> None:
    long = run(8, device="arria10")
    slower = long.retime(latencies={"A_along_jj": 3})
    picture = str(t2s.compare(long, slower).svg())
    said = re.search(r"the axis begins at ([\d,]+), not at 0", picture)
    assert said is not None
    assert 0 < int(said[1].replace(",", "")) < long.cycles


def _multiplied(rows: int) -> SimResult:
    """A product of a sparse matrix on so many machines."""
    A = MatrixParam(t2s.Float(32), 2, gallery.csr(rows), name="A")
    x = t2s.ImageParam(t2s.Float(32), 1, name="x")
    p, q, r = t2s.Var("p"), t2s.RDom(0, A.values.extent(1), name="q"), t2s.Var("r")
    i, j = A.inverse_map(p, q)
    y = t2s.Func("y")
    y[r] = 0.0
    y[i] += A.values[p, q] * x[j]
    matrix = np.arange(80, dtype=np.float32).reshape(8, 10) % 3
    result: SimResult = t2s.simulate(y, {"A": matrix, "x": np.ones(10, np.float32)})
    return result


@pytest.mark.slow
def test_representations() -> None:
    found = t2s.compare(_multiplied(2), _multiplied(4))
    adds_up(found)
    assert found.after.compute_pes > found.before.compute_pes
    assert found.change < 0


def test_several_stages() -> None:
    one, two = sparse("ds", 4), sparse("ss", 2)
    runs = (*one.stages, *two.stages)
    found = comparison_of(one.stages, runs, ("one", "both"))
    adds_up(found)
    assert found.after.cycles == one.cycles + two.cycles
    names = {channel.name.split(":")[0] for channel in found.channels}
    assert "stage 2" in names


@pytest.mark.parametrize("seed", SEEDS)
def test_random_designs(seed: int) -> None:
    """Sums are exact for any two designs, of loop nests and of machines, cut short or not."""
    random, found = Random(seed), []
    machines, inputs = random_machines(seed)
    for graph, arrays in ((random_graph(seed), None), (machines, inputs)):
        for device in random_device(seed):
            program = build_program(graph, device, arrays)
            limits = Limits(max_cycles=random.choice([1, 7, 3000]))
            found.append(find_engine("native").run(program, limits))
    for before in found:
        for after in found:
            adds_up(comparison_of((before,), (after,), ("A", "B")))


@pytest.mark.parametrize("seed", SEEDS)
def test_means_are_those_of_the_main_array(seed: int) -> None:
    for device in random_device(seed):
        program = build_program(random_graph(seed), device, None)
        result = find_engine("native").run(program, Limits(max_cycles=5000))
        array = result.main_array
        if array is None:
            continue
        computing = [n for n in result.nodes.values() if n.role is Role.COMPUTE]
        assert array.firings == max(node.firings for node in computing)
        uses = cycle_uses([result], staged=False)
        for name, waited in array.starved_by.items():
            use = CycleUse(kind=CauseKind.STARVED, channel=name)
            assert abs(uses.get(use, 0) - waited / array.pe_count) < 1
        exact = array.idle / array.pe_count
        assert abs(uses.get(CycleUse(kind=CauseKind.IDLE), 0) - exact) < 1


def test_runs_that_were_cut_short(tmp_path: Path) -> None:
    found = t2s.compare(run(), run(max_cycles=20))
    adds_up(found)
    said = (
        "B did not come to its end (cycle limit reached): its numbers are of the 20 cycles until "
        "then"
    )
    assert found.banners == (said,)
    assert str(found).startswith(f"{said}\n")
    assert said in shown(found.report(tmp_path / "page.html"))
    assert said in found._repr_html_()
    interrupted = replace(run(), ending=Ending.INTERRUPTED)
    assert t2s.compare(interrupted, run()).before.ending == "interrupted"


@pytest.mark.slow
def test_tables_are_short() -> None:
    """A comparison has all nodes, channels and causes; its tables the first ones."""
    runs = (run(max_cycles=40),) * 16
    others = (run(max_cycles=40).retime({"A_loader_to_C": 1, "B_loader_to_C": 1}),) * 16
    found = comparison_of(runs, others, ("A", "B"))
    adds_up(found)
    _, causes, nodes, channels = found.tables
    assert len(found.causes) > MOST_ROWS
    assert len(causes.rows) == MOST_ROWS + 2
    for column, total in ((1, found.before.cycles), (2, found.after.cycles)):
        numbers = [int(row[column].replace(",", "")) for row in causes.rows]
        assert sum(numbers[:-1]) == numbers[-1] == total
    for table, all_of_them in ((nodes, found.nodes), (channels, found.channels)):
        assert len(all_of_them) > MOST_ROWS
        assert len(table.rows) == MOST_ROWS + 1
        assert table.rows[-1][0] == f"and {len(all_of_them) - MOST_ROWS} more"


def test_designs_without_pes() -> None:
    empty = t2s.simulate(t2s.Graph(name="empty", nodes=(), channels=(), tensors=()), {})
    adds_up(t2s.compare(empty, run()))
    adds_up(t2s.compare(empty, empty))


def test_pages_are_the_same_when_made_again(tmp_path: Path) -> None:
    found = t2s.compare(run(device="arria10"), run())
    first = found.report(tmp_path / "first.html").read_bytes()
    kept = pickle.loads(pickle.dumps(found))
    assert kept == found
    assert kept.report(tmp_path / "second.html").read_bytes() == first
    text = " ".join(shown(tmp_path / "first.html").split())
    for table in found.tables:
        for row in table.rows:
            assert " ".join(" ".join(row).split()) in text
    assert len(first) < 40_000
    assert b"://" not in first.replace(b"http://www.w3.org", b"")
    assert found.svg().html() in found._repr_html_()


HOSTILE = '</script><script>document.title="taken"</script>'


def test_names_with_html_in_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run()
    nodes = {HOSTILE if name == "C" else name: node for name, node in result.nodes.items()}
    hostile = replace(result, graph=HOSTILE, nodes=nodes)
    program = hostile.program
    graph = replace(
        program.graph,
        nodes=tuple(replace(n, name=HOSTILE) if n.name == "C" else n for n in program.graph.nodes),
        channels=(),
    )
    timings = tuple(
        replace(t, node=replace(t.node, name=HOSTILE)) if t.node.name == "C" else t
        for t in program.nodes
    )
    hostile = replace(hostile, program=replace(program, graph=graph, nodes=timings, channels=()))
    timelines = result.timelines  # the program with these names cannot run
    monkeypatch.setattr(SimResult, "timelines", lambda _, windows: timelines(windows))
    found = t2s.compare(result, hostile, names=("A", HOSTILE))
    page = found.report(tmp_path / "page.html")
    for text in (page.read_text("utf-8"), found._repr_html_(), str(found.svg())):
        assert "<script" not in text
    assert HOSTILE in shown(page)


def test_what_cannot_be_compared() -> None:
    result, count = run(), cast(Any, 264)
    with refused(
        """
        the second result cannot be compared: it does not say where its cycles went
          --> t2s.compare(result, count)
          expected: what t2s.simulate returns
          given:    264
          hint:     t2s.cycles and t2s.verilate count; t2s.simulate says what cycles were for
        """
    ):
        t2s.compare(result, count)
    with pytest.raises(t2s.errors.UserError, match="the first result cannot be compared"):
        t2s.compare(product(), result)


@pytest.mark.parametrize("names", ["AB", ("A",), ("A", "A"), ("A", 1), ("", "B"), None])
def test_names_that_are_no_two_names(names: Any) -> None:
    result = run()
    with refused(
        f"""
        names= must be two different texts
          --> t2s.compare(result, result, names=names)
          expected: names=("A", "B"), two texts that differ
          given:    {names!r}
        """
    ):
        t2s.compare(result, result, names=names)


def test_a_folder_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = t2s.compare(run(), run())
    with refused(
        """
        the file 'nowhere/page.html' cannot be written
          --> found.report("nowhere/page.html")
          expected: a name in a writable folder on a disk with free space
          given:    No such file or directory
        """
    ):
        found.report("nowhere/page.html")
