"""The inner product of two sparse tensors for Capstan: scanners in scanners."""

import numpy as np

import t2s
from t2s import sparse

i, j, k = t2s.variables("i j k")
alpha, B, C = sparse.Tensor("alpha"), sparse.Tensor("B", "dss"), sparse.Tensor("C", "dss")
alpha[...] = B[i, j, k] * C[i, j, k]
schedule = sparse.Schedule().environment(outer_par=8, scan_par=1).parallel(k, "reduction", 16)
schedule = schedule.parallel(j, "reduction").parallel(i, "reduction").promote_sums()
kernel = sparse.compile(alpha, schedule, target="capstan")

if __name__ == "__main__":
    generator = np.random.default_rng(0)
    tensor = generator.integers(1, 9, (6, 7, 8)) * (generator.random((6, 7, 8)) < 0.3)
    inputs = {"B": tensor.astype(np.int32), "C": np.roll(tensor, 1, 2).astype(np.int32)}
    expected = (inputs["B"] * inputs["C"]).sum()
    print(kernel, kernel.memories(), kernel.resources(), *kernel.emit("build/innerprod"), sep="\n")
    print((kernel.interpret(inputs) == expected).all())
