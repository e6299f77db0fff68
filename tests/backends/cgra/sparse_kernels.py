"""Sparse kernels of small extents, with random inputs of whole numbers, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import t2s
from t2s import sparse
from t2s.core.ops import Array
from t2s.driver.placement import Placement
from t2s.simulator.report.result import SimResult
from t2s.sparse import Schedule, Tensor, csf, csr, dcsr, dense, make_format

ROW, COLUMN, INNER = t2s.variables("i j k")
COMPRESSED = make_format("s")

Kernel = Callable[[], tuple[Any, dict[str, Array]]]


def whole(seed: int, *shape: int, density: float = 0.5, kind: type = float) -> Array:
    """Whole numbers from -5 to 5, some of them stored."""
    generator = np.random.default_rng(seed)
    found = generator.integers(-5, 6, shape) * (generator.random(shape) < density)
    return np.asarray(found.astype(kind))


def product(kind: Any = csr, vector: Any = None, result: Any = None) -> Tensor:
    """y[i] = A[i, j] * x[j], in formats."""
    A, x = Tensor("A", kind), Tensor("x", dense(1) if vector is None else vector)
    y = Tensor("y", dense(1) if result is None else result)
    y[ROW] = A[ROW, COLUMN] * x[COLUMN]
    return y


def of_product(matrix: Array, vector: Array) -> dict[str, Array]:
    return {"A": matrix, "x": vector}


def _spmv(kind: type = float) -> Any:
    inputs = of_product(whole(1, 6, 7, kind=kind), whole(2, 7, density=1, kind=kind))
    return product(), inputs


def _in_format(kind: Any, vector: Any = None, result: Any = None) -> Any:
    inputs = of_product(whole(3, 6, 7, density=0.3), whole(4, 7))
    return product(kind, vector, result), inputs


def _vectors(result: Any, combine: Callable[[Any, Any], Any]) -> Any:
    a, b, c = Tensor("a", COMPRESSED), Tensor("b", COMPRESSED), Tensor("c", result)
    c[ROW] = combine(a[ROW], b[ROW])
    return c, {"a": whole(5, 12), "b": whole(6, 12)}


def _dot() -> Any:
    a, b, c = Tensor("a", COMPRESSED), Tensor("b", COMPRESSED), Tensor("c", sparse.scalar)
    c[()] = a[ROW] * b[ROW]
    return c, {"a": whole(7, 12), "b": whole(8, 12)}


def _matrices(kind: Any, combine: Callable[[Any, Any], Any]) -> Any:
    a, b, c = Tensor("a", kind), Tensor("b", kind), Tensor("c", kind)
    c[ROW, COLUMN] = combine(a[ROW, COLUMN], b[ROW, COLUMN])
    return c, {"a": whole(9, 5, 6), "b": whole(10, 5, 6)}


def _residual() -> Any:
    A, x = Tensor("A", csr), Tensor("x", dense(1))
    z, y = Tensor("z", dense(1)), Tensor("y", dense(1))
    y[ROW] = z[ROW] - A[ROW, COLUMN] * x[COLUMN]
    return y, {"A": whole(11, 5, 6), "x": whole(12, 6), "z": whole(13, 5, density=1)}


def _three_levels() -> Any:
    A, x, y = Tensor("A", csf(3)), Tensor("x", dense(1)), Tensor("y", dense(2))
    y[ROW, COLUMN] = A[ROW, COLUMN, INNER] * x[INNER]
    return y, {"A": whole(14, 3, 4, 5, density=0.3), "x": whole(15, 5, density=1)}


def _six_levels() -> Any:
    A, y = Tensor("A", csf(6)), Tensor("y", sparse.scalar)
    y[()] = A[tuple(t2s.variables("a b c d e f"))]
    return y, {"A": whole(18, 2, 3, 1, 2, 3, 2, density=0.3)}


def _inner_product() -> Any:
    A, B, C = Tensor("A", csr), Tensor("B", sparse.csc), Tensor("C", dense(2))
    C[ROW, COLUMN] = A[ROW, INNER] * B[INNER, COLUMN]
    kernel = sparse.compile(C, Schedule().reorder(ROW, COLUMN, INNER))
    return kernel, {"A": whole(16, 4, 5), "B": whole(17, 5, 3)}


def _parsed(text: str, result: str, kind: str, *shape: int) -> Any:
    """Index notation whose operands a, b, ... all have one format and one shape."""
    names = sorted({letter for letter in text if letter in "abcde"})
    formats = {**dict.fromkeys(names, kind), "y": result}
    inputs = {n: whole(20 + at, *shape, density=0.6) for at, n in enumerate(names)}
    return sparse.compile(sparse.parse(text, formats)), inputs


KERNELS: dict[str, Kernel] = {
    "spmv": _spmv,
    "spmv of int64": lambda: _spmv(np.int64),
    "spmv of int32": lambda: _spmv(np.int32),
    "dcsr": lambda: _in_format(dcsr),
    "dcsr to a sparse vector": lambda: _in_format(dcsr, result=COMPRESSED),
    "sparse vector": lambda: _in_format(csr, COMPRESSED),
    "linked lists": lambda: _in_format(make_format("dl")),
    "dense": lambda: _in_format(dense(2)),
    "dot": _dot,
    "product of vectors": lambda: _vectors(COMPRESSED, lambda a, b: a * b),
    "sum of vectors": lambda: _vectors(COMPRESSED, lambda a, b: a + b),
    "sum to a dense vector": lambda: _vectors(dense(1), lambda a, b: a + b),
    "maximum": lambda: _vectors(dense(1), sparse.maximum),
    "product of matrices": lambda: _matrices(csr, lambda a, b: a * b),
    "sum of matrices": lambda: _matrices(csr, lambda a, b: a + b),
    "difference of dcsr": lambda: _matrices(dcsr, lambda a, b: a - b),
    "residual": _residual,
    "three levels": _three_levels,
    "inner product": _inner_product,
    "six levels": _six_levels,
    "three factors": lambda: _parsed("y(i) = a(i)*b(i)*c(i)", "s", "s", 12),
    "five factors": lambda: _parsed("y(i) = a(i)*b(i)*c(i)*d(i)*e(i)", "d", "s", 12),
    "three terms": lambda: _parsed("y(i) = a(i)+b(i)+c(i)", "s", "s", 12),
    "four terms": lambda: _parsed("y(i) = a(i)+b(i)+c(i)+d(i)", "d", "s", 12),
    "product and sum": lambda: _parsed("y(i) = a(i)*b(i)+c(i)", "s", "s", 12),
    "three matrices": lambda: _parsed("y(i,j) = a(i,j)+b(i,j)+c(i,j)", "ds", "ds", 4, 5),
    "three dcsr": lambda: _parsed("y(i,j) = a(i,j)+b(i,j)+c(i,j)", "ss", "ss", 4, 5),
}


def placed(name: str) -> tuple[Placement, Any, dict[str, Array]]:
    """A kernel on the smallest fabric, the kernel, and its inputs."""
    design, inputs = KERNELS[name]()
    return t2s.cgra.place(design, inputs), design, inputs


def agrees(found: Placement, design: Any, inputs: dict[str, Array]) -> int:
    """Run a placement in all ways: values of the design, and the same cycles; returns these."""
    wanted = t2s.interpret(design, inputs)
    stepped = found.run(inputs)
    for engine in ("python", "native"):
        result = t2s.simulate(found, inputs, engine=engine, progress=False)
        np.testing.assert_array_equal(result.output, wanted)
        (stage,) = result.stages
        assert isinstance(stage, SimResult)
        assert stage.cycles == stepped.cycles, engine
        for name, array in stage.outputs.items():
            np.testing.assert_array_equal(stepped.outputs[name], array)
    return stepped.cycles
