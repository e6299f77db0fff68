"""Which nets and registers of a placed design hold floats, and which whole words.

A word of the machine is a bit pattern; a channel of the graph has a type.  What an operator or a
tensor says of its operands and results is carried along nets and through registers; what nothing
is said of (the tokens of ``seq`` units) is a whole word.  Refused: patterns used as both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from t2s.backends.cgra_tia.lift.word_expressions import (
    DOUBLE,
    FLOAT_OPERANDS,
    FLOAT_RESULT,
    WHOLE_WORD,
)
from t2s.backends.cgra_tia.netlist import Endpoint, Netlist, StreamUnit, UnitKind
from t2s.backends.cgra_tia.opcodes import Opcode
from t2s.backends.cgra_tia.program import (
    FromChannel,
    FromRegister,
    Instruction,
    Source,
    ToOutputs,
    ToRegister,
)
from t2s.core.errors import UserError
from t2s.core.types import Type

WORD = WHOLE_WORD

_Key = tuple[str, str, int]


@dataclass(slots=True)
class WordKinds:
    """The types of ports and registers of the parts of a netlist."""

    netlist: Netlist
    _parents: dict[_Key, _Key] = field(default_factory=dict)
    _types: dict[_Key, Type] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for net in self.netlist.nets:
            for sink in net.sinks:
                self._join(_output(net.source), _input(sink.end), net.name)
        for unit in self.netlist.units:
            self._unit(unit)
        for cell in self.netlist.cells:
            for instruction in cell.program.instructions:
                self._instruction(cell.name, instruction)

    def output(self, part: str, port: int) -> Type:
        """The type of what is sent from an output."""
        return self._types.get(self._root(("out", part, port)), WORD)

    def input(self, part: str, port: int) -> Type:
        """The type of what comes to an input."""
        return self._types.get(self._root(("in", part, port)), WORD)

    def register(self, part: str, number: int) -> Type:
        """The type of a register."""
        return self._types.get(self._root(("register", part, number)), WORD)

    def scratchpad(self, part: str) -> Type:
        """The type of the words in a scratchpad."""
        return self._types.get(self._root(("scratchpad", part, 0)), WORD)

    def _unit(self, unit: StreamUnit) -> None:
        tensor = next((t for t in self.netlist.tensors if t.name == unit.tensor), None)
        if tensor is None:
            if unit.address is not None:
                self._is(("out", unit.name, 0), WORD, unit.name)
            return
        type = DOUBLE if tensor.type.is_float else WORD
        match unit.kind:
            case UnitKind.LOAD | UnitKind.LOAD_AT:
                self._is(("out", unit.name, 0), type, unit.name)
            case UnitKind.STORE | UnitKind.STORE_AT:
                port = 0 if unit.kind is UnitKind.STORE else 1
                self._is(("in", unit.name, port), type, unit.name)
        if unit.kind in (UnitKind.LOAD_AT, UnitKind.STORE_AT):
            self._is(("in", unit.name, 0), WORD, unit.name)

    def _instruction(self, cell: str, instruction: Instruction) -> None:
        opcode = instruction.opcode
        operands = DOUBLE if opcode in FLOAT_OPERANDS else WORD
        results = list(_results(cell, instruction))
        sources = list(_read(cell, instruction.sources))
        if opcode in (Opcode.NOP, Opcode.HALT):
            return  # a zero is a word of either kind
        if opcode in (Opcode.LSW, Opcode.SSW):
            pad = ("scratchpad", cell, 0)
            value, *_ = instruction.sources
            stored = list(_read(cell, [value])) if opcode is Opcode.SSW else results
            for key in stored:
                self._join(pad, key, cell)
            for key in _read(cell, instruction.sources[-1:]):
                self._is(key, WORD, cell)
            return
        if opcode is Opcode.MOV:
            for key in results:
                for operand in sources:
                    self._join(key, operand, cell)
            return
        for key in sources:
            self._is(key, operands, cell)
        for key in results:
            self._is(key, DOUBLE if opcode in FLOAT_RESULT else WORD, cell)

    def _root(self, key: _Key) -> _Key:
        while (parent := self._parents.get(key, key)) != key:
            key = parent
        return key

    def _is(self, key: _Key, type: Type, where: str) -> None:
        root = self._root(key)
        if self._types.setdefault(root, type) != type:
            raise UserError(
                f"a word at {where!r} is used as a float and as an integer",
                location=self.netlist.location,
                expected="each net and register to hold floats, or integers",
                given=f"both, at {key[0]} {key[2]} of {key[1]!r}",
                hint="itf and fti convert; the interpreter runs programs that look at the bits",
            )

    def _join(self, one: _Key, other: _Key, where: str) -> None:
        first, second = self._root(one), self._root(other)
        if first == second:
            return
        self._parents[second] = first
        if second in self._types:
            self._is(first, self._types.pop(second), where)


def _output(end: Endpoint) -> _Key:
    return "out", end.part, end.port


def _input(end: Endpoint) -> _Key:
    return "in", end.part, end.port


def _read(cell: str, sources: Sequence[Source]) -> Iterator[_Key]:
    """The channels and registers among operands."""
    for source in sources:
        match source:
            case FromChannel(number=number):
                yield "in", cell, number
            case FromRegister(number=number):
                yield "register", cell, number


def _results(cell: str, instruction: Instruction) -> Iterator[_Key]:
    match instruction.destination:
        case ToOutputs(channels=channels):
            for channel in channels:
                yield "out", cell, channel
        case ToRegister(number=number):
            yield "register", cell, number
