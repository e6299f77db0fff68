"""Expressions as steps: an instruction for each operator, with its operands where they are.

Results in between stay in registers; those of an FMA go through a channel from the cell to itself,
because a register would be busy.  ``a + b * c`` is one operator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from t2s.backends.cgra_tia.lower.control.places import CellStep
from t2s.backends.cgra_tia.lower.control.refusals import BlockRefusals
from t2s.backends.cgra_tia.lower.operators import FLOATS, INTEGERS
from t2s.backends.cgra_tia.lower.values import pattern_of
from t2s.backends.cgra_tia.opcodes import ON_FMA, Opcode
from t2s.backends.cgra_tia.program import (
    Destination,
    FromChannel,
    FromRegister,
    Immediate,
    Source,
    ToOutputs,
    ToRegister,
)
from t2s.core.expr import Apply, Cast, Const, Expr, Local, apply, const
from t2s.core.ops import Op
from t2s.core.types import INT32, Int
from t2s.core.walk import walk

_WORD = Int(64)
_TEXTS = {
    Op.DIVIDE: "a quotient",
    Op.FLOOR_DIVIDE: "// of data",
    Op.MODULO: "% of data",
}


@dataclass(kw_only=True)
class Cellular:
    """Where things are in a cell: registers, input and output ports, and how many there are.

    ``sources`` are locals by name: a register, or an input port.
    """

    refusals: BlockRefusals
    contract: bool
    loose: frozenset[str] = frozenset()
    sources: dict[str, Source] = field(default_factory=dict)
    inputs: dict[str, int] = field(default_factory=dict)
    outputs: dict[str, int] = field(default_factory=dict)
    loops: dict[str, tuple[int, int]] = field(default_factory=dict)
    """The channels from the cell to itself: output and input port."""
    registers: int = 0
    constants: dict[tuple[int, bool], int] = field(default_factory=dict)

    def new_register(self) -> int:
        self.registers += 1
        return self.registers - 1

    def input(self, name: str) -> int:
        """The number of an input port."""
        return self.inputs.setdefault(name, len(self.inputs))

    def output(self, name: str) -> int:
        """The number of an output port."""
        return self.outputs.setdefault(name, len(self.outputs))

    def loop(self, name: str) -> tuple[int, int]:
        """The ports of a channel from the cell to itself."""
        if name not in self.loops:
            self.loops[name] = (self.output(f"{name}.out"), self.input(f"{name}.in"))
        return self.loops[name]

    def literal(self, value: Const, *, immediate: bool) -> Source:
        """A number, in the instruction or in a register that holds it from the start."""
        pattern = pattern_of(value.value, value.type)
        small = -(1 << 31) <= (pattern ^ 1 << 63) - (1 << 63) < 1 << 31
        if immediate and small and not (value.type.is_float and pattern):
            return Immediate(pattern & (1 << 32) - 1)
        key = (pattern, value.type.is_float)
        if key not in self.constants:
            self.constants[key] = self.new_register()
        return FromRegister(self.constants[key])


@dataclass(kw_only=True)
class FiringSteps:
    """The steps of one firing, as they are written; ``tags`` are those at the input ports."""

    cell: Cellular
    tags: Mapping[int, int]
    steps: list[CellStep] = field(default_factory=list)
    _free: list[int] = field(default_factory=list)
    _used: set[int] = field(default_factory=set)
    _loops: int = 0

    def compute(self, expr: Expr, destination: Destination) -> None:
        """FiringSteps that leave the value of an expression somewhere."""
        opcode, operands = self._operation(expr)
        sources = self._operands(operands)
        takes = tuple(sorted({port for s in sources for port in _temporary_port(s, self.cell)}))
        self.add(opcode, destination, sources, takes)
        for source in sources:
            if isinstance(source, FromRegister) and source.number in self._used:
                self._used.discard(source.number)
                self._free.append(source.number)

    def take_where_read(self, port: int) -> bool:
        """Have the last step that reads a port take from it; whether there is one."""
        reading = [at for at, step in enumerate(self.steps) if FromChannel(port) in step.sources]
        if reading:
            step = self.steps[reading[-1]]
            self.steps[reading[-1]] = replace(step, takes=tuple(sorted({*step.takes, port})))
        return bool(reading)

    def add(
        self,
        opcode: Opcode,
        destination: Destination = None,
        sources: tuple[Source, ...] = (),
        takes: tuple[int, ...] = (),
    ) -> None:
        """A step, with the checks of what it reads and takes."""
        ports = {s.number for s in sources if isinstance(s, FromChannel)} | set(takes)
        self.steps.append(
            CellStep(
                opcode=opcode,
                destination=destination,
                sources=sources,
                takes=takes,
                checks=tuple((port, self.tags.get(port, 0)) for port in sorted(ports)),
            )
        )

    def temporary(self) -> int:
        """A register that is free in this firing."""
        number = self._free.pop() if self._free else self._fresh()
        self._used.add(number)
        return number

    def _fresh(self) -> int:
        """The temporaries of all firings are the same registers."""
        count = len(self._used) + len(self._free)
        name = f"?temporary{count}"
        if name not in self.cell.sources:
            self.cell.sources[name] = FromRegister(self.cell.new_register())
        source = self.cell.sources[name]
        assert isinstance(source, FromRegister)
        return source.number

    def _operands(self, operands: tuple[Expr, ...]) -> tuple[Source, ...]:
        found: list[Source] = []
        for operand in operands:
            if isinstance(operand, Const):
                immediate = not any(isinstance(source, Immediate) for source in found)
                found.append(self.cell.literal(operand, immediate=immediate))
            elif isinstance(operand, Local):
                found.append(self.cell.sources[operand.name])
            else:
                found.append(self._between(operand))
        return tuple(found)

    def _between(self, operand: Expr) -> Source:
        """A result that only the next step needs."""
        opcode, _ = self._operation(operand)
        if opcode in ON_FMA:
            self._loops += 1
            output, into = self.cell.loop(f"?result{self._loops}")
            self.compute(operand, ToOutputs((output,), 0))
            return FromChannel(into)
        number = self.temporary()
        self.compute(operand, ToRegister(number))
        return FromRegister(number)

    def _operation(self, expr: Expr) -> tuple[Opcode, tuple[Expr, ...]]:
        """The operator at the root of an expression, and its operands."""
        match expr:
            case Const() | Local():
                return Opcode.MOV, (expr,)
            case Cast():
                return self._converted(expr)
            case Apply(operator=Op.ADD, operands=(left, right)):
                for product, other in ((right, left), (left, right)):
                    product = _same_word(product)
                    if isinstance(product, Apply) and product.operator is Op.MULTIPLY:
                        if expr.type.is_integer:
                            return Opcode.MAC, self._plain(other, *product.operands)
                        if self.cell.contract:
                            return Opcode.FMAC, self._plain(other, *product.operands)
            case Apply(operator=Op.NOT, operands=(value,)):
                if expr.type.is_bool:
                    return Opcode.EQ, self._plain(value, const(0, _WORD))
                return Opcode.BXOR, self._plain(value, const(-1, _WORD))
            case Apply(operator=Op.FUSED_MULTIPLY_ADD, operands=(left, right, start)):
                return Opcode.FMAC, self._plain(start, left, right)
            case Apply(operator=Op.FLOOR_DIVIDE | Op.MODULO, operands=(left, Const() as by)) if (
                _is_power_of_two(by)
            ):
                number = int(by.value)
                shift = const(number.bit_length() - 1, _WORD)
                if expr.operator is Op.FLOOR_DIVIDE:
                    return Opcode.ASR, self._numbers(left, shift)
                return Opcode.BAND, self._plain(left, const(number - 1, _WORD))
        if isinstance(expr, Apply):
            table = FLOATS if expr.operands[0].type.is_float else INTEGERS
            if expr.operator in table:
                sensitive = expr.operator is Op.SHIFT_RIGHT or expr.type.is_bool
                made = self._numbers if sensitive else self._plain
                return table[expr.operator], made(*expr.operands)
            what = _TEXTS.get(expr.operator, expr.operator.name.lower())
            self.cell.refusals.operator(what, "compute that on the host")
        self.cell.refusals.operator(type(expr).__name__.lower(), "leave it out")

    def _plain(self, *operands: Expr) -> tuple[Expr, ...]:
        return tuple(_same_word(operand) for operand in operands)

    def _numbers(self, *operands: Expr) -> tuple[Expr, ...]:
        """Operands whose words are their numbers, where the upper half of an int32 matters."""
        found: list[Expr] = []
        for operand in self._plain(*operands):
            names = {part.name for part in walk(operand) if isinstance(part, Local)}
            loose = operand.type == INT32 and bool(names & self.cell.loose)
            wide = Cast(value=operand, type=_WORD)
            found.append(Cast(value=wide, type=INT32) if loose else operand)
        return tuple(found)

    def _converted(self, cast: Cast) -> tuple[Opcode, tuple[Expr, ...]]:
        source, target = cast.value.type, cast.type
        if target.is_float and (source.is_integer or source.is_bool):
            return Opcode.ITF, self._numbers(cast.value)
        if target.is_bool:
            return Opcode.FNE, (cast.value, const(0.0, source))
        if source.is_float:
            return Opcode.FTI, (cast.value,)
        plain = _same_word(cast)
        if plain is not cast:
            (number,) = self._numbers(plain) if cast.type != plain.type else (plain,)
            return self._operation(number)
        by = const(_WORD.bits - target.bits, _WORD)
        high = apply(Op.SHIFT_LEFT, Cast(value=cast.value, type=_WORD), by)
        return Opcode.ASR, (high, by)


def _same_word(expr: Expr) -> Expr:
    """Without conversions that leave a word as it is."""
    while isinstance(expr, Cast) and not expr.type.is_float and not expr.value.type.is_float:
        if expr.type.is_bool or expr.type.bits < expr.value.type.bits:
            break
        expr = expr.value
    return expr


def _is_power_of_two(by: Const) -> bool:
    number = int(by.value)
    return by.type.is_integer and number > 0 and number & number - 1 == 0


def _temporary_port(source: Source, cell: Cellular) -> list[int]:
    """The input of a result in between, if a source is one."""
    if not isinstance(source, FromChannel):
        return []
    loops = [ports[1] for name, ports in cell.loops.items() if name.startswith("?")]
    return [port for port in loops if port == source.number]
