"""Load and store units on a DRAM: cycles by hand, and both engines on random graphs."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import t2s
from t2s.core.expr import Expr, const
from t2s.core.types import INT32, Float
from t2s.graph.body import Let, Load, Statement, Store
from t2s.graph.graph import Graph, TensorRole
from t2s.graph.interpret import interpret_graph
from t2s.simulator.devices import DEVICES, Device
from t2s.simulator.memory import units as native_units
from t2s.simulator.memory.spec import MEMORIES, Coordinate, Dram, Timing, Units, mapping_of
from t2s.simulator.report.result import SimResult
from tests.hand_graphs import systolic_gemm
from tests.sampling import sampled
from tests.simulator.designs import (
    IDEAL,
    N,
    chain,
    design,
    local,
    node,
    run,
    tensor,
    two_loaders,
    wide_load,
)
from tests.simulator.test_random import device_of, every, random_graph

DDR4 = MEMORIES["ddr4-2133"]
GIGAHERTZ = replace(
    DDR4,
    clock_hz=Fraction(IDEAL.clock_hz),
    timing=replace(DDR4.timing, tREFI=0),
    rotate_banks=False,
)
"""A memory whose clock is the device's, without refresh."""


def on(memory: Dram | str, device: Device = IDEAL, **units: int) -> Device:
    """A device with a memory, its units changed."""
    target = device.with_memory(memory)
    assert target.memory is not None
    changed = replace(target.memory, units=replace(target.memory.units, **units))
    return target.with_memory(changed)


@pytest.fixture(params=("python", "native"))
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def both(graph: Graph, device: Device, **more: Any) -> SimResult:
    """Run in both engines, which agree in everything that is measured."""
    plain, native = (run(graph, name, device=device, **more) for name in ("python", "native"))
    assert plain.ending == native.ending
    assert plain.cycles == native.cycles
    assert plain.nodes == native.nodes
    assert plain.memory == native.memory
    assert plain.deadlock == native.deadlock
    assert plain.tokens_left == native.tokens_left
    for row in native.stalls:
        assert row.pe_cycles == row.pe_count * native.cycles
    return native


def test_one_element(engine: str) -> None:
    # load at 1: tRCD 15, CL 15, burst 4: at 35 the line is there.  Channels: compute 36, store 37,
    # which is the unit's last firing and writes, to the row that is open: CWL 11, burst 4.
    result = run(chain(1), engine, device=on(GIGAHERTZ))
    assert [n.first_firing for n in result.nodes.values()] == [1, 36, 37]
    assert result.cycles == 37 + 15
    assert result.memory is not None
    load, store = result.memory.units
    assert (load.reads, load.writes, load.latency) == (1, 0, 34)
    assert (store.reads, store.writes, store.latency) == (0, 1, 15)


def test_elements_of_a_line_come_together(engine: str) -> None:
    # 16 elements of 4 bytes are a line.  All tokens have been sent when the line comes at 35; the
    # channel holds one more than the lines under way have room for.
    result = run(chain(16), engine, device=on(GIGAHERTZ))
    assert result.nodes["load"].last_firing == 16
    assert result.nodes["compute"].first_firing == 36
    assert result.nodes["compute"].last_firing == 36 + 15
    assert result.cycles == 37 + 15 + 15
    assert result.memory is not None
    assert [channel.reads for channel in result.memory.channels] == [1]


def test_lines_of_a_group_are_asked_for_at_once(engine: str) -> None:
    # 4 lines of 16 elements.  In groups of 4: all are there 4 clocks after each other, by cycle 47;
    # one by one: the second is asked for at 17, the third at 33, the fourth at 49, done 49 + 34
    # (a bank group of its own: its row is not open).
    compute = [
        run(chain(64, capacity=64), engine, device=on(GIGAHERTZ, load_lines=n)).nodes["compute"]
        for n in (4, 1)
    ]
    assert [n.last_firing for n in compute] == [36 + 63, 49 + 34 + 1 + 15]
    assert [n.first_firing for n in compute] == [36, 36]


def test_a_bound_on_requests_under_way(engine: str) -> None:
    # One request at a time, of 16 elements: 1, 1 + 34 = 35, 69, ...; all rows are closed at first,
    # and the first burst of a bank group opens its row: 34 clocks each, then 19.
    result = run(two_loaders(6 * 16), engine, device=on(GIGAHERTZ, load_lines=1, outstanding=1))
    left, right = result.nodes["left"], result.nodes["right"]
    assert left.starved_by_memory > 0
    assert result.memory is not None
    waits = [unit.waited for unit in result.memory.units]
    assert waits == [left.starved_by_memory, right.starved_by_memory]
    one = run(
        chain(6 * 16, capacity=400), engine, device=on(GIGAHERTZ, load_lines=1, outstanding=1)
    )
    # Lines are asked for at 1, 35, 69, 103, 137 and, a row hit, done in 19, at 156.
    assert one.nodes["load"].last_firing == 156 + 15
    assert one.nodes["load"].starved_by_memory == 156 + 15 - 96


def test_the_last_store_ends_the_run(engine: str) -> None:
    # 5 lines in groups of 2: lines 0 and 1 are written when line 2 begins, and so on.
    result = run(chain(5 * 16), engine, device=on(GIGAHERTZ, store_lines=2))
    store = result.nodes["store"]
    assert result.memory is not None
    assert result.memory.units[1].writes == 5
    assert result.cycles > (store.last_firing or 0)
    ends = [run(chain(5 * 16), engine, device=on(GIGAHERTZ, store_lines=n)).cycles for n in (1, 5)]
    assert ends[0] < ends[1]


def test_the_ratio_of_the_clocks_is_exact(engine: str) -> None:
    # 640 memory clocks are 129 cycles of 215 MHz.  Asked in cycle 1 = clock 4.96, that is 5; the
    # data end at 39, cycle 7.86, that is 8; with a way of 10 cycles 18.
    arrived = []
    for way in (0, 10):
        device = on(DDR4, replace(IDEAL, clock_hz=215_000_000), path_cycles=way)
        arrived.append(run(chain(1), engine, device=device).nodes["compute"].first_firing)
    assert arrived == [8 + 1, 18 + 1]


@sampled("name", MEMORIES, quick=2)
@pytest.mark.parametrize("device", ["ideal", "arria10"])
def test_engines_agree_on_designs(name: str, device: str) -> None:
    target = DEVICES[device].with_memory(name)
    both(chain(300), target)
    both(two_loaders(700), target)
    both(wide_load(40, 16), target)
    gemm = systolic_gemm(
        2, 3, 3, tile_rows=2, tile_columns=2, lanes=4, element=Float(32), capacity=2
    )
    both(gemm, target)


def test_the_bandwidth_is_that_of_the_memory() -> None:
    # Two units of 64 bytes per cycle at 1 GHz ask for 7.5 times what the memory has.
    graph = two_wide_loaders(40_000)
    result = run(graph, "native", device=on(DDR4))
    assert result.memory is not None
    assert 0.93 < result.memory.share_of_peak < 1 - 404 / 8320
    assert result.memory.bytes_moved == 2 * 40_000 * 64
    left, right = (result.nodes[name] for name in ("left", "right"))
    assert left.last_firing is not None
    assert right.last_firing is not None
    assert abs(left.last_firing - right.last_firing) < 0.01 * result.cycles


def two_wide_loaders(count: int) -> Graph:
    """As ``two_loaders`` with a vector of 16 elements each."""
    vector = INT32.with_lanes(16)

    def widened(statement: Statement) -> Statement:
        match statement:
            case Load():
                index = N * 16
                return replace(statement, indices=(index,), type=vector)
            case _:
                return replace(statement, **_widened(statement, vector))

    graph = two_loaders(count)
    nodes = tuple(replace(n, body=tuple(widened(s) for s in n.body)) for n in graph.nodes)
    channels = tuple(replace(c, stream=replace(c.stream, element=vector)) for c in graph.channels)
    tensors = (tensor("X", TensorRole.INPUT, 16 * count),)
    return replace(graph, nodes=nodes, channels=channels, tensors=tensors)


def _widened(statement: Statement, vector: Any) -> dict[str, Any]:
    if hasattr(statement, "value"):
        return {"value": local("value", vector)}
    return {"type": vector}


@st.composite
def memories(draw: st.DrawFn) -> Dram:
    """Small, slow memories with units of few requests."""
    times = {name: draw(st.integers(1, 6), name) for name in Timing.__dataclass_fields__}
    queue = draw(st.sampled_from([0, 0, 1, 3]), "write queue")
    known = draw(st.sampled_from([0, 0, 3]), "controllers")
    return Dram(
        name="random",
        description="",
        clock_hz=IDEAL.clock_hz * draw(st.fractions(Fraction(1, 3), 5, max_denominator=4), "ratio"),
        channels=2,
        ranks=2,
        groups=2,
        banks=2,
        rows=1 << 9,
        columns=4,
        burst_bytes=draw(st.sampled_from([4, 8, 12]), "burst"),
        burst_clocks=2,
        write_queue=queue,
        write_batch=(queue + 1) // 2,
        read_queue=draw(st.sampled_from([0, 0, 1, 5]), "read queue"),
        controllers=known,
        open_bursts=2 * known,
        mapping=mapping_of(
            (Coordinate.GROUP, 1),
            (Coordinate.COLUMN, 1),
            (Coordinate.CHANNEL, 1),
            (Coordinate.RANK, 1),
            (Coordinate.COLUMN, 1),
            (Coordinate.BANK, 1),
            (Coordinate.ROW, 9),
        ),
        timing=replace(Timing(**times), tRFC=9, tREFI=draw(st.sampled_from([0, 90]), "tREFI")),
        units=Units(
            line_bursts=draw(st.integers(1, 3), "line"),
            load_lines=draw(st.integers(1, 4), "load lines"),
            store_lines=draw(st.integers(1, 4), "store lines"),
            outstanding=draw(st.integers(1, 5), "outstanding"),
            path_cycles=draw(st.integers(0, 3), "way"),
        ),
    )


@pytest.mark.slow
@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(st.data(), memories())
def test_engines_agree_on_random_graphs(data: st.DataObject, memory: Dram) -> None:
    graph = random_graph(data)
    device = device_of(data).with_memory(memory)
    limit = data.draw(st.sampled_from([None, None, 5, 17, 40]), "limit")
    inputs = {
        item.name: np.arange(item.shape[0], dtype=np.int32)
        for item in graph.tensors
        if item.role is TensorRole.INPUT
    }
    result = both(graph, device, inputs=inputs, max_cycles=limit)
    if result.finished:
        for name, values in interpret_graph(graph, inputs).items():
            np.testing.assert_array_equal(result.outputs[name], values)


def mixed(data: st.DataObject, count: int) -> Graph:
    """A node that loads vectors twice and stores twice, here and there, now and then."""

    def index(extent: int, lanes: int) -> Expr:
        step = data.draw(st.integers(0, 5), "step")
        where = N * step
        if data.draw(st.booleans(), "slowly"):
            where = N // 5
        return where % (extent - lanes + 1)

    def sometimes() -> Expr | None:
        period = data.draw(st.integers(1, 3), "period")
        return every(period, data.draw(st.integers(0, period - 1), "phase"))

    size = 64
    body: list[Statement] = []
    for name in ("X", "Z"):
        lanes = data.draw(st.sampled_from([1, 2, 4]), "lanes")
        type = INT32.with_lanes(lanes)
        body.append(
            Load(
                target=name,
                tensor=name,
                indices=(index(size, lanes),),
                type=type,
                condition=sometimes(),
            )
        )
    body.append(Let(target="sum", value=const(1) + const(2)))
    body += [
        Store(tensor=name, indices=(index(size, 1),), value=local("sum"), condition=sometimes())
        for name in ("Y", "W")
    ]
    tensors = [tensor(name, TensorRole.INPUT, size) for name in ("X", "Z")]
    tensors += [tensor(name, TensorRole.OUTPUT, size) for name in ("Y", "W")]
    return design((node("mixed", count, *body),), (), *tensors)


@pytest.mark.slow
@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(st.data(), memories(), st.sampled_from([1, 2, 3, 7, 1000]))
def test_stretches_do_not_matter(data: st.DataObject, memory: Dram, stretch: int) -> None:
    """However many firings are looked at together, a unit asks for the same lines."""
    graph = mixed(data, data.draw(st.integers(1, 40), "firings"))
    with pytest.MonkeyPatch.context() as patch:
        # Graphs have units of one access only; units need not know that.
        patch.setattr("t2s.simulator.program.build.verify_graph", lambda graph: None)
        patch.setattr(native_units, "_LEAST", stretch)
        patch.setattr(native_units, "_MOST_FIRINGS_OF_UNITS", stretch)
        both(graph, IDEAL.with_memory(memory))


def test_addresses_are_looked_at_in_stretches() -> None:
    """The state for a long run is no larger than that for a shorter one."""
    device = IDEAL.with_memory("ddr4-2133")
    long = run(chain(1 << 20, capacity=64), "native", device=device)
    assert long.memory is not None
    assert long.memory.bytes_moved == 2 * 4 * (1 << 20)


def test_ideal_is_the_memory_of_the_device() -> None:
    device = DEVICES["arria10"]
    assert device.with_memory("ddr4-2133").with_memory("ideal") == device
    graph = chain(20)
    assert t2s.cycles(graph, device=device, memory="ideal") == t2s.cycles(graph, device=device)
    inputs = {"X": np.arange(20, dtype=np.int32)}
    assert t2s.simulate(graph, inputs, device=device).memory is None
    result = t2s.simulate(graph, inputs, device=device, memory="hbm2e")
    assert result.memory is not None
    assert result.memory.dram is MEMORIES["hbm2e"]
    assert result.cycles == t2s.cycles(graph, device=device, memory="hbm2e")
    np.testing.assert_array_equal(result.outputs["Y"], inputs["X"])


def test_the_report_as_text_and_html() -> None:
    result = run(chain(16), "native", device=on(GIGAHERTZ))
    assert result.memory is not None
    assert str(result.memory) in str(result)
    text = [line.split() for line in str(result.memory).splitlines()]
    assert " ".join(text[0]) == "ddr4-2133: 1.91 of 16.00 GB/s (11.9%)"
    assert " ".join(text[3]) == "0 1 1 1 (50.0%) 1 (50.0%) 0 (0.0%) 0 11.9%"
    assert " ".join(text[-2]) == "load 1 1 0 34.0 0"
    assert " ".join(text[-1]) == "store 1 0 1 15.0 0"
    assert "row conflicts</th>" in result._repr_html_()
    assert result.memory.row_hits == 0.5
