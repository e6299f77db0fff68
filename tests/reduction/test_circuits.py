"""Reduction circuits: one sum for each target, in order, whatever the lengths are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2s.core.types import INT32, Float, Type
from t2s.graph.body import Let, Load, Receive, Role, Send, Store
from t2s.graph.build import GraphParts, index, local, space
from t2s.graph.graph import Graph, Tensor, TensorRole
from t2s.graph.interpret import interpret_graph
from t2s.graph.nodes import PEArray
from t2s.graph.verify import verify_graph
from t2s.reduction.circuits import (
    LANE,
    STEP,
    Circuit,
    Lanes,
    LinearArray,
    Structure,
    Tree,
    reduce_lanes,
    send_lanes,
    step_loops,
)
from t2s.simulator.run import simulate


def bench(circuit: Circuit, count: int, fused: int, steps: int) -> tuple[Graph, int]:
    """A circuit between load and store units: targets and values in, targets and sums out."""
    parts, type = GraphParts(), circuit.type
    names = tuple(f"stage_{number}" for number in range(circuit.node_count))
    source = Lanes(node="source", count=count, fused=1, steps=steps, width=1, type=type)
    for name, element in (("target", INT32), ("value", type)):
        parts.tensors.append(
            Tensor(name=f"{name}s", type=element, shape=(count, steps), role=TensorRole.INPUT)
        )
        parts.nodes.append(
            PEArray(
                name=f"load_{name}",
                role=Role.LOAD,
                space=(space(LANE, count),),
                loops=step_loops(steps, 1),
                body=(
                    Load(
                        target="loaded",
                        tensor=f"{name}s",
                        indices=(index(LANE), index(STEP)),
                        type=element,
                    ),
                    Send(channel=f"to_{name}", value=local("loaded", element)),
                ),
            )
        )
        at = (index(LANE),)
        parts.link(
            f"to_{name}",
            element,
            f"load_{name}",
            "source",
            shape=(count,),
            source_index=at,
            sink_index=at,
        )
    body = (
        Receive(target="t", channel="to_target", type=INT32),
        Receive(target="v", channel="to_value", type=type),
        Let(target="out_target_0", value=local("t")),
        Let(target="out_value_0", value=local("v", type)),
        *send_lanes(parts, source, names[0], fused),
    )
    parts.nodes.append(
        PEArray(
            name="source",
            role=Role.RELAY,
            space=(space(LANE, count),),
            loops=step_loops(steps, 1),
            body=body,
        )
    )
    taken = Lanes(node=names[0], count=count, fused=fused, steps=steps, width=1, type=type)
    leaving = reduce_lanes(parts, circuit, taken, names, "sink", count)
    for lane in range(count):
        for name, element in (("target", INT32), ("value", type)):
            output = f"{name}_{lane}"
            parts.tensors.append(
                Tensor(name=output, type=element, shape=(leaving.steps,), role=TensorRole.OUTPUT)
            )
            parts.nodes.append(
                PEArray(
                    name=f"store_{output}",
                    role=Role.STORE,
                    space=(),
                    loops=step_loops(leaving.steps, 1),
                    body=(
                        Receive(target="token", channel=f"sink_{output}", type=element),
                        Store(tensor=output, indices=(index(STEP),), value=local("token", element)),
                    ),
                )
            )
    parts.channels = [
        replace(channel, sink=f"store_{channel.name.removeprefix('sink_')}")
        if channel.sink == "sink"
        else channel
        for channel in parts.channels
    ]
    return parts.graph("bench", None), leaving.steps


def groups(lengths: list[int], steps: int, generator: np.random.Generator) -> np.ndarray:
    """Targets from 1 with these lengths, zeros behind."""
    line = np.repeat(np.arange(1, len(lengths) + 1), lengths)[:steps]
    generator.shuffle(labels := np.arange(1, len(lengths) + 1))
    return np.pad(labels[line - 1] if line.size else line, (0, steps - line.size))


def expected(targets: np.ndarray, values: np.ndarray) -> list[tuple[int, float]]:
    order = [int(t) for t in dict.fromkeys(targets[targets > 0].tolist())]
    return [(t, values[targets == t].sum()) for t in order]


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    lengths=st.lists(st.lists(st.integers(1, 12), max_size=8), min_size=2, max_size=2),
    structure=st.sampled_from([Tree, LinearArray]),
    levels=st.integers(0, 3),
    fused=st.sampled_from([1, 2]),
    type=st.sampled_from([INT32, Float(32)]),
    seed=st.integers(0, 2**32 - 1),
)
def test_one_sum_for_each_target(
    lengths: list[list[int]],
    structure: Structure,
    levels: int,
    fused: int,
    type: Type,
    seed: int,
) -> None:
    generator = np.random.default_rng(seed)
    steps = max(1, *(sum(line) for line in lengths)) + int(generator.integers(0, 3))
    targets = np.stack([groups(line, steps, generator) for line in lengths]).astype(np.int32)
    values = generator.integers(-9, 9, targets.shape).astype(type.numpy)
    circuit = Circuit(structure=structure, levels=levels, type=type)
    graph, _ = bench(circuit, 2, fused, steps)
    verify_graph(graph)
    found = interpret_graph(graph, {"targets": targets, "values": values})
    for lane in range(2):
        out_targets, out_values = found[f"target_{lane}"], found[f"value_{lane}"]
        kept = out_targets > 0
        pairs = list(zip(out_targets[kept].tolist(), out_values[kept].tolist(), strict=True))
        assert pairs == expected(targets[lane], values[lane])


@pytest.mark.parametrize("structure", [Tree, LinearArray])
@pytest.mark.parametrize("lengths", [[1] * 60, [2] * 30, [60], [1, 7, 40, 3, 9]])
def test_a_step_in_every_cycle(structure: Structure, lengths: list[int]) -> None:
    """At 4 cycles for an addition, whatever the lengths of groups are."""
    targets = groups(lengths, 60, np.random.default_rng(0))[None].astype(np.int32)
    values = np.ones((1, 60), np.float32)
    circuit = Circuit(structure=structure, levels=2, type=Float(32))
    graph, steps = bench(circuit, 1, 1, 60)
    result = simulate(graph, {"targets": targets, "values": values}, device="arria10")
    nodes = result.nodes["stage_0"]
    assert nodes.last_firing - nodes.first_firing + 1 == nodes.firings
    assert all(node.interval.cycles == 1 for node in result.nodes.values())
    out = result.outputs["value_0"][result.outputs["target_0"] > 0]
    np.testing.assert_array_equal(out, np.array(lengths, np.float32))
    assert steps <= 60 + 4 + 2


def test_fewer_slots_than_an_addition_takes_make_steps_wait() -> None:
    targets, values = np.ones((1, 40), np.int32), np.ones((1, 40), np.float32)
    circuit = Circuit(structure=LinearArray, levels=1, type=Float(32))
    graph, _ = bench(circuit, 1, 1, 40)
    result = simulate(graph, {"targets": targets, "values": values}, device="arria10")
    assert result.nodes["stage_0"].interval.cycles == 2
    assert result.outputs["value_0"][result.outputs["target_0"] > 0].tolist() == [40]
