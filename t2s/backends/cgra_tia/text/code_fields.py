"""The code of an instruction as fields: one table, from which encoder and decoder both work.

Goes in: the sizes of a core.  Comes out: the fields from the most significant bit on, each with a
name and a width.  Widths for ``PUBLIC_CORE`` are 113 of 128 bits, for ``EXTENDED_CORE`` 147 of 160.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from t2s.backends.cgra_tia.fabric import CoreParameters
from t2s.backends.cgra_tia.text.instruction_rules import MOST_SOURCES, tag_bits
from t2s.core.errors import UserError

OPCODE_BITS = 6
KIND_BITS = 2
WORD_BITS = 32
"""Bits of a word in files: instructions and registers are multiples of it."""


def channel_bits(core: CoreParameters) -> int:
    """Bits of a checked channel: 0 is none, so that channel n is n + 1."""
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
    """Bits of an instruction that mean something."""
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
