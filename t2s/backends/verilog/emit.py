"""The files of a design: library, modules of the nodes, top and testbench."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from t2s.backends.base import DeviceTimes, Unsupported, refusal
from t2s.backends.verilog import verilog_ast as ast
from t2s.backends.verilog.arrays import ArrayModules
from t2s.backends.verilog.chip import chip_module, problems_of, unbounded
from t2s.backends.verilog.counted_nests import nests_of
from t2s.backends.verilog.data_types import signal_names
from t2s.backends.verilog.float_operators import float_module
from t2s.backends.verilog.limits import Bounds, largest
from t2s.backends.verilog.machine_ranges import UNKNOWN, Ranges
from t2s.backends.verilog.technology import GENERIC, Technology
from t2s.backends.verilog.testbench import Testbench
from t2s.backends.verilog.top import LIBRARY, Top, top_module, top_of
from t2s.core.expr import Expr
from t2s.core.gc_pause import gc_paused
from t2s.core.ops import C_FUNCTIONS
from t2s.core.walk import walk
from t2s.graph.graph import Graph

_LIBRARY = Path(__file__).parent / "library"
_FLOATS = ("float_parts.sv", "float_add.sv", "float_multiply.sv")
_LAST = ("floats.cpp", "main.cpp")
_OF_EACH_FUNCTION = {
    "  // functions of C": (
        '  import "DPI-C" pure function {word} t2s_{name}_{suffix}(input {word} a);'
    ),
    "// functions of C": (
        "T2S_ONE({name}, {suffix}, {number}, {pattern}, std::{name}(static_cast<double>(a)))"
    ),
}
"""What follows a line of the library, for each operator that is a function of C."""

_WIDTHS = (
    {"suffix": "f32", "number": "float", "pattern": "unsigned int", "word": "int unsigned"},
    {
        "suffix": "f64",
        "number": "double",
        "pattern": "unsigned long long",
        "word": "longint unsigned",
    },
)

NAME = "verilog"


@gc_paused()
def files_of(
    graph: Graph,
    timing: DeviceTimes,
    bounds: Bounds,
    *,
    constant: bool = False,
    technology: Technology = GENERIC,
    ranges: Ranges = UNKNOWN,
) -> Mapping[str, str]:
    """The files, with FIFOs that have room for ``bounds`` and a testbench set to ``timing``.

    With ``constant`` the times of the design are constants in its modules, as on a chip of a
    technology; without, they are inputs that the testbench sets.  ``ranges`` are those of its
    machines, whose tokens and registers are as wide as these need.
    They are in the order in which a compiler has to read them.  Raises ``UnsupportedError`` if
    ``supports`` is not empty.
    """
    if constant:
        _refuse(graph, unbounded(graph, timing))
    top = top_of(graph, timing if constant else None, technology, ranges)
    files = {name: library_text(name) for name in ("operators.sv", "floats.sv", "stalls.sv")}
    if constant:
        files |= _library(graph, technology)
    else:
        files["adjustable_fifo.sv"] = library_text("adjustable_fifo.sv")
    files |= _design(top, bounds)
    files["testbench.sv"] = ast.print_modules((Testbench(top, timing, bounds).build(),))
    command = ("-Wno-fatal --cc --exe --build --top-module testbench", *files, *_LAST)
    files["verilator.f"] = "\n".join((*command, ""))
    return {**files, **{name: library_text(name) for name in _LAST}}


@gc_paused()
def chip_files(
    graph: Graph, times: DeviceTimes, technology: Technology, ranges: Ranges = UNKNOWN
) -> Mapping[str, str]:
    """The files of a chip, for synthesis: the text that ``files_of`` simulates with ``constant``.

    They are in the order in which a tool has to read them.  The last is ``chip.sv``, with the top
    module ``NAME_chip``: clock, reset, ``start`` and ``done``, and for every PE that loads or
    stores ``ready`` and ``granted``, with the address in the cycle of the grant and the data
    ``times.load_latency`` cycles later.  Raises ``UnsupportedError`` for what a chip does not have,
    and for times that the technology cannot build.
    """
    _refuse(graph, problems_of(graph, times))
    top = top_of(graph, times, technology, ranges)
    operators = {"operators.sv": library_text("operators.sv")}
    return operators | _library(graph, technology) | _design(top, largest(times))


def _library(graph: Graph, technology: Technology) -> dict[str, str]:
    """The modules of the library that a chip has."""
    modules = ("fifo.sv", "delay.sv", "reduction.sv")
    files = {name: library_text(name) for name in (*technology.primitives, *modules)}
    files |= {name: library_text(place) for name, place in technology.library.items()}
    computes = any(
        isinstance(term, Expr) and float_module(term) is not None
        for node in graph.nodes
        for term in walk(node)
    )
    files |= {name: library_text(name) for name in _FLOATS if computes}
    if graph.machines and technology.multiplier_bits is not None:
        files["multiply_wide.sv"] = library_text("multiply_wide.sv")
    return files


def _design(top: Top, bounds: Bounds) -> dict[str, str]:
    """The modules of the nodes and those around them."""
    nests = nests_of(top.graph)
    if isinstance(nests, list):
        raise refusal(NAME, top.graph, nests)
    taken = {names.module for _, names in top.nodes}
    modules = signal_names((*LIBRARY, top.module, top.chip, *taken))
    files: dict[str, str] = {}
    for interface, names in top.nodes:
        nest = nests.get(interface.node.name)
        array = ArrayModules(top, interface, names.module, nest, modules)
        files[f"{names.module}.sv"] = ast.print_modules(array.build())
    files["top.sv"] = ast.print_modules((top_module(top, bounds),))
    if top.constants is not None:
        files["chip.sv"] = ast.print_modules((chip_module(top),))
    return files


def _refuse(graph: Graph, problems: list[Unsupported]) -> None:
    if problems:
        raise refusal(NAME, graph, problems)


def library_text(name: str) -> str:
    """A file of the library, with a line in it for each operator that is a function of C."""
    lines = (_LIBRARY / name).read_text(encoding="utf-8").splitlines()
    return "".join(f"{line}\n" for text in lines for line in (text, *_functions_of_c(text)))


def _functions_of_c(place: str) -> list[str]:
    pattern = _OF_EACH_FUNCTION.get(place)
    if pattern is None:
        return []
    return [pattern.format(name=name, **of) for name in C_FUNCTIONS.values() for of in _WIDTHS]
