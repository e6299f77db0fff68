"""Sparse matrix-vector product on four memory channels: rows as jobs for four machines.

Rows are packed and dealt to the machine that is free first (CISR).  A decoder repeats that schedule
from the row lengths alone.  Two fused accumulators take two streams of products each.
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
    MatrixParam,
    Policy,
    Representation,
    Rows,
    Zero,
)

FLOAT = Float(32)


def spmv(
    machines: int = 4,
    type: Type = FLOAT,
    fused: int = 2,
    policy: Policy = ASAP,
    banks: int | None = None,
) -> Func:
    """y = A x, with A in CISR; inputs ``A`` (a sparse matrix) and ``x``.

    Every multiplier has a copy of x, or all share one in ``banks``.
    """
    CISR = Representation("CISR")
    A = MatrixParam(type, 2, CISR, name="A")
    x = ImageParam(type, 1, name="x")
    col_idx, row_len = Var("col_idx"), Var("row_len")
    CISR.define(
        A.dense()
        .pack(Columns, Length(row_len), Index(col_idx))
        .schedule(Rows, machines, policy, Zero)
    )

    ip, jp, r = Var("ip"), RDom(0, A.values.extent(1), name="jp"), Var("r")
    i, j = A.inverse_map(ip, jp)
    y = Func("y")
    y[r] = 0
    y[i] += A.values[ip, jp] * x[j]

    multiplier, y_unloader = t2s.funcs("multiplier y_unloader")
    y.isolate_producer(A.values[ip, jp] * x[j], multiplier).isolate_consumer(y_unloader)
    A_loader, x_loader, x_feeder = t2s.funcs("A_loader x_loader x_feeder")
    multiplier.isolate_producer(A.values, A_loader)
    multiplier.isolate_producer_chain(x, x_loader, x_feeder)

    A_loader.load_structure(row_len, col_idx).unroll(ip)
    x_feeder.buffer(x, banks=banks)
    multiplier.unroll(ip)
    y.is_continuous_reduction(ip).is_distinct_reduction(ip)
    if fused > 1:
        ipp = Var("ipp")
        y.tile(ip, ipp, fused).unroll(ip)
    y_unloader.buffer(y)
    return y


y = spmv()


def main() -> None:
    generator = np.random.default_rng(0)
    dense = generator.standard_normal((400, 300)) * (generator.random((400, 300)) < 0.1)
    a, x = dense.astype(np.float32), generator.standard_normal(300).astype(np.float32)
    result = t2s.simulate(y, {"A": a, "x": x}, device="arria10")
    np.testing.assert_allclose(result.outputs["y"], a @ x, rtol=1e-4, atol=1e-4)
    steps = result.nodes["multiplier"].firings // 4
    print(f"{np.count_nonzero(a)} values in {steps} steps of 4 machines")
    print(f"{result.cycles} cycles, {steps / result.cycles:.1%} of them steps")


if __name__ == "__main__":
    main()
