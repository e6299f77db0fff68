"""The examples of sparse products: right on real matrices, and close to their bounds."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "spmv"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cisr", "row_blocks", "spmm"])
def test_the_programs_check_themselves(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    example(name).main()
    share = float(capsys.readouterr().out.split("cycles, ")[1].split("%")[0])
    assert share > 90


def test_conjugate_gradients_converge() -> None:
    module = example("conjugate_gradient")
    matrix = module.heat(6)
    b = np.ones(36, np.float32)
    x, products, _cycles = module.solve(matrix, b)
    assert products < 20
    assert np.linalg.norm(matrix @ x - b) <= 1e-4 * np.linalg.norm(b)


@pytest.mark.slow
@pytest.mark.parametrize("machines", [8, 16])
def test_more_machines(machines: int) -> None:
    generator = np.random.default_rng(1)
    dense = generator.integers(-3, 4, (60, 50)) * (generator.random((60, 50)) < 0.3)
    a, x = dense.astype(np.float32), generator.integers(-5, 5, 50).astype(np.float32)
    result = example("cisr").spmv(machines).simulate({"A": a, "x": x}, engine="python")
    np.testing.assert_array_equal(result.outputs["y"], a @ x)
