"""The terms of which the description of a call in C is made: one for each parameter.

>>> from t2s.external import call                                               # doctest: +SKIP
>>> call.ExternalCall("cblas_sdot", (call.ExtentsOf("i"), call.DataOf("x"), ...))  # doctest: +SKIP
"""

from __future__ import annotations

from t2s.capability.description import (
    AddressOf,
    ArrayOfLevelOf,
    BytesOf,
    CallLetter,
    CallNumber,
    CountOf,
    DataOf,
    DeclaredObject,
    DimensionOf,
    ExtentsOf,
    ExternalCall,
    ForSemiring,
    ForType,
    LabelsOf,
    LayoutOf,
    LeadOf,
    LibraryOf,
    OrderOf,
    ReturnedStatus,
    StepOf,
    StepsOf,
    StoredResult,
    StructOf,
    ValueIn,
    ValueOfSymbol,
)

__all__ = [
    "AddressOf",
    "ArrayOfLevelOf",
    "BytesOf",
    "CallLetter",
    "CallNumber",
    "CountOf",
    "DataOf",
    "DeclaredObject",
    "DimensionOf",
    "ExtentsOf",
    "ExternalCall",
    "ForSemiring",
    "ForType",
    "LabelsOf",
    "LayoutOf",
    "LeadOf",
    "LibraryOf",
    "OrderOf",
    "ReturnedStatus",
    "StepOf",
    "StepsOf",
    "StoredResult",
    "StructOf",
    "ValueIn",
    "ValueOfSymbol",
]
