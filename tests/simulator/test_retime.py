"""Re-timing: other channels, the same values, and the cycles of a fresh run."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.engine import gemm
from t2s.core.errors import UserError
from t2s.graph.graph import MOST_DEPTH, Graph, with_depths
from t2s.simulator.limits import Limits
from t2s.simulator.program.build import build_program
from t2s.simulator.report.errors import DeadlockError
from t2s.simulator.report.result import SimResult
from t2s.simulator.run import GraphContext, retime, simulate, simulate_cycles
from tests.graph.machines import copying
from tests.hand_graphs import depths_of
from tests.simulator.designs import ENGINES, chain, fork_join, holding_fork_join
from tests.simulator.test_random import device_of, random_graph

X4 = {"X": np.arange(4, dtype=np.int32)}


def same_times(first: SimResult, second: SimResult) -> bool:
    return (
        first.cycles == second.cycles
        and first.ending is second.ending
        and first.nodes == second.nodes
        and first.deadlock == second.deadlock
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_a_result_is_timed_again_with_the_same_outputs(engine: str) -> None:
    graph = fork_join(4, short=1)
    result = simulate(graph, X4, engine=engine)
    again = result.retime({"short": 8})
    assert again.cycles < result.cycles
    assert again.outputs is result.outputs
    assert again.engine == engine
    assert again.depths == depths_of(graph) | {"short": 8}
    assert same_times(again, simulate_cycles(with_depths(graph, {"short": 8}), engine=engine))
    assert same_times(again.retime({"short": 1}), result)
    assert same_times(result.retime(), result)


def test_latencies() -> None:
    # load 1..4, a token takes 5 cycles instead of 1 through the second channel.
    result = simulate(chain(4), X4)
    slow = result.retime(latencies={"B": 5}, depths={"B": 9})
    assert slow.cycles == result.cycles + 4
    assert slow.outputs is result.outputs


def test_the_seam_changes_neither_graph_nor_control() -> None:
    program = build_program(fork_join(4, short=1), "ideal", X4)
    result = retime(program, {"short": 8})
    assert result.outputs == {}
    assert result.program.control is program.control
    assert result.program.graph is program.graph
    assert result.program.inputs is None


def test_a_deadlock_of_other_depths_is_explained() -> None:
    result = simulate_cycles(holding_fork_join(4, short=4))
    with pytest.raises(DeadlockError) as caught:
        result.retime({"short": 2})
    assert str(caught.value).endswith("hint:     a capacity that frees it: 'short' 2 -> 4")
    # and from the deadlock back
    assert caught.value.result.retime({"short": 4}).cycles == result.cycles


def test_a_limit() -> None:
    result = simulate(fork_join(4, short=1), X4)
    cut = result.retime({"short": 2}, max_cycles=3)
    assert cut.limit_reached
    assert cut.outputs == {}


def test_giving_up_ends_the_run_before_the_limit() -> None:
    program = build_program(fork_join(400_000, short=1), "ideal", None)
    fast = retime(program, {"short": 8})
    slow = retime(program, {}, limits=Limits(max_cycles=fast.cycles, give_up=True))
    assert fast.finished
    assert slow.limit_reached
    assert slow.cycles < fast.cycles / 2
    same = retime(program, {"short": 8}, limits=Limits(max_cycles=fast.cycles, give_up=True))
    assert same_times(same, fast)


@pytest.mark.parametrize("engine", ["array", "table"])
def test_what_is_given_up_takes_at_least_so_many_cycles(engine: str) -> None:
    """By the firings that are left; a run that is not late ends, and after a number of steps."""
    graph = gemm(4, 4, 8, 2000)  # two million firings
    program = build_program(graph, "arria10", None)
    whole = retime(program, {}, engine=engine)
    assert whole.at_least is None
    most = whole.cycles // 2
    late = retime(program, {}, engine=engine, limits=Limits(max_cycles=most, give_up=True))
    assert late.limit_reached
    assert late.at_least is not None
    assert most < late.at_least <= whole.cycles
    assert late.cycles < whole.cycles
    limits = Limits(max_cycles=whole.cycles, give_up=True)
    assert same_times(retime(program, {}, engine=engine, limits=limits), whole)
    few = retime(program, {}, engine=engine, limits=Limits(give_up=True, most_steps=1))
    assert few.limit_reached
    assert few.at_least is not None
    assert few.at_least <= whole.cycles


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(st.data())
def test_retiming_is_a_fresh_run(data: st.DataObject) -> None:
    graph, device = random_graph(data), device_of(data)
    depth = st.integers(1, 6)
    depths = {channel.name: data.draw(depth, "depth") for channel in graph.channels}
    engine = data.draw(st.sampled_from(ENGINES))
    program = build_program(graph, device, None)
    fresh = retime(build_program(with_depths(graph, depths), device, None), {}, engine=engine)
    assert same_times(retime(program, depths, engine=engine), fresh)


def refused(graph: Graph, **arguments: object) -> str:
    result = simulate_cycles(graph)
    with pytest.raises(UserError) as caught:
        result.retime(**arguments)  # type: ignore[arg-type]
    return str(caught.value)


def test_a_channel_that_is_not_there() -> None:
    text = refused(chain(4), depths={"C": 3})
    assert "has no channel 'C'" in text
    assert "expected: one of A, B" in text
    assert "test_retime.py" in text


@pytest.mark.parametrize("depth", [0, -1, 1.5, "3", True, None, MOST_DEPTH + 1])
def test_a_depth_has_to_be_a_positive_integer(depth: object) -> None:
    text = refused(chain(4), depths={"A": depth})
    assert text.startswith("the depth of channel 'A' is out of range\n")
    assert f"expected: an integer from 1 to {MOST_DEPTH}" in text
    assert f"given:    {depth!r}" in text


def test_depths_are_given_by_name() -> None:
    text = refused(chain(4), depths=[4, 4])
    assert text.startswith("every depth needs the name of its channel\n")
    assert "expected: a dict from names of channels, such as {'A': 4}" in text
    assert "given:    [4, 4]" in text


@pytest.mark.parametrize("engine", ["python", "native"])
def test_machines(engine: str) -> None:
    x = {"x": np.array([3, 1, 4, 1, 5, 0], np.int32)}
    result = simulate(copying(), x, engine=engine)
    slow = result.retime({"xs": 1}, latencies={"xs": 5})
    assert slow.cycles > result.cycles
    assert slow.outputs is result.outputs
    assert slow.cycles == simulate(copying(), x).retime({"xs": 1}, latencies={"xs": 5}).cycles
    assert same_times(slow.retime({"xs": result.depths["xs"]}, latencies={"xs": 1}), result)


def test_a_latency_has_to_be_a_positive_integer() -> None:
    assert refused(chain(4), latencies={"A": 0}).startswith("the latency of channel 'A'")


def test_integers_of_numpy() -> None:
    result = simulate_cycles(chain(4), max_cycles=np.int64(100))  # type: ignore[arg-type]
    assert result.retime({"A": np.int64(7)}).depths["A"] == 7


def test_warnings_follow_the_depths() -> None:
    class Deep(GraphContext):
        def warnings(self, result: SimResult) -> tuple[str, ...]:
            return ("deep",) if result.depths["A"] > 100 else ()

        def lines(self, result: SimResult) -> tuple[tuple[str, str], ...]:
            return (("A", str(result.depths["A"])),)

        def write_page(self, result: SimResult, path: object, options: object) -> Path:
            return Path(f"{result.depths['A']}.html")

    result = simulate_cycles(chain(4), context=Deep())
    assert not result.warnings
    assert result.retime({"A": 1000}).warnings == ("deep",)
    assert result.retime({"A": 1000}).retime({"A": 2}).warnings == ()
    assert ("A", "1000") in result.retime({"A": 1000}).summary
    assert result.retime({"A": 1000}).report("page.html") == Path("1000.html")
    cut = result.retime({"A": 3}, max_cycles=2)
    assert cut.report("page.html") == Path("3.html")


def test_a_result_is_data() -> None:
    """What makes reports of it is not in its fields, which every copy would have to carry."""
    assert not [field.name for field in fields(SimResult) if "Callable" in str(field.type)]
