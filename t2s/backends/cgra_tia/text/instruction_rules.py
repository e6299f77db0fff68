"""What an instruction may not be: rules that each instruction keeps or breaks by itself.

Goes in: an instruction and the sizes of the core.  Comes out: the first rule that it breaks, if
any, and which part of it does.  The public assembler checks few of these and makes wrong code.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from t2s.backends.cgra_tia.fabric import CoreParameters
from t2s.backends.cgra_tia.opcodes import Opcode
from t2s.backends.cgra_tia.program import (
    FromChannel,
    FromRegister,
    Immediate,
    Instruction,
    ToOutputs,
    ToPredicate,
    ToRegister,
)

MOST_SOURCES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenRule:
    """A rule that an instruction breaks.

    ``part`` is what breaks it: ``pattern``, ``check N``, ``operation``, ``destination``,
    ``source N``, ``take N`` (the channel) or ``update``.
    """

    part: str
    message: str
    expected: str
    given: str
    hint: str | None = None


def tag_bits(core: CoreParameters) -> int:
    """Bits of a tag."""
    return (core.tags - 1).bit_length()


def broken_rule(instruction: Instruction, core: CoreParameters) -> BrokenRule | None:
    """The first rule that an instruction breaks, in the order of the text."""
    for rules in (_trigger_rules, _source_rules, _destination_rules, _effect_rules):
        for found in rules(instruction, core):
            return found
    return None


def _trigger_rules(instruction: Instruction, core: CoreParameters) -> Iterator[BrokenRule]:
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


def _source_rules(instruction: Instruction, core: CoreParameters) -> Iterator[BrokenRule]:
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
            case FromRegister(number=register):
                if not 0 <= register < core.registers:
                    yield _range(part, "register", f"%r{register}", core.registers)
            case FromChannel(number=channel):
                if not 0 <= channel < core.inputs:
                    yield _range(part, "input channel", f"%i{channel}", core.inputs)
            case Immediate(pattern=pattern):
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
                        message="the instruction has two different immediates, and room for one",
                        expected="one immediate, which several sources may be",
                        given="another one; the public assembler would use the last one twice",
                        hint="put one of them into a register: init %rN, $NUMBER;",
                    )


def _destination_rules(instruction: Instruction, core: CoreParameters) -> Iterator[BrokenRule]:
    match instruction.destination:
        case ToRegister(number=number) if not 0 <= number < core.registers:
            yield _range("destination", "register", f"%r{number}", core.registers)
        case ToPredicate(number=number) if not 0 <= number < core.predicates:
            yield _range("destination", "predicate", f"%p{number}", core.predicates)
        case ToOutputs(channels=channels, tag=tag):
            for channel in channels:
                if not 0 <= channel < core.outputs:
                    yield _range("destination", "output channel", f"%o{channel}", core.outputs)
            if not channels or sorted(set(channels)) != list(channels):
                yield BrokenRule(
                    part="destination",
                    message="the output channels are not different ones",
                    expected="each output channel once, in increasing order",
                    given=", ".join(f"%o{channel}" for channel in channels) or "none",
                )
            yield from _tag_rule("destination", tag, core)
    stores = instruction.opcode is Opcode.SSW
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


def _effect_rules(instruction: Instruction, core: CoreParameters) -> Iterator[BrokenRule]:
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
            message=f"the update of %p{number} is none: the code has no place for it",
            expected="updates to one value that the trigger does not ask for already",
            given=f"sets {instruction.sets:b}, clears {instruction.clears:b}",
        )


def _range(part: str, kind: str, given: str, count: int) -> BrokenRule:
    letter = given[:2]
    return BrokenRule(
        part=part,
        message=f"there is no {kind} {given}",
        expected=f"{letter}0 to {letter}{count - 1}",
        given=given,
    )


def _tag_rule(part: str, tag: int, core: CoreParameters) -> Iterator[BrokenRule]:
    if tag < 0 or tag >> tag_bits(core):
        yield BrokenRule(
            part=part,
            message=f"there is no tag {tag}",
            expected=f"tags 0 to {(1 << tag_bits(core)) - 1}",
            given=str(tag),
        )
