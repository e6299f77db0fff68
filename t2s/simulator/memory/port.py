"""How a unit uses a DRAM, firing by firing: the plain meaning of lines, buffers and requests.

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

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.graph.body import Load, Store
from t2s.graph.graph import Graph, Place
from t2s.graph.nodes import PEArray
from t2s.simulator.memory.model import DramModel
from t2s.simulator.memory.open_bursts import Request
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
