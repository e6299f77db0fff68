"""Machines as OpenCL: what a decoder looks like, what is refused, and the emulator's values."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import t2s
from t2s.backends.opencl_fpga import BACKEND, emulate, emulator_available
from t2s.core.expr import Expr, Local, apply, equals
from t2s.core.ops import Op
from t2s.core.types import INT32, Float
from t2s.graph.body import RegisterWrite
from t2s.graph.graph import Channel, Graph, StreamType
from t2s.graph.interpret import interpret_graph
from t2s.graph.nodes import Choice, Head, Machine, Mode, Put, Register, Role, Rule, SortedMemory
from t2s.graph.serialize import graph_from_json, graph_to_json
from t2s.graph.verify import verify_graph
from tests.backends.builders import load, store, tensor
from tests.conftest import Golden
from tests.graph.machines import copying
from tests.hand_graphs import index, loop

EXAMPLES = Path(__file__).parents[2] / "examples" / "spmv"
sys.path.insert(0, str(EXAMPLES))
import cisr  # noqa: E402

emulated = [
    pytest.mark.emulator,
    pytest.mark.skipif(not emulator_available(), reason="the emulator is not installed"),
]
MATRIX = np.array(
    [[1, 0, 2, 0], [0, 0, 0, 0], [0, 3, 0, 4], [5, 6, 7, 8], [0, 0, 0, 9]], np.float32
)
LAST = 99


def local(name: str) -> Local:
    return Local(name=name, type=INT32)


def link(name: str, source: str, sink: str) -> Channel:
    return Channel(name=name, stream=StreamType(element=INT32), source=source, sink=sink)


def merging_rule(side: str) -> Rule:
    """Take the head of one side; the head of the other stays.  Puts the count from before too."""
    counted = RegisterWrite(register="count", indices=(), value=plus_one(local("count")))
    total = local(side) + local("count") * 1000
    return Rule(
        name=f"take {side}",
        body=(counted,),
        takes=(f"{side}_in",),
        puts=(Put(channel="merged", value=total),),
        next="merge",
    )


def plus_one(value: Expr) -> Expr:
    return value + 1


def merge() -> Machine:
    """Merges two sorted streams, each of which ends with a 99."""
    ended = apply(Op.AND, *(equals(local(side), LAST) for side in ("left", "right")))
    choices = (
        Choice(when=ended, inside=Rule(name="end", takes=("left_in", "right_in"))),
        Choice(when=local("left") <= local("right"), inside=merging_rule("left")),
        Choice(when=local("right") < LAST + 1, inside=merging_rule("right")),
    )
    return Machine(
        name="merge",
        role=Role.COMPUTE,
        heads=(Head(channel="left_in", value="left"), Head(channel="right_in", value="right")),
        registers=(Register(name="count", type=INT32, shape=(), distance=1),),
        modes=(Mode(name="merge", needs=("left_in", "right_in"), choices=choices),),
    )


def merging() -> Graph:
    """``merge`` between two loaders of 3 and 5 values and a store."""
    t = index("t")
    return Graph(
        name="merging",
        nodes=(
            load("left_load", "a", "left_in", (loop("t", 3),), (t,)),
            load("right_load", "b", "right_in", (loop("t", 5),), (t,)),
            merge(),
            store("y_store", "y", "merged", (loop("t", 6),), (t,)),
        ),
        channels=(
            link("left_in", "left_load", "merge"),
            link("right_in", "right_load", "merge"),
            link("merged", "merge", "y_store"),
        ),
        tensors=(tensor("a", 3), tensor("b", 5), tensor("y", 6, role="output")),
    )


INPUTS = {
    "a": np.array([3, 5, LAST], np.int32),
    "b": np.array([1, 3, 4, 9, LAST], np.int32),
}


def kernel(text: str, name: str) -> str:
    found = re.search(rf"__kernel void {name}\(.*?\n}}\n", text, re.DOTALL)
    assert found is not None
    return found[0]


def test_a_head_may_stay(golden: Golden) -> None:
    graph = merging()
    verify_graph(graph)
    assert BACKEND.supports(graph) == []
    golden("opencl_fpga/merging.cl", BACKEND.emit(graph)["merging.cl"])


def test_decoder(golden: Golden) -> None:
    graph = t2s.lower(cisr.spmv(machines=2, fused=1), {"A": MATRIX})
    text = BACKEND.emit(graph)["y.cl"]
    golden("opencl_fpga/cisr_decoder.cl", kernel(text, "A_decoder"))
    assert BACKEND.emit(graph)["y.cl"] == text


def test_machines_run_once_and_by_the_host() -> None:
    graph = t2s.lower(cisr.spmv(machines=2, fused=1), {"A": MATRIX})
    files = BACKEND.emit(graph)
    head = files["y.cl"].split("__kernel void A_decoder(")[0].rsplit("}", 1)[1]
    assert "autorun" not in head
    assert '"A_decoder": [],' in files["y_host.py"]


def problems(graph: Graph) -> list[str]:
    return [str(problem) for problem in BACKEND.supports(graph)]


def test_sorted_memories() -> None:
    graph = merging()
    memory = SortedMemory(name="points", keys=(INT32,), type=Float(32), operator=Op.ADD)
    strange = replace(merge(), memories=(memory,))
    nodes = tuple(strange if node.name == "merge" else node for node in graph.nodes)
    assert problems(replace(graph, nodes=nodes)) == [
        "node 'merge': sorted memories such as 'points' are not supported in OpenCL"
    ]


def test_open_tensors_and_stop_tokens() -> None:
    assert problems(copying()) == [
        "tensor 'x': tensors of unknown length and tensors on the chip are not supported in OpenCL",
        "tensor 'y': tensors of unknown length and tensors on the chip are not supported in OpenCL",
        "channel 'xs': streams with stop tokens are not supported in OpenCL",
    ]


def test_a_channel_from_a_machine_to_itself() -> None:
    graph = merging()
    rule = Rule(
        name="around",
        takes=("left_in", "right_in"),
        puts=(Put(channel="right_in", value=local("left")),),
    )
    mode = replace(merge().modes[0], choices=(Choice(inside=rule),))
    nodes = (graph.nodes[0], replace(merge(), modes=(mode,)))
    channels = (graph.channels[0], link("right_in", "merge", "merge"))
    assert problems(replace(graph, nodes=nodes, channels=channels)) == [
        "channel 'right_in': a machine that puts tokens into its own channel is not supported in "
        "OpenCL"
    ]


class TestEmulator:
    """On the emulator."""

    pytestmark = emulated

    def test_a_head_that_stays(self) -> None:
        graph = merging()
        expected = interpret_graph(graph, INPUTS)["y"]
        assert expected.tolist() == [1, 1003, 2003, 3004, 4005, 5009]
        found = emulate(graph, INPUTS, time_limit=120, exact_depths=True)["y"]
        np.testing.assert_array_equal(found, expected)

    @pytest.mark.slow
    def test_sparse_product(self) -> None:
        design = cisr.spmv(machines=2, fused=1)
        inputs = {"A": MATRIX, "x": np.array([0.5, -2, 3, 0.1], np.float32)}
        found = t2s.emulate(design, inputs, time_limit=200)["y"]
        np.testing.assert_array_equal(found, t2s.simulate(design, inputs).outputs["y"])


def test_elements_of_channels_have_names_of_their_own() -> None:
    """Element 0 of an array and a channel of the same name are two channels."""
    graph = t2s.lower(cisr.spmv(2, fused=1), {"A": MATRIX})
    text = graph_to_json(graph).replace('"x_feeder_place"', '"x_loader_word"')
    names = {channel.name for channel in graph.channels}
    assert {"x_feeder_place", "x_loader_word_0"} <= names
    (kernels,) = (
        content
        for path, content in BACKEND.emit(graph_from_json(text)).items()
        if path.endswith(".cl")
    )
    declared = re.findall(r"^channel \w+ (\w+)", kernels, re.M)
    assert len(set(declared)) == len(declared)
    assert "x_loader_word_0_2" in declared
