"""Variables, reduction domains, inputs and parameters of a temporal definition."""

from __future__ import annotations

from typing import overload

from t2s.core.checks import whole
from t2s.core.errors import UserError
from t2s.core.expr import Expr, Index, Parameter
from t2s.core.location import user_location
from t2s.core.types import INT32, Type
from t2s.func.conversion import as_index
from t2s.func.expression import (
    Expression,
    Number,
    Symbol,
    as_expression,
    element,
    index_expressions,
)


class _Variable(Expression, Symbol):
    """A symbol that is a value of its own."""

    def __init__(self, name: str, node_type: type[Index] | type[Parameter], type: Type) -> None:
        Symbol.__init__(self, name)
        Expression.__init__(self, node_type(name=name, type=type), {name: self}, self.location)


class Var(_Variable):
    """A loop variable: an index of a definition, or the name of a loop made by a directive."""

    kind = "Var"

    def __init__(self, name: str) -> None:
        super().__init__(name, Index, INT32)


class RVar(_Variable):
    """One dimension of a reduction domain; made by ``RDom``."""

    kind = "RDom"

    def __init__(self, name: str, minimum: Expression, extent: Expression) -> None:
        super().__init__(name, Index, INT32)
        self.minimum = minimum
        self.extent = extent
        self.domain: tuple[RVar, ...] = (self,)


@overload
def RDom(minimum: Number, extent: Number, /, *, name: str) -> RVar: ...


@overload
def RDom(*bounds: Number, name: str) -> tuple[RVar, ...]: ...


def RDom(*bounds: Number, name: str) -> RVar | tuple[RVar, ...]:
    """A reduction domain of one or several dimensions.

    ``k = RDom(0, 64, name="k")`` runs from 0 over 64 values, and
    ``y, x = RDom(0, 3, 0, 5, name="y x")`` has two dimensions, the last one innermost.  A bound may
    be a number, an integer ``Param`` or an affine expression of the definition's variables and of
    outer dimensions, as in ``RDom(0, i + 1, name="k")``.
    """
    location = user_location()
    if not bounds or len(bounds) % 2:
        raise UserError(
            "an RDom needs a minimum and an extent for each dimension",
            location=location,
            expected='for example RDom(0, 64, name="k")',
            given=f"{len(bounds)} bounds",
        )
    count = len(bounds) // 2
    names = name.split() if isinstance(name, str) else []
    if len(names) == 1 and count > 1:
        names = [f"{names[0]}{number}" for number in range(count)]
    if len(names) != count:
        raise UserError(
            f"an RDom of {count} dimension{'s' if count > 1 else ''} needs as many names",
            location=location,
            expected='for example RDom(0, 3, 0, 5, name="y x")',
            given=repr(name),
        )
    twice = next((label for label in names if names.count(label) > 1), None)
    if twice is not None:
        raise UserError(
            f"two dimensions of an RDom are named {twice}",
            location=location,
            expected="a different name for each dimension",
            given=repr(name),
        )
    values = [_bound(bound) for bound in bounds]
    dimensions = tuple(
        RVar(label, values[2 * at], values[2 * at + 1]) for at, label in enumerate(names)
    )
    for dimension in dimensions:
        dimension.domain = dimensions
    return dimensions[0] if count == 1 else dimensions


def _bound(value: Number) -> Expression:
    expression = as_expression(value)
    if not expression.type.is_integer:
        raise UserError(
            "a bound of an RDom has to be an integer",
            location=user_location(),
            expected="an integer, an integer Param or an affine expression",
            given=f"{expression!r} of type {expression.type}",
        )
    node: Expr = as_index(expression.node, expression.location)
    return Expression(node, expression.symbols, expression.location)


class ImageParam(Symbol):
    """An input array of ``rank`` dimensions, row-major: ``A[i, k]`` is ``a[i, k]`` of numpy.

    Its shape follows from how it is used, unless ``shape`` declares it.
    """

    kind = "ImageParam"

    def __init__(
        self, type: Type, rank: int, *, name: str, shape: tuple[int, ...] | None = None
    ) -> None:
        super().__init__(name)
        dimensions = whole(rank)
        if not isinstance(type, Type) or dimensions is None or dimensions < 1:
            raise UserError(
                f"ImageParam {name} needs an element type and a number of dimensions",
                location=self.location,
                expected='for example ImageParam(Float(32), 2, name="A")',
                given=f"{type}, {rank}",
            )
        sizes = _sizes(shape)
        if shape is not None and (sizes is None or len(sizes) != dimensions or min(sizes) < 1):
            raise UserError(
                f"the shape of ImageParam {name} is not one of {rank} dimensions",
                location=self.location,
                expected=f"{rank} positive integer{'s' if rank > 1 else ''}",
                given=repr(shape),
            )
        self.type = type
        self.rank = dimensions
        self.shape = sizes

    def __getitem__(self, indices: object) -> Expression:
        location = user_location()
        parts = index_expressions(f"ImageParam {self.name}", indices, location, self.rank)
        return element(self, self.type, parts, location)


def _sizes(shape: object) -> tuple[int, ...] | None:
    """The extents of a shape, 0 for what is none; ``None`` for what is no list of extents."""
    return tuple(whole(n) or 0 for n in shape) if isinstance(shape, tuple | list) else None


class Param(_Variable):
    """A scalar input, given at run time by name.

    An integer ``Param`` may be used in bounds; then it has to be given when the design is lowered,
    because hardware has a fixed size.
    """

    kind = "Param"

    def __init__(self, type: Type, *, name: str) -> None:
        if not isinstance(type, Type):
            raise UserError(
                f"Param {name} needs an element type",
                location=user_location(),
                expected='for example Param(Float(32), name="alpha")',
                given=repr(type),
            )
        super().__init__(name, Parameter, type)


def variables(names: str) -> tuple[Var, ...]:
    """Several Vars at once: ``i, j = t2s.variables("i j")``."""
    return tuple(Var(name) for name in split_names("variables", names))


def split_names(what: str, names: object) -> list[str]:
    """The names in a text, for a function ``what`` that makes one object of each."""
    if isinstance(names, str):
        return names.split()
    raise UserError(
        f"{what} needs names",
        location=user_location(),
        expected=f'one text with spaces between the names, as in {what}("i j")',
        given=repr(names),
    )
