"""What cannot be beaten: bounds that hold for each timed run, of any kernel on any data.

A run with an ideal memory is not slower than one with HBM2E, and that one not slower than one with
DDR4.  Every word that a kernel cannot do without comes from the DRAM once, so no run is faster than
these words at the memory's peak, nor than its vectors of 16 entries over its partitions.  Kernels
that walk one matrix once move at most half as much again.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from t2s.driver.capstan_result import CapstanResult
from t2s.sparse import SparseTensor

WORD, LANES = 4, 16
MOST_MOVED = 1.5
"""Bytes that kernels like SpMV move, beside all words of operands and result once."""


def least_words(name: str, inputs: Mapping[str, Any]) -> int:
    """Words that a kernel has to read: the entries of its compressed operands.

    An inner product need not read values of what only one operand has, but it reads the coordinates
    of the first compressed level.
    """
    if name == "InnerProd":
        return sum(len(one.levels[1]["crd"]) for one in inputs.values())
    return sum(_entries(one) for one in inputs.values())


def least_vectors(name: str, inputs: Mapping[str, Any]) -> int:
    """Vectors of up to 16 entries that a kernel has to take: of its first operand's fibers."""
    first = next(one for one in inputs.values() if _entries(one) or not hasattr(one, "size"))
    if name == "MatTransMul":
        positions = first.tocsc().indptr
    elif isinstance(first, SparseTensor):
        positions = first.levels[1 if name == "InnerProd" else -1]["pos"]
    else:
        positions = first.indptr
    return int((-(-np.diff(positions) // LANES)).sum())


def broken_bounds(
    by_memory: Mapping[str, CapstanResult],
    *,
    words: int,
    vectors: int,
    partitions: int,
    once: int,
    slack: float = 0.0,
) -> list[str]:
    """The bounds that do not hold, in words.

    ``by_memory`` are the runs from the fastest memory to the slowest one; ``once`` are the bytes of
    operands and result, 0 if the kernel reads some of them more than once.  ``slack`` is the share
    by which a memory may be slower than the next one: small runs wait for latencies alone, which
    are alike in all DRAMs.
    """
    found = []
    for (name, fast), (other, slow) in pairwise(by_memory.items()):
        if fast.cycles > (1 + slack) * slow.cycles:
            found.append(f"{fast.cycles:,} cycles with {name}, {slow.cycles:,} with {other}")
    for name, run in by_memory.items():
        if run.cycles < vectors / partitions:
            found.append(f"{run.cycles:,} cycles with {name} for {vectors:,} vectors")
        if run.run.memory is None:
            continue
        seconds = max(WORD * words, once) / float(run.run.memory.dram.peak_bytes_per_second)
        if run.nanoseconds < 1e9 * seconds:
            found.append(f"{run.nanoseconds:,.0f} ns with {name} for {1e9 * seconds:,.0f} at peak")
        if once and not once <= run.dram_bytes <= MOST_MOVED * once:
            found.append(f"{run.dram_bytes:,} bytes with {name} for {once:,}")
    return found


def _entries(operand: Any) -> int:
    """Stored values of a compressed operand, 0 of a dense one."""
    if isinstance(operand, SparseTensor):
        return len(operand.values)
    return int(operand.nnz) if hasattr(operand, "indptr") else 0
