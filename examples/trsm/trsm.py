"""A triangular solve: ``L U = A`` for U, where L is lower triangular with ones on its diagonal.

Iteration (i, j) takes the found row i of U out of row j: PE (i, j) of a triangular array exists for
j >= i. PA carries row i down to all rows j below it; SL is what is left of row j. The columns c of
A stream through the array, and every PE keeps its element of L for all of them.

Run it with ``python examples/trsm/trsm.py``.
"""

import numpy as np

import t2s
from t2s import Float, Func, ImageParam


def design(size: int = 4, columns: int = 16) -> Func:
    """``U`` of ``size`` rows."""
    c, i, j = t2s.variables("c i j")
    A, U = ImageParam(Float(32), 2, name="A"), Func("U")
    L = ImageParam(Float(32), 2, name="L", shape=(size, size))
    SL, PA, Kept = (Func(name, type=Float(32)) for name in ("SL", "PA", "Kept"))
    select = t2s.select
    Kept[c, i, j] = select(i == 0, 0.0, select(c == 0, L[j, i - 1], Kept[c - 1, i, j]))
    SL[c, i, j] = select(i == 0, A[j, c], SL[c, i - 1, j] - PA[c, i - 1, j] * Kept[c, i, j])
    PA[c, i, j] = select(j == i, SL[c, i, j], PA[c, i, j - 1])
    U[i, c] = SL[c, i, i]
    SL.bound(i, 0, size).bound(j, i, size - i)
    U.bound(i, 0, size).bound(c, 0, columns)

    A_loader, L_loader, U_unloader = t2s.funcs("A_loader L_loader U_unloader")
    SL.space_time_transform(i, j)
    SL.isolate_producer(A, A_loader).isolate_producer(L, L_loader)
    U.isolate_consumer(U_unloader)
    return U


def matrices(size: int, columns: int) -> dict[str, np.ndarray]:
    """A random lower triangle, and random columns."""
    generator = np.random.default_rng(0)
    lower = np.tril(generator.random((size, size), np.float32), -1)
    return {
        "L": lower + np.eye(size, dtype=np.float32),
        "A": generator.random((size, columns), np.float32),
    }


def inputs() -> dict[str, np.ndarray]:
    """Those of ``t2s run``."""
    return matrices(size=4, columns=16)


def main() -> None:
    size, columns = 4, 16
    graph, inputs = design(size, columns).lower(), matrices(size, columns)
    result = t2s.simulate(graph, inputs, device="arria10")
    np.testing.assert_allclose(inputs["L"] @ result.outputs["U"], inputs["A"], rtol=1e-5)
    print(result)


if __name__ == "__main__":
    main()
