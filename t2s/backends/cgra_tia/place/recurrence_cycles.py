"""Recurrence cycles: parts that wait for one another, and which cycle limits the rate of a design.

A dependence has a latency and a number of tokens: firing ``k + tokens`` of the sink comes at least
``latency`` cycles after firing ``k`` of the source.  So the rate of a part in a cycle is at most
the tokens of the cycle divided by its latency.  A cycle without tokens never starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from t2s.backends.cgra_tia.netlist import CellTurn, Endpoint, NetCell, Netlist
from t2s.backends.cgra_tia.place.sites import parts_of
from t2s.backends.cgra_tia.program import CellProgram, Instruction, ToPredicate


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependence:
    """The sink waits for the source; ``branch`` is the branch that causes it.

    With ``is_space`` the sink is the sender of the branch, and waits for room in it.
    """

    source: int
    sink: int
    latency: int
    tokens: int = 0
    branch: int = -1
    is_space: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurrenceCycle:
    """Dependences in a row, the last of which leads back to the first."""

    members: tuple[Dependence, ...]

    @property
    def latency(self) -> int:
        """Clock cycles for one round."""
        return sum(member.latency for member in self.members)

    @property
    def tokens(self) -> int:
        """Firings of a part in one round."""
        return sum(member.tokens for member in self.members)

    @property
    def period(self) -> Fraction | None:
        """Clock cycles per firing; ``None`` if the cycle never starts."""
        return Fraction(self.latency, self.tokens) if self.tokens > 0 else None


def slowest_cycle(
    parts: int, dependences: Sequence[Dependence], period: Fraction = Fraction(1)
) -> RecurrenceCycle | None:
    """The cycle that allows the fewest firings; ``None`` if all allow one in each period.

    A cycle that never starts is the slowest.
    """
    slowest: RecurrenceCycle | None = None
    while (better := _slower_cycle(parts, dependences, period)) is not None:
        slowest = better
        if better.period is None:
            break
        period = better.period
    return slowest


def offsets(parts: int, dependences: Sequence[Dependence], period: Fraction) -> list[int] | None:
    """The earliest first firings of parts that fire once in a period.

    In clock cycles times the denominator of the period.  ``None`` if some cycle is slower.
    """
    longest, _, part_on_cycle = _longest(parts, dependences, period)
    return longest if part_on_cycle is None else None


def _slower_cycle(
    parts: int, dependences: Sequence[Dependence], period: Fraction
) -> RecurrenceCycle | None:
    """Some cycle that takes longer than the period for a firing."""
    _, before, start = _longest(parts, dependences, period)
    if start is None:
        return None
    members = []
    part = start
    while True:
        member = dependences[before[part]]
        members.append(member)
        part = member.source
        if part == start:
            return RecurrenceCycle(members=tuple(reversed(members)))


def _longest(
    parts: int, dependences: Sequence[Dependence], period: Fraction
) -> tuple[list[int], list[int], int | None]:
    """Longest paths to all parts, the last dependence of each path, and a part in a cycle.

    The part is in a cycle of positive length, if there is one.
    """
    top, bottom = period.numerator, period.denominator
    edges = [
        (item.source, item.sink, item.latency * bottom - item.tokens * top) for item in dependences
    ]
    longest = [0] * parts
    before = [-1] * parts
    for _ in range(parts + 1):
        changed = False
        for number, (source, sink, length) in enumerate(edges):
            if longest[source] + length > longest[sink]:
                longest[sink] = longest[source] + length
                before[sink] = number
                changed = True
        if not changed:
            return longest, before, None
        part_on_cycle = _part_on_cycle(before, dependences)
        if part_on_cycle is not None:
            return longest, before, part_on_cycle
    raise AssertionError("an acyclic path has fewer steps than there are parts")


def _part_on_cycle(before: Sequence[int], dependences: Sequence[Dependence]) -> int | None:
    """A part that lies on a cycle of last dependences."""
    seen = [0] * len(before)
    for start in range(len(before)):
        part = start
        while not seen[part]:
            seen[part] = start + 1
            if before[part] < 0:
                break
            part = dependences[before[part]].source
        else:
            if seen[part] == start + 1:
                return part
    return None


# Firing sites, for rates and capacities: parts, and each turn of a cell that operations share.
#
# Firing ``k`` of a turn is the one for the operands number ``k``, so a turn of a later stage fires
# for them some rounds after the first one.  The turns of a cell alternate, one per clock cycle: a
# cycle of dependences with one token and as many clock cycles as there are turns.

SAME_CELL = -1
"""The branch of a dependence that is none: two turns of one cell."""


@dataclass(kw_only=True)
class FiringSites:
    """The numbers of firing sites: the parts in order, then the later turns of cells.

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
        """The turns of the cell that has most of them, which bounds the rate of everything."""
        return max((len(cell.turns) for cell in self.netlist.cells if cell.turns), default=1)

    def source(self, end: Endpoint) -> int:
        """The site that sends from an output."""
        return self._sources.get(end, self._numbers[end.part])

    def sink(self, end: Endpoint) -> int:
        """The site that takes from an input; the first turn for the tags of shared cells."""
        return self._sinks.get(end, self._numbers[end.part])

    def burst(self, end: Endpoint) -> int:
        """The tokens that an input takes in one firing: a tag for each turn of a shared cell."""
        return self._bursts.get(end, 1)

    def instructions(self, firer: int) -> tuple[Instruction, ...] | None:
        """The instructions that a cell, or one of its turns, may fire; ``None`` for a unit."""
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
    """The input whose tags select the turn."""
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
    """Each turn follows the one before it by a clock cycle, and the first one follows the last."""
    dependences = []
    for at, (firer, stage) in enumerate(zip(firers, stages, strict=True)):
        after = (at + 1) % len(firers)
        round_ended = 1 if after == 0 else 0
        dependences.append(
            Dependence(
                source=firer,
                sink=firers[after],
                latency=1,
                tokens=stage - stages[after] + round_ended,
                branch=SAME_CELL,
            )
        )
    return dependences


# The fewest instructions that a cell fires for each token that it takes.
#
# A cell that chooses by data fires twice for a value: a comparison sets a predicate, and then one
# of two moves takes the value.  So it, and all that depends on it, fires in every second cycle,
# whatever the channels hold.
#
# The result is the fastest cycle through the predicate states of the program.  Tokens decide which
# instruction fires in a state, so every instruction that may fire counts.


def firings_per_token(program: CellProgram) -> Fraction | None:
    """Firings per firing that takes a token, in the fastest cycle; ``None`` without one."""
    steps = _steps(program)
    numbers = {state: number for number, state in enumerate(dict.fromkeys(s for s, _, _ in steps))}
    # the fastest cycle has most takes per firing: takes are the latencies, firings the tokens
    fastest = slowest_cycle(
        len(numbers),
        [
            Dependence(source=numbers[state], sink=numbers[after], latency=takes, tokens=1)
            for state, takes, after in steps
            if after in numbers
        ],
        Fraction(0),
    )
    return None if fastest is None else Fraction(fastest.tokens, fastest.latency)


def _steps(program: CellProgram) -> list[tuple[int, int, int]]:
    """Transitions: predicates, whether the firing takes a token, predicates after it."""
    transitions: list[tuple[int, int, int]] = []
    pending, known = [0], {0}
    while pending:
        state = pending.pop()
        for instruction in _may_fire(program, state):
            for after in _after(instruction, state):
                transitions.append((state, int(bool(instruction.takes)), after))
                if after not in known:
                    known.add(after)
                    pending.append(after)
    return transitions


def _may_fire(program: CellProgram, state: int) -> list[Instruction]:
    """The instructions that match the predicates, up to the first one that waits for no token."""
    candidates = []
    for instruction in program.instructions:
        if instruction.trigger.matches(state):
            candidates.append(instruction)
            if not instruction.trigger.checks and not instruction.outputs:
                break
    return candidates


def _after(instruction: Instruction, state: int) -> list[int]:
    after = (state | instruction.sets) & ~instruction.clears
    match instruction.destination:
        case ToPredicate(number=number):
            return [after & ~(1 << number), after | 1 << number]
    return [after]
