"""Functions of numpy, always available, for all types that numpy preserves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from t2s.capability.declare import make_function
from t2s.capability.description import ExternalFunction, LibraryOf

NUMPY = LibraryOf(
    name="numpy", package="numpy", how_to_get="python -m pip install numpy", threaded=True
)

_FLOATS = "float32 float64"
_NUMBERS = "float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64"


def _matmul(x: Any, y: Any, z: Any) -> None:
    np.matmul(x, y, out=z)


def _dot(x: Any, y: Any, s: Any) -> None:
    s[...] = np.add.reduce(x * y, dtype=s.dtype)


def _add(x: Any, y: Any, z: Any) -> None:
    np.add(x, y, out=z)


def _subtract(x: Any, y: Any, z: Any) -> None:
    np.subtract(x, y, out=z)


def _multiply(x: Any, y: Any, z: Any) -> None:
    np.multiply(x, y, out=z)


def _scale(a: Any, x: Any, z: Any) -> None:
    np.multiply(a, x, out=z)


def _divide(x: Any, y: Any, z: Any) -> None:
    with np.errstate(all="ignore"):
        np.divide(x, y, out=z)


def _negative(x: Any, z: Any) -> None:
    np.negative(x, out=z)


def _total(x: Any, z: Any) -> None:
    z[...] = x.reshape(*z.shape, -1).sum(axis=-1, dtype=z.dtype)


def _outer(x: Any, y: Any, z: Any) -> None:
    np.multiply.outer(x, y, out=z)


def _contract(x: Any, y: Any, z: Any) -> None:
    shared = (x.ndim + y.ndim - z.ndim) // 2
    z[...] = np.tensordot(x, y, axes=shared)


def _numpy(
    name: str, statement: str, python: Callable[..., Any], types: str = _NUMBERS
) -> ExternalFunction:
    return make_function(
        name,
        statement,
        python=python,
        library=NUMPY,
        trusted=True,
        types=types,
        strides="any",
    )


FUNCTIONS: Mapping[str, ExternalFunction] = MappingProxyType(
    {
        one.name: one
        for one in (
            _numpy("matmul", "z(i,k) = x(i,j) * y(j,k)", _matmul),
            _numpy("batched", "z(I,i,k) = x(I,i,j) * y(I,j,k)", _matmul),
            _numpy("dot", "s = x(i) * y(i)", _dot),
            _numpy("add", "z(I) = x(I) + y(I)", _add),
            _numpy("subtract", "z(I) = x(I) - y(I)", _subtract),
            _numpy("multiply", "z(I) = x(I) * y(I)", _multiply),
            _numpy("scale", "z(I) = a * x(I)", _scale),
            _numpy("divide", "z(I) = x(I) / y(I)", _divide, _FLOATS),
            _numpy("negative", "z(I) = -x(I)", _negative),
            _numpy("total", "z(I) = x(I,J)", _total),
            _numpy("outer", "z(I,J) = x(I) * y(J)", _outer),
            _numpy("contract", "z(I,J) = x(I,K) * y(K,J)", _contract),
        )
    }
)
"""All functions by name."""
