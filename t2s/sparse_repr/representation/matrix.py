"""Matrices from outside: scipy.sparse, numpy and Matrix Market files, checked and put in order."""

from __future__ import annotations

import os
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from t2s.core.errors import UserError
from t2s.core.files import write_file
from t2s.core.interrupts import late_module
from t2s.core.location import SourceLocation, user_location
from t2s.core.types import Type
from t2s.sparse_repr.market import check_path, read_market

Array = np.ndarray[Any, Any]

MOST_ELEMENTS = 2**31 - 1
"""Elements of an array of numpy, each of which is looked at."""

MOST_ROWS = 2**27
"""Rows, and columns, of a matrix: operands and results are kept on the chip, whose indices, those
of diagonals and of all right-hand sides too, are of 32 bits."""


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
    """The entries of a scipy or pydata matrix, or those of a numpy array that are not zero.

    Entries may come in any order; those at one place are added up.  Raises ``UserError`` for other
    things, another element type than ``type``, indices out of range, and sizes that the indices
    of hardware, int32, cannot count.
    """
    if isinstance(matrix, Coordinates):
        found = matrix
    elif isinstance(matrix, np.ndarray):
        found = _from_numpy(matrix, what)
    elif is_pydata(matrix):
        found = _from_pydata(matrix, what)
    elif is_scipy(matrix):
        found = _from_scipy(matrix, what)
    else:
        raise UserError(
            f"{what} is no matrix",
            location=user_location(),
            expected="a matrix of scipy.sparse or pydata/sparse, or a two-dimensional array",
            given=f"{matrix.__class__.__name__}",
            hint="t2s.read_matrix reads a Matrix Market file",
        )
    if type is not None and found.values.dtype != type.numpy:
        raise UserError(
            f"{what} has elements of another type",
            location=user_location(),
            expected=str(type),
            given=str(found.values.dtype),
            hint=None
            if found.values.dtype.kind == "c"
            else f"convert it: matrix.astype(numpy.{type.numpy})",
        )
    if max(found.shape) > MOST_ROWS:
        rows, columns = found.shape
        wanted = f"at most {MOST_ROWS} rows and columns"
        _refuse(what, "is too large for hardware", wanted, f"{rows} x {columns}")
    return found


def is_scipy(value: object) -> bool:
    """Whether a value is a matrix or an array of scipy.sparse, which is not imported for it."""
    return _of_package(value, "scipy") and hasattr(value, "format") and hasattr(value, "tocoo")


def is_pydata(value: object) -> bool:
    """Whether a value is an array of pydata/sparse, which is not imported for it."""
    return _of_package(value, "sparse") and hasattr(value, "fill_value")


def _of_package(value: object, package: str) -> bool:
    """Whether the class of a value, or one that it derives from, is of a package."""
    return any(each.__module__.split(".")[0] == package for each in type(value).__mro__)


def _from_numpy(matrix: Array, what: str) -> Coordinates:
    if matrix.ndim != 2:
        _refuse(what, "has no rows and columns", "two dimensions", f"{matrix.ndim}")
    if isinstance(matrix, np.ma.MaskedArray):
        wanted = "all elements, matrix.filled(0) for instance"
        _refuse(what, "has masked elements", wanted, "a masked array")
    if matrix.size > MOST_ELEMENTS:
        shape_text = " x ".join(map(str, matrix.shape))
        _refuse(what, "is too large as an array", f"at most {MOST_ELEMENTS} elements", shape_text)
    plain = np.asarray(matrix)
    rows, columns = np.nonzero(plain)
    shape = (plain.shape[0], plain.shape[1])
    return Coordinates(shape=shape, rows=rows, columns=columns, values=plain[rows, columns])


def _from_pydata(matrix: Any, what: str) -> Coordinates:
    """COO, GCXS or DOK of pydata/sparse."""
    fill = matrix.fill_value
    if fill != 0:
        _refuse(what, "leaves out elements that are not 0", "fill_value 0", f"fill_value {fill}")
    if not hasattr(matrix, "coords"):
        matrix = matrix.to_coo() if hasattr(matrix, "to_coo") else matrix.tocoo()
    if len(matrix.shape) != 2:
        _refuse(what, "has no rows and columns", "two dimensions", f"{len(matrix.shape)}")
    shape = (int(matrix.shape[0]), int(matrix.shape[1]))
    return _checked(shape, matrix.coords[0], matrix.coords[1], matrix.data, what)


def _from_scipy(matrix: Any, what: str) -> Coordinates:
    if len(matrix.shape) != 2:
        _refuse(what, "has no rows and columns", "two dimensions", f"{len(matrix.shape)}")
    shape = (int(matrix.shape[0]), int(matrix.shape[1]))
    rows: Any
    columns: Any
    match matrix.format:
        case "csr":
            rows = _expand(matrix, shape[0], what)
            columns, values = matrix.indices[: rows.size], matrix.data[: rows.size]
        case "csc":
            columns = _expand(matrix, shape[1], what)
            rows, values = matrix.indices[: columns.size], matrix.data[: columns.size]
        case "coo":
            rows, columns, values = matrix.row, matrix.col, matrix.data
        case _:
            if matrix.format == "bsr":
                _expand(matrix, shape[0] // matrix.blocksize[0], what)
            if matrix.format == "lil":  # scipy's own conversion would write out of bounds
                lengths = [[len(each) for each in lists] for lists in (matrix.rows, matrix.data)]
                if lengths[0] != lengths[1]:
                    wanted = "as many columns as values in every row"
                    _refuse(what, "is damaged", wanted, "rows of other lengths")
            try:
                parts = matrix.tocoo()
            except (ValueError, IndexError, TypeError, AttributeError, OverflowError) as error:
                _refuse(what, "is damaged", f"a {matrix.format} matrix of scipy", f"{error}")
            rows, columns, values = parts.row, parts.col, parts.data
    return _checked(shape, rows, columns, values, what)


def _checked(
    shape: tuple[int, int], rows: Any, columns: Any, values: Any, what: str
) -> Coordinates:
    """Entries in any order: in range, as many of each, then put in order."""
    rows, columns, values = np.asarray(rows), np.asarray(columns), np.asarray(values)
    if not rows.shape == columns.shape == values.shape == (rows.size,):
        given = f"{rows.size} rows, {columns.size} columns and {values.size} values"
        _refuse(what, "is damaged", "a row, a column and a value for each entry", given)
    for indices, extent, kind in ((rows, shape[0], "row"), (columns, shape[1], "column")):
        if indices.dtype.kind not in "iu":
            _refuse(what, "is damaged", f"integers as {kind} indices", str(indices.dtype))
        _check_range(indices, extent, kind, what)
    return _in_order(Coordinates(shape=shape, rows=rows, columns=columns, values=values))


def _in_order(entries: Coordinates) -> Coordinates:
    """Entries by rows, then columns; those at one place are added up, as scipy does.

    Nothing is copied where that is so already.  Sums are those of ``sum_duplicates`` of a COO
    matrix: in the type of the matrix, in the order in which the entries were.
    """
    rows, columns, values = entries.rows, entries.columns, entries.values
    if _rises(rows, columns):
        return entries
    order = np.lexsort((columns, rows))
    rows, columns, values = rows[order], columns[order], values[order]
    if not _rises(rows, columns):
        new = np.concatenate([[True], (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])])
        starts = np.flatnonzero(new)
        rows, columns = rows[starts], columns[starts]
        with np.errstate(all="ignore"):
            values = np.add.reduceat(values, starts, dtype=values.dtype)
    return Coordinates(shape=entries.shape, rows=rows, columns=columns, values=values)


def _rises(rows: Array, columns: Array) -> bool:
    """Whether every entry is behind the one before, by rows and then columns."""
    later = rows[1:] > rows[:-1]
    same = rows[1:] == rows[:-1]
    return bool((later | (same & (columns[1:] > columns[:-1]))).all())


def _expand(matrix: Any, count: int, what: str) -> Array:
    """The number of the row (or column) of every entry, from the pointers."""
    starts = np.asarray(matrix.indptr)
    lengths = np.diff(starts)
    stored = min(matrix.indices.size, len(matrix.data))
    if starts.size != count + 1 or starts[0] != 0 or (lengths < 0).any() or starts[-1] > stored:
        wanted = f"{count + 1} pointers that rise from 0 to at most {stored}"
        _refuse(what, "has damaged pointers", wanted, f"{starts.size}: {starts}")
    return np.repeat(np.arange(count), lengths)


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


def _refuse(what: str, reason: str, expected: str, given: str) -> NoReturn:
    raise UserError(f"{what} {reason}", location=user_location(), expected=expected, given=given)


def read_matrix(path: str | Path, type: Type) -> Any:
    """Read a Matrix Market file as a ``scipy.sparse.csr_array`` of elements of ``type``.

    All variants are read: coordinate and array, real, integer and pattern (ones), general,
    symmetric and skew-symmetric, compressed by gzip or bzip2 too.  Raises ``UserError`` for complex
    matrices, for elements that ``type`` does not have (fractions of integers, numbers too large),
    and for files that are damaged, too large or give an entry twice.
    """
    location = user_location()
    check_path(path, "read_matrix")
    if not isinstance(type, Type):
        raise UserError(
            "read_matrix needs an element type",
            location=location,
            expected="for example read_matrix(path, Float(32))",
            given=repr(type),
        )
    sparse = late_module("scipy.sparse")

    what = f"the Matrix Market file {Path(path).name}"
    matrix = sparse.coo_array(read_market(path, what))
    if max(matrix.shape) > MOST_ROWS:
        raise UserError(
            f"{what} is too large",
            location=location,
            expected=f"at most {MOST_ROWS} rows and columns",
            given=f"{matrix.shape[0]} x {matrix.shape[1]}",
        )
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
    """Write a matrix, or a ``Storage``, as a Matrix Market file, whose name ends in ``.mtx``.

    Raises ``UserError`` for what ``store`` does not take either, and where nothing can be written.
    """
    io, sparse = late_module("scipy.io"), late_module("scipy.sparse")

    check_path(path, "write_matrix")
    if hasattr(matrix, "to_scipy"):
        matrix = matrix.to_scipy()
    found = coordinates_of(matrix, None, "the matrix to write")
    if found.values.dtype.kind not in "iufbc":
        given = str(found.values.dtype)
        _refuse("the matrix to write", "has elements of another type", "numbers", given)
    native = found.values.astype(found.values.dtype.newbyteorder("="), copy=False)
    entries = sparse.coo_array((native, (found.rows, found.columns)), shape=found.shape)
    file = BytesIO()
    try:
        io.mmwrite(file, entries)
    except (ValueError, TypeError) as error:
        given = f"{error}"
        _refuse("the matrix to write", "cannot be written", "numbers", given)
    name = os.fspath(path)
    write_file(Path(name if name.endswith(".mtx") else f"{name}.mtx"), file.getvalue())
