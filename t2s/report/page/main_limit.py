"""What limits a run, in one sentence with a number of cycles.

The cycles of the node that computes most are attributed by the mean over its PEs: firing, waiting
for a channel, for memory, for its own interval or for an empty slot of its schedule, and idle
before the first and after the last firing.  Firing is the limit if it takes half of the cycles,
otherwise the largest other part.  A wait for a channel is followed to the node at its other end,
for as long as that node itself waits.  A wait for a token that the PE sends to itself is a
recurrence.  A wait for memory is limited by bandwidth if a bus of the DRAM was busy for half of the
run, and by latency otherwise; without a simulated DRAM, memory is only bandwidth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from t2s.core.names import counted
from t2s.graph.graph import Channel
from t2s.graph.nodes import Role
from t2s.simulator.report.result import NodeStatistics, SimResult


class LimitKind(Enum):
    """A kind of limit of a run."""

    COMPUTE = "compute"
    CHANNEL = "channel"
    MEMORY = "memory bandwidth"
    LATENCY = "memory latency"
    BANKS = "shared banks"
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


_SUBJECTS = {
    LimitKind.CHANNEL: "A channel limits",
    LimitKind.MEMORY: "Memory bandwidth limits",
    LimitKind.LATENCY: "Memory latency limits",
    LimitKind.BANKS: "Shared banks limit",
    LimitKind.RECURRENCE: "A recurrence limits",
    LimitKind.SCHEDULE: "The schedule limits",
}
_MEMORY = frozenset({LimitKind.MEMORY, LimitKind.LATENCY, LimitKind.BANKS})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Cycles per PE of a node, the mean; ``own``: the node waits for itself through a channel."""

    kind: LimitKind
    cycles: int
    why: str
    channel: str | None = None
    sending: bool = False
    own: bool = False


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
    parts = _parts(result, node)
    largest = _largest(parts, result.cycles)
    root, because = _root(result, node, largest)
    kind = root if root in _MEMORY else largest.kind
    return Limit(
        kind=kind,
        cycles=largest.cycles,
        sentence=_sentence(result, node, kind, largest, because, parts),
        node=node.name,
        channel=largest.channel,
    )


def _sentence(
    result: SimResult,
    node: NodeStatistics,
    kind: LimitKind,
    limit: _Part,
    because: str,
    parts: Sequence[_Part],
) -> str:
    """The sentence about the limit of a node, with its cost in cycles."""
    share = f"{limit.cycles:,} of {counted(result.cycles, 'cycle')}"
    match kind:
        case LimitKind.COMPUTE:
            text = f"Compute limits {node.name}: {_firing(result, node)} {share}"
            text += "" if _alike(result, node) else " on average"
            most = max(parts[1:], key=lambda part: part.cycles)
            loss = f" The largest loss is {most.why}, {counted(most.cycles, 'cycle')}."
            return f"{text}.{loss if most.cycles else ''}"
        case LimitKind.FILL:
            who = "it is" if node.pe_count == 1 else "its PEs are"
            return (
                f"Fill and drain limit {node.name}: {who} idle before the first and after the "
                f"last firing in {share}{'' if node.pe_count == 1 else ' on average'}."
            )
        case _:
            return f"{_SUBJECTS[kind]} {node.name}: {limit.why} costs {share}{because}."


def _firing(result: SimResult, node: NodeStatistics) -> str:
    if node.pe_count == 1:
        return "it fires in"
    return "each PE fires in" if _alike(result, node) else "a PE fires in"


def _alike(result: SimResult, node: NodeStatistics) -> bool:
    """Whether all PEs of a node have the same number of firings."""
    if node.pe_count == 1:
        return True
    if not result.finished or node.empty:
        return False
    (timing,) = (other for other in result.program.nodes if other.node.name == node.name)
    counts = result.program.control.firings[timing.instances]
    return bool((counts[counts > 0] * node.pe_count == node.firings).all())


def _largest(parts: Sequence[_Part], cycles: int) -> _Part:
    """Computing if it takes half of the cycles, otherwise the largest other part."""
    most = max(parts[1:], key=lambda part: part.cycles)
    return parts[0] if 2 * parts[0].cycles >= cycles or not most.cycles else most


def _focus(result: SimResult) -> NodeStatistics | None:
    """The compute node with the most firings per PE; any node if none computes."""
    fired = [node for node in result.nodes.values() if node.firings]
    computes = [node for node in fired if node.role is Role.COMPUTE]
    return max(computes or fired, key=lambda node: node.firings / node.pe_count, default=None)


def _parts(result: SimResult, node: NodeStatistics) -> list[_Part]:
    """The cycles of a node by cause, the mean over its PEs."""

    def mean(cycles: int) -> int:
        return round(cycles / node.pe_count)

    own = _own_channels(result, node)
    channels = (timing.channel for timing in result.program.channels)
    inside = {channel.name for channel in channels if channel.source == channel.sink}
    parts = [_Part(kind=LimitKind.COMPUTE, cycles=mean(node.busy), why="firing")]
    for name, cycles in node.starved_by.items():
        kind, why = LimitKind.CHANNEL, f"waiting for a token in {name}"
        why += " from another of its PEs" if name in inside else ""
        if name in own:
            kind, why = LimitKind.RECURRENCE, f"waiting for its own results in {name}"
            recurrence = result.recurrences.get(name)
            why += "" if recurrence is None else f" ({recurrence})"
        parts.append(_Part(kind=kind, cycles=mean(cycles), why=why, channel=name, own=name in own))
    parts += [
        _Part(
            kind=LimitKind.CHANNEL,
            cycles=mean(cycles),
            why=f"waiting for space in {name}",
            channel=name,
            sending=True,
            own=name in own,
        )
        for name, cycles in node.blocked_by.items()
    ]
    interval = LimitKind.MEMORY if node.interval.of_memory else LimitKind.RECURRENCE
    return [
        *parts,
        _memory_part(result, node, mean(node.starved_by_memory + node.blocked_by_memory)),
        _Part(
            kind=interval,
            cycles=mean(node.waiting - node.empty),
            why=f"the interval between firings ({node.interval})",
        ),
        _Part(kind=LimitKind.SCHEDULE, cycles=mean(node.empty), why="empty slots of the schedule"),
        _Part(kind=LimitKind.FILL, cycles=mean(node.idle), why="fill and drain"),
    ]


def _own_channels(result: SimResult, node: NodeStatistics) -> frozenset[str]:
    """The channels through which only PEs of the node itself wait for each other."""
    control = result.program.control
    channels = []
    for timing in result.program.channels:
        if timing.channel.source == timing.channel.sink == node.name:
            known = result.recurrences.get(timing.channel.name)
            if known is not None and known.interval <= node.interval.cycles:
                continue  # it waits for something else, which delays its results
            sender, receiver = control.sender[timing.elements], control.receiver[timing.elements]
            used = (sender >= 0) & (receiver >= 0)
            if used.any() and (sender[used] == receiver[used]).all():
                channels.append(timing.channel.name)
    return frozenset(channels)


def _memory_part(result: SimResult, node: NodeStatistics, cycles: int) -> _Part:
    """The wait for memory: for its bandwidth, its latency, or for banks on the chip."""
    shared, memory = result.shared, result.memory
    if shared is not None and any(row.node == node.name for row in shared.sharers):
        return _Part(kind=LimitKind.BANKS, cycles=cycles, why="waiting for the shared banks")
    if memory is None:
        return _Part(kind=LimitKind.MEMORY, cycles=cycles, why="waiting for memory")
    busiest = memory.busiest_share
    kind = LimitKind.MEMORY if busiest >= 0.5 else LimitKind.LATENCY
    why = f"waiting for memory, whose busiest bus is busy for {busiest:.1%} of the run,"
    return _Part(kind=kind, cycles=cycles, why=why)


def _root(result: SimResult, node: NodeStatistics, part: _Part) -> tuple[LimitKind, str]:
    """The root cause of a wait for a channel, and an explanation, possibly empty.

    A wait for a neighboring PE is traced to a channel that enters the array from elsewhere.
    """
    channels = {timing.channel.name: timing.channel for timing in result.program.channels}
    seen = {node.name}
    kind, text = part.kind, ""
    while part.channel is not None and not part.own:
        channel = channels[part.channel]
        if channel.source == channel.sink:
            others = [
                candidate
                for candidate in _parts(result, node)[1:]
                if _comes_from_elsewhere(candidate, channels)
            ]
            part = max(others, key=lambda candidate: candidate.cycles, default=part)
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
        part = _largest(_parts(result, node), result.cycles)
        kind = part.kind
        if kind is LimitKind.COMPUTE:
            return kind, f", for {other} fires in {counted(part.cycles, 'cycle')} itself"
        text = f", for {other} has {counted(part.cycles, 'cycle')} of {part.why}"
    return kind, text.removesuffix(",")


def _comes_from_elsewhere(part: _Part, channels: Mapping[str, Channel]) -> bool:
    if part.channel is None:
        return False
    return channels[part.channel].source != channels[part.channel].sink
