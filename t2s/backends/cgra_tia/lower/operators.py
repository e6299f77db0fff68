"""Which operator of the machine, or which two, an operation is.

Most are one instruction.  Where data choose between two values, one instruction writes a predicate
and the next one moves what was chosen, so that such a cell fires every second cycle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from t2s.backends.cgra_tia.lower.values import Operation, Special, WordLiteral
from t2s.backends.cgra_tia.opcodes import Opcode
from t2s.core.ops import Op
from t2s.core.types import INT32, Type

T = TypeVar("T")

_SIGN = 1 << 63


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One operator on the operands; with ``chooses`` its two first operands are compared by it.

    Then the third one is the result where that holds, and else the fourth.
    """

    opcode: Opcode
    chooses: bool = False

    @staticmethod
    def of_move() -> Recipe:
        """What only moves its operand."""
        return Recipe(opcode=Opcode.MOV)


FLOATS = {
    Op.ADD: Opcode.FADD,
    Op.SUBTRACT: Opcode.FSUB,
    Op.MULTIPLY: Opcode.FMUL,
    Op.EQUAL: Opcode.FEQ,
    Op.NOT_EQUAL: Opcode.FNE,
    Op.LESS: Opcode.FLT,
    Op.LESS_EQUAL: Opcode.FLE,
    Op.GREATER: Opcode.FGT,
    Op.GREATER_EQUAL: Opcode.FGE,
}

INTEGERS = {
    Op.ADD: Opcode.ADD,
    Op.SUBTRACT: Opcode.SUB,
    Op.MULTIPLY: Opcode.LMUL,
    Op.EQUAL: Opcode.EQ,
    Op.NOT_EQUAL: Opcode.NE,
    Op.LESS: Opcode.SLT,
    Op.LESS_EQUAL: Opcode.SLE,
    Op.GREATER: Opcode.SGT,
    Op.GREATER_EQUAL: Opcode.SGE,
    Op.AND: Opcode.BAND,
    Op.OR: Opcode.BOR,
    Op.XOR: Opcode.BXOR,
    Op.SHIFT_LEFT: Opcode.SL,
    Op.SHIFT_RIGHT: Opcode.ASR,
}


def recipe_of(
    operation: Operation, operands: Sequence[T]
) -> tuple[Recipe, tuple[T | WordLiteral, ...]]:
    """What computes an operation on operands: those of its own, or of a sum with a product."""
    type = operation.operands[-1].type
    table = FLOATS if type.is_float else INTEGERS
    match operation.operator:
        case Op.ADD if len(operands) == 3:
            return Recipe(opcode=Opcode.FMAC if type.is_float else Opcode.MAC), tuple(operands)
        case Op.FUSED_MULTIPLY_ADD:
            first, second, third = operands
            return Recipe(opcode=Opcode.FMAC), (third, first, second)
        case Op.MINIMUM | Op.MAXIMUM as operator:
            first, second = operands
            less = table[Op.LESS if operator is Op.MINIMUM else Op.GREATER]
            return Recipe(opcode=less, chooses=True), (second, first, second, first)
        case Special.PICK:
            test, yes, no = operands
            return Recipe(opcode=Opcode.NE, chooses=True), (test, _zero(INT32), yes, no)
        case Special.CONVERT:
            return _converted(operation, operands[0])
        case Op.NEGATE:
            return Recipe(opcode=Opcode.BXOR), (operands[0], WordLiteral(pattern=_SIGN, type=type))
        case Op.ABSOLUTE:
            return Recipe(opcode=Opcode.BAND), (
                operands[0],
                WordLiteral(pattern=_SIGN - 1, type=type),
            )
        case Op.NOT:
            ones = WordLiteral(pattern=1 if type.is_bool else (1 << 64) - 1, type=type)
            return Recipe(opcode=Opcode.BXOR), (operands[0], ones)
        case operator:
            assert isinstance(operator, Op)
            return Recipe(opcode=table[operator]), tuple(operands)


def _zero(type: Type) -> WordLiteral:
    return WordLiteral(pattern=0, type=type)


def _converted(operation: Operation, value: T) -> tuple[Recipe, tuple[T | WordLiteral, ...]]:
    source, target = operation.operands[0].type, operation.type
    if target.is_bool:
        test = Opcode.FNE if source.is_float else Opcode.NE
        return Recipe(opcode=test), (value, _zero(source))
    if target.is_float:
        return Recipe(opcode=Opcode.ITF), (value,)
    assert source.is_float
    return Recipe(opcode=Opcode.FTI), (value,)
