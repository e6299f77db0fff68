"""cuSPARSE, probed by creating a handle, since the library also loads without a GPU.

This description was never run on a GPU: it is not trusted, so its first use tests ten cases in a
child process.  Operands are copied to the device, and the result back, in each call.
"""

from __future__ import annotations

from t2s.capability.declare import make_function
from t2s.capability.description import (
    AddressOf,
    ArrayOfLevelOf,
    BytesOf,
    CallNumber,
    CallTerm,
    CountOf,
    DataOf,
    DimensionOf,
    ExternalCall,
    ExternalFunction,
    LibraryFile,
    LibraryOf,
    ReturnedStatus,
    enumerator,
    handle,
    held,
)
from t2s.core.types import INT32, Float, Int, Type
from t2s.libraries.blas import in_both_floats


def _call(symbol: str, *arguments: CallTerm) -> ExternalCall:
    return ExternalCall(symbol=symbol, arguments=arguments, returns=INT32)


CUSPARSE = LibraryOf(
    name="cuSPARSE",
    files=(
        LibraryFile(wheel="nvidia-cusparse", name="libcusparse.so"),  # of CUDA 13 and later
        LibraryFile(wheel="nvidia-cusparse-cu12", name="libcusparse.so.12"),
        LibraryFile(name="libcusparse.so.12"),
    ),
    beside=(
        LibraryFile(wheel="nvidia-cuda-runtime", name="libcudart.so"),
        LibraryFile(wheel="nvidia-cuda-runtime-cu12", name="libcudart.so.12"),
        LibraryFile(name="libcudart.so.13"),
        LibraryFile(name="libcudart.so.12"),
    ),
    fresh=True,
    probe=_call("cusparseCreate", handle("handle")),
    probe_fails="there is no GPU that it can use: it makes no handle",
    how_to_get="python -m pip install nvidia-cusparse nvidia-cuda-runtime, on a machine with a GPU "
    "of NVIDIA",
)

_TO_DEVICE, _TO_HOST = enumerator(1), enumerator(2)
_PLAIN = _ZERO_BASED = _BEST = enumerator(0)
_LONG_INTEGERS = enumerator(3)


def _on_device(name: str, data: CallTerm, size: CallTerm) -> tuple[ExternalCall, ...]:
    """A copy of an array in the memory of the device."""
    return (
        _call("cudaMalloc", handle(name), size),
        _call("cudaMemcpy", held(name), data, size, _TO_DEVICE),
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
        _call("cusparseCreate", handle("handle")),
        _call(
            "cusparseCreateCsr",
            *(handle("matrix"), rows, columns, CountOf(tensor="x")),
            *(held("pos"), held("crd"), held("x")),
            *(_LONG_INTEGERS, _LONG_INTEGERS, _ZERO_BASED, real),
        ),
        _call("cusparseCreateDnVec", handle("read"), columns, held("y"), real),
        _call("cusparseCreateDnVec", handle("written"), rows, held("z"), real),
    )
    product = (
        *(held("handle"), _PLAIN, one, held("matrix"), held("read"), nothing),
        *(held("written"), real, _BEST),
    )
    room = (
        _call("cusparseSpMV_bufferSize", *product, handle("size")),
        _call("cudaMalloc", handle("room"), held("size")),
    )
    freed = (
        _call("cusparseDestroySpMat", held("matrix")),
        *(_call("cusparseDestroyDnVec", held(name)) for name in ("read", "written")),
        _call("cusparseDestroy", held("handle")),
        *(_call("cudaFree", held(name)) for name in (*arrays, "room")),
    )
    return make_function(
        f"{letter}spmv",
        "z(i) = x(i,j) * y(j)",
        call=_call("cusparseSpMV", *product, held("room")),
        setup=(*(call for copy in copies for call in copy), *described, *room),
        unpack=(_call("cudaMemcpy", DataOf(tensor="z"), held("z"), BytesOf(tensor="z"), _TO_HOST),),
        teardown=freed,
        library=CUSPARSE,
        status=ReturnedStatus(meanings=((1, "not initialized"), (2, "no memory"))),
        index=Int(64),
        types=(type,),
        formats={"x": "ds"},
        strides="dense",
    )


FUNCTIONS = in_both_floats(lambda letter, type: (_spmv(letter, type),))
"""All functions by name."""
