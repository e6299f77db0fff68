"""Endless machines: they wait for ever when all others have ended, and that is the end of work."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import t2s
from benchmarks.random_graphs import random_device
from benchmarks.random_machines import endless, random_machines
from t2s.backends.opencl_fpga import BACKEND as OPENCL
from t2s.core.errors import UserError
from t2s.explore.depths import fit_depths
from t2s.graph.graph import Graph, with_depths
from t2s.graph.interpret import interpret_graph
from t2s.graph.nodes import Choice, Head, Machine, Mode, Put, Rule
from t2s.graph.printer import graph_to_dot, print_graph
from t2s.graph.serialize import graph_from_json, graph_to_json
from t2s.graph.verify import verify_graph
from t2s.simulator.engine_registry import find_engine
from t2s.simulator.limits import Limits
from t2s.simulator.program.build import build_program
from t2s.simulator.report.errors import DeadlockError, TokensLeftError
from t2s.simulator.report.result import SimResult
from t2s.simulator.run import simulate
from tests.backends.test_verilog_machines import needs_verilator
from tests.graph.machines import copying, local, sink, source
from tests.simulator.designs import holding_fork_join

X = np.array([5, -3, 7, 0, 9], np.int32)
ENGINES = ("python", "native")


def copied(**changes: Any) -> Graph:
    """``copying`` with a sink that waits for another stream, for ever."""
    graph = endless(copying())
    return replace(graph, channels=(replace(graph.channels[0], **changes),))


def run(graph: Graph, inputs: dict[str, Any], engine: str, device: Any = "ideal") -> SimResult:
    """A run; a deadlock is a result."""
    return find_engine(engine).run(build_program(graph, device, inputs), Limits())


@pytest.mark.parametrize("device", ["ideal", "arria10"])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_ends_when_all_that_is_left_is_endless(engine: str, device: str) -> None:
    result = simulate(copied(), {"x": X}, engine=engine, device=device)
    finite = simulate(copying(), {"x": X}, engine=engine, device=device)
    assert result.finished
    assert result.deadlock is None
    assert result.cycles == finite.cycles
    np.testing.assert_array_equal(result.outputs["y"], finite.outputs["y"])
    sink = result.nodes["sink"]
    assert sink.busy + sink.starved + sink.idle == result.cycles


@pytest.mark.parametrize("engine", ENGINES)
def test_other_depths_and_a_limit(engine: str) -> None:
    result = simulate(copied(capacity=1, latency=3), {"x": X}, engine=engine)
    again = result.retime({"xs": 8})
    assert again.cycles == simulate(copied(capacity=8, latency=3), {"x": X}).cycles < result.cycles
    assert simulate(copied(), {"x": X}, engine=engine, max_cycles=3).limit_reached
    assert simulate(copied(), {"x": X}, engine=engine, max_cycles=1000).finished


def test_without_the_mark_it_is_a_deadlock() -> None:
    graph = copied()
    nodes = tuple(replace(n, endless=False) if isinstance(n, Machine) else n for n in graph.nodes)
    for engine in ENGINES:
        with pytest.raises(DeadlockError, match="not finished are 'sink'"):
            simulate(replace(graph, nodes=nodes), {"x": X}, engine=engine)


def test_an_endless_machine_that_waits_for_space_is_a_deadlock() -> None:
    """The echo puts three tokens for each, and the sink takes one stream, then ends."""
    for engine in ENGINES:
        with pytest.raises(DeadlockError, match="not finished are 'echo'") as caught:
            simulate(echoing(copies=3, capacity=1), {"x": X}, engine=engine)
        report = caught.value.result.deadlock
        assert report is not None
        assert report.waits[0].sending


def test_tokens_that_are_left_are_an_error() -> None:
    for engine in ENGINES:
        with pytest.raises(TokensLeftError, match="1 token is left at the end"):
            simulate(echoing(copies=2, capacity=20), {"x": X}, engine=engine)


def ping_pong(results: int) -> Graph:
    """``ping`` puts a token into x before it takes one from y; ``pong`` takes one of x and of b."""
    network = t2s.Network("ping_pong")
    x, y, a, b = (network.channel(name, t2s.Int(32), depth=2) for name in "xyab")
    given = network.input("given", t2s.Int(32), results)
    out = network.output("out", t2s.Int(32), results)
    feed = network.process("feed")
    n = feed.register("n", t2s.Int(32))
    go = feed.mode("go")
    go.rule(when=n < results, puts={b: given[n]}, sets={n: n + 1}, next=go)
    go.rule()
    ping = network.process("ping", endless=True)
    one = ping.register("one", t2s.Int(32))
    write, read = ping.mode("write"), ping.mode("read", waits=[y])
    write.rule(puts={x: one * 0 + 1}, next=read)
    read.rule(takes=[y], puts={a: y.value}, next=write)
    pong = network.process("pong", endless=True)
    both = pong.mode("both", waits=[b, x])
    both.rule(takes=[b, x], puts={y: b.value + x.value}, next=both)
    last = network.process("sink")
    k = last.register("k", t2s.Int(32))
    store, following = last.mode("store", waits=[a]), last.mode("next")
    store.rule(takes=[a], stores=[(out, k, a.value)], sets={k: k + 1}, next=following)
    following.rule(when=k < results, next=store)
    following.rule()
    return network.graph()


def test_a_token_in_front_of_an_endless_machine_that_waits_for_another_one() -> None:
    """After the last result ``pong`` has a token of x and waits for one of b, which has ended."""
    given = np.arange(8, dtype=np.int32)
    for engine in ENGINES:
        result = simulate(ping_pong(8), {"given": given}, engine=engine)
        assert result.finished
        assert result.tokens_left == ()
        np.testing.assert_array_equal(result.outputs["out"], given + 1)


@pytest.mark.parametrize("seed", [1, 2, 3, 5, 54])
def test_random_machines(seed: int) -> None:
    graph, inputs = random_machines(seed)
    graph = endless(graph)
    for device in random_device(seed)[:2]:
        plain, native = (run(graph, inputs, engine, device) for engine in ENGINES)
        assert native.ending == plain.ending
        assert native.cycles == plain.cycles
        assert str(native.stalls) == str(plain.stalls)
        assert native.tokens_left == plain.tokens_left
        expected = interpret_graph(graph, inputs) if plain.finished else {}
        assert plain.outputs.keys() == native.outputs.keys() == expected.keys()
        for name, array in expected.items():
            np.testing.assert_array_equal(plain.outputs[name], array)
            np.testing.assert_array_equal(native.outputs[name], array)


def test_stepping_hands_over_to_running_ahead() -> None:
    """No cycle in which nothing can fire is the end for the kernel that steps."""
    finite, ended = (simulate(graph, {"x": X}) for graph in (copying(), copied()))
    assert (finite.kernel, ended.kernel) == ("stepped", "run-ahead")
    assert (ended.cycles, ended.finished) == (finite.cycles, True)


def test_depths_that_fit() -> None:
    finite = copying()
    slow = replace(finite.channels[0], capacity=1, latency=3)
    expected = fit_depths(replace(finite, channels=(slow,)), {"x": X}, progress=False)
    fit = fit_depths(copied(capacity=1, latency=3), {"x": X}, progress=False)
    assert (fit.cycles, fit.depths) == (expected.cycles, expected.depths)
    result = simulate(fit.apply(copied(capacity=1, latency=3)), {"x": X})
    assert (result.cycles, result.finished) == (fit.cycles, True)


def test_the_remedy_of_a_deadlock_beside_endless_machines() -> None:
    blocked, beside = holding_fork_join(20, short=1), copied()
    graph = replace(
        blocked,
        nodes=blocked.nodes + beside.nodes,
        channels=blocked.channels + beside.channels,
        tensors=blocked.tensors + beside.tensors,
    )
    inputs = {t.name: np.ones(t.shape, t.type.numpy) for t in blocked.tensors if t.name == "X"}
    for engine in ENGINES:
        with pytest.raises(DeadlockError) as caught:
            simulate(graph, inputs | {"x": X}, engine=engine)
        assert "'sink'" not in str(caught.value)
        assert caught.value.hint == "a capacity that frees it: 'short' 1 -> 20"
    freed = with_depths(graph, {"short": 20})
    assert simulate(freed, inputs | {"x": X}).finished


def test_it_needs_an_input() -> None:
    graph = copying()
    nodes = (replace(source(), endless=True), *graph.nodes[1:])
    with pytest.raises(UserError) as caught:
        verify_graph(replace(graph, nodes=nodes))
    assert "it is endless and has no input" in str(caught.value)
    assert "an input, on which it waits for ever" in str(caught.value)


def test_texts() -> None:
    graph = copied()
    assert graph_from_json(graph_to_json(graph)) == graph
    assert '"endless": true' in graph_to_json(graph)
    assert "endless" not in graph_to_json(copying())
    assert "store endless machine sink" in print_graph(graph)
    assert "endless machine" in graph_to_dot(graph)
    reasons = [item.why for item in OPENCL.supports(graph) if item.subject == "node 'sink'"]
    assert "endless machines are not supported in OpenCL" in reasons


@pytest.mark.slow
@needs_verilator
@pytest.mark.verilator
def test_hardware() -> None:
    found = t2s.verilate(copied(), {"x": X})
    assert found.cycles == simulate(copied(), {"x": X}).cycles
    np.testing.assert_array_equal(found.outputs["y"], [5, -3, 7])


def echoing(*, copies: int, capacity: int) -> Graph:
    """``copying`` with an endless machine between that puts each value several times."""
    graph = copying()
    xs = graph.channels[0]
    value = Head(channel="xs", value="v", tag="t")
    echo = Machine(
        name="echo",
        role=graph.nodes[0].role,
        heads=(value,),
        modes=tuple(
            Mode(
                name=f"copy_{n}",
                needs=("xs",),
                choices=(
                    Choice(
                        inside=Rule(
                            name=f"copy_{n}",
                            takes=("xs",) if n == copies - 1 else (),
                            puts=(put_of(value),),
                            next=f"copy_{(n + 1) % copies}",
                        )
                    ),
                ),
            )
            for n in range(copies)
        ),
        endless=True,
    )
    ys = replace(xs, name="ys", source="echo", capacity=capacity)
    return replace(
        graph, nodes=(source(), echo, _from_echo()), channels=(replace(xs, sink="echo"), ys)
    )


def put_of(head: Head) -> Put:
    assert head.tag is not None
    return Put(channel="ys", value=local(head.value), tag=local(head.tag))


def _from_echo() -> Machine:
    """The sink, which takes from ``ys``."""
    (mode,) = sink().modes
    choices = tuple(
        replace(choice, inside=replace(choice.inside, takes=("ys",)))
        for choice in mode.choices
        if isinstance(choice.inside, Rule)
    )
    heads = tuple(replace(head, channel="ys") for head in sink().heads)
    return replace(sink(), heads=heads, modes=(replace(mode, needs=("ys",), choices=choices),))
