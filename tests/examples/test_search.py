"""The example of the search: its winner is better than the design by hand, and is saved."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import t2s

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "search" / "gemm.py"


def test_the_definition_is_that_of_the_design_by_hand() -> None:
    values = runpy.run_path(str(EXAMPLE))
    by_hand = values["by_hand"]()
    assert not values["C"].plan
    assert by_hand.plan
    generator = np.random.default_rng(0)
    inputs = {"A": generator.random((64, 128), "f"), "B": generator.random((128, 64), "f")}
    expected, actual = t2s.interpret(by_hand, inputs), t2s.interpret(values["C"], inputs)
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.slow
def test_the_winner_is_better_than_the_design_by_hand(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, str(EXAMPLE)], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    by_hand = runpy.run_path(str(EXAMPLE))["by_hand"]()
    found = runpy.run_path(str(tmp_path / "best_gemm.py"))["C"]
    cycles = [t2s.cycles(design, device="arria10") for design in (found, by_hand)]
    assert cycles[0] < cycles[1]
    assert f"cycles    {cycles[0]:,} on arria10" in ran.stdout
    assert "found takes" in ran.stdout
