"""Operators in C, with the meaning that ``core/ops.py`` defines.

Operators that are one C expression (below) are written in place.  The others become small helper
functions, which ``Helpers`` collects: minimum and maximum as documented selects, floor division,
operators on lanes without a vector form, and the trees of ``ReduceLanes``.

There are two deviations, both common on FPGAs: ``exp`` is the native one of the operand's type (t2s
rounds float32 from float64), so its last bits may differ; and signed overflow is assumed to wrap
around, as it does in two's complement hardware.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from t2s.backends.kernels.dialect import Dialect, lane_at, literal
from t2s.backends.kernels.kernel_ast import (
    CastTo,
    Declare,
    FieldOf,
    For,
    HelperFunction,
    Return,
    Subscript,
    TypedName,
)
from t2s.backends.text.expressions import (
    If,
    Name,
    Set,
    TargetExpression,
    TargetStatement,
    Ternary,
    Unary,
    binary,
    call,
    number,
)
from t2s.core.ops import Op, result_type
from t2s.core.types import Kind, Type


class Helpers:
    """The helper functions of a file, each after those that it calls itself."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self._functions: dict[str, HelperFunction] = {}

    @property
    def functions(self) -> tuple[HelperFunction, ...]:
        return tuple(self._functions.values())

    def operation(self, operator: Op, type: Type, operands: Operands) -> TargetExpression:
        """``operator`` on operands of one type; a vector's bools are bytes 0 and 1."""
        if operator is Op.ABSOLUTE and not self.dialect.is_struct(type):
            return self._absolute(type, operands[0])
        if operator in (Op.MINIMUM, Op.MAXIMUM) and not self.dialect.is_struct(type):
            return self._extreme(operator, type, operands)
        if type.lanes == 1:
            if operator in (Op.FLOOR_DIVIDE, Op.MODULO):
                return self._floor(operator, type, operands)
            if operator in (Op.SHIFT_LEFT, Op.SHIFT_RIGHT):
                return self._shift(operator, type, operands)
            return scalar_operation(self.dialect, operator, type, operands)
        if self.dialect.is_struct(type) or operator in NO_VECTOR_FORM:
            return self._by_lane(operator, type, operands)
        return vector_operation(self.dialect, operator, type, operands)

    def define(
        self,
        name: str,
        type: str,
        parameters: Sequence[tuple[str, str]],
        operands: Operands,
        body: Callable[[], tuple[TargetStatement, ...]],
        comment: str | None = None,
    ) -> TargetExpression:
        """Call a helper, which is defined first if necessary; ``parameters`` are (type, name)."""
        if name not in self._functions:
            statements = body()
            self._functions[name] = HelperFunction(
                type=type,
                name=name,
                parameters=tuple(TypedName(type=t, name=n) for t, n in parameters),
                body=statements,
                comment=comment,
            )
        return call(name, *operands)

    # ----------------------------------------------------------------------------- scalars

    def _absolute(self, type: Type, operand: TargetExpression) -> TargetExpression:
        function = self.dialect.function(Op.ABSOLUTE, type)
        if type.is_float and function is not None:
            return call(function, operand)
        if type.kind is Kind.UINT:
            return operand
        return self.dialect.absolute(operand, type, self.define)

    def _extreme(self, operator: Op, type: Type, operands: Operands) -> TargetExpression:
        """``b < a ? b : a``, which is also the documented result for NaN and signed zeros."""
        name = self.dialect.storage_name(type)
        left, right = Name(name="a"), Name(name="b")
        test = binary("<" if operator is Op.MINIMUM else ">", right, left)
        choice = Ternary(condition=test, if_true=right, if_false=left)
        return self.define(
            f"{operator.name.lower()}_{name}",
            name,
            ((name, "a"), (name, "b")),
            operands,
            lambda: (Return(value=choice),),
        )

    def _floor(self, operator: Op, type: Type, operands: Operands) -> TargetExpression:
        """Division rounded towards minus infinity, as in Python; division by zero gives zero."""
        name = self.dialect.scalar_name(type)
        signed = type.kind is Kind.INT
        bodies = (floor_divide, modulo) if signed else (unsigned_divide, unsigned_modulo)
        body = bodies[0] if operator is Op.FLOOR_DIVIDE else bodies[1]
        return self.define(
            f"{operator.name.lower()}_{name}",
            name,
            ((name, "a"), (name, "b")),
            operands,
            lambda: body(name),
            "rounds towards minus infinity; by zero it gives zero",
        )

    def _shift(self, operator: Op, type: Type, operands: Operands) -> TargetExpression:
        """Shifts by the width or more leave only the sign; in C they are undefined."""
        name = self.dialect.scalar_name(type)
        return self.define(
            f"{operator.name.lower()}_{name}",
            name,
            ((name, "a"), (name, "b")),
            operands,
            lambda: shift(self.dialect, operator, type),
            "the amount has no sign",
        )

    # ----------------------------------------------------------------------------- vectors

    def _by_lane(self, operator: Op, type: Type, operands: Operands) -> TargetExpression:
        def each(*lanes: TargetExpression) -> TargetExpression:
            return self.operation(operator, type.scalar, lanes)

        result = result_type(operator, type)
        types = tuple(type for _ in operands)
        return self._each_lane(operator.name.lower(), result, types, operands, each)

    def _each_lane(
        self,
        verb: str,
        result: Type,
        types: Sequence[Type],
        operands: Operands,
        each: Callable[..., TargetExpression],
    ) -> TargetExpression:
        """A helper that computes every lane of its result from the same lanes of its operands."""
        names = "abc"[: len(types)]
        parameters = tuple(
            (self.dialect.storage_name(type), name) for type, name in zip(types, names, strict=True)
        )

        def at(pick: Callable[[TargetExpression, Type], TargetExpression]) -> TargetExpression:
            pairs = zip(names, types, strict=True)
            lanes = (
                Name(name=n) if type.lanes == 1 else pick(Name(name=n), type) for n, type in pairs
            )
            return each(*lanes)

        def body() -> tuple[TargetStatement, ...]:
            if not self.dialect.is_struct(result):
                values = (
                    at(lambda v, t, index=index: self.dialect.lane(v, index, t))  # type: ignore[misc]
                    for index in range(result.lanes)
                )
                return (
                    Return(
                        value=CastTo(type=self.dialect.storage_name(result), values=tuple(values))
                    ),
                )
            value = at(lambda vector, type: lane_at(vector, "i"))
            assign = Set(target=lane_at(Name(name="r"), "i"), value=value)
            return (
                Declare(type=self.dialect.storage_name(result), name="r"),
                _unrolled("i", result.lanes, (assign,)),
                Return(value=Name(name="r")),
            )

        return self.define(
            f"{verb}_{self.dialect.suffix_name(types[-1])}",
            self.dialect.storage_name(result),
            parameters,
            operands,
            body,
        )

    def choose(self, type: Type, condition: TargetExpression, sides: Operands) -> TargetExpression:
        """A select whose condition is a vector of bools."""
        bools = Type(Kind.BOOL, 8, type.lanes)

        def each(
            chosen: TargetExpression, if_true: TargetExpression, if_false: TargetExpression
        ) -> TargetExpression:
            return Ternary(condition=chosen, if_true=if_true, if_false=if_false)

        return self._each_lane("choose", type, (bools, type, type), (condition, *sides), each)

    def splat(self, type: Type, value: TargetExpression) -> TargetExpression:
        """A scalar in every lane."""
        if not self.dialect.is_struct(type):
            return CastTo(type=self.dialect.storage_name(type), values=(value,))
        verb = f"splat_x{type.lanes}"
        return self._each_lane(verb, type, (type.scalar,), (value,), lambda lane: lane)

    def lane_numbers(self, type: Type) -> TargetExpression:
        """The number of each lane."""
        numbers = tuple(literal(lane, type.scalar) for lane in range(type.lanes))
        if not self.dialect.is_struct(type):
            return CastTo(type=self.dialect.storage_name(type), values=numbers)
        number_of_lane = CastTo(type=self.dialect.scalar_name(type), values=(Name(name="i"),))
        target = lane_at(Name(name="r"), "i")
        body = (
            Declare(type=self.dialect.storage_name(type), name="r"),
            _unrolled("i", type.lanes, (Set(target=target, value=number_of_lane),)),
            Return(value=Name(name="r")),
        )
        name = f"lane_numbers_{self.dialect.storage_name(type)}"
        return self.define(name, self.dialect.storage_name(type), (), (), lambda: body)

    def inserted(self, type: Type, operands: Operands) -> TargetExpression:
        """A vector with a value in one lane: (vector, lane, value)."""
        name, at, value = self.dialect.storage_name(type), Name(name="at"), Name(name="x")

        def assign(number_of_lane: TargetExpression, target: TargetExpression) -> Set:
            chosen = binary("==", at, number_of_lane)
            return Set(
                target=target, value=Ternary(condition=chosen, if_true=value, if_false=target)
            )

        def body() -> tuple[TargetStatement, ...]:
            vector, result = Name(name="v"), Return(value=Name(name="v"))
            if self.dialect.is_struct(type):
                each = assign(Name(name="i"), lane_at(vector, "i"))
                return (_unrolled("i", type.lanes, (each,)), result)
            lanes = (
                assign(number(i), self.dialect.lane(vector, i, type)) for i in range(type.lanes)
            )
            return (*lanes, result)

        parameters = ((name, "v"), ("int", "at"), (self.dialect.scalar_name(type), "x"))
        return self.define(
            f"insert_{self.dialect.suffix_name(type)}", name, parameters, operands, body
        )

    def converted(self, value: TargetExpression, source: Type, target: Type) -> TargetExpression:
        """``value`` in another type: floats become integers by truncation and saturation."""
        if source == target:
            return value
        if target.lanes == 1:
            return self._converted_scalar(value, source, target)
        saturates = source.is_float and target.is_integer
        # not ``convert_uint4_sat``: Intel's emulator converts a negative float to 2147483648
        if not self.dialect.is_struct(target) and not target.is_bool and not saturates:
            return call(f"convert_{self.dialect.storage_name(target)}", value)
        return self._each_lane(
            f"convert_to_{self.dialect.suffix_name(target)}_from",
            target,
            (source,),
            (value,),
            lambda lane: self._converted_scalar(lane, source.scalar, target.scalar),
        )

    def _converted_scalar(
        self, value: TargetExpression, source: Type, target: Type
    ) -> TargetExpression:
        if source == target:
            return value
        if target.is_bool:
            return binary("!=", value, number(0))
        if not (source.is_float and target.is_integer):
            return CastTo(type=self.dialect.scalar_name(target), values=(value,))
        return self.dialect.saturated(value, source, target, self.define)

    # ---------------------------------------------------------------------------- reduction

    def reduce(self, operator: Op, type: Type, value: TargetExpression) -> TargetExpression:
        """The lanes combined as the balanced tree that ``core.expr.ReduceLanes`` defines."""
        verb = "sum" if operator is Op.ADD else f"{operator.name.lower()}_lanes"
        name = self.dialect.storage_name(type)
        body = self._struct_tree if self.dialect.is_struct(type) else self._vector_tree
        return self.define(
            f"{verb}_{self.dialect.suffix_name(type)}",
            self.dialect.value_name(type.scalar),
            ((name, "v"),),
            (value,),
            lambda: body(operator, type),
            "neighbors first: the order of additions is part of the result"
            if type.is_float
            else None,
        )

    def dot(self, type: Type, left: TargetExpression, right: TargetExpression) -> TargetExpression:
        """The sum of the products of lanes."""
        name = self.dialect.storage_name(type)
        products = self.operation(Op.MULTIPLY, type, (Name(name="a"), Name(name="b")))
        total = self.reduce(Op.ADD, type, products)
        return self.define(
            f"dot_{name}",
            self.dialect.value_name(type.scalar),
            ((name, "a"), (name, "b")),
            (left, right),
            lambda: (Return(value=total),),
        )

    def _vector_tree(self, operator: Op, type: Type) -> tuple[TargetStatement, ...]:
        statements: list[TargetStatement] = []
        value, lanes = "v", type.lanes
        while lanes > 2:
            lanes //= 2
            half = type.with_lanes(lanes)
            sides = tuple(FieldOf(base=Name(name=value), field=part) for part in ("even", "odd"))
            value = f"v{lanes}"
            statements.append(
                Declare(
                    type=self.dialect.storage_name(half),
                    name=value,
                    initial=self.operation(operator, half, sides),
                )
            )
        last = tuple(FieldOf(base=Name(name=value), field=part) for part in ("s0", "s1"))
        return (*statements, Return(value=self.operation(operator, type.scalar, last)))

    def _struct_tree(self, operator: Op, type: Type) -> tuple[TargetStatement, ...]:
        """In place: level ``l`` adds lane ``i + (1 << l)`` to lane ``i``, a multiple of ``2 << l``.

        A lane without a partner waits for the next level.  All trip counts are constant, so that
        the compiler can unroll everything.
        """
        level, lane_number = Name(name="level"), Name(name="i")
        partner = binary("+", lane_number, binary("<<", number(1), level))
        below = binary("-", binary("<<", number(2), level), number(1))
        first = binary("&", lane_number, below)
        target = lane_at(Name(name="v"), "i")
        partner_lane = Subscript(base=FieldOf(base=Name(name="v"), field="s"), indices=(partner,))
        combined = Set(
            target=target, value=self.operation(operator, type.scalar, (target, partner_lane))
        )
        exists = binary("<", partner, number(type.lanes))
        pair = If(condition=binary("&&", binary("==", first, number(0)), exists), then=(combined,))
        levels = (type.lanes - 1).bit_length()
        lanes = _unrolled("i", type.lanes, (pair,))
        return (
            _unrolled("level", levels, (lanes,)),
            Return(value=self.dialect.lane(Name(name="v"), 0, type)),
        )


def _unrolled(name: str, extent: int, body: tuple[TargetStatement, ...]) -> For:
    return For(name=name, start=number(0), stop=number(extent), body=body, unroll=True)


# Operators of C itself: one expression, on scalars and on built-in vectors; and the bodies
# of the helper functions for integer division and shifts.

_INFIX = {
    Op.ADD: "+",
    Op.SUBTRACT: "-",
    Op.MULTIPLY: "*",
    Op.DIVIDE: "/",
    Op.EQUAL: "==",
    Op.NOT_EQUAL: "!=",
    Op.LESS: "<",
    Op.LESS_EQUAL: "<=",
    Op.GREATER: ">",
    Op.GREATER_EQUAL: ">=",
}
_LOGIC = {Op.AND: "&&", Op.OR: "||", Op.XOR: "!="}
_BITWISE = {Op.AND: "&", Op.OR: "|", Op.XOR: "^"}
_COMPARISONS = {Op.EQUAL, Op.NOT_EQUAL, Op.LESS, Op.LESS_EQUAL, Op.GREATER, Op.GREATER_EQUAL}
NO_VECTOR_FORM = {
    Op.FLOOR_DIVIDE,
    Op.MODULO,
    Op.SHIFT_LEFT,
    Op.SHIFT_RIGHT,
} | _COMPARISONS
"""Operators that built-in vectors do not have, or not with the results of t2s."""
Operands = Sequence[TargetExpression]


def scalar_operation(
    dialect: Dialect, operator: Op, type: Type, operands: Operands
) -> TargetExpression:
    """Operators on scalars that C has, except for its division, which rounds towards zero."""
    first, last = operands[0], operands[-1]
    match operator:
        case Op.AND | Op.OR | Op.XOR:
            return binary((_LOGIC if type.is_bool else _BITWISE)[operator], first, last)
        case Op.NOT if type.is_bool:
            return Unary(operator="!", operand=first)
        case Op.NOT:
            return _narrowed(dialect, Unary(operator="~", operand=first), type)
        case Op.NEGATE:
            return _narrowed(dialect, Unary(operator="-", operand=first), type)
        case Op.FUSED_MULTIPLY_ADD if type.is_integer:
            return _narrowed(dialect, binary("+", binary("*", first, operands[1]), last), type)
    function = dialect.function(operator, type)
    if function is not None:
        return call(function, *operands)
    result = binary(_INFIX[operator], first, last)
    return result if operator in _COMPARISONS else _narrowed(dialect, result, type)


def vector_operation(
    dialect: Dialect, operator: Op, type: Type, operands: Operands
) -> TargetExpression:
    """Operators on built-in vectors, as in OpenCL."""
    first, last = operands[0], operands[-1]
    match operator:
        case Op.AND | Op.OR | Op.XOR:
            return binary(_BITWISE[operator], first, last)
        case Op.NOT if type.is_bool:
            return binary("^", first, CastTo(type=dialect.storage_name(type), values=(number(1),)))
        case Op.NOT:
            return Unary(operator="~", operand=first)
        case Op.NEGATE:
            return Unary(operator="-", operand=first)
        case Op.FUSED_MULTIPLY_ADD if type.is_integer:
            return _narrowed(dialect, binary("+", binary("*", first, operands[1]), last), type)
    function = dialect.function(operator, type)
    if function is not None:
        return call(function, *operands)
    return binary(_INFIX[operator], first, last)


def _narrowed(dialect: Dialect, value: TargetExpression, type: Type) -> TargetExpression:
    """Wrap around to the type in t2s; C computes small integers as ``int``."""
    if type.lanes == 1 and type.is_integer and type.bits < 32:
        return CastTo(type=dialect.scalar_name(type), values=(value,))
    return value


def _a_and_b() -> tuple[Name, Name]:
    return Name(name="a"), Name(name="b")


def _is(value: TargetExpression, constant: int) -> TargetExpression:
    return binary("==", value, number(constant))


def _signs_differ(left: TargetExpression, right: TargetExpression) -> TargetExpression:
    return binary("!=", binary("<", left, number(0)), binary("<", right, number(0)))


def floor_divide(type: str) -> tuple[TargetStatement, ...]:
    """``a / b`` rounded towards minus infinity; ``INT_MIN / -1`` wraps around."""
    a, b = _a_and_b()
    quotient = Name(name="quotient")
    inexact = binary("!=", binary("%", a, b), number(0))
    return (
        If(condition=_is(b, 0), then=(Return(value=number(0)),)),
        If(condition=_is(b, -1), then=(Return(value=Unary(operator="-", operand=a)),)),
        Declare(type=type, name="quotient", initial=binary("/", a, b)),
        Return(
            value=Ternary(
                condition=binary("&&", inexact, _signs_differ(a, b)),
                if_true=binary("-", quotient, number(1)),
                if_false=quotient,
            )
        ),
    )


def modulo(type: str) -> tuple[TargetStatement, ...]:
    """The remainder of ``floor_divide``, with the sign of ``b``."""
    a, b = _a_and_b()
    rest = Name(name="rest")
    return (
        If(condition=binary("||", _is(b, 0), _is(b, -1)), then=(Return(value=number(0)),)),
        Declare(type=type, name="rest", initial=binary("%", a, b)),
        Return(
            value=Ternary(
                condition=binary("&&", binary("!=", rest, number(0)), _signs_differ(rest, b)),
                if_true=binary("+", rest, b),
                if_false=rest,
            )
        ),
    )


def unsigned_divide(type: str) -> tuple[TargetStatement, ...]:
    """``a / b`` of unsigned integers."""
    a, b = _a_and_b()
    safe = Ternary(condition=_is(b, 0), if_true=number(0), if_false=binary("/", a, b))
    return (Return(value=safe),)


def unsigned_modulo(type: str) -> tuple[TargetStatement, ...]:
    """``a % b`` of unsigned integers."""
    a, b = _a_and_b()
    safe = Ternary(condition=_is(b, 0), if_true=number(0), if_false=binary("%", a, b))
    return (Return(value=safe),)


def shift(dialect: Dialect, operator: Op, type: Type) -> tuple[TargetStatement, ...]:
    """``a`` shifted by ``b`` (as unsigned); shifts by the width or more leave only the sign."""
    a, b = _a_and_b()
    name, unsigned = dialect.scalar_name(type), dialect.scalar_name(Type(Kind.UINT, type.bits))
    amount = Name(name="amount")
    within = binary("<", amount, number(type.bits))
    left = operator is Op.SHIFT_LEFT
    whole = CastTo(type=unsigned, values=(a,)) if left else a
    moved = CastTo(type=name, values=(binary("<<" if left else ">>", whole, amount),))
    nothing: TargetExpression = number(0)
    if not left and type.kind is Kind.INT:
        negative = binary("<", a, number(0))
        nothing = Ternary(condition=negative, if_true=number(-1), if_false=number(0))
    return (
        Declare(type=unsigned, name="amount", initial=CastTo(type=unsigned, values=(b,))),
        Return(value=Ternary(condition=within, if_true=moved, if_false=nothing)),
    )
