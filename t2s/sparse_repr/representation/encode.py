"""From the entries of a matrix to the arrays of its representation, vectorized."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.core.types import Type
from t2s.sparse_repr.representation.chain_layout import (
    BlockJob,
    BlockPadding,
    ChainLayout,
    FibreJob,
    MatrixDimension,
    MatrixUnits,
    Scheduling,
    units_of,
)
from t2s.sparse_repr.representation.inverse_map import JobAssignment, Order, assign, job_order
from t2s.sparse_repr.representation.storage import Storage, StructureScope, StructureStream
from t2s.sparse_repr.tensors.coordinates import Coordinates

Array = np.ndarray[Any, Any]
LARGEST = 2**31 - 1


@dataclass(frozen=True, kw_only=True, eq=False)
class _Fibres:
    """Units in order, and the fibres that they form.

    ``entry_unit`` is the unit of every entry, ``None`` where entries are units; ``numbers`` the
    places of fibres along their dimension (-1 for those that fill up a block of fibres); ``counts``
    and ``slots`` the units and the slots of each fibre; ``recorded`` lengths by name, each with the
    number of fibres that an entry is for (``None``: for all).
    """

    values: Array
    entry_unit: Array | None
    entry_place: Array | None
    unit_fibre: Array
    unit_minor: Array
    numbers: Array
    counts: Array
    slots: Array
    recorded: dict[str, tuple[Array, int | None]]


def build_storage(layout: ChainLayout, matrix: Coordinates, type: Type, what: str) -> Storage:
    """The storage of a matrix; ``what`` names it in errors."""
    schedule = layout.schedule
    order = job_order(layout) if schedule is not None else None
    assert schedule is not None
    assert order is not None
    rows, columns = matrix.shape
    units = units_of(layout, (rows, columns))
    fibres = _fibres(layout, units, matrix)
    _check_size(int(fibres.slots.sum()) * units.size, what, matrix)
    lengths = _job_lengths(schedule, fibres.slots)
    assignment = assign(lengths, schedule.machines, schedule.policy, order)
    slots = int(assignment.loads.max())
    _check_size(slots * units.size * schedule.machines, what, matrix)
    destination = _destinations(schedule, fibres, assignment, slots)
    values = np.zeros((schedule.machines, slots * units.size), type.numpy)
    where = destination
    if fibres.entry_unit is not None:
        where = destination[fibres.entry_unit] * units.size + fibres.entry_place
    values.reshape(-1)[where] = fibres.values
    return Storage(
        layout=layout,
        shape=(rows, columns),
        type=type,
        nnz=int(matrix.values.size),
        unit=units.size,
        values=values,
        streams=_streams(layout, order, fibres, assignment, destination, slots),
        loads=assignment.loads,
    )


def _fibres(layout: ChainLayout, units: MatrixUnits, matrix: Coordinates) -> _Fibres:
    """Sort entries into units and fibres, and count."""
    assert layout.major is not None
    major, minor = layout.major, layout.other(layout.major)
    second = matrix.columns
    if layout.skewed:
        second = matrix.columns.astype(np.int64) - matrix.rows + (matrix.shape[0] - 1)
    at: dict[MatrixDimension, Array] = dict(
        zip(layout.dimensions, (matrix.rows, second), strict=True)
    )
    fibre_count, minor_count = units.count(major), units.count(minor)
    if layout.minor is None:
        return _dense_fibres(layout, units, matrix, at)
    entry_unit = entry_place = None
    values = matrix.values
    if units.digits:
        key = at[major].astype(np.int64) // units.factor(major) * max(1, minor_count)
        key += at[minor] // units.factor(minor)
        keys, entry_unit = np.unique(key, return_inverse=True)
        entry_place = units.place(at)
        unit_fibre, unit_minor = keys // max(1, minor_count), keys % max(1, minor_count)
    else:
        unit_fibre, unit_minor = at[major], at[minor]
        if major is not MatrixDimension.ROWS:
            order = np.argsort(unit_fibre, kind="stable")
            unit_fibre, unit_minor = unit_fibre[order], unit_minor[order]
            values = values[order]
    counts = np.bincount(unit_fibre, minlength=fibre_count)
    numbers = np.arange(fibre_count)
    if layout.fibre is not None:
        numbers = np.flatnonzero(counts)
        unit_fibre = np.repeat(np.arange(numbers.size), counts[numbers])
        counts = counts[numbers]
    missing = -counts.size % layout.group_size
    counts = np.append(counts, np.zeros(missing, counts.dtype))
    numbers = np.append(numbers, np.full(missing, -1))
    slots, recorded = _slots(layout, counts)
    return _Fibres(
        values=values, entry_unit=entry_unit, entry_place=entry_place, unit_fibre=unit_fibre,
        unit_minor=unit_minor, numbers=numbers, counts=counts, slots=slots, recorded=recorded,
    )  # fmt: skip


def _dense_fibres(
    layout: ChainLayout, units: MatrixUnits, matrix: Coordinates, at: dict[MatrixDimension, Array]
) -> _Fibres:
    """All units of all fibres, whether zero or not."""
    assert layout.major is not None
    major, minor = layout.major, layout.other(layout.major)
    count, length = units.count(major), units.count(minor)
    unit = at[major].astype(np.int64) // units.factor(major) * length
    unit += at[minor] // units.factor(minor)
    counts = np.full(count, length)
    _check_size(count * length * units.size, "a dense representation", matrix)
    return _Fibres(
        values=matrix.values, entry_unit=unit, entry_place=units.place(at),
        unit_fibre=np.repeat(np.arange(count), counts),
        unit_minor=np.tile(np.arange(length), count),
        numbers=np.arange(count), counts=counts, slots=counts, recorded={},
    )  # fmt: skip


def _slots(layout: ChainLayout, counts: Array) -> tuple[Array, dict[str, tuple[Array, int | None]]]:
    """The slots of fibres, and the lengths that are recorded on the way there."""
    recorded: dict[str, tuple[Array, int | None]] = {}
    assert layout.minor is not None
    if layout.minor.length is not None:
        recorded[layout.minor.length] = (counts, 1)
    blocks, scale = counts.astype(np.int64), 1
    for blocking in layout.blocks:
        scale *= blocking.factor
        blocks = -(-blocks // blocking.factor)
        entries, covered = blocks, 1 if blocking.padding is BlockPadding.ZERO else blocking.group
        if blocking.padding is BlockPadding.LONGEST:
            group = blocking.group or max(1, blocks.size)
            entries = blocks.reshape(-1, group).max(axis=1, initial=0)
            blocks = np.repeat(entries, group)[: blocks.size]
        if blocking.name is not None:
            recorded[blocking.name] = (entries, covered)
    size = 1
    for group_level in layout.groups:
        size *= group_level.size
        if group_level.name is not None:
            recorded[group_level.name] = (np.array([counts.size // size]), None)
    return blocks * scale, recorded


def _job_lengths(schedule: Scheduling, slots: Array) -> Array:
    match schedule.job:
        case FibreJob(fibres=fibres):
            return slots.reshape(-1, fibres).sum(axis=1) if slots.size else slots
        case BlockJob(slots=block):
            return np.full(int(slots.sum()) // block, block)


def _destinations(
    schedule: Scheduling, fibres: _Fibres, assignment: JobAssignment, slots: int
) -> Array:
    """The slot of every unit, counted through all machines."""
    ends = np.cumsum(fibres.slots)
    starts = ends - fibres.slots
    first = np.cumsum(fibres.counts) - fibres.counts
    position = np.arange(fibres.unit_fibre.size)
    base = assignment.machine * slots + assignment.start
    match schedule.job:
        case FibreJob(fibres=count):
            job = np.arange(fibres.slots.size) // count
            offset = base[job] + starts - starts[job * count] - first
            position += np.repeat(offset, fibres.counts)
        case BlockJob(slots=block):
            position += np.repeat(starts - first, fibres.counts)
            position += (base - np.arange(base.size) * block)[position // block]
    return position


def _streams(
    layout: ChainLayout,
    order: Order,
    fibres: _Fibres,
    assignment: JobAssignment,
    destination: Array,
    slots: int,
) -> dict[str, StructureStream]:
    schedule = layout.schedule
    assert schedule is not None
    shape = (schedule.machines, slots)
    streams: dict[str, StructureStream] = {}
    if layout.minor is not None:
        streams[layout.minor.index] = _by_slot(fibres.unit_minor, destination, shape)
    if layout.indexed_slots and layout.fibre is not None:
        row = fibres.numbers[fibres.unit_fibre]
        streams[layout.fibre.index] = _by_slot(row, destination, shape)
    local = isinstance(schedule.job, FibreJob) and order in (Order.STRIDED, Order.RECORDED)
    by_fibre = dict(fibres.recorded)
    if layout.fibre is not None and not layout.indexed_slots:
        by_fibre[layout.fibre.index] = (fibres.numbers, 1)
    for name, (data, covered) in by_fibre.items():
        empty = -1 if layout.fibre is not None and name == layout.fibre.index else 0
        if local and covered is not None and isinstance(schedule.job, FibreJob):
            entries = (max(1, schedule.job.fibres // covered), covered // schedule.job.fibres)
            streams[name] = _by_job(data, entries, assignment, schedule.machines, empty)
        else:
            streams[name] = StructureStream(scope=StructureScope.SHARED, data=data.astype(np.int32))
    if schedule.index is not None:
        jobs = np.arange(assignment.machine.size)
        streams[schedule.index] = _by_job(jobs, (1, 1), assignment, schedule.machines, -1)
    return streams


def _by_slot(data: Array, destination: Array, shape: tuple[int, int]) -> StructureStream:
    table = np.full(shape, -1, np.int32)
    table.reshape(-1)[destination] = data
    return StructureStream(scope=StructureScope.MACHINE, data=table)


def _by_job(
    data: Array, entries: tuple[int, int], assignment: JobAssignment, machines: int, empty: int
) -> StructureStream:
    """Entries of jobs, machine by machine in the order in which it gets them."""
    per_job, shared = entries[0], max(1, entries[1])
    order = assignment.sequence[np.argsort(assignment.machine[assignment.sequence], kind="stable")]
    counts = np.bincount(assignment.machine, minlength=machines)
    table = np.full((machines, int(counts.max()) * per_job), empty, np.int32)
    rank = np.arange(order.size) - np.repeat(np.cumsum(counts) - counts, counts)
    at = (assignment.machine[order] * table.shape[1] + rank * per_job)[:, None] + np.arange(per_job)
    table.reshape(-1)[at] = data[(order // shared * per_job)[:, None] + np.arange(per_job)]
    return StructureStream(scope=StructureScope.MACHINE, data=table)


def _check_size(count: int, what: str, matrix: Coordinates) -> None:
    if count <= LARGEST:
        return
    rows, columns = matrix.shape
    raise UserError(
        f"{what} does not fit: its values, with padding, are too many",
        location=user_location(),
        expected=f"at most {LARGEST} values",
        given=f"{count} values for the {matrix.values.size} entries of a {rows} x {columns} matrix",
        hint="pack before you pad, or pad to the longest of a block of rows, not of the matrix",
    )
