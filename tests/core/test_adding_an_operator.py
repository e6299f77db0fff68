"""What `t2s/core/README.md` says that an operator costs, done to a copy of the package."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sources import PACKAGE, ROOT

EDITS = {
    "core/ops.py": (
        ('    FLOOR = "floor"\n', '    HYPERBOLIC_SINE = "sinh"\n    FLOOR = "floor"\n'),
        (
            "        Op.FLOOR: OperatorInfo(",
            '        Op.HYPERBOLIC_SINE: _c_function("sinh", math.sinh),\n'
            "        Op.FLOOR: OperatorInfo(",
        ),
    ),
    "func/functions.py": (
        (
            "def floor(value: Number)",
            "def sinh(value: Number) -> Expression:\n"
            "    return combine(Op.HYPERBOLIC_SINE, value)\n\n\n"
            "def floor(value: Number)",
        ),
    ),
    "__init__.py": (
        ("        tanh,\n", "        sinh,\n        tanh,\n"),
        ("sqrt tanh", "sinh sqrt tanh"),
    ),
}
PROGRAM = """
import numpy as np
import t2s
X = t2s.ImageParam(t2s.Float(WIDTH), 1, name="X")
i = t2s.Var("i")
Y = t2s.Func("Y")
Y[i] = t2s.sinh(X[i])
Y.bound(i, 0, 24)
x = np.linspace(-3, 3, 24).astype("floatWIDTH")
expected = t2s.interpret(Y, {"X": x})
np.testing.assert_allclose(expected, np.sinh(x), rtol=1e-6)
for engine in ("native", "python"):
    result = t2s.simulate(Y, {"X": x}, engine=engine)
    np.testing.assert_array_equal(result.outputs["Y"], expected)
cycles = t2s.cycles(Y)
assert cycles == result.cycles
run = t2s.verilate(Y, {"X": x})
np.testing.assert_array_equal(run.outputs["Y"], expected)
assert run.cycles == cycles
if WIDTH == 32:
    emulated = t2s.emulate(Y, {"X": x})
    np.testing.assert_allclose(emulated["Y"], expected, rtol=1e-6)
"""


def _copy_with_operator(folder: Path) -> None:
    shutil.copytree(PACKAGE, folder / "t2s", ignore=shutil.ignore_patterns("__pycache__"))
    for name, edits in EDITS.items():
        path = folder / "t2s" / name
        text = path.read_text(encoding="utf-8")
        for before, after in edits:
            assert text.count(before) == 1, (name, before)
            text = text.replace(before, after)
        path.write_text(text, encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("width", ["32", "64"])
def test_three_files_make_an_operator_of_every_engine_and_backend(
    tmp_path: Path, width: str
) -> None:
    _copy_with_operator(tmp_path)
    script = tmp_path / "program.py"
    script.write_text(PROGRAM.replace("WIDTH", width), encoding="utf-8")
    there = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, str(script)]
    run = subprocess.run(command, cwd=tmp_path, env=there, capture_output=True)
    assert run.returncode == 0, run.stderr.decode()


def test_the_page_lists_these_files() -> None:
    page = (ROOT / "t2s" / "core" / "README.md").read_text(encoding="utf-8")
    section = page.split("## Adding a scalar operator")[1].split("Any other operator")[0]
    listed = re.findall(r"^\* `([\w/]+\.py)`", section, re.MULTILINE)
    assert {name.removeprefix("t2s/") for name in listed} == set(EDITS)
