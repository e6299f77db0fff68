"""TBLIS: contractions of any order and with any strides, without copies, in one call.

Each mode has a label; labels that the result lacks are summed over.  Tensors are opaque structs
that the library initializes; each has a scale, which is 0 for a result that is not added to.  The
number of threads is an argument, and is one.
"""

from __future__ import annotations

from t2s.capability.declare import make_function
from t2s.capability.description import (
    NULL,
    BytesOf,
    CallNumber,
    CallTerm,
    DataOf,
    DeclaredObject,
    ExtentsOf,
    ExternalCall,
    ExternalFunction,
    LabelsOf,
    LibraryFile,
    LibraryOf,
    OrderOf,
    StepsOf,
    ValueOfSymbol,
)
from t2s.core.types import INT32, Int, Type
from t2s.libraries.blas import in_both_floats

TBLIS = LibraryOf(
    name="TBLIS",
    files=(LibraryFile(wheel="pytblis", name="libtblis"), LibraryFile(name="libtblis.so.0")),
    probe=ExternalCall(symbol="tblis_get_num_threads", arguments=(), returns=INT32),
    how_to_get='python -m pip install "t2s-spatial[external]"',
)

_STRUCT = 256
"""Bytes reserved for a struct of a tensor or a scalar: more than twice its size."""


def _struct(tensor: str) -> CallTerm:
    return DeclaredObject(name=tensor, bytes=_STRUCT)


def _filled(letter: str, type: Type, tensor: str, scale: float) -> ExternalCall:
    """The call that initializes a tensor struct over our values."""
    return ExternalCall(
        symbol=f"tblis_init_tensor_scaled_{letter}",
        arguments=(
            *(_struct(tensor), CallNumber(value=scale, type=type), OrderOf(tensor=tensor)),
            *(ExtentsOf(tensor=tensor), DataOf(tensor=tensor), StepsOf(tensor=tensor)),
        ),
    )


def _called(symbol: str, tensors: str, more: tuple[CallTerm, ...] = ()) -> ExternalCall:
    """A call with one thread, and the library's kernels for this CPU."""
    pairs = [(_struct(name), LabelsOf(tensor=name)) for name in tensors]
    operands = (argument for pair in pairs for argument in pair)
    one_thread = ValueOfSymbol(symbol="tblis_single")
    return ExternalCall(symbol=symbol, arguments=(one_thread, NULL, *operands, *more))


def _tblis(
    letter: str,
    type: Type,
    name: str,
    statement: str,
    call: ExternalCall,
    *,
    scale: float = 0.0,
    setup: tuple[ExternalCall, ...] = (),
    unpack: tuple[ExternalCall, ...] = (),
) -> ExternalFunction:
    filled = [_filled(letter, type, operand, 1.0) for operand in "xy" if f"{operand}(" in statement]
    if not setup:
        filled.append(_filled(letter, type, "z", scale))
    return make_function(
        f"{letter}{name}",
        statement,
        call=call,
        setup=(*filled, *setup),
        unpack=unpack,
        library=TBLIS,
        index=Int(64),
        trusted=True,
        types=(type,),
        strides="steps",
    )


def _functions(letter: str, type: Type) -> tuple[ExternalFunction, ...]:
    mult = _called("tblis_tensor_mult", "xyz")
    add = _called("tblis_tensor_add", "xz")
    product = "x(L,I,K) * y(L,K,J)"
    scalar = _struct("scalar")
    nothing = ExternalCall(
        symbol=f"tblis_init_scalar_{letter}",
        arguments=(scalar, CallNumber(value=0.0, type=type)),
    )
    handed_back = ExternalCall(
        symbol="memcpy", arguments=(DataOf(tensor="s"), scalar, BytesOf(tensor="s"))
    )
    return (
        _tblis(letter, type, "mult", f"z(L,I,J) = {product}", mult),
        _tblis(letter, type, "mult_add", f"z(L,I,J) += {product}", mult, scale=1.0),
        _tblis(letter, type, "add", "z(I) = z(I) + x(I)", add, scale=1.0),
        _tblis(letter, type, "total", "z(I) = x(I,J)", add),
        _tblis(
            *(letter, type, "dot", "s = x(I) * y(I)"),
            _called("tblis_tensor_dot", "xy", (scalar,)),
            setup=(nothing,),
            unpack=(handed_back,),
        ),
    )


FUNCTIONS = in_both_floats(_functions)
"""All functions by name."""
