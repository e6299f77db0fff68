"""``t2s external``: what it prints, and how it fails."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from t2s.command.main import app

FUNCTIONS = """
import numpy as np
from t2s import external

@external.function("z(i) = x(i) + y(i)", types="float64")
def add(x, y, z):
    np.add(x, y, out=z)

@external.function("z(i) = x(i) - y(i)", types="float64")
def wrong(x, y, z):
    np.subtract(y, x, out=z)
"""
SAMPLED = ("A(i,j)=B(i,j)*C(i,k)*D(k,j)", "-f", "A:ds", "-f", "B:ds")
SIZES = ("-d", "i=500", "-d", "j=400", "-d", "k=300")


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["external", *(str(one) for one in arguments)])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "functions.py"
    path.write_text(FUNCTIONS, encoding="utf-8")
    return path


def test_list() -> None:
    result = call("list")
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert any(line.startswith("numpy: numpy ") for line in lines)
    assert "  blas.sgemm: z(i,k) = x(i,j)*y(j,k) of float32" in lines


def test_a_library_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    from t2s.libraries import calling
    from t2s.libraries.calling import Availability

    missing = Availability(name="scipy", there=False, why_not="no module scipy")
    monkeypatch.setattr(calling, "availability", lambda library: missing)
    line = "scipy: scipy is not there: no module scipy; python -m pip install scipy"
    assert line in call("list").output.splitlines()


def test_claims(file: Path) -> None:
    result = call("check", "blas.sdot", f"{file}:add", "--trials", 20)
    assert result.exit_code == 0, result.output
    assert result.output == (
        "sdot: s = x(i)*y(i): 20 trials of 2 patterns, all right\n"
        "add: z(i) = x(i) + y(i): 20 trials of 2 patterns, all right\n"
    )


def test_a_wrong_claim(file: Path) -> None:
    result = call("check", file, "--trials", 20)
    assert result.exit_code == 1
    assert "add: z(i) = x(i) + y(i): 20 trials of 2 patterns, all right" in result.output
    assert "wrong does not compute z(i) = x(i) - y(i)\n  --> " in result.output
    assert "error: 1 of 2 claims are wrong, or were not tried" in result.stderr


def test_a_search_over_shapes() -> None:
    result = call("search", *SAMPLED, *SIZES, "--random", "B=0.5", "-u", "blas.sgemm,blas.sdot")
    assert result.exit_code == 0, result.output
    table = result.output.splitlines()
    assert table[0].endswith("4 pairs of a part and a function, 5 plans tried")
    assert table[3].startswith("map(C(i,k)*D(k,j),blas.sgemm)")
    assert any(line.startswith("loops alone") for line in table)


def test_a_search_that_runs_the_best(tmp_path: Path, file: Path) -> None:
    path = tmp_path / "b.tns"
    path.write_text("1 2\n3 4\n", encoding="utf-8")
    result = call(
        "search", "a(i)=b(i)+c(i)", "-f", "b:s", "-i", f"b={path}", "--tune", "--top", 2,
        "-u", f"{file}:add", "--reshape", "densify",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "map(b(i)+c(i),add)" in result.output or "loops alone" in result.output
    assert "best" in result.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("check", "nope.py"),
            "no such file: nope.py\n  hint:     give the path of a Python file",
        ),
        (
            ("check", "blas.nope"),
            "unknown external function blas.nope\n  expected: blas. and one of sgemm,",
        ),
        (
            ("search", "a(i)=B(i,j)*c(j)", "-d", "i=4"),
            "the extent of j in B is unknown\n  expected: --size j=EXTENT, or a "
            "file with that variable",
        ),
        (
            ("search", "a(i)=b(i)", "-d", "i=4", "--random", "x=0.1"),
            "--random names x, which the expression does not read\n  expected: one of b",
        ),
        (
            ("search", "a(i)=b(i)", "-d", "i=4", "--type", "half"),
            "there is no type half\n  expected: one of float32, float64, int8,",
        ),
        (
            ("search", "a(i)=b(i)", "-d", "i=4", "--machine", "none.json"),
            "none.json has no rates of a machine",
        ),
        (
            ("search", "a(i)=b(i)", "-d", "i=4", "--reshape", "bend"),
            "unknown reshaping bend\n  expected: some of ",
        ),
    ],
)
def test_errors(
    arguments: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = call(*arguments)
    assert result.exit_code == 1
    assert f"error: {said}" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_file_without_functions(tmp_path: Path, file: Path) -> None:
    empty = tmp_path / "empty.py"
    empty.write_text("x = 1\n", encoding="utf-8")
    assert f"error: {empty} defines no external function\n" in call("check", empty).stderr
    result = call("check", f"{file}:nope")
    assert f"{file} defines no external function nope\n  expected: add, wrong" in result.stderr
