"""Matrix multiply on a coarse-grained reconfigurable array: 8 x 8 x 4 PEs, one FMA each.

All of ``ii``, ``jj`` and ``kk`` are space, so that no PE has a loop: each is one instruction.  The
feeders have virtual buffers: every element of A and B is loaded once and sent round.
Place it with ``t2s cgra examples/cgra/gemm.py``.
"""

import t2s
from t2s import Float, Func, ImageParam, RDom, Var

A, B = ImageParam(Float(64), 2, name="A"), ImageParam(Float(64), 2, name="B")
i, j, k = Var("i"), Var("j"), RDom(0, 64, name="k")
C = Func("C")
C[i, j] = 0.0
C[i, j] += A[i, k] * B[k, j]
C.bound(i, 0, 32).bound(j, 0, 96)

ii, jj, kk = t2s.variables("ii jj kk")
A_loader, A_feeder, B_loader, B_feeder = t2s.funcs("A_loader A_feeder B_loader B_feeder")
C.tile(j, i, jj, ii, 8, 8).split(k, k, kk, 4)
C.reorder(kk, jj, ii, j, i, k).unroll(ii, jj, kk)  # k outermost: a whole tile circulates
C.isolate_producer_chain(A, A_loader, A_feeder).isolate_producer_chain(B, B_loader, B_feeder)
C.forward(A_feeder, jj).forward(B_feeder, ii)
A_loader.remove(j)
A_feeder.buffer(A_loader, i)
B_loader.remove(i)
B_feeder.buffer(B_loader, k)
