"""Waveforms of the hardware and of the simulator: the same signals in every channel and cycle."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import t2s
from benchmarks.random_graphs import random_graph
from benchmarks.random_machines import random_machines
from t2s.backends.verilog.top import top_of
from t2s.backends.verilog.verilator import (
    HEADERS,
    VerilationError,
    run_program,
    verilator_available,
)
from t2s.graph.graph import Graph
from t2s.simulator.recording import CYCLE_TIME, element_scope, vcd_name
from tests.backends import designs
from tests.backends.test_verilog_referee import side_by_side
from tests.errors.refusal import refused
from tests.report.page.designs import inputs_of, product
from tests.simulator.designs import chain, feedback, fork_join, holding_fork_join
from tests.simulator.recording.reading import ReadWaves, read_vcd

needs_verilator = pytest.mark.skipif(
    not verilator_available(), reason="Verilator or a C++ compiler is not installed"
)
needs_fst = pytest.mark.skipif(
    shutil.which("fst2vcd") is None or not Path("/usr/include/lz4.h").exists(),
    reason="fst2vcd (of gtkwave) or the headers of lz4 are not installed",
)
pytestmark = pytest.mark.verilator


def hardware_names(waves: ReadWaves) -> dict[str, str]:
    """The full names of the signals of the design itself by their own names, as ``pop[3]``.

    An array is a scope of its own in files that were FST.
    """
    found = {}
    for name in waves.changes:
        scopes = name.split(".")
        own = scopes[3:]
        if len(own) == 1 or (len(own) == 2 and own[1].startswith(f"{own[0]}[")):
            found[own[-1]] = name
    return found


def agrees(graph: Graph, result: Any, hardware: Path, simulated: Path, window: Any) -> int:
    """Compares ``valid``, ``push`` and ``pop`` of every FIFO; how many ones there were."""
    first, last = window
    ours, theirs = read_vcd(simulated), read_vcd(hardware)
    names, top, program = hardware_names(theirs), top_of(graph), result.program
    times = range(CYCLE_TIME * first, CYCLE_TIME * last + 1, CYCLE_TIME)
    ones = 0
    for timing, (channel, signals) in zip(program.channels, top.channels, strict=True):
        assert timing.channel.name == channel.name
        for at in range(channel.element_count):
            scope = f"{vcd_name(graph.name)}.{element_scope(program, timing.first + at)}"
            for signal in ("valid", "push", "pop"):
                expected = ours.sampled(f"{scope}.{signal}", times)
                name = names[f"{getattr(signals, signal)}[{at}]"]
                assert theirs.sampled(name, times) == expected, (scope, signal)
                ones += sum(value == 1 for value in expected)
            held = names[f"{signals.held}[{at}]"]
            occupancy = ours.sampled(f"{scope}.occupancy", times)
            assert [binary(value) for value in theirs.sampled(held, times)] == [
                binary(value) for value in occupancy
            ]
    return ones


def binary(value: int | str | None) -> int:
    """The number of a vector, which the reader gives as decimal digits of its bits or as text."""
    assert value is not None
    return int(value)


def compared(
    graph: Graph,
    inputs: dict[str, Any] | None,
    folder: Path,
    window: tuple[int, int] | None,
    suffix: str = ".vcd",
    **options: Any,
) -> None:
    if inputs is None:
        inputs = {
            tensor.name: np.arange(int(np.prod(tensor.shape)))
            .reshape(tensor.shape)
            .astype(tensor.type.numpy)
            for tensor in graph.tensors
            if tensor.role.value == "input"
        }
    result = t2s.simulate(graph, inputs, **options)
    last = result.cycles
    chosen = (1, last) if window is None else window
    waves = folder / f"hardware{suffix}"
    ran = t2s.verilate(graph, inputs, waves=waves, cycles=chosen, **options)
    assert ran.cycles == last
    if suffix == ".fst":
        command = ["fst2vcd", "-f", str(waves), "-o", str(folder / "hardware.vcd")]
        subprocess.run(command, check=True, capture_output=True)
    simulated = result.waves(folder / "simulated.vcd", cycles=chosen)
    assert agrees(graph, result, folder / "hardware.vcd", simulated, chosen) > 0


@pytest.mark.slow
@needs_verilator
def test_loop_nests(tmp_path: Path) -> None:
    graph = side_by_side(
        chain=chain(7),
        fork=fork_join(5, short=8),
        feedback=feedback(4, capacity=2, latency=2),
        scatter=designs.scatter_gather(),
        feeder=designs.serial_feeder(extra=1),
        rows=designs.triangular(4),
        total=designs.running_total(),
    )
    compared(graph, None, tmp_path, None)


@pytest.mark.slow
@needs_verilator
@needs_fst
def test_a_window_of_a_product_in_fst(tmp_path: Path) -> None:
    graph = t2s.lower(product(4, 8))
    compared(graph, inputs_of(4, 8), tmp_path, (60, 130), ".fst", device="arria10")


@pytest.mark.slow
@needs_verilator
@pytest.mark.parametrize("seed", [1, 6])
def test_random_machines(seed: int, tmp_path: Path) -> None:
    graph, inputs = random_machines(seed)
    compared(graph, inputs, tmp_path, None, device="arria10")


@pytest.mark.slow
@needs_verilator
def test_random_stalls(tmp_path: Path) -> None:
    graph = random_graph(1)
    stalls = t2s.RandomStalls(seed=3, one_in=3)
    compared(graph, None, tmp_path, None, stalls=stalls)


@pytest.mark.slow
@needs_verilator
def test_hardware_that_stands_still_has_waves(tmp_path: Path) -> None:
    waves = tmp_path / "still.vcd"
    with pytest.raises(VerilationError, match="is deadlocked after cycle 4"):
        t2s.verilate(holding_fork_join(4, short=2), waves=waves)
    assert any("_valid" in name for name in read_vcd(waves).changes)


@pytest.mark.slow
@needs_verilator
def test_windows_outside_of_the_run(tmp_path: Path) -> None:
    design = chain(3)
    with refused(
        """
        the window of the waveforms is outside of the run
          --> t2s.verilate(design, waves=tmp_path / "a.vcd", cycles=(2, 900))
          expected: cycles=(first, last), both of 1 to 5 and in this order
          given:    (2, 900)
        """
    ):
        t2s.verilate(design, waves=tmp_path / "a.vcd", cycles=(2, 900))
    assert list(tmp_path.iterdir()) == []


def test_headers_that_are_missing(tmp_path: Path) -> None:
    with pytest.raises(VerilationError) as caught:
        run_program(chain(3), ["false"], tmp_path, 10, hint=HEADERS)
    assert str(caught.value) == (
        "'design' failed in false (exit code 1); it said:\n\n"
        "  hint:     waveforms in FST take the headers of zlib and lz4 (zlib1g-dev and liblz4-dev "
        "on Debian); those in VCD, with a name that ends with .vcd, take nothing"
    )


def test_names_without_a_format() -> None:
    with refused(
        """
        cannot tell the waveform format from the file name
          --> t2s.verilate(chain(3), waves="waves.txt")
          expected: a name that ends with .fst or .vcd
          given:    'waves.txt'
        """
    ):
        t2s.verilate(chain(3), waves="waves.txt")


def test_cycles_without_a_file() -> None:
    with refused(
        """
        cycles= needs waves=
          --> t2s.verilate(chain(3), cycles=(1, 2))
          expected: verilate(..., waves=FILE, cycles=(first, last))
          given:    cycles=(1, 2), and no file
        """
    ):
        t2s.verilate(chain(3), cycles=(1, 2))


@pytest.mark.parametrize("cycles", [(3, 2), (-1, 4), (0, 0), (1,), 7, ("a", 2)])
def test_windows_that_are_none(cycles: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.vcd"
    with refused(
        f"""
        invalid window for the waveforms
          --> t2s.verilate(chain(3), waves=path, cycles=cycles)
          expected: cycles=(first, last), both of the run and in this order
          given:    {cycles!r}
        """
    ):
        t2s.verilate(chain(3), waves=path, cycles=cycles)


def test_a_folder_that_is_not_there() -> None:
    with refused(
        """
        the file 'nowhere/a.vcd' cannot be written
          --> t2s.verilate(chain(3), waves="nowhere/a.vcd")
          expected: a name in a writable folder on a disk with free space
          given:    no such folder
        """
    ):
        t2s.verilate(chain(3), waves="nowhere/a.vcd")


def test_several_graphs(tmp_path: Path) -> None:
    assignment = t2s.sparse.parse("y(i)=A(i,j)*x(j)*x(j)", ["A:ds"])
    schedule = t2s.sparse.schedule("precompute(A(i,j)*x(j),T)")
    kernel = t2s.sparse.compile(assignment, schedule)
    inputs = {"A": np.eye(3), "x": np.ones(3)}
    with pytest.raises(t2s.errors.UnsupportedError, match="is 2 graphs, and waveforms are of one"):
        t2s.verilate(kernel, inputs, waves=tmp_path / "a.vcd")
