"""Values of machines in the native engine: sorted memories, arrays of machines, mixed graphs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2s.core.expr import Index, Local, unequal
from t2s.core.ops import Op
from t2s.core.types import INT32, Float, Int, Type, UInt
from t2s.graph.body import Load, Receive, RegisterWrite, Send, Store
from t2s.graph.graph import Channel, Graph, MemorySpace, StreamType, Tensor, TensorRole
from t2s.graph.interpret import interpret_graph
from t2s.graph.nodes import (
    Choice,
    Head,
    Machine,
    MemoryAdd,
    MemoryDrop,
    MemoryFirst,
    MemorySize,
    Mode,
    PEArray,
    Put,
    Register,
    Role,
    Rule,
    Search,
    SortedMemory,
    SpaceDimension,
)
from t2s.llvm import compile
from t2s.simulator.limits import Limits
from t2s.simulator.native_engine import NativeEngine
from t2s.simulator.program.build import build_program
from t2s.simulator.reference_engine import PythonEngine
from t2s.simulator.values import machine_values
from t2s.simulator.values.machine_values import stream_values
from tests.hand_graphs import loop
from tests.simulator.test_streams import agree

FLOAT = Float(32)
INT64 = Int(64)
AT = Local(name="at", type=INT32)


def advance(name: str = "at") -> RegisterWrite:
    following = Local(name=name, type=INT32) + 1
    return RegisterWrite(register=name, indices=(), value=following)


def counter(name: str = "at") -> Register:
    return Register(name=name, type=INT32, shape=(), distance=1)


def tensor(name: str, type: Type, role: TensorRole) -> Tensor:
    return Tensor(name=name, type=type, shape=(0,), role=role, open=True, place=MemorySpace.CHIP)


def sorting(count: int, keys: tuple[Type, ...], operator: Op) -> Graph:
    """Adds ``count`` points to a memory; drops the first point where ``drop`` says so, and stores.

    Afterwards the points that are left are stored.  What is stored are the coordinates, the value
    and the number of points.
    """
    names = [f"k{number}" for number in range(len(keys))]
    memory = SortedMemory(name="points", keys=keys, type=FLOAT, operator=operator)
    loads = [
        Load(target=name, tensor=name, indices=(AT,), type=key)
        for name, key in zip(names, keys, strict=True)
    ]
    given_value = Load(target="given", tensor="v", indices=(AT,), type=FLOAT)
    dropping = Load(target="dropping", tensor="drop", indices=(AT,), type=INT32)
    targets = tuple(f"{name}_first" for name in names)
    first = MemoryFirst(targets=targets, value="value", memory="points")
    size = MemorySize(target="size", memory="points")
    place = Local(name="place", type=INT32)
    stores = [
        Store(tensor=f"{name}_out", indices=(place,), value=Local(name=target, type=key))
        for name, target, key in zip(names, targets, keys, strict=True)
    ]
    stores.append(Store(tensor="v_out", indices=(place,), value=Local(name="value", type=FLOAT)))
    stores.append(Store(tensor="sizes", indices=(place,), value=Local(name="size", type=INT32)))
    drop = (size, first, *stores, MemoryDrop(memory="points"), advance("place"))
    add = MemoryAdd(
        memory="points",
        keys=tuple(Local(name=n, type=k) for n, k in zip(names, keys, strict=True)),
        value=Local(name="given", type=FLOAT),
    )
    added = Choice(inside=Rule(name="add", body=(*loads, given_value, add, advance()), next="run"))
    dropped = Choice(
        when=unequal(Local(name="dropping", type=INT32), 0),
        inside=Rule(name="both", body=(*loads, given_value, add, *drop, advance()), next="run"),
    )
    left = Local(name="size", type=INT32) > 0
    node = Machine(
        name="sorter",
        role=Role.COMPUTE,
        heads=(),
        registers=(counter(), counter("place")),
        memories=(memory,),
        modes=(
            Mode(
                name="run",
                needs=(),
                choices=(
                    Choice(
                        when=AT < count,
                        body=(dropping,),
                        inside=(dropped, added),
                    ),
                    Choice(inside=Rule(name="full", next="drain")),
                ),
            ),
            Mode(
                name="drain",
                needs=(),
                choices=(
                    Choice(
                        body=(MemorySize(target="size", memory="points"),),
                        inside=(
                            Choice(
                                when=left,
                                inside=Rule(name="drain", body=drop[1:], next="drain"),
                            ),
                            Choice(inside=Rule(name="end")),
                        ),
                    ),
                ),
            ),
        ),
    )
    return Graph(
        name="sorting",
        nodes=(node,),
        channels=(),
        tensors=(
            *(tensor(n, k, TensorRole.INPUT) for n, k in zip(names, keys, strict=True)),
            tensor("v", FLOAT, TensorRole.INPUT),
            tensor("drop", INT32, TensorRole.INPUT),
            *(tensor(f"{n}_out", k, TensorRole.OUTPUT) for n, k in zip(names, keys, strict=True)),
            tensor("v_out", FLOAT, TensorRole.OUTPUT),
            tensor("sizes", INT32, TensorRole.OUTPUT),
        ),
    )


def same_values(graph: Graph, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The outputs of the native engine, once compared with the interpreter's."""
    found = stream_values(graph, inputs, {}).outputs
    assert found is not None
    expected = interpret_graph(graph, inputs)
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, strict=True)
    return dict(found)


KEYS = (
    (INT32,),
    (INT32, INT32),
    (UInt(32), INT32, Int(8)),
    (INT64,),
    (UInt(64), INT32),
    (UInt(8),),
)


@settings(max_examples=12, deadline=None)
@given(
    keys=st.sampled_from(KEYS),
    operator=st.sampled_from((Op.ADD, Op.MINIMUM)),
    spread=st.sampled_from((3, 300)),
    drops=st.sampled_from((0.0, 0.5, 0.95)),
    seed=st.integers(0, 1000),
)
def test_sorted_memories(
    keys: tuple[Type, ...], operator: Op, spread: int, drops: float, seed: int
) -> None:
    generator = np.random.default_rng(seed)
    count = 200
    inputs: dict[str, np.ndarray] = {
        "v": generator.standard_normal(count).astype(np.float32),
        "drop": (generator.random(count) < drops).astype(np.int32),
    }
    for number, key in enumerate(keys):
        drawn = generator.integers(-spread, spread, count)
        inputs[f"k{number}"] = drawn.astype(key.numpy)
    same_values(sorting(count, keys, operator), inputs)


def test_a_sorted_memory_that_grows() -> None:
    count = 6000
    generator = np.random.default_rng(0)
    inputs = {
        "k0": generator.permutation(count).astype(np.int32),
        "v": np.ones(count, np.float32),
        "drop": np.zeros(count, np.int32),
    }
    found = stream_values(sorting(count, (INT32,), Op.ADD), inputs, {}).outputs
    assert found is not None
    np.testing.assert_array_equal(found["k0_out"], np.arange(count))
    np.testing.assert_array_equal(found["sizes"], np.arange(count, 0, -1))


def mixed(count: int, rows: int) -> Graph:
    """``count`` loaders, machines and stores: machine ``p`` adds ``p``, and counts."""
    index = Index(name="p")
    space = (SpaceDimension(name="p", minimum=1, extent=count),)
    here = (index - 1,)
    total = Local(name="value", type=INT32) + index
    puts = (Put(channel="sent", value=total),)
    adder = Machine(
        name="adder",
        role=Role.COMPUTE,
        space=space,
        heads=(Head(channel="given", value="value"),),
        registers=(counter(),),
        modes=(
            Mode(
                name="run",
                needs=("given",),
                choices=(
                    Choice(
                        when=AT < rows - 1,
                        inside=Rule(
                            name="pass", body=(advance(),), takes=("given",), puts=puts, next="run"
                        ),
                    ),
                    Choice(inside=Rule(name="last", takes=("given",), puts=puts)),
                ),
            ),
        ),
    )
    element = (Index(name="r"), *here)
    load = Load(target="loaded", tensor="x", indices=element, type=INT32)
    feed = PEArray(
        name="feed",
        role=Role.LOAD,
        space=space,
        loops=(loop("r", rows),),
        body=(load, Send(channel="given", value=Local(name="loaded", type=INT32))),
    )
    keep = PEArray(
        name="keep",
        role=Role.STORE,
        space=space,
        loops=(loop("r", rows),),
        body=(
            Receive(target="token", channel="sent", type=INT32),
            Store(tensor="y", indices=element, value=Local(name="token", type=INT32)),
        ),
    )
    channels = tuple(
        Channel(
            name=name,
            stream=StreamType(element=INT32),
            source=source,
            sink=sink,
            shape=(count,),
            source_index=here,
            sink_index=here,
        )
        for name, source, sink in (("given", "feed", "adder"), ("sent", "adder", "keep"))
    )
    return Graph(
        name="mixed",
        nodes=(keep, adder, feed),
        channels=channels,
        tensors=(
            Tensor(name="x", type=INT32, shape=(rows, count), role=TensorRole.INPUT),
            Tensor(name="y", type=INT32, shape=(rows, count), role=TensorRole.OUTPUT),
        ),
    )


@pytest.mark.parametrize("device", ["ideal", "arria10"])
def test_machines_between_pe_arrays(device: str) -> None:
    graph = mixed(3, 7)
    given = np.arange(21, dtype=np.int32).reshape(7, 3)
    program = build_program(graph, device, {"x": given})
    python = PythonEngine().run(program, Limits())
    native = NativeEngine().run(program, Limits())
    agree(python, native)
    np.testing.assert_array_equal(native.outputs["y"], given + np.arange(1, 4, dtype=np.int32))


def searching(count: int) -> Graph:
    """Stores where in ranges of ``sorted`` the elements of ``wanted`` belong."""
    found = Search(
        target="found",
        tensor="sorted",
        begin=Local(name="begin", type=INT32),
        end=Local(name="end", type=INT32),
        value=Local(name="wanted_value", type=FLOAT),
    )
    loads = tuple(
        Load(target=target, tensor=name, indices=(AT,), type=type)
        for target, name, type in (
            ("begin", "begins", INT32),
            ("end", "ends", INT32),
            ("wanted_value", "wanted", FLOAT),
        )
    )
    store = Store(tensor="places", indices=(AT,), value=Local(name="found", type=INT32))
    node = Machine(
        name="finder",
        role=Role.LOAD,
        heads=(),
        registers=(counter(),),
        modes=(
            Mode(
                name="run",
                needs=(),
                choices=(
                    Choice(
                        when=AT < count,
                        inside=Rule(
                            name="find", body=(*loads, found, store, advance()), next="run"
                        ),
                    ),
                    Choice(inside=Rule(name="end")),
                ),
            ),
        ),
    )
    given = (("sorted", FLOAT), ("wanted", FLOAT), ("begins", INT32), ("ends", INT32))
    return Graph(
        name="searching",
        nodes=(node,),
        channels=(),
        tensors=(
            *(tensor(name, type, TensorRole.INPUT) for name, type in given),
            tensor("places", INT32, TensorRole.OUTPUT),
        ),
    )


def test_search() -> None:
    generator = np.random.default_rng(1)
    ordered = np.unique(generator.standard_normal(40).astype(np.float32))
    bounds = np.sort(generator.integers(0, len(ordered) + 1, (60, 2)), axis=1).astype(np.int32)
    wanted = generator.choice(np.append(ordered, np.float32([-9, 0.01, 9])), 60)
    inputs = {
        "sorted": ordered,
        "wanted": wanted.astype(np.float32),
        "begins": np.ascontiguousarray(bounds[:, 0]),
        "ends": np.ascontiguousarray(bounds[:, 1]),
    }
    same_values(searching(60), inputs)


def test_programs_are_optimized_when_they_run_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The code changes between two calls, in the middle of the run."""
    efforts: list[compile.Effort] = []

    def compiled(text: str, effort: compile.Effort) -> compile.MachineCode:
        efforts.append(effort)
        return compile.compile_text(text, effort)

    monkeypatch.setattr(machine_values, "compile_text", compiled)
    monkeypatch.setattr(machine_values, "is_compiled", lambda text: False)
    monkeypatch.setattr(machine_values, "_FIRINGS_A_CHARACTER", 1e-3)
    monkeypatch.setattr(machine_values, "_FIRINGS_PER_CALL", 7)
    inputs = {
        "k0": np.arange(40, dtype=np.int32) % 7,
        "v": np.arange(40, dtype=np.float32),
        "drop": np.zeros(40, np.int32),
    }
    same_values(sorting(40, (INT32,), Op.ADD), inputs)
    assert set(efforts) == {compile.Effort.QUICK, compile.Effort.FULL}
    assert efforts[0] is compile.Effort.QUICK
