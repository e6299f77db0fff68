"""Profile A runs as the public simulator does: cycles counted by hand, and measured there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from t2s.backends.cgra_tia.fabric import PUBLIC_CORE, CoreParameters
from t2s.backends.cgra_tia.machine.profile_a import (
    PublicRun,
    TriggeredDeadlockError,
    TriggeredLimitError,
    public_array,
    run_public,
)
from t2s.backends.cgra_tia.text.parser import parse_programs
from t2s.core.errors import UserError


def run(
    text: str,
    memory: Sequence[int] = (),
    shape: tuple[int, int] | None = None,
    core: CoreParameters = PUBLIC_CORE,
    max_cycles: int = 100_000,
) -> PublicRun:
    words = np.zeros(64, np.uint32)
    words[: len(memory)] = memory
    programs = parse_programs(text, core)
    return run_public(programs, words, core, shape=shape, max_cycles=max_cycles, keep_trace=True)


def one(*lines: str) -> str:
    """The text of one element: a line is a state, in which the next one is set unless it halts."""
    text = "<pe>\n"
    for number, line in enumerate(lines):
        trigger, _, operation = line.rpartition(": ")
        update = "" if operation.startswith("halt") else f" set %p = {number + 1:08b};"
        text += f"when %p == {number:08b}{trigger}: {operation}{update}\n"
    return text


HALT = "when %p == XXXXXXXX: halt;\n"


def test_a_halt_takes_no_cycle() -> None:
    result = run(one(": halt;"))
    assert (result.cycles, result.retired, result.untriggered) == (0, (1,), (0,))
    assert result.trace is not None
    assert result.trace.tolist() == [[0]]


@pytest.mark.parametrize(
    "order", [("mov %o2.0, $5;", "mov %o3.0, $42;"), ("mov %o3.0, $42;", "mov %o2.0, $5;")]
)
def test_address_and_datum_of_a_store_meet_in_the_port(order: tuple[str, str]) -> None:
    result = run(one(*(f": {line}" for line in order), ": halt;"))
    assert result.cycles == 3
    assert result.memory[5] == 42
    assert result.retired == (3,)


@pytest.mark.parametrize(("columns", "cycles"), [(2, 2), (3, 4), (5, 8)])
def test_a_hop_takes_two_cycles(columns: int, cycles: int) -> None:
    between = "<between>\nwhen %p == X with %i3.1: halt %o1.1; deq %i3;\n" * (columns - 2)
    text = f"<a>\nwhen %p == X: halt %o1.1;\n{between}<z>\nwhen %p == X with %i3.1: halt; deq %i3;"
    assert run(text, shape=(1, columns)).cycles == cycles


def test_the_first_instruction_in_the_text_wins() -> None:
    text = "<pe>\nwhen %p == XXXXXXX0: add %r0, %r0, $1; set %p = ZZZZZZZ1;\n" + HALT
    result = run(text)
    assert result.cycles == 1
    assert result.trace is not None
    assert result.trace.tolist() == [[0], [1]]


def test_load_to_use_takes_five_cycles() -> None:
    text = one(
        ": mov %o0.0, $1;",
        ": mov %o0.1, $2;",
        " with %i0.0: mov %r0, %i0; deq %i0;",
        " with %i0.1: sub %o3.0, %i0, %r0; deq %i0;",
        ": mov %o2.0, $8;",
        ": halt;",
    )
    result = run(text, [7, 20, 50])
    assert result.cycles == 9
    assert result.memory[8] == 30
    assert (result.retired, result.untriggered) == ((6,), (3,))
    assert result.trace is not None
    assert result.trace[:, 0].tolist() == [0, 1, -1, -1, -1, 2, 3, 4, 5, -1]


def test_a_link_moves_a_token_in_every_cycle() -> None:
    sends = one(*(f": mov %o1.0, ${n};" for n in range(12)), ": halt %o1.1;")
    forward = (
        "when %p == X with %i3.0: mov %o1.0, %i3; deq %i3;\n"
        "when %p == X with %i3.1: halt %o1.1; deq %i3;\n"
    )
    sink = (
        "when %p == X with %i3.0: add %r0, %r0, %i3; deq %i3;\n"
        "when %p == X with %i3.1: halt; deq %i3;\n"
    )
    result = run(f"{sends}<b>\n{forward}<c>\n{forward}<d>\n{sink}", shape=(1, 4))
    assert result.trace is not None
    fired = [cycle for cycle, number in enumerate(result.trace[:, 3]) if number == 0]
    assert fired == list(range(6, 18))


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_a_link_holds_twice_the_depth_and_has_room_two_cycles_after_a_take(depth: int) -> None:
    core = replace(PUBLIC_CORE, channel_depth=depth)
    sender = one(*(f": mov %o1.0, ${n};" for n in range(10)), ": halt %o1.1;")
    sleeper = one(*[": nop;"] * 12) + (
        "when %p == 00001100 with %i3.0: nop; deq %i3;\n"
        "when %p == 00001100 with %i3.1: halt; deq %i3;\n"
    )
    result = run(sender + sleeper, shape=(1, 2), core=core)
    assert result.trace is not None
    fired = [cycle for cycle, number in enumerate(result.trace[:, 0]) if number >= 0]
    assert fired[: 2 * depth] == list(range(2 * depth))
    assert fired[2 * depth] == 14  # the first token is taken in cycle 12


def test_the_run_ends_while_a_datum_is_on_its_way_in_a_port() -> None:
    result = run("<pe>\nwhen %p == X: halt %o0.0;")
    assert result.cycles == 2  # sent in 0, moved in 1, taken by the port in 2, and no FIFO is full


def test_memory_ports_of_an_array() -> None:
    """Each column reads in the north; columns 2j and 2j + 1 write together in the south."""
    text = "".join(
        f"<c{n}>\nwhen %p == 00: mov %o0.2, ${n}; set %p = 01;\n"
        "when %p == 01 with %i0.2: mov %o2.0, %i0; deq %i0; set %p = 11;\n"
        "when %p == 11: halt;\n"
        for n in range(4)
    )
    result = run(text, [10, 111, 12, 113], shape=(1, 4))
    assert result.memory[10] == 111
    assert result.memory[12] == 113


OPERATIONS = [
    ("mov %r0, $-5", 0xFFFFFFFB),
    ("mov %r0", 0),
    ("nop %r0", 0),
    ("add %r0, %r1, $1", 0x80000000),
    ("sub %r0, %r3, $1", 0xFFFFFFFF),
    ("sl %r0, %r2, $31", 0x80000000),
    ("sl %r0, %r2, $32", 0),
    ("sl %r0, %r2, $-1", 0),
    ("lsr %r0, %r2, $31", 1),
    ("lsr %r0, %r2, $32", 0),
    ("asr %r0, %r2, $4", 0xFFFFFFFF),
    ("asr %r0, %r2, $40", 0xFFFFFFFF),
    ("asr %r0, %r1, $40", 0),
    ("eq %r0, %r2, $-1", 1),
    ("ne %r0, %r2, $-1", 0),
    ("sgt %r0, %r1, %r2", 1),
    ("ugt %r0, %r1, %r2", 0),
    ("slt %r0, %r2, $0", 1),
    ("ult %r0, %r2, $0", 0),
    ("sge %r0, %r2, %r2", 1),
    ("uge %r0, %r1, %r2", 0),
    ("sle %r0, %r2, %r1", 1),
    ("ule %r0, %r2, %r1", 0),
    ("band %r0, %r1, $0xFF00", 0xFF00),
    ("bor %r0, %r3, $0xFF00", 0xFF00),
    ("bxor %r0, %r2, $1", 0xFFFFFFFE),
    ("land %r0, %r1, $2", 1),
    ("lor %r0, %r3, %r3", 0),
    ("lxor %r0, %r1, %r2", 0),
    ("gb %r0, %r1, $30", 1),
    ("gb %r0, %r1, $31", 0),
    ("gb %r0, %r2, $32", 0),
    ("sb %r0, %r2, $0, %r3", 0xFFFFFFFE),
    ("sb %r0, %r3, $4, %r1", 16),
    ("sb %r0, %r3, $32, %r1", 0),
    ("cb %r0, %r2, $31", 0x7FFFFFFF),
    ("mb %r0, %r3, $31", 0x80000000),
    ("mb %r0, %r3, $33", 0),
    ("clz %r0, %r1", 1),
    ("clz %r0, %r1, $1", 30),
    ("clz %r0, %r3", 0xFFFFFFFF),
    ("clz %r0, %r3, $1", 32),
    ("ctz %r0, %r4", 8),
    ("ctz %r0, %r3", 32),
    ("lmul %r0, %r2, %r1", 0x80000001),
    ("shmul %r0, %r2, %r1", 0xFFFFFFFF),
    ("uhmul %r0, %r2, %r1", 0x7FFFFFFE),
    ("mac %r0, %r1, %r2, %r4", 0x7FFFFEFF),
    ("lsw %r0, $511", 77),
    ("halt %r0", 0),
]


@pytest.mark.parametrize(("operation", "expected"), OPERATIONS)
def test_operators(operation: str, expected: int) -> None:
    """Registers: 1 is the largest number, 2 is -1, 3 is 0, 4 is 256; word 511 is 77."""
    text = (
        "<pe>\ninit %r1, $2147483647;\ninit %r2, $-1;\ninit %r4, $256;\ninit %r5, $77;\n"
        "when %p == 000: ssw %r5, $511; set %p = 001;\n"
        f"when %p == 001: {operation}; set %p = 010;\n"
    )
    array = public_array(parse_programs(text, PUBLIC_CORE), PUBLIC_CORE, None)
    (element,) = array.elements
    element.registers[0] = 99
    assert [element.step(), element.step()] == [0, 1]
    assert element.registers[0] == expected
    assert element.halted is operation.startswith("halt")


def test_a_constant_wins_over_the_result() -> None:
    text = (
        "<pe>\nwhen %p == X0: eq %p1, $0, %r0; set %p = 01;\n"
        "when %p == 01: halt;\nwhen %p == 11: nop;"
    )
    assert run(text).cycles == 1


NOWHERE = "bnand bnor bxnor lnand lnor lxnor gby sby cby mby rlw olw sw itf feq fadd fmac"


@pytest.mark.parametrize("operator", NOWHERE.split())
def test_operators_that_no_public_machine_has(operator: str) -> None:
    text = f"<pe>\nwhen %p == X0: {operator} %r0, %r1, %r2; set %p = Z1;\n{HALT}"
    with pytest.raises(UserError) as caught:
        run(text)
    assert f"in PE 0 <pe>, line 2: the public machine has no operator {operator}," in str(
        caught.value
    )
    assert "expected: one of nop, mov, add," in str(caught.value)


def test_a_deadlock_names_elements_lines_channels_and_their_fill() -> None:
    text = (
        "<a>\nwhen %p == 0 with %i1.1: halt; deq %i1;\n"
        "when %p == 0: mov %o1.0, $1;\n"
        "<b>\nwhen %p == X with %i3.1: halt; deq %i3;\n"
    )
    with pytest.raises(TriggeredDeadlockError) as caught:
        run(text, shape=(1, 2))
    said = str(caught.value)
    assert "the program is stuck in cycle 4: nothing moves any more" in said
    assert "2 of 2 elements have not halted" in said
    assert "PE 0 <a>: instruction 0 (line 2) waits for a token in %i1 of PE 0 <a>" in said
    assert "instruction 1 (line 3) waits for room in %o1 of PE 0 <a> (2 of 2 tokens)" in said
    assert "waits for another tag than 0 in %i3 of PE 1 <b> (2 of 2 tokens)" in said


def test_a_token_that_leads_nowhere_is_a_deadlock() -> None:
    with pytest.raises(TriggeredDeadlockError) as caught:
        run("<a>\nwhen %p == X: halt %o3.0;\n", shape=(1, 1))
    said = str(caught.value)
    assert "all elements have halted, and nothing takes the remaining tokens" in said
    assert "tokens are left in %o3 of PE 0 <a> (1 of 2 tokens)" in said


def test_an_element_without_an_instruction_for_its_predicates() -> None:
    with pytest.raises(TriggeredDeadlockError, match="instruction for its predicates 0000"):
        run("<a>\nwhen %p == 1: halt;\n")


def test_a_run_without_end_stops_at_the_limit() -> None:
    with pytest.raises(TriggeredLimitError) as caught:
        run("<a>\nwhen %p == X: nop;\n", max_cycles=1000)
    assert "had not ended after cycle 1,000, the limit" in str(caught.value)
    assert "not halted: PE 0 <a>" in str(caught.value)


@pytest.mark.parametrize(
    ("line", "given"),
    [
        ("lsw %r0, $512", "lsw of address 512"),
        ("ssw %r0, $-1", "ssw of address 4294967295"),
    ],
)
def test_addresses_beyond_the_scratchpad(line: str, given: str) -> None:
    with pytest.raises(UserError, match="goes beyond its scratchpad in line 2") as caught:
        run(f"<a>\nwhen %p == X0: {line}; set %p = Z1;\n{HALT}")
    assert f"given:    {given}" in str(caught.value)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("mov %r0, %i0;", "instruction 1 (line 3) of PE 0 <pe> fires without a token in %i0"),
        ("nop; deq %i0;", "instruction 1 (line 3) of PE 0 <pe> fires without a token in %i0"),
    ],
)
def test_a_channel_that_is_used_unchecked_and_empty(line: str, found: str) -> None:
    """A word comes four cycles after its address was sent: so long the channel is empty."""
    for wait in range(5):
        text = one(": mov %o0.0, $1;", *[": nop;"] * wait, f": {line}", ": halt;")
        said = found.replace("n 1", f"n {wait + 1}").replace("line 3", f"line {wait + 3}")
        if wait < 4:
            with pytest.raises(UserError) as caught:
                run(text)
            assert said in str(caught.value)
            assert "`with %i0.TAG` in its trigger waits for a token" in str(caught.value)
        elif "deq" in line:
            assert run(text).cycles == wait + 2
            waiting = text.replace(f": {line}", f" with %i0.0: {line}")
            assert run(waiting).cycles == wait + 2


def test_two_equal_immediates() -> None:
    assert run(one(": mac %o3.0, $9, $9, $9;", ": mov %o2.0, $8;", ": halt;")).memory[8] == 90


@pytest.mark.parametrize(
    ("text", "port"),
    [
        ("<a>\nwhen %p == X: halt %o0.0;", ""),
        ("<a>\nwhen %p == X0: mov %o0.0, $64; set %p = Z1;\n" + HALT, "read port 0"),
        ("<a>\nwhen %p == X0: mov %o{2, 3}.0, $64; set %p = Z1;\n" + HALT, "write port 0"),
    ],
)
def test_addresses_beyond_the_memory(text: str, port: str) -> None:
    if not port:
        assert run(text).cycles == 2
        return
    with pytest.raises(UserError, match=f"{port} is asked for a word beyond the memory") as caught:
        run(text)
    assert "an address from 0 to 63" in str(caught.value)


def test_the_table_of_a_run() -> None:
    assert str(run(one(": nop;", ": halt;"))) == (
        "1 cycles\nelement    retired  untriggered\nPE 0 <pe>        2            0\n"
    )
