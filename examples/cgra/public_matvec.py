"""Matrix times vector of int32 on a row of four PEs, in the language of the public tools.

Each PE has an element of x and a column of A, loads both through its own port of the memory, and
hands its partial sum on to its neighbor.  Run it with ``python examples/cgra/public_matvec.py``;
the text that it prints is for the public assembler and simulator for triggered instructions too.
"""

import numpy as np

import t2s
from t2s import Func, ImageParam, Int, RDom, Var

ROWS, COLUMNS = 12, 4

A, x = ImageParam(Int(32), 2, name="A"), ImageParam(Int(32), 1, name="x")
i, k, kk = Var("i"), RDom(0, COLUMNS, name="k"), Var("kk")
y = Func("y")
y[i] = 0
y[i] += A[i, k] * x[k]
y.bound(i, 0, ROWS)
y.split(k, k, kk, COLUMNS).reorder(kk, i, k).unroll(kk)

if __name__ == "__main__":
    compiled = t2s.triggered.compile(y, rows=1, columns=COLUMNS)
    numbers = np.random.default_rng(0)
    a = numbers.integers(-(2**31), 2**31, (ROWS, COLUMNS)).astype(np.int32)
    v = numbers.integers(-(2**31), 2**31, COLUMNS).astype(np.int32)
    result = compiled.run({"A": a, "x": v})
    print(compiled.text)
    print(result.run)
    print("equal to numpy:", np.array_equal(result.outputs["y"], a @ v))
