"""The requests of a machine for all its firings at once: ``machine_port`` with arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from t2s.core.ops import Array
from t2s.graph.graph import Graph
from t2s.graph.semantics import HOLE
from t2s.simulator.memory.lane_addresses import Addresses
from t2s.simulator.memory.machine_accesses import RuleAccesses, ports_of
from t2s.simulator.memory.port import too_long
from t2s.simulator.memory.spec import Dram

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Accesses:
    """All accesses of a run in order: their firing, port, first and last line, and what else."""

    firing: Numbers
    port: Numbers
    first: Numbers
    last: Numbers
    level: Numbers
    decides: Numbers

    def chosen(self, where: NDArray[np.bool_]) -> _Accesses:
        return _Accesses(
            firing=self.firing[where],
            port=self.port[where],
            first=self.first[where],
            last=self.last[where],
            level=self.level[where],
            decides=self.decides[where],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lines:
    """What begins in a tensor: lines, by whom they are asked for, and, by access, the latest."""

    line: Numbers
    asked_by: Numbers
    latest: Numbers


def levels_of(rules: Sequence[RuleAccesses]) -> int:
    """How many loads of a firing come one after the other, at most."""
    return max((a.level for rule in rules for a in rule.accesses), default=0) + 1


class MachineRequests:
    """The requests of one machine; ``codes`` and ``addresses`` as in ``MachineFirings``."""

    def __init__(
        self,
        graph: Graph,
        rules: Sequence[RuleAccesses],
        codes: Array,
        ended: bool,
        addresses: Sequence[Addresses],
        bases: Mapping[str, int],
        room: int,
        dram: Dram,
        levels: int,
    ) -> None:
        self._rules = rules
        self._ports = ports_of(rules)
        self._graph, self._dram, self._bases, self._room = graph, dram, bases, room
        self._codes = codes.astype(np.int64)
        self._levels = levels
        self.produced = 0
        self._plan(self._accesses(addresses), ended)

    @property
    def left(self) -> int:
        """Firings that are not yet produced; the last one is of none, for a machine that waits."""
        return len(self._codes) + 1 - self.produced

    @property
    def most(self) -> int:
        """The most requests of one firing."""
        return int(self.asked.max(initial=0))

    def take(self, count: int) -> tuple[Array, Array, Array]:
        """What the next firings, at most ``count``, ask for, as of a PE.

        Of what they need there is a column for each level, and then for each level of what decides.
        """
        begin, end = self.produced, self.produced + min(count, self.left)
        first, last = self._begins[begin], self._begins[end]
        self.produced = end
        here = slice(begin, end)
        return self.asked[here], self.needed[here], self.requests[first:last]

    def _accesses(self, addresses: Sequence[Addresses]) -> _Accesses:
        """All accesses, firing by firing."""
        width = max((len(rule.accesses) for rule in self._rules), default=0)
        shape = (max(1, len(self._rules)), max(1, width))
        of_channel = np.full((shape[0], len(addresses)), -1)
        port, level, bytes, base, limit, decides = (np.zeros(shape, np.int64) for _ in range(6))
        for code, rule in enumerate(self._rules):
            for at_access, access in enumerate(rule.accesses):
                at = code, at_access
                of_channel[code, access.channel] = at_access
                port[at] = self._ports.index((access.tensor, access.store))
                level[at], bytes[at], decides[at] = access.level, access.bytes, access.decides
                base[at] = self._bases[access.tensor]
                is_open = self._graph.tensor(access.tensor).open
                limit[at] = self._room if is_open else 1 << 62
        firings: list[Numbers] = []
        numbers: list[Numbers] = []
        offsets: list[Numbers] = []
        for channel, stream in enumerate(addresses):
            made = np.flatnonzero(of_channel[self._codes, channel] >= 0)
            which = of_channel[self._codes[made], channel]
            found = np.asarray(stream[: len(made)], np.int64)
            if found.ndim > 1:
                kept = self._first_of_lines(found, base[self._codes[made], which])
                lanes = np.count_nonzero(kept, axis=1)
                made, which, found = np.repeat(made, lanes), np.repeat(which, lanes), found[kept]
            firings.append(made)
            numbers.append(which)
            offsets.append(found)
        firing, number, offset = _joined(firings), _joined(numbers), _joined(offsets)
        order = np.argsort(firing * max(1, width) + number, kind="stable")
        firing, number, offset = firing[order], number[order], offset[order]
        rows = self._codes[firing], number
        outside = np.flatnonzero(offset + bytes[rows] > limit[rows])
        if len(outside):
            tensor = self._ports[port[rows][outside[0]]][0]
            raise too_long(self._graph, tensor, self._dram, self._room)
        begin = base[rows] + offset
        return _Accesses(
            firing=firing,
            port=port[rows],
            first=begin // self._dram.line_bytes,
            last=(begin + bytes[rows] - 1) // self._dram.line_bytes,
            level=level[rows],
            decides=decides[rows],
        )

    def _first_of_lines(self, offsets: Numbers, bases: Numbers) -> NDArray[np.bool_]:
        """Which lanes of each vector of elements are the first ones in their line.

        An element never lies in two lines.
        """
        kept: NDArray[np.bool_] = offsets != HOLE
        several = np.flatnonzero(np.count_nonzero(kept, axis=1) > 1)
        lines = (bases[several, None] + offsets[several]) // self._dram.line_bytes
        lines[~kept[several]] = HOLE
        order = np.argsort(lines, axis=1, kind="stable")
        sorted_lines = np.take_along_axis(lines, order, axis=1)
        first = np.ones(lines.shape, np.bool_)
        first[:, 1:] = sorted_lines[:, 1:] != sorted_lines[:, :-1]
        found = np.empty(lines.shape, np.bool_)
        np.put_along_axis(found, order, first, axis=1)
        kept[several] &= found
        return kept

    def _plan(self, accesses: _Accesses, ended: bool) -> None:
        """Number all requests, and say which of them each firing needs."""
        firings = len(self._codes)
        starts = self._starts()
        found: list[_Lines] = []
        chosen: list[_Accesses] = []
        for port, (_, store) in enumerate(self._ports):
            here = accesses.chosen(accesses.port == port)
            chosen.append(here)
            found.append(self._begun(here, store, starts, firings - 1 if ended else -1))
        stores = [store for _, store in self._ports]
        lines = _joined(item.line * 2 + store for item, store in zip(found, stores, strict=True))
        asking = _joined(item.asked_by for item in found)
        ports = _joined(np.full(len(item.line), port) for port, item in enumerate(found))
        made = np.flatnonzero(asking >= 0)
        order = made[np.lexsort((made, ports[made], asking[made]))]
        number = np.full(len(lines), -1)
        number[order] = np.arange(len(order))
        self.requests = lines[order]
        self.asked = np.zeros(firings + 1, np.int32)
        self.asked[:firings] = np.bincount(asking[order], minlength=firings)
        self._begins = np.append(0, np.cumsum(self.asked, dtype=np.int64))
        self.needed = np.full((firings + 1, 2 * self._levels), -1)
        at = 0
        for item, here, (_, store) in zip(found, chosen, self._ports, strict=True):
            if not store:
                needed = number[at + item.latest]
                np.maximum.at(self.needed, (here.firing, here.level), needed)
                some = here.decides > 0
                column = self._levels + here.level[some]
                np.maximum.at(self.needed, (here.firing[some], column), needed[some])
            at += len(item.line)

    def _starts(self) -> Numbers:
        """For each firing that runs on, the first one of those in a row; -1 for the others."""
        runs_on = np.array([rule.runs_on for rule in self._rules], np.bool_)[self._codes]
        begins = runs_on & ~np.append(False, runs_on[:-1])
        latest = np.maximum.accumulate(np.where(begins, np.arange(len(begins)), -1))
        return np.where(runs_on, latest, -1)

    def _begun(self, here: _Accesses, store: bool, starts: Numbers, last: int) -> _Lines:
        """The lines that the accesses of one port begin, and who asks for them."""
        span = here.last - here.first + 1
        access = np.repeat(np.arange(len(span)), span)
        within = np.arange(len(access)) - (np.cumsum(span) - span)[access]
        touched = here.first[access] + within
        new = np.append(True, touched[1:] != touched[:-1])[: len(touched)]
        line, firing = touched[new], here.firing[access[new]]
        count = np.cumsum(new)
        latest = count[np.cumsum(span) - 1] - 1 if len(span) else np.zeros(0, np.int64)
        position = np.arange(len(line))
        if store:
            full = (position // self._dram.units.store_lines + 1) * self._dram.units.store_lines
            asked_by = np.append(firing, last)[np.minimum(full, len(line))]
            return _Lines(line=line, asked_by=asked_by, latest=latest)
        start = starts[firing]
        fresh = np.append(True, (start[1:] != start[:-1]))[: len(line)] | (start < 0)
        opening = np.maximum.accumulate(np.where(fresh, position, 0)) if len(line) else position
        batch = (position - opening) // self._dram.units.load_lines
        leader = opening + batch * self._dram.units.load_lines
        asked_by = np.where(batch > 0, firing[leader], np.where(start >= 0, start, firing))
        return _Lines(line=line, asked_by=asked_by, latest=latest)


def _joined(parts: Iterable[Numbers]) -> Numbers:
    return np.concatenate([np.zeros(0, np.int64), *parts])
