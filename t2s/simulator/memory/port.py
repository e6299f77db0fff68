"""How a unit uses a DRAM, firing by firing: the plain meaning of lines, buffers and requests.

A *unit* is a PE whose body loads or stores.  It asks the memory for whole lines:

* A load asks for the lines of its element that are not the line it asked for last (each load of the
  body remembers one).  The tokens of a firing leave when all that the unit has asked for to load
  has come, so what a unit sends stays in order.
* A store joins the line that the same statement stored to last, or begins a line; when
  ``store_lines`` lines are full and another begins, all of them are written.  The last firing of a
  unit writes what is left.
* At most ``outstanding`` requests of a unit are under way; a firing that would ask for more waits.
  A firing that asks for more than that at once waits until none is under way.

The requests of a firing reach the memory in the order of the body, those of one cycle in the order
of the PEs, each at the first clock of the memory that does not begin before the cycle.  A request
is done in the first cycle that does not begin before the end of its data, plus the way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from t2s.graph.body import Load, Store
from t2s.graph.graph import Graph
from t2s.simulator.memory.model import DramModel
from t2s.simulator.memory.spec import Dram

ALIGNMENT = 4096
"""Tensors lie one behind the other, in the order of the graph, each at a multiple of this."""


def addresses_of(graph: Graph) -> tuple[Mapping[str, int], int]:
    """The address of every tensor by name, and the first address behind all of them."""
    found: dict[str, int] = {}
    end = 0
    for tensor in graph.tensors:
        found[tensor.name] = end
        size = tensor.type.bytes
        for extent in tensor.allocated:
            size *= extent
        end += -(-size // ALIGNMENT) * ALIGNMENT
    return found, end


def accessed_bytes(statement: Load | Store) -> int:
    """What one access of a statement moves."""
    return (statement.type if isinstance(statement, Load) else statement.value.type).bytes


def later(time: int, ratio: Fraction) -> int:
    """``time * ratio`` rounded up."""
    return -(-time * ratio.numerator // ratio.denominator)


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What one statement of a firing does: ``bytes`` from ``address``."""

    statement: int
    address: int
    bytes: int
    store: bool


@dataclass(slots=True)
class UnitCounts:
    """Lines that a unit has read and written, and the cycles from asking to done of all of them."""

    reads: int = 0
    writes: int = 0
    latency: int = 0


@dataclass(slots=True)
class Port:
    """The state of a unit."""

    dram: Dram
    ratio: Fraction
    model: DramModel
    done: deque[int] = field(default_factory=deque)
    ready: int = 0
    written: int = 0
    last_line: dict[int, int] = field(default_factory=dict)
    stored: dict[int, list[int]] = field(default_factory=dict)
    counts: UnitCounts = field(default_factory=UnitCounts)
    requests: list[tuple[int, bool]] = field(default_factory=list)

    def prepare(self, accesses: Sequence[Access], last: bool) -> None:
        """Find the requests of the next firing, which is the unit's last or is not."""
        self.requests = []
        for access in accesses:
            end = access.address + access.bytes - 1
            previous = self.last_line.get(access.statement)
            for line in range(
                access.address // self.dram.line_bytes, end // self.dram.line_bytes + 1
            ):
                if line != previous:
                    self._touch(access, line)
            self.last_line[access.statement] = end // self.dram.line_bytes
        if last:
            for statement in sorted(self.stored):
                self.requests += [(line, True) for line in self.stored[statement]]

    def _touch(self, access: Access, line: int) -> None:
        if not access.store:
            self.requests.append((line, False))
            return
        lines = self.stored.setdefault(access.statement, [])
        if len(lines) == self.dram.units.store_lines:
            self.requests += [(full, True) for full in lines]
            lines.clear()
        lines.append(line)

    def free(self) -> int:
        """The cycle from which the next firing may ask; 0 if nothing is in its way."""
        limit, asked = self.dram.units.outstanding, len(self.requests)
        if not asked or len(self.done) + asked <= limit:
            return 0
        return self.done[min(len(self.done) + asked - limit, len(self.done)) - 1]

    def ask(self, now: int) -> int:
        """Make the firing's requests; the cycle in which all that was asked for to load is here."""
        bursts = self.dram.units.line_bursts
        for line, write in self.requests:
            done = self.done[-1] if self.done else 0
            clock = later(now, self.ratio)
            for burst in range(line * bursts, (line + 1) * bursts):
                end = self.model.access(clock, burst, write)
                done = max(done, later(end, 1 / self.ratio) + self.dram.units.path_cycles)
            self.done.append(done)
            if len(self.done) > self.dram.units.outstanding:
                self.done.popleft()
            self.counts.latency += done - now
            if write:
                self.counts.writes += 1
                self.written = done
            else:
                self.counts.reads += 1
                self.ready = done
        return max(now, self.ready)
