"""Pictures of runs on Capstan: time lines, rooflines and figure 10, complete and small."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from benchmarks.stardust import bandwidth
from benchmarks.stardust.paper import PAPER
from t2s.core.errors import UserError
from t2s.core.svg import LogPlot, SvgPicture, powers
from t2s.driver.capstan_result import CapstanResult, rows_of
from tests.capstan.test_simulated_kernels import IDEAL, inputs_of

SVG = "{http://www.w3.org/2000/svg}"


def _run(
    name: str, memory: str = "hbm2e-1800", size: int = 24, engine: str = "native"
) -> CapstanResult:
    kernel = next(row for row in PAPER if row.name == name).kernel()
    inputs = inputs_of(kernel, dict.fromkeys("ijkl", size), 0.3, 4)
    return kernel.simulate(inputs, memory=memory, engine=engine)


def _checked(picture: SvgPicture) -> ElementTree.Element:
    assert len(picture.svg) < 300_000
    root = ElementTree.fromstring(picture.svg)
    assert root.find(f"{SVG}title") is not None
    assert root.find(f"{SVG}desc") is not None
    assert not root.findall(f".//{SVG}script")
    assert "href" not in picture.svg
    return root


def test_a_time_line() -> None:
    result = _run("SpMV")
    picture = result.picture()
    assert picture.svg == _run("SpMV").picture().svg
    root = _checked(picture)
    bars = [found for found in root.findall(f"{SVG}rect") if found.find(f"{SVG}title") is not None]
    rows: dict[str, list[tuple[float, float]]] = {}
    for bar in bars:
        x, width = float(bar.get("x", "")), float(bar.get("width", ""))
        assert width > 0
        rows.setdefault(bar.get("y", ""), []).append((x, x + width))
    assert all(one[1] <= other[0] + 0.2 for row in rows.values() for one, other in pairwise(row))
    titles = [bar.findtext(f"{SVG}title") or "" for bar in bars]
    assert any(": busy " in title for title in titles)
    assert any(": starved by " in title for title in titles)
    fills = {bar.get("fill") for bar in bars}
    assert len(fills) >= 2


def test_rows_are_patterns_and_partitions() -> None:
    result = _run("SpMV")
    line = result.run.timeline(bins=10)
    rows = rows_of(line)
    for pattern in ("i", "i/j_entry"):
        found = [row for row in rows if row.pattern == pattern]
        assert [row.partition for row in found] == list(range(16))
    fired = line.cycles[0].sum(axis=1)
    inner = [row for row in rows if row.pattern == "i/j_entry"]
    for row in inner:
        others = [
            pe
            for pe, (timing, place) in enumerate(line.rows())
            if (timing.node.region, place) == (row.pattern, row.partition)
        ]
        assert fired[row.pe] == max(fired[others])


@pytest.mark.slow
@pytest.mark.parametrize("name", [row.name for row in PAPER])
def test_pictures_of_all_kernels(name: str) -> None:
    result = _run(name)
    _checked(result.picture())
    _checked(result.roofline())
    _checked(result.retime(memory=IDEAL).picture())
    assert all(rate >= result.roofs().achieved for rate in result.roofs().roofs.values())


def test_a_roofline(tmp_path: Path) -> None:
    result = _run("SpMV")
    found = result.roofs()
    assert found.achieved == result.entries / result.cycles
    assert found.achieved / found.dram == pytest.approx(result.share_of_peak, rel=1e-3)
    assert list(found.roofs) == ["DRAM", "network and banks", f"datapath: {found.busiest}"]
    assert all(rate >= found.achieved for rate in found.roofs.values())
    root = _checked(result.roofline())
    assert len(root.findall(f"{SVG}circle")) == 1
    titles = [title.text or "" for title in root.findall(f".//*/{SVG}title")]
    assert sum("entries per cycle" in title for title in titles) == 4
    path = result.roofline().write(tmp_path / "roofs.svg")
    assert path.read_text(encoding="utf-8") == result.roofline().svg
    assert "network and banks" not in _run("Plus2", size=6).roofs().roofs


def test_runs_without_pictures() -> None:
    ideal = _run("SpMV", memory=IDEAL)
    with pytest.raises(UserError, match="this run has no roofline") as found:
        ideal.roofline()
    assert "entries and 0 bytes with memory ideal" in str(found.value)
    assert "expected: a run with a DRAM that moves entries" in str(found.value)
    plain = _run("SpMV", engine="python", size=4)
    for wanted in (plain.picture, plain.roofline):
        with pytest.raises(UserError, match="this run recorded no per-cycle activity") as said:
            wanted()
        assert "hint:     simulate with engine='native'" in str(said.value)


def test_figure_10() -> None:
    cycles = {"SpMV": [10 * n + 10 for n in range(12)][::-1], "Plus2": [12] * 12}
    picture = bandwidth.figure_10(cycles)
    assert picture.svg == bandwidth.figure_10(cycles).svg
    root = _checked(picture)
    lines = [one for one in root.findall(f"{SVG}path") if one.find(f"{SVG}title") is not None]
    assert [one.findtext(f"{SVG}title") for one in lines] == [
        "SpMV: 12.00 at 20 GB/s",
        "Plus2: 1.00 at 20 GB/s",
    ]
    flat = [point.split()[1] for point in (lines[1].get("d") or "")[1:].split("L")]
    assert len(flat) == 12
    assert len(set(flat)) == 1


def test_ten_lines_of_figure_10_are_told_apart() -> None:
    cycles = {row.name: [12 + n] * 12 for n, row in enumerate(PAPER)}
    root = _checked(bandwidth.figure_10(cycles))
    looks = Counter(
        (path.get("stroke"), path.get("stroke-dasharray"))
        for path in root.findall(f"{SVG}path")
        if path.get("stroke-width") == "2"
    )
    # the line and its piece in the legend
    assert list(looks.values()) == 10 * [2]


@pytest.mark.slow
def test_the_command_writes_figure_10(tmp_path: Path) -> None:
    bandwidth.main(["--quick", "--only", "Plus2", "--out", str(tmp_path / "made")])
    _checked(SvgPicture((tmp_path / "made" / "figure_10.svg").read_text(encoding="utf-8")))


def test_axes_in_powers_of_ten() -> None:
    assert powers([0.5, 20]) == (-1, 2)
    assert powers([10.0]) == (1, 2)
    plot = LogPlot(x=(0, 2), y=(0, 1))
    (left, bottom), (middle, _), (right, top) = map(plot.place, ((1, 1), (10, 1), (100, 10)))
    assert middle == (left + right) / 2
    assert np.all(np.array([left, top]) < (right, bottom))
