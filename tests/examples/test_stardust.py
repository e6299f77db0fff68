"""``examples/stardust``: they run, write their files, and give numpy's values."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples" / "stardust"


def test_sddmm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / "sddmm.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert printed.endswith("build/sddmm/A_kernel.scala\nTrue\n")
    assert "      for k:  # reduction by ip\n" in printed
    assert (tmp_path / "build" / "sddmm" / "A_kernel.scala").is_file()


def test_the_example_is_short() -> None:
    assert len((EXAMPLES / "sddmm.py").read_text(encoding="utf-8").splitlines()) <= 25
