"""JSON: exact round trips, and what is said about malformed text."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from t2s.core.errors import UserError
from t2s.core.expr import (
    Broadcast,
    Cast,
    Const,
    Expr,
    Insert,
    LaneNumbers,
    Local,
    Parameter,
    Read,
    const,
)
from t2s.core.location import SourceLocation
from t2s.core.types import BOOL, INT32, WEAK_INT, BFloat, Float
from t2s.graph import body, graph, nodes, serialize
from t2s.graph.graph import Graph
from t2s.graph.serialize import graph_from_json, graph_to_json
from tests.graph.changes import at, pipeline, with_tensor, with_value
from tests.hand_graphs import index, systolic_gemm


@pytest.mark.parametrize(
    "design",
    [
        pipeline(),
        with_tensor(pipeline(), "X", padded=(10,)),
        systolic_gemm(1, 1, 1),
        systolic_gemm(2, 3, 4, tile_rows=2, tile_columns=3, capacity=7),
        systolic_gemm(2, 2, 2, element=Float(32)),
        systolic_gemm(2, 2, 2, element=Float(64), lanes=4),
        systolic_gemm(2, 2, 2, element=BFloat(), lanes=16),
    ],
    ids=lambda design: design.name,
)
def test_round_trip(design: Graph) -> None:
    text = graph_to_json(design)
    assert graph_from_json(text) == design
    assert graph_to_json(graph_from_json(text)) == text
    assert json.loads(text)["format"] == 1


@pytest.mark.parametrize(
    "value",
    [
        const(-0.0, Float(32)),
        const(1.0, Float(32)),
        const(1, Float(32)),
        const(0.1, Float(64)),
        const(math.inf, Float(32)),
        const(-math.inf, Float(32)),
        const(2**63 - 1),
        const(True, BOOL),
        const(1, WEAK_INT),
        Cast(value=index("i"), type=Float(16)),
        Broadcast(value=Parameter(name="n", type=INT32), type=INT32.with_lanes(8)),
        LaneNumbers(type=INT32.with_lanes(8)),
        Insert(
            vector=Broadcast(value=index("i"), type=INT32.with_lanes(2)),
            lane=const(1),
            value=index("i"),
            type=INT32.with_lanes(2),
        ),
        Read(source="größe_2", indices=(index("i"),), type=INT32, location=at(5)),
        Local(name="größe", type=INT32),
    ],
)
def test_values_keep_their_class_and_sign(value: Expr) -> None:
    back = graph_from_json(graph_to_json(with_value(pipeline(), value)))
    statement = back.node("sum").body[2]
    assert isinstance(statement, body.Let)
    assert statement.value == value
    assert repr(statement.value) == repr(value)  # 1 and 1.0, 0.0 and -0.0, the location of Read


def test_nan() -> None:
    back = graph_from_json(graph_to_json(with_value(pipeline(), const(math.nan, Float(32)))))
    value = back.node("sum").body[2].value  # type: ignore[attr-defined]
    assert math.isnan(value.value)


def test_locations_are_kept() -> None:
    back = graph_from_json(graph_to_json(pipeline()))
    assert back.node("sum").location == SourceLocation("design.py", 2)
    assert back.location == at(9)


def test_every_class_of_the_graph_is_known() -> None:
    """A class that is added to the graph has to be added to the registry."""
    known = {*serialize.FILES.named, *serialize.FILES.enums}
    for module in (body, graph, nodes):
        for name, item in vars(module).items():
            own = isinstance(item, type) and item.__module__ == module.__name__
            if own and item not in (body.Statement, nodes.Path):
                assert item in known, name


def test_a_numpy_scalar_is_refused_when_written() -> None:
    design = with_value(pipeline(), Const(value=np.int32(3), type=INT32))  # type: ignore[arg-type]
    with pytest.raises(UserError) as caught:
        graph_to_json(design)
    assert str(caught.value).splitlines() == [
        "graph.nodes[1].body[2].value.value cannot be written as JSON",
        "  expected: a part of a graph, a number, a truth value or text",
        "  given:    np.int32(3) of class int32",
    ]


def _edited(edit: Callable[[dict[str, Any]], object]) -> str:
    document = json.loads(graph_to_json(pipeline()))
    edit(document)
    return json.dumps(document)


def _set(key: str, value: object) -> Callable[[dict[str, Any]], object]:
    """Replace one field of the first channel."""
    return lambda document: document["graph"]["channels"][0].__setitem__(key, value)


@pytest.mark.parametrize(
    ("text", "where", "expected", "given"),
    [
        ("{", "line 1, column 2", "JSON text", "Expecting property name enclosed in double quotes"),
        ("[]", "the document", "an object with the keys 'format' and 'graph'", "[]"),
        ('{"format": 1}', "the document", "an object with the keys 'format' and 'graph'", None),
        (_edited(lambda d: d.__setitem__("format", 2)), "the format number", "1", "2"),
        ('{"format": 1, "graph": 3}', "graph", "an object of class Graph", "3"),
        ('{"format": 1, "graph": []}', "graph", "an object of class Graph", "a list"),
        (
            '{"format": 1, "graph": {"class": "Kernel"}}',
            "graph.class",
            "one of Graph",
            '"Kernel"',
        ),
        (
            '{"format": 1, "graph": {"class": "Graph"}}',
            "graph.name",
            "this field",
            "an object without it",
        ),
        (_edited(_set("capacity", "2")), "graph.channels[0].capacity", "a whole number", '"2"'),
        (_edited(_set("capacity", True)), "graph.channels[0].capacity", "a whole number", "true"),
        (_edited(_set("capacity", [])), "graph.channels[0].capacity", "a whole number", "a list"),
        (_edited(_set("shape", 3)), "graph.channels[0].shape", "a list", "3"),
        (_edited(_set("shape", [1.5])), "graph.channels[0].shape[0]", "a whole number", "1.5"),
        (
            _edited(_set("source_index", [None])),
            "graph.channels[0].source_index[0]",
            "an object of class Expr",
            "null",
        ),
        (
            _edited(_set("location", "here")),
            "graph.channels[0].location",
            "an object of class SourceLocation or null",
            '"here"',
        ),
        (
            _edited(_set("stream", {"enum": "Role.LOAD"})),
            "graph.channels[0].stream.class",
            "one of StreamType",
            "null",
        ),
        (
            _edited(lambda d: d["graph"]["channels"][0]["stream"].update(kind={"enum": "X.VALUE"})),
            "graph.channels[0].stream.kind",
            "one of StreamKind.VALUE, StreamKind.CONTROL, StreamKind.COORDINATE,"
            " StreamKind.REFERENCE, StreamKind.BITVECTOR",
            '{"enum": "X.VALUE"}',
        ),
        (
            _edited(_set("name", {"float": "one"})),
            "graph.channels[0].name",
            "a text",
            '{"float": "one"}',
        ),
        (
            _edited(_set("depth", 2)),
            "graph.channels[0].depth",
            "one of the fields name, stream, source, sink, shape, source_index, sink_index,"
            " capacity, latency, location",
            "an unknown field",
        ),
        ("[" * 100_000, "the document", "a graph", "objects nested too deeply"),
    ],
)
def test_malformed(text: str, where: str, expected: str, given: str | None) -> None:
    with pytest.raises(UserError) as caught:
        graph_from_json(text)
    lines = str(caught.value).splitlines()
    assert lines[0] == f"the text is not a graph in JSON: {where} is wrong"
    assert lines[1] == f"  expected: {expected}"
    if given is not None:
        assert lines[2].startswith(f"  given:    {given}")


def test_another_format_says_what_to_do() -> None:
    with pytest.raises(UserError, match="written by another version of t2s: write it again"):
        graph_from_json(_edited(lambda document: document.__setitem__("format", 0)))


def test_what_is_no_list_of_alternatives() -> None:
    document = json.loads(graph_to_json(pipeline()))
    document["graph"]["nodes"] = -1
    with pytest.raises(UserError, match=r"graph\.nodes is wrong"):
        graph_from_json(json.dumps(document))


@pytest.mark.parametrize(("field", "value"), [("bits", 0), ("bits", 31), ("lanes", 0)])
def test_types_that_there_are_not_are_refused(field: str, value: int) -> None:
    text = graph_to_json(systolic_gemm(1, 1, 1))
    written = re.sub(rf'"{field}": \d+', f'"{field}": {value}', text, count=1)
    assert written != text
    with pytest.raises(UserError, match="an existing type, such as float32"):
        graph_from_json(written)
