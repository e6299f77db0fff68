"""What decides which instruction fires: reachable predicate states, and the order of waiting.

A program is *decidable* if tokens and tags alone decide what fires, and never whether a token or
room is there already.  In each reachable predicate state it waits for the channels that all of its
candidates check; their tags then tell the candidates apart, where these wait for further channels,
or write outputs, which may be full.

A register that a result of the FMA goes to is *pending* until an instruction reads or writes it,
which waits for the result as for a token.  So the states are those of the predicates and of what is
pending, and the result is a channel of its own (``LANDING``).

In goes a program and the channels that anybody feeds; out come the states.  Refused, with both
instructions and the channel: candidates of which the later one may overtake the earlier one, and
instructions that may find a channel empty that they do not check.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from t2s.backends.cgra_tia.opcodes import ON_FMA
from t2s.backends.cgra_tia.program import (
    CellProgram,
    FromRegister,
    Instruction,
    TagCheck,
    ToPredicate,
    ToRegister,
)
from t2s.backends.cgra_tia.text.program_checks import reach
from t2s.core.errors import UserError

LANDING = 64
"""The channel of the result that goes to register 0; those of other registers follow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Instructions that wait for the same channels, in textual order, and these channels."""

    channels: tuple[int, ...]
    instructions: tuple[Instruction, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PredicateState:
    """A reachable state: what it waits for at first, and then the groups of candidates.

    ``pending`` are the registers whose values have not come yet.
    """

    predicates: int
    channels: tuple[int, ...]
    groups: tuple[Candidates, ...]
    pending: frozenset[int] = frozenset()


def states_of(program: CellProgram, name: str, fed: Collection[int]) -> tuple[PredicateState, ...]:
    """The states that can be reached, the first one first; ``name`` is for errors."""
    _check_heads(program, name)
    found: dict[tuple[int, frozenset[int]], PredicateState] = {}
    waiting = [(0, frozenset[int]())]
    while waiting:
        predicates, pending = waiting.pop()
        if (predicates, pending) in found:
            continue
        state = _state(program, name, fed, predicates, pending)
        found[predicates, pending] = state
        for group in state.groups:
            for instruction in group.instructions:
                after = next_pending(instruction, pending)
                states = next_states(instruction, predicates)
                waiting += [(each, after) for each in reversed(states)]
    return tuple(found.values())


def landing(instruction: Instruction, pending: Collection[int]) -> list[int]:
    """The pending registers that an instruction waits for: those that it reads or writes."""
    used = {source.number for source in instruction.sources if isinstance(source, FromRegister)}
    if isinstance(instruction.destination, ToRegister):
        used.add(instruction.destination.number)
    return sorted(used.intersection(pending))


def slow_register(instruction: Instruction) -> int | None:
    """The register that a result of the FMA goes to."""
    match instruction.destination:
        case ToRegister(number=number) if instruction.opcode in ON_FMA:
            return number
    return None


def next_pending(instruction: Instruction, pending: frozenset[int]) -> frozenset[int]:
    """The registers that are pending after a firing."""
    left, slow = pending.difference(landing(instruction, pending)), slow_register(instruction)
    return left if slow is None else left | {slow}


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
    program: CellProgram,
    name: str,
    fed: Collection[int],
    predicates: int,
    pending: frozenset[int],
) -> PredicateState:
    candidates = [
        i
        for i in program.instructions
        if i.trigger.matches(predicates) and _channels(i) <= set(fed)
    ]
    for number, instruction in enumerate(candidates):
        waits = instruction.trigger.checks or landing(instruction, pending)
        if not waits and not instruction.outputs:
            candidates = candidates[: number + 1]  # it fires whatever there is
            break
    waited = [_waited(instruction, pending) for instruction in candidates]
    always = set[int]().union(*waited[:1]).intersection(*waited)
    for number, first in enumerate(candidates):
        for second in candidates[number + 1 :]:
            _check_pair(program, name, (first, second), pending, always)
    groups: dict[frozenset[int], list[Instruction]] = {}
    used = [channels.union(i.unchecked) for i, channels in zip(candidates, waited, strict=True)]
    common = set[int]().union(*used[:1]).intersection(*used)
    for instruction, channels in zip(candidates, used, strict=True):
        groups.setdefault(frozenset(channels), []).append(instruction)
    return PredicateState(
        predicates=predicates,
        channels=tuple(sorted(common)),
        groups=tuple(
            Candidates(channels=tuple(sorted(channels - common)), instructions=tuple(group))
            for channels, group in groups.items()
        ),
        pending=pending,
    )


def _check_heads(program: CellProgram, name: str) -> None:
    """Refuse an instruction that may find a channel empty: a node would wait for the token."""
    empty = sorted(reach(program).maybe_empty)
    if not empty:
        return
    number, channel = empty[0]
    raise UserError(
        f"the program of {name} cannot be a graph: what a firing finds depends on time",
        expected=f"a check of %i{channel} in the trigger, or in that of an instruction before",
        given=f"{_shown(number, program.instructions[number])} uses %i{channel}, "
        "which may be empty",
        hint="the interpreter runs such programs",
    )


def _check_pair(
    program: CellProgram,
    name: str,
    pair: tuple[Instruction, Instruction],
    pending: Collection[int],
    common: set[int],
) -> None:
    """Refuse two candidates of which the second may fire because the first one waits."""
    first, second = pair
    different = _waited(first, pending) ^ _waited(second, pending)
    if different and not exclusive(first, second, common):
        channel = min(different)
        waits = f"for a token of %i{channel}"
        if channel >= LANDING:
            waits = f"for the FMA's result in %r{channel - LANDING}"
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


def _waited(instruction: Instruction, pending: Collection[int]) -> set[int]:
    """All channels that an instruction waits for, those of results that land included."""
    return _channels(instruction) | {LANDING + n for n in landing(instruction, pending)}


def _shown(number: int, instruction: Instruction) -> str:
    return f"instruction {number}{instruction.line_text}"


def reachable(states: Sequence[PredicateState]) -> tuple[Instruction, ...]:
    """The instructions that may fire."""
    found = {id(i): i for state in states for group in state.groups for i in group.instructions}
    return tuple(found.values())
