"""Files are there whole, or as they were."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from t2s.core.errors import UserError
from t2s.core.files import write_texts


def test_texts_are_written(tmp_path: Path) -> None:
    paths = write_texts(tmp_path / "new", {"a.cl": "größe\n", "b.py": ""})
    assert [path.name for path in paths] == ["a.cl", "b.py"]
    assert paths[0].read_bytes() == "größe\n".encode()
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["a.cl", "b.py"]
    plain = tmp_path / "plain"
    plain.write_text("")
    assert paths[0].stat().st_mode == plain.stat().st_mode


def test_a_full_disk_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_texts(tmp_path, {"a.cl": "old a", "b.py": "old b"})
    opened = os.fdopen
    calls: list[int] = []

    def full(handle: int, *arguments: str, **named: str) -> object:
        calls.append(handle)
        if len(calls) == 2:
            os.close(handle)
            raise OSError(28, "No space left on device")
        return opened(handle, *arguments, **named)  # type: ignore[call-overload]

    monkeypatch.setattr(os, "fdopen", full)
    with pytest.raises(UserError) as caught:
        write_texts(tmp_path, {"a.cl": "new a", "b.py": "new b"})
    assert f"{str(tmp_path)!r} cannot be written" in str(caught.value)
    assert "expected: a writable folder on a disk with free space" in str(caught.value)
    assert "given:    No space left on device" in str(caught.value)
    texts = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert texts == {"a.cl": "old a", "b.py": "old b"}


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match="cannot be written"):
        write_texts(tmp_path / "file" / "folder", {"a": ""})
