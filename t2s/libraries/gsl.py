"""The GNU Scientific Library, Debian's package: structs over our arrays, without copies.

It is under the GPL, version 3: t2s only loads it when a user calls its functions.  Its error
handler would abort the process, so it is switched off, and statuses are checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from t2s.capability.declare import make_function
from t2s.capability.description import (
    NULL,
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
    StepOf,
    StructOf,
    enumerator,
)
from t2s.capability.ir import parse_capability
from t2s.core.types import INT32, Int, Type
from t2s.libraries.blas import in_both_floats
from t2s.sparse_repr.notation.ir import Access, accesses

GSL = LibraryOf(
    name="GSL",
    files=(LibraryFile(name="libgsl.so.27"), LibraryFile(name="libgsl.so.28")),
    start=(ExternalCall(symbol="gsl_set_error_handler_off", arguments=()),),
    probe=ExternalCall(symbol="gsl_set_error_handler_off", arguments=()),
    how_to_get="apt install libgsl27",
)

_STATUS = ReturnedStatus(
    meanings=((4, "an invalid argument"), (19, "extents that do not fit"), (20, "no square"))
)
_PLAIN, _UPPER = enumerator(111), enumerator(121)


def _struct(tensor: Access) -> CallTerm:
    """A vector or a matrix struct over our values; for a scalar, its address."""
    name, data = tensor.tensor, (DataOf(tensor=tensor.tensor), NULL, enumerator(0))
    sizes = tuple(DimensionOf(variable=variable) for variable in tensor.variables)
    if not sizes:
        return DataOf(tensor=name)
    step = StepOf(tensor=name, mode=0) if len(sizes) == 1 else LeadOf(tensor=name)
    return StructOf(fields=(*sizes, step, *data))


def _gsl(
    name: str,
    statement: str,
    type: Type,
    symbol: str,
    arguments: Sequence[CallTerm | str],
    properties: Mapping[str, str] | None = None,
) -> ExternalFunction:
    """A function; its arguments are terms, and tensors by their names."""
    stated = parse_capability(statement)
    tensors = {access.tensor: access for access in (stated.result, *accesses(stated.value))}
    passed = (
        _struct(tensors[argument]) if isinstance(argument, str) else argument
        for argument in arguments
    )
    steps = {1: "steps", 2: "rows"}
    return make_function(
        name,
        statement,
        call=ExternalCall(symbol=symbol, arguments=tuple(passed), returns=INT32),
        library=GSL,
        status=_STATUS,
        index=Int(64),
        trusted=True,
        types=(type,),
        strides={
            access.tensor: steps[len(access.variables)]
            for access in tensors.values()
            if access.variables
        },
        properties=properties,
    )


def _functions(letter: str, type: Type) -> tuple[ExternalFunction, ...]:
    one, nothing = CallNumber(value=1, type=type), CallNumber(value=0, type=type)
    vector = "gsl_vector_float_add" if letter == "s" else "gsl_vector_add"
    blas = f"gsl_blas_{letter}"
    matrix_vector, product = "z(i) = x(i,j) * y(j)", "z(i,k) = x(i,j) * y(j,k)"
    symmetric = (_UPPER, one, "x", "y", nothing, "z")
    return (
        _gsl(f"{letter}add", "x(i) = x(i) + y(i)", type, vector, "xy"),
        _gsl(f"{letter}dot", "s = x(i) * y(i)", type, f"{blas}dot", "xys"),
        _gsl(
            *(f"{letter}gemv", matrix_vector, type, f"{blas}gemv"),
            (_PLAIN, one, "x", "y", nothing, "z"),
        ),
        _gsl(
            *(f"{letter}symv", matrix_vector, type, f"{blas}symv"),
            *(symmetric, {"x": "symmetric"}),
        ),
        _gsl(
            *(f"{letter}gemm", product, type, f"{blas}gemm"),
            (_PLAIN, _PLAIN, one, "x", "y", nothing, "z"),
        ),
        _gsl(f"{letter}ger", "z(i,j) += x(i) * y(j)", type, f"{blas}ger", (one, "x", "y", "z")),
    )


FUNCTIONS = in_both_floats(_functions)
"""All functions by name."""
