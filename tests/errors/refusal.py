"""Checking the whole text of an error, with the user's lines in place of their numbers."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent

import pytest

from t2s.errors import UserError

_SNIPPET = re.compile(r"^  --> (?P<file>.*):(?P<line>\d+)\n   (?P=line) \| (?P<text>.*)$", re.M)

_CONTINUATION = re.compile(r"\n {12}(?=\S)")


@contextmanager
def refused(text: str, kind: type[UserError] = UserError) -> Iterator[None]:
    """The block raises exactly ``kind`` with this text, at a line of the calling test's file.

    In the text, ``--> C[i] = 0`` stands for the two lines that show a line of the test: its file,
    its number and its source.  Tests keep such lines unique, so that the source tells the line.
    Lines of other files are written ``--> designs.py: C[i] = 0``.  A line that is too long for the
    test goes on below, indented by 12 columns.
    """
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    assert frame.f_back.f_back is not None
    test_file = frame.f_back.f_back.f_code.co_filename
    with pytest.raises(UserError) as caught:
        yield
    error = caught.value
    assert type(error) is kind, str(error)
    assert error.location is not None
    assert error.location.file == test_file
    assert _with_sources(str(error), test_file) == _CONTINUATION.sub(" ", dedent(text).strip())


def _with_sources(text: str, test_file: str) -> str:
    def source(match: re.Match[str]) -> str:
        file = "" if match["file"] == test_file else f"{Path(match['file']).name}: "
        return f"  --> {file}{match['text']}"

    return _SNIPPET.sub(source, text)
