"""Tensor index notation: what is computed, before any loop.

``y(i) = A(i,j) * x(j)`` assigns to every coordinate i of the result.  A variable that occurs on
the right only is summed over; the sum goes around the smallest *term* that has it, where the terms
are what the additions and subtractions at the top of the expression join.  So in
``y(i) = b(i) + A(i,j) * x(j)`` only the product is summed.  A variable that is missing in a tensor
repeats that tensor over it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import assert_never

from t2s.core.location import SourceLocation
from t2s.core.ops import Op
from t2s.core.walk import Term, walk
from t2s.sparse_repr.formats import Format
from t2s.sparse_repr.functions import Function
from t2s.sparse_repr.semiring import PLUS_TIMES, Semiring


@dataclass(frozen=True, slots=True, kw_only=True)
class Access(Term):
    """A tensor at index variables; a scalar has none.

    ``occurrence`` tells equal accesses apart where each is a stream of its own.
    """

    tensor: str
    variables: tuple[str, ...] = ()
    occurrence: int = 0
    location: SourceLocation | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Number(Term):
    """A constant."""

    value: float | int


@dataclass(frozen=True, slots=True, kw_only=True)
class Combine(Term):
    """``+``, ``-``, ``*``, ``/``, ``min`` or ``max`` of two expressions."""

    operator: Op
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Negative(Term):
    """The negative of an expression."""

    value: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Unary(Term):
    """A function of one value; where only ``stored``, it is zero at all other coordinates."""

    function: Function
    value: Expression
    stored: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice(Term):
    """``where(M(i,j), x, y)``: x where the condition is not zero, and y elsewhere.

    A condition that is not stored is zero.
    """

    condition: Expression
    value: Expression
    otherwise: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum(Term):
    """The sum of an expression over index variables."""

    variables: tuple[str, ...]
    value: Expression


LEAST_VARIANCE = 1e-5
"""What layer normalization adds to variances, unless the user says it."""


class RowFunction(Enum):
    """A function of all values along index variables; the value is its name in index notation."""

    MAXIMUM = "max"
    MINIMUM = "min"
    MEAN = "mean"
    SOFTMAX = "softmax"
    LAYERNORM = "layernorm"

    @property
    def reduces(self) -> bool:
        """Whether a row has one result; otherwise each of its elements has one."""
        return self not in (RowFunction.SOFTMAX, RowFunction.LAYERNORM)


@dataclass(frozen=True, slots=True, kw_only=True)
class OfRow(Term):
    """A function of the values along index variables, such as ``softmax(k; X(i,k))``.

    A program computes it in statements of its own; where only ``stored``, a row has what its
    operand stores.  ``epsilon`` is added to the variance by ``layernorm``.
    """

    function: RowFunction
    variables: tuple[str, ...]
    value: Expression
    stored: bool = False
    epsilon: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent(Term):
    """The number of coordinates of an index variable, in a statement of a program."""

    variable: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Over(Term):
    """An expression over a semiring of its own, inside of one over another semiring.

    Statements of one graph may differ in it; nobody writes it.
    """

    semiring: Semiring
    value: Expression


Expression = Access | Number | Combine | Negative | Unary | Choice | Sum | OfRow | Extent | Over
"""What may be written; what kernels compute has no ``OfRow`` and no ``Extent`` any more."""

ADDITIVE = (Op.ADD, Op.SUBTRACT)
EXTREMES = (Op.MINIMUM, Op.MAXIMUM)


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorDeclaration(Term):
    """A tensor of an assignment: its format, and its shape where the user gave one.

    ``properties`` are what external functions may ask for, such as being symmetric.
    """

    name: str
    format: Format
    shape: tuple[int, ...] | None = None
    properties: tuple[str, ...] = ()
    location: SourceLocation | None = field(default=None, compare=False)


@dataclass(frozen=True, kw_only=True)
class Assignment(Term):
    """A result and its expression, with all sums explicit, and the tensors in both.

    What every run asks of an expression, which has thousands of terms where statements share a
    graph, is found once.
    """

    result: Access
    value: Expression
    tensors: tuple[TensorDeclaration, ...]
    semiring: Semiring = PLUS_TIMES
    location: SourceLocation | None = field(default=None, compare=False)

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """All terms of the expression, parents first."""
        return tuple(walk(self.value))

    @cached_property
    def reads(self) -> tuple[Access, ...]:
        """The accesses of the expression, each once, in order of first occurrence."""
        return tuple(dict.fromkeys(term for term in self.terms if isinstance(term, Access)))

    def tensor(self, name: str) -> TensorDeclaration:
        """The declaration of a tensor; ``KeyError`` if it is unknown."""
        return next_named(self.tensors, name)


def next_named(tensors: tuple[TensorDeclaration, ...], name: str) -> TensorDeclaration:
    """The declaration of that name; ``KeyError`` if it is unknown."""
    for tensor in tensors:
        if tensor.name == name:
            return tensor
    raise KeyError(name)


def accesses(value: Term) -> tuple[Access, ...]:
    """All accesses in an expression, from left to right."""
    return tuple(term for term in walk(value) if isinstance(term, Access))


def variables_of(value: Term) -> tuple[str, ...]:
    """The variables that occur in accesses, in order of first occurrence."""
    return tuple(dict.fromkeys(name for access in accesses(value) for name in access.variables))


def seen_patterns(value: Term) -> tuple[Unary, ...]:
    """The functions whose values depend on what is stored, as ``stored(exp(A(i,j)))`` does."""
    return tuple(
        term
        for term in walk(value)
        if isinstance(term, Unary) and term.stored and not term.function.keeps_zero
    )


def free_variables(value: Expression) -> tuple[str, ...]:
    """The variables that occur outside of the sums over them, in order of first occurrence."""
    match value:
        case Access(variables=variables):
            names = variables
        case Number() | Extent():
            names = ()
        case OfRow(function=function, variables=along, value=inner) if function.reduces:
            names = tuple(name for name in free_variables(inner) if name not in along)
        case Negative(value=inner) | Unary(value=inner) | OfRow(value=inner) | Over(value=inner):
            names = free_variables(inner)
        case Combine(left=left, right=right):
            names = (*free_variables(left), *free_variables(right))
        case Choice(condition=condition, value=inner, otherwise=other):
            names = tuple(
                name for part in (condition, inner, other) for name in free_variables(part)
            )
        case Sum(variables=summed, value=inner):
            names = tuple(name for name in free_variables(inner) if name not in summed)
        case _:
            assert_never(value)
    return tuple(dict.fromkeys(names))


def all_variables(assignment: Assignment) -> tuple[str, ...]:
    """Variables of the result, then those of the expression, in order of first occurrence."""
    return tuple(dict.fromkeys((*assignment.result.variables, *variables_of(assignment.value))))


def with_sums(value: Expression, result: tuple[str, ...]) -> Expression:
    """The expression with the sum over every variable that the result does not have."""
    match value:
        case Combine(operator=operator) if operator in ADDITIVE:
            left, right = with_sums(value.left, result), with_sums(value.right, result)
            return Combine(operator=operator, left=left, right=right)
        case Negative():
            return Negative(value=with_sums(value.value, result))
        case Sum(variables=variables, value=inner):
            more = tuple(name for name in free_variables(value) if name not in result)
            return Sum(variables=(*variables, *more), value=inner)
        case _:
            summed = tuple(name for name in free_variables(value) if name not in result)
            return Sum(variables=summed, value=value) if summed else value


def print_expression(value: Expression) -> str:
    """The expression as text, with the parentheses it needs."""
    return _print(value, 0)


def _print(value: Expression, level: int) -> str:
    match value:
        case Access(tensor=tensor, variables=variables):
            return f"{tensor}({','.join(variables)})" if variables else tensor
        case Number(value=number):
            return f"({number})" if number < 0 else str(number)
        case Negative(value=inner):
            text = f"-{_print(inner, 3)}"
            return f"({text})" if level > 0 else text
        case Unary(function=function, value=inner, stored=stored):
            text = f"{function.value}({_print(inner, 0)})"
            return f"stored({text})" if stored else text
        case Choice(condition=condition, value=inner, otherwise=other):
            return f"where({', '.join(_print(part, 0) for part in (condition, inner, other))})"
        case Sum(variables=variables, value=inner):
            return f"sum({','.join(variables)}, {_print(inner, 0)})"
        case OfRow(function=function, variables=variables, value=inner):
            more = f", {value.epsilon:g}" if function is RowFunction.LAYERNORM else ""
            text = f"{function.value}({','.join(variables)}; {_print(inner, 0)}{more})"
            return f"stored({text})" if value.stored else text
        case Extent(variable=variable):
            return f"extent({variable})"
        case Over(semiring=semiring, value=inner):
            add, multiply = semiring.add.value, semiring.multiply.value
            return f"over({add}, {multiply}; {_print(inner, 0)})"
        case Combine(operator=operator, left=left, right=right) if operator in EXTREMES:
            return f"{operator.value}({_print(left, 0)}, {_print(right, 0)})"
        case Combine(operator=operator, left=left, right=right):
            rank = 1 if operator in ADDITIVE else 2
            space = f" {operator.value} " if rank == 1 else operator.value
            text = f"{_print(left, rank)}{space}{_print(right, rank + 1)}"
            return f"({text})" if level > rank else text
        case _:
            assert_never(value)


def print_assignment(assignment: Assignment) -> str:
    """``y(i) = sum(j, A(i,j)*x(j))``."""
    return f"{print_expression(assignment.result)} = {print_expression(assignment.value)}"
