"""What limits a run, in one sentence with a number of cycles.

The cycles of the node that computes most are taken apart, as the mean of its PEs: firing, waiting
for a channel, for memory, for its own interval or for an empty slot of its schedule, and idle
before the first and after the last firing.  The largest part is the limit.  A wait for a channel is
followed to the node at its other end as long as that one waits for something itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

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
    largest = max(parts, key=lambda part: part.cycles)
    pes = "It" if node.pe_count == 1 else f"Each of its {node.pe_count:,} PEs, on average,"
    lost = [part for part in parts if part.kind is not LimitKind.COMPUTE and part.cycles]
    if largest.kind is LimitKind.COMPUTE:
        sentence = (
            f"Compute limits {node.name}: {pes.lower() if pes == 'It' else 'each PE'} fires in "
            f"{largest.cycles:,} of {result.cycles:,} cycles."
        )
        if lost:
            most = max(lost, key=lambda part: part.cycles)
            sentence += f" The largest loss is {most.why}, {most.cycles:,} cycles."
    else:
        sentence = (
            f"{largest.kind.value.capitalize()} limits {node.name}: {largest.why} costs "
            f"{largest.cycles:,} of {result.cycles:,} cycles{_because(result, largest)}."
        )
    return Limit(
        kind=largest.kind,
        cycles=largest.cycles,
        sentence=sentence,
        node=node.name,
        channel=largest.channel,
    )


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


def _because(result: SimResult, part: _Part) -> str:
    """Why the node at the other end of a channel does not send or receive; may be empty."""
    channels = {timing.channel.name: timing.channel for timing in result.program.channels}
    seen: set[str] = set()
    text = ""
    while part.channel is not None:
        channel = channels[part.channel]
        other = channel.sink if part.sending else channel.source
        if other in seen or channel.sink == channel.source:
            return text
        seen.add(other)
        node = result.nodes[other]
        if not node.firings:
            return f", for {other} never fires"
        part = max(_parts(node), key=lambda one: one.cycles)
        if part.kind is LimitKind.COMPUTE:
            return f", for {other} fires in {part.cycles:,} cycles itself"
        text = f", for {other} has {part.cycles:,} cycles of {part.why}"
    return text
