"""The arrays of a matrix in a representation: their cost, and decoding them with numpy.

``decode`` computes the row and the column of every stored value from the structure: the inverse map
of all positions at once.  The decoders in hardware compute the same, value by value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from t2s.core.display import NotebookCard, NotebookDisplay, Preformatted, Table
from t2s.core.svg import SvgPicture
from t2s.core.types import Type
from t2s.sparse_repr.representation.chain_layout import (
    BlockJob,
    ChainLayout,
    FiberJob,
    MatrixDimension,
    MatrixUnits,
    Policy,
    units_of,
)
from t2s.sparse_repr.representation.inverse_map import InverseMap, Order, assign, inverse_map
from t2s.sparse_repr.tensors.coordinates import Coordinates, HasEntries
from t2s.sparse_repr.tensors.foreign import to_csr
from t2s.sparse_repr.tensors.matrix_chart import MOST_VALUES, stored_chart, streams_chart

Array = np.ndarray[Any, Any]


class StructureScope(Enum):
    """Which machines read a stream of structure."""

    SHARED = "shared"
    MACHINE = "machine"


@dataclass(frozen=True, kw_only=True, eq=False)
class StructureStream:
    """A part of the structure: one row for each machine, or one sequence for all of them.

    Padding is -1 in a stream of indices and 0 in a stream of lengths.
    """

    scope: StructureScope
    data: Array


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Storage(HasEntries, NotebookDisplay):
    """A matrix in a representation.

    Attributes
    ----------
    values: machines x positions: the stream of values of each machine, zero where there is padding.
    streams: the structure, by the names that the chain gave it.
    loads: slots of each machine up to its last job; the others are padding at its end.
    """

    layout: ChainLayout
    shape: tuple[int, int]
    type: Type
    nnz: int
    unit: int
    values: Array
    streams: Mapping[str, StructureStream]
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
        """The fraction of stored values that are padding."""
        return 1 - self.nnz / self.values.size if self.values.size else 0.0

    @property
    def balance(self) -> float:
        """Mean divided by largest load of a machine: 1 if all machines have equal loads."""
        largest = int(self.loads.max())
        return float(self.loads.mean()) / largest if largest else 1.0

    @property
    def bytes(self) -> int:
        """Bytes of values and structure."""
        return int(self.values.nbytes + sum(stream.data.nbytes for stream in self.streams.values()))

    def decode(self) -> tuple[Array, Array]:
        """Row and column of every value, machines x positions, by the inverse map.

        Both are -1 where there is padding.
        """
        return decode(self)

    def coordinates(self) -> Coordinates:
        """The entries of the matrix, decoded, by rows.

        Zeros in dense blocks, and in matrices that are not packed, are not entries; other stored
        zeros are.
        """
        return coordinates(self)

    def entries(self) -> Coordinates:
        """The same as ``coordinates``, so that a ``Storage`` can be used like a matrix."""
        return self.coordinates()

    def to_scipy(self) -> Any:
        """The matrix, decoded, as a ``scipy.sparse.csr_array``."""
        return to_csr(self.coordinates())

    @property
    def table(self) -> Table:
        """The stored arrays with shapes and bytes."""
        machines, positions = self.values.shape
        rows = [("values", f"{self.type}", f"{machines:,} x {positions:,}", self.values.nbytes)]
        rows += [
            (
                name,
                f"{stream.data.dtype}",
                " x ".join(f"{n:,}" for n in stream.data.shape),
                stream.data.nbytes,
            )
            for name, stream in self.streams.items()
        ]
        return Table(
            title=f"arrays, {self.bytes:,} bytes in all",
            headers=("array", "type", "shape", "bytes"),
            rows=tuple((*row[:3], f"{row[3]:,}") for row in rows),
            left=frozenset({0, 1}),
        )

    def _card(self) -> NotebookCard:
        rows, columns = self.shape
        machines, positions = self.values.shape
        summary = (
            ("matrix", f"{rows:,} x {columns:,} {self.type}, {self.nnz:,} entries"),
            ("machines", f"{machines:,}, each with {positions:,} values"),
            ("padding", f"{self.padding:.1%} of the stored values"),
            ("balance", f"{self.balance:.1%} = mean load of a machine / largest"),
        )
        many = Preformatted(title=f"More than {MOST_VALUES:,} values are not drawn.")
        parts = (*(self._pictures() or (many,)), self.table)
        return NotebookCard(title="Storage of a matrix", summary=summary, parts=parts)

    def _pictures(self) -> tuple[SvgPicture | None, ...]:
        """Pictures of the matrix and the streams; none if the matrix is too large to draw."""
        if self.values.size > MOST_VALUES:
            return ()
        down, across = decode(self)
        entry = _is_entry(self, down)
        jobs = np.repeat(_jobs(self), self.unit, axis=1)
        streams = streams_chart(entry, self.loads * self.unit, jobs)
        return stored_chart(self.shape, down, across, entry), streams


def decode(storage: Storage) -> tuple[Array, Array]:
    """Row and column of every value, machines x positions; -1 for padding."""
    mapping = inverse_map(storage.layout)
    units = units_of(storage.layout, storage.shape)
    fiber, place = _slots(mapping, storage, units)
    if mapping.unit is not None:
        place = storage.streams[mapping.unit].data
    valid = (fiber >= 0) & (place >= 0)
    at: dict[MatrixDimension, Array] = {}
    for dimension, outer in ((mapping.major, fiber), (mapping.minor, place)):
        elements = outer.astype(np.int64)[:, :, None] * units.factor(dimension)
        at[dimension] = (elements + units.offsets(dimension)).reshape(storage.values.shape)
    rows, columns = at[MatrixDimension.ROWS], at.get(MatrixDimension.COLUMNS)
    if columns is None:
        columns = rows + at[MatrixDimension.DIAGONALS] - (storage.shape[0] - 1)
    inside = np.repeat(valid, units.size, axis=1)
    for index, extent in ((rows, storage.shape[0]), (columns, storage.shape[1])):
        inside &= (index >= 0) & (index < extent)
    return np.where(inside, rows, -1), np.where(inside, columns, -1)


def coordinates(storage: Storage) -> Coordinates:
    """The entries of the matrix again, by rows.

    Zeros in dense units, and in matrices that are not packed, are not entries; all other stored
    zeros are.
    """
    rows, columns = decode(storage)
    entries = _is_entry(storage, rows)
    rows, columns, values = rows[entries], columns[entries], storage.values[entries]
    order = np.lexsort((columns, rows))
    return Coordinates(
        shape=storage.shape, modes=(rows[order], columns[order]), values=values[order]
    )


def _is_entry(storage: Storage, rows: Array) -> Array:
    """Which values are entries of the matrix, by their decoded rows."""
    entries: Array = rows >= 0
    if storage.unit > 1 or storage.layout.minor is None:
        entries = entries & (storage.values != 0)
    return entries


def _jobs(storage: Storage) -> Array:
    """The job of every slot, machines x slots, -1 after the last one of a machine."""
    mapping = inverse_map(storage.layout)
    if isinstance(mapping.job, BlockJob):
        blocks = np.arange(storage.slots) // mapping.job.slots
        return np.broadcast_to(blocks, (storage.values.shape[0], storage.slots))
    fiber, _ = _slots(mapping, storage, units_of(storage.layout, storage.shape))
    return np.where(fiber < 0, -1, fiber // mapping.job.fibers)


def _slots(mapping: InverseMap, storage: Storage, units: MatrixUnits) -> tuple[Array, Array]:
    """Fiber, and position in the fiber, of every slot; -1 after the last job of a machine."""
    machines, slots = storage.values.shape[0], storage.slots
    if mapping.fiber_by_slot and mapping.fiber is not None:
        fiber = storage.streams[mapping.fiber].data
        return fiber, np.zeros_like(fiber)
    if mapping.order is Order.FREE:
        return np.zeros((machines, slots), np.int64), np.zeros((machines, slots), np.int64)
    numbers, lengths, machine_of = _fibers(mapping, storage, units)
    if isinstance(mapping.job, BlockJob):
        return _deal_blocks(mapping.job.slots, numbers, lengths, (machines, slots))
    fiber = np.full((machines, slots), -1, np.int64)
    place = np.zeros((machines, slots), np.int64)
    for machine in range(machines):
        mine = machine_of == machine
        of_machine = np.repeat(numbers[mine], lengths[mine])
        fiber[machine, : of_machine.size] = of_machine
        place[machine, : of_machine.size] = _count(lengths[mine])
    return fiber, place


def _deal_blocks(
    block: int, numbers: Array, lengths: Array, shape: tuple[int, int]
) -> tuple[Array, Array]:
    """Blocks of slots round-robin: block k belongs to machine k modulo their number."""
    machines, slots = shape
    result = []
    for data, empty in ((np.repeat(numbers, lengths), -1), (_count(lengths), 0)):
        full = np.full(machines * slots, empty, np.int64)
        full[: data.size] = data
        dealt = full.reshape(-1, machines, block).transpose(1, 0, 2)
        result.append(dealt.reshape(machines, slots))
    return result[0], result[1]


def _count(lengths: Array) -> Array:
    """0, 1, ... for each of the lengths."""
    total = int(lengths.sum())
    counted: Array = np.arange(total) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return counted


def _fibers(
    mapping: InverseMap, storage: Storage, units: MatrixUnits
) -> tuple[Array, Array, Array]:
    """The number, the slots and the machine of every fiber, in the order of each machine."""
    machines = mapping.machines
    if mapping.order is Order.RECORDED or _local(mapping, storage):
        return _local_fibers(mapping, storage)
    lengths = _shared_lengths(mapping, storage, units)
    numbers = np.arange(lengths.size)
    if mapping.fiber is not None:
        numbers = storage.streams[mapping.fiber].data.reshape(-1)
    if isinstance(mapping.job, BlockJob):
        return numbers, lengths, np.zeros(lengths.size, np.int64)
    fibers = mapping.job.fibers
    jobs = lengths.reshape(-1, fibers).sum(axis=1)
    dealt = assign(jobs, machines, Policy.ASAP, mapping.order)
    return numbers, lengths, np.repeat(dealt.machine, fibers)


def _local(mapping: InverseMap, storage: Storage) -> bool:
    """Whether each machine has the lengths, or the numbers, of its own fibers."""
    names = [mapping.fiber, mapping.lengths.name if mapping.lengths is not None else None]
    return any(
        name is not None and storage.streams[name].scope is StructureScope.MACHINE for name in names
    )


def _local_fibers(mapping: InverseMap, storage: Storage) -> tuple[Array, Array, Array]:
    """As ``_fibers``, from per-machine streams."""
    assert isinstance(mapping.job, FiberJob)
    machines, fibers = mapping.machines, mapping.job.fibers
    table = _local_lengths(mapping, storage)
    owner = np.repeat(np.arange(machines), table.shape[1])
    if mapping.fiber is not None:
        numbers = storage.streams[mapping.fiber].data
    else:
        jobs = (
            np.arange(table.shape[1] // fibers)[None, :] * machines + np.arange(machines)[:, None]
        )
        if mapping.job_index is not None:
            jobs = storage.streams[mapping.job_index].data
        numbers = jobs[:, :, None] * fibers + np.arange(fibers)
    numbers = np.where(numbers.reshape(machines, -1) < 0, -1, numbers.reshape(machines, -1))
    lengths = np.where(numbers < 0, 0, table) if mapping.job_index is not None else table
    return numbers.reshape(-1), lengths.reshape(-1), owner


def _local_lengths(mapping: InverseMap, storage: Storage) -> Array:
    """Slots of the fibers of each machine."""
    assert mapping.lengths is not None
    assert isinstance(mapping.job, FiberJob)
    lengths = mapping.lengths
    data = _scaled(lengths.round, lengths.scale, storage.streams[lengths.name].data)
    if lengths.fibers is None:
        jobs = storage.streams[mapping.job_index or mapping.fiber or ""].data.shape[1]
        count = jobs * (mapping.job.fibers if mapping.job_index is not None else 1)
        entry = data.reshape(-1)[0] if data.size else 0
        return np.full((mapping.machines, count), entry)
    return np.repeat(data, min(lengths.fibers, mapping.job.fibers), axis=1)


def _shared_lengths(mapping: InverseMap, storage: Storage, units: MatrixUnits) -> Array:
    """Slots of all fibers, in order."""
    count = units.count(mapping.major)
    if mapping.fiber is not None:
        count = storage.streams[mapping.fiber].data.size
    count += -count % storage.layout.group_size
    if mapping.lengths is None:
        return np.full(count, units.count(mapping.minor))
    lengths = mapping.lengths
    data = _scaled(lengths.round, lengths.scale, storage.streams[lengths.name].data.reshape(-1))
    return np.repeat(data, lengths.fibers or count)[:count]


def _scaled(round: int, scale: int, entries: Array) -> Array:
    scaled: Array = -(-entries.astype(np.int64) // round) * round * scale
    return scaled
