"""Jobs to machines: which machine gets which job, and where in its stream the job starts."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapreplace
from typing import Any

import numpy as np

from t2s.sparse_repr.representation.inverse_map import Order
from t2s.sparse_repr.representation.vocabulary import Policy

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class Assignment:
    """Jobs by their numbers: the machine of each and its first slot there.

    ``sequence`` lists the jobs in the order in which machines get them; ``loads`` are the slots of
    all jobs of a machine.
    """

    machine: Array
    start: Array
    sequence: Array
    loads: Array


def assign(lengths: Array, machines: int, policy: Policy, order: Order) -> Assignment:
    """Deal out jobs of ``lengths`` slots."""
    sequence = np.arange(lengths.size)
    if order is Order.STRIDED or policy is Policy.ROUND_ROBIN:
        return _round_robin(lengths, machines, sequence)
    if policy is Policy.LONGEST_FIRST:
        sequence = np.argsort(-lengths, kind="stable")
    return _first_free(lengths, machines, sequence)


def _round_robin(lengths: Array, machines: int, sequence: Array) -> Assignment:
    rounds = -(-lengths.size // machines)
    table = np.zeros((rounds, machines), np.int64)
    table.reshape(-1)[: lengths.size] = lengths
    ends = np.cumsum(table, axis=0)
    return Assignment(
        machine=sequence % machines,
        start=(ends - table).reshape(-1)[: lengths.size],
        sequence=sequence,
        loads=ends[-1] if rounds else np.zeros(machines, np.int64),
    )


def _first_free(lengths: Array, machines: int, sequence: Array) -> Assignment:
    """Each job to the machine that ends first, the lowest number of those.

    The heap holds ``end * machines + machine``: the smallest one is the machine wanted.
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
    return Assignment(
        machine=keys % machines, start=keys // machines, sequence=sequence, loads=loads
    )
