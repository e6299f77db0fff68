"""Writes the statements of a model, one operation after the other.

A value is what an operation gives: a formula at the coordinates of its axes.  Formulas of single
elements stay in the statement that reads them; sums of products, and what several operations or
another shape read, get a tensor.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import zip_longest
from math import prod
from typing import Any

import numpy as np

from t2s.core.names import NameSupply
from t2s.core.ops import Op
from t2s.sparse_repr.functions import Function
from t2s.sparse_repr.models.axes import (
    Axis,
    Factors,
    NotAligned,
    extent_of,
    leaves,
    new_axis,
    regrouped,
    unite,
)
from t2s.sparse_repr.models.parts import Definition, Part, PartsMaker, digits
from t2s.sparse_repr.notation.ir import (
    Access,
    Choice,
    Combine,
    Expression,
    Negative,
    Number,
    OfRow,
    RowFunction,
    Unary,
    accesses,
    print_expression,
)

Array = np.ndarray[Any, np.dtype[Any]]

Variables = tuple[str, ...]
"""The index variables of an axis."""


_FUNCTIONS = (
    *(function.value for function in Function),
    *(function.value for function in RowFunction),
    *("sum", "stored", "extent", "where", "inf"),
)
"""Names that texts give to functions, so that no tensor can have them."""


class NotExpressible(Exception):
    """An operation that index notation does not have; the text says what of it."""


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Value:
    """What an operation gives: its axes, and the formula for the variables of each.

    The formula also takes the variables of ``inner`` axes, which the value does not have any more.
    ``name`` is what the model calls it.  ``tensor`` is the array that it is an element of, with its
    axes in another order if ``transposed``.  ``number`` is that of a constant with one element.
    """

    axes: tuple[Axis, ...]
    formula: Callable[[Sequence[Variables]], Expression]
    inner: tuple[Axis, ...] = ()
    name: str = "value"
    tensor: str | None = None
    transposed: bool = False
    number: float | int | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(map(extent_of, self.axes))


@dataclass(frozen=True, kw_only=True)
class ModelStatements:
    """A model as statements: ``shapes`` and ``weights`` are those of the program's tensors.

    ``inputs`` and ``outputs`` map names of the model to the tensor and its shape in the model;
    ``sparse`` are the weights that the model stores without their zeros.
    """

    text: str
    sparse: frozenset[str]
    shapes: Mapping[str, tuple[int, ...]]
    weights: Mapping[str, Array]
    inputs: Mapping[str, tuple[str, tuple[int, ...]]]
    outputs: Mapping[str, tuple[str, tuple[int, ...]]]


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class _Statement:
    """A value that is assigned to a tensor with the same axes."""

    tensor: str
    value: Value


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class _Part:
    """Elements of a tensor at a coordinate of one of its axes."""

    of: str
    axis: Axis
    coordinate: int


@dataclass
class StatementWriter:
    """Collects the tensors and statements of a model."""

    names: NameSupply = field(default_factory=lambda: NameSupply(_FUNCTIONS))
    tensors: dict[str, tuple[Axis, ...]] = field(default_factory=dict)
    weights: dict[str, Array] = field(default_factory=dict)
    sparse: set[str] = field(default_factory=set)
    inputs: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    statements: list[_Statement] = field(default_factory=list)
    parts: dict[str, _Part] = field(default_factory=dict)

    # what a model has

    def input(self, name: str, shape: Sequence[int]) -> Value:
        """An array that the user gives."""
        value = self._tensor(name, tuple(map(new_axis, shape)))
        assert value.tensor is not None
        self.inputs[name] = value.tensor
        return value

    def constant(self, name: str, array: Array, *, sparse: bool = False) -> Value:
        """An array of the model: a number, or a tensor that its weights are of."""
        if array.size == 1:
            number = array.reshape(()).item()
            axes: tuple[Axis, ...] = ((),) * array.ndim
            return Value(axes=axes, formula=lambda _: Number(value=number), number=number)
        value = self._tensor(name, tuple(map(new_axis, array.shape)))
        assert value.tensor is not None
        self.weights[value.tensor] = array
        if sparse:
            self.sparse.add(value.tensor)
        return value

    def output(self, name: str, value: Value) -> None:
        """A value that the model gives, as a tensor of its own statement."""
        made = [statement.tensor for statement in self.statements]
        made += [part for part in self.parts if self._place_of(part).of not in self.weights]
        taken = [tensor for tensor, _ in self.outputs.values()]
        stored = value
        if value.tensor not in made or value.tensor in taken or value.transposed:
            stored = self._assigned(name, value)
        assert stored.tensor is not None
        self.outputs[name] = stored.tensor, value.shape

    # operations

    def function(self, function: Function, operand: Value) -> Value:
        """A function of each element."""

        def formula(variables: Sequence[Variables]) -> Expression:
            return Unary(function=function, value=operand.formula(variables))

        return Value(axes=operand.axes, inner=operand.inner, formula=formula)

    def negative(self, operand: Value) -> Value:
        """Each element with the other sign."""

        def formula(variables: Sequence[Variables]) -> Expression:
            return Negative(value=operand.formula(variables))

        return Value(axes=operand.axes, inner=operand.inner, formula=formula)

    def number(self, value: float) -> Value:
        """A number that the model has no name for."""
        return self.constant("number", np.array(value))

    def pointwise(self, operator: Op, left: Value, right: Value) -> Value:
        """An operator on two values, each of which is repeated along axes that it lacks."""
        return _elementwise(
            (left, right),
            lambda one, other: Combine(operator=operator, left=one, right=other),
        )

    def choice(self, condition: Value, value: Value, otherwise: Value) -> Value:
        """A value where a condition is not zero, and another one elsewhere; repeated as needed."""
        if condition.number is not None:
            taken = 0 if condition.number else 1
            return _elementwise((value, otherwise), lambda *both: both[taken])
        return _elementwise((condition, value, otherwise), _choice)

    def of_row(
        self,
        function: RowFunction,
        operand: Value,
        along: Sequence[int],
        *,
        epsilon: float = 0.0,
        keeps: bool = True,
    ) -> Value:
        """A function of all values along some axes; a reduction ``keeps`` them, of extent 1."""
        row = frozenset(at % len(operand.axes) for at in along)
        if not any(leaves(operand.axes[at]) for at in row):
            return self._of_one(function, operand, row, keeps=keeps)
        axes = operand.axes
        if function.reduces:
            left = [() if at in row else axis for at, axis in enumerate(axes)]
            axes = tuple(axis for at, axis in enumerate(left) if keeps or at not in row)
        row_axes = tuple(operand.axes[at] for at in sorted(row)) if function.reduces else ()
        own, inside = len(axes), len(axes) + len(row_axes)

        def formula(variables: Sequence[Variables]) -> Expression:
            outer, inner = iter(variables[:own]), iter(variables[own:inside])
            everywhere: list[Variables] = []
            names: list[str] = []
            for at in range(len(operand.axes)):
                if at in row and function.reduces:
                    everywhere.append(next(inner))
                    if keeps:
                        next(outer)
                else:
                    everywhere.append(next(outer))
                if at in row:
                    names += everywhere[-1]
            value = operand.formula([*everywhere, *variables[inside:]])
            return OfRow(function=function, variables=tuple(names), value=value, epsilon=epsilon)

        return Value(axes=axes, inner=(*row_axes, *operand.inner), formula=formula)

    def _of_one(
        self, function: RowFunction, operand: Value, row: Collection[int], *, keeps: bool
    ) -> Value:
        """A function of rows of one value each."""
        if function.reduces:
            left = [extent for at, extent in enumerate(operand.shape) if at not in row]
            return operand if keeps else self.reshape(operand, left)
        nothing = self.pointwise(Op.MULTIPLY, operand, self.number(0))
        if function is RowFunction.LAYERNORM:
            return nothing
        return self.pointwise(Op.ADD, nothing, self.number(1))

    def contract(
        self,
        name: str,
        operands: Sequence[tuple[Value, Sequence[object]]],
        result: Sequence[object],
    ) -> Value:
        """The sum of products along the labels of axes that the result lacks, as a tensor."""
        read = [(self.stored(value), labels) for value, labels in operands]
        loops: dict[object, Axis] = dict.fromkeys(result, ())
        for value, labels in read:
            for label, axis in zip(labels, value.axes, strict=True):
                loops[label] = _common(loops.get(label, ()), axis)
        order = list(loops)

        def formula(variables: Sequence[Variables]) -> Expression:
            loop = dict(zip(order, variables, strict=True))
            product: Expression | None = None
            for value, labels in read:
                axes = zip(labels, value.axes, strict=True)
                factor = value.formula(
                    [loop[label] if leaves(axis) else () for label, axis in axes]
                )
                product = factor if product is None else _product(product, factor)
            assert product is not None
            return product

        axes = tuple(loops.values())
        own = len(result)
        return self._assigned(name, Value(axes=axes[:own], inner=axes[own:], formula=formula))

    def einsum(self, name: str, equation: str, operands: Sequence[Value]) -> Value:
        """``numpy.einsum`` with an equation that names all axes, those of the result too."""
        equation = equation.replace(" ", "")
        if "." in equation or "->" not in equation:
            raise NotExpressible(f"the equation {equation} without all of its axes")
        terms, result = equation.split("->")
        return self.contract(name, list(zip(operands, terms.split(","), strict=True)), result)

    def matrix_product(self, name: str, left: Value, right: Value) -> Value:
        """``numpy.matmul``: batches are repeated; a vector has no axis of its own in the result."""
        lefts, rights = (
            [f"batch {number}" for number in range(len(value.axes), 0, -1)]
            for value in (left, right)
        )
        lefts[-2:] = ["row", "sum"][-len(lefts) :]
        rights[-2:] = ["sum", "column"][: len(rights)]
        batches = max(lefts[:-2], rights[:-2], key=len)
        result = [*batches, *lefts[-2:-1], *rights[1:][-1:]]
        return self.contract(name, [(left, lefts), (right, rights)], result)

    def affine(self, name: str, left: Value, right: Value, bias: Value | None) -> Value:
        """A product of matrices, and what is added to each row."""
        product = self.matrix_product(name if bias is None else f"{name}_product", left, right)
        return product if bias is None else self.pointwise(Op.ADD, product, bias)

    def power(self, base: Value, exponent: float | None) -> Value:
        """Squares and square roots."""
        match exponent:
            case 2:
                base = self.stored(base)
                return self.pointwise(Op.MULTIPLY, base, base)
            case 0.5:
                return self.function(Function.SQUARE_ROOT, base)
            case -0.5:
                return self.function(Function.RECIPROCAL_SQUARE_ROOT, base)
            case 1:
                return base
        raise NotExpressible(f"a power that is not 2, 1, 0.5 or -0.5: {exponent}")

    def total(self, name: str, operand: Value, along: Sequence[int], *, keeps: bool) -> Value:
        """The sums along axes, which are kept with extent 1 or not."""
        order = len(operand.axes)
        summed = {at % order for at in along}
        kept = [at for at in range(order) if at not in summed]
        found = self.contract(name, [(operand, range(order))], kept)
        shape = [1 if at in summed else extent for at, extent in enumerate(operand.shape)]
        return self.reshape(found, shape) if keeps else found

    def transpose(self, operand: Value, order: Sequence[int]) -> Value:
        """The value with its axes in another order."""
        value = self.stored(operand)

        def formula(variables: Sequence[Variables]) -> Expression:
            back = dict(zip(order, variables, strict=True))
            return value.formula([back[at] for at in range(len(order))])

        axes = tuple(value.axes[at] for at in order)
        long = [at for at in order if leaves(value.axes[at])]
        transposed = value.transposed or long != sorted(long)
        return replace(value, axes=axes, formula=formula, transposed=transposed)

    def reshape(self, operand: Value, shape: Sequence[int]) -> Value:
        """The value with its elements in another shape, in the same order; -1 is what is left."""
        value = self.stored(operand)
        known = prod(extent for extent in shape if extent != -1)
        shape = [prod(value.shape) // known if extent == -1 else extent for extent in shape]
        try:
            axes = regrouped(value.axes, shape)
        except NotAligned:
            raise NotExpressible(
                f"a reshape from {value.shape} to {tuple(shape)}, whose axes have no common factors"
            ) from None

        def formula(variables: Sequence[Variables]) -> Expression:
            names = iter([name for of_axis in variables for name in of_axis])
            return value.formula([tuple(next(names) for _ in leaves(axis)) for axis in value.axes])

        return replace(value, axes=axes, formula=formula)

    def select(self, operand: Value, at: int, coordinate: int) -> Value:
        """The value at one coordinate of an axis, which it does not have any more."""
        value = self.stored(operand)
        at %= len(value.axes)
        axes = (*value.axes[:at], *value.axes[at + 1 :])
        axis = value.axes[at]
        if value.tensor is None or not leaves(axis):

            def only(variables: Sequence[Variables]) -> Expression:
                return value.formula([*variables[:at], (), *variables[at:]])

            return replace(value, axes=axes, formula=only)
        coordinate %= extent_of(axis)
        part = self._part(value.tensor, axis, coordinate)

        def formula(variables: Sequence[Variables]) -> Expression:
            nowhere = ("",) * len(leaves(axis))
            whole = value.formula([*variables[:at], nowhere, *variables[at:]])
            assert isinstance(whole, Access)
            return Access(tensor=part, variables=tuple(filter(None, whole.variables)))

        return replace(value, axes=axes, formula=formula, tensor=part)

    def _part(self, tensor: str, axis: Axis, coordinate: int) -> str:
        """The tensor that has the elements of another one at a coordinate."""
        for name, part in self.parts.items():
            if (part.of, part.axis, part.coordinate) == (tensor, axis, coordinate):
                return name
        name = self.names.fresh(f"{tensor}_{coordinate}")
        self.parts[name] = _Part(of=tensor, axis=axis, coordinate=coordinate)
        return name

    def _place_of(self, name: str) -> Part:
        """The tensor that a part is of, perhaps through other parts, and its place there."""
        chain = [self.parts[name]]
        while chain[-1].of in self.parts:
            chain.append(self.parts[chain[-1].of])
        tensor = chain[-1].of
        factors = [leaf for axis in self.tensors[tensor] for leaf in leaves(axis)]
        place: list[tuple[int, int]] = []
        for part in chain:
            own = leaves(part.axis)
            coordinates = digits(part.coordinate, [leaf.extent for leaf in own])
            place += [(factors.index(leaf), c) for leaf, c in zip(own, coordinates, strict=True)]
        return Part(of=tensor, at=tuple(sorted(place)))

    def divided(self, operand: Value, at: int, count: int) -> Value:
        """The value with an axis of ``count`` equal pieces in front of one of its axes."""
        at %= len(operand.axes)
        shape = list(operand.shape)
        if shape[at] % count:
            raise NotExpressible(f"pieces of different sizes of {shape[at]} coordinates")
        shape[at : at + 1] = [count, shape[at] // count]
        return self.reshape(operand, shape)

    def stored(self, value: Value) -> Value:
        """A value as elements of a tensor, which is assigned if it is not one yet."""
        if value.tensor is not None or value.number is not None:
            return value
        return self._assigned(value.name, value)

    # the program

    def finished(self) -> ModelStatements:
        """The statements, with variables for all axes, and the tensors that they have."""
        variables = _Variables((*self.tensors, *self.parts))
        statements = []
        for statement in self.statements:
            of_axes = variables.of_axes((*statement.value.axes, *statement.value.inner))
            names = [name for axis in of_axes[: len(statement.value.axes)] for name in axis]
            target = Access(tensor=statement.tensor, variables=tuple(names))
            value = statement.value.formula(of_axes)
            statements.append(Definition(target=target, value=value))
        maker = PartsMaker(
            names=self.names,
            variables={
                name: tuple(one for axis in variables.of_axes(axes) for one in axis)
                for name, axes in self.tensors.items()
            },
            shapes={
                name: tuple(leaf.extent for axis in axes for leaf in leaves(axis))
                for name, axes in self.tensors.items()
            },
            weights=self.weights,
            sparse=self.sparse,
        )
        maker.parts |= {name: self._place_of(name) for name in self.parts}
        made = maker.define(
            statements, list(self.inputs.values()), [tensor for tensor, _ in self.outputs.values()]
        )
        used = {access.tensor for each in made for access in (each.target, *accesses(each.value))}
        lines = [
            f"{print_expression(each.target)} = {print_expression(each.value)}" for each in made
        ]
        shapes = {name: maker.shape_of(name) for name in (*maker.shapes, *maker.parts)}
        shapes = {name: shape for name, shape in shapes.items() if name in used}
        weights = {name: array for name, array in self.weights.items() if name in used}
        return ModelStatements(
            text="\n".join(lines),
            sparse=frozenset(self.sparse & used),
            shapes=shapes,
            weights={name: array.reshape(shapes[name]) for name, array in weights.items()},
            inputs={
                name: (tensor, tuple(map(extent_of, self.tensors[tensor])))
                for name, tensor in self.inputs.items()
            },
            outputs=self.outputs,
        )

    # tensors

    def _tensor(self, name: str, axes: tuple[Axis, ...]) -> Value:
        identifier = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "tensor"
        if identifier[0].isdigit():
            identifier = f"tensor_{identifier}"
        tensor = self.names.fresh(identifier)
        self.tensors[tensor] = axes

        def formula(variables: Sequence[Variables]) -> Expression:
            return Access(tensor=tensor, variables=tuple(n for axis in variables for n in axis))

        return Value(axes=axes, formula=formula, tensor=tensor)

    def _assigned(self, name: str, value: Value) -> Value:
        """A new tensor that has a value."""
        axes = tuple(new_axis(extent_of(axis)) for axis in value.axes)
        for axis, like in zip(axes, value.axes, strict=True):
            unite(axis, like)
        tensor = self._tensor(name, axes)
        assert tensor.tensor is not None
        self.statements.append(_Statement(tensor=tensor.tensor, value=value))
        return tensor


class _Variables:
    """Names of index variables: the same one wherever coordinates are the same."""

    def __init__(self, tensors: Sequence[str]) -> None:
        self.names = NameSupply((*tensors, *_LETTERS))
        self.free = iter([letter for letter in _LETTERS if letter not in tensors])
        self.found: dict[Factors, list[str]] = {}

    def of_axes(self, axes: Sequence[Axis]) -> list[Variables]:
        """The variables of each axis of a statement, none of them twice."""
        used: dict[Factors, int] = {}
        named: list[Variables] = []
        for axis in axes:
            names = []
            for leaf in leaves(axis):
                of_factors = self.found.setdefault(leaf.alike, [])
                at = used.get(leaf.alike, 0)
                if at == len(of_factors):
                    of_factors.append(self._new())
                used[leaf.alike] = at + 1
                names.append(of_factors[at])
            named.append(tuple(names))
        return named

    def _new(self) -> str:
        return next(self.free, None) or self.names.fresh("i")


_LETTERS = "ijklmnpqrstuvwabcdefgh"


def _product(left: Expression, right: Expression) -> Expression:
    return Combine(operator=Op.MULTIPLY, left=left, right=right)


def _choice(condition: Expression, value: Expression, otherwise: Expression) -> Expression:
    """A choice by a condition, which may be whether something is zero, or is not."""
    match condition:
        case Choice(value=Number(value=0), otherwise=Number(value=1)):
            return _choice(condition.condition, otherwise, value)
        case Choice(value=Number(value=1), otherwise=Number(value=0)):
            return _choice(condition.condition, value, otherwise)
    return Choice(condition=condition, value=value, otherwise=otherwise)


def _common(left: Axis, right: Axis) -> Axis:
    """The axis of two that have the same coordinates, or of which one is repeated."""
    if leaves(left) and leaves(right):
        if extent_of(left) != extent_of(right):
            raise NotExpressible(f"axes of {extent_of(left)} and {extent_of(right)} coordinates")
        try:
            unite(left, right)
        except NotAligned as error:
            raise NotExpressible(f"an axis that is divided in two ways: {error}") from None
    return left if leaves(left) else right


def _elementwise(parts: Sequence[Value], combine: Callable[..., Expression]) -> Value:
    """What ``combine`` makes of the elements of some values, each repeated along axes it lacks."""
    columns = list(zip_longest(*(reversed(part.axes) for part in parts), fillvalue=()))
    axes = tuple(reduce(_common, column) for column in reversed(columns))

    def formula(variables: Sequence[Variables]) -> Expression:
        own, inner = variables[: len(axes)], iter(variables[len(axes) :])
        return combine(
            *(part.formula([*_of(part, own), *(next(inner) for _ in part.inner)]) for part in parts)
        )

    inner = tuple(axis for part in parts for axis in part.inner)
    return Value(axes=axes, inner=inner, formula=formula)


def _of(value: Value, variables: Sequence[Variables]) -> list[Variables]:
    """The variables of a value's axes, of those of an array in which it is repeated."""
    last = variables[len(variables) - len(value.axes) :]
    return [names if leaves(axis) else () for names, axis in zip(last, value.axes, strict=True)]
