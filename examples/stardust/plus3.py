"""The sum of three sparse matrices for Capstan: two of them first, into a workspace on chip."""

import numpy as np

import t2s
from t2s import sparse

i, j = t2s.variables("i j")
A, B, C, D = (sparse.Tensor(name, sparse.csr) for name in "ABCD")
A[i, j] = B[i, j] + (C[i, j] + D[i, j])
workspace = sparse.Tensor("ws", sparse.csr.on_chip)
schedule = sparse.Schedule().environment(outer_par=8)
schedule = schedule.precompute(C[i, j] + D[i, j], workspace, over=(i, j))
kernel = sparse.compile(A, schedule, target="capstan")

if __name__ == "__main__":
    generator = np.random.default_rng(0)
    matrix = generator.integers(1, 9, (12, 16)) * (generator.random((12, 16)) < 0.2)
    matrix = matrix.astype(np.int32)
    inputs = {"B": matrix, "C": np.roll(matrix, 1, 1), "D": np.roll(matrix, 2, 1)}
    expected = sum(inputs.values())
    print(kernel, kernel.memories(), kernel.resources(), *kernel.emit("build/plus3"), sep="\n")
    print((kernel.interpret(inputs) == expected).all())
