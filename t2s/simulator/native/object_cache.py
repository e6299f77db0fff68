"""Machine code on disk, so that a design compiles once and not once per process.

Files are named by a digest of everything that the code depends on.  A file holds a digest of its
contents too, so one that is damaged, or half written, counts as missing.  Files are written under
another name and then moved into place, so processes may share the directory.  A directory that
cannot be used is no error: then code is compiled every time.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

_MOST_FILES = 512
_DIGEST_BYTES = 32
_SUFFIX = ".object"


def cache_directory() -> Path:
    """Where this platform keeps what a program can make again."""
    home = Path.home()
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
    """Object files by digest, in one directory; the oldest are deleted when there are many."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def find(self, digest: str) -> bytes | None:
        """The object file, or ``None`` if there is no sound one."""
        path = self._path(digest)
        try:
            data = path.read_bytes()
        except OSError:
            return None
        mark, code = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
        if not code or hashlib.sha256(code).digest() != mark:
            return None
        with suppress(OSError):
            os.utime(path)
        return code

    def keep(self, digest: str, code: bytes) -> None:
        """Write an object file, unless that is impossible."""
        path = self._path(digest)
        with suppress(OSError):
            self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle, name = tempfile.mkstemp(dir=self._directory, suffix=".part")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(hashlib.sha256(code).digest() + code)
                os.replace(name, path)
            except OSError:
                os.unlink(name)
                raise
            self._forget_the_oldest()

    def _path(self, digest: str) -> Path:
        return self._directory / f"{digest}{_SUFFIX}"

    def _forget_the_oldest(self) -> None:
        """Delete files used longest ago, also what was left behind by processes that died."""
        found = [path for path in self._directory.iterdir() if path.suffix in (_SUFFIX, ".part")]
        if len(found) <= _MOST_FILES:
            return
        ages = []
        for path in found:
            with suppress(OSError):
                ages.append((path.stat().st_mtime, path.name, path))
        for _, _, path in sorted(ages)[: len(found) - _MOST_FILES // 2]:
            path.unlink(missing_ok=True)
