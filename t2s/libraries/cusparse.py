"""cuSPARSE: declared, and probed by a handle, since the library loads where there is no GPU.

Nothing here has run on one: the function is not trusted, so its first use tries ten cases in a
child process against the oracle.  Operands are copied to the device and the result back, each call.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from t2s.capability.declare import make_function
from t2s.capability.description import (
    AddressOf,
    ArrayOfLevelOf,
    BytesOf,
    CallNumber,
    CallTerm,
    CountOf,
    DataOf,
    DeclaredObject,
    DimensionOf,
    ExternalCall,
    ExternalFunction,
    LibraryFile,
    LibraryOf,
    ReturnedStatus,
    ValueIn,
    enumerator,
)
from t2s.core.types import INT32, Float, Int, Type


def _object(name: str) -> CallTerm:
    return DeclaredObject(name=name, bytes=8)


def _value(name: str) -> CallTerm:
    return ValueIn(object=name, type=Int(64))


def _call(symbol: str, *arguments: CallTerm) -> ExternalCall:
    return ExternalCall(symbol=symbol, arguments=arguments, returns=INT32)


CUSPARSE = LibraryOf(
    name="cuSPARSE",
    files=(
        LibraryFile(wheel="nvidia-cusparse-cu12", name="libcusparse.so.12"),
        LibraryFile(name="libcusparse.so.12"),
    ),
    beside=(
        LibraryFile(wheel="nvidia-cuda-runtime-cu12", name="libcudart.so.12"),
        LibraryFile(name="libcudart.so.12"),
    ),
    probe=_call("cusparseCreate", _object("handle")),
    probe_fails="there is no GPU that it can use: it makes no handle",
    how_to_get="python -m pip install nvidia-cusparse-cu12 nvidia-cuda-runtime-cu12, on a machine "
    "with a GPU of NVIDIA",
)

_TO_DEVICE, _TO_HOST = enumerator(1), enumerator(2)
_PLAIN = _ZERO_BASED = _BEST = enumerator(0)
_LONG_INTEGERS = enumerator(3)


def _on_device(name: str, data: CallTerm, size: CallTerm) -> tuple[ExternalCall, ...]:
    """A copy of an array in the memory of the device."""
    return (
        _call("cudaMalloc", _object(name), size),
        _call("cudaMemcpy", _value(name), data, size, _TO_DEVICE),
    )


def _spmv(letter: str, type: Type) -> ExternalFunction:
    real = enumerator(0 if type == Float(32) else 1)
    one, nothing = (AddressOf(value=CallNumber(value=value, type=type)) for value in (1.0, 0.0))
    arrays = ("pos", "crd", "x", "y", "z")
    copies = [
        *(
            _on_device(
                name,
                ArrayOfLevelOf(tensor="x", level=1, array=name),
                BytesOf(tensor="x", level=1, array=name),
            )
            for name in arrays[:2]
        ),
        *(_on_device(name, DataOf(tensor=name), BytesOf(tensor=name)) for name in arrays[2:]),
    ]
    rows, columns = DimensionOf(variable="i"), DimensionOf(variable="j")
    described = (
        _call("cusparseCreate", _object("handle")),
        _call(
            "cusparseCreateCsr",
            *(_object("matrix"), rows, columns, CountOf(tensor="x")),
            *(_value("pos"), _value("crd"), _value("x")),
            *(_LONG_INTEGERS, _LONG_INTEGERS, _ZERO_BASED, real),
        ),
        _call("cusparseCreateDnVec", _object("read"), columns, _value("y"), real),
        _call("cusparseCreateDnVec", _object("written"), rows, _value("z"), real),
    )
    product = (
        *(_value("handle"), _PLAIN, one, _value("matrix"), _value("read"), nothing),
        *(_value("written"), real, _BEST),
    )
    room = (
        _call("cusparseSpMV_bufferSize", *product, _object("size")),
        _call("cudaMalloc", _object("room"), _value("size")),
    )
    freed = (
        _call("cusparseDestroySpMat", _value("matrix")),
        *(_call("cusparseDestroyDnVec", _value(name)) for name in ("read", "written")),
        _call("cusparseDestroy", _value("handle")),
        *(_call("cudaFree", _value(name)) for name in (*arrays, "room")),
    )
    return make_function(
        f"{letter}spmv",
        "z(i) = x(i,j) * y(j)",
        call=_call("cusparseSpMV", *product, _value("room")),
        setup=(*(call for copy in copies for call in copy), *described, *room),
        unpack=(
            _call("cudaMemcpy", DataOf(tensor="z"), _value("z"), BytesOf(tensor="z"), _TO_HOST),
        ),
        teardown=freed,
        library=CUSPARSE,
        status=ReturnedStatus(meanings=((1, "not initialized"), (2, "no memory"))),
        index=Int(64),
        types=(type,),
        formats={"x": "ds"},
        strides="dense",
    )


FUNCTIONS: Mapping[str, ExternalFunction] = MappingProxyType(
    {f"{letter}spmv": _spmv(letter, type) for letter, type in (("s", Float(32)), ("d", Float(64)))}
)
"""All functions by name."""
