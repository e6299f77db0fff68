"""t2s: write the mathematics once, say where it lives in space and time, get exact cycles.

An embedded language, compiler and cycle simulator for spatial hardware.  See the README for a
20-line program, ``docs/architecture.md`` for how the parts fit together.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from t2s.core.errors import show_errors_without_frames

if TYPE_CHECKING:  # for editors and type checkers; at run time __getattr__ imports what is used
    from t2s import external as external
    from t2s import sparse as sparse
    from t2s import triggered as triggered
    from t2s.backends.cgra_tia.fabric import CgraFabric as CgraFabric
    from t2s.core.errors import (
        InternalError,
        T2SError,
        T2SWarning,
        UnsupportedError,
        UserError,
    )
    from t2s.core.types import BFloat, Bool, Float, Int, Type, UInt
    from t2s.driver.func import Func, funcs
    from t2s.driver.hardware import emit, emulate, verilate
    from t2s.driver.lower import interpret, lower, print_loop_nest, resources, structure
    from t2s.driver.many import Run, compare, fit_depths, simulate_many
    from t2s.driver.placement import Placement, place, read_placement
    from t2s.driver.simulate import cycles, product_report, simulate
    from t2s.func.func import ImageParam, Param, RDom, Var, variables
    from t2s.func.functions import (
        absolute,
        cast,
        ceil,
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
    from t2s.reduction.carry import MaybeDifferentTarget, SameTarget
    from t2s.reduction.circuits import LinearArray, Tree
    from t2s.simulator.random_stalls import RandomStalls
    from t2s.simulator.report.errors import CycleLimitError, RunInterrupted
    from t2s.sparse_repr.representation import gallery
    from t2s.sparse_repr.representation.chain import Chain, Representation, dense
    from t2s.sparse_repr.representation.chain_layout import (
        ASAP,
        Columns,
        Diagonals,
        Index,
        Length,
        Longest,
        LongestFirst,
        Policy,
        RoundRobin,
        Rows,
        Whole,
        Zero,
    )
    from t2s.sparse_repr.representation.parameter import Parameter, read_matrix, write_matrix
    from t2s.sparse_repr.representation.storage import Storage
    from t2s.spatial.memory_chains import dram, host, registers, sram
    from t2s.spatial.schedule import Place
    from t2s.triggered import assemble as assemble

    abs, max, min = absolute, maximum, minimum

__version__ = "0.1.0"

# Names of Python itself, and the module of index notation, are not taken over by a star import:
# they are t2s.abs, t2s.max, t2s.min and t2s.sparse.
__all__ = [
    "ASAP",
    "BFloat",
    "Bool",
    "Chain",
    "Columns",
    "CycleLimitError",
    "Diagonals",
    "Float",
    "Func",
    "Graph",
    "ImageParam",
    "Index",
    "Int",
    "InternalError",
    "Length",
    "LinearArray",
    "Longest",
    "LongestFirst",
    "MaybeDifferentTarget",
    "Network",
    "Param",
    "Parameter",
    "Place",
    "Placement",
    "Policy",
    "RDom",
    "RandomStalls",
    "Representation",
    "RoundRobin",
    "Rows",
    "Run",
    "RunInterrupted",
    "SameTarget",
    "Storage",
    "T2SError",
    "T2SWarning",
    "Tree",
    "Type",
    "UInt",
    "UnsupportedError",
    "UserError",
    "Var",
    "Whole",
    "Zero",
    "cast",
    "ceil",
    "compare",
    "cycles",
    "dense",
    "dram",
    "emit",
    "emulate",
    "exp",
    "fit_depths",
    "floor",
    "fma",
    "funcs",
    "gallery",
    "host",
    "interpret",
    "log",
    "lower",
    "place",
    "print_loop_nest",
    "product_report",
    "read_matrix",
    "read_placement",
    "registers",
    "resources",
    "rsqrt",
    "select",
    "simulate",
    "simulate_many",
    "sqrt",
    "sram",
    "structure",
    "tanh",
    "variables",
    "verilate",
    "write_matrix",
]

_HOMES = {
    "backends.cgra_tia.fabric": "CgraFabric",
    "core.errors": "InternalError T2SError T2SWarning UnsupportedError UserError",
    "core.types": "BFloat Bool Float Int Type UInt",
    "driver.func": "Func funcs",
    "driver.hardware": "emit emulate verilate",
    "driver.lower": "interpret lower print_loop_nest resources structure",
    "driver.many": "Run compare fit_depths simulate_many",
    "driver.placement": "Placement place read_placement",
    "driver.simulate": "cycles product_report simulate",
    "func.func": "ImageParam Param RDom Var variables",
    "func.functions": "absolute cast ceil exp floor fma log maximum minimum rsqrt select sqrt tanh",
    "graph.graph": "Graph",
    "graph.network": "Network",
    "reduction.carry": "MaybeDifferentTarget SameTarget",
    "reduction.circuits": "LinearArray Tree",
    "simulator.random_stalls": "RandomStalls",
    "simulator.report.errors": "CycleLimitError RunInterrupted",
    "sparse_repr.representation.chain": "Chain Representation dense",
    "sparse_repr.representation.chain_layout": "ASAP Columns Diagonals Index Length Longest "
    "LongestFirst Policy RoundRobin Rows Whole Zero",
    "sparse_repr.representation.parameter": "Parameter read_matrix write_matrix",
    "sparse_repr.representation.storage": "Storage",
    "spatial.memory_chains": "dram host registers sram",
    "spatial.schedule": "Place",
    "triggered": "assemble",
}
"""The modules in which public names are, which are imported when a name is first used."""

_PLACES = {name: (home, name) for home, names in _HOMES.items() for name in names.split()}
_PLACES |= {
    name: ("func.functions", own)
    for name, own in (("abs", "absolute"), ("max", "maximum"), ("min", "minimum"))
}
_MODULES = {name: name for name in ("external", "sparse", "triggered")}
_MODULES["gallery"] = "sparse_repr.representation.gallery"

show_errors_without_frames()


def __getattr__(name: str) -> Any:
    """A public name, at its first use."""
    if name in _MODULES:
        found = import_module(f"t2s.{_MODULES[name]}")
    elif name in _PLACES:
        home, own = _PLACES[name]
        found = getattr(import_module(f"t2s.{home}"), own)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES, *_MODULES})
