"""Lower bounds on the cycles of programs of which some decisions are taken.

What is decided cuts the statements into parts that no graph can join any more, and no part takes
fewer cycles than its busiest statement.  A result that is not stored is computed where its readers
take it.  What they take for certain follows from the other tensors that they read: a reader comes
to all coordinates at which each of these has something other than zero.  So only these count, in
the order of loops that a graph may give the statement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations, product
from math import prod
from typing import Any

import numpy as np

from t2s.driver.sparse_bound import MOST_TUPLES, Bounds, Indices, Taken
from t2s.sparse_repr.concrete.fusion import Way
from t2s.sparse_repr.concrete.schedule import (
    DropZeros,
    OrderLoops,
    Parallelize,
    Schedule,
    Transpose,
)
from t2s.sparse_repr.notation.ir import Access, Assignment, all_variables
from t2s.sparse_repr.tensors.tensor import SparseTensor

MOST_ORDERS = 24
"""Orders of a statement that are counted; of more, only what all of them have in common is."""

MOST_PERMUTED = 4
"""Variables whose order nobody says; of more, too."""

EVERYTHING = Taken(modes=(), coordinates=np.zeros((1, 0), np.int64))
NOTHING = Taken(modes=(), coordinates=np.zeros((0, 0), np.int64))

SHARED_DIRECTIVES = OrderLoops, Transpose, Parallelize, DropZeros
"""Those that statements of one graph may have."""

Order = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class OrderedLoops:
    """A schedule that a statement may have, its loops where all is stored, and its least cycles.

    ``loops`` is ``None`` if they are those of several stages.
    """

    schedule: Schedule | None
    loops: Order | None
    least: int


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What is decided: the ways of results, and the schedules of the statements ``decided``."""

    ways: Mapping[str, Way]
    schedules: Mapping[str, Schedule]
    decided: frozenset[str]

    def stores(self, name: str) -> bool:
        """Whether a result is stored for certain."""
        return self.ways.get(name) is Way.STORE


@dataclass(kw_only=True)
class ProgramBounds:
    """Bounds for the programs of a space.

    Attributes
    ----------
    assignments: the statements, each after those that it reads.
    known: all tensors, by numpy.
    given: the user's schedules of statements.
    orders: the schedules that a search may give to a statement.
    bounds: those of each statement alone.
    """

    assignments: Mapping[str, Assignment]
    known: Mapping[str, SparseTensor]
    given: Mapping[str, Schedule]
    orders: Mapping[str, Sequence[OrderedLoops]]
    bounds: Mapping[str, Bounds]
    _taken: dict[tuple[object, ...], Taken] = field(default_factory=dict)
    _least: dict[tuple[object, ...], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.readers: dict[str, list[str]] = {name: [] for name in self.assignments}
        for reader, assignment in self.assignments.items():
            for name in dict.fromkeys(access.tensor for access in assignment.reads):
                if name in self.readers:
                    self.readers[name].append(reader)

    def of(self, choices: Choices) -> int:
        """No program with these choices takes fewer cycles."""
        orders = self._possible_orders(choices)
        part = {name: name for name in self.assignments}
        taken: dict[str, Taken] = {}
        lanes: dict[str, int] = {}
        least: dict[str, int] = {}
        for name in reversed([*self.assignments]):
            readers = self.readers[name]
            if choices.stores(name) or not readers:
                taken[name], lanes[name] = EVERYTHING, 1
            else:
                each = [self._taken_by(reader, name, taken[reader], choices) for reader in readers]
                taken[name] = max(each, key=lambda one: self._share(name, one))
                lanes[name] = max(self._lanes(reader) * lanes[reader] for reader in readers)
                part |= {_root(part, reader): name for reader in readers}
            counted = self._least_of(name, orders[name], taken[name], choices)
            least[name] = -(-counted // lanes[name])
        busiest: dict[str, int] = {}
        for name, cycles in least.items():
            root = _root(part, name)
            busiest[root] = max(busiest.get(root, 0), cycles)
        return sum(busiest.values())

    # what readers take for certain

    def _taken_by(self, reader: str, name: str, of_reader: Taken, choices: Choices) -> Taken:
        """What a statement takes of a result, if so much of its own result is computed."""
        assignment = self.assignments[reader]
        others = [one for one in assignment.reads if one.tensor != name]
        whole = tuple(one.tensor for one in others if self._is_whole(one.tensor, choices))
        key = name, reader, of_reader, whole
        if key not in self._taken:
            mine = (access for access in assignment.reads if access.tensor == name)
            self._taken[key] = max(
                (self._taken_at(access, assignment, of_reader, whole) for access in mine),
                key=lambda one: self._share(name, one),
            )
        return self._taken[key]

    def _is_whole(self, tensor: str, choices: Choices) -> bool:
        """Whether a tensor sends something at all coordinates."""
        value = self.known[tensor]
        if tensor in self.assignments and not choices.stores(tensor):
            return bool(_nonzero(value)[0].shape[1] == prod(value.shape))
        return value.format.is_array

    def _taken_at(
        self, access: Access, reader: Assignment, of_reader: Taken, whole: Sequence[str]
    ) -> Taken:
        if len(set(access.variables)) < len(access.variables):
            return NOTHING
        tables = []
        if of_reader.modes or not len(of_reader.coordinates):
            names = tuple(reader.result.variables[mode] for mode in of_reader.modes)
            tables.append((names, of_reader.coordinates))
        for other in reader.reads:
            if other != access and other.tensor not in whole:
                table = _table(other, self.known[other.tensor])
                if table is None:
                    return NOTHING
                tables.append(table)
        joined = _joined(tables)
        if joined is None:
            return NOTHING
        names, rows = joined
        modes = tuple(m for m, variable in enumerate(access.variables) if variable in names)
        columns = [names.index(access.variables[mode]) for mode in modes]
        coordinates = np.unique(rows[:, columns], axis=0) if modes else rows[:1, :0]
        if not modes:
            return EVERYTHING if len(rows) else NOTHING
        every = prod(self.known[access.tensor].shape[mode] for mode in modes)
        return (
            EVERYTHING if len(coordinates) == every else Taken(modes=modes, coordinates=coordinates)
        )

    def _share(self, name: str, taken: Taken) -> int:
        """How many elements of a result are taken."""
        shape = self.known[name].shape
        free = prod(extent for mode, extent in enumerate(shape) if mode not in taken.modes)
        return len(taken.coordinates) * free

    # what a statement takes for that

    def _lanes(self, name: str) -> int:
        """Copies of the loops of a statement, and of what is computed inside of them."""
        schedule = self.given.get(name, Schedule())
        return prod(d.lanes for d in schedule.directives if isinstance(d, Parallelize))

    def _wanted(self, name: str, choices: Choices) -> list[OrderedLoops]:
        """The schedules that a statement may have."""
        if name not in choices.decided:
            return [*self.orders[name]]
        wanted = choices.schedules.get(name)
        return [one for one in self.orders[name] if one.schedule == wanted]

    def _possible_orders(self, choices: Choices) -> dict[str, frozenset[Order] | None]:
        """The orders of loops that each statement may have in its graph; ``None`` if they are many.

        Where nobody says it, a statement walks what is streamed to it in the order in which that is
        made.
        """
        found: dict[str, frozenset[Order] | None] = {}
        for name, assignment in self.assignments.items():
            passed = [
                access
                for access in assignment.reads
                if access.tensor in self.assignments and not choices.stores(access.tensor)
            ]
            orders: set[Order] | None = set()
            for one in self._wanted(name, choices) if name in self.orders else ():
                schedule = one.schedule or self.given.get(name, Schedule())
                fixed = any(isinstance(d, OrderLoops) for d in schedule.directives)
                more = None if one.loops is None else {one.loops}
                if passed and not fixed and one.loops is not None:
                    following = self._following(assignment, one.loops, passed, found)
                    more = None if following is None else {one.loops, *following}
                orders = None if orders is None or more is None else orders | more
            known = orders is not None and 0 < len(orders) <= MOST_ORDERS
            found[name] = frozenset(orders) if known and orders is not None else None
        return found

    def _following(
        self,
        assignment: Assignment,
        loops: Order,
        passed: Sequence[Access],
        found: Mapping[str, frozenset[Order] | None],
    ) -> set[Order] | None:
        """The orders that begin as results that may be streamed are made."""
        made: list[list[tuple[str, ...]]] = []
        for access in passed:
            orders = found[access.tensor]
            if orders is None:
                return None
            of_result = self.assignments[access.tensor].result.variables
            ways = {
                tuple(access.variables[of_result.index(n)] for n in order if n in of_result)
                for order in orders
            }
            made.append([(), *sorted(ways)])
        following: set[Order] = set()
        variables = all_variables(assignment)
        for first in product(*made):
            begin = tuple(dict.fromkeys(name for names in first for name in names))
            if loops[: len(begin)] == begin:
                continue
            rest = [name for name in variables if name not in begin]
            if len(rest) > MOST_PERMUTED:
                return None
            following |= {(*begin, *end) for end in permutations(rest)}
        return following

    def _least_of(
        self, name: str, orders: frozenset[Order] | None, taken: Taken, choices: Choices
    ) -> int:
        """The cycles of a statement of which so much is computed."""
        if name not in self.orders:
            return 0
        wanted = self._wanted(name, choices)
        key = name, orders, taken, tuple(one.schedule for one in wanted)
        if key not in self._least:
            alone = {one.loops: one.least for one in wanted}
            if (taken is EVERYTHING and alone.keys() == orders) or self._stays_alone(name, choices):
                self._least[key] = min(alone.values())
            else:
                assignment, bounds = self.assignments[name], self.bounds[name]
                cycles = (bounds.of_order(assignment, order, taken) for order in orders or (None,))
                self._least[key] = -(-min(cycles) // self._lanes(name))
        return self._least[key]

    def _stays_alone(self, name: str, choices: Choices) -> bool:
        """Whether a statement has a graph of its own, with the loops that it has alone."""
        directives = self.given.get(name, Schedule()).directives
        if not all(isinstance(one, SHARED_DIRECTIVES) for one in directives):
            return True
        read = (access.tensor for access in self.assignments[name].reads)
        stored = all(one not in self.assignments or choices.stores(one) for one in read)
        return stored and (choices.stores(name) or not self.readers[name])


def _root(part: Mapping[str, str], name: str) -> str:
    while part[name] != name:
        name = part[name]
    return name


def _nonzero(value: SparseTensor) -> tuple[Indices, Any]:
    """The coordinates of what is not zero, a row for each mode, and the values there."""
    entries = value.entries()
    there = entries.values != 0
    modes = [mode[there] for mode in entries.modes]
    table = np.stack(modes) if modes else np.zeros((0, int(there.sum())), np.int64)
    return table, entries.values[there]


Table = tuple[tuple[str, ...], Indices]
"""Names of variables, and rows of coordinates of these."""


def _table(access: Access, value: SparseTensor) -> Table | None:
    """Where a tensor is not zero; ``None`` if it is read along a diagonal."""
    if len(set(access.variables)) < len(access.variables):
        return None
    return access.variables, _nonzero(value)[0].T


def _joined(tables: Sequence[Table]) -> Table | None:
    """The coordinates that all tables have; ``None`` if they are too many."""
    names: tuple[str, ...] = ()
    rows = np.zeros((1, 0), np.int64)
    for other_names, other in sorted(tables, key=lambda table: len(table[1])):
        shared = [name for name in other_names if name in names]
        mine = rows[:, [names.index(name) for name in shared]]
        theirs = other[:, [other_names.index(name) for name in shared]]
        both = np.concatenate([mine, theirs])
        if shared:
            _, keys = np.unique(both, axis=0, return_inverse=True)
            keys = keys.reshape(-1)
        else:
            keys = np.zeros(len(both), np.int64)
        own, sort = keys[: len(rows)], np.argsort(keys[len(rows) :], kind="stable")
        sorted_keys = keys[len(rows) :][sort]
        first = np.searchsorted(sorted_keys, own)
        counts = np.searchsorted(sorted_keys, own, side="right") - first
        if counts.sum() > MOST_TUPLES:
            return None
        left = np.repeat(np.arange(len(rows)), counts)
        offsets = np.arange(len(left)) - np.repeat(np.cumsum(counts) - counts, counts)
        right = sort[first[left] + offsets]
        fresh = [number for number, name in enumerate(other_names) if name not in names]
        rows = np.concatenate([rows[left], other[right][:, fresh]], axis=1)
        names = (*names, *(other_names[number] for number in fresh))
    return names, rows
