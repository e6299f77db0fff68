"""Branches as their sinks see them, and which of them close circles.

In go a netlist and the latencies of its branches; out come ``BranchWait`` objects, in the order
of nets and sinks.  Refused are circles that never start.

A channel that closes a circle (a virtual buffer, a ring) goes into an input that not every
instruction needs, or nothing in the circle could start.  The tokens that circulate are one fewer
than it is asked to hold; if it is asked for one, nothing is known about them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from t2s.backends.cgra_tia.fabric import CgraFabric
from t2s.backends.cgra_tia.netlist import Net, Netlist, NetSink
from t2s.backends.cgra_tia.opcodes import ON_FMA
from t2s.backends.cgra_tia.place.traffic import traffic_of
from t2s.backends.cgra_tia.place.turns import Firers
from t2s.backends.cgra_tia.program import Instruction
from t2s.core.components import strong_components
from t2s.core.errors import UserError


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchWait:
    """A branch as the sink sees it: firers by number, latency with the pipeline of the source.

    ``circles``: it is in a circle; ``closes``: it closes it, and ``tokens`` circulate through it.
    ``traffic`` is how many tokens come in the whole run, at most; ``None`` if nobody knows.
    ``burst`` is how many tokens are sent and taken in one firing.
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
    traffic: int | None = None
    burst: int = 1

    @property
    def known(self) -> bool:
        """Whether it says something about rates.

        What goes round does, if it is known how much that is; other branches do not if all that
        ever comes fits into them.
        """
        if self.circles:
            return not self.closes or self.tokens > 0
        return self.blocks(self.latency + 1)

    def blocks(self, room: int) -> bool:
        """Whether its source may have to wait if it holds so many tokens."""
        return self.traffic is None or self.traffic > room

    @property
    def asked(self) -> int:
        """The tokens that it has to hold.  In a circle what closes it holds them for all."""
        return self.sink.tokens if self.closes or not self.circles else 1


def branch_waits(
    netlist: Netlist, firers: Firers, fabric: CgraFabric, latencies: Sequence[int]
) -> list[BranchWait]:
    """Every branch, in the order of nets and sinks, for latencies without pipelines."""
    return _closed(firers, list(_timed(netlist, firers, fabric, latencies)), fabric)


def _timed(
    netlist: Netlist, firers: Firers, fabric: CgraFabric, latencies: Sequence[int]
) -> Iterator[BranchWait]:
    given = iter(zip(latencies, traffic_of(netlist), strict=True))
    for net in netlist.nets:
        source = firers.source(net.source)
        pipeline = _pipeline(firers.instructions(source), net.source.port, fabric)
        for sink in net.sinks:
            latency, traffic = next(given)
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
    """Cycles that an output takes before its wires: those of the FMA, if a result comes from it."""
    slow = any(item.opcode in ON_FMA and port in item.outputs for item in instructions or ())
    return fabric.fma_latency if slow else 0


def _closed(firers: Firers, waits: Sequence[BranchWait], fabric: CgraFabric) -> list[BranchWait]:
    """The branches, with those marked that are in circles, and those that close them.

    First those into inputs that not every instruction needs and of which it is known how many
    tokens circulate; where circles are left, all others into such inputs.  Raises ``UserError``
    for circles without them.
    """
    optional = [_is_optional(firers, wait) for wait in waits]
    _check_starts(firers, [w for w, free in zip(waits, optional, strict=True) if not free])
    component = _components(firers, waits)
    found = [
        replace(wait, circles=component[wait.source] == component[wait.target]) for wait in waits
    ]
    for unknown in (False, True):
        component = _components(firers, [wait for wait in found if not wait.closes])
        for number, wait in enumerate(found):
            inside = component[wait.source] == component[wait.target] and not wait.closes
            if inside and optional[number] and (unknown or wait.sink.tokens > 1):
                found[number] = replace(wait, closes=True, tokens=wait.sink.tokens - 1)
    return _spread(found, fabric)


def _spread(waits: Sequence[BranchWait], fabric: CgraFabric) -> list[BranchWait]:
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


def _check_starts(firers: Firers, needed: Sequence[BranchWait]) -> None:
    """Raise ``UserError`` for a circle of inputs all of which are needed before anything fires."""
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
                f"a circle of parts of {netlist.name!r} never starts",
                location=wait.net.location or netlist.location,
                expected="a part in it that can fire before something has gone round",
                given=f"{', '.join(members[:6])}{more} wait for one another",
            )


def _is_optional(firers: Firers, wait: BranchWait) -> bool:
    """Whether some instruction of the sink fires without this input."""
    instructions = firers.instructions(wait.target) or ()
    port = wait.sink.end.port
    return any(all(check.channel != port for check in i.trigger.checks) for i in instructions)


def _components(firers: Firers, waits: Sequence[BranchWait]) -> list[int]:
    """A number for each firer; those that are in a circle together have the same one.

    Firers that are in no circle have numbers of their own, but for one that waits for itself.
    Later turns of a cell wait for the earlier ones of the round.
    """
    turns = ((turn.source, turn.sink) for turn in firers.turns if turn.source < turn.sink)
    arcs = (*((wait.source, wait.target) for wait in waits), *turns)
    return strong_components(len(firers.names), arcs)
