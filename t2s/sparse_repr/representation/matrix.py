"""Matrices from outside: scipy.sparse, numpy and Matrix Market files, checked and put in order."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from t2s.core.errors import UserError
from t2s.core.location import SourceLocation, user_location
from t2s.core.types import Type

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class Coordinates:
    """A sparse matrix: its entries by rows, then columns; no two at one place.

    ``rows`` and ``columns`` are integer arrays, ``values`` has the element type.
    """

    shape: tuple[int, int]
    rows: Array
    columns: Array
    values: Array


def coordinates_of(matrix: object, type: Type | None, what: str) -> Coordinates:
    """The entries of a scipy.sparse matrix or array, or those of a numpy array that are not zero.

    Raises ``UserError`` for other things, another element type than ``type``, indices out of range,
    and entries that are out of order or twice at one place.
    """
    if isinstance(matrix, Coordinates):
        found = matrix
    elif isinstance(matrix, np.ndarray):
        found = _from_numpy(matrix, what)
    elif hasattr(matrix, "format") and hasattr(matrix, "tocoo"):
        found = _from_scipy(matrix, what)
    else:
        raise UserError(
            f"{what} is no matrix",
            location=user_location(),
            expected="a scipy.sparse matrix or a numpy array of two dimensions",
            given=f"{matrix.__class__.__name__}",
            hint="t2s.read_matrix reads a Matrix Market file",
        )
    if type is not None and found.values.dtype != type.numpy:
        raise UserError(
            f"{what} has elements of another type",
            location=user_location(),
            expected=str(type),
            given=str(found.values.dtype),
            hint=f"convert it: matrix.astype(numpy.{type.numpy})",
        )
    return found


def _from_numpy(matrix: Array, what: str) -> Coordinates:
    if matrix.ndim != 2:
        _refuse(what, "has no rows and columns", "two dimensions", f"{matrix.ndim}")
    rows, columns = np.nonzero(matrix)
    return Coordinates(
        shape=(matrix.shape[0], matrix.shape[1]),
        rows=rows,
        columns=columns,
        values=matrix[rows, columns],
    )


def _from_scipy(matrix: Any, what: str) -> Coordinates:
    if len(matrix.shape) != 2:
        _refuse(what, "has no rows and columns", "two dimensions", f"{len(matrix.shape)}")
    shape = (int(matrix.shape[0]), int(matrix.shape[1]))
    match matrix.format:
        case "csr":
            rows = _expand(matrix, shape[0], what)
            columns, values = matrix.indices[: rows.size], matrix.data[: rows.size]
            by_row = True
        case "csc":
            columns = _expand(matrix, shape[1], what)
            rows, values = matrix.indices[: columns.size], matrix.data[: columns.size]
            by_row = False
        case "coo":
            rows, columns, values = matrix.row, matrix.col, matrix.data
            by_row = _is_sorted(rows) or not _is_sorted(columns)
        case _:
            return _from_scipy(matrix.tocsr(), what)
    for indices, extent, kind in ((rows, shape[0], "row"), (columns, shape[1], "column")):
        _check_range(indices, extent, kind, what)
    first, second = (rows, columns) if by_row else (columns, rows)
    _check_order(first, second, by_row, what)
    if not by_row:
        order = np.argsort(rows, kind="stable")
        rows, columns, values = rows[order], columns[order], values[order]
    return Coordinates(shape=shape, rows=rows, columns=columns, values=values)


def _expand(matrix: Any, count: int, what: str) -> Array:
    """The number of the row (or column) of every entry, from the pointers."""
    starts = np.asarray(matrix.indptr)
    lengths = np.diff(starts)
    stored = min(matrix.indices.size, matrix.data.size)
    if starts.size != count + 1 or starts[0] != 0 or (lengths < 0).any() or starts[-1] > stored:
        wanted = f"{count + 1} pointers that rise from 0 to at most {stored}"
        _refuse(what, "has damaged pointers", wanted, f"{starts.size}: {starts}")
    return np.repeat(np.arange(count, dtype=np.int32), lengths)


def _is_sorted(indices: Array) -> bool:
    return bool((indices[1:] >= indices[:-1]).all())


def _check_range(indices: Array, extent: int, kind: str, what: str) -> None:
    if not indices.size or (indices.min() >= 0 and indices.max() < extent):
        return
    at = int(np.flatnonzero((indices < 0) | (indices >= extent))[0])
    _refuse(
        what,
        f"has a {kind} index out of range",
        f"0 to {extent - 1}" if extent else f"no entries, since there are no {kind}s",
        f"{kind} {int(indices[at])} in entry {at}",
    )


def _check_order(first: Array, second: Array, by_row: bool, what: str) -> None:
    """Entries have to rise by ``first``, then ``second``."""
    later = first[1:] > first[:-1]
    same = first[1:] == first[:-1]
    wrong = ~(later | (same & (second[1:] > second[:-1])))
    if not wrong.any():
        return
    at = int(np.flatnonzero(wrong)[0])
    pairs = [(int(first[k]), int(second[k])) for k in (at, at + 1)]
    (a, b) = pairs if by_row else [pair[::-1] for pair in pairs]
    if a == b:
        _refuse(
            what,
            "has two entries at one place",
            "every row and column at most once",
            f"two entries at row {a[0]}, column {a[1]}",
            "matrix.sum_duplicates() adds them up",
        )
    _refuse(
        what,
        "has entries out of order",
        f"entries sorted by {'row, then column' if by_row else 'column, then row'}",
        f"(row {b[0]}, column {b[1]}) after (row {a[0]}, column {a[1]})",
        "matrix.sum_duplicates() sorts a COO matrix, matrix.sort_indices() a CSR or CSC matrix",
    )


def _refuse(what: str, reason: str, expected: str, given: str, hint: str | None = None) -> None:
    raise UserError(
        f"{what} {reason}", location=user_location(), expected=expected, given=given, hint=hint
    )


def read_matrix(path: str | Path, type: Type) -> Any:
    """Read a Matrix Market file as a ``scipy.sparse.csr_array`` of elements of ``type``.

    All variants are read: coordinate and array, real, integer and pattern (ones), general,
    symmetric and skew-symmetric.  Raises ``UserError`` for complex matrices, for fractions where
    ``type`` is an integer, and for files that are damaged or give an entry twice.
    """
    location = user_location()
    from scipy import io, sparse

    what = f"the Matrix Market file {Path(path).name}"
    try:
        found = io.mmread(str(path))
    except (OSError, ValueError, OverflowError, StopIteration, IndexError) as error:
        raise UserError(
            f"{what} cannot be read",
            location=location,
            expected="a file that begins with %%MatrixMarket matrix",
            given=f"{error}",
        ) from None
    matrix = sparse.coo_array(found)
    _check_twice(matrix, what, location)
    with np.errstate(all="ignore"):
        values = matrix.data.astype(type.numpy) if matrix.data.dtype.kind != "c" else None
    lossy = values is None or (type.is_integer and not (values == matrix.data).all())
    if lossy:
        raise UserError(
            f"{what} has elements that are no {type}",
            location=location,
            expected=f"elements that can be converted to {type}",
            given="complex elements" if values is None else "fractions, or numbers too large",
        )
    result = sparse.csr_array((values, (matrix.row, matrix.col)), shape=matrix.shape)
    result.sort_indices()
    return result


def _check_twice(matrix: Any, what: str, location: SourceLocation) -> None:
    order = np.lexsort((matrix.col, matrix.row))
    rows, columns = matrix.row[order], matrix.col[order]
    twice = (rows[1:] == rows[:-1]) & (columns[1:] == columns[:-1])
    if twice.any():
        at = int(np.flatnonzero(twice)[0])
        raise UserError(
            f"{what} gives an entry twice",
            location=location,
            expected="every row and column at most once",
            given=f"row {int(rows[at]) + 1}, column {int(columns[at]) + 1} twice, counted from 1",
        )


def write_matrix(path: str | Path, matrix: Any) -> None:
    """Write a scipy.sparse matrix, or a ``Storage``, as a Matrix Market file."""
    from scipy import io

    io.mmwrite(str(path), matrix.to_scipy() if hasattr(matrix, "to_scipy") else matrix)
