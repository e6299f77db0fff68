"""The residual of a sparse system for Capstan."""

import numpy as np

import t2s
from t2s import sparse

i, j = t2s.variables("i j")
A, x = sparse.Tensor("A", sparse.csr), sparse.Tensor("x", "d")
y, b = sparse.Tensor("y", "d"), sparse.Tensor("b", "d")
y[i] = b[i] - A[i, j] * x[j]
schedule = sparse.Schedule().environment(outer_par=16).parallel(j, "reduction", 16).promote_sums()
kernel = sparse.compile(y, schedule, target="capstan")

if __name__ == "__main__":
    generator = np.random.default_rng(0)
    matrix = generator.integers(1, 9, (20, 30)) * (generator.random((20, 30)) < 0.2)
    vector, right = generator.integers(0, 5, 30), generator.integers(0, 5, 20)
    inputs = {"A": matrix, "x": vector, "b": right}
    inputs = {name: value.astype(np.int32) for name, value in inputs.items()}
    expected = right - matrix @ vector
    print(kernel, kernel.memories(), kernel.resources(), *kernel.emit("build/residual"), sep="\n")
    print((kernel.interpret(inputs) == expected).all())
