"""Processes written by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import t2s
from t2s import Float, Int
from t2s.errors import UserError
from t2s.graph.graph import Graph
from t2s.graph.interpret import interpret_graph
from t2s.graph.network import Network
from t2s.simulator.report.errors import DeadlockError

X = np.array([3, 1, 2], np.int32)


def service(*, endless: bool = True) -> Graph:
    """A server that doubles, and a client that asks three times."""
    design = Network("service")
    x, y = design.input("x", Int(32), 3), design.output("y", Int(32), 3)
    request, answer = design.channel("request", Int(32)), design.channel("answer", Int(32))
    server, client = design.process("server", endless=endless), design.process("client")
    serve = server.mode("serve", waits=[request])
    serve.rule(takes=[request], puts={answer: request.value * 2}, next=serve)
    n = client.register("n", Int(32))
    ask, listen = client.mode("ask"), client.mode("listen", waits=[answer])
    ask.rule(when=n < 3, puts={request: x[n]}, next=listen)
    ask.rule()
    listen.rule(takes=[answer], stores=[(y, n, answer.value)], sets={n: n + 1}, next=ask)
    return design.graph()


def test_a_server_answers_in_both_engines() -> None:
    graph = service()
    plain, native = (t2s.simulate(graph, {"x": X}, engine=e) for e in ("python", "native"))
    assert plain.cycles == native.cycles
    assert str(plain.stalls) == str(native.stalls)
    for outputs in (plain.outputs, native.outputs, interpret_graph(graph, {"x": X})):
        np.testing.assert_array_equal(outputs["y"], 2 * X)


def test_a_server_that_should_end_is_a_deadlock_at_its_line() -> None:
    with pytest.raises(DeadlockError, match="not finished are 'server'") as caught:
        t2s.simulate(service(endless=False), {"x": X})
    assert caught.value.location is not None
    assert Path(caught.value.location.file).name == "test_builder.py"


def test_errors_name_the_line() -> None:
    design = Network("wrong")
    channel = design.channel("c", Int(32))
    process = design.process("p")
    n, f = process.register("n", Int(32)), process.register("f", Float(32))
    mode = process.mode("run")
    x = design.input("x", Int(32), 3)
    for what, expected in (
        (lambda: n + f, "the types of the two sides of"),
        (lambda: n + 0.5, "a value of a process has the wrong type"),
        (lambda: bool(n < 3), "known only when it runs"),
        (lambda: mode.rule(when=x[n] < 3), "a condition loads from memory"),
        (lambda: mode.rule(sets={n + 1: 2}), "only a register can be set"),
        (lambda: list(x), "are known only when the design runs"),  # type: ignore[call-overload]
        (design.graph, "channel 'c' needs one process that puts tokens into it"),
    ):
        with pytest.raises(UserError, match=expected) as caught:
            what()
        assert caught.value.location is not None
        assert Path(caught.value.location.file).name == "test_builder.py"
    mode.rule(puts={channel: 1})
    with pytest.raises(UserError, match="needs one process that waits for it"):
        design.graph()
