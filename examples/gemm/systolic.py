"""The complete systolic GEMM of T2S-Tensor (Fig. 3(g)): C = A B, with B stored transposed.

Loaders read each value once for a whole tile, KKK at a time.  Feeders scatter what they load
among the rows (columns) of the array and keep it in double buffers.  PEs pass operands on to their
neighbors.  Drainers, collectors and an unloader gather the results while the next tile is
computed, and store whole vectors.

Run it with ``t2s run examples/gemm/systolic.py``; ``gemm(ARRIA10)`` is the published design.
"""

from collections import namedtuple

import t2s
from t2s import Float, Func, ImageParam, RDom, Var

# the paper's constants: PEs and multipliers in each, tiles in time, and how many of all that
Sizes = namedtuple("Sizes", "III JJJ KKK II JJ KK I J K")
TINY = Sizes(III=4, JJJ=4, KKK=4, II=4, JJ=4, KK=4, I=4, J=4, K=4)
ARRIA10 = Sizes(III=10, JJJ=8, KKK=16, II=32, JJ=32, KK=32, I=32, J=32, K=32)
STRATIX10 = Sizes(III=14, JJJ=16, KKK=16, II=32, JJ=32, KK=32, I=32, J=32, K=32)


def gemm(n: Sizes) -> Func:
    """III x JJJ PEs, each with KKK multipliers and a tile of II x JJ results."""
    A, B = ImageParam(Float(32), 2, name="A"), ImageParam(Float(32), 2, name="B")
    C, C_drainer, C_collector, C_unloader = t2s.funcs("C C_drainer C_collector C_unloader")
    i, j, k = Var("i"), Var("j"), RDom(0, n.K * n.KK * n.KKK, name="k")
    C[i, j] = 0.0
    C[i, j] += A[i, k] * B[j, k]
    C.bound(i, 0, n.I * n.II * n.III).bound(j, 0, n.J * n.JJ * n.JJJ)

    ii, jj, kk, iii, jjj, kkk = t2s.variables("ii jj kk iii jjj kkk")
    A_loader, A_feeder, B_loader, B_feeder = t2s.funcs("A_loader A_feeder B_loader B_feeder")
    C.tile(k, j, i, kk, jj, ii, n.KK * n.KKK, n.JJ * n.JJJ, n.II * n.III)
    C.tile(kk, jj, ii, kkk, jjj, iii, n.KKK, n.JJJ, n.III).reorder(jj, ii, kk)
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


C = gemm(TINY)
