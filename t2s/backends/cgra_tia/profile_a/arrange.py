"""Placement and routing on a small array: PEs, memory ports, and the routes of streams.

Each PE of the design is placed on a PE of the array.  Streams travel from neighbor to neighbor; a
wire carries one stream, and the PEs on its route forward it.  Each memory stream has its own port.
Arrangements come from local search with several starts, which moves PEs and ports while that
shortens the routes; the result depends on the seed only.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from t2s.backends.cgra_tia.fabric import ArrayWires
from t2s.backends.cgra_tia.lower.process import TokenStream
from t2s.backends.cgra_tia.profile_a.control import ControlledDesign

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
