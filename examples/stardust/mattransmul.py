"""A transposed sparse matrix times a vector, and a vector, for Capstan."""

import numpy as np

import t2s
from t2s import sparse

i, j = t2s.variables("i j")
A, x = sparse.Tensor("A", sparse.csc), sparse.Tensor("x", "d")
y, z = sparse.Tensor("y", "d"), sparse.Tensor("z", "d")
alpha, beta = sparse.Tensor("alpha"), sparse.Tensor("beta")
y[i] = alpha * A[j, i] * x[j] + beta * z[i]
schedule = sparse.Schedule().environment(outer_par=16).parallel(j, "reduction", 16).promote_sums()
kernel = sparse.compile(y, schedule, target="capstan")

if __name__ == "__main__":
    generator = np.random.default_rng(0)
    matrix = generator.integers(1, 9, (20, 30)) * (generator.random((20, 30)) < 0.2)
    vector, tail = generator.integers(0, 5, 20), generator.integers(0, 5, 30)
    inputs = {"A": matrix, "x": vector, "z": tail, "alpha": np.array(2), "beta": np.array(3)}
    inputs = {name: value.astype(np.int32) for name, value in inputs.items()}
    expected = 2 * matrix.T @ vector + 3 * tail
    print(
        kernel, kernel.memories(), kernel.resources(), *kernel.emit("build/mattransmul"), sep="\n"
    )
    print((kernel.interpret(inputs) == expected).all())
