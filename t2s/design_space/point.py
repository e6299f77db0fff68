"""A point of the space: the decisions of a design, and the directives that carry them out.

A point says which loops are PEs and how many, the tile of results that each PE keeps, the vector
length, how each operand reaches the PEs, and how results leave.  ``calls`` is the point as the
directives that a user would write; ``apply`` carries them out on a Func.

The loop nest is always the same, outermost first: blocks of results, the reduction, the tile of a
PE, the PEs, the lanes.  Where a reduction is in space, its inner part is, so that sums pass the PEs
once in each step.  So a PE has as many partial sums in flight as its tile has results, which
hides the latency of the adder.  Lanes are along the innermost reduction, or along adjacent results
where nothing is reduced; then a result of a PE is a vector.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from t2s.core.names import NameSupply
from t2s.design_space.contraction import Contraction, SearchedOperand
from t2s.func.collect import needed_funcs
from t2s.func.expressions import Symbol
from t2s.func.func import RVar, Var
from t2s.spatial.schedule import Place, ScheduledFunc


class Feed(Enum):
    """How an operand reaches the PEs."""

    DIRECT = "each PE loads it"
    FORWARDED = "boundary PEs load it and PEs pass it on"
    BUFFERED = "a loader streams each value once for a tile; feeders buffer it and PEs pass it on"
    BUFFERED_APART = "the same, with a loader for each feeder"

    @property
    def buffers(self) -> bool:
        """Whether feeders buffer what loaders send once."""
        return self in (Feed.BUFFERED, Feed.BUFFERED_APART)


class Drain(Enum):
    """How results leave the PEs."""

    STORED = "each PE stores its results, through a FIFO that takes no RAM block"
    QUEUED = "each PE stores its results, through a FIFO that holds a tile"
    GATHERED = "results are gathered to one unloader"


@dataclass(frozen=True, slots=True)
class Point:
    """The decisions of one design of a contraction.

    Attributes
    ----------
    rows: (loop, PEs) for each loop in space, outputs before reductions.
    tiles: results of one PE along each output loop.
    lanes: the length of vectors along the vector loop of the contraction.
    feeds: for each operand.
    depth: the FIFO from a PE to its store unit, and that from the load unit of the value that a
        reduction starts from, in results; 0 for the default.
    """

    rows: tuple[tuple[str, int], ...]
    tiles: tuple[int, ...]
    lanes: int
    feeds: tuple[Feed, ...]
    drain: Drain
    depth: int = 0

    def text(self, contraction: Contraction) -> str:
        """The decisions in a line."""
        array = " x ".join(f"{pes} PEs along {loop}" for loop, pes in self.rows) or "one PE"
        tile = " x ".join(map(str, self.tiles))
        feeds = ", ".join(
            f"{operand.name} {feed.name.lower().replace('_', ' ')}"
            for operand, feed in zip(contraction.operands, self.feeds, strict=True)
        )
        lanes = f"{self.lanes} lane{'s' if self.lanes > 1 else ''}"
        return f"{array}, {lanes}, {tile} results each; {feeds}; results {self.drain.name.lower()}"


def single_pe(contraction: Contraction, lanes: int) -> Point:
    """The design without an array of PEs."""
    return Point(
        rows=(),
        tiles=(1,) * len(contraction.outputs),
        lanes=lanes,
        feeds=(Feed.DIRECT,) * len(contraction.operands),
        drain=Drain.STORED,
    )


@dataclass(frozen=True, slots=True)
class Call:
    """``receiver.method(*arguments)``: loops and Funcs by name, and integers.

    ``reverse`` is an argument by name, of the methods that have it.
    """

    receiver: str
    method: str
    arguments: tuple[str | int, ...]
    reverse: bool = False

    @property
    def text(self) -> str:
        """The call as a line of a program."""
        arguments = [*map(str, self.arguments), *(["reverse=True"] if self.reverse else [])]
        return f"{self.receiver}.{self.method}({', '.join(arguments)})"


@dataclass(frozen=True, slots=True)
class Directives:
    """The loops and Funcs that a point makes, and its calls in order.

    ``loaders`` has the Func that loads an operand, where one was isolated.
    """

    loops: tuple[str, ...]
    funcs: tuple[str, ...]
    on_host: tuple[str, ...]
    loaders: Mapping[str, str]
    calls: tuple[Call, ...]


def apply(design: ScheduledFunc | Sequence[ScheduledFunc], directives: Directives) -> None:
    """Carry out directives on a Func, or several outputs, without any."""
    outputs = [design] if isinstance(design, ScheduledFunc) else design
    func = type(outputs[0])
    symbols: dict[str, Any] = dict(symbols_of(outputs))
    symbols |= {name: Var(name) for name in directives.loops}
    symbols |= {name: func(name) for name in directives.funcs}
    symbols |= {name: func(name, place=Place.HOST) for name in directives.on_host}
    for call in directives.calls:
        arguments = [symbols.get(a, a) if isinstance(a, str) else a for a in call.arguments]
        options = {"reverse": True} if call.reverse else {}
        getattr(symbols[call.receiver], call.method)(*arguments, **options)


def symbols_of(outputs: Sequence[ScheduledFunc]) -> Mapping[str, Symbol]:
    """The objects of a definition by name, with the dimensions of an RDom that no term uses."""
    symbols: dict[str, Symbol] = {}
    for func in needed_funcs(outputs):
        symbols[func.name] = func
        for written in func.written:
            symbols |= written.symbols
            for part in written.target:
                symbols |= part.symbols
    for symbol in list(symbols.values()):
        if isinstance(symbol, RVar):
            symbols |= {dimension.name: dimension for dimension in symbol.domain}
    return symbols


def directives_of(contraction: Contraction, point: Point, taken: frozenset[str]) -> Directives:
    """The directives of a point; names of new loops and Funcs avoid those that are ``taken``."""
    return _Writer(contraction, point, NameSupply(taken)).directives()


class _Writer:
    """Writes the directives of one point."""

    def __init__(self, contraction: Contraction, point: Point, names: NameSupply) -> None:
        self.contraction = contraction
        self.point = point
        self.names = names
        self.loops: list[str] = []
        self.funcs: list[str] = []
        self.on_host: list[str] = []
        self.calls: list[Call] = []
        self.pes: dict[str, str] = {}  # the loop over PEs, by output loop
        self.chains: dict[str, str] = {}  # the loop over PEs, by reduction
        self.tiles: dict[str, str] = {}  # the loop over a PE's results, by output loop
        self.lane: str | None = None

    def directives(self) -> Directives:
        self.shape_nest()
        for operand in self.contraction.initial if self.point.depth else ():
            if not operand.stored:
                continue  # loaded for a Func in the PEs
            loader = self.func(f"{operand.name}_loader")
            self.call(self.contraction.name, "isolate_producer", operand.name, loader)
            self.call(loader, "depth", self.point.depth)
        feeders = [(o, f, *self.isolate(o, f)) for o, f in self.operands() if self.isolates(o, f)]
        for operand, feed, loader, feeder in feeders:
            if feed is not Feed.DIRECT:
                self.feed(operand, feed, loader, feeder)
        if self.point.drain is Drain.GATHERED:
            self.gather()
        elif self.point.depth:
            unloader = self.func(f"{self.contraction.name}_unloader")
            self.call(self.contraction.name, "isolate_consumer", unloader)
            self.call(self.contraction.name, "depth", self.point.depth)
        return Directives(
            loops=tuple(self.loops),
            funcs=tuple(self.funcs),
            on_host=tuple(self.on_host),
            loaders={operand.name: loader for operand, _, loader, _ in feeders},
            calls=tuple(self.calls),
        )

    def call(
        self, receiver: str, method: str, *arguments: str | int, reverse: bool = False
    ) -> None:
        self.calls.append(Call(receiver, method, arguments, reverse))

    def operands(self) -> Iterator[tuple[SearchedOperand, Feed]]:
        return zip(self.contraction.operands, self.point.feeds, strict=True)

    def loop(self, name: str) -> str:
        self.loops.append(self.names.fresh(name))
        return self.loops[-1]

    def func(self, name: str) -> str:
        self.funcs.append(self.names.fresh(name))
        return self.funcs[-1]

    def shape_nest(self) -> None:
        """Split, reorder and unroll the loops of the definition."""
        name, rows = self.contraction.name, dict(self.point.rows)
        lanes_along = self.contraction.vector_loop
        if lanes_along is not None and self.point.lanes > 1:
            self.lane = self.loop(f"{lanes_along}v")
            self.call(name, "split", lanes_along, lanes_along, self.lane, self.point.lanes)
        for reduction in self.contraction.reductions:
            if reduction.name in rows:
                along = reduction.name
                self.chains[along] = self.loop(f"{along}p")
                self.call(name, "split", along, along, self.chains[along], rows[along])
        for output, tile in zip(self.contraction.outputs, self.point.tiles, strict=True):
            block = rows.get(output.name, 1) * tile
            if block == 1:
                continue
            inner = self.loop(f"{output.name}{'t' if tile > 1 else 'p'}")
            self.call(name, "split", output.name, output.name, inner, block)
            if tile > 1:
                self.tiles[output.name] = inner
                if output.name in rows:
                    self.pes[output.name] = self.loop(f"{output.name}p")
                    pes = self.pes[output.name]
                    self.call(name, "split", inner, inner, pes, rows[output.name])
            elif output.name in rows:
                self.pes[output.name] = inner
        nest = [output.name for output in self.contraction.outputs]
        nest += [reduction.name for reduction in self.contraction.reductions]
        nest += [*self.tiles.values(), *self.pes.values(), *self.chains.values()]
        nest += [self.lane] if self.lane else []
        self.call(name, "reorder", *reversed(nest))
        if self.pes or self.chains:
            self.call(name, "unroll", *self.pes.values(), *self.chains.values())
        if self.lane:
            operands = (*self.contraction.operands, *self.contraction.initial)
            self.call(name, "vload", *(o.name for o in operands if lanes_along in o.varies))
            if not self.contraction.reductions:
                self.call(name, "vstore", name)

    def isolates(self, operand: SearchedOperand, feed: Feed) -> bool:
        """Whether loading has to be a Func of its own."""
        return feed is not Feed.DIRECT or not operand.stored or self.reorders(operand)

    def reorders(self, operand: SearchedOperand) -> bool:
        """Whether elements along the lanes are apart in memory, so that the host reorders them."""
        along = self.contraction.vector_loop
        return self.lane is not None and along in operand.varies and along not in operand.adjacent

    def isolate(self, operand: SearchedOperand, feed: Feed) -> tuple[str, str]:
        """The chain from memory to the PEs: the loader, and the last Func of the chain."""
        chain: list[str] = []
        if self.reorders(operand):
            self.on_host.append(self.names.fresh(f"{operand.name}_serializer"))
            chain.append(self.on_host[-1])
        loader = feeder = self.func(f"{operand.name}_loader")
        chain.append(loader)
        if feed.buffers:
            feeder = self.func(f"{operand.name}_feeder")
            chain.append(feeder)
        self.call(self.contraction.name, "isolate_producer_chain", operand.name, *chain)
        return loader, feeder

    def feed(self, operand: SearchedOperand, feed: Feed, loader: str, feeder: str) -> None:
        name = self.contraction.name
        in_space = self.pes | self.chains
        for loop, pes in in_space.items():
            if loop not in operand.varies:
                self.call(name, "forward", feeder, pes)
        if loader == feeder:
            return
        removed = [t for v, t in reversed(self.tiles.items()) if v not in operand.varies]
        kept = len(self.contraction.reductions)
        while kept and self.contraction.reductions[kept - 1].name not in operand.varies:
            kept -= 1
            removed.append(self.contraction.reductions[kept].name)
        if removed:
            self.call(loader, "remove", *removed)
        # the buffer comes first: scattering along two loops inserts a Func that it would name
        outer = [*self.contraction.outputs, *self.contraction.reductions[:kept]]
        self.call(feeder, "buffer", loader, outer[-1].name)
        # along a reduction PEs start one after the other, so each has a loader of its own
        for loop, pes in self.pes.items():
            if loop in operand.varies and feed is Feed.BUFFERED:
                self.call(feeder, "scatter", loader, pes)

    def gather(self) -> None:
        name = self.contraction.name
        drainers = [
            self.func(f"{name}_{part}") for part in ("drainer", "collector")[: len(self.pes)]
        ]
        unloader = self.func(f"{name}_unloader")
        self.call(name, "isolate_consumer_chain", *drainers, unloader)
        source, vectors = name, stores_vectors(self.contraction, self.point)
        for drainer, (loop, pes) in zip(drainers, self.pes.items(), strict=True):
            # a word that starts where operands do meets each PE as its result is ready
            last = vectors and loop == list(self.pes)[-1]
            reverse = last and passed_along(loop, self.contraction, self.point.feeds)
            self.call(drainer, "gather", source, pes, reverse=reverse)
            source = drainer
        if vectors:
            self.call(unloader, "vstore", name)


def passed_along(loop: str, contraction: Contraction, feeds: Sequence[Feed]) -> bool:
    """Whether PEs along a loop pass an operand on, so that each starts after the one before it."""
    return any(
        feed is not Feed.DIRECT and loop not in operand.varies
        for operand, feed in zip(contraction.operands, feeds, strict=True)
    )


def stores_vectors(contraction: Contraction, point: Point) -> bool:
    """Whether the last loop in space is the one along which results are adjacent in memory."""
    reductions = {loop.name for loop in contraction.reductions}
    rows = [loop for loop, _ in point.rows if loop not in reductions]
    return rows[-1:] == list(contraction.stored[-1:])
