"""Freezing: the user's Funcs become a ``TemporalProgram`` (the last time a builder is read).

What goes in: the output Func, its bounds, and values for the integer parameters used in bounds.
What comes out: every function it needs, in dependence order, with numeric bounds (given, or
inferred from the reads of the consumers), and the inputs with their shapes.
What is refused: undefined Funcs, missing bounds, mutual recursion, variables that are neither on
the left side nor reduction variables, reads outside of given bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import cast

from t2s.core.errors import UserError
from t2s.core.expr import (
    Cast,
    Const,
    Expr,
    Parameter,
    Read,
    const,
    index_names,
    simplify,
)
from t2s.core.isl import is_affine
from t2s.core.location import SourceLocation, user_location
from t2s.core.printer import show
from t2s.core.types import Type, value_range
from t2s.core.walk import Term, rewrite, walk
from t2s.func.bounds import AccessRange, access_ranges, hull
from t2s.func.collect import AnyFunc, global_symbols, in_dependence_order
from t2s.func.expression import Expression, Symbol, retype
from t2s.func.func import Bound, Written, index_name, typed_value
from t2s.func.ir import (
    Definition,
    Dimension,
    Function,
    InputArray,
    InputScalar,
    TemporalProgram,
)
from t2s.func.symbols import ImageParam, Param, RVar


@dataclass(slots=True)
class _State:
    """What is known while the functions are visited, consumers first."""

    constants: Mapping[str, int]
    types: dict[str, Type]
    ranges: dict[str, list[AccessRange]] = field(default_factory=dict)


def freeze(output: AnyFunc, constants: Mapping[str, int] | None = None) -> TemporalProgram:
    """Freeze the program that computes ``output``.

    ``constants`` gives values to integer ``Param`` objects by name; those used in bounds must be
    given.  Raises ``UserError``.
    """
    functions = in_dependence_order(output)
    everything = global_symbols(functions)
    _check_constants(everything, constants or {})
    state = _State(
        constants=dict(constants or {}),
        types={func.name: func.type.strengthened() for func in functions},
    )
    frozen: list[Function] = []
    for func in reversed(functions):
        function = _freeze_function(func, state)
        frozen.insert(0, function)
    params = [symbol for symbol in everything.values() if isinstance(symbol, Param)]
    return TemporalProgram(
        outputs=(output.name,),
        functions=tuple(frozen),
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
        integer = isinstance(value, int) and not isinstance(value, bool)
        if not type.is_integer or not integer or not low <= cast(int, value) <= high:
            raise UserError(
                f"the Param {name} cannot have this value when the design is lowered",
                location=user_location(),
                expected=f"{low} to {high}" if type.is_integer else "a Param of integer type",
                given=f"{name}={value!r}" if type.is_integer else f"{name} of type {type}",
                notes=((params[name].location, f"Param {name} was made here"),),
            )


def _freeze_function(func: AnyFunc, state: _State) -> Function:
    arguments = func.arguments
    bounds = _function_bounds(func, state)
    definitions: list[Definition] = []
    for written in func.written:
        definition = _freeze_definition(func, written, bounds, state)
        definitions.append(definition)
        found = [*access_ranges(definition), *_target_ranges(definition)]
        _check_inside(func, bounds, [access for access in found if access.source == func.name])
        for access in found:
            state.ranges.setdefault(access.source, []).append(access)
    return Function(
        name=func.name,
        type=state.types[func.name],
        arguments=arguments,
        bounds=bounds,
        initial=definitions[0],
        updates=tuple(definitions[1:]),
        location=func.location,
    )


def _function_bounds(func: AnyFunc, state: _State) -> tuple[tuple[int, int], ...]:
    given = {bound.variable: bound for bound in func.bounds}
    for bound in func.bounds:
        if bound.variable not in func.arguments:
            raise UserError(
                f"bound({bound.variable}) on {func.name}: {func.name} has no such argument",
                location=bound.location,
                expected=f"one of {', '.join(func.arguments)}",
                given=bound.variable,
            )
    needed = hull(state.ranges.get(func.name, []), len(func.arguments))
    result: list[tuple[int, int]] = []
    for position, name in enumerate(func.arguments):
        if name in given:
            result.append(_numeric_bound(func, given[name], state))
        elif needed is not None and needed[position] is not None:
            low, high = cast(tuple[int, int], needed[position])
            result.append((low, high - low + 1))
        else:
            raise UserError(
                f"the range of {name} in {func.name} is not known",
                location=func.location,
                expected=f"{func.name}.bound({name}, minimum, extent)",
                hint="the output, and a Func read at data-dependent places, need bounds",
            )
    box = tuple(result)
    _check_inside(func, box, state.ranges.get(func.name, []))
    return box


def _numeric_bound(func: AnyFunc, bound: Bound, state: _State) -> tuple[int, int]:
    values = []
    for part in (bound.minimum, bound.extent):
        node = _with_constants(part, state, bound.location)
        if not isinstance(node, Const):
            raise UserError(
                f"bound({bound.variable}) on {func.name} is not a constant",
                location=bound.location,
                expected="numbers, or expressions of integer Params",
                given=show(node),
            )
        values.append(int(node.value))
    if values[1] < 1:
        raise UserError(
            f"bound({bound.variable}) on {func.name} is empty",
            location=bound.location,
            expected="an extent of at least 1",
            given=str(values[1]),
        )
    return values[0], values[1]


def _with_constants(expression: Expression, state: _State, location: SourceLocation) -> Expr:
    """A bound with the parameters replaced by their values."""
    node = simplify(_replace_parameters(expression.node, state.constants))
    missing = [part.name for part in walk(node) if isinstance(part, Parameter)]
    if missing:
        raise UserError(
            f"the Param {missing[0]} is used in a bound and has no value",
            location=location,
            expected=f"a number for it, as in t2s.lower(func, {missing[0]}=64)",
            hint="hardware has a fixed size; interpret and simulate take it among the inputs",
        )
    return node


def _replace_parameters(node: Expr, constants: Mapping[str, int]) -> Expr:
    def rule(term: Term) -> Term | None:
        if isinstance(term, Parameter) and term.name in constants:
            return Const(value=constants[term.name], type=term.type)
        return None

    return rewrite(node, rule)


def _freeze_definition(
    func: AnyFunc, written: Written, bounds: tuple[tuple[int, int], ...], state: _State
) -> Definition:
    value = typed_value(func, written)
    pure: dict[str, Dimension] = {}
    for position, part in enumerate(written.target):
        name = index_name(part)
        if name is None or isinstance(written.symbols[name], RVar):
            continue
        if name in pure:
            raise UserError(
                f"the same Var {name} is used twice on the left side of {func.name}",
                location=written.location,
                expected="a different Var for each dimension",
                given=f"{func.name}[{', '.join(map(repr, written.target))}]",
            )
        low, extent = bounds[position]
        pure[name] = Dimension(name=name, minimum=const(low), extent=const(extent), reduction=False)
    domain = [*pure.values(), *_reduction_dimensions(written, state, set(pure))]
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
    return Definition(
        function=func.name,
        target=tuple(
            simplify(_replace_parameters(part.node, state.constants)) for part in written.target
        ),
        value=_with_final_types(_replace_parameters(value.node, state.constants), state.types),
        domain=tuple(domain),
        location=written.location,
    )


def frozen_part(
    node: Expr, default: Type, constants: Mapping[str, int], types: Mapping[str, Type]
) -> Expr:
    """A part of a definition, written once more, as it is in the frozen program.

    ``default`` is the type of a part that has none of its own, ``constants`` are the values of
    Params and ``types`` the final types of the Funcs.
    """
    typed = retype(node, default) if node.type.weak else node
    return _with_final_types(_replace_parameters(typed, constants), types)


def index_names_of(nodes: Iterable[Expr]) -> set[str]:
    """All index names in several expressions."""
    return set().union(*(index_names(node) for node in nodes))


def _reduction_dimensions(written: Written, state: _State, outer: set[str]) -> list[Dimension]:
    known = set(outer)
    dimensions: list[Dimension] = []
    domains: list[tuple[RVar, ...]] = []
    for symbol in written.symbols.values():
        if isinstance(symbol, RVar) and all(symbol.domain is not seen for seen in domains):
            domains.append(symbol.domain)
    for variable in (variable for domain in domains for variable in domain):
        low = _with_constants(variable.minimum, state, variable.location)
        extent = _with_constants(variable.extent, state, variable.location)
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


def _check_inside(
    func: AnyFunc, bounds: tuple[tuple[int, int], ...], ranges: Iterable[AccessRange]
) -> None:
    for access in ranges:
        for position, found in enumerate(access.ranges):
            low, extent = bounds[position]
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


def _freeze_input(symbol: ImageParam, state: _State) -> InputArray:
    accesses = state.ranges.get(symbol.name, [])
    needed = hull(accesses, symbol.rank)
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
        limit = declared if declared is not None else cast(tuple[int, int], found)[1] + 1
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
