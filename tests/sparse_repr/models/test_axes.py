"""Axes that reshapes divide."""

from __future__ import annotations

import pytest

from t2s.sparse_repr.models.axes import (
    Axis,
    NotAligned,
    extent_of,
    leaves,
    new_axis,
    regrouped,
    unite,
)


def extents(axis: Axis) -> tuple[int, ...]:
    return tuple(leaf.extent for leaf in leaves(axis))


def test_a_reshape_divides_an_axis_and_all_that_share_its_coordinates() -> None:
    columns, shared, other = new_axis(12), new_axis(12), new_axis(12)
    unite(columns, shared)
    rows, heads, within = regrouped([new_axis(5), columns], [5, 3, 4])
    assert (extents(rows), extents(heads), extents(within)) == ((5,), (3,), (4,))
    assert extents(columns) == extents(shared) == (3, 4)
    assert extents(other) == (12,)
    unite(other, shared)  # later ones are divided as they meet
    assert extents(other) == (3, 4)
    assert [leaf.alike for leaf in leaves(other)] == [leaf.alike for leaf in leaves(columns)]


@pytest.mark.parametrize(
    ("shape", "wanted", "factors"),
    [
        ([6], [2, 3], [(2,), (3,)]),
        ([2, 3], [6], [(2, 3)]),
        ([4, 6], [2, 12], [(2,), (2, 6)]),
        ([4, 6], [8, 3], [(4, 2), (3,)]),
        ([1, 6], [6, 1, 1], [(6,), (), ()]),
        ([2, 3, 4], [24], [(2, 3, 4)]),
        ([24], [2, 3, 4], [(2,), (3,), (4,)]),
        ([1], [], []),
    ],
)
def test_reshapes(shape: list[int], wanted: list[int], factors: list[tuple[int, ...]]) -> None:
    assert [extents(axis) for axis in regrouped(list(map(new_axis, shape)), wanted)] == factors


def test_divisions_that_meet_are_divided_further() -> None:
    left, right = new_axis(24), new_axis(24)
    regrouped([left], [4, 6])
    regrouped([right], [2, 12])
    unite(left, right)
    assert extents(left) == extents(right) == (2, 2, 6)
    assert extent_of(left) == 24


def test_an_axis_may_meet_itself() -> None:
    """As in a product of an array with its own transpose."""
    axis = new_axis(6)
    unite(axis, axis)
    regrouped([axis], [2, 3])
    unite(axis, axis)
    assert extents(axis) == (2, 3)


def test_factors_that_do_not_divide_one_another() -> None:
    with pytest.raises(NotAligned):
        regrouped([new_axis(4), new_axis(6)], [6, 4])
    left, right = new_axis(12), new_axis(12)
    regrouped([left], [3, 4])
    regrouped([right], [4, 3])
    with pytest.raises(NotAligned):
        unite(left, right)
