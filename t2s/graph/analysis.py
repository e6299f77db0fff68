"""Static timing facts of a node's body: datapath latencies and recurrences.

Everything here is in cycles and depends on a device only through ``latency_of``, which gives the
latency of one operator application (``Apply``, ``Cast``, ``Select`` or ``ReduceLanes``).  For
machines see ``graph.machine_analysis``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from t2s.core.expr import Broadcast, Expr, Local
from t2s.core.walk import children
from t2s.graph.body import Let, Load, Receive, RegisterRead, RegisterWrite, Send, Store
from t2s.graph.nodes import PEArray, Register

LatencyOf = Callable[[Expr], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrence:
    """A carried dependence through register files: II >= ceil(latency / distance).

    ``registers`` are the files on the circle, usually one; ``distance`` is the number of firings
    that the circle spans.
    """

    registers: tuple[Register, ...]
    latency: int

    @property
    def register(self) -> Register:
        """The first register file of the circle."""
        return self.registers[0]

    @property
    def distance(self) -> int:
        return sum(register.distance for register in self.registers)

    @property
    def initiation_interval(self) -> int:
        return max(1, -(-self.latency // self.distance))


def longest_path(expr: Expr, start: Mapping[str, int | None], latency_of: LatencyOf) -> int | None:
    """Longest latency from the starting locals to the value of ``expr``; ``None`` if unreached."""
    if isinstance(expr, Local):
        return start.get(expr.name)
    reached = [longest_path(cast(Expr, child), start, latency_of) for child in children(expr)]
    longest = max((value for value in reached if value is not None), default=None)
    if longest is None or isinstance(expr, Broadcast):
        return longest
    return longest + latency_of(expr)


def datapath_latencies(
    node: PEArray, latency_of: LatencyOf, load_latency: int, store_latency: int = 0
) -> dict[str, int]:
    """Cycles from the start of a firing until each sent value leaves the PE's datapath.

    Received tokens and registers are there at once, loaded values after ``load_latency``, and what
    is sent behind a store leaves when the store is complete, after ``store_latency``.  The result
    is keyed by channel; a value that needs no operator has latency 0.
    """
    ready: dict[str, int | None] = {}
    latencies: dict[str, int] = {}
    stored = 0
    for statement in node.body:
        match statement:
            case Receive(target=target) | RegisterRead(target=target):
                ready[target] = 0
            case Load(target=target):
                ready[target] = load_latency
            case Let(target=target, value=value):
                ready[target] = longest_path(value, ready, latency_of)
            case Store():
                stored = store_latency
            case Send(channel=channel, value=value):
                latencies[channel] = max(stored, longest_path(value, ready, latency_of) or 0)
    return latencies


def recurrences(node: PEArray, latency_of: LatencyOf) -> tuple[Recurrence, ...]:
    """Every circle of dependences through register files, with its latency on this device.

    Each register file has a recurrence of its own, of latency 0 where what is written does not
    depend on what was read.
    """
    paths = {r.name: _paths_from(node, r.name, latency_of) for r in node.registers}
    return circles(node.registers, paths)


def circles(
    registers: tuple[Register, ...], paths: Mapping[str, Mapping[str, int]]
) -> tuple[Recurrence, ...]:
    """The recurrences, given the latency from a read of each register to the writes it reaches."""
    order = {register.name: position for position, register in enumerate(registers)}
    found = [
        Recurrence(registers=(register,), latency=paths[register.name].get(register.name, 0))
        for register in registers
    ]

    reached = _reached(paths)

    def follow(circle: tuple[Register, ...], latency: int) -> None:
        start, here = circle[0].name, circle[-1].name
        for target, step in paths[here].items():
            if target == start and len(circle) > 1:
                found.append(Recurrence(registers=circle, latency=latency + step))
            elif start not in reached[target]:
                continue
            elif order[target] > order[start] and target not in {r.name for r in circle}:
                follow((*circle, registers[order[target]]), latency + step)

    for register in registers:
        follow((register,), 0)
    return tuple(found)


def _reached(paths: Mapping[str, Mapping[str, int]]) -> dict[str, set[str]]:
    """The registers that each one has an influence on, however many firings later."""
    reached: dict[str, set[str]] = {}
    for register in paths:
        seen: set[str] = set()
        waiting = [register]
        while waiting:
            fresh = [target for target in paths[waiting.pop()] if target not in seen]
            seen.update(fresh)
            waiting += fresh
        reached[register] = seen
    return reached


def _paths_from(node: PEArray, register: str, latency_of: LatencyOf) -> dict[str, int]:
    """Longest latency from a read of one register file to a write of each that depends on it."""
    reached: dict[str, int | None] = {}
    paths: dict[str, int] = {}
    for statement in node.body:
        match statement:
            case RegisterRead(target=target, register=name) if name == register:
                reached[target] = 0
            case Let(target=target, value=value):
                reached[target] = longest_path(value, reached, latency_of)
            case RegisterWrite(register=name, value=value):
                length = longest_path(value, reached, latency_of)
                if length is not None:
                    paths[name] = max(paths.get(name, 0), length)
    return paths


def memory_bytes(node: PEArray) -> int:
    """Bytes that one firing moves between the node and memory, at most."""
    total = 0
    for statement in node.body:
        match statement:
            case Load(type=type):
                total += type.bytes
            case Store(value=value):
                total += value.type.bytes
    return total
