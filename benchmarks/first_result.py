"""Seconds from nothing to the first result of a new design: ``python benchmarks/first_result.py``.

Every run is a new interpreter that defines a GEMM, lowers it and simulates it once, with values.
The first run fills the caches (bytecode, machine code of the timing kernel) and does not count; the
design itself is compiled anew in every run.  Shown are medians of processor time by phase, so that
other work on the machine does not count, and of wall time in all.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

RUNS = 5
MUST, AIM = 2.0, 0.6
DESIGNS = {"GEMM, 2 x 2 PEs": (2, 2, 4, 4), "GEMM, 10 x 8 PEs": (10, 8, 32, 512)}
PHASES = (
    "start of Python",
    "import numpy",
    "import t2s",
    "define and lower",
    "import compilers",
    "check and flatten",
    "load the timing kernel",
    "compile values",
    "times and values",
)


def child(*shape: int) -> None:
    """One run, phase by phase; prints the processor time of each as JSON."""
    marks = [0.0, time.process_time()]
    import numpy as np  # noqa: F401

    marks.append(time.process_time())
    import t2s  # noqa: F401

    marks.append(time.process_time())
    from engine import gemm, inputs_of

    graph = gemm(*shape)
    marks.append(time.process_time())
    from t2s.simulator.emit.compile import compile_text
    from t2s.simulator.engine_registry import find_engine
    from t2s.simulator.limits import Limits
    from t2s.simulator.program.build import build_program
    from t2s.simulator.values.emit_program import emit_program
    from t2s.simulator.values.layout import layout_of

    engine = find_engine("native")
    marks.append(time.process_time())
    inputs = inputs_of(graph)
    program = build_program(graph, "arria10", inputs)
    marks.append(time.process_time())
    engine.run(program, Limits(max_cycles=1))
    marks.append(time.process_time())
    compile_text(emit_program(graph, layout_of(graph)).text)
    marks.append(time.process_time())
    result = engine.run(program, Limits())
    marks.append(time.process_time())
    assert result.finished
    print(json.dumps([after - before for before, after in pairwise(marks)]))


def run(shape: tuple[int, ...]) -> tuple[list[float], float]:
    """Processor time by phase and the wall time of a new interpreter."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = str(Path(__file__).resolve().parent.parent)
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, __file__, *map(str, shape)],
        check=True,
        capture_output=True,
        text=True,
        env=environment,
    )
    return json.loads(done.stdout), time.perf_counter() - started


def main() -> None:
    for name, shape in DESIGNS.items():
        run(shape)
        runs = [run(shape) for _ in range(RUNS)]
        phases = [statistics.median(times) for times in zip(*(r[0] for r in runs), strict=True)]
        print(name)
        for phase, seconds in zip(PHASES, phases, strict=True):
            print(f"  {phase:24} {seconds:6.3f} s")
        before = sum(phases[:-1])
        print(f"  {'all but the run':24} {before:6.3f} s (must {MUST}, aim {AIM})")
        print(f"  {'in all':24} {sum(phases):6.3f} s")
        print(f"  {'in all, wall time':24} {statistics.median(r[1] for r in runs):6.3f} s")


if __name__ == "__main__":
    if sys.argv[1:]:
        child(*map(int, sys.argv[1:]))
    else:
        main()
