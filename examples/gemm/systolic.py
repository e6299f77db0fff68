"""The complete systolic GEMM of T2S-Tensor (Fig. 3(g)): C = A B, with B stored transposed.

Loaders read each value once for a whole tile, 16 in every cycle.  Feeders scatter what they load
among the rows (columns) of the array and keep it in double buffers.  PEs pass operands on to their
neighbours.  Drainers, collectors and an unloader gather the results while the next tile is
computed, and store whole vectors.

Run it with ``t2s run examples/gemm/systolic.py``; ``gemm(**ARRIA10)`` is the published design.
"""

import t2s
from t2s import Float, Func, ImageParam, RDom, Var

TINY = dict(KKK=4, JJJ=4, III=4, JJ=4, II=4, KK=4, I=4, J=4, K=4)
ARRIA10 = dict(KKK=16, JJJ=8, III=10, JJ=32, II=32, KK=32, I=32, J=32, K=32)
STRATIX10 = dict(KKK=16, JJJ=16, III=14, JJ=32, II=32, KK=32, I=32, J=32, K=32)


def gemm(*, KKK: int, JJJ: int, III: int, JJ: int, II: int, KK: int, I: int, J: int, K: int) -> Func:
    """III x JJJ PEs, each with KKK multipliers and a tile of II x JJ results."""
    A, B = ImageParam(Float(32), 2, name="A"), ImageParam(Float(32), 2, name="B")
    C, C_drainer, C_collector, C_unloader = t2s.funcs("C C_drainer C_collector C_unloader")
    i, j, k = Var("i"), Var("j"), RDom(0, K * KK * KKK, name="k")
    C[i, j] = 0.0
    C[i, j] += A[i, k] * B[j, k]
    C.bound(i, 0, I * II * III).bound(j, 0, J * JJ * JJJ)

    ii, jj, kk, iii, jjj, kkk = t2s.variables("ii jj kk iii jjj kkk")
    A_loader, A_feeder, B_loader, B_feeder = t2s.funcs("A_loader A_feeder B_loader B_feeder")
    C.tile(k, j, i, kk, jj, ii, KK * KKK, JJ * JJJ, II * III)  # what one pass of the array works on
    C.tile(kk, jj, ii, kkk, jjj, iii, KKK, JJJ, III).reorder(jj, ii, kk)
    C.unroll(iii, jjj).vload(A, B).isolate_consumer_chain(C_drainer, C_collector, C_unloader)
    C.isolate_producer_chain(A, A_loader, A_feeder).isolate_producer_chain(B, B_loader, B_feeder)
    C.forward(A_feeder, jjj).forward(B_feeder, iii)
    A_loader.remove(jj)
    A_feeder.scatter(A_loader, iii).buffer(A_loader, k)
    B_loader.remove(ii)
    B_feeder.scatter(B_loader, jjj).buffer(B_loader, k)
    C_drainer.gather(C, iii)
    C_collector.gather(C_drainer, jjj)
    C_unloader.vstore(C)
    return C


C = gemm(**TINY)
