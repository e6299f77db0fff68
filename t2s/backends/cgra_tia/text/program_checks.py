"""What whole programs may not be, and what in them is odd.

Goes in: programs, and the sizes of the core.  Comes out: warnings, or an error.  Refused are
programs of profile A in which no ``halt`` can be reached, so that a run never ends.  Odd are
instructions that can never fire, operators with missing operands or too many, channels that are
read without a check, and constants and a result that go to one predicate, about which the public
machines differ.

Which predicates a program can reach follows from the instructions alone: a result in a predicate
may be either value, tokens may come in any order, and an instruction never fires where an earlier
one fires whenever it could.  So does which channels are sure to hold a token then: those that were
checked, or read, on every way there, and not taken from since.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

from t2s.backends.cgra_tia.fabric import CoreParameters, Profile
from t2s.backends.cgra_tia.opcodes import ON_FMA, Opcode
from t2s.backends.cgra_tia.program import (
    CellProgram,
    FromChannel,
    FromRegister,
    Instruction,
    TextPosition,
    ToPredicate,
    ToRegister,
)
from t2s.backends.cgra_tia.text.places import TextPlace, block_name
from t2s.core.errors import UserError, warn

_SOURCES = {
    **dict.fromkeys((Opcode.NOP, Opcode.HALT), (0, 0)),
    **dict.fromkeys((Opcode.MOV, Opcode.LSW, Opcode.RLW), (1, 1)),
    **dict.fromkeys((Opcode.ITF, Opcode.UTF, Opcode.FTI, Opcode.FTU), (1, 1)),
    **dict.fromkeys((Opcode.CLZ, Opcode.CTZ), (1, 2)),
    **dict.fromkeys((Opcode.SB, Opcode.MAC, Opcode.FMAC), (3, 3)),
}
"""Fewest and most sources of an operator that means something; two for those not named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The predicates that a program can come to, and the numbers of instructions that can fire.

    ``maybe_empty`` are instructions and channels that they use without a check, where nothing
    before has made sure that there is a token.
    """

    states: frozenset[int]
    firing: frozenset[int]
    maybe_empty: frozenset[tuple[int, int]] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class OddInstruction:
    """Something odd: what, what is expected instead, what is there, and what to try."""

    instruction: Instruction
    message: str
    expected: str
    given: str
    hint: str


def reach(program: CellProgram) -> Reach:
    """What a program can come to from predicates that are all zero."""
    late = {
        instruction.destination.number
        for instruction in program.instructions
        if instruction.opcode in ON_FMA and isinstance(instruction.destination, ToRegister)
    }
    firing: dict[int, list[int]] = {}
    heads = {0: frozenset[int]()}
    todo = [0]
    while todo:
        state = todo.pop()
        if state not in firing:
            firing[state] = list(_firing(program, state, late))
        for number in firing[state]:
            instruction = program.instructions[number]
            checked = (check.channel for check in instruction.trigger.checks)
            after = heads[state].union(checked, instruction.unchecked).difference(instruction.takes)
            for found in _next_states(state, instruction):
                sure = heads.get(found, after) & after
                if heads.get(found) != sure:
                    heads[found] = sure
                    todo.append(found)
    return Reach(
        states=frozenset(heads),
        firing=frozenset(number for numbers in firing.values() for number in numbers),
        maybe_empty=frozenset(
            (number, channel)
            for state, numbers in firing.items()
            for number in numbers
            for channel in program.instructions[number].unchecked
            if channel not in heads[state]
        ),
    )


def _firing(program: CellProgram, state: int, late: Set[int]) -> Iterator[int]:
    """The instructions that can fire with some predicates."""
    earlier: list[Instruction] = []
    for number, instruction in enumerate(program.instructions):
        if not instruction.trigger.matches(state):
            continue
        if not any(_fires_first(other, instruction) for other in earlier):
            yield number
        if late.isdisjoint(_registers(instruction)):  # else it may wait for an FMA
            earlier.append(instruction)


def _registers(instruction: Instruction) -> Iterator[int]:
    """The registers that an instruction reads or writes."""
    for part in (*instruction.sources, instruction.destination):
        if isinstance(part, FromRegister | ToRegister):
            yield part.number


def _fires_first(earlier: Instruction, later: Instruction) -> bool:
    """Whether the earlier one can fire wherever the later one can, both of the same predicates."""
    return set(earlier.trigger.checks) <= set(later.trigger.checks) and set(earlier.outputs) <= set(
        later.outputs
    )


def _next_states(state: int, instruction: Instruction) -> Iterator[int]:
    if instruction.opcode is Opcode.HALT:
        return
    results = [state]
    if isinstance(instruction.destination, ToPredicate):
        bit = 1 << instruction.destination.number
        results = [state & ~bit, state | bit]
    for result in results:
        yield result & ~instruction.clears | instruction.sets


def odd_instructions(program: CellProgram) -> Iterator[OddInstruction]:
    """What is odd in a program, instruction by instruction."""
    reached = reach(program)
    for number, instruction in enumerate(program.instructions):
        if number not in reached.firing:
            yield OddInstruction(
                instruction=instruction,
                message=f"instruction {number} can never fire",
                expected="predicates that the program comes to, and no earlier instruction that "
                "fires wherever this one can",
                given=f"a trigger that never chooses {instruction.opcode.value}",
                hint="the first instruction in the text that can fire does",
            )
        for channel in instruction.unchecked if number in reached.firing else ():
            yield _without_check(number, instruction, channel, reached)
        destination, constants = instruction.destination, instruction.sets | instruction.clears
        if isinstance(destination, ToPredicate) and constants >> destination.number & 1:
            yield OddInstruction(
                instruction=instruction,
                message=f"instruction {number} writes %p{destination.number} twice",
                expected="a result, or a constant, for a predicate",
                given="both: here the constant wins, in pipelined cores it does not",
                hint=f"put Z for %p{destination.number} into the update",
            )
        fewest, most = _SOURCES.get(instruction.opcode, (2, 2))
        if not fewest <= len(instruction.sources) <= most and instruction.destination is not None:
            yield OddInstruction(
                instruction=instruction,
                message=f"instruction {number} gives {instruction.opcode.value} another number of "
                "operands than it uses",
                expected=f"{fewest} sources" if fewest == most else f"{fewest} or {most} sources",
                given=f"{len(instruction.sources)} sources; missing ones are 0",
                hint="OPERATOR DESTINATION, SOURCE, SOURCE",
            )


def _without_check(
    number: int, instruction: Instruction, channel: int, reached: Reach
) -> OddInstruction:
    verb = "takes from" if FromChannel(channel) not in instruction.sources else "reads"
    empty = (number, channel) in reached.maybe_empty
    return OddInstruction(
        instruction=instruction,
        message=f"instruction {number} {verb} %i{channel} without a check"
        + (", and it may be empty" if empty else " of its own"),
        expected=f"a check of %i{channel} in the trigger, which waits for a token",
        given="no such check: a run in which it is empty then ends with an error"
        if empty
        else "a token that an instruction before has checked, and nobody has taken since",
        hint=f"write `with %i{channel}.TAG` or `with !%i{channel}.TAG` behind the pattern",
    )


def check_programs(
    programs: Sequence[CellProgram],
    core: CoreParameters,
    *,
    text: str = "",
    file: str = "<text>",
    strict: bool = False,
) -> None:
    """Raise ``UserError`` for programs that cannot be, and warn about what is odd in them.

    ``text`` and ``file`` are for messages.  With ``strict`` what is odd is an error too.
    """
    lines = text.split("\n")
    for number, program in enumerate(programs):
        block = block_name(number, program.label)
        if core.profile is Profile.PUBLIC and not _halts(program):
            raise _place(program.position, lines, file, block).error(
                "no halt can be reached, so that a run never ends",
                expected="a halt among the instructions that can fire",
                given=f"{len(program.instructions)} instructions",
                hint="an element without work needs one too: when %p == XXXXXXXX: halt;",
            )
        for odd in odd_instructions(program):
            place = _place(odd.instruction.position, lines, file, block)
            if strict:
                raise place.error(
                    odd.message, expected=odd.expected, given=odd.given, hint=odd.hint
                )
            warn(
                f"in {block}, line {place.line}: {odd.message}",
                location=place.location,
                expected=odd.expected,
                given=odd.given,
                hint=odd.hint,
            )


def check_operators(programs: Sequence[CellProgram], there: frozenset[Opcode], what: str) -> None:
    """Raise ``UserError`` for an operator that the machine does not have (``what`` names it)."""
    for number, program in enumerate(programs):
        for instruction in program.instructions:
            if instruction.opcode in there:
                continue
            line = instruction.position.line if instruction.position else None
            where = "" if line is None else f", line {line}"
            raise UserError(
                f"in {block_name(number, program.label)}{where}: {what} has no operator "
                f"{instruction.opcode.value}, though it has a code",
                expected=f"one of {', '.join(o.value for o in Opcode if o in there)}",
                given=instruction.opcode.value,
            )


def _halts(program: CellProgram) -> bool:
    return any(
        program.instructions[number].opcode is Opcode.HALT for number in reach(program).firing
    )


def _place(position: TextPosition | None, lines: Sequence[str], file: str, block: str) -> TextPlace:
    line, column = (position.line, position.column) if position is not None else (1, 1)
    text = lines[line - 1] if line <= len(lines) else ""
    return TextPlace(file=file, line=line, column=column, text=text, block=block)
