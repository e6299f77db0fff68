"""Which instruction of the public core an expression on words is, and on what it works."""

from __future__ import annotations

from dataclasses import dataclass

from t2s.backends.cgra_tia.opcodes import Opcode
from t2s.core.expr import Apply, Cast, Const, Expr, Select, apply
from t2s.core.ops import Op
from t2s.core.types import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class WordRecipe:
    """An operator on operands; with ``chooses`` it compares the first two.

    Then the third one is the result where that holds, and else the fourth.
    """

    opcode: Opcode
    operands: tuple[Expr, ...]
    chooses: bool = False


_ANY = {
    Op.ADD: Opcode.ADD,
    Op.SUBTRACT: Opcode.SUB,
    Op.MULTIPLY: Opcode.LMUL,
    Op.EQUAL: Opcode.EQ,
    Op.NOT_EQUAL: Opcode.NE,
    Op.AND: Opcode.BAND,
    Op.OR: Opcode.BOR,
    Op.XOR: Opcode.BXOR,
    Op.SHIFT_LEFT: Opcode.SL,
}
_SIGNED = {
    Op.LESS: Opcode.SLT,
    Op.LESS_EQUAL: Opcode.SLE,
    Op.GREATER: Opcode.SGT,
    Op.GREATER_EQUAL: Opcode.SGE,
    Op.SHIFT_RIGHT: Opcode.ASR,
}
_UNSIGNED = {
    Op.LESS: Opcode.ULT,
    Op.LESS_EQUAL: Opcode.ULE,
    Op.GREATER: Opcode.UGT,
    Op.GREATER_EQUAL: Opcode.UGE,
    Op.SHIFT_RIGHT: Opcode.LSR,
}


class NoInstruction(Exception):
    """An operator that the public core does not have."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


def word_recipe(value: Expr) -> WordRecipe:
    """The instruction that computes a value, which is no number and no local."""
    match value:
        case Select(condition=condition, if_true=yes, if_false=no):
            return _choice(condition, yes, no)
        case Cast(value=inner, type=target):
            if target.is_bool and not inner.type.is_bool:
                return WordRecipe(opcode=Opcode.NE, operands=(inner, _zero(inner)))
            return WordRecipe(opcode=Opcode.MOV, operands=(inner,))
        case Apply(operator=Op.ADD, operands=(first, second)):
            for product, other in ((second, first), (first, second)):
                if isinstance(product, Apply) and product.operator is Op.MULTIPLY:
                    return WordRecipe(opcode=Opcode.MAC, operands=(other, *product.operands))
            return WordRecipe(opcode=Opcode.ADD, operands=(first, second))
        case Apply(operator=operator, operands=operands):
            return _applied(value, operator, operands)
    raise NoInstruction(f"a {type(value).__name__.lower()} of vectors")


def _choice(condition: Expr, yes: Expr, no: Expr) -> WordRecipe:
    match condition:
        case Apply(operator=operator, operands=(left, right)) if operator in _COMPARE:
            opcode = _table(left)[operator]
            return WordRecipe(opcode=opcode, operands=(left, right, yes, no), chooses=True)
    return WordRecipe(
        opcode=Opcode.NE, operands=(condition, _zero(condition), yes, no), chooses=True
    )


_COMPARE = (
    Op.EQUAL,
    Op.NOT_EQUAL,
    Op.LESS,
    Op.LESS_EQUAL,
    Op.GREATER,
    Op.GREATER_EQUAL,
)


def _table(operand: Expr) -> dict[Op, Opcode]:
    return _ANY | (_SIGNED if operand.type.kind is Kind.INT else _UNSIGNED)


def _applied(value: Expr, operator: Op, operands: tuple[Expr, ...]) -> WordRecipe:
    first = operands[0]
    match operator:
        case Op.MINIMUM | Op.MAXIMUM:
            compare = Op.LESS if operator is Op.MINIMUM else Op.GREATER
            second = operands[1]
            return WordRecipe(
                opcode=_table(first)[compare],
                operands=(second, first, second, first),
                chooses=True,
            )
        case Op.NEGATE:
            return WordRecipe(opcode=Opcode.SUB, operands=(_zero(first), first))
        case Op.ABSOLUTE if first.type.kind is Kind.INT:
            negative = apply(Op.NEGATE, first)
            return WordRecipe(
                opcode=Opcode.SLT, operands=(first, _zero(first), negative, first), chooses=True
            )
        case Op.ABSOLUTE | Op.FLOOR | Op.CEILING:
            return WordRecipe(opcode=Opcode.MOV, operands=(first,))
        case Op.NOT:
            ones = Const(value=1 if first.type.is_bool else -1, type=first.type)
            return WordRecipe(opcode=Opcode.BXOR, operands=(first, ones))
        case Op.FLOOR_DIVIDE | Op.MODULO:
            return _divided(operator, operands)
    opcode = _table(first).get(operator)
    if opcode is None:
        raise NoInstruction(f"{operator.value!r} of data")
    return WordRecipe(opcode=opcode, operands=operands)


def _divided(operator: Op, operands: tuple[Expr, ...]) -> WordRecipe:
    """Division by a power of two is a shift, its rest a mask."""
    value, by = operands
    if isinstance(by, Const) and by.value > 0 and not int(by.value) & int(by.value) - 1:
        number = int(by.value)
        if operator is Op.MODULO:
            mask = Const(value=number - 1, type=by.type)
            return WordRecipe(opcode=Opcode.BAND, operands=(value, mask))
        amount = Const(value=number.bit_length() - 1, type=by.type)
        return WordRecipe(opcode=_table(value)[Op.SHIFT_RIGHT], operands=(value, amount))
    raise NoInstruction(f"{operator.value!r} of data, other than by a power of two")


def _zero(like: Expr) -> Const:
    return Const(value=0, type=like.type)
