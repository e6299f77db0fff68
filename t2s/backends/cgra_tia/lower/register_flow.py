"""Which writes of a register file reach which reads, by enumeration of all firings of a PE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from t2s.backends.cgra_tia.lower.not_lowered import refuse
from t2s.backends.cgra_tia.lower.schedule import LoopNest
from t2s.core.ops import Array

ZERO, SAME, RING = 0, 1, 2
"""Where a read gets its value from: nothing was written, this firing writes it, an earlier one."""


@dataclass(frozen=True, kw_only=True)
class TimedAccess:
    """A read or a write: the element that it means and whether it happens, in each iteration.

    ``number`` is its own among the reads or the writes of the PE, ``position`` its place in the
    body.
    """

    number: int
    writes: bool
    position: int
    element: Array
    active: Array


@dataclass(frozen=True, kw_only=True)
class RegisterFlow:
    """What becomes of the values of one register file.

    ``kinds`` and ``writers`` have, for each read, one entry for each iteration: where the value
    comes from, and the number of the write if that is in the same firing.  ``used`` has, for each
    write, whether what an iteration writes is read later.  ``order`` has the number of the write
    for each read of such a value, in order; ``live`` is the most values that wait at once.
    ``written_at`` and ``read_at`` are the iterations of these writes and reads, ``written_to`` and
    ``read_from`` their elements.
    """

    kinds: dict[int, Array]
    writers: dict[int, Array]
    used: dict[int, Array]
    order: Array
    live: int
    written_at: Array
    read_at: Array
    written_to: Array
    read_from: Array


@dataclass(frozen=True, kw_only=True)
class _Events:
    """All accesses, by element and then in order of time; ``last`` is the write before each.

    ``last`` is -1 where there is none of this element.
    """

    time: Array
    iteration: Array
    writes: Array
    number: Array
    last: Array
    element: Array


def followed(nest: LoopNest, name: str, accesses: Sequence[TimedAccess]) -> RegisterFlow:
    """Follow the values of a register file through its accesses.

    Refused: several values that are read later written, or read, in one firing.
    """
    count = len(accesses[0].active) if accesses else 0
    events = _sorted(accesses)
    reads = np.flatnonzero(~events.writes)
    reads = reads[np.argsort(events.time[reads], kind="stable")]
    source = events.last[reads]
    there = source >= 0
    same = there & (events.iteration[source] == events.iteration[reads])
    kind = np.where(same, SAME, np.where(there, RING, ZERO))
    rings, sources = reads[kind == RING], source[kind == RING]
    used = np.unique(sources)
    used = used[np.argsort(events.time[used], kind="stable")]
    _check_single(nest, name, events.iteration[used], "written")
    rank = np.zeros(len(events.time), np.int64)
    rank[used] = np.arange(len(used))
    order, when = rank[sources], events.iteration[rings]
    again = np.flatnonzero(np.diff(when) == 0) + 1
    if (order[again] != order[again - 1]).any():
        _check_single(nest, name, when, "read")
    once = np.delete(np.arange(len(order)), again)
    kinds: dict[int, Array] = {}
    writers: dict[int, Array] = {}
    for read in sorted({access.number for access in accesses if not access.writes}):
        mine = events.number[reads] == read
        at = events.iteration[reads[mine]]
        kinds[read], writers[read] = np.zeros(count, np.int8), np.zeros(count, np.int64)
        kinds[read][at] = kind[mine]
        writers[read][at] = np.where(kind[mine] == SAME, events.number[source[mine]], 0)
    later: dict[int, Array] = {}
    for write in sorted({access.number for access in accesses if access.writes}):
        later[write] = np.zeros(count, bool)
        later[write][events.iteration[used[events.number[used] == write]]] = True
    live = _most_live(events.time[used], events.time[rings[once]], order[once])
    return RegisterFlow(
        kinds=kinds,
        writers=writers,
        used=later,
        order=order[once],
        live=live,
        written_at=events.iteration[used],
        read_at=when[once],
        written_to=events.element[used],
        read_from=events.element[rings[once]],
    )


def _sorted(accesses: Sequence[TimedAccess]) -> _Events:
    positions = 1 + max((access.position for access in accesses), default=0)
    when = [np.flatnonzero(access.active) for access in accesses]
    pairs = list(zip(accesses, when, strict=True))
    none = np.zeros(0, np.int64)
    element = np.concatenate([none, *(access.element[at] for access, at in pairs)])
    time = np.concatenate([none, *(at * positions + access.position for access, at in pairs)])
    writes = np.concatenate([none, *(np.full(len(at), a.writes) for a, at in pairs)]).astype(bool)
    number = np.concatenate([none, *(np.full(len(at), a.number) for a, at in pairs)])
    order = np.lexsort((time, element))
    element, time, writes, number = (part[order] for part in (element, time, writes, number))
    last = np.where(writes, np.arange(len(order)), -1)
    if len(last):
        last = np.maximum.accumulate(last)
        last = np.where((last >= 0) & (element[last] == element), last, -1)
    return _Events(
        time=time,
        iteration=time // positions,
        writes=writes,
        number=number,
        last=last,
        element=element,
    )


def _check_single(nest: LoopNest, name: str, when: Array, what: str) -> None:
    if (np.diff(when) == 0).any():
        refuse(
            nest.subject,
            f"several elements of {name!r} are {what} in one firing; a file of registers becomes "
            "a ring of tokens, of which one goes by in a cycle",
            nest.location,
        )


def _most_live(written: Array, read: Array, sequence: Array) -> int:
    """The most values that are written and not yet read for the last time."""
    if not len(written):
        return 0
    final = np.zeros(len(written), np.int64)
    np.maximum.at(final, sequence, read)
    gone = np.searchsorted(np.sort(final), written, side="left")
    return int((np.arange(1, len(written) + 1) - gone).max())
