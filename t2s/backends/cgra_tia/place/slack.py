"""Latencies and capacities of the branches of a routed design, and the rate that they allow.

In go a netlist and the paths of its branches; out come branches that hold as many tokens as wait
in them when every part fires in every cycle.  Refused are circles that never start, and channels
that would have to hold more tokens than the fabric has room for.

A part fires its first time when the longest way to it has passed.  Of two ways from one part to
another the shorter one has to hold what arrives early: the difference of the first firings, plus
one.  A load unit, or another part that nobody waits for, starts as late as it can.

A channel that closes a circle (a virtual buffer, a ring) goes into an input that not every
instruction needs, or nothing in the circle could start.  The tokens that circulate are one fewer
than it is asked to hold; if it is asked for one, nothing is known about them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from t2s.backends.cgra_tia.fabric import CgraFabric
from t2s.backends.cgra_tia.netlist import Branch, Net, NetCell, Netlist, NetSink, PlacedDesign
from t2s.backends.cgra_tia.opcodes import ON_FMA
from t2s.backends.cgra_tia.place.circles import Dependence, TokenCircle, offsets, slowest_circle
from t2s.backends.cgra_tia.place.route import Path
from t2s.backends.cgra_tia.place.sites import parts_of
from t2s.core.errors import UnsupportedError, UserError

_PASSES = 4
"""How often all parts are moved to later times: those before them make room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """Why a design does not fire in every cycle.

    ``parts`` are those of the circle in order, ``nets`` what leads from each to the next one.  Of
    ``cycles`` each part of the circle fires in ``tokens``.  ``for_space``: the circle is one of
    channels that are too shallow; else of tokens that go round.
    """

    parts: tuple[str, ...]
    nets: tuple[str, ...]
    tokens: int
    cycles: int
    for_space: bool

    @property
    def rate(self) -> Fraction:
        """Firings per cycle."""
        return Fraction(self.tokens, self.cycles)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wait:
    """A branch as the sink sees it: parts by number, latency with the pipeline of the source.

    ``circles``: it is in a circle; ``closes``: it closes it, and ``tokens`` circulate through it.
    """

    net: Net
    sink: NetSink
    source: int
    target: int
    pipeline: int
    latency: int
    circles: bool = False
    closes: bool = False
    tokens: int = 0

    @property
    def known(self) -> bool:
        """Whether it says something about times."""
        return not self.closes or self.tokens > 0

    @property
    def asked(self) -> int:
        """The tokens that it has to hold.  In a circle what closes it holds them for all."""
        return self.sink.tokens if self.closes or not self.circles else 1


def rate_limit(design: PlacedDesign) -> RateLimit | None:
    """What keeps a design from a firing in every cycle, as far as channels do; ``None`` if nothing.

    Not seen are cells that take several firings for one result, and circles of unknown tokens.
    """
    names = [part.name for part in parts_of(design.netlist)]
    waits = _closed(
        design.netlist,
        list(_waits(design.netlist, design.fabric, _latencies(design))),
        design.fabric,
    )
    capacities = [
        branch.capacity for net in design.netlist.nets for branch in design.branches[net.name]
    ]
    dependences = _forward(waits)
    dependences += _backward(
        waits, [wait.pipeline + room for wait, room in zip(waits, capacities, strict=True)]
    )
    circle = slowest_circle(len(names), dependences)
    return None if circle is None else _as_limit(circle, waits, names)


def _as_limit(circle: TokenCircle, waits: Sequence[_Wait], names: Sequence[str]) -> RateLimit:
    return RateLimit(
        parts=tuple(names[member.source] for member in circle.members),
        nets=tuple(waits[member.branch].net.name for member in circle.members),
        tokens=circle.tokens,
        cycles=circle.latency,
        for_space=any(member.is_space for member in circle.members),
    )


def _latencies(design: PlacedDesign) -> list[int]:
    return [branch.latency for net in design.netlist.nets for branch in design.branches[net.name]]


def with_slack(
    netlist: Netlist, fabric: CgraFabric, paths: Sequence[Sequence[Path]], *, balanced: bool
) -> dict[str, tuple[Branch, ...]]:
    """The branches of all nets by name, for their paths in the order of nets and sinks.

    Raises ``UserError`` for circles that never start and for what cannot hold its tokens.
    """
    waits = _timed(netlist, fabric, paths, balanced)
    rooms = iter(_rooms(netlist, waits, fabric))
    found: dict[str, list[Branch]] = {net.name: [] for net in netlist.nets}
    ways = (path for net_paths in paths for path in net_paths)
    for wait, path in zip(waits, ways, strict=True):
        most = wait.latency + 1 + fabric.most_depth - wait.pipeline
        if wait.asked > most:
            raise _too_shallow(wait, most, fabric)
        room = max(next(rooms) - wait.pipeline, wait.latency - wait.pipeline + 1, wait.sink.tokens)
        found[wait.net.name].append(
            Branch(
                path=path,
                latency=wait.latency - wait.pipeline,
                capacity=min(room, most),
            )
        )
    return {name: tuple(branches) for name, branches in found.items()}


def shortages(
    netlist: Netlist, fabric: CgraFabric, paths: Sequence[Sequence[Path]], *, balanced: bool
) -> dict[tuple[str, int], int]:
    """The branches, by net and number of the sink, that cannot hold what waits in them.

    And how many more channels of this fabric it would take, one after the other.
    """
    waits = _timed(netlist, fabric, paths, balanced)
    found = {}
    numbers = (number for net in netlist.nets for number in range(len(net.sinks)))
    for wait, room, number in zip(waits, _rooms(netlist, waits, fabric), numbers, strict=True):
        depth = fabric.most_depth + 1
        excess = room - wait.latency - depth
        if wait.asked > wait.latency - wait.pipeline + depth:
            found[wait.net.name, number] = -(-(wait.asked - 1) // depth) - 1
        elif excess > 0:
            found[wait.net.name, number] = -(-excess // depth)
    return found


def _timed(
    netlist: Netlist, fabric: CgraFabric, paths: Sequence[Sequence[Path]], balanced: bool
) -> list[_Wait]:
    """Every branch with its latency: that of its own way, or of the longest of its group."""
    hops = [len(path) - 1 for net_paths in paths for path in net_paths]
    if balanced:
        groups = [net.group for net in netlist.nets for _ in net.sinks]
        longest: dict[str, int] = {}
        for group, count in zip(groups, hops, strict=True):
            longest[group] = max(longest.get(group, 0), count)
        hops = [longest[group] for group in groups]
    return _closed(netlist, list(_waits(netlist, fabric, [1 + count for count in hops])), fabric)


def _waits(netlist: Netlist, fabric: CgraFabric, latencies: Sequence[int]) -> Iterator[_Wait]:
    """Every branch, in the order of nets and sinks."""
    parts = parts_of(netlist)
    numbers = {part.name: number for number, part in enumerate(parts)}
    given = iter(latencies)
    for net in netlist.nets:
        source = numbers[net.source.part]
        pipeline = _pipeline(parts[source], net.source.port, fabric)
        for sink in net.sinks:
            yield _Wait(
                net=net,
                sink=sink,
                source=source,
                target=numbers[sink.end.part],
                pipeline=pipeline,
                latency=next(given) + pipeline,
            )


def _pipeline(part: object, port: int, fabric: CgraFabric) -> int:
    """Cycles that an output takes before its wires: those of the FMA, if a result comes from it."""
    if not isinstance(part, NetCell):
        return 0
    slow = any(item.opcode in ON_FMA and port in item.outputs for item in part.program.instructions)
    return fabric.fma_latency if slow else 0


def _closed(netlist: Netlist, waits: Sequence[_Wait], fabric: CgraFabric) -> list[_Wait]:
    """The branches, with those marked that are in circles, and those that close them.

    First those into inputs that not every instruction needs and of which it is known how many
    tokens circulate; where circles are left, all others into such inputs.  Raises ``UserError``
    for circles without them.
    """
    count = len(netlist.cells) + len(netlist.units)
    optional = [_is_optional(netlist, wait) for wait in waits]
    _check_starts(netlist, [w for w, free in zip(waits, optional, strict=True) if not free])
    component = _components(count, waits)
    found = [
        replace(wait, circles=component[wait.source] == component[wait.target]) for wait in waits
    ]
    for unknown in (False, True):
        component = _components(count, [wait for wait in found if not wait.closes])
        for number, wait in enumerate(found):
            inside = component[wait.source] == component[wait.target] and not wait.closes
            if inside and optional[number] and (unknown or wait.sink.tokens > 1):
                found[number] = replace(wait, closes=True, tokens=wait.sink.tokens - 1)
    return _spread(found, fabric)


def _spread(waits: Sequence[_Wait], fabric: CgraFabric) -> list[_Wait]:
    """The same, where what circulates is held by several channels with relays between them.

    A relay has one input, which is asked to hold all that a channel can, and what it sends closes
    a circle.
    """
    found = list(waits)
    inputs: dict[int, list[int]] = {}
    for number, wait in enumerate(found):
        inputs.setdefault(wait.target, []).append(number)
    closing = [wait.source for wait in found if wait.closes]
    while closing:
        into = inputs.get(closing.pop(), [])
        if len(into) == 1:
            wait = found[into[0]]
            if not wait.closes and wait.circles and wait.sink.tokens == fabric.most_depth + 2:
                found[into[0]] = replace(wait, closes=True, tokens=wait.sink.tokens - 1)
                closing.append(wait.source)
    return found


def _check_starts(netlist: Netlist, needed: Sequence[_Wait]) -> None:
    """Raise ``UserError`` for a circle of inputs all of which are needed before anything fires."""
    parts = parts_of(netlist)
    component = _components(len(parts), needed)
    for wait in needed:
        if component[wait.source] == component[wait.target]:
            members = [
                part.name
                for number, part in enumerate(parts)
                if component[number] == component[wait.source]
            ]
            more = f" and {len(members) - 6} others" if len(members) > 6 else ""
            raise UserError(
                f"a circle of parts of {netlist.name!r} never starts",
                location=wait.net.location or netlist.location,
                expected="a part in it that can fire before something has gone round",
                given=f"{', '.join(members[:6])}{more} wait for one another",
            )


def _is_optional(netlist: Netlist, wait: _Wait) -> bool:
    """Whether some instruction of the sink fires without this input."""
    if wait.target >= len(netlist.cells):
        return False
    instructions = netlist.cells[wait.target].program.instructions
    port = wait.sink.end.port
    return any(all(check.channel != port for check in i.trigger.checks) for i in instructions)


def _components(count: int, waits: Sequence[_Wait]) -> list[int]:
    """A number for each part; those that are in a circle together have the same one.

    Parts that are in no circle have numbers of their own, but for one that waits for itself.
    """
    forward: list[list[int]] = [[] for _ in range(count)]
    backward: list[list[int]] = [[] for _ in range(count)]
    for wait in waits:
        forward[wait.source].append(wait.target)
        backward[wait.target].append(wait.source)
    order: list[int] = []
    seen = [False] * count
    for start in range(count):
        stack = [(start, 0)]
        while stack:
            here, index = stack.pop()
            if index == 0:
                if seen[here]:
                    continue
                seen[here] = True
            if index < len(forward[here]):
                stack += [(here, index + 1), (forward[here][index], 0)]
            else:
                order.append(here)
    component = [-1] * count
    for start in reversed(order):
        reached = [start]
        while reached:
            here = reached.pop()
            if component[here] < 0:
                component[here] = start
                reached += backward[here]
    return component


def _forward(waits: Sequence[_Wait]) -> list[Dependence]:
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


def _backward(waits: Sequence[_Wait], rooms: Sequence[int]) -> list[Dependence]:
    """Sources wait for room, which is there in the cycle after a take."""
    return [
        Dependence(
            source=wait.target,
            sink=wait.source,
            latency=1,
            tokens=room - wait.tokens,
            branch=number,
            is_space=True,
        )
        for number, (wait, room) in enumerate(zip(waits, rooms, strict=True))
        if wait.known
    ]


def _rooms(netlist: Netlist, waits: Sequence[_Wait], fabric: CgraFabric) -> list[int]:
    """How many tokens wait in each branch, its pipeline included, with the least of the fabric.

    As few as possible, but where that is more than a channel holds, more in others.
    """
    count = len(netlist.cells) + len(netlist.units)
    forward = _forward(waits)
    circle = slowest_circle(count, forward)
    period = Fraction(1) if circle is None else circle.period
    assert period is not None  # what closes a circle has tokens
    most = [wait.latency + 1 + fabric.most_depth for wait in waits]
    times = offsets(count, [*forward, *_backward(waits, most)], period)
    if times is None:
        times = offsets(count, forward, period)
    assert times is not None
    return _needed(waits, _moved(waits, most, times, period), period)


def _moved(
    waits: Sequence[_Wait], most: Sequence[int], times: Sequence[int], period: Fraction
) -> list[int]:
    """First firings at which fewer tokens wait.

    To fire later makes the tokens that wait behind a part fewer and those before it more.  At
    first every part but the last ones fires as late as it can, so that what nobody waits for
    starts late.  Then those with more inputs than outputs go back as far as they can.  What waits
    before or behind a part stays below what the channels hold.
    """
    top, bottom = period.numerator, period.denominator
    found = list(times)
    outputs: list[list[tuple[_Wait, int]]] = [[] for _ in times]
    inputs: list[list[tuple[_Wait, int]]] = [[] for _ in times]
    for wait, room in zip(waits, most, strict=True):
        if wait.known and wait.source != wait.target:
            outputs[wait.source].append((wait, room))
            inputs[wait.target].append((wait, room))

    def latest(part: int) -> int:
        after = [found[w.target] - w.latency * bottom + w.tokens * top for w, _ in outputs[part]]
        filled = [found[w.source] + (room - w.tokens) * top - bottom for w, room in inputs[part]]
        return max(found[part], min([*after, *filled])) if after else found[part]

    def earliest(part: int) -> int:
        before = [found[w.source] + w.latency * bottom - w.tokens * top for w, _ in inputs[part]]
        filled = [found[w.target] + bottom - (room - w.tokens) * top for w, room in outputs[part]]
        return min(found[part], max([*before, *filled])) if before else found[part]

    order = sorted(range(len(found)), key=lambda part: (-times[part], part))
    for _ in range(_PASSES):
        for part in order:
            found[part] = latest(part)
    for part in reversed(order):
        if len(inputs[part]) > len(outputs[part]) > 0:
            found[part] = earliest(part)
    return found


def _needed(waits: Sequence[_Wait], times: Sequence[int], period: Fraction) -> list[int]:
    """How many tokens each branch holds with these first firings, its pipeline included."""
    top, bottom = period.numerator, period.denominator
    return [
        -(-(times[wait.target] - times[wait.source] + bottom) // top) + wait.tokens
        if wait.known
        else 0
        for wait in waits
    ]


def _too_shallow(wait: _Wait, most: int, fabric: CgraFabric) -> UnsupportedError:
    name = f"{wait.net.group!r} to {wait.sink.end.part!r}"
    return UnsupportedError(
        f"the channel {name} cannot hold its tokens on the fabric {fabric.name!r}",
        location=wait.net.location,
        expected=f"at most {most} tokens, {fabric.most_depth} beyond those in flight",
        given=f"{wait.asked}, without which the design gets stuck",
        hint="use a smaller tile, or a fabric with most_depth="
        f"{fabric.most_depth + wait.sink.tokens - most}",
    )
