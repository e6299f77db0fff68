"""t2s: write the mathematics once, say where it lives in space and time, get exact cycles.

An embedded language, compiler and cycle simulator for spatial hardware.  See the README for a
20-line program, ``docs/architecture.md`` for how the parts fit together.
"""

from importlib import import_module
from typing import Any

from t2s.core.errors import (
    InternalError,
    T2SError,
    T2SWarning,
    UnsupportedError,
    UserError,
    show_errors_without_frames,
)
from t2s.core.types import BFloat, Bool, Float, Int, Type, UInt
from t2s.driver.compare import compare
from t2s.driver.func import Func, funcs
from t2s.driver.hardware import emit, emulate, verilate
from t2s.driver.lower import interpret, lower, print_loop_nest, resources, structure
from t2s.driver.many import Run, fit_depths, simulate_many
from t2s.driver.placement import Placement, place, read_placement
from t2s.driver.simulate import cycles, product_report, simulate
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
from t2s.func.symbols import ImageParam, Param, RDom, Var, variables
from t2s.graph.builder import Network
from t2s.graph.graph import Graph
from t2s.reduction.carry import MaybeDifferentTarget, SameTarget
from t2s.reduction.circuits import LinearArray, Tree
from t2s.simulator.random_stalls import RandomStalls
from t2s.simulator.report.cut_short import CycleLimitError, RunInterrupted
from t2s.sparse_repr.representation import gallery
from t2s.sparse_repr.representation.chain import Chain, Representation, dense
from t2s.sparse_repr.representation.chain_words import (
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
from t2s.sparse_repr.representation.matrix import read_matrix, write_matrix
from t2s.sparse_repr.representation.parameter import Parameter
from t2s.sparse_repr.representation.storage import Storage
from t2s.spatial.schedule import Place
from t2s.spatial.stages import dram, host, registers, sram

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


show_errors_without_frames()


def __getattr__(name: str) -> Any:
    """What dense designs do not pay for, imported at its first use.

    ``t2s.sparse``; ``t2s.external``; ``t2s.triggered``, and its ``t2s.assemble``;
    ``t2s.CgraFabric``.
    """
    if name in ("sparse", "external", "triggered"):
        return import_module(f"t2s.{name}")
    if name == "assemble":
        return import_module("t2s.triggered").assemble
    if name == "CgraFabric":
        return import_module("t2s.backends.cgra_tia.fabric").CgraFabric
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
