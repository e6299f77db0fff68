"""Seconds that ``import t2s`` takes in a new interpreter: ``python benchmarks/import_time.py``.

The time of an empty interpreter is subtracted, and bytecode is kept; the goal is 0.5 s.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time

RUNS = 11
GOAL = 0.5


def seconds(statement: str) -> float:
    """The median wall time of a new interpreter that executes one statement."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", statement], check=True, env=environment)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    empty, numpy, whole = seconds("pass"), seconds("import numpy"), seconds("import t2s")
    print(f"import t2s    {whole - empty:.3f} s (goal {GOAL})")
    print(f"import numpy  {numpy - empty:.3f} s of that")


if __name__ == "__main__":
    main()
