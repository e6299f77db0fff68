"""Arguments of public methods, checked against their annotations.

>>> @checked                                                          # doctest: +SKIP
... class Streams: ...

Every public method of the class, inherited ones included, then refuses values that do not match its
annotations, and takes every kind of integer for ``int``.
"""

from __future__ import annotations

import collections.abc
import functools
import inspect
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from t2s.core.errors import T2SError, UserError
from t2s.core.location import user_location
from t2s.core.validate import as_int
from t2s.core.walk import Term

ClassT = TypeVar("ClassT", bound=type[Any])

_SHOWN = {int: "an integer", str: "a text", bool: "True or False", type(None): "None"}


class _Misfit(Exception):
    """A value that does not match its annotation."""


def checked(kind: ClassT) -> ClassT:
    """Make the public methods of a class check their arguments."""
    for name in dir(kind):
        method = inspect.getattr_static(kind, name)
        if isinstance(method, types.FunctionType) and (name[0] != "_" or name == "__init__"):
            setattr(kind, name, _checking(kind.__name__, method))
    return kind


def _checking(owner: str, method: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(method)
    what = owner if method.__name__ == "__init__" else f"{owner}.{method.__name__}"

    @functools.cache
    def hints() -> Mapping[str, Any]:
        return get_type_hints(method)

    @functools.wraps(method)
    def call(*positional: Any, **named: Any) -> Any:
        bound = signature.bind(*positional, **named)
        for name, value in bound.arguments.items():
            if name not in hints():
                continue
            several = signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
            each = value if several else (value,)
            converted = tuple(_argument(what, name, argument, hints()[name]) for argument in each)
            bound.arguments[name] = converted if several else converted[0]
        return method(*bound.args, **bound.kwargs)

    return call


def _argument(what: str, name: str, value: Any, hint: Any) -> Any:
    try:
        return _converted(value, hint)
    except _Misfit:
        raise UserError(
            f"{what} takes something else as {name}",
            location=user_location(),
            expected=_shown(hint),
            given=_brief(value),
        ) from None


def _converted(value: Any, hint: Any) -> Any:
    """The value in the annotated type; raises ``_Misfit`` if it has the wrong type."""
    origin, inside = get_origin(hint), get_args(hint)
    if hint is Any:
        return value
    if origin in (Union, types.UnionType):
        for alternative in inside:
            try:
                return _converted(value, alternative)
            except _Misfit:
                continue
        raise _Misfit
    if hint is int:
        number = as_int(value)
        if number is None:
            raise _Misfit
        return number
    if origin is collections.abc.Callable:
        if isinstance(value, Term) and callable(value):  # the package's own callables need no guard
            return value
        return _Computing(_sure(value, callable(value)), inside[-1])
    if origin is tuple and Ellipsis not in inside:
        _sure(value, isinstance(value, list | tuple) and len(value) == len(inside))
        return tuple(_converted(item, kind) for item, kind in zip(value, inside, strict=True))
    if origin in (tuple, collections.abc.Sequence):
        _sure(value, isinstance(value, list | tuple))
        return tuple(_converted(item, inside[0]) for item in value)
    if origin is collections.abc.Mapping:
        _sure(value, isinstance(value, Mapping))
        return {_converted(k, inside[0]): _converted(v, inside[1]) for k, v in value.items()}
    if hint is float:
        return _sure(value, isinstance(value, float) or as_int(value) is not None)
    return _sure(value, isinstance(value, hint))


@dataclass(frozen=True, slots=True)
class _Computing:
    """A user's function: its exceptions, and results of another type, are errors at the call."""

    function: Callable[..., Any]
    kind: Any

    def __call__(self, *operands: Any) -> Any:
        try:
            result = self.function(*operands)
        except T2SError:
            raise
        except Exception as error:
            raise _not_computed(self.kind, f"{type(error).__name__}: {error}") from error
        if isinstance(self.kind, type) and not isinstance(result, self.kind):
            raise _not_computed(self.kind, _brief(result))
        return result


def _not_computed(kind: Any, given: str) -> UserError:
    return UserError(
        "a function does not give what it has to",
        location=user_location(),
        expected=_shown(kind),
        given=given,
    )


def _sure(value: Any, fits: bool) -> Any:
    if not fits:
        raise _Misfit
    return value


def _shown(hint: Any) -> str:
    """An annotation in an error."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(_shown(alternative) for alternative in inside)
    if origin is collections.abc.Callable:
        return "a function"
    if origin is tuple and Ellipsis not in inside:
        return f"({', '.join(map(_shown, inside))})"
    if origin in (tuple, collections.abc.Sequence):
        return f"a list, of each {_shown(inside[0])}"
    if origin is collections.abc.Mapping:
        return f"a mapping to {_shown(inside[1])}"
    article = "an" if hint.__name__[0] in "AEIOU" else "a"
    return _SHOWN.get(hint, f"{article} {hint.__name__}")


def _brief(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."
