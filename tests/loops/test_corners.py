"""Corners of compiled loops: extents 0 and 1, growth, sizes, indices, inputs, what is kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from t2s import Float, Int, Var, external, sparse
from t2s.core.types import Type
from t2s.errors import UserError
from t2s.loops.lower import lower_to_loops
from t2s.loops.machine import machine_code
from t2s.loops.running import FIRST_ROOM, LARGEST_WORKSPACE, StageMemory, run_assignment
from t2s.sparse import Schedule, SparseTensor
from t2s.sparse_repr.notation.ir import accesses
from t2s.sparse_repr.notation.legality import extents_of, with_semiring


def _computed(
    text: str,
    formats: dict[str, str],
    inputs: dict[str, Any],
    type: Type | None = None,
    **said: Any,
) -> SparseTensor:
    """The result of a statement, which agrees with numpy, bit by bit for integers in any type."""
    assignment = sparse.parse(text, formats)
    semiring = said.get("semiring", sparse.PLUS_TIMES)
    assignment = with_semiring(assignment, semiring)
    kind = type or Float(64)
    stored = {
        name: sparse.tensor(np.asarray(value, kind.numpy), assignment.tensor(name).format)
        if not isinstance(value, SparseTensor)
        else value
        for name, value in inputs.items()
    }
    shapes = {name: one.shape for name, one in stored.items()}
    found = run_assignment(assignment, stored, extents_of(assignment, shapes), kind)
    expected = sparse.interpret(assignment, stored, type=kind, **said)
    assert np.array_equal(found.to_dense(), expected)
    assert {access.tensor for access in accesses(assignment.value)} == set(inputs)
    return found


@pytest.mark.parametrize("extents", [(0, 0, 0), (0, 3, 2), (3, 0, 2), (3, 2, 0), (1, 1, 1)])
@pytest.mark.parametrize("result", ["ds", "ss", "dd", "uq"])
def test_extents_of_nothing_and_one(extents: tuple[int, int, int], result: str) -> None:
    one, two, three = extents
    found = _computed(
        "X(i,j) = A(i,k)*B(k,j)",
        {"A": "ds", "B": "ss", "X": result},
        {"A": np.ones((one, three)), "B": np.ones((three, two))},
    )
    assert found.shape == (one, two)
    if not result.startswith("d"):
        assert len(found.values) == (one * two if three else 0)


def test_results_grow() -> None:
    """Beyond the first room of each level, and below one another."""
    count = 5 * FIRST_ROOM
    product = _computed(
        "X(i,j) = a(i)*b(j)",
        {"a": "s", "b": "s", "X": "ss"},
        {"a": np.arange(1.0, count + 1), "b": np.arange(1.0, count)},
    )
    assert len(product.values) == count * (count - 1)
    found = _computed("X(i,j) = A(i,j)*2", {"A": "ss", "X": "ss"}, {"A": np.ones((count, 3))})
    assert len(found.values) == 3 * count
    assert len(found.levels[0]["crd"]) == count
    assert found.levels[1]["pos"].tolist() == list(range(0, 3 * count + 1, 3))


def test_a_sum_has_room_from_the_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the entries of both operands, so that nothing grows; a dense product of them does."""
    grown: list[int] = []
    keep = StageMemory._grow
    monkeypatch.setattr(StageMemory, "_grow", lambda *given: grown.append(1) or keep(*given))
    count = 3 * FIRST_ROOM
    given = {"A": np.eye(count), "B": np.fliplr(np.eye(count))}
    found = _computed("X(i,j) = A(i,j)+B(i,j)", {"A": "ds", "B": "ds", "X": "ds"}, given)
    assert (len(found.values), grown) == (2 * count, [])
    _computed("X(i,j) = a(i)*b(j)", {"a": "s", "b": "s", "X": "ds"}, {"a": [1] * 99, "b": [1] * 99})
    assert grown


def test_rows_without_entries_are_not_there() -> None:
    matrix = np.zeros((6, 4))
    matrix[[1, 4], [2, 0]] = 1
    found = _computed(
        "X(i,j) = A(i,j)*B(i,j)", {"A": "ss", "B": "ss", "X": "ss"}, {"A": matrix, "B": matrix}
    )
    assert found.levels[0]["crd"].tolist() == [1, 4]
    other = np.roll(matrix, 1, axis=1)
    found = _computed(
        "X(i,j) = A(i,j)*B(i,j)", {"A": "ss", "B": "ss", "X": "ss"}, {"A": matrix, "B": other}
    )
    assert len(found.levels[0]["crd"]) == 0


def test_huge_extents_of_what_is_sparse() -> None:
    far = (1 << 62) - 1
    one = sparse.from_coordinates([[3, far], [far, 0]], [2.0, 5.0], (1 << 62, 1 << 62), "ss")
    assignment = sparse.parse("X(i,j) = A(i,j)+A(i,j)*A(i,j)", {"A": "ss", "X": "ss"})
    extents = {"i": 1 << 62, "j": 1 << 62}
    found = run_assignment(assignment, {"A": one}, extents, Float(64))
    assert found.values.tolist() == [6.0, 30.0]
    assert found.levels[1]["crd"].tolist() == [far, 0]


def test_workspaces_that_do_not_fit_are_refused() -> None:
    wide = sparse.from_coordinates([[0, LARGEST_WORKSPACE]], [1.0], (1, 1 << 32), "ss")
    left = sparse.from_coordinates([[0, 0]], [1.0], (1, 1), "ss")
    assignment = sparse.parse("X(i,j) = B(i,k)*C(k,j)", {"B": "ss", "C": "ss", "X": "ss"})
    extents = {"i": 1, "k": 1, "j": 1 << 32}
    with pytest.raises(UserError) as caught:
        run_assignment(assignment, {"B": left, "C": wide}, extents, Float(64))
    text = str(caught.value)
    assert "the workspace over j is too large" in text
    assert "given:    4294967296 coordinates, 103079215104 bytes" in text
    huge = {"i": 1 << 40, "j": 1 << 40}
    matrix = sparse.from_coordinates([[0, 0]], [1.0], (1 << 40, 1 << 40), "ss")
    copied = sparse.parse("X(i,j) = A(i,j)", {"A": "ss"})
    with pytest.raises(UserError, match="positions"):
        run_assignment(copied, {"A": matrix}, huge, Float(64))


@pytest.mark.parametrize("type", [np.int32, np.int64, np.int16, np.int8])
def test_integers_of_levels(type: Any) -> None:
    """Those of 32 bits are read where they are; others become 64 bits."""
    levels = ({}, {"pos": np.array([0, 2, 3], type), "crd": np.array([0, 3, 1], type)})
    matrix = sparse.from_levels((2, 4), "ds", levels, np.array([1.0, 2.0, 3.0]))
    found = _computed("y(i) = A(i,j)*x(j)", {"A": "ds"}, {"A": matrix, "x": np.arange(1.0, 5.0)})
    assert found.values.tolist() == [9.0, 6.0]


def test_sums_in_any_order_of_coordinates() -> None:
    """A list that is sorted, and one that is found by its marks: few and many of the places."""
    generator = np.random.default_rng(3)
    for density in (0.02, 0.7):
        left = generator.random((4, 60)) < density
        right = generator.random((60, 300)) < density / 4
        _computed(
            "X(i,j) = A(i,k)*B(k,j)",
            {"A": "ds", "B": "ds", "X": "ds"},
            {"A": left * 3, "B": right * np.arange(300)},
            Int(64),
        )


def test_dense_arrays_are_read_where_they_are() -> None:
    larger = np.arange(600.0).reshape(20, 30)
    assignment = sparse.parse("X(i,j) = A(i,j)*B(j,i)", {"A": "ds", "X": "ds"})
    window, turned = larger[3:8, 1:20:3], larger.T[10:17, 5:10]
    matrix = sparse.tensor(np.eye(5, 7), "ds")
    found = run_assignment(assignment, {"A": matrix, "B": turned}, {"i": 5, "j": 7}, Float(64))
    assert np.array_equal(found.to_dense(), np.eye(5, 7) * turned.T)
    diagonal = sparse.parse("x(i) = A(i,i)")
    found = run_assignment(diagonal, {"A": window[:, :5]}, {"i": 5}, Float(64))
    assert np.array_equal(found.values, np.diagonal(window[:, :5]))
    mirrored = run_assignment(
        sparse.parse("x(i) = 2*a(i)"), {"a": np.arange(5.0)[::-1]}, {"i": 5}, Float(64)
    )
    assert mirrored.values.tolist() == [8, 6, 4, 2, 0]


def test_code_is_kept_by_structure() -> None:
    """Other extents and other values are no other code, and what is kept is bounded."""

    def run(extent: int) -> None:
        _computed("y(i) = A(i,j)*x(j)", {"A": "ds"}, {"A": np.eye(extent), "x": np.ones(extent)})

    run(3)
    before = machine_code.cache_info().misses, lower_to_loops.cache_info().misses
    run(7)
    assert (machine_code.cache_info().misses, lower_to_loops.cache_info().misses) == before
    for kept in (machine_code, lower_to_loops):
        assert kept.cache_info().maxsize is not None


def test_results_of_plans_stay_sparse() -> None:
    """A sampled product over a matrix that would not fit into memory as a dense one."""
    far = 1 << 20
    points = [[0, 5], [7, far - 1], [far - 1, 7]]
    matrix = sparse.from_coordinates(points, [1.0, 2.0, 3.0], (far, far), "ss")
    i, j = Var("i"), Var("j")
    A, B = sparse.Tensor("A", "ss"), sparse.Tensor("B", "ss")
    c, d = sparse.Tensor("c", "d"), sparse.Tensor("d", "d")
    A[i, j] = B[i, j] * (c[i] + d[i])
    plan = sparse.compile(A, Schedule().map(c[i] + d[i], external.numpy.add))
    found = plan.run({"B": matrix, "c": np.arange(float(far)), "d": np.ones(far)})
    assert found.tensor.values.tolist() == [1.0, 16.0, 3.0 * far]
    assert found.tensor.shape == (far, far)
