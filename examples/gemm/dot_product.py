"""Matrix multiply on 10 x 8 PEs with 16-wide dot products, as in the T2S-Tensor paper (Table II).

B is stored transposed, so that both operands are contiguous along k and are loaded as vectors.  Run
it with ``t2s run examples/gemm/dot_product.py``.
"""

import t2s
from t2s import Float, Func, ImageParam, RDom, Var

ROWS, COLUMNS, LANES = 10, 8, 16  # PEs, and multipliers in each
TILE = 8  # each PE owns TILE x TILE results; the paper has 32
STEPS = 16  # dot products per result

A, B = ImageParam(Float(32), 2, name="A"), ImageParam(Float(32), 2, name="B")
i, j, k = Var("i"), Var("j"), RDom(0, STEPS * LANES, name="k")
C = Func("C")
C[i, j] = 0.0
C[i, j] += A[i, k] * B[j, k]
C.bound(i, 0, ROWS * TILE).bound(j, 0, COLUMNS * TILE)

ii, jj, kk = t2s.variables("ii jj kk")
A_loader, A_feeder, B_loader, B_feeder, C_drainer, C_unloader = t2s.funcs(
    "A_loader A_feeder B_loader B_feeder C_drainer C_unloader"
)
C.update().tile(j, i, jj, ii, COLUMNS, ROWS).split(k, k, kk, LANES)
C.reorder(kk, j, i, k).unroll(ii, jj).vload(A, B)  # kk becomes the lanes
C.isolate_producer_chain(A, A_loader, A_feeder)
C.isolate_producer_chain(B, B_loader, B_feeder)
C.forward(A_feeder, jj).forward(B_feeder, ii)
C.isolate_consumer_chain(C_drainer, C_unloader)
