"""Machines as SystemVerilog: their text, what is refused, and what they do in Verilator."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import t2s
from benchmarks.random_graphs import random_device
from benchmarks.random_machines import random_machines
from benchmarks.referee import referee
from t2s.backends.verilog import BACKEND, top, verilator
from t2s.backends.verilog.limits import OPEN_LENGTH, largest, timing_of
from t2s.backends.verilog.verilator import VerilationError, build_hardware, verilator_available
from t2s.core.errors import InternalError
from t2s.core.expr import Expr, Local, const, equals
from t2s.core.ops import Op
from t2s.core.types import INT32, Float, Type
from t2s.driver.device_times import device_times
from t2s.graph.body import Load, RegisterRead, RegisterWrite, Statement, Store
from t2s.graph.graph import UNBOUNDED, Channel, Graph, MemorySpace, StreamType, Tensor, TensorRole
from t2s.graph.nodes import (
    DONE,
    Choice,
    Head,
    Machine,
    MemoryAdd,
    MemoryDrop,
    MemorySize,
    Mode,
    Put,
    Register,
    Role,
    Rule,
    Search,
    SortedMemory,
)
from t2s.graph.semantics import ProtocolError
from t2s.simulator.devices import DEVICES
from t2s.simulator.program.build import build_program
from tests.conftest import Golden
from tests.graph.machines import copying
from tests.simulator.stream_graphs import sorted_and_not

needs_verilator = pytest.mark.skipif(
    not verilator_available(), reason="Verilator or a C++ compiler is not installed"
)


def local(name: str, type: Type = INT32) -> Local:
    return Local(name=name, type=type)


# ------------------------------------------------------------------------------------------ text


def test_a_machine(golden: Golden) -> None:
    files = BACKEND.emit(copying())
    golden("verilog/copying.sv", "\n".join(files[name] for name in ("source.sv", "sink.sv")))


def test_a_sorted_memory(golden: Golden) -> None:
    files = BACKEND.emit(sorted_and_not())
    text = next(text for text in files.values() if "// A sorted memory" in text)
    golden("verilog/sorted_memory.sv", text[: text.index("// One machine")])


def test_the_text_of_random_machines_is_the_same_every_time() -> None:
    for seed in range(6):
        graph, _ = random_machines(seed)
        assert BACKEND.supports(graph) == []
        assert BACKEND.emit(graph) == BACKEND.emit(random_machines(seed)[0])


# -------------------------------------------------------------------------------------- refusals


def with_body(*body: Statement, type: Type = INT32, memory: Type = INT32) -> list[str]:
    """What is refused of a machine that does this in one firing."""
    rule = Rule(name="only", body=body)
    machine = Machine(
        name="odd",
        role=Role.COMPUTE,
        heads=(),
        registers=(Register(name="r", type=type, shape=(), distance=1),),
        memories=(SortedMemory(name="points", keys=(INT32,), type=memory, operator=Op.ADD),),
        modes=(Mode(name="run", needs=(), choices=(Choice(inside=rule),)),),
    )
    tensors = (
        Tensor(name="x", type=type, shape=(0,), role=TensorRole.INPUT, open=True),
        Tensor(name="y", type=INT32, shape=(0,), role=TensorRole.OUTPUT, open=True),
    )
    graph = Graph(name="odd", nodes=(machine,), channels=(), tensors=tensors)
    return [str(problem) for problem in BACKEND.supports(graph)]


STORE = Store(tensor="y", indices=(const(0),), value=const(1))
ADD = MemoryAdd(memory="points", keys=(const(1),), value=const(2))


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (
            (STORE, Load(target="l", tensor="y", indices=(const(0),), type=INT32)),
            "its rule 'only' reads 'y' after it has stored into it",
        ),
        ((ADD, ADD), "its rule 'only' changes the sorted memory 'points' twice"),
        (
            (MemoryDrop(memory="points"), MemorySize(target="n", memory="points")),
            "its rule 'only' looks into 'points' after it has changed it",
        ),
    ],
)
def test_more_than_the_ports_of_a_memory_do(body: tuple[Statement, ...], why: str) -> None:
    assert with_body(*body) == [f"node 'odd': {why}"]


def test_a_search_among_floats() -> None:
    value = local("r", Float(32))
    search = Search(target="at", tensor="x", begin=const(0), end=const(1), value=value)
    assert with_body(search, type=Float(32)) == [
        "node 'odd': it searches among values of type float32; only integers are searched"
    ]


def test_types_without_operators() -> None:
    read = RegisterRead(target="old", register="r", indices=(), type=Float(16))
    why = "the simulation has no float16 operators; use float32"
    assert with_body(read, type=Float(16)) == [f"node 'odd': {why}", f"tensor 'x': {why}"]
    assert with_body(memory=Float(16)) == [f"node 'odd': {why}"]


def test_no_times_without_inputs() -> None:
    with pytest.raises(t2s.errors.UserError, match="the times of 'copying' depend on its data"):
        t2s.verilate(copying())


# ------------------------------------------------------------------------------------- Verilator


RICH = 54
"""A seed with a bit of everything."""


@pytest.mark.slow
@needs_verilator
@pytest.mark.verilator
def test_random_machines(runtime: Path) -> None:
    """Three machines side by side, gathered by a chain; a search; an array at the end."""
    graph, inputs = random_machines(RICH)
    row = referee("rich", graph, random_device(RICH)[:1], (None, 1, 3), runtime, inputs)
    assert row.differences == []
    assert row.values > 0


def test_channels_without_bounds_fit_the_counters_of_a_fifo() -> None:
    """Also on a device whose latencies take room of their own in each channel."""
    kernel = t2s.sparse.compile(t2s.sparse.parse("y(i) = A(i,j)*x(j)", {"A": "ds"}))
    inputs = {"A": np.eye(3), "x": np.ones(3)}
    stage = kernel.design().only_stage(inputs, "verilate")
    program = build_program(stage.graph, DEVICES["arria10"], stage.arrays, {})
    assert max(timing.capacity for timing in program.channels) > UNBOUNDED
    capacities = {times.capacity for times in device_times(program).channels.values()}
    assert capacities == {UNBOUNDED}


@pytest.mark.slow
@needs_verilator
@pytest.mark.verilator
@pytest.mark.parametrize("channels", [{"capacity": 2}, {}], ids=["bounded", "without bounds"])
def test_a_sparse_matrix_product(
    channels: dict[str, int], runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = partial(build_hardware, runtime=runtime)
    monkeypatch.setattr(verilator, "build_hardware", build)
    generator = np.random.default_rng(2)
    b, c = (generator.integers(0, 3, shape).astype(np.float64) for shape in ((3, 4), (4, 3)))
    text, formats = "X(i,j) = B(i,k)*C(k,j)", {"B": "ss", "C": "ss", "X": "ss"}
    kernel = t2s.sparse.compile(t2s.sparse.parse(text, formats))
    options: dict[str, Any] = {"device": "arria10", **channels}
    found = t2s.sparse.verilate(kernel, {"B": b, "C": c}, **options)
    expected = t2s.sparse.simulate(kernel, {"B": b, "C": c}, **options)
    assert found.cycles == expected.cycles > 0
    np.testing.assert_array_equal(found.output, b @ c)
    assert repr(found.stages[0]) == f"<HardwareResult finished, {found.cycles} cycles>"


def is_kind(number: int) -> Expr:
    return equals(local("kind"), number)


def trouble() -> Graph:
    """A machine that does what its input says, and one that waits for two tokens."""
    stay: dict[str, Any] = {"next": "again"}
    at = RegisterWrite(register="at", indices=(), value=local("at") + 1)
    point = MemoryAdd(memory="points", keys=(local("at"),), value=const(1))
    far = local("kind") + local("at")
    outside = RegisterWrite(register="file", indices=(far,), value=const(0))
    beyond = Load(
        target="far",
        tensor="x",
        indices=(local("kind") * 100,),
        type=INT32,
    )
    tag = Put(channel="a", tag=local("kind") * 250)
    ends = tuple(Put(channel=name, tag=const(DONE)) for name in ("a", "b"))
    load = Load(target="kind", tensor="x", indices=(const(0),), type=INT32)
    choices = (
        Choice(when=is_kind(1), inside=(Choice(when=is_kind(0), inside=Rule(name="never")),)),
        Choice(when=is_kind(2), inside=Rule(name="fill", body=(point, at), **stay)),
        Choice(when=is_kind(3), inside=Rule(name="outside", body=(outside,), **stay)),
        Choice(when=is_kind(4), inside=Rule(name="tag", puts=(tag,), **stay)),
        Choice(when=is_kind(5), inside=Rule(name="beyond", body=(beyond, at), **stay)),
        Choice(
            when=is_kind(6),
            inside=Rule(name="flood", puts=(Put(channel="a", value=local("at")),), **stay),
        ),
        Choice(inside=Rule(name="end", puts=ends)),
    )
    maker = Machine(
        name="trouble",
        role=Role.COMPUTE,
        heads=(),
        registers=(
            Register(name="at", type=INT32, shape=(), distance=1),
            Register(name="file", type=INT32, shape=(2,), distance=1),
        ),
        memories=(SortedMemory(name="points", keys=(INT32,), type=INT32, operator=Op.ADD),),
        modes=(Mode(name="again", needs=(), choices=(Choice(body=(load,), inside=choices),)),),
    )
    heads = tuple(Head(channel=name, value=f"{name}_value", tag=f"{name}_tag") for name in "ab")
    both = Rule(name="both", takes=("a", "b"))
    sink = Machine(
        name="sink",
        role=Role.COMPUTE,
        heads=heads,
        modes=(Mode(name="wait", needs=("a", "b"), choices=(Choice(inside=both),)),),
    )
    channels = tuple(
        Channel(
            name=name,
            stream=StreamType(element=INT32, nesting=1),
            source="trouble",
            sink="sink",
            capacity=1 << 30,
        )
        for name in "ab"
    )
    x = Tensor(
        name="x", type=INT32, shape=(0,), role=TensorRole.INPUT, open=True, place=MemorySpace.CHIP
    )
    return Graph(name="troubles", nodes=(maker, sink), channels=channels, tensors=(x,))


FAULTS = {
    1: "'trouble' met tokens that it cannot take",
    2: "a sorted memory of 'trouble' has room for 1024 points only",
    3: "'trouble' uses an element outside of a register file",
    4: "'trouble' puts a tag that has no 8 bits",
    5: "'trouble' uses an element outside of 'x'",
}


@pytest.mark.slow
@needs_verilator
@pytest.mark.verilator
def test_what_a_machine_cannot_take(
    runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(top, "MOST_TOKENS", 4)
    graph, timing = trouble(), timing_of(trouble())
    model = build_hardware(graph, timing, largest(timing), tmp_path, runtime=runtime)
    monkeypatch.setattr(verilator, "build_hardware", lambda *_, **__: model)
    assert t2s.verilate(graph, {"x": np.array([0], np.int32)}).cycles == 2
    for kind, text in FAULTS.items():
        inputs = {"x": np.array([kind], np.int32)}
        with pytest.raises(VerilationError) as caught:
            t2s.verilate(graph, inputs)
        cycle = 1025 if kind == 2 else 1
        assert str(caught.value) == (
            f"the hardware of 'troubles' fails in cycle {cycle}: {text}\n"
            "  hint:     t2s.simulate says more if it is the inputs that do not fit"
        )
        if kind in (1, 3, 5):
            with pytest.raises(ProtocolError):
                t2s.simulate(graph, inputs)
    with pytest.raises(VerilationError, match="has no room: it holds 4 tokens"):
        t2s.verilate(graph, {"x": np.array([6], np.int32)})
    too_long = np.zeros(OPEN_LENGTH + 1, np.int32)
    with pytest.raises(InternalError, match="built for 65536 elements of 'x'"):
        model.run(timing, {"x": too_long}, {})
