"""Machines: meaning, text, JSON, and the plain engine."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from t2s.core.errors import UserError
from t2s.graph.graph import Graph, MemorySpace
from t2s.graph.interpret import interpret_graph
from t2s.graph.printer import graph_to_dot, print_graph, summarize_graph
from t2s.graph.semantics import ProtocolError
from t2s.graph.serialize import graph_from_json, graph_to_json
from t2s.graph.verify import verify_graph
from t2s.simulator.devices import Device
from t2s.simulator.run import simulate, simulate_cycles
from tests.graph.machines import copying

X = np.array([5, -3, 7, 0, 9], np.int32)


def run(graph: Graph, device: str | Device = "ideal"):
    return simulate(graph, {"x": X}, engine="python", device=device)


def test_interpreted_and_simulated_alike() -> None:
    graph = copying()
    verify_graph(graph)
    assert interpret_graph(graph, {"x": X})["y"].tolist() == [5, -3, 7]
    result = run(graph)
    assert result.outputs["y"].tolist() == [5, -3, 7]
    assert result.outputs["y"].dtype == np.int32
    # Five tokens, one per cycle, and each is taken in the cycle after it was put.
    assert result.nodes["source"].firings == result.nodes["sink"].firings == 5
    assert result.cycles == 6


def test_an_empty_output_is_an_empty_array() -> None:
    result = simulate(copying(), {"x": np.zeros(1, np.int32)}, engine="python")
    assert result.outputs["y"].shape == (0,)


def test_shared_bandwidth_counts_in_memory_but_not_on_the_chip() -> None:
    slow = Device(name="slow", description="", clock_hz=1000, memory_bytes_per_second=2000)
    on_chip = run(copying(place=MemorySpace.CHIP), slow)
    in_memory = run(copying(), slow)
    assert on_chip.cycles == 6
    # Four loads (one sees the 0) and three stores of 4 bytes, at 2 bytes per cycle.
    assert in_memory.cycles > on_chip.cycles + 6
    assert in_memory.nodes["source"].starved_by_memory > 0


def test_a_load_latency_delays_the_tokens_and_not_the_next_firing() -> None:
    far = Device(name="far", description="", clock_hz=1000, load_latency=10)
    assert run(copying(), far).cycles == 16
    assert run(copying(place=MemorySpace.CHIP), far).cycles == 6


def test_json_round_trip_text_and_picture() -> None:
    graph = copying(place=MemorySpace.CHIP)
    assert graph_from_json(graph_to_json(graph)) == graph
    text = print_graph(graph)
    assert "input x: int32[any] on the chip" in text
    assert "store machine sink\n" in text
    assert "mode take: value, tag = head(xs)" in text
    assert "if tag == 0:\n        rule store: take xs, then take\n" in text
    assert "put(xs, 0, tag 1)" in text
    assert "modes run, last" in summarize_graph(graph)
    assert "machine" in graph_to_dot(graph)


def test_a_load_outside_of_an_open_input() -> None:
    with pytest.raises(ProtocolError, match="'source' loads outside of 'x'"):
        simulate(copying(), {"x": np.array([1, 2], np.int32)}, engine="python")


def test_times_alone_need_the_data() -> None:
    with pytest.raises(UserError, match="depend on its data: 'source' chooses"):
        simulate_cycles(copying())


def test_the_native_engine_says_how_it_found_the_times() -> None:
    assert simulate(copying(), {"x": X}).kernel == "stepped"
    assert simulate(copying(), {"x": X}, max_cycles=99).kernel == "run-ahead"
    assert simulate(copying(), {"x": X}, device="arria10").kernel == "event-driven"


def test_open_inputs_are_of_one_dimension_and_any_length() -> None:
    with pytest.raises(UserError, match="int32 array of any length"):
        simulate(copying(), {"x": X.reshape(1, 5)}, engine="python")


def test_a_deadlock_of_machines_is_reported() -> None:
    graph = copying()
    source, sink = graph.nodes
    last = replace(source.modes[1], needs=())
    quiet = replace(
        last,
        choices=(replace(last.choices[0], inside=replace(last.choices[0].inside, puts=())),),
    )
    silent = replace(source, modes=(source.modes[0], quiet))
    with pytest.raises(UserError, match=r"sink waits for a token in xs .*after 4 firings"):
        run(replace(graph, nodes=(silent, sink)))
