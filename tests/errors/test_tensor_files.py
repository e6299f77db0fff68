"""Files of tensors, and their formats, that cannot be what they say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import t2s
from t2s import sparse


@pytest.mark.parametrize("word", ["--1", "+-1", "-", "+", "1_0", "١"])
def test_words_that_spell_no_number(tmp_path: Path, word: str) -> None:
    path = tmp_path / "a.tns"
    path.write_text(f"1 1 2.5\n{word} 1 3\n", encoding="utf-8")
    if word in ("1_0", "١"):  # what Python reads as a number
        assert sparse.read(path).shape[0] in (1, 10)
        return
    with pytest.raises(
        t2s.errors.UserError, match=r"line 2 of a.tns is not a coordinate and a value"
    ):
        sparse.read(path)


@pytest.mark.parametrize("zero", ["0", "-1"])
def test_coordinates_count_from_one(tmp_path: Path, zero: str) -> None:
    path = tmp_path / "part.tns"
    path.write_text(f"1 1 2.0\n{zero} 1 3.0\n", encoding="utf-8")
    with pytest.raises(t2s.errors.UserError) as caught:
        sparse.read(path)
    assert caught.value.message == f"line 2 of part.tns has the coordinate {zero}"
    assert caught.value.expected == "coordinates that count from 1"
    assert caught.value.given == f"{zero} 1 3.0"
    assert "if the file counts from 0, add 1 to each coordinate" in str(caught.value.hint)


@pytest.mark.parametrize("modes", [np.array(3), {0, 1}, (n for n in (0, 1)), 3, "10"])
def test_modes_that_are_no_list(modes: object) -> None:
    with pytest.raises(t2s.errors.UserError, match="modes"):
        sparse.make_format("ds", modes)


def test_a_name_that_no_file_can_have() -> None:
    with pytest.raises(t2s.errors.UserError, match="no such file: xxx"):
        sparse.read("x" * 5000)
