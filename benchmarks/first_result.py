"""Seconds from nothing to the first result of a new design: ``python benchmarks/first_result.py``.

With ``--cold`` every run is the first one on a new machine: nothing is in t2s's cache (bytecode is,
since the installer writes it).  Shown is the least processor time of some runs of each program,
with and without what an earlier run has left in the cache.

Every run is a new interpreter that defines a GEMM, lowers it and simulates it once, with values.
The first run fills the caches (bytecode, machine code of the timing kernel) and does not count; the
design itself is compiled anew in every run.  Shown are medians of processor time by phase, so that
other work on the machine does not count, and of wall time in all.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

RUNS = 5
COLD_RUNS = 3
COLD_LIMIT = 3.0
GEMM = """
import numpy as np
import t2s
from t2s import Float, Func, ImageParam, RDom, Var

A, B = ImageParam(Float(32), 2, name="A"), ImageParam(Float(32), 2, name="B")
i, j, k = Var("i"), Var("j"), RDom(0, 128, name="k")
C = Func("C")
C[i, j] = 0.0
C[i, j] += A[i, k] * B[k, j]
C.bound(i, 0, 64).bound(j, 0, 64)
ii, jj, it, jt = t2s.variables("ii jj it jt")
A_loader, B_loader, C_unloader = t2s.funcs("A_loader B_loader C_unloader")
C.update().tile(j, i, jt, it, 4, 4).reorder(jt, it, k, j, i)
C.split(i, i, ii, 8).split(j, j, jj, 8).unroll(ii, jj)
C.isolate_producer(A, A_loader).isolate_producer(B, B_loader).isolate_consumer(C_unloader)
C.forward(A_loader, jj).forward(B_loader, ii)
a, b = np.ones((64, 128), np.float32), np.ones((128, 64), np.float32)
"""
SPARSE = """
import numpy as np
import t2s
from t2s import sparse

i, j = t2s.variables("i j")
generator = np.random.default_rng(0)
matrix = generator.random((100, 100)) * (generator.random((100, 100)) < 0.1)
inputs = {"A": matrix, "x": generator.random(100)}
"""
COLD = {
    "GEMM": GEMM + 't2s.simulate(C, {"A": a, "B": b}, device="arria10")',
    "GEMM, DDR4": GEMM + 't2s.simulate(C, {"A": a, "B": b}, device="arria10", memory="ddr4-2133")',
    "GEMM, HBM2E": GEMM + 't2s.simulate(C, {"A": a, "B": b}, device="arria10", memory="hbm2e")',
    "SpMV by streams, DDR4": SPARSE
    + """
A, x, y = (sparse.Tensor(name, format) for name, format in zip("Axy", ("ds", "d", "d")))
y[i] = A[i, j] * x[j]
t2s.simulate(y, inputs, memory="ddr4-2133")
""",
    "SpMV on Capstan, HBM2E": SPARSE
    + """
A, x, y = (sparse.Tensor(name, format) for name, format in zip("Axy", ("ds", "d", "d")))
y[i] = A[i, j] * x[j]
schedule = sparse.Schedule().environment(outer_par=16).parallel(j, "reduction", 16).promote_sums()
kernel = sparse.compile(y, schedule, target="capstan")
kernel.simulate(inputs, memory="hbm2e-1800")
""",
    "GEMM on the CGRA": """
import runpy
import numpy as np
import t2s

C = runpy.run_path("examples/cgra/gemm.py")["C"]
t2s.simulate(t2s.cgra.place(C), {"A": np.ones((32, 64)), "B": np.ones((64, 96))})
""",
}
"""Programs that a new user runs first, from the root of the repository."""

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
    from t2s.llvm.compile import compile_text
    from t2s.simulator.engine_registry import find_engine
    from t2s.simulator.limits import Limits
    from t2s.simulator.program.build import build_program
    from t2s.simulator.values.emit_node import emit_program
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


def processor_time(program: str, home: str) -> float:
    """Of a new interpreter that runs a program, with the cache of a user whose home this is."""
    root = Path(__file__).resolve().parent.parent
    kept = {**os.environ, "HOME": home, "XDG_CACHE_HOME": f"{home}/.cache", "PYTHONPATH": str(root)}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", program], check=True, env=kept, cwd=root)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cold() -> None:
    """The first runs on a new machine."""
    print(f"{'processor seconds':24} {'cold':>6} {'warm':>6}  (cold: must {COLD_LIMIT})")
    for name, program in COLD.items():
        times = list[tuple[float, float]]()
        for _ in range(COLD_RUNS + 1):  # the first one writes bytecode
            with tempfile.TemporaryDirectory() as home:
                times.append((processor_time(program, home), processor_time(program, home)))
        first, second = (min(column) for column in zip(*times[1:], strict=True))
        print(f"{name:24} {first:6.2f} {second:6.2f}")


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
    if sys.argv[1:] == ["--cold"]:
        cold()
    elif sys.argv[1:]:
        child(*map(int, sys.argv[1:]))
    else:
        main()
