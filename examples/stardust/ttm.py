"""A sparse tensor times a matrix for Capstan: the matrix is read in memory, at coordinates."""

import numpy as np

import t2s
from t2s import sparse

i, j, k, m = t2s.variables("i j k l")
A, B, C = sparse.Tensor("A", "sss"), sparse.Tensor("B", "sss"), sparse.Tensor("C", "dd")
A[i, j, k] = B[i, j, m] * C[k, m]
schedule = sparse.Schedule().environment(outer_par=12).accelerate(m, "reduction", 16)
schedule = schedule.promote_sums().communicate(A, j)
kernel = sparse.compile(A, schedule, target="capstan")

if __name__ == "__main__":
    generator = np.random.default_rng(0)
    tensor = generator.integers(1, 9, (6, 7, 8)) * (generator.random((6, 7, 8)) < 0.2)
    matrix = generator.integers(0, 5, (5, 8))
    inputs = {"B": tensor.astype(np.int32), "C": matrix.astype(np.int32)}
    expected = tensor @ matrix.T
    print(kernel, kernel.memories(), kernel.resources(), *kernel.emit("build/ttm"), sep="\n")
    print((kernel.interpret(inputs) == expected).all())
