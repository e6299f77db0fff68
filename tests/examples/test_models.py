"""The examples of whole models: values in every way of passing results on, and what it saves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks.published import load
from t2s.command.main import app
from t2s.sparse import Program

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "models"
FILES = sorted(path.stem for path in EXAMPLES.glob("*.py"))


def example(name: str) -> tuple[Program, dict[str, Any]]:
    module = load(f"examples/models/{name}.py")
    (program,) = (value for value in vars(module).values() if isinstance(value, Program))
    return program, module.inputs()


@pytest.mark.parametrize("name", FILES)
def test_values_and_cycles(name: str) -> None:
    program, arrays = example(name)
    expected = program.interpret(arrays)[program.name]
    cycles = {}
    for fusion in ("none", "layer", "all"):
        result = program.fuse(fusion).simulate(arrays)
        np.testing.assert_allclose(result.output, expected, atol=1e-12)
        cycles[fusion] = result.cycles
    assert cycles["layer"] < cycles["none"]


def test_run_and_report(tmp_path: Path) -> None:
    run = CliRunner().invoke(app, ["run", str(EXAMPLES / "autoencoder.py")])
    assert run.exit_code == 0, run.output
    assert "E(b,h) += X(b,i)*We(i,h)" in run.output
    assert "cycles of 4 graphs" in run.output
    assert "simulator, Y: matches numpy" in run.output
    page = tmp_path / "page.html"
    report = CliRunner().invoke(
        app, ["report", str(EXAMPLES / "autoencoder.py"), "--out", str(page)]
    )
    assert report.exit_code == 0, report.output
    assert page.stat().st_size > 10_000


def test_a_program_without_inputs(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text('from t2s import sparse\nmodel = sparse.program("y(i) = A(i,j) * x(j)")\n')
    run = CliRunner().invoke(app, ["run", str(file)])
    assert run.exit_code == 1
    assert "has no A, an input of its program" in run.output
