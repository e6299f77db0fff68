"""Index notation in Python: ``X[i, j] = B[i, k] * C[k, j]``.

An index variable is anything with a ``name``: ``t2s.Var("i")``.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

from t2s.core.display import NotebookCard, NotebookDisplay
from t2s.core.errors import UserError
from t2s.core.location import SourceLocation, user_location
from t2s.core.ops import Op
from t2s.sparse_repr.formats import (
    Format,
    as_format,
    checked_order,
    checked_shape,
    dense,
    of_blocks,
)
from t2s.sparse_repr.functions import Function
from t2s.sparse_repr.notation.ir import (
    LEAST_VARIANCE,
    Access,
    Assignment,
    Choice,
    Combine,
    Expression,
    Negative,
    Number,
    OfRow,
    RowFunction,
    Sum,
    TensorDeclaration,
    Unary,
    accesses,
    print_assignment,
    print_expression,
)
from t2s.sparse_repr.notation.legality import check_sums_are_clear, make_assignment, stored_only


class Notation:
    """An expression of index notation that the user builds with Python's operators."""

    def __init__(self, value: Expression, tensors: Mapping[str, Tensor]) -> None:
        self.value = value
        self.tensors = dict(tensors)

    def __repr__(self) -> str:
        return print_expression(self.value)

    def __add__(self, other: Operand) -> Notation:
        return _combine(Op.ADD, self, other)

    def __radd__(self, other: Operand) -> Notation:
        return _combine(Op.ADD, other, self)

    def __sub__(self, other: Operand) -> Notation:
        return _combine(Op.SUBTRACT, self, other)

    def __rsub__(self, other: Operand) -> Notation:
        return _combine(Op.SUBTRACT, other, self)

    def __mul__(self, other: Operand) -> Notation:
        return _combine(Op.MULTIPLY, self, other)

    def __rmul__(self, other: Operand) -> Notation:
        return _combine(Op.MULTIPLY, other, self)

    def __truediv__(self, other: Operand) -> Notation:
        return _combine(Op.DIVIDE, self, other)

    def __rtruediv__(self, other: Operand) -> Notation:
        return _combine(Op.DIVIDE, other, self)

    def __neg__(self) -> Notation:
        return Notation(Negative(value=self.value), self.tensors)

    def __abs__(self) -> Notation:
        return _called(Function.ABSOLUTE, self)


def minimum(left: Operand, right: Operand) -> Notation:
    """The smaller of two operands, at least one of which is notation."""
    return _combine(Op.MINIMUM, left, right)


def maximum(left: Operand, right: Operand) -> Notation:
    """The larger of two operands, at least one of which is notation."""
    return _combine(Op.MAXIMUM, left, right)


def where(condition: Operand, value: Operand, otherwise: Operand) -> Notation:
    """The value where a condition is not zero, and the other one elsewhere, as ``numpy.where``.

    ``where(M[i, j], A[i, j], 0)``: a condition that is not stored is zero, so the result has
    what both M and A store.
    """
    location = user_location()
    parts = [_notation(part, location) for part in (condition, value, otherwise)]
    tensors = _all_tensors(parts, location)
    decides, chosen, other = (part.value for part in parts)
    choice = Choice(condition=decides, value=chosen, otherwise=other)
    return Notation(choice, tensors)


def _called(function: Function, operand: Operand) -> Notation:
    notation = _notation(operand, user_location())
    return Notation(Unary(function=function, value=notation.value), notation.tensors)


def relu(operand: Operand) -> Notation:
    """The operand, or zero where it is negative."""
    return _called(Function.RELU, operand)


def exp(operand: Operand) -> Notation:
    """The exponential function.  It is one at all coordinates at which nothing is stored."""
    return _called(Function.EXPONENTIAL, operand)


def log(operand: Operand) -> Notation:
    """The natural logarithm.  It is minus infinity at all coordinates without a stored value."""
    return _called(Function.LOGARITHM, operand)


def tanh(operand: Operand) -> Notation:
    """The hyperbolic tangent."""
    return _called(Function.HYPERBOLIC_TANGENT, operand)


def erf(operand: Operand) -> Notation:
    """The error function, as of :func:`math.erf`."""
    return _called(Function.ERROR_FUNCTION, operand)


def sigmoid(operand: Operand) -> Notation:
    """``1/(1 + exp(-x))``.  It is a half at all coordinates at which nothing is stored."""
    return _called(Function.SIGMOID, operand)


def gelu(operand: Operand) -> Notation:
    """The Gaussian error linear unit: ``x/2*(1 + tanh(sqrt(2/pi)*(x + 0.044715*x**3)))``."""
    return _called(Function.GELU, operand)


def gelu_erf(operand: Operand) -> Notation:
    """The Gaussian error linear unit as it is defined: ``x/2*(1 + erf(x/sqrt(2)))``."""
    return _called(Function.GELU_OF_ERROR_FUNCTION, operand)


def silu(operand: Operand) -> Notation:
    """``x/(1 + exp(-x))``."""
    return _called(Function.SILU, operand)


def sqrt(operand: Operand) -> Notation:
    """The square root; NaN of negative numbers."""
    return _called(Function.SQUARE_ROOT, operand)


def rsqrt(operand: Operand) -> Notation:
    """``1/sqrt(x)``.  It is infinite at all coordinates at which nothing is stored."""
    return _called(Function.RECIPROCAL_SQUARE_ROOT, operand)


def largest(value: Operand, *variables: Any) -> Notation:
    """The largest value along index variables, in a statement of a program.

    What is not stored counts as zero, except in ``stored(largest(...))``: a row that stores nothing
    is then minus infinity, and refused if its values are integers.
    """
    return _of_row(RowFunction.MAXIMUM, value, variables)


def smallest(value: Operand, *variables: Any) -> Notation:
    """The smallest value along index variables; as ``largest``."""
    return _of_row(RowFunction.MINIMUM, value, variables)


def mean(value: Operand, *variables: Any) -> Notation:
    """The mean of all elements along index variables, in a statement of a program."""
    return _of_row(RowFunction.MEAN, value, variables)


def softmax(value: Operand, *variables: Any) -> Notation:
    """``exp(x - m)/sum(exp(x - m))`` with the maximum ``m`` along index variables, in a program.

    ``stored(softmax(...))`` is that of what is stored, and zero elsewhere: of a masked row.
    """
    return _of_row(RowFunction.SOFTMAX, value, variables)


def layernorm(value: Operand, *variables: Any, epsilon: float = LEAST_VARIANCE) -> Notation:
    """``(x - mean)/sqrt(variance + epsilon)`` along index variables, in a program."""
    if isinstance(epsilon, bool) or not isinstance(epsilon, Real) or not epsilon >= 0:
        raise UserError(
            "the epsilon of layernorm is a number that is added to variances",
            location=user_location(),
            expected="a number from 0 on",
            given=repr(epsilon),
        )
    return _of_row(RowFunction.LAYERNORM, value, variables, float(epsilon))


def _of_row(
    function: RowFunction, value: Operand, variables: Sequence[Any], epsilon: float = 0.0
) -> Notation:
    location = user_location()
    notation = _notation(value, location)
    names = _names(variables, f"{function.value} is along", location)
    row = OfRow(function=function, variables=names, value=notation.value, epsilon=epsilon)
    return Notation(row, notation.tensors)


def _names(variables: Sequence[Any], what: str, location: SourceLocation) -> tuple[str, ...]:
    names = []
    for variable in variables:
        name = variable if isinstance(variable, str) else getattr(variable, "name", None)
        if not isinstance(name, str):
            raise UserError(
                f"{what} something that is not an index variable",
                location=location,
                expected='index variables, as of k = t2s.Var("k")',
                given=repr(variable),
            )
        names.append(name)
    return tuple(names)


def stored(operand: Notation) -> Notation:
    """A function where its operand stores values, and zero elsewhere: ``stored(exp(A[i, j]))``.

    Raises ``UserError`` for an operand that is not a function of one value, and for sums in it.
    """
    location = user_location()
    notation = _notation(operand, location)
    return Notation(stored_only(notation.value, location), notation.tensors)


def summation(value: Operand, *variables: Any) -> Notation:
    """The sum of an operand over index variables, at any place in an expression.

    ``maximum(summation(A[i, k] * x[k], k), 0)``; sums of terms need not be written.
    """
    location = user_location()
    notation = _notation(value, location)
    names = _names(variables, "a sum is over", location)
    return Notation(Sum(variables=names, value=notation.value), notation.tensors)


class Tensor(Notation, NotebookDisplay):
    """A tensor of an assignment, by name; a scalar is an operand as it is.

    Parameters
    ----------
    name: its name, for inputs and reports.
    format: how it is stored, or its letters (``"ds:1,0"``); all dense if not given, which needs
        ``order`` or ``shape``.
    shape: its extents, where no input gives them.
    block: the extents of a block in all modes, if values are blocks; a number for a tensor of one
        mode.  ``"ds[16,16]"`` says both.
    order: number of modes, if neither ``format`` nor ``shape`` says it.
    properties: what external functions may ask for: ``"symmetric"``.

    Attributes
    ----------
    definition: what is assigned to it, with all sums explicit; ``None`` for an input.
    written: the expression as it was assigned, and ``operands`` the tensors in it.
    """

    def __init__(
        self,
        name: str,
        format: Format | str | None = None,
        *,
        shape: Sequence[int] | None = None,
        order: int | None = None,
        block: int | Sequence[int] | None = None,
        properties: str | Sequence[str] = (),
    ) -> None:
        self.location = user_location()
        _check_name(name, self.location)
        self.name = name
        self.properties = checked_properties(properties, self.location)
        self.shape = None if shape is None else checked_shape(shape, name, self.location)
        order = None if order is None else checked_order(order, 0, self.location)
        if format is None:
            format = dense(len(self.shape) if self.shape is not None else order or 0)
        self.format = as_format(format, what=name, location=self.location)
        if block is not None:
            self.format = of_blocks(self.format, block, what=name, location=self.location)
        known = {self.format.order}
        known |= set() if self.shape is None else {len(self.shape)}
        known |= set() if order is None else {order}
        if len(known) > 1:
            raise UserError(
                f"the order of {name} is not clear",
                location=self.location,
                expected="a format, a shape and an order that agree",
                given=", ".join(f"order {number}" for number in sorted(known)),
            )
        self.definition: Assignment | None = None
        self.written: Expression | None = None
        self.operands: dict[str, Tensor] = {}
        super().__init__(Access(tensor=name, location=self.location), {name: self})

    @property
    def order(self) -> int:
        """Number of modes."""
        return self.format.order

    def __repr__(self) -> str:
        return f"<Tensor {self.name}, {self.format}>"

    def _card(self) -> NotebookCard:
        shape = " x ".join(map(str, self.shape or ())) or "that of its input"
        summary = [("format", str(self.format)), ("order", str(self.order)), ("shape", shape)]
        if self.definition is not None:
            summary.append(("definition", print_assignment(self.definition)))
        return NotebookCard(title=f"Tensor {self.name}", summary=tuple(summary))

    def __getitem__(self, variables: Any) -> Notation:
        return Notation(self._access(variables, user_location()), {self.name: self})

    def __setitem__(self, variables: Any, value: Operand) -> None:
        location = user_location()
        result = self._access(variables, location)
        notation = _notation(value, location)
        other = notation.tensors.get(self.name, self)
        if other is not self:
            raise _same_name(self, other, location)
        tensors = {**notation.tensors, self.name: self}
        names = dict.fromkeys([self.name, *(a.tensor for a in accesses(notation.value))])
        declared = tuple(tensors[name].declaration() for name in names)
        check_sums_are_clear(result, notation.value, location)
        self.definition = make_assignment(result, notation.value, declared, location)
        self.written = notation.value
        self.operands = {name: tensors[name] for name in names if name != self.name}

    def declaration(self) -> TensorDeclaration:
        """The frozen form."""
        return TensorDeclaration(
            name=self.name,
            format=self.format,
            shape=self.shape,
            properties=self.properties,
            location=self.location,
        )

    def _access(self, variables: Any, location: SourceLocation) -> Access:
        indices = variables if isinstance(variables, tuple) else (variables,)
        if len(indices) == 1 and indices[0] is Ellipsis:
            indices = ()
        names = []
        for variable in indices:
            name = variable if isinstance(variable, str) else getattr(variable, "name", None)
            if not isinstance(name, str):
                raise UserError(
                    f"{self.name} is read at something that is not an index variable",
                    location=location,
                    expected='index variables, as of i = t2s.Var("i")',
                    given=repr(variable),
                )
            names.append(name)
        if len(names) != self.order:
            raise UserError(
                f"{self.name} has order {self.order}",
                location=location,
                expected=f"{self.order} index variables",
                given=f"{self.name}[{', '.join(names)}]",
                notes=[(self.location, f"{self.name} is declared with format {self.format}")],
            )
        return Access(tensor=self.name, variables=tuple(names), location=location)


Operand = Notation | Real | int | float


def _notation(value: Operand, location: SourceLocation) -> Notation:
    if isinstance(value, Tensor) and value.order:
        raise UserError(
            f"{value.name} is an operand without its index variables",
            location=location,
            expected=f"{value.name}[...] with {value.order} index variables",
        )
    if isinstance(value, Notation):
        return value
    if isinstance(value, Real) and not isinstance(value, bool):
        number = value if isinstance(value, int) else float(value)
        return Notation(Number(value=number), {})
    raise UserError(
        f"a {type(value).__name__} is not an operand of index notation",
        location=location,
        expected="a tensor at index variables, a scalar tensor or a number",
        given=repr(value),
    )


def _combine(operator: Op, left: Operand, right: Operand) -> Notation:
    location = user_location()
    one, other = _notation(left, location), _notation(right, location)
    value = Combine(operator=operator, left=one.value, right=other.value)
    return Notation(value, _all_tensors((one, other), location))


def _all_tensors(parts: Sequence[Notation], location: SourceLocation) -> dict[str, Tensor]:
    """The tensors of several expressions, which have names of their own."""
    tensors: dict[str, Tensor] = {}
    for part in parts:
        for name, tensor in part.tensors.items():
            known = tensors.setdefault(name, tensor)
            if known is not tensor:
                raise _same_name(known, tensor, location)
    return tensors


def _same_name(one: Tensor, other: Tensor, location: SourceLocation) -> UserError:
    return UserError(
        f"two tensors are named {one.name}",
        location=location,
        expected="a name for each tensor",
        notes=[(one.location, "the first one"), (other.location, "the other one")],
    )


def _check_name(name: object, location: SourceLocation) -> None:
    good = isinstance(name, str) and re.fullmatch(r"[A-Za-z_]\w*", name) is not None
    if not isinstance(name, str) or not good or keyword.iskeyword(name):
        raise UserError(
            f"{name!r} is not a name for a tensor",
            location=location,
            expected="a letter, then letters, digits and underscores",
        )


# Properties that a tensor may be declared to have, for external functions that ask for them.

SYMMETRIC = "symmetric"


def checked_properties(
    given: str | Sequence[str], location: SourceLocation | None
) -> tuple[str, ...]:
    """Properties of ``"symmetric"`` or of a list of them.  Raises ``UserError`` for others."""
    listed = given.split() if isinstance(given, str) else given
    properties = tuple(listed) if isinstance(listed, Sequence) else (listed,)
    for name in properties:
        if name != SYMMETRIC:
            raise UserError(
                f"unknown property {name!r}",
                location=location,
                expected=SYMMETRIC,
            )
    return properties
