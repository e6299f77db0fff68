"""Buffer sizing: latencies and capacities of the branches of a routed design, and its rate.

Given a netlist and the paths of its branches, each branch gets room for the tokens that wait in it
when every part fires in every cycle.  Refused are recurrence cycles that never start, and channels
that would have to hold more tokens than the fabric allows.

A part first fires after the latency of the longest path to it.  Of two paths from one part to
another, the shorter one has to hold what arrives early: the difference of the first firings, plus
one.  A load unit, or any other part without predecessors, starts as late as possible.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from math import prod

import numpy as np

from t2s.backends.cgra_tia.fabric import CgraFabric
from t2s.backends.cgra_tia.netlist import (
    Branch,
    Endpoint,
    Net,
    NetCell,
    Netlist,
    NetSink,
    PlacedDesign,
    StreamUnit,
    UnitKind,
)
from t2s.backends.cgra_tia.place.recurrence_cycles import (
    SAME_CELL,
    Dependence,
    FiringSites,
    RecurrenceCycle,
    firings_per_token,
    offsets,
    slowest_cycle,
)
from t2s.backends.cgra_tia.place.route import Path
from t2s.backends.cgra_tia.program import ON_FMA, Instruction, prologue_of
from t2s.core.errors import UnsupportedError, UserError
from t2s.core.strong_components import strong_components

_SEEN = Fraction(1, 100)
"""The share of a run that a cycle has to cost to limit the rate of a design."""

_PASSES = 4
"""How often all parts are moved to later times: those before them make room."""


class RateCause(Enum):
    """The kind of limit on the rate of a design."""

    SPACE = "channels too shallow"
    TOKENS = "tokens that circulate"
    TURNS = "operations share cells"
    INSTRUCTIONS = "a cell that fires several instructions for a value"


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """Why a design does not fire in every cycle.

    ``parts`` are those of a recurrence cycle in order, and ``nets`` connect each to the next one;
    without ``nets`` the limit is within each of the parts.  Each part fires in ``tokens`` of
    ``cycles`` cycles.
    """

    parts: tuple[str, ...]
    nets: tuple[str, ...]
    tokens: int
    cycles: int
    cause: RateCause

    @property
    def rate(self) -> Fraction:
        """Firings per cycle."""
        return Fraction(self.tokens, self.cycles)

    @property
    def text(self) -> str:
        """The rate, and what limits it."""
        often = f"{self.tokens} firings in {self.cycles} cycles"
        match self.cause:
            case RateCause.TURNS:
                return f"a firing in every {self.cycles} cycles: {self.cause.value}"
            case RateCause.INSTRUCTIONS:
                every = f"a firing in every {self.cycles} cycles" if self.tokens == 1 else often
                return f"{every}: {self.parts[0]} takes {self.cycles} instructions for " + (
                    "a value" if self.tokens == 1 else f"{self.tokens} values"
                )
        return f"{often}: {self.cause.value}"


def rate_limit(design: PlacedDesign) -> RateLimit | None:
    """The strongest limit on the rate; ``None`` if the design fires in every cycle.

    Cycles with an unknown number of tokens are ignored.
    """
    firers = FiringSites(netlist=design.netlist)
    waits = _waits(design, firers)
    limits = (channel_limit(design, firers, waits), _instruction_limit(design, waits))
    known = [limit for limit in limits if limit is not None]
    return min(known, key=lambda limit: limit.rate, default=None)


def _instruction_limit(design: PlacedDesign, waits: Sequence[BranchWait]) -> RateLimit | None:
    """The cell that needs most instructions per token, if it has enough tokens to matter."""
    traffic: dict[str, int | None] = {}
    for wait in waits:
        known, part = wait.traffic, wait.sink.end.part
        before = traffic.get(part, 0)
        traffic[part] = None if known is None or before is None else max(known, before)
    whole = max((wait.traffic or 0 for wait in waits), default=0)
    limit: RateLimit | None = None
    for cell in design.netlist.cells:
        firings = None if len(cell.turns) > 1 else firings_per_token(cell.program)
        if firings is None or firings <= (1 if limit is None else 1 / limit.rate):
            continue
        tokens = traffic.get(cell.name, 0)
        if tokens is None or _matters(tokens, firings, whole):
            limit = RateLimit(
                parts=(cell.name,),
                nets=(),
                tokens=firings.denominator,
                cycles=firings.numerator,
                cause=RateCause.INSTRUCTIONS,
            )
    return limit


def channel_limit(
    design: PlacedDesign, firers: FiringSites, waits: Sequence[BranchWait]
) -> RateLimit | None:
    """The limit on the rate that comes from channels and shared cells."""
    capacities = [
        branch.capacity for net in design.netlist.nets for branch in design.branches[net.name]
    ]
    dependences = _forward(waits)
    dependences += _backward(
        waits, [wait.pipeline + room for wait, room in zip(waits, capacities, strict=True)]
    )
    dependences += firers.turns
    whole = max((wait.traffic or 0 for wait in waits), default=0)
    period = Fraction(firers.period)
    while (cycle := slowest_cycle(len(firers.names), dependences, period)) is not None:
        rare = _rare(cycle, waits)
        if rare is None or cycle.period is None or _matters(rare, cycle.period, whole):
            return _as_limit(cycle, waits, firers.names)
        dependences = [  # all others with as few tokens cost less
            item
            for item in dependences
            if item.branch == SAME_CELL or waits[item.branch].blocks(rare)
        ]
    return _shared_limit(design.netlist, firers.period)


def _shared_limit(netlist: Netlist, turns: int) -> RateLimit | None:
    """The limit that comes from the turns of shared cells, if there are any."""
    parts = tuple(cell.name for cell in netlist.cells if len(cell.turns) == turns)
    if not parts:
        return None
    return RateLimit(parts=parts[:1], nets=(), tokens=1, cycles=turns, cause=RateCause.TURNS)


def _rare(cycle: RecurrenceCycle, waits: Sequence[BranchWait]) -> int | None:
    """The fewest tokens that pass a branch of a recurrence cycle in a run; ``None`` if unknown."""
    members = (member for member in cycle.members if member.branch != SAME_CELL)
    traffic = (waits[member.branch].traffic for member in members)
    return min((count for count in traffic if count is not None), default=None)


def _matters(tokens: int, period: Fraction, whole: int) -> bool:
    """Whether a cycle through which so many tokens pass costs a noticeable share of the run."""
    return tokens * (period - 1) > whole * _SEEN


def _as_limit(
    cycle: RecurrenceCycle, waits: Sequence[BranchWait], names: Sequence[str]
) -> RateLimit:
    return RateLimit(
        parts=tuple(dict.fromkeys(names[member.source] for member in cycle.members)),
        nets=tuple(
            waits[member.branch].net.name for member in cycle.members if member.branch != SAME_CELL
        ),
        tokens=cycle.tokens,
        cycles=cycle.latency,
        cause=RateCause.SPACE
        if any(member.is_space for member in cycle.members)
        else RateCause.TOKENS,
    )


def _waits(design: PlacedDesign, firers: FiringSites) -> list[BranchWait]:
    latencies = [
        branch.latency for net in design.netlist.nets for branch in design.branches[net.name]
    ]
    return branch_waits(design.netlist, firers, design.fabric, latencies)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedBranches:
    """All branches with their latencies, and how many tokens wait in each, where that is known."""

    firers: FiringSites
    waits: Sequence[BranchWait]
    rooms: Sequence[int]


def timed_branches(
    netlist: Netlist, fabric: CgraFabric, paths: Sequence[Sequence[Path]], *, balanced: bool
) -> TimedBranches:
    """The branches of the paths, which are in the order of nets and sinks.

    Raises ``UserError`` for cycles that never start.
    """
    firers = FiringSites(netlist=netlist)
    waits = _timed(firers, fabric, paths, balanced)
    return TimedBranches(firers=firers, waits=waits, rooms=_rooms(firers, waits, fabric))


def with_slack(
    timed: TimedBranches, fabric: CgraFabric, paths: Sequence[Sequence[Path]], *, balanced: bool
) -> dict[str, tuple[Branch, ...]]:
    """The branches of all nets by name; raises ``UserError`` if one cannot hold its tokens."""
    netlist, waits, rooms = timed.firers.netlist, timed.waits, timed.rooms
    of_nets: dict[str, list[Branch]] = {net.name: [] for net in netlist.nets}
    capacities: list[int] = []
    for wait, room in zip(waits, rooms, strict=True):
        most = wait.latency + 1 + fabric.most_depth - wait.pipeline
        if wait.asked > most:
            raise _too_shallow(wait, most, fabric)
        needed = max(room - wait.pipeline, wait.latency - wait.pipeline + 1, wait.sink.tokens)
        capacities.append(min(needed, most))
    if balanced:
        groups = [(wait.net.group, wait.pipeline) for wait in waits]
        deepest: dict[tuple[str, int], int] = {}
        for group, capacity in zip(groups, capacities, strict=True):
            deepest[group] = max(deepest.get(group, 0), capacity)
        capacities = [deepest[group] for group in groups]
    ways = (path for net_paths in paths for path in net_paths)
    for wait, path, capacity in zip(waits, ways, capacities, strict=True):
        of_nets[wait.net.name].append(
            Branch(path=path, latency=wait.latency - wait.pipeline, capacity=capacity)
        )
    return {name: tuple(branches) for name, branches in of_nets.items()}


def shortages(timed: TimedBranches, fabric: CgraFabric) -> dict[tuple[str, int], int]:
    """The branches (net and number of the sink) that cannot hold the tokens that wait in them.

    The values are how many more channels of this fabric in series would be needed.
    """
    netlist, waits, rooms = timed.firers.netlist, timed.waits, timed.rooms
    missing = {}
    numbers = (number for net in netlist.nets for number in range(len(net.sinks)))
    for wait, room, number in zip(waits, rooms, numbers, strict=True):
        depth = fabric.most_depth + 1
        excess = room - wait.latency - depth
        if wait.asked > wait.latency - wait.pipeline + depth:
            missing[wait.net.name, number] = -(-(wait.asked - 1) // depth) - 1
        elif excess > 0:
            missing[wait.net.name, number] = -(-excess // depth)
    return missing


def _timed(
    firers: FiringSites, fabric: CgraFabric, paths: Sequence[Sequence[Path]], balanced: bool
) -> list[BranchWait]:
    """Every branch with its latency: that of its own path, or of the longest in its group."""
    netlist = firers.netlist
    hops = [len(path) - 1 for net_paths in paths for path in net_paths]
    if balanced:
        groups = [net.group for net in netlist.nets for _ in net.sinks]
        longest: dict[str, int] = {}
        for group, count in zip(groups, hops, strict=True):
            longest[group] = max(longest.get(group, 0), count)
        hops = [longest[group] for group in groups]
    return branch_waits(netlist, firers, fabric, [1 + count for count in hops])


def _forward(waits: Sequence[BranchWait]) -> list[Dependence]:
    """Sinks wait for tokens."""
    return [
        Dependence(
            source=wait.source,
            sink=wait.target,
            latency=wait.latency,
            tokens=wait.tokens,
            branch=number,
        )
        for number, wait in enumerate(waits)
        if wait.known
    ]


def _backward(waits: Sequence[BranchWait], rooms: Sequence[int]) -> list[Dependence]:
    """Sources wait for room, which appears in the cycle after a take.

    Branches with room for all tokens of the run are left out.
    """
    return [
        Dependence(
            source=wait.target,
            sink=wait.source,
            latency=1,
            tokens=room // wait.burst - wait.tokens,
            branch=number,
            is_space=True,
        )
        for number, (wait, room) in enumerate(zip(waits, rooms, strict=True))
        if wait.known and wait.blocks(room)
    ]


def _rooms(firers: FiringSites, waits: Sequence[BranchWait], fabric: CgraFabric) -> list[int]:
    """How many tokens wait in each branch, including its pipeline.

    As few as possible; if that is more than a channel holds, others hold more instead.
    """
    count = len(firers.names)
    forward = _forward(waits)
    needed = [*forward, *firers.turns]
    fastest = Fraction(firers.period)
    cycle = slowest_cycle(count, needed, fastest)
    period = fastest if cycle is None else cycle.period
    assert period is not None  # branches that close a cycle have tokens from the start
    most = [wait.latency + 1 + fabric.most_depth for wait in waits]
    backward = _backward(waits, most)
    times = offsets(count, [*needed, *backward], period)
    if times is None:
        times = offsets(count, needed, period)
    assert times is not None
    return _needed(waits, _moved(forward, [*backward, *firers.turns], times, period), period)


def _moved(
    forward: Sequence[Dependence],
    others: Sequence[Dependence],
    times: Sequence[int],
    period: Fraction,
) -> list[int]:
    """First firings for which fewer tokens wait.

    If a part fires later, fewer tokens wait behind it and more before it.  First every part but the
    last ones is delayed as far as possible, so that parts without predecessors start late.  Then
    parts with more inputs than outputs are moved back as far as possible.  Throughout, channels are
    not filled beyond their capacity, and the turns of a cell stay in order.
    """
    top, bottom = period.numerator, period.denominator
    moved = list(times)
    after: list[list[tuple[int, int]]] = [[] for _ in times]
    before: list[list[tuple[int, int]]] = [[] for _ in times]
    outputs, inputs = [0] * len(moved), [0] * len(moved)
    for number, item in enumerate((*forward, *others)):
        if item.source != item.sink:
            length = item.latency * bottom - item.tokens * top
            after[item.source].append((item.sink, length))
            before[item.sink].append((item.source, length))
            outputs[item.source] += number < len(forward)
            inputs[item.sink] += number < len(forward)
    order = sorted(range(len(moved)), key=lambda part: (-times[part], part))
    for _ in range(_PASSES):
        for part in order:
            if outputs[part]:
                latest = min(moved[sink] - length for sink, length in after[part])
                moved[part] = max(moved[part], latest)
    for part in reversed(order):
        if inputs[part] > outputs[part] > 0:
            earliest = max(moved[source] + length for source, length in before[part])
            moved[part] = min(moved[part], earliest)
    return moved


def _needed(waits: Sequence[BranchWait], times: Sequence[int], period: Fraction) -> list[int]:
    """How many tokens each branch holds for these first firings, including its pipeline."""
    top, bottom = period.numerator, period.denominator
    held = [
        (-(-(times[wait.target] - times[wait.source] + bottom) // top) + wait.tokens) * wait.burst
        if wait.known
        else 0
        for wait in waits
    ]
    return [
        room if wait.traffic is None else min(room, wait.traffic)
        for wait, room in zip(waits, held, strict=True)
    ]


def _too_shallow(wait: BranchWait, most: int, fabric: CgraFabric) -> UnsupportedError:
    name = f"{wait.net.group!r} to {wait.sink.end.part!r}"
    return UnsupportedError(
        f"the channel {name} cannot hold its tokens on the fabric {fabric.name!r}",
        location=wait.net.location,
        expected=f"at most {most} tokens, {fabric.most_depth} beyond those in flight",
        given=f"{wait.asked} that have to wait in it at once",
        hint="use a smaller tile, or a fabric with most_depth="
        f"{fabric.most_depth + wait.asked - most}",
    )


# Branches as their sinks see them, and which of them close cycles.
#
# The result are ``BranchWait`` objects, in the order of nets and sinks.  Refused are cycles that
# never start.
#
# A channel that closes a cycle (a virtual buffer, a ring) leads to an input that not every
# instruction needs, or nothing in the cycle could start.  The number of circulating tokens is one
# less than the required capacity; if that is one, the number is unknown.


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchWait:
    """A branch as its sink sees it: firing sites by number, latency with the source's pipeline.

    ``in_cycle`` says that it is in a cycle; ``closes`` that it closes the cycle, with ``tokens``
    circulating through it.  ``traffic`` is the most tokens in the whole run; ``None`` if unknown.
    ``burst`` is how many tokens are sent and taken in one firing.
    """

    net: Net
    sink: NetSink
    source: int
    target: int
    pipeline: int
    latency: int
    in_cycle: bool = False
    closes: bool = False
    tokens: int = 0
    traffic: int | None = None
    burst: int = 1

    @property
    def known(self) -> bool:
        """Whether it bounds the rate.

        A circulating branch does if its tokens are known; any other one does unless it has room for
        all tokens of the run.
        """
        if self.in_cycle:
            return not self.closes or self.tokens > 0
        return self.blocks(self.latency + 1)

    def blocks(self, room: int) -> bool:
        """Whether its source may have to wait if it has this capacity."""
        return self.traffic is None or self.traffic > room

    @property
    def asked(self) -> int:
        """The tokens that it has to hold; in a cycle, the closing branch holds them for all."""
        return self.sink.tokens if self.closes or not self.in_cycle else 1


def branch_waits(
    netlist: Netlist, firers: FiringSites, fabric: CgraFabric, latencies: Sequence[int]
) -> list[BranchWait]:
    """Every branch, in the order of nets and sinks; the latencies exclude pipelines."""
    return _closed(firers, list(_waits_with_latencies(netlist, firers, fabric, latencies)), fabric)


def _waits_with_latencies(
    netlist: Netlist, firers: FiringSites, fabric: CgraFabric, latencies: Sequence[int]
) -> Iterator[BranchWait]:
    numbers = iter(zip(latencies, traffic_of(netlist), strict=True))
    for net in netlist.nets:
        source = firers.source(net.source)
        pipeline = _pipeline(firers.instructions(source), net.source.port, fabric)
        for sink in net.sinks:
            latency, traffic = next(numbers)
            yield BranchWait(
                net=net,
                sink=sink,
                source=source,
                target=firers.sink(sink.end),
                pipeline=pipeline,
                latency=latency + pipeline,
                traffic=traffic,
                burst=firers.burst(sink.end),
            )


def _pipeline(instructions: Sequence[Instruction] | None, port: int, fabric: CgraFabric) -> int:
    """The pipeline cycles of an output: those of the FMA, if it sends FMA results."""
    slow = any(item.opcode in ON_FMA and port in item.outputs for item in instructions or ())
    return fabric.fma_latency if slow else 0


def _closed(
    firers: FiringSites, waits: Sequence[BranchWait], fabric: CgraFabric
) -> list[BranchWait]:
    """The branches, with those in cycles and those that close cycles marked.

    Closing branches lead to inputs that not every instruction needs: first those with a known
    number of circulating tokens, and if cycles remain, all others.  Raises ``UserError`` for a
    cycle without such an input.
    """
    optional = [_is_optional(firers, wait) for wait in waits]
    _check_starts(firers, [w for w, free in zip(waits, optional, strict=True) if not free])
    component = _components(firers, waits)
    closed = [
        replace(wait, in_cycle=component[wait.source] == component[wait.target]) for wait in waits
    ]
    for unknown in (False, True):
        component = _components(firers, [wait for wait in closed if not wait.closes])
        for number, wait in enumerate(closed):
            inside = component[wait.source] == component[wait.target] and not wait.closes
            if inside and optional[number] and (unknown or wait.sink.tokens > 1):
                closed[number] = replace(wait, closes=True, tokens=wait.sink.tokens - 1)
    return _spread(closed, fabric)


def _spread(waits: Sequence[BranchWait], fabric: CgraFabric) -> list[BranchWait]:
    """The same, where several channels with relays between them hold the circulating tokens.

    A relay has one input, which has to hold all that a channel can, and its output closes a cycle.
    """
    spread = list(waits)
    inputs: dict[int, list[int]] = {}
    for number, wait in enumerate(spread):
        inputs.setdefault(wait.target, []).append(number)
    closing = [wait.source for wait in spread if wait.closes]
    while closing:
        into = inputs.get(closing.pop(), [])
        if len(into) == 1:
            wait = spread[into[0]]
            if not wait.closes and wait.in_cycle and wait.sink.tokens == fabric.most_depth + 2:
                spread[into[0]] = replace(wait, closes=True, tokens=wait.sink.tokens - 1)
                closing.append(wait.source)
    return spread


def _check_starts(firers: FiringSites, needed: Sequence[BranchWait]) -> None:
    """Raise ``UserError`` for a cycle in which every input is needed before anything fires."""
    netlist = firers.netlist
    component = _components(firers, needed)
    for wait in needed:
        if component[wait.source] == component[wait.target]:
            members = [
                name
                for number, name in enumerate(firers.names)
                if component[number] == component[wait.source]
            ]
            more = f" and {len(members) - 6} others" if len(members) > 6 else ""
            raise UserError(
                f"a cycle of parts of {netlist.name!r} never starts",
                location=wait.net.location or netlist.location,
                expected="a part that can fire before a token has gone around the cycle",
                given=f"{', '.join(members[:6])}{more} wait for one another",
            )


def _is_optional(firers: FiringSites, wait: BranchWait) -> bool:
    """Whether some instruction of the sink fires without this input."""
    instructions = firers.instructions(wait.target) or ()
    port = wait.sink.end.port
    return any(all(check.channel != port for check in i.trigger.checks) for i in instructions)


def _components(firers: FiringSites, waits: Sequence[BranchWait]) -> list[int]:
    """A component number for each firing site; sites in a common cycle have the same one.

    Later turns of a cell depend on the earlier ones of the round.
    """
    turns = ((turn.source, turn.sink) for turn in firers.turns if turn.source < turn.sink)
    arcs = (*((wait.source, wait.target) for wait in waits), *turns)
    return strong_components(len(firers.names), arcs)


# The most tokens that pass each branch in a whole run, in the order of nets and sinks; ``None`` for
# no bound.  An operand that is loaded once and stays in a register is one token: it does not affect
# the rate of a design, however long its path is.

_MOST_COUNTED = 1 << 20
"""Steps of loops that are counted one by one; of larger ones the box around them counts."""


def traffic_of(netlist: Netlist) -> list[int | None]:
    """The most tokens of each branch; see above."""
    bound: dict[Endpoint, int] = {}
    """By output, and by input."""
    sources = {sink.end: net.source for net in netlist.nets for sink in net.sinks}
    for unit in netlist.units:
        steps = unit_steps(unit)
        if steps is not None:
            bound[Endpoint(part=unit.name)] = steps
    programs = {cell.name: prologue_of(cell.program.instructions) for cell in netlist.cells}
    once = {
        Endpoint(part=cell.name, port=port): count
        for cell in netlist.cells
        for port, count in _in_prologue(*programs[cell.name]).items()
    }
    undecided = list(netlist.cells)
    while undecided:
        later = [
            cell for cell in undecided if not _bounded(cell, programs[cell.name], sources, bound)
        ]
        if len(later) == len(undecided):
            break
        undecided = later
    bounds = [
        [bound.get(net.source), once.get(sink.end)] for net in netlist.nets for sink in net.sinks
    ]
    return [min((one for one in pair if one is not None), default=None) for pair in bounds]


def unit_steps(unit: StreamUnit) -> int | None:
    """The most steps of the nest of a unit; ``None`` for a unit without a nest."""
    if unit.kind in (UnitKind.LOAD_AT, UnitKind.STORE_AT):
        return None
    extents = [loop.extent for loop in unit.loops]
    if not any(any(extent.coefficients) for extent in extents):
        return prod(max(0, extent.constant) for extent in extents)
    most: list[int] = []
    for extent in extents:
        terms = zip(extent.coefficients, most, strict=False)
        top = sum(max(0, factor * (outer - 1)) for factor, outer in terms)
        most.append(max(0, extent.constant + top))
    if prod(most) > _MOST_COUNTED:
        return prod(most)
    steps = np.indices(most)
    inside = np.ones(most, np.bool_)
    for extent, index in zip(extents, steps, strict=True):
        total = np.full(most, extent.constant, np.int64)
        for factor, outer in zip(extent.coefficients, steps, strict=False):
            total += factor * outer
        inside &= index < total
    return int(inside.sum())


_Instructions = Sequence[Instruction]


def _in_prologue(prologue: _Instructions, steady: _Instructions) -> dict[int, int]:
    """The inputs that only the prologue takes from, and how many tokens."""
    later = {port for instruction in steady for port in instruction.takes}
    takes: dict[int, int] = {}
    for instruction in prologue if steady else ():
        for port in instruction.takes:
            if port not in later:
                takes[port] = takes.get(port, 0) + 1
    return takes


def _bounded(
    cell: NetCell,
    program: tuple[_Instructions, _Instructions],
    sources: Mapping[Endpoint, Endpoint],
    bound: dict[Endpoint, int],
) -> bool:
    """Bound the tokens that leave a cell by an input that all of its instructions take from."""
    prologue, steady = program
    always = sorted(set.intersection(*(set(i.takes) for i in steady))) if steady else []
    ends = [sources.get(Endpoint(part=cell.name, port=port)) for port in always]
    known = [bound[end] for end in ends if end is not None and end in bound]
    if not known:
        return False
    for port in {port for instruction in (*prologue, *steady) for port in instruction.outputs}:
        before = sum(port in instruction.outputs for instruction in prologue)
        bound[Endpoint(part=cell.name, port=port)] = min(known) + before
    return True
