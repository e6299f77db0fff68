"""Floating-point operators of a chip: which there are, and the modules of the library for them.

Sums and products of float32 are modules with registers inside; signs, orders and conversions to and
from bfloat16 are functions of ``operators.sv``.  A product of bfloat16 numbers that were converted
to float32 has a small multiplier.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from t2s.core.expr import Apply, Cast, Expr, ReduceLanes
from t2s.core.ops import Op
from t2s.core.types import BFloat, Float, Type
from t2s.core.walk import walk
from t2s.graph.nodes import Machine, Node

FLOAT32, BFLOAT16 = Float(32), BFloat()
ADD_REGISTERS, MULTIPLY_REGISTERS = (2, 6), (2, 7)
"""The fewest and the most registers of a sum and of a product: the cuts in the modules."""

_FRACTIONS = {FLOAT32: 23, BFLOAT16: 7}
WITHOUT_REGISTERS = frozenset(
    {
        *(Op.NEGATE, Op.ABSOLUTE, Op.MINIMUM, Op.MAXIMUM),
        *(Op.EQUAL, Op.NOT_EQUAL, Op.LESS, Op.LESS_EQUAL, Op.GREATER, Op.GREATER_EQUAL),
    }
)
"""Operators on float32 that are logic of their bits."""
_NAMES = {
    Op.DIVIDE: "floating-point division",
    Op.SQUARE_ROOT: "a floating-point square root",
    Op.RECIPROCAL_SQUARE_ROOT: "a floating-point reciprocal square root",
    Op.FUSED_MULTIPLY_ADD: "a fused floating-point multiplication and addition",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FloatModule:
    """A module of the library with registers inside.

    Attributes
    ----------
    name, result: of the module, and of its port for the result.
    registers: the fewest and the most that it can have.
    parameters: values of its parameters, besides the number of registers.
    """

    name: str
    result: str
    registers: tuple[int, int]
    parameters: tuple[tuple[str, int], ...] = ()


def float_module(expr: Expr) -> FloatModule | None:
    """The module of a sum, a difference or a product of float32; ``None`` for anything else."""
    match expr:
        case Apply(operator=Op.ADD | Op.SUBTRACT, type=type) if type.scalar == FLOAT32:
            return FloatModule(name="float_add", result="sum", registers=ADD_REGISTERS)
        case Apply(operator=Op.MULTIPLY, operands=(left, right), type=type) if (
            type.scalar == FLOAT32
        ):
            return FloatModule(
                name="float_multiply",
                result="product",
                registers=MULTIPLY_REGISTERS,
                parameters=(("LEFT", _fraction(left)), ("RIGHT", _fraction(right))),
            )
    return None


def _fraction(operand: Expr) -> int:
    """The bits of a fraction that may be other than zero."""
    widened = isinstance(operand, Cast) and operand.value.type.scalar == BFLOAT16
    return _FRACTIONS[BFLOAT16 if widened else FLOAT32]


def not_available(node: Node) -> Iterator[str]:
    """What a node computes with floating-point numbers that a chip does not have, each once."""
    seen: set[str] = set()
    for term in walk(node):
        why = _why_not(term, isinstance(node, Machine)) if isinstance(term, Expr) else None
        if why is not None and why not in seen:
            seen.add(why)
            yield why


def _why_not(term: Expr, machine: bool) -> str | None:
    match term:
        case ReduceLanes(value=value) if value.type.is_float:
            return (
                f"a sum over the lanes of {value.type} is not available on a chip: split that loop "
                "without vectorizing it"
            )
        case Cast(value=value, type=type) if type.is_float or value.type.is_float:
            if {type.scalar, value.type.scalar} <= {FLOAT32, BFLOAT16}:
                return None
            return (
                f"a conversion of {value.type.scalar} to {type.scalar} is not available on a chip: "
                "there are those between bfloat16 and float32"
            )
        case Apply(operator=operator, operands=(first, *_)) if first.type.is_float:
            return _operator(operator, first.type.scalar, term, machine)
    return None


def _operator(operator: Op, type: Type, term: Apply, machine: bool) -> str | None:
    if type != FLOAT32:
        return (
            f"arithmetic of {type} is not available on a chip: it computes with float32, to which "
            "bfloat16 can be converted"
        )
    if float_module(term) is not None:
        if machine:
            return (
                "floating-point arithmetic of a machine is not available on a chip: it decides and "
                "computes in one cycle"
            )
        return None
    if operator in WITHOUT_REGISTERS:
        return None
    what = _NAMES.get(operator, f"floating-point {operator.value}")
    return (
        f"{what} is not available on a chip: there are addition, subtraction, multiplication, "
        "comparison, minimum, maximum, absolute value and negation of float32"
    )
