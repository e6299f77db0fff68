"""Matrices that are refused, and Matrix Market files."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import t2s
from t2s import Float, Int
from t2s.errors import UserError
from t2s.representation import Chain, MatrixParam, gallery, read_matrix, write_matrix
from tests.errors.refusal import refused

idx, row, n, b, c, s, job = t2s.variables("idx row n b c s job")


def parameter(chain: Chain, name: str = "A") -> MatrixParam:
    return MatrixParam(Float(32), 2, chain, name=name)


CSR = sparse.csr_array


def test_matrix_that_is_none() -> None:
    A = parameter(gallery.csr())
    with refused("""
            the matrix for A is not a matrix
              --> A.store([[1.0]])
              expected: a matrix of scipy.sparse or pydata/sparse, or a two-dimensional array
              given:    list
              hint:     t2s.representation.read_matrix reads a Matrix Market file
            """):
        A.store([[1.0]])


def test_matrix_of_another_type() -> None:
    A = parameter(gallery.csr())
    with refused("""
            the matrix for A has elements of another type
              --> A.store(np.eye(3))
              expected: float32
              given:    float64
              hint:     convert it: matrix.astype(numpy.float32)
            """):
        A.store(np.eye(3))


def test_array_of_one_dimension() -> None:
    A = parameter(gallery.csr())
    with refused("""
            the matrix for A must have two dimensions
              --> A.store(np.ones(3, np.float32))
              expected: two dimensions
              given:    1
            """):
        A.store(np.ones(3, np.float32))


def test_column_out_of_range() -> None:
    A = parameter(gallery.csr())
    matrix = CSR(np.eye(2, dtype=np.float32))
    matrix.indices[1] = 7
    with refused("""
            the matrix for A has a column index out of range
              --> A.store(matrix)
              expected: 0 to 1
              given:    column 7 in entry 1
            """):
        A.store(matrix)


def test_more_rows_than_hardware_counts() -> None:
    """Coordinates of 2**31 and more wrapped."""
    A = parameter(gallery.csr())
    far = sparse.coo_array((np.ones(1, np.float32), ([2**32 + 1], [1])), shape=(2**33, 3))
    with refused("""
            the matrix for A is too large for hardware
              --> A.store(far)
              expected: at most 134217728 rows and columns
              given:    8589934592 x 3
            """):
        A.store(far)


def test_masked_elements() -> None:
    A = parameter(gallery.csr())
    masked = np.ma.masked_less(np.ones((2, 2), np.float32), 2)
    with refused("""
            the matrix for A has masked elements
              --> A.store(masked)
              expected: all elements, matrix.filled(0) for instance
              given:    a masked array
            """):
        A.store(masked)


def test_damaged_pointers() -> None:
    A = parameter(gallery.csr())
    matrix = CSR(np.eye(2, dtype=np.float32))
    matrix.indptr[1] = 9
    with refused("""
            the matrix for A has damaged pointers
              --> A.store(matrix)
              expected: 3 pointers that rise from 0 to at most 2
              given:    3: [0 9 2]
            """):
        A.store(matrix)


def test_too_much_padding() -> None:
    ones = np.ones(70000, np.float32)
    matrix = sparse.coo_array(
        (ones, (np.arange(70000) // 2, np.arange(70000))), shape=(70000, 70000)
    ).tolil()
    matrix[0, :] = 1
    A = parameter(gallery.ell())
    with refused("""
            MatrixParam A does not fit: its values, with padding, are too many
              --> A.store(matrix.tocsr())
              expected: at most 2147483647 values
              given:    4900000000 values for the 139998 entries of a 70000 x 70000 matrix
              hint:     pack before you pad, or pad to the longest of a block of rows, not of the
                        matrix
            """):
        A.store(matrix.tocsr())


VARIANTS = {
    "general": "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 2 1.5\n2 1 -2\n",
    "symmetric": "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 3\n2 1 -2\n",
    "skew": "%%MatrixMarket matrix coordinate integer skew-symmetric\n2 2 1\n2 1 4\n",
    "pattern": "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n",
    "array": "%%MatrixMarket matrix array real general\n2 2\n1\n0\n3\n4\n",
}
DENSE = {
    "general": [[0, 1.5], [-2, 0]],
    "symmetric": [[3, -2], [-2, 0]],
    "skew": [[0, -4], [4, 0]],
    "pattern": [[0, 1], [0, 0]],
    "array": [[1, 3], [0, 4]],
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_matrix_market_there_and_back(variant: str, tmp_path: Path) -> None:
    path = tmp_path / "a.mtx"
    path.write_text(VARIANTS[variant])
    matrix = read_matrix(path, Float(32))
    np.testing.assert_array_equal(matrix.toarray(), np.array(DENSE[variant], np.float32))
    storage = parameter(gallery.cisr(2)).store(matrix)
    write_matrix(path, storage)
    np.testing.assert_array_equal(read_matrix(path, Float(32)).toarray(), matrix.toarray())


def test_a_file_with_a_fraction_as_integers(tmp_path: Path) -> None:
    path = tmp_path / "a.mtx"
    path.write_text(VARIANTS["general"])
    with refused("""
            the Matrix Market file a.mtx has elements that do not fit int32
              --> read_matrix(path, Int(32))
              expected: elements that can be converted to int32
              given:    fractions, or numbers too large
            """):
        read_matrix(path, Int(32))


def test_a_complex_file(tmp_path: Path) -> None:
    path = tmp_path / "a.mtx"
    path.write_text("%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 2 3\n")
    with refused("""
            the Matrix Market file a.mtx has elements that do not fit float64
              --> read_matrix(path, Float(64))
              expected: elements that can be converted to float64
              given:    complex elements
            """):
        read_matrix(path, Float(64))


def test_a_header_that_promises_too_much(tmp_path: Path) -> None:
    path = tmp_path / "a.mtx"
    path.write_text("%%MatrixMarket matrix array real general\n2000000000 2000000000\n1\n")
    with refused("""
            the Matrix Market file a.mtx cannot be read
              --> read_matrix(path, Float(64))
              expected: a file that begins with %%MatrixMarket matrix
              given:    its header promises more than its 65 bytes hold: [2000000000, 2000000000]
            """):
        read_matrix(path, Float(64))


def test_a_compressed_file_of_nothing_but_zeros(tmp_path: Path) -> None:
    path = tmp_path / "a.mtx.gz"
    path.write_bytes(gzip.compress(b"%%MatrixMarket matrix array real general\n" + b"\n" * 2**24))
    with refused("""
            the Matrix Market file a.mtx.gz cannot be read
              --> read_matrix(path, Float(16))
              expected: a file that begins with %%MatrixMarket matrix
              given:    it is compressed to less than one byte of 100
            """):
        read_matrix(path, Float(16))


def test_a_bomb_of_bzip2(tmp_path: Path) -> None:
    path = tmp_path / "a.mtx.bz2"
    path.write_bytes(bz2.compress(b"%%MatrixMarket matrix array real general\n" + b"\n" * 2**24))
    with refused("""
            the Matrix Market file a.mtx.bz2 cannot be read
              --> t2s.sparse.read(path)
              expected: a file that begins with %%MatrixMarket matrix
              given:    it is compressed to less than one byte of 100
            """):
        t2s.sparse.read(path)


@pytest.mark.parametrize(
    "text",
    [
        "hello\n",
        "%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 1\n",
        "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n",
        "%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 99999999999999999999999\n",
        "%%MatrixMarket matrix coordinate real general\n2 2 2000000000\n1 1 1\n",
        "%%MatrixMarket matrix coordinate real general\n2 2\n",
        "%%MatrixMarket matrix coordinate real general\n",
        "%%MatrixMarket matrix coordinate real general\na b c\n",
    ],
    ids=["no header", "out of range", "cut short", "integer", "entries", "sizes", "none", "words"],
)
def test_damaged_files(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.mtx"
    path.write_text(text)
    with pytest.raises(UserError, match=r"the Matrix Market file a\.mtx cannot be read"):
        read_matrix(path, Float(32))
