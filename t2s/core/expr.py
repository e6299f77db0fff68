"""Scalar and vector expressions, shared by the temporal program and by the bodies of PEs.

Expressions are frozen and compare by structure.  They carry their types; source locations are in
the definitions and statements that hold them, and in ``Read``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from math import copysign, prod
from typing import cast

import numpy as np

from t2s.core.location import SourceLocation
from t2s.core.ops import OPERATORS, Array, Op, apply_operator, cast_value, result_type
from t2s.core.types import BOOL, INT32, Type
from t2s.core.walk import Term, distinct, rewrite, walk


@dataclass(frozen=True, slots=True, kw_only=True)
class Expr(Term):
    """Base of all expressions; ``type`` is the type of the value, lanes included.

    Arithmetic, comparisons by size, and ``&``, ``|``, ``~`` write expressions: ``a + 1`` is
    ``apply(Op.ADD, a, const(1, a.type))``.  A number on one side becomes a constant of the type of
    the other side; ``TypeError`` where that type does not have it.  ``==`` compares structure as
    for every term: an expression that compares values is written ``equals(a, b)``.
    """

    type: Type

    def __add__(self, other: Number) -> Apply:
        return _applied(Op.ADD, self, other)

    def __radd__(self, other: Number) -> Apply:
        return _applied(Op.ADD, other, self)

    def __sub__(self, other: Number) -> Apply:
        return _applied(Op.SUBTRACT, self, other)

    def __rsub__(self, other: Number) -> Apply:
        return _applied(Op.SUBTRACT, other, self)

    def __mul__(self, other: Number) -> Apply:
        return _applied(Op.MULTIPLY, self, other)

    def __rmul__(self, other: Number) -> Apply:
        return _applied(Op.MULTIPLY, other, self)

    def __floordiv__(self, other: Number) -> Apply:
        return _applied(Op.FLOOR_DIVIDE, self, other)

    def __mod__(self, other: Number) -> Apply:
        return _applied(Op.MODULO, self, other)

    def __lshift__(self, other: Number) -> Apply:
        return _applied(Op.SHIFT_LEFT, self, other)

    def __rshift__(self, other: Number) -> Apply:
        return _applied(Op.SHIFT_RIGHT, self, other)

    def __and__(self, other: Number) -> Apply:
        return _applied(Op.AND, self, other)

    def __or__(self, other: Number) -> Apply:
        return _applied(Op.OR, self, other)

    def __lt__(self, other: Number) -> Apply:
        return _applied(Op.LESS, self, other)

    def __le__(self, other: Number) -> Apply:
        return _applied(Op.LESS_EQUAL, self, other)

    def __gt__(self, other: Number) -> Apply:
        return _applied(Op.GREATER, self, other)

    def __ge__(self, other: Number) -> Apply:
        return _applied(Op.GREATER_EQUAL, self, other)

    def __neg__(self) -> Apply:
        return apply(Op.NEGATE, self)

    def __invert__(self) -> Apply:
        return apply(Op.NOT, self)


Number = Expr | int | float
"""An expression, or a number that becomes a constant of the other operand's type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Const(Expr):
    """A literal.  0.0 and -0.0 are different constants, and all NaNs are equal."""

    value: int | float | bool

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Const):
            return NotImplemented
        return self.type == other.type and _same_number(self.value, other.value)

    def __hash__(self) -> int:
        return hash((self.type, self.value if self.value == self.value else "NaN"))


def _same_number(left: float, right: float) -> bool:
    if left != left or right != right:
        return left != left and right != right
    return left == right and copysign(1, left) == copysign(1, right)


@dataclass(frozen=True, slots=True, kw_only=True)
class Index(Expr):
    """The value of a loop or of a space dimension, by name."""

    name: str
    type: Type = INT32


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter(Expr):
    """A scalar argument of a run."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Local(Expr):
    """A value bound by an earlier statement of a PE's body."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Read(Expr):
    """An element of an input or of a Func.  Only temporal programs contain reads."""

    source: str
    indices: tuple[Expr, ...]
    location: SourceLocation | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Apply(Expr):
    """An operator on operands of equal type."""

    operator: Op
    operands: tuple[Expr, ...]

    def __bool__(self) -> bool:
        # ``if a < b``, ``a < b < c`` and ``sorted`` would take any comparison for true
        if OPERATORS[self.operator].comparison:
            raise TypeError(
                f"{self.operator.value!r} of expressions has no truth value before the design runs"
            )
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Select(Expr):
    """``if_true`` where ``condition`` holds, else ``if_false``; only the chosen side is read."""

    condition: Expr
    if_true: Expr
    if_false: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast(Expr):
    """``value`` converted to ``type`` (float to integer truncates and saturates)."""

    value: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class Broadcast(Expr):
    """A scalar repeated over the lanes of ``type``."""

    value: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneNumbers(Expr):
    """The number of each lane: the vector 0, 1, ... of an integer type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReduceLanes(Expr):
    """The lanes of ``value`` combined by ``operator`` as a balanced tree.

    The order is fixed, so that every engine and backend rounds alike: neighbors are combined
    pairwise, an odd last one is carried over, until one value is left.
    """

    operator: Op
    value: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert(Expr):
    """``vector`` with ``value`` in lane ``lane``; unchanged if there is no such lane."""

    vector: Expr
    lane: Expr
    value: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class BitOperator(Expr):
    """Base of the operators on a set of numbers, given as bits: c is bit ``c % 32`` of ``words[c //
    32]``.

    ``words`` are uint32, one or a vector.  Only machines have such operators, those that scan bit
    vectors.
    """

    words: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class CountBits(BitOperator):
    """The number of set bits: an int32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LowestBits(BitOperator):
    """The numbers of the first set bits, as int32 lanes; -1 after the last one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankBits(BitOperator):
    """For each int32 lane of ``bits``, the number of set bits below that bit.

    A lane that is negative gives -1.
    """

    bits: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class SetBits(BitOperator):
    """The words with the bits set that the int32 lanes of ``bits`` number.

    A number that is negative, or beyond the last bit, sets none.
    """

    bits: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockOperator(Expr):
    """Base of the operators on vectors that are blocks: arrays whose lanes are in row-major order.

    Only machines have such operators, those that compute on sparse tensors of blocks.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrange(BlockOperator):
    """A block of a ``shape`` of the lanes of ``value``: transposed, repeated, or both.

    Its lane at an index is lane ``sum(index * strides)`` of the value; a scalar has one lane.
    """

    value: Expr
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReduceRows(BlockOperator):
    """The lanes of each row of ``value`` combined by ``operator``: a lane for each row.

    The order is that of ``ReduceLanes``.
    """

    operator: Op
    value: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract(BlockOperator):
    """The product of two matrices, by the operators ``add`` and ``multiply``.

    ``left`` has rows of ``inner`` lanes, and ``right`` has ``inner`` rows.  An element of the
    result adds up its products from the first one to the last.
    """

    add: Op
    multiply: Op
    left: Expr
    right: Expr
    inner: int


def const(value: int | float | bool, type: Type = INT32) -> Const:
    """A literal of the given type."""
    return Const(value=value, type=type)


def apply(operator: Op, *operands: Expr) -> Apply:
    """Apply an operator to operands of one common type."""
    return Apply(operator=operator, operands=operands, type=result_type(operator, operands[0].type))


def _applied(operator: Op, left: Number, right: Number) -> Apply:
    """Apply an operator to two operands of which at least one is an expression."""
    if not isinstance(right, Expr):
        right = as_expression(right, cast(Expr, left).type)
    elif not isinstance(left, Expr):
        left = as_expression(left, right.type)
    return apply(operator, cast(Expr, left), right)


def as_expression(value: Number, type: Type) -> Expr:
    """An expression as it is; a number of Python or numpy as a constant of a type, in all lanes.

    Raises ``TypeError`` for a number that the type does not have.
    """
    if isinstance(value, Expr):
        return value
    if isinstance(value, np.generic):
        value = value.item()
    match value:
        case bool() if type.is_bool:
            constant = const(value, type.scalar)
        case int() if not isinstance(value, bool) and not type.is_bool:
            constant = const(float(value) if type.is_float else value, type.scalar)
        case float() if type.is_float:
            constant = const(value, type.scalar)
        case _:
            raise TypeError(f"{value!r} is not a value of type {type}")
    return constant if type.lanes == 1 else Broadcast(value=constant, type=type)


def zero(type: Type) -> Expr:
    """The zero of a type, in all of its lanes."""
    scalar = const(False if type.is_bool else 0.0 if type.is_float else 0, type.scalar)
    return spread(scalar, type.lanes)


def spread(value: Expr, lanes: int) -> Expr:
    """A scalar in so many lanes; a vector of so many lanes as it is."""
    if value.type.lanes == lanes:
        return value
    return Broadcast(value=value, type=value.type.with_lanes(lanes))


def select(condition: Expr, if_true: Number, if_false: Number) -> Select:
    """``if_true`` where the condition holds, else ``if_false``; two numbers are int32."""
    first = as_expression(if_true, if_false.type if isinstance(if_false, Expr) else INT32)
    second = as_expression(if_false, first.type)
    return Select(condition=condition, if_true=first, if_false=second, type=first.type)


TRUE = Const(value=True, type=BOOL)


def conjunction(*conditions: Expr | None) -> Expr | None:
    """The logical and of conditions; ``None`` stands for 'always' in and out."""
    result: Expr | None = None
    for condition in conditions:
        if condition is None or condition == TRUE:
            continue
        result = condition if result is None else result & condition
    return result


def all_hold(*conditions: Expr | None) -> Expr:
    """As ``conjunction``, with ``TRUE`` for 'always'."""
    result = conjunction(*conditions)
    return TRUE if result is None else result


def any_holds(*conditions: Expr) -> Expr:
    """The logical or of one condition or more."""
    return reduce(lambda left, right: left | right, conditions)


def conjuncts(condition: Expr | None) -> tuple[Expr, ...]:
    """The factors of a condition: ``a and b and c`` as ``(a, b, c)``; none for 'always'."""
    factors: list[Expr] = []
    waiting = [] if condition is None else [condition]
    while waiting:
        match waiting.pop():
            case Apply(operator=Op.AND, operands=(left, right), type=type) if type.is_bool:
                waiting += [right, left]
            case factor:
                factors.append(factor)
    return tuple(factors)


def equals(left: Expr, right: Number) -> Apply:
    """The comparison of values ``left == right``."""
    return _applied(Op.EQUAL, left, right)


def unequal(left: Expr, right: Number) -> Apply:
    """The comparison of values ``left != right``."""
    return _applied(Op.NOT_EQUAL, left, right)


def substitute(expr: Expr, values: dict[str, Expr]) -> Expr:
    """Replace every ``Index`` whose name is a key of ``values``."""
    match expr:
        case Const():
            return expr
        case Index(name=name) if name not in values:
            return expr

    def rule(node: Term) -> Term | None:
        return values.get(node.name) if isinstance(node, Index) else None

    return simplify(rewrite(expr, rule))


def digits(flat: Expr, extents: Sequence[int]) -> tuple[Expr, ...]:
    """The row-major position ``flat`` as one index for each extent.

    Indices stay within their extents even if ``flat`` is out of range.
    """
    result: list[Expr] = []
    for at, extent in enumerate(extents):
        scaled = simplify(flat // prod(extents[at + 1 :]))
        result.append(simplify(scaled % extent))
    return tuple(result)


def index_names(expr: Term) -> frozenset[str]:
    """Names of all loops and space dimensions that occur."""
    match expr:
        case Const():
            return frozenset()
        case Index(name=name):
            return frozenset((name,))
    return frozenset(node.name for node in distinct(expr) if isinstance(node, Index))


def is_static(expr: Term) -> bool:
    """Whether a value is known before the design runs, given the indices."""
    return not any(isinstance(node, Local | Parameter) for node in walk(expr))


def reads(expr: Term) -> tuple[Read, ...]:
    """All element reads in program order; a shared object occurs once."""
    return tuple(node for node in distinct(expr) if isinstance(node, Read))


def simplify(expr: Expr) -> Expr:
    """Fold constants and the identities of index arithmetic (``x+0``, ``x*1``, ``x*0``)."""
    return expr if isinstance(expr, Const | Index) else rewrite(expr, _fold)


def _fold(node: Term) -> Term | None:
    match node:
        case Apply(operator=operator, operands=operands, type=type) if all(
            isinstance(operand, Const) for operand in operands
        ) and (type.is_integer or type.is_bool):
            values = tuple(
                np.asarray(cast(Const, operand).value, operand.type.numpy) for operand in operands
            )
            with np.errstate(all="ignore"):
                folded = apply_operator(operator, type, values).item()
            return Const(value=folded, type=type)
        case Apply(operator=Op.ADD, operands=(Const(value=0), other)) if other.type.is_integer:
            return other
        case Apply(operator=Op.ADD | Op.SUBTRACT, operands=(other, Const(value=0))) if (
            other.type.is_integer
        ):
            return other
        case Apply(operator=Op.MULTIPLY, operands=(Const(value=1), other)) if other.type.is_integer:
            return other
        case Apply(operator=Op.MULTIPLY, operands=(other, Const(value=1))) if other.type.is_integer:
            return other
        case Apply(
            operator=Op.MULTIPLY,
            operands=(Const(value=0) as zero, other) | (other, Const(value=0) as zero),
        ) if other.type == zero.type and other.type.is_integer:
            return zero
        case Apply(operator=Op.FLOOR_DIVIDE, operands=(other, Const(value=1))):
            return other
        case Apply(operator=Op.MODULO, operands=(_, Const(value=1)), type=type):
            return Const(value=0, type=type)
        case Apply(operator=Op.AND, operands=(Const(value=True), other)) if other.type.is_bool:
            return other
        case Apply(operator=Op.AND, operands=(other, Const(value=True))) if other.type.is_bool:
            return other
        case Select(condition=Const(value=chosen), if_true=if_true, if_false=if_false):
            return if_true if chosen else if_false
    return None


def evaluate(expr: Expr, environment: dict[str, Array]) -> Array:
    """The numpy value of an expression without reads.

    ``environment`` maps the names of indices, parameters and locals to numpy scalars or arrays;
    arrays broadcast, so a whole loop nest may be evaluated at once.  A vector value carries its
    lanes in the last axis.  Callers hold ``np.errstate(all="ignore")``.
    """
    match expr:
        case Const(value=value, type=type):
            return np.asarray(value, type.numpy)
        case Index(name=name) | Parameter(name=name) | Local(name=name):
            return environment[name]
        case Apply(operator=operator, operands=operands, type=type):
            values = tuple(evaluate(operand, environment) for operand in operands)
            return apply_operator(operator, type, values)
        case Select(condition=condition, if_true=if_true, if_false=if_false):
            chosen = evaluate(condition, environment)
            if expr.type.lanes > 1 and condition.type.lanes == 1:
                chosen = np.expand_dims(chosen, -1)
            return np.where(chosen, evaluate(if_true, environment), evaluate(if_false, environment))
        case Cast(value=value, type=type):
            return cast_value(evaluate(value, environment), type)
        case Broadcast(value=value, type=type):
            scalar = np.asarray(evaluate(value, environment))
            return np.broadcast_to(np.expand_dims(scalar, -1), (*scalar.shape, type.lanes))
        case LaneNumbers(type=type):
            return np.arange(type.lanes, dtype=type.numpy)
        case ReduceLanes(operator=operator, value=value, type=type):
            return reduce_lanes(operator, type, evaluate(value, environment))
        case Insert(vector=vector, lane=lane, value=value, type=type):
            chosen_lane = np.expand_dims(evaluate(lane, environment), -1) == np.arange(type.lanes)
            scalar = np.expand_dims(evaluate(value, environment), -1)
            return np.where(chosen_lane, scalar, evaluate(vector, environment))
        case BitOperator(words=words):
            return _of_bits(expr, evaluate(words, environment), environment)
        case BlockOperator():
            block = _of_blocks(expr, environment)
            return block if expr.type.lanes > 1 else block[0]
    raise TypeError(f"{expr.__class__.__name__} has no value here")


def _of_blocks(expr: BlockOperator, environment: dict[str, Array]) -> Array:
    """The lanes of an operator on blocks."""
    match expr:
        case Arrange(value=value, shape=shape, strides=strides):
            return np.atleast_1d(evaluate(value, environment))[_lanes_in_order(shape, strides)]
        case ReduceRows(operator=operator, value=value, type=type):
            rows = evaluate(value, environment).reshape(type.lanes, -1)
            return reduce_lanes(operator, type, rows)
        case Contract(left=left, right=right):
            sides = (np.atleast_1d(evaluate(side, environment)) for side in (left, right))
            return _contracted(expr, *sides)
    raise TypeError(f"{expr.__class__.__name__} has no value here")


def _lanes_in_order(shape: Sequence[int], strides: Sequence[int]) -> Array:
    """The lane that each lane of ``Arrange`` is, in order."""
    lanes = np.zeros(1, np.int64)
    for extent, stride in zip(shape, strides, strict=True):
        lanes = (lanes[:, None] + stride * np.arange(extent)).reshape(-1)
    return lanes


def _contracted(expr: Contract, left: Array, right: Array) -> Array:
    rows, columns = left.reshape(-1, expr.inner), right.reshape(expr.inner, -1)
    total: Array = 0
    for at in range(expr.inner):
        operands = rows[:, at, None], columns[None, at, :]
        products = apply_operator(expr.multiply, expr.type, operands)
        total = apply_operator(expr.add, expr.type, (total, products)) if at else products
    return total.reshape(-1)


def _of_bits(expr: BitOperator, words: Array, environment: dict[str, Array]) -> Array:
    """The value of an operator on words, one number or a vector."""
    bits = np.atleast_1d(words)[:, None] >> np.arange(32, dtype=np.uint32) & 1
    numbers = np.flatnonzero(bits)
    match expr:
        case LowestBits(type=type):
            lanes = np.full(type.lanes, -1, np.int32)
            lanes[: len(numbers)] = numbers[: type.lanes]
            return lanes if type.lanes > 1 else lanes[0]
        case RankBits(bits=bit_numbers):
            at = evaluate(bit_numbers, environment)
            below = np.searchsorted(numbers, at).astype(np.int32)
            return np.where(at < 0, np.int32(-1), below)[()]
        case SetBits(bits=bit_numbers):
            at = np.atleast_1d(evaluate(bit_numbers, environment))
            more = np.zeros(bits.size, bool)
            more[at[(at >= 0) & (at < bits.size)]] = True
            packed = np.packbits(more, bitorder="little").view("<u4").astype(np.uint32)
            return words | (packed if np.ndim(words) else packed[0])
    return np.int32(len(numbers))


def reduce_lanes(operator: Op, result: Type, vector: Array) -> Array:
    """Combine the last axis as the balanced tree that ``ReduceLanes`` defines."""
    while vector.shape[-1] > 1:
        count = vector.shape[-1]
        paired = apply_operator(
            operator, result, (vector[..., 0 : count - count % 2 : 2], vector[..., 1::2])
        )
        vector = np.concatenate([paired, vector[..., count - 1 :]], -1) if count % 2 else paired
    return vector[..., 0]


def is_associative(operator: Op) -> bool:
    """Whether the operator is associative over the reals."""
    return OPERATORS[operator].associative
