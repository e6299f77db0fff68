"""Sequences of addresses with tags as nests of loops, for PEs that run them.

In goes what a stream touches, element by element.  Out comes a list of items: addresses, and
repetitions of items in which addresses move by a shift from one time to the next.  Addresses are of
*lanes*, one for each stream where several share a port, and each lane has a shift of its own.
Whatever is repeated with constant shifts is found, however the loops are nested and wherever tags
change; a sequence without any regularity becomes a list of its addresses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from t2s.core.ops import Array

LONGEST_BODY = 64
"""Most items that are looked at as one body of a loop."""


Shifts = tuple[int, ...]
"""By lane."""


@dataclass(frozen=True, slots=True)
class TaggedAddress:
    """An address that is sent with a tag."""

    address: int
    tag: int
    lane: int = 0


@dataclass(frozen=True, slots=True)
class AddressLoop:
    """``count`` times the items, all addresses of a lane greater by its shift each time."""

    count: int
    shifts: Shifts
    items: tuple[AddressItem, ...]


AddressItem = TaggedAddress | AddressLoop


def rolled(
    addresses: Array, tags: Array | None, lanes: Array | None = None
) -> tuple[AddressItem, ...]:
    """The shortest nest that is found for addresses with tags and lanes (``None``: all are 0)."""
    none = np.zeros(len(addresses), np.int64)
    tags, lanes = none if tags is None else tags, none if lanes is None else lanes
    count = int(lanes.max()) + 1 if len(lanes) else 1
    items = _runs(addresses, tags, lanes, count)
    length = 1
    while length <= min(LONGEST_BODY, len(items) // 2):
        shorter = _folded(items, length, count)
        if len(shorter) < len(items):
            items, length = shorter, 1
        else:
            length += 1
    return tuple(items)


def unrolled(items: Sequence[AddressItem]) -> Iterator[TaggedAddress]:
    """The addresses of a nest in order."""
    for item in items:
        match item:
            case TaggedAddress():
                yield item
            case AddressLoop():
                for time in range(item.count):
                    for address in unrolled(item.items):
                        moves = item.shifts[address.lane] * time
                        yield replace(address, address=address.address + moves)


def moved(item: AddressItem, shifts: Shifts, times: int) -> AddressItem:
    """An item with all addresses greater by some times the shifts."""
    match item:
        case TaggedAddress(address=address, lane=lane):
            return replace(item, address=address + shifts[lane] * times)
        case AddressLoop():
            return replace(item, items=tuple(moved(one, shifts, times) for one in item.items))


def _firsts(items: Sequence[AddressItem], found: dict[int, int]) -> dict[int, int]:
    """The first address of each lane."""
    for item in items:
        if isinstance(item, AddressLoop):
            _firsts(item.items, found)
        else:
            found.setdefault(item.lane, item.address)
    return found


def _runs(addresses: Array, tags: Array, lanes: Array, count: int) -> list[AddressItem]:
    """Stretches of three and more addresses of a lane with one stride and one tag as loops."""
    steps = np.diff(addresses)
    same = (np.diff(tags) == 0) & (np.diff(lanes) == 0)
    items: list[AddressItem] = []
    at, total = 0, len(addresses)
    # where a stretch that goes on at each place ends: the next change of stride, tag or lane
    breaks = np.flatnonzero((np.diff(steps) != 0) | ~same[1:] | ~same[:-1]) + 1
    while at < total:
        number = int(np.searchsorted(breaks, at + 1))
        last = int(breaks[number]) if number < len(breaks) else total - 1
        lane = int(lanes[at])
        start = TaggedAddress(int(addresses[at]), int(tags[at]), lane)
        if last - at >= 2 and same[at]:
            shifts = tuple(int(steps[at]) if one == lane else 0 for one in range(count))
            items.append(AddressLoop(last - at + 1, shifts, (start,)))
            at = last + 1
        else:
            items.append(start)
            at += 1
    return items


def _folded(items: list[AddressItem], length: int, lanes: int) -> list[AddressItem]:
    """The items with repetitions of bodies of some length as loops."""
    found: list[AddressItem] = []
    at = 0
    least = 3 if length == 1 else 2
    while at < len(items):
        count, shifts = _repeats(items, at, length, lanes)
        if count >= least or (count == 2 and isinstance(items[at], AddressLoop)):
            found.append(AddressLoop(count, shifts, tuple(items[at : at + length])))
            at += count * length
        else:
            found.append(items[at])
            at += 1
    return found


def _repeats(items: list[AddressItem], at: int, length: int, lanes: int) -> tuple[int, Shifts]:
    """How often the items at a place come again and again, and the shifts from one to the next."""
    none = (0,) * lanes
    if at + 2 * length > len(items):
        return 1, none
    first = _firsts(items[at : at + length], {})
    second = _firsts(items[at + length : at + 2 * length], {})
    if first.keys() != second.keys():
        return 1, none
    shifts = tuple(second.get(lane, 0) - first.get(lane, 0) for lane in range(lanes))
    count = 1
    while at + (count + 1) * length <= len(items):
        here, there = at + (count - 1) * length, at + count * length
        if any(
            not _is_moved(items[here + place], items[there + place], shifts)
            for place in range(length)
        ):
            break
        count += 1
    return count, shifts


def _is_moved(one: AddressItem, other: AddressItem, shifts: Shifts) -> bool:
    match one, other:
        case TaggedAddress(), TaggedAddress():
            moves = other.address - one.address
            return (one.tag, one.lane, shifts[one.lane]) == (other.tag, other.lane, moves)
        case AddressLoop(), AddressLoop():
            return (one.count, one.shifts, len(one.items)) == (
                other.count,
                other.shifts,
                len(other.items),
            ) and all(_is_moved(a, b, shifts) for a, b in zip(one.items, other.items, strict=True))
    return False
