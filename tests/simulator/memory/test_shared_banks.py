"""Machines that share banks: cycles by hand, published shares, and both engines on random ones."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from benchmarks.random_shared import random_banked, random_device, random_shared
from benchmarks.shared_banks import (
    alone,
    gatherers,
    network,
    other_units,
    random_units,
    random_words,
    run,
    words_per_port,
)
from t2s.graph.graph import Graph, MemorySpace
from t2s.simulator.devices import DEVICES, Device
from t2s.simulator.memory.banks import NOTHING
from t2s.simulator.memory.places import bases_in_banks
from t2s.simulator.memory.sharers import swizzled
from t2s.simulator.memory.spec import Banked
from t2s.simulator.report.errors import DeadlockError, TokensLeftError
from t2s.simulator.report.result import SimResult
from t2s.simulator.run import simulate
from tests.errors.refusal import refused
from tests.graph.gathers import Gathering
from tests.simulator.memory.plain_banks import BankedModel
from tests.simulator.test_streams import agree

ONE = Banked(ports=1)


def both(graph: Graph, inputs: object, device: Device, **more: object) -> SimResult:
    """Run in both engines, which agree in everything that is measured."""
    results = []
    for engine in ("python", "native"):
        try:
            found = simulate(graph, inputs, device=device, engine=engine, **more)  # type: ignore[arg-type]
        except (DeadlockError, TokensLeftError) as error:
            found = error.result
        results.append(found)
    plain, native = results
    agree(plain, native)
    assert plain.memory == native.memory
    assert plain.shared == native.shared
    for name, array in plain.outputs.items():
        np.testing.assert_array_equal(native.outputs[name], array)
    return native


def cycles(banked: Banked | None, take: object, machines: int = 1) -> int:
    words = np.asarray(take, np.int32).reshape(machines, -1)
    graph = gatherers(machines, words.shape[1] // 16)
    inputs = {"take": words, "x": np.arange(1 << 12, dtype=np.int32)}
    result = both(graph, inputs, replace(DEVICES["ideal"], banked=banked))
    last = result.nodes["drop"].last_firing
    assert last is not None
    return last - 1  # the last firing is that of the end


def in_banks(made: Gathering, *names: str, swizzled: bool = False) -> Graph:
    """The graph with some tensors in shared banks."""
    graph = replace(made, place=MemorySpace.CHIP).graph
    return replace(
        graph,
        tensors=tuple(
            replace(t, place=MemorySpace.SHARED, swizzled=swizzled) if t.name in names else t
            for t in graph.tensors
        ),
    )


ROWS = np.arange(160)
"""Ten vectors of neighbors."""


def test_a_private_memory_without_conflicts_takes_no_time() -> None:
    assert cycles(None, ROWS) == cycles(ONE, ROWS) == 11


@pytest.mark.parametrize(("ports", "ranks"), [(2, 1), (16, 4)])
def test_ranks_of_the_network_are_a_latency(ports: int, ranks: int) -> None:
    assert cycles(Banked(ports=ports), ROWS) == 11 + ranks
    assert cycles(Banked(ports=ports, reply_cycles=3), ROWS) == 11 + ranks + 3


def test_words_of_one_bank_come_one_by_one() -> None:
    assert cycles(ONE, np.zeros(160)) == 16 * 10 + 1
    assert cycles(Banked(), 256 * (np.arange(160) % 16)) == 16 * 10 + 1 + 4


@pytest.mark.parametrize(("outstanding", "gap"), [(1, 5), (2, 2.5), (5, 1), (64, 1)])
def test_vectors_under_way(outstanding: int, gap: float) -> None:
    """With four ranks an answer takes four cycles, and the place is free in the fifth."""
    wanted = {5: 5 * 9 + 6, 2.5: 5 * 4 + 1 + 6, 1: 9 + 6}[gap]
    assert cycles(Banked(outstanding=outstanding), ROWS) == wanted


def test_lanes_of_nothing_touch_nothing() -> None:
    assert cycles(ONE, np.full(160, NOTHING)) == 11
    halves = np.where(np.arange(160) % 2, 0, NOTHING)
    assert cycles(ONE, halves) == 8 * 10 + 1


def test_an_access_by_more_lanes_takes_several_vectors() -> None:
    narrow = Banked(ports=1, lanes=4)
    assert cycles(narrow, ROWS) == 4 * 10 + 1


def test_machines_use_the_ports_in_turns() -> None:
    """Two machines of one port get every second cycle each."""
    rows = np.arange(32 * 10)
    assert cycles(ONE, rows, machines=2) == 2 * 10 + 1
    assert cycles(Banked(ports=2), rows, machines=2) == 10 + 1 + 2
    assert cycles(Banked(ports=2), np.concatenate([rows, rows]), machines=4) > 20


def test_a_loaded_word_waits_for_the_store_before_it() -> None:
    """Lane 1 is busy with older words of bank 1 when lane 0 could already load word 0."""
    for store, completed in ((True, [2, 3, 4, 5]), (False, [2, 3, 4, 4])):
        model = BankedModel(Banked(ports=1, lanes=2, banks=2, rounds=1))
        vectors = [[1, 3], [5, 7], [NOTHING, 0], [0, NOTHING]]
        asked = [model.ask(0, v, store=store and v[0] == NOTHING) for v in vectors]
        while not model.is_empty:
            model.step()
        assert [vector.completed for vector in asked][2:] == completed[2:]


def test_stores_complete_without_an_answer_and_before_the_end() -> None:
    made = Gathering(lanes=4, steps=1, width=64)
    take = {"take": [1, 2, 3, 4], "to": [0, 16, 32, 48], "x": np.arange(64)}
    arrays = {name: np.asarray(array, np.int32) for name, array in take.items()}
    result = both(in_banks(made, "y"), arrays, replace(DEVICES["ideal"], banked=ONE))
    assert result.nodes["sink"].first_firing == 2
    assert result.cycles == 4
    assert result.outputs["y"].tolist()[::16] == [1, 2, 3, 4]


def test_words_of_tensors() -> None:
    graph = in_banks(Gathering(width=33), "take", "x", "y")
    assert bases_in_banks(graph, Banked()) == {"take": 0, "x": 16, "y": 64}
    graph = in_banks(Gathering(width=33), "x", "y", swizzled=True)
    assert bases_in_banks(graph, Banked()) == {"x": 0, "y": 256}


@pytest.mark.parametrize("banked", [Banked(), Banked(ports=2, banks=3), ONE])
def test_swizzled_words_have_places_of_their_own(banked: Banked) -> None:
    group = banked.ports * banked.banks
    found = [swizzled(address, banked) for address in range(8 * group)]
    assert sorted(found) == list(range(8 * group))
    assert [at // group for at in found] == [at // group for at in range(8 * group)]
    np.testing.assert_array_equal(swizzled(np.arange(8 * group), banked), found)


@pytest.mark.parametrize("stride", [1 << bit for bit in range(12)])
def test_words_a_power_of_two_apart_are_in_all_units_and_banks(stride: int) -> None:
    places = [Banked().place(swizzled(stride * at, Banked())) for at in range(256)]
    assert len(set(places)) == 256
    for begin in range(0, 256, 16):
        assert len({unit for unit, _ in places[begin : begin + 16]}) == 16


@pytest.mark.parametrize("extent", [250, 1000, 4096])
@pytest.mark.parametrize("density", [0.05, 0.2, 0.4, 0.8])
def test_sorted_coordinates_of_rows_meet_as_many_units_as_random_words(
    extent: int, density: float
) -> None:
    """16 random words are in 16 (1 - (15 / 16) ^ 16) = 10.3 of 16 units."""
    random = np.random.default_rng(extent)
    found = []
    for _ in range(40):
        columns = np.flatnonzero(random.random(extent) < density)
        columns = columns[: len(columns) // 16 * 16]
        units = swizzled(columns, Banked()) // Banked().banks % Banked().ports
        found += [len(set(vector)) for vector in units.reshape(-1, 16).tolist()]
    assert 10 < np.mean(found) < 16


def test_swizzled_strides_are_spread() -> None:
    take = 256 * np.random.default_rng(1).integers(0, 16, 3200)
    graph = gatherers(1, 200)
    found = []
    for swizzle in (False, True):
        tensors = tuple(replace(t, swizzled=swizzle and t.name == "x") for t in graph.tensors)
        inputs = {
            "take": take.reshape(1, -1).astype(np.int32),
            "x": np.arange(4096, dtype=np.int32),
        }
        device = replace(DEVICES["ideal"], banked=Banked())
        found.append(simulate(replace(graph, tensors=tensors), inputs, device=device).cycles)
    assert found[0] == 16 * 200 + 6
    assert found[1] < found[0] / 4


def shares_hold(least: float, found: float, most: float) -> None:
    assert least <= found <= most


def test_shares_of_the_peak_through_the_engines() -> None:
    """The native one; the plain one gives the same cycles."""
    shares_hold(0.31, alone(1, 1), 0.34)
    shares_hold(0.76, alone(8, 2), 0.80)
    shares_hold(0.80, alone(16, 2), 0.84)
    shares_hold(0.58, alone(16, 1), 0.62)
    assert alone(4, 2, vectors=40) == alone(4, 2, vectors=40, engine="python")


def test_words_through_the_network_of_the_engines() -> None:
    shares_hold(3.5, network(0), 3.9)
    shares_hold(6.0, network(1), 6.5)
    shares_hold(7.3, network(2, cycles=1000), 7.7)
    shares_hold(15.5, words_per_port(Banked(), other_units(16, 400)), 16)
    shares_hold(15.5, words_per_port(Banked(), random_units(1, 400)), 16)


def compared(seed: int) -> SimResult:
    random = Random(seed)
    graph, inputs = random_shared(seed)
    limit = {"max_cycles": random.randint(1, 300)} if random.random() < 0.2 else {}
    result = both(graph, inputs, random_device(random), **limit)
    if result.shared is not None and not limit and result.finished:
        banked = random_banked(random)
        again = simulate(graph, inputs, device=result.device.with_banked(banked))
        retimed = result.retime(banked=banked)
        agree(retimed, again)
        assert (retimed.memory, retimed.shared) == (again.memory, again.shared)
    return result


@pytest.mark.parametrize("seed", [2, 3, 5, 8])
def test_random_graphs_without_a_dram(seed: int) -> None:
    result = compared(seed)
    assert result.shared is not None
    assert result.memory is None


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 1200, 20))
def test_more_random_graphs(first: int) -> None:
    for seed in range(first, first + 20):
        compared(seed)


def gathered(banked: Banked | None = ONE) -> SimResult:
    return run(banked, random_words(2, 10))


def test_the_report() -> None:
    result = gathered(Banked(ports=2))
    report = result.shared
    assert report is not None
    assert report.words == 2 * 10 * 16
    assert sum(report.counts.vectors) == 20
    assert report.sharers[0].loads == 20
    assert 0 < report.bank_utilization < 1
    assert str(report) in str(result)
    assert "shared banks: 2 ports and units of 16 banks" in str(report)
    assert "<caption>shared banks" in result._repr_html_()
    assert gathered(None).shared is None


def test_retiming_with_other_depths_and_banks() -> None:
    result = gathered()
    assert result.retime(banked=ONE).cycles == result.cycles
    assert result.retime({"c": 2}, banked=Banked(ports=2)).shared is not None


def test_banks_that_the_run_had_not() -> None:
    with refused(
        """
        'gatherers' ran without shared banks: no accesses to them are recorded
          --> gathered(None).retime(banked=ONE)
          expected: a run on a device with banks, of machines that use shared tensors
          given:    a run on ideal
          hint:     simulate it with device.with_banked(...)
        """
    ):
        gathered(None).retime(banked=ONE)


def test_what_is_no_banked_memory() -> None:
    wrong: Any = 16
    with refused(
        """
        device 'ideal': banked is not a banked memory
          --> DEVICES["ideal"].with_banked(wrong)
          expected: a Banked, or None for shared tensors whose accesses take no time
          given:    16
        """
    ):
        DEVICES["ideal"].with_banked(wrong)


def test_too_many_words() -> None:
    graph = gatherers(1, 1)
    large = tuple(replace(t, shape=(1 << 31,)) if t.name == "x" else t for t in graph.tensors)
    with refused(
        """
        'x' of 'gatherers' does not fit into shared banks
          --> bases_in_banks(replace(graph, tensors=large), ONE)
          expected: fewer than 2,147,483,648 words of all shared tensors
          given:    2,147,483,648
          hint:     leave large tensors in the device's memory
        """
    ):
        bases_in_banks(replace(graph, tensors=large), ONE)
