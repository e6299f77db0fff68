"""What a program consists of: the functions it needs, and every named object they use."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from t2s.core.errors import UserError
from t2s.core.expr import Expr, Parameter, reads
from t2s.core.location import user_location
from t2s.core.printer import show
from t2s.core.walk import walk
from t2s.func.expressions import Symbol, Symbols, merge_symbols
from t2s.func.func import ImageParam, Param, RVar, TemporalFunc

AnyFunc = TemporalFunc[Any]


def output_funcs(design: object) -> tuple[AnyFunc, ...]:
    """The outputs of a design: one Func, or each of a tuple or list of Funcs."""
    funcs = tuple(design) if isinstance(design, tuple | list) else (design,)
    if not funcs:
        raise UserError(
            "a design needs at least one output",
            location=user_location(),
            expected="a Func, or a tuple of Funcs",
            given=repr(design),
        )
    funcs_: list[AnyFunc] = []
    for func in funcs:
        if not isinstance(func, TemporalFunc):
            raise UserError(
                f"{func!r} is not a design",
                location=user_location(),
                expected="a Func, or a tuple of Funcs",
                given=f"an object of type {func.__class__.__name__}",
            )
        if any(func is other for other in funcs_):
            raise UserError(
                f"the output {func.name} is given twice",
                location=user_location(),
                expected="every output once",
                given=", ".join(getattr(other, "name", repr(other)) for other in funcs),
            )
        funcs_.append(func)
    return tuple(funcs_)


def producers(func: AnyFunc) -> list[AnyFunc]:
    """The other Funcs that ``func`` reads, in the order in which they are written."""
    result: list[AnyFunc] = []
    for written in func.written:
        for symbol in written.symbols.values():
            known = symbol is func or any(symbol is other for other in result)
            if isinstance(symbol, TemporalFunc) and not known:
                result.append(symbol)
    return result


def needed_funcs(outputs: Iterable[AnyFunc]) -> list[AnyFunc]:
    """All Funcs that the outputs need, producers first except around cycles.

    Raises ``UserError`` for a Func without definition, or read with a wrong number of subscripts.
    """
    order: list[AnyFunc] = []
    seen: list[AnyFunc] = []

    def visit(func: AnyFunc, reader: AnyFunc | None) -> None:
        if any(func is other for other in seen):
            return
        if not func.written:
            raise _undefined(func, reader)
        seen.append(func)
        for producer in producers(func):
            visit(producer, func)
        order.append(func)

    for output in outputs:
        visit(output, None)
    _check_ranks(order)
    return order


def _undefined(func: AnyFunc, reader: AnyFunc | None) -> UserError:
    """The error names the line that reads the Func, if there is one."""
    location, notes = func.location, []
    for written in reader.written if reader is not None else ():
        parts = (written.value.node, *(part.node for part in written.target))
        read = next((r for node in parts for r in reads(node) if r.source == func.name), None)
        if read is not None:
            location = read.location or written.location
            notes = [(func.location, f"Func {func.name} was made here")]
            break
    return UserError(
        f"Func {func.name} has no definition",
        location=location,
        expected=f"for example {func.name}[i, j] = ...",
        notes=tuple(notes),
        hint=f"define {func.name} before {reader.name} is lowered" if reader is not None else None,
    )


def _check_ranks(functions: Iterable[AnyFunc]) -> None:
    """Reads that stand before the definition of a Func could not be checked there."""
    functions = tuple(functions)
    for reader in functions:
        for written in reader.written:
            nodes = [written.value.node, *(part.node for part in written.target)]
            for read in (read for node in nodes for read in reads(node)):
                source = written.symbols[read.source]
                if not isinstance(source, TemporalFunc):
                    continue
                rank, given = len(source.written[0].target), len(read.indices)
                if given != rank:
                    raise UserError(
                        f"Func {source.name} has {rank} dimension{'s' if rank != 1 else ''}",
                        location=read.location or written.location,
                        expected=f"{rank} subscript{'s' if rank != 1 else ''}",
                        given=f"{given}: {show(read)}",
                        notes=((source.written[0].location, f"{source.name} is defined here"),),
                    )


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


def structural_parameters(outputs: Iterable[AnyFunc]) -> frozenset[str]:
    """Names of the Params that bounds or subscripts use: shapes depend on their values."""
    nodes: list[Expr] = []
    for func in needed_funcs(outputs):
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
