"""A decidable program as a machine of the graph: a mode for each predicate state.

In goes a program with its states (``decisions.py``) and the ports that it is connected to; out
comes a ``Machine`` in which a firing is an instruction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from t2s.backends.cgra_tia.fabric import CoreParameters
from t2s.backends.cgra_tia.lift.decisions import PredicateState, next_states
from t2s.backends.cgra_tia.lift.word_expressions import expression_of, word_constant
from t2s.backends.cgra_tia.opcodes import Opcode
from t2s.backends.cgra_tia.program import (
    CellProgram,
    FromChannel,
    FromRegister,
    Immediate,
    Instruction,
    Source,
    TagCheck,
    ToOutputs,
    ToRegister,
)
from t2s.core.errors import UserError
from t2s.core.expr import Expr, Local, apply, conjunction, const
from t2s.core.location import SourceLocation
from t2s.core.ops import Op
from t2s.core.types import BOOL, INT32, Int, Type
from t2s.graph.body import Let, Register, RegisterRead, RegisterWrite, Role, Statement
from t2s.graph.machine import Choice, Head, Machine, Mode, Put, Rule

SCRATCHPAD_FILE = "scratchpad"


@dataclass(slots=True, kw_only=True)
class CellMachine:
    """Builds the machine of a program.

    ``inputs`` and ``outputs`` are the names of the channels at the ports that are connected.
    ``label`` is the program's name in errors.
    """

    name: str
    label: str
    program: CellProgram
    states: Sequence[PredicateState]
    inputs: Mapping[int, str]
    outputs: Mapping[int, str]
    core: CoreParameters
    location: SourceLocation | None = None
    _rules: int = field(default=0)

    def build(self, role: Role = Role.COMPUTE) -> Machine:
        """The machine."""
        modes = tuple(self._mode(state) for state in self.states)
        return Machine(
            name=self.name,
            role=role,
            heads=tuple(
                Head(channel=channel, value=f"value{port}", tag=f"tag{port}")
                for port, channel in self.inputs.items()
            ),
            registers=tuple(self._registers()),
            modes=modes,
            location=self.location,
        )

    @property
    def word(self) -> Type:
        return Int(self.core.word_width)

    def _registers(self) -> Iterator[Register]:
        initial = dict(self.program.initial)
        instructions = [i for s in self.states for g in s.groups for i in g.instructions]
        used = {s.number for i in instructions for s in i.sources if isinstance(s, FromRegister)}
        used |= {
            i.destination.number for i in instructions if isinstance(i.destination, ToRegister)
        }
        for number in sorted(used):
            start = int(word_constant(initial.get(number, 0), self.word).value)
            yield Register(name=f"r{number}", type=self.word, shape=(), distance=1, initial=start)
        if any(i.opcode in (Opcode.LSW, Opcode.SSW) for i in instructions):
            shape = (self.core.scratchpad_words,)
            yield Register(name=SCRATCHPAD_FILE, type=self.word, shape=shape, distance=1)

    def _mode(self, state: PredicateState) -> Mode:
        choices: list[Choice] = []
        for group in state.groups:
            inner = tuple(self._choice(state, i) for i in group.instructions)
            if not group.channels:
                choices += inner
                continue
            tests = [self._tests(i, state.channels) for i in group.instructions]
            choices.append(
                Choice(when=_any(tests), needs=self._names(group.channels), inside=inner)
            )
        shown = f"{state.predicates:0{self.core.predicates}b}"
        if not choices:
            choices = [Choice(when=const(False, BOOL), inside=Rule(name=f"none in {shown}"))]
        return Mode(
            name=_mode_name(state.predicates),
            needs=self._names(state.channels),
            choices=tuple(choices),
            expected=f"an instruction of {self.label} for its predicates {shown}",
        )

    def _names(self, channels: Sequence[int]) -> tuple[str, ...]:
        return tuple(self.inputs[channel] for channel in channels)

    def _tests(self, instruction: Instruction, channels: Sequence[int]) -> Expr | None:
        checks = (c for c in instruction.trigger.checks if c.channel in channels)
        return conjunction(*map(_test, checks))

    def _choice(self, state: PredicateState, instruction: Instruction) -> Choice:
        """An instruction: one rule, or two where its result is a predicate."""
        when = conjunction(*map(_test, instruction.trigger.checks))
        reads, value = self._result(instruction)
        after = next_states(instruction, state.predicates)
        if len(after) == 1:
            rule = self._rule(state, instruction, value, after[0])
            return Choice(when=when, body=reads, inside=rule)
        zero, not_zero = (self._rule(state, instruction, None, predicates) for predicates in after)
        chosen = apply(Op.NOT_EQUAL, value, const(0, value.type))
        inner = (Choice(when=chosen, inside=not_zero), Choice(inside=zero))
        return Choice(when=when, body=reads, inside=inner)

    def _rule(
        self, state: PredicateState, instruction: Instruction, value: Expr | None, after: int
    ) -> Rule:
        self._rules += 1
        body: list[Statement] = []
        puts: list[Put] = []
        match instruction.destination:
            case ToRegister(number=number) if value is not None:
                body.append(RegisterWrite(register=f"r{number}", indices=(), value=value))
            case ToOutputs(channels=channels, tag=tag):
                puts = [
                    Put(channel=self.outputs[port], value=value, tag=const(tag, INT32))
                    for port in channels
                ]
        if instruction.opcode is Opcode.SSW:
            stored, address = (self._operand(source) for source in instruction.sources)
            body.append(RegisterWrite(register=SCRATCHPAD_FILE, indices=(address,), value=stored))
        number = self.program.instructions.index(instruction)
        return Rule(
            name=f"{instruction.opcode.value} {number} in {state.predicates:b} no {self._rules}",
            body=tuple(body),
            takes=tuple(self.inputs[channel] for channel in instruction.takes),
            puts=tuple(puts),
            next=None if instruction.opcode is Opcode.HALT else _mode_name(after),
        )

    def _result(self, instruction: Instruction) -> tuple[tuple[Statement, ...], Expr]:
        """What an instruction computes, and the statements that come before."""
        operands = [self._operand(source) for source in instruction.sources]
        if instruction.opcode is Opcode.SSW:
            return (), const(0, self.word)
        if instruction.opcode is Opcode.LSW:
            name = f"read{self._rules}"
            read = RegisterRead(
                target=name, register=SCRATCHPAD_FILE, indices=(operands[0],), type=self.word
            )
            return (read,), Local(name=name, type=self.word)
        value = expression_of(instruction.opcode, operands, self.word)
        if value is None:
            line = "" if instruction.position is None else f" in line {instruction.position.line}"
            raise UserError(
                f"graphs have no {instruction.opcode.value!r}, which {self.label} does{line}",
                location=self.location,
                expected="an operator on integers that graphs have",
                given=instruction.opcode.value,
                hint="the interpreter runs it",
            )
        if instruction.destination is None:
            return (), value
        name = f"result{self._rules}"
        return (Let(target=name, value=value),), Local(name=name, type=value.type)

    def _operand(self, source: Source) -> Expr:
        match source:
            case FromChannel(number=port):
                return Local(name=f"value{port}", type=self.word)
            case FromRegister(number=number):
                return Local(name=f"r{number}", type=self.word)
            case Immediate(pattern=pattern):
                sign = pattern >> self.core.immediate_width - 1
                extended = pattern - (sign << self.core.immediate_width)
                return const(_wrapped(extended, self.core.word_width), self.word)


def _wrapped(number: int, width: int) -> int:
    """As a signed number of a width."""
    low = number & (1 << width) - 1
    return low - (1 << width) if low >> width - 1 else low


def _mode_name(predicates: int) -> str:
    return f"state_{predicates:b}"


def _test(check: TagCheck) -> Expr:
    tag = Local(name=f"tag{check.channel}", type=INT32)
    return apply(Op.EQUAL if check.equal else Op.NOT_EQUAL, tag, const(check.tag, INT32))


def _any(conditions: Sequence[Expr | None]) -> Expr | None:
    result: Expr | None = None
    for condition in conditions:
        if condition is None:
            return None
        result = condition if result is None else apply(Op.OR, result, condition)
    return result
