"""What decides which instruction fires: reachable predicate states, and the order of waiting.

A program is *decidable* if tokens and tags alone decide what fires, and never whether a token or
room is there already.  In each reachable predicate state it waits for the channels that all of its
candidates check; their tags then tell the candidates apart, where these wait for further channels,
or write outputs, which may be full.

In goes a program and the channels that anybody feeds; out come the states.  Refused, with both
instructions and the channel: candidates of which the later one may overtake the earlier one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from t2s.backends.cgra_tia.program import CellProgram, Instruction, TagCheck, ToPredicate
from t2s.core.errors import UserError


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Instructions that wait for the same channels, in textual order, and these channels."""

    channels: tuple[int, ...]
    instructions: tuple[Instruction, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PredicateState:
    """A reachable state: what it waits for at first, and then the groups of candidates."""

    predicates: int
    channels: tuple[int, ...]
    groups: tuple[Candidates, ...]


def states_of(program: CellProgram, name: str, fed: Collection[int]) -> tuple[PredicateState, ...]:
    """The states that can be reached, the first one first; ``name`` is for errors."""
    found: dict[int, PredicateState] = {}
    waiting = [0]
    while waiting:
        predicates = waiting.pop()
        if predicates in found:
            continue
        state = _state(program, name, fed, predicates)
        found[predicates] = state
        for group in state.groups:
            for instruction in group.instructions:
                waiting += reversed(next_states(instruction, predicates))
    return tuple(found.values())


def next_states(instruction: Instruction, predicates: int) -> tuple[int, ...]:
    """The predicates after a firing: two cases, zero and not zero, where the result decides."""
    results = [predicates]
    if isinstance(instruction.destination, ToPredicate):
        bit = 1 << instruction.destination.number
        results = [predicates & ~bit, predicates | bit]
    after = [(bits & ~instruction.clears) | instruction.sets for bits in results]
    return tuple(dict.fromkeys(after))


def exclusive(one: Instruction, other: Instruction, channels: Collection[int]) -> bool:
    """Whether the tags on some channels can never allow both."""
    return any(
        a.channel == b.channel and a.channel in channels and _apart(a, b)
        for a in one.trigger.checks
        for b in other.trigger.checks
    )


def _apart(one: TagCheck, other: TagCheck) -> bool:
    if one.equal and other.equal:
        return one.tag != other.tag
    return one.equal is not other.equal and one.tag == other.tag


def _state(
    program: CellProgram, name: str, fed: Collection[int], predicates: int
) -> PredicateState:
    candidates = [
        i
        for i in program.instructions
        if not (i.trigger.ones & ~predicates or i.trigger.zeros & predicates)
        and _channels(i) <= set(fed)
    ]
    for number, instruction in enumerate(candidates):
        if not instruction.trigger.checks and not instruction.outputs:
            candidates = candidates[: number + 1]  # it fires whatever there is
            break
    sets = [_channels(instruction) for instruction in candidates]
    common = set[int]().union(*sets[:1]).intersection(*sets)
    for number, first in enumerate(candidates):
        for second in candidates[number + 1 :]:
            _check_pair(program, name, first, second, common)
    groups: dict[frozenset[int], list[Instruction]] = {}
    for instruction, channels in zip(candidates, sets, strict=True):
        groups.setdefault(frozenset(channels), []).append(instruction)
    return PredicateState(
        predicates=predicates,
        channels=tuple(sorted(common)),
        groups=tuple(
            Candidates(channels=tuple(sorted(channels - common)), instructions=tuple(group))
            for channels, group in groups.items()
        ),
    )


def _check_pair(
    program: CellProgram, name: str, first: Instruction, second: Instruction, common: set[int]
) -> None:
    """Refuse two candidates of which the second may fire because the first one waits."""
    different = _channels(first) ^ _channels(second)
    if different and not exclusive(first, second, common):
        waits = f"for a token of %i{min(different)}"
    elif first.outputs and not exclusive(first, second, _channels(first)):
        waits = f"for room in %o{first.outputs[0]}"
    else:
        return
    numbers = program.instructions
    one, other = (_shown(numbers.index(i), i) for i in (first, second))
    raise UserError(
        f"the program of {name} cannot be a graph: what fires depends on time",
        expected="tags and predicates alone to decide which instruction fires",
        given=f"{other} fires if {one} waits {waits}",
        hint="the interpreter runs such programs",
    )


def _channels(instruction: Instruction) -> set[int]:
    return {check.channel for check in instruction.trigger.checks}


def _shown(number: int, instruction: Instruction) -> str:
    line = "" if instruction.position is None else f" (line {instruction.position.line})"
    return f"instruction {number}{line}"


def reachable(states: Sequence[PredicateState]) -> tuple[Instruction, ...]:
    """The instructions that may fire."""
    found = {id(i): i for state in states for group in state.groups for i in group.instructions}
    return tuple(found.values())
