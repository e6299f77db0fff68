"""The journal of a search: what it stores, what it refuses, and that nothing damages it."""

from __future__ import annotations

import gzip
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest

from t2s.core.errors import UserError
from t2s.design_space.journal import Journal, Outcome, Subject, digest
from t2s.simulator.devices import DEVICES

SUBJECT = Subject(
    version="0.1.0",
    definition="gemm",
    definition_digest=digest("C[i, j] += A[i, k] * B[k, j]"),
    device="arria10",
    device_digest=digest(DEVICES["arria10"]),
)
LEGAL = Outcome(cycles=66_532, dsp_blocks=1_280, ram_blocks=199, bytes_moved=1 << 40)
REFUSED = Outcome(refusal="the domain of 'C' is empty\n  expected: an extent")


def stored(path: Path) -> int:
    """The number of rows, by another program than the journal."""
    with sqlite3.connect(path) as connection:
        (count,) = connection.execute("SELECT count(*) FROM outcomes").fetchone()
    connection.close()
    return int(count)


def told(error: UserError) -> str:
    """The text of an error without its line in this file."""
    return f"{error.message}; expected {error.expected}; given {error.given}; {error.hint}"


def test_outcomes_are_stored_once_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "search.db"
    first, second = SUBJECT.key("C.tile(i, 8)"), SUBJECT.key("C.tile(i, 7)")
    with Journal(path, SUBJECT) as journal:
        assert journal.known() == {}
        assert journal.put([(first, LEGAL), (second, REFUSED), (first, LEGAL)]) == 2
    with Journal(path, SUBJECT) as journal:
        assert journal.put([(second, LEGAL)]) == 0
        assert journal.known() == {first: LEGAL, second: REFUSED}
    assert stored(path) == 2
    assert [file.name for file in tmp_path.iterdir()] == ["search.db"]


def test_what_was_cut_short_is_replaced_by_what_says_more(tmp_path: Path) -> None:
    path, key = tmp_path / "search.db", SUBJECT.key("C.tile(i, 8)")
    early, late = (replace(LEGAL, cycles=None, more_than=cycles) for cycles in (100, 200))
    with Journal(path, SUBJECT) as journal:
        for outcome, new in ((early, 1), (late, 1), (early, 0), (LEGAL, 1), (late, 0)):
            assert journal.put([(key, outcome)]) == new
        assert journal.known() == {key: LEGAL}
    with Journal(path, SUBJECT) as journal:
        other = SUBJECT.key("C.tile(i, 7)")
        assert journal.put([(other, late), (other, early)]) == 1
        assert journal.known() == {key: LEGAL, other: late}
    assert stored(path) == 2


def test_a_batch_is_stored_whole_or_not_at_all(tmp_path: Path) -> None:
    def broken() -> object:
        yield "key", LEGAL
        raise KeyboardInterrupt

    with Journal(tmp_path / "search.db", SUBJECT) as journal:
        with pytest.raises(KeyboardInterrupt):
            journal.put(broken())  # type: ignore[arg-type]
        assert journal.known() == {}
        assert journal.put([("key", LEGAL)]) == 1


def test_keys_and_digests_tell_everything_apart_that_changes_a_result() -> None:
    arria = DEVICES["arria10"]
    slower = {key: cycles + 1 for key, cycles in arria.operator_latencies.items()}
    devices = [*DEVICES.values(), replace(arria, operator_latencies=slower)]
    assert len(set(map(digest, devices))) == len(devices)
    backward = dict(reversed(arria.operator_latencies.items()))
    assert digest(replace(arria, operator_latencies=backward)) == SUBJECT.device_digest
    other = (replace(SUBJECT, version="0.2.0"), replace(SUBJECT, device_digest=digest(devices[-1])))
    keys = {subject.key(text) for subject in (SUBJECT, *other) for text in ("a", "b")}
    assert len(keys) == 6
    program = (
        "from t2s.design_space.journal import digest; from t2s.simulator.devices import DEVICES;"
        "print(*map(digest, DEVICES.values()))"
    )
    command = [sys.executable, "-c", program]
    for seed in ("1", "2"):
        run = subprocess.run(
            command,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert run.stdout.split() == list(map(digest, DEVICES.values()))


def test_journals_of_other_subjects_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "search.db"
    with Journal(path, SUBJECT) as journal:
        journal.put([("key", LEGAL)])
    before = path.read_bytes()
    cases = {
        "of another version of t2s; expected a journal of t2s 0.2.0; given one of t2s 0.1.0": {
            "version": "0.2.0"
        },
        "of another definition; expected a journal of definition 'ttm'; "
        "given one of definition 'gemm'": {
            "definition": "ttm",
            "definition_digest": digest("ttm"),
        },
        f"expected a journal of definition 'gemm', digest {digest('x')[:12]}": {
            "definition_digest": digest("x")
        },
        "of another device; expected a journal of device 'u250'; given one of device 'arria10'": {
            "device": "u250",
            "device_digest": digest("u250"),
        },
    }
    for expected, changed in cases.items():
        subject = replace(SUBJECT, **changed)
        with pytest.raises(UserError) as caught:
            Journal(path, subject)
        assert expected in told(caught.value)
        assert f"--> {__file__}:" in str(caught.value)
        other = tmp_path / "search-2.db"
        assert caught.value.hint == f"journal={str(other)!r} begins a new one"
        Journal(other, subject).close()  # the hint works
        other.unlink()
        assert path.read_bytes() == before


def test_other_files_are_refused_and_left_alone(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("not a database, and longer than the header of one" * 20)
    packed = tmp_path / "search.gz"
    packed.write_bytes(gzip.compress(b"rows"))
    database = tmp_path / "other.db"
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE outcomes (key)")
    connection.close()
    torn = tmp_path / "torn.db"
    with Journal(torn, SUBJECT) as journal:
        journal.put((f"{number:064}", LEGAL) for number in range(1000))
    torn.write_bytes(torn.read_bytes()[:100] + b"\xff" * 5000)
    for path, expected in (
        (
            text,
            "is not a journal; expected an SQLite file that t2s.search(..., journal=...) has "
            "written; given a text file that begins with 'not a database, and longer than the head",
        ),
        (packed, "given a binary file that begins with b'\\x1f\\x8b"),
        (database, "; given an SQLite database of another program"),
        (torn, "cannot be used; expected an intact journal"),
        (tmp_path, "is a folder"),
        (tmp_path / "no" / "search.db", "cannot be made; expected a path in a folder"),
    ):
        before = path.read_bytes() if path.is_file() else None
        with pytest.raises(UserError) as caught:
            Journal(path, SUBJECT)
        assert expected in told(caught.value)
        assert (path.read_bytes() if path.is_file() else None) == before
    empty = tmp_path / "empty.db"
    empty.touch()
    Journal(empty, SUBJECT).close()


def test_a_journal_has_one_writer(tmp_path: Path) -> None:
    path = tmp_path / "search.db"
    with Journal(path, SUBJECT) as journal:
        journal.put([("key", LEGAL)])
        with pytest.raises(UserError, match="a search that still runs\n  hint:     wait"):
            Journal(path, SUBJECT)
        assert journal.put([("other", LEGAL)]) == 1
    with Journal(path, SUBJECT) as journal:
        assert len(journal.known()) == 2


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_journals_that_cannot_be_written() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "search.db"
        Journal(path, SUBJECT).close()
        path.chmod(0o444)
        folder.chmod(0o555)
        root = os.geteuid() == 0
        try:
            if root:  # who may write anything
                os.seteuid(65534)
            for place in (path, folder / "new.db"):
                with pytest.raises(UserError, match="cannot be written"):
                    Journal(place, SUBJECT)
        finally:
            if root:
                os.seteuid(0)
            folder.chmod(0o755)
        Journal(path, SUBJECT).close()


def test_a_full_disk_loses_one_batch(tmp_path: Path) -> None:
    path = tmp_path / "search.db"
    with Journal(path, SUBJECT) as journal:
        journal.put([("key", LEGAL)])
        journal._connection.execute("PRAGMA max_page_count = 20")  # SQLite's own limit
        with pytest.raises(UserError, match=r"cannot be written further\n(.*\n)*.*free some space"):
            journal.put((f"{number:064}", LEGAL) for number in range(10_000))
        assert journal.known() == {"key": LEGAL}
        assert journal.put([("other", REFUSED)]) == 1
    with Journal(path, SUBJECT) as journal:
        assert journal.known() == {"key": LEGAL, "other": REFUSED}


def test_a_hundred_thousand_rows_take_seconds(tmp_path: Path) -> None:
    """0.8 s and 0.3 s of CPU on one core of 2026; the limits are 5 s and 1 s."""
    rows = [(SUBJECT.key(str(number)), LEGAL) for number in range(100_000)]
    with Journal(tmp_path / "search.db", SUBJECT) as journal:
        start = time.process_time()
        assert journal.put(rows) == 100_000
        written = time.process_time()
        assert len(journal.known()) == 100_000
        assert written - start < 5
        assert time.process_time() - written < 2


KILLED = """
import os, signal, sys
from t2s.design_space.journal import Journal, Outcome
from tests.design_space.test_journal import SUBJECT

journal = Journal(sys.argv[1], SUBJECT)
for batch in range(5):
    journal.put((f"{batch}.{number}", Outcome(cycles=number)) for number in range(5))

def torn():
    yield "torn", Outcome(cycles=1)
    os.kill(os.getpid(), signal.SIGKILL)

journal.put(torn())
"""


def test_a_killed_driver_loses_its_open_batch(tmp_path: Path) -> None:
    path = tmp_path / "search.db"
    run = subprocess.run([sys.executable, "-c", KILLED, str(path)], capture_output=True, text=True)
    assert run.returncode == -signal.SIGKILL, run.stderr
    assert path.with_name("search.db-wal").exists()
    with Journal(path, SUBJECT) as journal:
        known = journal.known()
        assert set(known) == {f"{batch}.{number}" for batch in range(5) for number in range(5)}
        assert known["4.3"] == Outcome(cycles=3)
        (answer,) = journal._connection.execute("PRAGMA integrity_check").fetchone()
        assert answer == "ok"
