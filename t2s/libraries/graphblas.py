"""SuiteSparse:GraphBLAS: sparse products over semirings, and products sampled by a mask.

Matrices of the library are handles.  Sparse operands are copied into compressed rows, dense ones
into full matrices; results are copied back.  The number of threads is global in the library: it is
set to one while a function runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from t2s.capability.declare import make_function
from t2s.capability.description import (
    NULL,
    ArrayOfLevelOf,
    BytesOf,
    CallNumber,
    CallTerm,
    DataOf,
    DimensionOf,
    ExternalCall,
    ExternalFunction,
    ForSemiring,
    ForType,
    LibraryFile,
    LibraryOf,
    ReturnedStatus,
    StoredResult,
    ValueIn,
    ValueOfSymbol,
    enumerator,
    handle,
    held,
)
from t2s.capability.ir import parse_capability
from t2s.core.types import INT32, Float, Int, Type
from t2s.sparse_repr.notation.ir import accesses
from t2s.sparse_repr.semiring import (
    MAX_PLUS,
    MAX_TIMES,
    MIN_MAX,
    MIN_PLUS,
    OR_AND,
    PLUS_TIMES,
    Semiring,
)

_NONBLOCKING = enumerator(0)
_THREADS = enumerator(7086)
_FALSE = CallNumber(value=0, type=Int(8))

GRAPHBLAS = LibraryOf(
    name="GraphBLAS",
    files=(
        LibraryFile(wheel="suitesparse-graphblas", name="libgraphblas"),
        LibraryFile(name="libgraphblas.so.9"),
    ),
    start=(ExternalCall(symbol="GrB_init", arguments=(_NONBLOCKING,)),),
    probe=ExternalCall(
        symbol="GxB_Global_Option_get_INT32",
        arguments=(_THREADS, handle("threads")),
        returns=INT32,
    ),
    probe_fails="it cannot be started",
    how_to_get='python -m pip install "t2s-spatial[external]"',
)

_STATUS = ReturnedStatus(
    meanings=(
        (-1, "an object that is not initialized"),
        (-2, "no address"),
        (-3, "an invalid value"),
        (-5, "types that do not agree"),
        (-6, "dimensions that do not agree"),
        (-102, "no memory"),
        (-104, "an object that is corrupt"),
    )
)

_TYPES: Mapping[Type, str] = MappingProxyType({Float(32): "FP32", Float(64): "FP64"})
_RINGS: Mapping[Semiring, tuple[str, str]] = MappingProxyType(
    {
        PLUS_TIMES: ("PLUS", "TIMES"),
        MIN_PLUS: ("MIN", "PLUS"),
        MAX_PLUS: ("MAX", "PLUS"),
        MAX_TIMES: ("MAX", "TIMES"),
        MIN_MAX: ("MIN", "MAX"),
        OR_AND: ("MAX", "MIN"),
    }
)
"""The library's names for the operators of semirings."""


def _of_type(symbol: str) -> CallTerm:
    """A variable of the library for each type of values, by the name of that in its own."""
    return ForType(
        terms=tuple(
            (type, ValueOfSymbol(symbol=symbol.format(type=name))) for type, name in _TYPES.items()
        )
    )


def _of_ring(symbol: str) -> CallTerm:
    """The same for each semiring as well."""
    return ForSemiring(
        terms=tuple(
            (ring, _of_type(symbol.format(add=add, multiply=multiply, type="{type}")))
            for ring, (add, multiply) in _RINGS.items()
        )
    )


_TYPE = _of_type("GrB_{type}")
_SEMIRING = _of_ring("GrB_{add}_{multiply}_SEMIRING_{type}")
_SUM = _of_ring("GrB_{add}_{type}")
_PRODUCT = _of_ring("GrB_{multiply}_{type}")
_MASKED = ValueOfSymbol(symbol="GrB_DESC_S")
"""A descriptor: only coordinates that the mask stores are computed."""
_MASKED_TRANSPOSED = ValueOfSymbol(symbol="GrB_DESC_ST1")
"""The same, with the second operand of a product transposed."""


def _extent(variable: str) -> CallTerm:
    return DimensionOf(variable=variable)


def _grb(symbol: str, *arguments: CallTerm) -> ExternalCall:
    return ExternalCall(symbol=symbol, arguments=arguments, returns=INT32)


def _made(name: str, variables: str) -> ExternalCall:
    """An empty matrix or vector."""
    kind = "Matrix" if len(variables) == 2 else "Vector"
    return _grb(f"GrB_{kind}_new", handle(name), _TYPE, *map(_extent, variables))


def _moved(place: CallTerm, data: CallTerm, size: CallTerm) -> ExternalCall:
    return ExternalCall(symbol="memcpy", arguments=(place, data, size))


def _copied(object: str, data: CallTerm, size: CallTerm) -> tuple[ExternalCall, ExternalCall]:
    """Memory owned by the library, with a copy of an array."""
    copy = held(object)
    return (
        _grb("posix_memalign", handle(object), CallNumber(value=64, type=Int(64)), size),
        _moved(copy, data, size),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _GraphTensor:
    """A tensor of a statement as the library has it."""

    name: str
    variables: str
    sparse: bool

    @property
    def full(self) -> str:
        """The end of the names of functions for dense ones."""
        return "Matrix_{}pack_FullR" if len(self.variables) == 2 else "Vector_{}pack_Full"

    def filled(self) -> tuple[ExternalCall, ...]:
        """The calls that fill it from our arrays."""
        name = self.name
        if not self.sparse:
            size = BytesOf(tensor=name)
            return (
                _made(name, self.variables),
                *_copied(f"values of {name}", DataOf(tensor=name), size),
                _grb(
                    f"GxB_{self.full.format('')}",
                    *(held(name), handle(f"values of {name}"), size, _FALSE, NULL),
                ),
            )
        arrays = ("pos", "crd")
        sizes = [BytesOf(tensor=name, level=1, array=array) for array in arrays]
        copies = [
            _copied(f"{array} of {name}", ArrayOfLevelOf(tensor=name, level=1, array=array), size)
            for array, size in zip(arrays, sizes, strict=True)
        ]
        values = BytesOf(tensor=name)
        copies.append(_copied(f"values of {name}", DataOf(tensor=name), values))
        objects = (handle(f"{part} of {name}") for part in (*arrays, "values"))
        packed: tuple[CallTerm, ...] = (*objects, *sizes, values, _FALSE, _FALSE, NULL)
        return (
            _made(name, self.variables),
            *(call for copy in copies for call in copy),
            _grb("GxB_Matrix_pack_CSR", held(name), *packed),
        )

    def freed(self) -> tuple[ExternalCall, ...]:
        """The calls that free it, and arrays that it does not own."""
        kind = "Matrix" if len(self.variables) == 2 else "Vector"
        names = [f"{array} of {self.name}" for array in ("pos", "crd", "values")]
        left = (held(object) for object in names)
        return (
            _grb(f"GrB_{kind}_free", handle(self.name)),
            *(ExternalCall(symbol="free", arguments=(memory,)) for memory in left),
        )

    def handed_back(self) -> tuple[ExternalCall, ...]:
        """The calls that export a sparse result, or copy a dense one into place."""
        name, values = self.name, f"values of {self.name}"
        if not self.sparse:
            unpacked = (held(name), handle(values), handle("size"), handle("one value"), NULL)
            returned = held(values)
            return (
                _grb(f"GxB_{self.full.format('un')}", *unpacked),
                _moved(DataOf(tensor=name), returned, BytesOf(tensor=name)),
            )
        arrays = [f"{part} of {name}" for part in ("pos", "crd", "values")]
        sizes = [handle(f"size of {array}") for array in arrays]
        arguments: tuple[CallTerm, ...] = (
            *map(handle, arrays),
            *sizes,
            handle("one value"),
            *(NULL, NULL),
        )
        return (_grb("GxB_Matrix_unpack_CSR", held(name), *arguments),)


_RESULT = StoredResult(
    pos=held("pos of z"),
    crd=held("crd of z"),
    values=held("values of z"),
    index=Int(64),
)
_ALONE = (
    _grb("GxB_Global_Option_get_INT32", _THREADS, handle("threads")),
    _grb("GxB_Global_Option_set_INT32", _THREADS, enumerator(1)),
)
_TOGETHER = _grb("GxB_Global_Option_set_INT32", _THREADS, ValueIn(object="threads", type=INT32))


def _graphblas(
    name: str,
    statement: str,
    sparse: str,
    call: ExternalCall,
    *,
    before: Sequence[ExternalCall] = (),
    helpers: Sequence[_GraphTensor] = (),
) -> ExternalFunction:
    """A function on matrices of the library; those named in ``sparse`` are sparse.

    ``helpers`` are temporary matrices of the calls ``before`` it.
    """
    stated = parse_capability(statement)
    used = dict.fromkeys((*accesses(stated.value), stated.result))
    tensors = [
        _GraphTensor(
            name=access.tensor, variables="".join(access.variables), sparse=access.tensor in sparse
        )
        for access in used
    ]
    result = tensors[-1]
    setup = [call for tensor in tensors[:-1] for call in tensor.filled()]
    if result.sparse:
        setup.append(_made(result.name, result.variables))
    else:
        setup += result.filled()
    setup += [_made(helper.name, helper.variables) for helper in helpers]
    return make_function(
        name,
        statement,
        call=call,
        setup=(*_ALONE, *setup, *before),
        unpack=result.handed_back(),
        teardown=(
            *(call for tensor in (*tensors, *helpers) for call in tensor.freed()),
            _TOGETHER,
        ),
        stored=_RESULT if result.sparse else None,
        library=GRAPHBLAS,
        status=_STATUS,
        index=Int(64),
        trusted=True,
        types=tuple(_TYPES),
        formats=dict.fromkeys(sparse, "ds"),
        strides="dense",
        semirings=tuple(_RINGS),
    )


def _product(result: str, *, adds: bool = False, symbol: str = "GrB_mxm") -> ExternalCall:
    """A product of x and y, without a mask."""
    accumulated = _SUM if adds else NULL
    arguments = (held(result), NULL, accumulated, _SEMIRING, held("x"), held("y"), NULL)
    return _grb(symbol, *arguments)


def _sampled(name: str, sparse: str, *, transposed: bool = False) -> ExternalFunction:
    """A product that is computed where another matrix has entries, times those.

    With its second operand ``transposed``, the library computes a dot product of rows for each.
    """
    mask = _MASKED_TRANSPOSED if transposed else _MASKED
    within = _GraphTensor(name="t", variables="ik", sparse=True)
    product = (held("t"), held("m"), NULL, _SEMIRING, held("x"), held("y"), mask)
    return _graphblas(
        name,
        f"z(i,k) = m(i,k) * x(i,j) * {'y(k,j)' if transposed else 'y(j,k)'}",
        sparse,
        _grb(
            "GrB_Matrix_eWiseMult_BinaryOp",
            *(held("z"), NULL, NULL, _PRODUCT, held("m"), held("t"), NULL),
        ),
        before=(_grb("GrB_mxm", *product),),
        helpers=(within,),
    )


def _elementwise(name: str, statement: str, symbol: str, operator: CallTerm) -> ExternalFunction:
    arguments = (held("z"), NULL, NULL, operator, held("x"), held("y"), NULL)
    return _graphblas(name, statement, "xyz", _grb(symbol, *arguments))


FUNCTIONS: Mapping[str, ExternalFunction] = MappingProxyType(
    {
        one.name: one
        for one in (
            _graphblas("mxm", "z(i,k) = x(i,j) * y(j,k)", "xyz", _product("z")),
            _graphblas("mxm_dense", "z(i,k) += x(i,j) * y(j,k)", "x", _product("z", adds=True)),
            _graphblas(
                *("mxv", "z(i) += x(i,j) * y(j)", "x"),
                _product("z", adds=True, symbol="GrB_mxv"),
            ),
            _sampled("mxm_masked", "mxyz"),
            _sampled("mxm_masked_dense", "mz"),
            _sampled("mxm_masked_rows", "mz", transposed=True),
            _elementwise(
                *("ewise_add", "z(i,j) = x(i,j) + y(i,j)"),
                *("GrB_Matrix_eWiseAdd_BinaryOp", _SUM),
            ),
            _elementwise(
                *("ewise_mult", "z(i,j) = x(i,j) * y(i,j)"),
                *("GrB_Matrix_eWiseMult_BinaryOp", _PRODUCT),
            ),
        )
    }
)
"""All functions by name; sampled ones take a mask, and sparse or dense operands."""
