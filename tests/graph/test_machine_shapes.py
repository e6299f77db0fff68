"""Machines of one shape are the same but for names; all others are told apart."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest

from t2s import sparse
from t2s.core.expr import Const, Expr, Local
from t2s.core.types import INT32, Float, Int
from t2s.graph.graph import Channel, Graph, StreamType, Tensor, TensorRole
from t2s.graph.machine_shapes import firsts_of_shapes, shapes_of
from t2s.graph.nodes import Choice, Head, Machine, Mode, Put, Role, Rule
from t2s.graph.verify import GraphError, verify_graph
from t2s.simulator.values.emit_frame import renamed


def relay(name: str, value: Expr | None = None, *, taken: str = "", put: str = "") -> Machine:
    """Takes a token and puts another: itself, or ``value``."""
    taken, put = taken or f"into_{name}", put or f"out_of_{name}"
    head = Head(channel=taken, value="x")
    sent = Local(name="x", type=INT32) if value is None else value
    rule = Rule(name="pass", takes=(taken,), puts=(Put(channel=put, value=sent),), next="go")
    mode = Mode(name="go", needs=(taken,), choices=(Choice(inside=rule),))
    return Machine(name=name, role=Role.COMPUTE, heads=(head,), modes=(mode,), endless=True)


def ring(*machines: Machine, type=INT32) -> Graph:
    """Machines that each put into the next one; sound but for what is asked for."""
    names = [machine.name for machine in machines]
    nodes, channels = [], []
    for n, (machine, after) in enumerate(zip(machines, [*names[1:], names[0]], strict=True)):
        before, behind = f"c{n}", f"c{(n + 1) % len(names)}"
        value = machine.modes[0].choices[0].inside.puts[0].value  # type: ignore[union-attr]
        nodes.append(
            replace(relay(machine.name, value, taken=before, put=behind), endless=machine.endless)
        )
        channels.append(
            Channel(
                name=behind,
                stream=StreamType(element=type, nesting=0),
                source=machine.name,
                sink=after,
                capacity=2,
                latency=1,
            )
        )
    return Graph(name="ring", nodes=tuple(nodes), channels=tuple(channels), tensors=())


def number(value: object, type=INT32) -> Const:
    return Const(value=value, type=type)  # type: ignore[arg-type]


def count(graph: Graph) -> int:
    return len({shape.number for shape in shapes_of(graph).values()})


def test_names_do_not_matter() -> None:
    graph = ring(*(relay(name) for name in ("a", "b", "c")))
    verify_graph(graph)
    assert count(graph) == 1
    assert firsts_of_shapes(graph) == {"a"}
    shapes = shapes_of(graph)
    assert shapes["a"].names_in(shapes["b"]) == {"a": "b", "c0": "c1", "c1": "c2"}


@pytest.mark.parametrize(
    ("first", "second", "type"),
    [
        (number(0.0, Float(32)), number(-0.0, Float(32)), Float(32)),
        (number(1), number(2), INT32),
        (number(1), number(1, Int(64)), INT32),
        (number(1), number(True), INT32),
        (
            Local(name="x", type=INT32) + 1,
            Local(name="x", type=INT32) - 1,
            INT32,
        ),
        (Local(name="x", type=INT32), Local(name="y", type=INT32), INT32),
    ],
)
def test_values_and_types_matter(first: Expr, second: Expr, type) -> None:
    assert count(ring(relay("a", first), relay("b", second), type=type)) == 2
    assert count(ring(relay("a", first), relay("b", replace(first)), type=type)) == 1  # type: ignore[type-var]


def test_channels_matter() -> None:
    graph = ring(relay("a"), relay("b"))
    wide = replace(graph.channels[0], stream=StreamType(element=Int(64), nesting=0))
    assert count(replace(graph, channels=(wide, graph.channels[1]))) == 2
    deep = replace(graph.channels[0], capacity=7)
    assert count(replace(graph, channels=(deep, graph.channels[1]))) == 1


def test_who_is_endless_matters() -> None:
    assert count(ring(relay("a"), replace(relay("b"), endless=False))) == 2


def test_terms_of_any_depth() -> None:
    value: Expr = Local(name="x", type=INT32)
    for _ in range(5000):
        value = value + 1
    assert count(ring(relay("a", value), relay("b", value))) == 1


def test_undeclared_tensors_are_left_to_the_verifier() -> None:
    kernel = sparse.compile(sparse.parse("y(i) = a(i)", {"a": "s", "y": "s"}))
    (graph,) = kernel.graphs({"a": np.array([0.0, 1.0])})
    broken = replace(graph, tensors=())
    assert len(shapes_of(broken)) == len(graph.machines)
    with pytest.raises(GraphError, match="uses an unknown tensor"):
        verify_graph(broken)


def test_a_mistake_of_many_is_found_in_the_first() -> None:
    wrong = number(1, Int(64))
    with pytest.raises(GraphError, match=r"node .b.: .*wrong type"):
        verify_graph(ring(relay("a"), relay("b", wrong), relay("c", wrong)))


def test_machines_of_one_shape_are_equal_with_their_names_exchanged() -> None:
    text = "X(i,j) = B(i,k) * C(k,j)"
    assignment = sparse.parse(text, {"B": "ss", "C": "ss", "X": "ss"})
    kernel = sparse.compile(assignment, "reorder(i,k,j), parallelize(i,5)")
    inputs = {name: np.eye(6) for name in "BC"}
    (graph,) = kernel.graphs(inputs)
    groups = defaultdict(list)
    for node in graph.machines:
        groups[shapes_of(graph)[node.name].number].append(node)
    assert max(map(len, groups.values())) >= 5
    for first, *others in groups.values():
        shape = shapes_of(graph)[first.name]
        plain = repr(replace(first, location=None, region=None))
        for other in others:
            names = shape.names_in(shapes_of(graph)[other.name])
            (exchanged,) = renamed([plain], names)
            assert exchanged == repr(replace(other, location=None, region=None))


def test_tensors_matter() -> None:
    inputs = {"a": np.array([0.0, 1.0]), "b": np.array([2.0, 0.0])}
    kernel = sparse.compile(sparse.parse("y(i) = a(i) + b(i)", {"a": "s", "b": "s", "y": "s"}))
    (graph,) = kernel.graphs(inputs)
    found = shapes_of(graph)
    scans = [node.name for node in graph.machines if node.name.startswith("scan")]
    assert len({found[name].number for name in scans}) == 1
    tensors = tuple(
        replace(one, type=Int(64)) if isinstance(one, Tensor) and "a" in one.name[:1] else one
        for one in graph.tensors
    )
    assert any(one.role is TensorRole.INPUT for one in tensors)
    changed = shapes_of(replace(graph, tensors=tensors))
    assert len({changed[name].number for name in scans}) == 2
