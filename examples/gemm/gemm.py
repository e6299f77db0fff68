"""Matrix multiply on a systolic array of 8 x 8 PEs.

Run it with ``t2s run examples/gemm/gemm.py``.
"""

import t2s
from t2s import Float, Func, ImageParam, RDom, Var

A, B = ImageParam(Float(32), 2, name="A"), ImageParam(Float(32), 2, name="B")
i, j, k = Var("i"), Var("j"), RDom(0, 128, name="k")
C = Func("C")
C[i, j] = 0.0
C[i, j] += A[i, k] * B[k, j]  # the mathematics, once
C.bound(i, 0, 64).bound(j, 0, 64)

ii, jj, it, jt = t2s.variables("ii jj it jt")
A_loader, A_feeder, B_loader, B_feeder, C_unloader = t2s.funcs(
    "A_loader A_feeder B_loader B_feeder C_unloader"
)
C.update().tile(j, i, jt, it, 4, 4).reorder(jt, it, k, j, i)  # each PE sums up 4 x 4 results
C.split(i, i, ii, 8).split(j, j, jj, 8).unroll(ii, jj)  # 8 x 8 PEs
C.isolate_producer_chain(A, A_loader, A_feeder)
C.isolate_producer_chain(B, B_loader, B_feeder)
C.forward(A_feeder, jj).forward(B_feeder, ii)  # operands go from PE to PE
C.isolate_consumer(C_unloader)
