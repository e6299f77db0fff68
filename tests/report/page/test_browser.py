"""The page in a browser: no errors, no requests, and each view clicks and zooms.

Skipped where there is no Chromium with its driver; ``.ci/run`` installs them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import t2s
from t2s.simulator.report.errors import DeadlockError
from t2s.simulator.report.result import SimResult
from tests.browser import asked_for, needs_chromium, opened_browser, show
from tests.examples.test_recurrences import example
from tests.report.page.designs import inputs_of, product, rows

pytestmark = [pytest.mark.slow, needs_chromium]


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with opened_browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(scope="module")
def result() -> SimResult:
    made: SimResult = t2s.simulate(product(16, 64), inputs_of(16, 64), device="arria10")
    return made


class Opened:
    """A page in the browser."""

    def __init__(self, driver: Any, page: Path, width: int = 1280, dark: bool = False) -> None:
        self.driver = driver
        self.page = page
        show(driver, page.as_uri(), width, dark)
        self.ready()

    def ready(self) -> None:
        script = """
            const done = arguments[0];
            const look = () => {
              const views = [...document.querySelectorAll(".space-time")];
              if (views.every((view) => view.dataset.ready)) done(true);
              else setTimeout(look, 20);
            };
            look();
        """
        assert self.driver.execute_async_script(script)

    def js(self, script: str, *arguments: object) -> Any:
        return self.driver.execute_script(script, *arguments)

    def is_clean(self) -> None:
        """No errors on the console, and no request but for the page."""
        assert self.driver.get_log("browser") == []
        assert asked_for(self.driver) <= {self.page.as_uri(), "data:,"}

    def pixel(self, x: int, y: int) -> list[int]:
        found: list[int] = self.js(
            "const c = document.querySelector('canvas');"
            "return [...c.getContext('2d').getImageData(arguments[0], arguments[1], 1, 1).data]",
            x,
            y,
        )
        return found[:3]


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("dark", [False, True])
def test_the_page_opens(
    driver: Any, result: SimResult, tmp_path: Path, width: int, dark: bool
) -> None:
    page = Opened(driver, result.report(tmp_path / "page.html"), width, dark)
    page.is_clean()
    assert page.js("return document.documentElement.scrollWidth") <= width
    color = page.js("return getComputedStyle(document.body).backgroundColor")
    assert color == ("rgb(13, 17, 23)" if dark else "rgb(255, 255, 255)")
    assert page.js("return document.querySelector('.item-cycles dd').textContent") == (
        f"{result.cycles:,}"
    )


def test_the_flame_graph_widens_and_shows_the_line(
    driver: Any, result: SimResult, tmp_path: Path
) -> None:
    page = Opened(driver, result.report(tmp_path / "page.html"))
    find = """[...document.querySelectorAll('.flame .part')].find((one) =>
        one.getAttribute('aria-label').startsWith(arguments[0]))"""
    before = page.js(f"return {find}.getBoundingClientRect().width", "C: ")
    page.js(f"{find}.dispatchEvent(new MouseEvent('click', {{bubbles: true}}))", "C: ")
    whole = page.js("return document.querySelector('.flame').getBoundingClientRect().width")
    assert page.js(f"return {find}.getBoundingClientRect().width", "C: ") > 0.98 * whole > before
    status = page.js("return document.querySelector('.flame-view .status').textContent")
    cycles = result.stalls["C"].pe_cycles
    assert status.startswith(f"C: {cycles:,} PE-cycles, ")
    assert page.js("return document.querySelector('#source h3').textContent").startswith(
        "designs.py:"
    )
    marked = page.js("return document.querySelector('#source mark').textContent")
    assert "Func(name)" in marked or "C[i, j]" in marked
    page.js(
        "document.activeElement.dispatchEvent(new KeyboardEvent('keydown',"
        "{key: 'Escape', bubbles: true}))"
    )
    assert page.js("return document.querySelector('#source').hidden")
    page.js("document.querySelector('.flame-view .reset').click()")
    assert page.js(f"return {find}.getBoundingClientRect().width", "C: ") == pytest.approx(before)
    page.is_clean()


@pytest.mark.parametrize("width", [1280, 390])
def test_names_fit_into_their_parts(
    driver: Any, result: SimResult, tmp_path: Path, width: int
) -> None:
    page = Opened(driver, result.report(tmp_path / "page.html"), width)
    wide = """[...document.querySelectorAll('.flame .part')].filter((part) =>
        part.style.display !== 'none').map((part) => [
            part.querySelector('text').getComputedTextLength(),
            part.querySelector('rect').getBoundingClientRect().width,
            part.querySelector('text').textContent])"""
    before = page.js(f"return {wide}")
    assert all(length <= room - 9 for length, room, text in before if text)
    page.js(
        "document.querySelectorAll('.flame .part')[1].dispatchEvent("
        "new MouseEvent('click', {bubbles: true}))"
    )
    zoomed = page.js(f"return {wide}")
    assert all(length <= room - 9 for length, room, text in zoomed if text)
    assert {"A_loader", "busy"} <= {text for *_, text in zoomed}
    page.js("document.querySelector('.flame-view .reset').click()")
    assert [text for *_, text in page.js(f"return {wide}")] == [text for *_, text in before]


def test_every_node_has_a_name_beside_its_rows(driver: Any, tmp_path: Path) -> None:
    """A name without room beside the row above moves down; M has many rows, the one above one."""
    case = example("pairhmm")
    run = t2s.simulate(case.design(case.TINY), case.reads(case.TINY), device="arria10")
    page = Opened(driver, run.report(tmp_path / "page.html"))
    drawn = page.js(
        "const d = document.t2sDiagrams[0]; const seen = [];"
        "const ink = d.ink; const fill = ink.fillText.bind(ink);"
        "ink.fillText = (text, x, y) => { seen.push([text, y]); fill(text, x, y); };"
        "d.draw(); return seen"
    )
    names = dict(drawn)
    assert set(run.nodes) <= set(names)
    heights = sorted(names[name] for name in run.nodes)
    assert all(b - a >= 11 for a, b in pairwise(heights))
    page.is_clean()


def test_the_flame_graph_by_keyboard(driver: Any, result: SimResult, tmp_path: Path) -> None:
    page = Opened(driver, result.report(tmp_path / "page.html"))
    page.js("document.querySelectorAll('.flame .part')[1].focus()")
    page.js(
        "document.activeElement.dispatchEvent(new KeyboardEvent('keydown',"
        "{key: 'Enter', bubbles: true}))"
    )
    assert not page.js("return document.querySelector('.reset').hidden")
    page.is_clean()


STATES = ("busy", "waiting", "starved", "blocked", "idle")


def test_the_diagram_says_what_the_simulator_says(
    driver: Any, result: SimResult, tmp_path: Path
) -> None:
    page = Opened(driver, result.report(tmp_path / "page.html", inputs=inputs_of(16, 64)))
    shown = page.js("return document.t2sDiagrams[0].model.strips[1].first")
    line = result.timeline((1, shown + 60))
    states = line.main_states()
    for pe in range(0, states.shape[0], 3):
        for cycle in (shown, shown + 1, shown + 40, shown + 60):
            text = page.js(
                "return document.t2sDiagrams[0].describe(arguments[0], arguments[1])", pe, cycle
            )
            label = result.program.pe_label(pe)
            state = states[pe, cycle - 1]
            assert text.startswith(f"{label}, cycle {cycle}: {STATES[state]}")
            cause = line.cause(pe, cycle - 1)
            assert (f"for {cause}" in text) == (cause is not None)
            if state == 0:
                assert f"firing {line.firings[pe, cycle - 1]:,} (" in text
                assert "; " in text  # values
    page.is_clean()


def test_the_diagram_zooms(driver: Any, result: SimResult, tmp_path: Path) -> None:
    page = Opened(driver, result.report(tmp_path / "page.html"))
    span = "const d = document.t2sDiagrams[0]; return d.to - d.from"
    assert page.js(span) == result.cycles
    for button, expected in (("in", 0.5), ("in", 0.25), ("out", 0.5)):
        page.js(f"document.querySelector('[data-move={button}]').click()")
        assert page.js(span) == pytest.approx(expected * result.cycles)
    said = "return document.querySelector('.space-time .status').textContent"
    assert page.js(said).startswith("cycles ")
    assert re.search(r", in bins of \d+: result\.report\(path, windows=\[\(", page.js(said))
    page.js("document.querySelectorAll('[data-strip]')[1].click()")
    assert page.js(said).startswith("fill: cycles ")
    # the first loader is busy when the window opens: blue
    first = int(page.js("return document.t2sDiagrams[0].from")) + 1
    assert result.timeline((first, first)).main_states()[0, 0] == 0
    assert page.pixel(100, 2) == [0x00, 0x72, 0xB2]
    page.js("document.querySelector('canvas').focus()")
    for key in ("ArrowRight", "ArrowDown", "ArrowRight", "+", "Home"):
        page.js(
            "document.activeElement.dispatchEvent(new KeyboardEvent('keydown',"
            "{key: arguments[0], bubbles: true}))",
            key,
        )
    assert page.js(span) == result.cycles
    assert page.js("const d = document.t2sDiagrams[0]; return d.cell.row") == 1
    page.is_clean()


def test_the_map_and_the_roofline(driver: Any, result: SimResult, tmp_path: Path) -> None:
    page = Opened(driver, result.report(tmp_path / "page.html"))
    assert page.js("return document.querySelectorAll('.chip .cell').length") == (
        result.program.pe_count
    )
    page.js(
        "document.querySelector('.chip .channel').dispatchEvent("
        "new MouseEvent('click', {bubbles: true}))"
    )
    status = page.js("return document.querySelector('.chip-view .status').textContent")
    channel = result.program.channels[0]
    tokens = int(result.program.control.sent[channel.elements].sum())
    assert status.startswith(f"{channel.channel.name} from ")
    assert f"{tokens:,} tokens" in status
    assert page.js("return document.querySelectorAll('.roofline .point').length") == 3
    page.js("document.querySelector('.nest button.place').click()")
    assert not page.js("return document.querySelector('#source').hidden")
    page.is_clean()


def test_the_memory_over_time(driver: Any, tmp_path: Path) -> None:
    result = t2s.simulate(product(16, 64), inputs_of(16, 64), device="arria10", memory="ddr4-2133")
    page = Opened(driver, result.report(tmp_path / "page.html"))
    assert page.js("return document.querySelectorAll('svg.dram').length") == 2
    rate = page.js("return document.querySelector('section[id$=memory] p').textContent")
    assert f"{result.memory.row_hits:.1%}" in rate
    page.is_clean()


def test_a_deadlock(driver: Any, tmp_path: Path) -> None:
    fitted = t2s.fit_depths(rows(), progress=False)
    inputs = {name: np.ones((4, 4), np.float32) for name in "AB"}
    run = t2s.simulate(fitted.apply(rows()), inputs)
    with pytest.raises(DeadlockError) as caught:
        run.retime({"B_along_i": 2})
    error_result = caught.value.result
    page = Opened(driver, error_result.report(tmp_path / "page.html"))
    assert page.js("return document.querySelector('.banner').textContent").startswith(
        "This run ended in a deadlock"
    )
    assert page.js("return document.querySelectorAll('.waits .wait').length") == len(
        error_result.deadlock.waits
    )
    assert "'B_along_i' 2 -> 14" in page.js("return document.querySelector('.remedy').textContent")
    page.is_clean()


def test_scripts_in_names_are_not_run(driver: Any, result: SimResult, tmp_path: Path) -> None:
    hostile = '</script><script>document.title="taken"</script><img src=x onerror=taken()>'
    named = replace(result, graph=hostile)
    vars(named)["warnings"] = (hostile,)
    page = Opened(driver, named.report(tmp_path / "page.html"))
    assert page.js("return document.title").startswith(hostile)
    assert page.js("return document.querySelector('h1').textContent") == hostile
    assert page.js("return document.querySelectorAll('img').length") == 0
    page.is_clean()
    compared = Opened(
        driver, t2s.compare(result, result, names=("A", hostile)).report(tmp_path / "page.html")
    )
    assert hostile in compared.js("return document.body.innerText")
    assert compared.js("return document.querySelectorAll('img').length") == 0
    compared.is_clean()


def test_streams(driver: Any, tmp_path: Path) -> None:
    matrix = np.zeros((60, 60))
    matrix[::3, ::5] = 1.5
    assignment = t2s.sparse.parse("y(i)=A(i,j)*x(j)", ["A:ds"])
    result = t2s.simulate(assignment, {"A": matrix, "x": np.ones(60)})
    page = Opened(driver, result.report(tmp_path / "page.html"), 390)
    text = page.js("return document.t2sDiagrams[0].describe(0, 1)")
    assert text == "root, cycle 1: busy, firing 1 (rule root)"
    page.is_clean()


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_a_comparison(
    driver: Any, result: SimResult, tmp_path: Path, width: int, dark: bool
) -> None:
    """Clean, within the window, and each bar as wide as its cycles."""
    slower = result.retime({"A_loader_to_C": 1, "A_along_jj": 1})
    found = t2s.compare(result, slower)
    opened = Opened(driver, found.report(tmp_path / "page.html"), width, dark)
    opened.is_clean()
    assert opened.js("return document.documentElement.scrollWidth <= window.innerWidth")
    bars = opened.js(
        "return [...document.querySelectorAll('.waterfall rect')].map("
        "(one) => [one.getBoundingClientRect().width, one.previousElementSibling.textContent])"
    )
    changed = [one for one in found.causes if one.change]
    assert [name for _, name in bars] == ["A: C", *(one.use.text for one in changed), "B: C"]
    opened.js("document.querySelector('details').open = true")
    cells = opened.js("return [...document.querySelectorAll('details td')].map(c => c.innerText)")
    assert [text for row in found.tables[1].rows for text in row] == cells


def test_every_node_is_as_high_as_its_name(driver: Any, tmp_path: Path) -> None:
    """A loader of one PE beside 1,024 PEs has twelve pixels, not the two of one of many rows."""
    x, w, i, ii, k = (
        t2s.ImageParam(t2s.Int(32), 1, name="x"),
        t2s.ImageParam(t2s.Int(32), 1, name="w"),
        *t2s.variables("i ii"),
        t2s.RDom(0, 3, name="k"),
    )
    F, loader = t2s.funcs("F loader")
    F[i] = 0
    F[i] += x[i + k] * w[k]
    F.bound(i, 0, 512).split(i, i, ii, 256).unroll(ii)
    F.isolate_producer(w, loader).forward(loader, ii)
    result = t2s.simulate(F, {"x": np.ones(514, np.int32), "w": np.ones(3, np.int32)})
    opened = Opened(driver, result.report(tmp_path / "page.html"))
    heights = opened.js(
        """
        const view = document.querySelector(".space-time");
        const model = JSON.parse(document.getElementById(view.dataset.sourceOf).textContent);
        const counts = {};
        for (const [node] of model.rows) counts[node] = (counts[node] || 0) + 1;
        const usual = Math.max(2, Math.min(18, Math.floor(420 / model.rows.length)));
        const rows = model.rows.map(([node]) => Math.max(usual, Math.ceil(12 / counts[node])));
        return [rows.reduce((a, b) => a + b, 0), view.querySelector("canvas").clientHeight,
                Object.values(counts).includes(1), usual];
        """
    )
    total, canvas, single, usual = heights
    assert (single, usual < 12) == (True, True)
    assert abs(canvas - total - 20) <= 2
    opened.is_clean()
