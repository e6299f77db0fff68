"""Latencies and capacities of the branches of a routed design, and the rate that they allow.

In go a netlist and the paths of its branches; out come branches that hold as many tokens as wait
in them when every part fires in every cycle.  Refused are circles that never start, and channels
that would have to hold more tokens than the fabric has room for.

A part fires its first time when the longest way to it has passed.  Of two ways from one part to
another the shorter one has to hold what arrives early: the difference of the first firings, plus
one.  A load unit, or another part that nobody waits for, starts as late as it can.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from t2s.backends.cgra_tia.fabric import CgraFabric
from t2s.backends.cgra_tia.netlist import Branch, Netlist, PlacedDesign
from t2s.backends.cgra_tia.place.circles import Dependence, TokenCircle, offsets, slowest_circle
from t2s.backends.cgra_tia.place.firings import firings_per_token
from t2s.backends.cgra_tia.place.route import Path
from t2s.backends.cgra_tia.place.turns import SAME_CELL, Firers
from t2s.backends.cgra_tia.place.waits import BranchWait, branch_waits
from t2s.core.errors import UnsupportedError

_SEEN = Fraction(1, 100)
"""The share of a run that a circle has to cost to limit the rate of a design."""

_PASSES = 4
"""How often all parts are moved to later times: those before them make room."""


class RateCause(Enum):
    """What kind of thing limits the rate of a design."""

    SPACE = "channels too shallow"
    TOKENS = "tokens that circulate"
    TURNS = "operations share cells"
    INSTRUCTIONS = "a cell that fires several instructions for a value"


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """Why a design does not fire in every cycle.

    ``parts`` are those of a circle in order, ``nets`` what leads from one to the next one; without
    ``nets`` the limit is within each of the parts.  Of ``cycles`` each part fires in ``tokens``.
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
        """How often, and why."""
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
    """What keeps a design most from a firing in every cycle; ``None`` if nothing does.

    Not seen are circles of unknown tokens.
    """
    firers = Firers(netlist=design.netlist)
    waits = _waits(design, firers)
    limits = (channel_limit(design, firers, waits), _instruction_limit(design, waits))
    return min((limit for limit in limits if limit is not None), key=_rate_of, default=None)


def _rate_of(limit: RateLimit) -> Fraction:
    return limit.rate


def _instruction_limit(design: PlacedDesign, waits: Sequence[BranchWait]) -> RateLimit | None:
    """The cell that needs most instructions for a token, if it has tokens enough to matter."""
    traffic: dict[str, int | None] = {}
    for wait in waits:
        known, part = wait.traffic, wait.sink.end.part
        before = traffic.get(part, 0)
        traffic[part] = None if known is None or before is None else max(known, before)
    whole = max((wait.traffic or 0 for wait in waits), default=0)
    found: RateLimit | None = None
    for cell in design.netlist.cells:
        firings = None if len(cell.turns) > 1 else firings_per_token(cell.program)
        if firings is None or firings <= (1 if found is None else 1 / found.rate):
            continue
        tokens = traffic.get(cell.name, 0)
        if tokens is None or _matters(tokens, firings, whole):
            found = RateLimit(
                parts=(cell.name,),
                nets=(),
                tokens=firings.denominator,
                cycles=firings.numerator,
                cause=RateCause.INSTRUCTIONS,
            )
    return found


def channel_limit(
    design: PlacedDesign, firers: Firers, waits: Sequence[BranchWait]
) -> RateLimit | None:
    """What keeps a design from a firing in every cycle, as far as channels and turns do."""
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
    while (circle := slowest_circle(len(firers.names), dependences, period)) is not None:
        rare = _rare(circle, waits)
        if rare is None or circle.period is None or _matters(rare, circle.period, whole):
            return _as_limit(circle, waits, firers.names)
        dependences = [  # all others that are as rare cost less
            item
            for item in dependences
            if item.branch == SAME_CELL or waits[item.branch].blocks(rare)
        ]
    return _shared_limit(design.netlist, firers.period)


def _shared_limit(netlist: Netlist, turns: int) -> RateLimit | None:
    """The turns of cells that operations share, if there are any."""
    parts = tuple(cell.name for cell in netlist.cells if len(cell.turns) == turns)
    if not parts:
        return None
    return RateLimit(parts=parts[:1], nets=(), tokens=1, cycles=turns, cause=RateCause.TURNS)


def _rare(circle: TokenCircle, waits: Sequence[BranchWait]) -> int | None:
    """The fewest tokens of a branch of a circle in a whole run; ``None`` if nobody knows."""
    members = (member for member in circle.members if member.branch != SAME_CELL)
    traffic = (waits[member.branch].traffic for member in members)
    return min((count for count in traffic if count is not None), default=None)


def _matters(tokens: int, period: Fraction, whole: int) -> bool:
    """Whether a circle that so many tokens go round costs a share of the run that one can see."""
    return tokens * (period - 1) > whole * _SEEN


def _as_limit(circle: TokenCircle, waits: Sequence[BranchWait], names: Sequence[str]) -> RateLimit:
    return RateLimit(
        parts=tuple(dict.fromkeys(names[member.source] for member in circle.members)),
        nets=tuple(
            waits[member.branch].net.name for member in circle.members if member.branch != SAME_CELL
        ),
        tokens=circle.tokens,
        cycles=circle.latency,
        cause=RateCause.SPACE
        if any(member.is_space for member in circle.members)
        else RateCause.TOKENS,
    )


def _waits(design: PlacedDesign, firers: Firers) -> list[BranchWait]:
    latencies = [
        branch.latency for net in design.netlist.nets for branch in design.branches[net.name]
    ]
    return branch_waits(design.netlist, firers, design.fabric, latencies)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedBranches:
    """All branches with their latencies, and how many tokens wait in each, as far as that goes."""

    firers: Firers
    waits: Sequence[BranchWait]
    rooms: Sequence[int]


def timed_branches(
    netlist: Netlist, fabric: CgraFabric, paths: Sequence[Sequence[Path]], *, balanced: bool
) -> TimedBranches:
    """The branches for their paths in the order of nets and sinks.

    Raises ``UserError`` for circles that never start.
    """
    firers = Firers(netlist=netlist)
    waits = _timed(firers, fabric, paths, balanced)
    return TimedBranches(firers=firers, waits=waits, rooms=_rooms(firers, waits, fabric))


def with_slack(
    timed: TimedBranches, fabric: CgraFabric, paths: Sequence[Sequence[Path]], *, balanced: bool
) -> dict[str, tuple[Branch, ...]]:
    """The branches of all nets by name; raises ``UserError`` if one cannot hold its tokens."""
    netlist, waits, rooms = timed.firers.netlist, timed.waits, timed.rooms
    found: dict[str, list[Branch]] = {net.name: [] for net in netlist.nets}
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
        found[wait.net.name].append(
            Branch(path=path, latency=wait.latency - wait.pipeline, capacity=capacity)
        )
    return {name: tuple(branches) for name, branches in found.items()}


def shortages(timed: TimedBranches, fabric: CgraFabric) -> dict[tuple[str, int], int]:
    """The branches, by net and number of the sink, that cannot hold what waits in them.

    And how many more channels of this fabric it would take, one after the other.
    """
    netlist, waits, rooms = timed.firers.netlist, timed.waits, timed.rooms
    found = {}
    numbers = (number for net in netlist.nets for number in range(len(net.sinks)))
    for wait, room, number in zip(waits, rooms, numbers, strict=True):
        depth = fabric.most_depth + 1
        excess = room - wait.latency - depth
        if wait.asked > wait.latency - wait.pipeline + depth:
            found[wait.net.name, number] = -(-(wait.asked - 1) // depth) - 1
        elif excess > 0:
            found[wait.net.name, number] = -(-excess // depth)
    return found


def _timed(
    firers: Firers, fabric: CgraFabric, paths: Sequence[Sequence[Path]], balanced: bool
) -> list[BranchWait]:
    """Every branch with its latency: that of its own way, or of the longest of its group."""
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
    """Sources wait for room, which is there in the cycle after a take.

    Not if there is room for all that they ever send.
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


def _rooms(firers: Firers, waits: Sequence[BranchWait], fabric: CgraFabric) -> list[int]:
    """How many tokens wait in each branch, its pipeline included, with the least of the fabric.

    As few as possible, but where that is more than a channel holds, more in others.
    """
    count = len(firers.names)
    forward = _forward(waits)
    needed = [*forward, *firers.turns]
    fastest = Fraction(firers.period)
    circle = slowest_circle(count, needed, fastest)
    period = fastest if circle is None else circle.period
    assert period is not None  # what closes a circle has tokens
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
    """First firings at which fewer tokens wait.

    To fire later makes the tokens that wait behind a part fewer and those before it more.  At
    first every part but the last ones fires as late as it can, so that what nobody waits for
    starts late.  Then those with more inputs than outputs go back as far as they can.  What waits
    before or behind a part stays below what the channels hold, and turns of a cell stay in order.
    """
    top, bottom = period.numerator, period.denominator
    found = list(times)
    after: list[list[tuple[int, int]]] = [[] for _ in times]
    before: list[list[tuple[int, int]]] = [[] for _ in times]
    outputs, inputs = [0] * len(found), [0] * len(found)
    for number, item in enumerate((*forward, *others)):
        if item.source != item.sink:
            length = item.latency * bottom - item.tokens * top
            after[item.source].append((item.sink, length))
            before[item.sink].append((item.source, length))
            outputs[item.source] += number < len(forward)
            inputs[item.sink] += number < len(forward)
    order = sorted(range(len(found)), key=lambda part: (-times[part], part))
    for _ in range(_PASSES):
        for part in order:
            if outputs[part]:
                latest = min(found[sink] - length for sink, length in after[part])
                found[part] = max(found[part], latest)
    for part in reversed(order):
        if inputs[part] > outputs[part] > 0:
            earliest = max(found[source] + length for source, length in before[part])
            found[part] = min(found[part], earliest)
    return found


def _needed(waits: Sequence[BranchWait], times: Sequence[int], period: Fraction) -> list[int]:
    """How many tokens each branch holds with these first firings, its pipeline included."""
    top, bottom = period.numerator, period.denominator
    found = [
        (-(-(times[wait.target] - times[wait.source] + bottom) // top) + wait.tokens) * wait.burst
        if wait.known
        else 0
        for wait in waits
    ]
    return [
        room if wait.traffic is None else min(room, wait.traffic)
        for wait, room in zip(waits, found, strict=True)
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
