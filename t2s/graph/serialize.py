"""Graphs as JSON, to the letter and back.

Every frozen dataclass of the graph becomes an object with its class name and all its fields, an
enum member becomes ``{"enum": "Role.LOAD"}``, a tuple a list, and a float that JSON cannot spell
``{"float": "nan"}``.  Only the classes listed below are read, and only with values of the types
that their fields declare.
"""

from __future__ import annotations

import dataclasses
import json
import math
import types
import typing
from collections.abc import Mapping
from enum import Enum
from typing import Any, cast

from t2s.core.errors import UserError
from t2s.core.expr import (
    Apply,
    Broadcast,
    Cast,
    Const,
    CountBits,
    Index,
    Insert,
    LaneNumbers,
    Local,
    LowestBits,
    Parameter,
    RankBits,
    Read,
    ReduceLanes,
    Select,
    SetBits,
)
from t2s.core.location import SourceLocation, user_location
from t2s.core.ops import Op
from t2s.core.types import Kind, Type
from t2s.graph.body import Let, Load, Receive, RegisterRead, RegisterWrite, Send, Store
from t2s.graph.graph import (
    Channel,
    Graph,
    Layout,
    MemorySpace,
    Region,
    RegionKind,
    ScalarParameter,
    StreamKind,
    StreamType,
    Tensor,
    TensorRole,
)
from t2s.graph.nodes import (
    Choice,
    Head,
    Loop,
    Machine,
    MemoryAdd,
    MemoryDrop,
    MemoryFirst,
    MemorySize,
    Mode,
    PEArray,
    Put,
    Register,
    Role,
    Rule,
    Search,
    SortedMemory,
    SpaceDimension,
)
from t2s.graph.verify_expr import wrong_texts

FORMAT = 1

_DATACLASSES: tuple[type[Any], ...] = (
    *(Apply, Broadcast, Cast, Const, Index, Insert, LaneNumbers, Local, Parameter, Read),
    *(CountBits, LowestBits, RankBits, ReduceLanes, Select, SetBits),
    *(Let, Load, Receive, RegisterRead, RegisterWrite, Send, Store),
    *(Channel, Graph, Layout, Region, ScalarParameter, StreamType, Tensor),
    *(Loop, PEArray, Register, SpaceDimension),
    *(Choice, Head, Machine, Mode, Put, Rule, Search, SortedMemory),
    *(MemoryAdd, MemoryDrop, MemoryFirst, MemorySize),
    *(SourceLocation, Type),
)
_ENUMS: tuple[type[Enum], ...] = (Kind, Op, MemorySpace, RegionKind, Role, StreamKind, TensorRole)


_OPTIONAL = (
    (PEArray, "active"),
    (Machine, "endless"),
    (StreamType, "values_under_tags"),
    (Register, "initial"),
    (Tensor, "swizzled"),
    (Tensor, "streamed"),
    (Tensor, "in_parts"),
)
"""Fields that are written only where they are neither ``None`` nor ``False`` nor the integer 0."""


def graph_to_json(graph: Graph) -> str:
    """The graph as JSON; equal graphs give equal text.

    Raises ``UserError`` if the graph holds a value that has no place in one, a numpy scalar say.
    """
    document = {"format": FORMAT, "graph": _encode(graph, "graph")}
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def graph_from_json(text: str) -> Graph:
    """The graph that ``graph_to_json`` wrote, equal to it in every field.

    Raises ``UserError`` that names the place if the text is not such a graph.  The rules of
    ``verify_graph`` are not checked here.
    """
    if not isinstance(text, str | bytes):
        raise UserError(
            "graph_from_json needs the text of a graph",
            location=user_location(),
            expected="a str that graph_to_json returned",
            given=f"{type(text).__name__} {text!r}"[:80],
        )
    try:
        document = json.loads(text)
        if not isinstance(document, dict) or set(document) != {"format", "graph"}:
            raise _malformed(
                "the document", "an object with the keys 'format' and 'graph'", _brief(document)
            )
        if document["format"] != FORMAT:
            raise _malformed(
                "the format number",
                str(FORMAT),
                repr(document["format"]),
                hint="the file was written by another version of t2s: write it again",
            )
        graph = _Decoder().decode(document["graph"], Graph, "graph")
    except json.JSONDecodeError as error:
        raise _malformed(
            f"line {error.lineno}, column {error.colno}", "JSON text", error.msg
        ) from None
    except RecursionError:
        raise _malformed("the document", "a graph", "objects nested too deeply") from None
    return cast(Graph, graph)


def _encode(value: object, path: str) -> object:
    if isinstance(value, _DATACLASSES):
        fields = [f for f in dataclasses.fields(value) if not _left_out(value, f.name)]
        encoded = {f.name: _encode(getattr(value, f.name), f"{path}.{f.name}") for f in fields}
        return {"class": type(value).__name__, **encoded}
    if isinstance(value, _ENUMS):
        return {"enum": f"{type(value).__name__}.{value.name}"}
    if isinstance(value, tuple):
        return [_encode(item, f"{path}[{position}]") for position, item in enumerate(value)]
    if type(value) is float and not math.isfinite(value):
        return {"float": repr(value)}
    if value is None or type(value) in (bool, int, float, str):
        return value
    raise UserError(
        f"{path} cannot be written as JSON",
        expected="a class of the graph, a number, a truth value or text",
        given=f"{value!r} of class {type(value).__name__}",
    )


def _left_out(value: object, name: str) -> bool:
    """Whether a field is not written."""
    if (type(value), name) not in _OPTIONAL:
        return False
    found = getattr(value, name)
    return found is None or found is False or (found == 0 and type(found) is int)


class _Decoder:
    """Rebuilds values; holds the declared types of the fields of every known class."""

    def __init__(self) -> None:
        self._classes = {known.__name__: known for known in _DATACLASSES}
        self._enums = {known.__name__: known for known in _ENUMS}
        self._fields: Mapping[type[Any], dict[str, Any]] = {
            known: {
                field.name: hints[field.name]
                for hints in (typing.get_type_hints(known),)
                for field in dataclasses.fields(known)
            }
            for known in _DATACLASSES
        }

    def decode(self, item: object, declared: Any, path: str) -> object:
        """The value of one JSON item, which has to be of the declared type."""
        if isinstance(item, list):
            return self._tuple(item, declared, path)
        value = self._object(item, path) if isinstance(item, dict) else item
        alternatives = _alternatives(declared)
        if not any(_is_a(value, wanted) for wanted in alternatives):
            raise _malformed(path, " or ".join(map(_type_name, alternatives)), _brief(item))
        return value

    def _tuple(self, items: list[object], declared: Any, path: str) -> tuple[object, ...]:
        alternatives = _alternatives(declared)
        lists = [item for item in alternatives if typing.get_origin(item) is tuple]
        if not lists:
            raise _malformed(path, " or ".join(map(_type_name, alternatives)), "a list")
        element = typing.get_args(lists[0])[0]
        return tuple(
            self.decode(item, element, f"{path}[{position}]") for position, item in enumerate(items)
        )

    def _object(self, item: dict[str, object], path: str) -> object:
        match item:
            case {"class": str(name), **fields} if name in self._classes:
                return self._instance(self._classes[name], fields, path)
            case {"enum": str(name), **rest} if not rest:
                kind, _, member = name.partition(".")
                if kind in self._enums and member in self._enums[kind].__members__:
                    return self._enums[kind][member]
            case {"float": "nan" | "inf" | "-inf" as text, **rest} if not rest:
                return float(str(text))
        raise _malformed(path, "an object of a known class, enum or float", _brief(item))

    def _instance(self, known: type[Any], items: dict[str, object], path: str) -> object:
        declared = self._fields[known]
        left_out = {name for one, name in _OPTIONAL if one is known} - set(items)
        if set(items) != set(declared) - left_out:
            raise _malformed(
                f"{path}, a {known.__name__},",
                f"the fields {', '.join(declared)}",
                ", ".join(items) or "no fields",
            )
        found: object = known(
            **{name: self.decode(items[name], declared[name], f"{path}.{name}") for name in items}
        )
        if isinstance(found, Type) and not found.exists:
            raise _malformed(path, "a known type, such as float32", str(found))
        for field, text, wanted in wrong_texts(found):
            raise _malformed(f"{path}.{field}", wanted.value, _brief(text))
        return found


def _alternatives(declared: Any) -> tuple[Any, ...]:
    """The members of a union type, or the type alone."""
    if typing.get_origin(declared) in (types.UnionType, typing.Union):
        return typing.get_args(declared)
    return (declared,)


def _is_a(value: object, wanted: Any) -> bool:
    """Whether a decoded value is of a declared class; a truth value is not an integer."""
    if wanted in (int, float):
        return type(value) is wanted
    return isinstance(wanted, type) and isinstance(value, wanted)


def _type_name(declared: Any) -> str:
    if typing.get_origin(declared) is tuple:
        return f"a list of {_type_name(typing.get_args(declared)[0])}"
    if typing.get_origin(declared) in (types.UnionType, typing.Union):
        return " or ".join(map(_type_name, typing.get_args(declared)))
    return "null" if declared is type(None) else str(declared.__name__)


def _brief(item: object) -> str:
    """A few characters of a JSON item."""
    text = json.dumps(item)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _malformed(where: str, expected: str, given: str, hint: str | None = None) -> UserError:
    return UserError(
        f"the text is not a graph in JSON: {where} is wrong",
        expected=expected,
        given=given,
        hint=hint,
    )
