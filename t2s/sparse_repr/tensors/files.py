"""Tensors in files: Matrix Market (``.mtx``) by scipy's reader, FROSTT (``.tns``), numpy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.sparse_repr.formats import Format, coo
from t2s.sparse_repr.tensors.interchange import library, tensor, to_scipy
from t2s.sparse_repr.tensors.tensor import SparseTensor, from_coordinates

READERS = (".mtx", ".mtx.gz", ".tns", ".npy")


def read(path: str | Path, format: Format | None = None) -> SparseTensor:
    """Read a tensor from a file; its kind follows from the name.

    Matrix Market files may be coordinate or array, general, symmetric, skew-symmetric or
    Hermitian, real, integer or pattern.  Coordinates that are there twice are added up, as the
    format defines.
    """
    path = Path(path)
    if not path.is_file():
        raise UserError(f"there is no file {path}", location=user_location())
    name = path.name.lower()
    if name.endswith((".mtx", ".mtx.gz")):
        return _read_matrix_market(path, format)
    if name.endswith(".tns"):
        return _read_tns(path, format)
    if name.endswith(".npy"):
        return tensor(_read_numpy(path), format)
    raise UserError(
        f"{path.name} is not a tensor that t2s can read",
        location=user_location(),
        expected=f"a name that ends in {', '.join(READERS)}",
    )


def write(path: str | Path, value: SparseTensor) -> None:
    """Write a tensor as ``.mtx`` (matrices), ``.tns``, or ``.npy`` with all its zeros."""
    path = Path(path)
    if path.suffix == ".mtx" and value.order == 2:
        io: Any = library("scipy.io", f"writing {path.name}")
        io.mmwrite(path, to_scipy(value).tocoo())
        return
    if path.suffix == ".tns":
        table, values = value.coordinates()
        lines = [
            " ".join([*(str(at + 1) for at in row), repr(number)])
            for row, number in zip(table.tolist(), values.tolist(), strict=True)
        ]
        size = f"# shape {' '.join(map(str, value.shape))}\n"
        path.write_text(size + "".join(f"{line}\n" for line in lines), encoding="utf-8")
        return
    if path.suffix == ".npy":
        np.save(path, value.to_dense())
        return
    raise UserError(
        f"a tensor of order {value.order} cannot be written to {path.name}",
        location=user_location(),
        expected="a name that ends in .tns or .npy, or in .mtx for a matrix",
    )


def _read_matrix_market(path: Path, format: Format | None) -> SparseTensor:
    io: Any = library("scipy.io", f"reading {path.name}")
    try:
        matrix = io.mmread(path)
    except ValueError as error:
        raise UserError(
            f"{path.name} is not a Matrix Market file: {error}", location=user_location()
        ) from None
    if isinstance(matrix, np.ndarray):
        return tensor(matrix, format)
    table = np.stack([matrix.row, matrix.col], axis=1)
    return from_coordinates(table, matrix.data, matrix.shape, format or coo(2), sum_duplicates=True)


def _read_numpy(path: Path) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise UserError(
            f"{path.name} is not an array of numpy: {error}", location=user_location()
        ) from None


def _read_tns(path: Path, format: Format | None) -> SparseTensor:
    """Lines of coordinates from 1 and a value; the shape is that of the largest coordinates.

    A comment ``# shape 3 4 5``, as ``write`` puts it, gives the shape.
    """
    shape: tuple[int, ...] | None = None
    rows: list[list[float]] = []
    for number, line in enumerate(_lines(path), start=1):
        words = line.split("#")[0].split()
        if line.startswith("# shape ") and all(word.isdecimal() for word in line.split()[2:]):
            shape = tuple(int(word) for word in line.split()[2:])
        if not words:
            continue
        rows.append(_numbers(words))
        wanted = len(rows[0]) if shape is None else len(shape) + 1
        if len(rows[-1]) < 2 or len(rows[-1]) != wanted:
            raise UserError(
                f"line {number} of {path.name} is not a coordinate and a value",
                location=user_location(),
                expected=f"{wanted} numbers" if wanted > 1 else "numbers",
                given=line.strip(),
            )
    if shape is None and not rows:
        raise UserError(f"{path.name} has no values", location=user_location())
    order = len(rows[0]) - 1 if shape is None else len(shape)
    entries = np.array(rows, np.float64).reshape(len(rows), order + 1)
    table = entries[:, :-1].astype(np.int64) - 1
    shape = tuple(table.max(axis=0) + 1) if shape is None else shape
    return from_coordinates(table, entries[:, -1], shape, format or coo(order), sum_duplicates=True)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise UserError(f"{path.name} is not a text", location=user_location()) from None


def _numbers(words: list[str]) -> list[float]:
    """A coordinate, of whole numbers from 1, and a value; nothing if they are not."""
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        return []
    whole = all(number.is_integer() and number >= 1 for number in numbers[:-1])
    return numbers if whole else []
