"""The parser: from text to programs, line by line, with the place of everything.

The language is that of the public assembler for triggered instructions; each label becomes a
``CellProgram``.  The grammar, with a blank for each ``_`` and any number of blanks between other
words::

    block     = { init | header ":" ops | header ":" NEWLINE ops }
    init      = "init" "%r"N "," "$"NUMBER ";"              (NUMBER: -5, 0x10, and f1.5)
    header    = "when" "%p" "==" PATTERN [ "with" check { "," check } ]
    check     = ["!"] "%i"N "." TAG
    ops       = OPERATOR [ _ operand { "," operand } ] ";" [ "deq" _ "%i"N { "," "%i"N } ";" ]
                [ "set" "%p" "=" UPDATE ";" ]                (these two in any order)
    operand   = "%r"N | "%p"N | "%o"N"."TAG | "%o{"N","..."}."TAG | "%i"N | "$"NUMBER

Refused is what the public assembler refuses, and what it accepts and generates wrong code for.
``f1.5``, a float64, is for ``EXTENDED_CORE`` only.  Operators on floats are accepted for both
cores, because they have codes in both (``checks.py`` says what can run).
"""

from __future__ import annotations

import math
import re
import struct
import sys
from dataclasses import replace

from t2s.backends.cgra_tia import program as isa
from t2s.backends.cgra_tia.fabric import CoreParameters, Profile
from t2s.backends.cgra_tia.text.checks import broken_rule
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

# The second half of an instruction: operator, operands, ``deq`` and ``set``.
#
# It returns the instruction and the place of each of its parts.  Numbers of registers and channels
# are not checked here (see ``checks.py``).

Places = dict[str, TextPlace]
"""Where each part of an instruction stands; the parts are those of ``BrokenRule``."""

_OPERATOR = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_ONE_BLANK = re.compile(r" (?=[%$])")
_REGISTER = re.compile(r"%r([0-9]+)(?![0-9.])")
_PREDICATE = re.compile(r"%p([0-9]+)(?![0-9.])")
_OUTPUT = re.compile(r"%o([0-9]+)\.([0-9]+)(?![0-9.])")
_OUTPUTS = re.compile(r"%o\{([0-9]+(?:\s*,\s*[0-9]+)+)\}\.([0-9]+)(?![0-9.])")
_ODD_OUTPUTS = re.compile(r"%o\{\s*([0-9]+(?:\s*,\s*[0-9]+)*)\s*\}\.([0-9]+)")
_CHANNEL = re.compile(r"%i([0-9]+)(?![0-9.])")
_IMMEDIATE = re.compile(r"\$(-?)(?:0[xX])?([0-9a-fA-F]+)(?![0-9A-Za-z_.])")
_DEQ = re.compile(r"deq (?=%)")
_SET = re.compile(r"set\s*%p\s*=\s*")
_UPDATE = re.compile(r"([01XxZz]*)")

_OPCODES = {opcode.value: opcode for opcode in isa.Opcode}


def parse_operation(
    cursor: LineCursor, trigger: isa.Trigger, core: CoreParameters, places: Places
) -> isa.Instruction:
    """Parse an instruction with this trigger; the cursor moves to the end of the line."""
    cursor.blanks()
    places["operation"] = cursor.place
    opcode = _opcode(cursor)
    destination: isa.Destination = None
    sources: list[isa.Source] = []
    if not cursor.take(_SEMICOLON):
        cursor.expect(
            _ONE_BLANK,
            "the operator and its destination are not separated by one blank",
            "OPERATOR DESTINATION, SOURCE, ...; with one blank behind the operator",
        )
        if opcode is not isa.Opcode.SSW:
            places["destination"] = cursor.place
            destination = _destination(cursor)
        while (opcode is isa.Opcode.SSW and not sources) or cursor.take(_COMMA):
            places[f"source {len(sources)}"] = cursor.place
            sources.append(_source(cursor, core))
        _end(cursor, "the operation", "a ',' and another source, or ';'")
    takes: list[int] | None = None
    update: str | None = None
    while not cursor.done:
        if takes is None and cursor.take(_DEQ):
            takes = _takes(cursor, places)
            _end(cursor, "deq", "a ',' and another channel, or ';'")
        elif update is None and cursor.take(_SET):
            places["update"] = cursor.place
            match = cursor.take(_UPDATE)
            update = match.group(1) if match else ""
            _end(cursor, "set", "0, 1, X and Z, one for each predicate, and ';'")
        else:
            raise cursor.error(
                "unknown or repeated part of an instruction",
                expected="deq %iN, ...; and set %p = UPDATE; once each, with one blank behind deq",
            )
    ones, zeros = bits_of(update or "")
    return isa.Instruction(
        trigger=trigger,
        opcode=opcode,
        destination=destination,
        sources=tuple(sources),
        takes=tuple(sorted(set(takes or ()))),
        sets=ones & ~trigger.ones,
        clears=zeros & ~trigger.zeros,
    )


def _end(cursor: LineCursor, what: str, expected: str) -> None:
    cursor.blanks()
    cursor.expect(_SEMICOLON, f"unexpected text behind {what}", expected)


def _opcode(cursor: LineCursor) -> isa.Opcode:
    place = cursor.place
    word = cursor.expect(_OPERATOR, "an operator is missing", "an operator, such as mov").group()
    if word not in _OPCODES:
        raise place.error(
            f"unknown operator {word!r}",
            expected="an operator, such as add, mov or halt",
            given=repr(word),
            hint=nearest(word, _OPCODES),
        )
    return _OPCODES[word]


def _destination(cursor: LineCursor) -> isa.Destination:
    match = cursor.take(_REGISTER)
    if match is not None:
        return isa.ToRegister(whole_number(match.group(1)))
    match = cursor.take(_PREDICATE)
    if match is not None:
        return isa.ToPredicate(whole_number(match.group(1)))
    match = cursor.take(_OUTPUT)
    if match is not None:
        return isa.ToOutputs((whole_number(match.group(1)),), whole_number(match.group(2)))
    place = cursor.place
    odd = _ODD_OUTPUTS.match(cursor.rest)
    match = cursor.take(_OUTPUTS)
    if match is None and odd is not None:
        numbers = [number.strip() for number in odd.group(1).split(",")]
        plain = f"%o{numbers[0]}" if len(numbers) == 1 else f"%o{{{', '.join(numbers)}}}"
        raise place.error(
            "the public assembler does not accept outputs that are written like this",
            expected="two outputs or more between braces, and no blank beside a brace",
            given=repr(odd.group()),
            hint=f"write {plain}.{odd.group(2)}",
        )
    if match is None:
        raise cursor.error(
            "this is not a destination", expected="%rN, %pN, %oN.TAG or %o{N, M}.TAG"
        )
    channels = [whole_number(number.strip()) for number in match.group(1).split(",")]
    if len(set(channels)) != len(channels):
        raise place.error(
            "an output channel occurs twice",
            expected="each output channel once",
            given=repr(match.group()),
        )
    return isa.ToOutputs(tuple(sorted(channels)), whole_number(match.group(2)))


def _source(cursor: LineCursor, core: CoreParameters) -> isa.Source:
    match = cursor.take(_REGISTER)
    if match is not None:
        return isa.FromRegister(whole_number(match.group(1)))
    match = cursor.take(_CHANNEL)
    if match is not None:
        return isa.FromChannel(whole_number(match.group(1)))
    place = cursor.place
    match = cursor.take(_IMMEDIATE)
    if match is None:
        floats = cursor.rest.startswith("$f")
        raise cursor.error(
            "this is not a source",
            expected="%rN, %iN or an immediate: $5, $-5, $0xFF",
            hint="floats are for init lines: init %r0, $f1.5;" if floats else None,
        )
    sign, digits = match.groups()
    decimal = digits.isdecimal() and match.group().lstrip("$-")[1:2] not in ("x", "X")
    value = whole_number(digits, 10 if decimal else 16)
    value = -value if sign else value
    width = core.immediate_width
    if not -(1 << width - 1) <= value < 1 << width:
        raise place.error(
            "the immediate does not fit",
            expected=f"a number of {width} bits: {-(1 << width - 1)} to {(1 << width) - 1}",
            given=match.group()[:40],
        )
    return isa.Immediate(value & (1 << width) - 1)


def _takes(cursor: LineCursor, places: Places) -> list[int]:
    takes: list[int] = []
    while not takes or cursor.take(_COMMA):
        place = cursor.place
        match = cursor.expect(_CHANNEL, "this is not an input channel", "%iN")
        takes.append(whole_number(match.group(1)))
        places[f"take {takes[-1]}"] = place
    return takes


_INIT = re.compile(r"init\s*")
_REGISTER_TO_SET = re.compile(r"%r([0-9]+)\s*")
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
) -> tuple[isa.CellProgram, ...]:
    """The programs of a text, one for each label.

    ``file`` is for messages.  Raises ``TriggeredTextError``, a ``UserError``, for the first
    mistake.
    """
    return tuple(_program(block, core) for block in source_blocks(text, file))


def _program(block: SourceBlock, core: CoreParameters) -> isa.CellProgram:
    instructions: list[isa.Instruction] = []
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
        program = replace(
            parse_operation(body, trigger, core, places),
            position=start.position,
            comment=tuple(comments),
        )
        _check(program, core, places, start)
        instructions.append(program)
        comments.clear()
    return isa.CellProgram(
        label=block.label,
        initial=tuple(initial.items()),
        instructions=tuple(instructions),
        position=block.place.position,
    )


def _check(
    instruction: isa.Instruction, core: CoreParameters, places: Places, start: TextPlace
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
    register = whole_number(
        cursor.expect(_REGISTER_TO_SET, "the line has no register", form).group(1)
    )
    if register >= core.registers:
        raise place.error(
            f"unknown register %r{register}",
            expected=f"%r0 to %r{core.registers - 1}",
            given=place.text[place.column - 1 :].partition(",")[0],
        )
    cursor.expect(_COMMA, "the register and its value are not separated", form)
    word = _word(cursor, core)
    cursor.expect(_SEMICOLON, "the ';' at the end of the line is missing", form)
    if not cursor.done:
        raise cursor.error("unexpected text behind the ';'", expected="a line of its own")
    return register, word


def _word(cursor: LineCursor, core: CoreParameters) -> int:
    place = cursor.place
    width = core.word_width
    match = cursor.take(_FLOAT)
    if match is not None:
        if core.profile is Profile.PUBLIC:
            raise place.error(
                "registers of the public core do not hold floats",
                expected=f"an integer of {width} bits",
                given=repr(match.group()),
                hint="profile B (t2s.triggered.EXTENDED_CORE) has float64",
            )
        value = float(match.group(1))
        if math.isinf(value) and "inf" not in match.group():
            raise place.error(
                "the value is too large for a float64",
                expected=f"a number up to {sys.float_info.max}, or $finf",
                given=match.group()[:40],
            )
        return int.from_bytes(struct.pack("<d", value), "little")
    floats = "" if core.profile is Profile.PUBLIC else ", or a float as $f1.5"
    match = cursor.expect(
        _INTEGER,
        "the value is not a number",
        f"$ and decimal digits, $0x and digits (no letters){floats}, and ';' behind them",
    )
    sign, prefix, digits = match.groups()
    number = whole_number(digits, 16 if prefix else 10) * (-1 if sign else 1)
    # the public assembler counts the sign as a bit in addition to the digits
    least = 1 - (1 << width - 1)
    if not least <= number < 1 << width:
        lowest = number == least - 1
        raise place.error(
            f"the value does not fit into a word of {width} bits",
            expected=f"{least} to {(1 << width) - 1}",
            given=match.group()[:40],
            hint=f"the public assembler takes this word as ${-number}" if lowest else None,
        )
    return number & (1 << width) - 1


def _trigger(cursor: LineCursor, places: Places) -> isa.Trigger:
    """The trigger, up to and including the colon."""
    form = "when %p == PATTERN with %iN.TAG, ...:"
    if not cursor.take(_WHEN):
        word = cursor.rest.split(maxsplit=1)[0]
        raise cursor.error(
            "the line is not an instruction",
            expected=f"{form}, or init %rN, $NUMBER;",
            hint=nearest(word, ("when", "init"))
            or "an operation stands in the line of its header, or in the line right below it",
        )
    places["pattern"] = cursor.place
    pattern = cursor.expect(_PATTERN, "the pattern is missing", form).group(1)
    checks: list[isa.TagCheck] = []
    if cursor.take(_WITH):
        while True:
            places[f"check {len(checks)}"] = cursor.place
            match = cursor.expect(
                _CHECK, "invalid check of a channel", "%iN.TAG or !%iN.TAG, as %i0.1"
            )
            negated, channel, tag = match.groups()
            checks.append(
                isa.TagCheck(
                    channel=whole_number(channel), tag=whole_number(tag), equal=not negated
                )
            )
            if not cursor.take(_COMMA):
                break
    cursor.expect(_COLON, "invalid trigger", f"{form} (a pattern of 0, 1 and X)")
    ones, zeros = bits_of(pattern)
    return isa.Trigger(ones=ones, zeros=zeros, checks=tuple(checks))


def _next_line(line: BlockLine | None, header: LineCursor) -> BlockLine:
    """The line of the operation, which directly follows that of the trigger."""
    if line is None or line.blank:
        place = header.place if line is None else line.place
        comment = line is not None and line.comment is not None
        raise place.error(
            "the operation is missing in the line below the trigger",
            expected="the operation there, with nothing between",
            given="a comment" if comment else "nothing" if line is None else "a blank line",
        )
    return line
