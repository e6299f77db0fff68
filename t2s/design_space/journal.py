"""The journal of a search: exact results and refusals in an SQLite file, so that it can go on.

Only the driver of a search writes to its journal, a batch in one transaction, and it locks the
file as long as it runs.  A driver that is killed loses at most the batch it was writing.
"""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from hashlib import sha256
from pathlib import Path
from types import TracebackType

from t2s.core.errors import UserError
from t2s.core.location import user_location

_APPLICATION = 0x74327367
"""Marks the header of a journal among SQLite files: "t2sg"."""

_SCHEMA = 2

_TABLES = """
CREATE TABLE header (
    schema INTEGER NOT NULL, version TEXT NOT NULL,
    definition TEXT NOT NULL, definition_digest TEXT NOT NULL,
    device TEXT NOT NULL, device_digest TEXT NOT NULL
) STRICT;
CREATE TABLE outcomes (
    key TEXT PRIMARY KEY, cycles INTEGER, dsp_blocks INTEGER, ram_blocks INTEGER,
    bytes_moved INTEGER, refusal TEXT, more_than INTEGER
) STRICT, WITHOUT ROWID;
"""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What is known of one program: its exact cycles and resources, or why it has none.

    Attributes
    ----------
    cycles: of the whole run.
    dsp_blocks, ram_blocks: of the device; ``None`` where it has no such notion.
    bytes_moved: between the chip and its memory.
    refusal: the text of the error, with everything else ``None``; ``None`` for a legal program.
    more_than: cycles after which its run had not ended and was cut short, so that ``cycles`` is
        ``None``.
    """

    cycles: int | None = None
    dsp_blocks: int | None = None
    ram_blocks: int | None = None
    bytes_moved: int | None = None
    refusal: str | None = None
    more_than: int | None = None


_FIELDS = tuple(field.name for field in dataclasses.fields(Outcome))
_COLUMNS = ", ".join(_FIELDS)

_PUT = f"""
INSERT INTO outcomes (key, {_COLUMNS}) VALUES ({", ".join("?" * (1 + len(_FIELDS)))})
ON CONFLICT (key) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in _FIELDS)}
WHERE outcomes.more_than < ifnull(excluded.more_than, {(1 << 63) - 1})
"""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What a search is about; a journal belongs to one subject.

    Attributes
    ----------
    version: of t2s, since another one may count other cycles.
    definition, device: names, for errors.
    definition_digest, device_digest: of all that can change a result; see ``digest``.
    """

    version: str
    definition: str
    definition_digest: str
    device: str
    device_digest: str

    def key(self, program: str) -> str:
        """Where the journal has the outcome of a program: a digest of it, device and version."""
        text = "\0".join((self.version, self.device_digest, program))
        return sha256(text.encode()).hexdigest()


def digest(value: object) -> str:
    """SHA-256 of a record such as a device, or of a text: the same in every process."""
    text = json.dumps(_plain(value), sort_keys=True, default=repr)
    return sha256(text.encode()).hexdigest()


def _plain(value: object) -> object:
    """A record as JSON values, the entries of its dictionaries in order of their keys."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {
            field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
        return [type(value).__name__, fields]
    match value:
        case Enum():
            return str(value)
        case Mapping():
            return sorted(([_plain(key), _plain(item)] for key, item in value.items()), key=repr)
        case set() | frozenset():
            return sorted(map(_plain, value), key=repr)
        case tuple() | list():
            return [_plain(item) for item in value]
        case _:
            return value


class Journal:
    """The outcomes of one subject in a file, which is made if missing.

    Raises ``UserError`` if the file is no journal, one of another subject, in use by another
    search, or not writable.  Then it is left as it was.
    """

    def __init__(self, path: str | Path, subject: Subject) -> None:
        self.path = Path(path)
        self._location = user_location()
        self._check_file()
        # without a timeout: the lock of another search is not released within seconds
        with self._errors():
            self._connection = sqlite3.connect(self.path, timeout=0, isolation_level=None)
        try:
            with self._errors():
                self._open(subject)
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the file."""
        with self._errors():
            self._connection.close()

    def known(self) -> dict[str, Outcome]:
        """All outcomes by key."""
        with self._errors():
            rows = self._connection.execute(f"SELECT key, {_COLUMNS} FROM outcomes")
            return {key: Outcome(**dict(zip(_FIELDS, row, strict=True))) for key, *row in rows}

    def put(self, items: Iterable[tuple[str, Outcome]]) -> int:
        """Store outcomes by key in one transaction: all of them or, on errors, none.

        A key that is already there keeps its outcome, unless that was cut short and this one was
        not, or later.  Returns how many were new or replaced.
        """
        before = self._connection.total_changes
        with self._errors(), self._transaction():
            self._connection.executemany(
                _PUT, ((key, *dataclasses.astuple(outcome)) for key, outcome in items)
            )
        return self._connection.total_changes - before

    def _open(self, subject: Subject) -> None:
        """Lock the file, and write its header or compare it."""
        connection = self._connection
        # The lock is held until the end, which keeps a second search out, and needs no memory
        # shared between processes, which file systems of clusters lack.
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        with self._transaction():
            (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if not tables:  # with the rollback journal, so that the mark is in the file at once
                connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                for statement in _TABLES.split(";")[:-1]:
                    connection.execute(statement)
                header = (_SCHEMA, *dataclasses.astuple(subject))
                connection.execute("INSERT INTO header VALUES (?, ?, ?, ?, ?, ?)", header)
            else:
                self._compare(subject)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")

    def _compare(self, subject: Subject) -> None:
        row = self._connection.execute("SELECT * FROM header").fetchone()
        if row[0] != _SCHEMA:
            self._refuse("form", f"form {_SCHEMA}", f"form {row[0]}")
        stored = Subject(**dict(zip(Subject.__dataclass_fields__, row[1:], strict=True)))
        if stored.version != subject.version:
            self._refuse("version of t2s", f"t2s {subject.version}", f"t2s {stored.version}")
        for what in ("definition", "device"):
            names, digests = [], []
            for one in (subject, stored):
                names.append(f"{what} {getattr(one, what)!r}")
                digests.append(getattr(one, f"{what}_digest"))
            if digests[0] != digests[1]:
                if names[0] == names[1]:  # the same name does not tell them apart
                    names = [
                        f"{name}, digest {text[:12]}"
                        for name, text in zip(names, digests, strict=True)
                    ]
                self._refuse(what, names[0], names[1])

    def _refuse(self, what: str, expected: str, given: str) -> None:
        raise UserError(
            f"the journal {str(self.path)!r} is of another {what}",
            location=self._location,
            expected=f"a journal of {expected}",
            given=f"one of {given}",
            hint=self._elsewhere(),
        )

    def _elsewhere(self) -> str:
        """What to try: a path next to this one at which there is no file."""
        number = 2
        while (path := self.path.with_stem(f"{self.path.stem}-{number}")).exists():
            number += 1
        return f"journal={str(path)!r} begins a new one"

    def _check_file(self) -> None:
        """Refuse what is no journal before SQLite touches it."""
        folder = self.path.absolute().parent
        if not folder.is_dir():
            raise self._unusable(
                "cannot be made", "a path in a folder", f"no folder {str(folder)!r}"
            )
        if self.path.is_dir():
            raise self._unusable("is a folder", "the path of a file", f"{str(self.path)!r}")
        try:
            with self.path.open("rb") as file:
                head = file.read(100)
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._unusable(
                "cannot be read", "a readable file", error.strerror or repr(error)
            ) from error
        if not head:
            return
        expected = "an SQLite file that t2s.search(..., journal=...) has written"
        if not head.startswith(b"SQLite format 3\0"):
            raise self._unusable("is not a journal", expected, _kind_of(head))
        if int.from_bytes(head[68:72], "big") != _APPLICATION:
            given = "an SQLite database of another program"
            raise self._unusable("is not a journal", expected, given)

    def _unusable(self, what: str, expected: str, given: str, hint: str | None = None) -> UserError:
        return UserError(
            f"the journal {str(self.path)!r} {what}",
            location=self._location,
            expected=expected,
            given=given,
            hint=hint or "journal= takes the path of a new file, or of the journal of this search",
        )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Errors of SQLite as the user's: the file, what is wrong with it, what to try."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._fault(error) from error

    def _fault(self, error: sqlite3.Error) -> UserError:
        given = str(error)
        match getattr(error, "sqlite_errorcode", 0) & 0xFF:  # without the detailed reason
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                return self._unusable(
                    "is in use",
                    "a journal that no other program has open",
                    "one that is locked, probably by a search that still runs",
                    f"wait until that search has ended; {self._elsewhere()}",
                )
            case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
                expected = "a file that can be written, in a folder that can be written"
                return self._unusable("cannot be written", expected, given)
            case sqlite3.SQLITE_FULL | sqlite3.SQLITE_IOERR:
                return self._unusable(
                    "cannot be written further",
                    "space on the disk",
                    given,
                    "free some space and search again: what was stored before is there",
                )
            case _:
                return self._unusable("cannot be used", "an intact journal", given)


def _kind_of(head: bytes) -> str:
    """What a file is, by its first bytes."""
    try:
        line = getincrementaldecoder("utf-8")().decode(head).splitlines()[0]
    except UnicodeDecodeError:
        return f"a binary file that begins with {head[:8]!r}"
    return f"a text file that begins with {line[:40]!r}"
