"""Functions of the BLAS, by its Fortran or C interface, with integers of 32 bits.

scipy's BLAS is called through the capsules of ``scipy.linalg.cython_blas``; OpenBLAS, Debian's
ATLAS and MKL have the C interface.  A row-major matrix is a transposed one for Fortran, so a
product is computed with its operands exchanged.  Each routine is described once, for ``s``
(float32) and ``d`` (float64).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from t2s.capability.declare import make_function
from t2s.capability.description import (
    AddressOf,
    CallLetter,
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
    StepOf,
    enumerator,
)
from t2s.core.types import INT32, Float, Type
from t2s.core.walk import walk

_NOTHING = AddressOf(value=CallNumber(value=0, type=INT32))

SCIPY_BLAS = LibraryOf(
    name="scipy's BLAS",
    capsules="scipy.linalg.cython_blas",
    probe=ExternalCall(symbol="sdot", arguments=(_NOTHING,) * 5, returns=Float(32)),
    how_to_get="python -m pip install scipy",
    threaded=True,
)


def _size(variable: str) -> CallTerm:
    return AddressOf(value=DimensionOf(variable=variable))


def _lead(tensor: str) -> CallTerm:
    return AddressOf(value=LeadOf(tensor=tensor))


def _step(tensor: str) -> CallTerm:
    return AddressOf(value=StepOf(tensor=tensor, mode=0))


def _data(tensor: str) -> CallTerm:
    return DataOf(tensor=tensor)


def _layout(tensor: str) -> CallTerm:
    """``N`` for a row-major matrix: Fortran sees all matrices of the product transposed."""
    return AddressOf(value=LayoutOf(tensor=tensor, rows="N", columns="T"))


def _transposed(tensor: str) -> CallTerm:
    """``T`` for a row-major matrix, which Fortran sees transposed, in a product with a vector."""
    return AddressOf(value=LayoutOf(tensor=tensor, rows="T", columns="N"))


def _number(value: float, type: Type) -> CallTerm:
    return AddressOf(value=CallNumber(value=value, type=type))


@dataclass(frozen=True, slots=True, kw_only=True)
class _BlasRoutine:
    """A routine of the BLAS, in its Fortran interface."""

    name: str
    statement: str
    type: Type
    arguments: tuple[CallTerm, ...]
    strides: dict[str, str]
    symbol: str
    returns: Type | None
    properties: dict[str, str] | None


def _blas(
    name: str,
    statement: str,
    type: Type,
    arguments: tuple[CallTerm, ...],
    strides: dict[str, str],
    *,
    symbol: str = "",
    returns: Type | None = None,
    properties: dict[str, str] | None = None,
) -> _BlasRoutine:
    return _BlasRoutine(
        name=name,
        statement=statement,
        type=type,
        arguments=arguments,
        strides=strides,
        symbol=symbol or name,
        returns=returns,
        properties=properties,
    )


def _gemm(letter: str, type: Type) -> _BlasRoutine:
    return _blas(
        f"{letter}gemm",
        "z(i,k) = x(i,j) * y(j,k)",
        type,
        (
            *(_layout("y"), _layout("x"), _size("k"), _size("i"), _size("j"), _number(1, type)),
            *(_data("y"), _lead("y"), _data("x"), _lead("x")),
            *(_number(0, type), _data("z"), _lead("z")),
        ),
        {"x": "one is 1", "y": "one is 1", "z": "rows"},
    )


def _gemv(letter: str, type: Type) -> _BlasRoutine:
    return _blas(
        f"{letter}gemv",
        "z(i) = x(i,j) * y(j)",
        type,
        _gemv_arguments(type),
        {"x": "rows", "y": "steps", "z": "steps"},
    )


def _gemv_arguments(type: Type) -> tuple[CallTerm, ...]:
    return (
        *(_transposed("x"), _size("j"), _size("i"), _number(1, type), _data("x"), _lead("x")),
        *(_data("y"), _step("y"), _number(0, type), _data("z"), _step("z")),
    )


def _gemv_columns(letter: str, type: Type) -> _BlasRoutine:
    """The same product for a column-major matrix."""
    return _blas(
        f"{letter}gemv_columns",
        "z(i) = x(j,i) * y(j)",
        type,
        (
            *(AddressOf(value=CallLetter(letter="N")), _size("i"), _size("j"), _number(1, type)),
            *(_data("x"), _lead("x"), _data("y"), _step("y")),
            *(_number(0, type), _data("z"), _step("z")),
        ),
        {"x": "rows", "y": "steps", "z": "steps"},
        symbol=f"{letter}gemv",
    )


def _symv(letter: str, type: Type) -> _BlasRoutine:
    return _blas(
        f"{letter}symv",
        "z(i) = x(i,j) * y(j)",
        type,
        (
            *(AddressOf(value=CallLetter(letter="U")), _size("i"), _number(1, type)),
            *(_data("x"), _lead("x"), _data("y"), _step("y")),
            *(_number(0, type), _data("z"), _step("z")),
        ),
        {"x": "one is 1", "y": "steps", "z": "steps"},
        properties={"x": "symmetric"},
    )


def _dot(letter: str, type: Type) -> _BlasRoutine:
    return _blas(
        f"{letter}dot",
        "s = x(i) * y(i)",
        type,
        (_size("i"), _data("x"), _step("x"), _data("y"), _step("y")),
        {"x": "steps", "y": "steps"},
        returns=type,
    )


def _axpy(letter: str, type: Type) -> _BlasRoutine:
    return _blas(
        f"{letter}axpy",
        "x(i) = x(i) + y(i)",
        type,
        (_size("i"), _number(1, type), _data("y"), _step("y"), _data("x"), _step("x")),
        {"x": "steps", "y": "steps"},
    )


def _ger(letter: str, type: Type) -> _BlasRoutine:
    return _blas(
        f"{letter}ger",
        "z(i,j) += x(i) * y(j)",
        type,
        (
            *(_size("j"), _size("i"), _number(1, type), _data("y"), _step("y")),
            *(_data("x"), _step("x"), _data("z"), _lead("z")),
        ),
        {"x": "steps", "y": "steps", "z": "rows"},
    )


_ENTRIES: Mapping[str, Callable[[str, Type], _BlasRoutine]] = MappingProxyType(
    {
        "gemm": _gemm,
        "gemv": _gemv,
        "gemv_columns": _gemv_columns,
        "symv": _symv,
        "dot": _dot,
        "axpy": _axpy,
        "ger": _ger,
    }
)

_ENUMERATORS: Mapping[str | int, int] = MappingProxyType({"N": 111, "T": 112, "U": 121, "L": 122})
"""The enumerators of the C interface for the letters of Fortran."""

_BY_COLUMNS = enumerator(102)


def _in_c(routine: _BlasRoutine) -> ExternalCall:
    """The same call through the C interface: column-major, with numbers passed by value."""
    by_columns = any(isinstance(part, LeadOf) for term in routine.arguments for part in walk(term))
    arguments = tuple(_by_value(argument) for argument in routine.arguments)
    return ExternalCall(
        symbol=f"cblas_{routine.symbol}",
        arguments=(_BY_COLUMNS, *arguments) if by_columns else arguments,
        returns=routine.returns,
    )


def _by_value(term: CallTerm) -> CallTerm:
    match term:
        case AddressOf(value=CallLetter(letter=letter)):
            return enumerator(_ENUMERATORS[letter])
        case AddressOf(value=LayoutOf(tensor=tensor, rows=rows, columns=columns)):
            return LayoutOf(tensor=tensor, rows=_ENUMERATORS[rows], columns=_ENUMERATORS[columns])
        case AddressOf(value=value):
            return value
        case _:
            return term


def in_both_floats(
    make: Callable[[str, Type], Iterable[ExternalFunction]],
) -> Mapping[str, ExternalFunction]:
    """The functions that ``make`` returns for float32 and float64, by letter and type."""
    return MappingProxyType(
        {
            routine.name: routine
            for letter, type in (("s", Float(32)), ("d", Float(64)))
            for routine in make(letter, type)
        }
    )


def blas_functions(library: LibraryOf, *, of_c: bool) -> Mapping[str, ExternalFunction]:
    """The functions of a BLAS by name, through its C interface, or else its Fortran interface."""
    functions = {}
    for name, make in _ENTRIES.items():
        for letter, type in (("s", Float(32)), ("d", Float(64))):
            routine = make(letter, type)
            called = ExternalCall(
                symbol=routine.symbol, arguments=routine.arguments, returns=routine.returns
            )
            functions[f"{letter}{name}"] = make_function(
                routine.name,
                routine.statement,
                call=_in_c(routine) if of_c else called,
                library=library,
                index=INT32,
                trusted=True,
                types=(routine.type,),
                strides=routine.strides,
                properties=routine.properties,
            )
    return MappingProxyType(functions)


EMPTY_DOT = ExternalCall(symbol="cblas_sdot", arguments=(enumerator(0),) * 5, returns=Float(32))
"""A dot product of no elements."""

OPENBLAS = LibraryOf(
    name="OpenBLAS",
    files=(
        LibraryFile(wheel="scipy-openblas32", name="libscipy_openblas", prefix="scipy_"),
        LibraryFile(name="libopenblas.so.0"),
    ),
    probe=EMPTY_DOT,
    how_to_get='python -m pip install "t2s-spatial[external]", or apt install libopenblas0',
    threaded=True,
)

ATLAS = LibraryOf(
    name="ATLAS",
    files=(LibraryFile(name="libcblas.so.3"),),
    probe=EMPTY_DOT,
    how_to_get="apt install libatlas3-base",
)

FUNCTIONS = blas_functions(SCIPY_BLAS, of_c=False)
"""All functions of scipy's BLAS by name."""

OPENBLAS_FUNCTIONS = blas_functions(OPENBLAS, of_c=True)
"""All functions of OpenBLAS by name."""

ATLAS_FUNCTIONS = blas_functions(ATLAS, of_c=True)
"""All functions of ATLAS by name."""
