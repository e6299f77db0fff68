"""Sparse products on the emulator: real matrices, bit by bit what the simulator computes."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import t2s
from t2s.backends.opencl_fpga import emulator_available

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "spmv"))
import cisr
import row_blocks

from t2s.representation import read_matrix

MATRICES = Path(__file__).parents[1] / "data" / "matrices"

pytestmark = [
    pytest.mark.emulator,
    pytest.mark.skipif(not emulator_available(), reason="the emulator is not installed"),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("design", "name"),
    [
        (cisr.spmv(), "Trec5"),
        (cisr.spmv(2), "relat3"),
        (row_blocks.spmv(), "lpi_galenet"),
    ],
    ids=["CISR-Trec5", "CISR-relat3", "blocks-lpi_galenet"],
)
def test_values_of_the_simulator(design: t2s.Func, name: str) -> None:
    matrix = read_matrix(MATRICES / f"{name}.mtx", t2s.Float(32))
    x = np.random.default_rng(7).standard_normal(matrix.shape[1]).astype(np.float32)
    inputs = {"A": matrix, "x": x}
    found = t2s.emulate(design, inputs, time_limit=280)["y"]
    assert found.tobytes() == t2s.simulate(design, inputs).outputs["y"].tobytes()
    np.testing.assert_allclose(found, matrix @ x, rtol=1e-5, atol=1e-5)
