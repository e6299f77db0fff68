"""The language of the public assembler: what is taken, and what is refused, with its place."""

from __future__ import annotations

import pytest

from t2s.backends.cgra_tia.fabric import EXTENDED_CORE, PUBLIC_CORE, CoreParameters
from t2s.backends.cgra_tia.program import (
    CellProgram,
    FromChannel,
    FromRegister,
    Immediate,
    Instruction,
    Opcode,
    TagCheck,
    TextPosition,
    ToOutputs,
    ToRegister,
    Trigger,
)
from t2s.backends.cgra_tia.text.parser import parse_programs
from t2s.backends.cgra_tia.text.places import TriggeredTextError
from t2s.backends.cgra_tia.text.printer import print_programs


def program(lines: str, core: CoreParameters = PUBLIC_CORE) -> CellProgram:
    (found,) = parse_programs(f"<pe>\n{lines}", core)
    return found


def instruction(line: str, core: CoreParameters = PUBLIC_CORE) -> Instruction:
    (found,) = program(line, core).instructions
    return found


def test_all_parts_of_an_instruction() -> None:
    text = (
        "# a > b stands before the first label\n"
        "  <left, above> # the loader\n"
        "  init %r1,  $-5;  # five\n"
        "\n"
        "  # adds\n"
        "  #   and sends\n"
        "  when %p == 0x10 with %i1.2 , !%i0.3: # header\n"
        "      mac %o{0,  3}.1, %r7 ,%i1, $0xFF; set %p=Z1zX; deq %i1, %i0;\r\n"
        "<>when %p==:halt;"
    )
    left, other = parse_programs(text, PUBLIC_CORE)
    assert left == CellProgram(
        initial=((1, 0xFFFFFFFB),),
        instructions=(
            Instruction(
                trigger=Trigger(
                    ones=0b0010,
                    zeros=0b1001,
                    checks=(TagCheck(channel=1, tag=2), TagCheck(channel=0, tag=3, equal=False)),
                ),
                opcode=Opcode.MAC,
                destination=ToOutputs((0, 3), 1),
                sources=(FromRegister(7), FromChannel(1), Immediate(255)),
                takes=(0, 1),
                sets=0b0100,
            ),
        ),
    )
    assert left.label == "left, above"
    assert left.instructions[0].position == TextPosition(line=7, column=3)
    assert left.instructions[0].comment == ("adds", "  and sends")
    assert other == CellProgram(instructions=(Instruction(trigger=Trigger(), opcode=Opcode.HALT),))


@pytest.mark.parametrize(
    "line",
    [
        "when %p == XXXXXXXX: nop;",
        "when%p==1: nop ; ",
        "when %p == xxxxxxxxxXXXX1: nop;",
        "when %p == 1:\tnop;",
        "when %p == 1 with %i0.0, %i0.1: nop;",
        "when %p == 1 with %i0.0: halt %o1.1; deq %i0;",
        "when %p == 1 with %i0.0: nop; set %p = 0; deq %i0;",
        "when %p == 1 with %i0.0: nop; deq %i0, %i0;",
        "when %p == 1: add %r0, %r1;",
        "when %p == 1: mov %r07, %r00;",
        "when %p == 1: mov %o1.0, $0XfF;",
        "when %p == 1: mov %o{1 ,0}.0, %r1;",
        "when %p == 1: ssw $5, %r0;",
        "when %p == 1: fmac %r0, %r1, %r2, %r3;",
        "when %p == 1: nop; set %p = ZZZZZZZZZZZ;",
        "init%r7,$-1;",
        "init %r7 , $0x10;",
        "init %r0, $4294967295;",
        "init %r0, $-2147483647;",
    ],
)
def test_odd_forms_that_the_public_assembler_takes(line: str) -> None:
    found = parse_programs(f"<pe>\n{line}", PUBLIC_CORE)
    assert parse_programs(print_programs(found, PUBLIC_CORE), PUBLIC_CORE) == found


@pytest.mark.parametrize(
    ("number", "pattern"),
    [
        ("$5", 5),
        ("$-5", 0xFFFFFFFB),
        ("$FF", 255),
        ("$10", 10),
        ("$0x10", 16),
        ("$0b11", 0xB11),
        ("$00012", 12),
        ("$-2147483648", 0x80000000),
        ("$4294967295", 0xFFFFFFFF),
    ],
)
def test_immediates(number: str, pattern: int) -> None:
    assert instruction(f"when %p == X: mov %r0, {number};").sources == (Immediate(pattern),)


@pytest.mark.parametrize(
    ("literal", "word"),
    [
        ("$f1.5", 0x3FF8000000000000),
        ("$f-0.0", 0x8000000000000000),
        ("$f1e-3", 0x3F50624DD2F1A9FC),
        ("$finf", 0x7FF0000000000000),
        ("$-1", 0xFFFFFFFFFFFFFFFF),
        ("$9223372036854775808", 1 << 63),
    ],
)
def test_first_words_of_the_extended_core(literal: str, word: int) -> None:
    found = program(f"init %r0, {literal};", EXTENDED_CORE)
    assert found.initial == ((0, word),)
    assert parse_programs(print_programs([found], EXTENDED_CORE), EXTENDED_CORE) == (found,)


def test_a_float_that_is_too_large() -> None:
    with pytest.raises(TriggeredTextError, match="too large for a float64") as caught:
        program("init %r0, $f1E400;", EXTENDED_CORE)
    assert caught.value.column == 11
    assert "or $finf" in str(caught.value)


def test_the_last_of_two_first_words_counts() -> None:
    assert program("init %r0, $1;\ninit %r1, $2;\ninit %r0, $3;").initial == ((1, 2), (0, 3))


def test_comments_and_labels_are_printed_without_brackets() -> None:
    found = Instruction(
        trigger=Trigger(), opcode=Opcode.HALT, destination=ToRegister(1), comment=("a<b>\nc",)
    )
    text = print_programs(
        [CellProgram(label="p<0>", instructions=(found,))], PUBLIC_CORE, ["made <here>"]
    )
    assert text == ("# made (here)\n\n<p(0)>\n# a(b) c\nwhen %p == XXXXXXXX:\n  halt %r1;\n")
    assert parse_programs(text, PUBLIC_CORE)[0].instructions == (found,)


FORM = "when %p == PATTERN with %iN.TAG, ...:"

# a line, the column, the message, what is expected, what is given and, where there is one, a hint
REFUSALS = [
    ("mov %r0, %r1;", 1, "is not an instruction", FORM, "'mov'", "right below it"),
    ("wen %p == X: nop;", 1, "is not an instruction", FORM, "'wen'", "did you mean 'when'?"),
    ("when %q == X: nop;", 1, "is not an instruction", FORM, "'when'", "did you mean 'when'?"),
    ("when %p == 0Z1: nop;", 13, "invalid trigger", FORM, "'Z1'", ""),
    ("when %p == 0 == 1: nop;", 14, "invalid trigger", FORM, "'=='", ""),
    ("when %p == 1XXXXXXXX: nop;", 12, "unknown predicate %p8", "%p0 to %p7", "%p8", ""),
    (
        "when %p == X with : nop;",
        19,
        "invalid check of a channel",
        "%iN.TAG or !%iN.TAG",
        "':'",
        "",
    ),
    ("when %p == X with %i0: nop;", 19, "invalid check of a channel", "%iN.TAG", "'%i0'", ""),
    ("when %p == X with %i0.1,: nop;", 25, "invalid check of a channel", "%iN.TAG", "':'", ""),
    ("when %p == X with %i0.1.2: nop;", 24, "invalid trigger", FORM, "'.2'", ""),
    ("when %p == X with %i0.0 with %i1.0: nop;", 25, "invalid trigger", FORM, "'with'", ""),
    ("when %p == X with %i4.0: nop;", 19, "unknown input channel %i4", "%i0 to %i3", "%i4", ""),
    ("when %p == X with %i0.0, %i1.4: nop;", 26, "unknown tag 4", "tags 0 to 3", "4", ""),
    (
        "when %p == X with %i0.0, %i1.0, %i2.0: nop;",
        33,
        "checks more channels than the hardware can",
        "at most 2 checks",
        "3 checks",
        "",
    ),
    ("when %p == X: ;", 15, "an operator is missing", "such as mov", "';'", ""),
    ("when %p == X: ad %r0, %r1;", 15, "unknown operator 'ad'", "such as add", "'ad'", "'add'?"),
    ("when %p == X: MOV %r0, %r1;", 15, "unknown operator 'MOV'", "such as", "'MOV'", "'mov'?"),
    ("when %p == X: mov  %r0;", 18, "not separated by one blank", "with one blank", "' '", ""),
    ("when %p == X: mov\t%r0;", 18, "not separated by one blank", "with one blank", "'\\t'", ""),
    ("when %p == X: nop", 18, "not separated by one blank", "", "the end of the line", ""),
    ("when %p == X: mov %r8, %r0;", 19, "unknown register %r8", "%r0 to %r7", "%r8", ""),
    ("when %p == X: mov %r0, %r8;", 24, "unknown register %r8", "%r0 to %r7", "%r8", ""),
    ("when %p == X: mov %p8, %r0;", 19, "unknown predicate %p8", "%p0 to %p7", "%p8", ""),
    ("when %p == X: mov %o5.0, %r0;", 19, "unknown output channel %o5", "%o0 to %o3", "%o5", ""),
    ("when %p == X: mov %o1.4, %r0;", 19, "unknown tag 4", "tags 0 to 3", "4", ""),
    ("when %p == X: mov %o1, %r0;", 19, "this is not a destination", "%oN.TAG", "'%o1'", ""),
    ("when %p == X: mov %i1, %r0;", 19, "this is not a destination", "%rN, %pN", "'%i1'", ""),
    ("when %p == X: mov %r1.0, %r0;", 19, "this is not a destination", "%rN", "'%r1.0'", ""),
    ("when %p == X: mov %o{1, 1}.0, %r0;", 19, "occurs twice", "once", "'%o{1, 1}.0'", ""),
    ("when %p == X: mov %o{1}.0, %r0;", 19, "not accept outputs", "two", "%o{1}.0", "write %o1.0"),
    (
        "when %p == X: mov %o{1, 2 }.0, %r0;",
        19,
        "not accept",
        "no blank",
        "2 }",
        "write %o{1, 2}.0",
    ),
    (
        "when %p == X: mov %o{ 1, 2}.0, %r0;",
        19,
        "not accept",
        "no blank",
        "{ 1",
        "write %o{1, 2}.0",
    ),
    ("when %p == X: mov %r0 %r1;", 23, "unexpected text behind", "a ','", "'%r1'", ""),
    ("when %p == X: mov %r0, %o1.0;", 24, "this is not a source", "%rN, %iN", "'%o1.0'", ""),
    ("when %p == X: mov %r0, $f1.5;", 24, "this is not a source", "$0xFF", "'$f1.5'", "init lines"),
    ("when %p == X: mov %r0, $1_0;", 24, "this is not a source", "$0xFF", "'$1_0'", ""),
    ("when %p == X: mov %r0, $4294967296;", 24, "does not fit", "32 bits", "$4294967296", ""),
    ("when %p == X: mov %r0, $-2147483649;", 24, "does not fit", "-2147483648 to", "$-2", ""),
    ("when %p == X: mov %r0, $" + "9" * 5000 + ";", 24, "does not fit", "32 bits", "$999", ""),
    (
        "when %p == X: add %r0, $1, $2;",
        28,
        "two different immediates, but room for one",
        "one immediate, which several sources may be",
        "another one",
        "put one of them into a register",
    ),
    (
        "when %p == X: mac %r0, %r1, %r1, %r1, %r1;",
        39,
        "three operands at most",
        "at most 3 sources",
        "4 sources",
        "",
    ),
    ("when %p == X: nop; deq %i5;", 24, "unknown input channel %i5", "%i0 to %i3", "%i5", ""),
    ("when %p == X: nop; deq  %i1;", 20, "repeated part of an instruction", "deq %iN", "'deq'", ""),
    ("when %p == X: nop; deq %r1;", 24, "this is not an input channel", "%iN", "'%r1'", ""),
    (
        "when %p == X: nop; set %p = 2;",
        29,
        "unexpected text behind set",
        "0, 1, X and Z",
        "'2'",
        "",
    ),
    ("when %p == X: nop; set %p = 1; set %p = 1;", 32, "repeated part", "set", "'set'", ""),
    ("when %p == X: nop; set %p = 1ZZZZZZZZ;", 29, "unknown predicate %p8", "%p0 to", "%p8", ""),
    ("when %p == X: nop; nop;", 20, "repeated part of an instruction", "once each", "'nop'", ""),
    ("when %p == X: ssw %r0;", 15, "ssw stores a word", "ssw VALUE, ADDRESS", "1 sources", ""),
    ("when %p == X: ssw %r0, %r1, %r2;", 15, "ssw stores", "ssw VALUE", "3 sources", ""),
    ("init %r9, $1;", 6, "unknown register %r9", "%r0 to %r7", "%r9", ""),
    ("init %r0 $1;", 10, "are not separated", "init %rN, $NUMBER;", "'$1'", ""),
    ("init %r0, $0xff;", 11, "the value is not a number", "no letters", "'$0xff'", ""),
    ("init %r0, $4294967296;", 11, "into a word of 32 bits", "4294967295", "$4294967296", ""),
    ("init %r0, $-2147483648;", 11, "word of 32", "-2147483647 to", "$-2147", "as $2147483648"),
    ("init %r0, $1; nop", 15, "unexpected text behind", "a line of its own", "'nop'", ""),
    ("init %r0, $f1.5;", 11, "do not hold floats", "an integer of 32 bits", "'$f1.5'", "profile B"),
    ("init $1;", 6, "has no register", "init %rN, $NUMBER;", "'$1'", ""),
    ("init %r0, $5", 11, "the value is not a number", "and ';' behind them", "'$5'", ""),
    ("> nop", 1, "is not an instruction", FORM, "'>'", ""),
]


@pytest.mark.parametrize(
    ("line", "column", "message", "expected", "given", "hint"),
    REFUSALS,
    ids=[line[:40] for line, *_ in REFUSALS],
)
@pytest.mark.parametrize("before", [0, 15])
def test_refusals(
    line: str, column: int, message: str, expected: str, given: str, hint: str, before: int
) -> None:
    """Alone in a file, and in the last of sixteen elements."""
    text = "<pe>\nwhen %p == X: halt;\n" * before + f"<last>\n{line}\nwhen %p == X: halt;\n"
    with pytest.raises(TriggeredTextError) as caught:
        parse_programs(text, PUBLIC_CORE, "file.tia")
    error = caught.value
    assert (error.line, error.column) == (2 * before + 2, column)
    where = f"in PE {before} <last>, line {error.line}, column {column}: "
    assert error.message.startswith(where)
    assert message in error.message
    assert expected in str(error.expected)
    assert given in str(error.given)
    assert hint in str(error.hint)
    assert f"--> file.tia:{error.line}\n" in str(error)
    assert line[:60] in str(error)


# a text, line and column, the message, what is expected and what is given
TEXTS = [
    ("", 1, 1, "the text has no label", "a line <NAME>", "no label"),
    ("nothing here", 1, 1, "the text has no label", "a line <NAME>", "no label"),
    ("x\nwhen %p == X: halt;\n", 2, 1, "before the first label", "a line <NAME>", "halt"),
    ("init %r0, $1;\n<a>", 1, 1, "before the first label", "a line <NAME>", "init"),
    ("when %p == X: halt; <a>", 1, 1, "before the first label", "a line <NAME>", "halt"),
    ("<a>\n# i < n\n", 2, 5, "would cut the text there", "no '<' or '>'", "'< n'"),
    ("# see <a>\n<a>\n", 1, 7, "would cut the text there", "no '<' or '>'", "'<a>'"),
    ("<a> # b -> c\n", 1, 10, "would cut the text there", "one label", "'> c'"),
    ("<a> <b>\n", 1, 5, "would cut the text there", "one label", "'<b>'"),
    ("<a\n>\n", 1, 1, "not part of a label", "one label", "'<a'"),
    (
        "<a>\nwhen %p == X:\n\n  halt;",
        3,
        1,
        "operation is missing in the line below",
        "nothing between",
        "a blank line",
    ),
    ("<a>\nwhen %p == X:\n # c\n  halt;", 3, 1, "in the line below", "with", "a comment"),
    ("<a>\nwhen %p == X:", 2, 14, "in the line below", "with nothing", "nothing"),
    ("<a>\nwhen %p == X:\n<b>", 3, 1, "in the line below", "with nothing", "a blank line"),
    ("<a>\nwhen %p == X:\ninit %r0, $1;", 3, 1, "unknown operator 'init'", "such as", "'init'"),
    ("<a>\nwhen %p == X:\n add %r0,\n %r1;", 3, 10, "not a source", "%rN", "the end of the line"),
    (
        "<a>\n" + "when %p == X: nop;\n" * 17,
        18,
        1,
        "longer than the memory for instructions",
        "at most 16",
        "instruction 17",
    ),
]


@pytest.mark.parametrize(("text", "line", "column", "message", "expected", "given"), TEXTS)
def test_texts_that_are_no_programs(
    text: str, line: int, column: int, message: str, expected: str, given: str
) -> None:
    with pytest.raises(TriggeredTextError) as caught:
        parse_programs(text, PUBLIC_CORE)
    error = caught.value
    assert (error.line, error.column) == (line, column)
    assert message in error.message
    assert expected in str(error.expected)
    assert given in str(error.given)
