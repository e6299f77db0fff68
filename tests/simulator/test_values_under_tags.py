"""Streams whose tokens keep their value under every tag: the tag is data beside the value."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.random_machines import random_machines
from t2s.backends.opencl_fpga import BACKEND as OPENCL
from t2s.core.expr import const, equals
from t2s.core.types import INT32
from t2s.graph.body import Load, RegisterWrite, Statement, Store
from t2s.graph.graph import Channel, Graph, StreamType, Tensor, TensorRole
from t2s.graph.interpret import interpret_graph
from t2s.graph.nodes import Choice, Head, Machine, Mode, Put, Register, Role, Rule
from t2s.graph.printer import print_graph
from t2s.graph.semantics import Token
from t2s.graph.serialize import graph_from_json, graph_to_json
from t2s.graph.verify import verify_graph
from t2s.simulator.run import simulate
from tests.graph.machines import is_tag, local
from tests.graph.refusal import refuse
from tests.sampling import sampled

X = np.array([5, -3, 7, 0, 9, 2], np.int32)
TAGGED = StreamType(element=INT32, nesting=1, values_under_tags=True)


def _machine(name: str, role: Role, head: Head | None, *choices: Choice) -> Machine:
    needs = () if head is None else (head.channel,)
    return Machine(
        name=name,
        role=role,
        heads=() if head is None else (head,),
        registers=(Register(name=f"{name}_at", type=INT32, shape=(), distance=1),),
        modes=(Mode(name="run", needs=needs, choices=choices),),
    )


def _step(name: str) -> RegisterWrite:
    return RegisterWrite(register=name, indices=(), value=local(name) + 1)


def numbered(stream: StreamType = TAGGED) -> Graph:
    """Sends the elements of ``x``, the first five with tags 0, 1, ..., the last with tag 7.

    What is stored is the value and 100 times the tag.
    """
    at = local("from_at")
    load = Load(target="loaded", tensor="x", indices=(at,), type=INT32)

    def put(name: str, tag: int | None, after: str | None) -> Rule:
        spelled = at if tag is None else const(tag, INT32)
        sent = Put(channel="xs", value=local("loaded"), tag=spelled)
        return Rule(name=name, body=(_step("from_at"),), puts=(sent,), next=after)

    last = Choice(when=equals(at, const(len(X) - 1, INT32)), inside=put("last", 7, None))
    sender = _machine(
        "from",
        Role.LOAD,
        None,
        Choice(body=(load,), inside=(last, Choice(inside=put("more", None, "run")))),
    )
    number = local("value") + local("tag") * 100
    body: tuple[Statement, ...] = (
        Store(tensor="y", indices=(local("to_at"),), value=number),
        _step("to_at"),
    )
    receiver = _machine(
        "to",
        Role.STORE,
        Head(channel="xs", value="value", tag="tag"),
        Choice(when=is_tag("tag", 7), inside=Rule(name="end", body=body, takes=("xs",))),
        Choice(inside=Rule(name="keep", body=body, takes=("xs",), next="run")),
    )
    return Graph(
        name="numbered",
        nodes=(sender, receiver),
        channels=(Channel(name="xs", stream=stream, source="from", sink="to"),),
        tensors=(
            Tensor(name="x", type=INT32, shape=(6,), role=TensorRole.INPUT),
            Tensor(name="y", type=INT32, shape=(6,), role=TensorRole.OUTPUT),
        ),
    )


@pytest.mark.parametrize("engine", ["python", "native"])
def test_values_are_kept(engine: str) -> None:
    tags = np.array([0, 1, 2, 3, 4, 7])
    found = simulate(numbered(), {"x": X}, engine=engine)
    np.testing.assert_array_equal(found.outputs["y"], X + 100 * tags)
    bare = simulate(numbered(replace(TAGGED, values_under_tags=False)), {"x": X}, engine=engine)
    np.testing.assert_array_equal(bare.outputs["y"], np.where(tags == 0, X, 0) + 100 * tags)
    np.testing.assert_array_equal(interpret_graph(numbered(), {"x": X})["y"], X + 100 * tags)


def kept(graph: Graph) -> Graph:
    """The graph with values under all tags, wherever there are tags."""
    channels = (
        replace(c, stream=replace(c.stream, values_under_tags=c.stream.nesting > 0))
        for c in graph.channels
    )
    return replace(graph, channels=tuple(channels))


@sampled("seed", [1, 2, 3, 54], quick=2)
def test_random_machines(seed: int) -> None:
    graph, inputs = random_machines(seed)
    graph = kept(graph)
    plain, native = (simulate(graph, inputs, engine=engine) for engine in ("python", "native"))
    assert native.cycles == plain.cycles
    for name, array in interpret_graph(graph, inputs).items():
        np.testing.assert_array_equal(plain.outputs[name], array)
        np.testing.assert_array_equal(native.outputs[name], array)


def test_text_and_files() -> None:
    graph = numbered()
    verify_graph(graph)
    assert "channel xs: int32 nesting 1, values under all tags\n" in print_graph(graph)
    assert graph_from_json(graph_to_json(graph)) == graph
    assert "values_under_tags" not in graph_to_json(
        numbered(replace(TAGGED, values_under_tags=False))
    )
    assert str(Token(np.int32(5), 2)) == "S1 with 5"
    assert str(Token(np.int32(0), 2)) == "S1"
    assert "streams with stop tokens are not supported in OpenCL" in str(OPENCL.supports(graph))


def test_there_have_to_be_tags() -> None:
    refuse(
        numbered(replace(TAGGED, nesting=0)),
        "channel 'xs': its tokens keep values under tags that they do not have",
        "  expected: a nesting of at least 1",
        "  given:    nesting 0: values alone",
    )
