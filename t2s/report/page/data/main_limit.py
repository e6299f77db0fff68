"""What limits a run, in one sentence with a number of cycles.

The cycles of the node that computes most are taken apart, as the mean of its PEs: firing, waiting
for a channel, for memory, for its own interval or for an empty slot of its schedule, and idle
before the first and after the last firing.  Firing is the limit if it takes half of the cycles, or
else the largest of the other parts.  A wait for a channel is followed to the node at its other end
as long as that one waits for something itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from t2s.graph.graph import Channel
from t2s.graph.nodes import Role
from t2s.simulator.report.node_statistics import NodeStatistics
from t2s.simulator.report.result import SimResult


class LimitKind(Enum):
    """What can limit a run."""

    COMPUTE = "compute"
    CHANNEL = "channel"
    MEMORY = "memory bandwidth"
    RECURRENCE = "recurrence"
    FILL = "fill and drain"
    SCHEDULE = "schedule"
    DEADLOCK = "deadlock"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The limit of a run: its kind, the cycles that it costs, and a sentence; nodes by name."""

    kind: LimitKind
    cycles: int
    sentence: str
    node: str | None = None
    channel: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    kind: LimitKind
    cycles: int
    why: str
    channel: str | None = None
    sending: bool = False


def limit_of(result: SimResult) -> Limit:
    """The limit of a run."""
    if result.deadlock is not None:
        return Limit(
            kind=LimitKind.DEADLOCK,
            cycles=result.deadlock.cycle,
            sentence=f"Deadlock: nothing can fire any more after cycle {result.deadlock.cycle:,}.",
        )
    node = _focus(result)
    if node is None:
        return Limit(kind=LimitKind.NOTHING, cycles=0, sentence="Nothing fired in this run.")
    parts = _parts(node)
    found = _largest(parts, result.cycles)
    kind: LimitKind = found.kind
    if found.kind is LimitKind.COMPUTE:
        who = "it" if node.pe_count == 1 else "each PE"
        sentence = (
            f"Compute limits {node.name}: {who} fires in {found.cycles:,} of "
            f"{result.cycles:,} cycles."
        )
        most = max(parts[1:], key=lambda part: part.cycles)
        if most.cycles:
            sentence += f" The largest loss is {most.why}, {most.cycles:,} cycles."
    else:
        root, because = _root(result, node, found)
        kind = root if root is LimitKind.MEMORY else found.kind
        what = "A channel" if kind is LimitKind.CHANNEL else kind.value.capitalize()
        sentence = (
            f"{what} limits {node.name}: {found.why} costs {found.cycles:,} of "
            f"{result.cycles:,} cycles{because}."
        )
    return Limit(
        kind=kind,
        cycles=found.cycles,
        sentence=sentence,
        node=node.name,
        channel=found.channel,
    )


def _largest(parts: list[_Part], cycles: int) -> _Part:
    """Computing, if it takes half of the cycles, or else the largest of the other parts."""
    most = max(parts[1:], key=lambda part: part.cycles)
    return parts[0] if 2 * parts[0].cycles >= cycles or not most.cycles else most


def _focus(result: SimResult) -> NodeStatistics | None:
    """The node that computes most for each of its PEs; of others, if none computes."""
    fired = [node for node in result.nodes.values() if node.firings]
    computes = [node for node in fired if node.role is Role.COMPUTE]
    return max(computes or fired, key=lambda node: node.firings / node.pe_count, default=None)


def _parts(node: NodeStatistics) -> list[_Part]:
    """The cycles of a node by their cause, the mean of its PEs."""

    def mean(cycles: int) -> int:
        return round(cycles / node.pe_count)

    parts = [_Part(kind=LimitKind.COMPUTE, cycles=mean(node.busy), why="firing")]
    parts += [
        _Part(
            kind=LimitKind.CHANNEL,
            cycles=mean(cycles),
            why=f"waiting for a token in {name}",
            channel=name,
        )
        for name, cycles in node.starved_by.items()
    ]
    parts += [
        _Part(
            kind=LimitKind.CHANNEL,
            cycles=mean(cycles),
            why=f"waiting for space in {name}",
            channel=name,
            sending=True,
        )
        for name, cycles in node.blocked_by.items()
    ]
    memory = node.starved_by_memory + node.blocked_by_memory
    interval = LimitKind.MEMORY if node.interval.moved_bytes is not None else LimitKind.RECURRENCE
    return [
        *parts,
        _Part(kind=LimitKind.MEMORY, cycles=mean(memory), why="waiting for memory"),
        _Part(
            kind=interval,
            cycles=mean(node.waiting - node.empty),
            why=f"the interval between firings ({node.interval})",
        ),
        _Part(kind=LimitKind.SCHEDULE, cycles=mean(node.empty), why="empty slots of the schedule"),
        _Part(kind=LimitKind.FILL, cycles=mean(node.idle), why="fill and drain"),
    ]


def _root(result: SimResult, node: NodeStatistics, part: _Part) -> tuple[LimitKind, str]:
    """What is behind a wait for a channel, and why, in words; these may be empty.

    A wait for the PE beside is one for what comes to the array from elsewhere.
    """
    channels = {timing.channel.name: timing.channel for timing in result.program.channels}
    seen = {node.name}
    kind, text = part.kind, ""
    while part.channel is not None:
        channel = channels[part.channel]
        if channel.source == channel.sink:
            others = [one for one in _parts(node)[1:] if _comes_from_elsewhere(one, channels)]
            part = max(others, key=lambda one: one.cycles, default=part)
            if not others or not part.cycles:
                return kind, text
            continue
        other = channel.sink if part.sending else channel.source
        if other in seen:
            return kind, text
        seen.add(other)
        node = result.nodes[other]
        if not node.firings:
            return kind, f", for {other} never fires"
        part = _largest(_parts(node), result.cycles)
        kind = part.kind
        if kind is LimitKind.COMPUTE:
            return kind, f", for {other} fires in {part.cycles:,} cycles itself"
        text = f", for {other} has {part.cycles:,} cycles of {part.why}"
    return kind, text


def _comes_from_elsewhere(part: _Part, channels: Mapping[str, Channel]) -> bool:
    if part.channel is None:
        return False
    return channels[part.channel].source != channels[part.channel].sink
