"""Frozen dataclasses as JSON values and back, by the types that their fields declare.

A dataclass becomes an object of its fields, a tuple a list, and a float that JSON cannot spell
``{"float": "nan"}``.  A ``RecordFormat`` says what its documents leave out, and which classes and
enums are written by name, for fields that may hold one of several.  Only values of the declared
types are read.
"""

from __future__ import annotations

import dataclasses
import json
import math
import types
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any

from t2s.core.errors import UserError

_LEAST, _MOST = -(1 << 63), (1 << 64) - 1
"""Integers of 64 bits, with a sign and without."""

_NO_NUMBERS = tuple(repr({"float": text}) for text in ("nan", "inf", "-inf"))


@dataclass(frozen=True, kw_only=True)
class RecordFormat:
    """How the documents of one kind are written, and what is read from them.

    Attributes
    ----------
    what: what a document holds, for errors: "a graph".
    named: classes that are written with their name.  A field that declares one of them, or a base
        of some, holds an object with a name.
    enums: enums whose members are written with the name of the class; others are their values.
    omits: whether a class leaves out a field, by name, that has this value.
    optional: whether a class that is read may lack a field.
    faults: what is wrong with an object that was read: its field (or ""), what is expected, what
        is given.
    """

    what: str
    named: tuple[type[Any], ...]
    enums: tuple[type[Enum], ...] = ()
    omits: Callable[[type[Any], str, object], bool]
    optional: Callable[[type[Any], str], bool]
    faults: Callable[[Any], Iterator[tuple[str, str, str]]]

    def write(self, value: object, where: str) -> object:
        """What JSON holds for a value.  Raises ``UserError`` for one that has no place in it."""
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            known: Any = type(value)
            fields = {
                name: self.write(item, f"{where}.{name}")
                for name in _hints(known)
                if not self.omits(known, name, item := getattr(value, name))
            }
            return {"class": known.__name__, **fields} if known in self.named else fields
        if isinstance(value, Enum):
            return self._member(value)
        if isinstance(value, tuple):
            return [self.write(item, f"{where}[{number}]") for number, item in enumerate(value)]
        if type(value) is float and not math.isfinite(value):
            return {"float": repr(value)}
        if value is None or type(value) in (bool, int, float, str):
            return value
        raise UserError(
            f"{where} cannot be written as JSON",
            expected=f"a part of {self.what}, a number, a truth value or text",
            given=f"{value!r} of class {type(value).__name__}",
        )

    def read(self, item: object, declared: Any, where: str) -> Any:
        """The value of a declared type that was written as ``item``.

        Raises ``UserError`` that names the place of what is wrong.
        """
        if isinstance(item, int) and not _LEAST <= item <= _MOST:
            raise self.malformed(where, "an integer of 64 bits", brief(item))
        choices = _alternatives(declared)
        for choice in choices:
            if typing.get_origin(choice) is tuple:
                if isinstance(item, list):
                    return self._tuple(item, typing.get_args(choice), where)
            elif issubclass(choice, Enum):
                member = _members(self, choice).get(json.dumps(item))
                if member is not None:
                    return member
            elif dataclasses.is_dataclass(choice):
                if isinstance(item, dict):
                    return self._instance(item, choices, where)
            elif type(item) is choice:
                return item
            elif choice is float and isinstance(item, dict) and repr(item) in _NO_NUMBERS:
                return float(item["float"])
        expected = " or ".join(map(self._type_name, choices))
        raise self.malformed(where, expected, "a list" if isinstance(item, list) else brief(item))

    def malformed(
        self, where: str, expected: str, given: str, hint: str | None = None
    ) -> UserError:
        """The error for a document with something wrong in it."""
        return UserError(
            f"the text is not {self.what} in JSON: {where} is wrong",
            expected=expected,
            given=given,
            hint=hint,
        )

    def _member(self, member: Enum) -> object:
        if isinstance(member, self.enums):
            return {"enum": f"{type(member).__name__}.{member.name}"}
        return member.value

    def _type_name(self, declared: Any) -> str:
        if typing.get_origin(declared) is tuple:
            return "a list"
        if declared is type(None):
            return "null"
        if issubclass(declared, Enum):
            named = declared in self.enums
            names = (str(member) if named else str(member.value) for member in declared)
            return f"one of {', '.join(names)}"
        plain = {int: "a whole number", str: "a text", bool: "true or false", float: "a number"}
        return plain.get(declared, f"an object of class {declared.__name__}")

    def _tuple(self, items: list[object], inner: tuple[Any, ...], where: str) -> tuple[Any, ...]:
        any_length = inner[-1] is Ellipsis
        if not any_length and len(items) != len(inner):
            raise self.malformed(where, f"a list of {len(inner)}", brief(items))
        declared = [inner[0]] * len(items) if any_length else inner
        return tuple(
            self.read(item, element, f"{where}[{number}]")
            for number, (item, element) in enumerate(zip(items, declared, strict=True))
        )

    def _instance(self, items: dict[str, object], choices: tuple[Any, ...], where: str) -> object:
        classes: tuple[type[Any], ...] = tuple(filter(dataclasses.is_dataclass, choices))
        if named := _named(self, classes):
            name = items.get("class")
            if not isinstance(name, str) or name not in named:
                raise self.malformed(f"{where}.class", f"one of {', '.join(named)}", brief(name))
            known: Any = named[name]
            items = {name: item for name, item in items.items() if name != "class"}
        else:
            known = classes[0]
        declared = _hints(known)
        for name in items:
            if name not in declared:
                raise self.malformed(
                    f"{where}.{name}",
                    f"one of the fields {', '.join(declared)}",
                    "an unknown field",
                )
        for name in declared:
            if name not in items and not self.optional(known, name):
                raise self.malformed(f"{where}.{name}", "this field", "an object without it")
        value = known(
            **{
                name: self.read(item, declared[name], f"{where}.{name}")
                for name, item in items.items()
            }
        )
        for field, expected, given in self.faults(value):
            raise self.malformed(f"{where}.{field}" if field else where, expected, given)
        return value


def default_of(known: type[Any], name: str) -> object:
    """The default of a field; ``dataclasses.MISSING`` if it has none."""
    return known.__dataclass_fields__[name].default


@cache
def _named(format: RecordFormat, classes: tuple[type[Any], ...]) -> dict[str, type[Any]]:
    """The classes of a format that a field of one of these classes may hold, by name."""
    return {known.__name__: known for known in format.named if issubclass(known, classes)}


@cache
def _members(format: RecordFormat, kind: type[Enum]) -> dict[str, Enum]:
    """The members of an enum by their JSON text."""
    return {json.dumps(format.write(member, kind.__name__)): member for member in kind}


@cache
def _hints(known: Any) -> dict[str, Any]:
    """The declared types of all fields of a class, in order."""
    hints = typing.get_type_hints(known)
    return {field.name: hints[field.name] for field in dataclasses.fields(known)}


def _alternatives(declared: Any) -> tuple[Any, ...]:
    """The members of a union type, or the type alone."""
    if typing.get_origin(declared) in (types.UnionType, typing.Union):
        return typing.get_args(declared)
    return (declared,)


def brief(value: object) -> str:
    """A few characters of a JSON value."""
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
