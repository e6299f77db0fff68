"""The netlist of a design after synthesis, behind the testbench of the design before it.

The cells are the models that come with Yosys, read from its package; multipliers are models of the
library, since Yosys has none.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

from t2s.backends.base import DeviceTimes
from t2s.backends.text.expressions import Name, TargetExpression
from t2s.backends.verilog import verilog_ast as ast
from t2s.backends.verilog.chip import chip_module
from t2s.backends.verilog.emit import chip_files, files_of, library_text
from t2s.backends.verilog.flow.parts import Part
from t2s.backends.verilog.flow.toolchain import check_tools, run_yosys
from t2s.backends.verilog.limits import largest
from t2s.backends.verilog.machine_ranges import UNKNOWN, Ranges
from t2s.backends.verilog.technology import find_technology
from t2s.backends.verilog.top import Top, top_of
from t2s.backends.verilog.verilator import HardwareModel, build_files
from t2s.core.files import write_texts
from t2s.graph.graph import Graph

NETLIST = "netlist"


def netlist_model(
    graph: Graph,
    times: DeviceTimes,
    part: Part,
    folder: Path,
    time_limit: float,
    ranges: Ranges = UNKNOWN,
) -> HardwareModel:
    """Synthesize a design, without memory, and build a simulation of the netlist in ``folder``.

    Raises ``ChipError`` and ``VerilationError`` if a tool is missing or fails.
    """
    check_tools(["yosys"])
    technology = find_technology(part.technology)
    top = top_of(graph, times, technology, ranges)
    sources = chip_files(graph, times, technology, ranges)
    write_texts(folder, sources)
    commands = [
        f"read_slang --top {top.chip} {' '.join(sources)}",
        *part.family.synthesis_of(top.chip),
        f"rename {top.chip} {NETLIST}",
        f"write_verilog -noattr {NETLIST}.v",
    ]
    run_yosys(commands, folder, time_limit)
    bench = files_of(
        graph, times, largest(times), constant=True, technology=technology, ranges=ranges
    )
    models = {name: library_text(name) for name in (*technology.primitives, *technology.models)}
    files = {
        "floats.sv": bench["floats.sv"],
        "cells.v": _cells(part, "\n".join(models.values())),
        **models,
        f"{NETLIST}.v": (folder / f"{NETLIST}.v").read_text(encoding="utf-8"),
        "chip.sv": ast.print_modules((_around(top),)),
        **{name: bench[name] for name in ("stalls.sv", "testbench.sv", "floats.cpp", "main.cpp")},
    }
    return build_files(graph, largest(times), folder, files, constants=times, technology=technology)


def _around(top: Top) -> ast.HardwareModule:
    """The module of the chip, whose arrays of ports are vectors of the netlist."""
    ports = chip_module(top).ports
    return ast.HardwareModule(
        name=top.chip,
        about=(f"The netlist of {top.graph.name}, with the ports of the chip.",),
        ports=ports,
        items=(
            ast.Instance(
                module=NETLIST,
                name="cells",
                connections=tuple((each.variable.name, _vector(each.variable)) for each in ports),
            ),
        ),
    )


def _vector(signal: ast.Signal) -> TargetExpression:
    """The first element is in the highest bits."""
    if signal.count is None:
        return Name(name=signal.name)
    elements = [ast.element(signal.name, at) for at in range(signal.count)]
    return ast.Concatenation(parts=tuple(elements))


def _cells(part: Part, models: str) -> str:
    """The models of cells that come with Yosys, but for those that the library has."""
    share = _share()
    text = _with_includes(share / part.family.models, share)
    text = re.sub(r"(?s)\bspecify\b.*?\bendspecify\b", "", text)  # which Verilator does not read
    for name in re.findall(r"(?m)^module (\w+)", models):
        text = re.sub(rf"(?s)\(\*[^\n]*\*\)\s*module {name}\b.*?\bendmodule\b", "", text)
        text = re.sub(rf"(?s)\bmodule {name}\b.*?\bendmodule\b", "", text)
    return text


def _with_includes(path: Path, root: Path, done: set[Path] | None = None) -> str:
    """A file with those that it includes in it, each once."""
    done = set() if done is None else done

    def included(match: re.Match[str]) -> str:
        places = (path.parent / match[1], root / match[1])
        file = next(place for place in places if place.is_file())
        if file in done:
            return ""
        done.add(file)
        return _with_includes(file, root, done)

    return re.sub(r'`include "\+?/?([^"]+)"', included, path.read_text(encoding="utf-8"))


def _share() -> Path:
    spec = find_spec("pyosys")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "share"
