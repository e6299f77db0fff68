"""A decidable program as a machine of the graph: a mode for each predicate state.

A program, its states (below) and its connected ports become a ``Machine`` in which each firing is
one instruction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from t2s.backends.cgra_tia import program as isa
from t2s.backends.cgra_tia.fabric import CoreParameters
from t2s.backends.cgra_tia.lift.word_expressions import (
    DOUBLE,
    FLOAT_OPERANDS,
    expression_of,
    immediate_constant,
    start_word,
)
from t2s.backends.cgra_tia.text.checks import reach
from t2s.core.errors import UserError
from t2s.core.expr import Expr, Local, apply, conjunction, const, unequal
from t2s.core.location import SourceLocation
from t2s.core.ops import Op
from t2s.core.types import BOOL, INT32, Int, Type
from t2s.graph.body import Let, Register, RegisterRead, RegisterWrite, Role, Statement
from t2s.graph.nodes import Choice, Head, Machine, Mode, Put, Rule

SCRATCHPAD_FILE = "scratchpad"


@dataclass(frozen=True, slots=True)
class TokenChannel:
    """A channel of tokens, and where their tags are.

    ``tags`` is ``None`` if they are part of the tokens, else the name of a channel of their own, or
    ``""`` if nothing reads them.
    """

    name: str
    tags: str | None = None


@dataclass(slots=True, kw_only=True)
class CellMachine:
    """Builds the machine of a program.

    ``label`` is the program's name in errors.  ``inputs`` and ``outputs`` are the channels at
    connected ports.  ``input_types``, ``output_types`` and ``register_types`` are the types of
    words that are not plain words of the core.
    """

    name: str
    label: str
    program: isa.CellProgram
    states: Sequence[PredicateState]
    inputs: Mapping[int, TokenChannel]
    outputs: Mapping[int, Sequence[TokenChannel]]
    core: CoreParameters
    input_types: Mapping[int, Type] = field(default_factory=dict)
    output_types: Mapping[int, Type] = field(default_factory=dict)
    register_types: Mapping[int, Type] = field(default_factory=dict)
    landings: Mapping[int, str] = field(default_factory=dict)
    scratchpad_type: Type | None = None
    fused: bool = True
    endless: bool = False
    location: SourceLocation | None = None
    _rules: int = field(default=0)
    _landed: Sequence[int] = ()

    def build(self, role: Role = Role.COMPUTE) -> Machine:
        """The machine."""
        modes = tuple(self._mode(state) for state in self.states)
        return Machine(
            name=self.name,
            role=role,
            heads=tuple(self._heads()),
            registers=tuple(self._registers()),
            modes=modes,
            endless=self.endless,
            location=self.location,
        )

    def _heads(self) -> Iterator[Head]:
        for port, channel in self.inputs.items():
            if channel.tags is None:
                yield Head(channel=channel.name, value=f"value{port}", tag=f"tag{port}")
                continue
            yield Head(channel=channel.name, value=f"value{port}")
            yield Head(channel=channel.tags, value=f"tag{port}")
        for number, name in self.landings.items():
            yield Head(channel=name, value=f"landed{number}")

    @property
    def word(self) -> Type:
        return Int(self.core.word_width)

    @property
    def _kept(self) -> Type:
        """The type of the words in the scratchpad."""
        return self.word if self.scratchpad_type is None else self.scratchpad_type

    def _registers(self) -> Iterator[Register]:
        initial = dict(self.program.initial)
        instructions = [i for s in self.states for g in s.groups for i in g.instructions]
        used = {
            s.number for i in instructions for s in i.sources if isinstance(s, isa.FromRegister)
        }
        used |= {
            i.destination.number for i in instructions if isinstance(i.destination, isa.ToRegister)
        }
        for number in sorted(used):
            type = self.register_types.get(number, self.word)
            start = start_word(initial.get(number, 0), type)
            yield Register(name=f"r{number}", type=type, shape=(), distance=1, initial=start)
        if any(i.opcode in (isa.Opcode.LSW, isa.Opcode.SSW) for i in instructions):
            shape = (self.core.scratchpad_words,)
            yield Register(name=SCRATCHPAD_FILE, type=self._kept, shape=shape, distance=1)

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
            name=_mode_name(state.predicates, state.pending),
            needs=self._names(state.channels),
            choices=tuple(choices),
            expected=f"an instruction of {self.label} for its predicates {shown}",
        )

    def _names(self, channels: Sequence[int]) -> tuple[str, ...]:
        names: list[str] = []
        for channel in channels:
            if channel >= LANDING:
                names.append(self.landings[channel - LANDING])
                continue
            own = self.inputs[channel]
            names += [own.name] if own.tags is None else [own.name, own.tags]
        return tuple(names)

    def _tests(self, instruction: isa.Instruction, channels: Sequence[int]) -> Expr | None:
        checks = (c for c in instruction.trigger.checks if c.channel in channels)
        return conjunction(*map(_test, checks))

    def _choice(self, state: PredicateState, instruction: isa.Instruction) -> Choice:
        """An instruction as one rule, or as two if its result goes to a predicate."""
        when = conjunction(*map(_test, instruction.trigger.checks))
        self._landed = landing(instruction, state.pending)
        reads, value = self._result(instruction)
        after = next_states(instruction, state.predicates)
        if len(after) == 1:
            rule = self._rule(state, instruction, value, after[0])
            return Choice(when=when, body=reads, inside=rule)
        zero, not_zero = (self._rule(state, instruction, None, predicates) for predicates in after)
        chosen = unequal(value, 0)
        inner = (Choice(when=chosen, inside=not_zero), Choice(inside=zero))
        return Choice(when=when, body=reads, inside=inner)

    def _rule(
        self, state: PredicateState, instruction: isa.Instruction, value: Expr | None, after: int
    ) -> Rule:
        self._rules += 1
        body: list[Statement] = []
        puts: list[Put] = []
        target = instruction.destination
        body += [
            RegisterWrite(register=f"r{number}", indices=(), value=self._register(number))
            for number in self._landed
            if target != isa.ToRegister(number)
        ]
        match target:
            case isa.ToRegister(number=number) if slow_register(instruction) is not None:
                puts.append(Put(channel=self.landings[number], value=value))
            case isa.ToRegister(number=number) if value is not None:
                body.append(RegisterWrite(register=f"r{number}", indices=(), value=value))
            case isa.ToOutputs(channels=channels, tag=tag):
                for port in channels:
                    for channel in self.outputs.get(port, ()):
                        puts += _puts(channel, value, tag)
        if instruction.opcode is isa.Opcode.SSW:
            types = zip(instruction.sources, (self._kept, self.word), strict=True)
            stored, address = (self._operand(source, type) for source, type in types)
            body.append(RegisterWrite(register=SCRATCHPAD_FILE, indices=(address,), value=stored))
        number = self.program.instructions.index(instruction)
        pending = next_pending(instruction, state.pending)
        return Rule(
            name=f"{instruction.opcode.value} {number} in {state.predicates:b} no {self._rules}",
            body=tuple(body),
            takes=(
                *self._names(instruction.takes),
                *(self.landings[number] for number in self._landed),
            ),
            puts=tuple(puts),
            next=None if instruction.opcode is isa.Opcode.HALT else _mode_name(after, pending),
        )

    def _result(self, instruction: isa.Instruction) -> tuple[tuple[Statement, ...], Expr]:
        """The result of an instruction, and the statements that compute it."""
        floats = instruction.opcode in FLOAT_OPERANDS
        moves = instruction.opcode is isa.Opcode.MOV
        type = DOUBLE if floats else self._result_type(instruction) if moves else self.word
        operands = [self._operand(source, type) for source in instruction.sources]
        if instruction.opcode is isa.Opcode.SSW:
            return (), const(0, self.word)
        if instruction.opcode in (isa.Opcode.NOP, isa.Opcode.HALT):
            type = self._result_type(instruction)
            return (), const(0.0 if type.is_float else 0, type)
        if instruction.opcode is isa.Opcode.LSW:
            name = f"read{self._rules}"
            read = RegisterRead(
                target=name, register=SCRATCHPAD_FILE, indices=(operands[0],), type=self._kept
            )
            return (read,), Local(name=name, type=self._kept)
        value = expression_of(instruction.opcode, operands, self.word, fused=self.fused)
        as_bits = isinstance(instruction.destination, isa.ToPredicate)
        if value is None or (as_bits and value.type.is_float):
            line = "" if instruction.position is None else f" in line {instruction.position.line}"
            raise UserError(
                f"graphs have no {instruction.opcode.value!r}, which {self.label} does{line}",
                location=self.location,
                expected="an operator on integers, or on floats that stay floats",
                given=instruction.opcode.value,
                hint="the interpreter runs it",
            )
        if instruction.destination is None:
            return (), value
        name = f"result{self._rules}"
        return (Let(target=name, value=value),), Local(name=name, type=value.type)

    def _result_type(self, instruction: isa.Instruction) -> Type:
        """The type of the register or channel that an instruction writes."""
        match instruction.destination:
            case isa.ToRegister(number=number):
                return self.register_types.get(number, self.word)
            case isa.ToOutputs(channels=channels):
                return self.output_types.get(channels[0], self.word)
        return self.word

    def _operand(self, source: isa.Source, immediate: Type) -> Expr:
        match source:
            case isa.FromChannel(number=port):
                return Local(name=f"value{port}", type=self.input_types.get(port, self.word))
            case isa.FromRegister(number=number):
                return self._register(number)
            case isa.Immediate(pattern=pattern):
                return immediate_constant(pattern, self.core, immediate)

    def _register(self, number: int) -> Expr:
        """The content of a register at a firing: perhaps a result that has just landed."""
        name = f"landed{number}" if number in self._landed else f"r{number}"
        return Local(name=name, type=self.register_types.get(number, self.word))


def _puts(channel: TokenChannel, value: Expr | None, tag: int) -> list[Put]:
    number = const(tag, INT32)
    if channel.tags is None:
        return [Put(channel=channel.name, value=value, tag=number)]
    own = [Put(channel=channel.name, value=value)]
    return [*own, Put(channel=channel.tags, value=number)] if channel.tags else own


def _mode_name(predicates: int, pending: frozenset[int]) -> str:
    waits = "".join(f"_r{number}" for number in sorted(pending))
    return f"state_{predicates:b}{waits}"


def _test(check: isa.TagCheck) -> Expr:
    tag = Local(name=f"tag{check.channel}", type=INT32)
    return apply(Op.EQUAL if check.equal else Op.NOT_EQUAL, tag, const(check.tag, INT32))


def _any(conditions: Sequence[Expr | None]) -> Expr | None:
    result: Expr | None = None
    for condition in conditions:
        if condition is None:
            return None
        result = condition if result is None else result | condition
    return result


# The reachable predicate states of a program, and what decides which instruction fires in each.
#
# A program is *decidable* if tags and values alone decide what fires, and never whether a token or
# room is there already.  In each reachable state it waits for the channels that all of its
# candidates check.  Their tags then have to tell the candidates apart if these wait for further
# channels, or write outputs, which may be full.
#
# A register that a result of the FMA goes to is *pending* until an instruction reads or writes it;
# that instruction waits for the result as for a token.  So a state consists of the predicates and
# of the pending registers, and each result is a channel of its own (``LANDING``).
#
# Refused, with both instructions and the channel: candidates of which the later one may overtake
# the earlier one, and instructions that may find a channel empty that they do not check.

LANDING = 64
"""The channel of the result that goes to register 0; those of other registers follow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Instructions that wait for the same channels, in textual order, and these channels."""

    channels: tuple[int, ...]
    instructions: tuple[isa.Instruction, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PredicateState:
    """A reachable state: the channels that it waits for first, and the groups of candidates.

    ``pending`` are the registers whose values have not arrived yet.
    """

    predicates: int
    channels: tuple[int, ...]
    groups: tuple[Candidates, ...]
    pending: frozenset[int] = frozenset()


def states_of(
    program: isa.CellProgram, name: str, fed: Collection[int]
) -> tuple[PredicateState, ...]:
    """The reachable states, beginning with the initial one; ``name`` is for errors."""
    _check_heads(program, name)
    states: dict[tuple[int, frozenset[int]], PredicateState] = {}
    waiting = [(0, frozenset[int]())]
    while waiting:
        predicates, pending = waiting.pop()
        if (predicates, pending) in states:
            continue
        state = _state(program, name, fed, predicates, pending)
        states[predicates, pending] = state
        for group in state.groups:
            for instruction in group.instructions:
                after = next_pending(instruction, pending)
                successors = next_states(instruction, predicates)
                waiting += [(each, after) for each in reversed(successors)]
    return tuple(states.values())


def landing(instruction: isa.Instruction, pending: Collection[int]) -> list[int]:
    """The pending registers that an instruction waits for: those that it reads or writes."""
    used = {source.number for source in instruction.sources if isinstance(source, isa.FromRegister)}
    if isinstance(instruction.destination, isa.ToRegister):
        used.add(instruction.destination.number)
    return sorted(used.intersection(pending))


def slow_register(instruction: isa.Instruction) -> int | None:
    """The register that the FMA result of an instruction goes to."""
    match instruction.destination:
        case isa.ToRegister(number=number) if instruction.opcode in isa.ON_FMA:
            return number
    return None


def next_pending(instruction: isa.Instruction, pending: frozenset[int]) -> frozenset[int]:
    """The registers that are pending after a firing."""
    pending_after, slow = (
        pending.difference(landing(instruction, pending)),
        slow_register(instruction),
    )
    return pending_after if slow is None else pending_after | {slow}


def next_states(instruction: isa.Instruction, predicates: int) -> tuple[int, ...]:
    """The possible predicates after a firing: first for result zero, then for not zero."""
    results = [predicates]
    if isinstance(instruction.destination, isa.ToPredicate):
        bit = 1 << instruction.destination.number
        results = [predicates & ~bit, predicates | bit]
    after = [(bits & ~instruction.clears) | instruction.sets for bits in results]
    return tuple(dict.fromkeys(after))


def exclusive(first: isa.Instruction, second: isa.Instruction, channels: Collection[int]) -> bool:
    """Whether no tags on these channels allow both."""
    return any(
        a.channel == b.channel and a.channel in channels and _apart(a, b)
        for a in first.trigger.checks
        for b in second.trigger.checks
    )


def _apart(first: isa.TagCheck, second: isa.TagCheck) -> bool:
    if first.equal and second.equal:
        return first.tag != second.tag
    return first.equal is not second.equal and first.tag == second.tag


def _state(
    program: isa.CellProgram,
    name: str,
    fed: Collection[int],
    predicates: int,
    pending: frozenset[int],
) -> PredicateState:
    candidates = [
        i
        for i in program.instructions
        if i.trigger.matches(predicates) and _channels(i) <= set(fed)
    ]
    for number, instruction in enumerate(candidates):
        waits = instruction.trigger.checks or landing(instruction, pending)
        if not waits and not instruction.outputs:
            candidates = candidates[: number + 1]  # it always fires, so those after it never do
            break
    waited = [_waited(instruction, pending) for instruction in candidates]
    always = set[int]().union(*waited[:1]).intersection(*waited)
    for number, first in enumerate(candidates):
        for second in candidates[number + 1 :]:
            _check_pair(program, name, (first, second), pending, always)
    groups: dict[frozenset[int], list[isa.Instruction]] = {}
    used = [channels.union(i.unchecked) for i, channels in zip(candidates, waited, strict=True)]
    common = set[int]().union(*used[:1]).intersection(*used)
    for instruction, channels in zip(candidates, used, strict=True):
        groups.setdefault(frozenset(channels), []).append(instruction)
    return PredicateState(
        predicates=predicates,
        channels=tuple(sorted(common)),
        groups=tuple(
            Candidates(channels=tuple(sorted(channels - common)), instructions=tuple(group))
            for channels, group in groups.items()
        ),
        pending=pending,
    )


def _check_heads(program: isa.CellProgram, name: str) -> None:
    """Refuse an instruction that may find a channel empty: a node would wait instead."""
    empty = sorted(reach(program).maybe_empty)
    if not empty:
        return
    number, channel = empty[0]
    raise UserError(
        f"the program of {name} cannot become a graph: what a firing reads depends on timing",
        expected=f"a check of %i{channel} in the trigger, or in that of an instruction before",
        given=f"{_shown(number, program.instructions[number])} uses %i{channel}, "
        "which may be empty",
        hint="the interpreter runs such programs",
    )


def _check_pair(
    program: isa.CellProgram,
    name: str,
    pair: tuple[isa.Instruction, isa.Instruction],
    pending: Collection[int],
    common: set[int],
) -> None:
    """Refuse two candidates of which the second may fire because the first one waits."""
    first, second = pair
    different = _waited(first, pending) ^ _waited(second, pending)
    if different and not exclusive(first, second, common):
        channel = min(different)
        waits = f"for a token of %i{channel}"
        if channel >= LANDING:
            waits = f"for the FMA's result in %r{channel - LANDING}"
    elif first.outputs and not exclusive(first, second, _channels(first)):
        waits = f"for room in %o{first.outputs[0]}"
    else:
        return
    numbers = program.instructions
    one, other = (_shown(numbers.index(i), i) for i in (first, second))
    raise UserError(
        f"the program of {name} cannot become a graph: what fires depends on timing",
        expected="tags and predicates alone to decide which instruction fires",
        given=f"{other} fires if {one} waits {waits}",
        hint="the interpreter runs such programs",
    )


def _channels(instruction: isa.Instruction) -> set[int]:
    return {check.channel for check in instruction.trigger.checks}


def _waited(instruction: isa.Instruction, pending: Collection[int]) -> set[int]:
    """All channels that an instruction waits for, including those of FMA results."""
    return _channels(instruction) | {LANDING + n for n in landing(instruction, pending)}


def _shown(number: int, instruction: isa.Instruction) -> str:
    return f"instruction {number}{instruction.line_text}"
