"""Latencies and capacities of the branches of a routed design, and the rate that they allow.

In go a netlist and the paths of its branches; out come branches that hold as many tokens as wait
in them when every part fires in every cycle.  Refused are circles that never start, and channels
that would have to hold more tokens than the fabric has room for.

A part fires its first time when the longest way to it has passed.  Of two ways from one part to
another the shorter one has to hold what arrives early: the difference of the first firings, plus
one.  A load unit, or another part that nobody waits for, starts as late as it can.

A channel that closes a circle (a virtual buffer, a ring) goes into an input that not every
instruction needs, or nothing in the circle could start.  How many
tokens circulate is what ``NetSink`` says; if it is asked to hold one, nothing is known about them.
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

    ``tokens`` circulate through it; ``closes`` says that it closes a circle.
    """

    net: Net
    sink: NetSink
    source: int
    target: int
    pipeline: int
    latency: int
    closes: bool = False
    tokens: int = 0

    @property
    def known(self) -> bool:
        """Whether it says something about times."""
        return not self.closes or self.tokens > 0


def rate_limit(design: PlacedDesign) -> RateLimit | None:
    """What keeps a design from a firing in every cycle, as far as channels do; ``None`` if nothing.

    Not seen are cells that take several firings for one result, and circles of unknown tokens.
    """
    names = [part.name for part in parts_of(design.netlist)]
    waits = _closed(
        design.netlist,
        list(_waits(design.netlist, design.fabric, _latencies(design))),
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
    hops = [len(path) - 1 for net_paths in paths for path in net_paths]
    longest: dict[str, int] = {}
    groups = [net.group for net in netlist.nets for _ in net.sinks]
    for group, count in zip(groups, hops, strict=True):
        longest[group] = max(longest.get(group, 0), count)
    if balanced:
        hops = [longest[group] for group in groups]
    latencies = [1 + count for count in hops]
    waits = _closed(netlist, list(_waits(netlist, fabric, latencies)))
    rooms = _rooms(netlist, waits, fabric)
    branches = iter(
        Branch(path=path, latency=latency, capacity=room)
        for path, latency, room in zip(
            (path for net_paths in paths for path in net_paths), latencies, rooms, strict=True
        )
    )
    return {net.name: tuple(next(branches) for _ in net.sinks) for net in netlist.nets}


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


def _closed(netlist: Netlist, waits: Sequence[_Wait]) -> list[_Wait]:
    """The branches, with those marked that close circles.

    First those of which it is known how many tokens circulate; where circles are left, all others
    into inputs that not every instruction needs.  Raises ``UserError`` for circles without any.
    """
    found = list(waits)
    count = len(netlist.cells) + len(netlist.units)
    for unknown in (False, True):
        component = _components(count, [wait for wait in found if not wait.closes])
        for number, wait in enumerate(found):
            inside = component[wait.source] == component[wait.target] and not wait.closes
            tokens = wait.sink.tokens_of_circle
            if inside and (unknown or tokens > 0) and _is_optional(netlist, wait):
                found[number] = replace(wait, closes=True, tokens=tokens)
    left = [wait for wait in found if not wait.closes]
    component = _components(count, left)
    for wait in left:
        if component[wait.source] == component[wait.target]:
            members = [
                part.name
                for number, part in enumerate(parts_of(netlist))
                if component[number] == component[wait.source]
            ]
            more = f" and {len(members) - 6} others" if len(members) > 6 else ""
            raise UserError(
                f"a circle of parts of {netlist.name!r} never starts",
                location=wait.net.location or netlist.location,
                expected="a part in it that can fire before something has gone round",
                given=f"{', '.join(members[:6])}{more} wait for one another",
            )
    return found


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
    """The capacity of each branch, without the pipeline of its source."""
    count = len(netlist.cells) + len(netlist.units)
    forward = _forward(waits)
    circle = slowest_circle(count, forward)
    period = Fraction(1) if circle is None else circle.period
    assert period is not None  # what closes a circle has tokens
    most = [wait.latency + 1 + fabric.most_depth for wait in waits]
    bounded = offsets(count, [*forward, *_backward(waits, most)], period)
    early = offsets(count, forward, period)
    assert early is not None
    rooms = _needed(waits, _late(waits, early, period), period)
    if bounded is not None and any(room > limit for room, limit in zip(rooms, most, strict=True)):
        rooms = _needed(waits, bounded, period)
    found = []
    for wait, room, limit in zip(waits, rooms, most, strict=True):
        asked = wait.sink.tokens
        if asked > limit - wait.pipeline:
            raise _too_shallow(wait, limit - wait.pipeline, fabric)
        least = wait.latency + 1
        found.append(max(min(max(room, least), limit) - wait.pipeline, asked))
    return found


def _late(waits: Sequence[_Wait], early: Sequence[int], period: Fraction) -> list[int]:
    """First firings as late as possible, of parts with no more inputs than outputs.

    To fire later makes the tokens that wait behind a part fewer and those before it more.
    """
    top, bottom = period.numerator, period.denominator
    found = list(early)
    outputs: list[list[_Wait]] = [[] for _ in early]
    inputs = [0] * len(early)
    for wait in waits:
        if wait.known:
            outputs[wait.source].append(wait)
            inputs[wait.target] += 1
    for part in sorted(range(len(early)), key=lambda part: (-early[part], part)):
        if len(outputs[part]) >= max(inputs[part], 1):
            found[part] = max(
                found[part],
                min(
                    found[wait.target] - wait.latency * bottom + wait.tokens * top
                    for wait in outputs[part]
                ),
            )
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
        given=f"{wait.sink.tokens}, without which the design gets stuck",
        hint="use a smaller tile, or a fabric with most_depth="
        f"{fabric.most_depth + wait.sink.tokens - most}",
    )
