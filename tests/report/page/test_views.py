"""Single views: roofs that are in the picture, long tables that are folded, units of a chip."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import t2s
from benchmarks.random_graphs import random_device, random_graph
from benchmarks.random_machines import random_machines
from t2s.core.display import Table
from t2s.report.page.chip import Cell, ChannelLine, ChipMapModel, GridNode, chip_map_view
from t2s.report.page.dram import DramOverTime, dram_view
from t2s.report.page.markup import MOST_SHOWN
from t2s.report.page.model import PageOptions, run_model
from t2s.report.page.roofline import Ceiling, MemoryLevel, RooflineModel, roofline_of, roofline_view
from t2s.simulator.program.build import build_program
from tests.examples.test_recurrences import example
from tests.report.page.designs import inputs_of, product
from tests.report.page.reading import shown
from tests.simulator.recording.test_recordings import WatchedChannels
from tests.simulator.recording.test_recordings import _finished as finished

magnitudes = st.floats(-6, 15).map(lambda power: 10.0**power)
levels = st.builds(
    MemoryLevel,
    name=st.just("memory"),
    bytes=magnitudes,
    bandwidth=st.none() | magnitudes,
    intensity=magnitudes,
)


@settings(max_examples=60, deadline=None)
@given(magnitudes, st.lists(magnitudes, max_size=2), st.lists(levels, min_size=1, max_size=3))
def test_points_and_their_roofs_are_in_the_picture(
    rate: float, roofs: list[float], found: list[MemoryLevel]
) -> None:
    ceilings = tuple(Ceiling(name="roof", rate=roof) for roof in roofs)
    view = roofline_view(
        RooflineModel(
            device="chip", operations=7, rate=rate, ceilings=ceilings, levels=tuple(found)
        )
    )
    left, right, top, bottom = 70, 70 + 520, 20, 20 + 300
    points = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', view)
    assert len(points) == len(found)
    assert all(left <= float(x) <= right and top <= float(y) <= bottom for x, y in points)
    slopes = re.findall(r'd="M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)" class="slope"', view)
    limited = [at for at, level in enumerate(found) if level.bandwidth is not None]
    assert len(slopes) == len(limited)
    for at, slope in zip(limited, slopes, strict=True):
        x1, y1, x2, y2 = map(float, slope)
        assert left - 0.1 <= x1 <= float(points[at][0]) + 0.1 <= x2 + 0.2
        assert x2 <= right + 0.1
        assert top - 0.1 <= y2 <= y1 <= bottom + 0.1
    assert all(top <= float(y) <= bottom for y in re.findall(r'd="M70.0 ([\d.]+)H', view))
    names = re.findall(r'<text x="([\d.]+)" y="([\d.]+)">((?:\d, )*\d|[^<]*roof)</text>', view)
    numbers = [text for *_, text in names if "roof" not in text]
    assert sorted(n for text in numbers for n in text.split(", ")) == [
        str(at + 1) for at in limited
    ]
    assert len(names) - len(numbers) == len(roofs)
    for (x, y, _), (other_x, other_y, _) in combinations(names, 2):
        assert abs(float(x) - float(other_x)) >= 24 or abs(float(y) - float(other_y)) >= 13.9


def test_labels_are_in_front_of_lines() -> None:
    result = t2s.simulate(product(), inputs_of(), device="arria10")
    text = roofline_text(result)
    assert text.rindex('class="slope"') < text.rindex("op/s: 1,518 DSP blocks, 2 operations")


def roofline_text(result: Any) -> str:
    model = roofline_of(result)
    assert model is not None
    return roofline_view(model)


@pytest.mark.parametrize("count", [MOST_SHOWN, MOST_SHOWN + 1])
def test_tables_of_many_channels_are_folded(count: int) -> None:
    table = Table(title="channels", headers=("n",), rows=(("0",),) * count)
    model = DramOverTime(name="m", bins=(), peak=1.0, mean=0.5, hits=0.0, tables=(table,))
    assert ("<details><summary>channels: 17 rows" in dram_view(model)) == (count > MOST_SHOWN)


def test_places_without_a_pe_are_not_drawn() -> None:
    trsm = example("trsm")
    result = t2s.simulate(trsm.design(5, 3), trsm.matrices(5, 3))
    model = run_model(result, PageOptions())
    assert model.space_time is not None
    names = [node.name for node in model.chip.nodes]
    (triangle,) = (node for node in model.chip.nodes if node.name == "SL")
    assert {(cell.row, cell.column) for cell in triangle.cells} == {
        (row, column) for row in range(5) for column in range(row, 5)
    }
    rows = [row for row in model.space_time.rows if row.node == names.index("SL")]
    assert len(rows) == 15 == result.nodes["SL"].pe_count
    assert [row.label for row in rows[:2]] == ["SL[0, 0]", "SL[0, 1]"]
    assert rows[5].label == "SL[1, 1]"


def test_what_a_dram_moves_over_time() -> None:
    """All bytes of its bursts, in no bin more than its buses can carry."""
    result = t2s.simulate(product(8, 64), inputs_of(8, 64), device="arria10", memory="ddr4-2133")
    model = run_model(result, PageOptions()).dram
    assert model is not None
    assert result.memory is not None
    hertz = result.device.clock_hz
    moved = sum(one.moved * (one.last - one.first + 1) / hertz for one in model.bins)
    assert moved == pytest.approx(result.memory.bytes_moved)
    assert all(one.moved <= model.peak * 1.000001 for one in model.bins[:-1])
    used = sum(one.rate * (one.last - one.first + 1) / hertz for one in model.bins)
    assert used <= moved


@pytest.mark.parametrize("count", [1, 3, 60])
def test_channels_are_inside_of_the_map(count: int) -> None:
    """However many leave a node: they leave it on its own height, below its name, and are thin."""
    cell = Cell(row=0, column=0, label="a", pes=1, shares=(1.0, 0.0, 0.0, 0.0, 0.0))
    nodes = tuple(
        GridNode(
            name=name, role="compute", layer=layer, place=0, rows=1, columns=1, dimensions=(),
            cells=(cell,), source=None,
        )
        for layer, name in enumerate(("first", "second"))
    )  # fmt: skip
    channels = tuple(
        ChannelLine(
            name=f"c{n}", source="first", sink="second", fifos=1, tokens=9, bytes=36.0, stalls=0,
            share=0.0, depth=2, room=2, peak=1, mean=0.5, free_depth=None, wires=(), lines=None,
        )
        for n in range(count)
    )  # fmt: skip
    model = ChipMapModel(nodes=nodes, channels=channels, cycles=9, looked=9, layers=2)
    view = chip_map_view(model)
    found = re.search(r'viewBox="0 0 (\d+) (\d+)"', view)
    assert found is not None
    height = int(found[2])
    starts = [float(y) for y in re.findall(r'd="M[\d.]+ (-?[\d.]+)H', view)]
    ends = [float(y) for y in re.findall(r'd="M[^"]* (-?[\d.]+)" class="channel"', view)]
    assert len(starts) == len(ends) == len(set(starts)) == count
    assert all(16 + 20 < y < height for y in (*starts, *ends))
    widths = [float(width) for width in re.findall(r"stroke-width:([\d.]+)", view)]
    assert count < 60 or max(widths) <= 1
    assert ("<details><summary>all 60 channels as a table" in view) == (count == 60)


def test_capstan_has_the_units_of_its_chip(tmp_path: Path) -> None:
    kernel = t2s.sparse.compile(t2s.sparse.parse("y(i)=A(i,j)*x(j)", ["A:ds"]), target="capstan")
    result = kernel.simulate({"A": np.eye(9), "x": np.ones(9)})
    text = " ".join(shown(result.report(tmp_path / "page.html")).split())
    resources = kernel.resources()
    for row in (*resources.table.rows, *resources.owned_table.rows):
        assert " ".join(" ".join(row).split()) in text
    assert "no DSP and RAM blocks" not in text
    owned = {row[1]: 0 for row in resources.owned_table.rows}
    for row in resources.owned_table.rows:
        owned[row[1]] += int(row[2].replace(",", ""))
    assert owned == {row.unit.value: row.used for row in resources if row.used}


def test_names_that_no_file_may_have(tmp_path: Path) -> None:
    """A file's name may be no text in any encoding, and a name may have control characters."""
    name = "caf\udce9\x00\x1b.py"
    result = replace(t2s.simulate(product(), inputs_of()), graph=name)
    vars(result)["warnings"] = (name,)
    page = result.report(tmp_path / "page.html")
    assert "caf" in page.read_text("utf-8")
    found = t2s.compare(result, result, names=("A", name))
    assert "caf" in found.report(tmp_path / "page.html").read_text("utf-8")
    assert "caf" in found.svg().write(tmp_path / "page.svg").read_text("utf-8")


SEEDS = [pytest.param(n, marks=pytest.mark.slow) if n > 1 else n for n in range(1, 16)]


@pytest.mark.parametrize("seed", SEEDS)
def test_occupancy_is_that_of_the_plain_engine(seed: int) -> None:
    """Short runs are looked at in each cycle; the plain engine's last ones only drain."""
    machines, inputs = random_machines(seed)
    for graph, arrays in ((random_graph(seed), None), (machines, inputs)):
        for device in random_device(seed):
            built = build_program(graph, device, arrays)
            result = finished(built, "native")
            if result is None or result.cycles > 256:
                continue
            chip = run_model(result, PageOptions()).chip
            assert chip.looked == chip.cycles == result.cycles
            program = replace(result.program, inputs=built.inputs)
            held = WatchedChannels(program).signals["occupancy"]
            for timing, line in zip(program.channels, chip.channels, strict=True):
                own = held[timing.elements]
                assert line.peak == own.max(initial=0)
                assert line.mean == pytest.approx(own.sum() / (len(own) * result.cycles))


def test_depths_that_cost_nothing(tmp_path: Path) -> None:
    result = t2s.simulate(product(), inputs_of(), device="arria10")
    fit = t2s.fit_depths(product(), device="arria10", progress=False)
    model = run_model(result, PageOptions(free_depths=dict(fit.depths)))
    assert {line.name: line.free_depth for line in model.chip.channels} == dict(fit.depths)
    text = " ".join(shown(result.report(tmp_path / "page.html", depths=fit)).split())
    for line in model.chip.channels:
        assert f"{line.mean:.2f} {line.depth:,} {line.room:,} {line.free_depth:,}" in text
