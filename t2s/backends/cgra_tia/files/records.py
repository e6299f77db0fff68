"""Frozen dataclasses as JSON and back, by the types that their fields declare.

A dataclass is an object with those fields that are not at their defaults, an enum member its
value, a tuple a list.  Expressions, of which a field may hold one of many classes, name theirs.
Refused, with the place in the document, is everything else: unknown and missing fields, values of
other types, texts that are no names.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Any

from t2s.backends.cgra_tia.netlist import Endpoint, Net, NetCell, Netlist, Provenance, StreamUnit
from t2s.core.errors import UserError
from t2s.core.expr import Apply, Cast, Const, Expr, Index, Parameter, Select
from t2s.core.location import SourceLocation
from t2s.core.names import LONGEST_NAME
from t2s.core.types import Type
from t2s.graph.graph import Layout, Tensor
from t2s.graph.verify_names import wrong_texts

_EXPRESSIONS: Mapping[str, type[Any]] = types.MappingProxyType(
    {known.__name__: known for known in (Apply, Cast, Const, Index, Parameter, Select)}
)
_LARGEST = 1 << 63

_NAMES_OF_GRAPHS = (Tensor, Layout, *_EXPRESSIONS.values())
_NAMES_OF_PARTS = (Netlist, NetCell, StreamUnit, Net, Endpoint, Provenance)


def malformed(where: str, expected: str, given: str, hint: str | None = None) -> UserError:
    """The error for a document with something wrong in it."""
    return UserError(
        f"the text is not a placement in JSON: {where} is wrong",
        expected=expected,
        given=given,
        hint=hint,
    )


def brief(value: object) -> str:
    """A few characters of a value."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def to_record(value: object) -> object:
    """What JSON writes of a value."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {
            item.name: to_record(getattr(value, item.name))
            for item in dataclasses.fields(value)
            if getattr(value, item.name) != item.default
        }
        return {"class": type(value).__name__, **fields} if isinstance(value, Expr) else fields
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [to_record(item) for item in value]
    return value


def from_record(item: object, declared: Any, where: str) -> Any:
    """The value of a declared type that was written as ``item``.  Raises ``UserError``."""
    if isinstance(item, int) and not -_LARGEST <= item < _LARGEST:
        raise malformed(where, "an integer of 64 bits", brief(item))
    choices = _alternatives(declared)
    if item is None and type(None) in choices:
        return None
    for choice in choices:
        if typing.get_origin(choice) is tuple and isinstance(item, list):
            return _tuple(item, typing.get_args(choice), where)
        if isinstance(choice, type) and issubclass(choice, Enum):
            for member in choice:
                if type(item) is type(member.value) and member.value == item:
                    return member
        elif dataclasses.is_dataclass(choice) and isinstance(item, dict):
            return _instance(item, typing.cast(type[Any], choice), where)
        elif choice in (int, float, str, bool) and type(item) is choice:
            return item
    raise malformed(where, " or ".join(map(_type_name, choices)), brief(item))


def _tuple(items: list[object], inner: tuple[Any, ...], where: str) -> tuple[Any, ...]:
    if inner[-1] is not Ellipsis and len(items) != len(inner):
        raise malformed(where, f"a list of {len(inner)}", brief(items))
    declared = [inner[0]] * len(items) if inner[-1] is Ellipsis else inner
    return tuple(
        from_record(item, wanted, f"{where}[{number}]")
        for number, (item, wanted) in enumerate(zip(items, declared, strict=True))
    )


def _instance(items: dict[str, object], known: Any, where: str) -> object:
    if known is Expr:
        items = dict(items)
        name = items.pop("class", None)
        if not isinstance(name, str) or name not in _EXPRESSIONS:
            raise malformed(f"{where}.class", f"one of {', '.join(_EXPRESSIONS)}", brief(name))
        known = _EXPRESSIONS[name]
    declared, required = _fields_of(known)
    for name in items:
        if name not in declared:
            raise malformed(
                f"{where}.{name}", f"one of the fields {', '.join(declared)}", "an unknown field"
            )
    for name in required:
        if name not in items:
            raise malformed(f"{where}.{name}", "this field", "an object without it")
    found = known(
        **{
            name: from_record(item, declared[name], f"{where}.{name}")
            for name, item in items.items()
        }
    )
    _check(found, where)
    return found


def _check(found: Any, where: str) -> None:
    """Raise ``UserError`` for types that are none, and for texts that are no names."""
    if isinstance(found, Type) and not found.exists:
        raise malformed(where, "a type that there is, such as float64", str(found))
    if isinstance(found, _NAMES_OF_GRAPHS):
        for field, text, wanted in wrong_texts(found):
            raise malformed(f"{where}.{field}", wanted.value, brief(text))
    if isinstance(found, _NAMES_OF_PARTS):
        for item in dataclasses.fields(found):
            text = getattr(found, item.name)
            if isinstance(text, str) and not is_part_name(text):
                raise malformed(
                    f"{where}.{item.name}",
                    f"a name: 1 to {LONGEST_NAME:,} letters that can be printed, and no angles",
                    brief(text),
                )
    if isinstance(found, SourceLocation) and found.line < 0:
        raise malformed(f"{where}.line", "a line of a file", str(found.line))


def is_part_name(text: str) -> bool:
    """Whether a text may be the name of a cell, a unit or a net."""
    return 0 < len(text) <= LONGEST_NAME and text.isprintable() and not set("<>") & set(text)


@cache
def _fields_of(known: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The declared types of all fields of a class, and the fields without a default."""
    hints = typing.get_type_hints(known)
    fields = dataclasses.fields(known)
    required = tuple(
        item.name
        for item in fields
        if item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING
    )
    return {item.name: hints[item.name] for item in fields}, required


def _alternatives(declared: Any) -> tuple[Any, ...]:
    if typing.get_origin(declared) in (types.UnionType, typing.Union):
        return typing.get_args(declared)
    return (declared,)


def _type_name(declared: Any) -> str:
    if typing.get_origin(declared) is tuple:
        return "a list"
    if declared is type(None):
        return "null"
    if issubclass(declared, Enum):
        return f"one of {', '.join(str(member.value) for member in declared)}"
    plain = {int: "a whole number", str: "a text", bool: "true or false", float: "a number"}
    return plain.get(declared, f"an object, a {declared.__name__}")
