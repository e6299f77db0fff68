"""BLIS through its own interface: matrices with any row and column strides, without copies.

It is found in the extension module of the wheel ``blis``, or as Debian's library.
"""

from __future__ import annotations

from t2s.capability.declare import make_function
from t2s.capability.description import (
    AddressOf,
    CallNumber,
    CallTerm,
    DataOf,
    DimensionOf,
    ExternalCall,
    ExternalFunction,
    LibraryFile,
    LibraryOf,
    StepOf,
    enumerator,
)
from t2s.core.types import Int, Type
from t2s.libraries.blas import in_both_floats

BLIS = LibraryOf(
    name="BLIS",
    files=(LibraryFile(wheel="blis", name="cy."), LibraryFile(name="libblis.so.4")),
    probe=ExternalCall(symbol="bli_info_get_int_type_size", arguments=(), returns=Int(64)),
    how_to_get="python -m pip install blis, or apt install libblis4",
    threaded=True,
)

_PLAIN = enumerator(0)
"""No transposition, no conjugation."""


def _operand(tensor: str, order: int) -> tuple[CallTerm, ...]:
    """The address and the strides of a tensor."""
    return (DataOf(tensor=tensor), *(StepOf(tensor=tensor, mode=mode) for mode in range(order)))


def _sizes(variables: str) -> tuple[CallTerm, ...]:
    return tuple(DimensionOf(variable=variable) for variable in variables)


def _functions(letter: str, type: Type) -> tuple[ExternalFunction, ...]:
    one, nothing = (AddressOf(value=CallNumber(value=value, type=type)) for value in (1, 0))
    matrix, vector, two = _operand("x", 2), _operand("y", 1), (_PLAIN, _PLAIN)
    pair = (*_operand("x", 1), *vector)
    arguments = {
        ("gemm", "z(i,k) = x(i,j) * y(j,k)"): (
            *(*two, *_sizes("ikj"), one, *matrix, *_operand("y", 2), nothing, *_operand("z", 2)),
        ),
        ("gemv", "z(i) = x(i,j) * y(j)"): (
            *(*two, *_sizes("ij"), one, *matrix, *vector, nothing, *_operand("z", 1)),
        ),
        ("ger", "z(i,j) += x(i) * y(j)"): (*two, *_sizes("ij"), one, *pair, *_operand("z", 2)),
        ("dotv", "s = x(i) * y(i)"): (*two, *_sizes("i"), *pair, DataOf(tensor="s")),
        ("addv", "x(i) = x(i) + y(i)"): (_PLAIN, *_sizes("i"), *vector, *_operand("x", 1)),
    }
    return tuple(
        make_function(
            f"{letter}{name}",
            statement,
            call=ExternalCall(symbol=f"bli_{letter}{name}", arguments=passed),
            library=BLIS,
            index=Int(64),
            trusted=True,
            types=(type,),
            strides="steps",
        )
        for (name, statement), passed in arguments.items()
    )


FUNCTIONS = in_both_floats(_functions)
"""All functions by name."""
