"""Atomic writes: files are written completely or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from t2s.core.errors import UserError
from t2s.core.location import SourceLocation, user_location


def is_file(path: Path) -> bool:
    """Whether the file exists; false for names that the system rejects."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def write_texts(
    folder: Path, files: Mapping[str, str], location: SourceLocation | None = None
) -> tuple[Path, ...]:
    """Write texts by file name into a folder; see ``write_files``."""
    return write_files(folder, {name: text.encode() for name, text in files.items()}, location)


def write_files(
    folder: Path, files: Mapping[str, bytes], location: SourceLocation | None = None
) -> tuple[Path, ...]:
    """Write files by name into a folder (made if missing), and return their paths.

    Names may have folders of their own, as in ``include/a.h``.
    All files are written under temporary names first, and moved into place together, so a full disk
    leaves the folder unchanged.  Raises ``UserError`` at ``location`` if the folder cannot be made
    or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for inner in {(folder / name).parent for name in files}:
            inner.mkdir(parents=True, exist_ok=True)
        return _moved(folder, files)
    except OSError as error:
        raise UserError(
            f"{os.fspath(folder)!r} cannot be written",
            location=location,
            expected="a writable folder on a disk with free space",
            given=error.strerror or str(error),
        ) from None


def check_place(path: Path, location: SourceLocation | None = None) -> None:
    """Raise the ``UserError`` of ``write_file`` early if the folder does not exist.

    Commands name no line of a user.
    """
    if not is_folder(path.parent):
        _refuse(path, "no such folder", location)


def is_folder(path: Path) -> bool:
    """Whether the folder exists; false for names that the system rejects."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _refuse(path: Path, why: str, location: SourceLocation | None) -> NoReturn:
    raise UserError(
        f"the file {os.fspath(path)!r} cannot be written",
        location=location,
        expected="a name in a writable folder on a disk with free space",
        given=why,
    )


def write_file(path: Path, content: bytes) -> None:
    """Write one file atomically into an existing folder.  Raises ``UserError``."""
    try:
        if path.is_dir() or not path.name:
            raise IsADirectoryError(None, "this is a folder")
        _moved(path.parent, {path.name: content})
    except (OSError, ValueError) as error:
        _refuse(path, getattr(error, "strerror", None) or str(error), user_location())


def _moved(folder: Path, files: Mapping[str, bytes]) -> tuple[Path, ...]:
    written: list[tuple[str, Path]] = []
    try:
        for name, content in files.items():
            handle, aside = tempfile.mkstemp(dir=folder, prefix=".", suffix=".part")
            written.append((aside, folder / name))
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.chmod(aside, 0o666 & ~_mask())
        for aside, path in written:
            os.replace(aside, path)
    except OSError:
        for aside, _ in written:
            with suppress(OSError):
                os.unlink(aside)
        raise
    return tuple(path for _, path in written)


def _mask() -> int:
    """The umask.  The system has no way to read it without setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
