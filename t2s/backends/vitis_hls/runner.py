"""Compiles the emitted C++ with g++ and runs its test bench, in child processes."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from t2s.backends.kernels.design import DEEPEST, UNLIMITED
from t2s.backends.vitis_hls.top import TopDesign
from t2s.core.child import run_child, written
from t2s.core.errors import UserError
from t2s.core.ops import Array
from t2s.graph.arrays import outputs_of, pack
from t2s.graph.graph import Graph, TensorRole

_TAIL = 4000
_DEEP = 1 << 14
_BUILD_SECONDS = 600.0
_DEADLOCK, _LEFT_OVER, _STOPPED = 2, 4, 5  # exit codes of the test bench
_MOST_BYTES = 8, 64  # of an element, and of a point

FLAGS = ("-std=c++14", "-O1", "-fwrapv", "-ffp-contract=off", "-Wno-unknown-pragmas")
"""Options of g++: integers wrap around, and each operation on floats is rounded by itself."""


class SimulationError(UserError):
    """The C simulation could not be run, or the design did not finish."""


def run_files(
    graph: Graph,
    top: TopDesign,
    files: Mapping[str, str],
    arrays: Mapping[str, Array],
    scalars: Mapping[str, Array],
    *,
    time_limit: float,
    exact_depths: bool,
) -> dict[str, Array]:
    """Run the files of a graph on its arrays and scalars; see ``emulate``."""
    compiler = shutil.which("g++") or shutil.which("clang++") or shutil.which("c++")
    if compiler is None:
        raise SimulationError(
            "no C++ compiler is installed",
            expected="g++ or clang++ on the path",
            hint="on Debian: apt install g++",
        )
    with written(files) as folder:
        _compile(graph, compiler, top, folder, exact_depths=exact_depths)
        _write_inputs(graph, top, arrays, scalars, folder)
        _run(graph, top, folder, time_limit, exact_depths=exact_depths)
        memory = {
            tensor.name: np.fromfile(
                folder / f"{top.buffer_of(tensor.name).file}.bin", tensor.type.numpy
            ).reshape(-1 if tensor.open else tensor.allocated)
            for tensor in graph.tensors
            if tensor.role is TensorRole.OUTPUT
        }
        return outputs_of(graph, memory)


def _compile(
    graph: Graph, compiler: str, top: TopDesign, folder: Path, *, exact_depths: bool
) -> None:
    stem = top.stem
    unlimited = any(channel.capacity >= UNLIMITED for channel in graph.channels)
    depth = 0 if exact_depths else UNLIMITED if unlimited else _DEEP
    command = [compiler, *FLAGS, f"-DT2S_DEPTH={depth}", "-I.", "-It2s_sim"]
    command += [f"-DT2S_STACK={_stack(top)}", f"{stem}.cpp", f"{stem}_tb.cpp", "-o", "simulation"]
    done = run_child(command, folder, _BUILD_SECONDS)
    if done.code != 0:
        raise SimulationError(
            f"the C++ of {graph.name!r} does not compile; {compiler} said:\n"
            f"{done.output[-_TAIL:].strip()}",
            location=graph.location,
            hint="this is a defect of t2s; t2s.emit writes the files",
        )


def _stack(top: TopDesign) -> int:
    """Bytes of the stack of a function, with what it has on the chip."""
    element, point = _MOST_BYTES
    return (1 << 23) + sum(
        (point if capacity.points else element) * capacity.value for capacity in top.capacities
    )


def _write_inputs(
    graph: Graph,
    top: TopDesign,
    arrays: Mapping[str, Array],
    scalars: Mapping[str, Array],
    folder: Path,
) -> None:
    """The inputs as the test bench reads them: in the order of memory."""
    for tensor in graph.tensors:
        if tensor.role is TensorRole.INPUT:
            packed = np.asarray(pack(tensor, arrays[tensor.array]), tensor.type.numpy, order="C")
            packed.tofile(folder / f"{top.buffer_of(tensor.name).file}.bin")
    types = {parameter.name: parameter.type.numpy for parameter in graph.parameters}
    for scalar in top.scalars:
        np.asarray(scalars[scalar.parameter], types[scalar.parameter]).tofile(
            folder / f"{scalar.file}.bin"
        )


def _run(
    graph: Graph, top: TopDesign, folder: Path, time_limit: float, *, exact_depths: bool
) -> None:
    reported = {report.stream for report in top.reports}
    done = run_child(["./simulation", "."], folder, time_limit)
    said = done.output[-_TAIL:].strip()
    if done.code is None:
        raise SimulationError(
            f"{graph.name!r} was not done in C simulation after {time_limit:g} s",
            location=graph.location,
            hint="use a smaller size, or give more time with time_limit=",
        )
    if done.code == _DEADLOCK:
        lines = [line.removeprefix("waiting: ") for line in done.output.splitlines()]
        # the function that waits for the ends of all machines is no cause
        waiting = [line for line in lines if line.split()[-1] not in reported]
        depths = "" if exact_depths else ", although its streams are deeper than on hardware"
        raise SimulationError(
            f"{graph.name!r} deadlocks in C simulation{depths}",
            location=graph.location,
            notes=[(None, f"waiting: {text}") for text in waiting],
            hint=f"streams of any depth have {DEEPEST:,} here, unless the design gives them a "
            "capacity, as sparse.compile(y).design(capacity=...) does"
            if exact_depths and any(c.capacity >= UNLIMITED for c in graph.channels)
            else "t2s.simulate says who waits for whom, and what frees them",
        )
    if done.code == _LEFT_OVER:
        raise SimulationError(
            f"{graph.name!r} ends with tokens left in its streams; the C simulation said:\n{said}",
            location=graph.location,
        )
    if done.code == _STOPPED:
        raise SimulationError(
            said.rpartition("stopped: ")[2],
            location=graph.location,
            hint="t2s.simulate shows the tokens and the rule that is missing",
        )
    if done.code != 0:
        raise SimulationError(
            f"{graph.name!r} failed in C simulation (exit code {done.code}); it said:\n{said}",
            location=graph.location,
        )
