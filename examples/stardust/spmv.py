"""A sparse matrix times a vector for Capstan: 16 rows at a time, 16 entries of each."""

import numpy as np

import t2s
from t2s import sparse

i, j = t2s.variables("i j")
A, x, y = sparse.Tensor("A", "ds"), sparse.Tensor("x", "d"), sparse.Tensor("y", "d")
y[i] = A[i, j] * x[j]
schedule = sparse.Schedule().environment(outer_par=16).parallel(j, "reduction", 16).promote_sums()
kernel = sparse.compile(y, schedule, target="capstan")

if __name__ == "__main__":
    generator = np.random.default_rng(0)
    matrix = generator.integers(1, 9, (20, 30)) * (generator.random((20, 30)) < 0.2)
    vector = generator.integers(0, 5, 30)
    inputs = {"A": matrix.astype(np.int32), "x": vector.astype(np.int32)}
    expected = matrix @ vector
    print(kernel, kernel.memories(), kernel.resources(), *kernel.emit("build/spmv"), sep="\n")
    print((kernel.interpret(inputs) == expected).all())
