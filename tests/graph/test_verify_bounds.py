"""Graphs that leave register files or tensors are refused before any consumer reads them."""

from __future__ import annotations

from dataclasses import replace

import pytest

import t2s
from t2s import Func, ImageParam, Int, RDom, Var
from t2s.graph.body import Load
from t2s.graph.graph import Graph
from t2s.graph.nodes import PEArray
from t2s.graph.verify import GraphError, verify_graph


def triangle() -> Graph:
    i, j, k = Var("i"), Var("j"), RDom(0, 3, name="k")
    x, F = ImageParam(Int(32), 1, name="x"), Func("F")
    F[i, j] = 0
    F[i, j] += x[k]
    return t2s.lower(F.bound(i, 0, 3).bound(j, 0, i + 1).reorder(j, i, k))


def test_a_register_file_that_is_too_small() -> None:
    graph = triangle()
    verify_graph(graph)
    node = graph.node("F")
    assert isinstance(node, PEArray)
    (register,) = node.registers
    small = replace(node, registers=(replace(register, shape=(3, 2)),))
    nodes = tuple(small if old is node else old for old in graph.nodes)
    with pytest.raises(GraphError, match="'F' reads outside of 'F_partial'"):
        verify_graph(replace(graph, nodes=nodes))


def test_a_load_behind_its_tensor() -> None:
    graph = triangle()
    node = next(node for node in graph.pe_arrays if isinstance(node.body[0], Load))
    load = node.body[0]
    assert isinstance(load, Load)
    later = tuple(index + 1 for index in load.indices)
    moved = replace(node, body=(replace(load, indices=later), *node.body[1:]))
    nodes = tuple(moved if old is node else old for old in graph.nodes)
    with pytest.raises(GraphError, match="loads outside of 'x'") as refused:
        verify_graph(replace(graph, nodes=nodes))
    assert refused.value.given == "indices 1 to 3"
