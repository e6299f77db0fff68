"""ExTensor's stream coordinator [SAM, sec. 6.5].

A coordinator is a sequencer, two scanners, an intersection and two data storages.  The sequencer
is two repeaters: here they bring every row of B to every row of C.  The scanners skip: the
intersection tells each of them the next coordinate of the other side, so that it leaves out what
has no partner, and the storages are the arrays behind them.  What comes out are the pairs of values
at common coordinates; a multiplier and a reducer behind it make X(i,j) = B(i,k) C(j,k) of them.
"""

from __future__ import annotations

import numpy as np

import t2s
from t2s import sparse

INDEX, VALUE = t2s.Int(32), t2s.Float(64)


def coordinator(rows: int, columns: int, *, skipping: bool = True, lag: int = 8) -> t2s.Graph:
    """X = B C' of ``rows`` x ``columns``, dense; B and C have dense rows of compressed columns.

    Inputs ``B_pos``, ``B_crd``, ``B_vals`` and the same of C; ``lag`` is how far scanners are ahead
    of the intersection.
    """
    s = sparse.Streams("coordinator")
    level = {
        name: (s.tensor(f"{name}_pos", INDEX), s.tensor(f"{name}_crd", INDEX)) for name in "BC"
    }
    i, row = s.scan_dense(s.root(), rows)
    j, other = s.scan_dense(s.repeat(i, s.root()), columns)
    row = s.repeat(j, row)  # the sequencer: row i of B and row j of C, for all i and j
    if skipping:
        _, refs = s.intersect_skipping((row, *level["B"]), (other, *level["C"]), lag=lag)
    else:
        sides = [s.scan_compressed(row, *level["B"]), s.scan_compressed(other, *level["C"])]
        _, ((left,), (right,)) = s.intersect(*sides)
        refs = left, right
    storages = [
        s.load(ref, s.tensor(f"{name}_vals", VALUE)) for ref, name in zip(refs, "BC", strict=True)
    ]
    products = s.compute(sparse.Op.MULTIPLY, *storages)
    sums = s.reduce(products, empty=sparse.EmptyFiber.ZERO, outer=j)
    s.write_values(sums, s.output("X", VALUE))
    return s.graph()


def arrays(name: str, matrix: np.ndarray) -> dict[str, np.ndarray]:
    """The arrays of a matrix in CSR, by the names of the graph."""
    stored = sparse.tensor(matrix, sparse.csr)
    level = stored.levels[1]
    return {
        f"{name}_pos": level["pos"].astype(np.int32),
        f"{name}_crd": level["crd"].astype(np.int32),
        f"{name}_vals": stored.values,
    }


def runs(rows: int, columns: int, length: int, seed: int) -> np.ndarray:
    """A matrix whose rows have their entries in runs, at random places."""
    generator = np.random.default_rng(seed)
    made = np.zeros((rows, columns))
    for row in made:
        for start in generator.integers(0, columns - length, 2):
            row[start : start + length] = generator.integers(1, 9, length)
    return made


def design() -> t2s.Graph:
    """What ``t2s run`` runs."""
    return coordinator(6, 5)


def inputs(seed: int) -> dict[str, np.ndarray]:
    """The arrays for ``design``."""
    return arrays("B", runs(6, 100, 9, seed)) | arrays("C", runs(5, 100, 9, seed + 1))


def main() -> None:
    b, c = runs(20, 400, 30, 1), runs(16, 400, 30, 2)
    given = arrays("B", b) | arrays("C", c)
    for skipping in (False, True):
        result = t2s.simulate(coordinator(20, 16, skipping=skipping), given)
        np.testing.assert_array_equal(result.outputs["X"].reshape(20, 16), b @ c.T)
        print(f"{'with' if skipping else 'without'} skipping: {result.cycles} cycles")


if __name__ == "__main__":
    main()
