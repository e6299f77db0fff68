"""Machines as units of a DRAM: cycles by hand, and both engines on random graphs and kernels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

import t2s
from benchmarks.machine_memory import copied
from benchmarks.machine_memory import run as run_machines
from t2s.core.expr import const
from t2s.core.types import INT32
from t2s.driver.assignment_design import given_in_memory
from t2s.graph.body import Load, RegisterWrite, Role
from t2s.graph.graph import Graph, MemorySpace, Tensor, TensorRole
from t2s.graph.nodes import Choice, Machine, Mode, Put, Register, Rule
from t2s.simulator.devices import DEVICES, Device
from t2s.simulator.limits import Limits
from t2s.simulator.memory.machine_accesses import accesses_of_rules, ports_of
from t2s.simulator.memory.spec import MEMORIES
from t2s.simulator.native_engine import NativeEngine, retime
from t2s.simulator.program.build import build_program
from t2s.simulator.reference_engine import PythonEngine
from t2s.simulator.report.result import SimResult
from tests.graph.machines import copying, local, sink
from tests.sampling import sampled
from tests.simulator.memory.test_units import GIGAHERTZ, on
from tests.simulator.stream_graphs import stream_graphs
from tests.simulator.test_streams import agree, program_of, run

SLOW = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


def both(graph: Graph, device: Device, **inputs: object) -> SimResult:
    """Run in both engines, which agree in everything that is measured."""
    arrays = {name: np.asarray(array, np.int32) for name, array in inputs.items()}
    plain, native = (
        t2s.simulate(graph, arrays, device=device, engine=engine) for engine in ("python", "native")
    )
    agree(plain, native)
    assert plain.memory == native.memory
    for name, array in plain.outputs.items():
        np.testing.assert_array_equal(native.outputs[name], array)
    return native


def walker(*modes: Mode, registers: tuple[str, ...] = ("at",), **tensors: int) -> Graph:
    """A machine without inputs that puts values, and a sink of them."""
    machine = Machine(
        name="walk",
        role=Role.LOAD,
        heads=(),
        registers=tuple(Register(name=n, type=INT32, shape=(), distance=1) for n in registers),
        modes=modes,
    )
    graph = copying()
    channel = replace(graph.channel("xs"), source="walk", capacity=64)
    found = [
        Tensor(name=name, type=INT32, shape=(size,), role=TensorRole.INPUT)
        for name, size in tensors.items()
    ]
    return replace(
        graph, nodes=(machine, sink()), channels=(channel,), tensors=(*found, graph.tensor("y"))
    )


def write(register: str, value: object) -> RegisterWrite:
    return RegisterWrite(register=register, indices=(), value=value)  # type: ignore[arg-type]


def load(target: str, tensor: str, *indices: object) -> Load:
    return Load(target=target, tensor=tensor, indices=indices, type=INT32)  # type: ignore[arg-type]


END = Choice(inside=Rule(name="end", puts=(Put(channel="xs", tag=const(-2)),)))
AT, LOADED = local("at"), local("loaded")
NEXT = write("at", AT + 1)


def test_what_a_load_decides_holds_the_machine() -> None:
    # A load at 1 is there at 35 (tRCD 15, CL 15, burst 4); whether another value follows depends on
    # it, so the second firing is at 35.  Values 2 and 3 and the zero are in the line; then DONE.
    result = both(copying(), on(GIGAHERTZ), x=[1, 2, 3, 0])
    source, store = result.nodes["source"], result.nodes["sink"]
    assert (source.first_firing, source.last_firing, source.firings) == (1, 35 + 3, 5)
    assert (store.first_firing, store.last_firing) == (36, 36 + 4)
    # y is in another row of the bank, for the last firing: tRP 15, tRCD 15, CWL 11, burst 4.
    assert result.cycles == 40 + 45
    assert result.memory is not None
    reads = [(unit.reads, unit.writes, unit.waited) for unit in result.memory.units]
    assert reads == [(1, 0, 33), (0, 1, 0)]


def counted(steps: int) -> Graph:
    """Puts the first elements of ``x``; what it does next is in its register."""
    more = Choice(
        when=AT < steps,
        inside=Rule(
            name="next",
            body=(load("loaded", "x", AT), NEXT),
            puts=(Put(channel="xs", value=LOADED),),
            next="run",
        ),
    )
    return walker(Mode(name="run", needs=(), choices=(more, END)), x=64)


def test_what_registers_say_is_asked_for_in_advance() -> None:
    # Four lines asked for at once are there 4 clocks after one another; one by one, every line is
    # asked for when it begins, 16 firings after the one before.  As of a load of an array.
    last = [
        both(counted(64), on(GIGAHERTZ, load_lines=lines), x=range(64)).nodes["sink"].last_firing
        for lines in (4, 1)
    ]
    assert last == [36 + 64, 49 + 34 + 1 + 15 + 1]


def test_an_address_that_is_loaded_comes_after_its_load() -> None:
    # x[p[0]]: the line of p is there after 34 clocks.  Both lines are asked for at 1, that of x in
    # a bank group of its own, and its data are behind those of p on the bus: 38 clocks.
    body = (load("position", "p", const(0)), load("loaded", "x", local("position")))
    rule = Rule(name="one", body=body, puts=(Put(channel="xs", value=LOADED),), next="end")
    graph = walker(
        Mode(name="run", needs=(), choices=(Choice(inside=rule),)),
        Mode(name="end", needs=(), choices=(END,)),
        p=1,
        x=4096,
    )
    levels = [
        (a.tensor, a.level, a.decides)
        for a in accesses_of_rules(graph, graph.machines[0])[0].accesses
    ]
    assert levels == [("p", 0, False), ("x", 1, False)]
    result = both(graph, on(GIGAHERTZ), p=[9], x=range(4096))
    assert result.outputs["y"].tolist() == [9]
    assert result.memory is not None
    first = result.memory.units[0]
    assert first.reads == 2
    assert result.nodes["sink"].first_firing == 1 + first.latency + 1
    assert result.nodes["walk"].last_firing == 2


def test_a_list_waits_for_every_link() -> None:
    """Each node of the list is in a line of its own, and only the node before says where."""
    follow = Choice(
        when=AT >= 0,
        inside=Rule(
            name="follow",
            body=(load("loaded", "links", AT), write("at", LOADED)),
            puts=(Put(channel="xs", value=AT),),
            next="run",
        ),
    )
    graph = walker(Mode(name="run", needs=(), choices=(follow, END)), links=256)
    links = np.full(256, -1)
    links[[0, 16, 64]] = 16, 64, 240
    result = both(graph, on(GIGAHERTZ), links=links)
    assert result.outputs["y"].tolist() == [0, 16, 64, 240]
    assert result.memory is not None
    unit = result.memory.units[0]
    assert unit.reads == 4
    assert unit.waited == unit.latency - 4
    assert result.nodes["walk"].last_firing == 1 + unit.latency


def test_ports_are_those_of_tensors_in_memory() -> None:
    graph = copying()
    assert [ports_of(accesses_of_rules(graph, node)) for node in graph.machines] == [
        (("x", False),),
        (("y", True),),
    ]
    chip = copying(place=MemorySpace.CHIP)
    assert [ports_of(accesses_of_rules(chip, node)) for node in chip.machines] == [(), ()]


@pytest.mark.slow
@SLOW
@given(
    graph=stream_graphs(),
    memory=st.sampled_from(("ddr4-2133", "hbm2e")),
    group=st.sampled_from((1, 2, 32)),
    outstanding=st.sampled_from((1, 3, 128)),
    path=st.sampled_from((0, 9)),
    queue=st.sampled_from((0, 1, 3)),
    reads=st.sampled_from((0, 1, 32)),
    kept=st.sampled_from((0, 1, 8)),
    limit=st.one_of(st.none(), st.integers(1, 200)),
    seed=st.integers(0, 99),
)
def test_random_graphs(
    graph: Graph,
    memory: str,
    group: int,
    outstanding: int,
    path: int,
    queue: int,
    reads: int,
    kept: int,
    limit: int | None,
    seed: int,
) -> None:
    graph = given_in_memory(graph)
    there = {"streamed": True, "in_parts": True}
    tensors = tuple(
        replace(t, **there) if t.place is MemorySpace.MEMORY else t for t in graph.tensors
    )
    graph = replace(graph, tensors=tensors) if kept else graph
    device = on(
        replace(
            MEMORIES[memory],
            write_queue=queue,
            write_batch=(queue + 1) // 2,
            read_queue=reads,
            controllers=3 if kept else 0,
            open_bursts=kept,
        ),
        load_lines=group,
        store_lines=group,
        outstanding=outstanding,
        path_cycles=path,
    )
    program, limits = program_of(graph, device, seed), Limits(max_cycles=limit)
    python, native = run(PythonEngine(), program, limits), run(NativeEngine(), program, limits)
    if isinstance(python, str) or isinstance(native, str):
        event("refused")  # if several machines refuse, an engine may name any of them
        assert isinstance(python, str)
        assert isinstance(native, str)
        return
    event(native.ending.value)
    agree(python, native)
    assert python.memory == native.memory
    for name, array in python.outputs.items():
        np.testing.assert_array_equal(native.outputs[name], array, strict=True)


KERNELS = {
    "y(i) = A(i,j) * x(j)": {"A": "ds"},
    "y(i) = A(i,j) * x(j) + b(i)": {"A": "ss", "b": "s"},
    "C(i,j) = A(i,j) + B(i,j)": {"A": "ds", "B": "ds", "C": "ds"},
    "C(i,j) = A(i,k) * B(k,j)": {"A": "ds", "B": "ds", "C": "ds"},
    "s = a(i) * b(i)": {"a": "s", "b": "s"},
    "y(i) = A(i,j) * b(j)": {"A": "db", "b": "b"},
}


@sampled("text", KERNELS, quick=2)
def test_kernels(text: str) -> None:
    """Arrays of a kernel are in the memory of its device; values never depend on it."""
    generator = np.random.default_rng(5)
    kernel = t2s.sparse.parse(text, KERNELS[text])
    shapes = {"A": (9, 7), "B": (9, 7) if "+" in text else (7, 9), "x": 7, "b": 7, "a": 7}
    if "+ b(i)" in text:
        shapes["b"] = 9
    inputs = {
        name: np.where(generator.random(shape) < 0.4, generator.integers(1, 9, shape), 0)
        for name, shape in shapes.items()
        if f"{name}(" in text.split("=")[1]
    }
    ideal = t2s.simulate(kernel, inputs)
    for memory in ("ddr4-2133", "hbm2e"):
        plain, native = (
            t2s.simulate(kernel, inputs, memory=memory, engine=engine)
            for engine in ("python", "native")
        )
        np.testing.assert_array_equal(native.output, ideal.output)
        np.testing.assert_array_equal(plain.output, ideal.output)
        for one, other in zip(plain.stages, native.stages, strict=True):
            agree(one, other)
            assert one.memory == other.memory
            assert other.memory is not None
            assert other.memory.bytes_moved > 0
        assert native.cycles > ideal.cycles


def test_a_run_again_from_its_trace() -> None:
    graph, arrays = copying(), {"x": np.append(np.arange(1, 200), 0).astype(np.int32)}
    device = DEVICES["ideal"].with_memory("ddr4-2133")
    program = build_program(graph, device, arrays)
    first = NativeEngine().run(program, Limits())
    assert first.machine_trace is not None
    capacities = {channel.name: 1 for channel in graph.channels}
    again = retime(program, first.machine_trace, capacities)
    changed = replace(program.with_capacities(capacities), inputs=program.inputs)
    agree(NativeEngine().run(changed, Limits()), again)
    assert again.cycles >= first.cycles > 200


def test_the_dram_is_never_faster_than_its_peak() -> None:
    kernel = t2s.sparse.parse("y(i) = A(i,j) * x(j)", {"A": "ds"})
    inputs = {"A": np.ones((64, 256), np.float32), "x": np.ones(256, np.float32)}
    result = t2s.simulate(kernel, inputs, memory="ddr4-2133")
    memory = result.stages[0].memory
    assert memory is not None
    assert memory.dram == MEMORIES["ddr4-2133"]
    # the matrix is 64 x 256 values and coordinates of 4 bytes
    assert memory.bytes_moved >= 2 * 64 * 256 * 4
    assert 0 < memory.share_of_peak < 1


@pytest.mark.parametrize("memory", ["ddr4-2133", "ddr4-2133x4", "hbm2e-1800"])
def test_machines_take_as_long_as_loaders(memory: str) -> None:
    """A machine that reads vectors and one that writes them are a loader and an unloader."""
    words = 1 << 12
    x = np.arange(words, dtype=np.int32)
    units = t2s.simulate(copied(words), {"x": x}, device="ideal", memory=memory)
    machines = run_machines(1, words, memory, write=True)
    assert machines.cycles == pytest.approx(units.cycles, rel=0.02)
    np.testing.assert_array_equal(machines.outputs["y0"], x)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("memory", "only_reading", "both_ways"),
    [("ddr4-2133x4", 0.90, 0.60), ("hbm2e-1800", 0.75, 0.50)],
)
def test_many_machines_use_a_fast_memory(
    memory: str, only_reading: float, both_ways: float
) -> None:
    words = 1 << 21
    readers = run_machines(32, words // 32, memory, write=False).memory
    writers = run_machines(64, words // 64, memory, write=True).memory
    assert readers is not None
    assert writers is not None
    assert readers.share_of_peak >= only_reading
    assert writers.share_of_peak >= both_ways
