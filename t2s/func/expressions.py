"""The user's expressions: operators, types and conversions, free symbols, and unknown names.

An ``Expression`` wraps a typed ``core.expr`` tree together with the user's line and the symbols
(variables, inputs, parameters, Funcs) that occur in it.  Mixed types are unified by the rules of
``core.types.unify``; what does not unify is refused with both types named.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NoReturn, Union

import numpy as np

from t2s.core.errors import UserError
from t2s.core.expr import Apply, Cast, Const, Expr, Index, Parameter, Read, Select, apply
from t2s.core.isl import without_bits
from t2s.core.location import SourceLocation, user_location
from t2s.core.names import did_you_mean, is_name
from t2s.core.ops import OPERATORS, Op, Operands, accepts
from t2s.core.printer import show
from t2s.core.types import BOOL, INT32, WEAK_FLOAT, WEAK_INT, Kind, Type, unify, value_range
from t2s.core.validate import as_int
from t2s.core.walk import Term, children, rewrite, walk

Number = Union[int, float, bool, "Expression"]


class Receiver:
    """The right side of ``expression >> receiver``; any other right side is a shift amount."""

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
        """Refuse iteration: Python would call ``__getitem__`` with 0, 1, 2, ... forever."""
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
"""Python's operators by numpy's names, for a numpy number on the left."""

_REFLECTED = {
    "equal": Op.EQUAL,
    "not_equal": Op.NOT_EQUAL,
    "less": Op.GREATER,
    "less_equal": Op.GREATER_EQUAL,
    "greater": Op.LESS,
    "greater_equal": Op.LESS_EQUAL,
}
"""Mirrored comparisons, for a numpy number on the left."""


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
        case _ if (number := as_int(value)) is not None:
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
    """``base ** exponent`` as products: repeated squaring, from the exponent's highest bit."""
    count = as_int(exponent)
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


# Types of expressions: literals adopt the type of the other operand; subscripts are int32.


def type_of_dtype(dtype: np.dtype[Any]) -> Type:
    """The t2s type of a numpy dtype."""
    kinds = {"b": Kind.BOOL, "i": Kind.INT, "u": Kind.UINT, "f": Kind.FLOAT}
    return Type(kinds[dtype.kind], dtype.itemsize * 8)


def retype(node: Expr, target: Type) -> Expr:
    """Give a weakly typed tree the type ``target``."""

    def rule(term: Term) -> Term | None:
        if isinstance(term, Expr) and term.type.weak:
            if isinstance(term, Const) and target.is_float:
                return Const(value=float(term.value), type=target)
            return replace(term, type=target)
        return None

    return rewrite(node, rule)


def convert(node: Expr, target: Type, location: SourceLocation) -> Expr:
    """``node`` as a value of ``target``: literals adopt the type, other values are cast."""
    if node.type == target:
        return node
    if node.type.weak:
        _check_literals(node, target, location)
        return retype(node, target)
    return Cast(value=node, type=target)


def _check_literals(node: Expr, target: Type, location: SourceLocation) -> None:
    for literal in walk(node):
        if not isinstance(literal, Const) or not literal.type.weak:
            continue
        if target.is_integer and not float(literal.value).is_integer():
            raise UserError(
                f"the number {literal.value} does not fit {target}",
                location=location,
                expected="an integer, or values of a type with fractions",
                given=str(literal.value),
                hint="declare the type, as in Func(name, t2s.Float(32)), or round the number",
            )
        low, high = value_range(target)
        wider = "Float" if target.is_float else "Int"
        if math.isfinite(literal.value) and not low <= literal.value <= high:
            raise UserError(
                f"the number {literal.value} does not fit into {target}",
                location=location,
                expected=f"{low} to {high}",
                given=str(literal.value),
                hint=f"a wider type may hold it: t2s.cast(t2s.{wider}(32), x)",
            )


def as_index(node: Expr, location: SourceLocation) -> Expr:
    """An integer expression in int32, the type of loop indices, even if it contains numpy integers.

    ``i + np.int64(1)`` is int64 in numpy, and the same number as ``i + 1``.
    """
    leaves = [term for term in walk(node) if not children(term)]
    if all(_is_index(leaf) for leaf in leaves):
        node = rewrite(node, _narrower)
    return convert(node, INT32, location)


def _is_index(leaf: Term) -> bool:
    if isinstance(leaf, Const):
        return leaf.type.is_bool or (leaf.type.is_integer and -(2**31) <= leaf.value < 2**31)
    return isinstance(leaf, Index | Parameter) and leaf.type == INT32


def _narrower(node: Term) -> Term | None:
    match node:
        case Const(value=value, type=type) if type.is_integer and not type.weak:
            return Const(value=value, type=INT32)
        case Cast(value=value, type=type) if type.is_integer and value.type == INT32:
            return value
        case Apply(operator=operator, operands=operands, type=type) if type != INT32 and all(
            operand.type == INT32 for operand in operands
        ):
            return apply(operator, *operands)
        case Select(if_true=left, if_false=right) if left.type == right.type == INT32:
            return replace(node, type=INT32)
    return None


# Names that users try on Funcs and expressions, and their equivalents here.
#
# Most users come from Halide or numpy, which name directives and functions differently.

_OWN_PLACE = (
    "a Func with an update has a loop nest of its own; isolate_producer(G, P) gives another one a "
    "place, and stream(G) connects two by a channel instead of memory"
)
_ON_CHIP = "P.buffer(Q, x) keeps what Q sends in one iteration of x on the chip"
_SPACE = "unroll(x) makes a PE of each iteration; split(x, x, xx, n) first for n of them"
HALIDE: Mapping[str, str] = {
    "vectorize": "split(x, x, xx, n) and then vload(A, B), if the operands are vectors along xx, "
    "and vstore(C), if the results are",
    "parallel": _SPACE,
    "gpu": _SPACE,
    "gpu_tile": "tile(x, y, xx, yy, w, h) and then unroll(xx, yy)",
    "gpu_blocks": _SPACE,
    "gpu_threads": _SPACE,
    "gpu_lanes": _SPACE,
    "compute_root": _OWN_PLACE,
    "compute_at": _OWN_PLACE,
    "compute_with": "stream(G) runs a Func at the pace of what it reads",
    "compute_inline": "a Func without updates is computed inside of the Funcs that read it",
    "store_root": _ON_CHIP,
    "store_at": _ON_CHIP,
    "store_in": _ON_CHIP,
    "hoist_storage": _ON_CHIP,
    "prefetch": "isolate_producer(A, P) loads A ahead of its use, and P.depth(n) says how far",
    "rfactor": "split(k, k, kk, n).unroll(kk) sums up in n PEs, and vload in lanes; reassociate() "
    "allows it for floats",
    "atomic": "reassociate() allows another order of a sum of floats",
    "async_": "isolate_producer(A, P) makes P a kernel that runs at the same time",
    "serial": "loops run in time unless they are unrolled",
    "in_": "isolate_producer(A, P)",
    "clone_in": "isolate_producer(A, P)",
    "estimate": "bound(x, minimum, extent)",
    "set_estimate": "bound(x, minimum, extent)",
    "set_estimates": "bound(x, minimum, extent)",
    "bound_extent": "bound(x, 0, extent)",
    "align_bounds": "split pads a loop whose extent the factor does not divide",
    "realize": "t2s.simulate(F, inputs), or t2s.interpret(F, inputs) to compute with numpy",
    "print_real_time": "t2s.simulate(F, inputs).report(path)",
    "trace_stores": "t2s.simulate(F, inputs).report(path) shows single firings",
    "trace_loads": "t2s.simulate(F, inputs).report(path) shows single firings",
    "compile_to_lowered_stmt": "print(t2s.lower(F))",
    "compile_jit": "t2s.simulate(F, inputs)",
    "space_time_map": "space_time_transform(...)",
}
"""Halide's directives and their equivalents here."""


class UnknownAttributeError(UserError, AttributeError):
    """A name that an object of the language does not have."""


def unknown_directive(name: str, attribute: str, known: list[str]) -> UnknownAttributeError:
    """The error for a method that a Func does not have."""
    equivalent = HALIDE.get(attribute)
    if equivalent is not None:
        return UnknownAttributeError(
            f"Func {name} has no directive {attribute}, which is one of Halide",
            location=user_location(),
            hint=f"here: {equivalent}",
        )
    return UnknownAttributeError(
        f"Func {name} has no attribute {attribute}",
        location=user_location(),
        hint=did_you_mean(attribute, known),
    )


NUMPY: Mapping[str, str] = {
    "exp": "exp",
    "log": "log",
    "sqrt": "sqrt",
    "tanh": "tanh",
    "floor": "floor",
    "ceil": "ceil",
    "absolute": "abs",
    "fabs": "abs",
    "maximum": "max",
    "fmax": "max",
    "minimum": "min",
    "fmin": "min",
    "square": "x * x",
    "reciprocal": "1.0 / x",
    "sign": "select(x > 0, 1, select(x < 0, -1, 0))",
    "where": "select",
}
"""Functions of numpy and their equivalents in definitions."""


def refuse_numpy(name: str, inputs: tuple[Any, ...]) -> NoReturn:
    """Raise ``UserError`` for a function of numpy that is called with an expression."""
    shown = ", ".join(map(repr, inputs))
    equivalent = NUMPY.get(name)
    call = (
        equivalent
        if equivalent is None or not equivalent.isidentifier()
        else f"t2s.{equivalent}({shown})"
    )
    raise UserError(
        f"np.{name} computes on arrays, not on expressions",
        location=user_location(),
        expected=call or "operators, and functions of t2s such as t2s.exp, t2s.max and t2s.select",
        given=f"np.{name}({shown})",
        hint=None if call is None else f"write {call}",
    )
