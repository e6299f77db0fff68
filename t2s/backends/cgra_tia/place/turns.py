"""Who fires, for rates and depths: parts, and of a cell that operations share each of its turns.

In goes a netlist; out come numbers for its firers.  Firing ``k`` of a turn is the one for the
operands number ``k``, so that a turn of a later stage fires for them some rounds after the first
one.  The turns of a cell come one after the other, a cycle each: that is a circle of dependences
with one token and as many cycles as there are turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from t2s.backends.cgra_tia.netlist import CellTurn, Endpoint, NetCell, Netlist
from t2s.backends.cgra_tia.place.circles import Dependence
from t2s.backends.cgra_tia.place.sites import parts_of
from t2s.backends.cgra_tia.program import Instruction

SAME_CELL = -1
"""The branch of a dependence that is none: two turns of one cell."""


@dataclass(kw_only=True)
class Firers:
    """The numbers of all that fires: parts in their order, then the later turns of cells.

    ``names`` are those of the parts.  ``turns`` are the dependences between turns.
    """

    netlist: Netlist
    names: list[str] = field(init=False)
    turns: list[Dependence] = field(init=False, default_factory=list)
    _sources: dict[Endpoint, int] = field(init=False, default_factory=dict)
    _sinks: dict[Endpoint, int] = field(init=False, default_factory=dict)
    _bursts: dict[Endpoint, int] = field(init=False, default_factory=dict)
    _numbers: dict[str, int] = field(init=False)
    _instructions: dict[int, tuple[Instruction, ...]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.names = [part.name for part in parts_of(self.netlist)]
        self._numbers = {name: number for number, name in enumerate(self.names)}
        for number, cell in enumerate(self.netlist.cells):
            self._instructions[number] = cell.program.instructions
            if len(cell.turns) > 1:
                self._share(number, cell)

    @property
    def period(self) -> int:
        """The turns of the cell that has most of them: nothing fires more often than that."""
        return max((len(cell.turns) for cell in self.netlist.cells if cell.turns), default=1)

    def source(self, end: Endpoint) -> int:
        """Who sends from an output."""
        return self._sources.get(end, self._numbers[end.part])

    def sink(self, end: Endpoint) -> int:
        """Who takes from an input; of the tags of shared cells the first turn."""
        return self._sinks.get(end, self._numbers[end.part])

    def burst(self, end: Endpoint) -> int:
        """The tokens that an input takes for one firing: a tag for each turn of a shared cell."""
        return self._bursts.get(end, 1)

    def instructions(self, firer: int) -> tuple[Instruction, ...] | None:
        """What a cell, or one of its turns, may fire; ``None`` for a unit."""
        return self._instructions.get(firer)

    def _share(self, number: int, cell: NetCell) -> None:
        leader = _leader(cell)
        if leader is None:
            return
        self._bursts[Endpoint(part=cell.name, port=leader)] = len(cell.turns)
        firers = [number, *range(len(self.names), len(self.names) + len(cell.turns) - 1)]
        self.names += [cell.name] * (len(cell.turns) - 1)
        for firer, turn in zip(firers, cell.turns, strict=True):
            mine = tuple(i for i in cell.program.instructions if _is_of(i, leader, turn))
            self._instructions[firer] = mine
            for instruction in mine:
                for port in instruction.outputs:
                    self._sources[Endpoint(part=cell.name, port=port)] = firer
                for port in instruction.takes:
                    if port != leader:
                        self._sinks[Endpoint(part=cell.name, port=port)] = firer
        self.turns += _in_turn(firers, [turn.stage for turn in cell.turns])


def _leader(cell: NetCell) -> int | None:
    """The input whose tags say whose turn it is."""
    tags = {tag for turn in cell.turns for tag in turn.tags}
    for port in range(64):
        checked = {
            check.tag
            for instruction in cell.program.instructions
            for check in instruction.trigger.checks
            if check.channel == port and port in instruction.takes
        }
        if len(tags) > 1 and tags <= checked:
            return port
    return None


def _is_of(instruction: Instruction, leader: int, turn: CellTurn) -> bool:
    checks = instruction.trigger.checks
    return any(check.channel == leader and check.tag in turn.tags for check in checks)


def _in_turn(firers: Sequence[int], stages: Sequence[int]) -> list[Dependence]:
    """Each turn a cycle after the one before it, and the first one after the last one."""
    found = []
    for at, (firer, stage) in enumerate(zip(firers, stages, strict=True)):
        after = (at + 1) % len(firers)
        round_ended = 1 if after == 0 else 0
        found.append(
            Dependence(
                source=firer,
                sink=firers[after],
                latency=1,
                tokens=stage - stages[after] + round_ended,
                branch=SAME_CELL,
            )
        )
    return found
