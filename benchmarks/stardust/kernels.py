"""Lines, memories and values of ten kernels: ``python -m benchmarks.stardust.kernels``.

Lines are those of the user and of the complete Spatial program, with table 4 in brackets; memories
are those on the chip.  Values are the patterns' on random inputs, compared with numpy's, and those
of the parsed text compared with the patterns'.
"""

from __future__ import annotations

import argparse
from collections import Counter
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.stardust.paper import PAPER
from benchmarks.stardust.spatial_parser import parse_spatial
from t2s.backends.capstan.emit import spatial_program
from t2s.patterns.ir import MemoryKind
from t2s.sparse import CapstanKernel
from t2s.sparse_repr.notation.ir import accesses

EXTENTS = {"i": 11, "j": 9, "k": 10, "l": 8}
DENSITIES = (0.0, 0.05, 0.3, 1.0)
SHORT = {
    MemoryKind.SRAM: "SRAM",
    MemoryKind.SPARSE_SRAM: "sparse SRAM",
    MemoryKind.PARTITIONED_SRAM: "partitioned SRAM",
    MemoryKind.FIFO: "FIFO",
    MemoryKind.BITS: "bits",
    MemoryKind.SPARSE_DRAM: "sparse DRAM",
}


def memories(kernel: CapstanKernel) -> str:
    """How many memories there are of each kind, but for dense DRAMs."""
    counts = Counter(memory.kind for memory in kernel.patterns().declared())
    return ", ".join(f"{counts[kind]} {text}" for kind, text in SHORT.items() if counts[kind])


def random_inputs(kernel: CapstanKernel, density: float, seed: int) -> dict[str, Any]:
    """Dense arrays of small integers for all operands, a part of them zero."""
    generator = np.random.default_rng(seed)
    found = {}
    for access in accesses(kernel.assignment.value):
        shape = tuple(EXTENTS[variable] for variable in access.variables)
        values = generator.integers(1, 9, shape) * (generator.random(shape) < density)
        found[access.tensor] = np.asarray(values, np.int32)
    return found


def checked(kernel: CapstanKernel, runs: int) -> str:
    """How many random inputs give numpy's values."""
    same = 0
    for seed in range(runs):
        inputs = random_inputs(kernel, DENSITIES[seed % len(DENSITIES)], seed)
        expected = kernel.interpret(inputs, level="notation")
        same += bool(np.array_equal(kernel.interpret(inputs), expected))
    return f"{same} of {runs}"


def main(arguments: list[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="4 random inputs instead of 40")
    options = parser.parse_args(arguments)
    runs = 4 if options.quick else 40
    headers = ("kernel", "user's lines", "Spatial lines", "ratio", "parsed", "values", "memories")
    table = Table(*headers, title="Ten kernels, table 4 of [Stardust] in brackets")
    for row in PAPER:
        kernel = row.kernel()
        text = kernel.spatial()
        lines = sum(bool(line.strip()) for line in text.splitlines())
        table.add_row(
            row.name,
            f"{row.said()} ({row.input_lines})",
            f"{lines} ({row.spatial_lines})",
            f"{lines / row.spatial_lines:.2f}",
            "equal" if parse_spatial(text) == spatial_program(kernel.patterns()) else "differs",
            checked(kernel, runs),
            memories(kernel),
        )
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
