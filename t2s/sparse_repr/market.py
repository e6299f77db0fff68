"""Matrix Market files, read by scipy once their header is known to be true.

What a header promises is checked against the bytes that are there before anything is allocated,
and a compressed file is read up to ``MOST_RATIO`` times its size: a damaged or a hostile file costs
no more time and memory than an honest one of its size.
"""

from __future__ import annotations

import gzip
import io
import os
import zlib
from pathlib import Path
from typing import Any

from t2s.core.errors import UserError
from t2s.core.interrupts import late_module
from t2s.core.location import user_location

MOST_RATIO = 100
"""Bytes of text for each byte of a compressed file, at most: text of numbers has about ten."""

SLACK = 1 << 20
"""Bytes of text that any compressed file may have."""

LEAST_ENTRY = 4
"""Bytes of the shortest entry: two digits, a space and a line end."""


def check_path(path: object, what: str) -> None:
    """Refuse what is no path."""
    if not isinstance(path, str | os.PathLike) or "\0" in os.fspath(path):
        raise UserError(
            f"{what} needs a path", location=user_location(), expected="a str or a Path",
            given=repr(path),
        )  # fmt: skip


def read_market(path: str | Path, what: str) -> Any:
    """A Matrix Market file as scipy reads it: a COO matrix, or an array.

    Raises ``UserError``, in which ``what`` names the file, for files that are not there or damaged.
    """
    scipy_io = late_module("scipy.io")

    try:
        text = _unpacked(Path(path)) if str(path).lower().endswith(".gz") else None
        size = len(text) if text is not None else Path(path).stat().st_size
        with io.BytesIO(text) if text is not None else Path(path).open("rb") as file:
            _check_header(file, size)
        return scipy_io.mmread(io.BytesIO(text) if text is not None else str(path))
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


def _unpacked(path: Path) -> bytes:
    most = MOST_RATIO * path.stat().st_size + SLACK
    with gzip.open(path) as file:
        text = file.read(most + 1)
    if len(text) > most:
        raise ValueError(f"it is compressed to less than one byte of {MOST_RATIO}")
    return text


def _check_header(file: Any, size: int) -> None:
    """Whether the entries that the header promises fit into the file."""
    banner = file.readline(1024).decode("latin-1").lower().split()
    if not banner or banner[0] != "%%matrixmarket":
        return  # scipy says what is wrong
    line = b"%"
    while line.startswith(b"%") or (line and not line.strip()):
        line = file.readline(SLACK)
    sizes = [int(word) for word in line.split()]
    left = size - file.tell() + 1  # the last line may have no end
    if "coordinate" in banner:
        promised = LEAST_ENTRY * sizes[2]
    else:
        full = sizes[0] * sizes[1]
        promised = 2 * (full if "general" in banner else (full - min(sizes[:2])) // 2)
    if min(sizes) < 0 or promised > left:
        raise ValueError(f"its header promises more than its {size} bytes hold: {sizes}")
