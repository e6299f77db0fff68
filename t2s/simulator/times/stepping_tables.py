"""From the control of a program to the tables of the code that steps through cycles.

See ``stepping_emit``.  What is here follows from the rows alone, so runs of one program share it.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from t2s.simulator.times.run_ahead_shapes import RowPorts, Rows, common_order, used_positions
from t2s.simulator.values.layout import address_of

Numbers = NDArray[np.int64]

MOST_LANES = 64
MOST_ROWS = 255
"""A code is a byte, and one of them means the end."""

_WORD_LANES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTables:
    """Lanes and rows of all nodes of a program.

    Attributes
    ----------
    lanes: 32 or 64.
    element: the channel element of every lane, or -1.
    twin: the element that stands for each (see ``run_ahead_code``).
    slow: the lane that keeps a node from firing before its interval is over, by instance.
    steady: nodes that do the same in every firing, and take all that they wait for.
    storing: nodes that store in every firing.
    mixed: whether there are nodes that store in some firings only.
    tables: of every node: a row of words for every code, and one for the end.
    begin: in bytes, where each of them begins, one behind the other.
    used: the lanes of every node.
    """

    lanes: int
    element: Numbers
    twin: Numbers
    slow: Mapping[int, int]
    steady: tuple[int, ...]
    storing: tuple[int, ...]
    mixed: bool
    tables: tuple[NDArray[np.uint64], ...]
    begin: Numbers
    used: NDArray[np.uint64]

    @property
    def address(self) -> int:
        """Where the first table begins, which ``begin`` counts from."""
        return address_of(self.tables[0]) if self.tables else 0

    @property
    def words(self) -> int:
        """Words for what is received and what is sent."""
        return self.lanes // _WORD_LANES


@dataclass(frozen=True, slots=True)
class _Node:
    """The rows of a node, and the order in which they receive and send: see ``common_order``."""

    rows: list[RowPorts]
    receives: list[int]
    sends: list[int]

    @property
    def is_silent(self) -> bool:
        """Whether there is a firing that moves nothing."""
        return any(not row.takes and not row.puts for row in self.rows)

    @property
    def is_steady(self) -> bool:
        """Whether all firings do the same, and take all that they wait for."""
        kinds = {(*row.needs, -1, *row.takes, -1, *row.puts) for row in self.rows}
        return len(kinds) == 1 and self.rows[0].needs == self.rows[0].takes != []


_Lane = tuple[int, int, bool]
"""A channel element has a lane for each time that it comes in an order, and maybe for each end."""


@lru_cache(maxsize=32)
def step_tables(rows: Rows, twin: tuple[int, ...], slow: tuple[int, ...]) -> StepTables | None:
    """The tables; ``None`` if there would be too many lanes, or too many rows.

    ``slow`` are the instances with an interval of more than a cycle.
    """
    nodes = [_node(rows, instance, twin) for instance in range(len(rows.row_start))]
    if any(len(node.rows) > MOST_ROWS for node in nodes):
        return None
    order = _lane_order(nodes, apart=False) or _lane_order(nodes, apart=True) or ()
    silent = [n for n, node in enumerate(nodes) if n not in slow and node.is_silent]
    count = len(slow) + len(order) + len(silent)
    if count >= MOST_LANES:
        return None
    lanes = _WORD_LANES if count < _WORD_LANES else MOST_LANES
    own = {instance: number for number, instance in enumerate(slow)}
    marks = {instance: len(slow) + len(order) + n for n, instance in enumerate(silent)}
    numbers = _Lanes({lane: len(slow) + n for n, lane in enumerate(order)})
    element = np.full(lanes, -1, np.int64)
    for lane, number in numbers.number.items():
        element[number] = lane[0]
    tables = tuple(
        _table(node, lanes, numbers, own.get(n), marks.get(n)) for n, node in enumerate(nodes)
    )
    begin = np.cumsum([0, *(table.size for table in tables)])
    block = np.concatenate([np.zeros(0, np.uint64), *(table.reshape(-1) for table in tables)])
    stores = [[row.stores for row in node.rows] for node in nodes]
    return StepTables(
        lanes=lanes,
        element=element,
        twin=np.array(twin, np.int64),
        slow=own,
        steady=tuple(n for n, node in enumerate(nodes) if n not in own and node.is_steady),
        storing=tuple(n for n, found in enumerate(stores) if found and all(found)),
        mixed=any(any(found) and not all(found) for found in stores),
        tables=tuple(
            block[start:end].reshape(table.shape)
            for (start, end), table in zip(pairwise(begin.tolist()), tables, strict=True)
        ),
        begin=8 * begin,
        used=np.array([_used(table, lanes) for table in tables], np.uint64),
    )


def _node(rows: Rows, instance: int, twin: Sequence[int]) -> _Node:
    """A node, without the elements that others stand for."""

    def kept(elements: list[int]) -> list[int]:
        return [element for element in elements if twin[element] == element]

    found = [
        RowPorts(
            needs=kept(row.needs), takes=kept(row.takes), puts=kept(row.puts), stores=row.stores
        )
        for row in rows.ports(instance)
    ]
    receives = common_order([row.needs for row in found])
    return _Node(found, receives, common_order([row.puts for row in found]))


def _lane_order(nodes: Sequence[_Node], *, apart: bool) -> list[_Lane] | None:
    """All lanes, those that a firing waits for first before the others; ``None`` in a circle.

    With lanes for the two ends of an element ``apart`` there is no circle.
    """
    later: dict[_Lane, set[_Lane]] = {}
    for node in nodes:
        for order, sends in ((node.receives, False), (node.sends, True)):
            lanes = _numbered(order, sends and apart)
            for lane in lanes:
                later.setdefault(lane, set())
            for before, after in pairwise(lanes):
                later[before].add(after)
    waits = dict.fromkeys(later, 0)
    for following in later.values():
        for lane in following:
            waits[lane] += 1
    ready = [lane for lane, count in waits.items() if not count]
    heapq.heapify(ready)
    order_found: list[_Lane] = []
    while ready:
        lane = heapq.heappop(ready)
        order_found.append(lane)
        for after in later[lane]:
            waits[after] -= 1
            if not waits[after]:
                heapq.heappush(ready, after)
    return order_found if len(order_found) == len(later) else None


def _numbered(order: Sequence[int], sends: bool) -> list[_Lane]:
    """The lanes of an order, in which elements may come several times."""
    return [(element, order[:at].count(element), sends) for at, element in enumerate(order)]


@dataclass(frozen=True, slots=True)
class _Lanes:
    """The numbers of all lanes."""

    number: Mapping[_Lane, int]

    def asked(self, order: Sequence[int], row: Sequence[int], *, sends: bool) -> int:
        """The lanes that a firing waits for, one for each of its elements."""
        found = 0
        lanes = _numbered(order, False)
        for at in used_positions(order, row):
            element, time, _ = lanes[at]
            apart = sends and (element, time, True) in self.number
            found |= 1 << self.number[element, time, apart]
        return found

    def moved(self, elements: Sequence[int]) -> int:
        """All lanes of some elements."""
        return sum(1 << number for lane, number in self.number.items() if lane[0] in elements)


def _table(
    node: _Node, lanes: int, numbers: _Lanes, slow: int | None, mark: int | None
) -> NDArray[np.uint64]:
    """What every code asks for and moves; the last lane never has a token."""
    found: list[tuple[int, int, int, int]] = []
    for row in node.rows:
        needs = numbers.asked(node.receives, row.needs, sends=False)
        asks = numbers.asked(node.sends, row.puts, sends=True)
        takes, puts = numbers.moved(row.takes), numbers.moved(row.puts)
        if slow is not None:
            needs, takes, puts = needs | 1 << slow, takes | 1 << slow, puts | 1 << slow
        if mark is not None and not row.takes and not row.puts:
            takes, puts = 1 << mark, 1 << mark
        found.append((needs, asks, takes, puts))
    found.append((1 << (lanes - 1), 0, 0, 0))
    if lanes == MOST_LANES:
        return np.array(found, np.uint64)
    packed = [(needs | asks << lanes, takes | puts << lanes) for needs, asks, takes, puts in found]
    return np.array(packed, np.uint64)


def _used(table: NDArray[np.uint64], lanes: int) -> list[int]:
    words = lanes // _WORD_LANES
    rows = table[:-1]
    return [
        int(np.bitwise_or.reduce(rows[:, number] | rows[:, words + number], initial=np.uint64(0)))
        for number in range(words)
    ]
