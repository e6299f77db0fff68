"""Results whose levels are written by the blocks of their kinds, not made afterwards."""

from __future__ import annotations

import numpy as np
import pytest

from t2s.errors import UserError
from t2s.sparse import Kernel, SparseTensor, compile, from_coordinates, parse
from tests.sampling import sampled

ORDERED = ("db", "dt", "sb", "bs", "tb", "bt", "uq", "b", "t", "u")
LINKED = ("dl", "sl", "ls", "lb", "l")


def sums(letters: str, shape: tuple[int, ...], share: float, modes: str = "") -> SparseTensor:
    """The sum of two matrices or vectors, with a result of these levels."""
    generator = np.random.default_rng(len(letters))
    given = {
        name: generator.integers(1, 9, shape) * (generator.random(shape) < share) for name in "BC"
    }
    at = ",".join("ij"[: len(shape)])
    read = ("ds" if len(shape) == 2 else "s") + modes
    formats = {"B": read, "C": read, "X": letters + modes}
    kernel = Kernel(parse(f"X({at}) = B({at}) + C({at})", formats))
    assert not kernel.program.views
    result = kernel.simulate(given, engine="python", capacity=2)
    wanted = given["B"] + given["C"]
    assert np.array_equal(result.output, wanted)
    assert np.array_equal(kernel.interpret(given, level="blocks"), wanted)
    return result.tensor


@sampled(
    ("letters", "share"),
    [
        *((letters, 0.2) for letters in ORDERED),
        *((letters, 0.0) for letters in ("db", "bt", "uq")),
    ],
    quick=3,
)
def test_the_arrays_are_those_that_packing_makes(letters: str, share: float) -> None:
    extent = 130 if letters[0] in "bt" else 5
    other = 5 if extent == 130 else 130
    written = sums(letters, (extent, other)[: len(letters)], share)
    packed = from_coordinates(*written.coordinates(), written.shape, written.format)
    for found, wanted in zip(written.levels, packed.levels, strict=True):
        assert found.keys() == wanted.keys()
        for name, array in wanted.items():
            assert np.array_equal(found[name], array), name


@sampled("letters", LINKED, quick=2)
def test_linked_lists(letters: str) -> None:
    sums(letters, (5, 70)[: len(letters)], 0.2)
    sums(letters, (5, 70)[: len(letters)], 0.0)


def test_a_list_of_coordinates_by_columns() -> None:
    tensor = sums("uq", (4, 5), 0.4, ":1,0")
    assert (np.diff(tensor.levels[0]["crd"]) >= 0).all()


def test_extents_of_zero() -> None:
    for letters in ("db", "tb", "uq"):
        sums(letters, (0, 3), 0.5)
        sums(letters, (3, 0), 0.5)


def test_lists_of_coordinates_of_order_three() -> None:
    generator = np.random.default_rng(0)
    T = generator.integers(1, 9, (3, 4, 5)) * (generator.random((3, 4, 5)) < 0.3)
    formats = {"T": "sss", "X": "ucq"}
    kernel = Kernel(parse("X(i,j,k) = T(i,j,k) * 2", formats))
    assert not kernel.program.views
    assert np.array_equal(kernel.simulate({"T": T}).output, 2 * T)


def test_products_without_values_in_some_rows() -> None:
    generator = np.random.default_rng(1)
    B = generator.integers(1, 9, (6, 8)) * (generator.random((6, 8)) < 0.3)
    C = generator.integers(1, 9, (8, 70)) * (generator.random((8, 70)) < 0.05)
    for letters in ("bt", "uq", "sl"):
        kernel = Kernel(parse("X(i,j) = B(i,k)*C(k,j)", {"B": "ss", "C": "ss", "X": letters}))
        assert not kernel.program.views
        found = kernel.simulate({"B": B, "C": C}, engine="python").output
        assert np.array_equal(found, B @ C)


def test_a_singleton_level_has_one_coordinate_for_each_position_above() -> None:
    kernel = Kernel(parse("X(i,j) = B(i,j) * 3", {"B": "ss", "X": "sq"}))
    assert not kernel.program.views
    one = np.eye(3, 4)[[0, 2, 1]]
    result = kernel.simulate({"B": one}, engine="python")
    assert np.array_equal(result.output, 3 * one)
    with pytest.raises(UserError, match="holds exactly one coordinate for each position above it"):
        kernel.simulate({"B": np.ones((3, 4))}, engine="python")


@sampled("letters", ["ucq", "ssl", "sll", "ssb", "dst", "lbs"], quick=4)
def test_empty_fibers_of_several_loops(letters: str) -> None:
    """Rows without entries, in a loop that visits everything, leave nothing behind."""
    kernel = compile(parse("X(i,j,k)=A(i,j)*C(k)", {"X": letters, "A": "ds", "C": "s"}))
    some, nothing = np.array([0.0, 2.0, 3.0]), np.zeros(3)
    for a in (np.diag(some), np.zeros((3, 3))):
        for c in (some, nothing):
            inputs = {"A": a, "C": c}
            expected = kernel.interpret(inputs)
            assert np.array_equal(kernel.interpret(inputs, level="blocks"), expected)
            assert np.array_equal(kernel.simulate(inputs, engine="python").output, expected)
