"""The picture of a graph."""

from __future__ import annotations

import re
from dataclasses import replace

from t2s.graph.nodes import Role
from t2s.graph.printer import graph_to_dot
from tests.graph.changes import pipeline, with_channel, with_node
from tests.hand_graphs import systolic_gemm

PIPELINE = r"""digraph "prefix_sum" {
  rankdir=LR;
  "load_X" [shape=invhouse, label="load_X\nload\nloops i: 8"];
  "sum" [shape=box, label="sum\ncompute\nloops i: 8"];
  "store_Y" [shape=house, label="store_Y\nstore\nloops i: 8"];
  "load_X" -> "sum" [label="to_sum\nint32\ndepth 2"];
  "sum" -> "store_Y" [label="from_sum\nint32\ndepth 2"];
}
"""


def test_a_pipeline() -> None:
    assert graph_to_dot(pipeline()) == PIPELINE


def test_an_array() -> None:
    text = graph_to_dot(systolic_gemm(3, 2, 5, lanes=4, capacity=9))
    assert r'"C" [shape=box, label="C\ncompute\nspace [ii: 3, jj: 2]\nloops ' in text
    assert r'"C" -> "C" [label="A_pass\nint32x4 [3, 2]\ndepth 9"];' in text
    assert len(re.findall(" -> ", text)) == 5


def test_every_role_has_a_shape_of_its_own() -> None:
    shapes = set()
    for role in Role:
        text = graph_to_dot(with_node(pipeline(), "sum", role=role))
        shapes |= set(re.findall(r'"sum" \[shape=(\w+)', text))
    assert len(shapes) == len(Role)


def test_names_are_escaped() -> None:
    graph = with_channel(replace(pipeline(), name='a "b"'), "to_sum", name=r"x\ny")
    text = graph_to_dot(graph)
    assert text.startswith('digraph "a \\"b\\"" {\n')
    assert r'[label="x\\ny\nint32\ndepth 2"]' in text
