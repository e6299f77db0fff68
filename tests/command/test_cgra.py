"""``t2s cgra``: what it prints, what it writes, and how it fails."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from t2s.command.main import app

pytestmark = pytest.mark.filterwarnings("ignore::t2s.errors.T2SWarning")

DESIGN = """\
import t2s
from t2s import Float, Func, ImageParam, RDom, Var

A, x = ImageParam(Float(64), 2, name="A"), ImageParam(Float(64), 1, name="x")
i, k, kk = Var("i"), RDom(0, 4, name="k"), Var("kk")
y = Func("y")
y[i] = 0.0
y[i] += A[i, k] * x[k]
y.bound(i, 0, 4).split(k, k, kk, 2).reorder(kk, i, k).unroll(kk)
"""


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["cgra", *map(str, arguments)])


def test_it_places_runs_compares_and_writes(tmp_path: Path) -> None:
    file, out = tmp_path / "design.py", tmp_path / "out"
    file.write_text(DESIGN)
    result = run(file, "--fabric", "cgra8", "--out", out)
    assert result.exit_code == 0, result.output
    assert "y on cgra8" in result.output
    assert "FMA usage" in result.output
    assert "simulator, y: matches numpy" in result.output
    assert sorted(path.name for path in out.iterdir()) == [
        "y.placement.json",
        "y.placement.svg",
        "y.tia",
    ]


def test_errors_name_the_line(tmp_path: Path) -> None:
    file = tmp_path / "design.py"
    file.write_text(DESIGN.replace("A[i, k] * x[k]", "t2s.sqrt(A[i, k]) * x[k]"))
    result = run(file)
    assert result.exit_code == 1
    assert "design.py:8" in result.stderr
    assert "Traceback" not in result.output
    result = run(file, "--fabric", "cgra9")
    assert result.exit_code == 1
    assert "cgra8, cgra16, cgra32" in result.stderr or "sqrt" in result.stderr


def test_sparse_designs_are_placed_for_random_operands(tmp_path: Path) -> None:
    file, out = tmp_path / "design.py", tmp_path / "out"
    file.write_text(
        "from t2s import sparse\n"
        'kernel = sparse.compile(sparse.parse("y(i) = A(i,j) * x(j)", {"A": "ds"}))\n'
    )
    result = run(file, "--size", 6, "--fabric", "cgra8", "--out", out)
    assert result.exit_code == 0, result.output + result.stderr
    assert "on cgra8" in result.output
    assert "scan_A_j_A_vals" in result.output
    assert "simulator, y: matches numpy exactly" in result.output
    assert len(list(out.iterdir())) == 3
    file.write_text(file.read_text().replace("kernel = ", "inputs = {'x': [1, 2, 3]}\nkernel = "))
    assert "simulator, y: matches numpy exactly" in run(file, "--size", 6).output


def test_operations_share_cells_if_asked(tmp_path: Path) -> None:
    file = tmp_path / "design.py"
    file.write_text(DESIGN.replace("A[i, k] * x[k]", "(A[i, k] * x[k]) * x[k]"))
    result = run(file, "--interval", 2)
    assert result.exit_code == 0, result.output + result.stderr
    assert "2 of 16" in result.output  # it has two PEs, and four operations
    assert "4 of 16" in run(file).output
    result = run(file, "--interval", 0)
    assert result.exit_code == 1
    assert "interval= must be the number of operations that share a cell" in result.stderr
