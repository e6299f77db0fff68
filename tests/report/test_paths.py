"""Anything but a path is refused, wherever a file is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import t2s
from tests.report.page.designs import inputs_of, product
from tests.sampling import sampled

WRITERS: dict[str, Callable[[Any, Any], Any]] = {
    "report": lambda result, path: result.report(path),
    "trace": lambda result, path: result.trace(path, cycles=(1, 9)),
    "waveforms": lambda result, path: result.waves(path, cycles=(1, 9)),
    "comparison": lambda result, path: t2s.compare(result, result).report(path),
    "picture": lambda result, path: result.picture().write(path),
}


@sampled("what", WRITERS, quick=3)
def test_what_is_no_path(what: str, tmp_path: Path) -> None:
    result = t2s.simulate(product(), inputs_of())
    for path in (3, None, b"page.html"):
        with pytest.raises(t2s.errors.UserError) as caught:
            WRITERS[what](result, path)
        lines = str(caught.value).splitlines()
        assert lines[0] == f"the file of the {what} must be a path"
        assert "test_paths.py" in lines[1]
        assert lines[-2:] == [
            "  expected: a str or a Path that names a file",
            f"  given:    {path!r}",
        ]
    given = tmp_path / "file.vcd"
    assert WRITERS[what](result, str(given)) == given


def test_waveforms_of_hardware() -> None:
    with pytest.raises(t2s.errors.UserError, match="the file of the waveforms must be a path"):
        t2s.verilate(product(), inputs_of(), waves=3)  # type: ignore[arg-type]
