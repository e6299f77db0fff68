"""Pages and recordings are the same, byte by byte, in every process and folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests.sources import ROOT


@pytest.mark.slow
def test_pages_are_the_same_in_other_processes(tmp_path: Path) -> None:
    """Whatever the order of sets is, and wherever they run."""
    program = """
        import hashlib, numpy as np, t2s
        from pathlib import Path
        from tests.report.page.designs import inputs_of, product
        design, inputs = product(8, 64), inputs_of(8, 64)
        result = t2s.simulate(design, inputs, memory="ddr4-2133", device="arria10")
        result.report("page.html", inputs=inputs, ladder=design)
        t2s.compare(result, result.retime({"A_along_jj": 1})).report("compared.html")
        result.trace("run.pftrace", cycles=(1, 100))
        result.waves("run.vcd", cycles=(1, 100))
        ones = np.eye(9) + np.eye(9, k=3)
        sparse = t2s.sparse.parse("X(i,j)=B(i,k)*C(k,j)", ["X:ss", "B:ss", "C:ss"])
        t2s.simulate(sparse, {"B": ones, "C": ones}).report("sparse.html")
        for file in sorted(Path(".").iterdir()):
            print(file.name, hashlib.sha256(file.read_bytes()).hexdigest())
    """
    said = []
    for seed in ("1", "77"):
        folder = tmp_path / seed
        folder.mkdir()
        ran = subprocess.run(
            [sys.executable, "-c", dedent(program)],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        said.append(ran.stdout)
    assert said[0] == said[1]
    assert said[0].count("\n") == 5
