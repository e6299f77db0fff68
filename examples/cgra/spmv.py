"""A sparse matrix times a vector on a coarse-grained reconfigurable array, from stream blocks.

The blocks of the Sparse Abstract Machine (SAM) become cells of triggered instructions; memory and
dense levels become stream units.  In the SAM graph a block fires once for each token.  A cell fires
an instruction per cycle, and a block is several of them:

* a sum waits for its FMA: a product is added every ``fma_latency + 1`` cycles;
* the scanner of the columns takes three instructions for an entry: is there one, put it, count;
* a row costs some more: its ends are read, its list is opened and closed.
"""

from __future__ import annotations

import numpy as np

import t2s
from t2s import sparse
from t2s.cgra import CgraFabric

i, j = t2s.variables("i j")
A = sparse.Tensor("A", sparse.csr)
x, y = (sparse.Tensor(name, sparse.dense(1)) for name in "xy")
y[i] = A[i, j] * x[j]


def matrix(rows: int = 48, columns: int = 64) -> np.ndarray:
    """Whole numbers, a tenth of them stored."""
    generator = np.random.default_rng(1)
    stored = generator.random((rows, columns)) < 0.1
    return generator.integers(1, 9, (rows, columns)) * stored * 1.0


def main() -> list[int]:
    inputs = {"A": matrix(), "x": np.arange(64.0)}
    entries = int((inputs["A"] != 0).sum())
    wanted = inputs["A"] @ inputs["x"]
    graph = t2s.simulate(y, inputs)
    cycles = [graph.cycles]
    print(f"{entries} entries in {len(wanted)} rows")
    print(f"{'SAM graph':34}{graph.cycles:7} cycles{graph.cycles / entries:7.2f} for an entry")
    for latency in (4, 2, 1):
        fabric = CgraFabric(name=f"fma{latency}", rows=8, columns=8, fma_latency=latency)
        placed = t2s.cgra.place(y, inputs, fabric=fabric)
        result = t2s.simulate(placed, inputs)
        assert np.array_equal(result.output, wanted)
        assert placed.run(inputs).cycles == result.cycles  # instruction by instruction
        cycles.append(result.cycles)
        name = f"cells, an FMA of latency {latency}"
        print(f"{name:34}{result.cycles:7} cycles{result.cycles / entries:7.2f} for an entry")
        for block, why in (("scan_A_j", "instructions"), ("reduce_j", "sums")):
            busy = placed.run(inputs).cells[block].busy
            print(f"    {block:30}{busy:7} {why}")
    return cycles


if __name__ == "__main__":
    main()
