"""The BLAS of scipy, by the capsules of ``scipy.linalg.cython_blas``: Fortran, 32-bit integers.

Row-major matrices are the transposed ones of Fortran, so a product is computed with its operands
exchanged.  Each function is one entry; ``s`` is float32 and ``d`` is float64.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    LibraryOf,
    StepOf,
)
from t2s.core.types import INT32, Float, Type

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
    """``N`` of a matrix by rows, which Fortran sees transposed as we do the product."""
    return AddressOf(value=LayoutOf(tensor=tensor, rows="N", columns="T"))


def _transposed(tensor: str) -> CallTerm:
    """``T`` of a matrix by rows: Fortran sees it transposed, and here that is undone."""
    return AddressOf(value=LayoutOf(tensor=tensor, rows="T", columns="N"))


def _number(value: float, type: Type) -> CallTerm:
    return AddressOf(value=CallNumber(value=value, type=type))


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
    flops: str = "",
) -> ExternalFunction:
    return make_function(
        name,
        statement,
        call=ExternalCall(symbol=symbol or name, arguments=arguments, returns=returns),
        library=SCIPY_BLAS,
        index=INT32,
        trusted=True,
        cost={"flops": flops},
        types=(type,),
        strides=strides,
        properties=properties,
    )


def _gemm(letter: str, type: Type) -> ExternalFunction:
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
        flops="2*i*j*k",
    )


def _gemv(letter: str, type: Type) -> ExternalFunction:
    return _blas(
        f"{letter}gemv",
        "z(i) = x(i,j) * y(j)",
        type,
        _gemv_arguments(type),
        {"x": "rows", "y": "steps", "z": "steps"},
        flops="2*i*j",
    )


def _gemv_arguments(type: Type) -> tuple[CallTerm, ...]:
    return (
        *(_transposed("x"), _size("j"), _size("i"), _number(1, type), _data("x"), _lead("x")),
        *(_data("y"), _step("y"), _number(0, type), _data("z"), _step("z")),
    )


def _gemv_columns(letter: str, type: Type) -> ExternalFunction:
    """The same product of a matrix by columns."""
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
        flops="2*i*j",
    )


def _symv(letter: str, type: Type) -> ExternalFunction:
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
        flops="2*i*j",
    )


def _dot(letter: str, type: Type) -> ExternalFunction:
    return _blas(
        f"{letter}dot",
        "s = x(i) * y(i)",
        type,
        (_size("i"), _data("x"), _step("x"), _data("y"), _step("y")),
        {"x": "steps", "y": "steps"},
        returns=type,
        flops="2*i",
    )


def _axpy(letter: str, type: Type) -> ExternalFunction:
    return _blas(
        f"{letter}axpy",
        "x(i) = x(i) + y(i)",
        type,
        (_size("i"), _number(1, type), _data("y"), _step("y"), _data("x"), _step("x")),
        {"x": "steps", "y": "steps"},
        flops="i",
    )


def _ger(letter: str, type: Type) -> ExternalFunction:
    return _blas(
        f"{letter}ger",
        "z(i,j) += x(i) * y(j)",
        type,
        (
            *(_size("j"), _size("i"), _number(1, type), _data("y"), _step("y")),
            *(_data("x"), _step("x"), _data("z"), _lead("z")),
        ),
        {"x": "steps", "y": "steps", "z": "rows"},
        flops="2*i*j",
    )


_ENTRIES: Mapping[str, Callable[[str, Type], ExternalFunction]] = MappingProxyType(
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

FUNCTIONS: Mapping[str, ExternalFunction] = MappingProxyType(
    {
        f"{letter}{name}": make(letter, type)
        for name, make in _ENTRIES.items()
        for letter, type in (("s", Float(32)), ("d", Float(64)))
    }
)
"""All functions by name."""
