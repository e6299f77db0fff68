"""Static timing facts of a node's body: datapath latencies and recurrences.

Everything here is in cycles and depends on a device only through ``latency_of``, which gives the
latency of one operator application (``Apply``, ``Cast``, ``Select`` or ``ReduceLanes``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from t2s.core.expr import Broadcast, Expr, Local
from t2s.core.walk import children
from t2s.graph.body import Let, Load, Receive, RegisterRead, RegisterWrite, Send, Store
from t2s.graph.nodes import PEArray, Register

LatencyOf = Callable[[Expr], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrence:
    """A carried dependence through a register file: II >= ceil(latency / distance)."""

    register: Register
    latency: int

    @property
    def initiation_interval(self) -> int:
        return max(1, -(-self.latency // self.register.distance))


def _path(expr: Expr, start: dict[str, int | None], latency_of: LatencyOf) -> int | None:
    """Longest latency from the starting locals to the value of ``expr``; ``None`` if unreached."""
    if isinstance(expr, Local):
        return start.get(expr.name)
    reached = [_path(cast(Expr, child), start, latency_of) for child in children(expr)]
    longest = max((value for value in reached if value is not None), default=None)
    if longest is None or isinstance(expr, Broadcast):
        return longest
    return longest + latency_of(expr)


def datapath_latencies(node: PEArray, latency_of: LatencyOf, load_latency: int) -> dict[str, int]:
    """Cycles from the start of a firing until each sent value leaves the PE's datapath.

    Received tokens and registers are there at once, loaded values after ``load_latency``.  The
    result is keyed by channel; a value that needs no operator has latency 0.
    """
    ready: dict[str, int | None] = {}
    latencies: dict[str, int] = {}
    for statement in node.body:
        match statement:
            case Receive(target=target) | RegisterRead(target=target):
                ready[target] = 0
            case Load(target=target):
                ready[target] = load_latency
            case Let(target=target, value=value):
                ready[target] = _path(value, ready, latency_of)
            case Send(channel=channel, value=value):
                latencies[channel] = _path(value, ready, latency_of) or 0
    return latencies


def recurrences(node: PEArray, latency_of: LatencyOf) -> tuple[Recurrence, ...]:
    """The recurrence through each register file of the node, with its latency on this device."""
    found: list[Recurrence] = []
    for register in node.registers:
        reached: dict[str, int | None] = {}
        longest = 0
        for statement in node.body:
            match statement:
                case RegisterRead(target=target, register=name) if name == register.name:
                    reached[target] = 0
                case Let(target=target, value=value):
                    reached[target] = _path(value, reached, latency_of)
                case RegisterWrite(register=name, value=value) if name == register.name:
                    longest = max(longest, _path(value, reached, latency_of) or 0)
        found.append(Recurrence(register=register, latency=longest))
    return tuple(found)


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
