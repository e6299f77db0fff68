"""Operators on the bits of words: reference cases, random ones, text, and refusals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2s.backends.cgra_tia.lower.control.refusals import BlockRefusals
from t2s.backends.cgra_tia.lower.not_lowered import NotLowered
from t2s.backends.kernels.design import check_vocabulary
from t2s.backends.opencl_fpga.dialect import OPENCL
from t2s.backends.verilog.counted_nests import nests_of
from t2s.core.expr import (
    Broadcast,
    CountBits,
    Expr,
    Local,
    LowestBits,
    RankBits,
    Select,
    SetBits,
    apply,
    const,
)
from t2s.core.ops import Array, Op
from t2s.core.types import INT32, Type, UInt
from t2s.graph.body import Let, Load, Store
from t2s.graph.graph import Graph, Tensor, TensorRole
from t2s.graph.nodes import Choice, Machine, Mode, Role, Rule
from t2s.graph.printer import print_graph
from t2s.graph.serialize import graph_from_json, graph_to_json
from t2s.graph.verify import verify_graph
from t2s.graph.verify_expr import GraphError
from t2s.simulator.devices import DEVICES
from t2s.simulator.run import simulate
from tests.graph.changes import pipeline, with_value

WORD = UInt(32)
ENGINES = ("python", "native")


def machine(operands: Mapping[str, Type], results: Mapping[str, Expr]) -> Graph:
    """Loads operands, computes values of them, which may use those before, and stores these."""
    tensors, body = [], []
    for name, type in operands.items():
        tensors.append(
            Tensor(name=name, type=type.scalar, shape=(type.lanes,), role=TensorRole.INPUT)
        )
        body.append(Load(target=f"{name}_", tensor=name, indices=(const(0),), type=type))
    for name, value in results.items():
        type = value.type
        tensors.append(
            Tensor(name=name, type=type.scalar, shape=(type.lanes,), role=TensorRole.OUTPUT)
        )
        body.append(Let(target=f"{name}_", value=value))
        local = Local(name=f"{name}_", type=type)
        body.append(Store(tensor=name, indices=(const(0),), value=local))
    rule = Rule(name="all", body=tuple(body))
    mode = Mode(name="run", needs=(), choices=(Choice(inside=rule),))
    node = Machine(name="scan", role=Role.COMPUTE, heads=(), modes=(mode,))
    return Graph(name="bits", nodes=(node,), channels=(), tensors=tuple(tensors))


def value(name: str, type: Type) -> Local:
    return Local(name=f"{name}_", type=type)


def ranks(words: Local, found: Local) -> Expr:
    """Where the numbers that were found are in words; -1 for those that are not there."""
    wide = found.type

    def constant(number: int) -> Expr:
        return Broadcast(value=const(number), type=wide)

    rank = RankBits(words=words, bits=found, type=wide)
    behind = RankBits(words=words, bits=found + constant(1), type=wide)
    some = found > constant(-1)
    there = some & (behind > rank)
    return Select(condition=there, if_true=rank, if_false=constant(-1), type=wide)


def scan(a: list[int], b: list[int], operator: Op, lanes: int, engine: str) -> dict[str, Array]:
    """A scan of two vectors of words: how many bits, which ones, and where they are in each."""
    type, wide = WORD.with_lanes(len(a)), INT32.with_lanes(lanes)
    left, right, both = value("a", type), value("b", type), value("both", type)
    found = value("found", wide)
    results = {
        "both": apply(operator, left, right),
        "count": CountBits(words=both, type=INT32),
        "found": LowestBits(words=both, type=wide),
        "at_a": ranks(left, found),
        "at_b": ranks(right, found),
    }
    graph = machine({"a": type, "b": type}, results)
    inputs = {"a": np.array(a, np.uint32), "b": np.array(b, np.uint32)}
    outputs = dict(simulate(graph, inputs, engine=engine).outputs)
    count = int(outputs["count"][0])
    assert count <= lanes
    assert outputs["found"][count:].tolist() == [-1] * (lanes - count)
    return {name: array[:count] for name, array in outputs.items()}


def words(*numbers: int, count: int = 2) -> list[int]:
    found = [0] * count
    for number in numbers:
        found[number // 32] |= 1 << number % 32
    return found


COUNTED, ALTERNATING = list(range(32)), [0xAAAA] * 32


@pytest.mark.parametrize("engine", ENGINES)
def test_one_operand(engine: str) -> None:
    found = scan(COUNTED, COUNTED, Op.AND, 128, engine)
    assert len(found["found"]) == 80
    assert (found["found"].sum(), found["at_a"].sum()) == (47776, 3160)


@pytest.mark.parametrize("engine", ENGINES)
def test_long_operands(engine: str) -> None:
    both = scan(COUNTED, ALTERNATING, Op.AND, 64, engine)
    assert len(both["found"]) == 32
    sums = [both[name].sum() for name in ("found", "at_a", "at_b")]
    assert sums == [18496, 1216, 4624]
    either = scan(COUNTED, ALTERNATING, Op.OR, 320, engine)
    assert (len(either["found"]), either["found"].sum()) == (304, 158304)
    missing = [int((either[name] < 0).sum()) for name in ("at_a", "at_b")]
    assert missing == [224, 48]


@pytest.mark.parametrize("engine", ENGINES)
def test_short_operands(engine: str) -> None:
    a, b = words(0, 2, 5, 9), words(2, 3, 9, 40)
    both = scan(a, b, Op.AND, 4, engine)
    assert both["found"].tolist() == [2, 9]
    assert (both["at_a"].tolist(), both["at_b"].tolist()) == ([1, 3], [0, 2])
    either = scan(a, b, Op.OR, 16, engine)
    assert either["found"].tolist() == [0, 2, 3, 5, 9, 40]
    assert either["at_a"].tolist() == [0, 1, -1, 2, 3, -1]
    assert either["at_b"].tolist() == [-1, 0, 1, -1, 2, 3]
    assert scan([0] * 16, [0] * 16, Op.OR, 16, engine)["found"].tolist() == []


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    count=st.sampled_from((1, 2, 3, 16)),
    lanes=st.sampled_from((1, 2, 5, 16, 40)),
    ones=st.sampled_from((0.02, 0.5, 1.0)),
    seed=st.integers(0, 99),
)
def test_random(count: int, lanes: int, ones: float, seed: int) -> None:
    """Against sets of numbers, in both engines; bits may be anything."""
    generator = np.random.default_rng(seed)
    type, wide = WORD.with_lanes(count), INT32.with_lanes(lanes)
    here = np.flatnonzero(generator.random(32 * count) < ones)
    inputs = {
        "w": np.array(words(*here.tolist(), count=count), np.uint32),
        "n": generator.integers(-5, 32 * count + 40, lanes, np.int32),
    }
    graph = machine(
        {"w": type, "n": wide},
        {
            "count": CountBits(words=value("w", type), type=INT32),
            "lowest": LowestBits(words=value("w", type), type=wide),
            "rank": RankBits(words=value("w", type), bits=value("n", wide), type=wide),
            "set": SetBits(words=value("w", type), bits=value("n", wide), type=type),
        },
    )
    lowest = [*here.tolist(), *[-1] * lanes][:lanes]
    rank = [-1 if n < 0 else int((here < n).sum()) for n in inputs["n"].tolist()]
    more = {n for n in inputs["n"].tolist() if 0 <= n < 32 * count}
    both = words(*({*here.tolist()} | more), count=count)
    for engine in ENGINES:
        outputs = simulate(graph, inputs, engine=engine).outputs
        found = {name: array.tolist() for name, array in outputs.items()}
        assert found == {"count": [len(here)], "lowest": lowest, "rank": rank, "set": both}


TWO, FOUR = WORD.with_lanes(2), INT32.with_lanes(4)
W, N = value("w", TWO), value("n", FOUR)
EXAMPLE = {
    "count": CountBits(words=W, type=INT32),
    "lowest": LowestBits(words=W, type=FOUR),
    "rank": RankBits(words=W, bits=N, type=FOUR),
    "set": SetBits(words=W, bits=N, type=TWO),
}
GRAPH = machine({"w": TWO, "n": FOUR}, EXAMPLE)


def test_text_and_json() -> None:
    verify_graph(GRAPH)
    assert graph_from_json(graph_to_json(GRAPH)) == GRAPH
    text = print_graph(GRAPH)
    for part in ("ones(w_)", "lowest(w_, 4)", "rank(w_, n_)", "set_bits(w_, n_)"):
        assert part in text


def test_latencies_are_those_of_a_tree_of_additions() -> None:
    device = replace(DEVICES["ideal"], operator_latencies=DEVICES["arria10"].operator_latencies)
    adder = device.operator_latency(Op.ADD, INT32)
    assert device.latency_of(EXAMPLE["count"]) == 6 * adder


@pytest.mark.parametrize(
    ("result", "part"),
    [
        (CountBits(words=N, type=INT32), "the words of ones(n_)"),
        (CountBits(words=W, type=FOUR), "ones(w_) has the wrong type"),
        (LowestBits(words=W, type=TWO), "lowest(w_, 2) has the wrong type"),
        (RankBits(words=W, bits=W, type=FOUR), "the bits of rank(w_, w_) has the wrong type"),
    ],
)
def test_wrong_types(result: Expr, part: str) -> None:
    with pytest.raises(GraphError) as caught:
        verify_graph(machine({"w": TWO, "n": FOUR}, {"out": result}))
    assert part in str(caught.value)


def test_only_machines_have_them() -> None:
    graph = with_value(pipeline(), CountBits(words=const(1, WORD), type=INT32))
    with pytest.raises(GraphError) as caught:
        verify_graph(graph)
    assert "operators on bits of words are those of machines" in str(caught.value)
    assert "make the node a machine" in str(caught.value)


def test_backends_refuse() -> None:
    whys = [problem.why for problem in check_vocabulary(OPENCL, GRAPH)]
    assert "operators on the bits of words are not supported in OpenCL" in whys
    problems = nests_of(GRAPH)
    assert isinstance(problems, list)
    text = "operators on the bits of words are not supported in SystemVerilog yet"
    assert [problem.why for problem in problems] == [text]
    with pytest.raises(NotLowered, match=r"computes ones\(w_\), and cells have no operators"):
        BlockRefusals(GRAPH.machines[0]).check_machine(GRAPH)
