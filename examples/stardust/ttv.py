"""A sparse tensor times a vector for Capstan: the result has the structure of its operand."""

import numpy as np

import t2s
from t2s import sparse

i, j, k = t2s.variables("i j k")
A, B, c = sparse.Tensor("A", "ss"), sparse.Tensor("B", "sss"), sparse.Tensor("c", "d")
A[i, j] = B[i, j, k] * c[k]
schedule = sparse.Schedule().environment(outer_par=16).accelerate(k, "reduction", 16)
schedule = schedule.promote_sums().communicate(A, j)
kernel = sparse.compile(A, schedule, target="capstan")

if __name__ == "__main__":
    generator = np.random.default_rng(0)
    tensor = generator.integers(1, 9, (6, 7, 8)) * (generator.random((6, 7, 8)) < 0.2)
    vector = generator.integers(0, 5, 8)
    inputs = {"B": tensor.astype(np.int32), "c": vector.astype(np.int32)}
    expected = tensor @ vector
    print(kernel, kernel.memories(), kernel.resources(), *kernel.emit("build/ttv"), sep="\n")
    print((kernel.interpret(inputs) == expected).all())
