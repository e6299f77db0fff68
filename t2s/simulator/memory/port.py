"""How a unit uses a DRAM, firing by firing (the reference) and for many firings at once.

A *unit* is a PE whose body loads or stores.  It asks the memory for whole lines:

* The elements that a load of the body loads, firing after firing, *begin* a line where they are not
  in the line of the one before.  A unit knows these lines in advance: with every
  ``load_lines``-th of them it asks for that one and for those that follow.  The tokens of a firing
  leave when the lines that its loads began last are there, and so are those of earlier firings.
* What a store of the body stores begins lines in the same way.  When ``store_lines`` lines are
  begun and another one begins, all of them are written; the last firing of a unit writes the rest.
* At most ``outstanding`` requests of a unit are under way; a firing that would ask for more waits.
  A firing that asks for more than that at once waits until none is under way.

The requests of a firing reach the memory in the order of the body, those of one cycle in the order
of the PEs, each at the first clock of the memory that does not begin before the cycle.  A request
is done in the first cycle that does not begin before the end of its data, plus the way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from t2s.core.errors import UserError
from t2s.core.expr import evaluate
from t2s.core.location import user_location
from t2s.core.ops import Array
from t2s.graph.body import Load, Store
from t2s.graph.control.domains import Domain
from t2s.graph.graph import Graph, Place
from t2s.graph.nodes import PEArray
from t2s.simulator.memory.model import DramModel, Request
from t2s.simulator.memory.report import UnitCounts
from t2s.simulator.memory.spec import Dram

ALIGNMENT = 4096
"""Tensors lie one behind the other, in the order of the graph, each at a multiple of this."""


def addresses_of(graph: Graph) -> tuple[Mapping[str, int], int]:
    """The address of every tensor by name, and the first address behind all of them.

    Those in shared banks have none.  Of an open tensor it is the one if it were empty; see
    ``bases_of``.
    """
    found: dict[str, int] = {}
    end = 0
    for tensor in graph.tensors:
        if tensor.place is Place.SHARED:
            continue
        found[tensor.name] = end
        size = tensor.type.bytes
        for extent in tensor.allocated:
            size *= extent
        end += -(-size // ALIGNMENT) * ALIGNMENT
    return found, end


def bases_of(graph: Graph, dram: Dram) -> tuple[Mapping[str, int], int]:
    """The address of every tensor by name, and the bytes that there are for each open one.

    Open tensors, whose lengths nobody knows before the run, share what the others leave.
    """
    fixed, end = addresses_of(graph)
    waiting = [tensor.name for tensor in graph.tensors if tensor.open]
    if not waiting:
        return fixed, 0
    room = (dram.capacity - end) // len(waiting) // ALIGNMENT * ALIGNMENT
    return {**fixed, **{name: end + at * room for at, name in enumerate(waiting)}}, room


def too_long(graph: Graph, tensor: str, dram: Dram, room: int) -> UserError:
    """The error of an open tensor for which the memory has no room."""
    return UserError(
        f"{tensor!r} of {graph.name!r} does not fit into memory {dram.name!r}",
        location=graph.tensor(tensor).location or user_location(),
        expected=f"at most {room:,} bytes, what all other tensors leave to it",
        given="more",
        hint="simulate a smaller problem, or describe a larger memory",
    )


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
    """What one access of a statement moves."""
    return (statement.type if isinstance(statement, Load) else statement.value.type).bytes


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


# The requests of a unit for many firings at once: ``port`` with arrays.
#
# Which lines a firing asks for depends on the indices of loops only, not on times, so a stretch of
# firings is evaluated in one go, a piece of the run after the other.

Begun = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Firings, and a line that each of them begins."""

_LOOK_AHEAD = 1 << 16
"""Firings that are evaluated at once to find the lines of a load that follow."""


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
        environment = domain.at(pe, firings)
        if self.statement.condition is not None:
            active = np.broadcast_to(evaluate(self.statement.condition, environment), firings.shape)
            firings, environment = firings[active], _chosen(environment, active)
        if not len(firings):
            return firings, firings
        address = np.full(firings.shape, self.base, np.int64)
        for index, stride in zip(self.statement.indices, self.strides, strict=True):
            address += np.asarray(evaluate(index, environment)).astype(np.int64) * stride
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
        """What firings ``begin`` to ``end - 1`` ask for: 4 times the line, plus 1 for a write."""
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
        """What the last firing of a unit writes: lines that nothing has written yet."""
        number = self.first + np.arange(len(self.lines))
        lines = self.lines[(number // self.group + 1) * self.group >= self.first + len(number)]
        return np.full(len(lines), last), 4 * lines + 1

    def forget(self, end: int) -> None:
        """Drop the groups that are complete: asked for and begun, or written, before ``end``."""
        begun = int(np.searchsorted(self.firings, end))
        done = max(0, (self.first + begun - 1) // self.group * self.group - self.first)
        self.first += done
        self.firings, self.lines = self.firings[done:], self.lines[done:]
        self.positions = self.positions[done:]

    def needed(self, firings: NDArray[np.int64]) -> NDArray[np.int64]:
        """The request for the line that a load began last, for each of the firings; or -1."""
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
            _Statement(item, bases[item.tensor], _strides(graph, item.tensor), dram)
            for item in node.body
            if isinstance(item, Load | Store)
        ]

    @property
    def left(self) -> int:
        """Firings that are not yet produced."""
        return self.domain.firings - self.produced

    def take(self, count: int) -> tuple[Array, Array, Array]:
        """What the next firings, at most ``count``, ask for.

        For each firing the number of its requests and which request of the unit it needs (-1 is
        none), in a column; and the requests, each 4 times its line, plus 1 for a write.
        """
        begin, end = self.produced, self.produced + min(count, self.left)
        with np.errstate(all="ignore"):
            for item in self.statements:
                self._evaluate(item, end)
        found = [item.requests(begin, end) for item in self.statements]
        if end == self.domain.firings:
            found += [item.rest(end - 1) for item in self.statements if item.store]
        firings = np.concatenate([firings for firings, _ in found])
        requests = np.concatenate([requests for _, requests in found])
        order = np.argsort(firings, kind="stable")
        self._number(found, order)
        needed = self._needed(np.arange(begin, end))
        self.produced = end
        self.asked += len(requests)
        for item in self.statements:
            item.forget(end)
        counts = np.bincount(firings - begin, minlength=end - begin)
        return counts.astype(np.int32), needed[:, np.newaxis], requests[order]

    def _evaluate(self, item: _Statement, end: int) -> None:
        """Know what a statement begins before ``end``, of a load the rest of the last group too."""
        item.evaluate(self.domain, self.pe, max(item.evaluated, end))
        if item.store:
            return
        begun = int(np.searchsorted(item.firings, end))
        wanted = -(-(item.first + begun) // item.group) * item.group - item.first
        while len(item.lines) < wanted and item.evaluated < self.domain.firings:
            more = min(item.evaluated + _LOOK_AHEAD, self.domain.firings)
            item.evaluate(self.domain, self.pe, more)

    def _number(self, found: list[Begun], order: NDArray[np.int64]) -> None:
        """Note the numbers of the requests of loads."""
        number = np.empty(len(order), np.int64)
        number[order] = self.asked + np.arange(len(order))
        at = 0
        for item, (firings, _) in zip(self.statements, found, strict=False):
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


def _chosen(environment: dict[str, Array], active: Array) -> dict[str, Array]:
    """The environment of the firings in which a condition holds."""
    return {
        name: values if np.ndim(values) == 0 else values[active]
        for name, values in environment.items()
    }


def _strides(graph: Graph, tensor: str) -> tuple[int, ...]:
    """Bytes from one index to the next, for each dimension."""
    found = graph.tensor(tensor)
    strides: list[int] = []
    stride = found.type.bytes
    for extent in reversed(found.allocated):
        strides.insert(0, stride)
        stride *= extent
    return tuple(strides)
