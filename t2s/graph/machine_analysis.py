"""Static timing facts of machines: memory traffic of a rule, datapath latencies, recurrences.

Loads from the device's memory delay what depends on them, not the next firing: the machine reads
ahead.  Only where an address depends on a value loaded by an earlier firing (a list of pointers)
does it have to wait, and that is a recurrence.  Choosing takes no time of its own.
"""

from __future__ import annotations

from collections.abc import Iterable

from t2s.core.expr import Local, apply
from t2s.graph.analysis import LatencyOf, Recurrence, circles, longest_path
from t2s.graph.body import Let, Load, RegisterRead, RegisterWrite, Statement, Store
from t2s.graph.graph import Graph, Place
from t2s.graph.machine import Machine, MemoryAdd, MemoryFirst, MemorySize, Path, Search
from t2s.graph.parts import Register


def path_bytes(graph: Graph, path: Path) -> tuple[int, int]:
    """Bytes that a firing of this rule loads from and stores to the device's memory, exactly."""
    loaded = stored = 0
    for statement in path.statements:
        match statement:
            case Load(tensor=name, type=type) if graph.tensor(name).place is Place.MEMORY:
                loaded += type.bytes
            case Search(tensor=name, value=value) if graph.tensor(name).place is Place.MEMORY:
                loaded += value.type.bytes
            case Store(tensor=name, value=value) if graph.tensor(name).place is Place.MEMORY:
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
    """Cycles from the start of a firing until what it puts leaves the datapath, by channel.

    Of the rules that put into a channel the slowest counts, since tokens do not overtake.
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
                in_memory = graph.tensor(statement.tensor).place is Place.MEMORY
                stored = max(stored, store_latency if in_memory else 0)
        for put in path.rule.puts:
            values = [value for value in (put.value, put.tag) if value is not None]
            slowest = [longest_path(value, ready, latency_of) or 0 for value in values]
            latencies[put.channel] = max(latencies[put.channel], stored, *slowest, 0)
    return latencies


def machine_recurrences(
    graph: Graph, node: Machine, latency_of: LatencyOf, load_latency: int
) -> tuple[Recurrence, ...]:
    """Every circle through registers and sorted memories, as ``analysis.recurrences`` gives them.

    A sorted memory that the same point may be added to again at once is a circle of its own.
    """
    memories = tuple(
        Register(name=m.name, type=m.type, shape=(), distance=1, location=m.location)
        for m in node.memories
    )
    paths = {
        r.name: _reached(graph, node, r.name, latency_of, load_latency) for r in node.registers
    }
    for memory in node.memories:
        value = Local(name=memory.name, type=memory.type)
        paths[memory.name] = {memory.name: latency_of(apply(memory.operator, value, value))}
    return circles((*node.registers, *memories), paths)


def _reached(
    graph: Graph, node: Machine, register: str, latency_of: LatencyOf, load_latency: int
) -> dict[str, int]:
    """Longest latency from a read of one register to a write of each that depends on it."""
    found: dict[str, int] = {}
    for path in node.paths():
        ready: dict[str, int | None] = {register: 0}
        for statement in path.statements:
            _advance(graph, statement, ready, latency_of, load_latency, fresh=False)
            if isinstance(statement, RegisterWrite):
                length = longest_path(statement.value, ready, latency_of)
                if length is not None:
                    name = statement.register
                    found[name] = max(found.get(name, 0), length)
    return found


def _advance(
    graph: Graph,
    statement: Statement,
    ready: dict[str, int | None],
    latency_of: LatencyOf,
    load_latency: int,
    *,
    fresh: bool,
) -> None:
    """When the locals that a statement binds are there; ``fresh`` says that what is read is."""
    start = 0 if fresh else None
    match statement:
        case Let(target=target, value=value):
            ready[target] = longest_path(value, ready, latency_of)
        case Load(target=target, tensor=name, indices=indices):
            latency = load_latency if graph.tensor(name).place is Place.MEMORY else 0
            address = _latest((longest_path(index, ready, latency_of) for index in indices), start)
            ready[target] = None if address is None else address + latency
        case Search(target=target, tensor=name, begin=begin, end=end, value=value):
            latency = load_latency if graph.tensor(name).place is Place.MEMORY else 0
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
