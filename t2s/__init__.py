"""t2s: write the mathematics once, say where it lives in space and time, get exact cycles.

An embedded language, compiler and cycle simulator for spatial hardware.  See the README for a
20-line program, ``docs/architecture.md`` for how the parts fit together.
"""

from t2s import sparse
from t2s.core.errors import InternalError, T2SError, T2SWarning, UnsupportedError, UserError
from t2s.core.types import BFloat, Bool, Float, Int, Type, UInt
from t2s.driver import (
    Func,
    cycles,
    emit,
    emulate,
    funcs,
    interpret,
    lower,
    print_loop_nest,
    resources,
    simulate,
)
from t2s.func.functions import absolute as abs
from t2s.func.functions import cast, exp, rsqrt, select, sqrt
from t2s.func.functions import maximum as max
from t2s.func.functions import minimum as min
from t2s.func.symbols import ImageParam, Param, RDom, Var, variables
from t2s.graph.graph import Graph
from t2s.spatial.directives import Place
from t2s.spatial.stages import dram, host, registers, sram

__version__ = "0.1.0"

__all__ = [
    "BFloat",
    "Bool",
    "Float",
    "Func",
    "Graph",
    "ImageParam",
    "Int",
    "InternalError",
    "Param",
    "Place",
    "RDom",
    "T2SError",
    "T2SWarning",
    "Type",
    "UInt",
    "UnsupportedError",
    "UserError",
    "Var",
    "abs",
    "cast",
    "cycles",
    "dram",
    "emit",
    "emulate",
    "exp",
    "funcs",
    "host",
    "interpret",
    "lower",
    "max",
    "min",
    "print_loop_nest",
    "registers",
    "resources",
    "rsqrt",
    "select",
    "simulate",
    "sparse",
    "sqrt",
    "sram",
    "variables",
]
