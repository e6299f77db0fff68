"""The space of designs of a recurrence within a budget, with a lower bound for each of them.

A *point* says which loops are PEs and how many, in which order a PE runs the other loops, how many
iterations of independent loops it interleaves, so that no iteration waits for the latency of the
one before it, the vector length, and how operands reach the PEs.  ``directives_of_recurrence``
writes it as a user would.  Points that the compiler refuses, such as those whose values would have
to travel back in time, are counted as refused when their turn comes.

**The space.**  No, one or two loops in space: a whole loop where its bounds depend on other loops
or others on it, else the fewest PEs for each number of steps; the dependent loops in time in each
order; of each independent loop one iteration at a time, all of them, or halves, quarters, ...
interleaved; vectors of a power of two along a loop without dependences; operands loaded by each PE,
forwarded from boundary PEs, or buffered where interleaved loops use them again, all alike.
Not in it: skewed space-time maps, tiles of dependent loops in a PE, gathered results, depths of
FIFOs.

**Bounds.**  Each is a count of what has to happen, so none is above the true cycles:

* the PE with the most iterations runs them one by one, after the first load; the one with
  the last iteration of the nest starts when values have passed the PEs before it, and then stores;
* where every iteration needs the one before it along a loop, a PE begins those iterations a latency
  apart, or, along PEs, the latency of all of them with a cycle for each hop;
* all bytes, by the bandwidth of the memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, permutations, product
from math import ceil, prod
from typing import Any

import numpy as np

from t2s.core.expr import index_names
from t2s.core.names import NameSupply
from t2s.design_space.columns import Budget, smallest_tiles
from t2s.design_space.point import Call, Directives, Feed
from t2s.design_space.recurrence import NEVER, Recurrence, RecurrenceLoop, Runs, Transport
from t2s.design_space.space import LANES
from t2s.simulator.devices import Device

MOST_SCHEDULED = 1 << 14
"""Iterations of tracked loops for which the order of a PE is followed one by one."""


@dataclass(frozen=True, slots=True)
class RecurrencePoint:
    """The decisions of one design of a recurrence.

    Attributes
    ----------
    rows: (loop, PEs) for each loop in space.
    order: the dependent loops in time, outermost first.
    interleaved: (loop, iterations) of the independent loops that a PE interleaves.
    lanes: the length of vectors along the vector loop.
    feed: how operands reach the PEs, where they can in this way.
    """

    rows: tuple[tuple[str, int], ...]
    order: tuple[str, ...]
    interleaved: tuple[tuple[str, int], ...]
    lanes: int
    feed: Feed

    @property
    def pes(self) -> dict[str, int]:
        """The PEs along each loop in space."""
        return dict(self.rows)

    def text(self) -> str:
        """The decisions in a line."""
        array = " x ".join(f"{pes} PEs along {loop}" for loop, pes in self.rows) or "one PE"
        order = " over ".join(self.order) or "no loop"
        interleaved = " x ".join(f"{count} of {loop}" for loop, count in self.interleaved)
        lanes = f"{self.lanes} lane{'s' if self.lanes > 1 else ''}"
        feed = self.feed.name.lower()
        return f"{array}, {lanes}, {order} in time, {interleaved or 'nothing'} interleaved; " + (
            f"operands {feed}"
        )


@dataclass(frozen=True, kw_only=True)
class RecurrenceDatapath:
    """A design of a single PE: its DSP blocks, and what its iterations wait for.

    ``others`` are the blocks of Funcs that pick elements out of the recurrence; ``reloads`` says
    whether they load what members have stored.
    """

    dsp: Fraction
    others: int
    reloads: bool
    transports: tuple[Transport, ...]


@dataclass(frozen=True, kw_only=True)
class RecurrenceFamily:
    """Points with the same PEs and vectors, none of which takes fewer than ``bound`` cycles."""

    rows: tuple[tuple[str, int], ...]
    lanes: int
    bound: int
    dsp: int


@dataclass(frozen=True, kw_only=True)
class RecurrenceCosts:
    """Of a point: the least and the expected cycles, DSP blocks, the least bytes that it moves."""

    bound: int
    dsp: int
    bytes: int
    expected: int


@dataclass(frozen=True, kw_only=True)
class RecurrenceSpace:
    """The designs of a recurrence on a device; ``datapaths`` by vector length."""

    recurrence: Recurrence
    device: Device
    budget: Budget
    datapaths: Mapping[int, RecurrenceDatapath]

    def families(self) -> list[RecurrenceFamily]:
        """All families within the budget, those with the least bound first."""
        found = [
            family
            for lanes in self.datapaths
            for count in range(3)
            for loops in combinations(self.recurrence.loops, count)
            for family in self._arrays(loops, lanes)
            if self.budget.allows(family.dsp, 0)
        ]
        return sorted(found, key=lambda each: (each.bound, each.dsp))

    def _arrays(self, loops: tuple[RecurrenceLoop, ...], lanes: int) -> Iterator[RecurrenceFamily]:
        choices = []
        for loop in loops:
            extent = self.extent(loop, lanes)
            choices.append([extent] if loop.coupled else smallest_tiles(extent))
        for pes in product(*choices):
            if min(pes, default=2) < 2:
                continue
            rows = tuple((loop.name, along) for loop, along in zip(loops, pes, strict=True))
            yield RecurrenceFamily(
                rows=rows,
                lanes=lanes,
                bound=self.least(rows, lanes),
                dsp=self.dsp(rows, lanes),
            )

    def points(self, family: RecurrenceFamily) -> Iterator[RecurrencePoint]:
        """All points of a family."""
        pes = dict(family.rows)
        rest = {
            loop.name: self.steps_along(loop, family.lanes, pes) for loop in self.recurrence.loops
        }
        serial = [loop for loop in self.recurrence.loops if rest[loop.name] > 1]
        independent = [x.name for x in serial if x.independent and not x.coupled]
        dependent = [x.name for x in serial if x.name not in independent]
        orders = [
            order
            for order in permutations(dependent)
            if self._is_nest(order) and self._is_causal(order, family)
        ]
        choices = [_halves(rest[name]) for name in independent]
        for order, counts in product(orders, product(*choices)):
            if not order and any(count > 1 for count in counts[:-1]):
                continue  # one order of independent loops is as good as another
            interleaved = zip(independent, counts, strict=True)
            used = tuple((name, count) for name, count in interleaved if count > 1)
            for feed in self._feeds(family, used):
                yield RecurrencePoint(
                    rows=family.rows,
                    order=order,
                    interleaved=used,
                    lanes=family.lanes,
                    feed=feed,
                )

    def _is_nest(self, order: tuple[str, ...]) -> bool:
        """Whether each loop is inside of those that its bounds depend on."""
        for dimension in self.recurrence.domain:
            if dimension.name in order:
                needed = index_names(dimension.minimum) | index_names(dimension.extent)
                inner = order[order.index(dimension.name) :]
                if needed & set(inner):
                    return False
        return True

    def _is_causal(self, order: tuple[str, ...], family: RecurrenceFamily) -> bool:
        """Whether no value that stays in its PE is needed before it is computed."""
        in_space = dict(family.rows)
        for each in self.datapaths[family.lanes].transports:
            names = (loop.name for loop in self.recurrence.tracked)
            distance = dict(zip(names, each.distance, strict=True))
            if any(by for name, by in distance.items() if name in in_space):
                continue  # PEs that start one after the other may make it legal
            if next((distance[name] for name in order if distance[name]), 0) < 0:
                return False
        return True

    def _feeds(
        self, family: RecurrenceFamily, interleaved: tuple[tuple[str, int], ...]
    ) -> list[Feed]:
        """How operands may reach PEs."""
        pes, feeds = dict(family.rows), [Feed.DIRECT]
        movable = [each for each in self.recurrence.operands if each.movable]
        if any(pes.keys() - each.needed_by for each in movable):
            feeds.append(Feed.FORWARDED)
        if any(reused(x.varies, interleaved) for x in movable if x.condition is None):
            feeds.append(Feed.BUFFERED)
        return feeds

    def extent(self, loop: RecurrenceLoop, lanes: int) -> int:
        """The iterations of a loop, in vectors along the vector loop."""
        return (
            ceil(loop.extent / lanes) if loop.name == self.recurrence.vector_loop else loop.extent
        )

    def steps_along(self, loop: RecurrenceLoop, lanes: int, pes: Mapping[str, int]) -> int:
        """The most iterations of a loop in a PE."""
        return ceil(self.extent(loop, lanes) / pes.get(loop.name, 1))

    def count(self, rows: tuple[tuple[str, int], ...]) -> int:
        """PEs that have iterations."""
        pes, tracked = dict(rows), {loop.name for loop in self.recurrence.tracked}
        others = prod(along for name, along in rows if name not in tracked)
        if not self.recurrence.is_counted:
            return prod(pes.values())
        held = _by_pe(self.recurrence.inside, self._along(pes), 0)
        return others * int((held.sum(axis=1) > 0).sum())

    def dsp(self, rows: tuple[tuple[str, int], ...], lanes: int) -> int:
        """DSP blocks."""
        datapath = self.datapaths[lanes]
        return ceil(self.count(rows) * datapath.dsp) + datapath.others

    # bounds

    def _along(self, pes: Mapping[str, int]) -> list[int | None]:
        """The PEs along each tracked loop, ``None`` for one in time."""
        return [pes.get(loop.name) for loop in self.recurrence.tracked]

    @cached_property
    def _known(self) -> dict[object, Any]:
        """What was computed before, by what it depends on."""
        return {}

    def least(self, rows: tuple[tuple[str, int], ...], lanes: int) -> int:
        """A bound for all points with these PEs and vectors."""
        recurrence, pes, load, store = self.recurrence, dict(rows), self._load, self._store
        others = self._others(pes, lanes)
        if not self.recurrence.is_counted:
            if any(loop.coupled for loop in recurrence.loops):
                return store + others
            return store + others * prod(
                self.steps_along(loop, lanes, pes) for loop in recurrence.tracked
            )
        key = frozenset(pes), lanes
        if key not in self._known:
            begins = recurrence.loaded(load)
            transports = self.datapaths[lanes].transports
            self._known[key] = recurrence.starts(begins, transports, key[0])
        starts, along = self._known[key], self._along(pes)
        exist = _by_pe(recurrence.inside, along, 0)
        firsts = _by_pe(np.where(recurrence.inside, starts, -NEVER), along, -NEVER)
        ends = np.where(exist.any(axis=1), firsts.min(axis=1) + exist.sum(axis=1) * others, 0)
        last = np.zeros(recurrence.inside.shape, bool)
        last.flat[recurrence.last] = True
        of_last = int(np.argmax(_by_pe(last, along, 0).any(axis=1)))
        stored = max(int(ends[of_last]), int(starts.flat[recurrence.last]) + 1) + store
        return max(int(ends.max()), stored)

    def costs(self, point: RecurrencePoint) -> RecurrenceCosts:
        """The costs of a point."""
        moved, traffic, widest = self.bytes(point)
        bound = max(self.least(point.rows, point.lanes), self._moving(moved, widest))
        if self.recurrence.box <= MOST_SCHEDULED:
            bound = expected = max(bound, self._scheduled(point))
        else:
            together = prod(count for _, count in point.interleaved)
            expected = bound * max(together, self._round_trip(point)) // together
        return RecurrenceCosts(
            bound=bound,
            dsp=self.dsp(point.rows, point.lanes),
            bytes=moved,
            expected=max(expected, self._moving(traffic, 0)),
        )

    def _round_trip(self, point: RecurrencePoint) -> int:
        """Cycles until a PE has what its next iteration needs, about."""
        pes, transports = point.pes, self.datapaths[point.lanes].transports
        hop = 1 + max((each.latency for each in transports), default=0)
        tracked = [loop for loop in self.recurrence.tracked if loop.name in pes]
        tiled = any(pes[loop.name] < loop.extent for loop in tracked)
        hops = sum(pes[loop.name] for loop in tracked) if tiled else 0
        return max(hops * hop, max((each.carried for each in transports), default=0))

    @property
    def _load(self) -> int:
        return self.device.load_latency if self.device.memory is None else 0

    @property
    def _store(self) -> int:
        """From the last iteration to the end of the run."""
        if not self.recurrence.ends_with_output or self.device.memory is not None:
            return 0
        again = self._load + self.device.store_latency if self.datapaths[1].reloads else 0
        return self.device.store_latency + again

    def _others(self, pes: Mapping[str, int], lanes: int) -> int:
        """How often a PE runs each iteration of the tracked loops that it has."""
        return prod(
            self.steps_along(loop, lanes, pes)
            for loop in self.recurrence.loops
            if loop not in self.recurrence.tracked
        )

    def _scheduled(self, point: RecurrencePoint) -> int:
        """When PEs are done that run their iterations in the order of a point.

        They run all tracked iterations for so many independent ones together, block after block; a
        block begins in a PE when it has ended the one before.
        """
        recurrence, pes, lanes = self.recurrence, point.pes, point.lanes
        transports, in_space = self.datapaths[lanes].transports, frozenset(pes)
        interleaved = dict(point.interleaved)
        together = prod(interleaved.values())
        whole = prod(
            self.steps_along(loop, lanes, pes) // interleaved.get(loop.name, 1)
            for loop in recurrence.loops
            if loop not in recurrence.tracked
        )
        key = point.rows, point.order, together, lanes
        if key not in self._known:
            along = self._along(pes)
            size = recurrence.inside.size
            places = _by_pe(
                np.arange(size).reshape(recurrence.inside.shape), along, 0, self._axes(point)
            )
            exist = _by_pe(recurrence.inside, along, 0, self._axes(point))
            runs = Runs(places=places, exist=exist, step=together)
            starts = recurrence.starts(recurrence.loaded(self._load), transports, in_space, runs)
            begins = np.full(recurrence.inside.shape, NEVER, np.int64)
            place = int(places[0][exist[0]][0]) if exist[0].any() else -1
            begins.flat[place] = 0
            after = recurrence.starts(begins, transports, in_space, runs)
            own = int(after.flat[places[0][exist[0]][-1]]) if place >= 0 else 0
            first = int(starts.flat[place]) if place >= 0 else 0
            last = recurrence.last
            inside = recurrence.inside
            self._known[key] = (
                max(int(starts[inside].max()), int(starts.flat[last]) + self._store) + together,
                first,
                own + together,
                max(int(after[inside].max()), int(after.flat[last]) + self._store) + together,
            )
        once, first, block, end = map(int, self._known[key])
        rest = self._others(pes, lanes) - whole * together
        held = int(_by_pe(recurrence.inside, self._along(pes), 0)[0].sum())
        blocks = first + whole * block + rest * held
        return max(once, blocks, first + (whole - 1) * block + end)

    def _axes(self, point: RecurrencePoint) -> list[int]:
        """The tracked loops in the order in which a PE runs them, by their places."""
        names = [loop.name for loop in self.recurrence.tracked]
        ordered = [names.index(name) for name in point.order]
        return [at for at in range(len(names)) if at not in ordered] + ordered

    def bytes(self, point: RecurrencePoint) -> tuple[int, int, int]:
        """The least bytes that are loaded and stored, those expected, and the widest access.

        Each element is loaded once at least, if it is read whatever the loops are.
        """
        recurrence, pes = self.recurrence, point.pes
        least = moved = sum(count * size for count, size in recurrence.stores)
        widest = max((size for _, size in recurrence.stores), default=0) * point.lanes
        for operand in recurrence.operands:
            widest = max(widest, operand.type.bytes * point.lanes)
            kept = reused(operand.varies, point.interleaved) if point.feed.buffers else []
            size = loads = operand.type.bytes
            for loop in recurrence.loops:
                if loop.name in operand.varies:
                    size, loads = size * loop.extent, loads * loop.extent
                elif loop.name not in kept:
                    forwarded = point.feed is not Feed.DIRECT
                    loads *= ceil(loop.extent / (pes.get(loop.name, 1) if forwarded else 1))
            if operand.distinct and not any(x.coupled for x in recurrence.loops):
                least += size
            moved += loads if operand.condition is None else size
        return least, moved, widest

    def _moving(self, moved: int, widest: int) -> int:
        """The cycle in which so many bytes have moved, the last access as ``Space._moving``."""
        memory, bandwidth = self.device.memory, self.device.memory_bytes_per_cycle
        if memory is not None:
            held = memory.write_queue * memory.channels * memory.burst_bytes
            peak = memory.peak_bytes_per_second / self.device.clock_hz
            return int(max(0, moved - held) / peak)
        if bandwidth is None or moved < widest:
            return 0
        return int((moved - widest) / bandwidth) + 1 + self.device.store_latency


def _by_pe(
    values: np.ndarray[Any, Any],
    along: Sequence[int | None],
    fill: int,
    order: Sequence[int] | None = None,
) -> Any:
    """Values of a box by PE and iteration: a row for each PE, its iterations in their order.

    ``along`` has the PEs along each axis, ``None`` for one in time, and ``order`` the axes with the
    outermost loop first.
    """
    padding = [
        (0, 0 if pes is None else -extent % pes)
        for extent, pes in zip(values.shape, along, strict=True)
    ]
    shape: list[int] = []
    for extent, pes in zip(values.shape, along, strict=True):
        shape += [extent, 1] if pes is None else [ceil(extent / pes), pes]
    padded = np.pad(values, padding, constant_values=fill).reshape(shape)
    pes_first = [2 * axis + 1 for axis in range(len(along))]
    steps = [2 * axis for axis in (range(len(along)) if order is None else order)]
    rows = prod(shape[axis] for axis in pes_first)
    return padded.transpose([*pes_first, *steps]).reshape(rows, -1)


def reused(varies: frozenset[str], interleaved: tuple[tuple[str, int], ...]) -> list[str]:
    """The innermost interleaved loops along which an operand does not vary."""
    found: list[str] = []
    for name, _ in reversed(interleaved):
        if name in varies:
            break
        found.append(name)
    return found


def _halves(extent: int) -> list[int]:
    """One, all, and a half, a quarter, ... of the iterations."""
    counts = {1, extent}
    while extent > 1:
        extent = ceil(extent / 2)
        counts.add(extent)
    return sorted(counts)


def single_pe_of(recurrence: Recurrence, lanes: int) -> RecurrencePoint:
    """The design of one PE, with the loops as they are written."""
    vectors = {recurrence.vector_loop: lanes}
    loops = [x for x in recurrence.loops if x.coupled or not x.independent]
    order = tuple(x.name for x in loops if ceil(x.extent / vectors.get(x.name, 1)) > 1)
    return RecurrencePoint(rows=(), order=order, interleaved=(), lanes=lanes, feed=Feed.DIRECT)


def directives_of_recurrence(
    recurrence: Recurrence, point: RecurrencePoint, taken: frozenset[str]
) -> Directives:
    """The directives of a point; names of new loops and Funcs avoid those that are ``taken``."""
    names, receiver = NameSupply(taken), recurrence.receiver
    loops: list[str] = []
    funcs: list[str] = []
    calls: list[Call] = []
    pes, interleaved = point.pes, dict(point.interleaved)

    def fresh(name: str, among: list[str]) -> str:
        among.append(names.fresh(name))
        return among[-1]

    space: dict[str, str] = {}  # the loop over PEs, by loop
    inner: dict[str, str] = {}  # the loop over interleaved iterations, by loop
    lane = None
    before: list[str] = []  # the loops in time, in the order in which splits leave them
    for loop in recurrence.loops:
        name, extent = loop.name, loop.extent
        here = [name]
        if name == recurrence.vector_loop and point.lanes > 1:
            lane = name
            if extent > point.lanes:
                lane = fresh(f"{name}v", loops)
                calls.append(Call(receiver, "split", (name, name, lane, point.lanes)))
            else:
                here = []
            extent = ceil(extent / point.lanes)
        if along := pes.get(name):
            space[name] = name
            if along < extent:
                space[name] = fresh(f"{name}p", loops)
                calls.append(Call(receiver, "split", (name, name, space[name], along)))
            else:
                here = []
            extent = ceil(extent / along)
        if count := interleaved.get(name):
            inner[name] = name
            if count < extent:
                inner[name] = fresh(f"{name}t", loops)
                calls.append(Call(receiver, "split", (name, name, inner[name], count)))
                here.append(inner[name])
        before += here
    blocks = [x for x in before if x not in point.order and x not in inner.values()]
    nest = [*blocks, *point.order, *(inner[name] for name, _ in point.interleaved)]
    moved = lane is not None and recurrence.loops[-1].name != recurrence.vector_loop
    if nest != before or moved:
        placed = [*_around(recurrence, nest, space), *([lane] if lane else [])]
        calls.append(Call(receiver, "reorder", tuple(reversed(placed))))
    if space:
        calls.append(Call(receiver, "space_time_transform", tuple(space.values())))
    if lane is not None:
        vectors = [x.name for x in recurrence.operands if recurrence.vector_loop in x.varies]
        calls.append(Call(receiver, "vload", tuple(vectors)))
        calls += [Call(receiver, "vstore", (output,)) for output in recurrence.outputs]
    loaders: dict[str, str] = {}
    for operand in recurrence.operands:
        if not operand.movable or point.feed is Feed.DIRECT:
            continue
        removed = reused(operand.varies, point.interleaved)
        buffered = point.feed is Feed.BUFFERED and operand.condition is None and bool(removed)
        passed = [loop for name, loop in space.items() if name not in operand.needed_by]
        if not buffered and not passed:
            continue
        chain = [loaders.setdefault(operand.name, fresh(f"{operand.name}_loader", funcs))]
        if buffered:
            chain.append(fresh(f"{operand.name}_feeder", funcs))
        calls.append(Call(receiver, "isolate_producer_chain", (operand.name, *chain)))
        calls += [Call(receiver, "forward", (chain[-1], loop)) for loop in passed]
        if buffered:
            calls.append(Call(chain[0], "remove", tuple(inner[name] for name in removed)))
            calls.append(Call(chain[-1], "buffer", (chain[0], nest[-len(removed) - 1])))
    return Directives(
        loops=tuple(loops),
        funcs=tuple(funcs),
        on_host=(),
        loaders=loaders,
        calls=tuple(calls),
    )


def _around(recurrence: Recurrence, nest: list[str], space: Mapping[str, str]) -> list[str]:
    """A nest with the loops in space, each outside of the loops whose bounds depend on it."""
    placed = list(nest)
    for name, loop in reversed([*space.items()]):
        inner = {
            dimension.name
            for dimension in recurrence.domain
            if name in index_names(dimension.minimum) | index_names(dimension.extent)
        }
        at = next((at for at, each in enumerate(placed) if each in inner), len(placed))
        placed.insert(at, loop)
    return placed


def recurrence_in_words(recurrence: Recurrence) -> str:
    """The space of a recurrence: what is in it, and what is left out."""
    names = ", ".join(loop.name for loop in recurrence.loops)
    whole = ", ".join(loop.name for loop in recurrence.coupled)
    free = [x.name for x in recurrence.loops if x.independent and not x.coupled]
    parts = [
        f"none, one or two of {names} as PEs, the fewest for each number of steps"
        + (f", of {whole} one for each iteration" if whole else ""),
        "the loops with dependences in time in each order",
    ]
    if free:
        parts.append(
            f"of each of {', '.join(free)} one, all, a half, a quarter, ... of a PE's iterations "
            "interleaved"
        )
    if recurrence.vector_loop is not None:
        parts.append(f"vectors of {', '.join(map(str, LANES))} along {recurrence.vector_loop}")
    if any(operand.movable for operand in recurrence.operands):
        parts.append(
            "operands loaded by each PE, forwarded from boundary PEs, or buffered where "
            "interleaved iterations use them again, all in the same way"
        )
    missing = "skewed space-time maps, tiles of dependent loops in a PE, gathered results, vectors "
    missing += "along other loops, depths of FIFOs"
    return f"{'; '.join(parts)}. Not in it: {missing}."
