"""The operators of triggered instructions as expressions of the graph.

Integer words are expressions of a signed type as wide as the word, float words of type float64.
``expression_of`` returns ``None`` for an operator that has no such expression.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial, reduce
from types import MappingProxyType

from t2s.backends.cgra_tia.fabric import CoreParameters
from t2s.backends.cgra_tia.netlist import Netlist, StreamUnit, UnitKind
from t2s.backends.cgra_tia.program import (
    FromChannel,
    FromRegister,
    Instruction,
    Opcode,
    Source,
    ToOutputs,
    ToRegister,
)
from t2s.core.errors import UserError
from t2s.core.expr import Cast, Const, Expr, Select, apply, const, equals, unequal
from t2s.core.ops import Op
from t2s.core.types import Float, Int, Type, UInt

DOUBLE = Float(64)
WHOLE_WORD = Int(64)
"""A word of profile B that is not a float."""

Build = Callable[..., Expr]


def expression_of(
    opcode: Opcode, operands: Sequence[Expr], word: Type, *, fused: bool = True
) -> Expr | None:
    """The result of an operator; ``word`` is the type of integer words.

    Missing operands are 0, and surplus ones are ignored.
    """
    nothing = const(0.0, DOUBLE) if opcode in FLOAT_OPERANDS else const(0, word)
    operands = (*operands, *(nothing for _ in range(3)))[: _ARITIES.get(opcode, 2)]
    if opcode is Opcode.MOV:
        return operands[0]
    if word != WHOLE_WORD and opcode in FLOAT_OPERANDS | FLOAT_RESULT:
        return None
    if opcode is Opcode.FMAC:
        start, left, right = operands
        if fused:
            return apply(Op.FUSED_MULTIPLY_ADD, left, right, start)
        return start + left * right
    build = _table(word).get(opcode)
    return None if build is None else build(*operands)


_ARITIES: Mapping[Opcode, int] = MappingProxyType(
    dict.fromkeys((Opcode.NOP, Opcode.HALT), 0)
    | dict.fromkeys((Opcode.MOV, Opcode.CTZ, Opcode.ITF, Opcode.UTF, Opcode.FTI, Opcode.FTU), 1)
    | dict.fromkeys((Opcode.MAC, Opcode.SB, Opcode.FMAC), 3)
)

FLOAT_OPERANDS = frozenset(
    {
        *(Opcode.FADD, Opcode.FSUB, Opcode.FMUL, Opcode.FMAC, Opcode.FTI, Opcode.FTU),
        *(Opcode.FEQ, Opcode.FNE, Opcode.FGT, Opcode.FLT, Opcode.FLE, Opcode.FGE),
    }
)
"""Operators whose operands are floats."""

FLOAT_RESULT = frozenset(
    {Opcode.FADD, Opcode.FSUB, Opcode.FMUL, Opcode.FMAC, Opcode.ITF, Opcode.UTF}
)
"""Operators whose result is a float."""


def word_constant(pattern: int, type: Type) -> Const:
    """A bit pattern of the word's width as a constant."""
    if type.is_float:
        value: float = struct.unpack("<d", struct.pack("<Q", pattern))[0]
        return const(value, type)
    sign = pattern >> type.bits - 1
    return const(pattern - (sign << type.bits), type)


def start_word(pattern: int, type: Type) -> int | float | bool:
    """The initial value of a register in the graph: an integer 0 if all bits are 0."""
    return word_constant(pattern, type).value if pattern else 0


def immediate_constant(pattern: int, core: CoreParameters, type: Type) -> Const:
    """An immediate, sign-extended to a word, as a constant."""
    return word_constant(core.extended(pattern), type)


@cache
def _table(word: Type) -> Mapping[Opcode, Build]:
    unsigned = UInt(word.bits)
    zero, one = const(0, word), const(1, word)

    def as_unsigned(value: Expr) -> Expr:
        return Cast(value=value, type=unsigned)

    def back(value: Expr) -> Expr:
        return Cast(value=value, type=word)

    def plain(operator: Op) -> Build:
        return lambda *operands: apply(operator, *operands)

    def compared(operator: Op) -> Build:
        return lambda a, b: back(apply(operator, a, b))

    def compared_unsigned(operator: Op) -> Build:
        return lambda a, b: back(apply(operator, as_unsigned(a), as_unsigned(b)))

    def logic(operator: Op) -> Build:
        return lambda a, b: back(apply(operator, unequal(a, zero), unequal(b, zero)))

    def bit(b: Expr) -> Expr:
        return one << b

    def without(a: Expr, b: Expr) -> Expr:
        return a & ~bit(b)

    def right(a: Expr, b: Expr) -> Expr:
        return back(as_unsigned(a) >> as_unsigned(b))

    def chosen(a: Expr, b: Expr, c: Expr) -> Expr:
        here = unequal(c, zero)
        return Select(condition=here, if_true=a | bit(b), if_false=without(a, b), type=word)

    def leading(a: Expr, b: Expr) -> Expr:
        """The index of the highest set bit (the width if none is set), or the zeros above it."""
        lengths = (as_unsigned(a) >= const(1 << number, unsigned) for number in range(word.bits))
        last = counted(lengths) - one
        none = equals(a, zero)
        index = Select(condition=none, if_true=const(word.bits, word), if_false=last, type=word)
        rest = const(word.bits - 1, word) - index
        asked = unequal(b, zero)
        return Select(condition=asked, if_true=index, if_false=rest, type=word)

    def trailing(a: Expr) -> Expr:
        """The number of zeros below the lowest set bit."""
        return counted(equals(a << const(number, word), zero) for number in range(word.bits))

    def counted(conditions: Iterable[Expr]) -> Expr:
        return reduce(partial(apply, Op.ADD), map(back, conditions))

    def high(a: Expr, b: Expr) -> Expr:
        """The high word of an unsigned product, by halves."""
        half = const(word.bits // 2, unsigned)
        low = const((1 << word.bits // 2) - 1, unsigned)

        def halves(value: Expr) -> tuple[Expr, Expr]:
            return value >> half, value & low

        (a_high, a_low), (b_high, b_low) = halves(as_unsigned(a)), halves(as_unsigned(b))
        lowest = a_low * b_low >> half
        carry, rest = halves(a_high * b_low + lowest)
        other = a_low * b_high + rest
        more = carry + (other >> half)
        return back(a_high * b_high + more)

    def high_signed(a: Expr, b: Expr) -> Expr:
        """The high word of a signed product: corrects the unsigned one for negative factors."""

        def beside(sign: Expr, value: Expr) -> Expr:
            negative = sign < zero
            return Select(condition=negative, if_true=value, if_false=zero, type=word)

        less = beside(a, b) + beside(b, a)
        return high(a, b) - less

    return MappingProxyType(
        {
            Opcode.NOP: lambda: zero,
            Opcode.HALT: lambda: zero,
            Opcode.ADD: plain(Op.ADD),
            Opcode.SUB: plain(Op.SUBTRACT),
            Opcode.LMUL: plain(Op.MULTIPLY),
            Opcode.MAC: lambda a, b, c: a + b * c,
            Opcode.SL: plain(Op.SHIFT_LEFT),
            Opcode.ASR: plain(Op.SHIFT_RIGHT),
            Opcode.LSR: right,
            Opcode.EQ: compared(Op.EQUAL),
            Opcode.NE: compared(Op.NOT_EQUAL),
            Opcode.SGT: compared(Op.GREATER),
            Opcode.SLT: compared(Op.LESS),
            Opcode.SGE: compared(Op.GREATER_EQUAL),
            Opcode.SLE: compared(Op.LESS_EQUAL),
            Opcode.UGT: compared_unsigned(Op.GREATER),
            Opcode.ULT: compared_unsigned(Op.LESS),
            Opcode.UGE: compared_unsigned(Op.GREATER_EQUAL),
            Opcode.ULE: compared_unsigned(Op.LESS_EQUAL),
            Opcode.BAND: plain(Op.AND),
            Opcode.BOR: plain(Op.OR),
            Opcode.BXOR: plain(Op.XOR),
            Opcode.LAND: logic(Op.AND),
            Opcode.LOR: logic(Op.OR),
            Opcode.LXOR: logic(Op.XOR),
            Opcode.GB: lambda a, b: right(a, b) & one,
            Opcode.SB: chosen,
            Opcode.CB: without,
            Opcode.MB: lambda a, b: a | bit(b),
            Opcode.CLZ: leading,
            Opcode.CTZ: trailing,
            Opcode.UHMUL: high,
            Opcode.SHMUL: high_signed,
            Opcode.FADD: plain(Op.ADD),
            Opcode.FSUB: plain(Op.SUBTRACT),
            Opcode.FMUL: plain(Op.MULTIPLY),
            Opcode.FEQ: compared(Op.EQUAL),
            Opcode.FNE: compared(Op.NOT_EQUAL),
            Opcode.FGT: compared(Op.GREATER),
            Opcode.FLT: compared(Op.LESS),
            Opcode.FGE: compared(Op.GREATER_EQUAL),
            Opcode.FLE: compared(Op.LESS_EQUAL),
            Opcode.ITF: lambda a: Cast(value=a, type=DOUBLE),
            Opcode.UTF: lambda a: Cast(value=as_unsigned(a), type=DOUBLE),
            Opcode.FTI: lambda a: Cast(value=a, type=Int(64)),
            Opcode.FTU: lambda a: back(Cast(value=a, type=UInt(64))),
        }
    )


# Type inference: which nets and registers of a placed design hold floats, and which integers.
#
# A word of the machine is a bit pattern, but a channel of the graph has a type.  The types of
# operands and results of operators and of tensor elements are propagated along nets and through
# registers; words without a type (the tokens of ``seq`` units) are integers.  Refused: words used
# as both.

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
                source, end = net.source, sink.end
                self._join(("out", source.part, source.port), ("in", end.part, end.port), net.name)
        for unit in self.netlist.units:
            self._unit(unit)
        for cell in self.netlist.cells:
            for instruction in cell.program.instructions:
                self._instruction(cell.name, instruction)

    def output(self, part: str, port: int) -> Type:
        """The type of the words that leave an output."""
        return self._types.get(self._root(("out", part, port)), WORD)

    def input(self, part: str, port: int) -> Type:
        """The type of the words that arrive at an input."""
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
            return  # zero has the same pattern in both types
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
                hint="convert with itf and fti; the interpreter runs programs that use the bits",
            )

    def _join(self, one: _Key, other: _Key, where: str) -> None:
        first, second = self._root(one), self._root(other)
        if first == second:
            return
        self._parents[second] = first
        if second in self._types:
            self._is(first, self._types.pop(second), where)


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
