"""The user's expressions: operator overloading, typing and the free symbols of an expression.

An ``Expression`` wraps a typed ``core.expr`` tree together with the user's line and the symbols
(variables, inputs, parameters, Funcs) that occur in it.  Mixed types are unified by the rules of
``core.types.unify``; what does not unify is refused with both types named.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn, Union

import numpy as np

from t2s.core.checks import whole
from t2s.core.errors import UserError
from t2s.core.expr import Const, Expr, Read, apply
from t2s.core.isl import without_bits
from t2s.core.location import SourceLocation, user_location
from t2s.core.names import is_name
from t2s.core.ops import OPERATORS, Op, Operands, accepts
from t2s.core.printer import show
from t2s.core.types import BOOL, WEAK_FLOAT, WEAK_INT, Type, unify
from t2s.func.conversion import as_index, convert, type_of_dtype
from t2s.func.unknown_names import refuse_numpy

Number = Union[int, float, bool, "Expression"]


class Receiver:
    """What an expression can be sent into with ``>>``; everything else is shifted by."""

    __slots__ = ()


LARGEST_EXPONENT = 8


class Symbol:
    """Something with a name that expressions refer to: a variable, an input, a Func."""

    kind = "symbol"

    def __init__(self, name: str) -> None:
        self.location = user_location()
        if not isinstance(name, str) or not is_name(name):
            raise UserError(
                f"a {self.kind} needs a name that is a Python identifier",
                location=self.location,
                expected="a name such as i or A_loader",
                given=repr(name),
            )
        self.name = name

    def __repr__(self) -> str:
        return f"{self.kind} {self.name}"

    def __iter__(self) -> NoReturn:
        """Without this Python would ask for element 0, 1, 2 and so on without end."""
        raise UserError(
            f"{self.kind} {self.name} is not a sequence of values that Python could go through",
            location=user_location(),
            expected=f"its elements inside of definitions, as {self.name}[i]",
            given=f"a loop over {self.name}, or a function such as list, sum or sorted",
            hint="sum up over an RDom; t2s.interpret and t2s.simulate give arrays",
        )


Symbols = Mapping[str, Symbol]


def merge_symbols(location: SourceLocation, *parts: Symbols) -> dict[str, Symbol]:
    """The union of symbols; two different symbols of one name are an error."""
    merged: dict[str, Symbol] = {}
    for part in parts:
        for name, symbol in part.items():
            other = merged.setdefault(name, symbol)
            if other is not symbol:
                raise UserError(
                    f"two different objects of one program are named {name}",
                    location=location,
                    notes=(
                        (other.location, f"{other.kind} {name} was made here"),
                        (symbol.location, f"{symbol.kind} {name} was made here"),
                    ),
                    hint="give one of them another name",
                )
    return merged


class Expression:
    """A value of the temporal language.  Build it with operators and the functions below."""

    __hash__ = object.__hash__

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Numbers of numpy on the left of an operator; functions of numpy are refused."""
        if method == "__call__" and not options and len(inputs) == 2:
            if ufunc is np.power:
                return self.__rpow__(inputs[0])
            if ufunc.__name__ in _OPERATORS:
                return combine(_OPERATORS[ufunc.__name__], *inputs)
            if ufunc.__name__ in _REFLECTED:  # numpy has made an array of the number
                number: Any = np.asarray(inputs[0])[()]
                return combine(_REFLECTED[ufunc.__name__], self, number)
        refuse_numpy(ufunc.__name__, inputs)

    def __init__(self, node: Expr, symbols: Symbols, location: SourceLocation) -> None:
        self.node = node
        self.symbols = symbols
        self.location = location

    @property
    def type(self) -> Type:
        """The element type of the value."""
        return self.node.type

    def __repr__(self) -> str:
        return show(self.node)

    def __bool__(self) -> NoReturn:
        raise UserError(
            f"the truth value of {show(self.node)} is not known while the program is written",
            location=user_location(),
            hint="use t2s.select(condition, a, b), and & | ~ instead of and, or, not",
        )

    def __iter__(self) -> NoReturn:
        raise UserError(f"{show(self.node)} is one value, not a sequence", location=user_location())

    def __add__(self, other: Number) -> Expression:
        return combine(Op.ADD, self, other)

    def __radd__(self, other: Number) -> Expression:
        return combine(Op.ADD, other, self)

    def __sub__(self, other: Number) -> Expression:
        return combine(Op.SUBTRACT, self, other)

    def __rsub__(self, other: Number) -> Expression:
        return combine(Op.SUBTRACT, other, self)

    def __mul__(self, other: Number) -> Expression:
        return combine(Op.MULTIPLY, self, other)

    def __rmul__(self, other: Number) -> Expression:
        return combine(Op.MULTIPLY, other, self)

    def __truediv__(self, other: Number) -> Expression:
        return combine(Op.DIVIDE, self, other)

    def __rtruediv__(self, other: Number) -> Expression:
        return combine(Op.DIVIDE, other, self)

    def __floordiv__(self, other: Number) -> Expression:
        return combine(Op.FLOOR_DIVIDE, self, other)

    def __rfloordiv__(self, other: Number) -> Expression:
        return combine(Op.FLOOR_DIVIDE, other, self)

    def __mod__(self, other: Number) -> Expression:
        return combine(Op.MODULO, self, other)

    def __rmod__(self, other: Number) -> Expression:
        return combine(Op.MODULO, other, self)

    def __neg__(self) -> Expression:
        return combine(Op.NEGATE, self)

    def __abs__(self) -> Expression:
        return combine(Op.ABSOLUTE, self)

    def __and__(self, other: Number) -> Expression:
        return combine(Op.AND, self, other)

    def __rand__(self, other: Number) -> Expression:
        return combine(Op.AND, other, self)

    def __or__(self, other: Number) -> Expression:
        return combine(Op.OR, self, other)

    def __ror__(self, other: Number) -> Expression:
        return combine(Op.OR, other, self)

    def __xor__(self, other: Number) -> Expression:
        return combine(Op.XOR, self, other)

    def __rxor__(self, other: Number) -> Expression:
        return combine(Op.XOR, other, self)

    def __lshift__(self, other: Number) -> Expression:
        return combine(Op.SHIFT_LEFT, self, other)

    def __rlshift__(self, other: Number) -> Expression:
        return combine(Op.SHIFT_LEFT, other, self)

    def __rshift__(self, other: Number) -> Expression:
        if isinstance(other, Receiver):  # a chain begins here
            return NotImplemented
        return combine(Op.SHIFT_RIGHT, self, other)

    def __rrshift__(self, other: Number) -> Expression:
        return combine(Op.SHIFT_RIGHT, other, self)

    def __pow__(self, exponent: int) -> Expression:
        return power(self, exponent)

    def __rpow__(self, base: object) -> NoReturn:
        raise UserError(
            f"the exponent {show(self.node)} is not a constant",
            location=user_location(),
            expected=f"a whole number from 0 to {LARGEST_EXPONENT}",
            given=f"{base!r} ** {show(self.node)}",
            hint="powers of two are t2s.cast(t2s.Int(32), 1) << n; of floats, exp(n * log(x))",
        )

    def __invert__(self) -> Expression:
        return combine(Op.NOT, self)

    def __eq__(self, other: Any) -> Expression:  # type: ignore[override]
        return combine(Op.EQUAL, self, other)

    def __ne__(self, other: Any) -> Expression:  # type: ignore[override]
        return combine(Op.NOT_EQUAL, self, other)

    def __lt__(self, other: Number) -> Expression:
        return combine(Op.LESS, self, other)

    def __le__(self, other: Number) -> Expression:
        return combine(Op.LESS_EQUAL, self, other)

    def __gt__(self, other: Number) -> Expression:
        return combine(Op.GREATER, self, other)

    def __ge__(self, other: Number) -> Expression:
        return combine(Op.GREATER_EQUAL, self, other)


_OPERATORS = {
    "add": Op.ADD,
    "subtract": Op.SUBTRACT,
    "multiply": Op.MULTIPLY,
    "divide": Op.DIVIDE,
    "floor_divide": Op.FLOOR_DIVIDE,
    "remainder": Op.MODULO,
    "bitwise_and": Op.AND,
    "bitwise_or": Op.OR,
    "bitwise_xor": Op.XOR,
    "left_shift": Op.SHIFT_LEFT,
    "right_shift": Op.SHIFT_RIGHT,
}
"""Operators of Python by the names that numpy calls them, for a number of numpy on the left."""

_REFLECTED = {
    "equal": Op.EQUAL,
    "not_equal": Op.NOT_EQUAL,
    "less": Op.GREATER,
    "less_equal": Op.GREATER_EQUAL,
    "greater": Op.LESS,
    "greater_equal": Op.LESS_EQUAL,
}
"""Comparisons with a number of numpy on the left, as Python would ask the right side."""


def as_expression(value: object) -> Expression:
    """An ``Expression`` for a Python or numpy number; expressions pass through."""
    if isinstance(value, Expression):
        return value
    location = user_location()
    match value:
        case bool() | np.bool_():
            node = Const(value=bool(value), type=BOOL)
        case int():
            node = Const(value=value, type=WEAK_INT)
        case float() if not isinstance(value, np.floating):
            node = Const(value=value, type=WEAK_FLOAT)
        case np.integer() | np.floating():
            node = Const(value=value.item(), type=type_of_dtype(value.dtype))
        case _ if (number := whole(value)) is not None:
            node = Const(value=number, type=WEAK_INT)
        case _:
            raise UserError(
                "this cannot be used in a t2s expression",
                location=location,
                expected="a number, a Var, an RDom or an element such as A[i, k]",
                given=f"{value!r}, which is of type {value.__class__.__name__}",
                hint="index inputs and Funcs with [...] to get their elements",
            )
    return Expression(node, {}, location)


def common_type(location: SourceLocation, what: str, operands: tuple[Expression, ...]) -> Type:
    """The one type that all operands unify to, or an error that names them."""
    result = operands[0].type
    for operand in operands[1:]:
        unified = unify(result, operand.type)
        if unified is None:
            texts = " and ".join(f"{operand!r} is {operand.type}" for operand in operands)
            raise UserError(
                f"{what} has operands of types that do not mix",
                location=location,
                expected="operands of one type",
                given=texts,
                hint="convert one of them: t2s.cast(t2s.Float(32), x)",
            )
        result = unified
    return result


def _how_to_apply(operator: Op, type: Type) -> str:
    if operator is Op.DIVIDE and type.is_integer:
        return "use // for integers, or t2s.cast(t2s.Float(32), x) first"
    if operator is Op.FLOOR_DIVIDE and type.is_float:
        return "use / for floats, or t2s.cast(t2s.Int(32), x) first"
    match OPERATORS[operator].operands:
        case Operands.FLOAT:
            return "convert with t2s.cast(t2s.Float(32), x)"
        case Operands.LOGIC:
            return "compare first, as in (x > 0) & (y > 0)"
        case _:
            return "convert with t2s.cast(t2s.Int(32), x)"


def combine(operator: Op, *values: Number) -> Expression:
    """Apply an operator to values of the language, unifying their types."""
    location = user_location()
    operands = tuple(as_expression(value) for value in values)
    what = f"the operator {operator.value}"
    type = common_type(location, what, operands)
    if not accepts(operator, type):
        raise UserError(
            f"{what} is not defined on {type}",
            location=location,
            expected=OPERATORS[operator].operands.value,
            given=", ".join(f"{operand!r} ({operand.type})" for operand in operands),
            hint=_how_to_apply(operator, type),
        )
    nodes = tuple(convert(operand.node, type, location) for operand in operands)
    symbols = merge_symbols(location, *(operand.symbols for operand in operands))
    return Expression(apply(operator, *nodes), symbols, location)


def power(base: Expression, exponent: object) -> Expression:
    """``base ** exponent`` as products: by squaring, from the exponent's highest bit down."""
    count = whole(exponent)
    if count is None or not 0 <= count <= LARGEST_EXPONENT:
        raise UserError(
            f"the exponent of {base!r} is not a small whole number",
            location=user_location(),
            expected=f"a whole number from 0 to {LARGEST_EXPONENT}",
            given=repr(exponent),
            hint="roots are t2s.sqrt(x); other powers of floats are t2s.exp(y * t2s.log(x))",
        )
    square = combine(Op.MULTIPLY, base, base)  # refuses what has no products
    if count == 0:
        one = 1.0 if base.type.is_float else 1
        return Expression(Const(value=one, type=base.type), {}, square.location)
    result = base
    for bit in f"{count:b}"[1:]:
        result = combine(Op.MULTIPLY, result, result)
        if bit == "1":
            result = combine(Op.MULTIPLY, result, base)
    return result


def index_expressions(
    what: str, indices: object, location: SourceLocation, rank: int | None
) -> tuple[Expression, ...]:
    """The subscripts of ``x[...]`` as integer expressions, checked against the rank."""
    parts = indices if isinstance(indices, tuple) else (indices,)
    expressions = tuple(as_expression(part) for part in parts)
    if rank is not None and len(expressions) != rank:
        raise UserError(
            f"{what} has {rank} dimension{'s' if rank != 1 else ''}",
            location=location,
            expected=f"{rank} subscript{'s' if rank != 1 else ''}",
            given=f"{len(expressions)}: [{', '.join(map(repr, expressions))}]",
        )
    for expression in expressions:
        if not expression.type.is_integer:
            raise UserError(
                f"a subscript of {what} is not an integer",
                location=location,
                expected="an integer expression",
                given=f"{expression!r} of type {expression.type}",
                hint="convert with t2s.cast(t2s.Int(32), x)",
            )
    return tuple(
        Expression(without_bits(as_index(e.node, location)), e.symbols, location)
        for e in expressions
    )


def element(
    source: Symbol, type: Type, indices: tuple[Expression, ...], location: SourceLocation
) -> Expression:
    """The expression ``source[indices]``."""
    node = Read(
        source=source.name,
        indices=tuple(index.node for index in indices),
        type=type,
        location=location,
    )
    symbols = merge_symbols(location, {source.name: source}, *(index.symbols for index in indices))
    return Expression(node, symbols, location)
