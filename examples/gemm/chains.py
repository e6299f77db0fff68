"""The complete systolic GEMM of T2S-Tensor (Fig. 3(g)), with one line for each tensor.

The design is that of ``systolic.py``, channel by channel.  Of the way of each tensor through the
memories only the stages are written, and what each of them keeps: which values the PEs pass on,
which ones they take from one stream, and which loads would be repeated, is found from the
subscripts.

Run it with ``t2s run examples/gemm/chains.py``; ``gemm(ARRIA10)`` is the published design.
"""

from collections import namedtuple

import t2s
from t2s import Float, Func, ImageParam, RDom, Var, dram, registers, sram

# the paper's constants: PEs and multipliers in each, tiles in time, and how many of all that
Sizes = namedtuple("Sizes", "III JJJ KKK II JJ KK I J K")
TINY = Sizes(III=4, JJJ=4, KKK=4, II=4, JJ=4, KK=4, I=4, J=4, K=4)
ARRIA10 = Sizes(III=10, JJJ=8, KKK=16, II=32, JJ=32, KK=32, I=32, J=32, K=32)
STRATIX10 = Sizes(III=14, JJJ=16, KKK=16, II=32, JJ=32, KK=32, I=32, J=32, K=32)


def gemm(n: Sizes) -> Func:
    """III x JJJ PEs, each with KKK multipliers and a tile of II x JJ results."""
    A, B = ImageParam(Float(32), 2, name="A"), ImageParam(Float(32), 2, name="B")
    C, i, j, k = Func("C"), Var("i"), Var("j"), RDom(0, n.K * n.KK * n.KKK, name="k")
    C[i, j] = 0.0
    C[i, j] += A[i, k] * B[j, k]
    C.bound(i, 0, n.I * n.II * n.III).bound(j, 0, n.J * n.JJ * n.JJJ)

    ii, jj, kk, iii, jjj, kkk = t2s.variables("ii jj kk iii jjj kkk")
    C.tile(k, j, i, kk, jj, ii, n.KK * n.KKK, n.JJ * n.JJJ, n.II * n.III)
    C.tile(kk, jj, ii, kkk, jjj, iii, n.KKK, n.JJJ, n.III).reorder(jj, ii, kk)
    C.unroll(iii, jjj).vload(A, B)
    A >> dram("A_loader") >> sram("A_feeder", scope=k) >> C
    B >> dram("B_loader") >> sram("B_feeder", scope=k) >> C
    collected = C >> registers("C_drainer", gather=iii) >> registers("C_collector", gather=jjj)
    collected >> dram("C_unloader", lanes=jjj)
    return C


C = gemm(TINY)
