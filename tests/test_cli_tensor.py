"""``t2s tensor``: what it prints, what it writes, and how it fails."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from t2s.command.main import app
from t2s.graph.serialize import graph_from_json

MATRIX = """%%MatrixMarket matrix coordinate real general
3 4 4
1 1 2.0
1 4 1.0
3 2 5.0
3 3 -1.0
"""


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["tensor", *map(str, arguments)])


def refuses(*arguments: str | Path) -> str:
    """The error text of a run that ends with exit code 1, and not with a traceback."""
    result = run(*arguments)
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    return result.stderr


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in an empty folder: graphs go to ``build`` unless the command says where."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    path = tmp_path / "matrix.mtx"
    path.write_text(MATRIX, encoding="utf-8")
    return path


def test_from_text_and_files_to_cycles(matrix: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = run(
        "y(i)=A(i,j)*x(j)", "-f", "A:ds", "-i", f"A={matrix}", "--random", "x",
        "--engine", "python", "--out", out,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(
        "y(i) = sum(j, A(i,j)*x(j))\n\nfor i:\n"
        "  for j:  # locate x, by default\n    y(i) += A(i,j)*x(j)\n\n"
        "2 level scanner, 2 repeat, 1 ALU, 1 reduce, 1 level writer, 2 array, 1 locate\n"
    )
    scanned = run(
        "y(i)=A(i,j)*x(j)", "-f", "A:ds", "-i", f"A={matrix}", "--random", "x",
        "--engine", "python", "--scan", "x:j", "--out", out,
    )  # fmt: skip
    assert scanned.stdout.startswith(
        "y(i) = sum(j, A(i,j)*x(j))\n\nfor i:\n  for j:\n    y(i) += A(i,j)*x(j)\n\n"
        "3 level scanner, 1 repeat, 1 intersect, 1 ALU, 1 reduce, 1 level writer, 2 array\n"
    )
    assert "busy" in result.stdout
    assert "starved" in result.stdout
    assert "matches numpy" in result.stdout
    graph = graph_from_json((out / "y.json").read_text(encoding="utf-8"))
    assert {tensor.name for tensor in graph.tensors} >= {"A_pos1", "A_crd1", "A_vals", "y_vals"}
    assert json.loads((out / "y.json").read_text(encoding="utf-8"))
    assert (out / "y.dot").read_text(encoding="utf-8").startswith("digraph")


def test_schedules_and_sizes(tmp_path: Path) -> None:
    np.save(tmp_path / "b.npy", np.eye(4))
    result = run(
        "X(i,j)=B(i,k)*C(k,j)", "-f", "B:ss:1,0", "-f", "C:ss", "-f", "X:ss",
        "-i", f"B={tmp_path / 'b.npy'}", "--random", "C=0.5", "-d", "j=5", "--order", "k i j",
        "--engine", "python",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "for k:\n  for i:\n    for j:\n" in result.stdout
    split = run(
        "y(i)=A(i,j)*x(j)", "--random", "A", "--random", "x", "-d", "i=4", "-d", "j=3",
        "--split", "i,i0,i1,2", "--locate", "x:j", "--parallelize", "i1=2", "--engine", "python",
    )  # fmt: skip
    assert split.exit_code == 0, split.output
    assert "i = 2*i0 + i1" in split.stdout
    assert "2 locate" in split.stdout
    assert "1 parallelizer" in split.stdout


def test_directives_in_text(matrix: Path) -> None:
    result = run(
        "y(i)=A(i,j)*x(j)", "-f", "A:ds", "-i", f"A={matrix}", "--random", "x",
        "-s", "fuse(i,j,f), parallelize(f,2)", "-s", "reorder(f)", "--engine", "python",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    note = "for j:  # fused with the loop around it: f; locate x, by default; 2 lanes\n"
    assert note in result.stdout
    assert Path("build/y.dot").is_file()
    assert Path("build/y.json").is_file()
    first = run(
        "y(i)=b(i)+A(i,j)*x(j)", "--random", "A", "--random", "x", "--random", "b", "-d", "i=3",
        "-d", "j=4", "-s", "precompute(A(i,j)*x(j),T); vectorize(i,2)", "--engine", "python",
    )  # fmt: skip
    assert first.exit_code == 0, first.output
    assert "stage 1 of 2" in first.stdout
    assert "# 2 at once" in first.stdout


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            ("y(i)=A(i)", "-s", "tile(i,4)"),
            "error: unknown directive tile\n  expected: one of reorder(i,k,j), "
            "split(i,i0,i1,32), fuse(i,j,f), precompute(B(i,k)*C(k,j),T), locate(x,j), scan(x,j), "
            "parallelize(i,4), vectorize(j,4), skip(j), transpose(B), drop_zeros(X), "
            "map(B(i,k)*C(k,j),blas.sgemm), parallel(j,reduction,16), "
            "accelerate(k,reduction,16), env(bp,16), promote(c,1), promote_sums(), "
            "bind(B(i,k)*C(k,j),blas.sgemm), fix(i,k), assume(i % 16 == 0), store(D,1,0), "
            "streams(arria10), communicate(A,j)\n"
            "  given:    tile(i,4)\n",
        ),
        (
            ("y(i)=A(i)", "-s", "skip(i,j)"),
            "error: skip(i, j) does not say a directive\n  expected: skip(j)\n",
        ),
        (
            ("y(i)=A(i)", "-s", "split(i,i0,i1,x)"),
            "error: x is not a number\n  expected: a positive integer\n",
        ),
        (
            ("y(i)=A(i)", "-s", "vectorize(i,4"),
            "error: vectorize(i,4 is not a schedule\n  expected: directives such as "
            "split(i,i0,i1,32) or parallelize(i0,4)\n  given:    vectorize(i,4\n",
        ),
        (
            ("y(i)=A(i)", "-s", "transpose(z)"),
            "error: there is no tensor z to transpose\n  expected: one of y, A\n",
        ),
        (
            ("y(i)=A(i)", "-f", "A:d", "-f", "A:s"),
            "error: there are two formats for A\n  expected: one format for each tensor\n",
        ),
        (
            ("y(i)=A(i,j)*x(j", "-f", "A:ds"),
            "error: this is not index notation, at column 16:\n    y(i)=A(i,j)*x(j\n"
            "                   ^\n  expected: )\n  given:    the end\n",
        ),
        (
            ("y(i)=A(i)", "-f", "B:d"),
            "error: there is a format for B, but no tensor of that name in y(i)=A(i)\n"
            "  expected: one of y, A\n  given:    B\n",
        ),
        (
            ("y(i)=A(i)", "-i", "B=b.mtx"),
            "error: --input names B, which the expression does not read\n  expected: one of A\n",
        ),
        (
            ("y(i)=A(i)", "--random", "y"),
            "error: --random names y, which the expression does not read\n  expected: one of A\n",
        ),
        (
            ("y(i)=A(i)", "--random", "A=2"),
            "error: --random A=2 gives no density\n  expected: a number from 0 to 1\n",
        ),
        (
            ("y(i)=A(i)",),
            "error: the input A is missing\n  expected: --input A=FILE or --random A\n",
        ),
        (
            ("y(i)=A(i)", "--random", "A"),
            "error: the extent of i in A is unknown\n"
            "  expected: --size i=EXTENT, or a file with that variable\n",
        ),
        (
            ("y(i)=A(i)", "--random", "A", "-d", "k=3"),
            "error: --size k=3 gives no extent\n"
            "  expected: VARIABLE=EXTENT, with a variable of i\n",
        ),
        (
            ("y(i)=A(i)", "-i", "A=nowhere.mtx"),
            "error: no such file: nowhere.mtx\n",
        ),
        (
            ("y(i)=A(i)", "--split", "i,2"),
            "error: --split i,2 is not a split\n  expected: VARIABLE,OUTER,INNER,FACTOR\n",
        ),
        (
            ("y(i)=A(i)", "--engine", "fast"),
            "error: unknown engine fast\n  expected: one of native, python\n",
        ),
    ],
)
def test_errors(arguments: tuple[str, ...], text: str) -> None:
    assert refuses(*arguments) == text


def test_blocks_on_cells(matrix: Path, tmp_path: Path) -> None:
    out = tmp_path / "cells"
    result = run(
        "y(i)=A(i,j)*x(j)", "-f", "A:ds", "-i", f"A={matrix}", "--random", "x",
        "--target", "cgra", "--out", out,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert " on cgra8" in result.stdout
    assert "\nscan_A_j " in result.stdout
    assert "\nmatches numpy" in result.stdout
    assert sorted(path.name for path in out.iterdir()) == [
        "y.placement.json",
        "y.placement.svg",
        "y.tia",
    ]


def test_a_memory(matrix: Path) -> None:
    result = run(
        "y(i)=A(i,j)*x(j)", "-f", "A:ds", "-i", f"A={matrix}", "--random", "x",
        "--memory", "ddr4-2133",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "load and store units, lines of 64 bytes" in result.stdout
    assert "\nmatches numpy" in result.stdout
    assert "unknown memory core" in refuses("y(i)=x(i)", "--random", "x", "--memory", "core")


def test_options_in_the_way_of_taco(matrix: Path) -> None:
    result = run(
        "y(i)=A(i,j)*x(j)", "-f=A:ds:0,1", f"-i=A={matrix}", "--random", "x", "-d=j=4",
        "-s=split(j,j0,j1,2)", "--engine", "python",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "j = 2*j0 + j1" in result.stdout


def test_inputs_that_contradict_each_other(matrix: Path) -> None:
    common = "y(i)=A(i,j)*x(j)", "-i", f"A={matrix}", "--random", "x"
    twice = (
        "error: there are two inputs for A\n  expected: one --input or --random for each tensor\n"
    )
    assert refuses(*common, "-i", f"A={matrix}") == twice
    assert refuses(*common, "--random", "A=0.5") == twice
    wrong = "error: --size j=50 is not the extent of j\n  expected: 4\n"
    assert refuses(*common, "-d", "j=50") == wrong


def test_infinities_are_compared(tmp_path: Path) -> None:
    """What is not stored is not multiplied, by the simulator and by the oracle."""
    np.save(tmp_path / "x.npy", np.array([np.inf, np.nan, 2.0]))
    np.save(tmp_path / "a.npy", np.array([0.0, 3.0, 1.0]))
    result = run(
        "y(i)=a(i)*x(i)", "-f", "a:s", "-i", "a=a.npy", "-i", "x=x.npy", "--engine", "python"
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert result.stdout.endswith("matches numpy exactly\n")
