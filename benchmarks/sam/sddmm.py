"""Sampled products, fused and not [SAM, Fig. 11]: ``python benchmarks/sam/sddmm.py``.

X(i,j) = B(i,j) C(i,k) D(j,k): B is 250 x 100, 95 % sparse, with as many entries as the published
one; C and D are dense and full of ones.  "fused" intersects B with the dense levels,
"located" finds its coordinates in them, and "unfused" computes the dense product first, in a stage
of its own.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from chart import bars, page
from inputs import left
from rich.console import Console
from rich.table import Table

from t2s import Var
from t2s.sparse import Kernel, Schedule, Tensor, compile, dcsr, dense

PUBLISHED = {
    ("fused", 1): 25170,
    ("fused", 10): 25170,
    ("fused", 100): 122698,
    ("located", 1): 2687,
    ("located", 10): 13595,
    ("located", 100): 122675,
    ("unfused", 1): 75421,
    ("unfused", 10): 300421,
    ("unfused", 100): 2550421,
}


def kernels() -> dict[str, Kernel]:
    """The three variants."""
    i, j, k = Var("i"), Var("j"), Var("k")
    B, X = Tensor("B", dcsr), Tensor("X", dcsr)
    C, D = Tensor("C", dense(2)), Tensor("D", dense(2))
    X[i, j] = B[i, j] * (C[i, k] * D[j, k])
    scanned = Schedule().scan()  # as published: dense levels are walked and intersected
    ordered = scanned.reorder(i, j, k)
    return {
        "fused": compile(X, ordered),
        "located": compile(X, ordered.locate(C, i).locate(D, j)),
        "unfused": compile(X, scanned.precompute(C[i, k] * D[j, k], Tensor("T", dcsr)[i, j])),
    }


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("build/sddmm.html"))
    options = parser.parse_args()
    table = Table("variant", "K", "blocks", "cycles", "published", "deviation", title="Fig. 11")
    here: dict[str, dict[str, float]] = {}
    there: dict[str, dict[str, float]] = {}
    sampled = left()
    made = kernels()
    for (name, depth), published in PUBLISHED.items():
        inputs = {"B": sampled, "C": np.ones((250, depth)), "D": np.ones((100, depth))}
        result = made[name].simulate(inputs)
        if not np.array_equal(result.output, sampled * depth):
            raise AssertionError(f"wrong values: {name}, K = {depth}")
        blocks = sum(len(stage.nodes) for stage in result.stages)
        off = f"{100 * (result.cycles / published - 1):+.2f} %"
        row = name, depth, blocks, f"{result.cycles:,}", f"{published:,}", off
        table.add_row(*map(str, row))
        here.setdefault(name, {})[f"K = {depth}"] = result.cycles
        there.setdefault(f"{name}, published", {})[f"K = {depth}"] = published
    console = Console(width=120)
    console.print(table)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    page("SDDMM", [bars("Fused, located, unfused", {**here, **there})], options.out)
    console.print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
