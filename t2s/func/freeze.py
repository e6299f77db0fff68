"""Freezing: the user's Funcs become a ``TemporalProgram`` (the last time a builder is read).

What goes in: the output Funcs, bounds, and values for the integer parameters used in bounds.
What comes out: every function they need, in dependence order, with bounds (given, or inferred from
the reads of the consumers), the systems of recurrences, and the inputs with their shapes.
What is refused: undefined Funcs, missing bounds, recursion that is no uniform recurrence or has no
legal order, variables that are neither on the left side nor reduction variables, reads outside of
bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import cast

from t2s.core.checks import whole
from t2s.core.errors import UnsupportedError, UserError
from t2s.core.expr import Cast, Expr, Read, index_names, simplify, substitute
from t2s.core.isl import Interval, is_affine
from t2s.core.location import SourceLocation, user_location
from t2s.core.types import Type, value_range
from t2s.core.walk import Term, distinct, rewrite
from t2s.func.accesses import (
    AccessRange,
    access_ranges,
    hull,
    unconditional_ranges,
    without_dead_reads,
)
from t2s.func.collect import AnyFunc, global_symbols, needed_funcs, output_funcs
from t2s.func.conversion import retype
from t2s.func.domains import (
    FunctionDomain,
    check_inside,
    check_lanes,
    reduction_dimensions,
    replace_parameters,
    unit_domain,
)
from t2s.func.func import WrittenDefinition, index_name, typed_value
from t2s.func.ir import (
    Definition,
    Dimension,
    Function,
    InputArray,
    InputScalar,
    System,
    TemporalProgram,
)
from t2s.func.symbols import ImageParam, Param, RVar
from t2s.func.systems import Unit, group, iteration_order
from t2s.func.user_expression import Symbol

MOST_TERMS = 100_000
"""Most terms (operators, reads, numbers) of one definition."""


@dataclass
class _State:
    """What is known while the functions are visited, consumers first."""

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
        """Reads as if every branch were taken, for inputs in branches that no iteration takes.

        Such a branch may be there for other sizes than these, and its input has a shape too.
        """
        found: dict[str, list[AccessRange]] = {}
        for written in self.written:
            for access in unconditional_ranges(*written):
                found.setdefault(access.source, []).append(access)
        return found


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
        number = whole(value)
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
    """The range of each argument that the Funcs outside of the unit read, as far as known."""
    found: dict[str, list[tuple[int, int] | None]] = {}
    for func in unit.funcs:
        box = hull(state.ranges.get(func.name, []), len(func.arguments))
        for name, part in zip(func.arguments, box or (), strict=bool(box)):
            found.setdefault(name, []).append(part)
    result: dict[str, tuple[int, int] | None] = {}
    for name, parts in found.items():
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
    """A part of a definition, written once more, as it is in the frozen program.

    ``default`` is the type of a part that has none of its own, ``constants`` are the values of
    Params and ``types`` the final types of the Funcs.
    """
    typed = retype(node, default) if node.type.weak else node
    return _with_final_types(replace_parameters(typed, constants), types)


def index_names_of(nodes: Iterable[Expr]) -> set[str]:
    """All index names in several expressions."""
    return set().union(*(index_names(node) for node in nodes))


def _with_final_types(node: Expr, types: Mapping[str, Type]) -> Expr:
    """Reads made while a Func's type was still open get its final type."""

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
        found = needed[position] if needed is not None else None
        declared = symbol.shape[position] if symbol.shape is not None else None
        if declared is None and found is None:
            raise UserError(
                f"the shape of ImageParam {symbol.name} is not known in dimension {position}",
                location=symbol.location,
                expected="an affine subscript, or a declared shape",
                hint=f"declare it: ImageParam(type, rank, name={symbol.name!r}, shape=(...))",
            )
        limit = declared if declared is not None else max(cast(tuple[int, int], found)[1], 0) + 1
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
