"""``program``: a design as Python text, which is run and compared before it is returned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from t2s.core.errors import UnsupportedError
from t2s.core.let_binding import bottom_up
from t2s.core.walk import Term, field_names
from t2s.func.collect import needed_funcs, output_funcs
from t2s.func.expressions import Symbol
from t2s.func.func import ImageParam, Param, RVar
from t2s.spatial.directive import Directive
from t2s.spatial.program_text import DESIGN, isolated_funcs, program_text
from t2s.spatial.schedule import ScheduledFunc


def program(design: ScheduledFunc | Sequence[ScheduledFunc]) -> str:
    """A Func, or several outputs, as the Python text that a user would write.

    The text has the inputs, variables, definitions, bounds and directives.  Run by ``exec``, or by
    ``t2s run`` from a file, it makes an equal design: the same graph but for the lines, the same
    cycles, and the same text again.  The outputs have their own names; ``design`` is the tuple of
    several of them, or an output that another Func reads.

    The text is run and compared before it is returned.  Raises ``UnsupportedError`` for a product
    of a sparse matrix, and for a design that no text makes, with what cannot be written.
    """
    outputs = output_funcs(design)
    text = program_text(outputs)
    values: dict[str, Any] = {}
    exec(compile(text, "<t2s.program>", "exec"), values)
    again = values.get(DESIGN)
    if again is None:
        funcs = [v for v in values.values() if isinstance(v, ScheduledFunc) and v.written]
        again = next(func for func in funcs if func.name == outputs[0].name)
    if not same_design(outputs, output_funcs(again)):
        raise UnsupportedError(
            f"the design of {outputs[0].name} cannot be written as a program",
            location=outputs[0].location,
            expected="definitions and directives as the language writes them",
            hint="its Funcs or directives were changed by other means than their methods",
        )
    return text


# Whether two designs are equal: definitions, bounds, declarations and directives, but for lines.


def same_design(first: Sequence[Symbol], second: Sequence[Symbol]) -> bool:
    """Whether two designs have the same Funcs, definitions and directives, but for their lines."""
    terms: dict[object, int] = {}
    return _described(first, terms) == _described(second, terms)


def _described(outputs: Sequence[Symbol], terms: dict[object, int]) -> object:
    funcs = needed_funcs([func for func in outputs if isinstance(func, ScheduledFunc)])
    return [output.name for output in outputs], [_func_key(func, terms) for func in funcs]


def _func_key(func: object, terms: dict[object, int]) -> object:
    assert isinstance(func, ScheduledFunc)
    return (
        (func.name, func.declared_type, func.place),
        [
            (
                [_key(part.node, terms) for part in written.target],
                _key(written.value.node, terms),
                [_symbol_key(symbol, terms) for symbol in written.symbols.values()],
            )
            for written in func.written
        ],
        [
            (b.variable, _key(b.minimum.node, terms), _key(b.extent.node, terms))
            for b in func.bounds
        ],
        [
            (name, type(directive), _key_of_fields(directive, terms))
            for name, directive in func.journal
        ],
        [(name, other.place, other.declared_type) for name, other in isolated_funcs(func).items()],
    )


def _symbol_key(symbol: Symbol, terms: dict[object, int]) -> object:
    match symbol:
        case ImageParam():
            return symbol.name, symbol.type, symbol.rank, symbol.shape
        case RVar():
            bounds = [(d.name, d.minimum.node, d.extent.node) for d in symbol.domain]
            return [(name, _key(low, terms), _key(size, terms)) for name, low, size in bounds]
        case Param():
            return symbol.name, symbol.type
    return symbol.kind, symbol.name


def _key(value: object, terms: dict[object, int]) -> object:
    """A key that is equal for equal values; terms are numbered, so that no tree is walked twice."""
    match value:
        case Term():
            numbers: dict[int, int] = {}

            def inside(part: object) -> object:
                match part:
                    case Term():
                        return numbers[id(part)]
                    case tuple():
                        return tuple(map(inside, part))
                    case float():
                        return repr(part)
                return part

            for term in bottom_up(value):
                names = (name for name in field_names(term) if name != "location")
                key = (type(term), *(inside(getattr(term, name)) for name in names))
                numbers[id(term)] = terms.setdefault(key, len(terms))
            return numbers[id(value)]
        case tuple():
            return tuple(_key(item, terms) for item in value)
    return value


def _key_of_fields(directive: Directive, terms: dict[object, int]) -> object:
    names = [f.name for f in fields(directive) if f.name not in ("location", "text", "operand")]
    operand = getattr(directive, "operand", None) if not hasattr(directive, "target") else None
    return operand, [_key(getattr(directive, name), terms) for name in names]
