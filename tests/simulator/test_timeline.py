"""What PEs did in windows of runs: equal to the plain engine, cycle by cycle and PE by PE."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random

import numpy as np
import pytest

import t2s
from benchmarks.random_graphs import random_device, random_graph
from benchmarks.random_machines import random_machines
from t2s.core.errors import UserError
from t2s.driver.assignment_design import given_in_memory
from t2s.graph.nodes import PEArray
from t2s.graph.semantics import holds, iterations, space_points
from t2s.simulator.devices import DEVICES
from t2s.simulator.engine_registry import find_engine
from t2s.simulator.limits import Limits
from t2s.simulator.program.build import build_program
from t2s.simulator.program.sim_program import SimProgram
from t2s.simulator.random_stalls import RandomStalls
from t2s.simulator.reference_engine import _Run
from t2s.simulator.report.errors import DeadlockError
from t2s.simulator.report.result import SimResult
from t2s.simulator.timeline import MEMORY, NO_CAUSE, PEState, checked_window
from t2s.simulator.times.sampled import timeline_of
from tests.sampling import sampled
from tests.spatial.test_schedule_times import GAPS

SEEDS = [pytest.param(n, marks=pytest.mark.slow) if n > 2 else n for n in range(14)]
KINDS = ("busy", "waiting", "starved", "blocked", "idle")


class Watched:
    """The plain engine, and what every PE did in every cycle."""

    def __init__(self, program: SimProgram) -> None:
        run = _Run(program, Limits(), None)
        states: list[list[int]] = []
        causes: list[list[int]] = []
        step = run._step

        def look() -> tuple[list[int], list[int]]:
            """The counters of each PE as one list, and those of each element."""
            flat = [n for pe in run.pes for n in (pe.firings, pe.waiting, pe.memory_stalls)]
            return flat, [n for fifo in run.fifos.values() for n in (fifo.starved, fifo.blocked)]

        before = look()

        def note() -> None:
            nonlocal before
            after = look()
            states.append([])
            causes.append([])
            stalled: dict[int, tuple[PEState, int]] = {}
            for number, fifo in enumerate(run.fifos.values()):
                for sending in (0, 1):
                    at = 2 * number + sending
                    if after[1][at] > before[1][at]:
                        ends = program.control.sender if sending else program.control.receiver
                        state = PEState.BLOCKED if sending else PEState.STARVED
                        channel = int(program.channel_of_element[fifo.position])
                        stalled[int(ends[fifo.position])] = (state, channel)
            for number in range(len(run.pes)):
                fired, waited, remembered = (
                    after[0][3 * number + k] > before[0][3 * number + k] for k in range(3)
                )
                state, cause = PEState.IDLE, NO_CAUSE
                if fired:
                    state = PEState.BUSY
                elif waited:
                    state = PEState.WAITING
                elif remembered:
                    loads = program.loads[number]
                    state, cause = PEState.STARVED if loads else PEState.BLOCKED, MEMORY
                elif number in stalled:
                    state, cause = stalled[number]
                states[-1].append(state)
                causes[-1].append(cause)
            before = after

        def stepped() -> None:
            step()
            note()

        run._step = stepped  # type: ignore[method-assign]
        with np.errstate(all="ignore"):
            run.to_the_end(Limits())
        # the cycles in which only stores end
        while len(states) < run.cycle:
            states.append([PEState.IDLE] * len(run.pes))
            causes.append([NO_CAUSE] * len(run.pes))
        self.states = np.array(states, np.int64).reshape(run.cycle, len(run.pes)).T
        self.causes = np.array(causes, np.int64).reshape(run.cycle, len(run.pes)).T
        self._empty_slots_wait(program)

    def _empty_slots_wait(self, program: SimProgram) -> None:
        """The engine steps through empty slots as if they were firings."""
        for timing in program.nodes:
            node = timing.node
            if not isinstance(node, PEArray):
                continue
            for pe, point in enumerate(space_points(node), timing.first):
                environments = iterations(node, point, program.parameters)
                active = np.array([holds(node.active, one) for one in environments], np.bool_)
                busy = np.flatnonzero(self.states[pe] == PEState.BUSY)
                self.states[pe, busy[~active[: len(busy)]]] = PEState.WAITING


def _finished(program: SimProgram, engine: str) -> SimResult | None:
    """The run, where it ends."""
    try:
        result = find_engine(engine).run(program, Limits())
    except DeadlockError:
        return None
    return result if result.finished else None


def _agrees(result: SimResult, watched: Watched, random: Random) -> None:
    """Three windows in cycles, and the whole run in bins."""
    program = (
        result.program
        if result.machine_trace is None
        else result.program.traced(result.machine_trace)
    )
    assert watched.states.shape[1] == result.cycles
    for _ in range(3):
        first = random.randint(1, result.cycles)
        last = random.randint(first, min(result.cycles, first + 200))
        edges = checked_window((first, last), result.cycles, bins=None, pe_count=program.pe_count)
        found = timeline_of(program, edges, result.kernel)
        assert found.is_exact
        assert (found.cycles.sum(axis=0) == 1).all()
        window = slice(first - 1, last)
        assert np.array_equal(found.main_states(), watched.states[:, window])
        assert np.array_equal(found.causes, watched.causes[:, window])
        busy = watched.states == PEState.BUSY
        assert np.array_equal(found.before, busy[:, : first - 1].sum(axis=1))
        assert np.array_equal(found.firings[:, -1], busy[:, :last].sum(axis=1))
    bins = random.randint(1, min(result.cycles, 40))
    edges = checked_window(None, result.cycles, bins=bins, pe_count=program.pe_count)
    whole = timeline_of(program, edges, result.kernel)
    assert (whole.first, whole.last) == (1, result.cycles)
    for bin, (start, end) in enumerate(pairwise(whole.edges.tolist())):
        for state in PEState:
            expected = (watched.states[:, start:end] == state).sum(axis=1)
            assert np.array_equal(whole.cycles[state][:, bin], expected)


@sampled("seed", SEEDS, quick=2)
@pytest.mark.parametrize("engine", ["table", "array"])
def test_loop_nests(seed: int, engine: str) -> None:
    graph = random_graph(seed)
    for device in random_device(seed):
        program = build_program(graph, device, None)
        result = _finished(program, engine)
        if result is None:
            continue
        if result.cycles <= 20_000:
            _agrees(result, Watched(program), Random(seed))


@sampled("seed", SEEDS, quick=2)
def test_machines(seed: int) -> None:
    graph, inputs = random_machines(seed)
    for device in random_device(seed):
        program = build_program(graph, device, inputs)
        result = _finished(program, "native")
        if result is None:
            continue
        _agrees(result, Watched(program), Random(seed))


@sampled("seed", SEEDS[:8], quick=2)
def test_units_of_a_dram(seed: int) -> None:
    """Loop nests and machines that wait for a DRAM, and random stalls of units without one."""
    device = DEVICES["arria10"].with_memory("ddr4-2133")
    nests = build_program(random_graph(seed), device, None)
    graph, inputs = random_machines(seed)
    stalling = build_program(random_graph(seed), "arria10", None)
    stalling = replace(stalling, stalls=RandomStalls(seed=seed, one_in=3))
    machines = build_program(given_in_memory(graph), device, inputs)
    for program in (nests, machines, stalling):
        result = _finished(program, "native")
        if result is not None and result.cycles < 20_000:
            _agrees(result, Watched(program), Random(seed))


def _product() -> SimResult:
    """A systolic product, long enough to repeat itself."""
    i, j = t2s.Var("i"), t2s.Var("j")
    k = t2s.RDom(0, 400, name="k")
    A, B = t2s.ImageParam(t2s.Int(32), 2, name="A"), t2s.ImageParam(t2s.Int(32), 2, name="B")
    C = t2s.Func("C")
    C[i, j] = 0
    C[i, j] += A[i, k] * B[k, j]
    C.bound(i, 0, 40).bound(j, 0, 8)
    loader, unloader = t2s.funcs("loader unloader")
    C.update().reorder(k, j, i)
    C.unroll(j)
    C.isolate_producer(A, loader)
    C.isolate_consumer(unloader)
    return t2s.simulate(
        C, {"A": np.ones((40, 400), np.int32), "B": np.ones((400, 8), np.int32)}, engine="array"
    )


def test_edges_are_moved_to_the_ends_of_periods() -> None:
    result = _product()
    assert result.skipped > result.cycles // 2
    found = result.timeline(bins=50)
    assert (found.first, found.last) == (1, result.cycles)
    assert 5 < found.bins <= 50
    for start, end in list(pairwise(found.edges.tolist()))[:: found.bins // 5]:
        if start:
            exact = result.timeline(cycles=(start + 1, end), bins=1)
            bin = found.edges.tolist().index(start)
            assert np.array_equal(exact.cycles[:, :, 0], found.cycles[:, :, bin])
            assert np.array_equal(exact.before, found.firings[:, bin - 1])
    for name, node in result.nodes.items():
        total = found.of(name).sum(axis=(1, 2))
        said = (node.busy, node.waiting, node.starved, node.blocked, node.idle)
        assert tuple(total.tolist()) == said


def test_what_a_timeline_says() -> None:
    result = _product()
    found = result.timeline(cycles=(11, 30))
    assert found.is_exact
    assert (found.first, found.last, found.bins) == (11, 30, 20)
    assert repr(found).endswith("cycles 11 to 30 in 20 bins>")
    timings = list(found.rows())
    assert len(timings) == found.cycles.shape[1]
    causes = {found.cause(pe, bin) for pe in range(len(timings)) for bin in range(20)}
    assert causes <= {None, "memory", *(c.channel.name for c in result.program.channels)}
    with pytest.raises(KeyError):
        found.of("nobody")


@pytest.mark.parametrize("cycles", [(0, 5), (5, 4), (1, 10**9), (1,), ("a", 2), 7])
def test_windows_outside_of_the_run(cycles: object) -> None:
    result = _product()
    with pytest.raises(UserError) as caught:
        result.timeline(cycles=cycles)  # type: ignore[arg-type]
    assert caught.value.message == "the window is not in the run"
    assert f"both of 1 to {result.cycles:,}" in (caught.value.expected or "")
    assert caught.value.location is not None
    assert caught.value.location.file == __file__


@pytest.mark.parametrize("bins", [0, -1, 10**6, "many", 2.5])
def test_numbers_of_bins(bins: object) -> None:
    with pytest.raises(UserError) as caught:
        _product().timeline(bins=bins)  # type: ignore[arg-type]
    assert caught.value.message == "bins is not a number of bins"
    assert caught.value.given == repr(bins)


def test_a_run_that_was_cut_short() -> None:
    i = t2s.Var("i")
    A, B = t2s.ImageParam(t2s.Int(32), 1, name="A"), t2s.Func("B")
    B[i] = A[i] + 1
    B.bound(i, 0, 1000)
    result = t2s.simulate(B, {"A": np.ones(1000, np.int32)}, max_cycles=100)
    found = result.timeline()
    assert found.last == result.cycles == 100
    total = found.cycles.sum(axis=(1, 2)).tolist()
    sums = [sum(getattr(node, kind) for node in result.nodes.values()) for kind in KINDS]
    assert total == sums


def test_empty_slots_are_waiting() -> None:
    """t = 2i + j of 18 multiply-adds in 24 slots, as the table of stalls counts them."""
    result = t2s.simulate(GAPS.func(), {"x": np.ones((3, 3, 2), np.int32)})
    found = result.timeline()
    for name, node in result.nodes.items():
        sums = found.of(name).sum(axis=(1, 2)).tolist()
        assert sums == [getattr(node, kind) for kind in KINDS]
    (compute,) = (timing for timing in result.program.nodes if timing.node.name == "Z")
    assert found.firings[compute.instances, -1].sum() == 18
    assert found.slots[compute.instances, -1].sum() == 24
