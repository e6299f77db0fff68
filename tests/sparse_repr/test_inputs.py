"""Matrices and tensors in every form of scipy and pydata/sparse, in any order: the same values."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
import scipy.sparse as scipy
import sparse as pydata

import t2s
from t2s import Float, sparse
from t2s.representation import MatrixParam, gallery, read_matrix, write_matrix
from tests.sampling import sampled

RNG = np.random.default_rng(5)
DENSE = ((RNG.random((14, 12)) < 0.3) * RNG.integers(1, 99, (14, 12))).astype(np.float32)
A = MatrixParam(Float(32), 2, gallery.cisr(3), name="A")


def shuffled(kind: str) -> Any:
    """A matrix of scipy whose entries are in no order."""
    coo = scipy.coo_array(DENSE)
    order = np.random.default_rng(1).permutation(coo.nnz)
    coo = scipy.coo_array((coo.data[order], (coo.row[order], coo.col[order])), shape=coo.shape)
    if kind == "coo":
        return coo
    if kind == "dok":
        dok = scipy.dok_array(coo.shape, dtype=np.float32)
        for row, column, value in zip(coo.row, coo.col, coo.data, strict=True):
            dok[int(row), int(column)] = value
        return dok
    made = scipy.csr_array(DENSE) if kind == "csr" else scipy.csc_array(DENSE)
    for start, end in zip(made.indptr[:-1], made.indptr[1:], strict=True):
        made.indices[start:end] = made.indices[start:end][::-1].copy()
        made.data[start:end] = made.data[start:end][::-1].copy()
    made.has_sorted_indices = False
    return made


def same(value: Any, wanted: np.ndarray = DENSE) -> None:
    """Representations and tensors take the value, and leave it as it is."""
    np.testing.assert_array_equal(A.store(value).to_scipy().toarray(), wanted)
    np.testing.assert_array_equal(sparse.tensor(value).to_dense(), wanted)


@pytest.mark.parametrize("kind", ["coo", "csr", "csc", "dok"])
def test_entries_in_any_order(kind: str) -> None:
    same(shuffled(kind))


@pytest.mark.parametrize("blocks", [(1, 1), (2, 3), (7, 4), (14, 12)])
def test_blocks_of_any_size(blocks: tuple[int, int]) -> None:
    same(scipy.bsr_array(DENSE, blocksize=blocks))


@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("form", ["coo", "csr", "csc", "bsr", "dia", "lil", "dok"])
def test_every_form_of_scipy(form: str, kind: str) -> None:
    same(getattr(scipy, f"{form}_{kind}")(DENSE))


def test_results_of_scipy() -> None:
    product = scipy.csr_array(DENSE) @ scipy.csr_array(DENSE.T)
    same(product, product.toarray())
    columns = scipy.csr_array(DENSE)[:, RNG.permutation(12)]
    same(columns, columns.toarray())


@sampled("form", ["COO", "GCXS", "DOK"], quick=2)
def test_every_form_of_pydata(form: str) -> None:
    same(getattr(pydata, form).from_numpy(DENSE))


TYPES = {np.float32: Float(32), np.int8: t2s.Int(8), np.int64: t2s.Int(64)}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("form", ["coo", "csr", "csc"])
def test_entries_at_one_place_are_added_up_as_scipy_does(form: str, dtype: Any) -> None:
    random = np.random.default_rng(3)
    rows, columns = random.integers(0, 4, 60), random.integers(0, 4, 60)
    values = (random.random(60) * 100).astype(dtype)
    coo = scipy.coo_array((values, (rows, columns)), shape=(4, 4))
    twice: Any = coo
    if form != "coo":
        order = np.lexsort((rows,) if form == "csr" else (columns,))
        starts = np.searchsorted((rows if form == "csr" else columns)[order], np.arange(5))
        inner = (columns if form == "csr" else rows)[order]
        make = scipy.csr_array if form == "csr" else scipy.csc_array
        twice = make((values[order], inner, starts), shape=(4, 4))
    coo = twice.tocoo()
    coo.sum_duplicates()
    stored = MatrixParam(TYPES[dtype], 2, gallery.cisr(2), name="B").store(twice)
    np.testing.assert_array_equal(stored.to_scipy().toarray(), coo.toarray())
    np.testing.assert_array_equal(sparse.tensor(twice).to_dense(), coo.toarray())


def test_entries_that_a_file_has_twice_are_added_up(tmp_path: Path) -> None:
    """By both readers, before anything is rounded to the type that is wanted."""
    path = tmp_path / "a.mtx"
    path.write_text(
        "%%MatrixMarket matrix coordinate real general\n2 2 3\n2 1 1.5\n1 2 4\n2 1 1.5\n"
    )
    wanted = [[0, 4], [3, 0]]
    assert read_matrix(path, t2s.Int(32)).toarray().tolist() == wanted
    assert sparse.read(path).to_dense().tolist() == wanted
    path.write_text("%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n2 1 1\n2 1 2\n")
    assert read_matrix(path, Float(32)).toarray().tolist() == [[0, 3], [3, 0]]
    assert sparse.read(path).to_dense().tolist() == [[0, 3], [3, 0]]


def test_a_matrix_of_either_road_is_one_of_the_other(tmp_path: Path) -> None:
    stored = A.store(DENSE)
    np.testing.assert_array_equal(sparse.tensor(stored, "ds").to_dense(), DENSE)
    for format in (sparse.csr, sparse.csc, sparse.coo(2), sparse.dense(2), sparse.bcsr(2, 3)):
        same(sparse.tensor(stored, format))
    write_matrix(tmp_path / "a.mtx", sparse.tensor(DENSE, "ds"))
    np.testing.assert_array_equal(sparse.read(tmp_path / "a.mtx").to_dense(), DENSE)
    y = sparse.parse("y(i) = M(i,j) * x(j)", {"M": sparse.csr, "x": sparse.dense(1)})
    x = np.ones(12, np.float32)
    np.testing.assert_array_equal(sparse.compile(y).interpret({"M": stored, "x": x}), DENSE @ x)


def test_tensors_that_leave_out_something_else() -> None:
    far = sparse.from_dense(np.full((2, 2), np.inf, np.float32), "ds", fill=np.inf)
    with pytest.raises(
        t2s.errors.UserError, match="the matrix for A leaves out elements that are not 0"
    ):
        A.store(far)


@pytest.mark.parametrize("entries", [0, 1, 3])
def test_sparse_objects_without_modes_and_with_one(entries: int) -> None:
    vector = scipy.coo_array((np.ones(entries), (np.arange(entries)[::-1],)), shape=(4,))
    assert sparse.tensor(vector).to_dense().tolist() == [1] * entries + [0] * (4 - entries)
    assert sparse.tensor(vector.tocsr()).to_dense().tolist() == vector.toarray().tolist()
    number = pydata.COO(np.zeros((0, 1), int), np.array([2.5]), shape=())
    assert sparse.tensor(number).to_dense().tolist() == 2.5
    nothing = pydata.COO(np.zeros((0, 0), int), np.zeros(0), shape=())
    assert sparse.tensor(nothing).to_dense().tolist() == 0


def test_masked_elements_are_no_fill_value() -> None:
    masked = np.ma.masked_less(DENSE, 50)
    with pytest.raises(t2s.errors.UserError, match="an input has masked elements"):
        sparse.tensor(masked)
    with pytest.raises(t2s.errors.UserError, match="the matrix for A has masked elements"):
        A.store(masked)


def test_complex_matrices_keep_no_half_of_their_values(tmp_path: Path) -> None:
    path = tmp_path / "a.mtx"
    for kind in ("general", "hermitian"):
        path.write_text(f"%%MatrixMarket matrix coordinate complex {kind}\n2 2 1\n2 1 2 3\n")
        with pytest.raises(t2s.errors.UserError, match="values of type complex128"):
            sparse.read(path)
    for form in ("coo", "csr", "csc", "dok"):
        with pytest.raises(t2s.errors.UserError, match="values of type complex64"):
            sparse.tensor(getattr(scipy, f"{form}_array")(DENSE.astype(np.complex64)))
    with pytest.raises(t2s.errors.UserError, match="values of type complex64"):
        sparse.from_coordinates([[0]], np.ones(1, np.complex64), (2,))


@pytest.mark.parametrize("value", [2**53 + 1, -(2**53) - 1, 2**63 - 1])
def test_integers_that_float64_has_not_stay_integers(value: int, tmp_path: Path) -> None:
    path = tmp_path / "a.tns"
    path.write_text(f"1 1 {value}\n2 2 3\n")
    found = sparse.read(path)
    assert found.dtype == np.int64
    assert found.to_dense().tolist() == [[value, 0], [0, 3]]


def test_tns_files_with_numbers_that_no_type_has(tmp_path: Path) -> None:
    path = tmp_path / "a.tns"
    path.write_text(f"1 1 {2**53 + 1}\n2 2 0.5\n")
    with pytest.raises(t2s.errors.UserError, match="integers that float64 does not have"):
        sparse.read(path)
    path.write_text(f"1 1 {2**64}1\n")
    with pytest.raises(t2s.errors.UserError, match="integers that float64 does not have"):
        sparse.read(path)
    path.write_text(f"{2**70} 1 1\n")
    with pytest.raises(t2s.errors.UserError, match=r"a coordinate of a\.tns is too large"):
        sparse.read(path)


def test_tns_coordinates_beyond_float64(tmp_path: Path) -> None:
    path = tmp_path / "a.tns"
    path.write_text(f"{2**53 + 2} 1 7\n")
    table, values = sparse.read(path).coordinates()
    assert table.tolist() == [[2**53 + 1, 0]]
    assert values.tolist() == [7]


@pytest.mark.parametrize("format", [sparse.csr, sparse.dense(2), sparse.make_format("sd", (1, 0))])
def test_dense_levels_that_no_memory_holds(format: sparse.Format) -> None:
    with pytest.raises(t2s.errors.UserError, match="stores too much for this tensor"):
        sparse.from_coordinates([[10**11, 1]], [1.0], (10**12, 10**12), format)


def test_arrays_whose_header_promises_too_much(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.ones(10))
    path.write_bytes(path.read_bytes().replace(b"(10,), }        ", b"(2000000000,), }"))
    with pytest.raises(t2s.errors.UserError, match="not an array of numpy"):
        sparse.read(path)
    np.save(path, np.zeros((0, 3)))
    assert sparse.read(path).shape == (0, 3)


@pytest.mark.parametrize("packed", [gzip, bz2], ids=["gz", "bz2"])
def test_compressed_files(tmp_path: Path, packed: Any) -> None:
    path = tmp_path / f"a.mtx.{'gz' if packed is gzip else 'bz2'}"
    text = "%%MatrixMarket matrix coordinate pattern symmetric\n2 2 1\n2 1\n"
    path.write_bytes(packed.compress(text.encode()))
    assert sparse.read(path).to_dense().tolist() == [[0, 1], [1, 0]]
    path.write_bytes(packed.compress(text.encode())[:-12])
    with pytest.raises(t2s.errors.UserError, match="cannot be read"):
        sparse.read(path)


@pytest.mark.parametrize(
    "make",
    [
        lambda: sparse.bcsr(2.5, 2),
        lambda: sparse.bcsr(2, 0),
        lambda: sparse.bcsr("2", 2),
        lambda: sparse.coo(-1),
        lambda: sparse.coo(0),
        lambda: sparse.csf(1.5),
        lambda: sparse.dense(True),
        lambda: sparse.make_format(3),
        lambda: sparse.make_format("ds", 1),
        lambda: sparse.from_coordinates([[0, 0]], [1.0], (-1, 2)),
        lambda: sparse.from_coordinates([[0, 0]], [1.0], (2.5, 2)),
        lambda: sparse.from_coordinates([[0, 0]], [1.0], 4),
        lambda: sparse.from_coordinates([["a", "b"]], [1.0], (2, 2)),
        lambda: sparse.from_coordinates([[0, 0]], ["a"], (2, 2)),
        lambda: sparse.from_levels((-1,), sparse.csf(1), ({},), np.ones(1)),
    ],
)
def test_sizes_that_are_none(make: Any) -> None:
    with pytest.raises(t2s.errors.UserError):
        make()


def test_sizes_of_numpy() -> None:
    shape = tuple(np.array([3, 4]))
    assert sparse.from_coordinates([[0, 0]], [1.0], shape).shape == (3, 4)
    assert sparse.bcsr(np.int64(2), np.uint8(2)) == sparse.bcsr(2, 2)
    assert sparse.coo(np.int32(3)) == sparse.coo(3)


def test_graphs_are_their_adjacency() -> None:
    """Nodes in the order of the graph; the weight of an edge, or 1, in both directions or one."""
    karate = networkx.karate_club_graph()
    adjacency = networkx.to_numpy_array(karate)
    np.testing.assert_array_equal(sparse.tensor(karate).to_dense(), adjacency)
    product = sparse.parse("y(i) = A(i,j) * x(j)", {"A": "ds"})
    result = sparse.simulate(product, {"A": karate, "x": np.ones(34)})
    np.testing.assert_allclose(result.output, adjacency.sum(1))
    directed = networkx.DiGraph([("b", "a"), ("c", "a")])
    assert sparse.tensor(directed, "ds").to_dense().tolist() == [[0, 1, 0], [0, 0, 0], [0, 1, 0]]
    assert sparse.tensor(networkx.Graph()).shape == (0, 0)
    directed.add_edge("a", "b", weight="heavy")
    with pytest.raises(t2s.errors.UserError, match="edge weights that are not numbers"):
        sparse.tensor(directed)


def test_objects_without_an_array_protocol_are_refused() -> None:
    """numpy takes whatever has a length for the list of its keys."""

    class Keyed:
        def __len__(self) -> int:
            return 3

        def __getitem__(self, at: int) -> int:
            return [7, 8, 9][at]

    x, i, F = t2s.ImageParam(Float(64), 1, name="x"), t2s.Var("i"), t2s.Func("F")
    F[i] = x[i] + 1.0
    F.bound(i, 0, 3)
    for value in (Keyed(), {0: 1.0, 1: 2.0, 2: 3.0}, {1.0, 2.0, 3.0}, iter([1.0, 2.0, 3.0])):
        with pytest.raises(t2s.errors.UserError, match=r"is not a tensor|values of type object"):
            sparse.tensor(value)
        with pytest.raises(
            t2s.errors.UserError, match=r"the input x (cannot be converted|has the wrong)"
        ):
            t2s.simulate(F, {"x": value})
    for value in ([1.0, 2.0, 3.0], (1.0, 2.0, 3.0), memoryview(np.ones(3)), np.ones(3)):
        assert sparse.tensor(value).shape == (3,)
        assert len(t2s.simulate(F, {"x": value}).outputs["F"]) == 3


def test_tensors_are_arrays_for_numpy() -> None:
    made = sparse.tensor(DENSE, "ds")
    assert np.array_equal(made, DENSE)
    assert np.allclose(made, DENSE)
    assert np.asarray(made, np.float64).dtype == np.float64
    assert (made.ndim, made.nnz, made.dtype) == (2, np.count_nonzero(DENSE), DENSE.dtype)
    for dense in (made.todense(), made.toarray(), made.to_dense()):
        np.testing.assert_array_equal(dense, DENSE)
    transposed = made.T
    np.testing.assert_array_equal(transposed, DENSE.T)
    assert str(transposed.format) == "ds:1,0"
    assert transposed.values is made.values
    cube = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(sparse.tensor(cube, "sss").T, cube.T)
    with pytest.raises(ValueError, match="always a copy"):
        np.asarray(made, copy=False)
    huge = sparse.from_coordinates([[0, 0]], [1.0], (1 << 20, 1 << 20), "ss")
    with pytest.raises(t2s.errors.UserError, match="stores too much for this tensor"):
        np.asarray(huge)
