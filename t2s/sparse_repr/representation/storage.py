"""The arrays that a representation of a matrix consists of, and what they cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from t2s.core.types import Type
from t2s.sparse_repr.representation.decode import coordinates, decode
from t2s.sparse_repr.representation.layout import Layout
from t2s.sparse_repr.representation.streams import Scope, Stream
from t2s.sparse_repr.tensors.coordinates import Coordinates, Stored
from t2s.sparse_repr.tensors.interchange import to_csr

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Storage(Stored):
    """A matrix in a representation.

    Attributes
    ----------
    values: machines x positions: the stream of values of each machine, zero where there is padding.
    streams: the structure, by the names that the chain gave it.
    loads: slots of each machine up to its last job; the others are padding at its end.
    """

    layout: Layout
    shape: tuple[int, int]
    type: Type
    nnz: int
    unit: int
    values: Array
    streams: Mapping[str, Stream]
    loads: Array

    def __repr__(self) -> str:
        rows, columns = self.shape
        machines, positions = self.values.shape
        return (
            f"<Storage of {rows} x {columns} {self.type}, {self.nnz} entries: {machines} machines "
            f"x {positions} values, {self.padding:.1%} padding, balance {self.balance:.1%}>"
        )

    @property
    def slots(self) -> int:
        """Slots of the stream of each machine."""
        return int(self.values.shape[1]) // self.unit

    @property
    def padding(self) -> float:
        """The fraction of all stored values that stand for no entry of the matrix."""
        return 1 - self.nnz / self.values.size if self.values.size else 0.0

    @property
    def balance(self) -> float:
        """Mean over largest load of a machine: 1 where all machines work equally long."""
        largest = int(self.loads.max())
        return float(self.loads.mean()) / largest if largest else 1.0

    @property
    def bytes(self) -> int:
        """Bytes of values and structure."""
        return int(self.values.nbytes + sum(stream.data.nbytes for stream in self.streams.values()))

    def machine_streams(self, machine: int) -> dict[str, Array]:
        """What one machine reads: ``values``, and its own or everybody's structure by name."""
        found = {
            name: stream.data[machine] if stream.scope is Scope.MACHINE else stream.data
            for name, stream in self.streams.items()
        }
        return {"values": self.values[machine], **found}

    def decode(self) -> tuple[Array, Array]:
        """Row and column of every value, machines x positions, by the inverse map.

        Both are -1 where there is padding.
        """
        return decode(self)

    def coordinates(self) -> Coordinates:
        """The entries of the matrix, decoded, by rows.

        Zeros inside of dense blocks, and of matrices that are not packed, are no entries; other
        zeros that were stored are.
        """
        return coordinates(self)

    def entries(self) -> Coordinates:
        """The same: a ``Storage`` is taken wherever a matrix is."""
        return self.coordinates()

    def to_scipy(self) -> Any:
        """The matrix, decoded, as a ``scipy.sparse.csr_array``."""
        return to_csr(self.coordinates())
