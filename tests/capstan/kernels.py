"""The ten kernels of [Stardust] (tables 3 and 5), with their formats and schedules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import t2s
from t2s.sparse import Schedule, Tensor, csc, csr, dense, scalar

i, j, k, m = (t2s.Var(name) for name in "ijkl")
Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class PaperKernel:
    """A result, its schedule, and the shapes of its operands for extents of i, j, k and l."""

    result: Tensor
    schedule: Schedule
    shapes: Callable[[int, int, int, int], Shapes]


def spmv() -> PaperKernel:
    a, x, y = Tensor("A", csr), Tensor("x", dense(1)), Tensor("y", dense(1))
    y[i] = a[i, j] * x[j]
    schedule = Schedule().parallel(j, "reduction", 16).promote_sums().environment(bp=16)
    return PaperKernel(y, schedule, lambda i, j, *_: {"A": (i, j), "x": (j,)})


def plus3() -> PaperKernel:
    a, b, c, d = (Tensor(name, csr) for name in "ABCD")
    a[i, j] = b[i, j] + (c[i, j] + d[i, j])
    schedule = Schedule().environment(bp=8)
    schedule = schedule.precompute(c[i, j] + d[i, j], Tensor("ws", csr.on_chip), over=(i, j))
    return PaperKernel(a, schedule, lambda i, j, *_: dict.fromkeys("BCD", (i, j)))


def sddmm() -> PaperKernel:
    a, b = Tensor("A", csr), Tensor("B", csr)
    c, d = Tensor("C", dense(2)), Tensor("D", dense(2, (1, 0)))
    a[i, j] = b[i, j] * c[i, k] * d[k, j]
    schedule = Schedule().environment(inner_par=16, outer_par=12)
    schedule = schedule.precompute(b[i, j] * c[i, k] * d[k, j], Tensor("t", scalar), over=())
    schedule = schedule.accelerate(k, "reduction")
    return PaperKernel(a, schedule, lambda i, j, k, _: {"B": (i, j), "C": (i, k), "D": (k, j)})


def mattransmul() -> PaperKernel:
    a, x, y, z = (
        Tensor("A", csc),
        Tensor("x", dense(1)),
        Tensor("y", dense(1)),
        Tensor("z", dense(1)),
    )
    alpha, beta = Tensor("alpha"), Tensor("beta")
    y[i] = alpha * a[j, i] * x[j] + beta * z[i]
    schedule = Schedule().parallel(j, "reduction", 16).promote_sums().environment(bp=16)
    return PaperKernel(
        y,
        schedule,
        lambda i, j, *_: {"A": (j, i), "x": (j,), "z": (i,), "alpha": (), "beta": ()},
    )


def residual() -> PaperKernel:
    a, x, y, b = (
        Tensor("A", csr),
        Tensor("x", dense(1)),
        Tensor("y", dense(1)),
        Tensor("b", dense(1)),
    )
    y[i] = b[i] - a[i, j] * x[j]
    schedule = Schedule().parallel(j, "reduction", 16).promote_sums().environment(bp=16)
    return PaperKernel(y, schedule, lambda i, j, *_: {"A": (i, j), "x": (j,), "b": (i,)})


def ttv() -> PaperKernel:
    a, b, c = Tensor("A", "ss"), Tensor("B", "sss"), Tensor("c", dense(1))
    a[i, j] = b[i, j, k] * c[k]
    schedule = Schedule().accelerate(k, "reduction", 16).promote_sums().communicate(a, j)
    schedule = schedule.environment(bp=16)
    return PaperKernel(a, schedule, lambda i, j, k, _: {"B": (i, j, k), "c": (k,)})


def ttm() -> PaperKernel:
    a, b, c = Tensor("A", "sss"), Tensor("B", "sss"), Tensor("C", dense(2))
    a[i, j, k] = b[i, j, m] * c[k, m]
    schedule = Schedule().accelerate(m, "reduction", 16).promote_sums().communicate(a, j)
    schedule = schedule.environment(bp=12)
    return PaperKernel(a, schedule, lambda i, j, k, n: {"B": (i, j, n), "C": (k, n)})


def mttkrp() -> PaperKernel:
    a, b = Tensor("A", "sd"), Tensor("B", "sss")
    c, d = Tensor("C", dense(2)), Tensor("D", dense(2))
    a[i, j] = b[i, k, m] * c[k, j] * d[m, j]
    schedule = Schedule().parallel(m, "reduction", 16).parallel(k, "reduction", 1)
    schedule = schedule.promote_sums().communicate(a, j).environment(bp=8)
    return PaperKernel(a, schedule, lambda i, j, k, n: {"B": (i, k, n), "C": (k, j), "D": (n, j)})


def innerprod() -> PaperKernel:
    alpha, b, c = Tensor("alpha"), Tensor("B", "dss"), Tensor("C", "dss")
    alpha[...] = b[i, j, k] * c[i, j, k]
    schedule = Schedule().parallel(k, "reduction", 16).parallel(j, "reduction")
    schedule = schedule.parallel(i, "reduction").promote_sums().environment(bp=8, sp=1)
    return PaperKernel(alpha, schedule, lambda i, j, k, _: dict.fromkeys("BC", (i, j, k)))


def plus2() -> PaperKernel:
    a, b, c = (Tensor(name, "dss") for name in "ABC")
    a[i, j, k] = b[i, j, k] + c[i, j, k]
    return PaperKernel(a, Schedule(), lambda i, j, k, _: dict.fromkeys("BC", (i, j, k)))


TEN: dict[str, Callable[[], PaperKernel]] = {
    "SpMV": spmv,
    "Plus3": plus3,
    "SDDMM": sddmm,
    "MatTransMul": mattransmul,
    "Residual": residual,
    "TTV": ttv,
    "TTM": ttm,
    "MTTKRP": mttkrp,
    "InnerProd": innerprod,
    "Plus2": plus2,
}


def random_inputs(shapes: Shapes, density: float, seed: int, kind: str = "int32") -> dict[str, Any]:
    """Dense arrays of small numbers, a part of them zero."""
    generator = np.random.default_rng(seed)
    return {
        name: (generator.integers(1, 9, shape) * (generator.random(shape) < density)).astype(kind)
        for name, shape in shapes.items()
    }
