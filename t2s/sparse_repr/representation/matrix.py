"""Matrices for representations: of the right type, small enough for hardware; and their files."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from t2s.core.errors import UserError
from t2s.core.files import write_file
from t2s.core.location import user_location
from t2s.core.types import Type
from t2s.sparse_repr.tensors.coordinates import Coordinates
from t2s.sparse_repr.tensors.foreign import coordinates_of, to_csr
from t2s.sparse_repr.tensors.matrix_market import check_path, market_text, read_market

MOST_ROWS = 2**27
"""Rows, and columns, of a matrix: operands and results are kept on the chip, whose indices, those
of diagonals and of all right-hand sides too, are of 32 bits."""


def matrix_of(matrix: object, type: Type | None, what: str) -> Coordinates:
    """The entries of a matrix of any kind, those at one place added up.

    Raises ``UserError`` for other things, another element type than ``type``, indices out of range,
    and sizes that the indices of hardware, int32, cannot count.
    """
    found = coordinates_of(matrix, what)
    if found is None:
        raise UserError(
            f"{what} is no matrix",
            location=user_location(),
            expected="a matrix of scipy.sparse or pydata/sparse, or a two-dimensional array",
            given=f"{matrix.__class__.__name__}",
            hint="t2s.read_matrix reads a Matrix Market file",
        )
    if len(found.shape) != 2:
        raise UserError(
            f"{what} has no rows and columns",
            location=user_location(),
            expected="two dimensions",
            given=f"{len(found.shape)}",
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
        raise UserError(
            f"{what} is too large for hardware",
            location=user_location(),
            expected=f"at most {MOST_ROWS} rows and columns",
            given=f"{found.shape[0]} x {found.shape[1]}",
        )
    return found


def read_matrix(path: str | Path, type: Type) -> Any:
    """Read a Matrix Market file as a ``scipy.sparse.csr_array`` of elements of ``type``.

    All variants are read: coordinate and array, real, integer and pattern (ones), general,
    symmetric and skew-symmetric, compressed by gzip or bzip2 too.  Entries that are there twice are
    added up.  Raises ``UserError`` for complex matrices, for elements that ``type`` does not have
    (fractions of integers, numbers too large), and for files that are damaged or too large.
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
    what = f"the Matrix Market file {Path(path).name}"
    found = matrix_of(read_market(path, what), None, what)
    with np.errstate(all="ignore"):
        values = found.values.astype(type.numpy) if found.values.dtype.kind != "c" else None
    if values is None or (type.is_integer and not (values == found.values).all()):
        raise UserError(
            f"{what} has elements that are no {type}",
            location=location,
            expected=f"elements that can be converted to {type}",
            given="complex elements" if values is None else "fractions, or numbers too large",
        )
    return to_csr(replace(found, values=values))


def write_matrix(path: str | Path, matrix: Any) -> None:
    """Write a matrix, or a ``Storage``, as a Matrix Market file, whose name ends in ``.mtx``.

    Raises ``UserError`` for what ``store`` does not take either, and where nothing can be written.
    """
    check_path(path, "write_matrix")
    what = "the matrix to write"
    text = market_text(matrix_of(matrix, None, what), what)
    name = os.fspath(path)
    write_file(Path(name if name.endswith(".mtx") else f"{name}.mtx"), text)
