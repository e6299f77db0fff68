"""LU decomposition of a batch of matrices on a triangular array of PEs.

``A = L U`` without pivoting. Iteration (k, j) takes column k out of row j: U carries the pivot row
k to all rows j below it, L the factors of row j, and V is what is left. Row k of the array finds
row k of U and L; only PEs with j >= k exist. Batches of matrices stream through: in each step one
element i of a row, for as many matrices as a vector has lanes.

Run it with ``python examples/lu/lu.py``.
"""

import numpy as np

import t2s
from t2s import Float, Func, ImageParam


def design(size: int = 4, batches: int = 4, lanes: int = 4) -> Func:
    """``O``: U on and above the diagonal, L (with ones on it) below; lanes in the last index."""
    b, k, j, i, m = t2s.variables("b k j i m")
    A, O = ImageParam(Float(32), 4, name="A"), Func("O")  # noqa: E741
    P, U, L, V, Z = (Func(name, type=Float(32)) for name in "PULVZ")
    here, above, left = (b, k, j, i, m), (b, k, j - 1, i, m), (b, k, j, i - 1, m)
    before, select = (b, k - 1, j, i, m), t2s.select
    P[here] = select(i >= k, select(k == 0, A[b, j, i, m], V[before]), 0.0)
    U[here] = select(i >= k, select(j == k, P[here], U[above]), 0.0)
    L[here] = select((j == k) | (i < k), 0.0, select(i == k, P[here] / U[above], L[left]))
    V[here] = select((j == k) | (i < k), 0.0, P[here] - L[here] * U[above])
    Z[here] = select(
        i >= k,
        select(j == k, U[here], select(i == k, L[here], 0.0)),
        select(k > 0, Z[before], 0.0),
    )
    O[b, j, i, m] = Z[b, j, j, i, m]
    O.bound(b, 0, batches).bound(j, 0, size).bound(i, 0, size).bound(m, 0, lanes)
    Z.bound(k, 0, size).bound(j, k, size - k)

    A_loader, O_unloader = t2s.funcs("A_loader O_unloader")
    Z.space_time_transform(k, j)
    Z.vload(A).vstore(O).isolate_producer(A, A_loader)
    O.isolate_consumer(O_unloader)
    return O


def matrices(size: int, batches: int, lanes: int) -> dict[str, np.ndarray]:
    """Random matrices with large diagonals, so that no pivoting is needed."""
    values = np.random.default_rng(0).random((batches, size, size, lanes), np.float32)
    return {"A": values + size * np.eye(size, dtype=np.float32)[:, :, np.newaxis]}


def product(o: np.ndarray) -> np.ndarray:
    """``L U`` of each matrix."""
    o = np.moveaxis(o, -1, 1)
    lower = np.tril(o, -1) + np.eye(o.shape[-1], dtype=o.dtype)
    return np.moveaxis(lower @ np.triu(o), 1, -1)


def inputs() -> dict[str, np.ndarray]:
    """Those of ``t2s run``: random matrices without pivots near zero."""
    return matrices(size=4, batches=4, lanes=4)


def main() -> None:
    sizes = {"size": 4, "batches": 4, "lanes": 4}
    graph, inputs = design(**sizes).lower(), matrices(**sizes)
    result = t2s.simulate(graph, inputs, device="arria10")
    np.testing.assert_allclose(product(result.outputs["O"]), inputs["A"], rtol=1e-5)
    print(result)


if __name__ == "__main__":
    main()
