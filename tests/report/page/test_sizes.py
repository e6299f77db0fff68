"""Pages stay small, however long the run is."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pytest

import t2s
from benchmarks.published import ROWS, clocked
from t2s.driver.page_writer import write_page
from t2s.simulator.run import simulate_cycles

README = Path(__file__).parent.parent.parent.parent / "README.md"


def test_the_readme(tmp_path: Path) -> None:
    program = re.search(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    assert program is not None
    names: dict[str, object] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(program[1], names)
    result = names["result"]
    assert result.cycles == 8418  # type: ignore[attr-defined]
    page = result.report(tmp_path / "page.html")  # type: ignore[attr-defined]
    assert page.stat().st_size <= 300_000


@pytest.mark.slow
def test_a_run_of_a_billion_cycles(tmp_path: Path) -> None:
    row = ROWS[0]
    graph = t2s.lower(row.family.build(row.family.sizes(row.sizes)))
    result = simulate_cycles(graph, device=clocked(row))
    assert result.cycles == 1_073_814_688
    page = write_page("gemm", [result], tmp_path / "page.html")
    assert page.stat().st_size <= 1_000_000


@pytest.mark.slow
def test_streams_of_a_hundred_thousand_firings(tmp_path: Path) -> None:
    matrix = (np.random.default_rng(0).random((1000, 1000)) < 0.1) * 1.0
    assignment = t2s.sparse.parse("y(i)=A(i,j)*x(j)", ["A:ds"])
    result = t2s.simulate(assignment, {"A": matrix, "x": np.ones(1000)})
    assert result.cycles > 100_000
    assert result.report(tmp_path / "page.html").stat().st_size <= 1_000_000
