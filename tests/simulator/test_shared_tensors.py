"""Copies of inputs on the chip, and tensors of single assignment that several machines use."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from t2s.core.errors import InternalError, UserError
from t2s.core.expr import Expr, Index, Local, const, equals
from t2s.core.types import INT32, Float
from t2s.core.walk import Term, rewrite
from t2s.graph.body import Load, Role, Store
from t2s.graph.graph import Channel, Graph, MemorySpace, StreamType, Tensor, TensorRole
from t2s.graph.nodes import Choice, Head, Machine, Mode, Put, Rule, SpaceDimension
from t2s.simulator.devices import DEVICES
from t2s.simulator.run import retime_on, simulate
from tests.graph.refusal import refuse
from tests.simulator.memory.plain_memories import independent_memories

PLACES = 3
HERE = Index(name="place")


def tensor(
    name: str, role: TensorRole, place: MemorySpace = MemorySpace.CHIP, **more: object
) -> Tensor:
    found = Tensor(name=name, type=INT32, shape=(0,), role=role, open=True, place=place)
    return replace(found, **more)


def once(*rules: Rule) -> tuple[Mode, ...]:
    """A machine that makes these firings, and ends."""
    return tuple(
        Mode(
            name=f"step{number}",
            needs=rule.takes,
            choices=(Choice(inside=replace(rule, next=following)),),
        )
        for number, rule in enumerate(rules)
        for following in [f"step{number + 1}" if number + 1 < len(rules) else None]
    )


def link(name: str, source: str, sink: str, place: Expr, shape: tuple[int, ...] = ()) -> Channel:
    at = (HERE,) if shape else ()
    return Channel(
        name=name,
        stream=StreamType(element=INT32),
        source=source,
        sink=sink,
        shape=shape,
        source_index=at,
        sink_index=(place,) if shape else (),
    )


def value(name: str) -> Local:
    return Local(name=name, type=INT32)


def doubled() -> Graph:
    """Places double an element each into ``z``; the reader has a token of each, and stores sums."""
    step = Load(target="loaded", tensor="x_here", indices=(HERE,), type=INT32)
    twice = value("loaded") * 2
    writer = Machine(
        name="writer",
        role=Role.COMPUTE,
        space=(SpaceDimension(name="place", minimum=0, extent=PLACES),),
        heads=(),
        modes=(
            Mode(
                name="double",
                needs=(),
                choices=tuple(
                    Choice(
                        when=equals(HERE, at),
                        inside=Rule(
                            name=f"double{at}",
                            body=(step, Store(tensor="z", indices=(HERE,), value=twice)),
                            puts=(Put(channel=f"done{at}", value=HERE),),
                        ),
                    )
                    for at in range(PLACES)
                ),
            ),
        ),
    )
    loads = [
        Load(target=f"z{at}", tensor="z", indices=(const(at),), type=INT32) for at in range(PLACES)
    ]
    total = value("z0") + value("z1") + value("z2")
    reader = Machine(
        name="reader",
        role=Role.STORE,
        heads=tuple(Head(channel=f"done{at}", value=f"token{at}") for at in range(PLACES)),
        modes=once(
            Rule(
                name="add",
                body=(*loads, Store(tensor="y", indices=(const(0),), value=total)),
                takes=tuple(f"done{at}" for at in range(PLACES)),
            )
        ),
    )
    loader = Machine(
        name="loader",
        role=Role.LOAD,
        heads=(),
        modes=once(
            Rule(
                name="load",
                body=(Load(target="word", tensor="x", indices=(const(0),), type=INT32),),
            )
        ),
    )
    return Graph(
        name="doubled",
        nodes=(loader, writer, reader),
        channels=tuple(
            link(f"done{at}", "writer", "reader", const(at), (PLACES,)) for at in range(PLACES)
        ),
        tensors=(
            tensor("x", TensorRole.INPUT, MemorySpace.MEMORY),
            tensor("x_here", TensorRole.INPUT, copy_of="x"),
            tensor("z", TensorRole.INTERMEDIATE, once=True),
            tensor("y", TensorRole.OUTPUT, MemorySpace.MEMORY),
        ),
    )


@pytest.mark.parametrize("memory", ["ideal", "ddr4-2133"])
def test_both_engines(memory: str) -> None:
    device = DEVICES["capstan"].with_memory(memory)
    x = np.array([3, 4, 5], np.int32)
    with independent_memories():
        native, plain = (
            simulate(doubled(), {"x": x}, device=device, engine=engine)
            for engine in ("native", "python")
        )
    assert native.outputs["y"].tolist() == plain.outputs["y"].tolist() == [24]
    assert native.cycles == plain.cycles
    # only the loader is a unit of the memory, beside the one that stores
    assert native.memory is None or [u.node for u in native.memory.units] == ["loader", "reader"]


def changed(name: str, **changes: object) -> Graph:
    graph = doubled()
    tensors = [replace(t, **changes) if t.name == name else t for t in graph.tensors]
    return replace(graph, tensors=tuple(tensors))


def test_what_is_no_copy() -> None:
    expected = "  expected: an input on the chip, of the type and the shape of an input in memory"
    refuse(
        changed("x_here", copy_of="w"),
        "tensor 'x_here': it is not a copy of 'w'",
        expected,
        "  given:    int32[any] on the chip as w beside nothing",
    )
    refuse(
        changed("x_here", place=MemorySpace.MEMORY),
        "tensor 'x_here': it is not a copy of 'x'",
        expected,
        "  given:    int32[any] as x beside int32[any]",
    )
    refuse(
        changed("x_here", type=Float(32)),
        "tensor 'x_here': it is not a copy of 'x'",
        expected,
        "  given:    float32[any] on the chip as x beside int32[any]",
    )


def test_what_cannot_be_stored_once() -> None:
    expected = "  expected: an open output or intermediate"
    refuse(
        changed("x", once=True),
        "tensor 'x': it cannot be stored once",
        expected,
        "  given:    input int32[any] stored once",
    )
    refuse(
        changed("z", open=False, shape=(4,)),
        "tensor 'z': it cannot be stored once",
        expected,
        "  given:    intermediate int32[4] on the chip stored once",
    )


def together() -> Graph:
    """All writers store into one element."""

    def first(node: Term) -> Term | None:
        stores = isinstance(node, Store) and node.tensor == "z"
        return replace(node, indices=(const(0),)) if stores else None

    graph = doubled()
    return replace(graph, nodes=tuple(rewrite(node, first) for node in graph.nodes))


def too_early() -> Graph:
    """The reader loads before it takes a token."""
    graph = doubled()
    loader, writer, reader = graph.nodes
    assert isinstance(reader, Machine)
    early = Load(target="early", tensor="z", indices=(const(0),), type=INT32)
    store = Store(tensor="y", indices=(const(1),), value=value("early"))
    (mode,) = reader.modes
    look = Choice(inside=Rule(name="look", body=(early, store), next=mode.name))
    modes = (Mode(name="look", needs=(), choices=(look,)), mode)
    return replace(graph, nodes=(replace(reader, modes=modes), loader, writer))


@pytest.mark.parametrize(("graph", "before"), [(together(), "stored"), (too_early(), "loaded")])
def test_the_plain_engine_checks_the_promise(graph: Graph, before: str) -> None:
    x = np.array([3, 4, 5], np.int32)
    with pytest.raises(InternalError) as found:
        simulate(graph, {"x": x}, device="capstan", engine="python")
    assert str(found.value).startswith(
        f"internal error in t2s: element 0 of 'z' is stored, and was {before} before: in a tensor"
        " of single assignment each is stored once, before it is loaded"
    )


def test_without_the_promise_several_machines_may_not_store() -> None:
    refuse(
        changed("z", once=False),
        "node 'writer': several machines store into 'z'",
        "  expected: one machine for each tensor that is stored into",
        f"  given:    {PLACES} machines",
        "  hint:     make a node for each of them, with a tensor of its own",
    )


def test_timed_again_on_another_device() -> None:
    x, capstan = np.array([3, 4, 5], np.int32), DEVICES["capstan"]
    slow = simulate(doubled(), {"x": x}, device=capstan.with_memory("ddr4-2133"))
    fast = simulate(doubled(), {"x": x}, device=capstan)
    assert retime_on(slow, capstan).cycles == fast.cycles < slow.cycles
    again = retime_on(slow, capstan.with_memory("hbm2e"), latencies={"done0": 100})
    assert again.cycles > 100


TOLD_AGAIN = {
    "native": "its machines have no recorded memory accesses|expected: a run by the native engine"
    "|given:    one by the engine 'native' on capstan"
    "|hint:     simulate it first with a DRAM, and then with the others",
    "python": "its machines have no trace|expected: a run by the native engine"
    "|given:    one by the engine 'python' on capstan"
    "|hint:     simulate it first with engine='native'",
}


@pytest.mark.parametrize("engine", TOLD_AGAIN)
def test_runs_that_cannot_be_timed_again(engine: str) -> None:
    run = simulate(
        doubled(), {"x": np.array([3, 4, 5], np.int32)}, device=DEVICES["capstan"], engine=engine
    )
    with pytest.raises(UserError) as found:
        retime_on(run, DEVICES["capstan"].with_memory("hbm2e"))
    lines = [line.strip() for line in str(found.value).splitlines()]
    said = "|".join(line for line in lines if " | " not in line and not line.startswith("-->"))
    assert said == f"'doubled' cannot be timed again: {TOLD_AGAIN[engine]}"
