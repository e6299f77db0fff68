"""``representation.search``: the winner is the minimum of the space, and its bounds hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse as sp

import t2s
from t2s import representation
from t2s.driver import representation_search
from t2s.errors import UserError


def ragged(rows: int, columns: int, type: type = np.float32) -> sp.csr_array:
    """A long row, a band, and empty rows."""
    dense = np.zeros((rows, columns), type)
    dense[1, ::2] = np.arange(1, len(dense[1, ::2]) + 1)
    for row in range(2, rows):
        if row % 3:
            dense[row, row % columns] = dense[row, (row + 3) % columns] = row
    return sp.csr_array(dense)


A = ragged(40, 24)


@pytest.fixture(scope="module")
def found() -> representation.RepresentationSearchResult:
    return representation.search(A, machines=1, progress=False)


def test_program_and_texts(
    found: representation.RepresentationSearchResult, tmp_path: Path
) -> None:
    namespace: dict[str, Any] = {}
    exec(found.save(tmp_path / "best.py").read_text(), namespace)
    inputs = {"A": A, "x": np.ones(24, np.float32)}
    for design in (namespace["y"], found.design):
        assert t2s.cycles(design, inputs, device="arria10") == found.cycles
    assert found.finished
    assert found.lower_bound == found.cycles == found.points[0].cycles
    assert found.best.text in str(found)
    assert "left out are banks of x" in str(found)
    assert "ruled out by bounds" in found.spent
    assert found.program().splitlines()[0] in found._repr_html_()
    ram = [point.ram for point in found.front]
    assert found.front[0] == found.best
    assert len(set(ram)) == len(ram)


@pytest.mark.slow
def test_the_winner_is_the_minimum_and_no_bound_is_above_the_cycles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without bounds all points are run: a search that never has a best one."""
    searched = {d: representation.search(A, machines=2, device=d) for d in ("arria10", "ideal")}
    monkeypatch.setattr(
        representation_search._Search, "_best", property(lambda self: None), raising=True
    )
    for device, found in searched.items():
        every = representation.search(A, machines=2, device=device, progress=False)
        assert len(every.points) + sum(every.refused.values()) + every.over_budget == 44
        for point in every.points:
            assert point.lower_bound <= point.cycles, point.text
        assert every.cycles == found.cycles
        assert len(found.points) < len(every.points) / 2


@pytest.mark.slow
def test_a_budget_and_integers() -> None:
    integers = ragged(30, 30, np.int32)
    free = representation.search(integers, machines=2, progress=False)
    assert free.best.ram is not None
    less = representation.search(integers, machines=2, ram=free.best.ram - 1, progress=False)
    assert less.best.ram is not None
    assert less.best.ram < free.best.ram
    assert less.cycles >= free.cycles
    assert less.over_budget


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "machines": ({"machines": 0}, "machines= must be a positive integer"),
    "seconds": ({"seconds": 0}, "seconds= must be a time in seconds"),
    "dsp": ({"dsp": -1}, "dsp= must be a number of blocks"),
    "no blocks": ({"dsp": 3, "device": "ideal"}, "dsp= must be a number of blocks"),
    "budget": ({"dsp": 1}, "no representation of the matrix fits the budget"),
    "device": ({"device": "abacus"}, "unknown device"),
    "matrix": ({"matrix": "no such file.mtx"}, "no such file.mtx"),
    "no matrix": ({"matrix": 7}, "the matrix is not a matrix"),
}


def test_errors() -> None:
    for name, (options, message) in REFUSED.items():
        arguments = {"matrix": A, "machines": 1, "progress": False} | options
        with pytest.raises(UserError) as caught:
            representation.search(**arguments)
        assert message in str(caught.value), name


def test_ctrl_c_returns_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    original, runs = representation_search._Search._run, []

    def interrupted(self: Any, *arguments: Any) -> None:
        runs.append(arguments)
        if len(runs) > 1:
            raise KeyboardInterrupt
        original(self, *arguments)

    monkeypatch.setattr(representation_search._Search, "_run", interrupted)
    stopped = representation.search(A, machines=2, progress=False)
    assert not stopped.finished
    assert stopped.interrupted
    assert len(stopped.points) == 1
    assert stopped.lower_bound <= stopped.cycles
    assert "the space was not finished" in str(stopped)
