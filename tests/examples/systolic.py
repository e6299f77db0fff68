"""The designs of ``examples/gemm`` with their sizes and element type as arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import t2s
from t2s import Func, Graph, ImageParam, RDom, Type, Var
from t2s.graph.graph import TensorRole

Arrays = dict[str, np.ndarray[Any, Any]]


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """An array of ``rows`` x ``columns`` PEs; each owns a tile of the results of a block.

    The result has ``blocks`` blocks of ``rows * tile[0]`` x ``columns * tile[1]``.  A result is the
    sum of ``steps`` steps, each of ``lanes`` products.
    """

    rows: int
    columns: int
    tile: tuple[int, int]
    blocks: tuple[int, int] = (1, 1)
    steps: int
    lanes: int = 1

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows and columns of the result, and products in each."""
        return (
            self.rows * self.tile[0] * self.blocks[0],
            self.columns * self.tile[1] * self.blocks[1],
            self.steps * self.lanes,
        )

    def __str__(self) -> str:
        tile, blocks = ("x".join(map(str, pair)) for pair in (self.tile, self.blocks))
        return f"{self.rows}x{self.columns}-tile{tile}-blocks{blocks}-steps{self.steps}"


def gemm(type: Type, sizes: Sizes) -> Func:
    """``examples/gemm/gemm.py``."""
    M, N, K = sizes.shape
    A, B = ImageParam(type, 2, name="A"), ImageParam(type, 2, name="B")
    i, j, k = Var("i"), Var("j"), RDom(0, K, name="k")
    C = Func("C")
    C[i, j] = 0
    C[i, j] += A[i, k] * B[k, j]
    C.bound(i, 0, M).bound(j, 0, N)

    ii, jj, it, jt = t2s.variables("ii jj it jt")
    A_loader, A_feeder, B_loader, B_feeder, C_unloader = t2s.funcs(
        "A_loader A_feeder B_loader B_feeder C_unloader"
    )
    C.update().tile(j, i, jt, it, sizes.tile[1], sizes.tile[0]).reorder(jt, it, k, j, i)
    C.split(i, i, ii, sizes.rows).split(j, j, jj, sizes.columns).unroll(ii, jj)
    C.isolate_producer_chain(A, A_loader, A_feeder)
    C.isolate_producer_chain(B, B_loader, B_feeder)
    C.forward(A_feeder, jj).forward(B_feeder, ii)
    C.isolate_consumer(C_unloader)
    return C


def dot_product(type: Type, sizes: Sizes) -> Func:
    """``examples/gemm/dot_product.py``: B is transposed."""
    M, N, K = sizes.shape
    A, B = ImageParam(type, 2, name="A"), ImageParam(type, 2, name="B")
    i, j, k = Var("i"), Var("j"), RDom(0, K, name="k")
    C = Func("C")
    C[i, j] = 0
    C[i, j] += A[i, k] * B[j, k]
    C.bound(i, 0, M).bound(j, 0, N)

    ii, jj, kk = t2s.variables("ii jj kk")
    A_loader, A_feeder, B_loader, B_feeder, C_drainer, C_unloader = t2s.funcs(
        "A_loader A_feeder B_loader B_feeder C_drainer C_unloader"
    )
    C.update().tile(j, i, jj, ii, sizes.columns, sizes.rows).split(k, k, kk, sizes.lanes)
    C.reorder(kk, j, i, k).unroll(ii, jj).vload(A, B)
    C.isolate_producer_chain(A, A_loader, A_feeder)
    C.isolate_producer_chain(B, B_loader, B_feeder)
    C.forward(A_feeder, jj).forward(B_feeder, ii)
    C.isolate_consumer_chain(C_drainer, C_unloader)
    return C


def random_inputs(graph: Graph) -> Arrays:
    """Numbers in [0, 1), or integers whose products overflow int32."""
    generator = np.random.default_rng(0)
    inputs: Arrays = {}
    for tensor in graph.tensors:
        if tensor.role is TensorRole.INPUT and tensor.type.is_float:
            inputs[tensor.name] = generator.random(tensor.shape).astype(tensor.type.numpy)
        elif tensor.role is TensorRole.INPUT:
            limits = np.iinfo(tensor.type.numpy)
            inputs[tensor.name] = generator.integers(
                limits.min, limits.max, tensor.shape, tensor.type.numpy, endpoint=True
            )
    return inputs


def assert_matches(given: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> None:
    """Integers exactly, floats within 1e-5."""
    assert given.dtype == expected.dtype
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(given, expected, rtol=1e-5)
    else:
        np.testing.assert_array_equal(given, expected)
