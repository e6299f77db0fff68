"""From text to programs, line by line, with the place of everything.

Goes in: a text in the language of the public assembler for triggered instructions.  Comes out: a
``CellProgram`` for each label, in the order of the text.  The grammar, a blank for each ``_`` and
any number of them elsewhere between the words::

    block     = { init | header ":" ops | header ":" NEWLINE ops }
    init      = "init" "%r"N "," "$"NUMBER ";"              (NUMBER: -5, 0x10, and f1.5)
    header    = "when" "%p" "==" PATTERN [ "with" check { "," check } ]
    check     = ["!"] "%i"N "." TAG
    ops       = OPERATOR [ _ operand { "," operand } ] ";" [ "deq" _ "%i"N { "," "%i"N } ";" ]
                [ "set" "%p" "=" UPDATE ";" ]                (these two in any order)
    operand   = "%r"N | "%p"N | "%o"N"."TAG | "%o{"N","..."}."TAG | "%i"N | "$"NUMBER

Refused is what the public assembler refuses, and what it takes and makes wrong code of.
``f1.5``, a float64, is for ``EXTENDED_CORE`` alone.  Operators on floats are read for both cores:
they have codes in both (``program_checks.py`` says what can run).
"""

from __future__ import annotations

import math
import re
import struct
import sys
from dataclasses import replace

from t2s.backends.cgra_tia.fabric import CoreParameters, Profile
from t2s.backends.cgra_tia.program import CellProgram, Instruction, TagCheck, Trigger
from t2s.backends.cgra_tia.text.instruction_rules import broken_rule
from t2s.backends.cgra_tia.text.operation_parser import Places, parse_operation
from t2s.backends.cgra_tia.text.places import (
    BlockLine,
    LineCursor,
    SourceBlock,
    TextPlace,
    bits_of,
    nearest,
    source_blocks,
    whole_number,
)

_INIT = re.compile(r"init\s*")
_REGISTER = re.compile(r"%r([0-9]+)\s*")
_COMMA = re.compile(r"\s*,\s*")
_INTEGER = re.compile(r"\$(-?)(0x)?([0-9]+)(?=;)")
_FLOAT = re.compile(r"\$f(-?(?:[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|inf|nan))(?=;)")
_SEMICOLON = re.compile(r"\s*;\s*")
_WHEN = re.compile(r"when\s*%p\s*==\s*")
_PATTERN = re.compile(r"([01Xx]*)\s*")
_WITH = re.compile(r"with\s*")
_CHECK = re.compile(r"(!?)%i([0-9]+)\.([0-9]+)\s*")
_COLON = re.compile(r":\s*")


def parse_programs(
    text: str, core: CoreParameters, file: str = "<text>"
) -> tuple[CellProgram, ...]:
    """The programs of a text, one for each label.

    ``file`` is for messages.  Raises ``TriggeredTextError``, a ``UserError``, for the first
    mistake.
    """
    return tuple(_program(block, core) for block in source_blocks(text, file))


def _program(block: SourceBlock, core: CoreParameters) -> CellProgram:
    instructions: list[Instruction] = []
    initial: dict[int, int] = {}
    comments: list[str] = []
    lines = iter(block.lines)
    for line in lines:
        if line.blank:
            if line.comment is None:
                comments.clear()
            else:
                comments.append(line.comment.removeprefix(" ").rstrip())
            continue
        cursor = LineCursor(line)
        cursor.blanks()
        start = cursor.place
        if cursor.take(_INIT):
            register, word = _initial(cursor, core)
            initial.pop(register, None)
            initial[register] = word
            comments.clear()
            continue
        if len(instructions) == core.instructions:
            raise start.error(
                "the program is longer than the memory for instructions",
                expected=f"at most {core.instructions} instructions",
                given=f"instruction {len(instructions) + 1}",
            )
        places: Places = {}
        trigger = _trigger(cursor, places)
        body = LineCursor(_next_line(next(lines, None), cursor)) if cursor.done else cursor
        found = replace(
            parse_operation(body, trigger, core, places),
            position=start.position,
            comment=tuple(comments),
        )
        _check(found, core, places, start)
        instructions.append(found)
        comments.clear()
    return CellProgram(
        label=block.label,
        initial=tuple(initial.items()),
        instructions=tuple(instructions),
        position=block.place.position,
    )


def _check(
    instruction: Instruction, core: CoreParameters, places: Places, start: TextPlace
) -> None:
    rule = broken_rule(instruction, core)
    if rule is not None:
        raise places.get(rule.part, start).error(
            rule.message, expected=rule.expected, given=rule.given, hint=rule.hint
        )


def _initial(cursor: LineCursor, core: CoreParameters) -> tuple[int, int]:
    """The register and the word of an ``init`` line."""
    form = "init %rN, $NUMBER;"
    place = cursor.place
    register = whole_number(cursor.expect(_REGISTER, "the line names no register", form).group(1))
    if register >= core.registers:
        raise place.error(
            f"there is no register %r{register}",
            expected=f"%r0 to %r{core.registers - 1}",
            given=place.text[place.column - 1 :].partition(",")[0],
        )
    cursor.expect(_COMMA, "the register and its value are not apart", form)
    word = _word(cursor, core)
    cursor.expect(_SEMICOLON, "the line does not end", form)
    if not cursor.done:
        raise cursor.error("something stands behind the line's end", expected="a line of its own")
    return register, word


def _word(cursor: LineCursor, core: CoreParameters) -> int:
    place = cursor.place
    width = core.word_width
    found = cursor.take(_FLOAT)
    if found is not None:
        if core.profile is Profile.PUBLIC:
            raise place.error(
                "registers of the public core hold no floats",
                expected=f"an integer of {width} bits",
                given=repr(found.group()),
                hint="profile B (t2s.triggered.EXTENDED_CORE) has float64",
            )
        value = float(found.group(1))
        if math.isinf(value) and "inf" not in found.group():
            raise place.error(
                "the value is too large for a float64",
                expected=f"a number up to {sys.float_info.max}, or $finf",
                given=found.group()[:40],
            )
        return int.from_bytes(struct.pack("<d", value), "little")
    floats = "" if core.profile is Profile.PUBLIC else ", or a float as $f1.5"
    found = cursor.expect(
        _INTEGER,
        "the value is no number",
        f"$ and decimal digits, $0x and digits (no letters){floats}, and ';' behind them",
    )
    sign, prefix, digits = found.groups()
    number = whole_number(digits, 16 if prefix else 10) * (-1 if sign else 1)
    least = 1 - (1 << width - 1)  # the public assembler counts the sign as a bit beside the digits
    if not least <= number < 1 << width:
        lowest = number == least - 1
        raise place.error(
            f"the value does not fit into a word of {width} bits",
            expected=f"{least} to {(1 << width) - 1}",
            given=found.group()[:40],
            hint=f"the public assembler takes this word as ${-number}" if lowest else None,
        )
    return number & (1 << width) - 1


def _trigger(cursor: LineCursor, places: Places) -> Trigger:
    """The trigger, up to and with the colon."""
    form = "when %p == PATTERN with %iN.TAG, ...:"
    if not cursor.take(_WHEN):
        word = cursor.rest.split(maxsplit=1)[0]
        raise cursor.error(
            "the line is no instruction",
            expected=f"{form}, or init %rN, $NUMBER;",
            hint=nearest(word, ("when", "init"))
            or "an operation stands in the line of its header, or in the line right below it",
        )
    places["pattern"] = cursor.place
    pattern = cursor.expect(_PATTERN, "there is no pattern", form).group(1)
    checks: list[TagCheck] = []
    if cursor.take(_WITH):
        while True:
            places[f"check {len(checks)}"] = cursor.place
            found = cursor.expect(
                _CHECK, "the check of a channel is none", "%iN.TAG or !%iN.TAG, as %i0.1"
            )
            negated, channel, tag = found.groups()
            checks.append(
                TagCheck(channel=whole_number(channel), tag=whole_number(tag), equal=not negated)
            )
            if not cursor.take(_COMMA):
                break
    cursor.expect(_COLON, "the trigger is not right", f"{form} (a pattern of 0, 1 and X)")
    ones, zeros = bits_of(pattern)
    return Trigger(ones=ones, zeros=zeros, checks=tuple(checks))


def _next_line(line: BlockLine | None, header: LineCursor) -> BlockLine:
    """The line of the operation, which stands right below that of the trigger."""
    if line is None or line.blank:
        place = header.place if line is None else line.place
        comment = line is not None and line.comment is not None
        raise place.error(
            "there is no operation in the line below the trigger",
            expected="the operation there, with nothing between",
            given="a comment" if comment else "nothing" if line is None else "a blank line",
        )
    return line
