"""A sampled product for Capstan: rows of C and columns of D on chip, a reduction for each entry."""

import numpy as np

import t2s
from t2s import sparse

i, j, k = t2s.variables("i j k")
A, B = sparse.Tensor("A", sparse.csr), sparse.Tensor("B", sparse.csr)
C, D = sparse.Tensor("C", "dd"), sparse.Tensor("D", "dd:1,0")
A[i, j] = B[i, j] * C[i, k] * D[k, j]
schedule = sparse.Schedule().environment(outer_par=12, inner_par=16).accelerate(k, "reduction")
kernel = sparse.compile(A, schedule, target="capstan")

if __name__ == "__main__":
    generator = np.random.default_rng(0)
    sampled = generator.integers(1, 9, (6, 8)) * (generator.random((6, 8)) < 0.3)
    inputs = {"B": sampled, "C": generator.integers(0, 5, (6, 20)), "D": np.ones((20, 8), int)}
    inputs = {name: value.astype(np.int32) for name, value in inputs.items()}
    print(kernel, kernel.memories(), kernel.resources(), *kernel.emit("build/sddmm"), sep="\n")
    print((kernel.interpret(inputs) == sampled * (inputs["C"] @ inputs["D"])).all())
