"""``examples/stardust``: they run, write their files, and give numpy's values."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from benchmarks.stardust.paper import PAPER, PublishedKernel
from t2s.sparse import compile
from tests.capstan.kernels import TEN

EXAMPLES = Path(__file__).parents[2] / "examples" / "stardust"


@pytest.mark.parametrize("row", PAPER, ids=lambda row: row.name)
def test_an_example_runs(
    row: PublishedKernel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    name = row.name.lower()
    kernel = runpy.run_path(str(row.file), run_name="__main__")["kernel"]
    printed = capsys.readouterr().out
    (path,) = (tmp_path / "build" / name).iterdir()
    assert path.read_text(encoding="utf-8") == kernel.spatial()
    assert printed.endswith(f"build/{name}/{path.name}\nTrue\n")
    assert f"units of the chip, outer_par {row.outer_par}\n" in printed


def test_the_pattern_of_a_loop_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / "sddmm.py"), run_name="__main__")
    assert "      for k:  # reduction by ip\n" in capsys.readouterr().out


@pytest.mark.parametrize("row", PAPER, ids=lambda row: row.name)
def test_an_example_says_less_than_the_paper(row: PublishedKernel) -> None:
    assert 0 < row.said() <= row.input_lines
    assert len(row.file.read_text(encoding="utf-8").splitlines()) <= 26


@pytest.mark.parametrize("row", PAPER, ids=lambda row: row.name)
def test_an_example_is_the_kernel_of_the_tests(row: PublishedKernel) -> None:
    paper = TEN[row.name]()
    other = compile(paper.result, paper.schedule, target="capstan")
    assert row.kernel().resources() == other.resources()
    kinds = [(memory.name, memory.kind) for memory in row.kernel().patterns().declared()]
    assert kinds == [(memory.name, memory.kind) for memory in other.patterns().declared()]


def test_there_are_ten() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {row.name.lower() for row in PAPER}
