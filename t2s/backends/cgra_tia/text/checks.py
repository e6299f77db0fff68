"""Checks of instructions and of whole programs: the rules of a core, and doubtful code.

The public assembler checks few of these rules, and silently generates wrong code for the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

from t2s.backends.cgra_tia import program as isa
from t2s.backends.cgra_tia.fabric import CoreParameters, Profile
from t2s.backends.cgra_tia.text.places import TextPlace, block_name
from t2s.core.errors import UserError, warn

MOST_SOURCES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenRule:
    """A rule that an instruction breaks.

    ``part`` is the part of the instruction: ``pattern``, ``check N``, ``operation``,
    ``destination``, ``source N``, ``take N`` (the channel) or ``update``.
    """

    part: str
    message: str
    expected: str
    given: str
    hint: str | None = None


def tag_bits(core: CoreParameters) -> int:
    """Bits of a tag."""
    return (core.tags - 1).bit_length()


def broken_rule(instruction: isa.Instruction, core: CoreParameters) -> BrokenRule | None:
    """The first rule that an instruction breaks, in the order of the text."""
    for rules in (_trigger_rules, _source_rules, _destination_rules, _effect_rules):
        for broken in rules(instruction, core):
            return broken
    return None


def _trigger_rules(instruction: isa.Instruction, core: CoreParameters) -> Iterator[BrokenRule]:
    trigger = instruction.trigger
    if (trigger.ones | trigger.zeros) >> core.predicates:
        number = (trigger.ones | trigger.zeros).bit_length() - 1
        yield _range("pattern", "predicate", f"%p{number}", core.predicates)
    if trigger.ones & trigger.zeros:
        yield BrokenRule(
            part="pattern",
            message="the trigger asks for a predicate to be one and zero",
            expected="0, 1 or X for each predicate",
            given=f"ones {trigger.ones:b}, zeros {trigger.zeros:b}",
        )
    for number, check in enumerate(trigger.checks):
        part = f"check {number}"
        if number == core.checks:
            yield BrokenRule(
                part=part,
                message="the trigger checks more channels than the hardware can",
                expected=f"at most {core.checks} checks",
                given=f"{len(trigger.checks)} checks",
            )
        if not 0 <= check.channel < core.inputs:
            yield _range(part, "input channel", f"%i{check.channel}", core.inputs)
        yield from _tag_rule(part, check.tag, core)


def _source_rules(instruction: isa.Instruction, core: CoreParameters) -> Iterator[BrokenRule]:
    immediates: set[int] = set()
    for number, source in enumerate(instruction.sources):
        part = f"source {number}"
        if number == MOST_SOURCES:
            yield BrokenRule(
                part=part,
                message="an operator has three operands at most",
                expected=f"at most {MOST_SOURCES} sources",
                given=f"{len(instruction.sources)} sources",
            )
        match source:
            case isa.FromRegister(number=register):
                if not 0 <= register < core.registers:
                    yield _range(part, "register", f"%r{register}", core.registers)
            case isa.FromChannel(number=channel):
                if not 0 <= channel < core.inputs:
                    yield _range(part, "input channel", f"%i{channel}", core.inputs)
            case isa.Immediate(pattern=pattern):
                immediates.add(pattern)
                if pattern < 0 or pattern >> core.immediate_width:
                    yield BrokenRule(
                        part=part,
                        message="the immediate does not fit",
                        expected=f"a number of {core.immediate_width} bits",
                        given=f"the pattern {pattern:#x}",
                    )
                if len(immediates) > 1:
                    yield BrokenRule(
                        part=part,
                        message="the instruction has two different immediates, but room for one",
                        expected="one immediate, which several sources may be",
                        given="another one; the public assembler would use the last one twice",
                        hint="put one of them into a register: init %rN, $NUMBER;",
                    )


def _destination_rules(instruction: isa.Instruction, core: CoreParameters) -> Iterator[BrokenRule]:
    match instruction.destination:
        case isa.ToRegister(number=number) if not 0 <= number < core.registers:
            yield _range("destination", "register", f"%r{number}", core.registers)
        case isa.ToPredicate(number=number) if not 0 <= number < core.predicates:
            yield _range("destination", "predicate", f"%p{number}", core.predicates)
        case isa.ToOutputs(channels=channels, tag=tag):
            for channel in channels:
                if not 0 <= channel < core.outputs:
                    yield _range("destination", "output channel", f"%o{channel}", core.outputs)
            if not channels or sorted(set(channels)) != list(channels):
                yield BrokenRule(
                    part="destination",
                    message="an output channel is listed twice",
                    expected="each output channel once, in increasing order",
                    given=", ".join(f"%o{channel}" for channel in channels) or "none",
                )
            yield from _tag_rule("destination", tag, core)
    stores = instruction.opcode is isa.Opcode.SSW
    if stores and (instruction.destination is not None or len(instruction.sources) != 2):
        yield BrokenRule(
            part="operation",
            message="ssw stores a word of the scratchpad, and has no result",
            expected="ssw VALUE, ADDRESS",
            given=f"{len(instruction.sources)} sources"
            + ("" if instruction.destination is None else " and a destination"),
        )
    if not stores and instruction.destination is None and instruction.sources:
        yield BrokenRule(
            part="operation",
            message=f"{instruction.opcode.value} has operands and no destination",
            expected="OPERATOR DESTINATION, SOURCE, ...",
            given=f"{len(instruction.sources)} sources",
        )


def _effect_rules(instruction: isa.Instruction, core: CoreParameters) -> Iterator[BrokenRule]:
    trigger = instruction.trigger
    for channel in instruction.takes:
        part = f"take {channel}"
        if not 0 <= channel < core.inputs:
            yield _range(part, "input channel", f"%i{channel}", core.inputs)
    if sorted(set(instruction.takes)) != list(instruction.takes):
        yield BrokenRule(
            part=f"take {instruction.takes[0]}",
            message="a channel is taken from twice",
            expected="each input channel once, in increasing order",
            given=", ".join(f"%i{channel}" for channel in instruction.takes),
        )
    updated = instruction.sets | instruction.clears
    if updated >> core.predicates:
        yield _range("update", "predicate", f"%p{updated.bit_length() - 1}", core.predicates)
    repeated = instruction.sets & trigger.ones | instruction.clears & trigger.zeros
    if repeated or instruction.sets & instruction.clears:
        number = (repeated or instruction.sets & instruction.clears).bit_length() - 1
        yield BrokenRule(
            part="update",
            message=f"the update of %p{number} cannot be encoded",
            expected="updates to one value that the trigger does not ask for already",
            given=f"sets {instruction.sets:b}, clears {instruction.clears:b}",
        )


def _range(part: str, kind: str, given: str, count: int) -> BrokenRule:
    letter = given[:2]
    return BrokenRule(
        part=part,
        message=f"unknown {kind} {given}",
        expected=f"{letter}0 to {letter}{count - 1}",
        given=given,
    )


def _tag_rule(part: str, tag: int, core: CoreParameters) -> Iterator[BrokenRule]:
    if tag < 0 or tag >> tag_bits(core):
        yield BrokenRule(
            part=part,
            message=f"unknown tag {tag}",
            expected=f"tags 0 to {(1 << tag_bits(core)) - 1}",
            given=str(tag),
        )


# Whole programs: errors, and warnings of odd code.
#
# An error is a program of profile A in which no ``halt`` is reachable, so that a run never ends.
# Odd are instructions that can never fire, operators with missing or surplus operands, channels
# that are read without a check, and a result and a constant for the same predicate, about which the
# public machines differ.
#
# The reachable predicates follow from the instructions alone: a result in a predicate may be either
# value, tokens may arrive in any order, and an instruction never fires if an earlier one always
# precedes it.  So do the channels that are sure to hold a token: those that were checked or read on
# every path, and not taken from since.

_SOURCES = {
    **dict.fromkeys((isa.Opcode.NOP, isa.Opcode.HALT), (0, 0)),
    **dict.fromkeys((isa.Opcode.MOV, isa.Opcode.LSW, isa.Opcode.RLW), (1, 1)),
    **dict.fromkeys((isa.Opcode.ITF, isa.Opcode.UTF, isa.Opcode.FTI, isa.Opcode.FTU), (1, 1)),
    **dict.fromkeys((isa.Opcode.CLZ, isa.Opcode.CTZ), (1, 2)),
    **dict.fromkeys((isa.Opcode.SB, isa.Opcode.MAC, isa.Opcode.FMAC), (3, 3)),
}
"""Fewest and most sources of an operator that means something; two for those not named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The predicates that a program can reach, and the numbers of instructions that can fire.

    ``maybe_empty`` are instructions and channels that they use without a check, although nothing
    before ensures that there is a token.
    """

    states: frozenset[int]
    firing: frozenset[int]
    maybe_empty: frozenset[tuple[int, int]] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class OddInstruction:
    """Odd code: what it is, what is expected, what is there, and what to try."""

    instruction: isa.Instruction
    message: str
    expected: str
    given: str
    hint: str


def reach(program: isa.CellProgram) -> Reach:
    """What a program can reach from predicates that are all zero."""
    late = {
        instruction.destination.number
        for instruction in program.instructions
        if instruction.opcode in isa.ON_FMA and isinstance(instruction.destination, isa.ToRegister)
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
            for successor in _next_states(state, instruction):
                sure = heads.get(successor, after) & after
                if heads.get(successor) != sure:
                    heads[successor] = sure
                    todo.append(successor)
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


def _firing(program: isa.CellProgram, state: int, late: Set[int]) -> Iterator[int]:
    """The instructions that can fire with some predicates."""
    earlier: list[isa.Instruction] = []
    for number, instruction in enumerate(program.instructions):
        if not instruction.trigger.matches(state):
            continue
        if not any(_fires_first(other, instruction) for other in earlier):
            yield number
        # one that waits for the FMA lets later ones fire
        if late.isdisjoint(_registers(instruction)):
            earlier.append(instruction)


def _registers(instruction: isa.Instruction) -> Iterator[int]:
    """The registers that an instruction reads or writes."""
    for part in (*instruction.sources, instruction.destination):
        if isinstance(part, isa.FromRegister | isa.ToRegister):
            yield part.number


def _fires_first(earlier: isa.Instruction, later: isa.Instruction) -> bool:
    """Whether the earlier instruction can fire whenever the later one can, for equal predicates."""
    return set(earlier.trigger.checks) <= set(later.trigger.checks) and set(earlier.outputs) <= set(
        later.outputs
    )


def _next_states(state: int, instruction: isa.Instruction) -> Iterator[int]:
    if instruction.opcode is isa.Opcode.HALT:
        return
    results = [state]
    if isinstance(instruction.destination, isa.ToPredicate):
        bit = 1 << instruction.destination.number
        results = [state & ~bit, state | bit]
    for result in results:
        yield result & ~instruction.clears | instruction.sets


def odd_instructions(program: isa.CellProgram) -> Iterator[OddInstruction]:
    """The odd instructions of a program, in order."""
    reached = reach(program)
    for number, instruction in enumerate(program.instructions):
        if number not in reached.firing:
            yield OddInstruction(
                instruction=instruction,
                message=f"instruction {number} can never fire",
                expected="predicates that the program reaches, and no earlier instruction that "
                "fires wherever this one can",
                given=f"a trigger that never chooses {instruction.opcode.value}",
                hint="the first instruction in the text that can fire does",
            )
        for channel in instruction.unchecked if number in reached.firing else ():
            yield _without_check(number, instruction, channel, reached)
        destination, constants = instruction.destination, instruction.sets | instruction.clears
        if isinstance(destination, isa.ToPredicate) and constants >> destination.number & 1:
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
    number: int, instruction: isa.Instruction, channel: int, reached: Reach
) -> OddInstruction:
    verb = "takes from" if isa.FromChannel(channel) not in instruction.sources else "reads"
    empty = (number, channel) in reached.maybe_empty
    return OddInstruction(
        instruction=instruction,
        message=f"instruction {number} {verb} %i{channel} without a check"
        + (", and it may be empty" if empty else " of its own"),
        expected=f"a check of %i{channel} in the trigger, which waits for a token",
        given="no such check: a run in which it is empty then ends with an error"
        if empty
        else "a token that an earlier instruction has checked, and that was not taken since",
        hint=f"write `with %i{channel}.TAG` or `with !%i{channel}.TAG` behind the pattern",
    )


def check_programs(
    programs: Sequence[isa.CellProgram],
    core: CoreParameters,
    *,
    text: str = "",
    file: str = "<text>",
    strict: bool = False,
) -> None:
    """Raise ``UserError`` for invalid programs, and warn about odd code.

    ``text`` and ``file`` are for messages.  With ``strict`` odd code is an error too.
    """
    lines = text.split("\n")
    for number, program in enumerate(programs):
        block = block_name(number, program.label)
        if core.profile is Profile.PUBLIC and not _halts(program):
            raise _place(program.position, lines, file, block).error(
                "no halt is reachable, so a run never ends",
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


def check_operators(
    programs: Sequence[isa.CellProgram], there: frozenset[isa.Opcode], what: str
) -> None:
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
                expected=f"one of {', '.join(o.value for o in isa.Opcode if o in there)}",
                given=instruction.opcode.value,
            )


def _halts(program: isa.CellProgram) -> bool:
    return any(
        program.instructions[number].opcode is isa.Opcode.HALT for number in reach(program).firing
    )


def _place(
    position: isa.TextPosition | None, lines: Sequence[str], file: str, block: str
) -> TextPlace:
    line, column = (position.line, position.column) if position is not None else (1, 1)
    text = lines[line - 1] if line <= len(lines) else ""
    return TextPlace(file=file, line=line, column=column, text=text, block=block)
