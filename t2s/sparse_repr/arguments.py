"""Arguments of the public methods of a class, checked against what their signatures say."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from t2s.core.errors import UserError
from t2s.core.integers import whole
from t2s.core.location import user_location

ClassT = TypeVar("ClassT", bound=type[Any])


def checked_arguments(kind: ClassT) -> ClassT:
    """A class decorator: public methods raise ``UserError`` for an argument of a wrong class.

    Inherited methods are checked, too.  What is missing or one too many is Python's own error.
    """
    for name, method in inspect.getmembers(kind, inspect.isfunction):
        if not name.startswith("_"):
            setattr(kind, name, _checked(method))
    return kind


def _checked(method: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(method)
    hints: dict[str, Any] = {}

    @functools.wraps(method)
    def call(*given: Any, **named: Any) -> Any:
        if not hints:  # at the first call: all names are known by then
            hints.update({"return": None, **get_type_hints(method)})
        bound = signature.bind(*given, **named)
        for name, value in bound.arguments.items():
            wanted = hints.get(name, Any)
            match signature.parameters[name].kind:
                case inspect.Parameter.VAR_POSITIONAL:
                    values = list(value)
                case inspect.Parameter.VAR_KEYWORD:
                    values = list(value.values())
                case _:
                    values = [value]
            for one in values:
                if not _fits(one, wanted):
                    raise _wrong(method.__name__, name, signature.parameters[name], one)
        return method(*given, **named)

    return call


def _wrong(method: str, name: str, parameter: inspect.Parameter, given: object) -> UserError:
    text = repr(given)
    short = text if len(text) <= 60 else f"{text[:57]}..."
    return UserError(
        f"{method}: the argument {name!r} is of the wrong class",
        location=user_location(),
        expected=str(parameter.annotation),
        given=f"{short} of class {type(given).__name__}",
    )


def _fits(value: object, hint: Any) -> bool:
    """Whether a value is what a hint says, as far as that can be seen without using it."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(_fits(value, one) for one in inside)
    if hint is None or hint is type(None):
        return value is None
    if hint is int:
        return whole(value) is not None
    if hint is float:
        return isinstance(value, int | float) or whole(value) is not None
    if origin is tuple and inside[1:] != (...,):
        return (
            isinstance(value, Sequence)
            and not isinstance(value, str)
            and len(value) == len(inside)
            and all(map(_fits, value, inside))
        )
    if origin in (tuple, list, Sequence):
        plain = isinstance(value, Sequence) and not isinstance(value, str)
        return plain and all(_fits(one, inside[0]) for one in value)  # type: ignore[attr-defined]
    if origin in (dict, Mapping):
        return isinstance(value, Mapping) and all(
            _fits(key, inside[0]) and _fits(one, inside[1]) for key, one in value.items()
        )
    if origin is Callable:
        return callable(value)
    return hint is Any or not isinstance(hint, type) or isinstance(value, hint)
