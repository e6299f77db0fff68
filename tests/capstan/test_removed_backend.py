"""Without the folder `t2s/backends/capstan` patterns compile and run; the rest says why not."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import t2s

SCRIPT = """
import numpy as np
import t2s
from t2s import sparse
from t2s.sparse import Schedule, Tensor, csr, dense

def compiled(schedule):
    i, j = t2s.Var("i"), t2s.Var("j")
    A, x, y = Tensor("A", csr), Tensor("x", dense(1)), Tensor("y", dense(1))
    y[i] = A[i, j] * x[j]
    return sparse.compile(y, schedule, target="capstan")

kernel = compiled(Schedule().environment(outer_par=4))
print(kernel.interpret({"A": np.array([[0, 2], [3, 4]]), "x": np.array([5, 6])}).tolist())
for wanted in (
    kernel.resources,
    kernel.spatial,
    lambda: kernel.emit("build"),
    kernel.graph,
    lambda: kernel.simulate({}),
    lambda: compiled(Schedule().environment(outer_par="fit")),
):
    try:
        wanted()
    except t2s.errors.UnsupportedError as error:
        print(error.message)
"""


def test_patterns_without_the_backend(tmp_path: Path) -> None:
    package = Path(t2s.__file__).parent
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(package, tmp_path / "t2s", ignore=ignored)
    shutil.rmtree(tmp_path / "t2s" / "backends" / "capstan")
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path), "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.splitlines() == [
        "[12, 39]",
        "resources() needs the Capstan backend, which is not installed",
        "spatial() needs the Capstan backend, which is not installed",
        "emit() needs the Capstan backend, which is not installed",
        "graph() needs the Capstan backend, which is not installed",
        "simulate() needs the Capstan backend, which is not installed",
        "outer_par='fit' needs the Capstan backend, which is not installed",
    ]
    assert not (tmp_path / "build").exists()
