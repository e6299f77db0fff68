"""Programs of uniform recurrences, and what they compute in plain numpy code.

The numpy code rounds in the same order as the programs, so results are equal bit for bit, unless
a function says otherwise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import t2s
from t2s import Float, Func, ImageParam, RDom, Type, UInt, Var

F32 = Float(32)
PROBABILITIES = ("alpha_match", "beta_match", "alpha_gap", "beta_gap", "delta", "eta", "zeta")


def recurrences(names: str, type: Type = F32) -> tuple[Func, ...]:
    """Several Funcs with a declared type."""
    return tuple(Func(name, type=type) for name in names.split())


def prefix_sums(count: int, type: Type = F32) -> Func:
    """``S[i] = x[0] + ... + x[i]``; the output is the recurrence itself."""
    x, i, S = ImageParam(type, 1, name="x"), Var("i"), Func("S", type=type)
    S[i] = t2s.select(i == 0, 0, S[i - 1]) + x[i]
    return S.bound(i, 0, count)


def convolution(outputs: int, taps: int, type: Type = F32) -> Func:
    """``y[i]`` = sum over q of ``x[q + i] * w[q]``."""
    x, w = ImageParam(type, 1, name="x"), ImageParam(type, 1, name="w")
    q, i = t2s.variables("q i")
    Z, y = Func("Z", type=type), Func("y")
    Z[q, i] = t2s.select(q == 0, 0, Z[q - 1, i]) + x[q + i] * w[q]
    y[i] = Z[taps - 1, i]
    Z.bound(q, 0, taps)
    return y.bound(i, 0, outputs)


def pair_hmm(reads: int, haplotypes: int, read_length: int, haplotype_length: int) -> Func:
    """The forward algorithm of a pair hidden Markov model, for every read and haplotype."""
    r, h, i, j = t2s.variables("r h i j")
    base_r, base_h = ImageParam(UInt(8), 2, name="R"), ImageParam(UInt(8), 2, name="H")
    alpha_match, beta_match, alpha_gap, beta_gap, delta, eta, zeta = (
        ImageParam(F32, 2, name=name) for name in PROBABILITIES
    )
    M, I, D, Sum = recurrences("M I D Sum")  # noqa: E741
    alpha, beta, out = t2s.funcs("alpha beta out")
    same = base_r[r, i] == base_h[h, j]
    alpha[r, h, i, j] = t2s.select(same, alpha_match[r, i], alpha_gap[r, i])
    beta[r, h, i, j] = t2s.select(same, beta_match[r, i], beta_gap[r, i])
    edge = (i == 0) | (j == 0)
    M[r, h, i, j] = t2s.select(
        edge,
        0.0,
        alpha[r, h, i, j] * M[r, h, i - 1, j - 1]
        + beta[r, h, i, j] * (I[r, h, i - 1, j - 1] + D[r, h, i - 1, j - 1]),
    )
    I[r, h, i, j] = t2s.select(
        edge, 0.0, delta[r, i] * M[r, h, i - 1, j] + eta[r, i] * I[r, h, i - 1, j]
    )
    D[r, h, i, j] = t2s.select(
        i == 0,
        1.0 / (haplotype_length - 1),
        t2s.select(j == 0, 0.0, zeta[r, i] * M[r, h, i, j - 1] + eta[r, i] * D[r, h, i, j - 1]),
    )
    before = t2s.select(j == 0, 0.0, Sum[r, h, i, j - 1])
    Sum[r, h, i, j] = before + (M[r, h, i, j] + I[r, h, i, j])
    out[r, h] = Sum[r, h, read_length - 1, haplotype_length - 1]
    M.bound(i, 0, read_length).bound(j, 0, haplotype_length)
    return out.bound(r, 0, reads).bound(h, 0, haplotypes)


def pair_hmm_inputs(*sizes: int, seed: int = 0) -> dict[str, Any]:
    """Random bases and probabilities; ``sizes`` are those of ``pair_hmm``."""
    reads, haplotypes, read_length, haplotype_length = sizes
    random = np.random.default_rng(seed)
    inputs: dict[str, Any] = {
        name: random.random((reads, read_length), np.float32) / 2 for name in PROBABILITIES
    }
    inputs["R"] = random.integers(0, 4, (reads, read_length), np.uint8)
    inputs["H"] = random.integers(0, 4, (haplotypes, haplotype_length), np.uint8)
    return inputs


def pair_hmm_of(inputs: dict[str, Any]) -> Any:
    """Plain loops for ``pair_hmm``."""
    (reads, rows), (haplotypes, columns) = inputs["R"].shape, inputs["H"].shape
    one = np.float32(1.0 / (columns - 1))
    out = np.zeros((reads, haplotypes), np.float32)
    for r, h in np.ndindex(reads, haplotypes):
        M, I, D = np.zeros((3, rows, columns), np.float32)  # noqa: E741
        D[0] = one
        for i, j in np.ndindex(rows, columns):
            match = "match" if inputs["R"][r, i] == inputs["H"][h, j] else "gap"
            alpha, beta = inputs[f"alpha_{match}"][r, i], inputs[f"beta_{match}"][r, i]
            if i and j:
                M[i, j] = alpha * M[i - 1, j - 1] + beta * (I[i - 1, j - 1] + D[i - 1, j - 1])
                I[i, j] = inputs["delta"][r, i] * M[i - 1, j] + inputs["eta"][r, i] * I[i - 1, j]
                D[i, j] = inputs["zeta"][r, i] * M[i, j - 1] + inputs["eta"][r, i] * D[i, j - 1]
        for j in range(columns):
            out[r, h] += M[-1, j] + I[-1, j]
    return out


def lu(batch: int, size: int) -> Func:
    """``O`` holds U on and above the diagonal, and L (with a unit diagonal) below, of ``A = L U``.

    Iteration (k, j) eliminates column k from row j: the pivot row k travels to all rows j below it.
    """
    b, k, j, i = t2s.variables("b k j i")
    A, O = ImageParam(F32, 3, name="A"), Func("O")  # noqa: E741
    P, U, L, V, Z = recurrences("P U L V Z")
    here = (b, k, j, i)
    above = (b, k, j - 1, i)
    select = t2s.select
    P[here] = select(i >= k, select(k == 0, A[b, j, i], V[b, k - 1, j, i]), 0.0)
    U[here] = select(i >= k, select(j == k, P[here], U[above]), 0.0)
    L[here] = select((j == k) | (i < k), 0.0, select(i == k, P[here] / U[above], L[b, k, j, i - 1]))
    V[here] = select((j == k) | (i < k), 0.0, P[here] - L[here] * U[above])
    Z[here] = select(
        i >= k,
        select(j == k, U[here], select(i == k, L[here], 0.0)),
        select(k > 0, Z[b, k - 1, j, i], 0.0),
    )
    O[b, j, i] = Z[b, j, j, i]
    O.bound(b, 0, batch).bound(j, 0, size).bound(i, 0, size)
    Z.bound(k, 0, size).bound(j, k, size - k)
    return O


def well_conditioned(*shape: int, seed: int = 0) -> Any:
    """Random matrices with large diagonals."""
    values = np.random.default_rng(seed).random(shape, np.float32)
    return values + shape[-1] * np.eye(shape[-1], dtype=np.float32)


def lu_of(a: Any) -> Any:
    """Plain elimination for ``lu``."""
    a = a.copy()
    for matrix in a:
        for k in range(len(matrix)):
            for j in range(k + 1, len(matrix)):
                matrix[j, k] /= matrix[k, k]
                matrix[j, k + 1 :] -= matrix[j, k] * matrix[k, k + 1 :]
    return a


def trsm(size: int, columns: int) -> Func:
    """``U`` with ``L U = A`` for a lower triangular L whose diagonal is 1."""
    c, i, j = t2s.variables("c i j")
    A, U = ImageParam(F32, 2, name="A"), Func("U")
    L = ImageParam(F32, 2, name="L", shape=(size, size))
    SL, PA = recurrences("SL PA")
    SL[c, i, j] = t2s.select(i == 0, A[j, c], SL[c, i - 1, j] - PA[c, i - 1, j] * L[j, i - 1])
    PA[c, i, j] = t2s.select(j == i, SL[c, i, j], PA[c, i, j - 1])
    U[i, c] = SL[c, i, i]
    SL.bound(i, 0, size).bound(j, i, size - i)
    return U.bound(i, 0, size).bound(c, 0, columns)


def trsm_of(lower: Any, a: Any) -> Any:
    """Plain forward substitution for ``trsm``."""
    u = a.copy()
    for i in range(len(u)):
        for j in range(i + 1, len(u)):
            u[j] -= u[i] * lower[j, i]
    return u


def qr(rows: int, columns: int) -> tuple[Func, Func]:
    """``Q`` and ``R`` with ``Q R = A`` by modified Gram-Schmidt, for a matrix ``A[k, j]``.

    Iteration (i, j) removes the direction of column i from column j, for all rows k in the lanes,
    and takes the product of the new columns i + 1 and j.  Row i = -1 has only the products.  Equal
    to numpy's up to rounding.
    """
    i, j, k = t2s.variables("i j k")
    row, column = t2s.variables("row column")
    kr = RDom(0, rows, name="kr")
    A = ImageParam(F32, 2, name="A")
    Old, Pivot, New, Next, X, Square, Inverse, S = recurrences(
        "Old Pivot New Next X Square Inverse S"
    )
    Q, R = t2s.funcs("Q R")
    select = t2s.select
    first = j == i + 1
    Old[i, j, k] = select(i < 0, select(j < 0, 0.0, A[k, j]), New[i - 1, j, k])
    Pivot[i, j, k] = select(j == i, Old[i, j, k], Pivot[i, j - 1, k])
    New[i, j, k] = select(j == i, 0.0, Old[i, j, k]) + select(
        i < 0, 0.0, S[i - 1, j] * Pivot[i, j, k]
    )
    Next[i, j, k] = select(first, New[i, j, k], select(j <= i, 0.0, Next[i, j - 1, k]))
    X[i, j] = 0.0
    X[i, j] += Next[i, j, kr] * New[i, j, kr]
    Square[i, j] = select(first, X[i, j], select(j <= i, 1.0, Square[i, j - 1]))
    Inverse[i, j] = select(first, 1.0 / t2s.sqrt(X[i, j]), select(j <= i, 1.0, Inverse[i, j - 1]))
    S[i, j] = select(first, Inverse[i, j], -X[i, j] / Square[i, j])
    S.bound(i, -1, columns + 1).bound(j, i, columns - i)
    Old.bound(k, 0, rows)
    Q[row, column] = New[column, column, row]
    R[row, column] = select(
        column < row,
        0.0,
        select(
            column == row,
            t2s.sqrt(Square[row - 1, column]),
            Inverse[row - 1, column] * X[row - 1, column],
        ),
    )
    Q.bound(row, 0, rows).bound(column, 0, columns)
    R.bound(row, 0, columns).bound(column, 0, columns)
    return Q, R
