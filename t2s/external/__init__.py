"""External functions: parts of an assignment that a library, or your own code, computes.

>>> @external.function("z(i,k) = x(i,j) * y(j,k)", types="float32 float64")     # doctest: +SKIP
... def product(x, y, z):
...     np.matmul(x, y, out=z)
>>> plan = sparse.compile(A, Schedule().map(C[i, k] * D[k, j], product))         # doctest: +SKIP
>>> plan.run({"B": b, "C": c, "D": d}).output                                    # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Mapping as MappingByName
from pathlib import Path
from typing import Any

from t2s.capability.declare import function, make_capability, make_function
from t2s.capability.description import (
    PCIE3_X8,
    ExternalFunction,
    HostLink,
    LibraryFile,
)
from t2s.capability.ir import Capability, Strides
from t2s.capability.mapping import Mapping
from t2s.core.renaming import renamed
from t2s.core.types import Type
from t2s.driver.external_hardware import from_design, from_kernel
from t2s.driver.external_machine import calibrate
from t2s.driver.external_plan import ExternalPlan
from t2s.driver.external_search import FoundPlans, TuneReport, schedule, search
from t2s.driver.plan_result import PlanResult, PlanTimes, StepResult
from t2s.external import call
from t2s.libraries.calling import Availability
from t2s.libraries.claim_tests import CheckReport, check
from t2s.libraries.registry import LIBRARIES, Library, available
from t2s.libraries.vector_code import make_vector_function
from t2s.plan.cost import GENERIC, HostMachine, load_machine

atlas = LIBRARIES["atlas"]
blas = LIBRARIES["blas"]
blis = LIBRARIES["blis"]
cusparse = LIBRARIES["cusparse"]
graphblas = LIBRARIES["graphblas"]
gsl = LIBRARIES["gsl"]
mkl = LIBRARIES["mkl"]
numpy = LIBRARIES["numpy"]
onednn = LIBRARIES["onednn"]
openblas = LIBRARIES["openblas"]
scipy = LIBRARIES["scipy"]
tblis = LIBRARIES["tblis"]
vector = LIBRARIES["vector"]

__all__ = [
    "GENERIC",
    "PCIE3_X8",
    "Availability",
    "Capability",
    "CheckReport",
    "ExternalFunction",
    "ExternalPlan",
    "FoundPlans",
    "HostLink",
    "HostMachine",
    "Library",
    "LibraryFile",
    "Mapping",
    "PlanResult",
    "PlanTimes",
    "StepResult",
    "Strides",
    "TuneReport",
    "atlas",
    "available",
    "blas",
    "blis",
    "calibrate",
    "call",
    "check",
    "cusparse",
    "emit",
    "from_design",
    "from_kernel",
    "function",
    "graphblas",
    "gsl",
    "load_machine",
    "make_capability",
    "make_function",
    "make_vector_function",
    "mkl",
    "numpy",
    "onednn",
    "openblas",
    "schedule",
    "scipy",
    "search",
    "tblis",
    "vector",
]


def emit(
    plan: ExternalPlan, directory: str, inputs: MappingByName[str, Any], *, type: Type | None = None
) -> tuple[Path, ...]:
    """Write a plan as C into a folder: ``plan.c``, a ``Makefile``, and the inputs as data.

    ``make run`` compiles it with the paths and the flags of the libraries' descriptions, runs it on
    these inputs, and compares the result with that of the plan's statements.  Raises ``UserError``
    for steps that C cannot run: functions in Python, libraries without a file, and simulated
    hardware.
    """
    from t2s.driver.external_c import emit_plan

    return emit_plan(plan, directory, inputs, type=type)


def __getattr__(name: str) -> Any:
    """Pieces of calls were here in release 0.1."""
    if name in call.__all__:
        return renamed(f"t2s.external.{name}", f"t2s.external.call.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
