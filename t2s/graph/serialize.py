"""Graphs as JSON, to the letter and back.

Objects have the names of their classes and, for files to stay readable when defaults change, all
fields but a few that came later; an enum member is ``{"enum": "Role.LOAD"}``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, cast

from t2s.core.errors import UserError
from t2s.core.expr import (
    Apply,
    Arrange,
    Broadcast,
    Cast,
    Const,
    Contract,
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
    ReduceRows,
    Select,
    SetBits,
)
from t2s.core.location import SourceLocation, user_location
from t2s.core.ops import Op
from t2s.core.records import RecordFormat, brief
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

_CLASSES: tuple[type[Any], ...] = (
    *(Apply, Broadcast, Cast, Const, Index, Insert, LaneNumbers, Local, Parameter, Read),
    *(CountBits, LowestBits, RankBits, ReduceLanes, Select, SetBits),
    *(Arrange, Contract, ReduceRows),
    *(Let, Load, Receive, RegisterRead, RegisterWrite, Send, Store),
    *(Channel, Graph, Layout, Region, ScalarParameter, StreamType, Tensor),
    *(Loop, PEArray, Register, SpaceDimension),
    *(Choice, Head, Machine, Mode, Put, Rule, Search, SortedMemory),
    *(MemoryAdd, MemoryDrop, MemoryFirst, MemorySize),
    *(SourceLocation, Type),
)

_OPTIONAL: tuple[tuple[type[Any], str], ...] = (
    (PEArray, "active"),
    (Machine, "endless"),
    (Machine, "interval"),
    (Machine, "latency"),
    (StreamType, "values_under_tags"),
    (Register, "initial"),
    (Tensor, "swizzled"),
    (Tensor, "streamed"),
    (Tensor, "in_parts"),
)
"""Fields that are written only where they do not have their default."""


def _omits(known: type[Any], name: str, value: object) -> bool:
    if (known, name) not in _OPTIONAL:
        return False
    default = next(field.default for field in fields(known) if field.name == name)
    return value == default and type(value) is type(default)


def _faults(value: Any) -> Iterator[tuple[str, str, str]]:
    """Types that do not exist, and texts that are not names."""
    if isinstance(value, Type) and not value.exists:
        yield "", "an existing type, such as float32", str(value)
    for field, text, rule in wrong_texts(value):
        yield field, rule.value, brief(text)


FILES = RecordFormat(
    what="a graph",
    named=_CLASSES,
    enums=(Kind, Op, MemorySpace, RegionKind, Role, StreamKind, TensorRole),
    omits=_omits,
    optional=lambda known, name: (known, name) in _OPTIONAL,
    faults=_faults,
)


def graph_to_json(graph: Graph) -> str:
    """The graph as JSON; equal graphs give equal text.

    Raises ``UserError`` if the graph holds a value that has no place in one, a numpy scalar say.
    """
    document = {"format": FORMAT, "graph": FILES.write(graph, "graph")}
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
            raise FILES.malformed(
                "the document", "an object with the keys 'format' and 'graph'", brief(document)
            )
        if document["format"] != FORMAT:
            raise FILES.malformed(
                "the format number",
                str(FORMAT),
                repr(document["format"]),
                hint="the file was written by another version of t2s: write it again",
            )
        graph = FILES.read(document["graph"], Graph, "graph")
    except json.JSONDecodeError as error:
        raise FILES.malformed(
            f"line {error.lineno}, column {error.colno}", "JSON text", error.msg
        ) from None
    except RecursionError:
        raise FILES.malformed("the document", "a graph", "objects nested too deeply") from None
    return cast(Graph, graph)
