"""t2s: write the mathematics once, say where it lives in space and time, get exact cycles.

An embedded language, compiler and cycle simulator for spatial hardware.  See the README for a
20-line program, ``docs/architecture.md`` for how the parts fit together.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from t2s.core.errors import show_errors_without_frames

# for editors and type checkers; at run time __getattr__ imports a name when it is first used
if TYPE_CHECKING:
    from t2s import cgra as cgra
    from t2s import chips as chips
    from t2s import devices as devices
    from t2s import errors as errors
    from t2s import external as external
    from t2s import memories as memories
    from t2s import representation as representation
    from t2s import sparse as sparse
    from t2s import triggered as triggered
    from t2s.core.types import BFloat, Bool, Float, Int, Type, UInt
    from t2s.driver.formula import cycles_formula
    from t2s.driver.func import Func, funcs
    from t2s.driver.hardware import emit, emulate, verilate
    from t2s.driver.lower import interpret, lower, print_loop_nest, resources
    from t2s.driver.many import Run, compare, fit_depths, simulate_many
    from t2s.driver.program import program
    from t2s.driver.search import search
    from t2s.driver.simulate import cycles, simulate
    from t2s.driver.synthesize import synthesize
    from t2s.func.func import ImageParam, Param, RDom, Var, variables
    from t2s.func.functions import (
        absolute,
        cast,
        ceil,
        erf,
        exp,
        floor,
        fma,
        log,
        maximum,
        minimum,
        rsqrt,
        select,
        sqrt,
        tanh,
    )
    from t2s.graph.graph import Graph
    from t2s.graph.network import Network
    from t2s.simulator.random_stalls import RandomStalls
    from t2s.spatial.memory_chains import dram, host, registers, sram
    from t2s.spatial.schedule import Place

    abs, max, min = absolute, maximum, minimum

__version__ = "0.1.0"

# A star import leaves out modules and names that would shadow Python's own: use t2s.abs, t2s.max,
# t2s.min, t2s.sparse and so on.
__all__ = [
    "BFloat",
    "Bool",
    "Float",
    "Func",
    "Graph",
    "ImageParam",
    "Int",
    "Network",
    "Param",
    "Place",
    "RDom",
    "RandomStalls",
    "Run",
    "Type",
    "UInt",
    "Var",
    "cast",
    "ceil",
    "compare",
    "cycles",
    "cycles_formula",
    "dram",
    "emit",
    "emulate",
    "erf",
    "exp",
    "fit_depths",
    "floor",
    "fma",
    "funcs",
    "host",
    "interpret",
    "log",
    "lower",
    "print_loop_nest",
    "program",
    "registers",
    "resources",
    "rsqrt",
    "search",
    "select",
    "simulate",
    "simulate_many",
    "sqrt",
    "sram",
    "synthesize",
    "tanh",
    "variables",
    "verilate",
]

_HOMES = {
    "core.types": "BFloat Bool Float Int Type UInt",
    "driver.formula": "cycles_formula",
    "driver.func": "Func funcs",
    "driver.hardware": "emit emulate verilate",
    "driver.lower": "interpret lower print_loop_nest resources",
    "driver.many": "Run compare fit_depths simulate_many",
    "driver.search": "search",
    "driver.program": "program",
    "driver.simulate": "cycles simulate",
    "driver.synthesize": "synthesize",
    "func.func": "ImageParam Param RDom Var variables",
    "func.functions": (
        "absolute cast ceil erf exp floor fma log maximum minimum rsqrt select sqrt tanh"
    ),
    "graph.graph": "Graph",
    "graph.network": "Network",
    "simulator.random_stalls": "RandomStalls",
    "spatial.memory_chains": "dram host registers sram",
    "spatial.schedule": "Place",
}
"""The modules in which public names are, which are imported when a name is first used."""

_PLACES = {name: (home, name) for home, names in _HOMES.items() for name in names.split()}
_PLACES |= {
    name: ("func.functions", function)
    for name, function in (("abs", "absolute"), ("max", "maximum"), ("min", "minimum"))
}
_MODULES = (
    *("cgra", "chips", "devices", "errors", "external", "memories", "representation", "sparse"),
    "triggered",
)
"""The public modules beside this one; all others are inner rooms, which change without notice."""

_MOVED = {
    "cgra": "CgraFabric Placement place read_placement",
    "errors": "CycleLimitError InternalError RunInterrupted T2SError T2SWarning UnsupportedError "
    "UserError",
    "representation": "ASAP Chain Columns Diagonals Index Length LinearArray Longest LongestFirst "
    "MaybeDifferentTarget Policy Representation RoundRobin Rows SameTarget Storage Tree Whole Zero "
    "gallery product_report read_matrix structure write_matrix",
    "triggered": "assemble",
}
"""Names of release 0.1 that were here, by the public module that has them now."""

_RENAMED = {name: f"t2s.{home}.{name}" for home, names in _MOVED.items() for name in names.split()}
_RENAMED |= {
    "Parameter": "t2s.representation.MatrixParam",
    "dense": "t2s.representation.dense_matrix",
}

show_errors_without_frames()


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name in _RENAMED:
        return import_module("t2s.core.renaming").renamed(f"t2s.{name}", _RENAMED[name])
    if name in _MODULES:
        value: Any = import_module(f"t2s.{name}")
    elif name in _PLACES:
        home, attribute = _PLACES[name]
        value = getattr(import_module(f"t2s.{home}"), attribute)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_PLACES, *_MODULES, "__version__", "__doc__"})
