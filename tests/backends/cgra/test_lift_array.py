"""Programs of profile A as graphs: the memory, the cycles and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2s.backends.cgra_tia.fabric import PUBLIC_CORE, CoreParameters
from t2s.backends.cgra_tia.machine.profile_a import TriggeredDeadlockError, run_public
from t2s.backends.cgra_tia.program import (
    CellProgram,
    FromChannel,
    FromRegister,
    Immediate,
    Instruction,
    Opcode,
    Source,
    TagCheck,
    ToOutputs,
    ToPredicate,
    ToRegister,
    Trigger,
)
from t2s.backends.cgra_tia.text.parser import parse_programs
from t2s.core.errors import UserError
from t2s.simulator.run import simulate
from tests.backends.cgra.element_graph import lift_array, memory_after
from tests.backends.cgra.test_machine_public import HALT, OPERATIONS, one
from tests.sampling import sampled

WORDS = 64
Shape = tuple[int, int] | None


def check(
    programs: Sequence[CellProgram],
    memory: Sequence[int] = (),
    shape: Shape = None,
    core: CoreParameters = PUBLIC_CORE,
) -> int:
    """The lifted graph does what the interpreter does, on both engines; the cycles."""
    words = np.zeros(WORDS, np.uint32)
    words[: len(memory)] = memory
    expected = run_public(programs, words, core, shape=shape, max_cycles=10_000, keep_trace=True)
    graph = lift_array(programs, core, shape=shape, memory_words=WORDS)
    inputs = {"memory": words} if any(t.name == "memory" for t in graph.tensors) else {}
    for engine in ("python", "native"):
        found = simulate(graph, inputs, engine=engine)
        assert found.cycles - 1 == expected.cycles
        np.testing.assert_array_equal(memory_after(words, found.outputs), expected.memory)
        for number, retired in enumerate(expected.retired):
            node = found.nodes[f"pe{number}"]
            assert node.firings == retired
            assert expected.trace is not None
            fired = np.flatnonzero(expected.trace[:, number] >= 0)
            assert (node.first_firing, node.last_firing) == (fired[0] + 1, fired[-1] + 1)
    return expected.cycles


def lifted(
    text: str,
    memory: Sequence[int] = (),
    shape: Shape = None,
    core: CoreParameters = PUBLIC_CORE,
) -> int:
    return check(parse_programs(text, core), memory, shape, core)


def test_one_element_alone() -> None:
    assert lifted(one(": halt;")) == 0
    for order in (("mov %o2.0, $5;", "mov %o3.0, $42;"), ("mov %o3.0, $42;", "mov %o2.0, $5;")):
        assert lifted(one(*(f": {line}" for line in order), ": halt;")) == 3
    first = "<pe>\nwhen %p == XXXXXXX0: add %r0, %r0, $1; set %p = ZZZZZZZ1;\n"
    assert lifted(first + HALT) == 1


@pytest.mark.parametrize(("columns", "cycles"), [(2, 2), (3, 4), (5, 8)])
def test_a_hop_takes_two_cycles(columns: int, cycles: int) -> None:
    between = "<between>\nwhen %p == X with %i3.1: halt %o1.1; deq %i3;\n" * (columns - 2)
    text = f"<a>\nwhen %p == X: halt %o1.1;\n{between}<z>\nwhen %p == X with %i3.1: halt; deq %i3;"
    assert lifted(text, shape=(1, columns)) == cycles


def test_load_to_use_takes_five_cycles() -> None:
    text = one(
        ": mov %o0.0, $1;",
        ": mov %o0.1, $2;",
        " with %i0.0: mov %r0, %i0; deq %i0;",
        " with %i0.1: sub %o3.0, %i0, %r0; deq %i0;",
        ": mov %o2.0, $8;",
        ": halt;",
    )
    assert lifted(text, [7, 20, 50]) == 9


FORWARD = (
    "when %p == X with %i3.0: mov %o1.0, %i3; deq %i3;\n"
    "when %p == X with %i3.1: halt %o1.1; deq %i3;\n"
)
SINK = (
    "when %p == X with %i3.0: add %r0, %r0, %i3; deq %i3;\n"
    "when %p == X with %i3.1: halt; deq %i3;\n"
)


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_links(depth: int) -> None:
    """At the rate of one token per cycle, and full."""
    core = replace(PUBLIC_CORE, channel_depth=depth)
    sends = one(*(f": mov %o1.0, ${n};" for n in range(12)), ": halt %o1.1;")
    lifted(f"{sends}<b>\n{FORWARD}<c>\n{FORWARD}<d>\n{SINK}", shape=(1, 4), core=core)
    sleeper = one(*[": nop;"] * 12) + SINK.replace("== X", "== 00001100")
    lifted(sends + sleeper, shape=(1, 2), core=core)


def test_a_loop_that_its_result_ends() -> None:
    """The sum of the words 0 to 7, stored behind them."""
    text = (
        "<pe>\ninit %r1, $8;\n"
        "when %p == 00000000: mov %o0.0, %r0; set %p = 00000001;\n"
        "when %p == 00000001 with %i0.0: add %r2, %r2, %i0; deq %i0; set %p = 00000010;\n"
        "when %p == 00000010: add %r0, %r0, $1; set %p = 00000011;\n"
        "when %p == 00000011: ult %p7, %r0, %r1; set %p = Z0000100;\n"
        "when %p == 10000100: nop; set %p = 00000000;\n"
        "when %p == 00000100: mov %o2.0, $20; set %p = 00000101;\n"
        "when %p == 00000101: mov %o3.0, %r2; set %p = 00000110;\n"
        "when %p == 00000110: halt;\n"
    )
    assert lifted(text, range(10, 18)) > 60


def test_memory_ports_of_an_array() -> None:
    text = "".join(
        f"<c{n}>\nwhen %p == 00: mov %o0.2, ${n}; set %p = 01;\n"
        "when %p == 01 with %i0.2: mov %o2.0, %i0; deq %i0; set %p = 11;\n"
        "when %p == 11: halt;\n"
        for n in range(4)
    )
    lifted(text, [10, 111, 12, 113], shape=(1, 4))


def test_channels_that_are_used_without_a_check() -> None:
    """What an earlier instruction has checked is there; two instructions choose by what it was."""
    decided = (
        "<pe>\n"
        "when %p == XXXXX000: mov %o0.2, $1; set %p = ZZZZZ001;\n"
        "when %p == XXXXX001 with !%i0.0: eq %p7, %i0, $7; set %p = ZZZZZ010;\n"
        "when %p == 1XXXX010: nop; deq %i0; set %p = ZZZZZ011;\n"
        "when %p == 0XXXX010: add %r1, %r1, %i0; deq %i0; set %p = ZZZZZ011;\n"
        "when %p == XXXXX011: mov %o2.0, $40; set %p = ZZZZZ100;\n"
        "when %p == XXXXX100: mov %o3.0, %r1; set %p = ZZZZZ101;\n"
        "when %p == XXXXX101: halt;\n"
    )
    for word in (7, 8):
        assert lifted(decided, [0, word]) == 10
    # one channel is sure, the other one is waited for and has the tag that decides
    text = (
        "<a>\nwhen %p == 000: mov %o1.1, $30; set %p = 001;\n"
        "when %p == 001: mov %o1.2, $12; set %p = 011;\n"
        "when %p == 011: halt;\n"
        "<b>\nwhen %p == 000: mov %o0.3, $2; set %p = 001;\n"
        "when %p == 001 with %i3.1: nop; set %p = 011;\n"
        "when %p == 011 with %i0.2: nop; deq %i0, %i3; set %p = 111;\n"
        "when %p == 011 with %i0.3: sub %r0, %i3, %i0; deq %i0, %i3; set %p = 111;\n"
        "when %p == 111 with %i3.2: nop; deq %i3; set %p = 101;\n"
        "when %p == 101: halt;\n"
    )
    lifted(text, [0, 0, 5], shape=(1, 2))


@sampled(("operation", "spare"), OPERATIONS, quick=10)
def test_operators(operation: str, spare: int) -> None:
    """The result is stored, by the datapath's own register."""
    lines = (f": {operation};", ": mov %o2.0, $40;", ": mov %o3.0, %r0;", ": halt;")
    text = one(*lines).replace("<pe>\n", "<pe>\ninit %r1, $7;\ninit %r2, $-3;\n")
    lifted(text)


def test_the_scratchpad() -> None:
    text = one(
        ": ssw %r1, $3;", ": lsw %r0, $3;", ": mov %o2.0, $40;", ": mov %o3.0, %r0;", ": halt;"
    )
    lifted(text.replace("<pe>\n", "<pe>\ninit %r1, $77;\n"))


# ------------------------------------------------------------------------------------ random


class Script:
    """A program that grows, a predicate state for each instruction."""

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self.state = 0

    def add(self, *alternatives: Instruction) -> None:
        """Instructions of the present state, which all lead to the next one."""
        everything = 0x7F
        after = self.state + 1
        for found in alternatives:
            trigger = replace(found.trigger, ones=self.state, zeros=everything & ~self.state)
            sets, clears = after & ~self.state, self.state & ~after
            self.instructions.append(replace(found, trigger=trigger, sets=sets, clears=clears))
        self.state = after


def _value(draw: st.DrawFn, *more: Source) -> Source:
    plain: list[Source] = [FromRegister(0), FromRegister(1), Immediate(3), Immediate(2**32 - 2)]
    return draw(st.sampled_from([*plain, *more]))


_OPCODES = (Opcode.ADD, Opcode.SUB, Opcode.LMUL, Opcode.BXOR, Opcode.SL, Opcode.ULT, Opcode.ASR)


def _send(draw: st.DrawFn, port: int, tag: int, *extra: int) -> Instruction:
    return Instruction(
        trigger=Trigger(),
        opcode=draw(st.sampled_from(_OPCODES)),
        destination=ToOutputs(tuple(sorted({port, *extra})), tag),
        sources=(_value(draw), _value(draw)),
    )


def _take(draw: st.DrawFn, script: Script, port: int, tag: int) -> None:
    """Take a token: by its tag, by another tag first, or by any tag that is not another."""
    kind = draw(st.integers(0, 3))
    checks = [TagCheck(channel=port, tag=tag)]
    if kind == 1:
        checks = [TagCheck(channel=port, tag=(tag + 1) % 4), *checks]
    if kind == 2:
        checks = [TagCheck(channel=port, tag=(tag + 1) % 4, equal=False)]
    if kind == 3:  # a check, and the take in the next cycle without one
        checked = Trigger(checks=(TagCheck(channel=port, tag=tag),))
        script.add(Instruction(trigger=checked, opcode=Opcode.NOP))
        register, sources = draw(st.integers(0, 1)), (FromChannel(port), _value(draw))
        script.add(
            Instruction(
                trigger=Trigger(),
                opcode=draw(st.sampled_from(_OPCODES)),
                destination=ToRegister(register),
                sources=sources,
                takes=(port,),
            )
        )
        return
    script.add(
        *(
            Instruction(
                trigger=Trigger(checks=(check,)),
                opcode=draw(st.sampled_from(_OPCODES)),
                destination=ToRegister(draw(st.integers(0, 1))),
                sources=(FromChannel(port), _value(draw, FromChannel(port))),
                takes=(port,),
            )
            for check in checks
        )
    )


@st.composite
def arrays(draw: st.DrawFn) -> tuple[tuple[CellProgram, ...], tuple[int, int]]:
    """Elements that send one another tokens in an order that works for all of them."""
    shape = draw(st.sampled_from([(1, 3), (2, 2)]))
    rows, columns = shape
    scripts = [Script() for _ in range(rows * columns)]
    neighbors = [
        (row * columns + column, side, (row + y) * columns + column + x)
        for row in range(rows)
        for column in range(columns)
        for side, (y, x) in enumerate([(-1, 0), (0, 1), (1, 0), (0, -1)])
        if 0 <= row + y < rows and 0 <= column + x < columns
    ]
    pending: list[tuple[int, int, int]] = []
    for number in range(draw(st.integers(1, 14))):
        tag = draw(st.integers(0, 3))
        event = draw(st.sampled_from(["send", "send", "take", "work", "load", "store", "branch"]))
        where = draw(st.integers(0, len(scripts) - 1))
        if event == "send":
            source, side, sink = draw(st.sampled_from(neighbors))
            scripts[source].add(_send(draw, side, tag))
            pending.append((sink, (side + 2) % 4, tag))
        elif event == "take" and pending:
            sink, port, tag = pending.pop(0)
            _take(draw, scripts[sink], port, tag)
        elif event == "work":
            to = ToRegister(draw(st.integers(0, 1)))
            scripts[where].add(replace(_send(draw, 0, 0), destination=to))
        elif event == "load":
            column = where % columns
            address = Instruction(
                trigger=Trigger(),
                opcode=Opcode.MOV,
                destination=ToOutputs((0,), tag),
                sources=(Immediate(number),),
            )
            scripts[column].add(address)
            pending.append((column, 0, tag))
        elif event == "store":
            last = (rows - 1) * columns
            scripts[last].add(
                replace(_send(draw, 2, tag), opcode=Opcode.MOV, sources=(Immediate(32 + number),))
            )
            scripts[last + 1].add(_send(draw, 2, tag))
        elif event == "branch":
            compare = replace(_send(draw, 0, 0), opcode=Opcode.SLT, destination=ToPredicate(7))
            scripts[where].add(compare)
    for sink, port, tag in pending:
        _take(draw, scripts[sink], port, tag)
    for script in scripts:
        script.add(Instruction(trigger=Trigger(), opcode=Opcode.HALT))
    initial = ((0, 5), (1, 2**32 - 9))
    return (
        tuple(CellProgram(initial=initial, instructions=tuple(s.instructions)) for s in scripts),
        shape,
    )


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(arrays())
def test_random_programs(case: tuple[tuple[CellProgram, ...], tuple[int, int]]) -> None:
    programs, shape = case
    try:
        check(programs, range(100, 132), shape)
    except TriggeredDeadlockError:
        with pytest.raises(UserError):
            _run(programs, shape)


def _run(programs: Sequence[CellProgram], shape: Shape) -> None:
    graph = lift_array(programs, PUBLIC_CORE, shape=shape, memory_words=WORDS)
    given = any(tensor.name == "memory" for tensor in graph.tensors)
    simulate(graph, {"memory": np.arange(100, 164, dtype=np.uint32)} if given else {})


# ---------------------------------------------------------------------------------- refusals


def refused(text: str, shape: Shape = None) -> str:
    programs = parse_programs(text, PUBLIC_CORE)
    with pytest.raises(UserError) as caught:
        lift_array(programs, PUBLIC_CORE, shape=shape, memory_words=WORDS)
    return str(caught.value)


def test_what_fires_depends_on_a_token_that_may_be_there() -> None:
    text = (
        "<loader>\nwhen %p == 0 with %i0.0: add %r0, %r0, %i0; deq %i0;\n"
        "when %p == 0: mov %o0.0, $1;\nwhen %p == 1: halt;\n"
    )
    assert refused(text).splitlines() == [
        "the program of PE 0 <loader> cannot become a graph: what fires depends on timing",
        "  expected: tags and predicates alone to decide which instruction fires",
        "  given:    instruction 1 (line 3) fires if instruction 0 (line 2) waits for a token"
        " of %i0",
        "  hint:     the interpreter runs such programs",
    ]


def test_a_channel_that_may_be_empty() -> None:
    text = (
        "<pe>\nwhen %p == 0: mov %o0.0, $1; set %p = 1;\n"
        "when %p == 1: add %r0, %r0, %i0; deq %i0; set %p = 0;\n" + HALT
    )
    assert refused(text).splitlines() == [
        "the program of PE 0 <pe> cannot become a graph: what a firing reads depends on timing",
        "  expected: a check of %i0 in the trigger, or in that of an instruction before",
        "  given:    instruction 1 (line 3) uses %i0, which may be empty",
        "  hint:     the interpreter runs such programs",
    ]


def test_what_fires_depends_on_room() -> None:
    text = "<a>\nwhen %p == X: mov %o1.0, $1;\nwhen %p == X: halt;\n<b>\n" + SINK
    assert (
        "instruction 1 (line 3) fires if instruction 0 (line 2) waits for room in %o1"
        in refused(text, shape=(1, 2))
    )


def test_tokens_that_nobody_takes() -> None:
    text = "<a>\nwhen %p == X: halt %o1.1;\n<b>\n" + HALT
    assert refused(text, shape=(1, 2)).splitlines() == [
        "PE 0 <a> sends to an element that never takes",
        "  expected: every token to be taken by somebody, so that the run can end",
        "  given:    output %o1",
    ]
    waiting = (
        "<a>\nwhen %p == XXXXXXX0: mov %o0.0, $1; set %p = ZZZZZZZ1;\n"
        "when %p == XXXXXXX1 with %i0.0: halt;\n"
    )
    assert "PE 0 <a> waits for a token in %i0, and never takes one" in refused(waiting)
    assert "PE 0 <a> loads words that it never takes" in refused("<a>\nwhen %p == X: halt %o0.1;\n")
    assert "sends tokens from %o3, where no wire is" in refused(
        "<a>\nwhen %p == X: halt %o3.1;\n<b>\n" + HALT, shape=(1, 2)
    )
    assert "gives a write port half of what it needs" in refused(
        "<a>\nwhen %p == X: halt %o2.1;\n<b>\n" + HALT, shape=(1, 2)
    )


def test_a_program_for_each_element() -> None:
    with pytest.raises(UserError, match="there is not one program for each element"):
        lift_array([], PUBLIC_CORE, shape=(1, 2), memory_words=4)


def test_memory_whose_contents_depend_on_time() -> None:
    text = one(
        ": mov %o2.0, $1;",
        ": mov %o3.0, $42;",
        ": mov %o0.0, $1;",
        " with %i0.0: mov %r0, %i0; deq %i0;",
        ": halt;",
    )
    with pytest.raises(UserError, match="what is in the memory depends on time"):
        lifted(text)
