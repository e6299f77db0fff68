"""The cycles of runs by their cause, in whole cycles that add up to those of the runs.

Each run is taken apart as the mean of the PEs of its main array: firing, waiting for a token or for
space in a channel, for memory, for the initiation interval, for an empty slot of a schedule, and
idle before the first and after the last firing.  So the share of firing is the utilization.  Means
are fractions; they are rounded by largest remainders, so that nothing is lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from math import floor

from t2s.simulator.report.node_statistics import NodeStatistics
from t2s.simulator.report.result import SimResult


class CauseKind(Enum):
    """What cycles go into."""

    FIRING = "firing"
    STARVED = "starved by"
    BLOCKED = "blocked by"
    STARVED_BY_MEMORY = "starved by memory"
    BLOCKED_BY_MEMORY = "blocked by memory"
    INTERVAL = "initiation interval"
    EMPTY = "empty slots"
    IDLE = "idle"

    @property
    def state(self) -> str:
        """What a PE is meanwhile, one of ``core.tables.KINDS``."""
        match self:
            case CauseKind.FIRING:
                return "busy"
            case CauseKind.STARVED | CauseKind.STARVED_BY_MEMORY:
                return "starved"
            case CauseKind.BLOCKED | CauseKind.BLOCKED_BY_MEMORY:
                return "blocked"
            case CauseKind.INTERVAL | CauseKind.EMPTY:
                return "waiting"
            case CauseKind.IDLE:
                return "idle"


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleUse:
    """What some cycles of a stage went into; ``channel`` is the one that was waited for.

    ``stage`` is 0 where there is only one.
    """

    kind: CauseKind
    channel: str = ""
    stage: int = 0

    @property
    def text(self) -> str:
        """As tables say it."""
        return staged(f"{self.kind.value} {self.channel}".rstrip(), self.stage)


def staged(name: str, stage: int) -> str:
    """A name with the number of its stage, where there are several."""
    return f"stage {stage}: {name}" if stage else name


def cycle_uses(runs: Sequence[SimResult], *, staged: bool) -> dict[CycleUse, int]:
    """The cycles of runs that came one after the other; they add up to those of the runs."""
    found: dict[CycleUse, int] = {}
    for number, run in enumerate(runs, 1):
        found |= _of_run(run, number if staged else 0)
    return found


def main_nodes(run: SimResult) -> list[NodeStatistics]:
    """The main array; of a run that computes nothing, all nodes."""
    return list(run.nodes.values()) if run.main_array is None else [run.main_array]


def _of_run(run: SimResult, stage: int) -> dict[CycleUse, int]:
    nodes = main_nodes(run)
    pes = sum(node.pe_count for node in nodes)
    sums: dict[CycleUse, int] = {}
    for node in nodes:
        for use, cycles in _of_node(node, stage).items():
            sums[use] = sums.get(use, 0) + cycles
    means = {use: Fraction(cycles, pes) for use, cycles in sums.items() if cycles}
    # an interrupted run may have counted a cycle more than it had: idle is what is left
    means[CycleUse(kind=CauseKind.IDLE, stage=stage)] = run.cycles - sum(means.values(), Fraction())
    return _rounded(means)


def _of_node(node: NodeStatistics, stage: int) -> dict[CycleUse, int]:
    """The PE-cycles of a node that are not idle."""
    kinds = {
        CauseKind.FIRING: node.busy,
        CauseKind.STARVED_BY_MEMORY: node.starved_by_memory,
        CauseKind.BLOCKED_BY_MEMORY: node.blocked_by_memory,
        CauseKind.INTERVAL: node.waiting - node.empty,
        CauseKind.EMPTY: node.empty,
    }
    found = {CycleUse(kind=kind, stage=stage): cycles for kind, cycles in kinds.items()}
    for kind, by_channel in (
        (CauseKind.STARVED, node.starved_by),
        (CauseKind.BLOCKED, node.blocked_by),
    ):
        for name, cycles in by_channel.items():
            found[CycleUse(kind=kind, channel=name, stage=stage)] = cycles
    return found


def _rounded(means: Mapping[CycleUse, Fraction]) -> dict[CycleUse, int]:
    """Integers with the sum of the fractions, which is one: each is rounded down or up."""
    found = {use: floor(mean) for use, mean in means.items()}
    missing = int(sum(means.values(), Fraction())) - sum(found.values())
    for use in sorted(means, key=lambda use: found[use] - means[use])[:missing]:
        found[use] += 1
    return {use: cycles for use, cycles in found.items() if cycles}
