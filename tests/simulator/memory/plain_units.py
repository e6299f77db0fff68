"""Units in front of a DRAM, firing by firing, to check ``t2s.simulator.memory.units``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from t2s.core.ops import Array
from t2s.graph.semantics import HOLE
from t2s.simulator.memory.dram import Request
from t2s.simulator.memory.machine_accesses import RuleAccess, RuleAccesses
from t2s.simulator.memory.report import UnitCounts
from t2s.simulator.memory.spec import Dram
from tests.simulator.memory.plain_dram import DramModel


def later(time: int, ratio: Fraction) -> int:
    """``time * ratio`` rounded up."""
    return -(-time * ratio.numerator // ratio.denominator)


@dataclass(slots=True)
class Lines:
    """The lines that a statement of a unit's body begins in the run: (firing, line), in order.

    ``begun`` of them are begun.  ``asked`` maps the lines of a load that were asked for, counted
    from 0, to the number of the unit's request.
    """

    store: bool
    all: list[tuple[int, int]] = field(default_factory=list)
    begun: int = 0
    asked: dict[int, int] = field(default_factory=dict)
    written: int = 0
    last: int = -1

    def add(self, firing: int, address: int, bytes: int, line_bytes: int) -> None:
        """Note an access."""
        end = (address + bytes - 1) // line_bytes
        for line in range(address // line_bytes, end + 1):
            if line != self.last:
                self.all.append((firing, line))
        self.last = end


@dataclass(slots=True)
class UnitPort:
    """The state of a unit that makes ``firings`` firings and begins ``statements``' lines."""

    dram: Dram
    ratio: Fraction
    model: DramModel
    firings: int
    statements: list[Lines]
    done: list[int] = field(default_factory=list)
    needed: int = -1
    written: int = 0
    counts: UnitCounts = field(default_factory=UnitCounts)
    requests: list[tuple[int, Request]] = field(default_factory=list)

    def prepare(self, firing: int) -> None:
        """Find the requests of the next firing, counted from 0."""
        self.requests = []
        for lines in self.statements:
            while lines.begun < len(lines.all) and lines.all[lines.begun][0] == firing:
                if lines.store:
                    self._store(lines, lines.begun // self.dram.units.store_lines)
                elif lines.begun % self.dram.units.load_lines == 0:
                    self._load(lines)
                lines.begun += 1
            if not lines.store and lines.begun:
                self.needed = max(self.needed, lines.asked[lines.begun - 1])
        if firing == self.firings - 1:
            for lines in self.statements:
                if lines.store:
                    self._write(lines, len(lines.all))

    def _load(self, lines: Lines) -> None:
        end = min(lines.begun + self.dram.units.load_lines, len(lines.all))
        for number in range(lines.begun, end):
            lines.asked[number] = len(self.done) + len(self.requests)
            self.requests.append((lines.all[number][1], Request.READ))

    def _store(self, lines: Lines, full: int) -> None:
        self._write(lines, full * self.dram.units.store_lines)

    def _write(self, lines: Lines, end: int) -> None:
        self.requests += [(line, Request.WRITE) for _, line in lines.all[lines.written : end]]
        lines.written = max(lines.written, end)

    def free(self) -> int:
        """The cycle from which the next firing may ask; 0 if nothing is in its way."""
        made, asked = len(self.done), len(self.requests)
        blocking = min(made + asked - self.dram.units.outstanding, made) - 1
        return self.done[blocking] if asked and blocking >= 0 else 0

    def ask(self, now: int) -> int:
        """Make the firing's requests; the cycle in which all that it loads is here."""
        bursts = self.dram.units.line_bursts
        clock = later(now, self.ratio)
        for line, request in self.requests:
            done = self.done[-1] if self.done else 0
            for burst in range(line * bursts, (line + 1) * bursts):
                end = self.model.access(clock, burst, request)
                done = max(done, later(end, 1 / self.ratio) + self.dram.units.path_cycles)
            self.done.append(done)
            self.counts.latency += done - now
            if request in (Request.WRITE, Request.UPDATE):
                self.counts.writes += 1
                self.written = done
            else:
                self.counts.reads += 1
        return max(now, self.done[self.needed]) if self.needed >= 0 else now


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
