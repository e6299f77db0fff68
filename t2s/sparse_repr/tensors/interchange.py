"""Tensors of other libraries: scipy.sparse, pydata/sparse and numpy, without copies where possible.

The libraries are imported only where a result is made; objects are recognised by what they have.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.sparse_repr.formats import Format, coo, csc, csr, dense
from t2s.sparse_repr.tensors.tensor import (
    SparseTensor,
    from_coordinates,
    from_dense,
    from_levels,
)

_STORED = {"csr": csr, "csc": csc}


def tensor(value: Any, format: Format | None = None) -> SparseTensor:
    """A tensor of a ``SparseTensor``, a scipy.sparse or pydata/sparse object, or a numpy array.

    Without ``format`` the tensor stays as it is stored: CSR and CSC arrays of scipy are shared, not
    copied; other sparse objects become COO, and arrays dense.
    """
    made = _as_stored(value, format)
    return made if format is None else made.convert(format)


def filled_tensor(value: Any, fill: float | int) -> SparseTensor:
    """The tensor of an input in which ``fill`` is the value where nothing is stored.

    An array says all its values; of anything else what is not stored counts.
    """
    made = tensor(value)
    if made.fill == fill:
        return made
    if made.dtype.kind in "iub" and not float(fill).is_integer():
        values = made.values.astype(np.float64)
        made = SparseTensor(made.shape, made.format, made.levels, values, fill=made.fill)
    if isinstance(value, SparseTensor) and any(level.full for level in made.format.levels[-1:]):
        table, values = made.coordinates()
        kept = values != made.fill
        return from_coordinates(table[kept], values[kept], made.shape, made.format, fill=fill)
    return SparseTensor(made.shape, made.format, made.levels, made.values, fill=fill)


def _as_stored(value: Any, format: Format | None) -> SparseTensor:
    if isinstance(value, SparseTensor):
        return value
    _check_fill(getattr(value, "fill_value", 0))
    kind = getattr(value, "format", None)
    if kind in _STORED and hasattr(value, "indptr"):
        arrays = {"pos": value.indptr, "crd": value.indices}
        return from_levels(value.shape, _STORED[kind], ({}, arrays), value.data)
    if hasattr(value, "tocoo"):
        parts = value.tocoo()
        table = np.stack([np.asarray(column) for column in parts.coords], axis=1)
        return from_coordinates(table, parts.data, value.shape, format or coo(len(value.shape)))
    if hasattr(value, "coords") and hasattr(value, "fill_value"):
        table = np.asarray(value.coords).T
        return from_coordinates(table, value.data, value.shape, format or coo(len(value.shape)))
    if hasattr(value, "todense") and hasattr(value, "to_coo"):
        return _as_stored(value.to_coo(), format)
    array = np.asarray(value)
    if array.dtype.kind == "c":
        raise UserError(
            f"values of type {array.dtype} cannot be computed on streams",
            location=user_location(),
            expected="real numbers",
        )
    if array.dtype.kind not in "iufb":
        raise UserError(
            f"a {type(value).__name__} is not a tensor",
            location=user_location(),
            expected="a SparseTensor, a sparse object of scipy or pydata/sparse, or an array",
        )
    if format is None:
        values = np.ascontiguousarray(array).reshape(-1)
        return SparseTensor(array.shape, dense(array.ndim), ({},) * array.ndim, values)
    return from_dense(array, format)


def _check_fill(fill: Any) -> None:
    if fill != 0:
        raise UserError(
            "a sparse tensor leaves out zeros",
            location=user_location(),
            expected="fill_value 0",
            given=f"fill_value {fill}",
        )


def to_scipy(value: SparseTensor) -> Any:
    """A scipy.sparse array: CSR and CSC share their arrays, anything else becomes COO."""
    sparse: Any = library("scipy.sparse", "a tensor of scipy")
    if value.format in (csr, csc):
        make = sparse.csr_array if value.format == csr else sparse.csc_array
        arrays = value.levels[1]
        return make((value.values, arrays["crd"], arrays["pos"]), shape=value.shape)
    table, values = value.coordinates()
    return sparse.coo_array((values, tuple(table.T)), shape=value.shape)


def to_pydata(value: SparseTensor) -> Any:
    """A ``sparse.COO`` of pydata/sparse."""
    sparse: Any = library("sparse", "a tensor of pydata/sparse")
    table, values = value.coordinates()
    return sparse.COO(table.T, values, shape=value.shape)


def library(name: str, purpose: str) -> Any:
    """A module that t2s does not need otherwise; raises ``UserError`` if it is not installed."""
    package = name.split(".")[0]
    try:
        return import_module(name)
    except ImportError:
        raise UserError(
            f"{purpose} needs {package}, which is not installed",
            location=user_location(),
            hint=f"pip install {package}",
        ) from None
