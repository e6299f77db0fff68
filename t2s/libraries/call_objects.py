"""What calls of libraries with structs and arrays of their own are given, and what they give.

Structs are laid out as C does; labels are letters for the variables of a statement; a result in
compressed rows is read at the addresses that a library names, and checked.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from t2s.capability.ir import Capability
from t2s.core.errors import UserError
from t2s.core.types import Type
from t2s.sparse_repr.formats import Format
from t2s.sparse_repr.notation.ir import accesses
from t2s.sparse_repr.tensors.tensor import SparseTensor, as_stored, check_tensor

Array = np.ndarray[Any, Any]


def steps_of(array: Array) -> list[int]:
    """Elements from one to the next along each mode; 1 where there is one alone."""
    steps = zip(array.strides, array.shape, strict=True)
    return [step // array.itemsize if extent > 1 else 1 for step, extent in steps]


def labels_of(capability: Capability, lists: Mapping[str, int], tensor: str) -> str:
    """A letter for each variable of a tensor, and for each one of its lists, of these lengths."""
    letters: dict[tuple[str, int], str] = {}
    labels = {}
    for access in (capability.result, *accesses(capability.value)):
        own = [(one, at) for one in access.variables for at in range(lists.get(one, 1))]
        for key in own:
            letters.setdefault(key, chr(ord("a") + len(letters)))
        labels[access.tensor] = "".join(letters[key] for key in own)
    return labels[tensor]


def struct_of(values: Sequence[Any]) -> ctypes.Structure:
    """A struct with these fields; arrays and objects are there by their address."""
    made = [
        one if isinstance(one, ctypes._SimpleCData) else ctypes.c_void_p(ctypes.addressof(one))
        for one in values
    ]
    fields = [(f"field{at}", type(one)) for at, one in enumerate(made)]
    kind: Any = type("StructOfCall", (ctypes.Structure,), {"_fields_": fields})
    built: ctypes.Structure = kind(*(one.value for one in made))
    return built


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsInMemory:
    """Compressed rows somewhere: the addresses of positions, coordinates and values."""

    shape: tuple[int, int]
    addresses: tuple[int, ...]
    index: Type
    type: Type


def copied_rows(given: RowsInMemory, format: Format, zero: float | int) -> SparseTensor:
    """The tensor, in arrays of ours.  Raises ``UserError`` if what is there is none."""
    rows, columns = given.shape
    index = given.index.numpy
    pos, crd, values = given.addresses
    positions = _copied(pos, index, rows + 1)
    count = int(positions[-1])
    if not 0 <= count <= rows * columns:
        raise UserError(f"{count} values in {rows} rows of {columns} columns")
    coordinates = _copied(crd, index, count)
    arrays = {"pos": positions.astype(np.int64), "crd": coordinates.astype(np.int64)}
    found = _copied(values, given.type.numpy, count)
    made = as_stored(given.shape, format, ({}, arrays), found, fill=zero)
    check_tensor(made)
    return made


def _copied(address: int, kind: np.dtype[Any], count: int) -> Array:
    if not count:
        return np.zeros(0, kind)
    if not address:
        raise UserError(f"no address of {count} values")
    data = ctypes.string_at(address, np.dtype(kind).itemsize * count)
    return np.frombuffer(data, kind).copy()
