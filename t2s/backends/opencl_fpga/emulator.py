"""Runs the emitted files on Intel's FPGA emulator, in a child process with a time limit.

The child is the emitted host program itself, so that users get the program that is tested.  The
emulator's libraries are found through the metadata of the packages that install them, and the
loader's path is set for the child only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

import numpy as np

from t2s.backends.kernels.scope import file_stem
from t2s.backends.opencl_fpga.dialect import OPENCL
from t2s.core.child import run_child, written
from t2s.core.errors import UserError
from t2s.core.ops import Array
from t2s.graph.graph import Graph, TensorRole

_LIBRARIES = (
    ("intel-opencl-rt", "libintelocl_emu.so"),
    ("intel-cmplr-lib-rt", "libimf.so"),
)
_TAIL = 4000


class EmulationError(UserError):
    """The emulator could not be run, or the design did not finish."""


def emulator_available() -> bool:
    """Whether the emulator and pyopencl are installed (``pip install 't2s-spatial[emulator]'``)."""
    return _find_libraries() is not None


def run_files(
    graph: Graph,
    files: Mapping[str, str],
    inputs: Mapping[str, Array],
    *,
    time_limit: float,
    exact_depths: bool,
) -> dict[str, Array]:
    """Run the files of a graph on its arrays and scalars; see ``emulate``."""
    libraries = _find_libraries()
    if libraries is None:
        raise EmulationError(
            "Intel's FPGA emulator is not installed",
            hint="pip install 't2s-spatial[emulator]' (x86-64 Linux only)",
        )
    with written(files) as folder:
        (folder / "emulator.icd").write_bytes(os.fsencode(f"{libraries[0]}\n"))
        command = [sys.executable, f"{file_stem(OPENCL, graph)}_host.py"]
        command += ["--exact-depths"] if exact_depths else []
        for number, (name, value) in enumerate(inputs.items()):
            np.save(folder / f"input_{number}.npy", value)
            command.append(f"{name}=input_{number}.npy")
        outputs = [tensor.array for tensor in graph.tensors if tensor.role is TensorRole.OUTPUT]
        command += [f"{name}=output_{number}.npy" for number, name in enumerate(outputs)]
        _run(graph, command, folder, _environment(folder, libraries), time_limit)
        return {
            name: np.load(folder / f"output_{number}.npy") for number, name in enumerate(outputs)
        }


def _run(
    graph: Graph, command: list[str], folder: Path, environment: dict[str, str], time_limit: float
) -> None:
    done = run_child(command, folder, time_limit, environment)
    if done.code == 0:
        return
    tail = done.output[-_TAIL:].strip()
    shown = f"the emulator said:\n{tail}" if tail else "the emulator said nothing"
    if done.code is None:
        raise EmulationError(
            f"{graph.name!r} was not done on Intel's FPGA emulator after {time_limit:g} s; {shown}",
            location=graph.location,
            hint="give more time with time_limit=, or look for a deadlock with the simulator",
        )
    raise EmulationError(
        f"{graph.name!r} failed on Intel's FPGA emulator (exit code {done.code}); {shown}",
        location=graph.location,
    )


def _environment(folder: Path, libraries: list[Path]) -> dict[str, str]:
    """This process's environment, with the paths of the emulator."""
    paths = [str(library.parent) for library in libraries]
    inherited = os.environ.get("LD_LIBRARY_PATH")
    return {
        **os.environ,
        "LD_LIBRARY_PATH": ":".join([*dict.fromkeys(paths), *([inherited] if inherited else [])]),
        "OCL_ICD_VENDORS": str(folder),
        "PYTHONWARNINGS": "ignore",
        "PYOPENCL_NO_CACHE": "1",
    }


def _find_libraries() -> list[Path] | None:
    """The libraries of the emulator, or ``None`` if a package is not installed."""
    libraries: list[Path] = []
    try:
        metadata.distribution("pyopencl")
        for package, library in _LIBRARIES:
            files = metadata.files(package) or []
            paths = [Path(str(file.locate())).resolve() for file in files if file.name == library]
            if not paths or not paths[0].exists():
                return None
            libraries.append(paths[0])
    except metadata.PackageNotFoundError:
        return None
    return libraries
