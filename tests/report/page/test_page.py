"""The report page: its numbers are those of the result, and what it says of bad input."""

from __future__ import annotations

import json
import os
import pickle
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import t2s
from t2s.core.location import SourceLocation
from t2s.driver.directive_ablation import ablation_of
from t2s.graph.graph import Graph
from t2s.report.page.flame import FlamePart, flame_of
from t2s.report.page.main_limit import LimitKind, limit_of
from t2s.report.page.space_time import packed, unpacked
from t2s.report.page.traffic import moved_bytes, operations_of
from t2s.report.reasons import AblationStep
from t2s.simulator.devices import DEVICES
from t2s.simulator.report.errors import DeadlockError
from t2s.simulator.report.result import SimResult
from t2s.simulator.timeline import PEState
from tests.errors.refusal import refused
from tests.report.page.designs import inputs_of, product, rows
from tests.report.page.reading import shown, strips_of


@cache
def run(**options: Any) -> SimResult:
    result: SimResult = t2s.simulate(product(), inputs_of(), **options)
    return result


def test_numbers_are_those_of_the_result(tmp_path: Path) -> None:
    result = run(device="arria10")
    page = result.report(tmp_path / "page.html")
    text = " ".join(shown(page).split())
    for label, value in result.summary:
        assert f"{label} {' '.join(value.split())}" in text
    for row in result.stalls.table.rows:
        assert " ".join(row) in text
    report = t2s.resources(product())
    assert f"used {report.dsp_blocks:,}" in text
    for channel in result.program.channels:
        tokens = int(result.program.control.sent[channel.elements].sum())
        line = f"{channel.channel.source} → {channel.channel.sink} {channel.channel.element_count}"
        assert f"{channel.channel.name} {line} {tokens:,}" in text
    whole = strips_of(page)[0]
    for number, node in enumerate(result.nodes.values()):
        mine = [at for at, row in enumerate(whole.rows) if row[0] == number]
        states = whole.states[:, mine].sum(axis=(1, 2))
        for state in PEState:
            assert states[state] == getattr(node, state.name.lower())


def test_the_flame_adds_up() -> None:
    def adds_up(part: FlamePart) -> None:
        if part.parts:
            assert part.cycles == sum(inner.cycles for inner in part.parts)
            for inner in part.parts:
                adds_up(inner)

    result = run(device="arria10")
    flame = flame_of(result)
    adds_up(flame)
    assert flame.cycles == result.cycles * sum(node.pe_count for node in result.nodes.values())


def test_what_limits_a_design() -> None:
    on_board = limit_of(run(device="arria10"))
    assert on_board.kind is LimitKind.RECURRENCE
    assert on_board.sentence == (
        "A recurrence limits C: the interval between firings (II 4: recurrence through "
        "'C_partial', latency 4 at distance 1) costs 189 of 429 cycles."
    )
    ideal = run()
    found = limit_of(ideal)
    assert found.kind is LimitKind.COMPUTE
    assert found.cycles == 4 * 16
    assert found.sentence.startswith(f"Compute limits C: each PE fires in 64 of {ideal.cycles} ")
    slow = ideal.retime(latencies={"A_along_jj": 8})
    found = limit_of(slow)
    assert (found.kind, found.channel) == (LimitKind.CHANNEL, "A_along_jj")
    assert found.cycles == round(slow.nodes["C"].starved_by["A_along_jj"] / 16)
    shallow = limit_of(ideal.retime({"A_loader_to_C": 1, "A_along_jj": 1}))
    assert "for A_loader has 64 cycles of waiting for space in A_loader_to_C." in shallow.sentence


def test_memory_that_limits_a_design() -> None:
    device = replace(DEVICES["ideal"], memory_bytes_per_second=4 * 10**9)
    found = limit_of(run(device=device))
    assert found.kind is LimitKind.MEMORY
    assert "has" in found.sentence
    assert found.sentence.endswith("of waiting for memory.")


def test_the_roofline_counts_operations_and_bytes() -> None:
    result = run(device="arria10")
    program = result.program
    (compute,) = (t for t in program.nodes if t.node.name == "C")
    assert operations_of(program, compute, result.nodes["C"].slots) == 2 * 8 * 8 * 16
    # each row of A and column of B is loaded for each of the two tiles beside it
    assert sum(moved_bytes(program, t) for t in program.nodes) == 4 * (2 * 128 + 2 * 128 + 64)


def test_pages_are_the_same_when_made_again(tmp_path: Path) -> None:
    result = run(device="arria10")
    first = result.report(tmp_path / "first.html").read_bytes()
    again = run.__wrapped__(device="arria10")
    assert again.report(tmp_path / "second.html").read_bytes() == first
    kept = pickle.loads(pickle.dumps(result))
    assert kept.report(tmp_path / "third.html").read_bytes() == first
    assert str(Path(__file__).parent).encode() not in first
    assert b"://" not in first.replace(b"http://www.w3.org", b"")
    assert b"designs.py" in first


def test_windows_of_the_user(tmp_path: Path) -> None:
    result = run(device="arria10")
    page = result.report(tmp_path / "page.html", windows=[(5, 9), (1, result.cycles)])
    names = [strip.name for strip in strips_of(page)]
    assert names[-2:] == ["cycles 5 to 9", f"cycles 1 to {result.cycles}"]
    strip = strips_of(page)[-2]
    line = result.timeline((5, 9))
    assert strip.exact
    assert np.array_equal(strip.states.argmax(axis=0), line.main_states())


def test_a_window_outside_of_the_run(tmp_path: Path) -> None:
    result = run()
    with refused(
        f"""
        a window of the report is outside the run
          --> result.report(tmp_path / "page.html", windows=[(5, 5000)])
          expected: windows=[(first, last), ...] with cycles of 1 to {result.cycles}, first <= last
          given:    (5, 5000)
        """
    ):
        result.report(tmp_path / "page.html", windows=[(5, 5000)])


def test_windows_that_are_no_list(tmp_path: Path) -> None:
    result, windows = run(), cast(Any, 7)
    windows_expected = f"windows=[(first, last), ...] with cycles of 1 to {result.cycles}"
    with refused(
        f"""
        windows= must be a list of (first, last) pairs
          --> result.report(tmp_path / "page.html", windows=windows)
          expected: {windows_expected}, first <= last, 16 of them at most
          given:    7
        """
    ):
        result.report(tmp_path / "page.html", windows=windows)


def test_a_folder_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run()
    with refused(
        """
        the file 'nowhere/page.html' cannot be written
          --> result.report("nowhere/page.html")
          expected: a name in a writable folder on a disk with free space
          given:    No such file or directory
        """
    ):
        result.report("nowhere/page.html")
    assert os.listdir(tmp_path) == []


def test_depths_and_ladders_of_something_else(tmp_path: Path) -> None:
    result = run()
    with refused(
        """
        depths= must map channel names to positive integers
          --> result.report(tmp_path / "page.html", depths=3)
          expected: the result of t2s.fit_depths(design), or a mapping from channels to depths
          given:    3
        """
    ):
        result.report(tmp_path / "page.html", depths=3)
    with refused(
        """
        depths= must map channel names to positive integers
          --> result.report(tmp_path / "page.html", depths={"A_along_jj": 0})
          expected: the result of t2s.fit_depths(design), or a mapping from channels to depths
          given:    {'A_along_jj': 0}
        """
    ):
        result.report(tmp_path / "page.html", depths={"A_along_jj": 0})
    with refused(
        """
        depths= belongs to another design: this one has no channel A_to_C
          --> result.report(tmp_path / "page.html", depths={"A_to_C": 4})
          expected: depths of A_loader_to_C, B_loader_to_C, C_to_C_unloader, A_along_jj, B_along_ii
          given:    depths of A_to_C
        """
    ):
        result.report(tmp_path / "page.html", depths={"A_to_C": 4})
    graph = t2s.lower(product())
    assert isinstance(graph, Graph)
    with refused(
        """
        C has no ladder of directives
          --> result.report(tmp_path / "page.html", ladder=graph)
          expected: a Func with directives, or several
          given:    <Graph C: 4 nodes, 5 channels>
        """
    ):
        result.report(tmp_path / "page.html", ladder=graph)
    other, at = t2s.Func("other"), t2s.Var("at")
    other[at] = 2.0
    other.bound(at, 0, 8)
    with refused(
        """
        the ladder is that of another design
          --> result.report(tmp_path / "page.html", ladder=other)
          expected: the design of this result, C
          given:    other
        """
    ):
        result.report(tmp_path / "page.html", ladder=other)


def test_inputs_that_are_missing(tmp_path: Path) -> None:
    result = run()
    with refused(
        """
        the report has no B to show values with
          --> result.report(tmp_path / "page.html", inputs={"A": 1})
          expected: inputs with A, B
          given:    A
          hint:     without inputs= the page shows loop indices and no values
        """
    ):
        result.report(tmp_path / "page.html", inputs={"A": 1})


def test_values_of_the_first_firings(tmp_path: Path) -> None:
    inputs = inputs_of()
    page = run().report(tmp_path / "page.html", inputs=inputs)
    strip = strips_of(page)[0]
    a = f"{float(inputs['A'][0, 0]):.6g}"
    assert strip.values[0][0] == f"sent A_loader_to_C {a}"
    assert strip.values[2][0].startswith(f"took A_loader_to_C {a}, B_loader_to_C ")
    assert len(strip.values[2]) == strip.points[2].shape[1]


def test_runs_that_are_cut_short(tmp_path: Path) -> None:
    result = run(max_cycles=20)
    text = shown(result.report(tmp_path / "page.html"))
    assert (
        "This run was cut short by its cycle limit: all numbers are of the 20 cycles until then."
        in text
    )
    stopped = replace(result, ending=type(result.ending).INTERRUPTED)
    text = shown(stopped.report(tmp_path / "page.html"))
    assert "This run was interrupted from the keyboard: all numbers are of the 20 cycles" in text


@pytest.mark.slow
def test_deadlocks(tmp_path: Path) -> None:
    inputs = {name: np.ones((4, 4), np.float32) for name in "AB"}
    shallow = t2s.simulate(rows(), inputs)
    with pytest.raises(DeadlockError):
        shallow.retime({"A_loader_to_C": 2, "B_along_i": 2})
    design = t2s.fit_depths(rows(), progress=False).apply(rows())
    blocked = replace(
        design,
        channels=tuple(
            replace(c, capacity=2) if c.name == "B_along_i" else c for c in design.channels
        ),
    )
    with pytest.raises(DeadlockError) as caught:
        t2s.simulate(blocked, inputs)
    page = caught.value.result.report(tmp_path / "page.html")
    text = shown(page)
    assert "This run ended in a deadlock" in text
    assert "Deadlock: nothing can fire any more after cycle 4." in text
    assert "a capacity that frees it: 'B_along_i' 2 -> 14" in text
    assert page.read_text("utf-8").count('class="wait"') == len(caught.value.result.deadlock.waits)


def test_designs_without_firings(tmp_path: Path) -> None:
    empty = Graph(name="empty", nodes=(), channels=(), tensors=())
    result = t2s.simulate(empty, {})
    text = shown(result.report(tmp_path / "page.html"))
    assert "Nothing fired in this run." in text
    assert "No PEs, or no cycles, to show." in text


HOSTILE = '</script><script>document.title="taken"</script>'


def test_names_with_html_in_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names are identifiers where they come in; a graph made by hand is not asked."""
    result = run(device="arria10")
    program = result.program
    graph = replace(program.graph, name=HOSTILE)
    nodes = {
        HOSTILE if name == "C" else name: replace(node, name=HOSTILE if name == "C" else name)
        for name, node in result.nodes.items()
    }
    location = SourceLocation(f"/somewhere/{HOSTILE[9:]}.py", 3)
    timings = tuple(
        replace(t, node=replace(t.node, name=HOSTILE, location=location))
        if t.node.name == "C"
        else t
        for t in program.nodes
    )
    channels = tuple(
        replace(
            t,
            channel=replace(
                t.channel,
                location=location,
                source=HOSTILE if t.channel.source == "C" else t.channel.source,
                sink=HOSTILE if t.channel.sink == "C" else t.channel.sink,
            ),
        )
        for t in program.channels
    )
    changed = replace(
        graph,
        nodes=tuple(t.node for t in timings),
        channels=tuple(t.channel for t in channels),
    )
    result = replace(
        result,
        graph=HOSTILE,
        nodes=nodes,
        program=replace(program, graph=changed, nodes=timings, channels=channels),
    )
    vars(result)["warnings"] = (HOSTILE,)
    timelines = run(device="arria10").timelines  # the program with these names cannot run
    monkeypatch.setattr(SimResult, "timelines", lambda _, windows: timelines(windows))
    page = result.report(tmp_path / "page.html")
    text = page.read_text("utf-8")
    assert text.count("<script") == text.count("</script>") == 3
    assert HOSTILE in shown(page)
    sources = re.search(r'id="sources">(.*?)</script>', text, re.DOTALL)
    assert sources is not None
    assert any("script" in json.loads(one)["place"] for one in json.loads(sources[1]))


@pytest.mark.slow
def test_the_ladder(tmp_path: Path) -> None:

    rungs = ablation_of(product(), DEVICES["arria10"], "C")
    assert [type(rung) for rung in rungs] == [AblationStep] * len(rungs)
    assert rungs[0].directive == "no directive"
    assert rungs[-1].directive == "forward(B_loader, ii)"
    assert rungs[-1].cycles == run(device="arria10").cycles
    assert rungs[2].pes == 16
    design = product()
    page = run(device="arria10").report(tmp_path / "page.html", ladder=design)
    assert f"forward(B_loader, ii) {rungs[-1].cycles:,}" in " ".join(shown(page).split())
    assert t2s.cycles(design, device="arria10") == rungs[-1].cycles  # the Func is as it was


def test_every_loop_has_its_directive(tmp_path: Path) -> None:
    text = " ".join(shown(run().report(tmp_path / "page.html")).split())
    assert "parallel ii 4 - - one PE each by unroll(ii, jj) designs.py:" in text
    assert "for k 16 16 " in text


@pytest.mark.parametrize("shape", [(0,), (3, 0), (1,), (2, 3, 4)])
def test_packing_gives_the_numbers_back(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(sum(shape))
    values = rng.integers(-(2**52), 2**52, shape)
    found = packed(values)
    assert np.array_equal(unpacked(found.text, found.shape), values)


def test_machines_of_the_plain_engine(tmp_path: Path) -> None:
    assignment = t2s.sparse.parse("y(i)=A(i,j)*x(j)", ["A:ds"])
    inputs = {"A": np.eye(4), "x": np.ones(4)}
    result = t2s.simulate(assignment, inputs, engine="python")
    text = shown(result.report(tmp_path / "page.html"))
    assert "The plain engine does not keep what machines did" in text
    assert f"{result.stages[0].cycles:,}" in text


def test_sizes_and_streams(tmp_path: Path) -> None:
    a = np.zeros((40, 40))
    a[::3, ::5] = 1.5
    assignment = t2s.sparse.parse("y(i)=A(i,j)*x(j)", ["A:ds"])
    result = t2s.simulate(assignment, {"A": a, "x": np.ones(40)})
    page = result.report(tmp_path / "page.html")
    text = shown(page)
    assert f"{result.stages[0].cycles:,}" in text
    assert "rule " in text
    assert page.stat().st_size < 300_000


def test_several_stages_begin_with_a_table_of_them(tmp_path: Path) -> None:
    kernel = t2s.sparse.compile(
        t2s.sparse.parse("y(i) = A(i,j)*(B(j,k)*x(k))", {"A": "ds", "B": "ds"}),
        t2s.sparse.schedule("precompute(B(j,k)*x(k),T)"),
    )
    matrix = np.eye(6)
    result = kernel.simulate({"A": matrix, "B": matrix, "x": np.ones(6)})
    text = result.report(tmp_path / "page.html").read_text("utf-8")
    table = text[text.index('id="stages"') : text.index("<article")]
    for number, stage in enumerate(result.stages, 1):
        assert f">{number}</td>" in table
        assert f">{stage.graph}</td>" in table
        assert f">{stage.cycles:,}</td>" in table
        assert f">{stage.cycles / result.cycles:.1%}</td>" in table
    assert f">{result.cycles:,}</td>" in table
    alone = result.stages[0].report(tmp_path / "alone.html").read_text("utf-8")
    assert 'id="stages"' not in alone
