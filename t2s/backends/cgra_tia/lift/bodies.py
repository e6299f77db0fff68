"""Classes of parts as arrays of PEs: their loops, what they take, compute and send."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from t2s.backends.cgra_tia.fabric import CoreParameters
from t2s.backends.cgra_tia.lift.address_units import sequence_value
from t2s.backends.cgra_tia.lift.classes import ROUND, STEP, PartClass, is_compute
from t2s.backends.cgra_tia.lift.links import Link
from t2s.backends.cgra_tia.lift.points import affine
from t2s.backends.cgra_tia.lift.static_cells import StaticFirings, TagAction
from t2s.backends.cgra_tia.lift.word_expressions import (
    DOUBLE,
    FLOAT_OPERANDS,
    expression_of,
    immediate_constant,
    start_word,
)
from t2s.backends.cgra_tia.lift.word_kinds import WORD, WordKinds
from t2s.backends.cgra_tia.netlist import (
    NetCell,
    StreamUnit,
    TagCase,
    UnitCondition,
    UnitKind,
)
from t2s.backends.cgra_tia.opcodes import Opcode
from t2s.backends.cgra_tia.program import (
    FromChannel,
    FromRegister,
    Immediate,
    Instruction,
    Source,
    ToOutputs,
    ToRegister,
)
from t2s.core.errors import UserError
from t2s.core.expr import (
    TRUE,
    Cast,
    Expr,
    Index,
    Local,
    Select,
    apply,
    conjunction,
    const,
    digits,
    equals,
)
from t2s.core.ops import Op
from t2s.core.types import BOOL, INT32, Type
from t2s.graph.body import (
    Let,
    Load,
    Receive,
    Register,
    RegisterRead,
    RegisterWrite,
    Role,
    Send,
    Statement,
    Store,
)
from t2s.graph.graph import Tensor
from t2s.graph.nodes import PEArray

FALSE = const(False, BOOL)


def array_of(
    found: PartClass,
    links: Sequence[Link],
    kinds: WordKinds,
    tensors: Mapping[str, Tensor],
    core: CoreParameters,
    *,
    fused: bool,
) -> PEArray:
    """The node of a class of cells or of units."""
    body = ArrayBody(found=found, links=links, kinds=kinds, tensors=tensors, core=core, fused=fused)
    match found.first:
        case StreamUnit() as unit:
            body.unit(unit)
            roles = {UnitKind.LOAD: Role.LOAD, UnitKind.STORE: Role.STORE}
            role = roles.get(unit.kind, Role.RELAY)
        case NetCell():
            assert found.firings is not None
            body.cell(found.firings)
            role = Role.COMPUTE if is_compute(found.first) else Role.RELAY
    return PEArray(
        name=found.name,
        role=role,
        space=found.space,
        exists=found.exists,
        loops=found.loops,
        registers=tuple(body.registers.values()),
        body=tuple(body.statements),
        location=found.location,
    )


@dataclass(slots=True, kw_only=True)
class ArrayBody:
    """Collects the statements and the registers of a node."""

    found: PartClass
    links: Sequence[Link]
    kinds: WordKinds
    tensors: Mapping[str, Tensor]
    core: CoreParameters
    fused: bool
    statements: list[Statement] = field(default_factory=list)
    registers: dict[int, Register] = field(default_factory=dict)
    _values: dict[int, Expr] = field(default_factory=dict)

    @property
    def _name(self) -> str:
        return self.found.first.name

    # -- units ---------------------------------------------------------------------------------

    def unit(self, unit: StreamUnit) -> None:
        """One step of a unit's nest."""
        value: Expr = const(0, WORD)
        if unit.tensor is not None:
            tensor = self.tensors[unit.tensor]
            indices = self._indices(unit, tensor)
            if unit.kind is UnitKind.STORE:
                self._receive(0, TRUE)
                stored = _converted(self._values[0], tensor.type)
                self.statements.append(Store(tensor=tensor.name, indices=indices, value=stored))
                return
            self.statements.append(
                Load(target="loaded", tensor=tensor.name, indices=indices, type=tensor.type)
            )
            loaded = Local(name="loaded", type=tensor.type)
            value = _converted(loaded, DOUBLE if tensor.type.is_float else WORD)
        elif unit.address is not None:
            value = sequence_value(self.found, unit.address)
        self._send(
            0, value, self._tag([(c.tag, _case(c, self.found.loop_names)) for c in unit.tags])
        )

    def _indices(self, unit: StreamUnit, tensor: Tensor) -> tuple[Expr, ...]:
        """The subscripts of an address in the row-major array."""
        factors, constant = self.found.base
        names = self.found.space_names
        terms = dict(zip(names, factors, strict=True))
        if unit.address is not None:
            coefficients = zip(self.found.loop_names, unit.address.coefficients, strict=False)
            terms |= dict(coefficients)
        shape = tensor.allocated
        split = self._by_dimension(terms, constant, shape)
        return digits(affine(terms, constant), shape) if split is None else split

    def _by_dimension(
        self, terms: Mapping[str, int], constant: int, shape: Sequence[int]
    ) -> tuple[Expr, ...] | None:
        """A sum for each dimension; ``None`` where one leaves its extent."""
        ranges = {d.name: (d.minimum, d.minimum + d.extent - 1) for d in self.found.space}
        for name, loop in zip(self.found.loop_names, self.found.nest.loops, strict=True):
            if any(loop.extent.coefficients):
                return None
            ranges[name] = (0, max(0, loop.extent.constant - 1))
        left, rest = dict(terms), constant
        found: list[Expr] = []
        stride = 1
        for extent in shape:
            stride *= extent
        for extent in shape:
            stride //= max(1, extent)
            own = {name: _quotient(factor, stride) for name, factor in left.items()}
            at = _quotient(rest, stride)
            left = {name: factor - own[name] * stride for name, factor in left.items()}
            rest -= at * stride
            ends = [(factor * ranges[n][0], factor * ranges[n][1]) for n, factor in own.items()]
            low, high = at + sum(map(min, ends)), at + sum(map(max, ends))
            if low < 0 or high >= extent:
                return None
            found.append(affine(own, at))
        return tuple(found)

    # -- cells ---------------------------------------------------------------------------------

    def cell(self, firings: StaticFirings) -> None:
        """One firing of a cell."""
        steady = [(action.instruction, self._when(action)) for action in firings.actions]
        actions = self._after_prologue(firings.prologue, steady)
        for port in sorted({port for instruction, _ in actions for port in instruction.takes}):
            self._receive(port, _any(w for instruction, w in actions if port in instruction.takes))
        self._read_registers([instruction for instruction, _ in actions])
        for port in sorted({port for instruction, _ in actions for port in instruction.outputs}):
            sending = [(i, when) for i, when in actions if port in i.outputs]
            value = self._result(sending, self.kinds.output(self._name, port), f"out{port}")
            tags = [(_tag_of(instruction), when) for instruction, when in sending]
            self._send(port, value, self._tag(tags), _any(when for _, when in sending))
        for number, register in self.registers.items():
            writing = [(i, when) for i, when in actions if i.destination == ToRegister(number)]
            if writing:
                value = self._result(writing, register.type, f"new{number}")
                when = _any(when for _, when in writing)
                condition = None if when == TRUE else when
                self.statements.append(
                    RegisterWrite(
                        register=register.name, indices=(), value=value, condition=condition
                    )
                )

    def _after_prologue(
        self, prologue: Sequence[Instruction], steady: Sequence[tuple[Instruction, Expr]]
    ) -> list[tuple[Instruction, Expr]]:
        """All instructions with the iterations in which they fire."""
        if not prologue:
            return list(steady)
        first, later = (equals(Index(name=ROUND), const(number)) for number in (0, 1))
        found: list[tuple[Instruction, Expr]] = []
        for number, instruction in enumerate(prologue):
            own = equals(Index(name=STEP), const(number)) if len(prologue) > 1 else None
            found.append((instruction, conjunction(first, own) or first))
        return found + [(i, conjunction(later, when) or later) for i, when in steady]

    def _read_registers(self, instructions: Sequence[Instruction]) -> None:
        cell = self.found.first
        assert isinstance(cell, NetCell)
        initial = dict(cell.program.initial)
        read = {s.number for i in instructions for s in i.sources if isinstance(s, FromRegister)}
        for number in sorted(read):
            type = self.kinds.register(self._name, number)
            start = start_word(initial.get(number, 0), type)
            self.registers[number] = Register(
                name=f"r{number}", type=type, shape=(), distance=1, initial=start
            )
            self.statements.append(
                RegisterRead(target=f"held{number}", register=f"r{number}", indices=(), type=type)
            )

    def _result(self, choices: Sequence[tuple[Instruction, Expr]], type: Type, name: str) -> Expr:
        """The result of the instruction that fires; one operator where all have the same."""
        forms = {(instruction.opcode, len(instruction.sources)) for instruction, _ in choices}
        if len(forms) == 1:
            operands = [
                _chosen([(self._operand(i, n, type), when) for i, when in choices])
                for n in range(len(choices[0][0].sources))
            ]
            value = self._computed(choices[0][0], operands)
        else:
            results = []
            for instruction, when in choices:
                count = len(instruction.sources)
                own = [self._operand(instruction, n, type) for n in range(count)]
                results.append((self._computed(instruction, own), when))
            value = _chosen(results)
        self.statements.append(Let(target=name, value=value))
        return Local(name=name, type=value.type)

    def _computed(self, instruction: Instruction, operands: Sequence[Expr]) -> Expr:
        found = expression_of(instruction.opcode, operands, WORD, fused=self.fused)
        if found is None:
            position = instruction.position
            line = "" if position is None else f" in line {position.line}"
            raise UserError(
                f"graphs have no {instruction.opcode.value!r}, which {self._name!r} does{line}",
                location=self.found.location,
                expected="an operator on 64-bit integers or on floats that graphs have",
                given=instruction.opcode.value,
                hint="the interpreter runs it",
            )
        return found

    def _operand(self, instruction: Instruction, number: int, result: Type) -> Expr:
        source: Source = instruction.sources[number]
        match source:
            case FromChannel(number=port):
                return self._values[port]
            case FromRegister(number=register):
                return Local(name=f"held{register}", type=self.registers[register].type)
            case Immediate(pattern=pattern):
                type = DOUBLE if instruction.opcode in FLOAT_OPERANDS else WORD
                if instruction.opcode is Opcode.MOV:
                    type = result
                return immediate_constant(pattern, self.core, type)

    # -- ports ---------------------------------------------------------------------------------

    def _receive(self, port: int, when: Expr) -> None:
        """Take a token at an input, from the channel that there is at a place."""
        mine = [
            link
            for link in self.links
            if link.channel.sink == self.found.name and link.input == port
        ]
        taken: list[tuple[Expr, Expr]] = []
        for number, link in enumerate(mine):
            name, type = f"in{port}_{number}", link.channel.stream.element
            condition = conjunction(link.receives, when)
            self.statements.append(
                Receive(target=name, channel=link.channel.name, type=type, condition=condition)
            )
            taken.append((Local(name=name, type=type), link.receives))
        self._values[port] = _chosen(taken)
        if len(taken) > 1:
            self.statements.append(Let(target=f"in{port}", value=self._values[port]))
            self._values[port] = Local(name=f"in{port}", type=self._values[port].type)

    def _send(self, port: int, value: Expr, tag: Expr, when: Expr = TRUE) -> None:
        """Put a token into every branch of the net at an output."""
        for link in self.links:
            if link.channel.source == self.found.name and link.output == port:
                condition = conjunction(link.sends, when)
                self.statements.append(
                    Send(channel=link.channel.name, value=value, condition=condition)
                )
                if link.tags is not None:
                    self.statements.append(
                        Send(channel=link.tags.name, value=tag, condition=condition)
                    )

    def _tag(self, cases: Sequence[tuple[int, Expr]]) -> Expr:
        """The tag of the first case that holds, 0 if none does."""
        result: Expr = const(0, INT32)
        for tag, when in reversed(cases):
            one = const(tag, INT32)
            result = (
                one
                if when == TRUE
                else Select(condition=when, if_true=one, if_false=result, type=INT32)
            )
        return result

    def _when(self, action: TagAction) -> Expr:
        """The steps of the nest in which an action happens."""
        if action.tags is None:
            return TRUE
        nest = self.found.nest
        result: Expr = const(0 in action.tags, BOOL)
        for case in reversed(nest.tags):
            holds = _case(case, self.found.loop_names)
            if case.tag in action.tags:
                result = TRUE if TRUE in (holds, result) else _either(holds, result)
            elif holds == TRUE:
                result = FALSE
            elif result != FALSE:
                result = conjunction(apply(Op.NOT, holds), result) or TRUE
        return result


def _tag_of(instruction: Instruction) -> int:
    destination = instruction.destination
    return destination.tag if isinstance(destination, ToOutputs) else 0


def _quotient(number: int, stride: int) -> int:
    """Towards zero."""
    return number // stride if number >= 0 else -(-number // stride)


def _either(left: Expr, right: Expr) -> Expr:
    return left if right == FALSE else right if left == FALSE else apply(Op.OR, left, right)


def _any(conditions: object) -> Expr:
    result: Expr = FALSE
    for condition in conditions:  # type: ignore[attr-defined]
        result = TRUE if TRUE in (condition, result) else _either(result, condition)
    return result


def _chosen(values: Sequence[tuple[Expr, Expr]]) -> Expr:
    """The value beside the condition that holds; one of them does."""
    result = values[-1][0]
    for value, when in reversed(values[:-1]):
        if value != result:
            result = Select(condition=when, if_true=value, if_false=result, type=result.type)
    return result


def _case(case: TagCase, names: Sequence[str]) -> Expr:
    return conjunction(*(_condition(condition, names) for condition in case.when)) or TRUE


def _condition(condition: UnitCondition, names: Sequence[str]) -> Expr:
    total = condition.sum
    factors = {n: f for n, f in zip(names, total.coefficients, strict=False) if f}
    if condition.equal and len(factors) == 1 and set(factors.values()) <= {1, -1}:
        ((name, factor),) = factors.items()
        return equals(Index(name=name), const(-total.constant * factor))
    value = affine(factors, total.constant)
    return apply(Op.EQUAL if condition.equal else Op.GREATER_EQUAL, value, const(0, INT32))


def _converted(value: Expr, type: Type) -> Expr:
    if value.type == type:
        return value
    if type.is_bool:
        return apply(Op.NOT_EQUAL, value, const(0, value.type))
    return Cast(value=value, type=type)
