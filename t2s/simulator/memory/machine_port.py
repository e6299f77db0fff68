"""How a machine uses a DRAM, firing by firing (the reference) and for all firings at once.

A machine that loads from or stores to the device's memory is a unit (see ``port``), too.  For each
tensor that it loads, and for each that it stores, it keeps the line that it touched last; an access
*begins* the lines that are not that one.  An access by a vector of indices touches the distinct
lines of its lanes, in the order of the lanes; a lane of -1 touches none.

* A line that a load begins is asked for by the firing that begins it, for nobody knew its address
  before.  But firings in a row that *run on* (``machine_accesses``) follow from registers, so the
  first of them asks for the first ``load_lines`` lines that they begin in a tensor, and the one
  that begins the next line for as many again: a scanner asks for a fiber as soon as it knows where
  that is.
* Stored lines are collected: when ``store_lines`` lines of a tensor are begun and another one
  begins, all of them are written; the last firing of a machine that ends writes the rest.  But
  those of a tensor that is stored ``in_parts`` are updated (``open_bursts``), each by the firing
  that begins it.
* The tokens of a firing leave when its loads of level 0 are there, and later by the time that those
  of level 1 take, and so on: an access whose address another one loads comes after it.  (Both are
  asked for at once, so that requests come in the order of time.)  Tokens never leave before those
  of earlier firings.
* The next firing waits until those loads are here that decide what the machine is then.
* As of any unit at most ``outstanding`` requests are under way.

The requests of a firing are made tensor by tensor, in the order in which the machine's rules name
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from t2s.core.ops import Array
from t2s.graph.graph import Graph
from t2s.graph.semantics import HOLE
from t2s.simulator.memory.machine_accesses import (
    Addresses,
    LaneAddresses,
    RuleAccess,
    RuleAccesses,
    ports_of,
)
from t2s.simulator.memory.model import Request
from t2s.simulator.memory.port import UnitPort, too_long
from t2s.simulator.memory.spec import Dram

PortName = tuple[str, bool]
"""A tensor, and whether it is stored."""


@dataclass(slots=True)
class _Begun:
    """A line that a firing begins, the firing that asks for it (or writes it), and its request."""

    firing: int
    line: int
    asked_by: int = -1
    number: int = -1


@dataclass(slots=True)
class FiringPlan:
    """What a firing of a machine asks for, and what it loads: the line that is there last."""

    asked: list[tuple[_Begun, Request]] = field(default_factory=list)
    loads: list[tuple[RuleAccess, _Begun]] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class MachinePort(UnitPort):
    """The port of a machine, whose firings are planned before the first one."""

    plans: Sequence[FiringPlan]
    plan: FiringPlan = field(default_factory=FiringPlan)
    left: int = 0
    held: int = 0
    waits: Mapping[int, int] = field(default_factory=dict)
    deciding: Mapping[int, int] = field(default_factory=dict)

    def prepare(self, firing: int) -> None:
        """Find the requests of the next firing."""
        self.plan = self.plans[firing] if firing < len(self.plans) else FiringPlan()
        self.requests = [(begun.line, request) for begun, request in self.plan.asked]

    def free(self) -> int:
        """The cycle from which the next firing may ask."""
        return max(self.held, UnitPort.free(self))

    def ask(self, now: int) -> int:
        """Make the firing's requests; the cycle in which its tokens leave.

        ``waits`` are then the cycles that its loads take, by level, and ``deciding`` those that the
        ones take that decide.
        """
        UnitPort.ask(self, now)
        self.waits = self._waits(now, self.plan.loads)
        self.left = max(self.left, now + sum(self.waits.values()))
        deciding = [(access, begun) for access, begun in self.plan.loads if access.decides]
        self.deciding = self._waits(now, deciding)
        self.held = now + sum(self.deciding.values())
        return self.left

    def _waits(self, now: int, loads: Sequence[tuple[RuleAccess, _Begun]]) -> dict[int, int]:
        """How long these take, by level."""
        waits: dict[int, int] = {}
        for access, begun in loads:
            wait = self.done[begun.number] - now
            waits[access.level] = max(waits.get(access.level, 0), wait)
        return waits


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFirings:
    """What is known of one machine: its rules, the tensors that they access and where these are.

    ``codes`` are those of its firings, all of them if the machine has ``ended``; ``addresses`` are
    the tokens of ``AddressedGraph.channels``; ``streamed`` and ``in_parts`` name tensors.
    """

    rules: Sequence[RuleAccesses]
    ports: Sequence[PortName]
    bases: Mapping[str, int]
    codes: Sequence[int]
    ended: bool
    addresses: Sequence[Sequence[Array]]
    streamed: frozenset[str] = frozenset()
    in_parts: frozenset[str] = frozenset()


def plans_of(machine: MachineFirings, dram: Dram) -> list[FiringPlan]:
    """The plans of a machine's firings."""
    plans = [FiringPlan() for _ in machine.codes]
    begun: dict[PortName, list[_Begun]] = {name: [] for name in machine.ports}
    streams = [iter(stream) for stream in machine.addresses]
    size = dram.line_bytes
    for firing, code in enumerate(machine.codes):
        for access in machine.rules[code].accesses:
            lines = begun[access.tensor, access.store]
            base = machine.bases[access.tensor]
            touched = _touched(access, next(streams[access.channel]), base, size)
            for line in touched:
                if not lines or lines[-1].line != line:
                    lines.append(_Begun(firing, line))
            if touched and not access.store:
                plans[firing].loads.append((access, lines[-1]))
    starts = _starts(machine)
    for (tensor, store), found in begun.items():
        request = Request.WRITE if store else Request.READ
        if not store and tensor in machine.streamed:
            request = Request.STREAM
        if store and tensor in machine.in_parts:
            request = Request.UPDATE
            for item in found:
                item.asked_by = item.firing
        elif store:
            _write(found, dram.units.store_lines, len(plans) - 1 if machine.ended else -1)
        else:
            _ask(found, dram.units.load_lines, starts)
        for item in found:
            if item.asked_by >= 0:
                plans[item.asked_by].asked.append((item, request))
    for number, item in enumerate(item for plan in plans for item, _ in plan.asked):
        item.number = number
    return plans


def _touched(access: RuleAccess, token: Array, base: int, size: int) -> list[int]:
    """The lines of ``size`` bytes of an access, each once, the first one first."""
    offsets = [at for at in np.atleast_1d(token).tolist() if at != HOLE]
    found: dict[int, None] = {}
    for begin in (base + at for at in offsets):
        found |= dict.fromkeys(range(begin // size, (begin + access.bytes - 1) // size + 1))
    return list(found)


def _starts(machine: MachineFirings) -> list[int]:
    """For each firing that runs on, the first one of those in a row; -1 for the others."""
    found: list[int] = []
    for firing, code in enumerate(machine.codes):
        before = found[-1] if found else -1
        if not machine.rules[code].runs_on:
            found.append(-1)
        else:
            found.append(firing if before < 0 else before)
    return found


def _ask(lines: Sequence[_Begun], most: int, starts: Sequence[int]) -> None:
    """Say who asks for the lines of a tensor that is loaded."""
    run, count, asks = -1, 0, -1
    for line in lines:
        start = starts[line.firing]
        if start < 0:
            line.asked_by = line.firing
            continue
        count = count + 1 if start == run else 0
        if count % most == 0:
            asks = line.firing if count else start
        run, line.asked_by = start, asks


def _write(lines: Sequence[_Begun], most: int, last: int) -> None:
    """Say who writes the lines of a tensor that is stored; ``last`` is the last firing, or -1."""
    for position, line in enumerate(lines):
        full = (position // most + 1) * most
        line.asked_by = lines[full].firing if full < len(lines) else last


# The requests of a machine for all its firings at once: ``machine_port`` with arrays.

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


class _AccessTable:
    """What is known of the accesses of rules, which are numbered: their *kinds*.

    Attributes
    ----------
    code, number: the rule, and how many of its accesses come before.
    channel: see ``RuleAccess``.
    port, level, bytes, decides: see ``_Accesses``.
    base: where the tensor begins.
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
        """The kind of the access that each code has in a channel; -1 for none."""
        found = np.full(max(1, codes), -1, np.int32)
        here = np.flatnonzero(self.channel == channel)
        found[self.code[here]] = here
        return found

    def of(self, column: Numbers, kinds: Array) -> Numbers:
        """A column for many accesses; takes no memory if all kinds are alike in it."""
        if len(column) and (column == column[0]).all():
            return np.broadcast_to(column[0], kinds.shape)
        return column[kinds]


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
        self._count = len(codes)
        self._levels = levels
        self._columns = self._used_columns()
        self.produced = self._made = 0
        self._plan(self._accesses(codes, addresses), self._starts(codes), ended)

    @property
    def left(self) -> int:
        """Firings that are not yet produced; the last one is of none, for a machine that waits."""
        return self._count + 1 - self.produced

    @property
    def most(self) -> int:
        """The most requests of one firing."""
        return int(self.asked.max(initial=0))

    def take(self, count: int) -> tuple[Array, Array, Array]:
        """What the next firings, at most ``count``, ask for, as of a PE.

        Of what they need there is a column for each level, and then for each level of what decides.
        """
        here = slice(self.produced, self.produced + min(count, self.left))
        asked, begin = self.asked[here], self._made
        self.produced, self._made = here.stop, begin + int(asked.sum(dtype=np.int64))
        needed = np.full((len(asked), 2 * self._levels), -1)
        needed[:, self._columns] = self.needed[here]
        return asked, needed, self.requests[begin : self._made]

    def _used_columns(self) -> list[int]:
        """The columns of what firings need that are not always empty."""
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
            made = np.flatnonzero((of_code >= 0)[codes])
            kind = of_code[codes[made]]
            if isinstance(stream, LaneAddresses):
                lanes, found = self._distinct_lines(stream, table.of(table.base, kind))
                made, kind = np.repeat(made, lanes), np.repeat(kind, lanes)
            else:
                found = stream[: len(made)].astype(np.int64)
            firings.append(made)
            kinds.append(kind)
            offsets.append(found)
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
        """Open tensors are no longer than there is room."""
        tensors = [tensor for tensor, _ in self._ports]
        for number, tensor in enumerate(tensors):
            if not self._graph.tensor(tensor).open:
                continue
            if (ends[table.port[kind] == number] > self._room).any():
                raise too_long(self._graph, tensor, self._dram, self._room)

    def _distinct_lines(self, vectors: LaneAddresses, bases: Numbers) -> tuple[Numbers, Numbers]:
        """Of each vector, how many lines its lanes touch, and the first address in each of these.

        An element never lies in two lines.  Most vectors have one lane: the others are sorted.
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
        kept = np.ones(len(offsets), np.bool_)
        kept[elements] = first[lanes]
        counts[several] = np.count_nonzero(first & lanes, axis=1)
        return counts, offsets[kept]

    def _plan(self, accesses: _Accesses, starts: Numbers, ended: bool) -> None:
        """Number all requests, and say which of them each firing needs."""
        firings = self._count
        found: list[_Lines] = []
        chosen: list[_Accesses] = []
        for port, (tensor, store) in enumerate(self._ports):
            here = accesses
            if len(self._ports) > 1:
                here = accesses.chosen(accesses.port == port)
            chosen.append(here)
            request = self._request(tensor, store)
            found.append(self._begun(here, request, starts, firings - 1 if ended else -1))
        kinds = [self._request(tensor, store) for tensor, store in self._ports]
        lines = _joined(item.line * 4 + kind for item, kind in zip(found, kinds, strict=True))
        asking = _joined(item.asked_by for item in found)
        ports = _joined(np.full(len(item.line), port) for port, item in enumerate(found))
        made = np.flatnonzero(asking >= 0)
        order = made
        if (asking[made[1:]] < asking[made[:-1]]).any() or len(self._ports) > 1:
            order = made[np.lexsort((made, ports[made], asking[made]))]
        number = np.full(len(lines), -1)
        number[order] = np.arange(len(order))
        self.requests = lines[order]
        self.asked = np.zeros(firings + 1, np.int32)
        self.asked[:firings] = np.bincount(asking[order], minlength=firings)
        numbers = np.int32 if len(order) <= np.iinfo(np.int32).max else np.int64
        self.needed = np.full((firings + 1, len(self._columns)), -1, numbers)
        at = 0
        for item, here, (_, store) in zip(found, chosen, self._ports, strict=True):
            if not store:
                needed = number[at + item.latest].astype(numbers)
                self._need(here.firing, here.level, needed)
                some = here.decides > 0
                if some.any():
                    column = self._levels + here.level[some]
                    self._need(here.firing[some], column, needed[some])
            at += len(item.line)

    def _request(self, tensor: str, store: bool) -> Request:
        """What is asked of the lines of a port."""
        found = self._graph.tensor(tensor)
        if store:
            return Request.UPDATE if found.in_parts else Request.WRITE
        return Request.STREAM if found.streamed else Request.READ

    def _need(self, firing: Numbers, column: Numbers, needed: Array) -> None:
        """Firings, in order, need these requests, too."""
        column = np.searchsorted(self._columns, column)
        if (firing[1:] > firing[:-1]).all():
            self.needed[firing, column] = np.maximum(self.needed[firing, column], needed)
        else:
            np.maximum.at(self.needed, (firing, column), needed)

    def _starts(self, codes: Array) -> Numbers:
        """For each firing that runs on, the first one of those in a row; -1 for the others."""
        runs_on = np.array([rule.runs_on for rule in self._rules], np.bool_)[codes]
        begins = runs_on & ~np.append(False, runs_on[:-1])
        latest = np.maximum.accumulate(np.where(begins, np.arange(len(begins)), -1))
        return np.where(runs_on, latest, -1)

    def _begun(self, here: _Accesses, request: Request, starts: Numbers, last: int) -> _Lines:
        """The lines that the accesses of one port begin, and who asks for them."""
        touched, access = here.first, None
        if (here.last > here.first).any():
            span = here.last - here.first + 1
            access = np.repeat(np.arange(len(span)), span)
            within = np.arange(len(access)) - (np.cumsum(span) - span)[access]
            touched = here.first[access] + within
        new = np.append(True, touched[1:] != touched[:-1])[: len(touched)]
        line = touched[new]
        firing = here.firing[new if access is None else access[new]]
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
