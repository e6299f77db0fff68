"""Sums into words of a sparse DRAM: values of the patterns, in the order of the iterations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import t2s
from t2s.sparse import Schedule, Tensor, compile, csr, dense
from tests.capstan.test_simulated_kernels import same

i, j, k, m = (t2s.Var(name) for name in "ijkl")
Summed = tuple[Tensor, dict[str, tuple[int, ...]]]


def by_rows() -> Summed:
    a, x, z = Tensor("A", csr), Tensor("x", dense(1)), Tensor("z", dense(1))
    z[j] = a[i, j] * x[i]
    return z, {"A": (7, 30), "x": (7,)}


def product() -> Summed:
    a, b, c = Tensor("A", csr), Tensor("B", csr), Tensor("C", dense(2))
    c[i, j] = a[i, k] * b[k, j]
    return c, {"A": (5, 6), "B": (6, 20)}


def khatri_rao() -> Summed:
    a, b = Tensor("A", dense(2)), Tensor("B", "sss")
    c, d = Tensor("C", dense(2)), Tensor("D", dense(2))
    a[k, j] = b[i, k, m] * c[i, j] * d[m, j]
    return a, {"B": (4, 3, 5), "C": (4, 6), "D": (5, 6)}


def _inputs(shapes: dict[str, tuple[int, ...]], type: Any) -> dict[str, Any]:
    generator = np.random.default_rng(0)
    scale = 3 if type is np.float32 else 1
    return {
        name: (generator.integers(1, 9, s) / scale * (generator.random(s) < 0.5)).astype(type)
        for name, s in shapes.items()
    }


@pytest.mark.parametrize(
    ("kernel", "outer_par"), [(by_rows, 1), (product, 3)], ids=["by rows", "product"]
)
def test_order(kernel: Callable[[], Summed], outer_par: int) -> None:
    _agree(kernel, outer_par, np.float32, ("native",))


@pytest.mark.slow
@pytest.mark.parametrize("type", [np.int32, np.float32])
@pytest.mark.parametrize("outer_par", [1, 2, 3, 8])
@pytest.mark.parametrize("kernel", [by_rows, product, khatri_rao])
def test_orders(kernel: Callable[[], Summed], outer_par: int, type: Any) -> None:
    _agree(kernel, outer_par, type, ("native", "python"))


def _agree(
    kernel: Callable[[], Summed], outer_par: int, type: Any, engines: tuple[str, ...]
) -> None:
    result, shapes = kernel()
    compiled = compile(result, Schedule().environment(outer_par=outer_par), target="capstan")
    for given in (shapes, {name: (0, *shape[1:]) for name, shape in shapes.items()}):
        if given is not shapes and kernel is not by_rows:
            continue
        inputs = _inputs(given, type)
        stored = compiled.run_patterns(inputs)
        expected = compiled.interpret(inputs, level="notation")
        np.testing.assert_allclose(stored.to_dense(), expected, rtol=1e-5)
        runs = [compiled.simulate(inputs, engine=engine) for engine in engines]
        assert all(same(run.tensor, stored) for run in runs)
        assert len({run.cycles for run in runs}) == 1
