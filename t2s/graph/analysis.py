"""Static timing facts of nodes: datapath latencies, recurrences, memory traffic of a rule.

Everything here is in cycles and depends on a device only through ``latency_of``, which gives the
latency of one operator application (``Apply``, ``Cast``, ``Select`` or ``ReduceLanes``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from t2s.core.expr import Broadcast, Expr, Local, apply
from t2s.core.walk import children
from t2s.graph.body import (
    Let,
    Load,
    Receive,
    Register,
    RegisterRead,
    RegisterWrite,
    Send,
    Statement,
    Store,
)
from t2s.graph.graph import Graph, MemorySpace
from t2s.graph.nodes import Machine, MemoryAdd, MemoryFirst, MemorySize, Path, PEArray, Search

LatencyOf = Callable[[Expr], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrence:
    """A carried dependence through register files: II >= ceil(latency / distance).

    ``registers`` are the files on the cycle, usually one; ``distance`` is the number of firings
    that the cycle spans.
    """

    registers: tuple[Register, ...]
    latency: int

    @property
    def register(self) -> Register:
        """The first register file of the cycle."""
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

    Received tokens and registers are available at once, loaded values after ``load_latency``, and a
    value sent after a store leaves when the store is complete, after ``store_latency``.  The result
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
    """Every cycle of dependences through register files, with its latency on this device.

    Each register file also has a recurrence of its own, of latency 0 if the written value does not
    depend on the one read.
    """
    paths = {r.name: _paths_from(node, r.name, latency_of) for r in node.registers}
    return recurrence_cycles(node.registers, paths)


def recurrence_cycles(
    registers: tuple[Register, ...], paths: Mapping[str, Mapping[str, int]]
) -> tuple[Recurrence, ...]:
    """The recurrences, given the latency from a read of each register to the writes it reaches."""
    order = {register.name: position for position, register in enumerate(registers)}
    cycles = [
        Recurrence(registers=(register,), latency=paths[register.name].get(register.name, 0))
        for register in registers
    ]

    reached = _reached(paths)

    def follow(path: tuple[Register, ...], latency: int) -> None:
        start, last = path[0].name, path[-1].name
        for target, step in paths[last].items():
            if target == start and len(path) > 1:
                cycles.append(Recurrence(registers=path, latency=latency + step))
            elif start not in reached[target]:
                continue
            elif order[target] > order[start] and target not in {r.name for r in path}:
                follow((*path, registers[order[target]]), latency + step)

    for register in registers:
        follow((register,), 0)
    return tuple(cycles)


def _reached(paths: Mapping[str, Mapping[str, int]]) -> dict[str, set[str]]:
    """The registers that each one influences, in any number of firings."""
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
    """The most bytes that one firing moves between the node and memory."""
    total = 0
    for statement in node.body:
        match statement:
            case Load(type=type):
                total += type.bytes
            case Store(value=value):
                total += value.type.bytes
    return total


def path_bytes(graph: Graph, path: Path) -> tuple[int, int]:
    """Bytes that a firing of this rule loads from and stores to the device's memory.

    All lanes of a gather or scatter count, also those that access nothing.
    """
    loaded = stored = 0
    for statement in path.statements:
        match statement:
            case Load(tensor=name, type=type) if graph.tensor(name).place is MemorySpace.MEMORY:
                loaded += type.bytes
            case Search(tensor=name, value=value) if graph.tensor(name).place is MemorySpace.MEMORY:
                loaded += value.type.bytes
            case Store(tensor=name, value=value) if graph.tensor(name).place is MemorySpace.MEMORY:
                stored += value.type.bytes
    return loaded, stored


def most_bytes(graph: Graph, node: Machine) -> int:
    """The most bytes that one firing moves between the machine and the device's memory."""
    return max((sum(path_bytes(graph, path)) for path in node.paths()), default=0)


def loads_from_memory(graph: Graph, node: Machine) -> bool:
    """Whether any rule loads from the device's memory."""
    return any(path_bytes(graph, path)[0] for path in node.paths())


def machine_latencies(
    graph: Graph, node: Machine, latency_of: LatencyOf, load_latency: int, store_latency: int
) -> dict[str, int]:
    """Cycles from the start of a firing until its tokens leave the datapath, by channel.

    The slowest rule that puts into a channel counts, because tokens do not overtake each other.
    The latency of the machine itself comes on top.
    """
    latencies = {channel.name: 0 for channel in graph.outputs_of(node.name)}
    start: dict[str, int | None] = {register.name: 0 for register in node.registers}
    for head in node.heads:
        start |= {name: 0 for name in (head.value, head.tag) if name is not None}
    for path in node.paths():
        ready, stored = dict(start), 0
        for statement in path.statements:
            _advance(graph, statement, ready, latency_of, load_latency, fresh=True)
            if isinstance(statement, Store):
                in_memory = graph.tensor(statement.tensor).place is MemorySpace.MEMORY
                stored = max(stored, store_latency if in_memory else 0)
        for put in path.rule.puts:
            values = [value for value in (put.value, put.tag) if value is not None]
            slowest = [longest_path(value, ready, latency_of) or 0 for value in values]
            latencies[put.channel] = max(latencies[put.channel], stored, *slowest, 0)
    return {name: node.latency + cycles for name, cycles in latencies.items()}


def machine_recurrences(
    graph: Graph, node: Machine, latency_of: LatencyOf, load_latency: int
) -> tuple[Recurrence, ...]:
    """Every cycle through registers and sorted memories, like ``recurrences``.

    A sorted memory is a cycle of its own, because the next firing may add to the same point.
    """
    memories = tuple(
        Register(name=m.name, type=m.type, shape=(), distance=1, location=m.location)
        for m in node.memories
    )
    paths = {
        r.name: _reached_from(graph, node, r.name, latency_of, load_latency) for r in node.registers
    }
    for memory in node.memories:
        value = Local(name=memory.name, type=memory.type)
        paths[memory.name] = {memory.name: latency_of(apply(memory.operator, value, value))}
    return recurrence_cycles((*node.registers, *memories), paths)


def _reached_from(
    graph: Graph, node: Machine, register: str, latency_of: LatencyOf, load_latency: int
) -> dict[str, int]:
    """Longest latency from a read of one register to a write of each that depends on it."""
    lengths: dict[str, int] = {}
    for path in node.paths():
        ready: dict[str, int | None] = {register: 0}
        for statement in path.statements:
            _advance(graph, statement, ready, latency_of, load_latency, fresh=False)
            if isinstance(statement, RegisterWrite):
                length = longest_path(statement.value, ready, latency_of)
                if length is not None:
                    name = statement.register
                    lengths[name] = max(lengths.get(name, 0), length)
    return lengths


def _advance(
    graph: Graph,
    statement: Statement,
    ready: dict[str, int | None],
    latency_of: LatencyOf,
    load_latency: int,
    *,
    fresh: bool,
) -> None:
    """Record when the locals that a statement binds are available; ``fresh``: values read are at
    once.
    """
    start = 0 if fresh else None
    match statement:
        case Let(target=target, value=value):
            ready[target] = longest_path(value, ready, latency_of)
        case Load(target=target, tensor=name, indices=indices):
            latency = load_latency if graph.tensor(name).place is MemorySpace.MEMORY else 0
            address = _latest((longest_path(index, ready, latency_of) for index in indices), start)
            ready[target] = None if address is None else address + latency
        case Search(target=target, tensor=name, begin=begin, end=end, value=value):
            latency = load_latency if graph.tensor(name).place is MemorySpace.MEMORY else 0
            sources = (longest_path(expr, ready, latency_of) for expr in (begin, end, value))
            address = _latest(sources, start)
            ready[target] = None if address is None else address + latency
        case RegisterRead(target=target, register=register):
            ready[target] = 0 if fresh else ready.get(register)
        case MemorySize(target=target):
            ready[target] = start
        case MemoryFirst(targets=targets, value=value_name):
            ready |= dict.fromkeys((*targets, value_name), start)
        case MemoryAdd():
            pass


def _latest(times: Iterable[int | None], otherwise: int | None) -> int | None:
    return max((time for time in times if time is not None), default=otherwise)
