"""Tensors in formats: packing and unpacking, other libraries, files."""

from __future__ import annotations

from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse
import sparse as pydata
from hypothesis import given, settings
from hypothesis import strategies as st

from t2s import sparse
from t2s.errors import UserError
from t2s.sparse import (
    SparseTensor,
    bcsr,
    coo,
    csc,
    csf,
    csr,
    dcsr,
    dense,
    from_coordinates,
    from_dense,
    from_levels,
    make_format,
    read,
    scalar,
    tensor,
    to_pydata,
    to_scipy,
    write,
)
from tests.sampling import sampled

Array = np.ndarray[Any, Any]


def random(shape: tuple[int, ...], density: float, seed: int = 0) -> Array:
    generator = np.random.default_rng(seed)
    values = generator.integers(1, 9, shape) * (generator.random(shape) < density)
    return np.asarray(values, np.float64)


@sampled("shape", [(5,), (4, 6), (0, 3), (70, 130), (3, 0), (2, 3, 4)], quick=1)
@pytest.mark.parametrize("density", [0.0, 0.3, 1.0])
def test_every_kind_of_level_keeps_the_tensor(shape: tuple[int, ...], density: float) -> None:
    array = random(shape, density)
    kinds = "dsubtl" if len(shape) < 3 else "dsb"
    for letters in product(kinds, repeat=len(shape)):
        for modes in permutations(range(len(shape))):
            stored = from_dense(array, make_format("".join(letters), modes))
            assert np.array_equal(stored.to_dense(), array)
            again = from_levels(shape, stored.format, stored.levels, stored.values)
            assert np.array_equal(again.to_dense(), array)


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_conversion_between_formats_keeps_the_tensor(data: st.DataObject) -> None:
    order = data.draw(st.integers(1, 4))
    shape = tuple(data.draw(st.integers(0, 4)) for _ in range(order))
    array = random(shape, 0.4, data.draw(st.integers(0, 999)))
    stored = from_dense(array, csf(order))
    for _ in range(3):
        letters = data.draw(st.sampled_from(["d", "s", "ds", "sb", "u", "l"]))
        text = "".join(data.draw(st.sampled_from(letters)) for _ in range(order))
        stored = stored.convert(make_format(text, data.draw(st.permutations(range(order)))))
        assert np.array_equal(stored.to_dense(), array)


def test_the_arrays_of_a_matrix() -> None:
    array = np.array([[0, 1, 0], [0, 0, 0], [2, 0, 3]])
    stored = from_dense(array, dcsr)
    assert stored.levels[0]["pos"].tolist() == [0, 2]
    assert stored.levels[0]["crd"].tolist() == [0, 2]
    assert stored.levels[1]["pos"].tolist() == [0, 1, 3]
    assert stored.levels[1]["crd"].tolist() == [1, 0, 2]
    assert stored.values.tolist() == [1, 2, 3]
    listed = from_dense(array, coo(2))
    assert listed.levels[0]["crd"].tolist() == [0, 2, 2]
    assert listed.levels[1]["crd"].tolist() == [1, 0, 2]
    bits = from_dense(array, make_format("db"))
    assert bits.levels[1]["bits"].tolist() == [0b010, 0, 0b101]
    assert bits.levels[1]["pos"].tolist() == [0, 1, 1, 3]


def test_blocks_of_a_matrix() -> None:
    array = random((5, 7), 0.4)
    stored = from_dense(array, bcsr(2, 3))
    assert stored.extents == (3, 3, 2, 3)
    assert len(stored.values) % 6 == 0
    assert np.array_equal(stored.to_dense(), array)
    assert np.array_equal(stored.convert(csr).to_dense(), array)


def test_stored_zeros_stay_in_every_format() -> None:
    """What a kernel computes on must not depend on the format in which an input comes."""
    table = np.array([[0, 0], [0, 1], [0, 2], [1, 3], [2, 1]])
    values = np.array([1.0, 0.0, 2.0, 0.0, 3.0])
    stored = from_coordinates(table, values, (3, 4), csr)
    for format in ("ss", "ss:1,0", "ds:1,0", coo(2)):
        assert stored.convert(format).nnz == stored.nnz == 5
        assert np.array_equal(stored.convert(format).convert(csr).coordinates()[0], table)
    assert stored.convert("sd").convert(csr).nnz == 3  # zeros of dense levels are no entries


def test_a_scalar_is_a_tensor() -> None:
    stored = tensor(2.5)
    assert stored.format == scalar
    assert stored.to_dense() == 2.5


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_scipy_is_shared_both_ways(kind: str) -> None:
    matrix = scipy.sparse.random_array(
        (20, 30), density=0.1, format=kind, rng=np.random.default_rng(1)
    )
    stored = tensor(matrix)
    assert stored.format == (csr if kind == "csr" else csc)
    assert stored.values is matrix.data
    assert stored.levels[1]["crd"] is matrix.indices
    back = to_scipy(stored)
    assert np.shares_memory(back.data, matrix.data)
    assert (back != matrix).nnz == 0


def test_other_objects_of_scipy_become_coordinates() -> None:
    array = random((6, 4), 0.4)
    for make in (scipy.sparse.coo_array, scipy.sparse.dok_array, scipy.sparse.lil_array):
        stored = tensor(make(array))
        assert stored.format == coo(2)
        assert np.array_equal(stored.to_dense(), array)
        assert np.array_equal(to_scipy(stored).toarray(), array)


@pytest.mark.slow
def test_objects_of_pydata() -> None:
    array = random((3, 4, 5), 0.3)
    for made in (pydata.COO.from_numpy(array), pydata.GCXS.from_numpy(array)):
        stored = tensor(made)
        assert stored.format == coo(3)
        assert np.array_equal(stored.to_dense(), array)
        assert np.array_equal(to_pydata(stored).todense(), array)
    with pytest.raises(UserError, match="a sparse tensor leaves out elements that are not 0"):
        tensor(pydata.COO.from_numpy(array) + 1)


def test_an_array_is_shared() -> None:
    array = random((3, 4), 1.0)
    stored = tensor(array)
    assert stored.format == dense(2)
    assert np.shares_memory(stored.values, array)


def test_duplicates_add_up_if_that_is_wanted() -> None:
    stored = from_coordinates([[1, 2], [0, 1], [1, 2]], [1, 2, 3], (2, 3), sum_duplicates=True)
    assert stored.to_dense().tolist() == [[0, 2, 0], [0, 0, 4]]


@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric"])
def test_matrix_market_files(tmp_path: Path, symmetry: str) -> None:
    array = random((5, 5), 0.5)
    if symmetry != "general":
        sign = 1 if symmetry == "symmetric" else -1
        array = np.tril(array, -1) + sign * np.tril(array, -1).T
    path = tmp_path / "a.mtx"
    scipy.io.mmwrite(path, scipy.sparse.coo_array(array), symmetry=symmetry)
    assert np.array_equal(read(path).to_dense(), array)
    assert read(path, csr).format == csr


def test_a_pattern_is_ones(tmp_path: Path) -> None:
    path = tmp_path / "p.mtx"
    path.write_text("%%MatrixMarket matrix coordinate pattern general\n2 3 2\n1 1\n2 3\n")
    assert read(path).to_dense().tolist() == [[1, 0, 0], [0, 0, 1]]


def test_files_of_coordinates(tmp_path: Path) -> None:
    array = random((3, 4, 5), 0.2)
    path = tmp_path / "a.tns"
    write(path, from_dense(array, csf(3)))
    assert np.array_equal(read(path).to_dense(), array)
    path.write_text("1 1 2 5.0\n3 2 1 -1 # the last one\n\n")
    assert read(path).shape == (3, 2, 2)
    matrix = tmp_path / "m.mtx"
    write(matrix, from_dense(array[0], csr))
    assert np.array_equal(read(matrix, csr).to_dense(), array[0])


def test_arrays_and_empty_tensors_in_files(tmp_path: Path) -> None:
    array = random((3, 4), 0.3)
    write(tmp_path / "a.npy", from_dense(array, csr))
    assert np.array_equal(read(tmp_path / "a.npy").to_dense(), array)
    for name in ("z.npy", "z.tns", "z.mtx"):
        write(tmp_path / name, from_dense(np.zeros((3, 4)), csr))
        found = read(tmp_path / name)
        assert found.shape == (3, 4)
        assert not found.to_dense().any()


def test_repr() -> None:
    stored: SparseTensor = from_dense(np.eye(3), csr)
    assert repr(stored) == "<SparseTensor 3 x 3, ds:0,1, 3 values>"
    assert str(bcsr(2, 2)) == "dsdd:0/2,1/2,0%2,1%2"


@pytest.mark.parametrize("kind", ["int8", "uint8", "uint16", "uint32", "uint64", "int16", "int32"])
@pytest.mark.parametrize("format", ["ds", "ss", "uq", "ds:1,0"])
def test_arrays_of_levels_are_any_integers(kind: str, format: str) -> None:
    """Also small ones, beyond whose range positions of a large tensor are."""
    values = np.zeros((90, 80))
    values[[3, 3, 89, 50], [0, 79, 79, 7]] = [1, 2, 3, 4]
    stored = from_dense(values, format)
    levels = [{name: array.astype(kind) for name, array in one.items()} for one in stored.levels]
    made = from_levels(values.shape, stored.format, levels, stored.values)
    assert np.array_equal(made.to_dense(), values)
    assert np.array_equal(made.convert("ss:1,0").to_dense(), values)
    doubled = sparse.parse("A(i,j) = B(i,j) + B(i,j)", {"A": "ds", "B": "ds"})
    plan = sparse.compile(doubled, "assume(1 == 1)")
    assert np.array_equal(plan.run({"B": made}).output, 2 * values)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (1, 4), (0, 3), (2, 3, 4)])
def test_dense_levels_in_another_order(shape: tuple[int, ...]) -> None:
    """All elements stay as they are, a negative zero too."""
    array = np.random.default_rng(len(shape)).normal(size=shape)
    array.reshape(-1)[:1] = -0.0
    for first, second in product(permutations(range(len(shape))), repeat=2):
        stored = array.transpose(first).reshape(-1)
        one = from_levels(shape, dense(len(shape), first), [{} for _ in shape], stored)
        turned = one.convert(dense(len(shape), second))
        assert turned.format == dense(len(shape), second)
        assert turned.values.tobytes() == array.transpose(second).tobytes()
        assert np.array_equal(turned.to_dense(), array)
