"""Products and sums of ``scipy.sparse``, on compressed operands without copies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from t2s.capability.declare import make_function
from t2s.capability.description import ExternalFunction, LibraryOf
from t2s.core.sigint import import_deferring_sigint

SCIPY = LibraryOf(name="scipy", package="scipy", how_to_get="python -m pip install scipy")

_TYPES = "float32 float64 int32 int64"


def _shared(tensor: Any) -> Any:
    """The array of scipy that shares the arrays of a tensor in compressed rows or columns."""
    arrays = tensor.levels[1]
    library = import_deferring_sigint("scipy.sparse")
    make = library.csr_array if tensor.format.modes == (0, 1) else library.csc_array
    return make((tensor.values, arrays["crd"], arrays["pos"]), shape=tensor.shape)


def _spmv(x: Any, y: Any, z: Any) -> None:
    z[...] = _shared(x) @ y


def _spmm(x: Any, y: Any, z: Any) -> None:
    z[...] = _shared(x) @ y


def _spgemm(x: Any, y: Any) -> Any:
    return _in_order(_shared(x) @ _shared(y))


def _spadd(x: Any, y: Any) -> Any:
    return _in_order(_shared(x) + _shared(y))


def _in_order(matrix: Any) -> Any:
    matrix.sort_indices()
    return matrix


def _scipy(
    name: str, statement: str, python: Callable[..., Any], formats: dict[str, str]
) -> ExternalFunction:
    return make_function(
        name,
        statement,
        python=python,
        library=SCIPY,
        trusted=True,
        types=_TYPES,
        formats=formats,
        strides="any",
    )


FUNCTIONS: Mapping[str, ExternalFunction] = MappingProxyType(
    {
        one.name: one
        for one in (
            _scipy("spmv", "z(i) = x(i,j) * y(j)", _spmv, {"x": "ds | ds:1,0"}),
            _scipy("spmm", "z(i,k) = x(i,j) * y(j,k)", _spmm, {"x": "ds | ds:1,0"}),
            _scipy(
                "spgemm",
                "z(i,k) = x(i,j) * y(j,k)",
                _spgemm,
                {"x": "ds", "y": "ds", "z": "ds"},
            ),
            _scipy("spadd", "z(i,j) = x(i,j) + y(i,j)", _spadd, {"x": "ds", "y": "ds", "z": "ds"}),
        )
    }
)
"""All functions by name."""
