"""Machine code on disk, so that a design compiles once and not once per process.

Files are named by a digest of everything that the code depends on.  A file holds a digest of its
contents too, so one that is damaged, or half written, counts as missing.  Files are written under
another name and then moved into place, so processes may share the directory.  A directory that
cannot be used is no error: then code is compiled every time.

Machine code is run, so it is read only from whom the process trusts: a directory and a file of the
user, of the administrator, or of whoever owns t2s itself, which nobody else may write.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

_MOST_FILES = 512
_DIGEST_BYTES = 32
_SUFFIX = ".object"


def cache_directory() -> Path | None:
    """Where this platform keeps what a program can make again; ``None`` without a home.

    On Linux the XDG Base Directory Specification lets users move it; a relative path is invalid
    there, and ignored.
    """
    moved = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if moved.is_absolute() and sys.platform not in ("win32", "darwin"):
        return moved / "t2s"
    try:
        home = Path.home()
    except RuntimeError:  # no HOME, and a user without a name
        return None
    if not home.is_absolute():
        return None
    if sys.platform == "win32":
        return home / "AppData" / "Local" / "t2s" / "Cache"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "t2s"
    return home / ".cache" / "t2s"


def digest_of(*parts: str) -> str:
    """A name for code that depends on these texts alone."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


class ObjectCache:
    """Object files by digest, in one directory; the oldest are deleted when there are many.

    A ``directory`` of ``None`` holds nothing, as one that cannot be used or trusted.
    """

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory

    def find(self, digest: str) -> bytes | None:
        """The object file, or ``None`` if there is no sound one that can be trusted."""
        if self._directory is None:
            return None
        path = self._directory / f"{digest}{_SUFFIX}"
        try:
            if not _trusted(self._directory.stat()):
                return None
            with path.open("rb") as file:
                if not _trusted(os.fstat(file.fileno())):
                    return None
                data = file.read()
        except OSError:
            return None
        mark, code = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
        if not code or hashlib.sha256(code).digest() != mark:
            return None
        with suppress(OSError):
            os.utime(path)
        return code

    def keep(self, digest: str, code: bytes) -> bool:
        """Write an object file, unless that is impossible; whether it is there."""
        if self._directory is None:
            return False
        try:
            self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not _trusted(self._directory.stat()):
                return False
            handle, name = tempfile.mkstemp(dir=self._directory, suffix=".part")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(hashlib.sha256(code).digest() + code)
                os.replace(name, self._directory / f"{digest}{_SUFFIX}")
            except OSError:
                os.unlink(name)
                raise
        except OSError:
            return False
        with suppress(OSError):
            self._forget_the_oldest(self._directory)
        return True

    def _forget_the_oldest(self, directory: Path) -> None:
        """Delete files used longest ago, also what was left behind by processes that died."""
        found = [path for path in directory.iterdir() if path.suffix in (_SUFFIX, ".part")]
        if len(found) <= _MOST_FILES:
            return
        ages = []
        for path in found:
            with suppress(OSError):
                ages.append((path.stat().st_mtime, path.name, path))
        for _, _, path in sorted(ages)[: len(found) - _MOST_FILES // 2]:
            path.unlink(missing_ok=True)


def _trusted(status: os.stat_result) -> bool:
    """Whether nobody but the user, the administrator and the owner of t2s can have written it."""
    if sys.platform == "win32":  # a home is private, and there are no such modes
        return True
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return False
    return status.st_uid in (os.geteuid(), 0, os.stat(__file__).st_uid)
