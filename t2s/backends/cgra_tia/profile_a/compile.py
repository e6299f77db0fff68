"""A design as a text for the public tools: programs for all PEs of an array, and its memory.

The input is a graph of PEs with static control on int32 and uint32.  The passes, in order:
``firings`` (what each PE does in each of its firings), ``control`` (the tags that select it),
``Arranger`` (placement, ports and routes), ``firing_threads`` and ``threads`` (programs).
Arrangements are tried, and of those that have room for all threads the fastest is taken.

What these arrays cannot do is refused with the user's line; docs/triggered.md lists it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from t2s.backends.base import refusal
from t2s.backends.cgra_tia.fabric import PUBLIC_CORE, ArrayWires, array_wires
from t2s.backends.cgra_tia.lower.not_lowered import NotLowered, refuse
from t2s.backends.cgra_tia.lower.process import TokenStream
from t2s.backends.cgra_tia.lower.schedule import PointCache, nest_of
from t2s.backends.cgra_tia.profile_a.control import ControlledDesign, controlled
from t2s.backends.cgra_tia.profile_a.firing_threads import firing_thread
from t2s.backends.cgra_tia.profile_a.firings import FiringReader, MemoryAccess, WordProcess
from t2s.backends.cgra_tia.profile_a.threads import (
    WORD_MASK,
    AddressItem,
    AddressWire,
    NoRoom,
    PublicThread,
    Wire,
    address_thread,
    check_room,
    moving_thread,
    program_of_threads,
    rolled,
    unrolled_nests,
)
from t2s.backends.cgra_tia.program import CellProgram
from t2s.backends.cgra_tia.text.printer import print_programs
from t2s.core.location import SourceLocation
from t2s.core.names import one_line
from t2s.core.ops import Array
from t2s.graph.arrays import outputs_of, pack
from t2s.graph.body import Load, Store
from t2s.graph.graph import Graph, Tensor, TensorRole
from t2s.graph.nodes import PEArray
from t2s.graph.semantics import pe_points

BLOCK = (4, 4)
"""The shape of which the public tools have a system with one write port only."""


@dataclass(frozen=True, kw_only=True)
class PublicDesign:
    """Programs for the PEs of an array (``None``: one PE alone), with their comments.

    Tensors lie in the memory row by row, each from its word in ``starts`` on.
    """

    graph: Graph
    programs: tuple[CellProgram, ...]
    shape: tuple[int, int] | None
    starts: Mapping[str, int]

    @property
    def where(self) -> str:
        """What it runs on."""
        return "one PE" if self.shape is None else f"{self.shape[0]} x {self.shape[1]} PEs"

    @property
    def text(self) -> str:
        """The text, with the user's lines as comments."""
        starts = ", ".join(f"{name} from {at}" for name, at in self.starts.items())
        header = (f"{one_line(self.graph.name)} on {self.where}", f"memory: {starts}")
        return print_programs(self.programs, PUBLIC_CORE, header)

    def memory(self, arrays: Mapping[str, Array]) -> Array:
        """The memory before a run: the words of the user's arrays (uint32), and zeros."""
        memory = np.zeros(max(sum(map(_size, self.graph.tensors)), 1), np.uint32)
        for tensor in self.graph.tensors:
            if tensor.role is TensorRole.INPUT:
                packed = np.asarray(pack(tensor, arrays[tensor.array])).reshape(-1)
                start = self.starts[tensor.name]
                memory[start : start + packed.size] = packed.astype(np.int64) & WORD_MASK
        return memory

    def outputs(self, memory: Array) -> dict[str, Array]:
        """The outputs of the design, by the user's names, in the memory after a run."""
        stored = {}
        for tensor in self.graph.tensors:
            start, size = self.starts[tensor.name], _size(tensor)
            words = np.array(memory[start : start + size], np.uint32)
            stored[tensor.name] = words.view(tensor.type.numpy).reshape(tensor.allocated)
        return outputs_of(self.graph, stored)


def compile_public(graph: Graph, shape: tuple[int, int] | None, *, seed: int = 0) -> PublicDesign:
    """The programs of a design; raises ``UnsupportedError`` if it has none."""
    try:
        return _compiled(graph, shape, seed)
    except NotLowered as refused:
        raise refusal("cgra_tia (profile A)", graph, [refused.problem]) from None


def _compiled(graph: Graph, shape: tuple[int, int] | None, seed: int) -> PublicDesign:
    processes, accesses = _read(graph)
    starts = _starts(graph)
    for stream, access in accesses.items():
        accesses[stream] = replace(access, addresses=access.addresses + starts[access.tensor])
    wires = _wires(shape)
    design = controlled(processes, accesses, len(wires.reads))
    _check_counts(graph, design, wires, shape)
    tight: NoRoom | None = None
    best: tuple[tuple[int, int], tuple[CellProgram, ...]] | None = None
    for arrangement in Arranger(design, wires, shape, seed).arrangements():
        assembler = _Assembler(design, wires, arrangement)
        try:
            programs = assembler.programs()
        except NoRoom as full:
            tight = full if tight is None or full.needed < tight.needed else tight
            continue
        if best is None or assembler.work < best[0]:
            best = (assembler.work, programs)
    if best is not None:
        return PublicDesign(graph=graph, programs=best[1], shape=shape, starts=starts)
    if tight is None:
        why = (
            "no arrangement has a wire for each of its "
            f"{len(design.streams)} streams: take a larger array, or forward operands"
        )
    else:
        why = (
            f"in every arrangement that was tried a PE would need {tight}: take a larger array, "
            "fewer PEs or kinds of firings, or loops whose bounds divide"
        )
    refuse(f"the design {graph.name!r}", why, graph.location)


def _read(graph: Graph) -> tuple[list[WordProcess], dict[TokenStream, MemoryAccess]]:
    accesses: dict[TokenStream, MemoryAccess] = {}
    processes: list[WordProcess] = []
    _check_memory(graph)
    for node in graph.nodes:
        if not isinstance(node, PEArray):
            why = "its control depends on data, and only PEs with static control are supported here"
            refuse(f"node {node.name!r}", why, node.location)
        cache = PointCache()
        for point in pe_points(node):
            nest = nest_of(node, point, cache)
            if nest is not None:
                process = FiringReader(graph, node, point, nest, accesses).process()
                if len(process.sequence):
                    processes.append(process)
    return processes, accesses


def _check_memory(graph: Graph) -> None:
    stored = {s.tensor for node in graph.pe_arrays for s in node.body if isinstance(s, Store)}
    for node in graph.pe_arrays:
        for statement in node.body:
            if isinstance(statement, Load) and statement.tensor in stored:
                refuse(
                    f"node {node.name!r}",
                    f"it loads {statement.tensor!r}, which the design stores, and ports do not "
                    "wait for one another: take the values through a channel (stream)",
                    node.location,
                )


def _size(tensor: Tensor) -> int:
    return int(np.prod(tensor.allocated, dtype=np.int64))


def _starts(graph: Graph) -> dict[str, int]:
    """The first word of each tensor: tensors are adjacent, inputs first."""
    starts: dict[str, int] = {}
    words = 0
    for role in (TensorRole.INPUT, TensorRole.OUTPUT, TensorRole.INTERMEDIATE):
        for tensor in graph.tensors:
            if tensor.role is role:
                starts[tensor.name] = words
                words += _size(tensor)
    return starts


def _wires(shape: tuple[int, int] | None) -> ArrayWires:
    wires = array_wires(shape)
    if shape != BLOCK:
        return wires
    return replace(wires, writes=wires.writes[:1])


def _check_counts(
    graph: Graph, design: ControlledDesign, wires: ArrayWires, shape: tuple[int, int] | None
) -> None:
    where = "one PE alone" if shape is None else f"an array of {shape[0]} x {shape[1]} PEs"
    count = 1 if shape is None else shape[0] * shape[1]
    for what, accesses, most, hint in (
        ("streams of loads", design.loads, len(wires.reads), _FEWER_LOADS),
        ("streams of stores", design.stores, len(wires.writes), _FEWER_STORES),
    ):
        if len(accesses) > most:
            access = next(iter(accesses.values()))
            names = ", ".join(dict.fromkeys(each.tensor for each in accesses.values()))
            why = (
                f"the design has {len(accesses)} {what} ({names}), and {where} has "
                f"{most} such port{'' if most == 1 else 's'}: {hint}"
            )
            refuse(f"node {access.node!r}", why, access.location)
    if len(design.processes) > 4 * count:
        why = f"it has {len(design.processes)} PEs, and {where} has room for few: unroll less"
        refuse(f"the design {graph.name!r}", why, graph.location)


_FEWER_LOADS = (
    "load in fewer PEs and hand operands on (isolate_producer_chain and forward), or take more "
    "columns"
)
_FEWER_STORES = "let PEs hand on their results (isolate_consumer_chain and gather)"


class _Assembler:
    """Threads of each PE of an arrangement, and their programs."""

    def __init__(
        self, design: ControlledDesign, wires: ArrayWires, arrangement: PublicArrangement
    ) -> None:
        self._design = design
        self._wires = wires
        self._arrangement = arrangement
        count = 1 + max((element for element, _ in (*wires.links, *wires.reads)), default=0)
        self._inputs: list[dict[TokenStream, int]] = [{} for _ in range(count)]
        self._outputs: list[dict[Wire, int]] = [{} for _ in range(count)]
        self._movers: list[list[PublicThread]] = [[] for _ in range(count)]
        self._workers: list[list[PublicThread]] = [[] for _ in range(count)]
        self._sources: list[list[tuple[AddressWire, tuple[AddressItem, ...], bool, str]]]
        self._sources = [[] for _ in range(count)]
        self._labels: list[list[str]] = [[] for _ in range(count)]
        self._ends: set[TokenStream] = set()
        self.work = (0, 0)
        """The most firings of a PE, and those of all of them."""

    def programs(self) -> tuple[CellProgram, ...]:
        """A program for each PE; raises ``NoRoom``."""
        for stream in self._arrangement.routes:
            self._lay(stream)
        for number, process in enumerate(self._design.processes):
            element = self._arrangement.places[number]
            comment = comment_of(process.process.name, process.process.location)
            self._workers[element].append(firing_thread(process, frozenset(self._ends), comment))
            self._labels[element].append(process.process.name)
        self._add_ports()
        return tuple(self._program(element) for element in range(len(self._inputs)))

    def _lay(self, stream: TokenStream) -> None:
        """Lay wires and movers along the route of a stream."""
        route = self._arrangement.routes[stream]
        ends = self._design.streams[stream]
        tags = self._design.tags_of(stream)
        last = len(route.entries) - 1
        to_port = ends.sink is None
        if ends.source is not None and not (to_port and last == 0):
            self._ends.add(stream)
        for at, ((element, entry), leaves) in enumerate(
            zip(route.entries, route.exits, strict=True)
        ):
            if entry is not None:
                self._inputs[element][stream] = entry
            if leaves is not None:
                self._outputs[element][stream] = leaves
            if entry is not None and leaves is not None:
                comment = f"{stream} goes by"
                self._movers[element].append(
                    moving_thread(
                        stream,
                        tags,
                        tokens=ends.tokens,
                        hands_on_end=not (to_port and at == last),
                        comment=comment,
                    )
                )

    def _add_ports(self) -> None:
        """Add the address streams of all ports."""
        for accesses, ports, loads in (
            (self._design.loads, self._arrangement.reads, True),
            (self._design.stores, self._arrangement.writes, False),
        ):
            for stream, port in ports.items():
                access = accesses[stream]
                element, side = self._wires.reads[port] if loads else self._wires.writes[port][0]
                wire = AddressWire(stream)
                self._outputs[element][wire] = side
                needed = self._design.needs.get(stream) if loads else None
                items = rolled(access.addresses, needed, access.lanes)
                comment = comment_of(
                    f"addresses of {access.tensor} for {access.node}", access.location
                )
                self._sources[element].append((wire, items, loads, comment))

    def _program(self, element: int) -> CellProgram:
        others = [*self._movers[element], *self._workers[element]]
        threads = self._with_sources(others, self._sources[element])
        firings = sum(thread.firings for thread in threads)
        self.work = (max(self.work[0], firings), self.work[1] + firings)
        label = f"pe_{element}"
        if self._labels[element]:
            label += " " + " ".join(self._labels[element])
        return program_of_threads(
            one_line(label), threads, self._inputs[element], self._outputs[element]
        )

    def _with_sources(
        self,
        threads: Sequence[PublicThread],
        sources: Sequence[tuple[AddressWire, tuple[AddressItem, ...], bool, str]],
    ) -> list[PublicThread]:
        """Add the threads that send addresses, unrolled as far as there is room."""
        if not sources:
            check_room(threads)
            return list(threads)
        wire, items, loads, comment = sources[0]
        tightest: NoRoom | None = None
        for nest in unrolled_nests(items):
            thread = address_thread(wire, nest, sends_end=loads, comment=comment)
            try:
                return self._with_sources([*threads, thread], sources[1:])
            except NoRoom as full:
                if tightest is None or full.needed < tightest.needed:
                    tightest = full
        assert tightest is not None
        raise tightest


def comment_of(what: str, location: SourceLocation | None) -> str:
    """A comment: what an instruction is for, and the user's line."""
    if location is None:
        return one_line(what)
    file = location.file.replace("\\", "/").rpartition("/")[2]
    return one_line(f"{what}, {file}:{location.line}: {location.source_line}".rstrip(": "))


# Placement and routing on a small array: PEs, memory ports, and the routes of streams.
#
# Each PE of the design is placed on a PE of the array.  Streams travel from neighbor to neighbor; a
# wire carries one stream, and the PEs on its route forward it.  Each memory stream has its own
# port. Arrangements come from local search with several starts, which moves PEs and ports while
# that shortens the routes; the result depends on the seed only.

STARTS = 32
_MOVES = 60
"""Moves that are tried for each part of a design, from each start."""

_TOGETHER = 6
"""What it costs to have two PEs in one, in hops."""

_AT_A_PORT = (1, 0, 2, 4)
"""What it costs to have a PE where addresses are sent, in hops, from one start to the next."""

_IMPOSSIBLE = 1000

_HOP, _SHARED, _ROUNDS = 4, 6, 24
"""The price of a hop, what each other stream there adds to it, and the rounds of routing."""


@dataclass(frozen=True, slots=True)
class StreamRoute:
    """The route of a stream: its input and its output in each PE on the route."""

    entries: tuple[tuple[int, int | None], ...]
    exits: tuple[int | None, ...]


@dataclass(frozen=True, kw_only=True)
class PublicArrangement:
    """The array PE of each PE, the port of each memory stream, and all routes."""

    places: tuple[int, ...]
    reads: Mapping[TokenStream, int]
    writes: Mapping[TokenStream, int]
    routes: Mapping[TokenStream, StreamRoute]


class _Dice:
    """A random number generator that does not depend on the version of a library."""

    def __init__(self, seed: int) -> None:
        self._state = seed * 2654435761 + 88172645463325252

    def below(self, limit: int) -> int:
        self._state = (self._state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        return (self._state >> 33) % limit


@dataclass(kw_only=True)
class _Draft:
    places: list[int]
    reads: dict[TokenStream, int] = field(default_factory=dict)
    writes: dict[TokenStream, int] = field(default_factory=dict)


class Arranger:
    """Finds arrangements of a design, those with shorter routes first."""

    def __init__(
        self, design: ControlledDesign, wires: ArrayWires, shape: tuple[int, int] | None, seed: int
    ) -> None:
        self._design = design
        self._wires = wires
        self._columns = 1 if shape is None else shape[1]
        self._count = 1 if shape is None else shape[0] * shape[1]
        self._seed = seed
        self._at_a_port = _AT_A_PORT[0]
        self._distances = [
            [self._distance(first, second) for second in range(self._count)]
            for first in range(self._count)
        ]

    def arrangements(self) -> Iterator[PublicArrangement]:
        """Arrangements with routes for all streams; empty if there is none."""
        by_key: dict[tuple[object, ...], tuple[int, _Draft]] = {}
        for start in range(STARTS):
            dice = _Dice(self._seed * STARTS + start)
            self._at_a_port = _AT_A_PORT[start % len(_AT_A_PORT)]
            draft = self._improved(self._random(dice), dice)
            key = (*draft.places, *draft.reads.values(), *draft.writes.values())
            self._at_a_port = _AT_A_PORT[0]
            by_key[key] = (self._cost(draft), draft)
        drafts = [
            draft
            for cost, draft in sorted(by_key.values(), key=lambda pair: pair[0])
            if cost < _IMPOSSIBLE
        ]
        for draft in drafts:
            routes = self._routes(draft)
            if routes is not None:
                yield PublicArrangement(
                    places=tuple(draft.places),
                    reads=draft.reads,
                    writes=draft.writes,
                    routes=routes,
                )

    def _distance(self, first: int, second: int) -> int:
        (a, b), (c, d) = divmod(first, self._columns), divmod(second, self._columns)
        hops = abs(a - c) + abs(b - d)
        # superlinear: long routes compete for the wires of other streams
        return hops * (hops + 1) // 2

    # ------------------------------------------------------------------------------- places

    def _random(self, dice: _Dice) -> _Draft:
        def chosen(streams: Mapping[TokenStream, object], ports: int) -> dict[TokenStream, int]:
            free = list(range(ports))
            return {stream: free.pop(dice.below(len(free))) for stream in streams}

        return _Draft(
            places=[dice.below(self._count) for _ in self._design.processes],
            reads=chosen(self._design.loads, len(self._wires.reads)),
            writes=chosen(self._design.stores, len(self._wires.writes)),
        )

    def _ends(self, stream: TokenStream, draft: _Draft) -> tuple[int, int]:
        ends = self._design.streams[stream]
        source = (
            self._wires.reads[draft.reads[stream]][0]
            if ends.source is None
            else (draft.places[ends.source])
        )
        sink = (
            self._wires.writes[draft.writes[stream]][1][0]
            if ends.sink is None
            else (draft.places[ends.sink])
        )
        return source, sink

    def _cost(self, draft: _Draft) -> int:
        cost = 0
        for stream, ends in self._design.streams.items():
            source, sink = self._ends(stream, draft)
            cost += self._distances[source][sink]
            if source == sink and ends.source is not None and ends.sink is not None:
                cost += _IMPOSSIBLE
        cost += _TOGETHER * (len(draft.places) - len(set(draft.places)))
        ports = [self._wires.reads[port][0] for port in draft.reads.values()]
        ports += [self._wires.writes[port][0][0] for port in draft.writes.values()]
        cost += self._at_a_port * sum(draft.places.count(element) for element in ports)
        return cost

    def _improved(self, draft: _Draft, dice: _Dice) -> _Draft:
        """The draft after moves that did not increase the cost."""
        cost = self._cost(draft)
        parts = len(draft.places) + len(draft.reads) + len(draft.writes)
        for _ in range(_MOVES * parts):
            undo = self._moved(draft, dice)
            after = self._cost(draft)
            if after <= cost:
                cost = after
            else:
                undo()
        return draft

    def _moved(self, draft: _Draft, dice: _Dice):  # type: ignore[no-untyped-def]
        """Move a PE (perhaps by a swap), or a stream to another port; returns the undo function."""
        number = dice.below(len(draft.places) + len(draft.reads) + len(draft.writes))
        if number < len(draft.places):
            before = list(draft.places)
            source, target = draft.places[number], dice.below(self._count)
            swap = dice.below(2)
            draft.places = [source if place == target and swap else place for place in draft.places]
            draft.places[number] = target
            return lambda: setattr(draft, "places", before)
        number -= len(draft.places)
        loads = number < len(draft.reads)
        table = draft.reads if loads else draft.writes
        ports = len(self._wires.reads) if loads else len(self._wires.writes)
        stream = list(table)[number if loads else number - len(draft.reads)]
        old, new = table[stream], dice.below(ports)
        other = next((neighbor for neighbor, port in table.items() if port == new), None)

        def put(first: int, second: int) -> None:
            table[stream] = first
            if other is not None and other != stream:
                table[other] = second

        put(new, old)
        return lambda: put(old, new)

    # --------------------------------------------------------------------------------- routes

    def _routes(self, draft: _Draft) -> dict[TokenStream, StreamRoute] | None:
        """A route for each stream, with no wire used twice; ``None`` if none were found.

        All streams repeatedly take their cheapest routes, while wires that several of them use
        become more expensive (PathFinder's negotiated congestion).
        """
        taken = {self._wires.reads[port] for port in draft.reads.values()}
        for port in draft.writes.values():
            taken |= set(self._wires.writes[port])
        busy = [draft.places.count(element) for element in range(self._count)]
        for element, _ in taken:
            busy[element] += 1
        history = dict.fromkeys(self._wires.links, 0)
        routes: dict[TokenStream, list[tuple[int, int]]] = {}
        for _ in range(_ROUNDS):
            users = dict.fromkeys(self._wires.links, 0)
            for stream in self._design.streams:
                prices = {hop: _HOP + history[hop] + _SHARED * users[hop] for hop in users}
                hops = self._hops(*self._ends(stream, draft), prices, busy)
                if hops is None:
                    return None
                routes[stream] = hops
                for hop in hops:
                    users[hop] += 1
            crowded = [hop for hop, count in users.items() if count > 1]
            if not crowded:
                return {
                    stream: self._route(stream, draft, self._ends(stream, draft)[0], hops)
                    for stream, hops in routes.items()
                }
            for hop in crowded:
                history[hop] += _SHARED
        return None

    def _hops(
        self, source: int, sink: int, prices: Mapping[tuple[int, int], int], busy: list[int]
    ) -> list[tuple[int, int]] | None:
        """The outputs along a cheapest route."""
        waiting: list[tuple[int, int, tuple[tuple[int, int], ...]]] = [(0, source, ())]
        seen: set[int] = set()
        while waiting:
            cost, element, hops = heapq.heappop(waiting)
            if element == sink:
                return list(hops)
            if element in seen:
                continue
            seen.add(element)
            for side in range(4):
                port = (element, side)
                if port in prices:
                    after = self._wires.links[port][0]
                    price = prices[port] + 2 * busy[after] * (after != sink)
                    heapq.heappush(waiting, (cost + price, after, (*hops, port)))
        return None

    def _route(
        self, stream: TokenStream, draft: _Draft, source: int, hops: list[tuple[int, int]]
    ) -> StreamRoute:
        ends = self._design.streams[stream]
        entry = None
        if ends.source is None:
            entry = self._wires.reads[draft.reads[stream]][1]
        entries: list[tuple[int, int | None]] = [(source, entry)]
        entries += [self._wires.links[hop] for hop in hops]
        exits: list[int | None] = [side for _, side in hops]
        exits.append(self._wires.writes[draft.writes[stream]][1][1] if ends.sink is None else None)
        return StreamRoute(tuple(entries), tuple(exits))
