"""External functions: parts of an assignment that a library, or somebody else's code, computes.

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
    AddressOf,
    ArrayOfLevelOf,
    CallLetter,
    CallNumber,
    DataOf,
    DeclaredObject,
    DimensionOf,
    ExternalCall,
    ExternalFunction,
    LayoutOf,
    LeadOf,
    LibraryOf,
    ReturnedStatus,
    StepOf,
)
from t2s.capability.ir import Capability, Strides
from t2s.capability.mapping import Mapping
from t2s.core.types import Type
from t2s.driver.external_plan import ExternalPlan, PlanResult, StepResult
from t2s.libraries.checking import CheckReport, check
from t2s.libraries.probing import Availability
from t2s.libraries.shelf import LIBRARIES, Library, available

blas = LIBRARIES["blas"]
numpy = LIBRARIES["numpy"]
scipy = LIBRARIES["scipy"]

__all__ = [
    "AddressOf",
    "ArrayOfLevelOf",
    "Availability",
    "CallLetter",
    "CallNumber",
    "Capability",
    "CheckReport",
    "DataOf",
    "DeclaredObject",
    "DimensionOf",
    "ExternalCall",
    "ExternalFunction",
    "ExternalPlan",
    "LayoutOf",
    "LeadOf",
    "Library",
    "LibraryOf",
    "Mapping",
    "PlanResult",
    "ReturnedStatus",
    "StepOf",
    "StepResult",
    "Strides",
    "available",
    "blas",
    "check",
    "emit",
    "function",
    "make_capability",
    "make_function",
    "numpy",
    "scipy",
]


def emit(
    plan: ExternalPlan, directory: str, inputs: MappingByName[str, Any], *, type: Type | None = None
) -> tuple[Path, ...]:
    """Write a plan as C into a folder: ``plan.c``, a ``Makefile``, and the inputs as data.

    ``make run`` compiles it with the paths and the flags of the libraries' descriptions, runs it on
    these inputs, and compares the result with what the statements of the plan give.  Raises
    ``UserError`` for steps that C cannot take: functions in Python, libraries without a file, and
    what is simulated.
    """
    from t2s.driver.external_c import emit_plan

    return emit_plan(plan, directory, inputs, type=type)
