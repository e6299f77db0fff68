"""``t2s compare``: what it prints and writes, and how it fails."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from t2s.command.main import app
from tests.report.page.reading import shown

DESIGN = """\
import t2s
from t2s import Func, ImageParam, Int, Var

A = ImageParam(Int(32), 1, name="A")
i = Var("i")
near, far = t2s.funcs("near far")
near[i] = A[i] * 2
far[i] = A[i] + A[7 - i]
near.bound(i, 0, 8)
far.bound(i, 0, 8)
"""


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["compare", *(str(one) for one in arguments)])


@pytest.fixture
def design(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "design.py"
    path.write_text(DESIGN, encoding="utf-8")
    return path


def test_two_funcs_and_two_devices(design: Path) -> None:
    result = call(
        design, design, "--func", "near", "--func", "far", "--device", "ideal",
        "--device", "arria10", "--out", "page.html",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert result.output.startswith("A: near → B: far\n")
    assert re.search(r"^device +ideal +arria10$", result.output, re.MULTILINE)
    assert result.output.endswith("\nwrote page.html\n")
    assert "A: near → B: far" in shown(Path("page.html"))


def test_one_device_for_both(design: Path) -> None:
    result = call(design, design, "--func", "near", "--device", "ideal")
    assert result.exit_code == 0, result.output
    assert ": as many." in result.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("--func", "near", "--device", "ideal", "--device", "ideal", "--device", "ideal"),
            "--device is given 3 times\n  expected: once, or once for each design",
        ),
        (("--func", "near", "--device", "cpu"), "unknown device cpu\n  expected: one of"),
        (("--func", "near", "--memory", "tape"), "unknown memory tape\n  expected: one of"),
        (("--func", "nobody"), "defines no Func nobody"),
        (("--out", "no/page.html"), "the file 'no/page.html' cannot be written"),
    ],
)
def test_errors(arguments: tuple[str, ...], said: str, design: Path) -> None:
    result = call(design, design, *arguments)
    assert result.exit_code == 1
    assert said in result.stderr
    assert list(design.parent.glob("*.html")) == []


def test_a_file_that_is_not_there(design: Path) -> None:
    result = call(design, "nobody.py", "--func", "near")
    assert result.exit_code == 1
    assert "no such file: nobody.py" in result.stderr


def test_runs_that_are_cut_short(design: Path) -> None:
    result = call(design, design, "--func", "near", "--max-cycles", "3")
    assert result.exit_code == 0, result.output
    assert "A did not come to its end (cycle limit reached)" in result.output
