"""The second half of an instruction: operator, operands, ``deq`` and ``set``.

Goes in: a cursor behind the colon of the trigger.  Comes out: the instruction, and the place of
each part of it.  Numbers of registers and channels are not looked at (``instruction_rules.py``).
"""

from __future__ import annotations

import re

from t2s.backends.cgra_tia.fabric import CoreParameters
from t2s.backends.cgra_tia.opcodes import Opcode
from t2s.backends.cgra_tia.program import (
    Destination,
    FromChannel,
    FromRegister,
    Immediate,
    Instruction,
    Source,
    ToOutputs,
    ToPredicate,
    ToRegister,
    Trigger,
)
from t2s.backends.cgra_tia.text.places import LineCursor, TextPlace, bits_of, nearest, whole_number

Places = dict[str, TextPlace]
"""Where each part of an instruction stands; the parts are those of ``BrokenRule``."""

_OPERATOR = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_ONE_BLANK = re.compile(r" (?=[%$])")
_COMMA = re.compile(r"\s*,\s*")
_SEMICOLON = re.compile(r"\s*;\s*")
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

_OPCODES = {opcode.value: opcode for opcode in Opcode}


def parse_operation(
    cursor: LineCursor, trigger: Trigger, core: CoreParameters, places: Places
) -> Instruction:
    """The instruction with this trigger; the cursor goes to the end of the line."""
    cursor.blanks()
    places["operation"] = cursor.place
    opcode = _opcode(cursor)
    destination: Destination = None
    sources: list[Source] = []
    if not cursor.take(_SEMICOLON):
        cursor.expect(
            _ONE_BLANK,
            "the operator and its destination are not apart by one blank",
            "OPERATOR DESTINATION, SOURCE, ...; with one blank behind the operator",
        )
        if opcode is not Opcode.SSW:
            places["destination"] = cursor.place
            destination = _destination(cursor)
        while (opcode is Opcode.SSW and not sources) or cursor.take(_COMMA):
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
            found = cursor.take(_UPDATE)
            update = found.group(1) if found else ""
            _end(cursor, "set", "0, 1, X and Z, one for each predicate, and ';'")
        else:
            raise cursor.error(
                "this is no part of an instruction, or the second of its kind",
                expected="deq %iN, ...; and set %p = UPDATE; once each, with one blank behind deq",
            )
    ones, zeros = bits_of(update or "")
    return Instruction(
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
    cursor.expect(_SEMICOLON, f"{what} does not end here", expected)


def _opcode(cursor: LineCursor) -> Opcode:
    place = cursor.place
    word = cursor.expect(_OPERATOR, "there is no operator", "an operator, such as mov").group()
    if word not in _OPCODES:
        raise place.error(
            f"there is no operator {word!r}",
            expected="an operator, such as add, mov or halt",
            given=repr(word),
            hint=nearest(word, _OPCODES),
        )
    return _OPCODES[word]


def _destination(cursor: LineCursor) -> Destination:
    found = cursor.take(_REGISTER)
    if found is not None:
        return ToRegister(whole_number(found.group(1)))
    found = cursor.take(_PREDICATE)
    if found is not None:
        return ToPredicate(whole_number(found.group(1)))
    found = cursor.take(_OUTPUT)
    if found is not None:
        return ToOutputs((whole_number(found.group(1)),), whole_number(found.group(2)))
    place = cursor.place
    odd = _ODD_OUTPUTS.match(cursor.rest)
    found = cursor.take(_OUTPUTS)
    if found is None and odd is not None:
        numbers = [number.strip() for number in odd.group(1).split(",")]
        one = f"%o{numbers[0]}" if len(numbers) == 1 else f"%o{{{', '.join(numbers)}}}"
        raise place.error(
            "the public assembler does not take outputs that are written like this",
            expected="two outputs or more between braces, and no blank beside a brace",
            given=repr(odd.group()),
            hint=f"write {one}.{odd.group(2)}",
        )
    if found is None:
        raise cursor.error("this is no destination", expected="%rN, %pN, %oN.TAG or %o{N, M}.TAG")
    channels = [whole_number(number.strip()) for number in found.group(1).split(",")]
    if len(set(channels)) != len(channels):
        raise place.error(
            "an output channel occurs twice",
            expected="each output channel once",
            given=repr(found.group()),
        )
    return ToOutputs(tuple(sorted(channels)), whole_number(found.group(2)))


def _source(cursor: LineCursor, core: CoreParameters) -> Source:
    found = cursor.take(_REGISTER)
    if found is not None:
        return FromRegister(whole_number(found.group(1)))
    found = cursor.take(_CHANNEL)
    if found is not None:
        return FromChannel(whole_number(found.group(1)))
    place = cursor.place
    found = cursor.take(_IMMEDIATE)
    if found is None:
        floats = cursor.rest.startswith("$f")
        raise cursor.error(
            "this is no source",
            expected="%rN, %iN or an immediate: $5, $-5, $0xFF",
            hint="floats are for init lines: init %r0, $f1.5;" if floats else None,
        )
    sign, digits = found.groups()
    decimal = digits.isdecimal() and found.group().lstrip("$-")[1:2] not in ("x", "X")
    value = whole_number(digits, 10 if decimal else 16)
    value = -value if sign else value
    width = core.immediate_width
    if not -(1 << width - 1) <= value < 1 << width:
        raise place.error(
            "the immediate does not fit",
            expected=f"a number of {width} bits: {-(1 << width - 1)} to {(1 << width) - 1}",
            given=found.group()[:40],
        )
    return Immediate(value & (1 << width) - 1)


def _takes(cursor: LineCursor, places: Places) -> list[int]:
    takes: list[int] = []
    while not takes or cursor.take(_COMMA):
        place = cursor.place
        found = cursor.expect(_CHANNEL, "this is no input channel", "%iN")
        takes.append(whole_number(found.group(1)))
        places[f"take {takes[-1]}"] = place
    return takes
