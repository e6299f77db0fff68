"""The lines that units request from a DRAM, computed for many firings at once.

The lines that the firings of a PE request depend on loop indices only, not on times, so they are
evaluated for a stretch of firings at a time (``units`` has the rules).  Those of a machine follow
from its trace.

A machine that accesses the device's memory is a unit (see ``units``), too.  For each tensor that it
loads, and for each that it stores, it remembers the line that it touched last; an access *begins*
all other lines.  A gather or scatter touches the distinct lines of its lanes, in the order of the
lanes; a lane of -1 touches none.

* The firing that begins a line by a load requests it, because its address was unknown before.  But
  consecutive firings that *run on* (``machine_accesses``) follow from registers, so the first of
  them requests the first ``load_lines`` lines that they begin in a tensor, and the one that begins
  the next line as many again: a scanner requests a fiber as soon as it knows its position.
* Stored lines are collected: when ``store_lines`` lines of a tensor have begun and another one
  begins, all of them are written; the last firing of a machine that ends writes the rest.  But the
  lines of a tensor that is stored ``in_parts`` are updated (``dram``), each by the firing that
  begins it.

The requests of a firing are made tensor by tensor, in the order in which the machine's rules name
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from t2s.core.ops import Array
from t2s.graph.arrays import strides_of
from t2s.graph.body import Load, Store
from t2s.graph.control.accesses import accesses
from t2s.graph.control.domains import Domain
from t2s.graph.graph import Graph
from t2s.graph.nodes import PEArray
from t2s.graph.semantics import HOLE
from t2s.simulator.memory.dram import Request
from t2s.simulator.memory.machine_accesses import (
    Addresses,
    LaneAddresses,
    RuleAccesses,
    ports_of,
)
from t2s.simulator.memory.places import too_long
from t2s.simulator.memory.spec import Dram


def uses_memory(node: PEArray) -> bool:
    """Whether the node's PEs are units."""
    return any(isinstance(statement, Load | Store) for statement in node.body)


def most_requests(node: PEArray, dram: Dram) -> int:
    """A bound on the requests of one firing."""
    units = dram.units
    group = max(units.load_lines, units.store_lines)
    statements = [item for item in node.body if isinstance(item, Load | Store)]
    return sum(2 * group + accessed_bytes(item) // dram.line_bytes + 2 for item in statements)


def accessed_bytes(statement: Load | Store) -> int:
    """The bytes that one access of a statement moves."""
    return (statement.type if isinstance(statement, Load) else statement.value.type).bytes


Begun = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Firings, and a line that each of them begins."""

_LOOK_AHEAD = 1 << 16
"""Firings evaluated at once to find the next lines of a load."""


class _Statement:
    """A load or store of a unit's body, and the lines it begins."""

    def __init__(
        self, statement: Load | Store, base: int, strides: tuple[int, ...], dram: Dram
    ) -> None:
        self.statement = statement
        self.base = base
        self.strides = strides
        self.line_bytes = dram.line_bytes
        self.store = isinstance(statement, Store)
        self.group = dram.units.store_lines if self.store else dram.units.load_lines
        self.evaluated = 0
        self.last_line = -1
        self.first = 0
        self.firings = np.zeros(0, np.int64)
        self.lines = np.zeros(0, np.int64)
        self.positions = np.zeros(0, np.int64)

    def evaluate(self, domain: Domain, pe: int, end: int) -> None:
        """Find the lines that are begun before firing ``end``."""
        firings, lines = self._begun(domain, pe, end)
        self.firings = np.concatenate([self.firings, firings])
        self.lines = np.concatenate([self.lines, lines])
        self.evaluated = end

    def _begun(self, domain: Domain, pe: int, end: int) -> Begun:
        firings = np.arange(self.evaluated, end)
        firings, positions = accesses(self.statement, self.strides, domain, pe, firings)
        if not len(firings):
            return firings, firings
        address = self.base + positions
        first = address // self.line_bytes
        last = (address + accessed_bytes(self.statement) - 1) // self.line_bytes
        before = np.concatenate([[self.last_line], last[:-1]])
        self.last_line = int(last[-1])
        span = last - first + 1
        if int(span.max()) == 1:
            new = first != before
            return firings[new], first[new]
        access = np.repeat(np.arange(len(span)), span)
        line = first[access] + np.arange(len(access)) - (np.cumsum(span) - span)[access]
        new = line != before[access]
        return firings[access[new]], line[new]

    def requests(self, begin: int, end: int) -> Begun:
        """Requests of firings ``begin`` to ``end - 1``: 4 times the line, plus 1 for a write."""
        number = self.first + np.arange(len(self.lines))
        if self.store:
            asking = (number // self.group + 1) * self.group - self.first
            written = asking < len(number)
            at = self.firings[asking[written]]
            chosen = (begin <= at) & (at < end)
            return at[chosen], 4 * self.lines[written][chosen] + 1
        leader = self.firings[number // self.group * self.group - self.first]
        chosen = (begin <= leader) & (leader < end)
        return leader[chosen], 4 * self.lines[chosen]

    def rest(self, last: int) -> Begun:
        """The lines that the last firing of a unit has yet to write."""
        number = self.first + np.arange(len(self.lines))
        lines = self.lines[(number // self.group + 1) * self.group >= self.first + len(number)]
        return np.full(len(lines), last), 4 * lines + 1

    def forget(self, end: int) -> None:
        """Drop the groups that were requested and begun, or written, before ``end``."""
        begun = int(np.searchsorted(self.firings, end))
        done = max(0, (self.first + begun - 1) // self.group * self.group - self.first)
        self.first += done
        self.firings, self.lines = self.firings[done:], self.lines[done:]
        self.positions = self.positions[done:]

    def needed(self, firings: NDArray[np.int64]) -> NDArray[np.int64]:
        """For each firing, the request for the line that a load began last, or -1."""
        latest = np.searchsorted(self.firings, firings, side="right") - 1
        return np.where(latest >= 0, self.positions[np.maximum(latest, 0)], -1)


class RequestStream:
    """The requests of one PE, a stretch of firings at a time."""

    def __init__(
        self,
        graph: Graph,
        node: PEArray,
        domain: Domain,
        pe: int,
        bases: Mapping[str, int],
        dram: Dram,
    ) -> None:
        self.domain = domain
        self.pe = pe
        self.produced = 0
        self.asked = 0
        self.latest = -1
        self.statements = [
            _Statement(
                item, bases[item.tensor], strides_of(tensor.allocated, tensor.type.bytes), dram
            )
            for item in node.body
            if isinstance(item, Load | Store)
            for tensor in (graph.tensor(item.tensor),)
        ]

    @property
    def left(self) -> int:
        """Firings that have not been produced yet."""
        return self.domain.firings - self.produced

    def take(self, count: int) -> tuple[Array, Array, Array]:
        """The requests of the next firings, at most ``count``.

        For each firing the number of its requests, and in a column the request of the unit that it
        needs (-1 for none); and the requests, each 4 times its line, plus 1 for a write.
        """
        begin, end = self.produced, self.produced + min(count, self.left)
        with np.errstate(all="ignore"):
            for item in self.statements:
                self._evaluate(item, end)
        begun = [item.requests(begin, end) for item in self.statements]
        if end == self.domain.firings:
            begun += [item.rest(end - 1) for item in self.statements if item.store]
        firings = np.concatenate([firings for firings, _ in begun])
        requests = np.concatenate([requests for _, requests in begun])
        order = np.argsort(firings, kind="stable")
        self._number(begun, order)
        needed = self._needed(np.arange(begin, end))
        self.produced = end
        self.asked += len(requests)
        for item in self.statements:
            item.forget(end)
        counts = np.bincount(firings - begin, minlength=end - begin)
        return counts.astype(np.int32), needed[:, np.newaxis], requests[order]

    def _evaluate(self, item: _Statement, end: int) -> None:
        """Evaluate the lines begun before ``end``, and the rest of a load's last group."""
        item.evaluate(self.domain, self.pe, max(item.evaluated, end))
        if item.store:
            return
        begun = int(np.searchsorted(item.firings, end))
        wanted = -(-(item.first + begun) // item.group) * item.group - item.first
        while len(item.lines) < wanted and item.evaluated < self.domain.firings:
            more = min(item.evaluated + _LOOK_AHEAD, self.domain.firings)
            item.evaluate(self.domain, self.pe, more)

    def _number(self, begun: list[Begun], order: NDArray[np.int64]) -> None:
        """Note the numbers of the requests of loads."""
        number = np.empty(len(order), np.int64)
        number[order] = self.asked + np.arange(len(order))
        at = 0
        for item, (firings, _) in zip(self.statements, begun, strict=False):
            if not item.store:
                item.positions = np.concatenate([item.positions, number[at : at + len(firings)]])
            at += len(firings)

    def _needed(self, firings: NDArray[np.int64]) -> NDArray[np.int64]:
        needed = np.full(len(firings), self.latest)
        for item in self.statements:
            if not item.store and len(item.positions):
                needed = np.maximum(needed, item.needed(firings))
        needed = np.maximum.accumulate(needed) if len(needed) else needed
        self.latest = int(needed[-1]) if len(needed) else self.latest
        return needed


# The requests of a machine, for all its firings at once.

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Accesses:
    """All accesses of a run in order: firing, port, first and last line, and so on."""

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


class _AccessTable:
    """The properties of the accesses of rules, by number (their *kind*).

    Attributes
    ----------
    code, number: the rule, and the position among its accesses.
    channel: see ``RuleAccess``.
    port, level, bytes, decides: see ``_Accesses``.
    base: the address of the tensor.
    """

    def __init__(
        self,
        rules: Sequence[RuleAccesses],
        ports: Sequence[tuple[str, bool]],
        bases: Mapping[str, int],
    ) -> None:
        rows = [
            (
                *(code, number, access.channel, ports.index((access.tensor, access.store))),
                *(access.level, access.bytes, int(access.decides), bases[access.tensor]),
            )
            for code, rule in enumerate(rules)
            for number, access in enumerate(rule.accesses)
        ]
        columns = np.array(rows, np.int64).reshape(-1, 8).T
        self.code, self.number, self.channel, self.port = columns[:4]
        self.level, self.bytes, self.decides, self.base = columns[4:]

    def kinds_in(self, channel: int, codes: int) -> NDArray[np.int32]:
        """For each code, the kind of its access in a channel; -1 for none."""
        kinds = np.full(max(1, codes), -1, np.int32)
        numbers = np.flatnonzero(self.channel == channel)
        kinds[self.code[numbers]] = numbers
        return kinds

    def of(self, column: Numbers, kinds: Array) -> Numbers:
        """A column for many accesses; broadcast, without memory, if all kinds agree."""
        if len(column) and (column == column[0]).all():
            return np.broadcast_to(column[0], kinds.shape)
        return column[kinds]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lines:
    """The lines begun in a tensor, the firings that request them, and the latest line by access."""

    line: Numbers
    asked_by: Numbers
    latest: Numbers


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
        self._count = len(codes)
        self._levels = levels
        self._columns = self._used_columns()
        self.produced = self._made = 0
        self._plan(self._accesses(codes, addresses), self._starts(codes), ended)

    @property
    def left(self) -> int:
        """Firings not produced yet; the last entry is empty, for a machine that waits."""
        return self._count + 1 - self.produced

    @property
    def most(self) -> int:
        """The largest number of requests of a firing."""
        return int(self.asked.max(initial=0))

    def take(self, count: int) -> tuple[Array, Array, Array]:
        """The requests of the next firings, at most ``count``, as for a PE.

        The needed requests have a column for each level, and then one for each level of deciding
        loads.
        """
        span = slice(self.produced, self.produced + min(count, self.left))
        asked, begin = self.asked[span], self._made
        self.produced, self._made = span.stop, begin + int(asked.sum(dtype=np.int64))
        needed = np.full((len(asked), 2 * self._levels), -1)
        needed[:, self._columns] = self.needed[span]
        return asked, needed, self.requests[begin : self._made]

    def _used_columns(self) -> list[int]:
        """The columns of needed requests that are not always empty."""
        loads = [a for rule in self._rules for a in rule.accesses if not a.store]
        deciding = {self._levels + a.level for a in loads if a.decides}
        return sorted({a.level for a in loads} | deciding)

    def _accesses(self, codes: Array, addresses: Sequence[Addresses]) -> _Accesses:
        """All accesses, firing by firing."""
        table = _AccessTable(self._rules, self._ports, self._bases)
        firings: list[Numbers] = []
        kinds: list[Array] = []
        offsets: list[Numbers] = []
        for channel, stream in enumerate(addresses):
            of_code = table.kinds_in(channel, len(self._rules))
            accessing = np.flatnonzero((of_code >= 0)[codes])
            kind = of_code[codes[accessing]]
            if isinstance(stream, LaneAddresses):
                lanes, positions = self._distinct_lines(stream, table.of(table.base, kind))
                accessing, kind = np.repeat(accessing, lanes), np.repeat(kind, lanes)
            else:
                positions = stream[: len(accessing)].astype(np.int64)
            firings.append(accessing)
            kinds.append(kind)
            offsets.append(positions)
        firing, offset = _joined(firings), _joined(offsets)
        kind = np.concatenate([np.zeros(0, np.int32), *kinds])
        if len(addresses) > 1:
            order = np.argsort(firing * len(table.number) + table.number[kind], kind="stable")
            firing, kind, offset = firing[order], kind[order], offset[order]
        bytes = table.of(table.bytes, kind)
        self._check_room(table, kind, offset + bytes)
        begin = offset + table.of(table.base, kind)
        return _Accesses(
            firing=firing,
            port=table.of(table.port, kind),
            first=begin // self._dram.line_bytes,
            last=(begin + (bytes - 1)) // self._dram.line_bytes,
            level=table.of(table.level, kind),
            decides=table.of(table.decides, kind),
        )

    def _check_room(self, table: _AccessTable, kind: Array, ends: Numbers) -> None:
        """Check that open tensors fit into the remaining memory."""
        tensors = [tensor for tensor, _ in self._ports]
        for number, tensor in enumerate(tensors):
            if not self._graph.tensor(tensor).open:
                continue
            if (ends[table.port[kind] == number] > self._room).any():
                raise too_long(self._graph, tensor, self._dram, self._room)

    def _distinct_lines(self, vectors: LaneAddresses, bases: Numbers) -> tuple[Numbers, Numbers]:
        """For each vector, the number of lines its lanes touch, and the first address in each.

        An element never straddles two lines.  Most vectors have one lane; only the others are
        sorted.
        """
        rows = vectors.first(len(bases))
        counts, offsets = rows.counts(), rows.addresses.astype(np.int64)
        several = np.flatnonzero(counts > 1)
        if not len(several):
            return counts, offsets
        lanes = np.unpackbits(rows.chosen[several], axis=1, count=vectors.lanes).view(np.bool_)
        elements = np.repeat(counts > 1, counts)
        touched = np.repeat(bases[several], counts[several]) + offsets[elements]
        lines = np.full(lanes.shape, HOLE, np.int64)
        lines[lanes] = touched // self._dram.line_bytes
        order = np.argsort(lines, axis=1, kind="stable")
        ascending = np.take_along_axis(lines, order, axis=1)
        new = np.ones(lines.shape, np.bool_)
        new[:, 1:] = ascending[:, 1:] != ascending[:, :-1]
        first = np.empty(lines.shape, np.bool_)
        np.put_along_axis(first, order, new, axis=1)
        distinct = np.ones(len(offsets), np.bool_)
        distinct[elements] = first[lanes]
        counts[several] = np.count_nonzero(first & lanes, axis=1)
        return counts, offsets[distinct]

    def _plan(self, accesses: _Accesses, starts: Numbers, ended: bool) -> None:
        """Number all requests, and find those that each firing needs."""
        firings = self._count
        begun: list[_Lines] = []
        chosen: list[_Accesses] = []
        for port, (tensor, store) in enumerate(self._ports):
            accessed = accesses
            if len(self._ports) > 1:
                accessed = accesses.chosen(accesses.port == port)
            chosen.append(accessed)
            request = self._request(tensor, store)
            begun.append(self._begun(accessed, request, starts, firings - 1 if ended else -1))
        kinds = [self._request(tensor, store) for tensor, store in self._ports]
        lines = _joined(item.line * 4 + kind for item, kind in zip(begun, kinds, strict=True))
        asking = _joined(item.asked_by for item in begun)
        ports = _joined(np.full(len(item.line), port) for port, item in enumerate(begun))
        requesting = np.flatnonzero(asking >= 0)
        order = requesting
        if (asking[requesting[1:]] < asking[requesting[:-1]]).any() or len(self._ports) > 1:
            order = requesting[np.lexsort((requesting, ports[requesting], asking[requesting]))]
        number = np.full(len(lines), -1)
        number[order] = np.arange(len(order))
        self.requests = lines[order]
        self.asked = np.zeros(firings + 1, np.int32)
        self.asked[:firings] = np.bincount(asking[order], minlength=firings)
        numbers = np.int32 if len(order) <= np.iinfo(np.int32).max else np.int64
        self.needed = np.full((firings + 1, len(self._columns)), -1, numbers)
        at = 0
        for item, accessed, (_, store) in zip(begun, chosen, self._ports, strict=True):
            if not store:
                needed = number[at + item.latest].astype(numbers)
                self._need(accessed.firing, accessed.level, needed)
                some = accessed.decides > 0
                if some.any():
                    column = self._levels + accessed.level[some]
                    self._need(accessed.firing[some], column, needed[some])
            at += len(item.line)

    def _request(self, tensor: str, store: bool) -> Request:
        """The request kind for the lines of a port."""
        declaration = self._graph.tensor(tensor)
        if store:
            return Request.UPDATE if declaration.in_parts else Request.WRITE
        return Request.STREAM if declaration.streamed else Request.READ

    def _need(self, firing: Numbers, column: Numbers, needed: Array) -> None:
        """Add these requests to those that firings need, in order."""
        column = np.searchsorted(self._columns, column)
        if (firing[1:] > firing[:-1]).all():
            self.needed[firing, column] = np.maximum(self.needed[firing, column], needed)
        else:
            np.maximum.at(self.needed, (firing, column), needed)

    def _starts(self, codes: Array) -> Numbers:
        """For each firing that runs on, the first firing of its sequence; -1 for the others."""
        runs_on = np.array([rule.runs_on for rule in self._rules], np.bool_)[codes]
        begins = runs_on & ~np.append(False, runs_on[:-1])
        latest = np.maximum.accumulate(np.where(begins, np.arange(len(begins)), -1))
        return np.where(runs_on, latest, -1)

    def _begun(self, accesses: _Accesses, request: Request, starts: Numbers, last: int) -> _Lines:
        """The lines that the accesses of one port begin, and the firings that request them."""
        touched, access = accesses.first, None
        if (accesses.last > accesses.first).any():
            span = accesses.last - accesses.first + 1
            access = np.repeat(np.arange(len(span)), span)
            within = np.arange(len(access)) - (np.cumsum(span) - span)[access]
            touched = accesses.first[access] + within
        new = np.append(True, touched[1:] != touched[:-1])[: len(touched)]
        line = touched[new]
        firing = accesses.firing[new if access is None else access[new]]
        latest = np.cumsum(new) - 1
        if access is not None:
            latest = latest[np.cumsum(span) - 1]
        position = np.arange(len(line))
        if request is Request.UPDATE:
            return _Lines(line=line, asked_by=firing, latest=latest)
        if request is Request.WRITE:
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
