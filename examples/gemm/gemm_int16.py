"""Matrix multiply of int16 on 4 x 4 PEs, each with a multiplier: it fits a small FPGA.

Run it with ``t2s run examples/gemm/gemm_int16.py``, and make a bitstream of it with
``t2s chip examples/gemm/gemm_int16.py --board ulx3s``.
"""

import t2s
from t2s import Func, ImageParam, Int, RDom, Var

A, B = ImageParam(Int(16), 2, name="A"), ImageParam(Int(16), 2, name="B")
i, j, k = Var("i"), Var("j"), RDom(0, 16, name="k")
C = Func("C")
C[i, j] = t2s.cast(Int(32), 0)
C[i, j] += t2s.cast(Int(32), A[i, k]) * t2s.cast(Int(32), B[k, j])
C.bound(i, 0, 4).bound(j, 0, 4)

A_loader, B_loader, C_unloader = t2s.funcs("A_loader B_loader C_unloader")
C.update().reorder(j, i, k)
C.unroll(i, j)  # 4 x 4 PEs
C.isolate_producer(A, A_loader).isolate_producer(B, B_loader).isolate_consumer(C_unloader)
C.forward(A_loader, j).forward(B_loader, i)  # operands go from PE to PE
