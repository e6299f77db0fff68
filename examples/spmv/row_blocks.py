"""Sparse matrix-vector product on few memory channels: blocks of rows as jobs for two machines.

Every row is cut into blocks of ``k / 2`` values, and the blocks are dealt to two machines.  Each
machine multiplies a block in one step and sums it in an adder tree (``Y``); the sums of the two
machines are combined where they are of one row, and a linear array reduces them to one for a row.
"""

from __future__ import annotations

import numpy as np

import t2s
from t2s import Float, Func, ImageParam, RDom, Type, Var
from t2s.representation import (
    ASAP,
    Columns,
    Index,
    Length,
    LinearArray,
    MatrixParam,
    MaybeDifferentTarget,
    Representation,
    SameTarget,
    Zero,
)

FLOAT = Float(32)


def spmv(k: int = 4, type: Type = FLOAT, levels: int = 4) -> Func:
    """y = A x, with the rows of A in blocks of k / 2; inputs ``A`` (a sparse matrix) and ``x``."""
    rep = Representation("rep")
    A = MatrixParam(type, 2, rep, name="A")
    x = ImageParam(type, 1, name="x")
    col_idx, row_blocks = Var("col_idx"), Var("row_blocks")
    rep.define(
        A.dense()
        .pack(Columns, Index(col_idx))
        .block(Columns, k // 2, Zero, Length(row_blocks))
        .schedule(row_blocks, 2, ASAP, Zero)
    )

    ip, jp, r = Var("ip"), RDom(0, A.values.extent(1), name="jp"), Var("r")
    i, j = A.inverse_map(ip, jp)
    y = Func("y")
    y[r] = 0
    y[i] += A.values[ip, jp] * x[j]

    y_unloader, Y, x_loader, A_loader = t2s.funcs("y_unloader Y x_loader A_loader")
    y.isolate_consumer(y_unloader).isolate_reduction(Y)
    jpp = Var("jpp")
    Y.isolate_producer(x, x_loader).unroll(ip).tile(jp, jpp, k // 2).unroll(jpp)
    Y.isolate_producer(A.values, A_loader)
    Y.combine_reduction(jpp, SameTarget).combine_reduction(ip, MaybeDifferentTarget)
    y.is_continuous_reduction(ip)
    y.reduction_circuit(LinearArray, levels)
    A_loader.load_structure(col_idx).unroll(ip, jpp)
    row_blocks_loader = Func("row_blocks_loader")
    row_blocks_loader.load_structure(row_blocks, design=y)
    return y


y = spmv()


def main() -> None:
    generator = np.random.default_rng(0)
    dense = generator.standard_normal((400, 300)) * (generator.random((400, 300)) < 0.1)
    a, x = dense.astype(np.float32), generator.standard_normal(300).astype(np.float32)
    result = t2s.simulate(y, {"A": a, "x": x}, device="arria10")
    np.testing.assert_allclose(result.outputs["y"], a @ x, rtol=1e-4, atol=1e-4)
    steps = result.nodes["Y"].firings // 2
    print(f"{np.count_nonzero(a)} values in {steps} steps of 2 machines with 2 multipliers each")
    print(f"{result.cycles} cycles, {steps / result.cycles:.1%} of them steps")


if __name__ == "__main__":
    main()
