"""Reader and writer of Matrix Market files, for tensors and for representations.

scipy reads files whose header has been checked.

A header is checked against the size of the file before anything is allocated, and a compressed file
is read up to ``MOST_RATIO`` times its size: a corrupt or hostile file costs no more time and memory
than a valid one of its size.
"""

from __future__ import annotations

import bz2
import gzip
import io
import os
import re
import zlib
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.core.sigint import import_deferring_sigint
from t2s.sparse_repr.tensors.coordinates import Array, Coordinates, in_order

MOST_RATIO = 100
"""Bytes of text for each byte of a compressed file, at most: text of numbers has about ten."""

SLACK = 1 << 20
"""Bytes of text that any compressed file may have."""

LEAST_ENTRY = 4
"""Bytes of the shortest entry: two digits, a space and a line end."""


_IN_NUMBERS = b"0123456789+-.eE \t\r\n"
_NAMED = re.compile(rb"(?<=[ \t+-])(?:nan|inf(?:inity)?)(?=\s|$)", re.IGNORECASE)
_NO_NUMBER = re.compile(
    rb"[^0-9+\-.eE \t\r\n]"  # another letter
    rb"|[eE](?![+-]?[0-9])|(?<![0-9.])[eE]|[eE][+-]?[0-9]+[.eE]"  # an exponent without digits
    rb"|[+-](?![0-9.])|(?<![\seE])[+-]"  # a sign inside of a number or alone
    rb"|\.[0-9]*\.|(?<![0-9])\.(?![0-9])"  # two points, or a point alone
)


def check_path(path: object, what: str) -> None:
    """Refuse anything but a path."""
    if not isinstance(path, str | os.PathLike) or "\0" in os.fspath(path):
        raise UserError(
            f"{what} needs a path", location=user_location(), expected="a str or a Path",
            given=repr(path),
        )  # fmt: skip


def read_market(path: str | Path, what: str) -> Coordinates | Array:
    """The entries of a Matrix Market file, or all elements of an array file.

    Duplicates are added up.  Raises ``UserError``, in which ``what`` names the file, for missing or
    corrupt files.
    """
    scipy_io = import_deferring_sigint("scipy.io")

    try:
        text = _text(Path(path))
        file = io.BytesIO(text)
        _check_header(file, len(text))
        _check_numbers(text, file.tell())
        matrix = scipy_io.mmread(io.BytesIO(text), spmatrix=False)
    except (
        OSError, ValueError, OverflowError, StopIteration, IndexError, EOFError, TypeError,
        zlib.error, MemoryError,
    ) as error:  # fmt: skip
        raise UserError(
            f"{what} cannot be read",
            location=user_location(),
            expected="a file that begins with %%MatrixMarket matrix",
            given=f"{error}" or error.__class__.__name__,
        ) from None
    return (
        matrix
        if isinstance(matrix, np.ndarray)
        else in_order(matrix.shape, matrix.coords, matrix.data)
    )


def market_text(found: Coordinates, what: str) -> bytes:
    """A matrix as a Matrix Market file.  Raises ``UserError`` for unsupported types."""
    scipy_io, sparse = import_deferring_sigint("scipy.io"), import_deferring_sigint("scipy.sparse")

    values = found.values
    if values.dtype.kind not in "iufbc":
        _refuse(f"{what} has elements of another type", "numbers", str(values.dtype))
    native = values.astype(values.dtype.newbyteorder("="), copy=False)
    file = io.BytesIO()
    try:
        scipy_io.mmwrite(file, sparse.coo_array((native, found.modes), shape=found.shape))
    except (ValueError, TypeError) as error:
        _refuse(f"{what} cannot be written", "numbers", f"{error}")
    return file.getvalue()


def _refuse(problem: str, expected: str, given: str) -> NoReturn:
    raise UserError(problem, location=user_location(), expected=expected, given=given)


def _text(path: Path) -> bytes:
    """The content of a file, decompressed according to its name."""
    most = MOST_RATIO * path.stat().st_size + SLACK
    match path.suffix.lower():
        case ".gz":
            with gzip.open(path) as packed:
                text = packed.read(most + 1)
        case ".bz2":
            with bz2.open(path) as file:
                text = file.read(most + 1)
        case _:
            return path.read_bytes()
    if len(text) > most:
        raise ValueError(f"it is compressed to less than one byte of {MOST_RATIO}")
    return text


def _check_numbers(text: bytes, begin: int) -> None:
    """Refuse anything but numbers after the header.

    scipy's reader accepts words that begin with a number, and crashes if a file ends inside an
    exponent.
    """
    if text[begin:].translate(None, _IN_NUMBERS):
        wrong = _NO_NUMBER.search(_NAMED.sub(lambda name: b"0" * len(name[0]), text), begin)
    else:
        wrong = _NO_NUMBER.search(text, begin)
    if wrong is not None:
        line = text.count(b"\n", 0, wrong.start()) + 1
        word = text[text.rfind(b"\n", 0, wrong.start()) + 1 :].split(b"\n", 1)[0][:80]
        raise ValueError(
            f"line {line} has something that is not a number: {word.decode('latin-1')!r}"
        )


def _check_header(file: Any, size: int) -> None:
    """Whether the entries that the header promises fit into the file."""
    banner = file.readline(1024).decode("latin-1").lower().split()
    if not banner or banner[0] != "%%matrixmarket":
        raise ValueError("its first line is not a header of a Matrix Market file")
    line = b"%"
    while line.startswith(b"%") or (line and not line.strip()):
        line = file.readline(SLACK)
    sizes = [int(word) for word in line.split()]
    left = size - file.tell() + 1  # the last line may lack a newline
    if "coordinate" in banner:
        promised = LEAST_ENTRY * sizes[2]
    else:
        full = sizes[0] * sizes[1]
        promised = 2 * (full if "general" in banner else (full - min(sizes[:2])) // 2)
    if min(sizes) < 0 or promised > left:
        raise ValueError(f"its header promises more than its {size} bytes hold: {sizes}")
