"""A sparse matrix times a dense one: the columns of the result take turns.

Every value of the sparse matrix is loaded once and multiplied with all elements of a row of the
dense one; partial sums of all columns are kept in turn, which also hides the latency of additions.
"""

from __future__ import annotations

import numpy as np

import t2s
from t2s import Float, Func, ImageParam, RDom, Type, Var
from t2s.representation import ASAP, Columns, Index, Length, MatrixParam, Rows, Zero, dense_matrix

FLOAT = Float(32)


def spmm(width: int = 4, machines: int = 4, type: Type = FLOAT) -> Func:
    """Y = A X for a dense X of ``width`` columns; inputs ``A`` (a sparse matrix) and ``X``."""
    col_idx, row_len = Var("col_idx"), Var("row_len")
    chain = (
        dense_matrix()
        .pack(Columns, Length(row_len), Index(col_idx))
        .schedule(Rows, machines, ASAP, Zero)
    )
    A = MatrixParam(type, 2, chain, name="A")
    X = ImageParam(type, 2, name="X")
    ip, jp, r, n = Var("ip"), RDom(0, A.values.extent(1), name="jp"), Var("r"), Var("n")
    i, j = A.inverse_map(ip, jp)
    Y = Func("Y")
    Y[r, n] = 0
    Y[i, n] += A.values[ip, jp] * X[j, n]
    Y.bound(n, 0, width)
    return Y


Y = spmm()


def main() -> None:
    generator = np.random.default_rng(0)
    dense = generator.standard_normal((200, 150)) * (generator.random((200, 150)) < 0.1)
    a = dense.astype(np.float32)
    x = generator.standard_normal((150, 4)).astype(np.float32)
    result = t2s.simulate(Y, {"A": a, "X": x}, device="arria10")
    np.testing.assert_allclose(result.outputs["Y"], a @ x, rtol=1e-4, atol=1e-4)
    products = result.nodes["Y_multiplier"].firings // 4
    print(f"{np.count_nonzero(a)} values times 4 columns: {products} products on each machine")
    print(f"{result.cycles} cycles, {products / result.cycles:.1%} of them products")


if __name__ == "__main__":
    main()
