"""C = A B^T as in T2S-Tensor (Table III): a loader for each operand, and buffered feeders."""

from __future__ import annotations

from dataclasses import dataclass

import t2s
from t2s import Float, Func, ImageParam, RDom, Var


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The array of PEs, the tile of results in each, the blocks, steps of ``lanes`` products."""

    rows: int
    columns: int
    tile: tuple[int, int]
    blocks: tuple[int, int]
    steps: int
    lanes: int


TINY = Sizes(rows=2, columns=3, tile=(3, 2), blocks=(1, 2), steps=2, lanes=4)
ARRIA10 = Sizes(rows=10, columns=8, tile=(32, 32), blocks=(32, 32), steps=1024, lanes=16)
STRATIX10 = Sizes(rows=14, columns=16, tile=(32, 32), blocks=(32, 32), steps=1024, lanes=16)


def design(s: Sizes) -> Func:
    """C for one set of sizes."""
    A, B = ImageParam(Float(32), 2, name="A"), ImageParam(Float(32), 2, name="B")
    C, i, j, k = Func("C"), Var("i"), Var("j"), RDom(0, s.steps * s.lanes, name="k")
    C[i, j] = 0.0
    C[i, j] += A[i, k] * B[j, k]
    C.bound(i, 0, s.blocks[0] * s.tile[0] * s.rows).bound(j, 0, s.blocks[1] * s.tile[1] * s.columns)
    it, jt, ii, jj, kk = t2s.variables("it jt ii jj kk")
    C.tile(j, i, jj, ii, s.columns, s.rows).tile(j, i, jt, it, s.tile[1], s.tile[0])
    C.split(k, k, kk, s.lanes).reorder(kk, jj, ii, jt, it, k).vload(A, B)
    A_loader, A_feeder, B_loader, B_feeder = t2s.funcs("A_loader A_feeder B_loader B_feeder")
    C_drainer, C_unloader = t2s.funcs("C_drainer C_unloader")
    C.isolate_producer_chain(A, A_loader, A_feeder).isolate_producer_chain(B, B_loader, B_feeder)
    C.unroll(ii, jj).forward(A_feeder, jj).forward(B_feeder, ii)
    A_loader.remove(jt).depth(s.tile[0])
    A_feeder.unroll(ii).buffer(A_loader, k)
    B_loader.remove(it).depth(s.tile[1])
    B_feeder.unroll(jj).buffer(B_loader, k)
    # results wait in deep channels and leave during the next tile
    C.isolate_consumer_chain(C_drainer, C_unloader).depth(s.tile[0] * s.tile[1])
    return C
