"""How long ``import t2s`` takes, beside ``import numpy``: ``python benchmarks/import_time.py``.

Processor time of new interpreters, without that of an empty one; bytecode is kept.  Public names
bring their modules when they are first used, so what a definition uses is measured, too.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys

RUNS = 15
MOST = 2.5
"""Times that of numpy, which is part of it."""

STATEMENTS = ("import t2s", "from t2s import Float, Func, ImageParam, RDom, Var")


def seconds(statements: tuple[str, ...]) -> list[float]:
    """The least processor time of new interpreters that execute each statement, in turns."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    least = [float("inf")] * len(statements)
    for _ in range(RUNS):
        for number, statement in enumerate(statements):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, "-c", statement], check=True, env=environment)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            least[number] = min(least[number], spent)
    return least


def main() -> None:
    empty, numpy, *ours = seconds(("pass", "import numpy", *STATEMENTS))
    print(f"{'import numpy':55} {numpy - empty:.3f} s")
    for statement, spent in zip(STATEMENTS, ours, strict=True):
        ratio = (spent - empty) / (numpy - empty)
        print(f"{statement:55} {spent - empty:.3f} s  {ratio:.2f} times (must {MOST})")


if __name__ == "__main__":
    main()
