"""From a matrix to its representation and back: for random matrices and random chains."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import sparse

import t2s
from t2s import Float
from t2s.representation import (
    Chain,
    Columns,
    Index,
    Length,
    LongestFirst,
    MatrixParam,
    Rows,
    Storage,
    Zero,
    dense_matrix,
    gallery,
)
from tests.sparse_repr.chains import arrays, chains

GALLERY = [
    gallery.csr,
    gallery.csc,
    gallery.cisr,
    gallery.ell,
    gallery.sliced_ell,
    gallery.blocked_csr,
    gallery.blocked_csc,
    gallery.row_blocks,
    gallery.dcsr,
    gallery.coo,
    gallery.dia,
]


def store(chain: Chain, matrix: np.ndarray) -> Storage:
    return MatrixParam(Float(32), 2, chain, name="A").store(matrix)


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(chain=chains(), matrix=arrays())
def test_every_chain_can_be_undone(chain: Chain, matrix: np.ndarray) -> None:
    storage = store(chain, matrix)
    assert storage.nnz == np.count_nonzero(matrix)
    rows, columns = storage.decode()
    rebuilt = np.zeros_like(matrix)
    here = rows >= 0
    places = list(zip(rows[here].tolist(), columns[here].tolist(), strict=True))
    assert len(set(places)) == len(places)  # one-to-one
    rebuilt[rows[here], columns[here]] = storage.values[here]
    np.testing.assert_array_equal(rebuilt, matrix)
    assert not storage.values[~here].any()
    np.testing.assert_array_equal(storage.to_scipy().toarray(), matrix)


@settings(max_examples=200, deadline=None)
@given(chain=chains(), matrix=arrays())
def test_decoding_reads_only_what_the_inverse_map_names(chain: Chain, matrix: np.ndarray) -> None:
    storage = store(chain, matrix)
    named = MatrixParam(Float(32), 2, chain, name="A").decoder.streams()
    for name, stream in storage.streams.items():
        if name not in named and stream.data.flags.writeable is not False:
            stream.data[...] = -7
    np.testing.assert_array_equal(storage.to_scipy().toarray(), matrix)


@pytest.mark.parametrize("machines", [1, 3, 4])
@pytest.mark.parametrize("make", GALLERY, ids=lambda make: make.__name__)
def test_gallery(make: object, machines: int) -> None:
    matrix = sparse.random_array(
        (37, 23), density=0.2, dtype=np.float32, rng=np.random.default_rng(5)
    ).tocsr()
    matrix.sort_indices()
    storage = MatrixParam(Float(32), 2, make(machines), name="A").store(matrix)
    back = storage.to_scipy()
    assert storage.values.shape[0] == machines
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(back, name), getattr(matrix, name))


def test_stored_zeros_nan_and_infinity_are_entries() -> None:
    matrix = sparse.csr_array(
        (np.array([0.0, np.nan, np.inf], np.float32), ([0, 1, 2], [2, 0, 1])), shape=(3, 3)
    )
    back = store(gallery.cisr(2), matrix).to_scipy()
    assert back.nnz == 3
    np.testing.assert_array_equal(back.data, matrix.data)


def test_cisr_by_hand() -> None:
    """Rows of 2, 1, 3, 1 and 2 values on two machines: row 2 follows row 1, row 3 follows row 0."""
    matrix = np.zeros((5, 4), np.float32)
    for row, columns in enumerate([[0, 2], [1], [0, 1, 3], [2], [1, 2]]):
        matrix[row, columns] = 10 * (row + 1) + np.array(columns)
    storage = store(gallery.cisr(2), matrix)
    assert storage.values.tolist() == [[10, 12, 42, 51, 52], [21, 30, 31, 33, 0]]
    assert storage.streams["row_len"].data.tolist() == [2, 1, 3, 1, 2]
    assert storage.streams["col_idx"].data.tolist() == [[0, 2, 2, 1, 2], [1, 0, 1, 3, -1]]
    assert storage.loads.tolist() == [5, 4]
    assert storage.padding == pytest.approx(0.1)
    assert storage.balance == pytest.approx(0.9)


def test_longest_first_by_hand() -> None:
    job, length, column = t2s.variables("job length column")
    chain = (
        dense_matrix()
        .pack(
            Columns,
            Length(length),
            Index(column),
        )
        .schedule(
            Rows,
            2,
            LongestFirst,
            Zero,
            Index(job),
        )
    )
    matrix = np.tril(np.ones((4, 4), np.float32))
    storage = store(chain, matrix)
    assert storage.streams["job"].data.tolist() == [[3, 0], [2, 1]]
    assert storage.streams["length"].data.tolist() == [[4, 1], [3, 2]]
    assert storage.loads.tolist() == [5, 5]
