"""The inverse map of a chain: (machine, position) -> (row, column), as computed in hardware.

The map describes a small stateful decoder for each stream of values; it depends on the chain only.
It has four parts, from the outside in:

1. which job comes next on a machine (``Order``; ``assign`` assigns jobs in that order);
2. which fiber comes next in the job, and for how many slots;
3. which unit a slot holds: the next entry of the index stream, or a counter;
4. which element of the unit a value is: counters again, and then arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from heapq import heapreplace
from typing import Any

import numpy as np

from t2s.sparse_repr.representation.chain_layout import (
    BlockJob,
    ChainLayout,
    DenseTile,
    FiberJob,
    Lengths,
    MatrixDimension,
    Policy,
)

Array = np.ndarray[Any, Any]


class Order(Enum):
    """How a decoder determines the next job of its machine."""

    STRIDED = "job p, p + m, p + 2 m, ... on machine p of m"
    REPLAYED = "the next job in order, whenever this machine is the first one free"
    RECORDED = "the next job number of a stream of this machine"
    FREE = "not needed: every slot says where it belongs"


@dataclass(frozen=True, slots=True, kw_only=True)
class InverseMap:
    """The decoder of a chain.

    Attributes
    ----------
    order, job, machines: how jobs are found.
    lengths: the structure with the number of slots of a fiber; ``None`` for dense fibers.
    fiber: name of the stream with the numbers of fibers, if empty ones are left out.
    fiber_by_slot: whether that stream has an entry for each slot.
    unit: name of the stream with the place of each unit in its fiber; ``None`` counts.
    job_index: name of the stream with the numbers of jobs, if they are recorded.
    tiles: blocks of dense dimensions, which give the elements of a unit.
    major, minor: the dimension across fibers, and the one along a fiber.
    """

    order: Order
    job: FiberJob | BlockJob
    machines: int
    lengths: Lengths | None
    fiber: str | None
    fiber_by_slot: bool
    unit: str | None
    job_index: str | None
    tiles: tuple[DenseTile, ...]
    major: MatrixDimension
    minor: MatrixDimension

    def streams(self) -> tuple[str, ...]:
        """Names of the structure that the decoder reads."""
        lengths = self.lengths.name if self.lengths is not None else None
        names = (self.job_index, lengths, self.fiber, self.unit)
        return tuple(name for name in names if name is not None)

    def __str__(self) -> str:
        lines = [f"job:    {self._job()}", f"fiber:  {self._fiber()}"]
        unit = f"next of {self.unit}" if self.unit is not None else "counts up"
        lines.append(f"unit:   {unit}")
        lines += self._coordinates()
        return "\n".join(lines)

    def _job(self) -> str:
        match self.job:
            case BlockJob(slots=slots):
                what = f"{slots} slot{'s' if slots > 1 else ''} of a fiber"
            case FiberJob(fibers=fibers):
                what = f"{fibers} fibers" if fibers > 1 else "a fiber"
        if self.order is Order.RECORDED:
            return f"{what}; next of {self.job_index or self.fiber}"
        return f"{what}; {self.order.value}".replace(" of m", f" of m = {self.machines}")

    def _fiber(self) -> str:
        if self.fiber_by_slot:
            return f"next of {self.fiber}"
        number = f"next of {self.fiber}" if self.fiber is not None else "counts up"
        return f"{number}, for {self._slots()} slots"

    def _slots(self) -> str:
        if self.lengths is None:
            return "all its"
        lengths = self.lengths
        text = f"the next of {lengths.name}"
        if lengths.fibers is None:
            text = lengths.name
        elif lengths.fibers > 1:
            text += f" (one for {lengths.fibers} fibers)"
        if lengths.round > 1:
            text = f"{text} up to a multiple of {lengths.round}"
        return f"{lengths.scale} * {text}" if lengths.scale > 1 else text

    def _coordinates(self) -> list[str]:
        names = {self.major: "fiber", self.minor: "unit"}
        second = MatrixDimension.DIAGONALS if self.diagonals else MatrixDimension.COLUMNS
        row, column = (self._coordinate(names[d], d) for d in (MatrixDimension.ROWS, second))
        if self.diagonals:
            column = f"i + {column} - (rows - 1)"
        return [f"i:      {row}", f"j:      {column}"]

    def _coordinate(self, outer: str, dimension: MatrixDimension) -> str:
        factors = [tile.factor for tile in self.tiles if tile.dimension is dimension]
        if not factors:
            return outer
        product = 1
        for factor in factors:
            if factor is None:
                return "counts up"
            product *= factor
        return f"{outer} * {product} + place in the unit"

    @property
    def diagonals(self) -> bool:
        """Whether the second dimension counts diagonals."""
        return MatrixDimension.DIAGONALS in (self.major, self.minor)


def job_order(layout: ChainLayout) -> Order | None:
    """How the order of jobs of a scheduled layout is recovered; ``None`` if it cannot be."""
    schedule = layout.schedule
    assert schedule is not None
    if layout.indexed_slots or (layout.whole_fiber and isinstance(schedule.job, BlockJob)):
        return Order.FREE
    if layout.equal_jobs or schedule.policy is Policy.ROUND_ROBIN:
        return Order.STRIDED
    named = layout.fiber is not None and schedule.job == FiberJob(fibers=1)
    if schedule.index is not None or named:
        return Order.RECORDED
    return Order.REPLAYED if schedule.policy is Policy.ASAP else None


def inverse_map(layout: ChainLayout) -> InverseMap:
    """The inverse map of a complete chain."""
    schedule, order = layout.schedule, None
    if schedule is not None:
        order = job_order(layout)
    assert schedule is not None
    assert order is not None
    assert layout.major is not None
    numbered = layout.fiber is not None and (order is not Order.FREE or layout.indexed_slots)
    return InverseMap(
        order=order,
        job=schedule.job,
        machines=schedule.machines,
        lengths=None if order is Order.FREE else layout.lengths,
        fiber=layout.fiber.index if layout.fiber is not None and numbered else None,
        fiber_by_slot=layout.indexed_slots,
        unit=layout.minor.index if layout.minor is not None else None,
        job_index=schedule.index if order is Order.RECORDED else None,
        tiles=layout.tiles,
        major=layout.major,
        minor=layout.other(layout.major),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class JobAssignment:
    """Jobs by their numbers: the machine of each and its first slot there.

    ``sequence`` lists the jobs in the order in which machines get them; ``loads`` are the slots of
    all jobs of a machine.
    """

    machine: Array
    start: Array
    sequence: Array
    loads: Array


def assign(lengths: Array, machines: int, policy: Policy, order: Order) -> JobAssignment:
    """Assign jobs of ``lengths`` slots to machines."""
    sequence = np.arange(lengths.size)
    if order is Order.STRIDED or policy is Policy.ROUND_ROBIN:
        return _round_robin(lengths, machines, sequence)
    if policy is Policy.LONGEST_FIRST:
        sequence = np.argsort(-lengths, kind="stable")
    return _first_free(lengths, machines, sequence)


def _round_robin(lengths: Array, machines: int, sequence: Array) -> JobAssignment:
    rounds = -(-lengths.size // machines)
    table = np.zeros((rounds, machines), np.int64)
    table.reshape(-1)[: lengths.size] = lengths
    ends = np.cumsum(table, axis=0)
    return JobAssignment(
        machine=sequence % machines,
        start=(ends - table).reshape(-1)[: lengths.size],
        sequence=sequence,
        loads=ends[-1] if rounds else np.zeros(machines, np.int64),
    )


def _first_free(lengths: Array, machines: int, sequence: Array) -> JobAssignment:
    """Assign each job to the machine that is free first, the lowest numbered on ties.

    The heap holds ``end * machines + machine``, so its minimum is that machine.
    """
    heap = list(range(machines))
    keys = np.empty(lengths.size, np.int64)
    steps = (lengths[sequence] * machines).tolist()
    taken = []
    for step in steps:
        key = heap[0]
        taken.append(key)
        heapreplace(heap, key + step)
    keys[sequence] = taken
    loads = np.zeros(machines, np.int64)
    for key in heap:
        loads[key % machines] = key // machines
    return JobAssignment(
        machine=keys % machines, start=keys // machines, sequence=sequence, loads=loads
    )
