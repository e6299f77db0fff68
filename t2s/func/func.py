"""What users declare: variables, domains and inputs; ``Func``, with its definition and updates.

Definitions are written by assignment: ``C[i, j] = 0.0`` is the initial (pure) definition, and any
later assignment, such as ``C[i, j] += A[i, k] * B[k, j]``, is an update.  An update runs over the
variables of its left side and the reduction variables that occur in it.

A Func of declared type may be read before it is defined, and its initial definition may read other
elements of itself: recurrences are written as in mathematics.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Self, TypeVar, overload

from t2s.core.errors import UserError
from t2s.core.expr import Expr, Index, Parameter
from t2s.core.location import SourceLocation, user_location
from t2s.core.types import INT32, Type
from t2s.core.validate import as_int
from t2s.func.expressions import (
    Expression,
    Number,
    Symbol,
    Symbols,
    as_expression,
    as_index,
    convert,
    element,
    index_expressions,
    merge_symbols,
    retype,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenDefinition:
    """One definition as the user wrote it."""

    target: tuple[Expression, ...]
    value: Expression
    symbols: Symbols
    location: SourceLocation


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """``func.bound(variable, minimum, extent)``."""

    variable: str
    minimum: Expression
    extent: Expression
    location: SourceLocation


DirectiveT = TypeVar("DirectiveT")


class TemporalFunc(Symbol, Generic[DirectiveT]):
    """The temporal part of a Func; the directives are added in ``t2s.spatial.schedule``."""

    kind = "Func"

    def __init__(self, name: str, type: Type | None = None) -> None:
        super().__init__(name)
        if type is not None and not isinstance(type, Type):
            raise UserError(
                f"the type of Func {name} is not an element type",
                location=self.location,
                expected=f'for example Func("{name}", type=Float(32))',
                given=repr(type),
            )
        self.declared_type = type
        self.written: list[WrittenDefinition] = []
        self.bounds: list[Bound] = []
        self.plan: list[DirectiveT] = []

    @property
    def type(self) -> Type:
        """The element type; weak until a typed value has been assigned."""
        if self.declared_type is not None:
            return self.declared_type
        for definition in self.written:
            if not definition.value.type.weak:
                return definition.value.type
        return self.written[0].value.type

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of the dimensions, from the initial definition."""
        return tuple(name for name in map(index_name, self.written[0].target) if name is not None)

    def __getitem__(self, indices: object) -> Expression:
        location = user_location()
        if not self.written and self.declared_type is None:
            raise UserError(
                f"Func {self.name} is used before it is defined",
                location=location,
                expected=f"a definition such as {self.name}[i, j] = ... above this line",
                notes=((self.location, f"Func {self.name} was made here"),),
                hint="an accumulation needs an initial value, C[i, j] = 0.0 before +=; "
                f"for a recurrence declare the type: Func({self.name!r}, type=...)",
            )
        rank = len(self.written[0].target) if self.written else None
        parts = index_expressions(f"Func {self.name}", indices, location, rank)
        return element(self, self.type, parts, location)

    def __setitem__(self, indices: object, value: object) -> None:
        location = user_location()
        rank = len(self.written[0].target) if self.written else None
        target = index_expressions(f"Func {self.name}", indices, location, rank)
        expression = as_expression(value)
        symbols = merge_symbols(
            location, {self.name: self}, expression.symbols, *(part.symbols for part in target)
        )
        if not self.written:
            self._check_initial(target, expression, symbols, location)
        self._check_type(expression, location)
        self.written.append(
            WrittenDefinition(target=target, value=expression, symbols=symbols, location=location)
        )

    def bound(self, variable: Var, minimum: object, extent: object) -> Self:
        """Set the range of an argument: ``extent`` values from ``minimum``.  Returns the Func.

        Both may be affine in arguments that stand before ``variable``: ``bound(j, i, n - i)``.
        """
        location = user_location()
        if not isinstance(variable, Var):
            raise UserError(
                f"bound on {self.name} needs a Var as its first argument",
                location=location,
                expected=f"for example {self.name}.bound(i, 0, 32)",
                given=repr(variable),
            )
        low, size = as_expression(minimum), as_expression(extent)
        for value in (low, size):
            if not value.type.is_integer:
                raise UserError(
                    f"bound({variable.name}) on {self.name} needs integers",
                    location=location,
                    expected="a minimum and an extent",
                    given=f"{value!r} of type {value.type}",
                )
        for known in self.bounds:
            if known.variable == variable.name:
                raise UserError(
                    f"bound({variable.name}) on {self.name} is given twice",
                    location=location,
                    expected="one bound for each dimension",
                    notes=((known.location, f"{variable.name} was bounded here"),),
                )
        low, size = (self._as_bound(value) for value in (low, size))
        self.bounds.append(
            Bound(variable=variable.name, minimum=low, extent=size, location=location)
        )
        return self

    def _as_bound(self, value: Expression) -> Expression:
        """The bound in int32, even if it contains numpy integers."""
        if value.type.weak or value.type == INT32:
            return value
        return Expression(as_index(value.node, value.location), value.symbols, value.location)

    def _check_initial(
        self,
        target: tuple[Expression, ...],
        value: Expression,
        symbols: Symbols,
        location: SourceLocation,
    ) -> None:
        names = [name for name in map(index_name, target) if name is not None]
        if len(names) != len(target):
            raise UserError(
                f"the initial definition of {self.name} needs a plain Var for each dimension",
                location=location,
                expected=f"for example {self.name}[i, j] = ...",
                given=f"{self.name}[{', '.join(map(repr, target))}]",
                hint="start with a definition for all elements, then update some of them",
            )
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise UserError(
                f"the same Var {twice} is used twice on the left side of {self.name}",
                location=location,
                expected="a different Var for each dimension",
                given=f"{self.name}[{', '.join(names)}]",
            )
        for symbol in symbols.values():
            if isinstance(symbol, RVar):
                raise UserError(
                    f"the initial definition of {self.name} uses the reduction variable "
                    f"{symbol.name}",
                    location=location,
                    expected="only Vars; reductions belong into updates",
                    hint=f"write {self.name}[...] = 0 first, then {self.name}[...] += ...",
                )
            if isinstance(symbol, Var) and symbol.name not in names:
                raise UserError(
                    f"the Var {symbol.name} is not an argument of {self.name}",
                    location=location,
                    expected=f"one of {', '.join(names)}",
                    given=symbol.name,
                    hint="a variable that is summed over is an RDom",
                )

    def _check_type(self, value: Expression, location: SourceLocation) -> None:
        if not self.written and self.declared_type is None:
            return
        wanted = self.type
        given = value.type
        if given == wanted or (given.weak and (wanted.is_float or not given.is_float)):
            return
        if wanted.weak and (given.is_float or not wanted.is_float):
            return
        first = self.written[0].location if self.written else self.location
        raise UserError(
            f"this definition gives {self.name} values of another type",
            location=location,
            expected=str(wanted),
            given=str(given),
            notes=((first, f"{self.name} got the type {wanted} here"),),
            hint=f"cast the value with t2s.cast, or declare Func({self.name!r}, type=...)",
        )


def index_name(part: Expression) -> str | None:
    """The name of a plain variable, or ``None`` for any other expression."""
    return part.node.name if isinstance(part.node, Index) else None


def typed_value(func: TemporalFunc[DirectiveT], written: WrittenDefinition) -> Expression:
    """The value of a definition with its final, strong type."""
    target = func.type.strengthened()
    node = convert(written.value.node, target, written.location)
    return Expression(retype(node, target), written.symbols, written.location)


# Variables, reduction domains, inputs and parameters of a temporal definition.


class _Variable(Expression, Symbol):
    """A symbol that can be used as a value."""

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
        dimensions = as_int(rank)
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
    """The extents of a shape, 0 for an invalid one; ``None`` if it is not a list of extents."""
    return tuple(as_int(n) or 0 for n in shape) if isinstance(shape, tuple | list) else None


class Param(_Variable):
    """A scalar input, given at run time by name.

    An integer ``Param`` may be used in bounds; then it has to be given when the design is lowered,
    because the size of hardware is fixed.
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
    """The names in a text; ``what`` is the calling function, for errors."""
    if isinstance(names, str):
        return names.split()
    raise UserError(
        f"{what} needs names",
        location=user_location(),
        expected=f'one text with spaces between the names, as in {what}("i j")',
        given=repr(names),
    )
