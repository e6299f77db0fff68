"""Codes of instructions: those that the public assembler gives, and all of them back again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2s.backends.cgra_tia.fabric import EXTENDED_CORE, PUBLIC_CORE, CoreParameters
from t2s.backends.cgra_tia.program import CellProgram, Instruction
from t2s.backends.cgra_tia.text.encoding import (
    code_width,
    decode_instruction,
    decode_programs,
    encode_instruction,
    encode_program,
    program_words,
    words_of_file,
    words_to_binary,
    words_to_hex,
)
from t2s.backends.cgra_tia.text.parser import parse_programs
from t2s.backends.cgra_tia.text.printer import print_instruction, print_programs
from t2s.core.errors import UserError
from tests.backends.cgra.random_programs import instructions, programs

CORES = pytest.mark.parametrize("core", [PUBLIC_CORE, EXTENDED_CORE])

# measured with the public assembler
VECTORS = {
    "when %p == 00000000 with %i0.0, %i3.0: mac %r0, %r0, %i0, %i3; deq %i0, %i3;": (
        "00000000 80000000 15b02004 807fc386"
    ),
    "when %p == XXXXXXX1 with !%i2.1: mov %o{1, 2}.2, %i2; deq %i2;": (
        "00000000 00000000 210090d2 80803020"
    ),
    "when %p == 00000000: uge %p7, %r0, %r1; set %p = Z0000001;": (
        "00000000 00800000 c7823e00 807f8001"
    ),
    "when %p == 00000000: halt;": "00000000 00000000 e0000000 807f8004",
    "when %p == 0000X011 with %i1.2: add %r5, %i1, $-1; deq %i1; set %p = ZZZZ1100;": (
        "ffff8000 0601ffff 43006a01 81fa2140"
    ),
    "when %p == X1XXXXXX with %i2.0, !%i0.3: mac %o{0, 3}.1, %r7, %i2, %i0; deq %i0;": (
        "00000000 80000000 1585d128 a00016e6"
    ),
    "when %p == 1XXXXXX1: ssw %r3, $511; set %p = 0ZZZZZZ0;": (
        "00ff8000 00408000 2380c000 c0800005"
    ),
    "when %p == XXXXXXXX with %i3.1: fmac %o2.0, %r1, %i3, %r2;": (
        "00000000 00000000 dda65480 80004127"
    ),
    "when %p == 10101010: ule %p6, %r2, $0x7F; set %p = 1010101Z;": (
        "003f8000 00000000 0380bc00 d52a8002"
    ),
}


def parsed(line: str, core: CoreParameters = PUBLIC_CORE) -> Instruction:
    (program,) = parse_programs(f"<pe>\n{line}\n", core)
    (instruction,) = program.instructions
    return instruction


@pytest.mark.parametrize(("text", "words"), VECTORS.items())
def test_codes_are_those_of_the_public_assembler(text: str, words: str) -> None:
    code = encode_instruction(parsed(text), PUBLIC_CORE)
    assert " ".join(f"{word:08x}" for word in code) == words
    assert decode_instruction(code, PUBLIC_CORE) == parsed(text)


def test_widths_of_the_code() -> None:
    assert code_width(PUBLIC_CORE) == 113
    assert code_width(EXTENDED_CORE) == 147
    assert code_width(replace(PUBLIC_CORE, checks=3)) == 119
    assert code_width(replace(PUBLIC_CORE, checks=4)) == 125
    assert code_width(replace(PUBLIC_CORE, tags=3)) == 113
    assert code_width(replace(PUBLIC_CORE, tags=8)) == 113 + 3


def test_an_update_that_repeats_the_trigger_is_no_part_of_the_code() -> None:
    line = "when %p == 00000000: eq %p0, %r0, %r1; set %p = "
    assert parsed(f"{line}00000010;") == parsed(f"{line}ZZZZZZ1Z;")


def test_unchecked_channels_and_equal_immediates_have_a_code() -> None:
    """The one immediate serves all sources; takes and reads are fields beside the checks."""
    vector = "when %p == XXXXXXXX with %i3.1: fmac %o2.0, %r1, %i3, %r2;"
    unchecked = encode_instruction(parsed(vector.replace(" with %i3.1", "")), PUBLIC_CORE)
    assert unchecked == (*encode_instruction(parsed(vector), PUBLIC_CORE)[:3], 0x80000007)
    for line in (
        "when %p == XXXXXXXX: add %r0, %i2, %i2; deq %i1;",
        "when %p == 00000000 with %i0.1: mac %r0, $-1, $0xFFFFFFFF, %i3; deq %i3;",
    ):
        code = encode_instruction(parsed(line), PUBLIC_CORE)
        assert decode_instruction(code, PUBLIC_CORE) == parsed(line)


@pytest.mark.slow
@CORES
@settings(deadline=None)
@given(data=st.data())
def test_every_instruction_comes_back_from_its_code_and_from_its_text(
    core: CoreParameters, data: st.DataObject
) -> None:
    instruction = data.draw(instructions(core))
    assert decode_instruction(encode_instruction(instruction, core), core) == instruction
    assert parsed(print_instruction(instruction, core), core) == instruction


@pytest.mark.slow
@CORES
@settings(deadline=None, max_examples=30)
@given(data=st.data())
def test_every_program_comes_back_from_files_and_from_its_text(
    core: CoreParameters, data: st.DataObject
) -> None:
    found = tuple(data.draw(st.lists(programs(core), min_size=1, max_size=3)))
    words = [word for program in found for word in encode_program(program, core)]
    assert len(words) == len(found) * program_words(core)
    assert decode_programs(words_of_file(words_to_binary(words)), core) == found
    assert decode_programs(words_of_file(words_to_hex(words).encode()), core) == found
    text = print_programs(found, core, header=("made by hand",))
    assert parse_programs(text, core) == found
    assert print_programs(parse_programs(text, core), core, header=("made by hand",)) == text


def test_a_program_is_its_registers_and_then_its_instructions() -> None:
    (program,) = parse_programs("<pe>\ninit %r1, $-2;\nwhen %p == 00000000: halt;\n", PUBLIC_CORE)
    words = encode_program(program, PUBLIC_CORE)
    assert len(words) == 8 + 16 * 4
    assert words[:8] == (0, 0xFFFFFFFE, 0, 0, 0, 0, 0, 0)
    assert words[8:12] == (0, 0, 0xE0000000, 0x807F8004)
    assert not any(words[12:])
    assert words_to_hex(words).splitlines()[11] == "807f8004"
    assert words_to_binary(words)[4:8] == b"\xfe\xff\xff\xff"


def test_words_of_a_float_take_two() -> None:
    (program,) = parse_programs("<pe>\ninit %r0, $f1.5;\n", EXTENDED_CORE)
    assert encode_program(program, EXTENDED_CORE)[:2] == (0, 0x3FF80000)


GOOD = (0, 0, 0xE0000000, 0x807F8004)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((0, 0, 0, 0x407F8004), "its valid bit is 0"),
        ((1, 0, 0xE0000000, 0x807F8004), "bits below its fields are not"),
        ((0, 0, 0xE0000000, 0x807F8007), "unknown operator 63"),
        ((0x8000, 0, 0xE0000000, 0x807F8004), "fields that it does not use are not 0"),
        ((0, 0, 0xE0000000, 0xFFFF8004), "one and zero"),
    ],
)
def test_words_of_no_instruction_are_refused(words: tuple[int, ...], message: str) -> None:
    assert decode_instruction(GOOD, PUBLIC_CORE) == parsed("when %p == 00000000: halt;")
    with pytest.raises(UserError, match="not the code of an instruction") as caught:
        decode_instruction(words, PUBLIC_CORE)
    assert message in str(caught.value)


@settings(deadline=None)
@given(st.lists(st.integers(0, 0xFFFFFFFF), min_size=4, max_size=4))
def test_random_words_are_an_instruction_or_refused(words: list[int]) -> None:
    try:
        found = decode_instruction(words, PUBLIC_CORE)
    except UserError:
        return
    assert encode_instruction(found, PUBLIC_CORE) == tuple(words)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "0 bytes"), (b"abc", "3 bytes"), (b"12345\n", "6 bytes")],
)
def test_files_of_no_words_are_refused(content: bytes, message: str) -> None:
    with pytest.raises(UserError, match="the file holds no words") as caught:
        words_of_file(content)
    assert message in str(caught.value)


def test_words_of_half_a_program_are_refused() -> None:
    with pytest.raises(UserError, match="the words do not make whole programs"):
        decode_programs((0,) * 71, PUBLIC_CORE)


def test_programs_with_a_gap_are_refused() -> None:
    words = [0] * 72
    words[12:16] = GOOD
    with pytest.raises(UserError, match="have a gap before instruction 1"):
        decode_programs(words, PUBLIC_CORE)


def test_programs_that_break_a_rule_have_no_code() -> None:
    halt = parsed("when %p == 00000000: halt;")
    with pytest.raises(UserError, match="longer than the memory for instructions"):
        encode_program(CellProgram(instructions=(halt,) * 17), PUBLIC_CORE)
    with pytest.raises(UserError, match="invalid initial word of a register"):
        encode_program(CellProgram(initial=((8, 1),)), PUBLIC_CORE)
    with pytest.raises(UserError, match="unknown input channel %i4"):
        encode_instruction(parsed("when %p == X with %i4.0: nop;", EXTENDED_CORE), PUBLIC_CORE)
    with pytest.raises(UserError, match="no room for its fields"):
        encode_instruction(halt, replace(PUBLIC_CORE, instruction_width=96))
