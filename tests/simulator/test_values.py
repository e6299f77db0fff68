"""The native value engine against the interpreter, on whole graphs, bit for bit."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from t2s.core.errors import InternalError, UserError
from t2s.core.expr import Broadcast, Expr, Index, Local, Parameter, Select, const, equals
from t2s.core.types import BOOL, INT32, BFloat, Float, Int, Type, UInt
from t2s.graph.body import (
    Let,
    Load,
    Receive,
    RegisterRead,
    RegisterWrite,
    Send,
    Statement,
    Store,
)
from t2s.graph.graph import Channel, Graph, ScalarParameter, StreamType, Tensor, TensorRole
from t2s.graph.interpret import interpret_graph
from t2s.graph.nodes import Loop, PEArray, Register, Role, SpaceDimension
from t2s.graph.verify import verify_graph
from t2s.llvm.compile import compile_text
from t2s.simulator.values import compute as values
from t2s.simulator.values import layout, state
from t2s.simulator.values.compute import compute_values, compute_with_rings
from t2s.simulator.values.emit_node import emit_program
from t2s.simulator.values.layout import layout_of
from tests.hand_graphs import index, loop, space, systolic_gemm
from tests.sampling import sampled

Array = np.ndarray[Any, np.dtype[Any]]
I64 = Int(64)


def node(
    name: str,
    role: Role,
    loops: tuple[Loop, ...],
    *body: Statement,
    space: tuple[SpaceDimension, ...] = (),
    registers: tuple[Register, ...] = (),
) -> PEArray:
    return PEArray(
        name=name, role=role, space=space, loops=loops, registers=registers, body=tuple(body)
    )


def channel(
    name: str,
    ends: str,
    element: Type = INT32,
    shape: tuple[int, ...] = (),
    source: tuple[Expr, ...] = (),
    sink: tuple[Expr, ...] = (),
) -> Channel:
    """A channel between two nodes, ``ends`` being ``"source sink"``."""
    start, end = ends.split()
    return Channel(
        name=name,
        stream=StreamType(element=element),
        source=start,
        sink=end,
        shape=shape,
        source_index=source,
        sink_index=sink,
    )


def load(
    loops: tuple[Loop, ...],
    at: tuple[Expr, ...],
    target: str = "in",
    type: Type = INT32,
    *,
    name: str = "load",
    space: tuple[SpaceDimension, ...] = (),
    condition: Expr | None = None,
) -> PEArray:
    """A load unit that sends X[at] to the channel ``target``."""
    read = Load(target="x", tensor="X", indices=at, type=type, condition=condition)
    send = Send(channel=target, value=local("x", type))
    return node(name, Role.LOAD, loops, read, send, space=space)


def store(
    loops: tuple[Loop, ...],
    at: tuple[Expr, ...],
    source: str = "out",
    type: Type = INT32,
    *,
    name: str = "store",
    space: tuple[SpaceDimension, ...] = (),
    condition: Expr | None = None,
) -> PEArray:
    """A store unit that puts what it receives from the channel ``source`` into Y[at]."""
    take = Receive(target="y", channel=source, type=type)
    write = Store(tensor="Y", indices=at, value=local("y", type), condition=condition)
    return node(name, Role.STORE, loops, take, write, space=space)


def design(
    nodes: tuple[PEArray, ...],
    channels: tuple[Channel, ...],
    shape: tuple[int, ...],
    type: Type = INT32,
    *,
    out: tuple[int, ...] | None = None,
    parameters: tuple[ScalarParameter, ...] = (),
) -> Graph:
    """A graph from X of this shape to Y, of shape ``out`` where that is another one."""
    return Graph(
        name="design",
        nodes=nodes,
        channels=channels,
        tensors=(
            Tensor(name="X", type=type, shape=shape, role=TensorRole.INPUT),
            Tensor(name="Y", type=type, shape=out or shape, role=TensorRole.OUTPUT),
        ),
        parameters=parameters,
    )


def local(name: str, type: Type = INT32) -> Local:
    return Local(name=name, type=type)


def random_inputs(graph: Graph, seed: int = 0) -> dict[str, Array]:
    random = np.random.default_rng(seed)
    made: dict[str, Array] = {}
    for found in graph.tensors:
        if found.role is TensorRole.INPUT:
            numbers = random.standard_normal(found.shape) * 50
            made[found.name] = (
                numbers.astype(found.type.numpy)
                if found.type.is_float
                else numbers.astype(np.int64).astype(found.type.numpy)
            )
    return made


def check(graph: Graph, parameters: Mapping[str, Any] | None = None) -> dict[str, Array]:
    """The outputs, which are those of the interpreter and leave the inputs alone.

    Once as it comes, with loop nests where that is possible, and once with rings everywhere.
    """
    verify_graph(graph)
    inputs = random_inputs(graph)
    before = {name: array.copy() for name, array in inputs.items()}
    expected = interpret_graph(graph, inputs, parameters)
    for compute in (compute_with_rings, compute_values):
        given = compute(graph, inputs, parameters)
        assert given.keys() == expected.keys()
        for name, array in expected.items():
            assert given[name].dtype == array.dtype
            assert given[name].shape == array.shape
            assert given[name].tobytes() == array.tobytes()
    for name, array in inputs.items():
        assert array.tobytes() == before[name].tobytes()
    return given


@pytest.fixture(params=["as shipped", "tiny"])
def rings(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run with the normal sizes, and with rings of one token and calls of 7 firings."""
    if request.param == "tiny":
        monkeypatch.setattr(layout, "_DEPTHS", (1,))
        monkeypatch.setattr(values, "_FIRINGS_PER_CALL", 7)


# -- systolic arrays ---------------------------------------------------------------------------


@sampled(
    ("shape", "tiles", "lanes", "element"),
    [
        ((1, 1, 1), (1, 1), 1, INT32),
        ((2, 3, 5), (1, 1), 1, INT32),
        ((3, 2, 4), (2, 3), 4, Float(32)),
        ((2, 2, 6), (1, 4), 16, Float(32)),
        ((2, 2, 3), (2, 2), 5, Float(64)),
        ((2, 3, 4), (2, 2), 8, Float(16)),
        ((3, 2, 4), (2, 2), 3, BFloat()),
        ((1, 4, 9), (3, 1), 2, Int(8)),
        ((4, 1, 9), (1, 3), 7, UInt(16)),
        ((2, 2, 5), (2, 1), 4, I64),
    ],
    quick=4,
)
@pytest.mark.usefixtures("rings")
def test_systolic_arrays(
    shape: tuple[int, int, int], tiles: tuple[int, int], lanes: int, element: Type
) -> None:
    check(
        systolic_gemm(
            *shape, tile_rows=tiles[0], tile_columns=tiles[1], lanes=lanes, element=element
        )
    )


def test_a_long_run_equals_numpy() -> None:
    graph = systolic_gemm(4, 3, 16, tile_rows=16, tile_columns=16, lanes=8, element=I64)
    inputs = random_inputs(graph)
    firings: list[int] = []
    given = compute_values(graph, inputs, on_progress=firings.append)
    assert np.array_equal(given["C"], inputs["A"] @ inputs["B"].T)
    load, array, store = (4 + 3) * 16 * 256, 12 * 16 * 256, 12 * 256
    assert firings[-1] == load + array + store
    assert firings == sorted(firings)


# -- loop nests --------------------------------------------------------------------------------


def copy_through(
    loops: tuple[Loop, ...], indices: tuple[Expr, ...], shape: tuple[int, ...]
) -> Graph:
    """X goes through a PE that doubles it to Y, in the order of a loop nest."""
    double = node(
        "double",
        Role.COMPUTE,
        loops,
        Receive(target="x", channel="in", type=INT32),
        Send(channel="out", value=local("x") + local("x")),
    )
    return design(
        (load(loops, indices), double, store(loops, indices)),
        (channel("in", "load double"), channel("out", "double store")),
        shape,
    )


i, j, k = (index(name) for name in "ijk")


@pytest.mark.parametrize(
    "loops",
    [
        (loop("i", 9), Loop(name="j", minimum=i, extent=9 - i)),
        (loop("i", 9), Loop(name="j", minimum=const(0), extent=i - 3)),
        (loop("i", 9), Loop(name="j", minimum=const(2), extent=4 - i)),
        (loop("i", 0), loop("j", 3)),
        (loop("i", 3), loop("j", 0)),
        (loop("i", 4, 5), loop("j", 6, 1)),
    ],
    ids=["triangle", "empty first", "empty last", "no outer", "no inner", "offset"],
)
@pytest.mark.usefixtures("rings")
def test_loop_bounds(loops: tuple[Loop, ...]) -> None:
    check(copy_through(loops, (i, j), (9, 9)))


@pytest.mark.usefixtures("rings")
def test_three_dependent_levels() -> None:
    loops = (
        loop("i", 6),
        Loop(name="j", minimum=const(0), extent=i - 1),
        Loop(name="k", minimum=j, extent=4 - i - j),
    )
    check(copy_through(loops, (i, j, k), (6, 6, 6)))


def test_no_loops_fire_once() -> None:
    graph = copy_through((), (const(1),), (2,))
    assert check(graph)["Y"][0] == 0


def test_negative_indices_and_minimum() -> None:
    loops = (loop("i", 5, -5),)
    check(copy_through(loops, (i + 5,), (5,)))


# -- channels ----------------------------------------------------------------------------------


def serial_feeder(count: int, rounds: int) -> Graph:
    """One feeder deals its stream out to ``count`` PEs, one collector gathers: both by time."""
    serial = (loop("t", rounds), loop("n", count))
    t, n, p = index("t"), index("n"), index("p")
    work = node(
        "work",
        Role.COMPUTE,
        (loop("t", rounds),),
        Receive(target="x", channel="in", type=INT32),
        Send(channel="out", value=local("x") * (p + t)),
        space=(space("p", count),),
    )
    return design(
        (load(serial, (t, n)), work, store(serial, (t, n))),
        (
            channel("in", "load work", shape=(count,), source=(n,), sink=(p,)),
            channel("out", "work store", shape=(count,), source=(p,), sink=(n,)),
        ),
        (rounds, count),
    )


@pytest.mark.usefixtures("rings")
def test_a_serial_feeder_deals_over_a_channel_array() -> None:
    check(serial_feeder(5, 40))


def running_sum(count: int, lag: int) -> Graph:
    """y[t] = x[t] + y[t - lag], the older sums going round a channel array of ``lag`` elements."""
    t = index("t")
    loops = (loop("t", count),)
    shape, element = ((lag,), (t % lag,)) if lag > 1 else ((), ())
    later = t >= lag
    adder = node(
        "sum",
        Role.COMPUTE,
        loops,
        Receive(target="x", channel="in", type=INT32),
        Receive(target="y", channel="round", type=INT32, condition=later),
        Let(target="total", value=local("x") + local("y")),
        Send(channel="round", value=local("total"), condition=t < count - lag),
        Send(channel="out", value=local("total")),
    )
    return design(
        (load(loops, (t,)), adder, store(loops, (t,))),
        (
            channel("in", "load sum"),
            channel("round", "sum sum", shape=shape, source=element, sink=element),
            channel("out", "sum store"),
        ),
        (count,),
    )


@pytest.mark.parametrize("lag", [1, 3])
@pytest.mark.usefixtures("rings")
def test_feedback(lag: int) -> None:
    check(running_sum(400, lag))


def reversed_halves(count: int) -> Graph:
    """Two streams are sent one after the other and received in the opposite order."""
    loops = (loop("p", 2), loop("t", count))
    p, t = index("p"), index("t")
    first, second = equals(p, 0), equals(p, 1)
    x, a, b = (local(name, I64) for name in "xab")
    sender = node(
        "load",
        Role.LOAD,
        loops,
        Load(target="x", tensor="X", indices=(p, t), type=I64),
        Send(channel="early", value=x, condition=first),
        Send(channel="late", value=x, condition=second),
    )
    receiver = node(
        "store",
        Role.STORE,
        loops,
        Receive(target="a", channel="late", type=I64, condition=first),
        Receive(target="b", channel="early", type=I64, condition=second),
        Store(tensor="Y", indices=(p, t), value=a + b),
    )
    channels = (channel("early", "load store", I64), channel("late", "load store", I64))
    return design((sender, receiver), channels, (2, count), I64)


@pytest.mark.parametrize("count", [3, 1000])
@pytest.mark.usefixtures("rings")
def test_rings_grow_where_a_graph_needs_it(count: int) -> None:
    check(reversed_halves(count))


def test_rings_do_not_grow_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "_LARGEST_RING", 4096)
    graph = reversed_halves(10_000)
    with pytest.raises(InternalError, match="wait for tokens that never come: load, store"):
        compute_with_rings(graph, random_inputs(graph))


# -- bodies ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("lanes", "element"), [(1, Float(32)), (4, Float(32)), (3, BOOL)])
def test_conditional_loads_and_vector_stores(lanes: int, element: Type) -> None:
    """A row that is padded with zeros to both sides; where it is, memory is not read."""
    vector = element.with_lanes(lanes)
    inside = (j > 0) & (j < 4)
    loops = (loop("i", 3), loop("j", 5))
    column = (j - 1) * lanes
    to = (i, const(1), j * lanes)
    graph = design(
        (
            load(loops, (i, column), type=vector, condition=inside),
            store(loops, to, "in", vector, condition=j < 4),
        ),
        (channel("in", "load store", vector),),
        (3, 3 * lanes),
        element,
        out=(3, 2, 5 * lanes),
    )
    check(graph)


def test_registers() -> None:
    """Vector registers, a write under a condition on data, and a read after it in one firing."""
    pair = I64.with_lanes(2)
    t = index("t")
    slot = (t % 3, const(1))
    x, old, new = local("x", pair), local("old", pair), local("new", pair)
    positive = const(0, I64) < local("low", I64)
    body = (
        Receive(target="x", channel="in", type=pair),
        Receive(target="low", channel="low", type=I64),
        RegisterRead(target="old", register="file", indices=slot, type=pair),
        RegisterWrite(register="file", indices=slot, value=old + x, condition=positive),
        RegisterRead(target="new", register="file", indices=slot, type=pair),
        Send(channel="out", value=Select(condition=positive, if_true=new, if_false=x, type=pair)),
    )
    loops = (loop("t", 20),)
    file = Register(name="file", type=pair, shape=(3, 2), distance=3)
    graph = design(
        (
            load(loops, (t, const(0)), type=pair),
            load(loops, (t, const(0)), "low", I64, name="load_low"),
            node("work", Role.COMPUTE, loops, *body, registers=(file,)),
            store(loops, (t, const(0)), type=pair),
        ),
        (
            channel("in", "load work", pair),
            channel("low", "load_low work", I64),
            channel("out", "work store", pair),
        ),
        (20, 2),
        I64,
    )
    check(graph)


def scaled(rows: int) -> Graph:
    """Y = scale * X on the first ``count`` columns, where ``enabled``; all are parameters."""
    vector = Float(32).with_lanes(2)
    count = Parameter(name="count", type=INT32)
    scale, enabled = Parameter(name="scale", type=Float(32)), Parameter(name="enabled", type=BOOL)
    p, t = index("p"), index("t")
    loops = (Loop(name="t", minimum=const(0), extent=count),)
    at = (p, t * 2)
    rowwise = (space("p", rows),)
    sender = node(
        "load",
        Role.LOAD,
        loops,
        Load(target="x", tensor="X", indices=at, type=vector),
        Send(channel="in", value=local("x", vector) * Broadcast(value=scale, type=vector)),
        space=rowwise,
    )
    return design(
        (sender, store(loops, at, "in", vector, space=rowwise, condition=enabled)),
        (channel("in", "load store", vector, (rows,), (p,), (p,)),),
        (rows, 8),
        Float(32),
        parameters=(
            ScalarParameter(name="count", type=INT32),
            ScalarParameter(name="scale", type=Float(32)),
            ScalarParameter(name="enabled", type=BOOL),
        ),
    )


@pytest.mark.parametrize("count", [0, 1, 4])
@pytest.mark.parametrize("enabled", [False, True])
def test_parameters_are_not_compiled_in(count: int, enabled: bool) -> None:
    graph = scaled(3)
    check(
        graph,
        {
            "count": np.int32(count),
            "scale": np.float32(1.5 + count),
            "enabled": np.bool_(enabled),
        },
    )
    program = emit_program(graph, layout_of(graph))
    assert compile_text(program.text) is compile_text(emit_program(graph, layout_of(graph)).text)


# -- how it is called --------------------------------------------------------------------------


def test_arrays_of_any_memory_order_are_read() -> None:
    graph = systolic_gemm(2, 2, 3, tile_rows=2, lanes=2)
    inputs = random_inputs(graph)
    expected = interpret_graph(graph, inputs)["C"]
    for name, array in inputs.items():
        for view in (np.asfortranarray(array), np.repeat(array, 2, axis=1)[:, ::2]):
            assert np.array_equal(compute_values(graph, {**inputs, name: view})["C"], expected)


def test_runs_in_threads_do_not_meet() -> None:
    graph = systolic_gemm(3, 3, 8, tile_rows=4, tile_columns=4, lanes=4, element=Float(32))
    inputs = [random_inputs(graph, seed) for seed in range(6)]
    alone = [compute_values(graph, one)["C"] for one in inputs]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda one: compute_values(graph, one)["C"], inputs))
    assert all(np.array_equal(a, b) for a, b in zip(alone, together, strict=True))


def test_starving_nodes_are_named() -> None:
    graph = copy_through((loop("i", 4),), (i,), (4,))
    first, *others = graph.nodes
    starving = replace(graph, nodes=(replace(first, loops=(loop("i", 3),)), *others))
    with pytest.raises(InternalError, match="never come: double, store"):
        compute_values(starving, random_inputs(starving))


@pytest.mark.parametrize("where", [Index(name="i"), 1 - Index(name="i")])
def test_leaving_the_bounds_of_a_tensor(where: Expr) -> None:
    graph = copy_through((loop("i", 4),), (where,), (3,))
    with pytest.raises(InternalError, match="load leaves the bounds of X"):
        compute_values(graph, random_inputs(graph))


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("in", {"sink_index": (index("t"),)}, "work receives from no element of in"),
        ("out", {"shape": (2,)}, "work sends to no element of out"),
        ("out", {"sink_index": (index("n") + 1,)}, "store receives from no element"),
    ],
)
def test_leaving_the_bounds_of_a_channel_array(
    name: str, change: dict[str, Any], message: str
) -> None:
    graph = serial_feeder(3, 4)
    channels = tuple(replace(one, **change) if one.name == name else one for one in graph.channels)
    with pytest.raises(InternalError, match=message):
        compute_values(replace(graph, channels=channels), random_inputs(graph))


def test_leaving_the_bounds_of_a_register() -> None:
    graph = running_sum(4, 1)
    first, adder, last = graph.nodes
    wrong = replace(
        adder,
        body=(
            *adder.body,
            RegisterRead(target="r", register="file", indices=(index("t"),), type=INT32),
        ),
        registers=(Register(name="file", type=INT32, shape=(3,), distance=1),),
    )
    with pytest.raises(InternalError, match="sum leaves the bounds of register file"):
        compute_values(replace(graph, nodes=(first, wrong, last)), random_inputs(graph))


def test_inputs_that_do_not_fit() -> None:
    graph = systolic_gemm(2, 2, 3)
    inputs = random_inputs(graph)
    with pytest.raises(UserError, match="the input B is missing"):
        compute_values(graph, {"A": inputs["A"]})
    with pytest.raises(
        UserError, match=r"(?s)input A has the wrong shape.*int32.*\(2, 3\).*\(3, 2\)"
    ):
        compute_values(graph, {**inputs, "A": inputs["A"].T})
    with pytest.raises(UserError, match=r"(?s)input A has the wrong element type.*int64"):
        compute_values(graph, {**inputs, "A": inputs["A"].astype(np.int64)})
    with pytest.raises(UserError, match=r"(?s)the parameter count is missing.*int32"):
        compute_values(scaled(1), random_inputs(scaled(1)))
