"""A sparse tensor times two matrices for Capstan: a reduction in a reduction."""

import numpy as np

import t2s
from t2s import sparse

i, j, k, m = t2s.variables("i j k l")
A, B = sparse.Tensor("A", "sd"), sparse.Tensor("B", "sss")
C, D = sparse.Tensor("C", "dd"), sparse.Tensor("D", "dd")
A[i, j] = B[i, k, m] * C[k, j] * D[m, j]
schedule = sparse.Schedule().environment(outer_par=8).parallel(m, "reduction", 16)
schedule = schedule.parallel(k, "reduction", 1).promote_sums().communicate(A, j)
kernel = sparse.compile(A, schedule, target="capstan")

if __name__ == "__main__":
    generator = np.random.default_rng(0)
    tensor = generator.integers(1, 9, (6, 7, 8)) * (generator.random((6, 7, 8)) < 0.2)
    left, right = generator.integers(0, 5, (7, 4)), generator.integers(0, 5, (8, 4))
    inputs = {"B": tensor, "C": left, "D": right}
    inputs = {name: value.astype(np.int32) for name, value in inputs.items()}
    expected = np.einsum("ikl,kj,lj->ij", tensor, left, right)
    print(kernel, kernel.memories(), kernel.resources(), *kernel.emit("build/mttkrp"), sep="\n")
    print((kernel.interpret(inputs) == expected).all())
