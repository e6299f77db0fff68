"""QR decomposition of a batch of matrices by modified Gram-Schmidt, with as many lanes as rows.

``A = Q R``. Iteration (i, j) takes the direction of column i out of column j, all rows in the
lanes, and then the dot product of the new columns i + 1 and j, which says how much of one is in the
other. Row i = -1 of the triangle has dot products only. The number that scales column i in
iteration (i, j) comes from the dot product in iteration (i - 1, j): the next row of the triangle
cannot start before this recurrence has gone through multiplication, adder tree and division (or
reciprocal square root), however short the rows are.

Run it with ``python examples/qr/qr.py``.
"""

from dataclasses import dataclass, replace

import numpy as np

import t2s
from t2s import Float, Func, ImageParam, RDom


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """``batch`` matrices of ``rows`` x ``columns``."""

    rows: int
    columns: int
    batch: int


TINY = Sizes(rows=4, columns=4, batch=2)
PUBLISHED = Sizes(rows=128, columns=128, batch=16384)  # T2SP, Arria 10


def design(s: Sizes = TINY) -> tuple[Func, Func]:
    """``Q[b, column, row]`` and ``R[b, row, column]`` of ``A[b, column, row]``."""
    rows, columns, batch = s.rows, s.columns, s.batch
    b, i, j, k, row, column = t2s.variables("b i j k row column")
    lane = RDom(0, rows, name="lane")
    A = ImageParam(Float(32), 3, name="A")
    Old, Pivot, New, Next, X, Square, Inverse, S, Factor = (
        Func(name, type=Float(32))
        for name in ["Old", "Pivot", "New", "Next", "X", "Square", "Inverse", "S", "Factor"]
    )
    select, vector, scalar = t2s.select, (b, i, j, k), (b, i, j)
    first, starts = j == i + 1, i < 0
    # column j, and column i, which travels along the row of the triangle
    Old[vector] = select(starts, A[b, j, k], New[b, i - 1, j, k])
    Pivot[vector] = select(j == i, Old[vector], select(starts, 0.0, Pivot[b, i, j - 1, k]))
    taken = select(starts, 0.0, S[b, i - 1, j]) * Pivot[vector]
    New[vector] = select(j == i, 0.0, Old[vector]) + taken
    # the dot product with column i + 1
    Next[vector] = select(first, New[vector], select(j <= i, 0.0, Next[b, i, j - 1, k]))
    X[scalar] = 0.0
    X[scalar] += Next[b, i, j, lane] * New[b, i, j, lane]
    Square[scalar] = select(first, X[scalar], select(j <= i, 1.0, Square[b, i, j - 1]))
    inverse = select(j <= i, 1.0, Inverse[b, i, j - 1])
    Inverse[scalar] = select(first, t2s.rsqrt(X[scalar]), inverse)
    S[scalar] = select(first, Inverse[scalar], -X[scalar] / Square[scalar])
    Factor[scalar] = select(first, t2s.sqrt(Square[scalar]), Inverse[scalar] * X[scalar])
    S.bound(i, -1, columns + 1).bound(j, t2s.max(i, 0), columns - t2s.max(i, 0))
    Old.bound(k, 0, rows)

    Q, R = t2s.funcs("Q R")
    Q[b, column, row] = New[b, column, column, row]
    R[b, row, column] = select(column < row, 0.0, Factor[b, row - 1, column])
    Q.bound(b, 0, batch).bound(row, 0, rows).bound(column, 0, columns)
    R.bound(b, 0, batch).bound(row, 0, columns).bound(column, 0, columns)

    A_loader, Q_unloader, R_unloader = t2s.funcs("A_loader Q_unloader R_unloader")
    S.isolate_producer(A, A_loader).depth(columns)
    A_loader.depth(2 * columns)  # the next matrix is loaded meanwhile
    Q.isolate_consumer(Q_unloader)
    R.isolate_consumer(R_unloader)
    return Q, R


def main() -> None:
    s = TINY
    a = np.random.default_rng(0).random((s.batch, s.columns, s.rows), np.float32)
    result = t2s.simulate(design(s), {"A": a}, device="arria10")
    q, r = result.outputs["Q"].transpose(0, 2, 1), result.outputs["R"]
    np.testing.assert_allclose(q @ r, a.transpose(0, 2, 1), atol=1e-5)
    np.testing.assert_allclose(q.transpose(0, 2, 1) @ q, [np.eye(s.columns)] * s.batch, atol=1e-4)
    print(result)
    published = (replace(PUBLISHED, batch=count) for count in (1, 5, 6))
    one, five, six = (t2s.cycles(design(sizes), device="arria10") for sizes in published)
    print(f"\n128 x 128: {one:,} cycles for one matrix, {six - five:,} for each further one")


if __name__ == "__main__":
    main()
