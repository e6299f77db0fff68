"""The arrays of a stage's graph: which array of which tensor each of them holds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from t2s.core.names import NameSupply
from t2s.core.types import Type, UInt
from t2s.core.walk import Term
from t2s.sparse_repr.formats import Format
from t2s.sparse_repr.levels import Array, Arrays, PackingError
from t2s.sparse_repr.tensors.tensor import SparseTensor, as_stored, level_extents, misfit


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayOf(Term):
    """An array of a tensor: ``array`` of a level, or the values where ``level`` is ``None``."""

    name: str
    tensor: str
    level: int | None
    array: str
    type: Type


class ArrayNames:
    """Hands out the graph's name of every array that a stage uses."""

    def __init__(self, values: Type, index: Type, taken: tuple[str, ...] = ()) -> None:
        self.values = values
        self.index = index
        self.found: dict[tuple[str, int | None, str], ArrayOf] = {}
        self._names = NameSupply(taken)

    def of(self, tensor: str, level: int | None, array: str, *, words: bool = False) -> ArrayOf:
        """The array; the same one every time.  ``words``: it holds words of bits."""
        key = tensor, level, array
        if key not in self.found:
            suffix = array if level is None else f"{array}{level}"
            self.found[key] = ArrayOf(
                name=self._names.fresh(f"{tensor}_{suffix}"),
                tensor=tensor,
                level=level,
                array=array,
                type=self.values if level is None else UInt(64) if words else self.index,
            )
        return self.found[key]


def array_in(tensor: SparseTensor, array: ArrayOf) -> Array:
    """The array of a tensor as the graph takes it; without a copy where the type is right."""
    stored = tensor.values if array.level is None else tensor.levels[array.level][array.array]
    return np.ascontiguousarray(np.asarray(stored).reshape(-1).astype(array.type.numpy, copy=False))


def tensor_of(
    arrays: dict[tuple[int | None, str], Array],
    shape: tuple[int, ...],
    format: Format,
    fill: float | int = 0,
) -> SparseTensor:
    """The tensor that a stage wrote.  Arrays that it left short are filled with ``fill``."""
    levels: list[Arrays] = []
    count = 1
    extents = level_extents(shape, format)
    for number, (level, extent) in enumerate(zip(format.levels, extents, strict=True)):
        stored = {array: found for (at, array), found in arrays.items() if at == number}
        try:
            made = level.written(stored, count, extent)
        except PackingError as error:
            raise misfit(format, level, error) from None
        levels.append(made)
        count = level.positions(made, count, extent)
    values = arrays[None, "vals"]
    if len(values) < count:
        values = np.concatenate([values, np.full(count - len(values), fill, values.dtype)])
    return as_stored(shape, format, levels, values, fill=fill)
