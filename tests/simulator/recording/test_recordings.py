"""Traces and waveforms of windows: read back, they say what the plain engine does."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import t2s
from benchmarks.random_graphs import random_device, random_graph
from benchmarks.random_machines import random_machines
from t2s.driver.assignment_design import given_in_memory
from t2s.graph.control.firing_codes import listed
from t2s.simulator import recording
from t2s.simulator.devices import DEVICES
from t2s.simulator.engine_registry import find_engine
from t2s.simulator.limits import Limits
from t2s.simulator.program.build import build_program
from t2s.simulator.program.sim_program import SimProgram
from t2s.simulator.recording import CYCLE_TIME, element_scope, vcd_name
from t2s.simulator.reference_engine import _Run
from t2s.simulator.report.errors import DeadlockError
from t2s.simulator.report.result import SimResult
from t2s.simulator.timeline import MOST_BINS, PEState
from tests.errors.refusal import refused
from tests.report.page.designs import inputs_of, product
from tests.simulator.designs import holding_fork_join
from tests.simulator.recording.reading import read_trace, read_vcd, states_of

SEEDS = [pytest.param(n, marks=pytest.mark.slow) if n > 0 else n for n in range(20)]
SIGNALS = ("valid", "push", "pop", "occupancy")


@cache
def run(**options: Any) -> SimResult:
    result: SimResult = t2s.simulate(product(), inputs_of(), **options)
    return result


class WatchedChannels:
    """The plain engine, and the signals of all channel elements by cycle."""

    def __init__(self, program: SimProgram) -> None:
        run = _Run(program, Limits(), None)
        step, found = run._step, []

        def stepped() -> None:
            fifos = list(run.fifos.values())
            now = run.cycle + 1
            valid = [(ready := fifo.ready()) is not None and ready <= now for fifo in fifos]
            held = [len(fifo.tokens) for fifo in fifos]
            taken = [len(fifo.received_at) for fifo in fifos]
            step()
            pop = [len(fifo.received_at) - n for fifo, n in zip(fifos, taken, strict=True)]
            push = [len(fifo.tokens) - n + p for fifo, n, p in zip(fifos, held, pop, strict=True)]
            found.append([valid, push, pop, held])

        run._step = stepped  # type: ignore[method-assign]
        with np.errstate(all="ignore"):
            run.to_the_end(Limits())
        signals = np.array(found, np.int64).reshape(len(found), 4, len(run.fifos))
        self.signals = dict(zip(SIGNALS, signals.transpose(1, 2, 0), strict=True))


def _finished(program: SimProgram, engine: str) -> SimResult | None:
    try:
        result = find_engine(engine).run(program, Limits(max_cycles=5000))
    except DeadlockError:
        return None
    return result if result.finished and result.cycles else None


def _windows(result: SimResult, random: Random) -> list[tuple[int, int]]:
    found = []
    for _ in range(2):
        first = random.randint(1, result.cycles)
        found.append((first, random.randint(first, min(result.cycles, first + 200))))
    return [*found, (1, result.cycles)]


def _waves_agree(result: SimResult, path: Path, random: Random) -> None:
    watched = WatchedChannels(result.program)
    program = result.program
    for first, last in _windows(result, random):
        read = read_vcd(result.waves(path, cycles=(first, last)))
        known = min(last, watched.signals["push"].shape[1])
        times = range(CYCLE_TIME * first, CYCLE_TIME * known + 1, CYCLE_TIME)
        for element in range(len(program.channel_of_element)):
            scope = f"{vcd_name(program.graph.name)}.{element_scope(program, element)}"
            for name in SIGNALS:
                values = read.sampled(f"{scope}.{name}", times)
                if name == "valid" and set(values) == {"x"}:
                    assert program.timed_places
                    continue
                assert values == watched.signals[name][element, first - 1 : known].tolist()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("engine", ["table", pytest.param("array", marks=pytest.mark.slow)])
def test_waves_of_loop_nests(seed: int, engine: str, tmp_path: Path) -> None:
    graph = random_graph(seed)
    for device in random_device(seed):
        result = _finished(build_program(graph, device, None), engine)
        if result is not None:
            _waves_agree(result, tmp_path / "a.vcd", Random(seed))


@pytest.mark.parametrize("seed", SEEDS)
def test_waves_of_machines(seed: int, tmp_path: Path) -> None:
    graph, inputs = random_machines(seed)
    for device in random_device(seed):
        program = build_program(graph, device, inputs)
        result = _finished(program, "native")
        if result is not None:
            with_inputs = replace(result.program, inputs=program.inputs)
            _waves_agree(replace(result, program=with_inputs), tmp_path / "a.vcd", Random(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_waves_with_a_dram(seed: int, tmp_path: Path) -> None:
    """When a token of a loader is there is the memory's business; all else is known."""
    device = DEVICES["arria10"].with_memory("ddr4-2133")
    graph, inputs = random_machines(seed)
    for design, arrays in ((random_graph(seed), None), (given_in_memory(graph), inputs)):
        program = build_program(design, device, arrays)
        result = _finished(program, "native")
        if result is not None:
            with_inputs = replace(result.program, inputs=program.inputs)
            _waves_agree(replace(result, program=with_inputs), tmp_path / "a.vcd", Random(seed))


def _trace_agrees(result: SimResult, path: Path, window: tuple[int, int]) -> None:
    read = read_trace(result.trace(path, cycles=window))
    program, (first, last) = result.program, window
    line = result.timeline(cycles=window, bins=None)
    assert line.is_exact
    states = np.array([state.name.lower() for state in PEState])[line.main_states()]
    tracks = [f"/{program.graph.name}/{t.node.name}/" for t, _ in line.rows()]
    for pe, track in enumerate(tracks):
        slices = read.slices.get(f"{track}{program.pe_label(pe)}", [])
        assert np.array_equal(states_of(slices, first, last), states[pe])
        for one in slices:
            bins = range(one.first - first, one.last - first + 1)
            if one.name == "busy":
                before = int(line.firings[pe, bins[0]]) - 1
                assert one.notes == {"firings": len(bins), "first firing": before}
                assert int(line.firings[pe, bins[-1]]) == before + len(bins)
            else:
                causes = {line.cause(pe, bin) for bin in bins}
                assert causes == {one.notes.get("waits for")}
    for number, timing in enumerate(program.channels):
        changes = read.counters[f"/{program.graph.name}/channels/{timing.channel.name}"]
        times = [time for time, _ in changes]
        assert times[0] == first
        at = np.searchsorted(times, np.arange(first, last + 2), side="right") - 1
        assert np.array_equal(np.array([value for _, value in changes])[at], line.held[number])


@pytest.mark.parametrize("seed", SEEDS)
def test_traces(seed: int, tmp_path: Path) -> None:
    machines, inputs = random_machines(seed)
    random = Random(seed)
    for graph, arrays in ((random_graph(seed), None), (machines, inputs)):
        for device in random_device(seed):
            result = _finished(build_program(graph, device, arrays), "native")
            if result is not None:
                for window in _windows(result, random)[:2]:
                    _trace_agrees(result, tmp_path / "a.pftrace", window)


def test_compressed_traces(tmp_path: Path) -> None:
    result = run(device="arria10")
    _trace_agrees(result, tmp_path / "a.pftrace.gz", (100, 140))
    names = ("b.pftrace", "b.pftrace.gz")
    plain, packed = (result.trace(tmp_path / name, cycles=(100, 200)) for name in names)
    assert packed.stat().st_size * 4 < plain.stat().st_size < 60_000


def test_the_same_bytes_when_made_again(tmp_path: Path) -> None:
    again = t2s.simulate(product(), inputs_of())
    for name in ("a.pftrace", "a.pftrace.gz", "a.vcd"):
        write = SimResult.waves if name.endswith("vcd") else SimResult.trace
        first = write(run(), tmp_path / name, cycles=(3, 40)).read_bytes()
        assert write(again, tmp_path / name, cycles=(3, 40)).read_bytes() == first
        assert str(Path(__file__).parent).encode() not in first


@pytest.mark.slow
def test_windows_that_need_several_timelines(tmp_path: Path) -> None:
    depth = 2 * MOST_BINS
    result = t2s.simulate(product(4, depth), inputs_of(4, depth))
    last = result.cycles
    whole = read_trace(result.trace(tmp_path / "a.pftrace"))
    firings = sum(
        int(one.notes["firings"])
        for slices in whole.slices.values()
        for one in slices
        if one.name == "busy"
    )
    assert last > depth
    assert firings == result.firings
    start = last - MOST_BINS - 500
    waves = read_vcd(result.waves(tmp_path / "a.vcd", cycles=(start, last)))
    tail = read_vcd(result.waves(tmp_path / "b.vcd", cycles=(last - 100, last)))
    times = range(CYCLE_TIME * (last - 100), CYCLE_TIME * last + 1, CYCLE_TIME)
    assert waves.changes.keys() == tail.changes.keys()
    for name in waves.changes:
        assert waves.sampled(name, times) == tail.sampled(name, times)


def test_a_first_cycle_of_0_is_the_start(tmp_path: Path) -> None:
    result = run()
    assert (
        result.trace(tmp_path / "a.pftrace", cycles=(0, 20)).read_bytes()
        == result.trace(tmp_path / "b.pftrace", cycles=(1, 20)).read_bytes()
    )


@pytest.mark.parametrize("nodes", [["A_loader"], "A_loader", ("A_loader", "A_loader")])
def test_some_nodes(nodes: Any, tmp_path: Path) -> None:
    result = run()
    whole = read_trace(result.trace(tmp_path / "a.pftrace", cycles=(1, 30)))
    some = read_trace(result.trace(tmp_path / "b.pftrace", cycles=(1, 30), nodes=nodes))
    loader = {track: s for track, s in whole.slices.items() if track.startswith("/C/A_loader/")}
    assert some.slices == loader != {}
    name = "/C/channels/A_loader_to_C"
    assert some.counters == {name: whole.counters[name]}
    waves = read_vcd(result.waves(tmp_path / "a.vcd", cycles=(1, 30)))
    few = read_vcd(result.waves(tmp_path / "b.vcd", cycles=(1, 30), nodes=nodes))
    expected = {name: c for name, c in waves.changes.items() if ".A_loader_to_C[" in name}
    assert few.changes == expected != {}


@pytest.mark.parametrize(
    ("nodes", "named"),
    [(["C", "nobody"], "'nobody'"), ("nobody", "'nobody'"), ([], "[]"), (7, "7")],
)
def test_unknown_nodes(nodes: Any, named: str, tmp_path: Path) -> None:
    result = run()
    with refused(
        f"""
        'C' has no node {named} to record
          --> result.trace(tmp_path / "a.pftrace", nodes=nodes)
          expected: some of A_loader, B_loader, C, C_unloader
          given:    {nodes!r}
        """
    ):
        result.trace(tmp_path / "a.pftrace", nodes=nodes)
    with pytest.raises(t2s.errors.UserError, match="to record"):
        result.waves(tmp_path / "a.vcd", nodes=nodes)


def test_runs_that_were_cut_short(tmp_path: Path) -> None:
    result = run(max_cycles=20)
    _trace_agrees(result, tmp_path / "a.pftrace", (1, 20))
    with pytest.raises(t2s.errors.UserError, match="the window is not in the run"):
        result.waves(tmp_path / "a.vcd", cycles=(1, 21))


def test_deadlocks(tmp_path: Path) -> None:
    """What came before is there to look at: that of the plain engine."""
    graph = holding_fork_join(4, short=2)
    with pytest.raises(DeadlockError) as caught:
        t2s.simulate(graph, {"X": np.arange(4, dtype=np.int32)})
    result = caught.value.result
    _trace_agrees(result, tmp_path / "a.pftrace", (1, result.cycles))
    _waves_agree(result, tmp_path / "a.vcd", Random(1))
    last = read_vcd(result.waves(tmp_path / "a.vcd"))
    full = [n for n in last.changes if n.endswith("occupancy") and last.changes[n][-1][1] != 0]
    assert full


@pytest.mark.parametrize("seed", range(5))
def test_codes_at_positions(seed: int) -> None:
    program = build_program(random_graph(seed), "ideal", None)
    for order in [*program.control.orders, listed(np.array([3, 1, 2], np.int32))]:
        slots = np.arange(order.firings)[:: max(1, order.firings // 50)]
        assert np.array_equal(order.at(slots), order.expanded()[slots])


def test_windows_outside_of_the_run(tmp_path: Path) -> None:
    result = run()
    with refused(
        f"""
        the window is not in the run
          --> result.trace(tmp_path / "a.pftrace", cycles=(5, 5000))
          expected: cycles=(first, last), both of 1 to {result.cycles} and in this order
          given:    (5, 5000)
        """
    ):
        result.trace(tmp_path / "a.pftrace", cycles=(5, 5000))
    with refused(
        f"""
        the window is not in the run
          --> result.waves(tmp_path / "a.vcd", cycles=(9, 3))
          expected: cycles=(first, last), both of 1 to {result.cycles} and in this order
          given:    (9, 3)
        """
    ):
        result.waves(tmp_path / "a.vcd", cycles=(9, 3))
    assert list(tmp_path.iterdir()) == []


def test_windows_that_are_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run()
    pes, fifos = result.program.pe_count, len(result.program.channel_of_element)
    monkeypatch.setattr(recording, "MOST_CELLS", 30 * (pes + fifos) + 1)
    with refused(
        f"""
        the window is too large to be recorded
          --> result.trace(tmp_path / "a.pftrace", cycles=(11, 45))
          expected: at most 30 cycles, for {pes} PEs and {fifos} FIFOs
          given:    cycles 11 to 45, 35
          hint:     cycles=(11, 40)
        """
    ):
        result.trace(tmp_path / "a.pftrace", cycles=(11, 45))
    assert list(tmp_path.iterdir()) == []
    _trace_agrees(result, tmp_path / "a.pftrace", (11, 40))


@pytest.mark.slow
def test_windows_in_the_middle_of_a_long_run(tmp_path: Path) -> None:
    """The run is not stepped through to get there, and the window is the same as with steps."""
    result = t2s.simulate(product(4, 1 << 18), inputs_of(4, 1 << 18))
    assert result.kernel == "array"
    middle = result.cycles // 2
    _trace_agrees(result, tmp_path / "a.pftrace", (middle, middle + 50))
    with pytest.raises(t2s.errors.UserError, match="the window is too large to be recorded"):
        result.waves(tmp_path / "a.vcd")
    last = result.cycles
    waves = read_vcd(result.waves(tmp_path / "a.vcd", cycles=(last - 50, last)))
    assert waves.end == CYCLE_TIME * (last + 1)


def test_machines_of_the_plain_engine(tmp_path: Path) -> None:
    assignment = t2s.sparse.parse("y(i)=A(i,j)*x(j)", ["A:ds"])
    inputs = {"A": np.eye(4), "x": np.ones(4)}
    stage = t2s.simulate(assignment, inputs, engine="python").stages[0]
    with refused(
        """
        the machines of 'y' have no recorded activity
          --> stage.waves(tmp_path / "a.vcd")
          expected: a run by the native engine
          given:    one by the plain engine
          hint:     simulate with engine='native'
        """
    ):
        stage.waves(tmp_path / "a.vcd")


def test_libraries_that_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run()
    monkeypatch.setitem(sys.modules, "perfetto.trace_builder.proto_builder", None)
    monkeypatch.setitem(sys.modules, "vcd.writer", None)
    with refused(
        """
        perfetto is not installed, which writes Perfetto's traces
          --> result.trace(tmp_path / "c.pftrace")
          expected: the extra 'trace' of t2s
          hint:     pip install 't2s-spatial[trace]'
        """
    ):
        result.trace(tmp_path / "c.pftrace")
    with pytest.raises(
        t2s.errors.UserError, match="pyvcd is not installed, which writes VCD files"
    ):
        result.waves(tmp_path / "c.vcd")


def test_a_folder_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run()
    with refused(
        """
        the file 'nowhere/a.pftrace' cannot be written
          --> result.trace("nowhere/a.pftrace", cycles=(1, 9))
          expected: a name in a writable folder on a disk with free space
          given:    No such file or directory
        """
    ):
        result.trace("nowhere/a.pftrace", cycles=(1, 9))


HOSTILE = "a b$end <script>\n\x01ä%20"


def test_names_with_anything_in_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names are identifiers where they come in; a graph made by hand is not asked."""
    result = run()
    program = result.program
    channels = tuple(
        replace(t, channel=replace(t.channel, name=HOSTILE))
        if t.channel.name == "A_along_jj"
        else t
        for t in program.channels
    )
    changed = replace(program, graph=replace(program.graph, name=HOSTILE), channels=channels)
    hostile = replace(result, program=changed)
    timelines = result.timelines  # the program with these names cannot run
    monkeypatch.setattr(SimResult, "timelines", lambda _, windows: timelines(windows))
    waves = read_vcd(hostile.waves(tmp_path / "a.vcd", cycles=(1, 30)))
    plain = read_vcd(result.waves(tmp_path / "b.vcd", cycles=(1, 30)))
    name = vcd_name(HOSTILE)
    assert name == "a%20b%24end%20<script>%0A%01%C3%A4%2520"
    assert waves.changes[f"{name}.{name}[1,2].pop"] == plain.changes["C.A_along_jj[1,2].pop"]
    read = read_trace(hostile.trace(tmp_path / "a.pftrace", cycles=(1, 30)))
    assert f"/{HOSTILE}/channels/{HOSTILE}" in read.counters
