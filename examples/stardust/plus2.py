"""The sum of two sparse tensors for Capstan: entries are counted, allocated and filled."""

import numpy as np

import t2s
from t2s import sparse

i, j, k = t2s.variables("i j k")
A, B, C = (sparse.Tensor(name, "dss") for name in "ABC")
A[i, j, k] = B[i, j, k] + C[i, j, k]
kernel = sparse.compile(A, target="capstan")

if __name__ == "__main__":
    generator = np.random.default_rng(0)
    tensor = generator.integers(1, 9, (6, 7, 8)) * (generator.random((6, 7, 8)) < 0.3)
    inputs = {"B": tensor.astype(np.int32), "C": np.roll(tensor, 1, 2).astype(np.int32)}
    expected = inputs["B"] + inputs["C"]
    print(kernel, kernel.memories(), kernel.resources(), *kernel.emit("build/plus2"), sep="\n")
    print((kernel.interpret(inputs) == expected).all())
