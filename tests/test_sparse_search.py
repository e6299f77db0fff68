"""``sparse.search`` beside plain loops over its space, its samples, its texts and its errors."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse as sp
from typer.testing import CliRunner

import t2s
from t2s import sparse
from t2s.command.main import app
from t2s.driver import sparse_search
from t2s.driver.sparse_bound import Bounds
from t2s.driver.sparse_search import sample_of, stratified
from t2s.driver.sparse_search_result import Measurement
from t2s.driver.sparse_space import DIRECTIVES, SparseSpace
from t2s.errors import T2SError, UserError


def skewed(rows: int, columns: int, seed: int) -> sp.csr_array:
    """A matrix with one long row, a band, and empty rows."""
    random = np.random.default_rng(seed)
    made = np.zeros((rows, columns))
    made[1, ::2] = random.integers(1, 5, len(made[1, ::2]))
    for row in range(2, rows):
        if row % 3:
            made[row, row % columns] = made[row, (row + 1) % columns] = random.integers(1, 5)
    return sp.csr_array(made)


def plain_minimum(space: SparseSpace, inputs: dict[str, Any]) -> int:
    """The least cycles over all candidates, each compiled and run by itself."""
    found = []
    for group in space.candidates():
        for candidate in group:
            try:
                kernel = candidate.kernel(space.assignment)
            except T2SError:
                continue
            found.append(t2s.cycles(kernel, inputs))
    return min(found)


A = skewed(6, 5, 0)
TENSOR = np.random.default_rng(0).integers(1, 4, (3, 3, 2)) * (
    np.arange(18).reshape(3, 3, 2) % 3 == 0
)
CASES: dict[str, tuple[str, list[str], dict[str, Any], dict[str, Any]]] = {
    "SpMV": ("y(i)=A(i,j)*x(j)", [], {"A": A, "x": np.arange(1.0, 6.0)}, {"lanes": 2}),
    "SpMSpM": (
        "X(i,j)=B(i,k)*C(k,j)",
        ["X:ss"],
        {"B": A, "C": sp.csr_array(A.T)},
        {"lanes": 1, "fixed": ["X", "B"]},
    ),
    "SpMM": (
        "X(i,j)=B(i,k)*C(k,j)",
        ["X:dd"],
        {"B": A, "C": np.ones((5, 2))},
        {"lanes": 1, "fixed": ["X"], "directives": ["scan"]},
    ),
    "A+B": ("X(i,j)=A(i,j)+B(i,j)", ["X:ss"], {"A": A, "B": skewed(6, 5, 1)}, {"lanes": 1}),
    "SDDMM": (
        "X(i,j)=B(i,j)*C(i,k)*D(k,j)",
        ["X:ss"],
        {"B": A, "C": np.ones((6, 2)), "D": np.ones((2, 5))},
        {"lanes": 1, "fixed": ["X", "B"], "directives": ["precompute"]},
    ),
    "MTTKRP": (
        "X(i,j)=B(i,k,l)*C(k,j)*D(l,j)",
        ["X:dd", "B:sss"],
        {"B": TENSOR.astype(float), "C": np.ones((3, 2)), "D": np.ones((2, 2))},
        {"lanes": 1, "fixed": ["X", "B", "C", "D"], "directives": []},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_winner_is_the_minimum_of_its_space(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expression, formats, inputs, options = CASES[name]
    spaces: list[SparseSpace] = []
    original = sparse_search._space

    def recorded(*arguments: Any) -> Any:
        made = original(*arguments)
        spaces.append(made[0])
        return made

    monkeypatch.setattr(sparse_search, "_space", recorded)
    found = sparse.search(expression, inputs, formats=formats, progress=False, **options)
    assert found.finished
    assert found.checked
    assert found.cycles == plain_minimum(spaces[0], inputs)
    assert found.cycles == t2s.cycles(found.kernel, inputs)
    full = [point.cycles for point in found.points if point.measurement is Measurement.FULL]
    assert full == sorted(full)
    candidates = sum(len(group) for group in spaces[0].candidates())
    assert found.tried + found.ruled_out + sum(found.refused.values()) <= candidates


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_no_bound_is_above_the_cycles(name: str) -> None:
    """Of every point with 1, 2 and 4 lanes, on matrices with empty rows."""
    kinds = CASES[name][3].get("directives", DIRECTIVES)
    expression, formats, inputs, options = CASES[name]
    declared = sparse_search._declared(expression, formats, inputs)
    space, tensors = sparse_search._space(
        declared, inputs, options.get("fixed", ()), "ds", tuple(kinds), 4, None
    )
    bounds = Bounds(inputs=tensors, extents=space.extents)
    shares = []
    for point in filter(None, space.compiled({})):
        stored = {
            key: value.convert(point.kernel.assignment.tensor(key).format)
            for key, value in tensors.items()
        }
        bound = bounds.of(point.kernel, stored)
        cycles = t2s.cycles(point.kernel, stored)
        assert bound <= cycles, point.candidate
        shares.append(bound / cycles)
    assert max(shares) > 0.2


def test_a_bound_counts_products_and_scanned_coordinates() -> None:
    """A times its transpose: products if rows of both are walked, scans of pairs of rows if not."""
    matrix = sp.csr_array(skewed(60, 50, 3))
    dense = matrix.toarray() != 0
    inputs = {"B": sparse.tensor(matrix), "C": sparse.tensor(sp.csr_array(matrix.T))}
    rows, entries = int(dense.any(1).sum()), int(dense.sum())
    products = int((dense.sum(0) ** 2).sum()) + entries  # and the end of a row of C for each entry
    for order, formats, lanes, expected in (
        ("i,k,j", ["B:ss", "C:ds"], 1, products),
        ("i,k,j", ["B:ss", "C:ds"], 4, -(-products // 4)),
        ("i,k,j", ["B:ss", "C:ss"], 1, max(products, rows * int(dense.any(0).sum()))),
        ("i,j,k", ["B:ss", "C:ss:1,0"], 1, rows * entries),
    ):
        schedule = f"reorder({order})" + (f", parallelize(i,{lanes})" if lanes > 1 else "")
        parsed = sparse.parse("X(i,j)=B(i,k)*C(k,j)", ["X:ss", *formats])
        kernel = sparse.compile(parsed, schedule)
        stored = {name: inputs[name].convert(parsed.tensor(name).format) for name in inputs}
        bounds = Bounds(inputs=inputs, extents={"i": 60, "j": 60, "k": 50})
        assert bounds.of(kernel, stored) == expected, (order, formats, lanes)


@pytest.fixture(scope="module")
def found() -> sparse.SparseSearchResult:
    return _small_search()


def _small_search() -> sparse.SparseSearchResult:
    return sparse.search(
        "y(i)=A(i,j)*x(j)",
        {"A": A, "x": np.arange(1.0, 6.0)},
        lanes=2,
        fixed=["x", "y"],
        directives=["skip"],
        progress=False,
    )


def test_program_and_reasons(found: sparse.SparseSearchResult) -> None:
    inputs = {"A": A, "x": np.arange(1.0, 6.0)}
    namespace: dict[str, Any] = {}
    exec(found.program(), namespace)
    assert t2s.cycles(namespace["kernel"], inputs) == found.cycles
    assert found.default_cycles is not None
    assert found.default_cycles >= found.cycles
    assert "times those of the best" in found.saved
    assert found.why(2).startswith("2: ")
    assert "in place of" in found.why(2)
    assert found.front[0] == found.points[0]
    assert "reorder" in str(found)
    assert found.program().splitlines()[0] in found._repr_html_()
    again = _small_search()
    assert str(again) == str(found)
    with pytest.raises(UserError, match=r"why\(\) takes the number of a point"):
        found.why(1)


def test_the_command_runs_to_the_same_cycles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options = ["y(i)=A(i,j)*x(j)", "-f", "A:ds", "--random", "A=0.3", "--random", "x"]
    options += ["-d", "i=6", "-d", "j=5", "--seed", "1"]
    options += ["--search", "--fixed", "x", "--fixed", "y", "--lanes", "2"]
    ran = CliRunner().invoke(app, ["tensor", *options, "--json"])
    assert ran.exit_code == 0, ran.output
    record = json.loads(ran.stdout)
    assert record["schema"] == "t2s.tensor.search/1"
    assert record["points"][0]["cycles"] == record["cycles"]
    words = shlex.split(record["command"])[1:]
    replay = CliRunner().invoke(app, [*words, "--json"])
    assert replay.exit_code == 0, replay.output
    assert json.loads(replay.stdout)["cycles"] == record["cycles"]


def test_formats_are_compared_on_the_same_entries() -> None:
    """Stored zeros of an input are entries in every format, not only in its own."""
    matrix = A.copy()
    matrix.data[::2] = 0
    dense = np.arange(1.0, 6.0)
    options: dict[str, Any] = {"lanes": 1, "fixed": ["x", "y"], "directives": []}
    cycles = []
    for data in (matrix, A):
        inputs = {"A": data, "x": dense}
        found = sparse.search("y(i)=A(i,j)*x(j)", inputs, progress=False, **options)
        assert t2s.cycles(found.kernel, inputs) == found.cycles
        cycles.append({(p.schedule, *p.formats.values()): p.cycles for p in found.points})
    assert cycles[0] == cycles[1]


def test_points_are_cut_and_ranked_by_samples_where_runs_are_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a low limit of what is a long run, all of it happens on a small matrix."""
    monkeypatch.setattr(sparse_search, "LONG_RUN", 400)
    monkeypatch.setattr(sparse_search, "FINALISTS", 2)
    matrix = sp.csr_array(skewed(200, 80, 3))
    options: dict[str, Any] = {"lanes": 2, "fixed": ["x", "y"], "directives": [], "progress": False}
    inputs = {"A": matrix, "x": np.ones(80)}
    ranked = sparse.search("y(i)=A(i,j)*x(j)", inputs, **options)
    assert "64 of the 200 coordinates of i" in ranked.sampled
    assert ranked.points[0].measurement is Measurement.FULL
    assert ranked.cycles == t2s.cycles(ranked.kernel, inputs)
    monkeypatch.undo()
    assert sparse.search("y(i)=A(i,j)*x(j)", inputs, **options).cycles == ranked.cycles


def test_a_sample_has_the_longest_row_and_rows_of_all_lengths() -> None:
    lengths = np.repeat([0, 1, 2, 50], [50, 100, 49, 1])
    chosen = stratified(lengths, 20, 0)
    assert 199 in chosen
    assert len(set(chosen)) == 20
    assert set(lengths[chosen]) == {0, 1, 2, 50}
    assert np.array_equal(chosen, stratified(lengths, 20, 0))
    matrix = skewed(200, 80, 3)
    assignment = sparse.parse("X(i,j)=A(i,k)*B(k,j)+C(i,j)", ["A:ds", "B:ds", "C:ds"])
    inputs = {
        "A": sparse.tensor(matrix),
        "B": sparse.tensor(sp.csr_array(np.eye(80))),
        "C": sparse.tensor(matrix),
    }
    sample = sample_of(assignment, inputs, 0)
    assert sample is not None
    assert sample.inputs["B"] is inputs["B"]
    small = sample.inputs["A"].to_dense()
    assert small.shape == (64, 80)
    assert np.array_equal(small, sample.inputs["C"].to_dense())
    assert (matrix.toarray()[1] == small).all(axis=1).any()
    sampled = sparse.parse("X(i,j)=B(i,j)*C(i,k)*D(k,j)", ["X:ds", "B:ds"])
    wide = {"B": skewed(200, 800, 3), "C": np.ones((200, 8)), "D": np.ones((8, 800))}
    sample = sample_of(sampled, {name: sparse.tensor(value) for name, value in wide.items()}, 0)
    assert sample is not None
    assert (sample.variable, sample.count) == ("i", 64)  # D is larger, but not sparse


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "seconds": ({"seconds": 0}, "seconds= must be a time in seconds"),
    "lanes": ({"lanes": 0}, "lanes= must be a positive integer"),
    "fixed": ({"fixed": ["Q"]}, "fixed= names Q, which the expression does not have"),
    "directives": ({"directives": ["tile"]}, "directives= must list kinds of directives"),
    "levels": ({"levels": ""}, "levels= must be letters of level formats"),
    "unknown level": ({"levels": "dz"}, "unknown level kind z"),
    "no point": ({"blocks": 1}, "no point of the space is legal"),
    "inputs": ({"inputs": {"A": A}}, "the input x is missing"),
    "shapes": ({"inputs": {"A": A, "x": np.ones(9)}}, "j"),
}


def test_errors() -> None:
    for name, (options, message) in REFUSED.items():
        given = {"inputs": {"A": A, "x": np.ones(5)}, "progress": False} | options
        with pytest.raises(UserError) as caught:
            sparse.search("y(i)=A(i,j)*x(j)", **given)
        assert message in str(caught.value), name
    with pytest.raises(UserError, match="more than 1 blocks"):
        sparse.search(
            "y(i)=A(i,j)*x(j)", {"A": A, "x": np.ones(5)}, blocks=1, lanes=1, progress=False
        )


def test_the_command_refuses_options_that_do_not_fit() -> None:
    """A search chooses the schedule, and its options are for nothing without it."""
    data = ["y(i)=A(i,j)*x(j)", "--random", "A", "--random", "x", "-d", "i=6", "-d", "j=5"]
    for options, message in (
        (["--lanes", "2"], "--lanes, --fixed and --seconds are options of a search"),
        (["--search", "--order", "j i"], "--search chooses the schedule"),
        (["--search", "--capacity", "2"], "--search chooses the schedule"),
        (["--search", "--seconds", "0"], "seconds= must be a time in seconds"),
        (["--search", "--fixed", "Q"], "fixed= names Q"),
    ):
        ran = CliRunner().invoke(app, ["tensor", *data, *options])
        assert ran.exit_code == 1, options
        assert message in ran.stderr, options


def test_ctrl_c_returns_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    original, runs = sparse_search._Search._run_full, []

    def interrupted(self: Any, index: int) -> None:
        runs.append(index)
        if len(runs) > 1:
            raise KeyboardInterrupt
        original(self, index)

    monkeypatch.setattr(sparse_search._Search, "_run_full", interrupted)
    found = _small_search()
    assert not found.finished
    assert found.interrupted
    assert found.tried == 1
    assert "the space was not finished" in str(found)
