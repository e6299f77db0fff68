"""Without a compiler the plain engine runs, and says so."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys, warnings
sys.modules["llvmlite"] = None
import numpy as np
import t2s
from t2s.core.errors import T2SWarning, UserError
x = t2s.ImageParam(t2s.Int(32), 1, name="x")
i = t2s.Var("i")
y, loader, unloader = t2s.funcs("y loader unloader")
y[i] = x[i] + 1
y.bound(i, 0, 4).isolate_producer(x, loader).isolate_consumer(unloader)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always", T2SWarning)
    result = t2s.simulate(y, {"x": np.arange(1, 5, dtype=np.int32)})
    again = t2s.simulate(y, {"x": np.arange(1, 5, dtype=np.int32)})
print(list(map(int, result.outputs["y"])), result.engine, len(caught))
print(caught[0].message)
try:
    t2s.simulate(y, {"x": np.arange(1, 5, dtype=np.int32)}, engine="array")
except UserError as error:
    print(str(error).splitlines()[0])
fit = t2s.fit_depths(y, workers=1, progress=False)
print(fit.cycles == fit.unbounded_cycles == result.cycles, fit.minimal, caught[0].lineno)
"""


@pytest.fixture(scope="module")
def lines() -> list[str]:
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def test_the_plain_engine_stands_in(lines: list[str]) -> None:
    assert lines[0] == "[2, 3, 4, 5] python 1"


def test_it_says_so(lines: list[str]) -> None:
    assert lines[1].startswith("llvmlite is not installed, so the plain engine runs")
    assert lines[1].endswith("pip install llvmlite")


def test_other_engines_are_refused(lines: list[str]) -> None:
    assert lines[2] == "the engine 'array' needs llvmlite"


def test_depths_are_fitted_without_a_compiler(lines: list[str]) -> None:
    assert lines[3].startswith("True True ")


def test_it_says_so_at_the_users_line(lines: list[str]) -> None:
    number = PROGRAM.splitlines().index(
        '    result = t2s.simulate(y, {"x": np.arange(1, 5, dtype=np.int32)})'
    )
    assert lines[3].endswith(f" {number + 1}")
