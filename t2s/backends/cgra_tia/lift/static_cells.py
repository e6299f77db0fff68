"""Static cells: their n-th firing is known without running them.

A static cell stays in one predicate state, and each of its instructions takes a token from one
input, the *leader*.  The n-th firing takes the n-th token of the leader, whose tag chooses the
instruction.  The leader is fed by a ``seq`` or ``ld`` unit, perhaps through other static cells, so
the cell runs the nest of that unit, and its tags are conditions on the loops.  Before that, a cell
may fire a few instructions in sequence (the *prologue*), for example to load a stationary operand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from t2s.backends.cgra_tia import program as isa
from t2s.backends.cgra_tia.netlist import (
    AffineSum,
    Netlist,
    StreamLoop,
    StreamUnit,
    TagCase,
    UnitCondition,
    UnitKind,
)
from t2s.core.ops import Array

_MOST_STEPS = 1 << 20
"""Steps of a nest that are looked at one by one."""

_NOT_STATIC = frozenset({isa.Opcode.HALT, isa.Opcode.LSW, isa.Opcode.SSW})


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedSteps:
    """A nest, and the tag of each of its steps: that of the first case that holds, or 0."""

    loops: tuple[StreamLoop, ...] = ()
    tags: tuple[TagCase, ...] = ()

    @property
    def possible(self) -> frozenset[int]:
        """The tags that can occur."""
        tags: set[int] = set()
        for case in self.tags:
            tags.add(case.tag)
            if not case.when:
                return frozenset(tags)
        return frozenset({0, *tags})


def restricted(nest: TaggedSteps, tags: frozenset[int]) -> TaggedSteps | None:
    """The nest of the steps with these tags; ``None`` if they are not a range of each loop."""
    sums = [condition.sum for case in nest.tags for condition in case.when]
    used = [
        axis
        for axis in range(len(nest.loops))
        if any(total.coefficients[axis : axis + 1] not in ((), (0,)) for total in sums)
    ]
    extents = [loop.extent.constant for loop in nest.loops]
    if not used or any(any(loop.extent.coefficients) for loop in nest.loops):
        return None
    if min(extents) < 1 or prod(extents[axis] for axis in used) > _MOST_STEPS:
        return None
    steps = np.indices([extents[axis] if axis in used else 1 for axis in range(len(extents))])
    selected = np.isin(_tags_at(nest.tags, steps), sorted(tags))
    if not selected.any():
        return None
    low, high = [0] * len(extents), [extent - 1 for extent in extents]
    for axis in used:
        others = tuple(n for n in range(selected.ndim) if n != axis)
        positions = np.flatnonzero(selected.any(axis=others))
        low[axis], high[axis] = int(positions[0]), int(positions[-1])
    box = tuple(slice(a, b + 1) for a, b in zip(low, high, strict=True))
    if not selected[box].all():
        return None
    return TaggedSteps(
        loops=tuple(
            replace(loop, extent=AffineSum(constant=b - a + 1))
            for loop, a, b in zip(nest.loops, low, high, strict=True)
        ),
        tags=tuple(
            replace(case, when=tuple(_moved(condition, low) for condition in case.when))
            for case in nest.tags
        ),
    )


def _tags_at(cases: Sequence[TagCase], steps: Array) -> Array:
    """The tag of each step of a grid."""
    result = np.zeros(steps.shape[1:], np.int64)
    for case in reversed(cases):
        holds = np.ones(result.shape, np.bool_)
        for condition in case.when:
            total = np.full(result.shape, condition.sum.constant, np.int64)
            for factor, index in zip(condition.sum.coefficients, steps, strict=False):
                total += factor * index
            holds &= total == 0 if condition.equal else total >= 0
        result = np.where(holds, case.tag, result)
    return result


def _moved(condition: UnitCondition, low: Sequence[int]) -> UnitCondition:
    """The condition for loops that start at these values of the original loops."""
    moved = AffineSum(
        constant=condition.sum.at(tuple(low)), coefficients=condition.sum.coefficients
    )
    return replace(condition, sum=moved)


@dataclass(frozen=True, slots=True, kw_only=True)
class TagAction:
    """An instruction, and the tags of the leader for which it fires (``None``: all)."""

    instruction: isa.Instruction
    tags: frozenset[int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticFirings:
    """The firings of a cell: the prologue once, then an action in each step of a nest."""

    nest: TaggedSteps
    actions: tuple[TagAction, ...]
    prologue: tuple[isa.Instruction, ...] = ()


@dataclass(slots=True)
class StaticCells:
    """Finds the static cells of a netlist; ``firings`` are those by name."""

    netlist: Netlist
    firings: dict[str, StaticFirings] = field(default_factory=dict)
    _programs: dict[str, isa.CellProgram] = field(init=False)
    _units: dict[str, StreamUnit] = field(init=False)
    _sources: dict[tuple[str, int], tuple[str, int]] = field(init=False)

    def __post_init__(self) -> None:
        self._programs = {cell.name: cell.program for cell in self.netlist.cells}
        self._units = {unit.name: unit for unit in self.netlist.units}
        self._sources = {
            (sink.end.part, sink.end.port): (net.source.part, net.source.port)
            for net in self.netlist.nets
            for sink in net.sinks
        }
        undecided = list(self._programs)
        while undecided:
            decided = {
                name: firings for name in undecided if (firings := self._try(name)) is not None
            }
            if not decided:
                break
            self.firings |= decided
            undecided = [name for name in undecided if name not in decided]

    def _try(self, cell: str) -> StaticFirings | None:
        prologue, instructions = isa.prologue_of(self._programs[cell].instructions)
        if not all(map(_is_plain, (*prologue, *instructions))):
            return None
        if not all(self._certain(cell, check) for i in prologue for check in i.trigger.checks):
            return None
        always = [port for port in range(64) if all(port in i.takes for i in instructions)]
        for leader in always if instructions else ():
            nest = self._stream(self._sources.get((cell, leader)))
            actions = None if nest is None else self._actions(cell, leader, nest, instructions)
            if nest is None or actions is None:
                continue
            if not prologue or not any(any(loop.extent.coefficients) for loop in nest.loops):
                return StaticFirings(nest=nest, actions=actions, prologue=prologue)
        return None

    def _stream(self, source: tuple[str, int] | None) -> TaggedSteps | None:
        """The nest and the tags of all tokens from an output, if these are known."""
        if source is None:
            return None
        part, port = source
        if part in self._units:
            unit = self._units[part]
            if unit.kind in (UnitKind.LOAD, UnitKind.SEQUENCE):
                return TaggedSteps(loops=unit.loops, tags=unit.tags)
            return None
        firings = self.firings.get(part)
        if firings is None or any(port in i.outputs for i in firings.prologue):
            return None
        sending = [action for action in firings.actions if port in action.instruction.outputs]
        nest: TaggedSteps | None = firings.nest
        if len(sending) < len(firings.actions):
            tags = frozenset[int]().union(*(action.tags or () for action in sending))
            nest = restricted(firings.nest, tags)
        if nest is None:
            return None
        sent = {tag: _tag(action) for action in sending for tag in action.tags or (None,)}
        cases = tuple(
            TagCase(when=case.when, tag=sent.get(case.tag, sent.get(None, 0))) for case in nest.tags
        )
        rest = sent.get(0, sent.get(None, 0))
        return TaggedSteps(loops=nest.loops, tags=_shortened(cases, rest))

    def _possible(self, source: tuple[str, int] | None) -> frozenset[int]:
        """The tags that tokens from an output can have."""
        if source is None:
            return frozenset()
        part, port = source
        if part in self._units:
            return TaggedSteps(tags=self._units[part].tags).possible
        written = (i for i in self._programs[part].instructions if port in i.outputs)
        return frozenset(
            i.destination.tag for i in written if isinstance(i.destination, isa.ToOutputs)
        )

    def _certain(self, cell: str, check: isa.TagCheck) -> bool:
        """Whether every token that can arrive passes a check."""
        possible = self._possible(self._sources.get((cell, check.channel)))
        return bool(possible) and all(_holds(check, tag) for tag in possible)

    def _actions(
        self, cell: str, leader: int, nest: TaggedSteps, instructions: Sequence[isa.Instruction]
    ) -> tuple[TagAction, ...] | None:
        """The instruction for each tag of the leader; ``None`` if something else decides too."""
        chosen: dict[int, set[int]] = {}
        for tag in sorted(nest.possible):
            fitting = [n for n, i in enumerate(instructions) if _accepts(i, leader, {tag})]
            if len(fitting) != 1:
                return None
            chosen.setdefault(fitting[0], set()).add(tag)
        for number in chosen:
            others = (c for c in instructions[number].trigger.checks if c.channel != leader)
            if not all(self._certain(cell, check) for check in others):
                return None
        if len(chosen) == 1:
            return (TagAction(instruction=instructions[next(iter(chosen))], tags=None),)
        return tuple(
            TagAction(instruction=instructions[number], tags=frozenset(tags))
            for number, tags in sorted(chosen.items())
        )


def _is_plain(instruction: isa.Instruction) -> bool:
    """Whether it writes no predicate, and takes everything that it reads and checks."""
    trigger = instruction.trigger
    if isinstance(instruction.destination, isa.ToPredicate):
        return False
    if isinstance(instruction.destination, isa.ToRegister) and instruction.opcode in isa.ON_FMA:
        return False
    checked = {check.channel for check in trigger.checks}
    read = {s.number for s in instruction.sources if isinstance(s, isa.FromChannel)}
    taken = set(instruction.takes)
    return checked == taken and read <= taken and instruction.opcode not in _NOT_STATIC


def _accepts(instruction: isa.Instruction, channel: int, tags: Iterable[int]) -> bool:
    checks = [check for check in instruction.trigger.checks if check.channel == channel]
    return all(_holds(check, tag) for check in checks for tag in tags)


def _holds(check: isa.TagCheck, tag: int) -> bool:
    return (check.tag == tag) is check.equal


def _tag(action: TagAction) -> int:
    destination = action.instruction.destination
    return destination.tag if isinstance(destination, isa.ToOutputs) else 0


def _shortened(cases: Sequence[TagCase], rest: int) -> tuple[TagCase, ...]:
    """Equivalent cases; the last one is for all other steps, if their tag is not 0."""
    if all(case.tag == rest for case in cases):
        cases = ()
    return tuple(cases) if rest == 0 else (*cases, TagCase(when=(), tag=rest))
