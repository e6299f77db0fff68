"""``t2s chip`` of kernels of index notation: their channels have a capacity."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from t2s.command.main import app

KERNEL = """
import numpy as np
import t2s

y = t2s.sparse.parse("y(i) = A(i,j)*x(j)", {"A": "ds"})
kernel = t2s.sparse.compile(y)
inputs = {"A": np.eye(600, 3, dtype=np.int16), "x": np.ones(3, np.int16)}
"""


def said_of(folder: Path, *options: str) -> str:
    file = folder / "kernel.py"
    file.write_text(KERNEL)
    out = folder / "chip"
    command = ["chip", str(file), "--part", "ecp5-25k", "--out", str(out), *options]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 1
    assert not out.exists()
    return result.stderr


def test_kernels_have_channels_with_a_capacity(tmp_path: Path) -> None:
    """They get as far as the sizes of their tensors, which are known after a run."""
    assert "tensor 'A_pos1': it has 601 elements" in said_of(tmp_path)


def test_a_capacity_that_is_too_large(tmp_path: Path) -> None:
    assert "holds more tokens than a FIFO of a chip" in said_of(tmp_path, "--capacity", "70000")
