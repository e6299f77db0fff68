"""Tensors in files: Matrix Market (``.mtx``) by scipy's reader, FROSTT (``.tns``), numpy."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from t2s.core.errors import UserError
from t2s.core.files import is_file, write_file
from t2s.core.location import SourceLocation, user_location
from t2s.sparse_repr.formats import Format, as_format, coo
from t2s.sparse_repr.tensors.coordinates import Coordinates
from t2s.sparse_repr.tensors.interchange import tensor
from t2s.sparse_repr.tensors.matrix_market import check_path, market_text, read_market
from t2s.sparse_repr.tensors.requirements import MOST_COORDINATE
from t2s.sparse_repr.tensors.tensor import SparseTensor, from_coordinates, from_entries

READERS = (".mtx", ".mtx.gz", ".mtx.bz2", ".tns", ".npy")


def read(path: str | Path, format: Format | str | None = None) -> SparseTensor:
    """Read a tensor from a file; its kind follows from the name.

    Matrix Market files may be coordinate or array, general, symmetric or skew-symmetric, real,
    integer or pattern; complex ones are refused, Hermitian ones among them.  Coordinates that are
    there twice are added up, as the format defines.
    """
    check_path(path, "read")
    path, format = Path(path), None if format is None else as_format(format)
    if not is_file(path):
        raise UserError(f"no such file: {path}", location=user_location())
    name = path.name.lower()
    if name.endswith((".mtx", ".mtx.gz", ".mtx.bz2")):
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
    """Write a tensor as ``.mtx`` (matrices), ``.tns``, or ``.npy`` with all its zeros.

    Raises ``UserError`` for arguments of other types, and if the file cannot be written.
    """
    check_path(path, "write")
    path, location = Path(path), user_location()
    if not isinstance(value, SparseTensor):
        raise UserError(
            "write needs a tensor",
            location=location,
            expected="a SparseTensor",
            given=repr(value),
            hint="sparse.tensor makes one of an array or of a matrix of scipy",
        )
    write_file(path, _content(path, value, location))


def _content(path: Path, value: SparseTensor, location: SourceLocation) -> bytes:
    if path.suffix == ".mtx" and value.order == 2:
        columns, values = value.columns()
        entries = Coordinates(shape=value.shape, modes=columns, values=values)
        return market_text(entries, "the tensor to write")
    if path.suffix == ".tns":
        table, values = value.coordinates()
        lines = [
            " ".join([*(str(at + 1) for at in row), repr(number)])
            for row, number in zip(table.tolist(), values.tolist(), strict=True)
        ]
        size = f"# shape {' '.join(map(str, value.shape))}\n"
        return (size + "".join(f"{line}\n" for line in lines)).encode()
    if path.suffix == ".npy":
        file = BytesIO()
        np.save(file, value.to_dense())
        return file.getvalue()
    raise UserError(
        f"a tensor of order {value.order} cannot be written to {path.name}",
        location=location,
        expected="a name that ends in .tns or .npy, or in .mtx for a matrix",
    )


def _read_matrix_market(path: Path, format: Format | None) -> SparseTensor:
    matrix = read_market(path, f"the Matrix Market file {path.name}")
    if isinstance(matrix, Coordinates):
        return from_entries(matrix, format or coo(2))
    return tensor(matrix, format)


def _read_numpy(path: Path) -> Any:
    try:  # mapping fails if the header promises more than the file has
        return np.array(np.load(path, allow_pickle=False, mmap_mode="r"))
    except (ValueError, EOFError, OSError, OverflowError, MemoryError, SyntaxError) as error:
        raise UserError(
            f"{path.name} is not an array of numpy: {error}", location=user_location()
        ) from None


def _read_tns(path: Path, format: Format | None) -> SparseTensor:
    """Lines of coordinates from 1 and a value; the shape is that of the largest coordinates.

    A comment ``# shape 3 4 5``, as ``write`` puts it, gives the shape.  Values are float64, or
    int64 if all are integers that float64 cannot represent.
    """
    shape: tuple[int, ...] | None = None
    rows: list[tuple[int, ...]] = []
    values: list[str] = []
    for number, line in enumerate(_lines(path), start=1):
        words = line.split("#")[0].split()
        if line.startswith("# shape ") and all(word.isdecimal() for word in line.split()[2:]):
            shape = tuple(int(word) for word in line.split()[2:])
        if not words:
            continue
        rows.append(_coordinates(words[:-1]))
        values.append(words[-1])
        low = next((word for word in words[:-1] if _is_number(word) and float(word) < 1), None)
        if low is not None:
            raise UserError(
                f"line {number} of {path.name} has the coordinate {low}",
                location=user_location(),
                expected="coordinates that count from 1",
                given=line.strip(),
                hint="if the file counts from 0, add 1 to each coordinate, or pass its columns"
                " to t2s.sparse.from_coordinates",
            )
        wanted = (len(rows[0]) if shape is None else len(shape)) + 1
        if len(rows[-1]) + 1 != wanted or len(words) != wanted or not _is_number(words[-1]):
            raise UserError(
                f"line {number} of {path.name} is not a coordinate and a value",
                location=user_location(),
                expected=f"{wanted} numbers" if wanted > 1 else "numbers",
                given=line.strip(),
            )
    if shape is None and not rows:
        raise UserError(f"{path.name} has no values", location=user_location())
    order = len(rows[0]) if shape is None else len(shape)
    if any(at > MOST_COORDINATE for row in rows for at in row):
        raise UserError(
            f"a coordinate of {path.name} is too large",
            location=user_location(),
            expected=f"at most {MOST_COORDINATE}",
        )
    table = np.array(rows, np.int64).reshape(len(rows), order) - 1
    shape = tuple(int(n) + 1 for n in table.max(axis=0)) if shape is None else shape
    data = _values(path, values)
    return from_coordinates(table, data, shape, format or coo(order), sum_duplicates=True)


def _values(path: Path, words: list[str]) -> Any:
    """Values as float64, or as int64 if that is needed to keep integers exact."""
    floats = np.array([float(word) for word in words], np.float64)
    whole = [_integer(word) for word in words]
    if all(n is None or n == number for n, number in zip(whole, floats.tolist(), strict=True)):
        return floats
    integers = [n for n in whole if n is not None]
    if len(integers) < len(whole) or max(map(abs, integers)) > MOST_COORDINATE:
        raise UserError(
            f"{path.name} has integers that float64 does not have",
            location=user_location(),
            expected="int64 integers only, or values that float64 has",
            given=next(w for w, n in zip(words, whole, strict=True) if n not in (None, float(w))),
        )
    return np.array(integers, np.int64)


def _integer(word: str) -> int | None:
    """The integer of a word, without a point and an exponent."""
    digits = word[1:] if word[:1] in ("+", "-") else word
    return int(word) if digits.isdecimal() and len(digits) < 400 else None


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (UnicodeDecodeError, OSError):
        raise UserError(f"{path.name} is not a text", location=user_location()) from None


def _coordinates(words: list[str]) -> tuple[int, ...]:
    """Positive integers, written as 2 or 2.0; fewer than the words if one is invalid."""
    coordinates: list[int] = []
    for word in words:
        number = _integer(word)
        if number is None:
            number = int(float(word)) if _is_number(word) and _is_exact(float(word)) else 0
        if number < 1:
            break
        coordinates.append(number)
    return tuple(coordinates)


def _is_exact(number: float) -> bool:
    """Whether a float is an integer to which no other integer rounds."""
    return number.is_integer() and abs(number) <= 2**53
