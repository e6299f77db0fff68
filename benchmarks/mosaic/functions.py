"""The functions of [Mosaic, Table 5]: descriptions over numpy, whatever libraries are there.

The counts are about descriptions.  Nine functions are those of CBLAS, a second and a third dot and
matrix product under other names, a second vector add that overwrites, and an add of eight elements.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from t2s import external


def _axpy(x: Any, y: Any) -> None:
    x += y


def _add(x: Any, y: Any, z: Any) -> None:
    np.add(x, y, out=z)


def _dot(x: Any, y: Any) -> Any:
    return np.add.reduce(x * y, dtype=x.dtype)


def _gemm(x: Any, y: Any, z: Any) -> None:
    z[...] = x @ y


def _eight(x: Any, y: Any, z: Any) -> None:
    assert x.shape == y.shape == z.shape == (8,)
    np.add(x, y, out=z)


def described(name: str, statement: str, python: Any, **said: Any) -> external.ExternalFunction:
    """A function of numpy; its claim is checked once, in ``test_checks.py``."""
    said = {"types": "float32 float64", "strides": "any"} | said
    return external.make_function(name, statement, python=python, trusted=True, **said)


GEMM = "z(i,k) = x(i,j) * y(j,k)"
saxpy = described("saxpy", "x(i) = x(i) + y(i)", _axpy)
sdot = described("sdot", "s = x(i) * y(i)", _dot)
sgemm = described("sgemm", GEMM, _gemm)
add8 = described("add8", "z(i) = x(i) + y(i) when i == 8", _eight)
THREE = (saxpy, sdot, sgemm)
NINE = (
    *THREE,
    described("mkl_dot", "s = x(i) * y(i)", _dot),
    described("mkl_gemm", GEMM, _gemm),
    described("gsl_dot", "s = x(i) * y(i)", _dot),
    described("gsl_gemm", GEMM, _gemm),
    described("gsl_add", "x(i) = x(i) + y(i)", _axpy),
    add8,
)
