"""What a call of a function costs inside of compiled loops, beside the work of the function itself.

Functions that do next to nothing: ``ddot`` of one element, and an empty function in C if there is a
compiler.  ``python`` is the same plan call by call.
Seconds are those of the whole step, zeros for its result among them.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from t2s import external, sparse
from t2s.driver import external_plan
from t2s.sparse_repr.notation.parse import parse_expression

SOURCE = "void nothing(const double *x, double *z) { }\n"
ROWS = 1_000_000
FEW = 2_000


def _empty(folder: Path) -> external.ExternalFunction | None:
    """An empty function; its claim is wrong, and nobody looks at its values."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    (folder / "nothing.c").write_text(SOURCE)
    made = folder / "libnothing.so"
    command = [compiler, "-O2", "-shared", "-fPIC", "-o", str(made), str(folder / "nothing.c")]
    subprocess.run(command, check=True)
    arguments = (external.call.DataOf(tensor="x"), external.call.DataOf(tensor="z"))
    return external.make_function(
        "nothing",
        "z(i) = x(i)",
        call=external.call.ExternalCall(symbol="nothing", arguments=arguments),
        library=external.call.LibraryOf(name="nothing", path=str(made)),
        types="float64",
        strides="dense",
        trusted=True,
    )


def _nanoseconds(plan: Any, inputs: dict[str, Any], runs: int) -> float:
    """Of a call, the median of some runs."""
    plan.run(inputs)
    found = []
    for _ in range(runs):
        step = plan.run(inputs).steps[0]
        found.append(1e9 * step.seconds / step.calls)
    return statistics.median(found)


def _shown(name: str, plan: Any, inputs: Any) -> None:
    compiled = _nanoseconds(plan, inputs(ROWS), 7)
    keep = external_plan.calls_in_loops
    external_plan.calls_in_loops = lambda: None
    single = _nanoseconds(plan, inputs(FEW), 3)
    external_plan.calls_in_loops = keep
    print(f"{name:40} {compiled:10.1f} {single:12.0f}")


def _part(text: str) -> sparse.Notation:
    return sparse.Notation(parse_expression(text), {})


def main() -> None:
    print(f"{'nanoseconds per call':40} {'compiled':>10} {'python':>12}")
    dot = sparse.compile(
        sparse.parse("A(i) = B(i,j)*C(i,j)"),
        sparse.Schedule().fix("i").map(_part("B(i,j)*C(i,j)"), external.blas.ddot),
    )
    _shown("ddot of one element", dot, lambda rows: dict.fromkeys("BC", np.ones((rows, 1))))
    with tempfile.TemporaryDirectory() as folder:
        function = _empty(Path(folder))
        if function is None:
            print("an empty function: there is no C compiler")
            return
        schedule = sparse.Schedule().fix("i").bind(_part("B(i,j)"), function)
        plan = sparse.compile(sparse.parse("A(i,j) = B(i,j)"), schedule)
        _shown("an empty function", plan, lambda rows: {"B": np.ones((rows, 1))})


if __name__ == "__main__":
    main()
