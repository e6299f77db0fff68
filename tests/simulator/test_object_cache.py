"""Machine code on disk: found again, never damaged, never in the way."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from t2s.simulator.native import module, object_cache
from t2s.simulator.native.object_cache import ObjectCache, digest_of

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
    monkeypatch.setattr(object_cache, "_MOST_FILES", 4)
    cache = ObjectCache(tmp_path)
    for name in "abcdefgh":
        cache.keep(name, b"code")
    assert cache.find("h") == b"code"
    assert len(list(tmp_path.iterdir())) <= 5


def test_texts_are_told_apart() -> None:
    assert digest_of("ab", "c") != digest_of("a", "bc")


def test_code_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second time the file is loaded; a file that is no code would be a disaster."""
    monkeypatch.setattr(module, "cache_directory", lambda: tmp_path)
    module.compile_text.cache_clear()
    assert module.compile_text(TEXT).run(0, 41) == 42
    (file,) = tmp_path.iterdir()
    before = file.read_bytes()

    def refuse(*_: object) -> bytes:
        raise AssertionError("compiled again")

    monkeypatch.setattr(module, "_object_code", refuse)
    module.compile_text.cache_clear()
    assert module.compile_text(TEXT).run(0, 1) == 2
    assert file.read_bytes() == before
    file.write_bytes(b"nonsense")
    module.compile_text.cache_clear()
    with pytest.raises(AssertionError, match="compiled again"):
        module.compile_text(TEXT)
