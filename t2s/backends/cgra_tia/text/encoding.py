"""Instructions and programs as words, and words as programs.

Words have 32 bits; the lowest word of an instruction comes first.  Words that do not encode an
instruction are refused.

A program is the initial words of its registers, then its instructions, then zeros up to the number
of instructions of the core.  A file holds the programs of all processing elements in sequence: as
little-endian words, or as text with the eight hexadecimal digits of a word per line.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from t2s.backends.cgra_tia import program as isa
from t2s.backends.cgra_tia.fabric import CoreParameters
from t2s.backends.cgra_tia.text.checks import MOST_SOURCES, broken_rule, tag_bits
from t2s.core.errors import UserError

# The code of an instruction as fields: one table for both the encoder and the decoder.
#
# The fields are listed from the most significant bit on, each with a name and a width.  They take
# 113 of 128 bits for ``PUBLIC_CORE``, and 147 of 160 for ``EXTENDED_CORE``.

OPCODE_BITS = 6
KIND_BITS = 2
WORD_BITS = 32
"""Bits of a word in files: instructions and registers are multiples of it."""


def channel_bits(core: CoreParameters) -> int:
    """Bits of a checked channel: 0 is none, and n + 1 is channel n."""
    return core.inputs.bit_length()


def source_bits(core: CoreParameters) -> int:
    """Bits of the number of a source."""
    return (max(core.registers, core.inputs) - 1).bit_length()


def destination_bits(core: CoreParameters) -> int:
    """Bits of the number of a destination."""
    return (max(core.registers, core.outputs, core.predicates) - 1).bit_length()


@dataclass(frozen=True, slots=True)
class CodeField:
    """A field of the code: its name, and its bits for a core."""

    name: str
    width: Callable[[CoreParameters], int]


FIELDS = (
    CodeField("valid", lambda core: 1),
    CodeField("ones", lambda core: core.predicates),
    CodeField("zeros", lambda core: core.predicates),
    CodeField("checked channels", lambda core: core.checks * channel_bits(core)),
    CodeField("equal", lambda core: core.checks),
    CodeField("checked tags", lambda core: core.checks * tag_bits(core)),
    CodeField("operator", lambda core: OPCODE_BITS),
    CodeField("source kinds", lambda core: MOST_SOURCES * KIND_BITS),
    CodeField("source numbers", lambda core: MOST_SOURCES * source_bits(core)),
    CodeField("destination kind", lambda core: KIND_BITS),
    CodeField("destination number", destination_bits),
    CodeField("outputs", lambda core: core.outputs),
    CodeField("output tag", tag_bits),
    CodeField("takes", lambda core: core.inputs),
    CodeField("sets", lambda core: core.predicates),
    CodeField("clears", lambda core: core.predicates),
    CodeField("immediate", lambda core: core.immediate_width),
)
"""All fields, the most significant one first; below them are zeros."""


def code_width(core: CoreParameters) -> int:
    """Bits of an instruction that are used."""
    return sum(field.width(core) for field in FIELDS)


def padding(core: CoreParameters) -> int:
    """Zeros at the low end; raises ``UserError`` if an instruction has no room for its fields."""
    rest = core.instruction_width - code_width(core)
    if rest < 0 or core.instruction_width % WORD_BITS:
        raise UserError(
            "the code of an instruction has no room for its fields",
            expected=f"a multiple of {WORD_BITS} bits, at least {code_width(core)}",
            given=f"{core.instruction_width} bits",
        )
    return rest


def packed(values: dict[str, int], core: CoreParameters) -> int:
    """The code with these values of the fields; raises ``UserError`` if one does not fit."""
    code = 0
    for field in FIELDS:
        width = field.width(core)
        value = values[field.name]
        if value < 0 or value >> width:
            raise UserError(
                f"the field {field.name!r} of an instruction's code is too narrow",
                expected=f"a number of {width} bits",
                given=str(value),
            )
        code = code << width | value
    return code << padding(core)


def unpacked(code: int, core: CoreParameters) -> Iterator[tuple[str, int]]:
    """The name and the value of each field of a code."""
    at = padding(core) + code_width(core)
    for field in FIELDS:
        width = field.width(core)
        at -= width
        yield field.name, code >> at & (1 << width) - 1


_IMMEDIATE, _CHANNEL, _REGISTER = 1, 2, 3
_TO_OUTPUTS, _TO_REGISTER, _TO_PREDICATE = 1, 2, 3
_MASK = (1 << WORD_BITS) - 1
_OPCODES = tuple(isa.Opcode)
_HEX = re.compile(r"[0-9a-fA-F]{8}")


def encode_instruction(instruction: isa.Instruction, core: CoreParameters) -> tuple[int, ...]:
    """The words of an instruction, lowest first; raises ``UserError`` if it breaks a rule."""
    rule = broken_rule(instruction, core)
    if rule is not None:
        raise UserError(rule.message, expected=rule.expected, given=rule.given, hint=rule.hint)
    trigger, destination = instruction.trigger, instruction.destination
    checks = trigger.checks
    first = core.checks - len(checks)  # checks fill the slots from the high end
    kinds, numbers, immediate = _source_fields(instruction.sources)
    code = packed(
        {
            "valid": 1,
            "ones": trigger.ones,
            "zeros": trigger.zeros,
            "checked channels": _slots([c.channel + 1 for c in checks], channel_bits(core), first),
            "equal": _slots([int(c.equal) for c in checks], 1, first),
            "checked tags": _slots([c.tag for c in checks], tag_bits(core), first),
            "operator": instruction.opcode.code,
            "source kinds": _slots(kinds, KIND_BITS),
            "source numbers": _slots(numbers, source_bits(core)),
            "destination kind": _destination_kind(destination),
            "destination number": _destination_number(destination),
            "outputs": sum(1 << channel for channel in instruction.outputs),
            "output tag": destination.tag if isinstance(destination, isa.ToOutputs) else 0,
            "takes": sum(1 << channel for channel in instruction.takes),
            "sets": instruction.sets,
            "clears": instruction.clears,
            "immediate": immediate,
        },
        core,
    )
    return tuple(_words(code, core.instruction_width))


def decode_instruction(words: Sequence[int], core: CoreParameters) -> isa.Instruction:
    """The instruction of some words, lowest first; raises ``UserError`` for invalid words."""
    code = sum(word << WORD_BITS * place for place, word in enumerate(words))
    fields = dict(unpacked(code, core))
    if code & (1 << padding(core)) - 1 or not fields["valid"]:
        raise _no_instruction("its valid bit is 0, or bits below its fields are not", code)
    if fields["operator"] >= len(_OPCODES):
        raise _no_instruction(f"unknown operator {fields['operator']}", code)
    instruction = isa.Instruction(
        trigger=isa.Trigger(
            ones=fields["ones"], zeros=fields["zeros"], checks=_checks(fields, core, code)
        ),
        opcode=_OPCODES[fields["operator"]],
        destination=_destination(fields),
        sources=_sources(fields, core, code),
        takes=_bit_numbers(fields["takes"]),
        sets=fields["sets"],
        clears=fields["clears"],
    )
    rule = broken_rule(instruction, core)
    if rule is not None:
        raise _no_instruction(rule.message, code)
    if encode_instruction(instruction, core) != tuple(words):
        raise _no_instruction("fields that it does not use are not 0", code)
    return instruction


def encode_program(program: isa.CellProgram, core: CoreParameters) -> tuple[int, ...]:
    """The words of a program; raises ``UserError`` if it breaks a rule."""
    if len(program.instructions) > core.instructions:
        raise UserError(
            "the program is longer than the memory for instructions",
            expected=f"at most {core.instructions} instructions",
            given=f"{len(program.instructions)} instructions",
        )
    registers = [0] * core.registers
    for number, word in program.initial:
        if not 0 <= number < core.registers or word < 0 or word >> core.word_width:
            raise UserError(
                "invalid initial word of a register",
                expected=f"registers 0 to {core.registers - 1}, words of {core.word_width} bits",
                given=f"register {number}, word {word}",
            )
        registers[number] = word
    words = [part for register in registers for part in _words(register, core.word_width)]
    for instruction in program.instructions:
        words += encode_instruction(instruction, core)
    return (*words, *[0] * (program_words(core) - len(words)))


def decode_program(words: Sequence[int], core: CoreParameters, label: str = "") -> isa.CellProgram:
    """The program of some words; registers that start at 0 are left out of ``initial``."""
    size = core.word_width // WORD_BITS
    registers = [words[at : at + size] for at in range(0, core.registers * size, size)]
    values = [sum(w << WORD_BITS * place for place, w in enumerate(r)) for r in registers]
    step = core.instruction_width // WORD_BITS
    codes = [words[at : at + step] for at in range(core.registers * size, len(words), step)]
    present = [number for number, code in enumerate(codes) if any(code)]
    if present != list(range(len(present))):
        raise UserError(
            f"the words of {label or 'a program'} have a gap before instruction {present[-1]}",
            expected="instructions one after the other, and zeros behind the last one",
            given=f"{len(present)} instructions",
        )
    return isa.CellProgram(
        label=label,
        initial=tuple((number, word) for number, word in enumerate(values) if word),
        instructions=tuple(decode_instruction(codes[number], core) for number in present),
    )


def program_words(core: CoreParameters) -> int:
    """Number of words of a program."""
    bits = core.registers * core.word_width + core.instructions * core.instruction_width
    return bits // WORD_BITS


def decode_programs(words: Sequence[int], core: CoreParameters) -> tuple[isa.CellProgram, ...]:
    """The programs of the words of a whole file."""
    size = program_words(core)
    if not words or len(words) % size:
        raise UserError(
            "the words do not make whole programs",
            expected=f"a multiple of {size} words of {WORD_BITS} bits",
            given=f"{len(words)} words",
        )
    return tuple(
        decode_program(words[at : at + size], core, f"pe_{at // size}")
        for at in range(0, len(words), size)
    )


def words_to_binary(words: Sequence[int]) -> bytes:
    """The file with the words as little-endian numbers."""
    return struct.pack(f"<{len(words)}I", *words)


def words_to_hex(words: Sequence[int]) -> str:
    """The file with a word per line."""
    return "".join(f"{word:08x}\n" for word in words)


def words_of_file(content: bytes) -> tuple[int, ...]:
    """The words of a file of either form; raises ``UserError`` if it has neither."""
    lines = content.split()
    texts = [line.decode("ascii", "replace") for line in lines]
    if texts and all(_HEX.fullmatch(text) for text in texts):
        return tuple(int(text, 16) for text in texts)
    if not content or len(content) % 4:
        raise UserError(
            "the file holds no words",
            expected="eight hexadecimal digits per line, or little-endian words of 32 bits",
            given=f"{len(content)} bytes",
        )
    return struct.unpack(f"<{len(content) // 4}I", content)


def _words(value: int, width: int) -> Iterator[int]:
    for at in range(0, width, WORD_BITS):
        yield value >> at & _MASK


def _slots(values: Sequence[int], width: int, first: int = 0) -> int:
    """Adjacent values, the first one lowest, in the slots from ``first`` on."""
    return sum(value << width * (first + place) for place, value in enumerate(values))


def _slot(value: int, width: int, place: int) -> int:
    return value >> width * place & (1 << width) - 1


def _source_fields(sources: Sequence[isa.Source]) -> tuple[list[int], list[int], int]:
    kinds, numbers, immediate = [], [], 0
    for source in sources:
        match source:
            case isa.Immediate(pattern=pattern):
                kind, number, immediate = _IMMEDIATE, 0, pattern
            case isa.FromChannel(number=number):
                kind = _CHANNEL
            case isa.FromRegister(number=number):
                kind = _REGISTER
        kinds.append(kind)
        numbers.append(number)
    return kinds, numbers, immediate


def _destination_kind(destination: isa.Destination) -> int:
    match destination:
        case isa.ToOutputs():
            return _TO_OUTPUTS
        case isa.ToRegister():
            return _TO_REGISTER
        case isa.ToPredicate():
            return _TO_PREDICATE
        case None:
            return 0


def _destination_number(destination: isa.Destination) -> int:
    match destination:
        case isa.ToOutputs(channels=(channel,)):
            return channel
        case isa.ToRegister(number=number) | isa.ToPredicate(number=number):
            return number
        case _:
            return 0


def _checks(fields: dict[str, int], core: CoreParameters, code: int) -> tuple[isa.TagCheck, ...]:
    checks: list[isa.TagCheck] = []
    for place in range(core.checks):
        channel = _slot(fields["checked channels"], channel_bits(core), place)
        if channel:
            tag = _slot(fields["checked tags"], tag_bits(core), place)
            equal = bool(_slot(fields["equal"], 1, place))
            checks.append(isa.TagCheck(channel=channel - 1, tag=tag, equal=equal))
        elif checks:
            raise _no_instruction("a check follows an empty one", code)
    return tuple(checks)


def _sources(fields: dict[str, int], core: CoreParameters, code: int) -> tuple[isa.Source, ...]:
    sources: list[isa.Source] = []
    for place in range(MOST_SOURCES):
        kind = _slot(fields["source kinds"], KIND_BITS, place)
        number = _slot(fields["source numbers"], source_bits(core), place)
        if kind == 0:
            continue
        if len(sources) != place:
            raise _no_instruction("an operand follows a missing one", code)
        if kind == _IMMEDIATE:
            sources.append(isa.Immediate(fields["immediate"]))
        else:
            sources.append(
                isa.FromChannel(number) if kind == _CHANNEL else isa.FromRegister(number)
            )
    return tuple(sources)


def _destination(fields: dict[str, int]) -> isa.Destination:
    number = fields["destination number"]
    match fields["destination kind"]:
        case 1:
            return isa.ToOutputs(_bit_numbers(fields["outputs"]), fields["output tag"])
        case 2:
            return isa.ToRegister(number)
        case 3:
            return isa.ToPredicate(number)
        case _:
            return None


def _bit_numbers(bits: int) -> tuple[int, ...]:
    return tuple(number for number in range(bits.bit_length()) if bits >> number & 1)


def _no_instruction(reason: str, code: int) -> UserError:
    return UserError(
        f"not the code of an instruction: {reason}",
        expected="the code of an instruction, as t2s.triggered.assemble makes it",
        given=f"{code:#x}",
    )
