"""Machine code on disk: found again, never damaged, never in the way."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from t2s.llvm import compile
from t2s.llvm.compile import ObjectCache, cache_directory, digest_of

TEXT = "define i64 @run(ptr %0, i64 %1) {\n  %3 = add i64 %1, 1\n  ret i64 %3\n}\n"


def test_what_is_kept_is_found(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path / "new" / "folder")
    assert cache.find("a") is None
    cache.keep("a", b"code")
    assert cache.find("a") == b"code"
    assert cache.find("b") is None


@pytest.mark.parametrize("damage", [b"", b"short", b"x" * 200])
def test_damaged_files_count_as_missing(tmp_path: Path, damage: bytes) -> None:
    cache = ObjectCache(tmp_path)
    cache.keep("a", b"code" * 50)
    (file,) = tmp_path.iterdir()
    file.write_bytes(damage)
    assert cache.find("a") is None
    cache.keep("a", b"code")
    assert cache.find("a") == b"code"


def test_cut_files_count_as_missing(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path)
    cache.keep("a", b"code" * 50)
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-1])
    assert cache.find("a") is None


def test_a_directory_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = ObjectCache(tmp_path / "file" / "folder")
    cache.keep("a", b"code")
    assert cache.find("a") is None


def test_many_writers_leave_whole_files(tmp_path: Path) -> None:
    codes = {f"{n % 3}": bytes([n % 3]) * 100_000 for n in range(30)}

    def work(name: str) -> bool:
        ObjectCache(tmp_path).keep(name, codes[name])
        return ObjectCache(tmp_path).find(name) in (None, codes[name])

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, [f"{n % 3}" for n in range(60)]))
    assert {path.name for path in tmp_path.iterdir()} == {f"{n}.object" for n in range(3)}


def test_the_oldest_files_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile, "_MOST_FILES", 4)
    cache = ObjectCache(tmp_path)
    for name in "abcdefgh":
        cache.keep(name, b"code")
    assert cache.find("h") == b"code"
    assert len(list(tmp_path.iterdir())) <= 5


def test_texts_are_told_apart() -> None:
    assert digest_of("ab", "c") != digest_of("a", "bc")


def test_code_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second time the file is loaded; a file without code would be a disaster."""
    monkeypatch.setattr(compile, "cache_directory", lambda: tmp_path)
    compile.compile_text.cache_clear()
    assert compile.compile_text(TEXT).run(0, 41) == 42
    (file,) = tmp_path.iterdir()
    before = file.read_bytes()

    def refuse(*_: object) -> bytes:
        raise AssertionError("compiled again")

    monkeypatch.setattr(compile, "_object_code", refuse)
    compile.compile_text.cache_clear()
    assert compile.compile_text(TEXT).run(0, 1) == 2
    assert file.read_bytes() == before
    file.write_bytes(b"nonsense")
    compile.compile_text.cache_clear()
    with pytest.raises(AssertionError, match="compiled again"):
        compile.compile_text(TEXT)


def test_a_long_program_is_compiled_well_when_it_comes_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    efforts = []
    compiled = compile._object_code

    def noted(text: str, target: object, effort: compile.Effort) -> bytes:
        efforts.append(effort)
        return compiled(text, target, effort)

    monkeypatch.setattr(compile, "cache_directory", lambda: tmp_path)
    monkeypatch.setattr(compile, "_object_code", noted)
    monkeypatch.setattr(compile, "LONG_PROGRAM", len(TEXT) - 1)
    compile.compile_text.cache_clear()
    for _ in range(3):
        assert compile.compile_by_use(TEXT).run(0, 41) == 42
    assert efforts == [compile.Effort.QUICK, compile.Effort.FULL]
    other = TEXT.replace("i64 %1, 1", "i64 %1, 2")
    monkeypatch.setattr(compile, "LONG_PROGRAM", len(TEXT))
    assert compile.compile_by_use(other).run(0, 40) == 42
    assert efforts[2:] == [compile.Effort.FULL]
    compile.compile_text.cache_clear()


@pytest.mark.skipif(sys.platform == "win32", reason="modes of files")
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_what_others_may_write_is_not_run(tmp_path: Path, mode: int) -> None:
    cache = ObjectCache(tmp_path / "folder")
    assert cache.keep("a", b"code")
    (file,) = (tmp_path / "folder").iterdir()
    assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == 0o700
    file.chmod(mode)
    assert cache.find("a") is None
    file.chmod(0o600)
    assert cache.find("a") == b"code"
    (tmp_path / "folder").chmod(mode)
    assert cache.find("a") is None
    assert not cache.keep("b", b"code")


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="needs another owner")
def test_what_another_user_planted_is_not_run(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path / "folder")
    assert cache.keep("a", b"code")
    (file,) = (tmp_path / "folder").iterdir()
    os.chown(file, 12345, 12345)
    assert cache.find("a") is None
    os.chown(file, 0, 0)
    os.chown(tmp_path / "folder", 12345, 12345)
    assert cache.find("a") is None
    assert not cache.keep("b", b"code")


def test_users_may_move_their_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "t2s"
    for invalid in ("", "relative/folder"):
        monkeypatch.setenv("XDG_CACHE_HOME", invalid)
        assert cache_directory() == Path.home() / ".cache" / "t2s"


def test_no_home_means_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", unknown)
    assert cache_directory() is None
    monkeypatch.setattr(Path, "home", lambda: Path())
    assert cache_directory() is None
    cache = ObjectCache(None)
    assert not cache.keep("a", b"code")
    assert cache.find("a") is None


HOMES = {
    "empty": "",
    "not there": "locked/x",
    "read only": "locked",
    "a file": "file",
    "with a file for a cache": "with_file",
    "with a cache that cannot be read": "closed",
}
PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy
import t2s

A, i, F = t2s.ImageParam(t2s.Int(32), 1, name="A"), t2s.Var("i"), t2s.Func("F")
F[i] = A[i] * 3
F.bound(i, 0, 4)
print(t2s.simulate(F, {"A": numpy.arange(4, dtype="i4")}).outputs["F"])
"""
UNPRIVILEGED = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]


@pytest.mark.slow
@pytest.mark.skipif(
    sys.platform != "linux" or (os.geteuid() == 0 and shutil.which("setpriv") is None),
    reason="modes of files, which mean nothing to an administrator",
)
@pytest.mark.parametrize("home", HOMES)
def test_a_home_that_cannot_be_used_is_no_error(tmp_path: Path, home: str) -> None:
    (tmp_path / "locked").mkdir(mode=0o555)
    (tmp_path / "file").write_text("")
    (tmp_path / "with_file").mkdir()
    (tmp_path / "with_file" / ".cache").write_text("")
    closed = tmp_path / "closed" / ".cache" / "t2s"
    closed.mkdir(parents=True)
    closed.chmod(0)
    path = str(tmp_path / HOMES[home]) if HOMES[home] else ""
    command = [sys.executable, "-W", "error", "-c", PROGRAM, str(Path(__file__).parents[2])]
    done = subprocess.run(
        [*(UNPRIVILEGED if os.geteuid() == 0 else []), *command],
        env={**os.environ, "HOME": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "[0 3 6 9]\n", done.stderr
    assert not any((tmp_path / "locked").iterdir())
