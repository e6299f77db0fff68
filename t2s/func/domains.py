"""The ranges of arguments and reduction variables: given by the user or inferred from reads.

A domain is a nest of dimensions, each affine in those outside of it, and its hull box, which is
what arrays hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from t2s.core.errors import UserError
from t2s.core.expr import Cast, Const, Expr, Index, Parameter, const, index_names, simplify
from t2s.core.isl import LoopDomain, is_affine
from t2s.core.location import SourceLocation
from t2s.core.printer import show
from t2s.core.types import INT32, value_range
from t2s.core.walk import Term, rewrite, walk
from t2s.func.accesses import AccessRange
from t2s.func.collect import AnyFunc
from t2s.func.expression import Expression
from t2s.func.func import Bound, WrittenDefinition
from t2s.func.ir import Definition, Dimension
from t2s.func.symbols import RVar
from t2s.func.systems import Unit

Range = tuple[int, int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A bound and the Func that it was given on."""

    func: AnyFunc
    bound: Bound


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionDomain:
    """The dimensions of a Func's arguments and (minimum, extent) of each, over all rows."""

    dimensions: tuple[Dimension, ...]
    box: tuple[tuple[int, int], ...]

    @property
    def is_box(self) -> bool:
        return all(map(_is_constant, self.dimensions))

    @property
    def points(self) -> LoopDomain:
        return LoopDomain([dimension.interval for dimension in self.dimensions])

    def only(self, names: Sequence[str]) -> FunctionDomain:
        """The domain of a member that has the first of the dimensions."""
        count = len(names)
        return FunctionDomain(dimensions=self.dimensions[:count], box=self.box[:count])


def _is_constant(dimension: Dimension) -> bool:
    return isinstance(dimension.minimum, Const) and isinstance(dimension.extent, Const)


def replace_parameters(node: Expr, constants: Mapping[str, int]) -> Expr:
    """The expression with numbers for the parameters whose values are known."""

    def rule(term: Term) -> Term | None:
        if isinstance(term, Parameter) and term.name in constants:
            return Const(value=constants[term.name], type=term.type)
        return None

    return rewrite(node, rule)


def with_constants(
    expression: Expression, constants: Mapping[str, int], location: SourceLocation
) -> Expr:
    """A bound with the parameters replaced by their values."""
    node = simplify(replace_parameters(expression.node, constants))
    missing = [part.name for part in walk(node) if isinstance(part, Parameter)]
    if missing:
        raise UserError(
            f"the Param {missing[0]} is used in a bound and has no value",
            location=location,
            expected=f"a number for it, as in t2s.lower(func, {missing[0]}=64)",
            hint="hardware has a fixed size; interpret and simulate take it among the inputs",
        )
    return node


def unit_domain(
    unit: Unit,
    needed: Mapping[str, Range],
    constants: Mapping[str, int],
) -> FunctionDomain:
    """The domain of one Func, or the domain that the members of a system share.

    ``needed`` has the smallest and the largest value of each argument that is read from outside.
    Bounds given on one member count for all.
    """
    arguments = (*unit.arguments, *([unit.lanes] if unit.lanes is not None else []))
    given = _given_bounds(unit, constants)
    dimensions: list[Dimension] = []
    box: list[tuple[int, int]] = []
    for name in arguments:
        known = needed.get(name)
        if name in given:
            dimension = _given_dimension(given[name], dimensions, constants)
        elif known is not None:
            low, extent = const(known[0]), const(known[1] - known[0] + 1)
            dimension = Dimension(name=name, minimum=low, extent=extent, reduction=False)
        else:
            func = next(func for func in unit.funcs if name in func.arguments)
            raise UserError(
                f"the range of {name} in {func.name} is not known",
                location=func.location,
                expected=f"{func.name}.bound({name}, minimum, extent)",
                hint="the output, and a Func read at data-dependent places, need bounds",
            )
        dimensions.append(dimension)
        box.append(_hull(dimensions, given.get(name)))
        _check_countable(unit, name, box[-1], given.get(name))
    if unit.lanes is not None and not _is_constant(dimensions[-1]):
        bound = given[unit.lanes].bound
        raise UserError(
            f"bound({unit.lanes}) on {given[unit.lanes].func.name} is not a constant",
            location=bound.location,
            expected=f"numbers: {unit.lanes} is an argument of some members only",
            given=_range_text(unit.lanes, dimensions[-1].minimum, dimensions[-1].extent),
        )
    return FunctionDomain(dimensions=tuple(dimensions), box=tuple(box))


def _given_bounds(unit: Unit, constants: Mapping[str, int]) -> dict[str, Given]:
    given: dict[str, Given] = {}
    for func in unit.funcs:
        for bound in func.bounds:
            if bound.variable not in func.arguments:
                raise UserError(
                    f"bound({bound.variable}) on {func.name}: {func.name} has no such argument",
                    location=bound.location,
                    expected=f"one of {', '.join(func.arguments)}",
                    given=bound.variable,
                )
            known = given.setdefault(bound.variable, Given(func=func, bound=bound))
            texts = [_text(one, constants) for one in (known.bound, bound)]
            if texts[0] != texts[1]:
                raise UserError(
                    f"bound({bound.variable}) on {func.name} and on {known.func.name} differ, "
                    "but they are computed in the same loops",
                    location=bound.location,
                    expected=texts[0],
                    given=texts[1],
                    notes=((known.bound.location, f"{known.func.name} is bounded here"),),
                    hint="a Func whose arguments have other names has loops of its own",
                )
    return given


def _text(bound: Bound, constants: Mapping[str, int]) -> str:
    low, extent = (
        with_constants(part, constants, bound.location) for part in (bound.minimum, bound.extent)
    )
    return _range_text(bound.variable, low, extent)


def _range_text(name: str, minimum: Expr, extent: Expr) -> str:
    return f"{name} from {show(minimum)}, {show(extent)} values"


def _given_dimension(
    given: Given, outer: Sequence[Dimension], constants: Mapping[str, int]
) -> Dimension:
    bound = given.bound
    what = f"bound({bound.variable}) on {given.func.name}"
    nodes = [with_constants(part, constants, bound.location)
             for part in (bound.minimum, bound.extent)]  # fmt: skip
    known = [dimension.name for dimension in outer]
    for node in nodes:
        unknown = sorted(index_names(node) - set(known))
        if unknown or not is_affine(node):
            raise UserError(
                f"{what} uses {unknown[0]}, which is no argument before {bound.variable}"
                if unknown
                else f"{what} is not affine",
                location=bound.location,
                expected="numbers, integer Params"
                + (f", and {', '.join(known)} with constant factors" if known else ""),
                given=show(node),
            )
    if isinstance(nodes[1], Const) and nodes[1].value < 1:
        raise UserError(
            f"{what} is empty",
            location=bound.location,
            expected="an extent of at least 1",
            given=str(nodes[1].value),
        )
    low, extent = map(_index_typed, nodes)
    return Dimension(name=bound.variable, minimum=low, extent=extent, reduction=False)


def _index_typed(node: Expr) -> Expr:
    if isinstance(node, Const):
        return const(int(node.value))
    return node if node.type == INT32 else Cast(value=node, type=INT32)


def _hull(dimensions: Sequence[Dimension], given: Given | None) -> tuple[int, int]:
    """Minimum and extent of the last dimension over all values of the others."""
    last = dimensions[-1]
    if isinstance(last.minimum, Const) and isinstance(last.extent, Const):
        return int(last.minimum.value), int(last.extent.value)
    domain = LoopDomain([dimension.interval for dimension in dimensions])
    found = domain.range_of(Index(name=last.name))
    if found is None and given is not None:
        raise UserError(
            f"bound({last.name}) on {given.func.name} is empty",
            location=given.bound.location,
            expected="an extent of at least 1 for some values of "
            + ", ".join(dimension.name for dimension in dimensions[:-1]),
            given=show(last.extent),
        )
    assert found is not None
    return found[0], found[1] - found[0] + 1


def _check_countable(unit: Unit, name: str, box: tuple[int, int], given: Given | None) -> None:
    """Indices are of 32 bits; distances from the first one, too."""
    low, high = box[0], box[0] + box[1] - 1
    most = value_range(INT32)[1]
    if -most <= low and high <= most:
        return
    func = next(func for func in unit.funcs if name in func.arguments)
    raise UserError(
        f"bound({name}) on {func.name} goes beyond what an index can count",
        location=func.location if given is None else given.bound.location,
        expected=f"{name} from {-most} to {most}",
        given=f"{name} from {low} to {high}",
        hint=f"count {name} from 0, and add the distance where {name} is used as a value",
    )


def check_inside(func: AnyFunc, domain: FunctionDomain, accesses: Iterable[AccessRange]) -> None:
    """Prove that reads (or writes) of a Func stay inside of its domain."""
    for access in accesses:
        for position, found in enumerate(access.ranges):
            low, extent = domain.box[position]
            if found is None or (low <= found[0] and found[1] < low + extent):
                continue
            name = func.arguments[position]
            raise UserError(
                f"{access.text} is outside of the bounds of {func.name}",
                location=access.location,
                expected=f"{name} from {low} to {low + extent - 1}",
                given=f"{found[0]} to {found[1]}",
                hint=f"widen {func.name}.bound({name}, ...), or guard the access with t2s.select",
            )
        if not domain.is_box:
            _check_rows(func, domain, access)


def _check_rows(func: AnyFunc, domain: FunctionDomain, access: AccessRange) -> None:
    """The proof where the bounds of some arguments depend on others."""
    ranges = "; ".join(
        _range_text(d.name, d.minimum, d.extent)
        for d in domain.dimensions
        if index_names(d.minimum) | index_names(d.extent)
    )
    unknown = [
        show(index)
        for index, found in zip(access.indices, access.ranges, strict=True)
        if found is None
    ]
    outside = None if unknown else access.domain.leaves(access.indices, domain.points)
    if unknown or outside is not None:
        raise UserError(
            f"{access.text} is outside of the bounds of {func.name}"
            if not unknown
            else f"{access.text} cannot be proved to stay inside of the bounds of {func.name}",
            location=access.location,
            expected=ranges,
            given=outside if outside is not None else f"the subscript {', '.join(unknown)}",
            hint=f"widen {func.name}.bound(...), or guard the access with t2s.select",
        )


def check_lanes(func: AnyFunc, definition: Definition, shared: FunctionDomain) -> None:
    """A member's update reduces over the whole range of the lanes."""
    for found in definition.reductions:
        lanes = shared.dimensions[-1]
        if (found.minimum, found.extent) != (lanes.minimum, lanes.extent):
            raise UserError(
                f"the RDom {found.name} of {func.name} is not the range of {lanes.name}",
                location=definition.location,
                expected=_range_text(found.name, lanes.minimum, lanes.extent),
                given=_range_text(found.name, found.minimum, found.extent),
                hint=f"a member of a recurrence reduces over all lanes {lanes.name}",
            )


def reduction_dimensions(
    written: WrittenDefinition, constants: Mapping[str, int], outer: set[str]
) -> list[Dimension]:
    """The reduction variables of an update, outermost first, as dimensions."""
    known = set(outer)
    dimensions: list[Dimension] = []
    domains: list[tuple[RVar, ...]] = []
    for symbol in written.symbols.values():
        if isinstance(symbol, RVar) and all(symbol.domain is not seen for seen in domains):
            domains.append(symbol.domain)
    for variable in (variable for domain in domains for variable in domain):
        low = with_constants(variable.minimum, constants, variable.location)
        extent = with_constants(variable.extent, constants, variable.location)
        unknown = (index_names(low) | index_names(extent)) - known
        if unknown:
            raise UserError(
                f"the bounds of RDom {variable.name} use {sorted(unknown)[0]}, "
                "which is not an outer dimension of this definition",
                location=variable.location,
                expected=f"only {', '.join(sorted(known)) or 'numbers'}",
                notes=((written.location, "used by the definition here"),),
            )
        for bound in (low, extent):
            if not is_affine(bound):
                raise UserError(
                    f"a bound of RDom {variable.name} is not affine",
                    location=variable.location,
                    expected="sums of integers, Vars and outer dimensions, with constant factors",
                    given=show(bound),
                )
        if isinstance(extent, Const) and extent.value < 1:
            raise UserError(
                f"RDom {variable.name} is empty",
                location=variable.location,
                expected="an extent of at least 1",
                given=str(extent.value),
            )
        known.add(variable.name)
        dimensions.append(Dimension(name=variable.name, minimum=low, extent=extent, reduction=True))
    return dimensions
