"""Encode the entries of a matrix as the arrays of its representation (vectorized)."""

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
    FiberJob,
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
class _Fibers:
    """The units in order, grouped into fibers.

    ``entry_unit`` is the unit of every entry, ``None`` where entries are units; ``numbers`` the
    places of fibers along their dimension (-1 for those that fill up a block of fibers); ``counts``
    and ``slots`` the units and the slots of each fiber; ``recorded`` lengths by name, each with the
    number of fibers that an entry is for (``None``: for all).
    """

    values: Array
    entry_unit: Array | None
    entry_place: Array | None
    unit_fiber: Array
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
    fibers = _fibers(layout, units, matrix)
    _check_size(int(fibers.slots.sum()) * units.size, what, matrix)
    lengths = _job_lengths(schedule, fibers.slots)
    assignment = assign(lengths, schedule.machines, schedule.policy, order)
    slots = int(assignment.loads.max())
    _check_size(slots * units.size * schedule.machines, what, matrix)
    destination = _destinations(schedule, fibers, assignment, slots)
    values = np.zeros((schedule.machines, slots * units.size), type.numpy)
    where = destination
    if fibers.entry_unit is not None:
        where = destination[fibers.entry_unit] * units.size + fibers.entry_place
    values.reshape(-1)[where] = fibers.values
    return Storage(
        layout=layout,
        shape=(rows, columns),
        type=type,
        nnz=int(matrix.values.size),
        unit=units.size,
        values=values,
        streams=_streams(layout, order, fibers, assignment, destination, slots),
        loads=assignment.loads,
    )


def _fibers(layout: ChainLayout, units: MatrixUnits, matrix: Coordinates) -> _Fibers:
    """Sort entries into units and fibers, and count."""
    assert layout.major is not None
    major, minor = layout.major, layout.other(layout.major)
    second = matrix.columns
    if layout.skewed:
        second = matrix.columns.astype(np.int64) - matrix.rows + (matrix.shape[0] - 1)
    at: dict[MatrixDimension, Array] = dict(
        zip(layout.dimensions, (matrix.rows, second), strict=True)
    )
    fiber_count, minor_count = units.count(major), units.count(minor)
    if layout.minor is None:
        return _dense_fibers(layout, units, matrix, at)
    entry_unit = entry_place = None
    values = matrix.values
    if units.digits:
        key = at[major].astype(np.int64) // units.factor(major) * max(1, minor_count)
        key += at[minor] // units.factor(minor)
        keys, entry_unit = np.unique(key, return_inverse=True)
        entry_place = units.place(at)
        unit_fiber, unit_minor = keys // max(1, minor_count), keys % max(1, minor_count)
    else:
        unit_fiber, unit_minor = at[major], at[minor]
        if major is not MatrixDimension.ROWS:
            order = np.argsort(unit_fiber, kind="stable")
            unit_fiber, unit_minor = unit_fiber[order], unit_minor[order]
            values = values[order]
    counts = np.bincount(unit_fiber, minlength=fiber_count)
    numbers = np.arange(fiber_count)
    if layout.fiber is not None:
        numbers = np.flatnonzero(counts)
        unit_fiber = np.repeat(np.arange(numbers.size), counts[numbers])
        counts = counts[numbers]
    missing = -counts.size % layout.group_size
    counts = np.append(counts, np.zeros(missing, counts.dtype))
    numbers = np.append(numbers, np.full(missing, -1))
    slots, recorded = _slots(layout, counts)
    return _Fibers(
        values=values, entry_unit=entry_unit, entry_place=entry_place, unit_fiber=unit_fiber,
        unit_minor=unit_minor, numbers=numbers, counts=counts, slots=slots, recorded=recorded,
    )  # fmt: skip


def _dense_fibers(
    layout: ChainLayout, units: MatrixUnits, matrix: Coordinates, at: dict[MatrixDimension, Array]
) -> _Fibers:
    """All units of all fibers, whether zero or not."""
    assert layout.major is not None
    major, minor = layout.major, layout.other(layout.major)
    count, length = units.count(major), units.count(minor)
    unit = at[major].astype(np.int64) // units.factor(major) * length
    unit += at[minor] // units.factor(minor)
    counts = np.full(count, length)
    _check_size(count * length * units.size, "a dense representation", matrix)
    return _Fibers(
        values=matrix.values, entry_unit=unit, entry_place=units.place(at),
        unit_fiber=np.repeat(np.arange(count), counts),
        unit_minor=np.tile(np.arange(length), count),
        numbers=np.arange(count), counts=counts, slots=counts, recorded={},
    )  # fmt: skip


def _slots(layout: ChainLayout, counts: Array) -> tuple[Array, dict[str, tuple[Array, int | None]]]:
    """The slots of fibers, and the recorded lengths."""
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
        case FiberJob(fibers=fibers):
            return slots.reshape(-1, fibers).sum(axis=1) if slots.size else slots
        case BlockJob(slots=block):
            return np.full(int(slots.sum()) // block, block)


def _destinations(
    schedule: Scheduling, fibers: _Fibers, assignment: JobAssignment, slots: int
) -> Array:
    """The slot of every unit, counted through all machines."""
    ends = np.cumsum(fibers.slots)
    starts = ends - fibers.slots
    first = np.cumsum(fibers.counts) - fibers.counts
    position = np.arange(fibers.unit_fiber.size)
    base = assignment.machine * slots + assignment.start
    match schedule.job:
        case FiberJob(fibers=count):
            job = np.arange(fibers.slots.size) // count
            offset = base[job] + starts - starts[job * count] - first
            position += np.repeat(offset, fibers.counts)
        case BlockJob(slots=block):
            position += np.repeat(starts - first, fibers.counts)
            position += (base - np.arange(base.size) * block)[position // block]
    return position


def _streams(
    layout: ChainLayout,
    order: Order,
    fibers: _Fibers,
    assignment: JobAssignment,
    destination: Array,
    slots: int,
) -> dict[str, StructureStream]:
    schedule = layout.schedule
    assert schedule is not None
    shape = (schedule.machines, slots)
    streams: dict[str, StructureStream] = {}
    if layout.minor is not None:
        streams[layout.minor.index] = _by_slot(fibers.unit_minor, destination, shape)
    if layout.indexed_slots and layout.fiber is not None:
        row = fibers.numbers[fibers.unit_fiber]
        streams[layout.fiber.index] = _by_slot(row, destination, shape)
    local = isinstance(schedule.job, FiberJob) and order in (Order.STRIDED, Order.RECORDED)
    by_fiber = dict(fibers.recorded)
    if layout.fiber is not None and not layout.indexed_slots:
        by_fiber[layout.fiber.index] = (fibers.numbers, 1)
    for name, (data, covered) in by_fiber.items():
        empty = -1 if layout.fiber is not None and name == layout.fiber.index else 0
        if local and covered is not None and isinstance(schedule.job, FiberJob):
            entries = (max(1, schedule.job.fibers // covered), covered // schedule.job.fibers)
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
    """Entries of jobs by machine, in the order in which each machine gets them."""
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
