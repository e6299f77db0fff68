"""What whole programs may not be, and what in them is odd."""

from __future__ import annotations

import warnings

import pytest

from t2s.backends.cgra_tia.fabric import EXTENDED_CORE, PUBLIC_CORE, CoreParameters
from t2s.backends.cgra_tia.text.checks import check_programs, reach
from t2s.backends.cgra_tia.text.parser import parse_programs
from t2s.backends.cgra_tia.text.places import TriggeredTextError
from t2s.core.errors import T2SWarning

HALT = "when %p == X: halt;\n"


def check(text: str, core: CoreParameters = PUBLIC_CORE, strict: bool = False) -> None:
    programs = parse_programs(text, core)
    check_programs(programs, core, text=text, file="file.tia", strict=strict)


@pytest.mark.parametrize(
    "lines",
    [
        "",
        "when %p == X: nop;",
        "when %p == 1: halt;",
        "when %p == X: nop;\nwhen %p == X: halt;",
        "when %p == 0: nop; set %p = 1;\nwhen %p == 1: nop; set %p = 0;\nwhen %p == 11: halt;",
    ],
)
@pytest.mark.parametrize("before", [0, 15])
def test_elements_that_never_halt(lines: str, before: int) -> None:
    text = f"<a>\n{HALT}" * before + f"<z>\n{lines}"
    with pytest.raises(TriggeredTextError) as caught:
        check(text)
    said = str(caught.value)
    line = 2 * before + 1
    assert said.startswith(f"in PE {before} <z>, line {line}, column 1: no halt is reachable")
    assert f"--> file.tia:{line}\n" in said
    assert "expected: a halt among the instructions that can fire" in said
    assert "when %p == XXXXXXXX: halt;" in said
    check(f"<z>\n{lines}", EXTENDED_CORE) if "halt" not in lines else None


def test_a_halt_behind_data_can_be_reached() -> None:
    check(
        "<a>\nwhen %p == 00: eq %p1, %r0, %r1; set %p = Z1;\n"
        "when %p == 01: nop; set %p = 00;\nwhen %p == 11: halt;"
    )
    check("<a>\nwhen %p == X with %i0.0: nop; deq %i0;\nwhen %p == X: halt;")
    check("<a>\nwhen %p == X: mov %o0.0, $1;\nwhen %p == X: halt;")


ODD = [
    (
        f"{HALT}when %p == X: nop;",
        "instruction 1 can never fire",
        "a trigger that never chooses nop",
        "the first instruction in the text that can fire does",
    ),
    (
        f"when %p == 1: nop;\n{HALT}",
        "instruction 0 can never fire",
        "a trigger that never chooses nop",
        "",
    ),
    (
        f"when %p == X with %i0.0: nop; deq %i0;\nwhen %p == X with %i1.1, %i0.0: nop;\n{HALT}",
        "instruction 1 can never fire",
        "",
        "",
    ),
    (
        f"when %p == X0: eq %p1, %r0, %r1; set %p = 11;\n{HALT}",
        "instruction 0 writes %p1 twice",
        "both: here the constant wins, in pipelined cores it does not",
        "put Z for %p1 into the update",
    ),
    (
        f"when %p == X0: add %r0, %r1; set %p = 1;\n{HALT}",
        "instruction 0 gives add another number of operands than it uses",
        "1 sources; missing ones are 0",
        "",
    ),
    (
        f"when %p == X0: mov %r0, %i2; set %p = 1;\n{HALT}",
        "instruction 0 reads %i2 without a check, and it may be empty",
        "a run in which it is empty then ends with an error",
        "write `with %i2.TAG` or `with !%i2.TAG` behind the pattern",
    ),
    (  # one of two ways leads past the check
        "when %p == 00: eq %p1, %r0, $3; set %p = Z1;\n"
        "when %p == 11 with !%i1.0: nop; set %p = 01;\n"
        f"when %p == 01: nop; deq %i1;\n{HALT}",
        "instruction 2 takes from %i1 without a check, and it may be empty",
        "a run in which it is empty",
        "write `with %i1.TAG`",
    ),
    (  # the first take leaves nothing that is sure
        "when %p == 00 with %i1.1: nop; set %p = 01;\n"
        "when %p == X1 with !%i1.1: mov %r0, %i1; deq %i1; set %p = 1Z;\n"
        f"when %p == 11: mov %r0, %i1; set %p = 00;\n{HALT}",
        "instruction 2 reads %i1 without a check, and it may be empty",
        "",
        "",
    ),
    (
        f"when %p == 00 with %i1.0: nop; set %p = 01;\n"
        f"when %p == 01: mov %r0, %i1; deq %i1; set %p = 11;\n{HALT}",
        "instruction 1 reads %i1 without a check of its own",
        "a token that an earlier instruction has checked, and that was not taken since",
        "write `with %i1.TAG`",
    ),
]


@pytest.mark.parametrize(("lines", "message", "given", "hint"), ODD)
def test_odd_programs_are_warned_about_or_refused(
    lines: str, message: str, given: str, hint: str
) -> None:
    with pytest.warns(T2SWarning) as seen:
        check(f"<pe>\n{lines}")
    said = str(seen[0].message)
    assert said.startswith("in PE 0 <pe>, line ")
    assert message in said
    assert given in said
    assert hint in said
    assert seen[0].filename == "file.tia"
    with pytest.raises(TriggeredTextError) as caught:
        check(f"<pe>\n{lines}", strict=True)
    assert message in str(caught.value)
    assert caught.value.column == 1


@pytest.mark.parametrize(
    "lines",
    [
        f"when %p == 0X0: ule %p1, %r2, $0x7F; set %p = 1Z1;\n{HALT}",
        f"when %p == 00: ule %p1, %r2, $0x7F; set %p = 01;\n{HALT}",  # bit 1 repeats the trigger
        f"when %p == X0 with %i0.0: nop; deq %i0; set %p = 1;\n"
        f"when %p == X with !%i0.0: nop; deq %i0;\n{HALT}",
        f"when %p == X0: clz %r0, %r1, $1; set %p = 1;\n{HALT}",
        f"when %p == X0: clz %r0, %r1; set %p = 1;\n{HALT}",
        f"when %p == X0: eq %p1, $5, $5; set %p = 1;\n{HALT}",
    ],
)
def test_programs_without_anything_odd(lines: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(f"<pe>\n{lines}", strict=True)


def test_states_that_can_be_reached() -> None:
    (program,) = parse_programs(
        "<pe>\nwhen %p == 00: eq %p3, %r0, %r1; set %p = Z1;\n"
        "when %p == 1XX1: nop; set %p = 10;\nwhen %p == X: halt;\nwhen %p == 1000: nop;",
        PUBLIC_CORE,
    )
    found = reach(program)
    assert found.states == {0b0000, 0b0001, 0b1001, 0b1010}
    assert found.firing == {0, 1, 2}


def test_an_instruction_that_waits_for_an_fma_lets_later_ones_fire() -> None:
    text = "<pe>\nwhen %p == X: fadd %r0, %r0, %r1;\nwhen %p == X: add %r2, %r2, $1;\n"
    check(text, EXTENDED_CORE, strict=True)
    with pytest.raises(TriggeredTextError, match="instruction 1 can never fire"):
        check(text.replace("fadd", "sub"), EXTENDED_CORE, strict=True)
