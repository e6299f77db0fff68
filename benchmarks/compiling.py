"""What compiling many and large designs costs: ``python benchmarks/compiling.py [lanes | memory]``.

*lanes*: processor time from a schedule to the first result, with values, by the number of lanes; it
has to grow no faster than the lanes, and 64 lanes may take 2 seconds.  *memory*: resident memory of
one process that compiles and runs hundreds of different designs; it has to come to rest.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import t2s
from t2s import Func, ImageParam, Int, RDom, sparse

MUST = 2.0
LANES = (4, 16, 32, 64)
FORMATS = {"A": "ss", "B": "ss", "X": "ss", "x": "d", "y": "d"}
DEALT = {
    "SpMV, rows dealt": ("y(i) = A(i,j)*x(j)", "parallelize(i,{})"),
    "product row by row": ("X(i,j) = A(i,k)*B(k,j)", "reorder(i,k,j), parallelize(i,{})"),
    "product, sums dealt": ("X(i,j) = A(i,k)*B(k,j)", "reorder(i,k,j), parallelize(k,{})"),
    "sum of matrices, entries dealt": (
        "X(i,j) = A(i,j)+B(i,j)",
        "fuse(i,j,f), parallelize(f,{})",
    ),
}
DESIGNS, STEP = 800, 100


def dealt(text: str, schedule: str, lanes: int) -> float:
    """Processor time of an assignment from its schedule to its first result."""
    generator = np.random.default_rng(0)
    inputs = {}
    for name in "ABx":
        if f"{name}(" in text:
            array = generator.integers(1, 5, (100,) * len(FORMATS[name])) * 1.0
            inputs[name] = array * (generator.random(array.shape) < 0.3)
    begun = time.process_time()
    formats = {name: letters for name, letters in FORMATS.items() if f"{name}(" in text}
    kernel = sparse.compile(sparse.parse(text, formats), schedule.format(lanes))
    result = kernel.simulate(inputs)
    seconds = time.process_time() - begun
    assert np.array_equal(result.output, kernel.interpret(inputs))
    return seconds


def lanes() -> None:
    """The table of lanes."""
    for text, schedule in DEALT.values():
        dealt(text, schedule, 2)  # imports, and what is compiled once
    table = Table(title="Seconds of processor time from a schedule to its first result")
    table.add_column("design")
    for count in LANES:
        table.add_column(f"{count} lanes", justify="right")
    for name, (text, schedule) in DEALT.items():
        found = [dealt(text, schedule, count) for count in LANES]
        style = "green" if found[-1] <= MUST else "red"
        table.add_row(name, *(f"{seconds:.2f}" for seconds in found), style=style)
    Console().print(table)


def dense_design(number: int) -> None:
    """A sum over a small array of PEs, of other sizes and another definition for each number."""
    i, j = t2s.variables("i j")
    rows, columns, terms = 1 + number % 7, 1 + number // 7 % 5, 2 + number // 35 % 9
    k = RDom(0, terms, name="k")
    a, b = ImageParam(Int(32), 2, name="A"), ImageParam(Int(32), 2, name="B")
    c = Func("C", type=Int(32))
    c[i, j] = number
    c[i, j] += a[i, k] * b[k, j]
    c.bound(i, 0, rows).bound(j, 0, columns).unroll(j)
    ones = {"A": np.ones((rows, terms), np.int32), "B": np.ones((terms, columns), np.int32)}
    assert (t2s.simulate(c, ones).outputs["C"] == number + terms).all()


def sparse_design(number: int) -> None:
    """An assignment of other formats, constants and sizes for each number."""
    right = ("A(i,j)*B(i,j)", "A(i,j)+B(i,j)", "A(i,k)*B(k,j)")[number % 3]
    letters = [first + second for first in "sd" for second in "sd"]
    formats = {"A": letters[number % 4], "B": letters[number // 4 % 4], "X": "ss"}
    kernel = sparse.compile(sparse.parse(f"X(i,j) = {number + 2}*({right})", formats))
    matrix = np.eye(3 + number % 11)
    kernel.simulate({"A": matrix, "B": matrix})


def resident() -> float:
    """Resident memory of this process in megabytes."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096 / 1e6


def memory() -> None:
    """The table of resident memory."""
    table = Table(title="Megabytes of a process after so many different designs")
    table.add_column("designs", justify="right")
    columns: list[list[float]] = []
    kinds: dict[str, Callable[[int], None]] = {"dense": dense_design, "sparse": sparse_design}
    for name, design in kinds.items():
        table.add_column(name, justify="right")
        found: list[float] = []
        for number in range(DESIGNS):
            design(number)
            if number % STEP == STEP - 1:
                found.append(resident())
        columns.append(found)
    for at, row in enumerate(zip(*columns, strict=True)):
        table.add_row(str((at + 1) * STEP), *(f"{megabytes:.1f}" for megabytes in row))
    Console().print(table)


if __name__ == "__main__":
    wanted = sys.argv[1:] or ["lanes", "memory"]
    if "lanes" in wanted:
        lanes()
    if "memory" in wanted:
        memory()
