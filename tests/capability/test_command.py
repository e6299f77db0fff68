"""``t2s tensor`` with external functions in its schedule."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from t2s.command.main import app

STATEMENT = "A(i,k)=B(i,k)*C(i,j)*D(j,k)"
GIVEN = ("-f", "B:ds", "--random", "B=0.3", "--random", "C", "--random", "D")
SIZES = ("-d", "i=5", "-d", "j=4", "-d", "k=6")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["tensor", STATEMENT, *GIVEN, *SIZES, *arguments])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_plan_is_shown_run_and_checked() -> None:
    found = run("-s", "map(C(i,j)*D(j,k),blas.dgemm)")
    assert found.exit_code == 0, found.output
    assert "1. call: dgemm computes T(i,k) = sum(j, C(i,j)*D(j,k))" in found.stdout
    assert "ms measured, 1 call" in found.stdout
    assert "matches numpy" in found.stdout


def test_refusals() -> None:
    unknown = run("-s", "bind(C(i,j)*D(j,k),blas.cgemm)")
    assert unknown.exit_code == 1
    assert "unknown external function blas.cgemm" in unknown.stderr
    cells = run("-s", "bind(C(i,j)*D(j,k),blas.dgemm)", "--target", "cgra")
    assert cells.exit_code == 1
    assert "external functions, and cells do not know it" in cells.stderr.replace("\n", " ")
    chip = run("-s", "bind(C(i,j)*D(j,k),blas.dgemm)", "--target", "capstan")
    assert chip.exit_code == 1
