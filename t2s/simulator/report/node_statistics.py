"""What a run measured of one node, and tokens that it left in a channel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from t2s.core.location import SourceLocation
from t2s.core.tables import StallRow
from t2s.graph.nodes import Role
from t2s.simulator.program.recurrences import ChannelRecurrence
from t2s.simulator.program.sim_program import NodeInterval


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStatistics:
    """What the PEs of one node did.

    ``busy``, ``waiting``, ``starved``, ``blocked`` and ``idle`` are cycles summed over the PEs;
    together they are ``pe_count`` times the cycles of the run.  ``starved_by`` and ``blocked_by``
    split the stalls by channel; what is missing is memory, in ``starved_by_memory`` and
    ``blocked_by_memory``.  ``firings`` are iterations that the definition has; ``total_firings``
    are those of a complete run, of a machine those that it made.  ``empty`` slots of a schedule, in
    which a PE steps on without an iteration, are no firings: they are part of ``waiting``.
    ``first_firing`` and ``last_firing`` are cycles, ``None`` if there was no firing.
    """

    name: str
    role: Role
    location: SourceLocation | None
    pe_count: int
    interval: NodeInterval
    firings: int
    total_firings: int
    empty: int = 0
    first_firing: int | None
    last_firing: int | None
    waiting: int
    starved_by: Mapping[str, int]
    blocked_by: Mapping[str, int]
    starved_by_memory: int
    blocked_by_memory: int
    idle: int

    @property
    def busy(self) -> int:
        """Cycles with a firing."""
        return self.firings

    @property
    def slots(self) -> int:
        """Steps of the loops in time: firings and empty slots."""
        return self.firings + self.empty

    @property
    def starved(self) -> int:
        """Cycles without a token or a loaded value to go on with."""
        return sum(self.starved_by.values()) + self.starved_by_memory

    @property
    def blocked(self) -> int:
        """Cycles without space for a result."""
        return sum(self.blocked_by.values()) + self.blocked_by_memory

    def stall_row(self, recurrences: Mapping[str, ChannelRecurrence]) -> StallRow:
        """The node's row of the stall table.

        A wait for a token of the PE itself is explained by the recurrence, if that takes longer
        than the initiation interval; ``recurrences`` has those of all channels.
        """
        slow = {
            name: f": {recurrence}"
            for name, recurrence in recurrences.items()
            if recurrence.interval > self.interval.cycles
        }
        causes = {
            f"starved by {name}{slow.get(name, '')}": n for name, n in self.starved_by.items()
        }
        causes |= {f"blocked by {name}": n for name, n in self.blocked_by.items()}
        causes["starved by memory"] = self.starved_by_memory
        causes["blocked by memory"] = self.blocked_by_memory
        causes["empty slots: gaps or padding"] = self.empty
        causes[str(self.interval)] = self.waiting - self.empty
        largest = max(causes, key=lambda cause: causes[cause])
        return StallRow(
            node=self.name,
            pe_count=self.pe_count,
            busy=self.busy,
            starved=self.starved,
            blocked=self.blocked,
            waiting=self.waiting,
            idle=self.idle,
            main_cause=largest if causes[largest] else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TokensLeft:
    """A channel with tokens left at the end of a run."""

    channel: str
    location: SourceLocation | None
    tokens: int
    sent: int
    received: int
    sender: str
    sender_firings: int
    receiver: str
    receiver_firings: int
