"""Programs as text that ``parser.py`` reads back as equal programs.

The text is the same on every run, and the public assembler accepts it unless a register starts with
a float.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator, Sequence

from t2s.backends.cgra_tia import program as isa
from t2s.backends.cgra_tia.fabric import CoreParameters, Profile

_BRACKETS = str.maketrans({"<": "(", ">": ")", "\n": " ", "\r": " "})
_LARGEST_PLAIN = 1 << 48
"""Words beyond it, of either sign, are more likely floats than integers."""


def print_programs(
    programs: Sequence[isa.CellProgram], core: CoreParameters, header: Sequence[str] = ()
) -> str:
    """The text of some programs, below comment lines (``header``)."""
    blocks = [_lines(program, core) for program in programs]
    head = [_comment(line) for line in header]
    return "\n".join("\n".join(lines) + "\n" for lines in ([head] if head else []) + blocks)


def print_instruction(instruction: isa.Instruction, core: CoreParameters) -> str:
    """An instruction on one line."""
    return f"{_header(instruction, core)} {_operation(instruction, core)}"


def _lines(program: isa.CellProgram, core: CoreParameters) -> list[str]:
    lines = [f"<{program.label.translate(_BRACKETS)}>"]
    lines += [f"init %r{number}, ${_word(word, core)};" for number, word in program.initial]
    for instruction in program.instructions:
        lines += [_comment(line) for line in instruction.comment]
        lines += [_header(instruction, core), f"  {_operation(instruction, core)}"]
    return lines


def _comment(line: str) -> str:
    """A comment without ``<`` and ``>``, which mark labels even in comments."""
    return f"# {line.translate(_BRACKETS)}".rstrip()


def _word(word: int, core: CoreParameters) -> str:
    """A register's initial word; for the extended core as a float if it looks like one."""
    if core.profile is Profile.PUBLIC:
        return str(word)
    signed = word - (word >> core.word_width - 1 << core.word_width)
    (value,) = struct.unpack("<d", word.to_bytes(8, "little"))
    if abs(signed) <= _LARGEST_PLAIN:
        return str(signed)
    return str(word) if math.isnan(value) else f"f{value!r}"


def _header(instruction: isa.Instruction, core: CoreParameters) -> str:
    trigger = instruction.trigger
    pattern = _pattern(trigger.ones, trigger.zeros, "X", core)
    checks = ", ".join(map(_check, trigger.checks))
    return f"when %p == {pattern}{f' with {checks}' if checks else ''}:"


def _check(check: isa.TagCheck) -> str:
    return f"{'' if check.equal else '!'}%i{check.channel}.{check.tag}"


def _pattern(ones: int, zeros: int, other: str, core: CoreParameters) -> str:
    bits = (1 << number for number in reversed(range(core.predicates)))
    return "".join("1" if ones & bit else "0" if zeros & bit else other for bit in bits)


def _operation(instruction: isa.Instruction, core: CoreParameters) -> str:
    operands = list(_operands(instruction, core))
    name = instruction.opcode.value
    parts = [f"{name} {', '.join(operands)}" if operands else name]
    if instruction.takes:
        parts.append("deq " + ", ".join(f"%i{channel}" for channel in instruction.takes))
    if instruction.sets or instruction.clears:
        update = _pattern(instruction.sets, instruction.clears, "Z", core)
        parts.append(f"set %p = {update}")
    return "; ".join(parts) + ";"


def _operands(instruction: isa.Instruction, core: CoreParameters) -> Iterator[str]:
    destination = _destination(instruction.destination)
    if destination:
        yield destination
    for source in instruction.sources:
        yield _source(source, core)


def _destination(destination: isa.Destination) -> str:
    match destination:
        case isa.ToRegister(number=number):
            return f"%r{number}"
        case isa.ToPredicate(number=number):
            return f"%p{number}"
        case isa.ToOutputs(channels=(channel,), tag=tag):
            return f"%o{channel}.{tag}"
        case isa.ToOutputs(channels=channels, tag=tag):
            return f"%o{{{_numbers(channels)}}}.{tag}"
        case None:
            return ""


def _numbers(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


def _source(source: isa.Source, core: CoreParameters) -> str:
    match source:
        case isa.FromRegister(number=number):
            return f"%r{number}"
        case isa.FromChannel(number=number):
            return f"%i{number}"
        case isa.Immediate(pattern=pattern):
            sign = pattern >> core.immediate_width - 1
            return f"${pattern - (sign << core.immediate_width)}"
