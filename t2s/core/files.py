"""Files are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from t2s.core.errors import UserError
from t2s.core.location import SourceLocation


def write_texts(
    folder: Path, files: Mapping[str, str], location: SourceLocation | None = None
) -> tuple[Path, ...]:
    """Write texts by file name into a folder (made if missing), and return their paths.

    Everything is written under other names first, and moved into place when all of it is there: a
    disk that is full leaves what was in the folder before.  Raises ``UserError`` at ``location`` if
    the folder cannot be made or written.
    """
    written: list[tuple[str, Path]] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            handle, aside = tempfile.mkstemp(dir=folder, prefix=".", suffix=".part")
            written.append((aside, folder / name))
            with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
            os.chmod(aside, 0o666 & ~_mask())
        for aside, path in written:
            os.replace(aside, path)
    except OSError as error:
        for aside, _ in written:
            with suppress(OSError):
                os.unlink(aside)
        raise UserError(
            f"{os.fspath(folder)!r} cannot be written",
            location=location,
            expected="a folder on a disk with room, in which files can be made",
            given=error.strerror or str(error),
        ) from None
    return tuple(path for _, path in written)


def _mask() -> int:
    """The permissions that new files do not get.  There is no way to ask without setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
