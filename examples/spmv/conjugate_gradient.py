"""Conjugate gradients: many products with one matrix, each on the accelerator.

The representation, the graph and the compiled simulation are made once; the vectors change.  The
matrix is that of the heat equation on a square grid, in single precision.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

import t2s
from t2s import Float, Func, ImageParam, RDom, Var
from t2s.representation import (
    Columns,
    Index,
    Length,
    MatrixParam,
    RoundRobin,
    Rows,
    Zero,
    dense_matrix,
    structure,
)


def product(machines: int = 8) -> Func:
    """p = A d, with rows dealt to the machines in turn."""
    col_idx, row_len = Var("col_idx"), Var("row_len")
    chain = (
        dense_matrix()
        .pack(Columns, Length(row_len), Index(col_idx))
        .schedule(Rows, machines, RoundRobin, Zero)
    )
    A = MatrixParam(Float(32), 2, chain, name="A")
    d = ImageParam(Float(32), 1, name="d")
    ip, jp, r = Var("ip"), RDom(0, A.values.extent(1), name="jp"), Var("r")
    i, j = A.inverse_map(ip, jp)
    p = Func("p")
    p[r] = 0
    p[i] += A.values[ip, jp] * d[j]
    p.is_continuous_reduction(ip).is_distinct_reduction(ip)
    return p


p = product()


def heat(side: int) -> sparse.csr_array:
    """The five-point Laplacian of a grid of side x side points, plus the identity."""
    line = sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(side, side))
    square = sparse.kronsum(line, line) + sparse.eye_array(side * side)
    return sparse.csr_array(square.astype(np.float32))


def solve(
    matrix: sparse.csr_array, b: np.ndarray, tolerance: float = 1e-5, engine: str = "native"
) -> tuple[np.ndarray, int, int]:
    """x with A x = b; also the number of products, and their cycles together."""
    p = product()
    graph, arrays = t2s.lower(p, {"A": matrix}), structure(p, {"A": matrix})
    x, residual = np.zeros_like(b), b.copy()
    direction, square = residual.copy(), residual @ residual
    cycles = products = 0
    while np.sqrt(square) > tolerance * np.linalg.norm(b):
        inputs = {**arrays, "d": direction}
        result = t2s.simulate(graph, inputs, device="arria10", engine=engine)
        image, cycles, products = result.outputs["p"], cycles + result.cycles, products + 1
        step = square / (direction @ image)
        x, residual = x + step * direction, residual - step * image
        square, before = residual @ residual, square
        direction = residual + square / before * direction
    return x, products, cycles


def main() -> None:
    matrix = heat(24)
    b = np.random.default_rng(0).standard_normal(matrix.shape[0]).astype(np.float32)
    x, products, cycles = solve(matrix, b)
    print(f"{products} products with {matrix.nnz} values, {cycles // products} cycles each")
    print(f"residual {np.linalg.norm(matrix @ x - b) / np.linalg.norm(b):.1e}")


if __name__ == "__main__":
    main()
