"""Entries of objects of other libraries: scipy.sparse, pydata/sparse, networkx and numpy.

``coordinates_of`` reads all of them, for formats and for representations; objects are recognized by
their attributes.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.core.sigint import import_deferring_sigint
from t2s.sparse_repr.tensors.coordinates import (
    Array,
    Coordinates,
    HasEntries,
    in_order,
)

MOST_ELEMENTS = 2**31 - 1
"""Elements of an array of numpy, each of which is looked at."""


def coordinates_of(value: object, what: str) -> Coordinates | None:
    """The entries of a sparse object, or the nonzeros of a numpy array.

    ``what`` names it in errors.  Entries may be in any order; duplicates are added up.  ``None``
    for anything but a matrix or a tensor.  Raises ``UserError`` for indices out of range and for
    corrupt objects.
    """
    if isinstance(value, Coordinates):
        return value
    if isinstance(value, HasEntries):
        _check_fill(value, "fill", what)
        return value.entries()
    if isinstance(value, np.ndarray):
        return _from_numpy(value, what)
    if _of_package(value, "sparse") and hasattr(value, "fill_value"):
        return _from_pydata(value, what)
    if _of_package(value, "networkx") and hasattr(value, "adj"):
        return _from_networkx(value, what)
    return _from_scipy(value, what) if is_scipy(value) else None


def is_scipy(value: object) -> bool:
    """Whether a value is a matrix or an array of scipy.sparse, without importing it."""
    return _of_package(value, "scipy") and hasattr(value, "format") and hasattr(value, "tocoo")


def _of_package(value: object, package: str) -> bool:
    """Whether the class of a value, or a base class, belongs to a package."""
    return any(each.__module__.split(".")[0] == package for each in type(value).__mro__)


def _from_numpy(array: Array, what: str) -> Coordinates:
    check_masked(array, what)
    if array.size > MOST_ELEMENTS:
        shape_text = " x ".join(map(str, array.shape))
        _refuse(what, "is too large as an array", f"at most {MOST_ELEMENTS} elements", shape_text)
    plain = np.asarray(array)
    modes = np.nonzero(plain) if plain.ndim else ()
    return Coordinates(shape=plain.shape, modes=modes, values=plain[modes].reshape(-1))


def _from_pydata(value: Any, what: str) -> Coordinates:
    """COO, GCXS or DOK of pydata/sparse."""
    _check_fill(value, "fill_value", what)
    if not hasattr(value, "coords"):
        value = value.to_coo() if hasattr(value, "to_coo") else value.tocoo()
    return _checked(value.shape, tuple(value.coords), value.data, what)


def _from_networkx(value: Any, what: str) -> Coordinates:
    """The adjacency of a graph: its nodes in their order, 1 for an edge without a weight."""
    if not len(value):
        nothing = np.zeros(0, np.int64)
        return Coordinates(shape=(0, 0), modes=(nothing, nothing), values=nothing)
    try:
        adjacency = import_deferring_sigint("networkx").to_scipy_sparse_array(value, format="coo")
    except Exception as error:  # noqa: BLE001 - weights may be objects of any kind
        wrong, expected = "has edge weights that are not numbers", "numbers as weights of edges"
        _refuse(what, wrong, expected, f"{error}")
    return _from_scipy(adjacency, what)


def _from_scipy(value: Any, what: str) -> Coordinates:
    shape = tuple(map(int, value.shape))
    if len(shape) == 2 and value.format in ("csr", "csc"):
        outer = _expand(value, shape[0 if value.format == "csr" else 1], what)
        inner, values = value.indices[: outer.size], value.data[: outer.size]
        modes = (outer, inner) if value.format == "csr" else (inner, outer)
        return _checked(shape, modes, values, what)
    if value.format == "bsr":
        _expand(value, shape[0] // value.blocksize[0], what)
    if value.format == "lil":  # scipy's own conversion would write out of bounds
        lengths = [[len(each) for each in lists] for lists in (value.rows, value.data)]
        if lengths[0] != lengths[1]:
            _refuse(
                what,
                "is damaged",
                "as many columns as values in every row",
                "rows of other lengths",
            )
    try:
        parts = value if value.format == "coo" else value.tocoo()
        modes, values = tuple(parts.coords), parts.data
    except (ValueError, IndexError, TypeError, AttributeError, OverflowError) as error:
        _refuse(what, "is damaged", f"a {value.format} matrix of scipy", f"{error}")
    return _checked(shape, modes, values, what)


def _checked(shape: Any, modes: tuple[Any, ...], values: Any, what: str) -> Coordinates:
    """Check entries in any order, then sort them."""
    shape = tuple(map(int, shape))
    modes, values = tuple(map(np.asarray, modes)), np.asarray(values)
    names = ("row", "column") if len(shape) == 2 else tuple(f"mode {n}" for n in range(len(shape)))
    if any(mode.shape != (values.size,) for mode in modes) or values.ndim != 1:
        sizes = [f"{mode.size} {name}s" for name, mode in zip(names, modes, strict=True)]
        given = f"{', '.join(sizes)} and {values.size} values"
        _refuse(what, "is damaged", f"a {', a '.join(names)} and a value for each entry", given)
    for mode, extent, kind in zip(modes, shape, names, strict=True):
        if mode.dtype.kind not in "iu":
            _refuse(what, "is damaged", f"integers as {kind} indices", str(mode.dtype))
        _check_range(mode, extent, kind, what)
    return in_order(shape, modes, values)


def _expand(matrix: Any, count: int, what: str) -> Array:
    """The number of the row (or column) of every entry, from the pointers."""
    starts = np.asarray(matrix.indptr)
    lengths = np.diff(starts)
    stored = min(matrix.indices.size, len(matrix.data))
    if starts.size != count + 1 or starts[0] != 0 or (lengths < 0).any() or starts[-1] > stored:
        wanted = f"{count + 1} pointers that rise from 0 to at most {stored}"
        _refuse(what, "has damaged pointers", wanted, f"{starts.size}: {starts}")
    return np.repeat(np.arange(count), lengths)


def _check_range(indices: Array, extent: int, kind: str, what: str) -> None:
    if not indices.size or (indices.min() >= 0 and indices.max() < extent):
        return
    at = int(np.flatnonzero((indices < 0) | (indices >= extent))[0])
    _refuse(
        what,
        f"has a {kind} index out of range",
        f"0 to {extent - 1}" if extent else f"no entries, since there are no {kind}s",
        f"{kind} {int(indices[at])} in entry {at}",
    )


def check_masked(value: object, what: str) -> None:
    if isinstance(value, np.ma.MaskedArray):
        name = "matrix" if value.ndim == 2 else "array"
        wanted = f"all elements, {name}.filled(0) for instance"
        _refuse(what, "has masked elements", wanted, "a masked array")


def _check_fill(value: Any, name: str, what: str) -> None:
    """Check that elements that are not stored are zero."""
    fill = getattr(value, name, 0)
    if fill != 0:
        _refuse(what, "leaves out elements that are not 0", f"{name} 0", f"{name} {fill}")


def _refuse(what: str, reason: str, expected: str, given: str) -> NoReturn:
    raise UserError(f"{what} {reason}", location=user_location(), expected=expected, given=given)


def to_csr(found: Coordinates) -> Any:
    """A matrix as a ``scipy.sparse.csr_array``."""
    sparse = import_deferring_sigint("scipy.sparse")

    starts = np.zeros(found.shape[0] + 1, np.int64)
    np.cumsum(np.bincount(found.rows, minlength=found.shape[0]), out=starts[1:])
    return sparse.csr_array((found.values, found.columns, starts), shape=found.shape)


def library(name: str, purpose: str) -> Any:
    """Import an optional module; raises ``UserError`` if it is not installed."""
    package = name.split(".")[0]
    try:
        return import_deferring_sigint(name)
    except ImportError:
        raise UserError(
            f"{purpose} needs {package}, which is not installed",
            location=user_location(),
            hint=f"pip install {package}",
        ) from None
