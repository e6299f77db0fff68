"""Sparse streams into a systolic array: both kinds of design in one graph and one run.

A is stored compressed.  A level scanner finds its entries; a union with all coordinates of a row
puts an empty token where there is none, and as a dense stream, without stops, these become zeros.
That stream takes the place of the unit that loads A in a design of the dense language: a row of
PEs, a column of the result each, which pass A from PE to PE and multiply and add.
"""

from __future__ import annotations

import numpy as np

import t2s
from t2s import Func, ImageParam, RDom, Var, sparse

VALUE = t2s.Float(64)


def systolic(rows: int, inner: int, columns: int) -> t2s.Graph:
    """C = A B on a row of PEs; ``A_loader`` loads A."""
    A, B = ImageParam(VALUE, 2, name="A"), ImageParam(VALUE, 2, name="B")
    i, j, k = Var("i"), Var("j"), RDom(0, inner, name="k")
    C = Func("C")
    C[i, j] = 0.0
    C[i, j] += A[i, k] * B[k, j]
    C.bound(i, 0, rows).bound(j, 0, columns)
    A_loader, B_loader, C_unloader = t2s.funcs("A_loader B_loader C_unloader")
    nest = C.update().unroll(j).isolate_producer(A, A_loader).forward(A_loader, j)
    nest.isolate_producer(B, B_loader).isolate_consumer(C_unloader)
    return t2s.lower(C)


def mixed(rows: int, inner: int, columns: int) -> t2s.Graph:
    """C = A B for A in CSR: inputs ``A_pos``, ``A_crd``, ``A_vals`` and the dense ``B``."""
    s = sparse.Streams("mixed")
    _, row = s.scan_dense(s.root(), rows)
    level = s.tensor("A_pos", t2s.Int(32)), s.tensor("A_crd", t2s.Int(32))
    _, ((entry,), _) = s.union(s.scan_compressed(row, *level), s.scan_dense(row, inner))
    values = s.values_only(s.load(entry, s.tensor("A_vals", VALUE)))
    s.embed(systolic(rows, inner, columns), {"A_loader": values})
    return s.graph()


def arrays(matrix: np.ndarray) -> dict[str, np.ndarray]:
    """The arrays of A."""
    stored = sparse.tensor(matrix, sparse.csr)
    level = stored.levels[1]
    return {
        "A_pos": level["pos"].astype(np.int32),
        "A_crd": level["crd"].astype(np.int32),
        "A_vals": stored.values,
    }


def design() -> t2s.Graph:
    """What ``t2s run`` runs."""
    return mixed(32, 24, 8)


def inputs(seed: int) -> dict[str, np.ndarray]:
    """The arrays for ``design``."""
    generator = np.random.default_rng(seed)
    a = generator.integers(1, 9, (32, 24)) * (generator.random((32, 24)) < 0.2) * 1.0
    return arrays(a) | {"B": generator.integers(-4, 5, (24, 8)) * 1.0}


def main() -> None:
    generator = np.random.default_rng(0)
    a = generator.integers(1, 9, (32, 24)) * (generator.random((32, 24)) < 0.2) * 1.0
    b = generator.integers(-4, 5, (24, 8)) * 1.0
    result = t2s.simulate(mixed(32, 24, 8), arrays(a) | {"B": b})
    np.testing.assert_array_equal(result.outputs["C"], a @ b)
    share = result.nodes["C"].firings / (8 * result.cycles)
    print(f"{result.cycles} cycles, PEs busy in {share:.1%} of them")


if __name__ == "__main__":
    main()
