"""Programs around single modules in Verilator, with a main function of the test's own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from t2s.backends.verilog.verilator import find_tools

_DEFINES = ("VERILATOR=1", "VM_COVERAGE=0", "VM_SC=0", "VM_TIMING=0", "VM_TRACE_SAIF=0")
_NO_WAVES = ("VM_TRACE=0", "VM_TRACE_FST=0", "VM_TRACE_VCD=0")
_RUNTIME = ("verilated", "verilated_threads")


def build_around(
    top: str,
    sources: Sequence[str],
    main: str,
    folder: Path,
    runtime: Path,
    *,
    parameters: Sequence[str] = (),
    optimize: bool = False,
) -> Path:
    """The program of a ``main`` that includes ``Vmodule.h``, the class of a module.

    ``runtime`` keeps what is the same in all programs.
    """
    tools = find_tools()
    assert not isinstance(tools, str)
    environment = {**os.environ, "VERILATOR_ROOT": str(tools.root)} if tools.told else None
    command = [str(tools.verilator), "-Wno-fatal", "--cc", "--prefix", "Vmodule", "--Mdir", "made"]
    command += ["--top-module", top, *parameters, *sources]
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    include, made = tools.root / "include", folder / "made"
    flags = [f"-D{name}" for name in (*_DEFINES, *_NO_WAVES)]
    flags += [f"-I{include}", f"-I{include / 'vltstd'}", "-I.", "-std=c++17", "-w"]
    objects = [runtime / f"{name}.o" for name in _RUNTIME]
    for name, path in zip(_RUNTIME, objects, strict=True):
        if not path.exists():
            source = str(include / f"{name}.cpp")
            compiling = [str(tools.compiler), *flags, "-O0", "-c", source, "-o", str(path)]
            subprocess.run(compiling, check=True)
    parts = [f'#include "{path.name}"\n' for path in sorted(made.glob("V*.cpp"))]
    (made / "whole.cpp").write_text("".join(parts) + main)
    build = [str(tools.compiler), *flags, "-O2" if optimize else "-O0", "whole.cpp"]
    build += [*map(str, objects), "-pthread", "-o", "../program"]
    subprocess.run(build, cwd=made, check=True)
    return folder / "program"
