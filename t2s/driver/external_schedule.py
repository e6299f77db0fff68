"""Schedules with external functions as text, and back: what a search found can be kept."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from t2s.capability.description import ExternalFunction
from t2s.core.errors import UnsupportedError, UserError
from t2s.core.location import user_location
from t2s.sparse_repr.concrete.external_directives import (
    AssumeExtents,
    BindPart,
    FixVariables,
    FunctionOrName,
    MapPart,
    PromoteOperand,
    StoreInOrder,
    StreamsOnDevice,
)
from t2s.sparse_repr.concrete.pattern_directives import LoopDirective
from t2s.sparse_repr.concrete.schedule import Schedule
from t2s.sparse_repr.concrete.schedule_text import parse_schedule
from t2s.sparse_repr.notation.ir import print_expression


def schedule_text(schedule: Schedule) -> str:
    """The directives of a schedule with external functions, as ``parse_schedule`` takes them."""
    return ", ".join(map(_text, schedule.directives))


def _text(one: LoopDirective) -> str:
    match one:
        case FixVariables(variables=names):
            return f"fix({','.join(names)})"
        case PromoteOperand(tensor=tensor, position=position):
            return f"promote({tensor},{position})"
        case StoreInOrder(tensor=tensor, modes=modes):
            return f"store({tensor},{','.join(map(str, modes))})"
        case StreamsOnDevice(device=device):
            return f"streams({getattr(device, 'name', device)})"
        case AssumeExtents(condition=condition):
            return f"assume({condition})"
        case BindPart(value=value, function=function):
            part = _spaceless(print_expression(value))
            return f"bind({','.join((part, function_name(function), *_options(one)))})"
        case MapPart(value=value, function=function):
            part = _spaceless(print_expression(value))
            return f"map({','.join((part, function_name(function), *_options(one)))})"
    raise UnsupportedError(
        "this directive has no text",
        location=one.location,
        expected="directives of plans",
        given=type(one).__name__,
    )


def _options(one: BindPart | MapPart) -> list[str]:
    """What is said behind the function of a part."""
    found = ["trusted"] if one.trusted else []
    if isinstance(one, MapPart):
        found += ["densify"] if one.densify else []
        found += [] if one.pad else ["pad=False"]
    return [*found, *([] if one.fallback else ["else_=None"])]


def _spaceless(text: str) -> str:
    return text.replace(" ", "")


def function_name(function: FunctionOrName) -> str:
    """``blas.sgemm`` of a function that t2s knows, and its own name of any other one."""
    from t2s.libraries.shelf import LIBRARIES

    if isinstance(function, str):
        return function
    for library in LIBRARIES.values():
        for name, known in library.functions.items():
            if known is function:
                return f"{library.name}.{name}"
    return function.name


def schedule(text: str, functions: Iterable[ExternalFunction] = ()) -> Schedule:
    """The schedule of a text in which functions of your own are called by their names.

    Raises ``UserError`` for two functions of one name.
    """
    where = user_location()
    known: dict[str, ExternalFunction] = {}
    for one in functions:
        if known.setdefault(one.name, one) is not one:
            raise UserError(
                f"two functions are called {one.name}",
                location=where,
                expected="functions with names of their own",
            )
    made = parse_schedule(text, location=where)
    directives = tuple(
        replace(one, function=known.get(one.function, one.function))
        if isinstance(one, BindPart | MapPart) and isinstance(one.function, str)
        else one
        for one in made.directives
    )
    return Schedule(directives=directives)
