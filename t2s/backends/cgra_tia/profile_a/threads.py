"""Threads: what runs side by side in a PE, and the program of several of them.

A thread has a state, a bit that tests write, registers, and wires to take from and to send to.
Each of its steps is one instruction.  A PE has several threads: those of the design's PEs, those
that forward streams to neighbors, and those that send addresses.  They share nothing but the one
instruction that fires in a cycle, so their order does not affect values.  The PE halts when all of
them have ended.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from t2s.backends.cgra_tia import program as isa
from t2s.backends.cgra_tia.fabric import PUBLIC_CORE
from t2s.backends.cgra_tia.lower.process import TokenStream
from t2s.backends.cgra_tia.profile_a.control import END

WORD_MASK = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class AddressWire:
    """The addresses for a stream of the memory, from a PE to a port."""

    stream: TokenStream


Wire = TokenStream | AddressWire


@dataclass(frozen=True, slots=True)
class HeadOf:
    """The value of the token at the head of a stream."""

    stream: TokenStream


@dataclass(frozen=True, slots=True)
class ThreadRegister:
    """A register of a thread, named by its use."""

    use: Hashable


StepOperand = HeadOf | ThreadRegister | isa.Immediate


@dataclass(frozen=True, slots=True)
class ToWires:
    """A result that is sent with one tag."""

    wires: tuple[Wire, ...]
    tag: int


@dataclass(frozen=True, slots=True)
class ToTest:
    """A result that decides which of the next steps fires."""


StepTarget = ToWires | ThreadRegister | ToTest | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadStep:
    """An instruction of a thread; fires in ``state``, if the test bit is ``test``.

    ``checks`` are streams that need a token with this tag, or (``None``) with any tag but that of
    the end.  A step that writes the test leads to a state whose steps look at it; all other steps
    that lead there leave it false.
    """

    state: int
    next: int
    opcode: isa.Opcode
    target: StepTarget = None
    operands: tuple[StepOperand, ...] = ()
    checks: tuple[tuple[TokenStream, int | None], ...] = ()
    takes: tuple[TokenStream, ...] = ()
    test: bool | None = None
    comment: str = ""


@dataclass(frozen=True, kw_only=True)
class PublicThread:
    """Steps from state 0 to state ``done``, and registers with their initial words.

    ``firings`` is how often its steps fire in total.
    """

    name: str
    steps: tuple[ThreadStep, ...]
    done: int
    firings: int
    slots: Mapping[ThreadRegister, int] = field(default_factory=dict)

    @cached_property
    def codes(self) -> StateCodes:
        return StateCodes.of_thread(self)


@dataclass(frozen=True, kw_only=True)
class StateCodes:
    """The states of a thread as predicates: ``width`` bits, the highest of which is the test.

    States that do not depend on the test use its bit like any other.
    """

    width: int
    code: Mapping[int, int]
    tested: frozenset[int]

    @staticmethod
    def of_thread(thread: PublicThread) -> StateCodes:
        """An encoding in as few bits as possible, with state 0 as all zeros."""
        states = sorted({0, thread.done, *(s.state for s in thread.steps)})
        tested = frozenset(step.state for step in thread.steps if step.test is not None)
        width = (len(states) + len(tested) - 1).bit_length()
        half = 1 << width - 1 if tested else 0
        code: dict[int, int] = {}
        free = [pattern for low in range(half or 1 << width) for pattern in (low, low | half)]
        free = list(dict.fromkeys(free))
        for state in sorted(states, key=lambda state: (state != 0, state not in tested, state)):
            code[state] = free.pop(0)
            if state in tested:
                free.remove(code[state] | half)
            elif state == 0 and tested:
                # with the test bit, this code cannot be that of a tested state: use it last
                free.append(free.pop(0))
        return StateCodes(width=width, code=code, tested=tested)

    @property
    def test(self) -> int:
        """The bit of the test."""
        return 1 << self.width - 1


def moving_thread(
    stream: TokenStream, tags: Sequence[int], *, tokens: int, hands_on_end: bool, comment: str
) -> PublicThread:
    """A thread that forwards the tokens of a stream with their tags, up to its end."""
    steps = [
        ThreadStep(
            state=0,
            next=0,
            opcode=isa.Opcode.MOV,
            target=ToWires((stream,), tag),
            operands=(HeadOf(stream),),
            checks=((stream, tag),),
            takes=(stream,),
            comment=comment,
        )
        for tag in tags
    ]
    steps.append(
        ThreadStep(
            state=0,
            next=1,
            opcode=isa.Opcode.MOV if hands_on_end else isa.Opcode.NOP,
            target=ToWires((stream,), END) if hands_on_end else None,
            operands=(HeadOf(stream),) if hands_on_end else (),
            checks=((stream, END),),
            takes=(stream,),
            comment=f"{comment}, at its end",
        )
    )
    return PublicThread(name=f"mover of {stream}", steps=tuple(steps), done=1, firings=tokens + 1)


class NoRoom(Exception):
    """The threads of a PE need more of a resource than it has."""

    def __init__(self, what: str, needed: int, most: int, threads: Sequence[str]) -> None:
        super().__init__(f"{needed} {what} ({', '.join(threads)}), and it has {most}")
        self.needed = needed


def check_room(threads: Sequence[PublicThread]) -> None:
    """Raise ``NoRoom`` if threads do not fit into one PE."""
    core = PUBLIC_CORE
    for what, needed, most in (
        ("instructions", sum(len(t.steps) for t in threads) + 1, core.instructions),
        ("predicates", sum(t.codes.width for t in threads), core.predicates),
        ("registers", sum(len(t.slots) for t in threads), core.registers),
    ):
        if needed > most:
            raise NoRoom(what, needed, most, [thread.name for thread in threads])


def program_of_threads(
    label: str,
    threads: Sequence[PublicThread],
    inputs: Mapping[TokenStream, int],
    outputs: Mapping[Wire, int],
) -> isa.CellProgram:
    """The program of a PE, given the sides of its wires; raises ``NoRoom``."""
    check_room(threads)
    instructions: list[isa.Instruction] = []
    initial: list[tuple[int, int]] = []
    ones = zeros = bit = register = 0
    for thread in threads:
        registers = {slot: register + at for at, slot in enumerate(thread.slots)}
        register += len(registers)
        initial += [(registers[slot], word) for slot, word in thread.slots.items() if word]
        printer = _StepWriter(bit, thread, registers, inputs, outputs)
        instructions += [printer.instruction(step) for step in thread.steps]
        codes = thread.codes
        ones |= codes.code[thread.done] << bit
        zeros |= ((1 << codes.width) - 1 & ~codes.code[thread.done]) << bit
        bit += codes.width
    comment = "all that this PE has to do is done" if threads else "nothing to do here"
    instructions.append(
        isa.Instruction(
            trigger=isa.Trigger(ones=ones, zeros=zeros), opcode=isa.Opcode.HALT, comment=(comment,)
        )
    )
    return isa.CellProgram(label=label, initial=tuple(initial), instructions=tuple(instructions))


class _StepWriter:
    """Turns steps into instructions; ``bit`` is the first predicate of the thread."""

    def __init__(
        self,
        bit: int,
        thread: PublicThread,
        registers: Mapping[ThreadRegister, int],
        inputs: Mapping[TokenStream, int],
        outputs: Mapping[Wire, int],
    ) -> None:
        self._bit = bit
        self._codes = thread.codes
        self._registers = registers
        self._inputs = inputs
        self._outputs = outputs

    def instruction(self, step: ThreadStep) -> isa.Instruction:
        """The instruction of a step."""
        codes = self._codes
        field, test = (1 << codes.width) - 1, codes.test
        looks = step.state in codes.tested
        seen = field & ~test if looks and step.test is None else field
        now = codes.code[step.state] | (test if looks and step.test else 0)
        written = field & ~test if isinstance(step.target, ToTest) else field
        after = codes.code[step.next]
        ones, zeros = now & seen, ~now & seen
        return isa.Instruction(
            trigger=isa.Trigger(
                ones=ones << self._bit,
                zeros=zeros << self._bit,
                checks=tuple(self._check(*check) for check in step.checks),
            ),
            opcode=step.opcode,
            destination=self._target(step.target),
            sources=tuple(self._source(operand) for operand in step.operands),
            takes=tuple(sorted({self._inputs[stream] for stream in step.takes})),
            sets=(after & written & ~ones) << self._bit,
            clears=(~after & written & ~zeros) << self._bit,
            comment=(step.comment,) if step.comment else (),
        )

    def _check(self, stream: TokenStream, tag: int | None) -> isa.TagCheck:
        channel = self._inputs[stream]
        if tag is None:
            return isa.TagCheck(channel=channel, tag=END, equal=False)
        return isa.TagCheck(channel=channel, tag=tag)

    def _target(self, target: StepTarget) -> isa.Destination:
        match target:
            case ToWires(wires=wires, tag=tag):
                return isa.ToOutputs(tuple(sorted(self._outputs[wire] for wire in wires)), tag)
            case ThreadRegister():
                return isa.ToRegister(self._registers[target])
            case ToTest():
                return isa.ToPredicate(self._bit + self._codes.width - 1)
            case None:
                return None

    def _source(self, operand: StepOperand) -> isa.Source:
        match operand:
            case HeadOf(stream=stream):
                return isa.FromChannel(self._inputs[stream])
            case ThreadRegister():
                return isa.FromRegister(self._registers[operand])
            case isa.Immediate():
                return operand
