"""Runs that do not simply finish: deadlocks, lost tokens, limits and interrupts."""

from __future__ import annotations

import gc
import signal
from dataclasses import replace

import numpy as np
import pytest

from t2s import sparse
from t2s.core.errors import UserError
from t2s.graph.graph import Graph
from t2s.simulator import run as retime_module
from t2s.simulator.engine_registry import find_engine
from t2s.simulator.limits import Limits
from t2s.simulator.program.build import build_program
from t2s.simulator.random_stalls import RandomStalls
from t2s.simulator.report.counters import Ending
from t2s.simulator.report.errors import DeadlockError, RunInterrupted, TokensLeftError
from t2s.simulator.run import simulate, simulate_cycles
from tests.graph.machines import copying
from tests.hand_graphs import systolic_gemm
from tests.simulator.designs import (
    ENGINES,
    chain,
    channel,
    design,
    feedback,
    fork_join,
    holding_fork_join,
    line,
    node,
    receive,
    run,
    send,
    store_unit,
    y,
)


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def deadlock(graph: Graph, engine: str) -> DeadlockError:
    with pytest.raises(DeadlockError) as caught:
        simulate_cycles(graph, engine=engine)
    return caught.value


def test_too_small_a_capacity_in_a_fork_join(engine: str) -> None:
    # hold passes nothing on before it has 4 tokens, so fork has to send 4 short ones first.
    # load 1, fork 2 3 and then never; hold 3 4.  load: A holds 2, so 1 2 and 2+1=3 3+1=4.
    error = deadlock(holding_fork_join(4, short=2), engine)
    text = str(error)
    assert text.startswith(
        "deadlock after cycle 4: nothing can fire, and not finished are 'fork' (1 of 1 PEs), "
        "'hold' (1 of 1 PEs), 'join' (1 of 1 PEs), 'store' (1 of 1 PEs)\n  --> design.py:2"
    )
    assert "expected: every PE to make all its firings" in text
    assert "given:    a cycle of waiting PEs" in text
    assert (
        "fork waits for space in short (2 of 2 tokens), which join receives, after 2 of 4 firings"
    ) in text
    assert (
        "join waits for a token in late (0 of 2 tokens), which hold sends, after 0 of 4 firings"
    ) in text
    assert (
        "hold waits for a token in long (0 of 2 tokens), which fork sends, after 2 of 8 firings"
    ) in text
    assert "channel 'short' is made here\n  --> design.py:7" in text
    assert "and so back to fork" in text
    assert text.endswith("hint:     a capacity that frees it: 'short' 2 -> 4")
    assert error.result.deadlock is not None
    assert error.result.deadlock.remedy is not None
    assert error.result.deadlock.remedy.capacities == {"short": (2, 4)}
    assert not error.result.finished
    assert error.result.outputs == {}
    for row in error.result.stalls:
        assert row.busy + row.starved + row.blocked + row.waiting + row.idle == 4
    # fork: fired at 2 3, blocked at 4.
    assert error.result.nodes["fork"].blocked_by["short"] == 1


def test_the_suggested_capacity_is_the_smallest(engine: str) -> None:
    assert run(holding_fork_join(4, short=3), engine).ending is Ending.DEADLOCK
    assert run(holding_fork_join(4, short=4), engine).finished


def test_a_node_that_frees_its_own_channel_too_late(engine: str) -> None:
    # One firing receives the old state and sends the new one, and the slot is free one cycle late.
    error = deadlock(feedback(4, capacity=1, latency=1), engine)
    assert "scan waits for space in state (1 of 1 tokens), which scan receives" in str(error)
    assert error.result.deadlock is not None
    assert error.result.deadlock.remedy is not None
    assert error.result.deadlock.remedy.capacities == {"state": (1, 2)}


def test_two_capacities_at_once(engine: str) -> None:
    # fork sends to two short channels; both have to hold 4 tokens before hold passes one on.
    graph = holding_fork_join(4, short=1)
    twice = {
        "fork": lambda node: replace(node, body=(*node.body, send("second"))),
        "join": lambda node: replace(node, body=(receive("second"), *node.body)),
    }
    nodes = tuple(twice.get(item.name, lambda same: same)(item) for item in graph.nodes)
    channels = (*graph.channels, channel("second", "fork", "join", capacity=2))
    error = deadlock(replace(graph, nodes=nodes, channels=channels), engine)
    assert error.result.deadlock is not None
    assert error.result.deadlock.remedy is not None
    assert error.result.deadlock.remedy.capacities == {"short": (1, 4), "second": (2, 4)}
    assert str(error).endswith("capacities that free it: 'short' 1 -> 4, 'second' 2 -> 4")


def test_a_capacity_that_only_leads_to_the_next_deadlock(engine: str) -> None:
    # With room for its tokens the fork goes on, but store wants one token more than join sends.
    graph = holding_fork_join(4, short=2)
    nodes = (*graph.nodes[:-1], store_unit(5, "B"))
    error = deadlock(replace(graph, nodes=nodes, tensors=(*graph.tensors[:-1], y(5))), engine)
    text = str(error)
    assert "fork waits for space in short" in text
    assert (
        "hint:     no capacity frees it; with more space, store waits for a token in B (0 of 2 "
        "tokens), which join sends, after 4 of 5 firings: the sender and the receiver of the last"
    ) in text


def test_an_interrupt_of_the_search_keeps_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(retime_module, "with_remedy", interrupted)
    error = deadlock(holding_fork_join(4, short=2), "python")
    assert str(error).endswith("hint:     larger capacities may free it")


def circular_graph() -> Graph:
    """left and right both receive first."""
    left = node("left", 3, receive("back"), send("forth"), at=11)
    right = node("right", 3, receive("forth"), send("back"), send("B"), at=12)
    return design(
        (left, right, store_unit(3, "B")),
        (
            channel("forth", "left", "right", at=13),
            channel("back", "right", "left", at=14),
            channel("B", "right", "store"),
        ),
        y(3),
    )


def test_a_dependence_cycle_without_tokens(engine: str) -> None:
    error = deadlock(circular_graph(), engine)
    text = str(error)
    assert text.startswith("deadlock after cycle 0: nothing can fire, and not finished are 'left'")
    assert "left waits for a token in back (0 of 2 tokens), which right sends, after 0 of 3" in text
    assert "no capacity frees it: a dependence cycle without enough tokens" in text
    assert error.result.deadlock is not None
    assert error.result.deadlock.closed
    assert error.result.deadlock.remedy is None
    assert error.result.cycles == 0


def unequal(sent: int, received: int) -> Graph:
    """A source that sends ``sent`` tokens and a store unit that wants ``received``."""
    return design(
        (node("source", sent, send("B"), at=21), store_unit(received, "B", at=22)),
        (channel("B", "source", "store", capacity=8, at=23),),
        y(received),
    )


def test_a_token_that_is_never_sent(engine: str) -> None:
    error = deadlock(unequal(3, 5), engine)
    text = str(error)
    assert "store waits for a token in B (0 of 8 tokens), which source sends, after 3 of 5" in text
    assert "given:    PEs that wait for ever" in text
    assert "the sender and the receiver of the last channel disagree on the number" in text
    assert error.result.deadlock is not None
    assert not error.result.deadlock.closed


def test_tokens_left_at_the_end(engine: str) -> None:
    with pytest.raises(TokensLeftError) as caught:
        simulate_cycles(unequal(5, 3), engine=engine)
    text = str(caught.value)
    assert text.startswith(
        "2 tokens are left at the end, 2 of them in channel 'B' from 'source' to 'store'\n"
        "  --> design.py:23"
    )
    assert "expected: every token that is sent to be received" in text
    assert (
        "given:    5 tokens sent in 5 firings of 'source', 3 received in 3 firings of 'store'"
    ) in text
    assert "hint:     compare the loops and conditions at the two ends of the channel" in text
    assert caught.value.result.finished
    assert isinstance(caught.value, DeadlockError)


def test_cycle_limit(engine: str) -> None:
    # load 1 2 3, compute 2 3, store 3: after 3 of 6 cycles.
    inputs = {"X": np.arange(4, dtype=np.int32)}
    result = simulate(chain(4), inputs, engine=engine, max_cycles=3)
    assert result.limit_reached
    assert not result.finished
    assert result.cycles == 3
    assert result.outputs == {}
    assert [node.firings for node in result.nodes.values()] == [3, 2, 1]
    assert "cycle limit reached" in str(result)


def test_stalls_of_a_run_cut_short_count_to_the_limit(engine: str) -> None:
    # Capacity 1 and short channel: fork at 2 5 8 ..., blocked at 3 4 6 7; limit 7.
    result = run(fork_join(4, short=1), engine, max_cycles=7)
    assert result.nodes["fork"].blocked_by["short"] == 4
    for row in result.stalls:
        assert row.busy + row.starved + row.blocked + row.waiting + row.idle == 7


def test_a_limit_that_is_long_enough_changes_nothing(engine: str) -> None:
    assert run(chain(4), engine, max_cycles=6).finished
    assert run(chain(4), engine, max_cycles=5).limit_reached


def test_a_deadlock_at_the_limit_is_a_deadlock(engine: str) -> None:
    assert run(holding_fork_join(4, short=2), engine, max_cycles=4).ending is Ending.DEADLOCK
    assert run(holding_fork_join(4, short=2), engine, max_cycles=3).ending is Ending.LIMIT


@pytest.mark.parametrize("limit", [0, -3, 2.5])
def test_a_limit_has_to_be_a_number_of_cycles(limit: object) -> None:
    with pytest.raises(UserError) as caught:
        simulate_cycles(chain(4), max_cycles=limit)  # type: ignore[arg-type]
    assert "max_cycles is not a number of cycles" in str(caught.value)
    assert "expected: an integer of at least 1, or None" in str(caught.value)
    assert f"given:    {limit!r}" in str(caught.value)


class Interrupter:
    """An observer that stands for a user who presses Ctrl-C."""

    def advanced(self, *, cycle: int, done: int, total: int) -> None:
        raise KeyboardInterrupt


def test_an_interrupt_gives_the_partial_result(engine: str) -> None:
    program = build_program(chain(400), "ideal", {"X": np.zeros(400, np.int32)})
    result = find_engine(engine).run(program, Limits(), Interrupter())
    assert result.interrupted
    assert not result.finished
    assert result.outputs == {}
    assert result.cycles > 0
    for row in result.stalls:
        parts = row.busy + row.starved + row.blocked + row.waiting + row.idle
        assert parts == row.pe_count * result.cycles


class Alarm:
    """An observer that stands for a user who presses Ctrl-C soon after a run has begun."""

    def __init__(self) -> None:
        self.armed = False

    def advanced(self, *, cycle: int, done: int, total: int) -> None:
        if not self.armed:
            self.armed = True
            signal.setitimer(signal.ITIMER_REAL, 0.05)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
@pytest.mark.parametrize("name", ["table", "array"])
def test_ctrl_c_reaches_a_compiled_run(name: str) -> None:
    # Some seconds of compiled code; the stalls keep the array engine from skipping cycles.
    graph = systolic_gemm(10, 8, 1 << (20 if name == "table" else 22))
    program = build_program(graph, "ideal", None, stalls=RandomStalls())

    def press(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, press)
    try:
        result = find_engine(name).run(program, Limits(), Alarm())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert result.interrupted
    assert 0 < result.nodes["C"].firings < result.nodes["C"].total_firings


def test_locations_are_the_users(engine: str) -> None:
    graph = replace(circular_graph(), location=line(10))
    error = deadlock(graph, engine)
    assert error.location == line(11)
    assert (line(13), "channel 'forth' is made here") in error.notes


def test_an_interrupt_while_machines_compute_is_no_result_of_no_cycles() -> None:
    """Times follow from values there: before these are known there is nothing to return."""
    graph, inputs = copying(), {"x": np.array([3, 1, 4, 1, 5, 0], np.int32)}
    program = build_program(graph, "ideal", inputs)
    expected = find_engine("native").run(program, Limits())
    with pytest.raises(RunInterrupted, match="before its first cycle") as caught:
        find_engine("native").run(program, Limits(), Interrupter())
    assert isinstance(caught.value, KeyboardInterrupt)
    assert caught.value.result.interrupted
    again = find_engine("native").run(program, Limits())
    assert again.cycles == expected.cycles
    for name, array in expected.outputs.items():
        assert np.array_equal(again.outputs[name], array)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_reaches_machines_that_compute() -> None:
    """Half a second of values; the same graph runs as before afterwards."""
    kernel = sparse.compile(sparse.parse("y(i) = A(i,j)*x(j)", {"A": "dd", "x": "d", "y": "d"}))
    inputs = {"A": np.ones((2000, 2000)), "x": np.ones(2000)}
    small = {"A": np.ones((2, 2)), "x": np.ones(2)}
    cycles = kernel.simulate(small).cycles

    def press(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    gc.collect()  # Python loses what is raised while it collects
    gc.disable()
    before = signal.signal(signal.SIGALRM, press)
    try:
        # and again: Python loses what is raised while an object is freed, with a warning
        signal.setitimer(signal.ITIMER_REAL, 0.2, 0.05)
        with pytest.raises(KeyboardInterrupt):
            kernel.simulate(inputs)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        gc.enable()
    assert kernel.simulate(small).cycles == cycles
