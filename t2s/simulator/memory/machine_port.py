"""How a machine uses a DRAM: the plain meaning of its lines and requests, firing by firing.

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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from t2s.core.ops import Array
from t2s.graph.semantics import HOLE
from t2s.simulator.memory.machine_accesses import RuleAccess, RuleAccesses
from t2s.simulator.memory.open_bursts import Request
from t2s.simulator.memory.port import UnitPort
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
