"""Deadlock reports: the cycle of waiting PEs, and the capacities that resolve it.

In a deadlock every PE with firings left waits for a token that its sender has not sent or for a
slot that its receiver has not freed.  Following these waits from PE to PE leads into a cycle, to a
PE that has made all its firings, or to a channel element without a PE at the other end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from t2s.core.location import SourceLocation
from t2s.graph.nodes import Machine
from t2s.simulator.program.sim_program import SimProgram
from t2s.simulator.report.counters import Stuck, Tally, is_harmless

SHOWN_WAITS = 8

_UNEQUAL = (
    "the sender and the receiver of the last channel disagree on the number of tokens: "
    "compare their loops and conditions"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """A PE that waits, for space in a channel element (``sending``) or for a token in it.

    ``total_firings`` is ``None`` for a machine, whose firings depend on data.
    """

    pe: str
    location: SourceLocation | None
    sending: bool
    channel: str
    element: str
    channel_location: SourceLocation | None
    tokens: int
    capacity: int
    partner: str | None
    firings: int
    total_firings: int | None

    def __str__(self) -> str:
        held = f"{self.element} ({self.tokens} of {self.capacity} tokens)"
        all_of_them = "" if self.total_firings is None else f" of {self.total_firings}"
        plural = (
            "" if (self.firings if self.total_firings is None else self.total_firings) == 1 else "s"
        )
        progress = f"after {self.firings}{all_of_them} firing{plural}"
        if self.sending:
            by = f", which {self.partner} receives" if self.partner else ", which is never received"
            return f"{self.pe} waits for space in {held}{by}, {progress}"
        by = f", which {self.partner} sends" if self.partner else ", which is never sent"
        return f"{self.pe} waits for a token in {held}{by}, {progress}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """Capacities that resolve a deadlock: (before, after) in tokens, by channel.

    ``minimal``: with a smaller capacity of any one of these channels the run does not end.
    """

    capacities: Mapping[str, tuple[int, int]]
    minimal: bool = True

    def __str__(self) -> str:
        changes = ", ".join(f"{name!r} {old} -> {new}" for name, (old, new) in self._items())
        less = "" if self.minimal else " (less may do as well)"
        if len(self.capacities) == 1:
            return f"a capacity that frees it: {changes}{less}"
        return f"capacities that free it: {changes}{less}"

    def _items(self) -> list[tuple[str, tuple[int, int]]]:
        return list(self.capacities.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadlockReport:
    """A deadlock: its waits, and how to resolve it.

    Attributes
    ----------
    cycle: the last cycle in which anything happened.
    waits: the waits in order, each for the PE of the next one.
    closed: whether the last wait is for the PE of the first; otherwise it is for a finished PE, or
        for no PE.
    unfinished: (node, PEs with firings left, PEs) of every unfinished node; endless machines that
        wait for a token count as finished.
    remedy: sufficient capacities, if the search found any.
    searched: whether it was run.
    beyond: the deadlock that remains with unlimited capacities, if there is one.
    """

    cycle: int
    waits: tuple[Wait, ...]
    closed: bool
    unfinished: tuple[tuple[str, int, int], ...]
    remedy: Remedy | None = None
    searched: bool = False
    beyond: DeadlockReport | None = None

    @property
    def message(self) -> str:
        """One sentence."""
        nodes = ", ".join(f"{name!r} ({left} of {all} PEs)" for name, left, all in self.unfinished)
        return f"deadlock after cycle {self.cycle}: nothing can fire, and not finished are {nodes}"

    @property
    def hint(self) -> str:
        """What to try."""
        if self.remedy is not None:
            return str(self.remedy)
        if not self.closed:
            return _UNEQUAL
        if not self.searched:
            return "larger capacities may free it"
        if self.beyond is None or self.beyond.closed:
            return (
                "no capacity frees it: a dependence cycle without enough tokens; a node in the "
                "cycle has to send before it receives"
            )
        return f"no capacity frees it; with more space, {self.beyond.waits[-1]}: {_UNEQUAL}"

    def __str__(self) -> str:
        shown = [f"  {wait}" for wait in self.waits[:SHOWN_WAITS]]
        if len(self.waits) > SHOWN_WAITS:
            shown.append(f"  ... and {len(self.waits) - SHOWN_WAITS} more")
        closing = [f"  and so back to {self.waits[0].pe}"] if self.closed else []
        return "\n".join([self.message, *shown, *closing, f"  hint: {self.hint}"])


def explain(program: SimProgram, tally: Tally) -> DeadlockReport:
    """The report of a tally that ended in a deadlock."""
    stuck = {item.instance: item for item in tally.stuck}
    chain, closed = _waits(program, stuck)
    done = tally.firings == program.control.firings
    for item in tally.stuck:
        done[item.instance] = done[item.instance] or is_harmless(program, item)
    unfinished = tuple(
        (timing.node.name, int((~done[timing.instances]).sum()), timing.pe_count)
        for timing in program.nodes
        if not done[timing.instances].all()
    )
    return DeadlockReport(
        cycle=tally.cycles,
        waits=tuple(_wait(program, tally, item) for item in chain),
        closed=closed,
        unfinished=unfinished,
    )


def _partner(program: SimProgram, item: Stuck) -> int:
    ends = program.control.receiver if item.sending else program.control.sender
    return int(ends[item.element])


def _waits(program: SimProgram, stuck: Mapping[int, Stuck]) -> tuple[list[Stuck], bool]:
    """A cycle of waits if there is one, else the first chain."""
    first_chain: list[Stuck] | None = None
    visited: set[int] = set()
    for start, item in stuck.items():
        if is_harmless(program, item):
            continue
        chain: list[Stuck] = []
        position: dict[int, int] = {}
        at = start
        while at in stuck and at not in visited:
            visited.add(at)
            position[at] = len(chain)
            chain.append(stuck[at])
            at = _partner(program, stuck[at])
        if at in position:
            return chain[position[at] :], True
        first_chain = first_chain or chain
    return first_chain or [], False


def _wait(program: SimProgram, tally: Tally, item: Stuck) -> Wait:
    timing = program.channels[int(program.channel_of_element[item.element])]
    partner = _partner(program, item)
    node = program.node_of(item.instance).node
    return Wait(
        pe=program.pe_label(item.instance),
        location=node.location,
        sending=item.sending,
        channel=timing.channel.name,
        element=program.element_label(item.element),
        channel_location=timing.channel.location,
        tokens=int(tally.left[item.element]),
        capacity=timing.capacity,
        partner=program.pe_label(partner) if partner >= 0 else None,
        firings=int(tally.firings[item.instance]),
        total_firings=None
        if isinstance(node, Machine)
        else int(program.control.firings[item.instance]),
    )
