"""Conversions from and to other libraries: scipy.sparse, pydata/sparse and numpy.

The libraries are imported only to make results.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.sparse_repr.formats import Format, as_format, coo, csc, csr, dense
from t2s.sparse_repr.tensors.coordinates import chosen, real_values
from t2s.sparse_repr.tensors.foreign import check_masked, coordinates_of, is_scipy, library
from t2s.sparse_repr.tensors.tensor import (
    SparseTensor,
    as_stored,
    from_columns,
    from_dense,
    from_entries,
    from_levels,
)

_SHARED = {"csr": csr, "csc": csc}


def tensor(value: Any, format: Format | str | None = None) -> SparseTensor:
    """A tensor from a ``SparseTensor``, a scipy.sparse or pydata/sparse object, or a numpy array.

    A graph of networkx is its adjacency matrix: nodes in the order of the graph, the ``weight`` of
    each edge or 1.

    A ``Storage`` is a matrix too.  Without ``format`` the tensor stays as it is stored: CSR and CSC
    arrays of scipy are shared, not copied; other sparse objects become COO, and arrays dense.
    """
    wanted = None if format is None else as_format(format)
    stored = _as_stored(value, wanted)
    return stored if wanted is None else stored.convert(wanted)


def filled_tensor(made: SparseTensor, fill: float | int, *, as_array: bool) -> SparseTensor:
    """The tensor of an input with ``fill`` as the value of elements that are not stored.

    An array says all its values; of anything else what is not stored counts.
    """
    if made.fill == fill:
        return made
    if made.dtype.kind in "iub" and not float(fill).is_integer():
        values = made.values.astype(np.float64)
        made = as_stored(made.shape, made.format, made.levels, values, fill=made.fill)
    if not as_array and any(level.full for level in made.format.elements.levels[-1:]):
        columns, values = made.columns()
        columns, values = chosen(values != made.fill, columns, values)
        return from_columns(columns, values, made.shape, made.format, fill=fill)
    return as_stored(made.shape, made.format, made.levels, made.values, fill=fill)


def _as_stored(value: Any, format: Format | None) -> SparseTensor:
    if isinstance(value, SparseTensor):
        return value
    kind = value.format if is_scipy(value) and len(value.shape) == 2 else ""
    if kind in _SHARED and _increases(value):
        indices, data, count = value.indices, value.data, int(value.indptr[-1])
        # scipy's arrays may have unused capacity at the end
        if min(len(indices), len(data)) >= count:
            indices = indices if len(indices) == count else indices[:count]
            data = data if len(data) == count else data[:count]
        arrays = {"pos": value.indptr, "crd": indices}
        return from_levels(value.shape, _SHARED[kind], ({}, arrays), data)
    if not isinstance(value, np.ndarray):
        what = "a matrix of scipy" if kind else "a sparse tensor"
        entries = coordinates_of(value, what)
        if entries is not None:
            order = len(entries.shape)
            usual = _SHARED.get(kind, coo(order) if order else dense(0))
            return from_entries(entries, format or usual)
    check_masked(value, "an input")
    array = None if value is None or isinstance(value, str | bytes) else real_values(value)
    if array is None or array.dtype.kind not in "iufb":
        raise UserError(
            f"a {type(value).__name__} is not a tensor",
            location=user_location(),
            expected="a SparseTensor, an array, a sparse object of scipy or pydata/sparse, or a "
            "graph of networkx",
        )
    if format is None:
        values = np.ascontiguousarray(array).reshape(-1)
        return as_stored(array.shape, dense(array.ndim), ({},) * array.ndim, values)
    return from_dense(array, format)


def _increases(value: Any) -> bool:
    """Whether the coordinates of each row (or column) of a CSR or CSC array are in order.

    Damaged pointers are for ``from_levels`` to refuse.
    """
    starts, indices = np.asarray(value.indptr), np.asarray(value.indices)
    if starts.size < 2 or (np.diff(starts) < 0).any() or starts[-1] > len(indices):
        return True
    if indices.size and not (indices.min() >= 0):
        return True
    wrong = np.flatnonzero(indices[1:] <= indices[:-1]) + 1
    wrong = wrong[wrong < starts[-1]]
    return bool(np.isin(wrong, starts).all())


def to_scipy(value: SparseTensor) -> Any:
    """A scipy.sparse array: CSR and CSC share their arrays, anything else becomes COO."""
    _check_tensor(value)
    sparse: Any = library("scipy.sparse", "a tensor of scipy")
    if value.format in (csr, csc):
        make = sparse.csr_array if value.format == csr else sparse.csc_array
        arrays = value.levels[1]
        return make((value.values, arrays["crd"], arrays["pos"]), shape=value.shape)
    columns, values = value.columns()
    return sparse.coo_array((values, columns), shape=value.shape)


def to_pydata(value: SparseTensor) -> Any:
    """A ``sparse.COO`` of pydata/sparse."""
    _check_tensor(value)
    sparse: Any = library("sparse", "a tensor of pydata/sparse")
    table, values = value.coordinates()
    return sparse.COO(table.T, values, shape=value.shape)


def _check_tensor(value: object) -> None:
    if not isinstance(value, SparseTensor):
        raise UserError(
            f"a {type(value).__name__} is not a sparse tensor",
            location=user_location(),
            expected="a SparseTensor",
            given=" ".join(repr(value).split())[:80],
            hint="sparse.tensor makes one of an array or of a matrix of scipy",
        )
