"""MKL: its BLAS, and products of compressed rows by handles.  Proprietary, 650 MB installed.

Its sequential mode and 32-bit integers are selected before its first call.  The description is for
x86-64 only, whose ABI passes a struct of three integers in two registers.  The sum of compressed
rows is not described: it fails for two matrices without entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from t2s.capability.declare import make_function
from t2s.capability.description import (
    ArrayOfLevelOf,
    CallNumber,
    CallTerm,
    DataOf,
    DimensionOf,
    ExternalCall,
    ExternalFunction,
    LeadOf,
    LibraryFile,
    LibraryOf,
    ReturnedStatus,
    StoredResult,
    enumerator,
    handle,
    held,
)
from t2s.capability.ir import parse_capability
from t2s.core.types import INT32, Float, Int, Type
from t2s.libraries.blas import EMPTY_DOT, blas_functions, in_both_floats
from t2s.sparse_repr.notation.ir import Access, accesses

_SEQUENTIAL, _SHORT_INTEGERS = enumerator(1), enumerator(0)

MKL = LibraryOf(
    name="MKL",
    files=(
        LibraryFile(wheel="mkl", name="libmkl_rt.so"),
        LibraryFile(name="libmkl_rt.so.3"),
        LibraryFile(name="libmkl_rt.so.2"),
    ),
    start=(
        ExternalCall(symbol="MKL_Set_Interface_Layer", arguments=(_SHORT_INTEGERS,)),
        ExternalCall(symbol="MKL_Set_Threading_Layer", arguments=(_SEQUENTIAL,)),
    ),
    probe=EMPTY_DOT,
    how_to_get="python -m pip install mkl",
)

_STATUS = ReturnedStatus(
    meanings=((1, "no handle"), (2, "no memory"), (3, "an invalid value"), (6, "not supported"))
)
_PLAIN, _BY_ROWS = enumerator(10), enumerator(101)
_GENERAL = (CallNumber(value=20, type=Int(64)), CallNumber(value=0, type=Int(64)))
"""The struct of a matrix descriptor for a general matrix."""


def _call(symbol: str, *arguments: CallTerm) -> ExternalCall:
    return ExternalCall(symbol=symbol, arguments=arguments, returns=INT32)


def _made(letter: str, access: Access) -> ExternalCall:
    """Create a handle over compressed rows, by the starts and the ends of rows, without copies."""
    tensor = access.tensor
    begin, end = (
        ArrayOfLevelOf(tensor=tensor, level=1, array="pos", first=first) for first in (0, 1)
    )
    return _call(
        f"mkl_sparse_{letter}_create_csr",
        *(handle(tensor), enumerator(0)),
        *(DimensionOf(variable=variable) for variable in access.variables),
        *(begin, end, ArrayOfLevelOf(tensor=tensor, level=1, array="crd"), DataOf(tensor=tensor)),
    )


def _handed_back(letter: str) -> tuple[ExternalCall, ...]:
    """The calls that sort a sparse result, and export its arrays."""
    names = ("z", "base", "rows", "columns", "pos", "ends", "crd", "values")
    return (
        _call("mkl_sparse_order", held("z")),
        _call(f"mkl_sparse_{letter}_export_csr", held("z"), *map(handle, names[1:])),
    )


_RESULT = StoredResult(pos=held("pos"), crd=held("crd"), values=held("values"), index=INT32)


def _sparse(
    name: str, statement: str, type: Type, sparse: str, called: ExternalCall
) -> ExternalFunction:
    """A function of handles for the tensors that are ``sparse``; dense matrices are by rows."""
    stated = parse_capability(statement)
    tensors = {access.tensor: access for access in (*accesses(stated.value), stated.result)}
    dense = [access for access in tensors.values() if access.tensor not in sparse]
    letter = "s" if type == Float(32) else "d"
    stored = "z" in sparse
    return make_function(
        name,
        statement,
        call=called,
        setup=tuple(_made(letter, tensors[operand]) for operand in sparse if operand != "z"),
        unpack=_handed_back(letter) if stored else (),
        teardown=tuple(_call("mkl_sparse_destroy", held(operand)) for operand in sparse),
        library=MKL,
        stored=_RESULT if stored else None,
        status=_STATUS,
        index=INT32,
        trusted=True,
        types=(type,),
        formats=dict.fromkeys(sparse, "ds"),
        strides={access.tensor: "rows" for access in dense if len(access.variables) == 2},
    )


def _functions(letter: str, type: Type) -> tuple[ExternalFunction, ...]:
    one, nothing = (CallNumber(value=value, type=type) for value in (1.0, 0.0))
    prefix, product = f"mkl_sparse_{letter}_", "z(i,k) = x(i,j) * y(j,k)"
    multiplied = (_PLAIN, one, held("x"), *_GENERAL)
    y, z = DataOf(tensor="y"), DataOf(tensor="z")
    columns = (DimensionOf(variable="k"), LeadOf(tensor="y"))
    return (
        _sparse(
            *(f"{letter}spmv", "z(i) = x(i,j) * y(j)", type, "x"),
            _call(f"{prefix}mv", *multiplied, y, nothing, z),
        ),
        _sparse(
            *(f"{letter}spmm", product, type, "x"),
            _call(
                f"{prefix}mm", *multiplied, _BY_ROWS, y, *columns, nothing, z, LeadOf(tensor="z")
            ),
        ),
        _sparse(
            *(f"{letter}spgemm", product, type, "xyz"),
            _call("mkl_sparse_spmm", _PLAIN, held("x"), held("y"), handle("z")),
        ),
    )


FUNCTIONS: Mapping[str, ExternalFunction] = MappingProxyType(
    {
        **blas_functions(MKL, of_c=True),
        **in_both_floats(_functions),
    }
)
"""All functions by name; sparse ones have ``sp`` after the letter of their type."""
