"""oneDNN: its row-major matrix product, which returns a status."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from t2s.capability.declare import make_function
from t2s.capability.description import (
    CallNumber,
    CallTerm,
    DataOf,
    DimensionOf,
    ExternalCall,
    ExternalFunction,
    LayoutOf,
    LeadOf,
    LibraryFile,
    LibraryOf,
    ReturnedStatus,
)
from t2s.core.types import INT32, Float, Int

ONEDNN = LibraryOf(
    name="oneDNN",
    files=(
        LibraryFile(wheel="onednn-cpu-gomp", name="libdnnl.so.3"),
        LibraryFile(name="libdnnl.so.3"),
        LibraryFile(name="libdnnl.so.2"),
    ),
    probe=ExternalCall(symbol="dnnl_version", arguments=(), returns=Int(64)),
    how_to_get="python -m pip install onednn-cpu-gomp, or apt install libdnnl2",
    threaded=True,
)


def _matrix(tensor: str) -> tuple[CallTerm, ...]:
    return DataOf(tensor=tensor), LeadOf(tensor=tensor)


_SIZES = tuple(DimensionOf(variable=one) for one in "ikj")
_LAYOUTS = tuple(LayoutOf(tensor=one, rows="N", columns="T") for one in "xy")
_ONE, _NOTHING = (CallNumber(value=value, type=Float(32)) for value in (1.0, 0.0))

FUNCTIONS: Mapping[str, ExternalFunction] = MappingProxyType(
    {
        "sgemm": make_function(
            "sgemm",
            "z(i,k) = x(i,j) * y(j,k)",
            call=ExternalCall(
                symbol="dnnl_sgemm",
                arguments=(
                    *(*_LAYOUTS, *_SIZES, _ONE, *_matrix("x"), *_matrix("y")),
                    *(_NOTHING, *_matrix("z")),
                ),
                returns=INT32,
            ),
            library=ONEDNN,
            status=ReturnedStatus(meanings=((1, "no memory"), (2, "invalid arguments"))),
            index=Int(64),
            trusted=True,
            types="float32",
            strides={"x": "one is 1", "y": "one is 1", "z": "rows"},
        )
    }
)
"""All functions by name."""
