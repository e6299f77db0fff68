"""Freezing: the user's Funcs become a ``TemporalProgram``; the ranges of their arguments.

What goes in: the output Funcs, bounds, and values for the integer parameters used in bounds.
What comes out: every function they need, in dependence order, with bounds (given, or inferred from
the reads of the consumers), the systems of recurrences, and the inputs with their shapes.
What is refused: undefined Funcs, missing bounds, recursion that is not a uniform recurrence or has
no legal order, variables that are neither on the left side nor reduction variables, reads out of
bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import cast

from t2s.core.errors import UnsupportedError, UserError
from t2s.core.expr import (
    Cast,
    Const,
    Expr,
    Index,
    Parameter,
    Read,
    const,
    index_names,
    simplify,
    substitute,
)
from t2s.core.isl import Interval, LoopDomain, is_affine
from t2s.core.location import SourceLocation, user_location
from t2s.core.printer import show
from t2s.core.types import INT32, Type, value_range
from t2s.core.validate import as_int
from t2s.core.walk import Term, distinct, rewrite, walk
from t2s.func.accesses import (
    AccessRange,
    access_ranges,
    hull,
    unconditional_ranges,
    without_dead_reads,
)
from t2s.func.collect import AnyFunc, global_symbols, needed_funcs, output_funcs
from t2s.func.expressions import Expression, Symbol, retype
from t2s.func.func import Bound, ImageParam, Param, RVar, WrittenDefinition, index_name, typed_value
from t2s.func.ir import (
    Definition,
    Dimension,
    Function,
    InputArray,
    InputScalar,
    System,
    TemporalProgram,
)
from t2s.func.systems import Unit, group, iteration_order

MOST_TERMS = 100_000
"""Most terms (operators, reads, numbers) of one definition."""


@dataclass
class _State:
    """The state of freezing while the functions are visited, consumers first."""

    constants: Mapping[str, int]
    types: dict[str, Type]
    ranges: dict[str, list[AccessRange]] = field(default_factory=dict)
    written: list[tuple[Expr, Sequence[Interval], SourceLocation]] = field(default_factory=list)
    """Values of definitions with the branches that are never taken, their loops and their lines."""

    def resolve(self, node: Expr) -> Expr:
        """The expression with the values of the parameters that are known."""
        return simplify(replace_parameters(node, self.constants))

    @cached_property
    def reads_of_all_branches(self) -> dict[str, list[AccessRange]]:
        """Reads as if every branch were taken, for inputs that only dead branches read.

        Such a branch may be alive for other sizes, and its input needs a shape, too.
        """
        reads_by_source: dict[str, list[AccessRange]] = {}
        for written in self.written:
            for access in unconditional_ranges(*written):
                reads_by_source.setdefault(access.source, []).append(access)
        return reads_by_source


def freeze(
    design: AnyFunc | Sequence[AnyFunc], constants: Mapping[str, int] | None = None
) -> TemporalProgram:
    """Freeze the program that computes a Func, or several.

    ``constants`` gives values to integer ``Param`` objects by name; those used in bounds must be
    given.  Raises ``UserError``.
    """
    outputs = output_funcs(design)
    functions = needed_funcs(outputs)
    everything = global_symbols(functions)
    _check_constants(everything, constants or {})
    state = _State(
        constants=dict(constants or {}),
        types={func.name: func.type.strengthened() for func in functions},
    )
    frozen: list[Function] = []
    systems: list[System] = []
    for unit in reversed(group(functions, state.resolve)):
        members, system = _freeze_unit(unit, state)
        frozen = [*members, *frozen]
        systems = [*([system] if system is not None else []), *systems]
    params = [symbol for symbol in everything.values() if isinstance(symbol, Param)]
    return TemporalProgram(
        outputs=tuple(output.name for output in outputs),
        functions=tuple(frozen),
        systems=tuple(systems),
        inputs=tuple(
            _freeze_input(symbol, state)
            for symbol in everything.values()
            if isinstance(symbol, ImageParam)
        ),
        parameters=tuple(
            InputScalar(name=param.name, type=param.type, location=param.location)
            for param in params
            if param.name not in state.constants
        ),
    )


def _check_constants(everything: Mapping[str, Symbol], constants: Mapping[str, object]) -> None:
    params = {name: symbol for name, symbol in everything.items() if isinstance(symbol, Param)}
    for name, value in constants.items():
        if name not in params:
            raise UserError(
                f"the program has no Param {name}",
                location=user_location(),
                expected=f"one of {', '.join(params)}" if params else "no values",
                given=f"{name}={value!r}",
            )
        type = params[name].type
        low, high = value_range(type)
        number = as_int(value)
        if not type.is_integer or number is None or not low <= number <= high:
            raise UserError(
                f"the Param {name} cannot have this value when the design is lowered",
                location=user_location(),
                expected=f"{low} to {high}" if type.is_integer else "a Param of integer type",
                given=f"{name}={value!r}" if type.is_integer else f"{name} of type {type}",
                notes=((params[name].location, f"Param {name} was made here"),),
            )


def _freeze_unit(unit: Unit, state: _State) -> tuple[list[Function], System | None]:
    """The functions of a unit; all members of a system share one domain."""
    domain = unit_domain(unit, _needed(unit, state), state.constants)
    for func in unit.funcs:
        check_inside(func, domain.only(func.arguments), state.ranges.get(func.name, []))
    ordered = iteration_order(unit, state.resolve) if unit.is_system else unit.funcs
    functions = [_freeze_function(func, unit, domain, state) for func in ordered]
    if not unit.is_system:
        return functions, None
    count = len(unit.arguments)
    system = System(
        members=tuple(func.name for func in ordered),
        domain=domain.dimensions[:count],
        lanes=domain.dimensions[count] if unit.lanes is not None else None,
    )
    return functions, system


def _needed(unit: Unit, state: _State) -> dict[str, tuple[int, int] | None]:
    """The range of each argument that Funcs outside of the unit read, as far as it is known."""
    ranges: dict[str, list[tuple[int, int] | None]] = {}
    for func in unit.funcs:
        box = hull(state.ranges.get(func.name, []), len(func.arguments))
        for name, part in zip(func.arguments, box or (), strict=bool(box)):
            ranges.setdefault(name, []).append(part)
    result: dict[str, tuple[int, int] | None] = {}
    for name, parts in ranges.items():
        known = [part for part in parts if part is not None]
        exact = len(known) == len(parts)
        result[name] = (min(p[0] for p in known), max(p[1] for p in known)) if exact else None
    return result


def _freeze_function(func: AnyFunc, unit: Unit, shared: FunctionDomain, state: _State) -> Function:
    members = {member.name: member for member in unit.funcs}
    domain = shared.only(func.arguments)
    definitions: list[Definition] = []
    for written in func.written:
        definition = _freeze_definition(func, written, domain, state)
        definitions.append(definition)
        if unit.is_system:
            check_lanes(func, definition, shared)
        for access in (*access_ranges(definition), *_target_ranges(definition)):
            source = members.get(access.source)
            if source is not None:
                check_inside(source, shared.only(source.arguments), [access])
            else:
                state.ranges.setdefault(access.source, []).append(access)
    return Function(
        name=func.name,
        type=state.types[func.name],
        arguments=func.arguments,
        bounds=domain.box,
        initial=definitions[0],
        updates=tuple(definitions[1:]),
        location=func.location,
    )


def _freeze_definition(
    func: AnyFunc, written: WrittenDefinition, bounds: FunctionDomain, state: _State
) -> Definition:
    value = typed_value(func, written)
    _check_length(func, written)
    pure = _pure_dimensions(func, written, bounds, state)
    domain = [
        *pure.values(),
        *reduction_dimensions(written, state.constants, set(pure)),
    ]
    known = {dimension.name for dimension in domain}
    nodes = [value.node, *(part.node for part in written.target)]
    for name in sorted(index_names_of(nodes) - known):
        raise UserError(
            f"the Var {name} is not on the left side of this definition of {func.name}",
            location=written.location,
            expected=f"one of {', '.join(sorted(known))}",
            given=name,
            hint=f'to reduce over it: {name} = RDom(0, extent, name="{name}")',
        )
    intervals = [dimension.interval for dimension in domain]
    typed = _with_final_types(replace_parameters(value.node, state.constants), state.types)
    state.written.append((typed, intervals, written.location))
    return Definition(
        function=func.name,
        target=tuple(state.resolve(part.node) for part in written.target),
        value=without_dead_reads(typed, intervals),
        domain=tuple(domain),
        location=written.location,
    )


def _check_length(func: AnyFunc, written: WrittenDefinition) -> None:
    terms = distinct(written.value.node)
    if next(islice(terms, MOST_TERMS, None), None) is not None:
        raise UserError(
            f"the definition of {func.name} is too long",
            location=written.location,
            expected=f"at most {MOST_TERMS:,} terms in one definition",
            given="more",
            hint="write a sum of many terms as a reduction over an RDom: it takes one adder",
        )


def _pure_dimensions(
    func: AnyFunc, written: WrittenDefinition, bounds: FunctionDomain, state: _State
) -> dict[str, Dimension]:
    """The dimensions of the Vars on a left side, which may stand in places of other arguments."""
    pure: dict[str, Dimension] = {}
    places = {
        name: state.resolve(part.node)
        for name, part in zip(func.arguments, written.target, strict=True)
    }
    for position, part in enumerate(written.target):
        name = index_name(part)
        if name is None or isinstance(written.symbols[name], RVar):
            continue
        left = f"{func.name}[{', '.join(map(repr, written.target))}]"
        if name in pure:
            raise UserError(
                f"the same Var {name} is used twice on the left side of {func.name}",
                location=written.location,
                expected="a different Var for each dimension",
                given=left,
            )
        dimension = bounds.dimensions[position]
        low = substitute(dimension.minimum, places)
        extent = substitute(dimension.extent, places)
        unknown = (index_names(low) | index_names(extent)) - set(pure)
        if unknown or not (is_affine(low) and is_affine(extent)):
            raise UnsupportedError(
                f"the range of {name} in this update of {func.name} depends on other subscripts",
                location=written.location,
                expected=f"Vars for the arguments that the bounds of {dimension.name} use",
                given=left,
            )
        pure[name] = Dimension(name=name, minimum=low, extent=extent, reduction=False)
    return pure


def frozen_part(
    node: Expr, default: Type, constants: Mapping[str, int], types: Mapping[str, Type]
) -> Expr:
    """A part of a definition, rewritten as it stands in the frozen program.

    ``default`` is the type of an untyped part, ``constants`` are the values of Params and
    ``types`` the final types of the Funcs.
    """
    typed = retype(node, default) if node.type.weak else node
    return _with_final_types(replace_parameters(typed, constants), types)


def index_names_of(nodes: Iterable[Expr]) -> set[str]:
    """All index names in several expressions."""
    return set().union(*(index_names(node) for node in nodes))


def _with_final_types(node: Expr, types: Mapping[str, Type]) -> Expr:
    """Give the final type to reads that were written while a Func's type was still open."""

    def rule(term: Term) -> Term | None:
        if isinstance(term, Read) and term.source in types and types[term.source] != term.type:
            actual = replace(term, type=types[term.source])
            return Cast(value=actual, type=term.type.strengthened())
        return None

    return simplify(rewrite(node, rule))


def _target_ranges(definition: Definition) -> list[AccessRange]:
    written = Read(
        source=definition.function,
        indices=definition.target,
        type=definition.value.type,
        location=definition.location,
    )
    return access_ranges(replace(definition, value=written))


def _freeze_input(symbol: ImageParam, state: _State) -> InputArray:
    accesses = state.ranges.get(symbol.name, [])
    needed = hull(accesses or state.reads_of_all_branches.get(symbol.name, []), symbol.rank)
    shape: list[int] = []
    for position in range(symbol.rank):
        extent = needed[position] if needed is not None else None
        declared = symbol.shape[position] if symbol.shape is not None else None
        if declared is None and extent is None:
            raise UserError(
                f"the shape of ImageParam {symbol.name} is not known in dimension {position}",
                location=symbol.location,
                expected="an affine subscript, or a declared shape",
                hint=f"declare it: ImageParam(type, rank, name={symbol.name!r}, shape=(...))",
            )
        limit = declared if declared is not None else max(cast(tuple[int, int], extent)[1], 0) + 1
        for access in accesses:
            reached = access.ranges[position]
            if reached is not None and (reached[0] < 0 or reached[1] >= limit):
                raise UserError(
                    f"{access.text} is outside of the input {symbol.name}",
                    location=access.location,
                    expected=f"subscript {position} from 0 to {limit - 1}",
                    given=f"{reached[0]} to {reached[1]}",
                    hint="guard the access with t2s.select(condition, inside, outside)",
                )
        shape.append(limit)
    return InputArray(
        name=symbol.name, type=symbol.type, shape=tuple(shape), location=symbol.location
    )


# The ranges of arguments and reduction variables: given by the user or inferred from reads.
#
# A domain is a nest of dimensions, each affine in those outside of it, and its hull box, which is
# what arrays hold.

Range = tuple[int, int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredRange:
    """A bound and the Func it was declared on."""

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
    declared = _given_bounds(unit, constants)
    dimensions: list[Dimension] = []
    box: list[tuple[int, int]] = []
    for name in arguments:
        known = needed.get(name)
        if name in declared:
            dimension = _given_dimension(declared[name], dimensions, constants)
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
        box.append(_hull(dimensions, declared.get(name)))
        _check_countable(unit, name, box[-1], declared.get(name))
    if unit.lanes is not None and not _is_constant(dimensions[-1]):
        bound = declared[unit.lanes].bound
        raise UserError(
            f"bound({unit.lanes}) on {declared[unit.lanes].func.name} is not a constant",
            location=bound.location,
            expected=f"numbers: {unit.lanes} is an argument of some members only",
            given=_range_text(unit.lanes, dimensions[-1].minimum, dimensions[-1].extent),
        )
    return FunctionDomain(dimensions=tuple(dimensions), box=tuple(box))


def _given_bounds(unit: Unit, constants: Mapping[str, int]) -> dict[str, DeclaredRange]:
    declared: dict[str, DeclaredRange] = {}
    for func in unit.funcs:
        for bound in func.bounds:
            if bound.variable not in func.arguments:
                raise UserError(
                    f"bound({bound.variable}) on {func.name}: {func.name} has no such argument",
                    location=bound.location,
                    expected=f"one of {', '.join(func.arguments)}",
                    given=bound.variable,
                )
            known = declared.setdefault(bound.variable, DeclaredRange(func=func, bound=bound))
            texts = [_text(range_, constants) for range_ in (known.bound, bound)]
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
    return declared


def _text(bound: Bound, constants: Mapping[str, int]) -> str:
    low, extent = (
        with_constants(part, constants, bound.location) for part in (bound.minimum, bound.extent)
    )
    return _range_text(bound.variable, low, extent)


def _range_text(name: str, minimum: Expr, extent: Expr) -> str:
    return f"{name} from {show(minimum)}, {show(extent)} values"


def _given_dimension(
    declared: DeclaredRange, outer: Sequence[Dimension], constants: Mapping[str, int]
) -> Dimension:
    bound = declared.bound
    what = f"bound({bound.variable}) on {declared.func.name}"
    nodes = [with_constants(part, constants, bound.location)
             for part in (bound.minimum, bound.extent)]  # fmt: skip
    known = [dimension.name for dimension in outer]
    for node in nodes:
        unknown = sorted(index_names(node) - set(known))
        if unknown or not is_affine(node):
            raise UserError(
                f"{what} uses {unknown[0]}, which is not an argument before {bound.variable}"
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


def _hull(dimensions: Sequence[Dimension], declared: DeclaredRange | None) -> tuple[int, int]:
    """Minimum and extent of the last dimension over all values of the others."""
    last = dimensions[-1]
    if isinstance(last.minimum, Const) and isinstance(last.extent, Const):
        return int(last.minimum.value), int(last.extent.value)
    domain = LoopDomain([dimension.interval for dimension in dimensions])
    range_ = domain.range_of(Index(name=last.name))
    if range_ is None and declared is not None:
        raise UserError(
            f"bound({last.name}) on {declared.func.name} is empty",
            location=declared.bound.location,
            expected="an extent of at least 1 for some values of "
            + ", ".join(dimension.name for dimension in dimensions[:-1]),
            given=show(last.extent),
        )
    assert range_ is not None
    return range_[0], range_[1] - range_[0] + 1


def _check_countable(
    unit: Unit, name: str, box: tuple[int, int], declared: DeclaredRange | None
) -> None:
    """Indices and their distances from the first one must fit in 32 bits."""
    low, high = box[0], box[0] + box[1] - 1
    most = value_range(INT32)[1]
    if -most <= low and high <= most:
        return
    func = next(func for func in unit.funcs if name in func.arguments)
    raise UserError(
        f"bound({name}) on {func.name} goes beyond what an index can count",
        location=func.location if declared is None else declared.bound.location,
        expected=f"{name} from {-most} to {most}",
        given=f"{name} from {low} to {high}",
        hint=f"count {name} from 0, and add the distance where {name} is used as a value",
    )


def check_inside(func: AnyFunc, domain: FunctionDomain, accesses: Iterable[AccessRange]) -> None:
    """Prove that reads (or writes) of a Func stay inside its domain."""
    for access in accesses:
        for position, range_ in enumerate(access.ranges):
            low, extent = domain.box[position]
            if range_ is None or (low <= range_[0] and range_[1] < low + extent):
                continue
            name = func.arguments[position]
            raise UserError(
                f"{access.text} is outside of the bounds of {func.name}",
                location=access.location,
                expected=f"{name} from {low} to {low + extent - 1}",
                given=f"{range_[0]} to {range_[1]}",
                hint=f"widen {func.name}.bound({name}, ...), or guard the access with t2s.select",
            )
        if not domain.is_box:
            _check_rows(func, domain, access)


def _check_rows(func: AnyFunc, domain: FunctionDomain, access: AccessRange) -> None:
    """``check_inside`` for domains in which the bounds of some arguments depend on others."""
    ranges = "; ".join(
        _range_text(d.name, d.minimum, d.extent)
        for d in domain.dimensions
        if index_names(d.minimum) | index_names(d.extent)
    )
    unknown = [
        show(index)
        for index, range_ in zip(access.indices, access.ranges, strict=True)
        if range_ is None
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
    for reduction in definition.reductions:
        lanes = shared.dimensions[-1]
        if (reduction.minimum, reduction.extent) != (lanes.minimum, lanes.extent):
            raise UserError(
                f"the RDom {reduction.name} of {func.name} is not the range of {lanes.name}",
                location=definition.location,
                expected=_range_text(reduction.name, lanes.minimum, lanes.extent),
                given=_range_text(reduction.name, reduction.minimum, reduction.extent),
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
