"""``t2s chip``: its options reach the verb."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from t2s.command.main import app

DESIGN = Path(__file__).parent.parent.parent / "examples" / "gemm" / "gemm_int16.py"


@pytest.mark.parametrize(
    ("memory", "why"),
    [
        ("wishbone", "a slave of a bus has no pins of a board"),
        ("axi-stream", "streams have no pins of a board"),
        ("dram", "unknown memory 'dram'"),
    ],
)
def test_memories(memory: str, why: str, tmp_path: Path) -> None:
    """Those behind a host are refused on a board, each in its own words."""
    options = ["--memory", memory, "--board", "ulx3s", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, ["chip", str(DESIGN), *options])
    assert result.exit_code == 1
    assert why in result.stderr
    assert not list(tmp_path.iterdir())
