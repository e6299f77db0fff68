"""Sequences of addresses with tags as nests of loops, for PEs that run them.

In goes what a stream touches, element by element.  Out comes a list of items: addresses, and
repetitions of items in which all addresses move by a shift from one time to the next.  Whatever is
repeated with constant shifts is found, however the loops are nested and wherever tags change; a
sequence without any regularity becomes a list of its addresses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from t2s.core.ops import Array

LONGEST_BODY = 64
"""Most items that are looked at as one body of a loop."""


@dataclass(frozen=True, slots=True)
class TaggedAddress:
    """An address that is sent with a tag."""

    address: int
    tag: int


@dataclass(frozen=True, slots=True)
class AddressLoop:
    """``count`` times the items, all addresses greater by ``shift`` each time."""

    count: int
    shift: int
    items: tuple[AddressItem, ...]


AddressItem = TaggedAddress | AddressLoop


def rolled(addresses: Array, tags: Array | None) -> tuple[AddressItem, ...]:
    """The shortest nest that is found for addresses and their tags (``None``: all are 0)."""
    items = _runs(addresses, np.zeros(len(addresses), np.int64) if tags is None else tags)
    length = 1
    while length <= min(LONGEST_BODY, len(items) // 2):
        shorter = _folded(items, length)
        if len(shorter) < len(items):
            items, length = shorter, 1
        else:
            length += 1
    return tuple(items)


def unrolled(items: Sequence[AddressItem], shift: int = 0) -> Iterator[TaggedAddress]:
    """The addresses of a nest in order."""
    for item in items:
        match item:
            case TaggedAddress(address=address, tag=tag):
                yield TaggedAddress(address + shift, tag)
            case AddressLoop():
                for time in range(item.count):
                    yield from unrolled(item.items, shift + time * item.shift)


def moved(item: AddressItem, shift: int) -> AddressItem:
    """An item with all addresses greater by a shift."""
    match item:
        case TaggedAddress(address=address, tag=tag):
            return TaggedAddress(address + shift, tag)
        case AddressLoop():
            return replace(item, items=tuple(moved(inner, shift) for inner in item.items))


def first_address(item: AddressItem) -> int:
    """The address that comes first."""
    while isinstance(item, AddressLoop):
        item = item.items[0]
    return item.address


def _runs(addresses: Array, tags: Array) -> list[AddressItem]:
    """Stretches of three and more addresses with one stride and one tag as loops."""
    steps, same = np.diff(addresses), np.diff(tags) == 0
    items: list[AddressItem] = []
    at, total = 0, len(addresses)
    # where a stretch that goes on at each place ends: the next change of stride or of tag
    breaks = np.flatnonzero((np.diff(steps) != 0) | ~same[1:] | ~same[:-1]) + 1
    while at < total:
        number = int(np.searchsorted(breaks, at + 1))
        last = int(breaks[number]) if number < len(breaks) else total - 1
        start = TaggedAddress(int(addresses[at]), int(tags[at]))
        if last - at >= 2 and same[at]:
            items.append(AddressLoop(last - at + 1, int(steps[at]), (start,)))
            at = last + 1
        else:
            items.append(start)
            at += 1
    return items


def _folded(items: list[AddressItem], length: int) -> list[AddressItem]:
    """The items with repetitions of bodies of some length as loops."""
    found: list[AddressItem] = []
    at = 0
    least = 3 if length == 1 else 2
    while at < len(items):
        count, shift = _repeats(items, at, length)
        if count >= least or (count == 2 and isinstance(items[at], AddressLoop)):
            found.append(AddressLoop(count, shift, tuple(items[at : at + length])))
            at += count * length
        else:
            found.append(items[at])
            at += 1
    return found


def _repeats(items: list[AddressItem], at: int, length: int) -> tuple[int, int]:
    """How often the items at a place come again and again, and the shift from one to the next."""
    if at + 2 * length > len(items):
        return 1, 0
    shift = first_address(items[at + length]) - first_address(items[at])
    count = 1
    while at + (count + 1) * length <= len(items):
        here, there = at + (count - 1) * length, at + count * length
        if any(
            not _is_moved(items[here + place], items[there + place], shift)
            for place in range(length)
        ):
            break
        count += 1
    return count, shift


def _is_moved(one: AddressItem, other: AddressItem, shift: int) -> bool:
    match one, other:
        case TaggedAddress(), TaggedAddress():
            return one.tag == other.tag and other.address - one.address == shift
        case AddressLoop(), AddressLoop():
            return (
                (one.count, one.shift, len(one.items))
                == (other.count, other.shift, len(other.items))
                and all(
                    _is_moved(a, b, shift) for a, b in zip(one.items, other.items, strict=True)
                )
            )
    return False
