"""What the plain engine keeps of every channel element, PE and machine."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from t2s.core.ops import Array
from t2s.graph.analysis import path_bytes
from t2s.graph.machine_semantics import Decision, MachineState
from t2s.graph.nodes import Node
from t2s.graph.semantics import Environment, PortUse
from t2s.simulator.memory.banked_port import UNKNOWN, BankedPort
from t2s.simulator.memory.port import UnitPort


@dataclass(slots=True)
class Fifo:
    """One channel element: tokens with the cycle they are ready, and when each was received.

    That cycle is ``UNKNOWN``, or behind it, of tokens that have not left the sender.
    """

    position: int
    latency: int
    capacity: int
    tokens: deque[tuple[int, Array]] = field(default_factory=deque)
    received_at: list[int] = field(default_factory=list)
    starved: int = 0
    blocked: int = 0

    def ready(self) -> int | None:
        """The cycle at which the next token is ready; ``None`` if it has not been sent."""
        return self.tokens[0][0] if self.tokens else None

    def space(self) -> int | None:
        """The cycle from which the next token may be sent; ``None`` if that is not known yet."""
        freeing = len(self.received_at) + len(self.tokens) - self.capacity
        if freeing < 0:
            return 1
        return self.received_at[freeing] + 1 if freeing < len(self.received_at) else None

    def settle(self, leaving: int) -> None:
        """Say when the first token leaves of which that was unknown."""
        at = next(n for n, (ready, _) in enumerate(self.tokens) if ready >= UNKNOWN)
        self.tokens[at] = leaving + self.latency, self.tokens[at][1]


@dataclass(slots=True)
class PlainPE:
    """A PE, its next firing, and its counters.

    ``queued`` says that it waits for memory; it has a ``port`` if it is a unit of a DRAM, and
    ``banks`` if it uses shared banks.
    """

    number: int
    node: Node
    interval: int
    environments: Iterator[Environment]
    registers: dict[str, Array]
    current: Environment | None = None
    receives: list[tuple[PortUse, Fifo]] = field(default_factory=list)
    sends: list[tuple[PortUse, Fifo]] = field(default_factory=list)
    moved_bytes: int = 0
    stores: bool = False
    firings: int = 0
    first: int = 0
    last: int = 0
    waiting: int = 0
    memory_stalls: int = 0
    queued: bool = False
    port: UnitPort | None = None
    banks: BankedPort | None = None

    def look(self) -> None:
        """Find out what the next firing needs, as far as the tokens that are there tell."""

    def unknown(self) -> tuple[Fifo, bool] | None:
        """The first port, and whether it sends, that waits for what has not been brought about."""
        self.look()
        for _, fifo in self.receives:
            if fifo.ready() is None:
                return fifo, False
        for _, fifo in self.sends:
            if fifo.space() is None:
                return fifo, True
        return None

    def allowed(self, now: int) -> bool:
        """Whether the interval and the channels allow the next firing in this cycle."""
        self.look()
        if self.firings and now < self.last + self.interval:
            return False
        ready = all(_reached(fifo.ready(), now) for _, fifo in self.receives)
        return ready and all(_reached(fifo.space(), now) for _, fifo in self.sends)

    def count_stall(self, now: int) -> None:
        """Attribute a cycle without a firing."""
        if self.current is None or self.firings == 0:
            return
        if now < self.last + self.interval:
            self.waiting += 1
            return
        for _, fifo in self.receives:
            if not _reached(fifo.ready(), now):
                fifo.starved += 1
                return
        for _, fifo in self.sends:
            if not _reached(fifo.space(), now):
                fifo.blocked += 1
                return
        self.memory_stalls += 1


@dataclass(slots=True)
class MachinePE(PlainPE):
    """A machine: what its next firing needs is known when the tokens are that it depends on."""

    state: MachineState = field(kw_only=True)
    memory: dict[str, Array] = field(kw_only=True)
    inputs: dict[str, Fifo] = field(kw_only=True)
    outputs: dict[str, Fifo] = field(kw_only=True)
    decision: Decision | None = None
    codes: list[int] = field(default_factory=list)

    def look(self) -> None:
        """Take the decision, once all heads that it needs have been sent (ready or not)."""
        if self.decision is not None or self.state.ended:
            return
        heads = {name: fifo.tokens[0][1] for name, fifo in self.inputs.items() if fifo.tokens}
        found = self.state.decide(heads, self.memory)
        if isinstance(found, Decision):
            self.decision = found
            path = found.path
            self._needs(path.needs)
            outputs = [put.channel for put in path.rule.puts]
            self.sends = [(self.state.outputs[name], self.outputs[name]) for name in outputs]
            loaded, stored = path_bytes(self.state.graph, path)
            self.moved_bytes, self.stores = loaded + stored, bool(stored)
        else:
            self._needs(found)

    def _needs(self, names: tuple[str, ...]) -> None:
        self.receives = [(self.state.inputs[name], self.inputs[name]) for name in names]


def _reached(time: int | None, now: int) -> bool:
    return time is not None and time <= now
