"""Expressions of t2s as expressions of SystemVerilog.

SystemVerilog widens operands to the context of an expression; here the result of every operator
that may carry is cut to its own width, so that numbers wrap around as in t2s.  Vectors are computed
lane by lane, in a loop over the lanes; trees over lanes get a variable of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from t2s.backends.text.expressions import (
    Binary,
    Name,
    TargetExpression,
    TargetStatement,
    Ternary,
    Unary,
    call,
    number,
)
from t2s.backends.text.identifiers import Identifiers
from t2s.backends.verilog.data_types import (
    bits_of,
    literal,
    signed_as,
    suffix_of,
    width_of,
)
from t2s.backends.verilog.float_operators import BFLOAT16, FLOAT32, WITHOUT_REGISTERS
from t2s.backends.verilog.verilog_ast import (
    Declaration,
    Element,
    Resize,
    Signal,
    UnrolledFor,
    element,
    put,
)
from t2s.core.expr import (
    Apply,
    BitOperator,
    BlockOperator,
    Broadcast,
    Cast,
    Const,
    Expr,
    Index,
    Insert,
    LaneNumbers,
    Local,
    Parameter,
    ReduceLanes,
    Select,
)
from t2s.core.ops import C_FUNCTIONS, Op
from t2s.core.types import INT32, Kind, Type
from t2s.core.walk import Term
from t2s.graph.arrays import strides_of

LANE = "lane"

_PLAIN = {
    Op.ADD: "+",
    Op.SUBTRACT: "-",
    Op.MULTIPLY: "*",
    Op.EQUAL: "==",
    Op.NOT_EQUAL: "!=",
    Op.LESS: "<",
    Op.LESS_EQUAL: "<=",
    Op.GREATER: ">",
    Op.GREATER_EQUAL: ">=",
    Op.AND: "&",
    Op.OR: "|",
    Op.XOR: "^",
}
_FUNCTIONS = {
    Op.ADD: "add",
    Op.SUBTRACT: "subtract",
    Op.MULTIPLY: "multiply",
    Op.DIVIDE: "divide",
    Op.FLOOR_DIVIDE: "floor_divide",
    Op.MODULO: "modulo",
    Op.SHIFT_LEFT: "shift_left",
    Op.SHIFT_RIGHT: "shift_right",
    Op.MINIMUM: "minimum",
    Op.MAXIMUM: "maximum",
    Op.NEGATE: "negate",
    Op.ABSOLUTE: "absolute",
    Op.SQUARE_ROOT: "square_root",
    Op.RECIPROCAL_SQUARE_ROOT: "reciprocal_square_root",
    Op.FLOOR: "floor",
    Op.CEILING: "ceiling",
    Op.FUSED_MULTIPLY_ADD: "fused_multiply_add",
    Op.EQUAL: "equal",
    Op.NOT_EQUAL: "not_equal",
    Op.LESS: "less",
    Op.LESS_EQUAL: "less_equal",
    Op.GREATER: "greater",
    Op.GREATER_EQUAL: "greater_equal",
    **C_FUNCTIONS,
}
_CARRYING = (Op.ADD, Op.SUBTRACT, Op.MULTIPLY)
_INTEGER_ONLY = (Op.FLOOR_DIVIDE, Op.MODULO, Op.SHIFT_LEFT, Op.SHIFT_RIGHT)
_CALLED = (*_INTEGER_ONLY, Op.MINIMUM, Op.MAXIMUM, Op.ABSOLUTE)


def unsupported_term(term: Term) -> str | None:
    """Why the backend does not support a node of an expression; ``None`` if it does."""
    match term:
        case Apply(operator=operator, operands=operands):
            if operands[0].type.kind is Kind.BFLOAT:
                return (
                    f"SystemVerilog cannot compute {operator.value!r} of {operands[0].type}: "
                    "cast to float32, and its result back"
                )
            if operands[0].type.is_float:
                known = operator in _FUNCTIONS and operator not in _INTEGER_ONLY
            else:
                others = (Op.NEGATE, Op.NOT, Op.FUSED_MULTIPLY_ADD)
                known = operator in (*_PLAIN, *_CALLED, *others)
            if not known:
                return f"SystemVerilog cannot compute {operator.value!r} of {operands[0].type} yet"
        case Cast(value=value, type=type) if Kind.BFLOAT in (value.type.kind, type.kind):
            if {value.type.scalar, type.scalar} <= {FLOAT32, BFLOAT16}:
                return None
            return (
                f"SystemVerilog cannot convert {value.type} to {type}: cast to float32 in between"
            )
        case ReduceLanes(value=value) if value.type.kind is Kind.BFLOAT:
            return f"SystemVerilog cannot sum the lanes of {value.type}: cast to float32"
        case Const() | Index() | Parameter() | Local() | Select() | Cast():
            pass
        case Broadcast() | LaneNumbers() | ReduceLanes() | Insert():
            pass
        case BlockOperator():
            return "operators on blocks are not supported in SystemVerilog yet: store no blocks"
        case BitOperator():
            return "operators on the bits of words are not supported in SystemVerilog yet"
        case _:
            return f"{term.__class__.__name__} is not supported in SystemVerilog yet"
    return None


@dataclass(kw_only=True)
class ExpressionWriter:
    """Writes the expressions of one procedural block.

    ``names`` maps indices, parameters and locals to identifiers, or indices to what stands for
    them.  ``before`` collects statements that compute parts of an expression, and ``declarations``
    their variables.  With ``shifts`` a product by a constant is a sum of shifted values, for which
    synthesis takes no multiplier.
    """

    names: Mapping[str, str | TargetExpression]
    identifiers: Identifiers
    shifts: bool = False
    before: list[TargetStatement] = field(default_factory=list)
    declarations: list[Declaration] = field(default_factory=list)

    def assign(self, target: str, value: Expr) -> list[TargetStatement]:
        """Statements that set a variable of the type of ``value``."""
        if value.type.lanes == 1:
            assignment: TargetStatement = put(target, self.scalar(value))
        else:
            each = put(element(target, Name(name=LANE)), self.scalar(value, Name(name=LANE)))
            assignment = UnrolledFor(variable=LANE, count=value.type.lanes, body=(each,))
        return [*self.take_before(), assignment]

    def take_before(self) -> list[TargetStatement]:
        """The statements that have to precede what was written since the last call."""
        taken, self.before = self.before, []
        return taken

    def index(self, expr: Expr) -> TargetExpression:
        """An index or a loop bound, as a signed number of 32 bits, whatever its type."""
        return convert(self.scalar(expr), expr.type, INT32)

    def scalar(self, expr: Expr, lane: TargetExpression | None = None) -> TargetExpression:
        """A scalar, or one lane of a vector."""
        match expr:
            case Const(value=value, type=type):
                return literal(value, type)
            case Index(name=name) | Parameter(name=name):
                return self._named(name)
            case Local(name=name, type=type) if type.lanes == 1:
                return self._named(name)
            case Local(name=name, type=type):
                assert lane is not None
                return signed_as(Element(base=self._named(name), index=lane), type)
            case Apply(operator=operator, operands=operands):
                if self.shifts and operator is Op.MULTIPLY and not operands[0].type.is_float:
                    for value, factor in (operands, operands[::-1]):
                        if isinstance(factor, Const) and not isinstance(value, Const):
                            scaled = times(self.scalar(value, lane), int(factor.value))
                            return Resize(bits=factor.type.bits, value=scaled)
                values = tuple(self.scalar(operand, lane) for operand in operands)
                return apply(operator, operands[0].type, values)
            case Select(condition=condition, if_true=if_true, if_false=if_false):
                return Ternary(
                    condition=self.scalar(condition, lane),
                    if_true=self.scalar(if_true, lane),
                    if_false=self.scalar(if_false, lane),
                )
            case Cast(value=value, type=type):
                return convert(self.scalar(value, lane), value.type, type)
            case Broadcast(value=value):
                return self.scalar(value)
            case LaneNumbers(type=type):
                assert lane is not None
                return convert(lane, INT32, type)
            case ReduceLanes(operator=operator, value=value):
                return self._tree(operator, value)
            case Insert(vector=vector, lane=inserted_lane, value=value):
                assert lane is not None
                position = convert(self.scalar(inserted_lane), inserted_lane.type, INT64)
                return Ternary(
                    condition=Binary(
                        operator="==", left=position, right=convert(lane, INT32, INT64)
                    ),
                    if_true=self.scalar(value),
                    if_false=self.scalar(vector, lane),
                )
        raise TypeError(f"{expr.__class__.__name__} has no spelling in SystemVerilog")

    def _named(self, name: str) -> TargetExpression:
        found = self.names[name]
        return Name(name=found) if isinstance(found, str) else found

    def _tree(self, operator: Op, value: Expr) -> TargetExpression:
        """All lanes combined pairwise, level by level; an odd last lane is carried over."""
        type = value.type
        name = self.identifiers.fresh("lanes")
        self.declarations.append(Declaration(variable=Signal(name=name, type=bits_of(type))))
        self.before += self.assign(name, value)
        scalar = type.scalar
        remaining = [signed_as(element(name, lane), scalar) for lane in range(type.lanes)]
        while len(remaining) > 1:
            pairs = zip(remaining[0::2], remaining[1::2], strict=False)
            combined = [apply(operator, scalar, pair) for pair in pairs]
            remaining = [*combined, *remaining[len(remaining) - len(remaining) % 2 :]]
        return remaining[0]


INT64 = Type(Kind.INT, 64)


def apply(operator: Op, type: Type, operands: tuple[TargetExpression, ...]) -> TargetExpression:
    """An operator on scalars of a type, or on one lane of it."""
    if type == FLOAT32 and operator in WITHOUT_REGISTERS:
        return call(f"operators::{_FUNCTIONS[operator]}_f32", *operands)
    if type.is_float:
        return call(f"floats::t2s_{_FUNCTIONS[operator]}_{suffix_of(type)}", *operands)
    if operator in _CALLED:
        return call(f"operators::{_FUNCTIONS[operator]}_{suffix_of(type)}", *operands)
    if operator is Op.NEGATE:
        return Resize(bits=type.bits, value=Unary(operator="-", operand=operands[0]))
    if operator is Op.NOT:
        if type.is_bool:
            return Unary(operator="!", operand=operands[0])
        return Resize(bits=type.bits, value=Unary(operator="~", operand=operands[0]))
    if operator is Op.FUSED_MULTIPLY_ADD:
        product = Binary(operator="*", left=operands[0], right=operands[1])
        return Resize(bits=type.bits, value=Binary(operator="+", left=product, right=operands[2]))
    left, right = operands
    plain = Binary(operator=_PLAIN[operator], left=left, right=right)
    return Resize(bits=type.bits, value=plain) if operator in _CARRYING else plain


def convert(value: TargetExpression, source: Type, target: Type) -> TargetExpression:
    """A scalar as another type."""
    if source.scalar == target.scalar:
        return value
    if source.is_float:
        return _from_float(value, source, target)
    if target.is_bool:
        return Binary(operator="!=", left=value, right=literal(0, source.scalar))
    if target.is_float:
        signed = source.kind is Kind.INT
        wide = Resize(bits=64, value=value)
        name = f"floats::t2s_from_{'signed' if signed else 'unsigned'}_{suffix_of(target)}"
        return call(name, wide)
    resized = value if width_of(source) == target.bits else Resize(bits=target.bits, value=value)
    if (source.kind is Kind.INT) == (target.kind is Kind.INT):
        return resized
    return call("$signed" if target.kind is Kind.INT else "$unsigned", resized)


def _from_float(value: TargetExpression, source: Type, target: Type) -> TargetExpression:
    suffix = suffix_of(source)
    if target.is_float and Kind.BFLOAT in (source.kind, target.kind):
        return call(
            "operators::round_b16" if target.kind is Kind.BFLOAT else "operators::widen_b16", value
        )
    if target.is_float:
        return call(
            "floats::t2s_widen" if target.bits > source.bits else "floats::t2s_narrow", value
        )
    if target.is_bool:
        return call(f"floats::t2s_to_bool_{suffix}", value)
    sign = "signed" if target.kind is Kind.INT else "unsigned"
    wide = call(f"floats::t2s_to_{sign}_{suffix}", value, number(target.bits))
    return Resize(bits=target.bits, value=wide)


def times(value: TargetExpression, factor: int) -> TargetExpression:
    """A multiple as a sum and difference of shifted values, by the signed digits of the factor."""
    total: TargetExpression = number(0)
    place, rest = 0, abs(factor)
    digits: list[tuple[int, bool]] = []
    while rest:
        if rest % 2:
            negative = rest % 4 == 3
            digits.append((place, negative))
            rest += 1 if negative else -1
        place, rest = place + 1, rest // 2
    for at, negative in reversed(digits):  # the highest digit is positive
        shifted = Binary(operator="<<", left=value, right=number(at)) if at else value
        if total == number(0) and not negative:
            total = shifted
        else:
            total = Binary(operator="-" if negative else "+", left=total, right=shifted)
    return Unary(operator="-", operand=total) if factor < 0 else total


def product(value: TargetExpression, factor: int) -> TargetExpression:
    """A multiple, as a multiplication."""
    return Binary(operator="*", left=value, right=number(factor))


def flat(
    indices: tuple[TargetExpression, ...],
    shape: tuple[int, ...],
    scaled: Callable[[TargetExpression, int], TargetExpression] = product,
) -> TargetExpression:
    """The row-major position of an element, 32 bits; ``scaled`` says how to multiply an index."""
    position: TargetExpression = number(0)
    for index, stride in zip(indices, strides_of(shape), strict=True):
        term = index if stride == 1 else scaled(index, stride)
        if position == number(0):
            position = term
        else:
            position = Binary(operator="+", left=position, right=term)
    return position if len(indices) < 2 else Resize(bits=32, value=position)
