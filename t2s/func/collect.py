"""What a program consists of: the functions it needs, and every named object they use."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from t2s.core.errors import UserError
from t2s.core.expr import Expr, Parameter, reads
from t2s.core.location import SourceLocation, user_location
from t2s.core.walk import walk
from t2s.func.expression import Symbol, Symbols, merge_symbols
from t2s.func.func import TemporalFunc
from t2s.func.symbols import ImageParam, Param, RVar

AnyFunc = TemporalFunc[Any]


def in_dependence_order(output: AnyFunc) -> list[AnyFunc]:
    """All functions that ``output`` needs, producers first."""
    order: list[AnyFunc] = []
    active: list[AnyFunc] = []

    def visit(func: AnyFunc, location: SourceLocation) -> None:
        if any(func is other for other in order):
            return
        if any(func is other for other in active):
            names = " -> ".join(other.name for other in [*active, func])
            raise UserError(
                f"Funcs {names} need each other",
                location=location,
                hint="express the recursion inside one Func, as an update",
            )
        if not func.written:
            raise UserError(
                f"Func {func.name} has no definition",
                location=func.location,
                expected=f"for example {func.name}[i, j] = ...",
            )
        active.append(func)
        for written in func.written:
            for symbol in written.symbols.values():
                if isinstance(symbol, TemporalFunc) and symbol is not func:
                    visit(symbol, written.location)
        active.pop()
        order.append(func)

    if not isinstance(output, TemporalFunc):
        raise UserError(
            f"{output!r} is not a design",
            location=user_location(),
            expected="a Func",
            given=f"an object of type {output.__class__.__name__}",
        )
    visit(output, output.location)
    return order


def global_symbols(functions: Iterable[AnyFunc]) -> dict[str, Symbol]:
    """The inputs, parameters and Funcs of a program by name.

    Raises ``UserError`` where two of them share a name, or a loop variable has the name of one.
    """
    functions = tuple(functions)
    everything: dict[str, Symbol] = {}
    for func in functions:
        for written in func.written:
            used = _not_loops(_all_symbols(written.symbols))
            everything = merge_symbols(written.location, everything, used)
        for bound in func.bounds:
            used = _not_loops({**bound.minimum.symbols, **bound.extent.symbols})
            everything = merge_symbols(bound.location, everything, used)
    _check_loop_names(functions, everything)
    return everything


def structural_parameters(output: AnyFunc) -> frozenset[str]:
    """Names of the Params that bounds or subscripts use: shapes depend on their values."""
    nodes: list[Expr] = []
    for func in in_dependence_order(output):
        nodes += [part.node for bound in func.bounds for part in (bound.minimum, bound.extent)]
        for written in func.written:
            nodes += [part.node for part in written.target]
            nodes += [index for read in reads(written.value.node) for index in read.indices]
            for symbol in written.symbols.values():
                if isinstance(symbol, RVar):
                    nodes += [d.minimum.node for d in symbol.domain]
                    nodes += [d.extent.node for d in symbol.domain]
    return frozenset(
        part.name for node in nodes for part in walk(node) if isinstance(part, Parameter)
    )


def _check_loop_names(functions: Iterable[AnyFunc], others: Symbols) -> None:
    """A loop variable must not share its name with an input, a Param or a Func."""
    for func in functions:
        for written in func.written:
            merge_symbols(
                written.location,
                {name: others[name] for name in written.symbols if name in others},
                written.symbols,
            )


def _not_loops(symbols: Symbols) -> dict[str, Symbol]:
    kinds = (ImageParam, Param, TemporalFunc)
    return {name: symbol for name, symbol in symbols.items() if isinstance(symbol, kinds)}


def _all_symbols(symbols: Symbols) -> dict[str, Symbol]:
    """The symbols and those in the bounds of the reduction variables among them."""
    result = dict(symbols)
    for symbol in symbols.values():
        if isinstance(symbol, RVar):
            for dimension in symbol.domain:
                bounds = (dimension.minimum.symbols, dimension.extent.symbols)
                result = merge_symbols(dimension.location, result, *bounds)
    return result
